import numpy as np
import pytest

from condsim.errors import InputError
from condsim.tasks import load_csts
from condsim.training import PairBatchSampler, load_siblings, normalised, with_siblings

GROUPS = """group,text
1,A man throws a ball.
1,Someone in a cap is pitching.
1,A pitcher at work.
2,"A dog runs, wet."
2,A wet dog.
3,A lone text.
"""
ROWS = """sentence1,sentence2,condition,label
A man throws a ball .,"A dog runs, wet.",the subject,1
A lone text.,Not in any group.,the place,3
"""


@pytest.fixture
def siblings(tmp_path):
    (tmp_path / "s.csv").write_text(GROUPS, encoding="utf-8")
    sentences = ["A man throws a ball .", "A dog runs, wet.", "A lone text.", "Not in any group."]
    return load_siblings(tmp_path / "s.csv", sentences=sentences, leave_out=["A PITCHER at work"])


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "r.csv").write_text(ROWS, encoding="utf-8")
    return load_csts(tmp_path / "r.csv")


def test_load_siblings_matches_words_and_leaves_out(siblings):
    assert siblings == {
        normalised("A man throws a ball."): ("Someone in a cap is pitching.",),
        normalised("A dog runs, wet."): ("A wet dog.",),
    }


def test_load_siblings_missing_column_raises(tmp_path):
    (tmp_path / "s.csv").write_text("group,txt\n1,a\n", encoding="utf-8")
    with pytest.raises(InputError, match="text"):
        load_siblings(tmp_path / "s.csv", sentences=["a"], leave_out=[])


def test_with_siblings_rate_1_replaces_all_that_have_one(siblings, rows):
    changed = with_siblings(rows, siblings, rate=1.0, seed=(0, 0))
    assert changed.sentences1 == ("Someone in a cap is pitching.", "A lone text.")
    assert changed.sentences2 == ("A wet dog.", "Not in any group.")
    assert changed.conditions == rows.conditions
    assert np.array_equal(changed.labels, rows.labels)


def test_with_siblings_rate_0_changes_nothing(siblings, rows):
    assert with_siblings(rows, siblings, rate=0.0, seed=(0, 0)).sentences1 == rows.sentences1


def test_sampler_variants_each_epoch_draws_from_its_own():
    ids = np.repeat(np.arange(5), 2)
    drawn = PairBatchSampler(ids, np.ones(10, dtype=np.int64), batch_size=4, seed=0, variants=2)
    for epoch, first in ((0, 0), (1, 10), (2, 0)):
        drawn.set_epoch(epoch)
        rows = [row for batch in drawn for row in batch]
        assert sorted(rows) == list(range(first, first + 10))
