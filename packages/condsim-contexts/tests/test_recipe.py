from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from condsim.errors import InputError
from condsim_contexts.recipe import ContextsRecipe, load_contexts_recipe, save_contexts_recipe
from condsim_contexts.surrogate import surrogate_recipe

PROJECT = Path(__file__).resolve().parents[3]
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
    surrogate_recipe(recipe, files=files, backbone=tmp_path)


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
        ({"generators": {"left": 1}}, r"contexts of the same width; got \(2, 2\) and \(1, 2\)"),
        ({"vocabulary": {"size": 100}}, "size.*261"),
        ({"coherence": {"left": 0, "right": 0}}, r"of the same width; got \(0, 0\) and \(2, 2\)"),
        ({"generators": {"kind": "counts", "backbone": "a/b"}}, "'counts' none"),
        ({"generators": {"kind": "translation"}}, "'translation' need a 'backbone'"),
        ({"scoring": {"weights": {"left": -1.0}}}, "at least 0 and one of them above 0"),
        ({"corpus": {"language": "English"}}, "language.*'English'"),
        ({"harvest": {"mix": {"tfidf": 1}}}, "must be at least 0 and add up to 1; got 1, 0.3, 0.3"),
    ],
)
def test_recipe_that_breaks_a_rule_raises(tmp_path, values: dict[str, object], message: str):
    with pytest.raises(InputError, match=message):
        load_contexts_recipe(write(tmp_path / "r.yaml", **values))


SECTIONS = ContextsRecipe.model_fields


def table(head: str) -> dict[str, str]:
    """Default by key, of the table of the docs whose first column has this head."""
    lines = (PROJECT / "docs" / "contexts-recipe.md").read_text("utf-8").splitlines()
    start = lines.index(f"| {head} | default | what it is |")
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    cells = [[cell.strip() for cell in line.split("|")[1:]] for line in rows]
    return {row[0].strip("`"): row[1].strip("`") for row in cells}


@pytest.mark.parametrize("section", [name for name in SECTIONS if name not in ("name", "inputs")])
def test_docs_table_of_a_section_is_the_settings(section: str):
    found = table(section)
    settings = SECTIONS[section].default
    assert set(found) == set(type(settings).model_fields)
    for key, text in found.items():
        if key not in ("weights", "mix"):
            assert yaml.safe_load(text.replace("2e-3", "0.002")) == getattr(settings, key), key


def test_docs_table_of_the_recipe_is_the_recipe():
    assert list(table("recipe")) == list(SECTIONS)
