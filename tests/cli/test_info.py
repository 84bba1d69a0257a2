from __future__ import annotations

import pytest
from typer.testing import CliRunner

import condsim
from condsim.cli import app
from condsim.scorers import DEFAULT_FOLDER, Settings


def lines():
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 0
    return dict(line.strip().split("  ", maxsplit=1) for line in result.stdout.splitlines())


def test_info_shows_version_model_and_libraries():
    shown = {name: value.strip() for name, value in lines().items()}
    assert shown["condsim"] == condsim.__version__
    settings = Settings.load(DEFAULT_FOLDER)
    assert shown["model"] == f"{settings.name} ({settings.kind}, {settings.order})"
    assert shown["size"].endswith("MB")
    assert shown["parameters"] == f"{settings.facts['parameters']:,}"
    assert shown["extra train"].startswith("torch ")


def test_info_missing_extra_says_how_to_install(monkeypatch):
    monkeypatch.setattr("condsim.cli.info.find_spec", lambda name: None)
    assert lines()["extra train"].strip() == "not installed: pip install 'condsim[train]'"


def test_info_damaged_model_is_said_not_raised(monkeypatch, tmp_path):
    monkeypatch.setattr("condsim.scorers.DEFAULT_FOLDER", tmp_path)
    assert "damaged" in lines()["model"]


def test_info_library_whose_package_has_another_name_has_a_version():
    pytest.importorskip("faiss")
    pytest.importorskip("PIL")
    shown = lines()["extra build"]
    assert "faiss " in shown
    assert "not installed" not in shown
