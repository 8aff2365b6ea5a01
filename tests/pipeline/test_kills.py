"""Kill every stage anywhere, run it again, and get the same artifact, once, with nothing lost.

`make test` visits every named point that a stage passes once, and two seeded moments; the full tier
twenty. A killed run may have committed already (a late moment): then the next one reuses. On a
store in a bucket, `make test` takes one stage of each shape, the full tier all.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from pathlib import Path

import pytest
from forks import in_fork
from pipeline import faults
from pipeline.conftest import FURTHER_STEPS

from artifacts_schema.errors import IngotError, StoreError
from artifacts_schema.store import layout
from stages.engine.inputs import Input
from stages.engine.runner import run_stage

pytestmark = pytest.mark.faults

STEPS = [
    "sample",
    "web",
    "conversations",
    "preferences",
    "benchmarks",
    "quality_models",
    "signals[web]",
    "dedup",
    "merge_indexes",
    "later_passages",
    "decontaminate",
    "classify",
    "filter",
    "semantic_dedup",
    "chat_filter",
    "tokenizer",
    "pack",
    "pack_chat",
    "pretrain",
    "sft",
    "dpo",
    "reference",
    "preference",
    "reward",
    "pack_preferences",
    "packed_preference",
    "prompt_tuning",
    "teacher",
    "student",
    "merge_checkpoints",
    "extend_vocabulary",
    "evaluate",
    "score",
    "long_context",
    "memorisation",
    "harness",
    "import_scores",
    "judge",
    "export",
    "export_gguf",
    "export_int8",
]
"""One step of each stage; of `filter` also one that decides on conversations and pairs, of `dedup`
also one that finds passages of an earlier run's index, of `pretrain` also one with a teacher, of
`export` also one in int8."""

QUICK = ("signals[web]", "dedup", "pack", "pretrain")
"""Stages of each shape that `make test` kills; the full tier kills all."""


def of_tier(*values: object, quick: bool) -> object:
    """Parameters of a test, named by their values."""
    marks = [] if quick else [pytest.mark.full]
    return pytest.param(*values, id="-".join(map(str, values)), marks=marks)


BOTH = [
    *(of_tier(instance, "local", quick=instance in QUICK[:-1]) for instance in STEPS),
    *(of_tier(instance, "s3", quick=False) for instance in STEPS),
]


@pytest.fixture(autouse=True, scope="module")
def imported():
    """Forked runs find everything imported, so a kill costs no start-up."""
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)


def attempts(store, step):
    """Where payload of the step's artifact is, its manifest's included."""
    folders = store.backend.folders(layout.payload(step.stage, step.key))
    assert store.manifest(step.stage, step.key).attempt in folders
    return folders


def finish(store, step, before):
    """Run again, undisturbed, and compare; a collection then leaves exactly one payload."""
    run_stage(store, step.spec)
    faults.is_same_artifact(store, step, before)
    from artifacts_schema.store.gc import collect, plan_gc

    garbage = plan_gc(store)
    assert garbage.artifacts == []
    collect(store, garbage)
    faults.is_same_artifact(store, step, before)
    assert len(attempts(store, step)) == 1
    assert not store.work_state(step.key).exists


@pytest.fixture(scope="module")
def durations():
    """Seconds of an undisturbed run, by instance and place: measured once."""
    return {}


def run_measured(durations, place, store, step):
    """Run undisturbed in a fork; the named points that it passed, in order."""
    began = time.monotonic()
    points = faults.run_counting(store, step.spec)
    durations[step.instance, place] = time.monotonic() - began
    return points


@pytest.mark.parametrize(("instance", "place"), BOTH)
def test_killed_at_every_named_point(copy, without, durations, instance, place):
    """Each kill strikes the run that goes on from the one before, a point further."""
    step, before = without(instance)
    store = copy.store
    points = list(dict.fromkeys(run_measured(durations, place, store, step)))
    faults.is_same_artifact(store, step, before)
    assert points[0] == "lease taken"
    assert points[-4:] == ["payload written", "before manifest", "manifest linked", "work removed"]
    without(instance)
    for point in points[:-1]:
        assert faults.run_killed_at(store, step.spec, point) == faults.KILLED
        committed = point == "manifest linked"
        assert (store.manifest(step.stage, step.key) is not None) == committed
    finish(store, step, before)
    without(instance)
    assert faults.run_killed_at(store, step.spec, points[-1]) == faults.KILLED
    finish(store, step, before)


def seeded():
    """Two kills of a few stages in `make test`, many of each in the full tier."""
    for instance in STEPS:
        for kills, place in ((2, "local"), (20, "local"), (4, "s3")):
            yield of_tier(instance, place, kills, quick=kills == 2 and instance in QUICK)


@pytest.mark.parametrize(("instance", "place", "kills"), seeded())
def test_killed_at_seeded_moments(copy, without, durations, instance, place, kills):
    """Kills one after another without a clean run between: work may go on from work."""
    step, before = without(instance)
    store = copy.store
    if (instance, place) not in durations:
        run_measured(durations, place, store, step)
        without(instance)
    draw = faults.seeded(instance, kills)
    for _ in range(kills):
        seconds = draw.uniform(0.0, durations[instance, place])
        code = faults.run_killed_after(store, step.spec, seconds)
        assert code in (0, faults.KILLED)
    finish(store, step, before)


@pytest.mark.parametrize(
    "instance", [of_tier(instance, quick=instance in QUICK) for instance in STEPS]
)
def test_a_full_disk_is_one_clear_error_and_costs_nothing(copy, without, instance, monkeypatch):
    step, before = without(instance)
    store = copy.store
    total = sum(output.bytes for output in before.outputs.values())
    with monkeypatch.context() as patch:
        faults.fill_disk_after(patch, total // 2)
        with pytest.raises(StoreError, match="no space left") as caught:
            run_stage(store, step.spec)
    assert caught.value.hint
    assert store.manifest(step.stage, step.key) is None
    finish(store, step, before)


@pytest.mark.full
@pytest.mark.parametrize("instance", [step for step in FURTHER_STEPS if step != "score"])
def test_an_input_that_is_cut_short_is_named_and_nothing_is_made(copy, without, instance):
    """All files of one input lose their second half: which of them a stage needs is its own."""
    step, before = without(instance)
    store = copy.store
    references = [one for group in step.spec.inputs.values() for one in group]
    assert references
    for reference in references:
        source = Input.load(store, reference, full_check=False)
        places = store.locations(source.digest)  # Of a snapshot, whose files lie elsewhere.
        here = (store.backend.full(f"{source.folder}/{file.path}") for file in source.files)
        paths = [Path(place) for place in (places.values() if places else here)]
        wholes = {path: path.read_bytes() for path in paths}
        for path, whole in wholes.items():
            path.unlink()  # The payload of copies is the same file.
            path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(IngotError) as caught:
            run_stage(store, step.spec)
        assert any(path.name in str(caught.value) for path in paths)
        assert store.manifest(step.stage, step.key) is None
        for path, whole in wholes.items():
            path.write_bytes(whole)
    finish(store, step, before)


@pytest.mark.full
@pytest.mark.parametrize(
    ("instance", "place"),
    [
        ("signals[web]", "local"),
        ("quality_models", "local"),
        ("pretrain", "local"),
        *((step, "local") for step in FURTHER_STEPS),
        ("signals[web]", "s3"),
    ],
)
def test_two_processes_on_one_key_make_one_artifact(copy, without, instance):
    step, before = without(instance)
    store = copy.store
    codes = []

    def run():
        codes.append(in_fork(lambda: run_stage(store, step.spec)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    faults.is_same_artifact(store, step, before)
    assert len(attempts(store, step)) == 1


@pytest.mark.full
@pytest.mark.parametrize("place", ["s3"])
@pytest.mark.parametrize("point", ["state published", "state files published"])
def test_another_machine_goes_on_from_the_published_checkpoint(
    copy, without, tmp_path, monkeypatch, point
):
    """Killed at its third checkpoint (the first is its begin); the next run has no file from here.

    The third counts only if it was published whole.
    """
    step, before = without("pretrain")
    store = copy.store
    assert faults.run_killed_at(store, step.spec, point, times=3) == faults.KILLED
    every = step.spec.execution["checkpoint_every"]
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "another-machine"))
    logged = []
    monkeypatch.setattr(logging.Logger, "info", lambda self, *a: logged.append(a[0] % a[1:]))
    finish(store, step, before)
    reached = 2 * every if point == "state published" else every
    assert f"resumed at training step {reached}" in logged


def test_a_worker_process_that_is_killed_costs_only_its_shard(copy, without):
    """Two workers; one is killed from outside while it works; the next run finishes the rest."""
    from stages.engine import shards

    step, before = without("signals[web]")
    store = copy.store
    spec = dataclasses.replace(step.spec, execution={**step.spec.execution, "workers": 2})
    record = shards.ShardMap._record

    def kill_a_worker(self, name, value):
        record(self, name, value)
        import multiprocessing

        for worker in multiprocessing.active_children():
            os.kill(worker.pid, 9)

    shards.ShardMap._record = kill_a_worker
    try:
        with pytest.raises(IngotError, match="worker"):
            run_stage(store, spec)
    finally:
        shards.ShardMap._record = record
    assert store.work_state(step.key).finished_shards > 0
    finish(store, step, before)
