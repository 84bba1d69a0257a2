"""Data sets of the Hugging Face Hub, by name and revision; needs a network.

A name is written ``hub:<owner>/<data set>[/<configuration>]@<revision>[#<split>]``, such as
``hub:mteb/sts12-sts@main``. The revision has to be there: a commit names the same rows for ever.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from condsim.errors import InputError, require
from condsim.tasks.graded import GradedColumns, compare_count, load_graded
from condsim.types import Task

_PREFIX = "hub:"
_NAME = re.compile(
    r"hub:(?P<dataset>\w[\w.-]*/\w[\w.-]*)(?:/(?P<config>\w[\w.-]*))?"
    r"@(?P<revision>\w[\w./-]*)(?:#(?P<split>\w+))?"
)
_DEFAULT_SPLIT = "test"


class HubName(NamedTuple):
    """A split of a data set of the Hub.

    Attributes:
        dataset: Owner and name.
        config: Configuration, or None for the only one.
        revision: Commit, tag or branch.
        split: Name of the split.
    """

    dataset: str
    config: str | None
    revision: str
    split: str = _DEFAULT_SPLIT

    @property
    def title(self) -> str:
        """Short name: that of the data set, with configuration and split where they say more."""
        parts = [self.dataset.split("/")[1], self.config]
        parts.append(None if self.split == _DEFAULT_SPLIT else self.split)
        return "-".join(part for part in parts if part)


class HubSet(NamedTuple):
    """A data set whose columns alone do not tell its scale; the rows of its splits as published."""

    columns: GradedColumns
    label_range: tuple[float, float]
    rows: dict[str, int]


_STSB = {"train": 5749, "validation": 1500, "test": 1379}
_STS_TEST_ROWS = {12: 3108, 13: 1500, 14: 3750, 15: 3000, 16: 1186}

HUB_SETS = {
    f"mteb/sts{year}-sts": HubSet(GradedColumns(), (0.0, 5.0), {"test": rows})
    for year, rows in _STS_TEST_ROWS.items()
} | {
    "mteb/stsbenchmark-sts": HubSet(GradedColumns(), (0.0, 5.0), _STSB),
    # all splits of SICK in one
    "mteb/sickr-sts": HubSet(GradedColumns(), (1.0, 5.0), {"test": 9927}),
    "nyu-mll/glue/stsb": HubSet(GradedColumns(score="label"), (0.0, 5.0), _STSB),
}
"""Data sets by name, with the configuration if there is one."""


def parse_hub_name(text: str) -> HubName | None:
    """Reads the name of a data set of the Hub; None if the text does not begin with ``hub:``.

    Raises:
        InputError: If it does, and the rest has another form.
    """
    if not text.startswith(_PREFIX):
        return None
    named = _NAME.fullmatch(text)
    if named is None:
        raise InputError(
            f"{text!r}: a data set of the Hub is named hub:owner/name@revision, with /config "
            "before the @ if it has several and #split at the end if it is not 'test'. A commit "
            "as revision names the same rows for ever."
        )
    return HubName(
        named["dataset"], named["config"], named["revision"], named["split"] or _DEFAULT_SPLIT
    )


def fetch_split(hub: HubName, folder: Path) -> Path:
    """Fetches a split and writes it as JSONL, which every loader here reads."""
    library = require("datasets", extra="train")
    try:
        rows = library.load_dataset(hub.dataset, hub.config, split=hub.split, revision=hub.revision)
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"{hub.dataset} at {hub.revision}, split {hub.split!r}: cannot be had from the Hub "
            f"({reason}). Check the name and the network, or give a file."
        ) from error
    path = folder / f"{hub.title}.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json.dumps(dict(row), ensure_ascii=False, default=str) + "\n")
    return path


def load_hub_set(hub: HubName, path: Path, *, name: str | None = None) -> Task | None:
    """Loads a fetched split of one of :data:`HUB_SETS`."""
    known = HUB_SETS.get("/".join(filter(None, (hub.dataset, hub.config))))
    if known is None:
        return None
    task = load_graded(
        path,
        columns=known.columns,
        label_range=known.label_range,
        fix="This revision of the data set is another one, or the split has no labels.",
        name=hub.title if name is None else name,
    )
    if hub.split in known.rows:
        compare_count(hub.title, found=len(task), published=known.rows[hub.split])
    return task
