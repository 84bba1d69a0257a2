from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condsim.config import write_mapping
from condsim.errors import InputError
from condsim.prompting.settings import PromptSettings, load_settings


def test_load_settings_saved_ones_are_equal(tmp_path: Path):
    settings = PromptSettings(model="m", shots=4, train="train.csv", backend="server", timeout=5)
    write_mapping(settings.model_dump(exclude_defaults=True), tmp_path / "m.yaml")
    assert load_settings(tmp_path / "m.yaml") == settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shots": 2}, r"2 examples need a labeled training file"),
        ({"model": " "}, r"'model'"),
        ({"shots": -1}, r"'shots'"),
        ({"concurrency": 0}, r"'concurrency'"),
        ({"retries": -1}, r"'retries'"),
        ({"max_new_tokens": 0}, r"'max_new_tokens'"),
        ({"timeout": 0.0}, r"'timeout'"),
        ({"timeout": float("inf")}, r"'timeout'"),
        ({"seed": -1}, r"'seed'"),
        ({"max_tokens": -5}, r"'max_tokens'"),
        ({"max_requests": -1}, r"'max_requests'"),
        ({"instruction": "x"}, r"'instruction' must be .* got 'x'"),
        ({"scoring": "x"}, r"'scoring' must be .* got 'x'"),
        ({"parsing": "loose"}, r"'parsing' must be .* got 'loose'"),
        ({"base_url": "http://localhost:1/v1"}, r"base_url is the address of a server"),
    ],
)
def test_prompt_settings_value_out_of_range_raises(changes: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        PromptSettings(**{"model": "m", **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: m\nshot: 2\n", r"m\.yaml: Unknown prompt key 'shot'\. Did you mean 'shots'"),
        ("shots: 0\n", r"m\.yaml: Prompt key 'model' is missing"),
        ("model: m\ninstruction: lang\n", r"'instruction' must be .* got 'lang'"),
        ("- model\n", r"m\.yaml must be a mapping of prompt keys"),
    ],
)
def test_load_settings_bad_file_raises_one_line(tmp_path: Path, text: str, message: str):
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        load_settings(tmp_path / "m.yaml")
