from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from condsim.annotation.exchange import give_hints, pull, push, stage_status
from condsim.annotation.outcome import outcome_of
from condsim.annotation.stages import NO_HINTS, Answer, condition_items
from condsim.annotation.store import AnnotationStore, PoolMember
from condsim.errors import InputError

STAGE = "verification"


def reasons(store, stage=STAGE):
    return dict(outcome_of(store, stage).set_aside)


def counted(store, stage=STAGE):
    return [
        (one.annotator, one.answer.rating)
        for given in outcome_of(store, stage).counted.values()
        for one in given
    ]


def dump(store):
    with closing(sqlite3.connect(store.path)) as connection:
        return list(connection.iterdump())


def test_pull_twice_changes_nothing(store, server, verification):
    server.submit(verification[0], 2, Answer(rating=4))
    server.submit(verification[1], 3, Answer(rating=1))
    first = pull(store, server, STAGE)
    assert (first.annotations, first.new, first.changed, first.removed) == (2, 2, 0, 0)
    before = dump(store)
    again = pull(store, server, STAGE)
    assert (again.annotations, again.new, again.changed, again.removed) == (2, 0, 0, 0)
    assert dump(store) == before


def test_pull_edited_annotation_replaces_its_old_self(store, server, verification):
    key = server.submit(verification[0], 2, Answer(rating=4))
    pull(store, server, STAGE)
    server.edit(key, Answer(rating=2))
    assert pull(store, server, STAGE).changed == 1
    assert counted(store) == [("bob", 2)]


def test_pull_deleted_annotation_no_longer_counts_and_stays_in_the_file(
    store, server, verification
):
    key = server.submit(verification[0], 2, Answer(rating=4))
    pull(store, server, STAGE)
    server.delete(key)
    assert pull(store, server, STAGE).removed == 1
    assert counted(store) == []
    assert any(key in line for line in dump(store))
    assert pull(store, server, STAGE).removed == 0


def test_pull_deleted_task_keeps_its_annotations(store, server, verification):
    server.submit(verification[0], 2, Answer(rating=4))
    pull(store, server, STAGE)
    del server.projects[store.project(STAGE).project][verification[0]]
    assert pull(store, server, STAGE).removed == 0
    assert counted(store) == [("bob", 4)]


def test_pull_deleted_project_is_refused_and_nothing_is_lost(store, server, verification):
    server.submit(verification[0], 2, Answer(rating=4))
    pull(store, server, STAGE)
    server.projects.clear()
    before = dump(store)
    with pytest.raises(InputError, match="is not on"):
        pull(store, server, STAGE)
    assert dump(store) == before


def test_pull_not_pushed_is_refused(store, server):
    with pytest.raises(InputError, match="'condsim build push conditions' comes first"):
        pull(store, server, "conditions")


def test_pull_annotation_without_rating_is_set_aside(store, server, verification):
    server.submit(verification[0], 2, Answer())
    pull(store, server, STAGE)
    assert reasons(store) == {"no rating": 1}
    assert counted(store) == []


def test_pull_two_accounts_of_one_name_are_refused_and_nothing_changes(store, server, verification):
    server.names = {1: "ann", 2: "bob", 3: "bob"}
    server.submit(verification[0], 2, Answer(rating=4))
    pull(store, server, STAGE)  # one of them is no trouble
    before = dump(store)
    server.submit(verification[0], 3, Answer(rating=5))
    with pytest.raises(InputError, match=r"Accounts 2 and 3 on .* both have the name 'bob'"):
        pull(store, server, STAGE)
    assert dump(store) == before


def test_pull_one_account_answering_twice_counts_once_with_the_latest(store, server, verification):
    server.submit(verification[0], 2, Answer(rating=1), minute=1)
    server.submit(verification[0], 2, Answer(rating=5), minute=2)
    pull(store, server, STAGE)
    assert counted(store) == [("bob", 5)]
    assert reasons(store) == {"answered again by the same annotator": 1}


def test_pull_account_deleted_later_keeps_its_name(store, server, verification):
    server.submit(verification[0], 2, Answer(rating=4))
    pull(store, server, STAGE)
    server.forget(2)
    assert pull(store, server, STAGE).changed == 0
    assert counted(store) == [("bob", 4)]
    server.submit(verification[1], None, Answer(rating=4))
    pull(store, server, STAGE)
    assert reasons(store) == {"the account is gone": 1}


def test_pull_author_and_strangers_do_not_count(store, server, verification):
    server.names[4] = "dan"
    with store.changes():
        store.put_pool([PoolMember("cleo", False, "hand")])
    for account in (1, 3, 4):
        server.submit(verification[0], account, Answer(rating=4))
    server.submit(verification[0], 2, Answer(), cancelled=True)
    pull(store, server, STAGE)
    assert reasons(store) == {
        "skipped by the annotator": 1,
        "the annotator is not in the pool": 1,
        "the annotator was rejected": 1,
        "the annotator wrote the condition": 1,
    }


def test_pull_more_than_wanted_counts_the_earliest(store, server, verification):
    with store.changes():
        store.put_pool([PoolMember("eve", True, "hand")])
    server.names[5] = "eve"
    for minute, account in enumerate((5, 3, 2)):
        server.submit(verification[0], account, Answer(rating=account), minute=minute)
    pull(store, server, STAGE)
    assert counted(store) == [("eve", 5), ("cleo", 3)]
    assert reasons(store) == {"beyond the 2 wanted": 1}


def test_pull_foreign_tasks_are_left_alone(store, server, verification):
    project = store.project(STAGE).project
    server.add_tasks(project, [{"text": "made by hand"}])
    server.submit(max(server.projects[project]), 2, Answer(rating=4))
    pulled = pull(store, server, STAGE)
    assert (pulled.annotations, pulled.foreign) == (0, 1)


def test_give_hints_doubtful_condition_shows_on_its_page_until_edited(store, server, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2\nA fox.,A hen.\nA cow.,A pig.\n", encoding="utf-8")
    push(store, server, "conditions", condition_items(pairs), anyone=True)
    task = store.items("conditions").popitem()[1].task
    key = server.submit(task, 2, Answer("The activity", "The kind of animal"))
    pull(store, server, "conditions")
    assert give_hints(store, server, "conditions") == 1
    assert server.shown[task]["hints"].startswith("“The activity”: Say which")
    assert give_hints(store, server, "conditions") == 0
    server.edit(key, Answer("The use of the animal", "The kind of animal"))
    pull(store, server, "conditions")
    assert give_hints(store, server, "conditions") == 1
    assert server.shown[task]["hints"] == NO_HINTS


def test_stage_status_tells_what_is_done_and_what_waits(store, server, verification):
    for account in (2, 3):
        server.submit(verification[0], account, Answer(rating=4))
    pull(store, server, STAGE)
    server.submit(verification[1], 2, Answer(rating=4))
    one = stage_status(store, STAGE, server)
    assert (one.items, one.done, one.counted, one.people, one.waiting) == (4, 1, 2, 2, 1)
    assert stage_status(store, STAGE, None).waiting is None


def test_store_missing_or_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match="'condsim build push' "):
        AnnotationStore(tmp_path)
    (tmp_path / "annotation.sqlite").write_text("no database at all, but long enough to tell\n")
    with pytest.raises(InputError, match="cannot be used as an annotation store"):
        AnnotationStore(tmp_path)


def test_store_changes_error_takes_all_of_it_back(store, verification):
    before = dump(store)

    def broken() -> None:
        with store.changes():
            store.put_pool([PoolMember("zoe", True, "hand")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert dump(store) == before
