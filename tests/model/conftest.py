from __future__ import annotations

import pytest

from condsim.model.calibration import Calibration
from condsim.model.settings import ModelSettings

CALIBRATION = Calibration(raw=(-1.0, 0.5, 1.0), score=(0.0, 0.2, 1.0))


@pytest.fixture(scope="session")
def trained(tiny_backbone, tmp_path_factory):
    """A random bi-encoder as training leaves it."""
    from condsim.model.builders import build_bi_encoder

    folder = tmp_path_factory.mktemp("trained")
    build_bi_encoder(str(tiny_backbone), max_seq_length=32).save_pretrained(str(folder))
    settings = ModelSettings(
        kind="bi-encoder",
        name="tiny",
        order="condition-first",
        calibration=CALIBRATION,
        dimension=32,
    )
    settings.save(folder)
    return folder


@pytest.fixture(scope="session")
def exported(trained, tmp_path_factory):
    """The same, exported as float32."""
    from condsim.training.export import export_onnx

    folder = tmp_path_factory.mktemp("exported")
    export_onnx(trained, folder, quantize=None)
    return folder
