"""A budget for a store: which names are proposed, and that carrying it out leaves what it said."""

from __future__ import annotations

import os
import random

import pytest
from made import make

from artifacts_schema.store import Store, layout
from artifacts_schema.store.budget import drop_refs, plan_budget
from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.gc import collect, plan_gc
from artifacts_schema.store.lease import hold_lease
from artifacts_schema.store.verify import verify

FOLDERS = ("artifacts", "data", "damage", "refs", "work", "runs")


def bytes_of(store):
    """The bytes of all files, counted apart from the code under test on a local disk."""
    if not store.backend.local:
        return sum(e.bytes for folder in FOLDERS for e in store.backend.listing(folder).values())
    places = (os.path.join(at, name) for at, _, names in os.walk(store.url) for name in names)
    return sum(map(os.path.getsize, places)) - os.path.getsize(
        os.path.join(store.url, layout.FORMAT)
    )


def budget_of(store, size, **more):
    return plan_budget(store, size, min_age_seconds=-60, **more)


def carry_out(store, plan):
    drop_refs(store, plan)
    collect(store, plan_gc(store, min_age_seconds=-60))


def date(store, ref, seconds):
    os.utime(store.backend.local_path(layout.ref(ref)), (seconds, seconds))


@pytest.fixture
def local(tmp_path):
    return Store.open(str(tmp_path / "local"))


def chain_of(store, name, sizes, shared=()):
    """Artifacts of these sizes, each made of the one before and of `shared`; the last of them."""
    last = list(shared)
    for number, size in enumerate(sizes):
        inputs = {"in": [store.reference(one, "snapshot") for one in last]} if last else {}
        last = [make(store, f"{name}{number}", random.Random(f"{name}{number}").randbytes(size),
                     inputs=inputs)]  # fmt: skip
    return last[0]


def test_shared_artifacts_are_freed_with_the_last_name_that_needs_them(local):
    common = make(local, "common", b"x" * 50_000)
    old = chain_of(local, "old", [10_000], [common])
    new = chain_of(local, "new", [10_000], [common])
    for seconds, (name, made) in enumerate([("demo/old", old), ("demo/new", new)]):
        local.set_ref(name, *made.name)
        date(local, name, 1000 + seconds)
    plan = budget_of(local, bytes_of(local) - 5_000)
    (drop,) = plan.drops
    assert (drop.ref, drop.artifacts) == ("demo/old", 1)
    assert 10_000 < drop.bytes < 20_000
    both = budget_of(local, bytes_of(local) - 40_000).drops
    assert [(drop.ref, drop.artifacts) for drop in both] == [("demo/old", 1), ("demo/new", 2)]


def test_a_name_that_frees_nothing_is_kept(local):
    """`part` is older, but `whole` needs its artifact and is younger than `other`."""
    part = make(local, "part", b"x" * 10_000)
    names = {"a/part": part, "b/other": chain_of(local, "other", [10_000])}
    names["c/whole"] = chain_of(local, "whole", [10_000], [part])
    for seconds, (name, made) in enumerate(names.items()):
        local.set_ref(name, *made.name)
        date(local, name, 1000 + seconds)
    plan = budget_of(local, bytes_of(local) - 8_000)
    assert [drop.ref for drop in plan.drops] == ["b/other"]
    assert plan.is_reached


def test_what_cannot_go_is_named_by_what_holds_it(local):
    made, kept = chain_of(local, "a", [10_000]), chain_of(local, "b", [20_000])
    work, young = chain_of(local, "c", [30_000]), chain_of(local, "d", [40_000])
    snapshot = make(local, "e", b"x" * 50_000, stage="forget")
    for name, one in {"x/a": made, "release/b": kept, "x/e": snapshot, "x/d": young}.items():
        local.set_ref(name, *one.name)
    for one in (made, kept, work, snapshot):
        os.utime(local.backend.local_path(layout.manifest(*one.name)), (1000, 1000))
    reference = local.reference(work, "snapshot").model_dump()
    with hold_lease(local.backend, "f" * 64):
        spec = f'{{"inputs": {{"in": [{reference}]}}}}'.replace("'", '"')
        local.backend.replace(layout.work("f" * 64, "spec.json"), spec.encode())
        plan = plan_budget(local, 1, keep=lambda ref: ref.startswith("release/"))
    assert not plan.is_reached
    assert {drop.ref for drop in plan.drops} == {"x/a"}
    for holder, size in {
        "running work": 30_000,
        "their age": 40_000,
        "names that are kept": 70_000,
    }.items():
        assert size < plan.held[holder] < size + 5_000
    assert sum(plan.held.values()) == plan.bytes_after


def test_while_a_name_cannot_be_read_nothing_is_proposed(local):
    local.set_ref("x/a", *chain_of(local, "a", [10_000]).name)
    local.backend.replace(layout.ref("x/b"), b"{")
    plan = budget_of(local, 1)
    assert plan.drops == ()
    assert not plan.is_reached


def test_a_name_that_was_written_since_stays(local):
    local.set_ref("x/a", *chain_of(local, "a", [10_000]).name)
    date(local, "x/a", 1000)
    plan = budget_of(local, 1)
    local.set_ref("x/a", *local.resolve("x/a")[0].name)
    assert drop_refs(local, plan) == []
    assert local.ref("x/a") is not None


@pytest.mark.parametrize("seed", range(6))
def test_carried_out_it_leaves_the_bytes_it_said_and_every_other_name_whole(store, seed):
    """Random artifacts made of each other, named at random, with abandoned payload and damage."""
    draw = random.Random(seed)
    print("seed", seed)
    made = []
    for number in range(14):
        parents = draw.sample(made, min(len(made), draw.randrange(3)))
        inputs = {"in": [store.reference(p, "snapshot") for p in parents]} if parents else {}
        made.append(
            make(store, f"n{number}", draw.randbytes(draw.randrange(20_000)), inputs=inputs)
        )
        place = layout.payload(*made[-1].name, made[-1].attempt, "telemetry")
        store.backend.replace(f"{place}/log.txt", draw.randbytes(draw.randrange(3_000)))
    for number in range(8):
        store.set_ref(f"r/{number}", *draw.choice(made).name)
        if store.backend.local:
            date(store, f"r/{number}", draw.randrange(1, 10**9))
    lost = Attempt(store.backend, "s", draw.choice(made).key, {"snapshot": "snapshot"})
    with lost.create("snapshot", "snapshot.json") as file:
        file.write(draw.randbytes(5_000))
    budget = int(bytes_of(store) * draw.uniform(0.2, 0.9))
    plan = budget_of(store, budget)
    assert plan.bytes_now == bytes_of(store)
    assert plan.is_reached  # Nothing but names holds anything here.
    carry_out(store, plan)
    assert bytes_of(store) == plan.bytes_after <= budget
    dropped = {drop.ref for drop in plan.drops}
    left = store.refs()
    assert left.keys() == {f"r/{number}" for number in range(8)} - dropped
    for ref in left.values():
        waiting = [(ref.stage, ref.key)]
        while waiting:
            manifest = store.manifest(*waiting.pop())
            assert verify(store, manifest) == []
            waiting += [one.name for one in manifest.references]
    stamps = {drop.ref: drop.named for drop in plan.drops}
    assert list(stamps.values()) == sorted(stamps.values())
