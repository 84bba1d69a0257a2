from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.commands import succeed


@pytest.fixture
def build() -> Callable[..., str]:
    """Runs `condsim build`; returns what it prints, and raises the error that ends it."""
    return lambda *words: " ".join(succeed("build", *words).output.split())
