"""A program that PyInstaller builds, with the package's data, scores without Python."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import condsim

# Libraries of extras: a user who bundles the core has not installed them.
EXTRAS = (
    "accelerate bertopic datasets duckdb faiss fastapi fsspec haystack huggingface_hub lancedb "
    "langchain_core llama_index llvmlite matplotlib mteb networkx nltk numba onnx openai optuna "
    "pandas polars pyarrow ray scipy sentence_transformers sklearn sqlalchemy statsmodels torch "
    "transformers umap uvicorn"
).split()
PROGRAM = """
import condsim

print(f"{condsim.load().score('A red car.', 'A red bus.', 'the color'):.3f}")
"""


@pytest.mark.slow
def test_program_of_pyinstaller_scores(tmp_path):
    pytest.importorskip("PyInstaller", reason="pip install pyinstaller")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, "utf-8")
    excluded = [word for name in EXTRAS for word in ("--exclude-module", name)]
    options = ["--onedir", "--collect-data", "condsim"]
    built = subprocess.run(
        [sys.executable, "-m", "PyInstaller", *options, *excluded, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    # Neither this package nor its libraries are found outside of the folder.
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [tmp_path / "dist" / "program" / "program"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = condsim.load().score("A red car.", "A red bus.", "the color")
    assert float(done.stdout) == pytest.approx(expected, abs=1e-3)
