"""Other people's wordings of a condition, and the vector that a text is to have under all of them.

`data/wordings/train.jsonl` holds conditions with up to six wordings, written for condsim. A text's
target is the mean of its vectors under the condition and its wordings.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.files import iter_rows
from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.load import load_task
from condsim.data.rewordings import load_rewordings
from condsim.data.written import WrittenTask
from condsim.errors import InputError
from condsim.model.embedding import EmbeddingScorer
from condsim.rows.records import TableRow, write_rows
from condsim.types import FloatArray

WORDINGS = Path(__file__).resolve().parents[1] / "data" / "wordings" / "train.jsonl"

_TEXTS = 4  # of a condition, each under every wording
_OF_DOMAIN = 8  # further texts that a condition of a written pair may be asked of
_DRESSED = (
    "the {c}",
    "What is the {c}?",
    "with respect to the {c}",
    "{c}, nothing else",
    "Compare the {c}.",
    "{c}?",
)


@dataclass(frozen=True, slots=True)
class Input(TableRow):
    """A text under a condition; the rows of a group follow one another and share a vector."""

    sentence: str
    condition: str
    group: int


def read_wordings(path: Path = WORDINGS) -> dict[str, list[str]]:
    """Read the wordings of each condition, without those that ``condsim robustness`` measures."""
    measured = frozenset(text_digest(wording) for wording in load_rewordings().conditions)
    lines = path.read_text(encoding="utf-8").splitlines()
    return {
        one["condition"]: [w for w in one["wordings"] if text_digest(w) not in measured]
        for one in map(json.loads, lines)
    }


def write_consistent(
    labelled: Sequence[Path],
    output: Path,
    *,
    wordings: Mapping[str, Sequence[str]],
    exclude: HeldOutTexts,
    seed: int = 0,
) -> None:
    """Draw texts under every wording of a condition.

    Args:
        labelled: Rows whose conditions and texts are used, and whose labels are not.
        output: The file of inputs.
        wordings: Of each condition.
        exclude: Texts that no row has.
        seed: Of the draw of texts.
    """
    draw = random.Random(seed)
    texts_of: dict[str, set[str]] = defaultdict(set)
    for path in labelled:
        task = load_task(path)
        rows = zip(task.sentences1, task.sentences2, task.conditions or (), strict=True)
        for *texts, condition in rows:
            texts_of[condition].update(text for text in texts if text not in exclude)
        if isinstance(task, WrittenTask):
            _add_of_domain(texts_of, task, draw, exclude)

    def groups() -> Iterator[tuple[str, Sequence[str]]]:
        for condition, others in sorted(wordings.items()):
            texts = sorted(texts_of.get(condition, ()))
            dressed = draw.choice(_DRESSED).format(c=_bare(condition))
            for text in draw.sample(texts, min(_TEXTS, len(texts))):
                yield text, [*dict.fromkeys((condition, *others, dressed))]

    write_rows(
        (
            Input(text, wording, group)
            for group, (text, each) in enumerate(groups())
            for wording in each
        ),
        output,
        kind=Input,
    )


def shared_vectors(inputs: Path, scorer: EmbeddingScorer) -> FloatArray:
    """Encode the inputs of a file and give each the mean of its group, ``(rows, dimension)``."""
    rows = list(iter_rows(inputs, columns=("sentence", "condition", "group")))
    if not rows:
        raise InputError(f"{inputs} has no row: no condition of the sources has wordings.")
    vectors = scorer.encode(
        [row.text("sentence") for row in rows], [row.text("condition") for row in rows]
    )
    groups = np.array([int(row.text("group")) for row in rows])
    sums = np.zeros((groups.max() + 1, scorer.dimension), np.float32)
    np.add.at(sums, groups, vectors)
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    shared: FloatArray = sums[groups]
    return shared


def _add_of_domain(
    texts_of: dict[str, set[str]], task: WrittenTask, draw: random.Random, exclude: HeldOutTexts
) -> None:
    """Add texts of the domain to each condition: most stand in one pair, whose texts are two."""
    of_domain: dict[str, set[str]] = defaultdict(set)
    domain_of: dict[str, str] = {}
    rows = zip(task.domains, task.conditions or (), task.sentences1, task.sentences2, strict=True)
    for domain, condition, *texts in rows:
        of_domain[domain].update(text for text in texts if text not in exclude)
        domain_of.setdefault(condition, domain)
    for condition, domain in domain_of.items():
        texts = sorted(of_domain[domain])
        texts_of[condition].update(draw.sample(texts, min(_OF_DOMAIN, len(texts))))


def _bare(condition: str) -> str:
    return condition.lower().removeprefix("the ").rstrip("?.")
