"""Rolling checkpoints: what a killed run needs to go on to the same bits.

Each is a sealed folder with the weights, the optimizer state, the random state, and how far the log
of measurements went. The newest whole one wins.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from artifacts_schema.errors import StoreError
from artifacts_schema.store.points import reached
from stages.training import sealed
from stages.training.monitor import Position, RunLog

if TYPE_CHECKING:
    from stages.engine.state import State

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
_PREFIX = "training-step-"


@dataclass(frozen=True)
class Saved:
    """A checkpoint read back; tensors on CPU."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]
    position: Position


def fetch_newest(state: State, folder: Path) -> None:
    """Lay the newest published checkpoint in `folder`, with the log of measurements beside it.

    Nothing is done where one that lies here is as new: another machine went no further.
    """
    here = max((one.name for one in folder.glob(f"{_PREFIX}*") if _is_sealed(one)), default="")
    for name in reversed(state.published()):
        if name.startswith(_PREFIX) and (name <= here or state.fetch(name)):
            return


class RollingCheckpoints:
    """The last `keep` checkpoints under `folder`, and the same in `state` where that publishes."""

    def __init__(
        self,
        folder: Path,
        run_log: RunLog,
        log: logging.Logger,
        *,
        state: State | None = None,
        keep: int = 2,
    ) -> None:
        self.folder, self.run_log, self.log, self.keep = folder, run_log, log, keep
        self.state = state

    def save(
        self,
        training_step: int,
        weights: Mapping[str, Tensor],
        optimizer: Mapping[str, Tensor],
        state: Mapping[str, Any],
    ) -> None:
        """Write a checkpoint, then remove what is older than the last `keep`.

        Raises StoreError when it cannot be written (disk full); earlier ones stay.
        """
        target = self.folder / f"{_PREFIX}{training_step:012d}"
        content = {**state, "random": random_state()}
        try:
            position = self.run_log.position()
            sealed.seal(
                target,
                {
                    WEIGHTS: lambda path: save_file(_on_cpu(weights), path),
                    OPTIMIZER: lambda path: save_file(_on_cpu(optimizer), path),
                    STATE: lambda path: path.write_bytes(json.dumps(content).encode()),
                },
                {"position": asdict(position)},
            )
            reached("checkpoint written")
            for old in self._newest_first()[self.keep :]:
                sealed.remove(old)
        except OSError as error:
            raise StoreError(
                f"cannot write a checkpoint: {error.strerror or error}",
                where=str(target),
                hint="free space or fix permissions; the same command goes on from the one before",
            ) from None
        self._publish(target)

    def newest(self) -> Saved | None:
        """The newest whole checkpoint; None without one.

        Newer ones that were never finished or are damaged are named in a warning and removed. Where
        `state` publishes, and a kill came before, it is published now.
        """
        for folder in self._newest_first():
            try:
                position = Position(**sealed.unseal(folder)["position"])
                if not self.run_log.holds(position):
                    raise sealed.Unsealed("the log of measurements does not reach so far")
            except sealed.Unsealed as problem:
                self.log.warning("checkpoint %s is not used: it %s", folder.name, problem)
                sealed.remove(folder)
                continue
            if self.state is not None and folder.name not in self.state.published():
                self._publish(folder)
            return Saved(
                weights=load_file(folder / WEIGHTS),
                optimizer=load_file(folder / OPTIMIZER),
                state=json.loads((folder / STATE).read_text()),
                position=position,
            )
        return None

    def _publish(self, folder: Path) -> None:
        """Keep a whole checkpoint and the log of measurements up to it for other machines."""
        if self.state is None:
            return
        self.state.publish(folder.name, folder, self.run_log.path)
        names = [name for name in self.state.published() if name.startswith(_PREFIX)]
        for name in names[: -self.keep]:
            self.state.withdraw(name)

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob(f"{_PREFIX}*"), reverse=True)


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


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _text(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode("ascii")


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
