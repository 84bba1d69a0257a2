"""Parts of the natural suite: no text of one in another, and each part in every family."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from papers.model import natural, rows, split
from papers.model.groups import read_groups
from papers.model.sources import DEV_SETS, TEST_SETS, Sources
from tests.papers.made_up import TEXTS, rated, use_made_up, write_table

from condsim.data.held_out import text_digest

SHARED = Path("../shared/data")
FAMILIES = {"graded", "negation", "details", "matching", "retrieval", "balanced"}
BALANCED = ("csts", "captions", "criteria", "opinions", "attributes")


class AnyVectors:
    """Unit vectors that depend on the text alone."""

    def __call__(self, texts):
        digests = b"".join(sha256(text.encode()).digest() for text in texts)
        vectors = np.frombuffer(digests, np.uint8).reshape(-1, 32) - 127.5
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def data(tmp_path, monkeypatch):
    return use_made_up(tmp_path, monkeypatch)


def digests(tests):
    return {text_digest(text) for test in tests for text in natural.test_texts(test)}


def trained_texts(folder, names):
    """Texts of written training rows, by source."""
    return {
        name: {
            text_digest(text)
            for group in read_groups(folder / f"{name}.jsonl.gz")
            for _, text in group.inputs
        }
        for name in names
    }


def check_parts(suites, trained):
    dev, test = (digests(suites[part]) for part in ("dev", "test"))
    assert not dev & test
    for name, texts in trained.items():
        assert texts, name
        assert not texts & (dev | test), name


@pytest.mark.slow
def test_parts_share_no_text(data, tmp_path):
    for name in BALANCED:
        table = rated(0, 20, set="a", group="") + rated(0, 9, " train, he said.", set="b", group="")
        write_table(tmp_path / "balanced" / f"{name}.csv", table)
    suites = {part: natural.suite(data, part=part) for part in ("dev", "test")}
    sources = Sources(data, tmp_path / "balanced", AnyVectors())
    rows.write_rows(sources, tmp_path)
    check_parts(suites, trained_texts(tmp_path, rows.SOURCES))


def test_part_reaches_every_family(data):
    suites = {part: natural.suite(data, part=part) for part in ("dev", "test")}
    by_key = {
        part: {f"{test.spec.family}: {test.spec.title}": test for test in tests if test.rows}
        for part, tests in suites.items()
    }
    for tests in by_key.values():
        assert {test.spec.family for test in tests.values()} == FAMILIES
    for key in by_key["dev"].keys() & by_key["test"].keys():
        dev, test = (natural.test_texts(by_key[part][key]) for part in ("dev", "test"))
        assert not dev & test, key


def test_sets_of_test_are_in_no_dev_part(data):
    sets = {part: split.open_split(data, part).set_files() for part in ("dev", "test")}
    assert not set(TEST_SETS) & set(sets["dev"])
    assert not set(DEV_SETS) & set(sets["test"])
    assert {"a", "druglib", "wdc"} <= set(sets["test"])
    assert sets["dev"]["acos_laptop"].name == "train.jsonl.gz"


def test_text_of_an_earlier_part_is_not_free(data):
    own = split.open_split(data, "test")
    assert not own.free([f"{TEXTS[0].upper()}, a train!"])
    assert not own.free(["new", f"{TEXTS[0]}, a dev."])
    assert own.free([f"{TEXTS[0]}, a test."])
    assert split.open_split(data, "dev").free([f"{TEXTS[0]}, a dev."])


def test_rows_of_counter_edits_of_dev_are_not_trained_on(data):
    # They begin with premises of SNLI, which training reads.
    dev = split.open_split(data, "dev")
    assert dev.free([f"{TEXTS[0]}, s"])
    titles = {test.spec.title: test for test in natural.negation_tests(dev)}
    assert natural.test_texts(titles["counter-edits of NLI"])


@pytest.mark.slow
def test_parts_of_the_real_data_share_no_text(tmp_path):
    if not SHARED.is_dir():
        pytest.skip("needs the data sets in ../shared/data")
    suites = {part: natural.suite(SHARED, part=part) for part in ("dev", "test")}
    for tests in suites.values():
        assert {test.spec.family for test in tests} == FAMILIES
    sources = Sources(SHARED, tmp_path, AnyVectors())
    names = [name for name in rows.SOURCES if not name.startswith("balanced")]
    assert not split.trained_texts(SHARED) & digests(suites["dev"] + suites["test"])
    rows.write_rows(sources, tmp_path, only=names)
    check_parts(suites, trained_texts(tmp_path, names))
