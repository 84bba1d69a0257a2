"""Integrations load their library only, and name its extra where it is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = {
    "bertopic": "bertopic",
    "polars": "polars",
    "pandas": "pandas",
    "duckdb": "duckdb",
    "langchain": "langchain_core",
    "llama_index": "llama_index",
    "haystack": "haystack",
}


def output_of(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_of_the_package_loads_no_library():
    loaded = output_of(
        "import sys, condsim, condsim_integrations\n"
        "condsim.load().score('a', 'b', 'c')\n"
        "print(' '.join(sys.modules))"
    ).split()
    assert "condsim_integrations" in loaded
    assert not {*LIBRARIES.values(), "pyarrow", "torch"} & set(loaded)


@pytest.mark.parametrize("module", LIBRARIES)
def test_missing_library_is_one_line_with_its_extra(module):
    library = LIBRARIES[module]
    message = output_of(
        f"import sys\nsys.modules[{library!r}] = None\n"
        "import condsim\n"
        f"try:\n    import condsim_integrations.{module}\n"
        "except condsim.MissingExtraError as error:\n    print(error)"
    )
    assert message.startswith(f"This needs {library}")
    assert message.endswith(f"pip install 'condsim[{module.replace('_', '-')}]'")


def test_modules_have_a_name_inside_condsim_too():
    assert (
        output_of(
            "from condsim.integrations.duckdb import register_duckdb\n"
            "from condsim.prompting.prompt import parse_score\n"
            "print(register_duckdb.__name__, parse_score('<think>2 dogs</think>4'))"
        )
        == "register_duckdb 4.0"
    )


def test_name_inside_condsim_without_the_package_is_one_line():
    message = output_of(
        "import sys\nsys.modules['condsim_llm'] = None\n"
        "try:\n    import condsim.prompting\n"
        "except ImportError as error:\n    print(error)"
    )
    assert "pip install 'condsim[llm]'" in message
