"""``condsim.json``: what a model folder says about itself, beside its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from condsim import __version__
from condsim.encoders.conditioning import Order
from condsim.errors import ModelError
from condsim.files import replacing
from condsim.scorers.calibration import Calibration

__all__ = ["FILE_NAME", "FORMAT", "Fact", "Kind", "Settings"]

FILE_NAME = "condsim.json"
FORMAT = 1

Kind = Literal["bi-encoder", "tri-encoder", "cross-encoder"]
Fact = str | int | float


@dataclass(frozen=True)
class Settings:
    """How a model is to be used.

    Attributes:
        kind: What the model is.
        name: Short name, shown in tables.
        order: Which of condition and sentence comes first in what the model reads.
        calibration: From raw similarity to a score in [0, 1]; None if it was never fitted.
        dimension: Length of an embedding; None for a cross-encoder.
        max_seq_length: Longest input in tokens, both texts together; what is longer is cut. None
            where the model's own configuration says it.
        facts: Anything else worth showing (parameters, training data, dev Spearman ...).
        condsim: Version of condsim that wrote the file.
    """

    kind: Kind
    name: str
    order: Order
    calibration: Calibration | None = None
    dimension: int | None = None
    max_seq_length: int | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    condsim: str = __version__

    def save(self, folder: Path | str) -> None:
        """Writes ``condsim.json``.

        Args:
            folder: The model folder; it must exist.

        Raises:
            InputError: If the folder does not exist.
        """
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "name": self.name,
            "order": self.order,
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "dimension": self.dimension,
            "max_seq_length": self.max_seq_length,
            "facts": dict(self.facts),
            "condsim": self.condsim,
        }
        with replacing(Path(folder, FILE_NAME)) as partial:
            partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path | str) -> Settings:
        """Reads ``condsim.json``.

        Args:
            folder: The model folder.

        Returns:
            The settings. Keys that are not known are ignored.

        Raises:
            ModelError: If the file is missing, damaged, of a newer format or breaks a rule.
        """
        path = Path(folder, FILE_NAME)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelError(f"{path} is missing; the folder is no condsim model.") from None
        except (OSError, ValueError) as error:
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
            return cls._from(content)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None

    @classmethod
    def _from(cls, content: dict[str, Any]) -> Settings:
        calibration = content.get("calibration")
        facts = content.get("facts") or {}
        if not isinstance(facts, dict):
            raise ModelError(f"'facts' must be a JSON object. Got {facts!r} instead.")
        return cls(
            kind=_one_of(content, "kind", get_args(Kind)),
            name=str(content.get("name") or "unnamed"),
            order=_one_of(content, "order", get_args(Order)),
            calibration=None if calibration is None else Calibration.from_dict(calibration),
            dimension=_whole(content, "dimension"),
            max_seq_length=_whole(content, "max_seq_length"),
            facts=facts,
            condsim=str(content.get("condsim", "unknown")),
        )


def _one_of(content: Mapping[str, Any], key: str, known: tuple[str, ...]) -> Any:  # noqa: ANN401
    value = content.get(key)
    if value not in known:
        raise ModelError(f"{key!r} must be one of {', '.join(known)}. Got {value!r} instead.")
    return value


def _whole(content: Mapping[str, Any], key: str) -> int | None:
    value = content.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise ModelError(f"{key!r} must be a whole number above 0, or null. Got {value!r} instead.")
