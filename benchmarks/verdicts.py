"""Verdicts on new facts against a million stored ones: time, also after a change, and memory."""

from __future__ import annotations

import csv
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.memory import peak_memory
from benchmarks.result import Result
from condsim.model.base import Conditions, Texts
from condsim.model.judge import load_judge
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.search.index import Index
from condsim.search.verdicts import CANDIDATES, find_verdicts
from condsim.types import FloatArray

__all__ = ["build", "facts", "measured", "run"]

BAR = 1.0
"""Ratio to a search and a second, which a verdict may take."""
FLAT = 0.9
"""Ratio of the peak memory of few new facts to many."""

_ENCODED = 60_000
_NOISE = 0.4
_REPEATS = 21
_NEW = (20, 400)
_PEOPLE = "Anna Ben Carla Dmitri Elif Farid Greta Hugo Ines Jonas Kaori Liam Mona Nils Olga".split()
_CITIES = "Oslo Bergen Turin Porto Gent Graz Basel Lyon Riga Malmo Cork Leeds Brno Split".split()
_COLORS = "red blue green black white yellow gray brown".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_THINGS = "printer projector heater fridge ladder scanner drill camera sofa bicycle".split()
# Subjects, and what can be said about each with a value.
_KINDS = {
    "{person} of team {n}": (
        "works in {city}",
        "is allergic to {food}",
        "is on leave until {day}",
        "drives a {color} car",
        "takes the train at {hour}:{minute}",
        "reports to {person}",
    ),
    "Server {n} in {city}": (
        "listens on port {port}",
        "has {n} GB of disk",
        "is backed up every {day}",
        "is looked after by {person}",
        "restarts at {hour}:{minute}",
    ),
    "Invoice {n}": (
        "is due on {day}",
        "was sent to {person} in {city}",
        "has a total of {port} euros",
        "is paid in {n} parts",
    ),
    "The {color} {thing} in room {n}": (
        "belongs to {person}",
        "weighs {n} kg",
        "was bought in {city}",
        "is cleaned on {day}",
        "costs {port} euros",
    ),
    "Bus {n} in {city}": (
        "leaves at {hour}:{minute}",
        "stops at the {color} bridge",
        "does not run on {day}",
        "is driven by {person}",
    ),
}


def facts(number: int, *, seed: int) -> Iterator[str]:
    """Yield different facts, made by templates of varied subjects, attributes, and values."""
    random = np.random.default_rng(seed)
    subjects, seen = list(_KINDS), set[str]()
    while len(seen) < number:
        subject = subjects[random.integers(len(subjects))]
        said = _KINDS[subject][random.integers(len(_KINDS[subject]))]
        fact = f"{_filled(subject, random)} {_filled(said, random)}."
        if fact not in seen:
            seen.add(fact)
            yield fact


def _filled(template: str, random: np.random.Generator) -> str:
    lists = {"person": _PEOPLE, "city": _CITIES, "color": _COLORS, "day": _DAYS, "thing": _THINGS}
    chosen = {name: values[random.integers(len(values))] for name, values in lists.items()}
    food = ("peanuts", "wheat", "milk", "eggs", "soy", "fish")[random.integers(6)]
    numbers = {"n": random.integers(1, 10_000), "port": random.integers(1_000, 60_000)}
    clock = {"hour": random.integers(5, 24), "minute": f"{random.integers(60):02}"}
    return template.format(**chosen, food=food, **numbers, **clock)


class StandIn(OnnxScorer):
    """The default model; beyond the first texts of a collection, vectors near to theirs.

    A million texts take an hour to encode, and their number counts here, not their vectors.
    """

    def __init__(self, folder: Path) -> None:
        """Load the model."""
        super().__init__(folder)
        self._pool = np.empty((0, self.dimension), np.float32)
        self._random = np.random.default_rng(0)

    def encode(
        self, sentences: Texts, condition: Conditions | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Encode texts, or move vectors of earlier ones a little."""
        if isinstance(sentences, str) or condition is not None or len(self._pool) < _ENCODED:
            vectors = super().encode(sentences, condition, overall=overall)
            if not isinstance(sentences, str) and condition is None:
                self._pool = np.concatenate([self._pool, vectors])
            return vectors
        rows = self._random.integers(len(self._pool), size=len(sentences))
        noise = self._random.standard_normal((len(rows), self.dimension), np.float32)
        moved = self._pool[rows] + _NOISE * noise / np.sqrt(np.float32(self.dimension))
        scaled: FloatArray = moved / np.linalg.norm(moved, axis=1, keepdims=True)
        return scaled


def run(*, quick: bool) -> list[Result]:
    """Judge new facts against a million known ones.

    Args:
        quick: Whether to take 20,000 instead.

    Returns:
        Times of a verdict, as it is and after a change, and memory.

    Raises:
        InputError: If the index cannot be written.
        subprocess.CalledProcessError: If the command whose memory is measured fails.
    """
    size = 20_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as name:
        folder = Path(name, "facts")
        build(size, folder)
        return measured(folder)


def build(size: int, folder: Path) -> None:
    """Build an index of facts, keyed, as the example of a memory has it."""
    file = folder.with_suffix(".csv")
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("key", "text", "history"))
        writer.writerows((f"k{row}", fact, "[]") for row, fact in enumerate(facts(size, seed=0)))
    Index.build(file, folder, key="key", model=StandIn(DEFAULT_FOLDER))


def measured(folder: Path) -> list[Result]:
    """Measure an index that `build` has made; its facts become a few more."""
    index, judge = Index.open(folder), load_judge()
    what = f"{len(index):,} facts"
    peaks = [_peak(folder, number) for number in _NEW]
    news = list(facts(4 * _REPEATS, seed=1))
    searched, judged, changed, added = (news[start::4] for start in range(4))
    # The first search reads the vectors.
    index.search(news[0], plain=True)
    search = _median(lambda text: index.search(text, plain=True, top=CANDIDATES), searched)
    verdict = _median(lambda text: list(find_verdicts([text], index, judge)), judged)
    adding, after = [], []
    for number, pair in enumerate(zip(added, changed, strict=True)):
        row = {"key": f"new {number}", "text": pair[0], "history": "[]"}
        adding.append(_seconds(lambda: index.add([row])))  # noqa: B023
        after.append(_seconds(lambda: list(find_verdicts([pair[1]], index, judge))))  # noqa: B023
    note = (
        f"{CANDIDATES} candidates are judged; the first {_ENCODED:,} texts were encoded, the "
        "vectors of the others are near to theirs; the index was opened before"
    )
    allowed, many = search + 1, f"{_NEW[1]} new, {what}"
    return [
        _result(f"a verdict, {what}", "a search and 1 s", "ms", verdict, allowed, BAR, note),
        _result(
            f"a verdict after a change, {what}",
            "a search and 1 s",
            "ms",
            statistics.median(after),
            allowed,
            BAR,
        ),
        _result(f"adding a fact, {what}", "1 s", "ms", statistics.median(adding), 1.0, None),
        _result(f"peak memory, {many}", f"{_NEW[0]} new", "MiB", peaks[1], peaks[0], FLAT),
    ]


def _peak(folder: Path, number: int) -> float:
    """Peak memory of the command that judges new facts."""
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as name:
        file = Path(name, "new.csv")
        with file.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows((text,) for text in ("text", *facts(number, seed=2)))
        words = ["verdict", str(file), "--against", str(folder), "--output"]
        return peak_memory([sys.executable, "-m", "condsim", *words, str(Path(name, "out.csv"))])


def _median(work: Callable[[str], object], texts: Sequence[str]) -> float:
    return statistics.median(_seconds(lambda: work(text)) for text in texts)  # noqa: B023


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _result(
    measured: str,
    peer: str,
    unit: str,
    ours: float,
    theirs: float,
    bar: float | None,
    *notes: str,
) -> Result:
    scale = 1000 if unit == "ms" else 1
    return Result(
        benchmark="verdicts",
        measured=measured,
        peer=peer,
        unit=unit,
        ours=scale * ours,
        theirs=scale * theirs,
        ratio=theirs / ours,
        bar=bar,
        notes=notes,
    )
