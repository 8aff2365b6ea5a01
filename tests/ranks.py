"""`run_ranks(4, function, *arguments)`: the function on as many processes of one gloo group."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

SECONDS = 120.0


def run_ranks(world: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call `function(*arguments)` on each rank; what they return, in their order.

    Processes are forks, so the function may be any, and nothing is imported again. Raises
    AssertionError with the traceback of the rank that failed first.
    """
    context = get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results = context.SimpleQueue()
        ranks = [
            context.Process(target=_rank, args=(rank, world, folder, results, function, arguments))
            for rank in range(world)
        ]
        for process in ranks:
            process.start()
        try:
            values = {}
            while len(values) < world:
                rank, value, failure = results.get()
                assert failure is None, f"rank {rank}: {failure}"
                values[rank] = value
        finally:
            for process in ranks:
                process.kill() if len(values) < world else process.join(SECONDS)
    return [values[rank] for rank in range(world)]


def _rank(
    rank: int,
    world: int,
    folder: str,
    results: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank)}
    try:
        dist.init_process_group(
            "gloo",
            init_method=(Path(folder) / "group").as_uri(),
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=SECONDS),
        )
        value = function(*arguments)
        dist.barrier()
        results.put((rank, value, None))
        dist.destroy_process_group()
    except BaseException:
        results.put((rank, None, traceback.format_exc()))
        raise
