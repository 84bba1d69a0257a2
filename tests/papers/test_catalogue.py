from __future__ import annotations

import dataclasses

import pytest
from papers.catalogue import parse
from papers.columns import PAPER_MODELS, resolve_backbones, resolve_models
from papers.trained import plan_trained

from condsim.errors import InputError
from papers import load_experiment, names, open_work

NAMES = list(names())
VALID = {
    "title": "T",
    "source": "S",
    "claim": "C",
    "measured_on": "M",
    "rows": {"one": {"cells": {"encoder": "bi"}, "recipe": "bi"}},
}
ASKS = {"cells": {"instruction": "none"}, "prompt": {"instruction": "none", "shots": 0}}


@pytest.mark.parametrize("name", NAMES)
def test_load_experiment_every_file_plans_valid_recipes(name, options):
    experiment = load_experiment(name)
    everything = dataclasses.replace(
        options, backbones=resolve_backbones(["paper", "minilm", "someone/other-model"]), full=True
    )
    lines = plan_trained(experiment, everything)  # builds and checks every recipe
    if experiment.kind not in ("label-histogram", "prompting", "contexts", "cases"):
        assert any(line.runs for line in lines)
        for line in lines:
            assert line.runs or line.row.does_not_apply
            for run in line.runs:
                assert run.recipe.backbone == line.column.model


@pytest.mark.parametrize(
    ("name", "row", "metric", "column", "number"),
    [
        ("csts-table3", "bi-mse", "pearson", "roberta-base", "22.3"),
        ("csts-table4", "short-4", "spearman", "gpt-4-0314", "43.6"),
        ("csts-table11", "none-0", "invalid", "flan-t5-small", "91.74"),
        ("csts-table12", "long-4", "pearson", "gpt-4-0314", "90.73"),
        ("ccl-table4", "tri-no-mse", "spearman", "roberta-base", "21.8"),
        ("ccl-table9", "bi-sigma-0.75", "pearson", "simcse-base", "46.3"),
        ("ccl-appendix-a", "bi-quad-mse", "over_estimated", "simcse-base", "134"),
        ("ssbc-table2", "origin", "spearman", "sts16", "79.93"),
        ("ssbc-table6", "paper-10m", "spearman", "sts-b", "49.41"),
        ("ssbc-table9", "no-sides", "spearman", "sts-b", "76.50"),
    ],
)
def test_load_experiment_known_numbers_of_the_papers(name, row, metric, column, number):
    published = load_experiment(name).paper(row, metric, column)
    assert published.text.startswith(number)
    assert published.value == float(number)


@pytest.mark.parametrize(
    ("name", "same"),
    [("ccl-table7", "ccl-table3"), ("ccl-table9", "ccl-table5"), ("csts-table8", "csts-table3")],
)
def test_load_experiment_same_rows_needs_no_new_run(name, same, options):
    runs = [open_work(load_experiment(one), options).runs for one in (name, same)]
    assert [run.folder for run in runs[0]] == [run.folder for run in runs[1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titel": "x"}, r"Unknown experiment key 'titel'.*title"),
        ({"rows": {"a": {**ASKS, "prompt": {"shots": 2}}}}, "instruction"),
        ({"published": {"one": {"spearman": {"simcse-base": "4,5"}}}}, "a number is written"),
    ],
)
def test_parse_wrong_file_says_where(change, message):
    with pytest.raises(InputError, match=message):
        parse({**VALID, **change}, name="e")


@pytest.mark.parametrize("model", PAPER_MODELS.values(), ids=list(PAPER_MODELS))
def test_resolve_models_paper_model_by_key_and_by_name(model):
    assert resolve_models([model.key, model.model]) == (model,)


def test_resolve_models_other_model_is_never_the_papers(tmp_path):
    ours, gpt = resolve_models(["someone/flan-t5-xl", "gpt-4"])
    assert ours.key not in PAPER_MODELS
    assert (ours.label, ours.model) == ("someone/flan-t5-xl", "someone/flan-t5-xl")
    assert gpt.key not in PAPER_MODELS  # what a server serves as gpt-4 today is another model
    assert not gpt.hosted
    (model,) = resolve_models([str(tmp_path / "mine")])
    assert (model.label, model.model) == ("mine", str(tmp_path / "mine"))
