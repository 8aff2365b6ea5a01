"""How arithmetic is done: device, threads, precision; and so that it gives the same bits again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import UsageError
from stages.training.compiled import kernels_by_rule
from stages.training.config import Precision, TrainingExecution
from stages.training.row_losses import Arithmetic, TrainedRows, losses_of_rows, train_on_rows
from stages.training.rows import Rows


@dataclass(frozen=True)
class Runtime:
    """Where and in which precision a model computes.

    `logits` is how many of them may be in memory at once (None: what suits the device);
    `compiled`, that torch.compile compiles the blocks and the loss.
    """

    device: torch.device
    precision: Precision
    threads: int
    micro_batch: int
    compiled: bool = False
    logits: int | None = None

    def layout(self) -> dict[str, Any]:
        """What bit-equality depends on besides config and inputs."""
        chosen = {"compiled": self.compiled or None, "logits_in_memory": self.logits}
        return {
            "device": device_name(self.device),
            "precision": self.precision,
            "threads": self.threads,
            "micro_batch": self.micro_batch,
            "torch": str(torch.__version__),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            **{name: value for name, value in chosen.items() if value is not None},
        }

    def losses(self, model: nn.Module, rows: Rows) -> Tensor:
        """Token losses of `rows` under `model`, `[B, L]` float32 on the device; differentiable.

        Under bf16 and fp16 the matrix products are in that type, weights and loss in float32.
        """
        return losses_of_rows(model, rows, self._arithmetic)

    def train(
        self, model: nn.Module, rows: Rows, *, targets: int, z_loss: float = 0.0
    ) -> TrainedRows:
        """What `rows` contribute to a training step that learns `targets` tokens in all.

        Cheaper than `losses` where a mean is what is learnt; its `loss` is differentiated once.
        """
        return train_on_rows(model, rows, self._arithmetic, targets=targets, z_loss=z_loss)

    @property
    def _arithmetic(self) -> Arithmetic:
        return Arithmetic(self.device, self.precision, self.logits, self.compiled)


@contextmanager
def runtime(
    execution: TrainingExecution, precision: Precision, seed: int, *, steady: bool = True
) -> Iterator[Runtime]:
    """Deterministic arithmetic inside the block; torch's settings are as before after it.

    `steady` says that batches have few shapes, so that compiling for each pays. Raises UsageError
    when the device asked for is not there, or compiling is asked for where it does not pay.
    """
    device = chosen_device(execution.device)
    compiled = compiles(execution, device, steady)
    threads, mode = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    if device.type == "cuda":
        # cuBLAS is deterministic only with a fixed workspace, which it reads from here.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(execution.threads)
    torch.set_deterministic_debug_mode("error")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.manual_seed(seed)
    try:
        with kernels_by_rule() if compiled else nullcontext():
            yield Runtime(
                device,
                precision,
                execution.threads,
                execution.micro_batch,
                compiled,
                execution.logits_in_memory,
            )
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


def chosen_device(name: str) -> torch.device:
    """The device for `auto`, `cpu` or `cuda`."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("no CUDA device here", where="execution.device", hint="use auto or cpu")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def compiles(execution: TrainingExecution, device: torch.device, steady: bool) -> bool:
    """Whether blocks are compiled; by default on a CUDA device, if Triton is there to do it.

    Raises UsageError where it is asked for, but each batch has another shape.
    """
    if execution.compile == "on" and not steady:
        raise UsageError(
            "compiling is for pretraining: here each batch has a shape of its own",
            where="execution.compile",
            hint="use auto",
        )
    able = device.type == "cuda" and find_spec("triton") is not None
    return execution.compile == "on" or (execution.compile == "auto" and steady and able)


def device_name(device: torch.device) -> str:
    """`cpu`, or the name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
