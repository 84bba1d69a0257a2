import importlib
import io
import json
import statistics
import sys
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console

from condsim.data.csts import load_csts
from condsim.data.tasks import pair_rows

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module", autouse=True)
def _root_on_path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def benchmark_module(name):
    return importlib.import_module(f"benchmarks.{name}")


def results():
    make = benchmark_module("result").Result
    return [
        make("score_one", "one pair", "peer 1.0", "s", 0.5, 4.0, 8.0, 5.0, ("a note [x]",)),
        make("score_many", "10,000 rows", "peer 1.0", "rows/s", 1234.5, 600.0, 2.06, 4.0),
        make("score_many", "difference", "allowed", "cosine", 0.0051, 0.015, 2.94),
    ]


def test_generated_rows_same_seed_gives_same_rows_other_seed_differs():
    rows = benchmark_module("rows")
    first, again, other = (list(islice(rows.generated_rows(seed=s), 40)) for s in (1, 1, 2))
    assert first == again != other


def test_generated_rows_are_pairs_under_two_conditions_about_as_long_as_csts(tmp_path):
    rows = benchmark_module("rows")
    path = tmp_path / "rows.csv"
    rows.write_rows(path, islice(rows.generated_rows(seed=0), 2000))
    task = load_csts(path)
    assert len(task) == 2000
    assert task.valid.all()
    assert pair_rows(task).pairs == pytest.approx(900, abs=50)  # the others are ties
    lengths = [len(sentence.split()) for sentence in task.sentences1]
    assert statistics.mean(lengths) == pytest.approx(15, abs=1)
    assert min(lengths) >= 7
    assert max(lengths) <= 40
    texts = set(zip(task.sentences1, task.conditions, strict=True))
    assert len(texts) > 1900


def test_source_missing_file_generates_and_says_so(tmp_path):
    source = benchmark_module("rows").source(tmp_path / "none.csv", rows=30)
    assert len(source.task) == 30
    assert source.origin.startswith("generated")


def test_source_file_takes_whole_pairs_of_it(tmp_path):
    rows = benchmark_module("rows")
    path = tmp_path / "rows.csv"
    rows.write_rows(path, islice(rows.generated_rows(seed=0), 60))
    source = rows.source(path, rows=20)
    assert source.origin == f"{tmp_path.name}/rows.csv"
    assert len(source.task) == 20
    assert len(set(zip(source.task.sentences1, source.task.sentences2, strict=True))) == 10


def test_random_pair_batches_cover_the_epoch_once_and_keep_pairs():
    batches = list(
        benchmark_module("peers.plain_training").random_pair_batches(
            [0, 1, 0, 1, 2, 2, 3], 4, seed=0
        )
    )
    assert sorted(row for batch in batches for row in batch) == list(range(7))
    assert [len(batch) for batch in batches] == [4, 3]


def test_print_table_shows_ratio_bar_and_notes():
    console = Console(record=True, width=120, file=io.StringIO())
    benchmark_module("result").print_table(results(), console)
    text = console.export_text()
    for part in ("8.00x", "5x", "yes", "no", "0.5", "1,234", "a note [x]"):
        assert part in text


def test_write_json_holds_machine_and_verdicts(tmp_path):
    path = tmp_path / "bench.json"
    machine = benchmark_module("machine").facts()
    benchmark_module("result").write_json(
        path, results(), machine=machine, settings={"quick": True}
    )
    content = json.loads(path.read_text())
    assert [result["met"] for result in content["results"]] == [True, False, None]
    assert content["machine"]["cores_used"] >= 1
    assert any(library.startswith("torch") for library in content["machine"]["libraries"])


def test_peak_memory_is_that_of_the_command_not_of_this_process():
    peak_memory = benchmark_module("memory").peak_memory
    small = peak_memory([sys.executable, "-S", "-c", "pass"])
    large = peak_memory([sys.executable, "-S", "-c", "bytearray(100 << 20)"])
    assert small < 40
    assert large - small == pytest.approx(100, abs=20)


def test_train_backbone_random_has_the_size_of_minilm(tmp_path):
    transformers = pytest.importorskip("transformers")
    task = benchmark_module("rows").source(tmp_path / "none.csv", rows=30).task
    folder = benchmark_module("models").random_backbone(task, tmp_path)
    assert transformers.AutoModel.from_pretrained(folder).num_parameters() == 22_713_216
    tokens = transformers.AutoTokenizer.from_pretrained(folder)("the old man throws a ball")
    assert 100 not in tokens["input_ids"]


def test_ccl_step_cost_is_met_up_to_the_bar_and_not_above():
    cost = benchmark_module("ccl_step").Cost
    costs = [
        cost("ccl_step", "bi-encoder", "peer 1.0", "ms/step", 15.0, 10.0, ratio, bar)
        for ratio, bar in ((1.5, 1.6), (1.6, 1.6), (1.7, 1.6), (9.0, None))
    ]
    assert [result.met for result in costs] == [True, True, False, None]


def test_ccl_step_times_compare_the_steps_on_one_batch_with_each_other():
    times = benchmark_module("ccl_step").Times
    ours, theirs = times((0.003, 0.004, 0.100)), times((0.002, 0.002, 0.100))
    assert ours.over(theirs) == pytest.approx((1.25, 1.5, 1.75))  # of 1.0, 1.5 and 2.0
    assert ours.milliseconds == pytest.approx(4)


def test_ccl_step_turns_take_every_batch_on_all_sides_in_rotated_order():
    taken = []
    steps = {name: lambda batch, name=name: taken.append((name, *batch)) for name in "ABC"}
    times = benchmark_module("ccl_step").time_in_turns(steps, [{"x": 0}, {"y": 0}], repeats=2)
    assert "".join(name for name, _ in taken) == "ABC BCA CAB ABC BCA".replace(" ", "")
    assert [batch for _, batch in taken] == [batch for batch in "xxyxy" for _ in range(3)]
    assert [len(times[name].seconds) for name in "ABC"] == [4, 4, 4]  # one round is not counted


def test_ccl_step_run_has_a_bar_for_ccl_on_the_bi_encoder_only(tmp_path, tiny_backbone):
    transformers = pytest.importorskip("transformers")
    backbone = tmp_path / "bert"  # takes the 128 tokens of the recipe
    config = transformers.BertConfig.from_pretrained(tiny_backbone, max_position_embeddings=128)
    transformers.BertModel(config).save_pretrained(backbone)
    transformers.AutoTokenizer.from_pretrained(tiny_backbone).save_pretrained(backbone)
    ccl_step = benchmark_module("ccl_step")
    found = ccl_step.run(str(backbone), tmp_path / "none.csv", rows=96, quick=True)
    assert [(result.measured.split(";")[0], result.bar) for result in found] == [
        ("bi-encoder, CCL", 1.6),
        ("bi-encoder, CCL without BCL", None),
        ("tri-encoder, CCL", None),
        ("tri-encoder, CCL without BCL", None),
    ]
    assert all(result.ratio > 0 for result in found)


def test_ccl_step_step_trains_the_encoder_and_the_head_of_the_loss(tmp_path, tiny_backbone):
    ccl_step = benchmark_module("ccl_step")
    recipe_module = pytest.importorskip("condsim.training.recipe")
    trainer = pytest.importorskip("condsim.training.trainer")
    task = benchmark_module("rows").source(tmp_path / "none.csv", rows=8).task
    recipe = recipe_module.Recipe(
        name="tiny",
        train=task.name,
        dev=task.name,
        backbone=str(tiny_backbone),
        objective={"bcl": 1.0, "mse": 1.0},
        batch_size=8,
        max_seq_length=64,
    )
    built = trainer.build_run(recipe, task, task, tmp_path / "run")
    before = {name: weight.clone() for name, weight in built.loss.named_parameters()}
    batch = next(iter(built.trainer.get_train_dataloader()))
    ccl_step.Step(built)(batch)
    changed = {
        name for name, weight in built.loss.named_parameters() if (weight != before[name]).any()
    }
    assert {name.partition(".")[0] for name in changed} == {"model", "head"}
    assert all(weight.grad is None for weight in built.loss.parameters())


def test_prompt_http_speed_is_held_against_the_peer_and_the_ideal(monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    against_peer, against_ideal = benchmark_module("prompt_http").speed(64)
    assert (against_peer.bar, against_ideal.bar) == (None, pytest.approx(500 / 640))
    assert against_peer.theirs > 0
    assert against_peer.ours == against_ideal.ours
    assert against_ideal.ratio == pytest.approx(against_ideal.ours / 640)
    assert against_ideal.ratio <= 1


def test_prompt_local_prompts_are_of_mixed_lengths_and_the_same_for_a_seed():
    pytest.importorskip("transformers")
    mixed_prompts = benchmark_module("prompt_local").mixed_prompts
    prompts = mixed_prompts(36, seed=0)
    assert prompts == mixed_prompts(36, seed=0) != mixed_prompts(36, seed=1)
    lengths = [len(prompt.split()) for prompt in prompts]
    assert max(lengths) > 5 * min(lengths)
    assert sum(prompt.startswith("Input:") for prompt in prompts) == 12


def test_encode_speed_sides_differ_in_the_size_of_the_batches():
    pytest.importorskip("sentence_transformers")
    calls = []
    sides = benchmark_module("encode_speed")._both("model", lambda texts: calls.append(len(texts)))
    sentences = [f"sentence {number}" for number in range(70)]
    sides["model | sorted"](sentences)
    sides["model | as they come"](sentences)
    assert calls == [70, 32, 32, 6]


def test_encode_speed_results_are_ratios_within_and_between_models():
    pytest.importorskip("sentence_transformers")
    encode_speed = benchmark_module("encode_speed")
    speeds = {
        **{"condsim default, int8 | sorted": 300.0, "condsim default, int8 | as they come": 200.0},
        **{"condsim-minilm, cpu | sorted": 100.0, "condsim-minilm, cpu | as they come": 80.0},
    }
    results = encode_speed._results(speeds, note="note")
    assert [round(result.ratio, 2) for result in results] == [1.5, 1.25, 3.0]
    assert results[0].notes == ("note", encode_speed.PUBLISHED)
    assert {result.unit for result in results} == {"sentences/s"}
