"""What the cases share: a process that has the imports done, and a folder of models."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.harness import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """One process with the imports done."""
    process = Zygote(os.environ)
    yield process
    process.close()


@pytest.fixture(scope="session")
def torch_zygote() -> Iterator[Zygote]:
    """One process that has torch imported, too."""
    process = Zygote(os.environ, "torch", "sentence_transformers", "condsim.training")
    yield process
    process.close()


@pytest.fixture(scope="session")
def trained_base(tiny_backbone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bi-encoder as training leaves it, its backbone and rows to train on."""
    from condsim.model.builders import build_bi_encoder
    from condsim.model.settings import ModelSettings

    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(tiny_backbone, folder / "backbone")
    build_bi_encoder(str(tiny_backbone), max_seq_length=32).save_pretrained(str(folder / "bi"))
    ModelSettings(kind="bi-encoder", name="tiny", order="condition-first").save(folder / "bi")
    rows = [f"A man {n} runs.,A dog {n} eats.,the animal,{n % 5 + 1}\n" for n in range(24)]
    (folder / "train.csv").write_text("sentence1,sentence2,condition,label\n" + "".join(rows))
    return folder


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models."""
    return tmp_path_factory.mktemp("base")
