"""Token files: opened when read, few at a time, whatever happens to them meanwhile."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from written_shards import every, write_shards

from artifacts_schema.file_table import File
from artifacts_schema.store.backend import LocalBackend
from stages.engine.inputs import Input
from stages.training import token_shards
from stages.training.token_shards import TokenShards


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_only_so_many_files_are_open_whatever_the_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(token_shards, "open_at_once", lambda: 3)
    made = write_shards(tmp_path / "a", {"web": [4] * 20})
    gc.collect()
    before = open_files()
    shards = TokenShards([made])
    assert open_files() == before
    sources_B, sequences_B = every(shards, "web")
    order = np.random.default_rng(0).permutation(len(sequences_B))
    batch = shards.batch(sources_B, sequences_B[order])
    assert open_files() == before + 3
    for row, sequence in enumerate(order.tolist()):
        ids = [token for run in made.rows["web"][sequence] for token in run.ids]
        assert batch.tokens_BL[row, : len(ids)].tolist() == ids
    del shards
    gc.collect()
    assert open_files() == before


def test_construction_reads_no_token_and_no_index(tmp_path, monkeypatch):
    made = write_shards(tmp_path / "a", {"web": [4], "code": [4]})
    asked: list[str] = []
    monkeypatch.setattr(made, "local_path", lambda path: asked.append(path) or made.folder / path)
    monkeypatch.setattr(made, "read_table", None)
    shards = TokenShards([made])
    assert asked == []
    shards.batch(np.array([0]), np.array([0]))
    shards.batch(np.array([0]), np.array([1]))
    assert asked == ["code/00000.tokens"]


def test_copies_on_the_node_give_the_same_batches(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    write_shards(tmp_path / "a", {"web": [4] * 3, "code": [2]})
    paths = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    files = tuple(
        File(
            path=str(path.relative_to(tmp_path / "a")),
            bytes=path.stat().st_size,
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in paths
    )
    own = Input(
        LocalBackend(str(tmp_path)), "a", "pack", "0" * 64, "train", "token_shards", "", files
    )
    batches = []
    for source in (own, replace(own, copied=True, _checked=set())):
        shards = TokenShards([source])
        batches.append([shards.batch(*every(shards, name)) for name in ("web", "code")])
    for one, two in zip(*batches, strict=True):
        assert (one.tokens_BL == two.tokens_BL).all()
        assert (one.targets_BL == two.targets_BL).all()
    copies = {path.name for path in (tmp_path / "cache" / "files").glob("??/*")}
    assert copies >= {file.sha256 for file in files if file.path.endswith(".tokens")}
    for path in paths:
        path.write_bytes(b"")  # Nothing is read from the store any more.
    again = shards.batch(*every(shards, "code"))
    assert (again.tokens_BL == batches[1][1].tokens_BL).all()


@pytest.fixture
def hasty_threads():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_may_share_the_files(tmp_path, monkeypatch, hasty_threads):
    """Without turns one closes what the other is about to read."""
    monkeypatch.setattr(token_shards, "open_at_once", lambda: 2)
    shards = TokenShards([write_shards(tmp_path / "a", {"web": [6] * 8})])
    whole = shards.batch(*every(shards, "web"))
    wrong: list[int] = []

    def read(seed):
        draw = np.random.default_rng(seed)
        for _ in range(60):
            chosen = draw.integers(0, len(whole.tokens_BL), size=5)
            try:
                got = shards.batch(np.zeros(5, dtype=np.int64), chosen)
                assert (got.tokens_BL == whole.tokens_BL[chosen]).all()
            except Exception:
                wrong.append(seed)
                raise

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_copy_that_made_room_for_another_is_fetched_again(tmp_path, monkeypatch):
    """Of a remote store files are copies in a cache; one that was closed may be gone."""
    monkeypatch.setattr(token_shards, "open_at_once", lambda: 1)
    made = write_shards(tmp_path / "a", {"web": [5, 5]})
    fetched: list[Path] = []

    def local_path(path):
        copy = tmp_path / f"copy-{len(fetched)}"
        copy.write_bytes((made.folder / path).read_bytes())
        fetched.append(copy)
        return copy

    monkeypatch.setattr(made, "local_path", local_path)
    shards = TokenShards([made])
    last = shards.sequences["web"] - 1
    first = shards.batch([0, 0], [0, last])
    fetched[0].unlink()
    again = shards.batch([0, 0], [0, last])
    assert (first.tokens_BL == again.tokens_BL).all()
    assert len(fetched) == 3


def test_a_row_that_comes_in_parts_is_put_together(tmp_path, monkeypatch):
    made = write_shards(tmp_path / "a", {"web": [9]})
    shards = TokenShards([made])
    whole = shards.batch(*every(shards, "web"))
    given = os.preadv
    monkeypatch.setattr(os, "preadv", lambda f, views, at: given(f, [views[0][:5]], at))
    for file in (TokenShards([made]), shards):
        assert (file.batch(*every(shards, "web")).tokens_BL == whole.tokens_BL).all()
