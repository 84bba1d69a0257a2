"""Weights of the contextual models on disk: safetensors, and a record of what they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from condsim.errors import InputError, ModelError
from condsim.files import replacing

RECORD = "settings.json"  # written first
MODEL = "model.safetensors"
REPORT = "report.json"  # written last: with it the model is finished
VOCABULARY = "vocabulary"
CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"


def best_device() -> torch.device:
    """The accelerator if there is one, else the processor."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The tensors that make up a model, each once where several modules share it."""
    kept = model.state_dict().keys()
    buffers = {name: value for name, value in model.named_buffers() if name in kept}
    return {name: value.detach() for name, value in [*model.named_parameters(), *buffers.items()]}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], *, source: Path) -> None:
    """Copies tensors into a model."""
    own = weights(model)
    wrong = sorted(own.keys() ^ tensors.keys())
    wrong += [name for name in own.keys() & tensors if own[name].shape != tensors[name].shape]
    if wrong:
        raise ModelError(
            f"{source} does not fit the model its settings describe ({len(wrong)} tensors differ, "
            f"such as {wrong[0]}). Train it anew."
        )
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(tensors[name])


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors to one file, in one step."""
    with replacing(path) as partial:
        save_file(
            {name: value.cpu().contiguous() for name, value in tensors.items()},
            partial,
            metadata=dict(metadata or {}),
        )


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads what :func:`write_tensors` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"Cannot read the weights {path}: {error}. Train it anew.") from error


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Writes plain values, in one step."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(dict(values), indent=2), encoding="utf-8")


def prepare_folder(folder: Path, record: Mapping[str, object]) -> None:
    """Makes the folder of a model, or checks that it holds one of the same settings."""
    path = folder / RECORD
    if not path.is_file():
        left = (
            [] if not folder.is_dir() else [p for p in folder.iterdir() if p.suffix != ".partial"]
        )
        if left:
            raise InputError(f"{folder} is not empty and holds no model; give another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
        return
    known = open_record(folder)
    changed = [key for key in {**known, **record} if known.get(key) != record.get(key)]
    if changed:
        raise InputError(
            f"The model in {folder} was trained or started with another {', '.join(changed)}. "
            "Use the same, or another folder."
        )


def finish_folder(folder: Path, model: nn.Module, report: Mapping[str, object]) -> None:
    """Writes a trained model and its report, and removes what it could have gone on from."""
    write_tensors(folder / MODEL, weights(model))
    write_json(folder / REPORT, report)
    for name in (CHECKPOINT, BEST):
        (folder / name).unlink(missing_ok=True)


def open_record(folder: Path) -> dict[str, object]:
    """Reads what :func:`prepare_folder` wrote."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} holds no model: {error}. Train it first.") from error
    if not isinstance(record, dict):
        raise ModelError(f"{folder / RECORD} is damaged. Train the model anew.")
    return record


def open_finished(folder: Path, kind: str, *, corpus: str) -> dict[str, object]:
    """Reads the record of a trained model, and checks what it was trained on."""
    record = open_record(folder)
    if record.get("kind") != kind or not (folder / REPORT).is_file():
        raise ModelError(f"{folder} holds no finished {kind} model. Train it first.")
    if record["corpus"] != corpus:
        raise InputError(
            f"The {kind} model in {folder} was trained on corpus {record['corpus']}. Got corpus "
            f"{corpus}; give that corpus, or train the model on this one."
        )
    return record
