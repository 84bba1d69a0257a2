from __future__ import annotations

import typer
from typer.testing import CliRunner

import condsim
from condsim import loading as load
from condsim.cli import info as module
from condsim.cli.info import info
from condsim.scorers import Settings

APP = typer.Typer()
APP.command()(info)


def lines():
    result = CliRunner().invoke(APP, [])
    assert result.exit_code == 0
    return dict(line.strip().split("  ", maxsplit=1) for line in result.stdout.splitlines())


def test_info_shows_version_model_and_libraries():
    shown = {name: value.strip() for name, value in lines().items()}
    assert shown["condsim"] == condsim.__version__
    settings = Settings.load(load.DEFAULT_FOLDER)
    assert shown["model"] == f"{settings.name} ({settings.kind}, {settings.order})"
    assert shown["size"].endswith("MB")
    assert shown["parameters"] == f"{settings.facts['parameters']:,}"
    assert shown["extra train"].startswith("torch ")


def test_info_missing_extra_says_how_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert lines()["extra train"].strip() == "not installed: pip install 'condsim[train]'"


def test_info_damaged_model_is_said_not_raised(monkeypatch, tmp_path):
    monkeypatch.setattr(load, "DEFAULT_FOLDER", tmp_path)
    assert "damaged" in lines()["model"]
