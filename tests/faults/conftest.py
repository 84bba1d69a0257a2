"""What the cases share: a process that has the imports done, and a folder of models."""

from __future__ import annotations

import os
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
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models."""
    return tmp_path_factory.mktemp("base")
