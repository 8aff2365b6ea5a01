"""Lost work: what killed and failed attempts spent and nothing continued from, counted once."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))
from dask_toy import burn
from forks import in_fork
from toy import exclusions_table

from artifacts_schema.config import Config, MapExecution
from artifacts_schema.errors import InputError
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.lease import HEARTBEAT_SECONDS, Lease
from stages.engine import Stage
from stages.engine.meter import Meter, Spent, account_for, book, note_checkpoint, process_seconds

BURNT = 0.3


@dataclass(frozen=True)
class Piece:
    id: str
    folder: str


def work_on(piece, out):
    """Burn; the third piece ends as `how` says, once for each line of it."""
    burn(BURNT)
    endings = Path(piece.folder) / "endings"
    left = endings.read_text().split() if endings.exists() else []
    if piece.id == "p2" and left:
        endings.write_text(" ".join(left[1:]))
        if left[0] == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        raise InputError("it fails")
    out.write_table("exclusions", f"{piece.id}.parquet", exclusions_table([1]))
    return {}


class _PiecesConfig(Config):
    folder: str


class Pieces(Stage):
    name, version, reproducible = "pieces", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    Config, Execution = _PiecesConfig, MapExecution

    def run(self, context):
        items = [Piece(f"p{n}", context.config.folder) for n in range(4)]
        context.map(work_on, items)


@pytest.fixture
def pieces(run_stage, tmp_path):
    """`pieces(*endings)` runs the stage; its third shard ends so, in as many attempts."""

    def run(*endings):
        (tmp_path / "endings").write_text(" ".join(endings))
        return lambda: run_stage(Pieces, {"folder": str(tmp_path)})

    return run


def test_a_clean_run_lost_nothing(pieces):
    made = pieces()().telemetry
    names = ("earlier_attempts", "earlier_cpu_seconds", "lost_cpu_seconds", "lost_gpu_seconds")
    assert [made[name] for name in names] == [0, 0, 0, 0]


def test_failed_attempts_are_counted_exactly_and_once(pieces, store):
    """Each burnt the third piece for nothing; the first two pieces are continued from."""
    if not store.backend.local:
        pytest.skip("the server of the bucket is a child of this process, and counts")
    run = pieces("fails", "fails")
    book()
    before = process_seconds()
    for _ in range(2):
        with pytest.raises(InputError):
            run()
    made = run().telemetry
    spent = process_seconds() - before
    assert made["earlier_attempts"] == 2
    assert made["lost_cpu_seconds"] >= 2 * BURNT
    assert made["earlier_cpu_seconds"] == pytest.approx(2 * BURNT, rel=0.5)
    counted = sum(made[n] for n in ("cpu_seconds", "earlier_cpu_seconds", "lost_cpu_seconds"))
    assert counted <= spent + 0.05
    assert counted == pytest.approx(spent, rel=0.3)


def test_a_killed_attempt_lost_at_least_what_it_burnt_for_nothing(pieces):
    run = pieces("dies")

    def attempt():
        book()
        run()

    assert in_fork(attempt) == -signal.SIGKILL
    made = run().telemetry
    assert made["earlier_attempts"] == 1
    assert made["earlier_cpu_seconds"] >= 2 * BURNT
    assert BURNT <= made["lost_cpu_seconds"] <= 2 * HEARTBEAT_SECONDS


def test_what_was_lost_before_an_artifact_is_not_lost_again_before_the_next(
    pieces, run_stage, store, tmp_path
):
    with pytest.raises(InputError):
        pieces("fails")()
    first = pieces()()
    assert first.telemetry["lost_cpu_seconds"] >= BURNT
    remove_artifact(store, first)
    again = run_stage(Pieces, {"folder": str(tmp_path)}).telemetry
    assert again["lost_cpu_seconds"] == 0


class _Folder:
    """What a meter asks of a state: the folder of one holder in a run's work folder."""

    def __init__(self, root, holder):
        self.folder = root / "state" / "code" / holder
        self.folder.mkdir(parents=True)


def test_training_steps_after_the_last_checkpoint_are_lost(store, tmp_path):
    """Of 8 devices: held for all the time; the state of the checkpoint was taken after a beat."""
    key = "a" * 64
    killed = Lease.take(store.backend, key)
    meter = Meter("code", _Folder(tmp_path, "1-a"))
    killed.meter = meter.note
    book()
    note_checkpoint(meter.state, devices=8)
    burn(0.3)
    killed.beat()
    note_checkpoint(meter.state, taken=time.time())
    burn(0.5)
    killed.beat()
    last = killed.record.spent
    assert 0.3 <= last["kept_cpu"] < last["cpu"] - 0.4
    assert last["devices"] == 8
    killed.release()
    spent = killed.record.spent
    after = Lease.take(store.backend, key)
    account = account_for(store.backend, after, Spent(), ["code"])
    assert account["lost_cpu_seconds"] == pytest.approx(spent["cpu"] - spent["kept_cpu"], abs=0.01)
    assert account["lost_gpu_seconds"] >= 8 * 0.5
    assert account["lost_gpu_seconds"] + account["earlier_gpu_seconds"] == pytest.approx(
        spent["gpu"], abs=0.01
    )
    other = account_for(store.backend, after, Spent(), ["other code"])
    assert other["lost_cpu_seconds"] == pytest.approx(spent["cpu"], abs=0.01), "it starts over"


def test_living_workers_are_counted_before_they_end():
    import subprocess

    book()
    meter = Meter()
    code = "import time\nwhile time.process_time() < 0.5: pass\nprint(1, flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert meter.note(False)["cpu"] >= 0.45, "the kernel counts in hundredths"
        child.communicate(b"\n")
