from __future__ import annotations

from importlib import metadata

import pytest
from tests.commands import succeed

import condsim
from condsim.model.settings import DEFAULT_FOLDER, ModelSettings

SERVE = "not installed: pip install 'condsim[serve]'"


def lines():
    cells = [line.strip().split("  ", maxsplit=1) for line in succeed("info").stdout.splitlines()]
    return {name: value.strip() for name, value in cells}


def test_info_shows_version_model_and_libraries():
    shown = lines()
    assert shown["condsim"] == condsim.__version__
    settings = ModelSettings.load(DEFAULT_FOLDER)
    assert shown["model"] == f"default ({settings.name}, {settings.kind}, {settings.order})"
    assert shown["training data"] == settings.facts["training_data"]
    assert shown["size"].endswith("MB")
    assert shown["parameters"] == f"{settings.facts['parameters']:,}"
    assert "onnxruntime" in shown


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ({"fastapi", "uvicorn", "prometheus-client"}, SERVE),
        ({"uvicorn"}, f"{SERVE} brings uvicorn"),
        (set(), "installed"),
    ],
)
def test_info_extra_is_installed_or_says_how_to_install(monkeypatch, absent, expected):
    def version(name):
        if name in absent:
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr("condsim.cli.info.metadata.version", version)
    assert lines()["extra serve"] == expected


def test_info_damaged_model_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr("condsim.model.settings.DEFAULT_FOLDER", tmp_path)
    assert "damaged" in lines()["model"]
