"""Tables of blocks: what is written beside large files, and that nothing else depends on it."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from dataclasses import dataclass

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from artifacts_schema.blocks import SIZES, BlockHasher, block_bytes, merge
from artifacts_schema.config import Config
from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.file_table import INLINE_FILES
from artifacts_schema.identity import files_digest
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.store import Store
from artifacts_schema.store.verify import verify
from stages.engine import Context, Input, Stage

LARGE = random.Random(0).randbytes(200_000)
SMALL = LARGE[: SIZES[".tokens"]]


def expected_table(data, size):
    """By the definition."""
    return b"".join(
        hashlib.sha256(data[at : at + size]).digest() for at in range(0, len(data), size)
    )


@drawn(st.lists(st.binary(max_size=50)), st.integers(1, 20))
def test_the_table_does_not_depend_on_how_a_file_is_written(parts, size):
    hasher = BlockHasher(size)
    for part in parts:
        hasher.update(memoryview(part))
    table = expected_table(b"".join(parts), size)
    assert hasher.table == (table if len(table) > 32 else None)


def test_tokens_and_tables_have_one_and_other_files_have_none():
    assert block_bytes("web/00000.tokens") == block_bytes("web/00000.marks") == 65_536
    assert block_bytes("00000.parquet") == 1_048_576
    assert block_bytes("model.safetensors") == block_bytes("tokens") == block_bytes("") == 0


@drawn(st.sets(st.integers(0, 40)), st.integers(0, 4))
def test_merged_ranges_hold_all_blocks_and_no_long_gap(blocks, gap):
    ranges = list(merge(sorted(blocks), gap))
    covered = [block for one in ranges for block in one]
    assert covered == sorted(set(covered))
    assert blocks <= set(covered)
    for one in ranges:
        assert {one.start, one.stop - 1} <= blocks
        inside = sorted(blocks & set(one))
        assert all(b - a <= gap + 1 for a, b in itertools.pairwise(inside))
    assert all(b.start - a.stop > gap for a, b in itertools.pairwise(ranges))


class _Files(Config):
    files: int


@dataclass
class Made:
    """A token_shards artifact of several files, of which the named ones are large."""

    store: Store
    manifest: Manifest

    def table(self, path):
        place = self.store.payload(self.manifest, "train", path)
        return layout.block_table(place, "train", path)

    def files(self):
        return {file.path: file for file in self.manifest.outputs["train"].files}


@pytest.fixture(params=["the stage's process", "shards"])
def make(request, run_stage, store):
    """`make(n)`: n files of tokens, the first large, written by the stage itself or by shards."""

    def write(item, out):
        out.write_bytes("train", f"web/{item.id}.tokens", LARGE if item.id == "00000" else SMALL)
        return {}

    @dataclass
    class Item:
        id: str

    def run(self, context: Context) -> None:
        names = [f"{number:05d}" for number in range(context.config.files)]
        if request.param == "shards":
            context.map(write, [Item(name) for name in names])
        else:
            for name in names:
                write(Item(name), context)

    members = {
        "name": "large", "version": 1, "reproducible": "bytes",
        "outputs": {"train": "token_shards"}, "Config": _Files, "run": run,
    }  # fmt: skip
    stage = type("Large", (Stage,), members)
    return lambda files: Made(store, run_stage(stage, {"files": files}))


@pytest.mark.parametrize("count", [3, INLINE_FILES + 1])
def test_a_large_file_has_a_table_that_no_digest_knows(make, count):
    made = make(count)
    files = made.files()
    assert {path for path, file in files.items() if file.blocks} == {"web/00000.tokens"}
    table = made.store.backend.read(made.table("web/00000.tokens"))
    assert table == expected_table(LARGE, SIZES[".tokens"])
    assert files["web/00000.tokens"].blocks.sha256 == hashlib.sha256(table).hexdigest()
    output = made.manifest.outputs["train"]
    plain = [(path, len(LARGE), hashlib.sha256(LARGE).hexdigest()) for path in list(files)[:1]]
    plain += [(path, len(SMALL), hashlib.sha256(SMALL).hexdigest()) for path in list(files)[1:]]
    assert output.digest == files_digest(plain)
    assert verify(made.store, made.manifest) == []
    again = Store.open(made.store.url).manifest(*made.manifest.name)
    assert again.schema_version == 4
    assert again.outputs["train"].files == output.files
    names = made.store.backend.files(layout.payload(*made.manifest.name, made.manifest.attempt))
    assert [name for name in names if name.startswith("blocks/")] == [
        "blocks/train/web/00000.tokens"
    ]
    assert made.store.backend.files("work") == []


def test_a_manifest_without_tables_is_what_it_was(given, store):
    """An Ingot that knows no tables reads it."""
    manifest, _ = given("token_shards", {"web/00000.tokens": SMALL, "shards.json": {}})
    raw = store.backend.read(layout.manifest(*manifest.name))
    assert json.loads(raw)["schema_version"] == 2
    assert b"blocks" not in raw


def test_a_schema_that_its_files_do_not_need_is_refused(make):
    """Else an older Ingot would refuse a manifest by a field that it does not know, not by name."""
    made = make(2)
    place = layout.manifest(*made.manifest.name)
    value = json.loads(made.store.backend.read(place))
    value["schema_version"] = 2
    changed = Manifest.model_validate({k: v for k, v in value.items() if k != "checksum"})
    with pytest.raises(CorruptArtifact, match="schema version"):
        Manifest.load(changed.to_json(), where=place)


def test_verify_writes_a_lost_or_changed_table_again(make, caplog):
    made = make(2)
    place = made.table("web/00000.tokens")
    table = made.store.backend.read(place)
    made.store.backend.remove(place)
    assert verify(made.store, made.manifest, full=False) == [], "no reader needs it"
    assert verify(made.store, made.manifest) == []
    assert made.store.backend.read(place) == table
    made.store.backend.replace(place, b"other")
    assert verify(made.store, made.manifest) == []
    assert made.store.backend.read(place) == table
    assert caplog.text.count("written again") == 2


def test_verify_refuses_a_checksum_of_blocks_that_are_not_the_files(make):
    made = make(2)
    entry = made.files()["web/00000.tokens"]
    wrong = entry.model_copy(
        update={"blocks": entry.blocks.model_copy(update={"sha256": "0" * 64})}
    )
    output = made.manifest.outputs["train"]
    forged = output.model_copy(update={"entries": (wrong, *output.entries[1:])})
    manifest = made.manifest.model_copy(update={"outputs": {"train": forged}})
    (problem,) = verify(made.store, manifest)
    assert "blocks" in problem.what


def test_a_finished_shard_whose_table_is_lost_is_done_again(run_stage, store):
    """It is killed after its shards are recorded, and one table is lost."""
    done = []

    def write(item, out):
        done.append(item.id)
        out.write_bytes("train", f"web/{item.id}.tokens", LARGE)
        return {}

    @dataclass
    class Item:
        id: str

    def run(self, context: Context) -> None:
        context.map(write, [Item("00000"), Item("00001")])
        if len(done) == 2:
            raise RuntimeError("killed")

    members = {
        "name": "large", "version": 1, "reproducible": "bytes",
        "outputs": {"train": "token_shards"}, "run": run,
    }  # fmt: skip
    stage = type("Large", (Stage,), members)
    with pytest.raises(RuntimeError, match="killed"):
        run_stage(stage)
    (lost,) = [n for n in store.backend.files("work") if "blocks/train/web/00001" in n]
    store.backend.remove(f"work/{lost}")
    made = Made(store, run_stage(stage))
    assert done == ["00000", "00001", "00001"]
    assert verify(store, made.manifest) == []
    for path in ("web/00000.tokens", "web/00001.tokens"):
        assert made.store.backend.read(made.table(path)) == expected_table(LARGE, 65_536)
    assert Input.from_manifest(store, made.manifest, "train").read_bytes(path) == LARGE
