from __future__ import annotations

import shutil
from itertools import combinations

import pytest
from papers.written import (
    ALIKE,
    DIFFERENT,
    FOLDER,
    SPLITS,
    Merged,
    app,
    balance,
    merge,
    split_of,
)
from typer.testing import CliRunner

from condsim.data.held_out import text_digest
from condsim.data.written import WrittenPair, iter_written
from condsim.errors import InputError

pytest.importorskip("sklearn")

PAIRS = (
    "cafes ||| A one. ||| B one. ||| c = 5 ; d = 1 ; e = 3\n"
    "\n"
    "old_news ||| A two. ||| B two. ||| c = 4 ; d = 2\n"
)


@pytest.fixture(scope="module")
def published():
    return {split: list(iter_written(FOLDER / f"{split}.txt")) for split in SPLITS}


def texts_of(pairs):
    return {text_digest(text) for pair in pairs for text in (pair.sentence1, pair.sentence2)}


@pytest.fixture
def files(tmp_path):
    def write(labels=None, *, pairs=PAIRS):
        (tmp_path / "a.txt").write_text(pairs)
        if labels is not None:
            (tmp_path / "a.labels").write_text(labels)
        return [tmp_path / "a.txt"]

    return write


def test_published_splits_share_no_domain_and_no_text(published):
    for one, two in combinations(SPLITS, 2):
        domains = [{pair.domain for pair in published[split]} for split in (one, two)]
        assert domains[0].isdisjoint(domains[1])
        assert texts_of(published[one]).isdisjoint(texts_of(published[two]))
    for split, pairs in published.items():
        assert {split_of(pair.domain) for pair in pairs} == {split}


def test_published_pairs_each_have_an_alike_and_a_different_label(published):
    for pairs in published.values():
        assert len({(pair.sentence1, pair.sentence2) for pair in pairs}) == len(pairs)
        assert all(max(pair.labels.values()) >= ALIKE for pair in pairs)
        assert all(min(pair.labels.values()) <= DIFFERENT for pair in pairs)


def test_published_card_counts_what_is_there(published):
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in card
    for split, pairs in published.items():
        rows = sum(len(pair.labels) for pair in pairs)
        domains = len({pair.domain for pair in pairs})
        assert f"| {split} | {domains} | {len(pairs):,} | {rows:,} |" in card


def test_merge_one_reader_keeps_every_label(files):
    merged = merge(files())
    assert [pair.domain for pair in merged.pairs] == ["cafes", "old and news"]
    assert merged.pairs[0].labels == {"c": 5, "d": 1, "e": 3}
    assert (merged.read, merged.first) == (2, [])


def test_merge_two_readers_mean_within_1_and_dropped_beyond(files):
    merged = merge(files("1 ||| 4 ; 1 ; 5\n3 ||| 3 ; 2\n"))
    (pair,) = merged.pairs
    assert pair.labels == {"c": 4.5, "d": 1}  # 3 and 5 are 2 apart
    assert (merged.far, merged.flat) == (1, 1)  # 4 and 3 give 3.5: no label of 4 is left
    assert merged.first == [5, 1, 3, 4, 2]
    assert merged.second == [4, 1, 5, 3, 2]


def test_merge_repeated_text_in_another_domain_is_dropped(files):
    more = (
        "shops ||| a ONE ||| C. ||| c = 5 ; d = 1\ncafes ||| B one. ||| A one. ||| c = 5 ; d = 1\n"
    )
    merged = merge(files(pairs=PAIRS + more))
    assert (len(merged.pairs), merged.repeated) == (2, 2)


def test_merge_second_labels_of_other_conditions_leave_the_pair_out(files):
    merged = merge(files("1 ||| 5 ; 1\n3 ||| 4 ; 2\n"))
    assert [pair.domain for pair in merged.pairs] == ["old and news"]
    (line,) = merged.unfit
    assert "a.txt, line 1: needs 3 second labels, one for each condition, got 2." in line
    assert "line 3: needs 2 second labels" in merge(files("1 ||| 5 ; 1 ; 3\n")).unfit[0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("1 ||| 5 ; 1 ; 3\n3 ||| 4 ; 2\n4 ||| 1\n", "line 4 of .* holds no pair"),
        ("1 ||| 5 ; 1 ; 6\n", "line 1: must be 'N"),
        ("one ||| 5\n", "line 1: must be 'N"),
        ("1 ||| 5\n1 ||| 5\n", "line 2: must be 'N"),
    ],
)
def test_merge_bad_second_labels_name_the_line(files, labels, message):
    with pytest.raises(InputError, match=message):
        merge(files(labels))


def test_written_command_same_files_again_and_figures_in_the_card(tmp_path, files):
    labels = tmp_path / "labels"
    labels.mkdir()
    pairs = "".join(
        f"domain {n} ||| Text {n} a. ||| Text {n} b. ||| same = 5 ; other = 1\n" for n in range(40)
    )
    (path,) = files(pairs=pairs)
    lines = [f"{n} ||| {4 if n > 20 else 5} ; {1 if n > 4 else 3}\n" for n in range(1, 41)]
    (labels / "a.labels").write_text("".join(lines))
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(FOLDER / "README.md", tmp_path / name)
        arguments = [str(path), "--labels", str(labels), "--output", str(tmp_path / name)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        found = sorted((tmp_path / name).iterdir())
        assert [file.name for file in found] == ["README.md", "dev.txt", "test.txt", "train.txt"]
        contents.append([file.read_bytes() for file in found])
    assert contents[0] == contents[1]
    # 56 of 80 labels are the same, 4 differ by 2
    assert (
        "80 rows were labelled by a second reader: 70.0 % the same, 95.0 % within 1" in done.output
    )
    assert "- 4 of these were dropped" in done.output
    assert "Of 40 pairs 4 were dropped" in done.output
    assert "| all | 36 | 36 | 72 |" in done.output


def test_written_command_card_without_marks_error(tmp_path, files):
    (tmp_path / "README.md").write_text("# A card\n")
    pairs = "".join(f"d{n} ||| {n} a ||| {n} b ||| c = 5 ; d = 1\n" for n in range(40))
    done = CliRunner().invoke(app, [str(files(pairs=pairs)[0]), "--output", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "must have the lines" in str(done.exception)


def test_balance_drops_rows_that_their_condition_gives_away():
    pairs = [
        WrittenPair(
            domain="notes",
            sentence1=f"one {number}",
            sentence2=f"two {number}",
            labels={
                "the kind": 5.0,
                "who": 1.0,
                "place": 1.0 + number % 5,
                "colour": 5.0 - number % 5,
            },
            place="",
            line=number,
        )
        for number in range(400)
    ]
    merged = Merged(pairs=pairs)
    balance(merged)
    assert 400 <= merged.telling == 1600 - sum(len(pair.labels) for pair in merged.pairs)
    assert all(len(pair.labels) >= 2 for pair in merged.pairs)
    assert all(max(p.labels.values()) >= ALIKE for p in merged.pairs)
    assert all(min(p.labels.values()) <= DIFFERENT for p in merged.pairs)
