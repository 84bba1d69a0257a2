from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

HEADER = "sentence1,sentence2,condition,label\n"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def write_csts(write: Callable[[str, str | bytes], Path]) -> Callable[[str], Path]:
    return lambda rows: write("pairs.csv", HEADER + rows)


@pytest.fixture
def released() -> Callable[[str], Path]:
    """Finds a file or a folder of the released data, or skips the test."""

    def find(name: str) -> Path:
        if not (SHARED / name).exists():
            pytest.skip(f"{name} is not here")
        return SHARED / name

    return find
