"""``condsim.json``: the settings of a model folder."""

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
from condsim.errors import ModelError
from condsim.io import expanded, packaged_folder, sha256_of, write_text
from condsim.model.calibration import Calibration
from condsim.model.conditions import Inputs, Layout, Order

DEFAULT_FOLDER = Path(__file__).resolve().parents[1] / "assets" / "default"
"""The folder of the model that ships with condsim."""
CONTEXTS_FILE = "contexts.yaml"
"""The file that only the folder of an origin model has (`condsim.contexts`)."""

_PARTS = (".json", ".txt", ".model", ".onnx", ".safetensors", ".bin", ".py", ".yaml", ".jinja")
_NOT_THE_MODEL = ("checkpoint", "training.json", "report.json", "recipe.yaml")


def model_folder(model: str | Path) -> Path:
    """Finds the folder that a name stands for: that of the model that ships for ``default``."""
    return DEFAULT_FOLDER if model == "default" else expanded(model)


def revision_of(model: str | Path) -> str | None:
    """Finds the version of a model.

    Args:
        model: ``default``, a folder, a file or a Hub name.

    Returns:
        A hash of the contents of its files, or the commit of what was downloaded from the Hub. None
        for a model that was not downloaded yet, and for a prompted model or a pipeline of
        `condsim.contexts`, which keep their own answers.
    """
    packaged = packaged_folder(model) if isinstance(model, str) else None
    path = packaged or model_folder(model)
    if path.is_file():
        return None if path.suffix in (".yaml", ".yml") else sha256_of(path)[:16]
    if path.is_dir():
        return None if (path / CONTEXTS_FILE).is_file() else _folder_revision(path)
    return _hub_commit(str(model))


def _folder_revision(folder: Path) -> str:
    """Hashes the files a model is loaded from, names and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder)
        if path.suffix not in _PARTS or any(
            part.startswith(_NOT_THE_MODEL) for part in parts.parts
        ):
            continue
        digest.update(f"{parts.as_posix()} {sha256_of(path)}\n".encode())
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


FILE_NAME = "condsim.json"
FORMAT = 1
_MOST = 1_000_000  # of a dimension or a number of tokens

Kind = Literal["bi-encoder", "tri-encoder", "cross-encoder"]
Fact = str | int | float


@dataclass(frozen=True)
class Settings:
    """How a model is to be used.

    Attributes:
        kind: What the model is.
        name: Short name, shown in tables.
        order: Order of condition and sentence, and whether conditions are bare.
        calibration: From raw similarity to a score in [0, 1]; None if it was never fitted.
        dimension: Length of an embedding; None for a cross-encoder.
        layout: How a cross-encoder's texts are joined; files of before it was noted have pairs.
        inputs: What a cross-encoder is given of a row.
        max_seq_length: Longest input in tokens, both texts together; bi- and tri-encoders read what
            is longer in pieces. None where the model's own configuration says it.
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
        """Writes ``condsim.json``; raises `InputError` if the folder does not exist."""
        content = {"format": FORMAT} | {one.name: getattr(self, one.name) for one in fields(self)}
        content["calibration"] = self.calibration and self.calibration.to_dict()
        content["facts"] = dict(self.facts)
        write_text(Path(folder, FILE_NAME), json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path | str) -> Settings:
        """Reads the ``condsim.json`` of a model folder; ignores unknown keys.

        Raises:
            ModelError: If the file is missing, damaged, of a newer format or breaks a rule.
        """
        path = Path(folder, FILE_NAME)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelError(f"{path} is missing; the folder is no condsim model.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise ModelError(
                f"{path} cannot be read as JSON ({error}); get the model anew."
            ) from None
        if not isinstance(content, dict):
            raise ModelError(f"{path} must hold a JSON object. Got {content!r} instead.")
        if content.get("format") != FORMAT:
            raise ModelError(
                f"{path}: 'format' must be {FORMAT}. Got {content.get('format')!r} instead; a "
                "newer condsim may be needed."
            )
        try:
            return cls._of(content)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Settings:
        """Checks the values of a file, without pydantic, which would slow `condsim.load` down."""
        content = {"layout": "pair", "inputs": "both"} | content
        for key, values in (
            ("kind", Kind),
            ("order", Order),
            ("layout", Layout),
            ("inputs", Inputs),
        ):
            if (given := content.get(key)) not in (known := get_args(values)):
                raise ModelError(
                    f"{key!r} must be one of {', '.join(known)}. Got {given!r} instead."
                )
        for key in ("dimension", "max_seq_length"):
            given = content.get(key)
            if given is not None and (type(given) is not int or not 0 < given <= _MOST):
                raise ModelError(
                    f"{key!r} must be a whole number from 1 to {_MOST}, or null. "
                    f"Got {reprlib.repr(given)} instead."
                )
        facts = content.get("facts") or {}
        if not isinstance(facts, dict):
            raise ModelError(f"'facts' must be a JSON object. Got {facts!r} instead.")
        calibration = content.get("calibration")
        return cls(
            kind=content["kind"],
            name=str(content.get("name") or "unnamed"),
            order=content["order"],
            calibration=None if calibration is None else Calibration.from_dict(calibration),
            dimension=content.get("dimension"),
            max_seq_length=content.get("max_seq_length"),
            layout=content["layout"],
            inputs=content["inputs"],
            facts=facts,
            condsim=str(content.get("condsim", "unknown")),
        )
