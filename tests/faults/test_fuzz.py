"""Readers on made-up content: rows, or an error of condsim; nothing else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from condsim.config import override
from condsim.data.csts import iter_csts
from condsim.errors import CondSimError
from condsim.training.recipe import load_recipe

pytestmark = pytest.mark.slow
_FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
_CELL = st.text(max_size=8) | st.sampled_from(['"', '""', ",", "\n", "\r", "\0", "\ud800"])
_TABLE = st.lists(st.lists(_CELL, max_size=6).map(",".join), max_size=6).map("\n".join)
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_CELL, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.jsonl", "p.csv.gz", "p.parquet"])
@_FUZZ
@given(content=st.binary(max_size=200) | _TABLE, head=st.booleans(), value=_JSON)
def test_rows_of_any_content_are_rows_or_one_error(tmp_path, name, content, head, value):
    import json

    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    start = json.dumps(value) if "jsonl" in name else "sentence1,sentence2,condition,label"
    if name.endswith("tsv"):
        start = start.replace(",", "\t")
    path = tmp_path / name
    path.write_bytes((start.encode() + b"\n" if head else b"") + content)
    with suppress(CondSimError):
        list(iter_csts(path))


@_FUZZ
@given(content=st.binary(max_size=100) | st.text("[]{}&*a:-!#'\"|>%@ \n\t?,0.e1~", max_size=60))
def test_recipe_of_any_content_is_one_error(tmp_path, content):
    path = tmp_path / "r.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CondSimError):
        load_recipe(path)


@_FUZZ
@given(text=st.text("[]{}&*a=.:-!#'\"|> \n0e1", max_size=40))
def test_override_of_any_text_is_a_value_or_one_error(text):
    with suppress(CondSimError):
        override({}, text)
