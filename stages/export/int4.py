"""Int4 numbers of a release: calibration tokens, and the process in which auto-round tunes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from artifacts_schema.errors import IngotError, InputError, UsageError
from stages.engine import Input
from stages.export.folder import ReleasedWeights
from stages.training.token_shards import TokenShards, spread

SCRIPT = Path(__file__).with_name("tune_int4.py")
SEQUENCES, LONGEST = 128, 2048
"""Calibration sequences and their most tokens: auto-round's own defaults."""
LOOK_SECONDS = 0.5


def calibration_tokens(inputs: Sequence[Input], context: int, vocabulary: int) -> Tensor:
    """[sequences, length] Evenly spaced packed sequences of all sources, cut to one length.

    InputError unless the shards have a vocabulary of the size of the checkpoint's tokenizer.
    """
    shards = TokenShards(inputs)
    if shards.vocabulary_size != vocabulary:
        raise InputError(
            f"calibration shards have a vocabulary of {shards.vocabulary_size}, the checkpoint's "
            f"tokenizer has {vocabulary}",
            where="calibration",
            hint="give what was packed with the tokenizer of the checkpoint",
        )
    counts = [shards.sequences[name] for name in shards.sources]
    total = sum(counts)
    edges = np.cumsum([0, *counts])
    places = spread(total, min(SEQUENCES, total))
    sources = np.searchsorted(edges, places, side="right") - 1
    length = min(context, LONGEST, *shards.lengths.values())
    rows = [
        shards.batch(np.array([source]), np.array([place - edges[source]])).tokens_BL[0, :length]
        for source, place in zip(sources.tolist(), places.tolist(), strict=True)
    ]
    return torch.from_numpy(np.stack(rows).astype(np.int64))


def check_groups(weights: ReleasedWeights, matrices: Sequence[str], group: int) -> None:
    """UsageError for a matrix whose inputs groups do not divide, or outputs eights."""
    for name in matrices:
        outputs, inputs = weights.specs[name].shape
        if inputs % group or outputs % 32:
            raise UsageError(
                f"'{name}' is [{outputs}, {inputs}]: int4 needs inputs that {group} divides, and "
                "outputs that 32 divides",
                where="export.int4_group",
                hint="a smaller group, or quantise: int8",
            )


def tune_int4(
    model: Path,
    tokens_BL: Tensor,
    target: Path,
    *,
    group: int,
    steps: int,
    check: Callable[[], None],
) -> Path:
    """Let auto-round quantise the folder `model`; the folder of the result, in `target`.

    `check` is called twice a second, and may raise: the process is ended then. IngotError with its
    last line where it fails.
    """
    calibration = target.with_suffix(".calibration")
    save_file({"tokens": tokens_BL}, calibration)
    log = target.with_suffix(".log")
    command = [sys.executable, "-I", str(SCRIPT), str(model), str(calibration), str(target)]
    command += [str(group), str(steps)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=target.parent
        )
        try:
            while process.poll() is None:
                check()
                try:
                    process.wait(LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
    if process.returncode:
        last = (log.read_text("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
        raise IngotError(f"auto-round failed: {last[:300]}", where="export.quantise")
    # The folder is named after the scheme.
    [made] = [path.parent for path in target.rglob("config.json")]
    return made
