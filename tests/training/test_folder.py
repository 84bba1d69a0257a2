import json

import pytest

from condsim.errors import InputError
from condsim.training.folder import (
    CHECKPOINTS,
    REPORT,
    begin_run,
    check_new,
    check_resumable,
    last_checkpoint,
)
from condsim.training.recipe import Recipe

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
    with pytest.raises(InputError, match="no unfinished run to resume"):
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
    with pytest.raises(InputError):
        check_resumable(run, RECIPE, revisions)


@pytest.mark.parametrize("text", ["[]", '{"global_step": "x"}', "{}", '{"global_st', "[" * 100_000])
def test_last_checkpoint_with_a_damaged_state_is_removed(text, tmp_path):
    assert last_checkpoint(tmp_path) is None
    checkpoint(tmp_path, 5)
    newest, damaged = checkpoint(tmp_path, 20), checkpoint(tmp_path, 30, text=text)
    assert last_checkpoint(tmp_path) == newest
    assert not damaged.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt"])
def test_last_checkpoint_cut_file_is_left_out(name, tmp_path):
    pytest.importorskip("safetensors")
    whole = checkpoint(tmp_path, 5)
    (checkpoint(tmp_path, 20) / name).write_bytes(b"cut")
    assert last_checkpoint(tmp_path) == whole
