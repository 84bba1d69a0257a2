import re
from pathlib import Path

import pytest

from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.training.recipe import Recipe, load_recipe, save_recipe

RECIPES = sorted(
    path
    for path in (Path(__file__).parents[2] / "recipes").rglob("*.yaml")
    if path.parent.name not in ("sweeps", "contexts")
)
MINIMAL = "name: a\ntrain: t.csv\ndev: d.csv\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recipes_folder_every_file_parses(path):
    assert load_recipe(path).name


@pytest.mark.parametrize(
    ("folder", "kinds"), [("csts", ("cross", "bi", "tri")), ("ccl", ("bi", "tri"))]
)
def test_recipes_folder_has_every_row_of_the_papers_tables(folder, kinds):
    rows = {path.stem for path in RECIPES if path.parent.name == folder}
    backbones = ("roberta-base", "roberta-large", "diffcse-base", "simcse-base", "simcse-large")
    assert rows == {f"{backbone}-{kind}" for backbone in backbones for kind in kinds}


def test_save_recipe_then_load_gives_equal(tmp_path):
    recipe = Recipe(name="a", train="t", dev="d", objective={"mse": 1.0, "quad": 0.5}, dropout=0.2)
    save_recipe(recipe, tmp_path / "r.yaml")
    assert load_recipe(tmp_path / "r.yaml") == recipe


def test_load_recipe_overrides_change_single_keys(tmp_path):
    path = written(tmp_path, MINIMAL + "objective: {mse: 1.0}\n")
    recipe = load_recipe(path, overrides=["learning_rate=1e-5", "objective.quad=0.5", "epochs=5"])
    assert recipe.learning_rate == 1e-5
    assert recipe.objective == {"mse": 1.0, "quad": 0.5}
    assert recipe.epochs == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rte: 1e-5", "'learning_rte'.*'learning_rate'"),
        ("encoder: biencoder", "'bi-encoder'.*'biencoder'"),
        ("epochs: three", "'epochs'"),
        ("learning_rate: .nan", "'learning_rate'"),
        ("name: a/b", "without '/'"),
        ("layer_decay: 0.5", "Unknown recipe key 'layer_decay'"),
        ("objective: mse", "'objective'"),
        ("objective: {msee: 1}", "'msee'.*'mse'"),
        ("objective: {mse: 0}", "weight above 0"),
        ("objective: {mse: -1}", "'objective.mse' must be at least 0"),
        ("objective: {quad: 1}\nbatch_size: 1", "'batch_size' must be at least 2"),
        ("objective: {quad: 1}\nmiddle_tolerance: 0.2", "0 without 'mse' or 'correlation'"),
        ("inputs: condition", "must be 'both' for a bi-encoder"),
        ("keep: last\npatience: 2", "'patience' must be null with 'keep: last'"),
        ("freeze: [encoder]", "without 'encoder' for a bi-encoder without"),
        ("objective: {bcl: 1}\ndropout: 0", "above 0 for 'bcl'"),
        ("objective: {classification: 1}", "'classification' is for a cross-encoder"),
        (
            "encoder: cross-encoder\nobjective: {classification: 1, mse: 1}",
            "'classification' must be the only one",
        ),
        ("encoder: cross-encoder\nobjective: {c-mse: 1}", "'c-mse' does not apply"),
        ("objective: {softmax: 1, mse: 1}", "'softmax' must be the only one, with the weight 1"),
        ("objective: {triplet: 0.5}", "'triplet' must be the only one, with the weight 1"),
        ("objective: {triplet: 1}\nencoder: tri-encoder", "'triplet' is for a bi-encoder"),
        ("plain: pairs.csv", "'plain'"),
    ],
)
def test_load_recipe_bad_value_names_it(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_recipe(written(tmp_path, f"{MINIMAL}{text}\n"))


@pytest.mark.parametrize("override", ["epochs", "=5", "name.a=1", "epochs=[", "epoch=5"])
def test_load_recipe_bad_override_raises(tmp_path, override):
    with pytest.raises(InputError, match=r"--set|Unknown recipe key"):
        load_recipe(written(tmp_path, MINIMAL), overrides=[override])


FOLDER = Path(__file__).parents[2] / "recipes"

CCL_TABLE_2 = {  # learning rate, tau, sigma
    ("roberta-base", "bi"): (3e-5, 10, 0.5),
    ("roberta-large", "bi"): (1e-5, 3, 0.5),
    ("diffcse-base", "bi"): (3e-5, 8, 1),
    ("simcse-base", "bi"): (3e-5, 3, 0.75),
    ("simcse-large", "bi"): (1e-5, 4, 0.25),
    ("roberta-base", "tri"): (3e-5, 5, 0.5),
    ("roberta-large", "tri"): (1e-5, 8, 1),
    ("diffcse-base", "tri"): (3e-5, 9, 0.75),
    ("simcse-base", "tri"): (3e-5, 7, 1),
    ("simcse-large", "tri"): (1e-5, 7, 0.5),
}
CCL = {"w-acl": 1.0, "bcl": 1.0, "mse": 1.0, "c-mse": 1.0}


@pytest.mark.parametrize("row", CCL_TABLE_2, ids="-".join)
def test_ccl_recipe_has_the_values_of_tables_2_and_6(row):
    backbone, kind = row
    recipe = load_recipe(FOLDER / f"ccl/{backbone}-{kind}.yaml")
    assert (recipe.learning_rate, recipe.tau, recipe.sigma) == CCL_TABLE_2[row]
    assert recipe.epochs == (10 if backbone.startswith("roberta") else 5)
    assert (recipe.batch_size, recipe.gradient_accumulation) == (16, 4)
    assert (recipe.weight_decay, recipe.ties) == (0.1, "kept")  # §3.1: l_pos >= l_neg
    assert (recipe.name, recipe.encoder) == (f"ccl-{backbone}-{kind}", f"{kind}-encoder")
    assert (recipe.objective, recipe.seed) == (CCL, 42)  # §4.1
    assert (recipe.pooling, recipe.transform, recipe.fusion) == ("cls", False, "hadamard")  # §3.2.1
    peer = load_recipe(FOLDER / f"csts/{backbone}-{kind}.yaml")
    for key in ("train", "dev", "backbone", "order", "schedule", "warmup"):
        assert getattr(recipe, key) == getattr(peer, key)


@pytest.mark.parametrize(
    ("folder", "term", "kind"),
    [("nli", "softmax", "classes"), ("sections", "triplet", "triplets")],
)
def test_fine_tuning_recipe_has_the_settings_of_sbert(folder, term, kind):
    recipe = load_recipe(FOLDER / folder / "minilm-bi.yaml")
    assert (recipe.encoder, recipe.objective) == ("bi-encoder", {term: 1.0})
    assert recipe.train_kind == kind
    assert (recipe.epochs, recipe.batch_size, recipe.margin) == (1, 16, 1.0)
    assert (recipe.pooling, recipe.schedule, recipe.warmup) == ("mean", "linear", 0.1)


@pytest.mark.parametrize("file", sorted((FOLDER / "csts").glob("*.yaml")), ids=lambda one: one.stem)
def test_csts_recipe_trains_as_the_released_code(file):
    recipe = load_recipe(file)
    assert (recipe.max_grad_norm, recipe.keep, recipe.max_seq_length) == (None, "last", 512)
    assert (recipe.layout, recipe.order, recipe.freeze) == ("released", "sentence-first", [])
    assert not recipe.pair_terms or recipe.ties == "kept"


def test_afs_fold_is_read_on_its_scale_of_five(tmp_path):
    path = tmp_path / "afs-0-train.tsv"
    path.write_text("score\tsentence1\tsentence2\n0.0\tA b.\tC d.\n4.5\tA b.\tA b!\n")
    task = load_task(path)
    assert task.label_range == (0.0, 5.0)
    assert task.gold.tolist() == [0.0, 0.8999999761581421]


def test_afs_ten_folds_as_the_docs_run_them(tiny_backbone, tmp_path, monkeypatch, capsys):
    """On files in the released form, with a tiny encoder and two folds."""
    pytest.importorskip("datasets")
    pages = (Path(__file__).parents[2] / "papers/docs/reproduce.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", pages, re.DOTALL)
    (script,) = [block for block in blocks if "load_afs_topics" in block]
    monkeypatch.chdir(tmp_path)
    for folder in ("datasets/afs", "recipes/afs", "runs"):
        Path(folder).mkdir(parents=True)
    recipe = (FOLDER / "afs/bi.yaml").read_text(encoding="utf-8")
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
    exec(compile(script.replace("folds=10", "folds=2"), "papers/docs/reproduce.md", "exec"), {})
    mean, spread = capsys.readouterr().out.splitlines()[-1].split(" ± ")
    assert -100 <= float(mean) <= 100
    assert float(spread) >= 0
    assert {path.name for path in Path("runs").iterdir()} == {"afs-0", "afs-1"}
    tested = [load_task(Path(f"afs-{number}-test.tsv")) for number in range(2)]
    assert sorted(len(task) for task in tested) == [12, 12]
