"""``auto`` measures a processor that says it has bfloat16, once, and asks no other."""

from __future__ import annotations

import logging
from itertools import chain, repeat
from types import SimpleNamespace

import pytest
import torch

from condsim.model import precision


@pytest.fixture
def ask(monkeypatch):
    """Sets what the processor says it has, and the seconds that each format takes."""

    def set_up(*, has: bool, float32: float, bfloat16: float):
        found = {"avx512_bf16": has}
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
        clock = [0.0]

        def ticks():
            for taken in chain.from_iterable(repeat((float32, bfloat16))):
                yield clock[0]
                clock[0] += taken
                yield clock[0]

        times = ticks()
        clocks = SimpleNamespace(process_time=lambda: next(times))
        monkeypatch.setattr(precision, "time", clocks)
        precision._faster_in_bfloat16.cache_clear()

    yield set_up
    precision._faster_in_bfloat16.cache_clear()


@pytest.mark.parametrize(
    ("has", "bfloat16", "chosen"),
    [(True, 0.3, True), (True, 0.9, False), (True, 1.5, False), (False, 0.3, False)],
)
def test_the_faster_format_is_used_where_it_is_clearly_faster(ask, has, bfloat16, chosen):
    ask(has=has, float32=1.0, bfloat16=bfloat16)
    assert precision.uses_bfloat16("auto") is chosen
    assert precision.uses_bfloat16("float32") is False
    assert precision.uses_bfloat16("bfloat16") is True


def test_it_is_measured_once_and_said(ask, caplog):
    ask(has=True, float32=0.02, bfloat16=0.004)
    state = torch.random.get_rng_state()
    with caplog.at_level(logging.INFO, "condsim.model.precision"):
        assert precision.uses_bfloat16("auto")
        assert precision.uses_bfloat16("auto")
    assert caplog.messages == ["ms for a step: float32 20.0, bfloat16 4.0; using bfloat16"]
    assert torch.equal(torch.random.get_rng_state(), state)
