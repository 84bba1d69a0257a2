"""What needs torch: damaged folders of trained models, export, averages, trainings, sweeps.

The folder of a case lies beside ``base``, which holds ``bi`` (a random bi-encoder as training
leaves it), ``backbone`` (its checkpoint) and ``train.csv``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.harness import Case
from tests.faults.models import DEFAULT
from tests.faults.reading import HEAD, PAIRS, ROW

_SCORE = "condsim score --model m --file p.csv --output o.csv"
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


def _copied(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """Makes a copy of the bi-encoder in which one thing is changed."""

    def make(folder: Path) -> None:
        shutil.copytree(folder.parent.parent / "base" / "bi", folder)
        change(folder)

    return make


def _weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        path = folder / "model.safetensors"
        save_file(change(load_file(path)), path, metadata={"format": "pt"})

    return make


def _pickled(folder: Path) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save({"a": torch.zeros(2)}, folder / "pytorch_model.bin")


def _written(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _json(name: str, change: Callable[[Any], None]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        change(content)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")

    return make


def _without_tokenizer(folder: Path) -> None:
    for path in [*folder.glob("tokenizer*"), *folder.glob("vocab*")]:
        path.unlink()


def _cut(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:2000])


_LOADED = "cannot be loaded|damaged"
_DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "weights cut": (_cut, _LOADED),
    "weights empty": (_written("model.safetensors", b""), _LOADED),
    "weights of text": (_written("model.safetensors", b"no weights"), _LOADED),
    "weights in a pickle": (_pickled, "pickle"),
    "weights without a layer": (
        _weights(lambda all_: {key: one for key, one in all_.items() if ".layer.1." not in key}),
        "lacks",
    ),
    "weights of NaN": (
        _weights(lambda all_: {key: one * float("nan") for key, one in all_.items()}),
        "finite",
    ),
    "a size of text": (_json("config.json", lambda c: c.update(hidden_size="x")), _LOADED),
    "another size": (_json("config.json", lambda c: c.update(hidden_size=48)), "config.json"),
    "a deep config": (_written("config.json", b"[" * 100_000), _LOADED),
    "a module of a number": (_json("modules.json", lambda c: c[0].update(type=5)), _LOADED),
    "a module of the system": (
        _json("modules.json", lambda c: c[0].update(type="os.system")),
        "not part of Sentence Transformers",
    ),
    "a cross-encoder by its settings": (
        _json("condsim.json", lambda c: c.update(kind="cross-encoder")),
        "lacks|cross-encoder",
    ),
    "no tokenizer": (_without_tokenizer, "tokenizer"),
    "another tokenizer": (
        lambda folder: shutil.copy(DEFAULT / "tokenizer.json", folder),
        "tokenizer",
    ),
}


def folders() -> Iterator[Case]:
    """Damaged folders of trained models are refused by what scores and by what exports."""
    for name, (change, says) in _DAMAGES.items():
        for command in (_SCORE, "condsim export m --output o"):
            yield Case(
                f"trained/{command.split()[1]} {name}",
                command,
                says=says if "export" not in command else "",
                files={"p.csv": PAIRS, "m": _copied(change)},
                writes=("m",),
            )
    other = _copied(_json("condsim.json", lambda content: content.update(name="other")))
    exported = {
        "model.onnx": b"a graph",
        "condsim.json": json.dumps({"format": 1, "kind": "bi-encoder", "name": "other"}).encode(),
    }

    def earlier(folder: Path) -> None:
        folder.mkdir()
        for name, content in exported.items():
            (folder / name).write_bytes(content)

    def foreign(folder: Path) -> None:
        folder.mkdir()
        (folder / "README.md").write_text("mine", encoding="utf-8")

    for name, place in {
        "a trained model": other,
        "an exported model": earlier,
        "what is not ours": foreign,
        "a file": lambda path: path.write_bytes(b""),
    }.items():
        yield Case(
            f"trained/export onto {name}",
            "condsim export ../base/bi --output m",
            files={"m": place},
        )
    yield Case("trained/average of a model", "condsim average ../base/bi ../base/bi --output o")


def trainings() -> Iterator[Case]:
    """Recipes and sweeps that cannot be run, found before anything is trained or left."""
    recipes = {
        "a name of two parts": (_RECIPE.replace("name: tiny", "name: a/b"), "name"),
        "no dev file": (_RECIPE.replace("dev: ../base/train.csv", "dev: no.csv"), "no.csv"),
        "no file of a source": (
            _RECIPE + "sources: {x: {file: no.csv, objective: {mse: 1.0}}}\nsteps: 2\n",
            "no.csv",
        ),
        "a dev file of one row": (_RECIPE.replace("dev: ../base/train.csv", "dev: one.csv"), "one"),
        "a folder as backbone": (_RECIPE.replace("../base/backbone", "."), "backbone|loaded|load"),
    }
    for name, (text, says) in recipes.items():
        yield Case(
            f"trained/train with {name}",
            "condsim train r.yaml --output run",
            says=says,
            files={"r.yaml": text, "one.csv": HEAD + ROW},
            lines=3 if "row" in name or "backbone" in name else 1,
        )
    yield Case(
        "trained/train without space",
        "ulimit -f 100; condsim train r.yaml --output run --set checkpoint_steps=1",
        says="cannot be written",
        files={"r.yaml": _RECIPE},
        writes=("run",),
        lines=9,
    )
    sweeps = {
        "trials without end": (_SWEEP + "trials: 1000000000\n", "trials"),
        "a bound of 400 digits": (
            _SWEEP.replace("0.2", "1" + "0" * 400) + "trials: 2\n",
            "learning_rate",
        ),
        "a seed of 33 bits": (_SWEEP + "trials: 1\nseeds: [4294967296]\n", "seeds"),
        "seeds without end": (_SWEEP + "trials: 1\nseeds: 1000000000\n", "seeds"),
    }
    for name, (text, says) in sweeps.items():
        yield Case(
            f"trained/sweep with {name}",
            "condsim sweep s.yaml --output sw",
            says=says,
            files={"r.yaml": _RECIPE, "s.yaml": text},
        )
    yield Case(
        "trained/sweep without space",  # a limit on files stands for a full disk
        "ulimit -f 40; condsim sweep s.yaml --output sw",
        says="study.db|sw",
        files={"r.yaml": _RECIPE, "s.yaml": _SWEEP + "trials: 1\n"},
        writes=("sw",),
        lines=9,
    )
    yield Case(
        "trained/sweep in a folder with a percent sign",
        "condsim sweep s.yaml --output sw%20x",
        (0,),
        files={"r.yaml": _RECIPE, "s.yaml": _SWEEP + "trials: 1\nseeds: 1\n"},
        writes=("sw%20x",),
        made=("sw%20x",),
    )


CASES = [*folders(), *trainings()]
