from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from condsim.contexts.recipe import ContextsRecipe, load_contexts_recipe, save_contexts_recipe
from condsim.contexts.surrogate import surrogate_recipe
from condsim.errors import InputError

PROJECT = Path(__file__).resolve().parents[2]
RECIPES = sorted((PROJECT / "recipes" / "contexts").glob("*.yaml"))


def write(path: Path, **values: object) -> Path:
    path.write_text(yaml.safe_dump({"name": "n", "inputs": ["a.txt"], **values}))
    return path


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_that_comes_along_is_read_and_written_back(path: Path, tmp_path):
    recipe = load_contexts_recipe(path)
    save_contexts_recipe(recipe, tmp_path / "again.yaml")
    assert load_contexts_recipe(tmp_path / "again.yaml") == recipe
    files = dict.fromkeys(("train", "dev", "test"), tmp_path)
    surrogate_recipe(recipe.surrogate, name=recipe.name, files=files, backbone=tmp_path)


def test_recipe_written_by_an_earlier_version_loads_unchanged(tmp_path):
    old = Path(__file__).with_name("written_before_pydantic.yaml")
    save_contexts_recipe(load_contexts_recipe(old), tmp_path / "again.yaml")
    again = (tmp_path / "again.yaml").read_text()
    assert again.replace("  kind: trained\n  share: 0.5\n", "") == old.read_text()


def test_recipe_names_are_there():
    untrained, trained = {"counts", "translation"}, {"tiny", "openstax", "captions", "paper"}
    assert {path.stem for path in RECIPES} == untrained | trained


def test_recipe_of_the_paper_has_its_numbers():
    recipe = load_contexts_recipe(next(path for path in RECIPES if path.stem == "paper"))
    assert recipe.coherence.hidden == 300
    assert recipe.generators.size == "large"
    assert (recipe.selection.size, recipe.selection.chunks) == (500, 20_000)
    assert recipe.harvest.pairs == 100_000_000
    assert recipe.surrogate.backbone == "FacebookAI/roberta-large"


def test_recipe_overrides_change_single_keys(tmp_path):
    path = write(tmp_path / "r.yaml", selection={"size": 7})
    recipe = load_contexts_recipe(
        path, overrides=["selection.chunks=30", "harvest.mix={tfidf: 1, document: 0, random: 0}"]
    )
    assert (recipe.selection.size, recipe.selection.chunks) == (7, 30)
    assert recipe.harvest.mix.tfidf == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputs": []}, "needs 'inputs': one file of text or more"),
        ({"generators": {"left": 1}}, r"contexts of the same width. Got \(2, 2\) and \(1, 2\)"),
        ({"selektion": {}}, "Unknown contexts recipe key 'selektion'. Did you mean 'selection'?"),
        ({"selection": {"sise": 3}}, "Unknown selection key 'sise'. Did you mean 'size'?"),
        ({"selection": {"size": "many"}}, "key 'size' must be of type int. Got 'many'"),
        ({"vocabulary": {"size": 100}}, "Vocabulary key 'size' must be at least 261. Got 100"),
        ({"index": {"min_df": 0}}, "Index key 'min_df' must be at least 1. Got 0"),
        ({"scoring": {"references": 0}}, "Scoring key 'references' must be at least 1. Got 0"),
        ({"coherence": {"dropout": 2.0}}, "Coherence key 'dropout' must be below 1. Got 2"),
        ({"coherence": {"dropout": -1.0}}, "Coherence key 'dropout' must be at least 0. Got -1"),
        ({"coherence": {"learning_rate": 0.0}}, "key 'learning_rate' must be above 0. Got 0"),
        ({"coherence": {"held_out_sentences": 0}}, "held_out_sentences' must be at least 1. Got 0"),
        ({"coherence": {"run_sentences": 1}}, "key 'run_sentences' must be at least 2. Got 1"),
        ({"generators": {"learning_rate": -1.0}}, "learning_rate' must be above 0. Got -1"),
        ({"generators": {"held_out": 2.0}}, "Generators key 'held_out' must be below 1. Got 2"),
        ({"generators": {"held_out": 0.0}}, "Generators key 'held_out' must be above 0. Got 0"),
        ({"generators": {"warmup": 5.0}}, "Generators key 'warmup' must be below 1. Got 5"),
        ({"generators": {"weight_decay": -1.0}}, "weight_decay' must be at least 0. Got -1"),
        ({"generators": {"patience": 0}}, "Generators key 'patience' must be at least 1. Got 0"),
        ({"generators": {"batch_tokens": 0}}, "batch_tokens' must be at least 1. Got 0"),
        ({"selection": {"seed": -1}}, "Selection key 'seed' must be at least 0. Got -1"),
        ({"corpus": {"seed": -1}}, "Corpus key 'seed' must be at least 0. Got -1"),
        ({"harvest": {"pairs": 0}}, "Harvest key 'pairs' must be at least 1. Got 0"),
        ({"harvest": {"shard_pairs": -3}}, "key 'shard_pairs' must be at least 1. Got -3"),
        ({"harvest": {"seed": -1}}, "Harvest key 'seed' must be at least 0. Got -1"),
        ({"surrogate": {"width": 0}}, "Surrogate key 'width' must be at least 1. Got 0"),
        ({"surrogate": {"layers": 0}}, "Surrogate key 'layers' must be at least 1. Got 0"),
        ({"scoring": {"center": "mean"}}, "Unknown value of 'center': 'mean'"),
        ({"harvest": {"mix": {"tfidf": 1}}}, "must be at least 0 and add up to 1. Got 1, 0.3, 0.3"),
    ],
)
def test_recipe_that_breaks_a_rule_raises(tmp_path, values: dict[str, object], message: str):
    with pytest.raises(InputError, match=message):
        load_contexts_recipe(write(tmp_path / "r.yaml", **values))


SECTIONS = ContextsRecipe.model_fields


def table(head: str) -> dict[str, str]:
    """Default by key, of the table of the docs whose first column has this head."""
    lines = (PROJECT / "docs" / "contexts.md").read_text("utf-8").splitlines()
    start = lines.index(f"| {head} | default | what it is |")
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    cells = [[cell.strip() for cell in line.split("|")[1:]] for line in rows]
    return {row[0].strip("`"): row[1].strip("`") for row in cells}


@pytest.mark.parametrize("section", [name for name in SECTIONS if name not in ("name", "inputs")])
def test_docs_table_of_a_section_is_the_settings(section: str):
    found = table(section)
    settings = SECTIONS[section].default
    assert list(found) == list(type(settings).model_fields)
    for key, text in found.items():
        if key not in ("weights", "mix"):
            assert yaml.safe_load(text.replace("2e-3", "0.002")) == getattr(settings, key), key


def test_docs_table_of_the_recipe_is_the_recipe():
    assert list(table("recipe")) == list(SECTIONS)
