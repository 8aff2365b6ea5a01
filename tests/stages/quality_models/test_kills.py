"""Kills in the middle of a training: nobody goes on with it, and the next run gives the same bytes.

Kills at every commit point, a full disk and seeded moments are those of `tests/pipeline`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from forks import fork
from two_classes import BAD, GOOD, SMALL, texts

from stages.quality_models import models
from stages.quality_models.config import ClassifierConfig

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

SLOW = {**SMALL, "epochs": 1000, "dim": 256}
"""Seconds of training: it is killed long before its end."""
LEARNS = 0.4
"""CPU seconds after which fastText no longer starts up."""


def trainings_at(folder: Path) -> list[int]:
    """Running processes of fastText that were told to work in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue  # It has ended.
        if "fasttext_program" in command and str(folder) in command:
            found.append(int(process.name))
    return found


def has_worked(process: int) -> bool:
    """Whether a process has run for so many CPU seconds that it learns by now, or has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return True
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") >= LEARNS


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether it comes to hold in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def kill_in_training(action: Callable[[], object], folder: Path) -> bool:
    """Kill a fork that trains once fastText runs; whether fastText ends by itself soon."""
    child = fork(action)
    try:
        assert wait_until(lambda: bool(trainings_at(folder)))
        (training_process,) = trainings_at(folder)
        assert wait_until(lambda: has_worked(training_process))
        assert trainings_at(folder) == [training_process]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return wait_until(lambda: not trainings_at(folder), seconds=5)


def test_fasttext_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    """Else it would go on reading lines that the next run writes anew, and leave it a model."""
    lines, model = tmp_path / "lines.txt", tmp_path / "m.bin"
    labelled = [("reference", t) for t in texts(GOOD, 1000, 1)]
    labelled += [("contrast", t) for t in texts(BAD, 1000, 2)]
    models.write_lines(labelled, lines, lower_case=False)
    config = ClassifierConfig(**SLOW)
    assert kill_in_training(lambda: models.train(lines, model, config, lambda: None), tmp_path)
    assert not model.exists()


@pytest.mark.full
def test_killed_twice_in_the_middle_of_a_training_gives_the_same_bytes(
    make, make_documents, tmp_path: Path
) -> None:
    for _ in range(2):
        assert kill_in_training(lambda: make(classifier=SLOW), tmp_path)
    made = make(classifier=SLOW)
    again = make(
        classifier=SLOW,
        reference=[make_documents([texts(GOOD, 200, seed=1)], snapshot="the same in one shard")],
    )
    assert again.key != made.key
    assert again.outputs["classifier"].digest == made.outputs["classifier"].digest
