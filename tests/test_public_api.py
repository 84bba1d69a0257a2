from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import condsim
from condsim.cli.main import run

PROJECT = Path(__file__).resolve().parents[1]


def modules_after(code):
    """Names of the modules that a fresh process has imported after running ``code``."""
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=PROJECT
    )
    return set(done.stdout.splitlines()[-1].split())


def test_scoring_looks_nothing_up_and_keeps_nothing(tmp_path):
    script = (
        "import sys, condsim\n"
        "def seen(event, _):\n    assert not event.startswith('socket.'), event\n"
        "sys.addaudithook(seen)\n"
        "condsim.load().score('A dog.', 'A cat.', 'the animal')"
    )
    # ONNX Runtime keeps what it reports of its use below this folder, before it sends it.
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", script], check=True, cwd=PROJECT, env=environment)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_public_names_are_pinned():
    assert set(condsim.__all__) == {
        "CondSimError",
        "Criterion",
        "InputError",
        "Judge",
        "MissingExtraError",
        "ModelError",
        "OnnxScorer",
        "Report",
        "Scorer",
        "Task",
        "Verdict",
        "__version__",
        "load",
        "load_criterion",
        "load_judge",
        "verdict",
    }
    assert dir(condsim) == sorted(condsim.__all__)
    assert all(getattr(condsim, name) is not None for name in condsim.__all__)


def test_import_is_instant():
    loaded = modules_after("import condsim")
    assert not loaded & {"numpy", "onnxruntime", "tokenizers", "torch", "typer", "rich"}


def test_default_model_scores_without_torch():
    loaded = modules_after("import condsim\nassert condsim.load().score('a', 'b', 'c') >= 0")
    heavy = {"torch", "transformers", "sentence_transformers", "sklearn", "scipy", "pandas"}
    assert not loaded & heavy
    assert "onnxruntime" in loaded


def test_command_line_starts_without_torch():
    loaded = modules_after("from condsim.cli.main import app")
    assert not loaded & {"torch", "transformers", "sentence_transformers", "sklearn", "scipy"}


def test_score_command_imports_no_other_command():
    loaded = modules_after(
        "from condsim.cli.main import run\n"
        "try:\n    run(['score', 'a', 'b', 'c'])\n"
        "except SystemExit as end:\n    assert not end.code"
    )
    assert "condsim.cli.score" in loaded
    other = {"condsim.cli.train", "condsim.evaluation", "condsim_llm", "condsim_annotation"}
    assert not loaded & other
    assert not loaded & {"condsim.config", "yaml", "rich.progress", "torch", "sklearn"}


def test_search_loads_no_scikit_learn():
    pytest.importorskip("lancedb")
    assert not modules_after("import condsim.search.index") & {"sklearn", "scipy.stats", "torch"}


@pytest.mark.parametrize("words", [["-h"], ["data", "check", "-h"]])
def test_short_help_is_help(words, capsys):
    for option in (words, [*words[:-1], "--help"]):
        with pytest.raises(SystemExit) as end:
            run(option)
        assert end.value.code == 0
        assert f"{' '.join(words[:-1])} [OPTIONS]" in capsys.readouterr().out


def test_version_is_that_of_the_project():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["version"] == condsim.__version__
