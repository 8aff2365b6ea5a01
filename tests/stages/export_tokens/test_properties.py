"""For any documents, cuts, shards and losses: what is written is what the rule says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_by_hand import END, Shards, apart, concatenated, dealt, expected, read_megatron

from artifacts_schema.kinds import KINDS
from artifacts_schema.store.backend import LocalBackend
from stages.engine import ShardOutput, ShardResult
from stages.export_tokens import joining
from stages.export_tokens.formats import write_source
from stages.export_tokens.joining import join_source
from stages.export_tokens.shards import Packed, scan_shard

INDEX = KINDS["token_shards"].tables["*/*.index.parquet"].arrow()


@dataclass(frozen=True)
class Files:
    """Stands in for an Input: files that `Shards` made, those of bytes in a folder."""

    folder: Path
    made: dict[str, Any]
    stage: str = "pack"
    key: str = "k" * 64
    output: str = "train"

    def read_json(self, path: str) -> Any:
        return self.made[path]

    def read_table(self, path: str, columns: list[str]) -> pa.Table:
        return pa.Table.from_pylist(self.made[path], schema=INDEX).select(columns)

    def local_path(self, path: str) -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(self.made[path])
        return place


def written(folder: Path, shards: Shards) -> Path:
    """The prefix of source `web`, made without a store."""
    backend = LocalBackend(str(folder))

    calls = list[str]()

    def call(function: Callable[..., Any], item: Any) -> ShardResult:
        calls.append(item.id)
        out = ShardOutput(backend, f"work/{len(calls)}", {"dataset": "token_dataset"})
        value = function(item, out)
        files = {(file.output, file.file.path): file for file in out.written}
        return ShardResult(item.id, value, backend, files)

    packed = Packed.read([Files(folder / "given", shards.files())])  # type: ignore[list-item]
    scans = [call(scan_shard, file) for source in packed.sources for file in source.files]
    packed = packed.with_scans(scans)
    packed = packed.with_joins([call(join_source, source) for source in packed.sources])
    (source,) = packed.sources
    write = partial(write_source, format="megatron", sample_length=1, tokenizer="")
    result = call(write, source)
    result.path("dataset", "web.idx")
    return result.path("dataset", "web.bin").with_name("web")


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 50), min_size=1, max_size=25),
    length=st.integers(1, 20),
    shards=st.integers(1, 5),
    layout=st.sampled_from([concatenated, apart]),
    lost=st.sets(st.integers(0, 60)),
    at_once=st.sampled_from([1, 3, 1 << 20]),
    seed=st.integers(0, 2**31),
)
def test_any_packing(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    length: int,
    shards: int,
    layout: Callable[..., Any],
    lost: set[int],
    at_once: int,
    seed: int,
) -> None:
    # Ids that are near each other, and not in the order of the documents.
    names = [f"{(number * 7919 + seed) % 1000:032x}" for number in range(len(lengths))]
    documents = {
        name: [0, *(3 + n % 40 for n in range(size)), END]
        for name, size in zip(names, lengths, strict=True)
    }
    rows = [row for n, row in enumerate(layout(documents, length)) if n not in lost]
    packed = dealt(rows, shards, seed)
    if not rows:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "AT_ONCE", at_once)
        prefix = written(
            tmp_path_factory.mktemp("any"), Shards(length=length, sources={"web": packed})
        )
    assert read_megatron(prefix)[0] == expected(packed)[0]
