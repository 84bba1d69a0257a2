"""Texts that belong to one part: train, dev or test.

A source says which part an item is for, by its file, its split or a hash. Items share texts,
though: of an image, a passage or an offer there are several. So the earlier part keeps a text. What
training may see is in no row of dev and test, and what settings are chosen on is in no row of test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from condsim.data.held_out import HeldOutTexts, text_digest
from papers.model.balanced import CAPTION_LABELS, caption_key
from papers.model.labeled import read_lines
from papers.model.plain import PlainVectors
from papers.model.ratings import graded, negation
from papers.model.rules import rule_groups
from papers.model.sources import (
    DEV_SETS,
    GRADED,
    IMAGE_PERCENTS,
    ROOT,
    TEST_SETS,
    Sources,
    book_sentences,
    criteria_meta,
    part_of,
    read_captions,
    read_csv,
    read_graded,
    read_tabs,
)
from papers.model.written import details, grades, read_details, rules, written

CSTS_TEXTS = ("sentence1", "sentence2")


@dataclass(frozen=True)
class Split:
    """A part, and the texts that earlier parts keep.

    Attributes:
        data: Folder of the data sets.
        part: ``dev`` or ``test``.
        earlier: Texts of the parts before.
    """

    data: Path
    part: str
    earlier: HeldOutTexts

    def free(self, texts: Iterable[str]) -> bool:
        """Return whether no earlier part has any of the texts."""
        return not any(text in self.earlier for text in texts)

    def graded(self, name: str) -> list[dict[str, str]]:
        """Rows of a file of pairs graded by people."""
        columns = GRADED[name].texts
        rows = read_graded(self.data, name, self.part)
        return [row for row in rows if self.free(row[column] for column in columns)]

    def lines(self, path: Path) -> list[dict[str, Any]]:
        """Lines of a file of an open set."""
        return [line for line in read_lines(path) if self.free(line_texts(line))]

    def set_files(self) -> dict[str, Path]:
        """Files of the open sets by name; one of dev or of test is in that part alone."""
        files = {}
        for name, facts in sorted(criteria_meta(self.data).items()):
            other = TEST_SETS if self.part == "dev" else DEV_SETS
            split = facts.get("eval_split", self.part) if name in DEV_SETS else self.part
            path = self.data / "criteria" / name / f"{split}.jsonl.gz"
            if name not in other and path.is_file():
                files[name] = path
        return files


def open_split(data: Path, part: str) -> Split:
    """Read which texts are in the parts before ``dev`` or ``test``."""
    earlier = trained_texts(data)
    if part == "test":
        earlier |= chosen_texts(data)
    return Split(data, part, HeldOutTexts(frozenset(earlier)))


def line_texts(line: Mapping[str, Any]) -> list[str]:
    """Texts of a line of an open set: one, or the two of a pair."""
    return [line[name] for name in ("text", "text1", "text2") if name in line]


def trained_texts(data: Path) -> set[bytes]:
    """Digests of every text that a source of training rows may draw.

    Counter-edits of dev begin with premises of SNLI, whose rows `write_rows` leaves out.
    """
    dev_edits = _digests(_revised_texts(data, "dev"))
    return _digests(_trained(data)) - dev_edits


def chosen_texts(data: Path) -> set[bytes]:
    """Digests of every text that settings and checkpoints are, or were, chosen on."""
    return _digests(_chosen(data))


def _digests(texts: Iterable[str]) -> set[bytes]:
    return {text_digest(text) for text in set(texts)}


def _trained(data: Path) -> Iterator[str]:
    # No source below needs plain vectors.
    sources = Sources(data, data, PlainVectors(data, data / "none"))
    for source in (graded, negation, written, rules, details, grades):
        for group in source(sources):
            yield from (text for _, text in group.inputs)
    for name in GRADED:
        yield from _graded_texts(data, name, "train")
    for name in ("snli_dev", "mnli_dev_matched"):
        for cells in read_tabs(data / "nli" / f"{name}.tsv.gz"):
            yield from cells[:2]
    yield from _revised_texts(data, "train")
    for name, facts in criteria_meta(data).items():
        path = data / "criteria" / name / "train.jsonl.gz"
        if facts["use"] == "train" and path.is_file():
            yield from _texts_of(path)
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        yield from _texts_of(path)
    yield from _columns(data / "csts-reannotated" / "train.csv", CSTS_TEXTS)
    yield from _trained_captions(data)
    yield from book_sentences(data)


def _trained_captions(data: Path) -> Iterator[str]:
    labeled = set()
    if CAPTION_LABELS.is_file():
        for row in read_csv(CAPTION_LABELS):
            labeled |= {row["first"], row["second"]}
    for image, captions in _images(data):
        is_trained = part_of(image, IMAGE_PERCENTS) == "train"
        for caption in captions:
            if is_trained or caption_key(caption.strip()) in labeled:
                yield caption


def _images(data: Path) -> Iterator[tuple[str, list[str]]]:
    for path in sorted((data / "captions").glob("*.tsv.gz")):
        yield from read_captions(path).items()


def _chosen(data: Path) -> Iterator[str]:
    for name in GRADED:
        yield from _graded_texts(data, name, "dev")
    yield from _revised_texts(data, "dev")
    for triplet in read_details("dev"):
        yield from triplet.texts
    for group in rule_groups("dev"):
        yield from (text for _, text in group.inputs)
    for name in ("*/dev", *(f"{name}/*" for name in DEV_SETS)):
        for path in sorted((data / "criteria").glob(f"{name}.jsonl.gz")):
            yield from _texts_of(path)
    yield from _columns(data / "criteria" / "dev_rows.csv", CSTS_TEXTS)
    yield from _columns(data / "csts-reannotated" / "dev.csv", CSTS_TEXTS)
    for line in (ROOT / "data" / "written" / "dev.txt").read_text("utf-8").splitlines():
        yield from line.split(" ||| ")[1:3]
    for image, captions in _images(data):
        if part_of(image, IMAGE_PERCENTS) == "dev":
            yield from captions


def _graded_texts(data: Path, name: str, part: str) -> Iterator[str]:
    for row in read_graded(data, name, part):
        yield from (row[column] for column in GRADED[name].texts)


def _revised_texts(data: Path, part: str) -> Iterator[str]:
    for kind in ("original", "revised_combined"):
        for cells in read_tabs(data / "nli" / f"cad_{kind}_{part}.tsv.gz"):
            yield from cells[:2]


def _texts_of(path: Path) -> Iterator[str]:
    for line in read_lines(path):
        yield from line_texts(line)


def _columns(path: Path, columns: Sequence[str]) -> Iterator[str]:
    for row in read_csv(path):
        yield from (row[column] for column in columns)
