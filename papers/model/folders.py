"""From a trained checkpoint to a model folder of condsim, and to what ships."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from safetensors.torch import load_file, save_file

from condsim.model.settings import ModelSettings
from papers.model.groups import read_groups

SAMPLES_PER_SOURCE = 40
LONGEST_INPUT_TOKENS = 256


def model_folder(checkpoint: Path, template: Path, output: Path, *, name: str, base: str) -> Path:
    """Copy a sentence-transformers folder with the weights of a checkpoint.

    Args:
        checkpoint: Folder of ``papers.model.train``.
        template: Folder of the backbone, or of the model that training began from.
        output: The folder to write.
        name: Name of the model.
        base: Name of the backbone.
    """
    output.mkdir(parents=True, exist_ok=True)
    for path in template.iterdir():
        if path.name in ("model.safetensors", "condsim.json", "desktop.ini"):
            continue
        target = output / path.name
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target)
    state = load_file(template / "model.safetensors")
    trained = load_file(checkpoint / "model.safetensors")
    unknown = trained.keys() - state.keys()
    if unknown:
        raise KeyError(f"{template} has no weights named {sorted(unknown)[:3]}")
    state |= {key: value.float() for key, value in trained.items()}
    save_file(state, output / "model.safetensors", metadata={"format": "pt"})
    if (template / "condsim.json").is_file():
        settings = replace(ModelSettings.load(template), name=name, calibration=None)
    else:
        settings = ModelSettings(
            kind="bi-encoder",
            name=name,
            order="bare-condition-first",
            max_seq_length=LONGEST_INPUT_TOKENS,
            facts={"base_model": base},
        )
    settings.save(output)
    return output


def samples(rows: Iterable[Path]) -> Sequence[tuple[str, str]]:
    """Texts and conditions of the training rows, for the quantisation."""
    pairs = []
    for path in rows:
        groups = islice(read_groups(path), 0, 100 * SAMPLES_PER_SOURCE, 100)
        for group in groups:
            condition, text = group.inputs[0]
            if condition is not None:
                pairs.append((text, condition))
    return pairs
