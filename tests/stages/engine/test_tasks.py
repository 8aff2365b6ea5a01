"""What travels with a call of a map: the same few bytes however many shards there are."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.file_table import File
from artifacts_schema.store.remote import backend_at
from stages.engine import Input, Shard
from stages.engine.dask_worker import SharedFolder, _Process, _take_common
from stages.engine.tasks import MapCommon, Task, do_task, held_common, pack


def read_shard(shard: Shard, out, **shared):
    """The shard as a worker sees it."""
    return {"files": len(shard.input.files), "rows": shard.rows, "path": shard.path, **shared}


def shards_of(backend, number):
    files = tuple(
        File(path=f"{i:05d}.parquet", bytes=1, sha256="0" * 64, rows=i) for i in range(number)
    )
    held = Input(backend, "data", "toy", "a" * 64, "documents", "documents", "b" * 64, files)
    return held.shards()


@pytest.fixture
def common(tmp_path):
    return MapCommon(read_shard, {"a": 1}, backend_at(str(tmp_path)), "work/m", {})


def test_the_bytes_of_a_task_do_not_grow_with_the_number_of_shards(common):
    sizes = {}
    for number in (10, 100, 1_000):
        shards = shards_of(common.backend, number)
        _, packed = pack(common, shards)
        sizes[number] = {len(pickle.dumps(Task(one))) for one in packed[:10]}
    assert sizes[1_000] == sizes[100] == sizes[10]
    assert max(sizes[10]) < 400


def test_a_worker_is_sent_what_all_tasks_share_once(common):
    shards = shards_of(common.backend, 3)
    packed, parts = pack(common, shards)
    first = do_task(packed, Task(parts[2]))[0]
    second = do_task(None, Task(parts[1], {"a": 2}))[0]
    assert first == {"files": 3, "rows": 2, "path": "00002.parquet", "a": 1}
    assert second == {"files": 3, "rows": 1, "path": "00001.parquet", "a": 2}
    (one,) = held_common().inputs
    assert one.files == shards[0].input.files


def test_items_of_several_inputs_keep_theirs(common):
    first, second = shards_of(common.backend, 2), shards_of(common.backend, 5)
    packed, parts = pack(common, [first[0], second[0], first[1]])
    files = [do_task(packed, Task(part))[0]["files"] for part in parts]
    assert files == [2, 5, 2]


def test_a_worker_unpickles_only_the_bytes_that_its_task_names(tmp_path, monkeypatch):
    monkeypatch.setattr(_Process, "digest", None)
    folder = SharedFolder(str(tmp_path), "work/dask", "token")
    bad = pickle.dumps(_Touch(str(tmp_path / "ran")))
    digest = hashlib.sha256(b"what the stage wrote").hexdigest()
    folder.write(digest, bad)
    with pytest.raises(InputError) as caught:
        _take_common(folder, digest)
    assert digest in caught.value.where
    assert not (tmp_path / "ran").exists()
    folder.write(hashlib.sha256(bad).hexdigest(), bad)
    _take_common(folder, hashlib.sha256(bad).hexdigest())
    assert (tmp_path / "ran").exists()  # What the test would have shown, had it been loaded.


class _Touch:
    """Unpickling it leaves a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)
