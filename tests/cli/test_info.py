from __future__ import annotations

from importlib import metadata

import pytest
from typer.testing import CliRunner

import condsim
from condsim.cli.main import app
from condsim.model.settings import DEFAULT_FOLDER, ModelSettings

INSTALL = "pip install 'condsim[serve]'"


def lines():
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 0
    return dict(line.strip().split("  ", maxsplit=1) for line in result.stdout.splitlines())


def test_info_shows_version_model_and_libraries():
    shown = {name: value.strip() for name, value in lines().items()}
    assert shown["condsim"] == condsim.__version__
    settings = ModelSettings.load(DEFAULT_FOLDER)
    assert shown["model"] == f"default ({settings.name}, {settings.kind}, {settings.order})"
    assert shown["trained on"] == settings.facts["also_trained_on"]
    assert shown["last labeled file"] == settings.facts["training_data"]
    assert list(shown).index("trained on") < list(shown).index("last labeled file")
    assert shown["size"].endswith("MB")
    assert shown["parameters"] == f"{settings.facts['parameters']:,}"
    assert "onnxruntime" in shown


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        (
            {"fastapi", "uvicorn", "prometheus-client"},
            "not installed: pip install 'condsim[serve]'",
        ),
        ({"uvicorn"}, "not installed: pip install 'condsim[serve]' brings uvicorn"),
        (set(), "installed"),
    ],
)
def test_info_extra_is_installed_or_says_how_to_install(monkeypatch, absent, expected):
    def version(name):
        if name in absent:
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr("condsim.cli.info.metadata.version", version)
    shown = {name: value.strip() for name, value in lines().items()}
    assert shown["extra serve"] == expected
    assert ("uvicorn 1.0" in shown["libraries"]) == ("uvicorn" not in absent)


def test_info_damaged_model_is_said_not_raised(monkeypatch, tmp_path):
    monkeypatch.setattr("condsim.model.settings.DEFAULT_FOLDER", tmp_path)
    assert "damaged" in lines()["model"]
