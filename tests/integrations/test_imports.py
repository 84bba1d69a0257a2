"""What is loaded when, and what is said where a library is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = {
    "BertopicBackend": ("bertopic", "bertopic"),
    "register_polars": ("polars", "polars"),
    "register_pandas": ("pandas", "pandas"),
    "register_duckdb": ("duckdb", "duckdb"),
    "LangChainEmbeddings": ("langchain_core", "langchain"),
    "LlamaIndexReranker": ("llama_index", "llama-index"),
    "HaystackRanker": ("haystack", "haystack"),
}


def said_by(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_of_the_package_loads_no_library():
    loaded = said_by(
        "import sys, condsim, condsim.integrations\n"
        "condsim.load().score('a', 'b', 'c')\n"
        "print(dir(condsim.integrations) and ' '.join(sys.modules))"
    ).split()
    wanted = {library for library, _ in LIBRARIES.values()} | {"pyarrow", "torch"}
    assert "condsim.integrations" in loaded
    assert not wanted & set(loaded)


@pytest.mark.parametrize("name", LIBRARIES)
def test_missing_library_is_one_line_with_its_extra(name):
    library, extra = LIBRARIES[name]
    said = said_by(
        f"import sys\nsys.modules[{library!r}] = None\n"
        "import condsim\nfrom condsim import integrations\n"
        f"try:\n    integrations.{name}\n"
        "except condsim.MissingExtraError as error:\n    print(error)"
    )
    expected = f"which is not installed: pip install 'condsim[{extra}]'"
    assert said.startswith(f"This needs {library}")
    assert said.endswith(expected)
