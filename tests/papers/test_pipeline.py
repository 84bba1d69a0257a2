"""Both default models from tiny data, and the parts of what ships."""

from __future__ import annotations

import csv
import gzip
import json
from functools import partial
from itertools import product

import pytest

pytest.importorskip("sentence_transformers")
transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

import yaml  # noqa: E402
from papers.__main__ import app  # noqa: E402
from papers.model import (  # noqa: E402
    applicability,
    balanced,
    draws,
    natural,
    pipeline,
    rows,
    rules,
    shipping,
    sources,
    teach,
)
from papers.model.groups import read_groups  # noqa: E402
from tests.papers.conftest import whole_word_tokenizer  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

import condsim  # noqa: E402
from condsim.data.held_out import held_out_texts, text_digest  # noqa: E402
from condsim.errors import InputError  # noqa: E402
from condsim.model.builders import build_bi_encoder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

WHO = ("Two men", "A woman", "Three children", "An old man", "A girl")
VERBS = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple")
WHERE = ("on a beach", "in a park", "near a lake", "in a street")
PARTS = list(product(WHO, VERBS, WHERE))
TEXTS = [" ".join(parts) for parts in PARTS]
HELD_OUT = TEXTS[2]
CRITERIA = ("the person", "the activity", "the place")
SHARES = {"criteria": 4, "graded": 2, "written": 1, "broad": 1, "balanced-csts": 1}


def write_table(path, table, *, tabs=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as stream:
        kind = {"delimiter": "\t"} if tabs else {}
        writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n", **kind)
        writer.writeheader()
        writer.writerows(table)


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as stream:
        for line in lines:
            stream.write((line if isinstance(line, str) else json.dumps(line)) + "\n")


def labeled(suffix):
    """Texts with two or three attributes."""
    lines = []
    for number, (text, parts) in enumerate(zip(TEXTS, PARTS, strict=True)):
        attributes = dict(zip(CRITERIA[: 2 + number % 2], map(str.lower, parts), strict=False))
        lines.append({"text": f"{text}, {suffix}.", "attributes": attributes})
    return lines


def pairs(first, step, number):
    return [(TEXTS[row % 80], TEXTS[(step * row + 3) % 80]) for row in range(first, first + number)]


def rated(first, number, **cells):
    """Rows of pairs under two conditions with labels from 1 to 5."""
    table = []
    for row, (one, two) in enumerate(pairs(first, 7, number)):
        for place, condition in enumerate(CRITERIA[:2]):
            label = 1 + (row + 2 * place) % 5
            texts = {"sentence1": one, "sentence2": two, "condition": condition, "label": label}
            table.append(texts | {"pair_id": row} | cells)
    return table


def write_data(data):
    """Write each data set that the sources read, as small as they take it."""
    csts = data / "csts-reannotated"
    write_table(csts / "train.csv", rated(0, 40))
    dev = rated(20, 30)
    for row in dev[::7]:
        row["label"] = -1
    write_table(csts / "dev.csv", dev)
    write_lines(csts / "held-out.sha256", [text_digest(HELD_OUT).hex()])
    captions = [{"image_id": f"{row // 2}.jpg", "caption": text} for row, text in enumerate(TEXTS)]
    write_table(data / "captions" / "flickr8k.tsv.gz", captions, tabs=True)
    labels = ("entailment", "neutral", "contradiction")
    for name in ("mnli_dev_matched", "snli_dev", *(f"cad_{k}_train" for k in ("original", "x"))):
        name = name.replace("_x_", "_revised_combined_")
        hypotheses = [
            {"premise": one, "hypothesis": f"{two}.", "label": labels[row % 3]}
            for row, (one, two) in enumerate(product(TEXTS[:9], TEXTS[40:44]))
        ]
        write_table(data / "nli" / f"{name}.tsv.gz", hypotheses, tabs=True)
    write_lines(data / "corpus" / "openstax.txt.gz", [f"{text} and go home." for text in TEXTS])
    write_criteria(data / "criteria")
    write_graded(data / "graded")
    line = "main\tx\t2012\t1\t{}\t{}\t{}"
    sts = [line.format(row % 6, one, two) for row, (one, two) in enumerate(pairs(0, 3, 9))]
    write_lines(data / "sts-b" / "sts-train.csv", sts)
    sick = [f"{row}\t{a}\t{b}\t{1 + row % 5}" for row, (a, b) in enumerate(pairs(9, 3, 9))]
    write_lines(data / "sick-r" / "sick_train.tsv", ["id\ta\tb\tscore", *sick])


def write_criteria(folder):
    uses = dict.fromkeys(("a", "mams", "walmart_amazon"), "train") | {"b": "evaluation only"}
    write_lines(folder / "meta.json", [{name: {"use": use} for name, use in uses.items()}])
    products = [
        {"text1": one, "text2": two, "labels": {"the product": row % 2, "the brand": 1 - row % 2}}
        for row, (one, two) in enumerate(pairs(0, 5, 40))
    ]
    for name, part in product(uses, ("train", "dev", "test")):
        lines = products if name == "walmart_amazon" else labeled(f"{name} {part}")
        write_lines(folder / name / f"{part}.jsonl.gz", lines)
    write_table(folder / "dev_rows.csv", rated(30, 20, set="a", use="train"))


def write_graded(folder):
    patents = [row | {"label": 1 + number % 5} for number, row in enumerate(rated(0, 80))]
    write_table(folder / "patent_phrases" / "rows.csv.gz", patents)
    columns = (*natural.ACTIVITY_CONDITIONS,)
    activities = [
        {"text1": one, "text2": two, "split": ("train", "dev")[row % 2]}
        | {column: 1 + (row + place) % 5 for place, column in enumerate(columns)}
        for row, (one, two) in enumerate(pairs(0, 3, 40))
    ]
    write_table(folder / "activity_phrases" / "pairs.csv.gz", activities)
    feelings = [
        {"text": text, "split": ("train", "dev")[row % 2]}
        | {letter: 1 + (row + place) % 5 for place, letter in enumerate("VAD")}
        for row, text in enumerate(TEXTS)
    ]
    write_table(folder / "emobank" / "sentences.csv.gz", feelings)
    names = ("anchor1", "anchor2", "alternative1", "alternative2")
    styles = [
        {"id": str(row), "correct": str(1 + row % 2)}
        | {name: TEXTS[(row + 9 * place) % 80] for place, name in enumerate(names)}
        for row in range(20)
    ]
    write_table(folder / "stel" / "quadruples.csv.gz", styles)
    write_table(folder / "story_analogy" / "rows.csv.gz", [r | {"item": "i"} for r in rated(0, 9)])
    answers = [
        row
        | {"passage": f"p{number % 9}", "question": "Is it so?", "edit": "scope"}
        | {"answer1": "yes", "answer2": ("yes", "no")[number % 2]}
        for number, row in enumerate(rated(0, 20))
    ]
    write_table(folder / "condaqa_contrast" / "rows.csv.gz", answers)


def write_own(root):
    """Write what condsim publishes in its folder ``data``."""
    data = root / "data"
    for name in ("notes", "mails", "posts", "orders"):
        write_lines(data / "attributes" / f"{name}.jsonl", labeled(name))
    line = "notes ||| {}, he said. ||| {}, she said. ||| who = 1 ; what = 5"
    for part, first in (("train", 0), ("dev", 30)):
        lines = [line.format(one, two) for one, two in pairs(first, 3, 20)]
        write_lines(data / "written" / f"{part}.txt", lines)
    wordings = [{"condition": "the place", "wordings": ["where it is", "the spot"]}]
    write_lines(data / "wordings" / "train.jsonl", wordings)
    triplets = [f"place ||| the place ||| {a} ||| {b} ||| {a} now" for a, b in pairs(0, 3, 20)]
    write_lines(data / "details" / "triplets.txt", triplets)
    grades = [f"0 ||| the place ||| {TEXTS[0]} ||| 5 {TEXTS[1]} ||| 0 {TEXTS[5]}"]
    write_lines(data / "details" / "grades.txt", grades)
    write_lines(data / "details" / "off-topic.txt", ["the weather", "the tax", "the goal", "jazz"])


def checkpoint(folder, *, hidden):
    """Write a tiny random MPNet with a tokenizer of whole words, as sentence-transformers does."""
    words = sorted({w for text in TEXTS for w in text.lower().split()} | {"the", "place", "person"})
    tokenizer = whole_word_tokenizer(words)
    config = transformers.MPNetConfig(
        vocab_size=len(words) + 4,
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=512,
    )
    torch.manual_seed(0)
    plain = folder.with_name(f"{folder.name}-plain")
    transformers.MPNetModel(config).save_pretrained(plain)
    names = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>"}
    names |= {"unk_token": "[UNK]", "cls_token": "<s>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.save_pretrained(plain)
    build_bi_encoder(str(plain), max_seq_length=128).save_pretrained(str(folder))
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (folder / name).is_file()
    return folder


@pytest.fixture
def data(tmp_path, monkeypatch):
    write_data(tmp_path / "data")
    write_own(tmp_path / "own")
    for module in (applicability, balanced, draws, natural, rows, shipping, sources):
        monkeypatch.setattr(module, "ROOT", tmp_path / "own")
    monkeypatch.setattr(rows, "DETAILS", tmp_path / "own" / "data" / "details")
    topics = tmp_path / "own" / "data" / "details" / "off-topic.txt"
    monkeypatch.setattr(applicability, "OFF_TOPIC", topics)
    monkeypatch.setattr(applicability, "MADE_UP_ROWS", 20)
    few = {name: (generate, 2) for name, (generate, _) in rules.RULES.items()}
    monkeypatch.setattr(rules, "RULES", few)
    monkeypatch.setattr(pipeline, "teach", partial(teach.teach, inputs=40))
    return tmp_path / "data"


@pytest.mark.slow
def test_make_models_writes_what_ships_and_goes_on(tmp_path, data, caplog):
    settings = {"steps": 3, "inputs_per_step": 24, "warmup_steps": 1}
    recipes = {
        "large": {"shares": SHARES},
        "small-vectors": {"shares": {"taught": 4}, "mse": 0.0, "correlation": 0.0, "ranking": 0.0},
        "small": {"shares": {"taught": 4, "written": 1, "titles": 1}},
    }
    for name, recipe in recipes.items():
        path = tmp_path / "settings" / f"{name}.yaml"
        write_lines(path, [yaml.safe_dump(recipe | settings)])
    large = checkpoint(tmp_path / "large", hidden=64)
    small = checkpoint(tmp_path / "small", hidden=16)
    starts = pipeline.Checkpoints(large, small, small)
    caplog.set_level("INFO", logger="condsim")
    work = tmp_path / "work"
    shipped = pipeline.make_models(data, starts, work, settings=tmp_path / "settings")
    assert set(caplog.messages) >= {"from step 0"}
    for model, folder in shipped.items():
        loaded = condsim.load(str(folder))
        assert loaded.name == model.name
        assert 0 <= loaded.score(TEXTS[0], TEXTS[1], "the person") <= 1
        assert 0 <= loaded.applicability(TEXTS[0], TEXTS[1], "the place") <= 1
        facts = json.loads((folder / "condsim.json").read_text())["facts"]
        assert facts["base_model"] == model.base
        assert facts["criteria_sets"] == "a, mams, walmart_amazon"
        assert 0 <= facts["calibration_error_natural"] <= 1
        assert model.name in (folder / "README.md").read_text()
    exclude = held_out_texts([data / sources.HELD_OUT])
    for name in rows.SOURCES:
        for group in read_groups(work / "rows" / f"{name}.jsonl.gz"):
            assert not any(text in exclude for _, text in group.inputs), name
    caplog.clear()
    for folder in shipped.values():
        (folder / "applicability.json").unlink()
    assert pipeline.make_models(data, starts, work, settings=tmp_path / "settings") == shipped
    assert "from step 0" not in caplog.messages
    assert all((folder / "applicability.json").is_file() for folder in shipped.values())


def test_calibration_error_two_bins_by_hand():
    # Bins {0.0, 0.2} and {0.8, 1.0}: mean scores 0.1 and 0.9, mean labels 0 and 0.8, in any order.
    scores, gold = [1.0, 0.0, 0.8, 0.2], [0.6, 0.0, 1.0, 0.0]
    assert shipping.calibration_error(scores, gold, bins=2) == pytest.approx(0.1)
    assert shipping.calibration_error(scores, gold, bins=1) == pytest.approx(0.1)
    assert shipping.calibration_error(scores, gold, bins=9) == pytest.approx(0.2)


def test_split_weights_scores_stay(tmp_path, exported_small):
    before = condsim.load(str(exported_small)).score(TEXTS[0], TEXTS[9], "the place")
    shipping.split_weights(exported_small, most=9_000_000)
    sizes = [path.stat().st_size for path in exported_small.iterdir()]
    assert len(list(exported_small.glob("weights-*.bin"))) > 1
    assert max(sizes) < 13_000_000
    after = condsim.load(str(exported_small)).score(TEXTS[0], TEXTS[9], "the place")
    assert after == pytest.approx(before, abs=1e-6)


@pytest.fixture
def exported_small(tmp_path):
    folder = tmp_path / "default"
    folder.mkdir()
    for path in condsim.model.DEFAULT_FOLDER.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_csts_rows_mix_the_labels_of_both_origins(tmp_path):
    write_table(tmp_path / "train.csv", rated(0, 3))
    first = rated(0, 1)[0]
    key = balanced.row_key(first["sentence2"], first["sentence1"], first["condition"])
    write_table(tmp_path / "labels.csv", [{"key": key, "label": 5}])
    made = balanced.csts_rows(
        tmp_path / "train.csv", exclude=held_out_texts([]), labels=tmp_path / "labels.csv"
    )
    assert [row.label for row in made] == pytest.approx([0.4 * 1 + 0.6 * 5, 3, 2, 4, 3, 5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Name the folder of the data sets with --data; it must hold csts-reannotated"),
        (["--data", "none"], "--data must name a folder that holds csts-reannotated"),
        (["--seeds", "2"], "--seeds does not apply to default-model"),
        (["--backbone", "a"], "takes --backbone twice"),
        (["--dry-run"], "--dry-run does not apply to default-model"),
    ],
)
def test_default_model_says_what_is_missing(options, message):
    result = CliRunner().invoke(app, ["default-model", *options])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
