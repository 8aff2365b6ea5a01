"""Parts of remote files on this machine: right bytes by few requests, whatever happens."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import signal
import time

import numpy as np
import pytest
from forks import ended, fork, in_fork

from artifacts_schema.blocks import hash_blocks
from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.file_table import File
from artifacts_schema.store import sparse
from artifacts_schema.store.backend import LocalBackend
from artifacts_schema.store.cache import CacheQuota, cached_copy, files_folder
from artifacts_schema.store.sparse import SparseFile, fetch, open_sparse

BLOCK, COUNT = 4096, 100
DATA = random.Random(0).randbytes(BLOCK * COUNT - 1000)
SHA256, HASHED = hash_blocks([DATA], BLOCK)
FILE = File(path="x", bytes=len(DATA), sha256=SHA256, blocks=HASHED.blocks)


class Bucket(LocalBackend):
    """A folder read as a bucket is; `asked` has a line for each range that a process asked for."""

    local = False

    def read_ranges(self, ranges):
        with open(self.full("asked"), "a") as asked:
            asked.write("".join(f"{one.path} {one.start} {one.end}\n" for one in ranges))
        return super().read_ranges(ranges)

    def asked(self):
        lines = self.read_many(["asked"]).get("asked", b"").decode().splitlines()
        return [(int(line.split()[1]), int(line.split()[2])) for line in lines]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The cache; nothing is fetched along with what is asked for, unless a test says so."""
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("INGOT_CACHE_SIZE", raising=False)
    monkeypatch.setattr(sparse, "_allowed", {})
    monkeypatch.setattr(sparse, "GAP_BYTES", 0)
    monkeypatch.setattr(sparse, "FILL_SHARE", 2.0)
    return tmp_path / "cache"


@pytest.fixture
def bucket(tmp_path):
    made = Bucket(str(tmp_path / "bucket"))
    made.replace("x", DATA)
    made.replace("table", HASHED.table)
    return made


def opened(bucket, path="x"):
    return open_sparse(bucket, path, FILE, table="table", owner=f"pack {'f' * 64}")


def read(copy, start, size):
    fetch([(copy, copy.covering(start, start + size))])
    content = bytearray(size)
    copy.read_into(start, memoryview(content))
    return bytes(content)


def check_random_reads(bucket, seed=0, count=40):
    """Reads of all sizes are those of the file."""
    draw, copy = random.Random(seed), opened(bucket)
    for _ in range(count):
        start = draw.randrange(len(DATA))
        size = min(draw.choice([1, 100, BLOCK, 3 * BLOCK]), len(DATA) - start)
        assert read(copy, start, size) == DATA[start : start + size]
    copy.close()


def test_a_read_asks_for_its_blocks_and_no_more(bucket):
    copy = opened(bucket)
    assert read(copy, 5 * BLOCK + 10, 20) == DATA[5 * BLOCK + 10 : 5 * BLOCK + 30]
    assert bucket.asked() == [(5 * BLOCK, 6 * BLOCK)]
    assert read(copy, 5 * BLOCK, 2 * BLOCK) == DATA[5 * BLOCK : 7 * BLOCK]
    assert bucket.asked()[1:] == [(6 * BLOCK, 7 * BLOCK)]
    assert read(copy, len(DATA) - 1, 1) == DATA[-1:]
    assert bucket.asked()[2:] == [(99 * BLOCK, len(DATA))]
    assert os.fstat(copy.descriptor).st_blocks * 512 < len(DATA) // 5


def test_another_process_finds_what_was_fetched_and_hashes_nothing(bucket, monkeypatch):
    check_random_reads(bucket)
    before = bucket.asked()
    monkeypatch.setattr(sparse.SparseCopy, "_is_right", None)
    assert in_fork(lambda: check_random_reads(bucket)) == 0
    assert bucket.asked() == before


def test_processes_that_read_at_once_fetch_each_block_once(bucket):
    children = [fork(lambda seed=seed: check_random_reads(bucket, seed)) for seed in range(6)]
    assert [ended(child) for child in children] == [0] * 6
    blocks = [block for a, b in bucket.asked() for block in range(a // BLOCK, -(-b // BLOCK))]
    assert len(blocks) == len(set(blocks)) > 80


@pytest.mark.parametrize("write", range(9))
@pytest.mark.parametrize("done", [0.0, 0.5, 1.0])
def test_a_kill_at_any_write_leaves_no_wrong_byte(bucket, write, done, monkeypatch):
    """At the n-th write to the copy, before it, half way through it, or after it."""
    writes, plain = [], os.pwrite

    def killed(descriptor, data, at):
        writes.append(at)
        if len(writes) > write:
            plain(descriptor, bytes(data)[: int(len(data) * done)], at)
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(descriptor, data, at)

    def die():
        os.pwrite = killed
        check_random_reads(bucket)

    assert ended(fork(die)) == -signal.SIGKILL
    check_random_reads(bucket)
    assert in_fork(lambda: check_random_reads(bucket, seed=1)) == 0


def damage_copy(folder, at, data=bytes(BLOCK)):
    (place,) = folder.glob("files/*/*.blocks")
    with open(place, "r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("when", ["boot", "day"])
def test_blocks_of_an_earlier_boot_or_day_are_hashed_where_they_lie(
    bucket, folder, monkeypatch, when
):
    """A power cut may have lost one that was marked: that one is fetched again."""
    copy = opened(bucket)
    read(copy, 0, 10 * BLOCK)
    damage_copy(folder, 3 * BLOCK)
    if when == "boot":
        monkeypatch.setattr(sparse, "boot_id", lambda: "another")
    else:
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + 86_400)
    before = len(bucket.asked())
    assert read(opened(bucket), 0, 10 * BLOCK) == DATA[: 10 * BLOCK]
    assert bucket.asked()[before:] == [(3 * BLOCK, 4 * BLOCK)]


def test_damage_in_the_store_is_named_by_its_block(bucket, folder):
    bucket.replace("x", DATA[: 7 * BLOCK] + b"!" + DATA[7 * BLOCK + 1 :])
    copy = opened(bucket)
    assert read(copy, 0, 7 * BLOCK) == DATA[: 7 * BLOCK]
    with pytest.raises(CorruptArtifact, match=r"block 7 \(bytes 28,672 to 32,768\)") as caught:
        read(copy, 0, 9 * BLOCK)
    assert caught.value.where.endswith("/bucket/x")
    assert "ingot verify --repair ffffffffffff" in caught.value.hint
    assert read(copy, 8 * BLOCK, BLOCK) == DATA[8 * BLOCK : 9 * BLOCK]


def test_a_block_that_was_damaged_on_its_way_is_asked_for_again(bucket, monkeypatch):
    copy, answers = opened(bucket), []
    plain = Bucket.read_ranges

    def damaged(self, ranges):
        parts = plain(self, ranges)
        answers.append(parts)
        return [b"!" + parts[0][1:], *parts[1:]] if len(answers) == 1 else parts

    monkeypatch.setattr(Bucket, "read_ranges", damaged)
    assert read(copy, 0, 4 * BLOCK) == DATA[: 4 * BLOCK]
    assert bucket.asked() == [(0, 4 * BLOCK), (0, BLOCK)]


@pytest.mark.parametrize(
    ("content", "what"), [(None, "the file is gone"), (DATA[:-5000], r"block 98 .* changed")]
)
def test_a_file_that_is_gone_or_cut_is_named(bucket, content, what):
    copy = opened(bucket)
    if content is None:
        bucket.remove("x")
    else:
        bucket.replace("x", content)
    with pytest.raises(CorruptArtifact, match=f"{what} since it was committed by pack"):
        read(copy, 98 * BLOCK, 10)


@pytest.mark.parametrize("table", [None, b"", HASHED.table[:-1], b"!" + HASHED.table[1:]])
def test_without_its_table_a_file_is_read_whole(bucket, caplog, table):
    if table is None:
        bucket.remove("table")
    else:
        bucket.replace("table", table)
    assert opened(bucket) is None
    assert "ingot verify" in caplog.text


def test_a_damaged_table_in_the_copy_is_read_again(bucket, folder):
    check_random_reads(bucket)
    damage_copy(folder, -(-len(DATA) // 4096) * 4096, b"!")
    check_random_reads(bucket, seed=1)


def test_of_much_of_a_file_the_rest_is_fetched_along(bucket, monkeypatch):
    """In requests of a bounded size."""
    monkeypatch.setattr(sparse, "FILL_SHARE", 0.25)
    monkeypatch.setattr(sparse, "RANGE_BYTES", 40 * BLOCK)
    copy = opened(bucket)
    read(copy, 0, 25 * BLOCK)
    assert len(bucket.asked()) == 1
    read(copy, 50 * BLOCK, 1)
    assert bucket.asked()[1:] == [
        (25 * BLOCK, 65 * BLOCK), (65 * BLOCK, len(DATA))
    ]  # fmt: skip
    check_random_reads(bucket)
    assert len(bucket.asked()) == 3


def test_blocks_near_to_each_other_are_one_request(bucket, monkeypatch):
    monkeypatch.setattr(sparse, "GAP_BYTES", 2 * BLOCK)
    copy = opened(bucket)
    fetch([(copy, [1, 4, 8, 9])])
    assert bucket.asked() == [(BLOCK, 5 * BLOCK), (8 * BLOCK, 10 * BLOCK)]


def test_several_files_are_asked_for_together_and_equal_ones_once(bucket, monkeypatch):
    bucket.replace("y", DATA)
    calls, plain = [], Bucket.read_ranges
    monkeypatch.setattr(
        Bucket, "read_ranges", lambda self, r: calls.append(len(r)) or plain(self, r)
    )
    one, two = opened(bucket), opened(bucket, "y")
    fetch([(one, [1, 5]), (two, [5, 9])])
    assert calls == [2, 1]
    assert sorted(bucket.asked()) == [(n * BLOCK, (n + 1) * BLOCK) for n in (1, 5, 9)]
    for copy, block in ((one, 1), (one, 5), (two, 5), (two, 9)):
        content = bytearray(BLOCK)
        copy.read_into(block * BLOCK, memoryview(content))
        assert content == DATA[block * BLOCK : (block + 1) * BLOCK]


def test_a_whole_copy_is_preferred(bucket):
    cached_copy(bucket, "x", FILE, full=True)
    assert opened(bucket) is None
    assert opened(LocalBackend(bucket.url)) is None, "a folder is read where it lies"


def test_only_what_a_copy_holds_counts_for_the_quota(bucket, folder, monkeypatch):
    """Ten blocks, the table and the marks, and the page that they begin in."""
    copy = opened(bucket)
    read(copy, 0, 10 * BLOCK)
    used = CacheQuota(files_folder()).used
    assert 10 * BLOCK < used <= 12 * BLOCK + 4096
    old = time.time() - 3600
    os.utime(copy.place, (old, old))
    CacheQuota(files_folder()).clear()
    assert not copy.place.exists()
    assert read(copy, 0, 10 * BLOCK) == DATA[: 10 * BLOCK], "who has it open reads on"
    check_random_reads(bucket)


def test_a_fetch_that_does_not_go_into_the_cache_says_what_to_set(bucket, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_SIZE", str(2 * BLOCK))
    with pytest.raises(StoreError, match=f"{3 * BLOCK:,} bytes") as caught:
        read(opened(bucket), 0, 3 * BLOCK)
    assert "INGOT_CACHE_SIZE" in caught.value.hint


@pytest.mark.parametrize("full", [1, 9])
def test_a_full_disk_costs_idle_copies_before_it_is_an_error(bucket, folder, monkeypatch, full):
    idle = folder / "files" / "aa" / "a"
    idle.parent.mkdir(parents=True)
    idle.write_bytes(b"idle")
    os.utime(idle, (1000, 1000))
    copy, plain, left = opened(bucket), os.pwrite, [full]

    def refuse(descriptor, data, at):
        if left[0]:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return plain(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", refuse)
    if full == 1:
        assert read(copy, 0, BLOCK) == DATA[:BLOCK]
    else:
        with pytest.raises(StoreError, match="no space left") as caught:
            read(copy, 0, BLOCK)
        assert "INGOT_CACHE" in caught.value.hint
    assert not idle.exists()
    left[0] = 0
    check_random_reads(bucket)


def test_as_a_file_it_reads_as_the_file_does(bucket, tmp_path):
    draw = random.Random(1)
    with SparseFile(opened(bucket)) as file, open(tmp_path / "bucket" / "x", "rb") as plain:
        for _ in range(50):
            place = draw.choice([(draw.randrange(len(DATA)), 0), (-draw.randrange(99), 2), (5, 1)])
            size = draw.randrange(3 * BLOCK)
            assert file.seek(*place) == plain.seek(*place)
            assert file.read(size) == plain.read(size)
            assert file.tell() == plain.tell()
    assert hashlib.sha256(SparseFile(opened(bucket)).read()).hexdigest() == FILE.sha256


@pytest.mark.parametrize("pre_buffer", [False, True])
def test_a_table_on_a_damaged_block_ends_with_the_error_for_people(bucket, tmp_path, pre_buffer):
    """Arrow reads from threads of its own, and must not hide what happened there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: random.Random(name).randbytes(800_000) for name in "ab"}
    table = pa.table({name: np.frombuffer(data, np.int64) for name, data in columns.items()})
    pq.write_table(table, tmp_path / "bucket" / "t", use_dictionary=False)
    data = (tmp_path / "bucket" / "t").read_bytes()
    sha256, hasher = hash_blocks([data], BLOCK)
    file = File(path="t", bytes=len(data), sha256=sha256, blocks=hasher.blocks)
    bucket.replace("table", hasher.table)
    bucket.replace("t", data[:BLOCK] + b"!" + data[BLOCK + 1 :])

    def read_column(name):
        copy = open_sparse(bucket, "t", file, table="table", owner=f"pack {'f' * 64}")
        with SparseFile(copy) as opened:
            parquet = pq.ParquetFile(opened, pre_buffer=pre_buffer)
            return parquet.read(columns=[name], use_threads=False)

    assert read_column("b")["b"] == table["b"]
    with pytest.raises(CorruptArtifact, match="block 1 "):
        read_column("a")
