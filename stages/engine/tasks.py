"""The calls of a map as tasks: what all of them share goes to a worker once, the rest is small.

An item of a stage is most often one table of an input, and an input lists all of its files: sent
with each call, that grows with the square of the number of shards (13.5 MB a call at 10^5 files).
Here the inputs, the function and its shared arguments are the map's common part, which a worker is
sent with its first call; a task holds its own item, in which a number stands for each input. Its
bytes do not depend on how many shards there are.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from artifacts_schema.store.backend import Backend
from stages.engine.inputs import Input
from stages.engine.meter import process_seconds
from stages.engine.outputs import ShardOutput, Written

Took = tuple[float, float]
"""CPU seconds of a shard, and seconds by the clock."""
Made = tuple[dict[str, Any], list[Written], Took]
"""What a task gives: the function's value, the files, and what it took."""
MarkOf = Callable[[str, int], str | None]
"""Item and process id of a dead worker → what it had marked that it was at; None if nothing."""


class Item(Protocol):
    """What can be mapped over: anything picklable with an id that is unique in its map."""

    @property
    def id(self) -> str:
        """Unique within the map; becomes a file name."""


@dataclass(frozen=True)
class MapCommon:
    """What the tasks of one map share. Picklable."""

    function: Callable[..., Any]
    shared: Mapping[str, Any]
    """Arguments of every call."""
    backend: Backend
    folder: str
    """Of the shards' files in the work folder."""
    kinds: dict[str, str]
    inputs: tuple[Input, ...] = ()
    """Those that items refer to by number."""
    mark_of: MarkOf | None = None
    """Called on the machine where a worker died; only where calls need a process of their own."""

    def do(
        self, item: Item, changes: Mapping[str, Any], stop: Callable[[], bool] = lambda: False
    ) -> Made:
        """Make the call of one item, into a folder of its own; `changes` replace shared ones."""
        cpu, clock = process_seconds(), time.monotonic()
        output = ShardOutput(self.backend, f"{self.folder}/{item.id}", self.kinds, stop)
        value = self.function(item, output, **{**self.shared, **changes})
        took = process_seconds() - cpu, time.monotonic() - clock
        return dict(value or {}), output.written, took


@dataclass(frozen=True)
class Task:
    """One call, as it travels."""

    item: bytes
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Shared arguments that changed since the map began."""


def pack(common: MapCommon, items: Sequence[Item]) -> tuple[bytes, list[bytes]]:
    """The common part of a map, with the inputs of its items, and each item without them."""
    packer = _ItemPacker()
    packed = [packer.pack(item) for item in items]
    inputs = tuple(packer.inputs.values())
    whole = MapCommon(**{**vars(common), "inputs": inputs})
    return pickle.dumps(whole, pickle.HIGHEST_PROTOCOL), packed


class _ItemPacker:
    """Pickles items; an input becomes its number among all that were met."""

    def __init__(self) -> None:
        self.inputs: dict[int, Input] = {}
        self._numbers: dict[int, int] = {}

    def pack(self, item: Item) -> bytes:
        buffer = io.BytesIO()
        _Pickler(buffer, self).dump(item)
        return buffer.getvalue()

    def number(self, one: Input) -> int:
        self.inputs.setdefault(id(one), one)  # Held: its id stays its own.
        return self._numbers.setdefault(id(one), len(self._numbers))


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, packer: _ItemPacker) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._packer = packer

    def persistent_id(self, value: Any) -> int | None:
        return self._packer.number(value) if isinstance(value, Input) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, packed: bytes, inputs: Sequence[Input]) -> None:
        super().__init__(io.BytesIO(packed))
        self._inputs = inputs

    def persistent_load(self, number: Any) -> Input:
        return self._inputs[number]


# In a worker --------------------------------------------------------------------------------------


class _Held:
    """The common part of the map that this process works for: packed, until a task needs it."""

    packed: bytes | None = None
    common: MapCommon | None = None


def hold_common(packed: bytes) -> None:
    """Keep the common part for the tasks to come, in place of that of an earlier map."""
    _Held.packed, _Held.common = packed, None


def held_common() -> MapCommon:
    """The common part that was kept."""
    if _Held.common is None:
        assert _Held.packed is not None, "a worker is sent the common part with its first task"
        _Held.common = pickle.loads(_Held.packed)
    return _Held.common


def held_packed() -> bytes | None:
    """The same as it came, to be passed on."""
    return _Held.packed


def do_task(packed: bytes | None, task: Task) -> Made:
    """Do a task; `packed` is the common part if it has not been sent before."""
    if packed is not None:
        hold_common(packed)
    common = held_common()
    item = _Unpickler(task.item, common.inputs).load()
    return common.do(item, task.changes)
