"""Files that come with the package."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path


def asset(name: str) -> Path:
    """Find a file or folder of the package; one inside a zip is copied to a temporary folder."""
    path = Path(__file__).parent / "assets" / name
    return path if path.exists() else _extracted(name)


@cache
def _extracted(name: str) -> Path:
    source = resources.files("condsim") / "assets" / name
    folder = Path(tempfile.mkdtemp(prefix="condsim-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if source.is_file():
        (folder / name).write_bytes(source.read_bytes())
        return folder / name
    (folder / name).mkdir()
    for file in source.iterdir():
        (folder / name / file.name).write_bytes(file.read_bytes())
    return folder / name
