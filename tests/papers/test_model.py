"""The default model's rows, recipes and suite."""

from __future__ import annotations

import json
import random
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from papers.model import measured, natural, rules
from papers.model.pipeline import SETTINGS, placed
from papers.model.plain import PlainVectors
from papers.model.rows import SOURCES
from papers.model.sources import ROOT
from papers.model.teach import projection

import condsim
from condsim.evaluation.suite_data import TestSpec, load_natural_sets
from condsim.training.recipe import load_recipe


def test_plain_vectors_encode_each_text_once(tmp_path):
    texts = ["A red car.", "Rain all day."]
    found = PlainVectors("default", tmp_path / "plain")(texts)
    np.testing.assert_allclose(found, condsim.load().encode(texts), atol=1e-3)
    again = PlainVectors("no such model", tmp_path / "plain")
    np.testing.assert_array_equal(again(texts[::-1]), found[::-1])


def test_projection_keeps_the_plane_of_the_teacher_and_turns_it_to_the_student():
    plane = np.array([[3, 0], [0, 2], [1, 1]], np.float32)
    teacher = np.column_stack([plane, [0.1, 0, 0]]).astype(np.float32)
    # The student has the same two axes, turned by a quarter.
    student = np.column_stack([-plane[:, 1], plane[:, 0]])
    projected = teacher @ projection(teacher, student)
    np.testing.assert_allclose(projected, student, atol=0.05)
    np.testing.assert_allclose(projected @ projected.T, plane @ plane.T, atol=0.03)


def test_amount_label_falls_with_ratio():
    assert rules.amount_label(360, 360) == 1.0
    assert 0.5 > rules.amount_label(360, 300) > rules.amount_label(360, 6) > 0


@pytest.mark.parametrize("name", sorted(rules.RULES))
def test_rules_of_test_use_no_text_of_other_parts(name):
    generate, _ = rules.RULES[name]
    drawn = {}
    for part in ("train", "dev", "test"):
        groups = generate(random.Random(f"{name} {part}"), part, number=30)
        drawn[part] = {text for group in groups for _, text in group.inputs}
    assert not drawn["test"] & (drawn["train"] | drawn["dev"])


def test_rules_of_dev_use_no_form_of_train():
    drawn = {
        part: {text for g in rules.roles(random.Random(0), part, number=60) for _, text in g.inputs}
        for part in ("train", "dev")
    }
    assert not drawn["train"] & drawn["dev"]


def written_test(folder):
    """A suite of one test, whose pair ``a, b`` is alike."""
    cells = [("a", "b", 1), ("a", "c", 0)]
    rows = [{"text1": a, "text2": b, "condition": "x", "label": label} for a, b, label in cells]
    return natural.write_suite([natural.Test(TestSpec("graded", "t", "auroc", ""), rows)], folder)


def test_measure_of_a_written_suite_mixes_in_the_plain_vector(tmp_path):
    vectors = {"a": ([1, 0], [1, 0]), "b": ([1, 0], [0, 1]), "c": ([0, 1], [1, 0])}

    def embed(inputs):
        rows = [vectors[text][condition is not None] for condition, text in inputs]
        return np.array(rows, np.float32)

    sets = load_natural_sets(written_test(tmp_path))
    shares = {"with": 0, "half": 0.5, "without": 1}
    scores = partial(measured.share_scores, embed, shares=shares)
    tests, means = measured.measure(scores, sets, resamples=20)
    found = {name: figure[0] for name, figure in tests["graded: t"].items()}
    assert found == {"with": 0.0, "half": 50.0, "without": 100.0}
    assert means == tests["graded: t"]


def test_scorer_embedder_keeps_the_order_of_inputs_with_and_without_condition():
    scorer = condsim.load()
    embedded = measured.scorer_embedder(scorer)([("the color", "a red car"), (None, "rain")])
    np.testing.assert_allclose(embedded[0], scorer.encode("a red car", "the color"), atol=1e-6)
    np.testing.assert_allclose(embedded[1], scorer.encode("rain"), atol=1e-6)


def test_measured_command_adds_models_and_prints_the_file(tmp_path, monkeypatch, capsys):
    suite = written_test(tmp_path / "suite")
    out = tmp_path / "result.json"
    command = ["measured", str(suite), "--out", str(out), "--vectors", str(tmp_path / "vectors")]
    monkeypatch.setattr(sys, "argv", [*command, "--model", "default"])
    measured.main()
    table = capsys.readouterr().out
    results = json.loads(out.read_text())
    assert (results["suite"], results["tests"]) == ("suite", 1)
    assert list(results["models"]) == ["word-overlap", "condition-only", "default"]
    # All rows have one condition, from which nothing can be told.
    assert results["models"]["condition-only"]["tests"] == {"graded: t": {}}
    assert "| graded | 50.0 [" in table
    # Figures that a former model of the name had are measured again.
    former = {"revision": "model:0", "families": {"graded": {}}, "tests": {"graded: t": {}}}
    out.write_text(json.dumps({**results, "models": {**results["models"], "default": former}}))
    measured.main()
    assert capsys.readouterr().out == table
    monkeypatch.setattr(sys, "argv", ["measured", "--out", str(out)])
    measured.main()
    assert capsys.readouterr().out == table


@pytest.mark.parametrize("path", sorted(SETTINGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_settings_name_files_that_are_made(path):
    recipe = load_recipe(path)
    files = {"train": recipe.train} | {
        name: str(source.file) for name, source in recipe.sources.items()
    }
    made = {*SOURCES, "graded-plain", "taught"}
    assert {Path(file).stem for file in files.values()} <= made
    assert all(Path(file).stem == name for name, file in files.items() if name != "train")
    given = {name for name, source in recipe.sources.items() if source.vectors}
    assert given == files.keys() & {"broad", "taught"}
    assert (ROOT / recipe.dev).is_file()


def test_placed_gives_a_recipe_its_paths_and_its_backbone():
    recipe = placed(load_recipe(SETTINGS / "small.yaml"), Path("mix"), "runs/start")
    assert (recipe.backbone, recipe.train) == ("runs/start", str(Path("mix", "written.csv")))
    assert recipe.dev == str(ROOT / "data" / "everyday" / "dev.txt")
    assert recipe.sources["taught"].vectors == str(Path("mix", "taught.npy"))
    assert recipe.sources["graded"].file == str(Path("mix", "graded.csv"))
    assert recipe.sources["graded"].vectors is None
