from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from condsim.contexts.harvest.harvesting import RayEngine, harvest
from condsim.contexts.harvest.stored import Harvest
from condsim.errors import InputError

ray = pytest.importorskip("ray")
FAKE = Path(__file__).with_name("fake_origin.py")

pytestmark = [
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def fake() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fake_origin", FAKE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fake_origin"] = module
    spec.loader.exec_module(module)
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)
    del sys.modules["fake_origin"]


@pytest.fixture(scope="module")
def text(fake, small_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    shutil.copytree(small_corpus.folder, folder / "corpus")
    fake.FakeOrigin(folder)  # builds the index
    return folder


def shards(made: Harvest) -> list[bytes]:
    return [made.shard(number).read_bytes() for number in range(made.settings.shards)]


def opened(fake: ModuleType, folder: Path, mark: Path | None = None) -> Any:
    origin = fake.FakeOrigin(folder)
    if mark is not None:
        origin.scorer = fake.DyingScorer(mark)
    return origin


def test_ray_engine_worker_that_dies_is_replaced_and_shards_are_the_same(
    fake, cluster, text, tmp_path
):
    mark = tmp_path / "one worker died"
    settings, identity = fake.SETTINGS, fake.IDENTITY
    told: list[int] = []
    by_ray = harvest(
        tmp_path / "ray",
        settings,
        partial(opened, fake, text, mark),
        identity=identity,
        engine=RayEngine(workers=2),
        progress=lambda done, total: told.append(done),
    )
    assert mark.exists()
    assert told[0] == 0
    assert told[-1] == settings.pairs
    assert len(told) == settings.shards + 1
    here = harvest(tmp_path / "here", settings, partial(opened, fake, text), identity=identity)
    assert shards(by_ray) == shards(here)
    assert ray.is_initialized()  # a connection that was there stays


def test_ray_engine_worker_that_cannot_begin_is_one_line(fake, cluster, tmp_path):
    with pytest.raises(InputError, match=r"A worker of the harvest failed: .*holds no corpus"):
        harvest(
            tmp_path / "ray",
            fake.SETTINGS,
            partial(opened, fake, tmp_path / "nothing"),
            identity={},
            engine=RayEngine(workers=1),
        )


def test_ray_engine_too_many_workers_raises(cluster):
    with pytest.raises(InputError, match=r"has room for 2 workers of 1 cores .*Got 3 to start"):
        RayEngine(workers=3).check()
    RayEngine(workers=2).check()


@pytest.mark.parametrize("options", [{"workers": 0}, {"cpus": 0}, {"gpus": -1}])
def test_ray_engine_bad_options_raise(options: dict[str, float]):
    with pytest.raises(InputError, match=r"Ray needs 1 worker or more"):
        RayEngine(**options)
