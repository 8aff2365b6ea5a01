"""How arithmetic is done: device, threads, precision; and so that it gives the same bits again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import UsageError
from stages.training.config import Precision, TrainingExecution
from stages.training.objectives import token_losses
from stages.training.rows import Rows


@dataclass(frozen=True)
class Runtime:
    """Where and in which precision a model computes."""

    device: torch.device
    precision: Precision
    threads: int
    micro_batch: int

    def layout(self) -> dict[str, Any]:
        """What bit-equality depends on besides config and inputs."""
        return {
            "device": device_name(self.device),
            "precision": self.precision,
            "threads": self.threads,
            "micro_batch": self.micro_batch,
            "torch": str(torch.__version__),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }

    def losses(self, model: nn.Module, rows: Rows) -> Tensor:
        """Token losses of `rows` under `model`, `[B, L]` float32 on the device.

        Under bf16 the matrix products are in bfloat16 (autocast), weights and loss in float32.
        """
        tokens, documents, targets = (
            torch.from_numpy(array).to(self.device)
            for array in (rows.tokens_BL, rows.documents_BL, rows.targets_BL)
        )
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            logits = model(tokens, documents_BL=documents)
        return token_losses(logits, targets)


@contextmanager
def runtime(execution: TrainingExecution, precision: Precision, seed: int) -> Iterator[Runtime]:
    """Deterministic arithmetic inside the block; torch's settings are as before after it.

    Raises UsageError when the device asked for is not there.
    """
    device = chosen_device(execution.device)
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
        yield Runtime(device, precision, execution.threads, execution.micro_batch)
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


def device_name(device: torch.device) -> str:
    """`cpu`, or the name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
