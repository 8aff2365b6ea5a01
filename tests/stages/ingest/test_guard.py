"""A page that hangs or crashes its worker costs itself, the same in every run, and nothing else."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from forks import in_fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import IngotError, Stopped, StoreError
from artifacts_schema.store import Store, failpoints
from stages.engine.protocol import register
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec
from stages.engine.state import State
from stages.engine.workers import WorkerCrash
from stages.ingest import guard as guard_module
from stages.ingest.guard import CrashingPages, Watch

sys.path.insert(0, str(Path(__file__).parent))
from brittle import Brittle, spin

LOG = logging.getLogger("test")
BAD = {"0/3": "spins", "2/0": "writes out of bounds", "2/4": "spins in Python", "3/1": "aborts"}
FEW = {"0/3": "spins", "1/0": "aborts"}
OUTCOMES = {(0, 3): "hung", (2, 0): "crashed", (2, 4): "hung", (3, 1): "crashed"}


def spec_of(workers=1, execution=None, **config):
    register(Brittle)
    return StageSpec.make(Brittle, config, {}, {"workers": workers, **(execution or {})})


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def crash_of(pages, unit, process, code):
    """The crash of a worker, with the mark that is read on its machine, as a map does it."""
    crash = WorkerCrash(unit, process, code)
    return pages.on_crash(replace(crash, mark=unit and pages.watch().page_at(unit, process)))


@pytest.fixture
def folder_state(tmp_path):
    """`folder_state()`: the state of a run on a local store, as its next run sees it again."""
    backend = Store.open(str(tmp_path / "store")).backend
    return lambda: State(backend, "a" * 64, "code", tmp_path / "state", LOG)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a run over two units with FEW bad pages makes that nobody disturbs."""
    store = Store.open(str(tmp_path_factory.mktemp("undisturbed")))
    return run_spec(store, spec_of(units=2, bad=FEW)).manifest


# A whole stage --------------------------------------------------------------------------------


def test_bad_pages_are_left_out_by_name_and_all_others_are_kept(tmp_path, store, read_table):
    """The same bytes for one worker and for two."""
    made = run_spec(store, spec_of(bad=BAD)).manifest
    reasons = read_table(made, "exclusions")["reason"].to_pylist()
    expected = [OUTCOMES.get((unit, page), "good") for unit in range(4) for page in range(5)]
    assert reasons == expected
    assert made.counts == {"lost": 4}
    assert (made.telemetry["known"], made.telemetry["found"]) == (0, 4)
    assert multiprocessing.active_children() == []
    two = run_spec(Store.open(str(tmp_path / "two")), spec_of(2, bad=BAD)).manifest
    assert (two.outputs, two.counts) == (made.outputs, made.counts)


@pytest.mark.full
def test_a_stage_killed_anywhere_goes_on_with_what_it_knows(store, undisturbed):
    """Before a page is put on the list, after, and when a shard is recorded; none is read again."""
    spec = spec_of(workers=2, units=2, bad=FEW)
    keep = guard_module.CrashingPages._keep

    def before_keeping():
        guard_module.CrashingPages._keep = die
        run_spec(store, spec)

    def after_keeping():
        guard_module.CrashingPages._keep = lambda self: (keep(self), die())
        run_spec(store, spec)

    def when_recorded():
        failpoints.on_failpoint = lambda point: die() if point == "shard recorded" else None
        run_spec(store, spec)

    for action in (before_keeping, after_keeping, when_recorded):
        assert in_fork(action) == -signal.SIGKILL
    made = run_spec(store, spec).manifest
    assert made.outputs == undisturbed.outputs
    assert made.counts == undisturbed.counts
    assert made.telemetry["known"] >= 1
    assert made.telemetry["known"] + made.telemetry["found"] == 2


@pytest.mark.full
def test_a_stage_killed_while_a_page_hangs_is_run_again_to_the_same_end(store, tmp_path):
    os.mkfifo(tmp_path / "reached")
    config = {"bad": {"1/2": "is told of, then spins"}, "folder": str(tmp_path)}
    spec = spec_of(execution={"page_seconds": 30.0}, **config)
    stage = os.fork()
    if stage == 0:
        try:
            run_spec(store, spec)
        finally:
            os._exit(1)
    (tmp_path / "reached").read_text()
    os.kill(stage, signal.SIGKILL)
    os.waitpid(stage, 0)
    reader = threading.Thread(target=(tmp_path / "reached").read_text)
    reader.start()
    made = run_spec(store, spec_of(**config)).manifest
    reader.join()
    assert made.counts == {"lost": 1}


def test_a_stop_while_a_page_hangs_is_a_stop(store, tmp_path):
    os.mkfifo(tmp_path / "reached")
    fifo = os.open(tmp_path / "reached", os.O_RDWR)
    config = {"bad": {"0/0": "is told of, then spins"}, "folder": str(tmp_path)}
    spec = spec_of(execution={"page_seconds": 30.0}, **config)
    with pytest.raises(Stopped):
        run_spec(store, spec, stop=lambda: bool(select.select([fifo], [], [], 0)[0]))
    os.close(fifo)
    assert multiprocessing.active_children() == []


def test_a_worker_killed_from_outside_blames_no_page(store, tmp_path):
    """Out of memory looks the same; the page is tried again by the next run, and is good."""
    spec = spec_of(bad={"1/1": "is killed once"}, folder=str(tmp_path))
    with pytest.raises(IngotError, match="out of memory"):
        run_spec(store, spec)
    assert run_spec(store, spec).manifest.counts == {"lost": 0}


def test_a_crash_between_pages_is_an_error_every_time(store):
    spec = spec_of(bad={"1/1": "crashes between pages"})
    for _ in range(2):
        with pytest.raises(IngotError, match=r"00001: .*SIGABRT"):
            run_spec(store, spec)
    assert list(store.manifests()) == []


def test_time_that_a_page_only_waits_does_not_count(store):
    spec = spec_of(bad={"0/0": "waits"}, execution={"page_seconds": 0.05})
    assert run_spec(store, spec).manifest.counts == {"lost": 0}


def test_more_bad_pages_than_the_limit_end_the_stage_with_a_reason(store, undisturbed):
    spec = spec_of(units=2, bad=FEW, execution={"limit": 1})
    with pytest.raises(IngotError, match=r"\b1\b"):
        run_spec(store, spec)
    made = run_spec(store, spec_of(units=2, bad=FEW)).manifest
    assert (made.telemetry["known"], made.telemetry["found"]) == (1, 1)
    assert made.outputs == undisturbed.outputs


def test_two_runs_at_once_make_one_artifact(store, undisturbed):
    spec = spec_of(units=2, bad=FEW)
    codes = []
    threads = [
        threading.Thread(target=lambda: codes.append(in_fork(lambda: run_spec(store, spec))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    assert store.manifest("brittle", spec.key).outputs == undisturbed.outputs


@pytest.mark.full
@pytest.mark.parametrize(
    "point", ["state published", pytest.param("state files published", marks=pytest.mark.full)]
)
def test_another_machine_goes_on_with_the_published_list(
    s3_url, tmp_path, monkeypatch, undisturbed, point
):
    """Killed while it publishes its second crashing page; the next machine knows one, or both."""
    store = Store.open(s3_url + "/store")
    left = [2]

    def strike(passed):
        left[0] -= passed == point
        if left[0] == 0:
            die()

    def killed():
        failpoints.on_failpoint = strike
        run_spec(store, spec_of(units=2, bad=FEW))

    assert in_fork(killed) == -signal.SIGKILL
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "another-machine"))
    made = run_spec(store, spec_of(units=2, bad=FEW)).manifest
    assert made.outputs == undisturbed.outputs
    assert made.telemetry["known"] == (2 if point == "state published" else 1)


def test_a_list_that_cannot_be_published_is_kept_here_and_the_older_one_there(
    s3_url, tmp_path, monkeypatch
):
    backend = Store.open(s3_url + "/store").backend

    def node(name):
        return State(backend, "a" * 64, "code", tmp_path / name, LOG)

    def blame(crashing_pages, page):
        with crashing_pages.watch().over("unit") as guard, guard.page(page):
            crash_of(crashing_pages, "unit", os.getpid(), -signal.SIGPROF)

    def pages(name):
        return [one.page for one in CrashingPages(node(name), seconds=60.0).pages]

    def unreachable(*_):
        raise StoreError("no connection")

    here = CrashingPages(node("here"), seconds=60.0)
    blame(here, "first")
    with monkeypatch.context() as patch:
        patch.setattr(State, "_upload", unreachable)
        blame(here, "second")
    assert pages("there") == ["first"]
    assert pages("here") == pages("here") == ["first", "second"]
    blame(here, "third")
    assert pages("there") == ["first", "second", "third"]
    assert node("there").published() == ["crashing-pages-000003"]


# The guard alone ------------------------------------------------------------------------------


def test_the_limit_holds_where_its_signal_was_ignored_or_blocked(tmp_path):
    """Both are inherited from whoever started the program."""

    def action():
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
        with Watch(tmp_path, 0.05).over("unit") as guard, guard.page("page"):
            spin()

    assert in_fork(action) == -signal.SIGPROF


def test_the_clock_stops_with_the_page_even_one_that_raises(tmp_path):
    with Watch(tmp_path, 60.0).over("unit") as guard:
        with guard.page("good"):
            assert signal.getitimer(signal.ITIMER_PROF)[0] > 50
        assert signal.getitimer(signal.ITIMER_PROF)[0] == 0
        with pytest.raises(ValueError, match="bad page"), guard.page("bad"):
            raise ValueError("bad page")
        assert signal.getitimer(signal.ITIMER_PROF)[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_each_page_has_the_whole_limit(tmp_path):
    """Ten pages of 0.03 s each, under a limit of 0.1 s."""

    def action():
        with Watch(tmp_path, 0.1).over("unit") as guard:
            for number in range(10):
                with guard.page(f"{number}"):
                    end = time.process_time() + 0.03
                    while time.process_time() < end:
                        pass

    assert in_fork(action) == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pages=st.lists(
        st.one_of(
            st.text(st.characters(), max_size=40),
            st.integers(1000, 6000).map(lambda length: "é\ud800" * length),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_page_of_any_name_is_found_again(folder_state, pages):
    """The last one is blamed, whatever was marked before; surrogates and long names included."""
    crashing_pages = CrashingPages(folder_state(), seconds=60.0)
    *earlier, last = pages
    known = len(crashing_pages.pages)
    with crashing_pages.watch().over("unit") as guard:
        if guard.reason_to_skip(last):
            return
        for page in earlier:
            with guard.page(page):
                pass
        assert crash_of(crashing_pages, "unit", os.getpid(), -signal.SIGSEGV) is None
    with crashing_pages.watch().over("unit") as guard, guard.page(last):
        changed = crash_of(crashing_pages, "unit", os.getpid(), -signal.SIGSEGV)
    assert changed["watch"].over("unit").reason_to_skip(last) == "crashed"
    assert changed["watch"].over("another unit").reason_to_skip(last) is None
    again = CrashingPages(folder_state(), seconds=60.0)
    assert again.pages == crashing_pages.pages
    assert len(again.pages) == known + 1


def test_only_a_death_at_a_page_by_its_own_worker_blames_the_page(folder_state):
    crashing_pages = CrashingPages(folder_state(), seconds=60.0)
    me = os.getpid()
    with crashing_pages.watch().over("unit") as guard, guard.page("page"):
        for death in (
            (None, me, -signal.SIGSEGV),
            ("another unit", me, -signal.SIGSEGV),
            ("unit", me + 1, -signal.SIGSEGV),
        ):
            assert crash_of(crashing_pages, *death) is None
    for code in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGXCPU, 0, 1):
        with crashing_pages.watch().over("unit") as guard, guard.page("page"):
            assert crash_of(crashing_pages, "unit", me, code) is None
    assert crashing_pages.pages == []


def test_a_death_at_a_page_that_is_left_out_is_an_error_not_a_loop(folder_state):
    crashing_pages = CrashingPages(folder_state(), seconds=60.0)
    death = ("unit", os.getpid(), -signal.SIGPROF)
    with crashing_pages.watch().over("unit") as guard, guard.page("page"):
        crash_of(crashing_pages, *death)
    again = pytest.raises(IngotError, match="SIGPROF")
    with crashing_pages.watch().over("unit") as guard, guard.page("page"), again:
        crash_of(crashing_pages, *death)


@pytest.mark.parametrize("damage", [b"", b"{", b'{"a": 1}', b'[{"unit": "u"}]', b"[1]", b"\xff"])
def test_a_damaged_list_is_made_anew(folder_state, damage):
    crashing_pages = CrashingPages(folder_state(), seconds=60.0)
    with crashing_pages.watch().over("unit") as guard, guard.page("page"):
        crash_of(crashing_pages, "unit", os.getpid(), -signal.SIGPROF)
    path = folder_state().folder / "guard" / "crashing-pages.json"
    assert [row["reason"] for row in json.loads(path.read_bytes())] == ["hung"]
    path.write_bytes(damage)
    assert CrashingPages(folder_state(), seconds=60.0).pages == []
