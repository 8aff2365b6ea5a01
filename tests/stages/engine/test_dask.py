"""Shards on a real Dask cluster: the bytes that processes make, whatever happens to the workers."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs pip install 'ingot[dask]'")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from dask_server import DaskServer, machines_may_be_slow  # noqa: E402, F401
from dask_toy import Square, Squares, Unkind, make_square, until  # noqa: E402

from artifacts_schema.config import MapExecution  # noqa: E402
from artifacts_schema.errors import IngotError, Stopped, UsageError  # noqa: E402
from artifacts_schema.store import Store, layout  # noqa: E402
from artifacts_schema.store.remote import backend_at  # noqa: E402
from stages.decontaminate.stage import Decontaminate  # noqa: E402
from stages.engine import dask_client, dask_engine  # noqa: E402
from stages.engine.dask_cluster import Scheduler  # noqa: E402
from stages.engine.dask_engine import DaskCluster  # noqa: E402
from stages.engine.provenance import code_digest  # noqa: E402
from stages.engine.shards import ShardMap  # noqa: E402

KEY = "b" * 64


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with DaskServer(tmp_path_factory.mktemp("dask"), [HERE]) as server:
        server.wait_for_workers(2)
        yield server


@pytest.fixture
def store(request, tmp_path):
    """In a folder; in a bucket where a test asks for `s3`."""
    if getattr(request, "param", None) == "s3":
        return Store.open(request.getfixturevalue("s3_url") + "/store")
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def squares(run_stage, server, tmp_path):
    """`squares(happens, engine="dask")` → manifest; `.starts()` are the shards as begun."""

    def run(*happens, engine="dask", address=server.address, **more):
        config = {"happens": happens, "folder": str(tmp_path)}
        execution = {"engine": engine, "scheduler": address, "workers": None, **more}
        return run_stage(Squares, config, execution=execution)

    run.starts = lambda: sorted((tmp_path / "starts").read_text().split())
    return run


@pytest.fixture
def expected(tmp_path_factory):
    """`expected(n)` → digests of n shards, made by processes in another store, unharmed."""

    def make(number):
        from stages.engine.runner import run_stage
        from stages.engine.spec import StageSpec

        folder = tmp_path_factory.mktemp("expected")
        config = {"happens": [""] * number, "folder": str(folder)}
        spec = StageSpec.make(Squares, config, {}, {"workers": 1})
        return run_stage(Store.open(str(folder / "store")), spec).manifest.outputs

    return make


def test_a_cluster_makes_the_bytes_that_processes_make(squares, expected):
    made = squares("", "", "", "", "")
    assert made.outputs == expected(5)
    assert made.telemetry["dask_workers"] == 2
    assert made.telemetry["dask_cpu_seconds"] > 0
    assert os.getpid() not in made.telemetry["processes"]
    assert len(made.telemetry["processes"]) == 2


def test_the_cost_of_a_run_is_that_of_its_workers_and_what_they_started(squares):
    made = squares("burns", "burns", "", workers=2)
    burned = 2 * (0.4 + 0.4)  # In the worker, and in a process that it starts.
    assert made.telemetry["dask_cpu_seconds"] >= burned
    assert made.telemetry["cpu_seconds"] >= made.telemetry["dask_cpu_seconds"]
    assert made.telemetry["gpu_seconds"] == 0


@pytest.mark.full
def test_a_real_stage_makes_the_same_bytes(
    make_documents, given, run_stage, server, tmp_path, store
):
    """Three maps, one of a single item, with scratch files and inputs read by the workers."""
    text = "which of these four rivers flows through the old capital before it meets the sea"
    shards = [[f"{text} and number {i}", f"nothing of the sort in {i}"] for i in range(4)]
    item = {
        "benchmark": "exam", "item_id": "a", "form": "text", "prompt": text, "choices": [],
        "metadata": "{}",
    }  # fmt: skip
    inputs = {
        "documents": [make_documents(shards)],
        "benchmarks": [given("benchmarks", {"00000.parquet": [item]})],
    }
    execution = {"engine": "dask", "scheduler": server.address, "workers": None}
    dask = run_stage(Decontaminate, {}, inputs, execution)
    again = run_stage(Decontaminate, {}, inputs, {"workers": 1}, force=True)
    assert dask.counts["documents_hit"] == 4
    assert dask.outputs == again.outputs
    assert again.attempt == dask.attempt  # `force` compares, and drops what is equal.


def test_a_worker_killed_in_the_middle_of_a_shard_costs_that_attempt(squares, expected, server):
    made = squares("", "dies once", "", "")
    assert made.outputs == expected(4)
    assert squares.starts() == ["0", "1", "1", "2", "3"]
    server.wait_for_workers(2)  # Its nanny starts another.


def test_a_shard_that_kills_every_worker_ends_the_map(squares, server):
    with pytest.raises(IngotError, match=r"tcp://127\.0\.0\.1:") as caught:
        squares("", "dies", "")
    assert caught.value.where in ("shard 1", "shard 2")  # Dask also blames what waited behind it.
    assert squares.starts().count("1") == 2
    server.wait_for_workers(2)


def test_what_a_shard_raises_arrives_as_itself(squares):
    with pytest.raises(Unkind) as caught:
        squares("", "raises")
    assert (caught.value.where, caught.value.hint) == ("here", "try another")


@pytest.mark.full
@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_a_dead_scheduler_is_one_error_and_processes_finish_the_work(squares, expected, tmp_path):
    with DaskServer(tmp_path / "dask", [HERE], workers=0) as own:
        own.worker("--nthreads", "1", nanny=False)
        own.wait_for_workers(1)
        (tmp_path / "scheduler").write_text(str(own.scheduler.pid))
        with pytest.raises(IngotError) as caught:
            squares("", "ends the scheduler", "", address=own.address, absent_seconds=1)
        assert caught.value.where == own.address
    made = squares("", "ends the scheduler", "", engine="processes", workers=1)
    assert made.outputs == expected(3)
    assert squares.starts()[-3:] == ["1", "1", "2"]  # 0 again, if its result was lost as well.


@pytest.mark.parametrize("named", ["address", "file"])
def test_a_scheduler_that_comes_back_goes_on_with_the_work(squares, expected, tmp_path, named):
    """At its old address, or wherever the file says: shards that were waited for are done again."""
    with DaskServer(tmp_path / "dask", [HERE], workers=0) as own:
        own.worker("--nthreads", "1", nanny=False)
        own.wait_for_workers(1)
        (tmp_path / "scheduler").write_text(str(own.scheduler.pid))
        made = []
        where = {"scheduler": own.address, "scheduler_file": None}
        if named == "file":
            where = {"scheduler": None, "scheduler_file": str(own.file)}

        def run():
            made.append(squares("", "ends the scheduler", "", absent_seconds=240, **where))

        thread = threading.Thread(target=run)
        thread.start()
        own.scheduler.wait(60)
        own.start_scheduler(own.address if named == "address" else None)
        own.worker("--nthreads", "1", nanny=False)
        thread.join(300)
    assert made[0].outputs == expected(3)
    assert "1" in squares.starts()


class FreeWorkers(dask_engine.DaskWorkers):
    """Shards go to workers without work: Dask forgets what a worker does for a client that left.

    It would put a shard behind that, and steals it back only if it knows shards to take long.
    """

    def _submit(self, payload, workers=None):
        self._update_workers()
        free = [at for at, facts in self._workers.items() if not dask_engine._is_busy(facts)]
        return super()._submit(payload, workers or free)


def test_a_stop_leaves_the_cluster_and_a_late_attempt_changes_nothing(
    server, tmp_path, monkeypatch
):
    """The first attempt at shard 0 goes on after the stop, and ends after the second one has."""
    monkeypatch.setattr(dask_engine, "FIRST_SECONDS", 1.0)
    backend = backend_at(str(tmp_path / "store"))
    cluster = DaskCluster(
        lambda: Scheduler(server.address), Squares, code_digest(Squares), backend, KEY,
        tmp_path / "none",
        1, logging.getLogger("test"),
    )  # fmt: skip
    tasks = [Square("0", 0, "waits once"), Square("1", 1)]

    def run(stopping):
        kinds = {"exclusions": "exclusions"}
        shards = ShardMap(
            backend, KEY, "squares", kinds, "code", 9, stopping, lambda *_: None, lambda: None,
            pool=cluster.pool, elsewhere=True,
        )  # fmt: skip
        shared = {"folder": str(tmp_path), "laid": tmp_path / "laid"}
        return shards.run(make_square, tasks, shared)[1]

    (tmp_path / "laid").write_text("for the shards")

    with pytest.raises(Stopped):
        run((tmp_path / "begun").exists)
    folder = Path(backend.full(layout.work(KEY, "shards", "squares", "0")))
    (first,) = folder.iterdir()
    monkeypatch.setattr(dask_engine, "DaskWorkers", FreeWorkers)
    written = run(lambda: False)
    places = {Path(backend.full(item.place)): item for item in written}
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in places}
    assert all(first not in path.parents for path in places)
    (tmp_path / "released").touch()
    until((first / "exclusions" / "0-1.parquet").exists)
    assert {path: (path.read_bytes(), path.stat().st_ino) for path in places} == before


def test_a_worker_whose_check_nobody_read_does_the_shards_of_the_next_map(server, tmp_path):
    """As after a stop that comes before the answer: the worker keeps its report of that map."""
    server.wait_for_workers(2)
    cluster = DaskCluster(
        lambda: Scheduler(server.address), Squares, code_digest(Squares),
        backend_at(str(tmp_path / "store")), KEY, tmp_path / "none", 1, logging.getLogger("test"),
    )  # fmt: skip
    for read in (False, True):
        pool = cluster.pool(2, b"of a map")
        until(lambda: all(task.done() for _, task in pool._checks.values()))  # noqa: B023
        if read:
            until(lambda: pool.wait(0.1) and pool.idle)  # noqa: B023
            assert pool._sound  # Dask may give both checks to one worker.
        pool.release()


def test_an_address_where_nothing_listens_is_told(squares, monkeypatch):
    monkeypatch.setattr(dask_client, "CONNECT_SECONDS", 0.5)
    with pytest.raises(IngotError) as caught:
        squares("", address="tcp://127.0.0.1:1")
    assert caught.value.where == "tcp://127.0.0.1:1"
    assert "dask worker tcp://127.0.0.1:1 --nthreads 1 --nworkers N" in caught.value.hint


def test_a_server_of_another_sort_is_told(squares, file_server, monkeypatch):
    """Such as Dask's own dashboard, whose port is beside the scheduler's."""
    monkeypatch.setattr(dask_client, "CONNECT_SECONDS", 0.5)
    address = file_server.url.replace("http://", "tcp://").rstrip("/")
    with pytest.raises(IngotError) as caught:
        squares("", address=address)
    assert caught.value.where == address


def test_the_address_of_a_worker_is_told(squares, server):
    worker = server.workers()[0]
    with pytest.raises(IngotError, match=r"\bWorker\b"):
        squares("", address=worker)


def test_workers_with_another_program_are_refused_before_any_work(squares, tmp_path, monkeypatch):
    monkeypatch.setattr("stages.engine.runner.code_digest", lambda stage: "f" * 64)
    with pytest.raises(IngotError, match=r"\b2 of 2\b") as caught:
        squares("", "")
    assert "toy_squares" in caught.value.what
    assert "ffffffffffff" in caught.value.what
    assert not (tmp_path / "starts").exists()


def test_workers_with_other_versions_are_refused(squares, tmp_path, monkeypatch):
    ours = {"python": "3.0.1", "numpy": "1.0"}
    monkeypatch.setattr("stages.engine.dask_engine.library_versions", lambda stage: ours)
    with pytest.raises(IngotError, match=r"python 3\.\d+\.\d+.*3\.0\.1.*numpy .*1\.0"):
        squares("", "")
    assert not (tmp_path / "starts").exists()


def test_workers_that_do_not_see_the_store_are_refused(squares, server, tmp_path, monkeypatch):
    """Another folder under the same path, as on a machine that does not mount it."""
    monkeypatch.setattr("stages.engine.dask_worker.SharedFolder.announce", lambda place: None)
    with pytest.raises(IngotError, match=r"tcp://127\.0\.0\.1:") as caught:
        squares("", "")
    assert str(tmp_path / "store" / "work") in caught.value.what


def test_workers_whose_files_are_not_seen_here_are_refused(squares, monkeypatch):
    """A container that writes into a layer of its own."""
    monkeypatch.setattr("stages.engine.dask_worker.SharedFolder.holds", lambda place, name: False)
    with pytest.raises(IngotError, match=r"/work/.*/dask"):
        squares("", "")


def test_a_worker_without_ingot_is_refused_and_lives(squares, server, tmp_path):
    block = tmp_path / "block.py"
    block.write_text("import sys\nsys.modules['stages'] = None\n")
    without = server.worker("--nthreads", "1", "--preload", str(block), nanny=False)
    try:
        server.wait_for_workers(3)
        with pytest.raises(IngotError, match=r"\b1 of 3\b.*ModuleNotFoundError") as caught:
            squares("", "")
        assert f"dask worker {server.address} --nthreads 1 --nworkers N" in caught.value.hint
        assert len(server.workers()) == 3
    finally:
        server.end(without)
        server.wait_for_workers(2)


@pytest.mark.full
def test_workers_that_come_later_are_taken_or_left_alone(
    squares, expected, server, tmp_path, store
):
    """The two that are there wait until a third has done the third shard."""
    made = []
    late = []
    thread = threading.Thread(target=lambda: made.append(squares("waits", "waits", "")))
    thread.start()
    try:
        until((tmp_path / "begun").exists, thread.is_alive)
        late.append(server.worker("--nthreads", "2", nanny=False))
        server.wait_for_workers(3)
        work = Path(store.url, "work")
        refused = b"is given nothing: it has 2 threads, not one"
        until(
            lambda: any(refused in log.read_bytes() for log in work.rglob("log.txt")),
            thread.is_alive,
        )
        late.append(server.worker("--nthreads", "1", nanny=False))
        until(lambda: [*work.glob("*/done/make_square/2.json")], thread.is_alive)
        (tmp_path / "released").touch()
        thread.join(60)
    finally:
        for process in late:
            server.end(process)
        server.wait_for_workers(2)
    assert made[0].outputs == expected(3)
    assert made[0].telemetry["dask_workers"] == 3
    place = layout.payload(made[0].stage, made[0].key, made[0].attempt)
    log = store.backend.read(f"{place}/telemetry/log.txt")
    assert refused in log


def test_a_cluster_without_workers_is_told(squares, tmp_path):
    with (
        DaskServer(tmp_path / "dask", workers=0) as own,
        pytest.raises(IngotError, match=r"\b0 s\b") as caught,
    ):
        squares("", address=own.address, absent_seconds=0.2)
    assert caught.value.where == own.address


def test_the_stage_and_its_workers_share_the_store_and_what_the_stage_laid_beside_it(tmp_path):
    """In a store's folder that is one place; a bucket's work lies on the node as well."""
    here, bucket = backend_at(str(tmp_path / "store")), backend_at("s3://bucket/store")
    folder = tmp_path / "state"
    folder.mkdir()

    def places(backend):
        return [
            (place.url, place.folder)
            for place in DaskCluster(
                lambda: Scheduler("tcp://head:1"),
                Squares,
                "code",
                backend,
                KEY,
                folder,
                1,
                logging.getLogger("test"),
            ).folders()
        ]

    work = f"work/{KEY}/dask"
    assert places(bucket) == [("s3://bucket/store", work)]
    (folder / "model.bin").touch()
    assert places(bucket) == [("s3://bucket/store", work), (str(folder), "dask")]
    assert places(here) == [(here.url, work)]


def test_no_more_shards_are_at_work_than_the_execution_says(squares, tmp_path):
    """Each ends before the next begins, whichever worker does it."""
    made = squares("alone", "alone", "alone", workers=1)
    assert made.counts["sum"] > 0


@pytest.mark.full
def test_an_adaptive_cluster_grows_for_shards_that_wait(squares, expected, tmp_path):
    """It has no worker yet: the calls wait in the scheduler, which wants one for each."""
    with DaskServer(tmp_path / "dask", [HERE], workers=0) as own:
        made = []
        thread = threading.Thread(target=lambda: made.append(squares("", "", address=own.address)))
        thread.start()
        until(lambda: own.wanted() >= 1, thread.is_alive)
        own.worker("--nthreads", "1", nanny=False)
        thread.join(60)
    assert made[0].outputs == expected(2)


@pytest.mark.parametrize(
    ("execution", "named"),
    [
        ({"engine": "dask"}, "scheduler"),
        ({"engine": "dask", "scheduler": "host"}, "'host'"),
        ({"scheduler": "http://host:8787"}, "http://host:8787"),
        ({"scheduler": "tcp://me:secret@host:8786"}, "password"),
        ({"engine": "spark"}, "'processes' or 'dask'"),
    ],
)
def test_a_wrong_execution_is_refused(execution, named):
    with pytest.raises(UsageError) as caught:
        MapExecution.parse(execution, where="x")
    assert named in str(caught.value)
    assert "secret" not in str(caught.value)


def test_addresses_of_every_sort_are_taken():
    for address in ("tls://10.0.0.1:8786", "tls://head-1.example.org:8786", "tcp://[::1]:8786"):
        assert MapExecution.parse({"scheduler": address}, where="x").scheduler == address


def test_where_dask_is_not_installed_the_extra_is_named(squares, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'ingot\[dask\]'"):
        squares("")


def test_dask_is_not_imported_where_it_is_not_used(tmp_path):
    program = (
        "import sys; import flows.cli.main, stages.engine.runner, stages.engine.protocol;"
        "stages.engine.protocol.all_stages();"
        "sys.exit(any(name.split('.')[0] in ('dask', 'distributed') for name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], timeout=60)
    assert ran.returncode == 0


def test_logs_of_dask_are_as_loud_afterwards_as_before(squares, monkeypatch):
    before = logging.getLogger("distributed").level
    squares("")
    assert logging.getLogger("distributed").level == before
