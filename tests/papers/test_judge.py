from __future__ import annotations

import gzip
import json
import math
import random
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from papers.judge import teach, train as module
from papers.judge.rows import Row, read_requests, read_verdicts
from papers.judge.subjects import lower_words, subject_pairs, with_other_subjects
from papers.judge.titles import altered, shop_titles, written_titles
from papers.judge.train import Reader, Run, Settings
from transformers import BertConfig, BertModel

from condsim.paths import asset

VERDICT_ROWS = [Row("", "Tests run on Jenkins.", f"Text {n}.", n % 5) for n in range(10)]
REQUEST_ROWS = [Row("", "Turn it on.", "Switch it on.", 1.0), Row("", "Turn it on.", "Off.", 0.0)]
SETTINGS = Settings({"verdict": 3, "request": 2}, {}, steps=4, warmup_steps=1, chunks=2)


@pytest.fixture
def start(tmp_path):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(intermediate_size=16, **sizes)
    BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "start")
    shutil.copy(asset("default") / "tokenizer.json", tmp_path / "start")
    return tmp_path / "start"


@pytest.fixture(autouse=True)
def _written(monkeypatch):
    monkeypatch.setattr(module, "verdict_rows", lambda part: iter(VERDICT_ROWS))
    monkeypatch.setattr(module, "request_rows", lambda part: iter(REQUEST_ROWS))


def test_loss_of_equal_logits_is_the_hand_worked_value(start, tmp_path):
    run = Run(replace(SETTINGS, smoothing=0.0), tmp_path, start, tmp_path / "run")
    torch.nn.init.zeros_(run.judge.heads["verdict"].weight)
    torch.nn.init.zeros_(run.judge.heads["verdict"].bias)
    # Five equal logits: each verdict has 1/5, and a request is the same with 1/5.
    requests = [("request", row) for row in REQUEST_ROWS]
    wanted = -(math.log(0.2) + math.log(0.8)) / 2
    assert run._loss(requests).item() == pytest.approx(wanted, abs=1e-4)
    verdicts = [("verdict", row) for row in VERDICT_ROWS[:3]]
    assert run._loss(verdicts).item() == pytest.approx(math.log(5), abs=1e-4)


def test_taught_pairs_have_the_probabilities_of_the_teacher(start, tmp_path, monkeypatch):
    run = Run(SETTINGS, tmp_path, start, tmp_path / "run")
    torch.nn.init.zeros_(run.judge.heads["verdict"].weight)
    run.judge.heads["verdict"].bias.data = torch.log(torch.tensor([1.0, 1, 2, 4, 8]))
    run.average = run.judge.state_dict()
    run.save()
    monkeypatch.setattr(teach, "verdict_rows", lambda part: iter(VERDICT_ROWS[:2]))
    line = json.dumps(["a condition", "Tea is hot.", "Tea is cold.", 0.5])
    (tmp_path / "entailment.jsonl").write_text(f"{line}\n{line}\n")
    (tmp_path / "similarity.jsonl").write_text(json.dumps(["", "the same", "the same", 1.0]))
    assert teach.teach(tmp_path / "run", start, tmp_path) == 3
    taught = (tmp_path / "taught.jsonl").read_text()
    shares = [1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2]
    rows = [Row(*json.loads(line)) for line in taught.splitlines()]
    assert [row[:3] for row in rows] == [
        ("", "Text 0.", "Tests run on Jenkins."),
        ("", "Text 1.", "Tests run on Jenkins."),
        ("", "Tea is hot.", "Tea is cold."),
    ]
    for row in rows:
        assert row.label == pytest.approx(shares, abs=1e-3)
    run = Run(replace(SETTINGS, shares={"taught": 2}), tmp_path, start, tmp_path / "other")
    torch.nn.init.zeros_(run.judge.heads["verdict"].weight)
    torch.nn.init.zeros_(run.judge.heads["verdict"].bias)
    # Equal logits: the cross-entropy is that of five equal shares, whatever the teacher says.
    assert run._loss([("taught", row) for row in rows[:2]]).item() == pytest.approx(
        math.log(5), abs=1e-3
    )


@pytest.mark.parametrize(("label", "turned"), [(0, None), (1, 3), (2, 2), (3, None), (4, 4)])
def test_turned_rows_have_the_verdict_that_then_holds(start, tmp_path, label, turned):
    run = Run(replace(SETTINGS, swapped=1.0), tmp_path, start, tmp_path / "run")
    row = Row("", "a", "b", label)
    got = run._turned("verdict", row, np.random.default_rng(0))
    assert got == (row if turned is None else Row("", "b", "a", turned))
    assert run._turned("request", row, np.random.default_rng(0)) == row
    draw = np.random.default_rng(0)
    rules = [run._turned("rule", row, draw) for _ in range(40)]
    # A rule says what each of two texts is to the other.
    assert set(rules) == {row, Row("", "b", "a", label)}


def test_reader_lays_out_condition_and_texts(start):
    read = Reader(start, 4)
    ids, types = read(Row("the color", "A red car.", "Blue.", 0))
    words = [read._tokenizer.id_to_token(number) for number in ids]
    assert words == "[CLS] the color [SEP] a red car . [SEP] blue . [SEP]".split()
    assert types == [0] * 9 + [1] * 3
    assert len(read(Row("", "one two three four five six", "a", 0))[0]) == 1 + 4 + 1 + 1 + 1


def test_run_that_is_stopped_continues_as_if_it_had_not_been(start, tmp_path):
    whole = Run(SETTINGS, tmp_path, start, tmp_path / "whole")
    list(whole.train())
    first = Run(replace(SETTINGS, minutes=0.0), tmp_path, start, tmp_path / "parts")
    next(first.train())
    assert first.step == 1
    second = Run(SETTINGS, tmp_path, start, tmp_path / "parts")
    assert second.step == 1
    figures = list(second.train())
    assert figures[-1]["step"] == SETTINGS.steps
    assert second._batch() == whole._batch()


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_written_verdicts_are_balanced_and_in_one_part(part):
    pairs = read_verdicts(part)
    counts = [sum(pair["verdict"] == name for pair in pairs) for name in module.VERDICTS]
    assert max(counts) - min(counts) <= 100
    others = [pair for other in {"train", "dev", "test"} - {part} for pair in read_verdicts(other)]
    for key in ("domain", "sentence1", "sentence2"):
        assert not {pair[key].lower() for pair in pairs} & {pair[key].lower() for pair in others}


def test_written_requests_share_no_text():
    texts = [
        {pair[key].lower() for pair in read_requests(part) for key in ("sentence1", "sentence2")}
        for part in ("train", "test")
    ]
    assert not texts[0] & texts[1]


LOWER = lower_words(["The tests run on a bus line.", "She works for a bank."])


@pytest.mark.parametrize(
    ("first", "second", "pattern"),
    [
        ("Anna has a cold.", "Anna caught a cold.", r"(?!Anna)\w+ caught a cold\."),
        ("Invoice 4711 is unpaid.", "We paid invoice 4711.", r"We paid invoice 47(?!11)\d\d\."),
        ("The left knee hurts.", "No pain in the left knee.", r"No pain in the right knee\."),
        ("My brother is ill.", "So my brother is ill.", r"So my (?!brother)\w+ is ill\."),
        ("The library is closed.", "The library opened.", r"The (?!library)\w+ opened\."),
    ],
)
def test_other_subjects_replace_the_name_in_the_second_text(first, second, pattern):
    found = with_other_subjects(first, second, LOWER)
    assert found
    assert all(re.fullmatch(pattern, text) for text in found)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The name is a value, only one person can be it, or the number counts something.
        ("I work from Porto this month.", "You find me in Porto this month."),
        ("Anna chairs the meeting.", "The chair of the meeting is Anna."),
        ("Mia sold the boat to Tom.", "Tom sold the boat to Mia."),
        ("Line 6 runs every ten minutes.", "6 times an hour there is a train."),
        ("My brother lives here.", "He and his wife moved out, my brother says."),
        ("Anna left the bank.", "She walked out of the bank."),
        ("Only the left knee hurts.", "The left knee is well."),
    ],
)
def test_other_subjects_are_none_where_the_verdict_is_not_plain(first, second):
    assert with_other_subjects(first, second, LOWER) == []


def test_subject_pairs_hold_no_text_of_dev_or_test():
    pairs = list(subject_pairs(read_verdicts("train")))
    others = {
        pair[key] for part in ("dev", "test") for pair in read_verdicts(part)
        for key in ("sentence1", "sentence2")
    }  # fmt: skip
    assert 400 < len(pairs) < 1200
    assert not {text for pair in pairs for text in pair} & others


def test_altered_title_has_another_number_or_color():
    draw = random.Random(0)
    first, second = "acme rx200 drill blue", "acme rx200 cordless drill, blue"
    found = {altered(first, second, draw) for _ in range(20)}
    assert second not in found
    assert any("blue" not in str(title) for title in found)
    assert any("rx200" not in str(title) for title in found)
    assert altered("acme drill", "acme drill kit", draw) is None


def test_written_titles_share_no_value_where_they_are_new():
    kinds = {verdict for verdict, _, _ in written_titles()}
    assert kinds == {"duplicate", "related", "new"}


def test_shop_titles_of_one_product_are_duplicates(tmp_path):
    lines = [
        {"text1": f"acme rx{n} drill", "text2": f"drill rx{n} by acme",
         "labels": {"the product": n % 2, "the brand": 1, "the product category": 1}}
        for n in range(200, 240)
    ]  # fmt: skip
    lines += [
        {"text1": f"smead folder letter tab {n}x", "text2": f"hp toner cartridge black laser {n}y",
         "labels": {"the product": 0, "the brand": 0, "the product category": 0}}
        for n in range(40)
    ]  # fmt: skip
    path = tmp_path / "criteria" / "walmart_amazon" / "train.jsonl.gz"
    path.parent.mkdir(parents=True)
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    rows = list(shop_titles(tmp_path))
    assert sum(verdict == "duplicate" for verdict, _, _ in rows) == 20
    news = [(first, second) for verdict, first, second in rows if verdict == "new"]
    assert not any("drill" in first and "drill" in second for first, second in news)
