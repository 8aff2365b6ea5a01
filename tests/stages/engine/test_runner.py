"""One run of a stage: identity, reuse, conservation, the same bytes for any workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from signal import SIGKILL

import pytest
from forks import in_fork

from artifacts_schema.errors import (
    CorruptArtifact,
    LeaseLost,
    NotConserved,
    Stopped,
    UsageError,
)
from artifacts_schema.store import Store, failpoints, layout
from artifacts_schema.store.gc import collect, plan_gc
from artifacts_schema.store.verify import verify
from stages.engine import Context
from stages.engine.protocol import register
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec

sys.path.insert(0, str(Path(__file__).parent))
from toy import Double, Join, Make


def test_a_stage_commits_its_tables_and_counts(run_stage, read_table):
    made = run_stage(Make, {"shards": 3, "rows": 4})
    assert made.counts["sum"] == sum(range(12))
    assert made.conservation.records_in == made.conservation.out == 12
    assert [f.rows for f in made.outputs["exclusions"].files] == [4, 4, 4]
    assert read_table(made, "exclusions")["reason"].to_pylist() == [str(i) for i in range(12)]


def test_the_second_run_of_a_key_is_reused(store, run_stage):
    first = run_stage(Make)
    spec = StageSpec.make(Make, {}, {})
    outcome = run_spec(store, spec)
    assert outcome.reused
    assert outcome.manifest.attempt == first.attempt
    assert store.backend.folders("work") == []


def test_a_field_at_its_default_does_not_enter_the_key(run_stage):
    assert run_stage(Make).key == run_stage(Make, {"shards": 3, "rows": 4, "offset": 0}).key
    assert run_stage(Make).key != run_stage(Make, {"offset": 1}).key


def test_execution_does_not_enter_the_key_or_the_bytes(tmp_path, run_stage):
    one = run_stage(Make, {"shards": 5}, execution={"workers": 1})
    other = Store.open(str(tmp_path / "other"))
    spec = StageSpec.make(Make, {"shards": 5}, {}, {"workers": 2})
    two = run_spec(other, spec).manifest
    assert (one.key, one.outputs) == (two.key, two.outputs)


def test_equal_output_of_another_config_stops_the_cascade(store, run_stage):
    """Double(2)∘Make and Double(1)∘Double(2)∘Make hold equal bytes, so their digests agree."""
    made = run_stage(Make)
    double = run_stage(Double, {}, {"exclusions": [(made, "exclusions")]})
    same = run_stage(Double, {"factor": 1}, {"exclusions": [(double, "exclusions")]})
    assert double.key != same.key
    assert double.outputs["exclusions"].digest == same.outputs["exclusions"].digest
    joined = run_stage(Join, {}, {"exclusions": [(double, "exclusions")]})
    assert joined.key == run_stage(Join, {}, {"exclusions": [(same, "exclusions")]}).key


def test_the_order_of_inputs_bears_identity(run_stage):
    a, b = run_stage(Make), run_stage(Make, {"offset": 5})
    ab = run_stage(Join, {}, {"exclusions": [(a, "exclusions"), (b, "exclusions")]})
    ba = run_stage(Join, {}, {"exclusions": [(b, "exclusions"), (a, "exclusions")]})
    assert ab.key != ba.key


def test_a_stage_that_loses_records_does_not_commit(store, run_stage):
    class Lossy(Make):
        name = "toy_lossy"

        def run(self, context: Context) -> None:
            context.conserve(records_in=10, out=7, dropped={"short": 2})

    with pytest.raises(NotConserved, match=r"10 .*7 .*2 short"):
        run_stage(Lossy)
    assert list(store.manifests()) == []


def test_a_stage_that_never_accounts_does_not_commit(run_stage):
    class Silent(Make):
        name = "toy_silent"

        def run(self, context: Context) -> None:
            context.count(rows=1)

    with pytest.raises(NotConserved) as caught:
        run_stage(Silent)
    assert caught.value.where == "toy_silent"


def test_a_stop_keeps_finished_shards_and_the_next_run_continues(store, run_stage):
    calls: list[int] = []

    def stop() -> bool:
        calls.append(1)
        return len(calls) > 3

    register(Make)
    spec = StageSpec.make(Make, {"shards": 6}, {}, {"workers": 1})
    with pytest.raises(Stopped):
        run_spec(store, spec, stop=stop)
    state = store.work_state(spec.key)
    assert state.exists
    assert not state.running
    assert 0 < state.finished_shards < 6
    resumed = run_spec(store, spec).manifest
    fresh = run_spec(Store.open(store.url + "-fresh"), spec).manifest
    assert resumed.outputs == fresh.outputs


def test_a_run_that_kept_nothing_yet_is_no_resume_state(store, monkeypatch):
    """Killed once it had taken over from nobody: a plan says run, not resume."""

    class Killed(BaseException):
        pass

    def die(point):
        if point == "state taken over":
            raise Killed

    register(Make)
    spec = StageSpec.make(Make, {}, {})
    for point in (die, None):
        monkeypatch.setattr(failpoints, "on_failpoint", point)
        try:
            run_spec(store, spec, stop=lambda: True)
        except (Killed, Stopped):
            assert store.backend.files(f"work/{spec.key}/lease")
        assert not store.work_state(spec.key).exists


@pytest.mark.parametrize("point", ["file table written", "before manifest", "manifest linked"])
def test_a_stage_killed_around_its_file_table_gives_the_same_artifact(tmp_path, point):
    """101 files are more than a manifest lists; the run dies by SIGKILL at the point."""
    register(Make)
    spec = StageSpec.make(Make, {"shards": 101, "rows": 1}, {}, {"workers": 1})
    store = Store.open(str(tmp_path / "store"))

    def run_and_die():
        failpoints.on_failpoint = lambda reached: (
            os.kill(os.getpid(), SIGKILL) if reached == point else None
        )
        run_spec(store, spec)

    assert in_fork(run_and_die) == -SIGKILL
    outcome = run_spec(store, spec)
    assert outcome.reused == (point == "manifest linked")
    made, fresh = outcome.manifest, run_spec(Store.open(f"{store.url}-fresh"), spec).manifest
    assert made.file_table == fresh.file_table
    assert made.outputs["exclusions"].files == fresh.outputs["exclusions"].files
    assert len(made.outputs["exclusions"].files) == 101
    store.set_ref("made", *made.name)
    collect(store, plan_gc(store, min_age_seconds=-60))
    assert store.backend.folders(layout.payload(*made.name)) == [made.attempt]
    assert verify(store, made) == []


@pytest.mark.parametrize("error", [OSError(2, "No such file or directory"), KeyError("x")])
def test_whatever_goes_wrong_once_the_key_is_lost_is_said_to_be_that(store, error):
    """The successor has taken the files that this run works on."""

    class Woken(Make):
        name = "toy_woken"

        def run(self, context: Context) -> None:
            folder = f"work/{context.attempt.key}/lease"
            assert store.backend.put_if_absent(f"{folder}/00000002.json", b"{}")
            raise error

    register(Woken)
    with pytest.raises(LeaseLost):
        run_spec(store, StageSpec.make(Woken, {}, {}))


def test_a_commit_after_the_key_was_lost_leaves_the_successors_work(store, monkeypatch):
    """It passed its last check, was suspended, and commits: what stands is right all the same."""
    register(Make)
    spec = StageSpec.make(Make, {}, {})
    folder = f"work/{spec.key}"

    def lose(point):
        if point == "before manifest":
            store.backend.replace(f"{folder}/lease/00000002.json", b"{}")
            store.backend.replace(f"{folder}/state/code/00000002-b/kept", b"of the successor")

    monkeypatch.setattr(failpoints, "on_failpoint", lose)
    assert not run_spec(store, spec).reused
    assert store.backend.read(f"{folder}/state/code/00000002-b/kept") == b"of the successor"


def test_shards_of_another_program_are_not_resumed(store, run_stage, monkeypatch):
    register(Make)
    spec = StageSpec.make(Make, {"shards": 4}, {}, {"workers": 1})
    calls = iter([False, False, False, True])
    with pytest.raises(Stopped):
        run_spec(store, spec, stop=lambda: next(calls, True))
    before = store.work_state(spec.key).finished_shards
    assert before > 0
    monkeypatch.setattr("stages.engine.runner.code_digest", lambda stage: "f" * 64)
    seen: list[int] = []
    from stages.engine import shards

    record = shards.ShardMap._record
    monkeypatch.setattr(
        shards.ShardMap, "_record", lambda self, *a: (seen.append(1), record(self, *a))[1]
    )
    run_spec(store, spec)
    assert len(seen) == 4


def test_a_changed_input_byte_is_refused_by_name(store, run_stage):
    made = run_stage(Make)
    path = store.payload(made, "exclusions", "00001.parquet")
    data = bytearray(store.backend.read(path))
    data[50] ^= 1
    store.backend.replace(path, bytes(data))
    with pytest.raises(CorruptArtifact, match=r"00001\.parquet"):
        run_stage(Double, {}, {"exclusions": [(made, "exclusions")]})


def test_a_cut_artifact_is_made_again(store, run_stage):
    made = run_stage(Make)
    path = store.payload(made, "exclusions", "00001.parquet")
    store.backend.replace(path, store.backend.read(path)[:-10])
    again = run_stage(Make)
    assert again.attempt != made.attempt
    assert again.outputs == made.outputs


def test_a_key_computed_elsewhere_must_agree(store):
    register(Make)
    spec = StageSpec.make(Make, {}, {})
    with pytest.raises(UsageError, match="0000"):
        run_spec(store, spec, expected_key="0" * 64)


def test_force_runs_again_and_equal_bytes_are_dropped(store, run_stage):
    first = run_stage(Make)
    again = run_stage(Make, force=True)
    assert again.attempt == first.attempt
    assert store.backend.folders(layout.payload(first.stage, first.key)) == [first.attempt]


def test_log_and_events_stay_beside_the_payload(store, run_stage):
    made = run_stage(Make)
    folder = layout.payload(made.stage, made.key, made.attempt) + "/telemetry"
    assert store.backend.files(folder) == ["events.jsonl", "log.txt"]
    assert b"started" in store.backend.read(folder + "/events.jsonl")
