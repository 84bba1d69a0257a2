"""Settings of a model folder in ``condsim.json``, and the revision of a model."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from condsim import __version__
from condsim.errors import MissingExtraError, ModelError, located, one_line
from condsim.io import write_text
from condsim.model.calibration import Calibration
from condsim.model.inputs import Inputs, Layout, Order
from condsim.model.minilm import packaged_folder
from condsim.paths import asset, expanded, sha256_of

DEFAULT_FOLDER = asset("default").resolve()
"""Folder of the default model."""

LARGE_PACKAGE = "condsim_large"
"""Package of the larger model, ``packages/condsim-large`` in the repository."""

CONTEXTS_FILE = "contexts.yaml"
"""File that only the folder of an origin model contains (condsim-contexts)."""

MODEL_FILE = "model.onnx"
"""File of an exported model."""

FILE_NAME = "condsim.json"
FORMAT = 1
MAX_DIMENSION = 1_000_000

_MODEL_SUFFIXES = tuple(".json .txt .model .onnx .safetensors .bin .py .yaml .jinja".split())
_OTHER_FILES = ("checkpoint", "training.json", "report.json", "recipe.yaml")

Kind = Literal["bi-encoder", "tri-encoder", "cross-encoder"]
Fact = str | int | float


@dataclass(frozen=True)
class ModelSettings:
    """Settings with which a model is used.

    Attributes:
        order: Order of condition and sentence, and whether conditions are bare.
        calibration: From raw similarity to a score in [0, 1]; None if it was never fitted.
        dimension: Length of an embedding; None for a cross-encoder.
        layout: Layout of a cross-encoder's texts; older files without it have pairs.
        inputs: The part of a row that a cross-encoder reads.
        max_seq_length: Longest input in tokens, both texts together; bi- and tri-encoders read a
            longer one in chunks. None if the model's own configuration says it.
        facts: Anything else worth showing (parameters, training data, dev Spearman ...).
        condsim: Version of condsim that wrote the file.
    """

    kind: Kind
    name: str
    order: Order
    calibration: Calibration | None = None
    dimension: int | None = None
    max_seq_length: int | None = None
    layout: Layout = "pair"
    inputs: Inputs = "both"
    facts: Mapping[str, Fact] = field(default_factory=dict)
    condsim: str = __version__

    def save(self, folder: Path | str) -> None:
        """Write ``condsim.json``; InputError if the folder does not exist."""
        content = {"format": FORMAT} | {
            item.name: getattr(self, item.name) for item in fields(self)
        }
        content["calibration"] = self.calibration and self.calibration.to_dict()
        content["facts"] = dict(self.facts)
        write_text(Path(folder, FILE_NAME), json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path | str) -> ModelSettings:
        """Read the ``condsim.json`` of a model folder; ignore unknown keys."""
        path = Path(folder, FILE_NAME)
        if not path.exists():
            raise ModelError(f"{path} is missing; the folder is not a condsim model.")
        causes = (OSError, ValueError, RecursionError)
        with one_line(f"{path} is not valid JSON", *causes, kind=ModelError):
            content = json.loads(path.read_text(encoding="utf-8"))
        with located(str(path)):
            return cls._from_dict(content)

    @classmethod
    def _from_dict(cls, content: Any) -> ModelSettings:  # noqa: ANN401
        """Check the values of a file, without pydantic, which would slow `condsim.load` down."""
        _check_setting(isinstance(content, dict), "the settings", "a JSON object", content)
        values = {"format": None, "layout": "pair", "inputs": "both"} | content
        rule = f"{FORMAT} for this version of condsim"
        _check_setting(values["format"] == FORMAT, "'format'", rule, values["format"])
        choices = {"kind": Kind, "order": Order, "layout": Layout, "inputs": Inputs}
        for key, literal in choices.items():
            names, value = get_args(literal), values.get(key)
            _check_setting(value in names, repr(key), f"one of {', '.join(names)}", value)
        for key in ("dimension", "max_seq_length"):
            value = values.get(key)
            is_number = type(value) is int and 0 < value <= MAX_DIMENSION
            rule = f"a whole number from 1 to {MAX_DIMENSION:,}, or null"
            _check_setting(value is None or is_number, repr(key), rule, value)
        facts = values.get("facts") or {}
        _check_setting(isinstance(facts, dict), "'facts'", "a JSON object", facts)
        calibration = values.get("calibration")
        return cls(
            kind=values["kind"],
            name=str(values.get("name") or "unnamed"),
            order=values["order"],
            calibration=None if calibration is None else Calibration.from_dict(calibration),
            dimension=values.get("dimension"),
            max_seq_length=values.get("max_seq_length"),
            layout=values["layout"],
            inputs=values["inputs"],
            facts=facts,
            condsim=str(values.get("condsim", "unknown")),
        )


def _check_setting(holds: bool, subject: str, rule: str, value: object) -> None:
    if not holds:
        raise ModelError(f"{subject} must be {rule}; got {reprlib.repr(value)}.")


def model_folder(model: str | Path) -> Path:
    """Find the folder of a model; ``default`` and ``large`` are the models made for condsim."""
    if model == "large":
        return weights_folder(LARGE_PACKAGE, "model")
    return DEFAULT_FOLDER if model == "default" else expanded(model)


def weights_folder(package: str, kind: str) -> Path:
    """Find the weights of a package made for condsim, which has a larger model or judge."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        advice = f"pip install {package.replace('_', '-')}"
        problem = f"The {kind} 'large' is a separate package, which is not installed"
        raise MissingExtraError(f"{problem}: {advice}")
    return Path(found.origin).parent / "model"


def name_of_folder(folder: Path) -> str:
    """Return what `model_folder` finds a folder by, on other machines as well where it can."""
    if folder == DEFAULT_FOLDER:
        return "default"
    is_large = (folder.parent.name, folder.name) == (LARGE_PACKAGE, "model")
    return "large" if is_large else str(folder)


def revision_of(model: str | Path) -> str | None:
    """Find the revision of a model by its name, without loading it.

    It is a hash of the contents of its files, or the commit of a download from the Hub. None for a
    model that is not downloaded yet, and for a prompted model or a run of condsim-contexts,
    which cache their own answers.
    """
    packaged = packaged_folder(model) if isinstance(model, str) else None
    path = packaged or model_folder(model)
    if path.is_file():
        return None if path.suffix in (".yaml", ".yml") else sha256_of(path)[:16]
    if path.is_dir():
        return None if (path / CONTEXTS_FILE).is_file() else _folder_revision(path)
    return _hub_commit(str(model))


def _folder_revision(folder: Path) -> str:
    """Hash the names and contents of the files that a model is loaded from."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_other = any(part.startswith(_OTHER_FILES) for part in name.parts)
        if path.suffix in _MODEL_SUFFIXES and not is_other:
            digest.update(f"{name.as_posix()} {sha256_of(path)}\n".encode())
    return digest.hexdigest()[:16]


def _hub_commit(name: str) -> str | None:
    """Find the commit of a model in the local cache of the Hub."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(config).parent.name if isinstance(config, str) else None
