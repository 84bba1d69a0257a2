import json
from pathlib import Path

import pytest

import condsim
from condsim.errors import InputError
from condsim.training.folder import (
    CHECKPOINTS,
    REPORT,
    begin_run,
    check_new,
    check_resumable,
    finished_run,
    last_checkpoint,
)
from condsim.training.recipe import Recipe, load_recipe

RECIPE = Recipe(name="a", train="t.csv", dev="d.csv")


def checkpoint(folder, step, text=None):
    path = folder / CHECKPOINTS / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "trainer_state.json").write_text(text or json.dumps({"global_step": step}))
    return path


def test_check_new_folder_with_files_or_file_raises(tmp_path):
    check_new(tmp_path / "a" / "b")
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        check_new(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        check_new(tmp_path / "kept.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_check_resumable_says_what_differs(tmp_path):
    run, revisions = tmp_path / "run", {"t.csv": "1", "d.csv": "2"}
    with pytest.raises(InputError, match="no run to resume"):
        check_resumable(run, RECIPE, revisions)
    begin_run(run, RECIPE, revisions, {})
    check_resumable(run, RECIPE, revisions)
    with pytest.raises(InputError, match="epochs, seed changed"):
        check_resumable(run, RECIPE.replaced(epochs=9, seed=1), revisions)
    with pytest.raises(InputError, match=r"\(t.csv changed"):
        check_resumable(run, RECIPE, {"t.csv": "3", "d.csv": "2"})
    # Begun before vectors were kept
    check_resumable(run, RECIPE, {**revisions, "v.npy": "3"})
    (run / REPORT).write_text("{}")
    with pytest.raises(InputError, match="is finished"):
        check_resumable(run, RECIPE, revisions)


def test_last_checkpoint_takes_newest_complete_and_removes_torn(tmp_path):
    checkpoint(tmp_path, 5)
    newest = checkpoint(tmp_path, 20)
    torn = checkpoint(tmp_path, 30, text='{"global_st')
    assert last_checkpoint(tmp_path) == newest
    assert not torn.exists()


def test_last_checkpoint_none_yet_gives_none(tmp_path):
    assert last_checkpoint(tmp_path) is None


@pytest.mark.parametrize("text", ["[]", '{"global_step": "x"}', "{}", "[" * 100_000])
def test_last_checkpoint_damaged_state_is_left_out(text, tmp_path):
    whole = checkpoint(tmp_path, 5)
    checkpoint(tmp_path, 20, text=text)
    assert last_checkpoint(tmp_path) == whole


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt"])
def test_last_checkpoint_cut_file_is_left_out(name, tmp_path):
    pytest.importorskip("safetensors")
    whole = checkpoint(tmp_path, 5)
    (checkpoint(tmp_path, 20) / name).write_bytes(b"cut")
    assert last_checkpoint(tmp_path) == whole


OLD = Path(__file__).with_name("old-run")


def test_old_recipe_loads_with_its_values():
    assert load_recipe(OLD / "recipe.yaml") == Recipe(
        name="tiny",
        train="train.csv",
        dev="dev.csv",
        encoder="tri-encoder",
        backbone="tiny-bert",
        pooling="cls",
        fusion="concat",
        max_seq_length=48,
        objective={"ranknet": 1.0, "listnet": 0.5, "pair-order": 0.5},
        epochs=2,
        batch_size=8,
        learning_rate=1e-3,
        precision="float32",
    )


def test_old_run_is_read_back():
    run = finished_run(OLD)
    assert run is not None
    assert run.report.model.metrics["spearman"].value == pytest.approx(38.43296277669376)
    assert run.dev_spearman == (38.428, 19.472)
    assert (run.train_revision, run.seconds) == ("729a19db4ecd", 1.2)


def test_old_tri_encoder_scores_as_it_did():
    assert "condsim.encoders.tri_encoder.TriEncoder" in (OLD / "modules.json").read_text()
    row = ("The dog runs in the street 3.", "A cat sits on a table 4.", "the animal")
    model = condsim.load(str(OLD))
    assert model.score(*row) == pytest.approx(0.195, abs=1e-4)
    assert model.score(*row, scale="raw") == pytest.approx(0.9999956, abs=1e-6)
