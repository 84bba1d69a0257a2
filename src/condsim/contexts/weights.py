"""Folders of trained models: weights as safetensors, and a record of what they belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
from pydantic import BeforeValidator
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from condsim.contexts.corpus import Vocabulary
from condsim.errors import InputError, ModelError
from condsim.files import replacing, write_text
from condsim.settings import Settings, validated

RECORD = "settings.json"  # written first
MODEL = "model.safetensors"
REPORT = "report.json"  # written last: with it the model is finished
VOCABULARY = "vocabulary"
CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"

ModelSettings = TypeVar("ModelSettings", bound=Settings)
Evaluations = Annotated[
    tuple[tuple[int, float], ...], BeforeValidator(lambda rows: tuple(map(tuple, rows)))
]
"""Step and quality of each evaluation; lists in a file."""


def best_device() -> torch.device:
    """The accelerator if there is one, else the processor."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The tensors that make up a model, each once where several modules share it."""
    kept = model.state_dict().keys()
    buffers = {name: value for name, value in model.named_buffers() if name in kept}
    return {name: value.detach() for name, value in [*model.named_parameters(), *buffers.items()]}


def copy_weights(model: nn.Module, tensors: Mapping[str, Tensor], *, source: Path) -> None:
    """Copies tensors into a model."""
    own = weights_of(model)
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


def load_weights(model: nn.Module, path: Path) -> None:
    """Copies the tensors of a file into a model."""
    copy_weights(model, read_tensors(path)[0], source=path)


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
    """Reads tensors and metadata."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"Cannot read the weights {path}: {error}. Train it anew.") from error


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Writes plain values, in one step."""
    write_text(path, json.dumps(dict(values), indent=2))


def prepare_folder(
    folder: Path, kind: str, settings: Settings, *, corpus: str, vocabulary: str
) -> None:
    """Makes the folder of a model, or checks that it holds one of the same settings."""
    record = {"kind": kind, "corpus": corpus, "vocabulary": vocabulary, **settings.model_dump()}
    path = folder / RECORD
    if not path.is_file():
        if folder.is_dir() and any(file.suffix != ".partial" for file in folder.iterdir()):
            raise InputError(f"{folder} is not empty and holds no model; give another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
        return
    known = _read_record(folder)
    changed = [key for key in {**known, **record} if known.get(key) != record.get(key)]
    if changed:
        raise InputError(
            f"The model in {folder} was trained or started with another {', '.join(changed)}. "
            "Use the same, or another folder."
        )


def finish_folder(folder: Path, model: nn.Module, report: Settings) -> None:
    """Writes a trained model and its report, and removes its checkpoints."""
    write_tensors(folder / MODEL, weights_of(model))
    write_json(folder / REPORT, report.model_dump())
    for name in (CHECKPOINT, BEST):
        (folder / name).unlink(missing_ok=True)


def open_finished(
    folder: Path, kind: str, settings: type[ModelSettings], *, corpus: str
) -> tuple[ModelSettings, Vocabulary]:
    """Reads settings and vocabulary of a trained model, and checks what it was trained on."""
    record = _read_record(folder)
    if record.pop("kind", None) != kind or not (folder / REPORT).is_file():
        raise ModelError(f"{folder} holds no finished {kind} model. Train it first.")
    trained_on, revision = record.pop("corpus"), record.pop("vocabulary")
    if trained_on != corpus:
        raise InputError(
            f"The {kind} model in {folder} was trained on corpus {trained_on}. Got corpus "
            f"{corpus}; give that corpus, or train the model on this one."
        )
    vocabulary = Vocabulary.open(folder / VOCABULARY)
    if revision not in ("", vocabulary.revision):  # none was recorded for that of a backbone
        raise ModelError(
            f"The tokenizer in {folder / VOCABULARY} is not the one the {kind} model was trained "
            "with. Train the model anew."
        )
    return validated(settings, record, what=settings.what, source=str(folder)), vocabulary


def read_report(kind: type[ModelSettings], folder: Path) -> ModelSettings:
    """Reads the report of a finished training."""
    try:
        values = json.loads((folder / REPORT).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the report in {folder}: {error}.") from error
    return validated(kind, values, what="report", source=str(folder))


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} holds no model: {error}. Train it first.") from error
    if not isinstance(record, dict):
        raise ModelError(f"{folder / RECORD} is damaged. Train the model anew.")
    return record
