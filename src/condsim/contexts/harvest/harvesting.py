"""Scoring pairs of the corpus into shards that are never half written (SSBC §3.4).

A shard depends on the settings and its own number alone, so a harvest that was killed writes the
missing shards, on one machine or several, and ends with the same pairs as one without a break.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from condsim.contexts.corpus import Corpus
from condsim.contexts.harvest.drawing import PairDrawer
from condsim.contexts.harvest.stored import (
    FORMAT,
    KINDS,
    LOST,
    MANIFEST,
    SPLITS,
    Harvest,
    HarvestSettings,
)
from condsim.contexts.index import TfidfIndex
from condsim.contexts.scoring import OriginScorer
from condsim.errors import InputError, require
from condsim.files import replacing, write_text
from condsim.kept import sole_process


class Origin(Protocol):
    """What a worker needs: the corpus, its index and the scorer, opened where it runs."""

    @property
    def corpus(self) -> Corpus:
        """The corpus."""

    @property
    def index(self) -> TfidfIndex:
        """Its index."""

    @property
    def single_index(self) -> TfidfIndex | None:
        """The index of its single-sentence documents, if there are any."""

    @property
    def scorer(self) -> OriginScorer:
        """The origin model."""


Engine = Callable[[Harvest, Callable[[], Origin], list[int]], Iterable[int]]
"""Writes the shards of those numbers and yields each number when its shard is there."""


def harvest(
    folder: Path,
    settings: HarvestSettings,
    opener: Callable[[], Origin],
    *,
    identity: Mapping[str, Any],
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Harvest:
    """Draws pairs of the corpus and scores them; a harvest that was stopped goes on."""
    report = progress or (lambda pairs, total: None)
    with sole_process(folder):
        made = _begin(folder, settings, identity)
        missing = made.missing()
        done = settings.pairs - sum(map(settings.pairs_of, missing))
        report(done, settings.pairs)
        if missing:
            for number in (engine or _here)(made, opener, missing):
                done += settings.pairs_of(number)
                report(done, settings.pairs)
    return made


def _here(made: Harvest, opener: Callable[[], Origin], numbers: list[int]) -> Iterator[int]:
    """The engine of one process."""
    origin = opener()
    drawer = drawer_of(origin, made.settings)
    for number in numbers:
        write_shard(made, origin, drawer, number)
        yield number


def drawer_of(origin: Origin, settings: HarvestSettings) -> PairDrawer:
    """Makes what draws the pairs of a harvest."""
    return PairDrawer(
        origin.corpus, origin.index, origin.single_index, mix=settings.mix, seed=settings.seed
    )


def write_shard(made: Harvest, origin: Origin, drawer: PairDrawer, number: int) -> None:
    """Draws, scores and writes one shard."""
    arrow = require("pyarrow", extra="contexts")
    parquet = require("pyarrow.parquet", extra="contexts")
    settings, scorer = made.settings, origin.scorer
    drawn = drawer.draw(number * settings.shard_pairs, settings.pairs_of(number))
    first = origin.corpus.sentences(drawn.first)
    second = origin.corpus.sentences(drawn.second)
    before = scorer.without_contexts
    scores = scorer.cosines(first, second)
    table = arrow.table(
        {
            "sentence1": first,
            "sentence2": second,
            "score": scores,
            "id1": drawn.first,
            "id2": drawn.second,
            "kind": [KINDS[kind] for kind in drawn.kinds],
            "split": [SPLITS[split] for split in drawn.splits],
        }
    ).replace_schema_metadata({LOST: str(scorer.without_contexts - before)})
    try:
        with replacing(made.shard(number)) as partial:
            parquet.write_table(table, partial, compression="zstd")
    except InputError as error:  # a full disk, or no right to write
        raise InputError(
            f"{error} The shards before it are whole; make room and run the same command again."
        ) from error


def _begin(folder: Path, settings: HarvestSettings, identity: Mapping[str, Any]) -> Harvest:
    """Opens the harvest of that folder if it is the same one, or writes its manifest."""
    plain = json.loads(json.dumps(identity))
    wanted = Harvest(folder, settings, plain)
    if (folder / MANIFEST).exists():
        if changed := Harvest.open(folder).changes(settings, plain):
            raise InputError(
                f"{folder} holds a harvest of something else: {', '.join(map(repr, changed))} "
                f"changed. Shards of two must not be mixed: give another one, or remove {folder}."
            )
        for left in folder.glob("*.partial"):  # of a process that was killed
            left.unlink()
        return wanted
    content = {"format": FORMAT, "settings": settings.model_dump(), "identity": plain}
    write_text(folder / MANIFEST, json.dumps(content, indent=2) + "\n")
    return wanted
