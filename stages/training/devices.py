"""Which device computes, and what is settled beforehand: its number, determinism, compilers.

Deterministic arithmetic is the default: equal inputs on an equal machine give equal bits, without
which no run resumes to the same bits. It costs speed on a GPU: the backward pass of FlashAttention
adds up its parts in a fixed order, sums over groups are sorted first, and torch.compile chooses
kernels by rule and not by a race. cuBLAS is deterministic only with a fixed workspace, whose size
it reads from the environment before its first product.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.distributed as dist

from artifacts_schema.errors import UsageError

WORKSPACE, SIZES = "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
"""Eight buffers of 4 MiB, one of the two settings that NVIDIA documents as deterministic."""


def choose_device(name: str) -> torch.device:
    """The device for `auto`, `cpu`, `cuda` or `cuda:N`; a GPU always by its number.

    Without a number it is that of the rank on its machine, or torch's current one. UsageError if
    there is no such device.
    """
    available = torch.cuda.is_available()
    if name == "cpu" or (name == "auto" and not available):
        return torch.device("cpu")
    if not available:
        raise UsageError("no CUDA device here", where="execution.device", hint="use auto or cpu")
    devices = torch.cuda.device_count()
    index = torch.device("cuda" if name == "auto" else name).index
    if index is None and dist.is_initialized():
        index = int(os.environ["LOCAL_RANK"])
    if index is None:
        index = torch.cuda.current_device()
    if index >= devices:
        raise UsageError(
            f"there is no cuda:{index}",
            where="execution.device",
            hint=f"use cuda:0{f' to cuda:{devices - 1}' if devices > 1 else ''}, all that this "
            "process sees (CUDA_VISIBLE_DEVICES hides others)",
        )
    return torch.device("cuda", index)


def device_name(device: torch.device) -> str:
    """`cpu`, or the name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def current_device(device: torch.device) -> AbstractContextManager[None]:
    """Inside it, `device` is the GPU that torch takes where none is named, as for pinned memory."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@contextmanager
def determinism(device: torch.device, *, required: bool, compiled: bool) -> Iterator[None]:
    """Inside it, operations are deterministic or raise; or any, where that is not `required`.

    Torch's settings are as before after it. On CUDA `CUBLAS_WORKSPACE_CONFIG` stays in the
    environment: where cuBLAS was used before without it, torch raises at the first product and
    names it.
    """
    mode = torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    if required and device.type == "cuda":
        os.environ.setdefault(WORKSPACE, SIZES)
    torch.set_deterministic_debug_mode("error" if required else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        with _deterministic_kernels() if required and compiled else nullcontext():
            yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


def _deterministic_kernels() -> AbstractContextManager[None]:
    """Inside it, kernels are not chosen by a race of candidates, whose sums differ in order."""
    from torch._inductor import config

    return config.patch(deterministic=True)


def missing_for_compiling(device: torch.device) -> str | None:
    """What torch.compile needs for `device` and this machine lacks; None if nothing.

    For a GPU: Triton, and a C compiler with Python's headers, by which Triton builds the code that
    launches its kernels. For a CPU: a C++ compiler.
    """
    if device.type != "cuda":
        compiler = os.environ.get("CXX", "g++")
        return None if shutil.which(compiler) else f"a C++ compiler ({compiler}, named by CXX)"
    if find_spec("triton") is None:
        return "the package triton"
    named = os.environ.get("CC")
    if not any(shutil.which(one) for one in ([named] if named else ("gcc", "clang"))):
        return f"a C compiler ({named or 'gcc or clang'}, named by CC)"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return None if header.exists() else f"Python's headers ({header})"


@contextmanager
def explain_compile_error() -> Iterator[None]:
    """Where torch.compile cannot build a kernel inside the block, raise a UsageError."""
    try:
        yield
    except RuntimeError as error:
        if "torch._dynamo" not in sys.modules:
            raise
        from torch._dynamo.exc import BackendCompilerFailed

        if not isinstance(error, BackendCompilerFailed):
            raise
        reason = str(error.inner_exception).strip().splitlines() or [""]
        raise UsageError(
            f"torch.compile cannot build kernels here: "
            f"{type(error.inner_exception).__name__}: {reason[0]}",
            where="execution.compile",
            hint="install a C and a C++ compiler, or set execution.compile: off; --debug shows all",
        ) from error
