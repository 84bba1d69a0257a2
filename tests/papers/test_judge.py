from __future__ import annotations

import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from papers.judge import train as module
from papers.judge.rows import Row, read_requests, read_verdicts
from papers.judge.train import Reader, Run, Settings
from transformers import BertConfig, BertModel

from condsim.paths import asset

VERDICT_ROWS = [Row("", "Tests run on Jenkins.", f"Text {n}.", n % 5) for n in range(10)]
REQUEST_ROWS = [Row("", "Turn it on.", "Switch it on.", 1.0), Row("", "Turn it on.", "Off.", 0.0)]
SETTINGS = Settings({"verdict": 3, "request": 2}, {}, steps=4, warmup_steps=1, chunks=2)


@pytest.fixture
def start(tmp_path):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(intermediate_size=16, **sizes)
    BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "start")
    shutil.copy(asset("default") / "tokenizer.json", tmp_path / "start")
    return tmp_path / "start"


@pytest.fixture(autouse=True)
def _written(monkeypatch):
    monkeypatch.setattr(module, "verdict_rows", lambda part: iter(VERDICT_ROWS))
    monkeypatch.setattr(module, "request_rows", lambda part: iter(REQUEST_ROWS))


def test_loss_of_equal_logits_is_the_hand_worked_value(start, tmp_path):
    run = Run(replace(SETTINGS, smoothing=0.0), tmp_path, start, tmp_path / "run")
    torch.nn.init.zeros_(run.judge.heads["verdict"].weight)
    torch.nn.init.zeros_(run.judge.heads["verdict"].bias)
    # Five equal logits: each verdict has 1/5, and a request is the same with 1/5.
    requests = [("request", row) for row in REQUEST_ROWS]
    wanted = -(math.log(0.2) + math.log(0.8)) / 2
    assert run._loss(requests).item() == pytest.approx(wanted, abs=1e-4)
    verdicts = [("verdict", row) for row in VERDICT_ROWS[:3]]
    assert run._loss(verdicts).item() == pytest.approx(math.log(5), abs=1e-4)


@pytest.mark.parametrize(("label", "turned"), [(0, None), (1, 3), (2, 2), (3, None), (4, 4)])
def test_turned_rows_have_the_verdict_that_then_holds(start, tmp_path, label, turned):
    run = Run(replace(SETTINGS, swapped=1.0), tmp_path, start, tmp_path / "run")
    row = Row("", "a", "b", label)
    got = run._turned("verdict", row, np.random.default_rng(0))
    assert got == (row if turned is None else Row("", "b", "a", turned))
    assert run._turned("request", row, np.random.default_rng(0)) == row


def test_reader_lays_out_condition_and_texts(start):
    read = Reader(start, 4)
    ids, types = read(Row("the color", "A red car.", "Blue.", 0))
    words = [read._tokenizer.id_to_token(number) for number in ids]
    assert words == "[CLS] the color [SEP] a red car . [SEP] blue . [SEP]".split()
    assert types == [0] * 9 + [1] * 3
    assert len(read(Row("", "one two three four five six", "a", 0))[0]) == 1 + 4 + 1 + 1 + 1


def test_run_that_is_stopped_continues_as_if_it_had_not_been(start, tmp_path):
    whole = Run(SETTINGS, tmp_path, start, tmp_path / "whole")
    list(whole.train())
    first = Run(replace(SETTINGS, minutes=0.0), tmp_path, start, tmp_path / "parts")
    next(first.train())
    assert first.step == 1
    second = Run(SETTINGS, tmp_path, start, tmp_path / "parts")
    assert second.step == 1
    figures = list(second.train())
    assert figures[-1]["step"] == SETTINGS.steps
    assert second._batch() == whole._batch()


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_written_verdicts_are_balanced_and_in_one_part(part):
    pairs = read_verdicts(part)
    counts = [sum(pair["verdict"] == name for pair in pairs) for name in module.VERDICTS]
    assert max(counts) - min(counts) <= 100
    others = [pair for other in {"train", "dev", "test"} - {part} for pair in read_verdicts(other)]
    for key in ("domain", "sentence1", "sentence2"):
        assert not {pair[key].lower() for pair in pairs} & {pair[key].lower() for pair in others}


def test_written_requests_share_no_text():
    texts = [
        {pair[key].lower() for pair in read_requests(part) for key in ("sentence1", "sentence2")}
        for part in ("train", "test")
    ]
    assert not texts[0] & texts[1]
