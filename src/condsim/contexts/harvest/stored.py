"""A harvest on disk: a manifest, and Parquet shards that are whole or not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from condsim.config import Settings
from condsim.errors import InputError
from condsim.io import sha256_of

MANIFEST = "harvest.json"
SPLITS = ("train", "dev", "test")
COLUMNS = ["sentence1", "sentence2", "score", "id1", "id2"]  # of a pair, in a shard
KINDS = ("tfidf", "document", "random")
FORMAT = 3  # changes when the same settings and models draw other pairs, or score them otherwise
LOST = b"sentences_without_contexts"  # key in the metadata of a shard

_MAGIC = b"PAR1"  # how a whole Parquet file ends


class PairMix(Settings):
    """Shares of the three kinds of pairs, which add up to 1."""

    what = "mix"

    # The partner is one of the ten sentences of the best chunks that are most like the first by
    # TF-IDF, with a word in common. A document of one sentence, which is in no chunk that is found,
    # has one of the ten other such documents most like it.
    tfidf: float = 0.4
    # The partner is at most ten sentences away in the same document (a hundred in dev and test,
    # where a partner of the same split is rare).
    document: float = 0.3
    random: float = 0.3  # any sentence

    @model_validator(mode="after")
    def _adds_up(self) -> PairMix:
        shares = self.values
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
            raise InputError(
                "The shares of pairs (tfidf, document, random) must be at least 0 and add up to "
                f"1. Got {', '.join(f'{share:g}' for share in shares)}."
            )
        return self

    @property
    def values(self) -> list[float]:
        """The shares in the order of `KINDS`."""
        return [getattr(self, kind) for kind in KINDS]


class HarvestSettings(Settings):
    """What a harvest is made of."""

    what = "harvest"

    # Pairs to draw; one that is drawn twice in a shard is written once.
    pairs: Annotated[int, Field(ge=1)] = 100_000
    shard_pairs: Annotated[int, Field(ge=1)] = 1_000  # what is lost at most when a machine dies
    mix: PairMix = PairMix()
    seed: Annotated[int, Field(ge=0)] = 0

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-self.pairs // self.shard_pairs)

    def pairs_of(self, shard: int) -> int:
        """Pairs to draw for a shard."""
        return min(self.shard_pairs, self.pairs - shard * self.shard_pairs)


@dataclass(frozen=True)
class Harvest:
    """A finished or unfinished harvest on disk."""

    folder: Path
    settings: HarvestSettings
    identity: Mapping[str, Any]  # what scored it

    @classmethod
    def open(cls, folder: Path) -> Harvest:
        """Opens a harvest."""
        try:
            content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise InputError(f"{folder} was made by another version of condsim. Harvest anew.")
            settings = HarvestSettings.model_validate(content["settings"])
            return cls(folder, settings, content["identity"])
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} is no harvest: its {MANIFEST} cannot be read ({one_line(error)}). "
                "Give the folder that 'condsim contexts run' wrote."
            ) from error

    @property
    def revision(self) -> str:
        """A hash of all that decides the pairs and their scores."""
        return sha256_of(self.folder / MANIFEST)[:12]

    def summary(self) -> str:
        """Says in one line what there is."""
        missing = set(self.missing())
        pairs = lost = 0
        for number in set(range(self.settings.shards)) - missing:
            metadata = pq.read_metadata(self.shard(number))
            pairs += metadata.num_rows
            lost += int((metadata.metadata or {}).get(LOST, b"0"))
        whole = self.settings.shards - len(missing)
        text = (
            f"harvest: {pairs:,} pairs in {self.folder}, {whole} of {self.settings.shards} shards"
        )
        return text if not lost else f"{text}; {lost} sentences had no context but random ones"

    def changes(self, settings: HarvestSettings, identity: Mapping[str, Any]) -> list[str]:
        """Names what differs between this harvest and another one."""
        changed = [name for name, value in identity.items() if self.identity.get(name) != value]
        return changed + ["harvest"] * (self.settings != settings)

    def shard(self, number: int) -> Path:
        """The file of a shard."""
        return self.folder / f"pairs-{number:05d}.parquet"

    def missing(self, numbers: Iterable[int] | None = None) -> list[int]:
        """The shards still to be written."""
        looked_at = range(self.settings.shards) if numbers is None else numbers
        return [number for number in looked_at if not _whole(self.shard(number))]

    def tables(self, split: str) -> Iterator[pa.Table]:
        """Reads the pairs of a split with their columns, a shard at a time."""
        for number in range(self.settings.shards):
            path = self.shard(number)
            if not path.exists():
                continue
            try:
                table = pq.read_table(path, columns=COLUMNS, filters=[("split", "==", split)])
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:
                raise InputError(
                    f"{path} is damaged ({one_line(error)}). Delete it and run the same command "
                    "again: it alone is made anew."
                ) from error
            if len(table):
                yield table


def _whole(path: Path) -> bool:
    """Whether a shard is there and not cut off, as by a power failure."""
    try:
        with path.open("rb") as stream:
            stream.seek(-len(_MAGIC), 2)
            return stream.read() == _MAGIC
    except OSError:
        return False


def one_line(error: Exception) -> str:
    """An error's text in one line."""
    return " ".join(str(error).split())
