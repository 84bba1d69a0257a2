"""Every command does what it did when ``expected.json`` was recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.golden.compare import differences
from tests.golden.record import processor

PROJECT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("expected.json")
LIBRARIES = (
    "torch sentence_transformers lancedb faiss sklearn pyarrow fastapi uvicorn httpx openai "
    "label_studio_sdk matplotlib optuna"
).split()
# Another processor may round scores differently.
_PORTABLE = re.compile(r"/(status|stderr|traceback|options/\d+)$|/files/[^/]+$|^/[^/]+$")


def test_commands_write_what_they_wrote(tmp_path):
    if not EXPECTED.exists():
        pytest.skip("there is no tests/golden/expected.json")
    for library in LIBRARIES:
        if not _is_installed(library):
            pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-m", "tests.golden.record", str(tmp_path / "new.json")]
    subprocess.run(
        [*command, "--committed"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(PROJECT), *sys.path))},
        check=True,
    )
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    made = json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))
    same = expected.pop("processor") == processor()
    made.pop("processor")
    changed = [
        f"[{one.kind}] {one.place}\n{one.detail}"
        for one in differences(expected, made)
        if one.kind != "words"
        and (same or (one.kind in ("missing", "new", "other") and _PORTABLE.search(one.place)))
    ]
    assert not changed, "\n".join(changed)


def _is_installed(library: str) -> bool:
    from importlib.util import find_spec

    return find_spec(library) is not None
