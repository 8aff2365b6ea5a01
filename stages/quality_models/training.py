"""Training the classifier: fastText in a process of its own, so that it can be stopped.

fastText fills the first tenth of its input matrix by its seed where it runs one thread, and reads
the rest as memory was left (`DenseMatrix::uniformThread`): models differ from run to run, and many
trainings end in NaN. A process whose memory comes as zeros has neither: glibc gives such with
`MALLOC_PERTURB_=255`, since new bytes are the complement of that value. The rows of zeros learn
like the others, for the rows that are not break the symmetry.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import IngotError
from stages.language_model.classifier import PREFIX, line_of

if TYPE_CHECKING:
    from stages.quality_models.config import ClassifierConfig

_POLL = 0.1
"""Seconds between two looks at the child and at the stop flag."""


def fasttext_arguments(config: ClassifierConfig) -> dict[str, Any]:
    """What fastText is given, under its names; the thread is one."""
    return {
        "lr": config.learning_rate,
        "dim": config.dim,
        "epoch": config.epochs,
        "wordNgrams": config.word_ngrams,
        "bucket": config.buckets,
        "minCount": config.min_count,
        "minn": config.subword_min,
        "maxn": config.subword_max,
        "seed": config.seed,
        "loss": "softmax",
        "label": PREFIX,
    }


def write_lines(documents: Iterable[tuple[str, str]], path: Path, *, lower_case: bool) -> None:
    """Write (label, text) pairs as fastText reads them, one a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for label, text in documents:
            file.write(f"{PREFIX}{label} {line_of(text, lower_case=lower_case)}\n")


def train(
    lines: Path, model: Path, config: ClassifierConfig, check_stop: Callable[[], None]
) -> None:
    """Train on a file of lines. The same lines and config give the same bytes.

    IngotError if fastText fails; `check_stop` is called while it works, and may raise.
    """
    request = model.with_suffix(".json")
    told = {
        "lines": str(lines),
        "model": str(model),
        "arguments": fasttext_arguments(config),
        "quantize": config.quantize,
    }
    request.write_text(json.dumps(told), encoding="utf-8")
    program = "stages.quality_models.fasttext_program"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", program, str(request)],
        stdin=subprocess.PIPE,  # Its end tells the program that this process is gone.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "MALLOC_PERTURB_": "255"},
    ) as child:
        try:
            while child.poll() is None:
                check_stop()
                _wait(child)
        except BaseException:
            child.kill()
            raise
        assert child.stdout is not None
        printed = child.stdout.read().decode("utf-8", "replace").strip()
    if child.returncode:
        raise _failure(child.returncode, printed)


def memory_comes_as_zeros() -> bool:
    """Whether the C library of this machine heeds MALLOC_PERTURB_, so that bytes are the same."""
    return platform.libc_ver()[0] == "glibc"


def _wait(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(_POLL)
    except subprocess.TimeoutExpired:
        return


def _failure(code: int, printed: str) -> IngotError:
    last = printed.splitlines()[-1] if printed else f"it ended with {code}"
    hint = "lower `classifier.learning_rate`" if "NaN" in last else None
    if code < 0:
        hint = "it needs 4 bytes × `classifier.buckets` × `classifier.dim` of memory and more"
    return IngotError(
        f"fastText could not train: {last}", where="quality_models.classifier", hint=hint
    )
