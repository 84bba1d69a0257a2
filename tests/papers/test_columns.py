from __future__ import annotations

import re

import pytest
from papers.columns import PAPER_MODELS, resolve_backbones, resolve_models

from condsim.errors import InputError


@pytest.mark.parametrize("model", PAPER_MODELS.values(), ids=list(PAPER_MODELS))
def test_resolve_models_paper_model_by_key_and_by_name(model):
    assert resolve_models([model.key, model.model]) == (model,)


def test_resolve_models_other_model_is_never_the_papers():
    ours, gpt = resolve_models(["someone/flan-t5-xl", "gpt-4"])
    assert ours.key not in PAPER_MODELS
    assert (ours.label, ours.model) == ("someone/flan-t5-xl", "someone/flan-t5-xl")
    assert gpt.key not in PAPER_MODELS  # what a server serves as gpt-4 today is another model
    assert not gpt.hosted


def test_resolve_models_folder_is_called_by_its_last_part(tmp_path):
    (model,) = resolve_models([str(tmp_path / "mine")])
    assert (model.label, model.model) == ("mine", str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("given", "message"),
    [([" "], r"--model takes a Hub name.*' '"), (["/a/mine", "/b/mine"], "one name, 'mine'")],
)
def test_resolve_models_what_cannot_be_raises(given, message):
    with pytest.raises(InputError, match=message):
        resolve_models(given)


def test_hosted_is_what_only_openai_has():
    assert [key for key, model in PAPER_MODELS.items() if model.hosted] == [
        "gpt-3.5-turbo-0301",
        "gpt-4-0314",
    ]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+", m.model) for m in list(PAPER_MODELS.values())[:8])


def test_resolve_backbones_two_models_of_one_name_raises():
    with pytest.raises(InputError, match="would have one name, 'model'"):
        resolve_backbones(["a/model", "b/model"])
