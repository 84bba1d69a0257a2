from __future__ import annotations

import gzip

import pytest

from condsim.annotation.exchange import push
from condsim.annotation.label_studio import ITEM
from condsim.annotation.outcome import decide_by_hand
from condsim.annotation.stages import (
    Answer,
    Item,
    condition_items,
    qualification_items,
    verification_items,
)
from condsim.annotation.store import Proposal
from condsim.errors import InputError


def test_push_twice_adds_each_task_once(store, server, written, verification):
    done = push(store, server, "verification", verification_items(written))
    assert (done.made, done.items, done.added, done.repeated) == (False, 4, 0, 4)
    assert len(server.tasks(done.project)) == 4


def test_push_broken_off_goes_on_where_it_stopped(store, server):
    server.fails_after = 2
    with pytest.raises(ConnectionError):
        push(store, server, "qualification", qualification_items())
    server.fails_after = None
    done = push(store, server, "qualification", qualification_items())
    assert (done.made, done.items, done.added) == (False, 6, 4)
    assert len({task.item for task in server.tasks(done.project)}) == 6


def test_push_task_deleted_on_the_server_comes_back(store, server, verification):
    project = store.project("verification").project
    del server.projects[project][verification[0]]
    assert push(store, server, "verification", ()).added == 1


def test_push_verification_hides_author_and_intention(server, verification):
    assert set(server.shown[verification[0]]) == {ITEM, "sentence1", "sentence2", "condition"}


def test_push_empty_pool_is_refused_before_anything_is_made(store, server, written):
    with pytest.raises(InputError, match="Nobody is in the pool"):
        push(store, server, "verification", verification_items(written))
    assert not server.projects
    assert push(store, server, "verification", verification_items(written), anyone=True).added == 4


def test_push_nothing_is_refused(store, server):
    with pytest.raises(InputError, match="nothing to annotate"):
        push(store, server, "conditions", (), anyone=True)


def test_push_other_number_of_annotators_is_refused(store, server, verification):
    with pytest.raises(InputError, match="for 2 annotators an item, not 3"):
        push(store, server, "verification", (), annotators=3)


def test_push_other_server_is_refused(store, server, another_server, verification):
    with pytest.raises(InputError, match="was pushed to http://localhost:8080, not to"):
        push(store, another_server(url="http://other"), "verification", ())


def test_push_again_hands_out_what_is_not_done(store, server, verification):
    from condsim.annotation.exchange import pull

    for account in (2, 3):
        server.submit(verification[0], account, Answer(rating=4))
    pull(store, server, "verification")
    del server.projects[store.project("verification").project]
    done = push(store, server, "verification", (), again=True)
    assert (done.made, done.added) == (True, 3)
    assert pull(store, server, "verification").removed == 0


def test_push_proposals_are_handed_out_once(store, server, verification):
    items = list(store.items("verification"))
    with store.changes():
        store.put_proposals("verification", [Proposal(items[0], "m", Answer(rating=2))])
    assert push(store, server, "verification", ()).predictions == 1
    assert push(store, server, "verification", ()).predictions == 0
    assert [(one.task, one.model) for one in server.predictions] == [(verification[0], "m")]


def test_push_proposals_sent_before_a_break_are_not_sent_again(
    store, server, verification, monkeypatch
):
    items = list(store.items("verification"))
    with store.changes():
        proposals = [Proposal(item, "m", Answer(rating=2)) for item in items]
        store.put_proposals("verification", proposals)
    monkeypatch.setattr("condsim.annotation.exchange._AT_ONCE", 1)
    add = server.add_predictions

    def breaks(project, stage, predictions):
        if server.predictions:
            raise ConnectionError("lost")
        add(project, stage, predictions)

    monkeypatch.setattr(server, "add_predictions", breaks)
    with pytest.raises(ConnectionError):
        push(store, server, "verification", ())
    monkeypatch.setattr(server, "add_predictions", add)
    assert push(store, server, "verification", ()).predictions == len(items) - 1
    assert sorted(one.task for one in server.predictions) == sorted(verification)


def test_condition_items_without_pair_ids_names_pairs_by_their_texts(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2\nA fox.,A hen.\nA cow.,A pig.\n", encoding="utf-8")
    first, second = condition_items(path)
    assert first.item_id != second.item_id
    assert first == next(condition_items(path))
    packed = tmp_path / "pairs.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert first == next(condition_items(packed))


def test_qualification_items_known_answers_stay_hidden(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text(
        "sentence1,sentence2,condition,label\nA fox.,A hen.,The animal,2.0\na,b,c,-1\n",
        encoding="utf-8",
    )
    items: list[Item] = list(qualification_items(path))
    assert [item.facts for item in items] == [{"label": 2}, {"label": -1}]
    assert "label" not in items[0].shown


def test_qualification_items_label_out_of_range_names_the_row(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("sentence1,sentence2,condition,label\na,b,c,0\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"known\.csv, row 1 \(line 2\): the known answer must be"):
        list(qualification_items(path))


def test_decide_by_hand_name_on_both_lists_is_refused(store):
    with pytest.raises(InputError, match="'ann' is to be accepted and rejected"):
        decide_by_hand(store, accept=["Ann"], reject=["ann "])
