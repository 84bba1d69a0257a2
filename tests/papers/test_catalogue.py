from __future__ import annotations

import dataclasses

import pytest
from papers.catalogue import parse
from papers.columns import PAPER_BACKBONES, PAPER_MODELS, TEST_SETS, resolve_backbones
from papers.trained import plan_trained

from condsim.errors import InputError
from papers import load_experiment, names, open_work

NAMES = [
    *(f"csts-table{number}" for number in (2, 3, 4, 8, 9, 10, 11, 12)),
    *("csts-figure3", "csts-figure4"),
    *(f"ccl-table{number}" for number in (3, 4, 5, 7, 8, 9)),
    *("ccl-figure2", "ccl-figure3", "ccl-appendix-a"),
    *(f"ssbc-table{number}" for number in (2, 6, 7, 8, 9)),
    *(
        "ssbc-cases",
        "ssbc-choices",
        "ssbc-construction",
        "ssbc-domain",
        "ssbc-pretrained",
        "ssbc-structures",
    ),
]
VALID = {
    "title": "T",
    "source": "S",
    "claim": "C",
    "measured_on": "M",
    "rows": {"one": {"cells": {"encoder": "bi"}, "recipe": "bi"}},
}
ASKS = {"cells": {"instruction": "none"}, "prompt": {"instruction": "none", "shots": 0}}


def test_names_are_one_for_each_table_and_figure():
    assert list(names()) == NAMES


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


@pytest.mark.parametrize("name", NAMES)
def test_load_experiment_published_numbers_are_plausible(name):
    experiment = load_experiment(name)
    rows = experiment.rows
    assert {key for two in experiment.comparisons for key in (two.row, two.minus)} <= rows.keys()
    assert all(experiment.x is None or experiment.x in row.cells for row in rows.values())
    assert set(experiment.gold_sets) <= TEST_SETS.keys()
    assert experiment.published.keys() <= rows.keys()
    assert all(row.set_for.keys() <= PAPER_BACKBONES.keys() for row in rows.values())
    for by_metric in experiment.published.values():
        for metric, numbers in by_metric.items():
            assert metric in experiment.metrics
            for key, number in numbers.items():
                if experiment.kind == "prompting":
                    assert key in PAPER_MODELS
                    assert (0 if metric == "invalid" else -8) <= number.value < 99
                elif experiment.kind == "contexts":
                    assert key in TEST_SETS
                    assert 15 < number.value < 81
                else:
                    assert key in PAPER_BACKBONES
                    assert metric == "over_estimated" or -5 < number.value < 92


def test_load_experiment_known_numbers_of_the_papers():
    table = load_experiment("csts-table3")
    assert table.paper("bi-mse", "pearson", "roberta-base").value == 22.3
    assert table.paper("bi-mse", "pearson", "roberta-base").std == 14.1
    assert load_experiment("ccl-table4").paper("tri-no-mse", "spearman", "roberta-base").value == (
        21.8
    )
    assert load_experiment("ccl-table9").paper("bi-sigma-0.75", "pearson", "simcse-base").value == (
        46.3
    )
    assert load_experiment("ccl-appendix-a").paper(
        "bi-quad-mse", "over_estimated", "simcse-base"
    ).value == (134)


@pytest.mark.parametrize(
    ("name", "same"),
    [("ccl-table7", "ccl-table3"), ("ccl-table9", "ccl-table5"), ("csts-table8", "csts-table3")],
)
def test_load_experiment_same_rows_needs_no_new_run(name, same, options):
    runs = [open_work(load_experiment(one), options).runs for one in (name, same)]
    assert [run.folder for run in runs[0]] == [run.folder for run in runs[1]]


def test_load_experiment_ccl_table3_shares_its_runs_with_csts_table3(options):
    shared = {run.folder for run in open_work(load_experiment("csts-table3"), options).runs}
    runs = open_work(load_experiment("ccl-table3"), options).runs
    assert {run.folder for run in runs} <= shared
    assert len(runs) == 3 * 3 + 3 * 1


def test_load_experiment_unknown_name_lists_near_ones():
    with pytest.raises(InputError, match=r"'ccl-tabel4'.*'ccl-table4'"):
        load_experiment("ccl-tabel4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titel": "x"}, r"Unknown experiment key 'titel'.*title"),
        ({"claim": ""}, "'claim' must be a text"),
        ({"kind": "run"}, r"'kind' must be 'runs'.*got 'run'"),
        ({"metrics": ["speerman"]}, r"'metrics\[0\]' must be 'spearman'.*got 'speerman'"),
        ({"rows": {"a": {"cells": {}, "recipe": "by"}}}, "got 'by'"),
        ({"rows": {"a": {**ASKS, "prompt": {"shots": 2}}}}, "instruction"),
        ({"published": {"one": {"spearman": {"simcse-base": "4,5"}}}}, "a number is written"),
    ],
)
def test_parse_wrong_file_says_where(change, message):
    with pytest.raises(InputError, match=message):
        parse({**VALID, **change}, name="e")
