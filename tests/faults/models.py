"""Folders of models that are damaged, and trainings that cannot be run.

The cases in `TRAINED` need torch. Their folder is next to ``base``, which holds ``bi`` (a random
bi-encoder as training leaves it), ``backbone`` (its checkpoint) and ``train.csv``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.harness import Case, paired
from tests.faults.reading import HEAD, PAIRS, ROW

import condsim

DEFAULT = Path(condsim.__file__).parent / "assets" / "default"
_SCORE = "condsim score --model m --file p.csv --output o.csv"
_DEEP = "[" * 100_000
_Change = Callable[[Path], object]


def _default_with(change: _Change) -> _Change:
    """Make a copy of the default model in which one thing is changed."""

    def make(folder: Path) -> None:
        shutil.copytree(DEFAULT, folder)
        change(folder)

    return make


def _trained_with(change: _Change) -> _Change:
    """Make a copy of the bi-encoder in which one thing is changed."""

    def make(folder: Path) -> None:
        shutil.copytree(folder.parent.parent / "base" / "bi", folder)
        change(folder)

    return make


def _written(name: str, content: str | bytes) -> _Change:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def _without(pattern: str) -> _Change:
    def change(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.unlink()

    return change


def _json(name: str, edit: Callable[[Any], object]) -> _Change:
    def change(folder: Path) -> None:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        edit(content)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")

    return change


def _cut(name: str) -> _Change:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:2000])


def _shifted_tokens(content: Any) -> None:
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {word: 10 * number for word, number in vocabulary.items()}


def _nan_graph(folder: Path) -> None:
    import numpy as np
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(folder / "model.onnx"))
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor) * np.float32("nan")
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    onnx.save(model, str(folder / "model.onnx"))


# The rules of condsim.json one by one are in tests/model/test_loading.py.
_DEFAULT_DAMAGES: dict[str, tuple[_Change, str]] = {
    "settings empty": (_written("condsim.json", ""), "condsim.json"),
    "settings nested deep": (_written("condsim.json", _DEEP), "condsim.json"),
    "settings not UTF-8": (_written("condsim.json", b"\xff\xfe"), "condsim.json"),
    "no settings": (_without("condsim.json"), "condsim.json|model"),
    "another kind": (_json("condsim.json", lambda c: c.update(kind="cross-encoder")), "m"),
    "another dimension": (_json("condsim.json", lambda c: c.update(dimension=7)), "dimension"),
    "no graph": (_without("model.onnx"), "model.onnx|m"),
    "graph of text": (_written("model.onnx", "no graph"), "model.onnx|m"),
    "graph cut short": (_cut("model.onnx"), "m"),
    "graph of NaN": (_nan_graph, "finite|NaN|damaged"),
    "no tokenizer": (_without("tokenizer.json"), "tokenizer"),
    "tokenizer of an object": (_written("tokenizer.json", "{}"), "tokenizer"),
    "tokenizer nested deep": (_written("tokenizer.json", _DEEP), "tokenizer"),
    "tokenizer of another model": (_json("tokenizer.json", _shifted_tokens), "tokenizer"),
}
_HEADS = {
    "an array": "[]",
    "deep nesting": _DEEP,
    "5000 digits": '{"format": 1, "weights": [' + "9" * 5000 + "]}",
}


def default_models() -> Iterator[Case]:
    """Damaged models: refused before anything is written, in a line that names the file."""
    for name, (change, says) in _DEFAULT_DAMAGES.items():
        yield Case(
            f"model/{name}",
            _SCORE,
            says=says,
            files={"p.csv": PAIRS, "m": _default_with(change)},
            writes=("m",),
        )
    for name, text in _HEADS.items():
        yield Case(
            f"model/head of {name}",
            "condsim score --model m a b c",
            says="applicability.json",
            files={"m": _default_with(_written("applicability.json", text))},
            writes=("m",),
        )
    yield Case(
        "model/max_seq_length beyond the model",
        'condsim score --model m "$(yes "a man" 2>/dev/null | head -500 | tr "\\n" " ")" b c',
        says="max_seq_length|damaged|token|long",
        files={
            "m": _default_with(_json("condsim.json", lambda c: c.update(max_seq_length=5000))),
        },
        writes=("m",),
    )
    for name, model in {
        "a file": "p.csv",
        "an empty folder": "empty",
        "a name with a newline": "$'a\\nb'",
        "a very long name": "x" * 5000,
        "a name on the Hub": "nobody/nothing-at-all",
    }.items():
        yield Case(
            f"model/{name}",
            f"HF_HUB_OFFLINE=1 condsim score --model {model} --file p.csv --output o.csv",
            files={"p.csv": PAIRS, "empty": Path.mkdir},
        )


def _weights(edit: Callable[[dict[str, Any]], dict[str, Any]]) -> _Change:
    def change(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        path = folder / "model.safetensors"
        save_file(edit(load_file(path)), path, metadata={"format": "pt"})

    return change


def _pickled(folder: Path) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save({"a": torch.zeros(2)}, folder / "pytorch_model.bin")


def _without_layer(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor for name, tensor in weights.items() if ".layer.1." not in name}


def _nan_weights(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor * float("nan") for name, tensor in weights.items()}


_LOADED = "cannot be loaded|damaged"
_TRAINED_DAMAGES: dict[str, tuple[_Change, str]] = {
    "weights cut short": (_cut("model.safetensors"), _LOADED),
    "weights in a pickle": (_pickled, "pickle"),
    "weights without a layer": (_weights(_without_layer), "lacks|missing"),
    "weights of NaN": (_weights(_nan_weights), "finite"),
    "another size": (_json("config.json", lambda c: c.update(hidden_size=48)), "config.json"),
    "config nested deep": (_written("config.json", _DEEP), _LOADED),
    "a module of the system": (
        _json("modules.json", lambda c: c[0].update(type="os.system")),
        "not part of Sentence Transformers",
    ),
    "another kind": (
        _json("condsim.json", lambda c: c.update(kind="cross-encoder")),
        "lacks|missing|cross-encoder",
    ),
    "another tokenizer": (
        lambda folder: shutil.copy(DEFAULT / "tokenizer.json", folder),
        "tokenizer",
    ),
}


def trained_models() -> Iterator[Case]:
    """Damaged folders of trained models, and places where nothing may be exported to."""
    commands = (_SCORE, "condsim export m --output o")
    for (name, (change, says)), command in paired(
        _TRAINED_DAMAGES.items(), commands, commands_per_fault=1
    ):
        yield Case(
            f"trained/{command.split()[1]} {name}",
            command,
            says=says if command == _SCORE else "",
            files={"p.csv": PAIRS, "m": _trained_with(change)},
            writes=("m",),
        )

    def foreign(folder: Path) -> None:
        folder.mkdir()
        (folder / "README.md").write_text("mine", encoding="utf-8")

    renamed = _trained_with(_json("condsim.json", lambda c: c.update(name="other")))
    for name, make in {"a trained model": renamed, "files of the user": foreign}.items():
        yield Case(
            f"trained/export onto {name}",
            "condsim export ../base/bi --output m",
            files={"m": make},
        )


_RECIPE = """name: tiny
train: ../base/train.csv
dev: ../base/train.csv
backbone: ../base/backbone
objective: {mse: 1.0}
epochs: 1
batch_size: 8
max_seq_length: 32
"""
_SWEEP = "name: s\nrecipe: r.yaml\nsampler: random\nspace: {learning_rate: {uniform: [0.1, 0.2]}}\n"
_MISSING_SOURCE = "sources: {x: {file: no.csv, objective: {mse: 1.0}}}\nsteps: 2\n"


def trainings() -> Iterator[Case]:
    """Recipes and sweeps that cannot be run, found before anything is trained or left."""
    for name, (text, says, lines) in {
        "no file of a source": (_RECIPE + _MISSING_SOURCE, "no.csv", 1),
        "a dev file of one row": (_RECIPE.replace("dev: ../base/train", "dev: one"), "one", 3),
        "a folder as backbone": (_RECIPE.replace("../base/backbone", "."), "backbone|load", 3),
    }.items():
        yield Case(
            f"trained/train with {name}",
            "condsim train r.yaml --output run",
            says=says,
            files={"r.yaml": text, "one.csv": HEAD + ROW},
            lines=lines,
        )
    for name, (text, says) in {
        "trials without end": (_SWEEP + "trials: 1000000000\n", "trials"),
        "a bound of 400 digits": (
            _SWEEP.replace("0.2", "1" + "0" * 400) + "trials: 2\n",
            "learning_rate",
        ),
        "a seed of 33 bits": (_SWEEP + "trials: 1\nseeds: [4294967296]\n", "seeds"),
    }.items():
        yield Case(
            f"trained/sweep with {name}",
            "condsim sweep s.yaml --output sw",
            says=says,
            files={"r.yaml": _RECIPE, "s.yaml": text},
        )
    # A limit on the size of files stands for a full disk.
    yield Case(
        "trained/train without space",
        "ulimit -f 100; condsim train r.yaml --output run --set checkpoint_steps=1",
        says="cannot be written",
        files={"r.yaml": _RECIPE},
        writes=("run",),
        lines=9,
    )
    yield Case(
        "trained/sweep without space",
        "ulimit -f 40; condsim sweep s.yaml --output sw",
        says="sw",
        files={"r.yaml": _RECIPE, "s.yaml": _SWEEP + "trials: 1\n"},
        writes=("sw",),
        lines=9,
    )


CASES = [*default_models()]
TRAINED = [*trained_models(), *trainings()]
