"""What a Dask worker says of itself, and what an attempt at a shard writes: without a cluster."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from artifacts_schema.store.remote import backend_at
from stages.engine.dask_worker import Requirements, program_differences
from stages.engine.fork_server import execute_call, unpack_answer
from stages.engine.tasks import MapCommon, Task, do_task, pack

sys.path.insert(0, str(Path(__file__).parent))
from dask_toy import Square, Squares, make_square

KEY = "c" * 64


def test_every_difference_of_a_program_is_named():
    wanted = Requirements(
        b"", "toy_squares", "1" * 64, "0" * 64, (("python", "3"), ("kenlm", "9")), (), 1
    )
    differences = list(program_differences(wanted, Squares))
    assert [text.split(" (")[0].split()[:2] for text in differences] == [
        ["other", "code"], ["other", "code"],
        ["python", f"{sys.version.split()[0]},"], ["kenlm", "absent,"],
    ]  # fmt: skip


def test_attempts_at_a_shard_write_into_folders_of_their_own(tmp_path):
    """Also two of the same call: Dask may repeat one by itself."""
    backend = backend_at(str(tmp_path / "store"))
    (tmp_path / "laid").write_text("for the shards")
    shared = {"folder": str(tmp_path), "laid": tmp_path / "laid"}
    kinds = {"exclusions": "exclusions"}
    packed, (item,) = pack(
        MapCommon(make_square, shared, backend, "work/m", kinds), [Square("a", 1)]
    )
    call = pickle.dumps((do_task, (packed, Task(item))))
    places = [
        {Path(item.place).parts[-3] for item in unpack_answer(execute_call(call))[1]}
        for _ in range(2)
    ]
    assert [len(place) for place in places] == [1, 1]
    assert places[0] != places[1]
