"""A server in memory and a store that hands out a few rows."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from condsim.construction import Condition
from condsim.construction.annotation import (
    AnnotationStore,
    decide_by_hand,
    push,
    verification_items,
)


def _module() -> ModuleType:
    """`fake_server` beside this file, which is no package."""
    name = "condsim_tests_fake_annotation_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, Path(__file__).with_name("fake_server.py")
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def server():
    """A server with the accounts 1 ann, 2 bob, 3 cleo."""
    return _module().FakeServer()


@pytest.fixture
def another_server():
    return _module().FakeServer


@pytest.fixture
def store(tmp_path):
    with AnnotationStore(tmp_path / "annotation", make=True) as opened:
        yield opened


@pytest.fixture
def written():
    """Conditions by Ann for two pairs."""
    return [
        Condition(f"pair{pair}", "A man skis.", f"A dog swims {pair}.", text, intended, "ann")
        for pair in (1, 2)
        for text, intended in (("The sport", "high"), ("The animal", "low"))
    ]


@pytest.fixture
def verification(store, server, written):
    """Those conditions handed out to two annotators each; gives the tasks in order."""
    decide_by_hand(store, accept=("ann", "bob", "cleo"))
    push(store, server, "verification", verification_items(written), annotators=2)
    return [stored.task for stored in store.items("verification").values()]
