"""Holders of passages that stay: those of a set, whatever shards, memory and ids are."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.filter.assess import FINDINGS, HOLDERS
from stages.filter.copies import LocalMaps
from stages.filter.holders import staying_holders
from stages.filter.links import NUMBERS, sort_names
from stages.filter.ordered import write_ordered

ids = st.one_of(
    st.integers(0, 40).map(lambda n: hashlib.md5(str(n).encode()).hexdigest()), st.text(max_size=2)
)


@dataclass(frozen=True)
class Assessed:
    """What a shard's task leaves: its documents with whether they pass, and holders."""

    id: str
    documents: list[str]
    passes: list[bool]
    holders: list[str]


def leave(item: Assessed, out: Any) -> dict[str, int]:
    numbers, order = sort_names(pa.array(item.documents, pa.string()))
    numbers = numbers.drop_columns("doc_id").append_column("row", pa.array(order.astype(np.uint64)))
    holders, _ = sort_names(pa.array(item.holders, pa.string()))
    for name, table in ((NUMBERS, numbers), (HOLDERS, holders)):
        with out.open_scratch(name) as file:
            write_ordered(table, file)
    failing = pa.array([[] if passes else [0] for passes in item.passes], pa.list_(pa.int32()))
    values = np.zeros(len(item.passes))
    findings = {"failing": failing, "value": values, "threshold": values}
    out.write_scratch(FINDINGS, pa.table(findings))
    return {"holders": len(item.holders)}


class Dropped:
    """Documents that are copies."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = np.array(rows, np.int64)

    def dropped(self) -> list[np.ndarray]:
        return [self.rows]


@dataclass(frozen=True)
class Folder:
    ledger: str | None


@dataclass(frozen=True)
class Earlier:
    """Documents that earlier runs kept, if a ledger says so."""

    kept: frozenset[str]
    folders: tuple[Folder, ...]

    def kept_among(self, names: pa.Array) -> pa.StringArray:
        return pa.array([name for name in names.to_pylist() if name in self.kept], pa.string())


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from([1 << 30, 300, 64]))
def test_a_holder_stays_where_this_run_or_an_earlier_one_keeps_it(
    data: st.DataObject, memory: int
) -> None:
    every = data.draw(st.lists(ids, unique=True, max_size=12))
    others = list(data.draw(st.lists(ids, unique=True, max_size=6)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(every)), min_size=1, max_size=3)))
    passes = data.draw(st.lists(st.booleans(), min_size=len(every), max_size=len(every)))
    dropped = data.draw(st.lists(st.sampled_from(range(len(every))))) if every else []
    earlier = Earlier(
        frozenset(name for name in others if name not in every and data.draw(st.booleans())),
        (Folder(data.draw(st.sampled_from([None, "ledger"]))),),
    )
    starts, items = [0, *cuts, len(every)], []
    for place, (start, stop) in enumerate(itertools.pairwise(starts)):
        named = data.draw(st.lists(st.sampled_from([*every, *others, "none"]), unique=True))
        items.append(Assessed(f"{place}", every[start:stop], passes[start:stop], named))
    with TemporaryDirectory() as folder:
        maps = LocalMaps(Path(folder))
        results = maps(leave, items)
        stay = staying_holders(maps, starts, results, Dropped(dropped), earlier, memory)  # type: ignore[arg-type]
        kept = {name for row, name in enumerate(every) if passes[row] and row not in dropped}
        if earlier.folders[0].ledger is not None:
            kept |= earlier.kept
        for item, result, own in zip(items, results, stay, strict=True):
            names = result.read_scratch(HOLDERS)["doc_id"].to_pylist()
            assert [name for name, stays in zip(names, own, strict=True) if stays] == [
                name for name in names if name in kept
            ]
            assert sorted(names) == sorted(item.holders)


def test_the_process_of_the_stage_reads_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what tasks leave it reads numbers alone."""
    from stages.engine.outputs import ShardResult

    read: list[Any] = []
    plain = ShardResult.read_scratch

    def noted(self: ShardResult, name: str, columns: Any = None) -> pa.Table:
        read.append((name, columns))
        return plain(self, name, columns)

    names = [hashlib.md5(str(number).encode()).hexdigest() for number in range(9)]
    with TemporaryDirectory() as folder:
        maps = LocalMaps(Path(folder))
        results = maps(leave, [Assessed("0", names, [True] * 9, names[:3])])
        monkeypatch.setattr(ShardResult, "read_scratch", noted)
        (own,) = staying_holders(maps, [0, 9], results, Dropped([]), Earlier(frozenset(), ()), 300)  # type: ignore[arg-type]
    assert own.all()
    assert read == [(FINDINGS, None), (HOLDERS, ["number"])]
