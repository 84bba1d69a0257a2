import importlib
import io
import json
import statistics
import sys
from itertools import islice
from pathlib import Path

import pytest
from rich.console import Console

from condsim.tasks import load_csts, pair_rows

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
    assert source.origin == "C-STS (rows.csv)"
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
