"""The recipes of supervised evaluation, and the AFS folds as docs/evaluation.md writes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from condsim.data.load import load_task
from condsim.training.recipe import load_recipe

RECIPES = Path(__file__).parents[2] / "recipes"


def test_stsb_after_nli_differs_in_the_backbone_only():
    recipe = load_recipe(RECIPES / "stsb/nli-bi.yaml")
    assert recipe.backbone == "runs/nli"
    same = load_recipe(RECIPES / "stsb/bi.yaml")
    assert same.replaced(name=recipe.name, backbone="runs/nli") == recipe


def test_afs_recipe_chooses_no_epoch_on_its_fold():
    recipe = load_recipe(RECIPES / "afs/bi.yaml")
    assert recipe.epochs == 1
    assert (recipe.objective, recipe.batch_size, recipe.learning_rate) == ({"mse": 1.0}, 16, 2e-5)


def test_afs_fold_is_read_on_its_scale_of_five(tmp_path):
    path = tmp_path / "afs-0-train.tsv"
    path.write_text("score\tsentence1\tsentence2\n0.0\tA b.\tC d.\n4.5\tA b.\tA b!\n")
    task = load_task(path)
    assert task.label_range == (0.0, 5.0)
    assert task.gold.tolist() == [0.0, 0.8999999761581421]


def test_afs_ten_folds_as_the_docs_run_them(tiny_backbone, tmp_path, monkeypatch, capsys):
    """On files in the released form, with a tiny encoder and two folds."""
    pytest.importorskip("datasets")
    pages = (Path(__file__).parents[2] / "docs/evaluation.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python no-run\n(.*?)```", pages, re.DOTALL)
    (script,) = [block for block in blocks if "load_afs_topics" in block]
    monkeypatch.chdir(tmp_path)
    for folder in ("datasets/afs", "recipes/afs", "runs"):
        Path(folder).mkdir(parents=True)
    recipe = (RECIPES / "afs/bi.yaml").read_text(encoding="utf-8")
    assert "backbone: sentence-transformers/all-MiniLM-L6-v2" in recipe
    recipe = recipe.replace("sentence-transformers/all-MiniLM-L6-v2", str(tiny_backbone))
    recipe += "max_seq_length: 64\n"
    Path("recipes/afs/bi.yaml").write_text(recipe, encoding="utf-8")
    for topic, word in (("DP", "dog"), ("GC", "cat"), ("GM", "bird")):
        rows = "".join(
            f'{row % 6 - 0.5 * (row % 6 == 5)},x,"A {word} runs, {row} times.","The {word} sits."\n'
            for row in range(8)
        )
        text = "regression_label,HIT_id,sentence_1,sentence_2\n" + rows
        Path(f"datasets/afs/ArgPairs_{topic}.csv").write_text(text, encoding="utf-8")
    assert "folds=10, seed=0" in script
    exec(compile(script.replace("folds=10", "folds=2"), "docs/evaluation.md", "exec"), {})
    mean, spread = capsys.readouterr().out.splitlines()[-1].split(" ± ")
    assert -100 <= float(mean) <= 100
    assert float(spread) >= 0
    assert {path.name for path in Path("runs").iterdir()} == {"afs-0", "afs-1"}
    tested = [load_task(Path(f"afs-{number}-test.tsv")) for number in range(2)]
    assert sorted(len(task) for task in tested) == [12, 12]
