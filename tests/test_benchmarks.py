import csv
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


def test_results_every_figure_is_in_the_file_that_it_names():
    with (ROOT / "benchmarks" / "results.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 20
    for row in rows:
        assert row["file"].startswith(row["date"]), row
        stored = json.loads((ROOT / "benchmarks" / "results" / row["file"]).read_text("utf-8"))
        ratios = [result["ratio"] for result in stored["results"]]
        # The ratio of ccl_step is a time; the table has how many times as fast it is.
        known = [*ratios, *(1 / ratio for ratio in ratios)]
        assert pytest.approx(float(row["ratio"]), rel=0.006) in known, row


def test_generated_rows_are_pairs_under_two_conditions_about_as_long_as_csts(tmp_path):
    rows = benchmark_module("rows")
    path = tmp_path / "rows.csv"
    first, again, other = (list(islice(rows.generated_rows(seed=s), 40)) for s in (1, 1, 2))
    assert first == again != other
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


def test_source_takes_whole_pairs_of_a_file_or_generates_rows(tmp_path):
    rows = benchmark_module("rows")
    path = tmp_path / "rows.csv"
    assert rows.source(path, rows=30).origin.startswith("generated")
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


def test_results_are_a_table_and_json_with_verdicts(tmp_path):
    result, console = (
        benchmark_module("result"),
        Console(record=True, width=120, file=io.StringIO()),
    )
    results = [
        result.Result("score_one", "one", "peer", "s", 0.5, 4.0, 8.0, 5.0, ("a note [x]",)),
        result.Result("score_many", "many", "peer", "rows/s", 1234.5, 600.0, 2.06, 4.0),
        result.Result("score_many", "difference", "allowed", "cosine", 0.0051, 0.015, 2.94),
    ]
    result.print_table(results, console)
    text = console.export_text()
    for part in ("8.00x", "5x", "yes", "no", "0.5", "1,234", "a note [x]"):
        assert part in text
    machine, path = benchmark_module("machine").facts(), tmp_path / "bench.json"
    result.write_json(path, results, machine=machine, settings={"quick": True})
    content = json.loads(path.read_text())
    assert [entry["met"] for entry in content["results"]] == [True, False, None]
    assert any(library.startswith("torch") for library in content["machine"]["libraries"])


@pytest.mark.slow
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


def test_prompt_http_speed_is_held_against_the_peer_and_the_ideal(monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    against_peer, against_ideal = benchmark_module("prompt_http").speed(64)
    assert (against_peer.bar, against_ideal.bar) == (None, pytest.approx(500 / 640))
    assert against_peer.theirs > 0
    assert against_peer.ours == against_ideal.ours
    assert against_ideal.ratio == pytest.approx(against_ideal.ours / 640)
    assert against_ideal.ratio <= 1
