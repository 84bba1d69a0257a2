from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import condsim

PACKAGE = Path(condsim.__file__).parent


def test_package_inside_a_zip_scores(tmp_path):
    archive = tmp_path / "condsim.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in PACKAGE.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                packed.write(path, Path("condsim", path.relative_to(PACKAGE)))
    code = (
        "import condsim\n"
        "print(condsim.__file__)\n"
        "print(f\"{condsim.load().score('A red car.', 'A red bus.', 'the color'):.3f}\")\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    place, score = done.stdout.splitlines()
    assert place.startswith(str(archive))
    expected = condsim.load().score("A red car.", "A red bus.", "the color")
    assert abs(float(score) - expected) < 1e-3
