from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from condsim.data.load import HubName, load_task, parse_hub_name
from condsim.errors import InputError, MissingExtraError

PAIR = {"sentence1": "A dog.", "sentence2": "A cat."}


class DatasetsError(Exception):
    pass


@pytest.fixture
def hub(monkeypatch):
    """A datasets library that serves rows, or fails, and remembers what it was asked."""
    fake = SimpleNamespace(rows=[], error=None, asked=[])

    def load_dataset(dataset, config, *, split, revision):
        fake.asked.append((dataset, config, split, revision))
        if fake.error is not None:
            raise fake.error
        return fake.rows

    library = SimpleNamespace(
        load_dataset=load_dataset, exceptions=SimpleNamespace(DatasetsError=DatasetsError)
    )
    monkeypatch.setitem(sys.modules, "datasets", library)
    return fake


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("hub:a/b@1f", HubName("a/b", None, "1f", "test"), "b"),
        ("hub:a-c/b.d/e@v1.0#train", HubName("a-c/b.d", "e", "v1.0", "train"), "b.d-e-train"),
        ("hub:a/b@refs/pr/1", HubName("a/b", None, "refs/pr/1", "test"), "b"),
        ("pairs.csv", None, ""),
    ],
)
def test_parse_hub_name_forms(text, name, title):
    assert parse_hub_name(text) == name
    assert name is None or name.title == title


@pytest.mark.parametrize("text", ["hub:mteb/sts12-sts", "hub:x@1", "hub:", "hub:a/b@1#"])
def test_parse_hub_name_without_revision_refused(text):
    with pytest.raises(InputError, match="expected hub:owner/name@revision"):
        load_task(text)


def test_load_task_hub_scale_of_the_scores_detected(hub):
    hub.rows = [PAIR | {"score": 0.5, "year": None}, PAIR | {"score": 4.0}]
    task = load_task("hub:mteb/sts12-sts@1f2e")
    assert hub.asked == [("mteb/sts12-sts", None, "test", "1f2e")]
    assert (task.name, task.label_range, task.labels.tolist()) == ("sts12-sts", (0, 5), [0.5, 4])
    assert task.revision == load_task("hub:mteb/sts12-sts@main").revision  # of the rows


def test_load_task_hub_other_set_told_by_its_columns(hub):
    hub.rows = [PAIR | {"condition": "the animal", "label": 1}]
    task = load_task("hub:some/csts@main#validation", require_labels=True)
    assert (task.name, task.conditions) == ("csts-validation", ("the animal",))
    hub.rows = [PAIR | {"score": 1.5}]
    assert load_task("hub:some/pairs@main").label_range == (0, 5)
    assert load_task("hub:mteb/sickr-sts@main").label_range == (1, 5)


def test_load_task_hub_split_without_labels_says_so(hub):
    hub.rows = [PAIR | {"label": -1.0}]
    with pytest.raises(InputError, match="column 'score': must be a number from 0 to 1"):
        load_task("hub:nyu-mll/glue/stsb@main")


@pytest.mark.parametrize(
    "error",
    [ConnectionError("Couldn't reach it\non the Hub"), ValueError(""), DatasetsError("broken")],
)
def test_load_task_hub_out_of_reach_is_one_line(hub, error):
    hub.error = error
    with pytest.raises(InputError, match=r"cannot be downloaded: .+\.") as caught:
        load_task("hub:mteb/sts12-sts@main")
    assert "\n" not in str(caught.value)


def test_load_task_hub_library_missing_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'condsim\[train\]'"):
        load_task("hub:mteb/sts12-sts@main")
