"""Rolling checkpoints: what a killed run needs to go on to the same bits.

Each is a sealed folder with the weights, the optimizer state, averages, the random state, and how
far the log of measurements went. The newest whole one wins. Training stands still while the tensors
are copied to memory of the host; a thread writes them.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from artifacts_schema.errors import StoreError
from artifacts_schema.store.points import reached
from stages.training import sealed
from stages.training.background import Background
from stages.training.host_memory import HostMemory
from stages.training.monitor import Position, RunLog

if TYPE_CHECKING:
    from stages.engine.state import State

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
AVERAGES = "averages.safetensors"
NEWEST, MOST_KEPT = 2, 4
"""How many of the newest stay, and how many there are at most while a run may roll back."""
_PREFIX = "training-step-"


@dataclass(frozen=True)
class Saved:
    """Where a run stands: what it needs to go on from there; tensors on CPU."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]
    averages: dict[str, Tensor] = field(default_factory=dict)
    position: Position | None = None
    """How far the log of measurements went; of a checkpoint that was read back."""


class Permanent(Protocol):
    """Keeps some of the states of a run for good."""

    def after_step(self, training_step: int, tokens: int, snapshot: Callable[[], Saved]) -> None:
        """A training step is over, or was left out; `snapshot` says where the run stands."""

    def rolled_back(self, first: int) -> None:
        """What was kept of `first` and later training steps is no part of the run any more."""


def fetch_newest(state: State, folder: Path) -> None:
    """Lay the newest published checkpoint in `folder`, with the log of measurements beside it.

    Nothing is done where one that lies here is as new: another machine went no further.
    """
    here = max((one.name for one in folder.glob(f"{_PREFIX}*") if _is_sealed(one)), default="")
    for name in reversed(state.published()):
        if name.startswith(_PREFIX) and (name <= here or state.fetch(name)):
            return


class RollingCheckpoints:
    """The last checkpoints under `folder`, and the same in `state` where that publishes.

    `beside` are files that are published with them. With `background` a thread writes them, one at
    a time; what goes wrong there is raised by the next call.
    """

    def __init__(
        self,
        folder: Path,
        run_log: RunLog,
        log: logging.Logger,
        *,
        state: State | None = None,
        beside: Sequence[Path] = (),
        background: bool = True,
    ) -> None:
        self.folder, self.run_log, self.log = folder, run_log, log
        self.state, self.beside = state, tuple(beside)
        self._background = Background("checkpoints") if background else None
        self._memory = HostMemory()
        self.refused: list[tuple[str, str]] = []
        """Name and fault of each checkpoint that the last call of `newest` did not take."""

    def save(
        self,
        training_step: int,
        weights: Mapping[str, Tensor],
        optimizer: Mapping[str, Tensor],
        state: Mapping[str, Any],
        *,
        averages: Mapping[str, Tensor] | None = None,
        horizon: int | None = None,
    ) -> None:
        """Take a checkpoint; returns once the tensors may change again.

        Then older ones are removed: the newest two stay and, so that a run can go back behind
        training step `horizon`, the newest before that and the oldest after, which is to take its
        place. Raises StoreError when it, or the one before it, cannot be written (disk full);
        earlier ones stay.
        """
        self.settle()
        position = self.run_log.position()
        content = {**state, "random": random_state()}
        tensors = self._memory.copies(
            {WEIGHTS: weights, OPTIMIZER: optimizer, AVERAGES: averages or {}}
        )
        target = self.folder / f"{_PREFIX}{training_step:012d}"

        def write() -> None:
            self._write(target, tensors, content, position)
            self._prune(horizon)
            self._publish(target)

        if self._background is None:
            write()
        else:
            self._background.start(write)

    def check(self) -> None:
        """Raise StoreError if the last checkpoint could not be written; waits for nothing."""
        if self._background is not None:
            self._background.check()

    def settle(self) -> None:
        """Wait until the last checkpoint is written; StoreError if it could not be."""
        if self._background is not None:
            self._background.settle()

    def close(self) -> None:
        """Wait until nothing is being written; what goes wrong does not matter any more."""
        if self._background is not None:
            self._background.wait()

    def newest(
        self, usable: Callable[[int, Mapping[str, Any]], bool] | None = None
    ) -> Saved | None:
        """The newest whole checkpoint; None without one.

        Newer ones that were never finished, are damaged, or are not `usable` (by training step and
        state) are named in a warning and removed. Where `state` publishes, and a kill came before,
        it is published now.
        """
        self.refused = []
        for folder in self._newest_first():
            try:
                position = Position(**sealed.unseal(folder)["position"])
                if not self.run_log.holds(position):
                    raise sealed.Unsealed("has measurements that the log does not reach")
                content = json.loads((folder / STATE).read_text())
                if usable is not None and not usable(_step_of(folder.name), content):
                    raise sealed.Unsealed("has seen data that is left out since")
            except sealed.Unsealed as problem:
                self.log.warning("checkpoint %s is not used: it %s", folder.name, problem)
                self.refused.append((folder.name, str(problem)))
                self._remove(folder)
                continue
            if self.state is not None and folder.name not in self.state.published():
                self._publish(folder)
            averages = folder / AVERAGES
            return Saved(
                weights=load_file(folder / WEIGHTS),
                optimizer=load_file(folder / OPTIMIZER),
                averages=load_file(averages) if averages.exists() else {},
                state=content,
                position=position,
            )
        return None

    def _write(
        self,
        target: Path,
        tensors: Mapping[str, dict[str, Tensor]],
        content: Mapping[str, Any],
        position: Position,
    ) -> None:
        writers: dict[str, Callable[[Path], object]] = {
            name: partial(save_file, part)
            for name, part in tensors.items()
            if part or name != AVERAGES
        }
        writers[STATE] = lambda path: path.write_bytes(json.dumps(content).encode())
        try:
            sealed.seal(target, writers, {"position": asdict(position)})
            reached("checkpoint written")
        except OSError as error:
            raise StoreError(
                f"cannot write a checkpoint: {error.strerror or error}",
                where=str(target),
                hint="free space or fix permissions; the same command goes on from the one before",
            ) from None

    def _prune(self, horizon: int | None) -> None:
        folders = self._newest_first()
        stay = set(folders[:NEWEST])
        if horizon is not None:
            stay |= set([one for one in folders if _step_of(one.name) < horizon][:1])
            stay |= set([one for one in folders if _step_of(one.name) >= horizon][-1:])
        for folder in folders:
            if folder not in stay:
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Here, and where it was published."""
        sealed.remove(folder)
        if self.state is not None and folder.name in self.state.published():
            self.state.withdraw(folder.name)

    def _publish(self, folder: Path) -> None:
        """Keep a whole checkpoint and what lies beside it for other machines."""
        if self.state is not None:
            beside = [path for path in self.beside if path.exists()]
            self.state.publish(folder.name, folder, self.run_log.path, *beside)

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob(f"{_PREFIX}*"), reverse=True)


def _step_of(name: str) -> int:
    return int(name.removeprefix(_PREFIX))


def _is_sealed(folder: Path) -> bool:
    try:
        sealed.unseal(folder)
    except sealed.Unsealed:
        return False
    return True


def random_state() -> dict[str, Any]:
    """The state of torch's generators, as text."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {"cpu": _text(torch.get_rng_state()), "cuda": [_text(state) for state in cuda]}


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Set torch's generators to what `random_state` gave."""
    torch.set_rng_state(_tensor(state["cpu"]))
    if state["cuda"] and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all([_tensor(one) for one in state["cuda"]])


def _text(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode("ascii")


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
