"""Commands and scorers of companion packages, which are found by their entry points."""

from __future__ import annotations

import importlib.metadata

import pytest
from tests import commands

from condsim.errors import MissingExtraError
from condsim.loading import load_scorer


@pytest.fixture
def none_installed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())


@pytest.mark.parametrize(
    ("words", "extra"),
    [(("build", "push", "conditions"), "build"), (("contexts", "run"), "contexts")],
)
def test_command_of_absent_package_names_its_extra(words, extra, none_installed):
    message = commands.fault(*words, kind=MissingExtraError)
    assert f"pip install 'condsim[{extra}]'" in message
    assert f"condsim {extra} {words[1]}" in message


def test_help_without_companion_packages_names_their_extras(none_installed):
    for extra in ("build", "contexts"):
        shown = commands.succeed(extra, "--help").output
        assert f"pip install 'condsim[{extra}]'" in " ".join(shown.split())


def test_core_commands_of_build_need_no_companion_package(none_installed):
    assert "--group-size" in commands.succeed("build", "criteria", "--help").output


def test_prompt_without_the_package_names_the_extra(none_installed, tmp_path):
    message = commands.fault("prompt", "p.csv", "--model", "m", kind=MissingExtraError)
    assert "condsim[llm]" in message
    assert "condsim[llm]" in " ".join(commands.succeed("prompt", "--help").output.split())
    with pytest.raises(MissingExtraError, match=r"condsim\[llm\]"):
        load_scorer(tmp_path / "prompted.yaml")


def test_run_of_contexts_without_the_package_names_the_extra(tmp_path, none_installed):
    (tmp_path / "contexts.yaml").write_text("")
    with pytest.raises(MissingExtraError, match=r"condsim\[contexts\]"):
        load_scorer(tmp_path)


def test_score_looks_up_no_entry_points(monkeypatch):
    def fail(**_):
        raise AssertionError

    monkeypatch.setattr(importlib.metadata, "entry_points", fail)
    commands.succeed("score", "A dog.", "A cat.", "the animal")
