from __future__ import annotations

import pytest

from condsim.errors import InputError
from condsim.prompting.prompt import INSTRUCTIONS, instruction_text


def test_instruction_text_short_names_the_scale_of_the_task():
    assert "between 1 and 5" in instruction_text("short", conditional=True)
    assert "condition" in instruction_text("short", conditional=True)
    assert "between 0 and 5" in instruction_text("short", conditional=False)
    assert "condition" not in instruction_text("short", conditional=False)


@pytest.mark.parametrize(("conditional", "scores"), [(True, "12345"), (False, "012345")])
def test_instruction_text_long_has_one_line_for_each_score(conditional: bool, scores: str):
    lines = instruction_text("long", conditional=conditional).splitlines()
    assert [line[:4] for line in lines[1:]] == [f"{score} : " for score in scores]


def test_instruction_text_none_is_empty():
    assert INSTRUCTIONS[True]["none"] == INSTRUCTIONS[False]["none"] == ""


def test_instruction_text_unknown_name_lists_the_near_one():
    with pytest.raises(InputError, match=r"Unknown instruction 'lang'\. Did you mean 'long'"):
        instruction_text("lang", conditional=True)  # type: ignore[arg-type]
