from __future__ import annotations

import json

import pytest

import condsim
from condsim.errors import ModelError
from condsim.model.calibration import Calibration
from condsim.model.settings import FILE_NAME, ModelSettings

CONTENT = {
    "format": 1,
    "kind": "bi-encoder",
    "name": "some",
    "order": "condition-first",
    "calibration": None,
    "dimension": 384,
    "condsim": "0.0.1",
}


def write(folder, **changes):
    (folder / FILE_NAME).write_text(json.dumps(CONTENT | changes))


def test_settings_round_trip_is_equal(tmp_path):
    settings = ModelSettings(
        kind="tri-encoder",
        name="naïve",
        order="sentence-first",
        calibration=Calibration((-1.0, 1.0), (0.0, 1.0)),
        dimension=32,
        max_seq_length=64,
        layout="released",
        inputs="sentences",
        facts={"parameters": 5, "training_data": "x"},
    )
    settings.save(tmp_path)
    assert ModelSettings.load(tmp_path) == settings
    assert settings.condsim == condsim.__version__


def test_settings_of_the_contract_load(tmp_path):
    write(tmp_path)
    settings = ModelSettings.load(tmp_path)
    assert (settings.kind, settings.order, settings.dimension) == (
        "bi-encoder",
        "condition-first",
        384,
    )
    assert settings.max_seq_length is None
    assert settings.facts == {}
    assert (settings.layout, settings.inputs) == ("pair", "both")  # of before they were noted


def test_settings_missing_file_refused(tmp_path):
    with pytest.raises(ModelError, match=r"condsim.json is missing"):
        ModelSettings.load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "\x00", "[1]", "[" * 99_000])
def test_settings_no_json_refused(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ModelError, match=r"is not valid JSON|must be a JSON object"):
        ModelSettings.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "'format' must be 1; got 2"),
        ({"kind": "other"}, "'kind' must be one of bi-encoder"),
        ({"order": None}, "'order' must be one of condition-first"),
        ({"layout": "new"}, "'layout' must be one of released, pair; got 'new'"),
        ({"inputs": ["both"]}, "'inputs' must be one of both"),
        ({"dimension": 0}, "'dimension' must be a whole number"),
        ({"max_seq_length": "many"}, "'max_seq_length' must be a whole number"),
        ({"max_seq_length": 10**30}, "'max_seq_length' must be a whole number from 1 to 1,000,000"),
        ({"dimension": True}, "'dimension' must be a whole number"),
        ({"calibration": {"raw": ["0", "1"], "score": [0, 1]}}, "lists of numbers under 'raw'"),
        ({"calibration": {"raw": [0, 10**400], "score": [0, 1]}}, "lists of numbers under 'raw'"),
        ({"calibration": {"raw": [1, 0], "score": [0, 1]}}, "condsim.json: A calibration"),
        ({"facts": [1]}, "'facts' must be"),
    ],
)
def test_settings_broken_rule_refused(tmp_path, changes, message):
    write(tmp_path, **changes)
    with pytest.raises(ModelError, match=message):
        ModelSettings.load(tmp_path)
