"""A criterion: a condition that was learned from labels, in one small file."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeGuard

import numpy as np

from condsim.errors import InputError, ModelError, one_line
from condsim.io import write_text
from condsim.model.applicability import MIN_PROBE_COSINE, PROBE
from condsim.model.calibration import Calibration
from condsim.types import BoolArray, FloatArray, IntArray, html_table, shortened

SUFFIX = ".criterion"
"""Suffix of the files of criteria."""

SHARE = 0.3
"""Share of the embedding without the condition in the vectors that a criterion is learned on."""

ALONE = 1e6
"""Weight of the condition where learning did not help: cosines differ by a millionth."""

FORMAT = 1
_KIND = "condsim criterion"
_MAX_BYTES = 300_000
# Of a file: all but numbers and values; a value's bias and the scales of its two rows; a number.
_REST_BYTES, _VALUE_BYTES, _NUMBER_BYTES = 2_000, 40, 12
# A hostile file is refused before it is read.
_MAX_FILE_BYTES = 4_000_000
_INT8 = 127
# Larger numbers overflow in products.
_MAX_NUMBER = 1e9


class Encoder(Protocol):
    """Model of a criterion: its name and its embeddings, of length 1."""

    name: str

    def encode(
        self, sentences: Sequence[str], condition: str | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Encode n texts under a condition, ``(n, d)``."""


class HeldOut(NamedTuple):
    """Labeled pairs of texts, scored by what was not learned from either text.

    Attributes:
        scores: The scores, ``(p,)``, calibrated.
        texts: Indices of the two texts, ``(p, 2)``.
        same: Whether they have the same value, ``(p,)``.
    """

    scores: FloatArray
    texts: IntArray
    same: BoolArray


@dataclass(frozen=True)
class Figures:
    """Figures of a criterion on pairs, by cross-validation over texts.

    Attributes:
        labels: Number of labeled texts, or of labeled pairs.
        auc: Area under the ROC curve over pairs: how often a pair with the same value scores
            higher than a pair with different values, in [0, 1]. Texts are never scored by what was
            learned from them.
        low: Lower end of its 95 % interval, from a bootstrap over texts.
        high: Upper end.
        zero_shot: The same figure of the condition alone, before anything is learned.
        accuracy: Share of texts whose value is assigned correctly; None without values.
        majority: Accuracy of always naming the most frequent value; None without values.
        turned_away: Share of texts of a known value that are assigned none; None without values.
        let_in: Share of texts of an unknown value that are assigned a known one, measured by
            leaving out each value in turn; None with fewer than three values.
    """

    labels: int
    auc: float
    low: float
    high: float
    zero_shot: float
    accuracy: float | None = None
    majority: float | None = None
    turned_away: float | None = None
    let_in: float | None = None


@dataclass(frozen=True, eq=False)
class Assignments:
    """The value of each of n texts.

    Attributes:
        values: The value; None for a text that is unlike all labeled ones.
        probability: Probability of the most likely value, ``(n,)``, also where the value is None.
        probabilities: Probability of each value of the criterion, ``(n, k)``; rows sum to 1.
    """

    values: list[str | None]
    probability: FloatArray
    probabilities: FloatArray

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Criterion:
    """A condition that was learned from labeled texts or pairs; it goes where a condition goes.

    With c the embedding of a text under the condition, and x the same with a share of 0.3 of the
    embedding without it, two texts are compared by the cosine of ``[√w c, p, A x]``: p are the
    probabilities of the values, a softmax of ``weights · x + bias``, and A is the map that labeled
    pairs give. Where learning did not help, w is so large that only c counts.

    Attributes:
        condition: The condition, such as ``"the problem"``.
        values: The values it knows, k of them; none if it was learned from pairs.
        model: Name of the model that it was learned with; no other model can use it.
        probe: That model's embedding of a fixed text, ``(d,)``, by which it is recognized.
        weights: Weights of the values, ``(k, 2 d)``.
        bias: Bias of each value, ``(k,)``.
        centers: Mean vector of the texts of each value, ``(k, 2 d)``, each of length 1.
        limit: Lowest cosine to the nearest center of a text that has one of the values.
        map: The map A, ``(r, 2 d)``; r is 0 if it was learned from values.
        weight: The weight w of the embedding under the condition, above 0.
        helps: False if the criterion falls back to the condition alone.
        calibration: From cosine to a score: 0.5 is as likely as not to be the same.
        figures: How well it does.
        labels: First 16 hex digits of the SHA-256 of the labels.
        held_out: The labeled pairs, from which `learned_threshold` finds a threshold; None if the
            criterion was read from a file.
    """

    condition: str
    values: tuple[str, ...]
    model: str
    probe: FloatArray
    weights: FloatArray
    bias: FloatArray
    centers: FloatArray
    limit: float
    map: FloatArray
    weight: float
    helps: bool
    calibration: Calibration
    figures: Figures
    labels: str
    encoder: Encoder | None = field(default=None, repr=False)
    held_out: HeldOut | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The condition, and the start of the hash of the labels: unique among criteria."""
        return f"{self.condition} [{self.labels[:8]}]"

    @property
    def dimension(self) -> int:
        """Length of an embedding under the criterion."""
        width: int = self.map.shape[1] // 2
        return width + len(self.values) + len(self.map)

    def __str__(self) -> str:
        """Give the condition."""
        return self.condition

    def __repr__(self) -> str:
        """Give the condition, the values and the main figure."""
        learned = f"{len(self.values)} values" if self.values else "pairs"
        figures = self.figures
        return (
            f"Criterion({self.condition!r}, {learned}, {figures.labels:,} labels, "
            f"AUC {100 * figures.auc:.1f} (zero-shot {100 * figures.zero_shot:.1f}))"
        )

    def _repr_html_(self) -> str:
        rows = [(name, "" if value is None else value) for name, value in self.summary()]
        return html_table(repr(self), ("", "value"), rows)

    def summary(self) -> list[tuple[str, object]]:
        """List what a reader wants to know of the criterion, as names and values."""
        figures = self.figures
        between = f"{100 * figures.low:.1f} to {100 * figures.high:.1f}"
        rows: list[tuple[str, object]] = [
            ("condition", self.condition),
            ("values", shortened(", ".join(self.values), 500) or "learned from pairs"),
            ("labels", figures.labels),
            ("model", self.model),
            ("AUC of pairs", f"{100 * figures.auc:.1f} [{between}]"),
            ("without learning", f"{100 * figures.zero_shot:.1f}"),
            ("used", "as learned" if self.helps else "the condition alone: learning did not help"),
        ]
        percent = {
            "texts given the right value": figures.accuracy,
            "always the most frequent value": figures.majority,
            "known values turned away": figures.turned_away,
            "unknown values let in": figures.let_in,
        }
        rows += [
            (name, f"{100 * share:.0f} %") for name, share in percent.items() if share is not None
        ]
        return rows

    def bound(self, encoder: Encoder) -> Self:
        """Return the criterion with the model that `assign` uses; a ModelError for another one."""
        self.check(encoder)
        return replace(self, encoder=encoder)

    def check(self, encoder: Encoder) -> None:
        """Refuse a model that the criterion was not learned with, with a ModelError."""
        text, condition = PROBE
        probe = encoder.encode([text], condition)[0]
        cosine = float(probe @ self.probe) if probe.shape == self.probe.shape else 0.0
        if cosine < MIN_PROBE_COSINE:
            learned = "an earlier or adapted" if self.model == encoder.name else "the"
            raise ModelError(
                f"The criterion {self.condition!r} was learned with {learned} model "
                f"{self.model!r}, not with {encoder.name!r} as it is now. Load that model, or "
                "learn the criterion again."
            )

    def embed(self, vectors: FloatArray) -> FloatArray:
        """Turn vectors of texts, ``(n, 2 d)`` as `features` gives them, into embeddings."""
        parts = [math.sqrt(self.weight) * under_condition(vectors)]
        if self.values:
            parts.append(self.probabilities(vectors))
        if len(self.map):
            parts.append(vectors @ self.map.T)
        return unit(np.concatenate(parts, axis=1))

    def probabilities(self, vectors: FloatArray) -> FloatArray:
        """Compute the probability of each value, ``(n, k)``."""
        return softmax(vectors @ self.weights.T + self.bias)

    def likeliest(self, embeddings: FloatArray) -> IntArray:
        """Return the index of the likeliest value, ``(n,)``, of texts as `embed` embeds them."""
        width = self.map.shape[1] // 2
        return np.asarray(embeddings[:, width : width + len(self.values)].argmax(axis=1))

    def assign(
        self,
        texts: Sequence[str] = (),
        *,
        model: Encoder | None = None,
        vectors: FloatArray | None = None,
    ) -> Assignments:
        """Assign each text the most likely of the values, or none of them.

        A text is given none where its vector is further from all values than nine in ten of the
        labeled texts are from theirs. `Figures.turned_away` and `Figures.let_in` say how often
        that is wrong.

        Args:
            texts: The texts, length n.
            model: The model that the criterion was learned with; by default the one that it was
                learned or loaded with.
            vectors: Vectors of the texts, ``(n, 2 d)``, if you have them: what
                ``model.encode(texts, criterion.condition, overall=0.3)`` gives.

        Raises:
            InputError: If the criterion has no values, a text is empty, or there is no model.
            ModelError: If it is another model.

        Example:
            >>> import condsim
            >>> model = condsim.load()
            >>> things = ["car", "bus", "van", "bike"]
            >>> texts = [f"a {color} {thing}" for color in ("red", "blue") for thing in things]
            >>> color = model.learn(texts, ["red"] * 4 + ["blue"] * 4, condition="the color")
            >>> color.assign(["a red truck"]).values
            ['red']
        """
        if not self.values:
            raise InputError(
                f"The criterion {self.condition!r} was learned from pairs, so it has no values to "
                "assign. Learn one from labeled texts."
            )
        if vectors is None:
            vectors = self._features(texts, model or self.encoder)
        probabilities = self.probabilities(vectors)
        best = probabilities.argmax(axis=1)
        known = is_known(vectors, self.centers, self.limit)
        values = [
            self.values[value] if is_like else None
            for value, is_like in zip(best.tolist(), known.tolist(), strict=True)
        ]
        return Assignments(values, probabilities.max(axis=1), probabilities)

    def _features(self, texts: Sequence[str], encoder: Encoder | None) -> FloatArray:
        if encoder is None:
            raise InputError(
                "Give the model of the criterion, as in criterion.assign(texts, model=model), or "
                "load it with condsim.load_criterion."
            )
        if isinstance(texts, str):
            raise InputError(f"Values are assigned to a sequence of texts; got {texts[:40]!r}.")
        if encoder is not self.encoder:
            self.check(encoder)
        return features(encoder, texts, self.condition)

    def to_json(self) -> str:
        """Write the criterion as JSON, on one line."""
        content: dict[str, Any] = {"kind": _KIND, "format": FORMAT}
        for item in fields(self):
            if item.name not in ("encoder", "held_out"):
                content[item.name] = _json_of(getattr(self, item.name))
        return json.dumps(content, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, *, source: str = "The text") -> Self:
        """Read what `to_json` wrote; a ModelError, which names the source, if it is damaged."""
        causes = (LookupError, TypeError, ValueError, ArithmeticError, RecursionError)
        with one_line(f"{source}: is not a criterion", *causes, kind=ModelError):
            content = json.loads(text)
            if content["kind"] != _KIND or content["format"] != FORMAT:
                raise ValueError(f"it must be of the kind {_KIND!r} and format {FORMAT}")
            try:
                return cls._of(content)
            except ModelError:
                raise ValueError("its calibration must rise from 0 to 1") from None

    def save(self, path: Path | str) -> None:
        """Write a file of at most 300 kB, in one step."""
        write_text(Path(path), self.to_json())

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a file that `save` wrote; a ModelError if it is damaged or of another format."""
        path = Path(path)
        if not path.exists():
            raise ModelError(f"{path}: no such file.")
        with one_line(f"{path}: is not a criterion", OSError, ValueError, kind=ModelError):
            if path.stat().st_size > _MAX_FILE_BYTES:
                raise ValueError("the file is too large")
            text = path.read_text(encoding="utf-8")
        return cls.from_json(text, source=str(path))

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Self:
        values, helps = tuple(content["values"]), content["helps"]
        figures = Figures(**content["figures"])
        texts = (content["condition"], content["model"], content["labels"], *values)
        shares = [value for value in asdict(figures).values() if value is not None][1:]
        if not isinstance(content["values"], list) or not all(
            isinstance(text, str) and text.strip() for text in texts
        ):
            raise ValueError("condition, model, labels and values must be texts")
        if not isinstance(helps, bool) or not all(0 <= share <= 1 for share in shares):
            raise ValueError("'helps' must be true or false, and its figures from 0 to 1")
        if not isinstance(figures.labels, int) or figures.labels < 1:
            raise ValueError("it must have labels")
        criterion = cls(
            condition=content["condition"],
            values=values,
            model=content["model"],
            probe=_array_of(content["probe"]),
            weights=_array_of(content["weights"]),
            bias=_array_of(content["bias"]),
            centers=_array_of(content["centers"]),
            limit=float(content["limit"]),
            map=_array_of(content["map"]),
            weight=float(content["weight"]),
            helps=helps,
            calibration=Calibration.from_dict(content["calibration"]),
            figures=figures,
            labels=content["labels"],
        )
        width = 2 * criterion.probe.size
        shapes = [
            (criterion.weights, (len(values), width)),
            (criterion.bias, (len(values),)),
            (criterion.centers, (len(values), width)),
            (criterion.map, (len(criterion.map), width)),
            (criterion.probe, (width // 2,)),
        ]
        fits = all(array.shape == shape for array, shape in shapes)
        fits = fits and -1 <= criterion.limit <= 1 and 0 < criterion.weight <= ALONE
        if not fits or len(set(values)) < len(values):
            raise ValueError("its numbers do not fit together")
        return criterion


def is_criterion_file(condition: object) -> TypeGuard[str]:
    """Check that a condition names the file of a criterion."""
    return isinstance(condition, str) and condition.endswith(SUFFIX)


def features(encoder: Encoder, texts: Sequence[str], condition: str) -> FloatArray:
    """Encode texts as the vectors that criteria are learned on, ``(n, 2 d)``."""
    if isinstance(condition, Criterion) or is_criterion_file(condition):
        raise InputError(
            "A criterion is learned under a condition in words, such as 'the problem'; got the "
            f"learned criterion {str(condition)!r}."
        )
    return encoder.encode(list(texts), condition, overall=SHARE)


def under_condition(vectors: FloatArray) -> FloatArray:
    """Take the embeddings under the condition, ``(n, d)``, from vectors that `features` gives."""
    return np.asarray(vectors[:, : vectors.shape[1] // 2] / math.sqrt(1 - SHARE), np.float32)


def unit(vectors: FloatArray) -> FloatArray:
    """Scale vectors, ``(n, d)``, to length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def softmax(logits: FloatArray) -> FloatArray:
    """Turn logits, ``(n, k)``, into probabilities."""
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True), np.float32)


def is_known(vectors: FloatArray, centers: FloatArray, limit: float) -> BoolArray:
    """Check that the nearest center is near enough, ``(n,)``."""
    return np.asarray((vectors @ centers.T).max(axis=1) >= limit)


def check_values(values: Sequence[str], probe: FloatArray) -> None:
    """Refuse more values than a file holds, ahead of the work of learning them."""
    row = 2 * probe.size * 4 / 3
    held = _MAX_BYTES - _REST_BYTES - _NUMBER_BYTES * probe.size
    names = sum(len(json.dumps(value, ensure_ascii=False).encode()) for value in values)
    if names + len(values) * (2 * row + _VALUE_BYTES) > held:
        raise InputError(
            f"The labels have {len(values)} values, too many for a file of "
            f"{_MAX_BYTES // 1000} kB, which holds {held / (2 * row + _VALUE_BYTES):.0f} or fewer. "
            "Merge rare values."
        )


def rounded(rows: FloatArray) -> FloatArray:
    """Round rows, ``(k, d)``, to what a file holds: 8 bits a number, and a scale for each row."""
    return _array_of(_json_of(np.asarray(rows, np.float32)))


def _json_of(value: object) -> object:
    match value:
        case np.ndarray() if value.ndim == 2:
            scales = np.abs(value).max(axis=1, initial=1e-12) / _INT8
            whole = np.round(value / scales[:, None]).astype(np.int8)
            return {
                "shape": list(value.shape),
                "int8": base64.b64encode(whole.tobytes()).decode(),
                "scales": base64.b64encode(scales.astype("<f4").tobytes()).decode(),
            }
        case np.ndarray():
            return [round(float(number), 5) for number in value]
        case Calibration():
            return value.to_dict()
        case Figures():
            return asdict(value)
        case np.generic():
            return value.item()
    return value


def _array_of(value: Any) -> FloatArray:  # noqa: ANN401
    if isinstance(value, list):
        numbers = np.array(value, np.float64)
    else:
        whole = np.frombuffer(base64.b64decode(value["int8"], validate=True), np.int8)
        scales = np.frombuffer(base64.b64decode(value["scales"], validate=True), "<f4")
        rows, width = value["shape"]
        numbers = np.multiply(whole.reshape(rows, width), scales[:, None], dtype=np.float64)
    if not (np.abs(numbers) < _MAX_NUMBER).all():
        raise ValueError("its numbers are too large")
    return np.asarray(numbers, np.float32)
