"""What a stage commits on its way: a key of its own, through kills, listed, collected."""

from __future__ import annotations

import pytest
from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import LeaseLost
from artifacts_schema.identity import canonical_sha256, interim_key
from artifacts_schema.store import failpoints, layout
from artifacts_schema.store.commit import announce_interim, list_interims, name_interims
from artifacts_schema.store.gc import collect, plan_gc
from artifacts_schema.store.verify import verify
from stages.engine import Milestone, Stage
from stages.engine.protocol import register
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec


class CountConfig(Config):
    """How far `Count` counts."""

    total: int = Field(default=5, ge=1, description="Its last number.")


class Killed(Exception):
    """Stands for the end of the process."""


class Count(Stage):
    """Counts; commits every second number on its way, and the last at its end."""

    name, version, reproducible = "toy_count", 1, "bytes"
    outputs = {"checkpoint": "checkpoint", "exclusions": "exclusions"}
    Config = CountConfig
    dies_at: int | None = None
    goes_back: tuple[int, int] | None = None
    """From a number to one before it, once."""
    shown = staticmethod(lambda number: None)

    @classmethod
    def milestones(cls, config, inputs):
        """Every second number, and the last."""
        steps = [*range(2, config.total, 2), config.total]
        return [Milestone(step, f"{step}K") for step in steps]

    def run(self, context):
        """Count on from what `work` says."""
        place, back, history = context.work / "number", type(self).goes_back, []
        number = int(place.read_text()) if place.exists() else 0
        due = {one.at: one for one in self.milestones(context.config, {})[:-1]}
        while number < context.config.total:
            number += 1
            if number in due:
                self._commit(context, due[number], history)
            if number == type(self).dies_at:
                raise Killed
            if back is not None and number == back[0]:
                context.withdraw_interims(back[1])
                number, back, history = back[1], None, [back[0]]
            type(self).shown(number)
        context.write_json("checkpoint", "state.json", {"number": number})

    def _commit(self, context, milestone, history):
        with context.interim(milestone, ["checkpoint"], history=history, number=milestone.at) as it:
            it.write_json("checkpoint", "state.json", {"number": milestone.at, "history": history})


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """Each test has a stage that nobody changed."""
    for name in ("dies_at", "goes_back"):
        monkeypatch.setattr(Count, name, None)
    monkeypatch.setattr(Count, "shown", staticmethod(lambda number: None))
    register(Count)


@pytest.fixture
def spec():
    """Count to five: two and four on the way."""
    return StageSpec.make(Count, {}, {})


def at(store, spec):
    return [one.at for one in list_interims(store, "toy_count", spec.key)]


def test_it_stands_while_the_run_goes_on_and_the_run_lists_it(store, spec, monkeypatch):
    seen = {}
    monkeypatch.setattr(Count, "shown", staticmethod(lambda n: seen.update({n: at(store, spec)})))
    run = run_spec(store, spec).manifest
    assert seen == {1: [], 2: [2], 3: [2], 4: [2, 4], 5: [2, 4]}
    assert [(one.at, one.label) for one in run.interims] == [(2, "2K"), (4, "4K")]
    for one in run.interims:
        assert one.key == canonical_sha256({"run": spec.key, "at": one.at})
        manifest = store.manifest("toy_count", one.key)
        assert manifest.interim_of.model_dump() == {
            "run": spec.key,
            "at": one.at,
            "label": one.label,
            "history": (),
        }
        assert {n: o.digest for n, o in manifest.outputs.items()} == one.outputs
        assert list(manifest.outputs) == ["checkpoint"]
        assert manifest.counts == {"number": one.at}
        assert verify(store, manifest) == []


def test_a_killed_run_that_comes_by_again_makes_nothing_new(store, spec, monkeypatch):
    monkeypatch.setattr(Count, "dies_at", 4)
    with pytest.raises(Killed):
        run_spec(store, spec)
    before = {
        one.key: store.manifest("toy_count", one.key)
        for one in list_interims(store, "toy_count", spec.key)
    }
    assert len(before) == 2
    monkeypatch.setattr(Count, "dies_at", None)
    run = run_spec(store, spec).manifest
    assert [one.key for one in run.interims] == list(before)
    for key, manifest in before.items():
        assert store.manifest("toy_count", key) == manifest
        assert store.backend.folders(layout.payload("toy_count", key)) == [manifest.attempt]


@pytest.mark.parametrize("point", ["interim written", "interim committed", "interim listed"])
def test_killed_at_each_of_its_points_it_is_made_once(store, spec, monkeypatch, point):
    def strike(passed):
        if passed == point:
            raise Killed

    monkeypatch.setattr(failpoints, "on_failpoint", strike)
    with pytest.raises(Killed):
        run_spec(store, spec)
    monkeypatch.setattr(failpoints, "on_failpoint", None)
    assert at(store, spec) == ([2] if point == "interim listed" else [])
    assert [one.at for one in run_spec(store, spec).manifest.interims] == [2, 4]
    garbage = plan_gc(store)
    collect(store, garbage)
    assert garbage.artifacts == []
    for one in list_interims(store, "toy_count", spec.key):
        assert len(store.backend.folders(layout.payload("toy_count", one.key))) == 1


def test_damaged_it_is_made_anew(store, spec, monkeypatch):
    monkeypatch.setattr(Count, "dies_at", 4)
    with pytest.raises(Killed):
        run_spec(store, spec)
    manifest = store.manifest("toy_count", interim_key(spec.key, 2))
    store.backend.remove(store.payload(manifest, "checkpoint", "state.json"))
    monkeypatch.setattr(Count, "dies_at", None)
    run_spec(store, spec)
    assert verify(store, store.manifest("toy_count", manifest.key)) == []


def test_a_run_that_goes_back_commits_others_and_leaves_those_who_read_the_old_ones(
    store, spec, monkeypatch
):
    monkeypatch.setattr(Count, "goes_back", (4, 3))
    run = run_spec(store, spec).manifest
    old, new = interim_key(spec.key, 4), interim_key(spec.key, 4, [4])
    assert [one.key for one in run.interims] == [interim_key(spec.key, 2), new]
    assert store.manifest("toy_count", old) is not None
    store.set_ref("mine", "toy_count", spec.key)
    assert [m.key for m in plan_gc(store, min_age_seconds=-60).artifacts] == [old]


def test_a_run_that_lost_its_key_commits_nothing(store, spec, monkeypatch):
    """Another process takes the next fencing number while this one writes."""
    from artifacts_schema.store.lease import Lease

    def lose(self):
        raise LeaseLost("another run took this key over")

    monkeypatch.setattr(Lease, "check", lose)
    with pytest.raises(LeaseLost):
        run_spec(store, spec)
    assert list(store.manifests()) == []
    assert at(store, spec) == []


def test_gc_keeps_those_of_a_living_run_and_of_work_that_may_go_on(store, spec, monkeypatch):
    found = {}

    def look(number):
        if number == 3:
            found["living"] = plan_gc(store, min_age_seconds=-60, idle_work=True)

    monkeypatch.setattr(Count, "shown", staticmethod(look))
    monkeypatch.setattr(Count, "dies_at", 5)
    with pytest.raises(Killed):
        run_spec(store, spec)
    assert found["living"].artifacts == []
    assert plan_gc(store, min_age_seconds=-60).artifacts == []
    idle = plan_gc(store, min_age_seconds=-60, idle_work=True)
    assert {m.key for m in idle.artifacts} == {interim_key(spec.key, 2), interim_key(spec.key, 4)}
    assert idle.work == [spec.key]


def test_gc_leaves_the_payload_that_a_living_run_writes_now(store, spec, monkeypatch):
    """Nothing but its announcement tells whose it is: no manifest, no lease of its own."""
    found = []

    def look(point):
        if point == "interim written":
            found.append(plan_gc(store))

    monkeypatch.setattr(failpoints, "on_failpoint", look)
    run_spec(store, spec)
    assert [one.attempts for one in found] == [[], []]


def test_gc_follows_a_named_run_to_what_it_committed_on_its_way(store, spec):
    run_spec(store, spec)
    assert len(plan_gc(store, min_age_seconds=-60).artifacts) == 3
    store.set_ref("mine", "toy_count", spec.key)
    assert plan_gc(store, min_age_seconds=-60).artifacts == []


def test_names_go_with_the_run_and_a_persons_own_stay(store, spec):
    one = run_spec(store, spec).manifest
    other = run_spec(store, StageSpec.make(Count, {"total": 3}, {})).manifest
    name_interims(store, "demo/count", "toy_count", one.interims)
    store.set_ref("demo/count@kept", "toy_count", one.interims[0].key)
    assert set(store.refs()) == {"demo/count@2K", "demo/count@4K", "demo/count@kept"}
    name_interims(store, "demo/count", "toy_count", other.interims)
    refs = store.refs()
    assert set(refs) == {"demo/count@2K", "demo/count@kept"}
    assert refs["demo/count@2K"].key == other.interims[0].key


def test_an_unreadable_manifest_stops_no_naming(store, spec):
    """A run that makes the artifact again names on its way what stands so far."""
    one = run_spec(store, spec).manifest
    name_interims(store, "demo/count", "toy_count", one.interims)
    store.backend.replace(layout.manifest("toy_count", spec.key), b"")
    assert list_interims(store, "toy_count", spec.key) == []
    first, second = one.interims
    store.backend.replace(layout.manifest("toy_count", second.key), b"")
    name_interims(store, "demo/count", "toy_count", [first])
    assert set(store.refs()) == {"demo/count@2K", "demo/count@4K"}


def test_an_announcement_alone_is_no_artifact(store, spec):
    from artifacts_schema.manifest import Interim

    announce_interim(store.backend, spec.key, Interim(at=7, label="7K", key="0" * 64))
    assert list_interims(store, "toy_count", spec.key) == []


def test_an_output_that_is_not_declared_is_refused(store, run_stage):
    class Odd(Count):
        name = "toy_odd"

        def run(self, context):
            with context.interim(Milestone(1, "1"), ["model"]):
                pass

    with pytest.raises(ValueError, match="'model'"):
        run_stage(Odd)
