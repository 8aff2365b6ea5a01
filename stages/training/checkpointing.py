"""Rolling checkpoints: what a killed run needs to continue to the same bits.

Each is an atomic directory with the weights, the optimizer state, averages, the random state, and
how far the log of measurements went. The newest whole one wins. Training stands still while the
tensors are copied to memory of the host; a thread writes them. The copies are page-locked where
they come from a GPU: such copies run at the speed of the bus, and locking pages takes longer than
copying, so the memory is kept for the next time.

Permanent checkpoints go the same way, in the order in which they were taken: no rolling one exists
before a permanent one of its own or an earlier training step. Otherwise a killed run would continue
after it and never make it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.files import exists, list_names
from artifacts_schema.store.failpoints import hit_failpoint
from artifacts_schema.store.storage_errors import Unreachable
from stages.engine.meter import note_checkpoint
from stages.engine.state import State
from stages.parallel.boxes import local
from stages.parallel.ranks import ALONE, Ranks
from stages.parallel.shard_files import (
    ShardFiles,
    describe_parts,
    fill,
    gather_on_first,
    held_parts,
    save_parts,
    shape_of,
)
from stages.training import atomic_dir
from stages.training.monitor import Position, RunLog
from stages.training.runtime import random_state

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
AVERAGES = "averages.safetensors"
Tensors = Mapping[str, Mapping[str, Tensor]]
"""What a checkpoint holds by file: WEIGHTS, OPTIMIZER, AVERAGES (empty without any)."""
_GROUPS = (WEIGHTS, OPTIMIZER, AVERAGES)
PARTS = "parts"
"""Beside the checkpoints: parts of the next one, by rank."""
PART_SECONDS = 0.05
"""How often a part of another rank is looked for."""
NEWEST, MOST_KEPT = 2, 4
"""How many of the newest stay, and how many there are at most while a run may roll back."""
_PREFIX = "training-step-"
_PART = "measurements-"
"""Names of what is published: checkpoints, and closed parts of the log."""


class HostMemory:
    """As much as the largest copy so far has needed."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Tensor] = {}

    def copies(self, groups: Tensors) -> dict[str, dict[str, Tensor]]:
        """Copies of all tensors, or of what this rank holds of them; whole when it returns.

        They hold until the next call.
        """
        copied: dict[str, dict[str, Tensor]] = {}
        on_gpu = False
        for group, tensors in groups.items():
            copied[group] = {}
            for name, source in tensors.items():
                part = local(source)
                copied[group][name] = self._place((group, name), part)
                copied[group][name].copy_(part, non_blocking=part.is_cuda)
                on_gpu |= part.is_cuda
        if on_gpu:
            torch.cuda.synchronize()
        return copied

    def _place(self, key: tuple[str, str], like: Tensor) -> Tensor:
        kept = self._kept.get(key)
        if kept is None or kept.shape != like.shape or kept.dtype != like.dtype:
            kept = torch.empty(like.shape, dtype=like.dtype, pin_memory=like.is_cuda)
            self._kept[key] = kept
        return kept


@dataclass(frozen=True)
class Saved:
    """The state of a run after a training step; tensors on CPU."""

    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    state: dict[str, Any]
    averages: Mapping[str, Tensor] = field(default_factory=dict)
    position: Position | None = None
    """How far the log of measurements went; of a checkpoint that was read back."""
    name: str = ""
    """Of the folder that it was read from."""


def fetch_newest(state: State, folder: Path) -> None:
    """Copy the newest published checkpoint to `folder`, and the log of measurements beside it.

    No-op if the folder has one that is as new: no other machine trained further.
    """
    here = max((one.name for one in _newest_first(folder) if _is_sealed(one)), default="")
    published = state.published()
    for name in reversed(published):
        if name.startswith(_PREFIX) and (name <= here or state.fetch(name)):
            if name > here:
                for part in published:
                    if part.startswith(_PART):
                        state.fetch(part)
            return


class RollingCheckpoints:
    """The last checkpoints under `folder`, and the same in `state` where that publishes.

    `sidecars` are files that are published with them. A thread writes them, one at a time; what it
    raises is raised by a later call, and nothing is written after it.

    Several `ranks` all see `folder`. Each that holds a part of the model which no rank before it
    has writes that part; rank 0 waits for all, and only then does the checkpoint exist.
    """

    def __init__(
        self,
        folder: Path,
        run_log: RunLog,
        log: logging.Logger,
        *,
        state: State | None = None,
        sidecars: Sequence[Path] = (),
        ranks: Ranks = ALONE,
    ) -> None:
        self.folder, self.run_log, self.log = folder, run_log, log
        self.state, self.sidecars = state, tuple(sidecars)
        self.ranks, self.writers = ranks, ranks.layout.writers()
        self._writer = ThreadPoolExecutor(1, "checkpoints")
        self._last: Future[None] | None = None
        """The last thing that the thread was given, until it is known how it ended."""
        self._memory = HostMemory()
        self._copy: tuple[int, dict[str, dict[str, Tensor]]] | None = None
        """Training step and tensors of the last copy."""
        self.refused: list[tuple[str, str]] = []
        """Name and fault of each checkpoint that the last call of `newest` did not take."""
        self._to_withdraw: set[str] = set()
        """Checkpoints that are removed here, and perhaps not yet where they were published."""

    def save(
        self,
        training_step: int,
        tensors: Tensors,
        state: Mapping[str, Any],
        *,
        horizon: int | None = None,
    ) -> None:
        """Take a checkpoint; returns once the tensors may change again.

        Then older ones are removed: the newest two stay and, so that a run can go back before
        training step `horizon`, the newest before it and the oldest after it, which will take its
        place. Raises StoreError when it, or the one before it, cannot be written (disk full);
        earlier ones stay.
        """
        target = self.folder / f"{_PREFIX}{training_step:012d}"
        taken = time.time()
        headers = {}
        if self.ranks.world > 1:
            tensors = {group: held_parts(some, self.ranks) for group, some in tensors.items()}
            headers = {group: describe_parts(some) for group, some in tensors.items()}
        copies = self._copied(training_step, tensors)
        if not self.ranks.first:
            if self.ranks.rank in self.writers:
                part = self._part(target.name, self.ranks.rank)
                self._do(lambda: self._write(part, copies, headers, {}))
            return
        position, parts = self.run_log.position(), self.run_log.parts()
        content = {**state, "random": random_state()}

        def write() -> None:
            folders = [self._part(target.name, rank) for rank in self.writers if rank > 0]
            self._wait_for(folders)
            facts = {"position": asdict(position)}
            self._write(target, copies, headers, facts, content=content, parts=folders)
            note_checkpoint(self.state, taken=taken)
            for folder in folders:
                atomic_dir.remove_atomic_dir(folder)
            self._prune(horizon)
            self._publish(target, parts)

        self._do(write)

    def commit(
        self,
        training_step: int,
        tensors: Tensors,
        state: Mapping[str, Any],
        commit: Callable[[Saved], None],
    ) -> None:
        """Call `commit` with a copy of a state, by the thread that writes the rolling ones.

        Returns once the tensors may change again.
        """
        if self.ranks.world > 1:
            copies = {n: gather_on_first(some, self.ranks) for n, some in tensors.items()}
            if not self.ranks.first:
                return
        else:
            copies = self._copied(training_step, tensors)
        saved = Saved(copies[WEIGHTS], copies[OPTIMIZER], dict(state), copies[AVERAGES])
        self._do(lambda: commit(saved))

    def _copied(self, training_step: int, tensors: Tensors) -> dict[str, dict[str, Tensor]]:
        """Copies of the tensors after `training_step`; the last ones, if they are of that step.

        There is memory for one copy, so another one waits until the last is written.
        """
        if self._copy is not None and self._copy[0] == training_step:
            self.check()
            return self._copy[1]
        self.settle()
        self._copy = training_step, self._memory.copies(tensors)
        return self._copy[1]

    def _do(self, job: Callable[[], None]) -> None:
        """Let the thread do `job` after what it was given before, unless that raises."""
        before = self._last

        def work() -> None:
            if before is not None:
                before.result()
            job()

        self._last = self._writer.submit(work)

    def check(self) -> None:
        """Raise StoreError if the last checkpoint could not be written; waits for nothing."""
        if self._last is not None and self._last.done():
            self.settle()

    def settle(self) -> None:
        """Wait until the last checkpoint is written; StoreError if it could not be."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def close(self) -> None:
        """Wait until nothing is being written; errors do not matter any more."""
        self._writer.shutdown()

    def newest(
        self, usable: Callable[[int, Mapping[str, Any]], bool] | None = None
    ) -> Saved | None:
        """The newest whole checkpoint; None without one.

        Newer ones that were never finished, are damaged, or are not `usable` (by training step and
        state) are named in a warning and removed. Where `state` publishes, and a kill came before,
        it is published now.
        """
        self.refused, self._copy = [], None
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)
        for folder in _newest_first(self.folder):
            try:
                position = Position(**atomic_dir.read_atomic_dir(folder)["position"])
                if not self.run_log.holds(position):
                    raise atomic_dir.IncompleteDir("has measurements that the log does not reach")
                content = json.loads((folder / STATE).read_text())
                if usable is not None and not usable(_step_of(folder.name), content):
                    raise atomic_dir.IncompleteDir("has seen data that is left out since")
            except atomic_dir.IncompleteDir as problem:
                self.log.warning("checkpoint %s is not used: it %s", folder.name, problem)
                self.refused.append((folder.name, str(problem)))
                self._remove(folder)
                continue
            self._withdraw_parts(position)
            if self.state is not None and folder.name not in self.state.published():
                # Later parts are measured again: published now, they would not be once more.
                self._publish(folder, self.run_log.parts_of(position))
            return self.read(folder.name, content, position)
        self._withdraw_parts(None)
        return None

    def read(self, name: str, state: dict[str, Any], position: Position | None) -> Saved:
        """The checkpoint called `name`, whose state is known; its tensors are read when used."""
        files = {group: _files(self.folder / name, group) for group in _GROUPS}
        tensors = {group: ShardFiles(paths) for group, paths in files.items()}
        return Saved(
            weights=tensors[WEIGHTS],
            optimizer=tensors[OPTIMIZER],
            averages=tensors[AVERAGES],
            state=state,
            position=position,
            name=name,
        )

    def _write(
        self,
        target: Path,
        tensors: Mapping[str, dict[str, Tensor]],
        headers: Mapping[str, Mapping[str, str]],
        facts: Mapping[str, Any],
        *,
        content: Mapping[str, Any] | None = None,
        parts: Sequence[Path] = (),
    ) -> None:
        """Write a checkpoint, with the finished `parts` of other ranks; or, without `content`, a
        part."""
        rank = f"-{self.ranks.rank:05d}" if self.ranks.world > 1 else ""
        writers: dict[str, Callable[[Path], object]] = {
            name.replace(".", f"{rank}.", 1): partial(save_parts, part, headers.get(name, {}))
            for name, part in tensors.items()
            if part or name != AVERAGES
        }
        if content is not None:
            writers[STATE] = lambda path: path.write_bytes(json.dumps(content).encode())
        for part in parts:
            writers |= {path.name: partial(os.link, path) for path in part.glob("*.safetensors")}
        self._check_lease()
        try:
            atomic_dir.write_atomic_dir(target, writers, facts)
            hit_failpoint("checkpoint written")
        except OSError as error:
            raise StoreError(
                f"cannot write a checkpoint: {error.strerror or error}",
                where=str(target),
                hint="free space or fix permissions; the same command goes on from the one before",
            ) from None

    def _part(self, name: str, rank: int) -> Path:
        """Where a rank writes its part of a checkpoint."""
        return self.folder / PARTS / f"{name}-{rank:05d}"

    def _wait_for(self, parts: Sequence[Path]) -> None:
        """Wait until other ranks have written theirs; if one fails, its error ends all ranks."""
        for part in parts:
            while not _is_sealed(part):
                time.sleep(PART_SECONDS)

    def _prune(self, horizon: int | None) -> None:
        folders = _newest_first(self.folder)
        stay = set(folders[:NEWEST])
        if horizon is not None:
            stay |= set([one for one in folders if _step_of(one.name) < horizon][:1])
            stay |= set([one for one in folders if _step_of(one.name) >= horizon][-1:])
        for folder in folders:
            if folder not in stay:
                atomic_dir.remove_atomic_dir(folder)
                self._to_withdraw.add(folder.name)
        try:
            self._withdraw_removed()
        except Unreachable as error:
            self.log.warning("older checkpoints stay in the store for now: %s", error)

    def _remove(self, folder: Path) -> None:
        """Remove a checkpoint here and where it was published."""
        atomic_dir.remove_atomic_dir(folder)
        self._to_withdraw.add(folder.name)
        self._withdraw_removed()

    def _withdraw_removed(self) -> None:
        if self.state is not None and self._to_withdraw:
            for name in self._to_withdraw.intersection(self.state.published()):
                self.state.withdraw(name)
        self._to_withdraw.clear()

    def _publish(self, folder: Path, parts: Sequence[Path]) -> None:
        """Publish a whole checkpoint and its sidecars for other machines.

        Closed parts of the log are sets of their own, published once; the open one goes with each
        checkpoint. One whose parts could not be published is not published either.
        """
        if self.state is None:
            return
        try:
            published = self.state.published()
        except Unreachable as error:
            self.log.warning("%s is kept on this machine only: %s", folder.name, error)
            return
        for part in parts[:-1]:
            name = _PART + part.stem
            if name not in published and not self.state.publish(name, part):
                return
        sidecars = [path for path in self.sidecars if exists(path)]
        if self.state.publish(folder.name, folder, *parts[-1:], *sidecars):
            self._to_withdraw.discard(folder.name)  # After a rollback it is made again.

    def _withdraw_parts(self, position: Position | None) -> None:
        """Withdraw the parts of the log that end after `position`: their rows are measured again,
        and may differ after a rollback."""
        if self.state is None:
            return
        whole = {_PART + part.stem for part in self.run_log.parts_until(position)}
        for name in self.state.published():
            if name.startswith(_PART) and name not in whole:
                self.state.withdraw(name)

    def _check_lease(self) -> None:
        """Raise LeaseLost once another run has taken the key over.

        While the store cannot be reached, the last heartbeat counts: checkpoints are still written
        here, in a folder that no other run reads.
        """
        if self.state is None:
            return
        try:
            self.state.check()
        except Unreachable:
            self.state.check(ask=False)


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Set all parameters and buffers of `model`, or what this rank holds of them.

    Raises CorruptArtifact when names or shapes are not those of the model.
    """
    expected = model.state_dict()
    names = getattr(model, "names", expected.keys())  # Of the whole model, where it is a part.
    odd = sorted(names ^ set(weights)) or [
        name for name, tensor in expected.items() if shape_of(weights, name) != tuple(tensor.shape)
    ]
    if odd:
        raise CorruptArtifact(f"weights do not fit the model, first: {odd[0]}", where=where)
    for name, tensor in expected.items():
        fill(tensor, weights, name)


def _newest_first(folder: Path) -> list[Path]:
    """The checkpoints in a folder; OSError where it cannot be read: they may be good."""
    return [folder / name for name in reversed(list_names(folder)) if name.startswith(_PREFIX)]


def _step_of(name: str) -> int:
    return int(name.removeprefix(_PREFIX))


def _files(folder: Path, group: str) -> list[Path]:
    """The files of a group of tensors, of one process or of several ranks."""
    stem = group.removesuffix(".safetensors")
    return sorted(
        folder / name
        for name in list_names(folder)
        if name == group or (name.startswith(f"{stem}-") and name.endswith(".safetensors"))
    )


def _is_sealed(folder: Path) -> bool:
    try:
        atomic_dir.read_atomic_dir(folder)
    except atomic_dir.IncompleteDir:
        return False
    return True
