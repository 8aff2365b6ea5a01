"""Levels: which blocks are merged, what a snapshot reads, and what its arrival or end changes."""

from __future__ import annotations

from itertools import chain

import pytest

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError
from artifacts_schema.store.gc import plan_gc
from flows.recipe.execute import execute
from flows.recipe.levels import Block, merged_blocks, read_blocks
from stages.engine import Many, One, Stage, protocol

STEPS = """\
steps:
  read: {stage: lines, for_each: "day-*", inputs: {snapshot: each}}
  index:
    stage: toy_index
    for_each: day-*
    inputs: {documents: "read:documents", dedup_index: "merge[earlier]:dedup_index"}
  merge: {stage: toy_merge, for_each: {levels: index}, inputs: {dedup_index: "each:dedup_index"}}
"""


class Index(Stage):
    """Lists the snapshots of its documents, and those it was told of."""

    name, version, reproducible = "toy_index", 1, "bytes"
    inputs = {"documents": One("documents"), "dedup_index": Many("dedup_index")}
    outputs = {"dedup_index": "dedup_index", "duplicates": "duplicates"}
    Config = Config

    def run(self, context):
        table = context.one("documents").read_table("00000.parquet")
        own = sorted(set(table["snapshot"].to_pylist()))
        earlier = [one.read_json("index.json")["own"] for one in context.many("dedup_index")]
        context.write_json("duplicates", "statistics.json", {"earlier": earlier})
        context.write_json("dedup_index", "index.json", {"own": own})


class Merge(Stage):
    """All that its inputs list, in their order."""

    name, version, reproducible = "toy_merge", 1, "bytes"
    inputs = {"dedup_index": Many("dedup_index", at_least=2)}
    outputs = {"dedup_index": "dedup_index"}
    Config = Config

    def run(self, context):
        lists = [one.read_json("index.json")["own"] for one in context.many("dedup_index")]
        context.write_json("dedup_index", "index.json", {"own": [*chain.from_iterable(lists)]})


@pytest.fixture(autouse=True)
def toys(known_stages, monkeypatch):
    for stage in (Index, Merge):
        monkeypatch.setitem(protocol._registered, stage.name, stage)


@pytest.fixture
def days(project, open_pipeline):
    """`days(3, without=(2,))`: a recipe over three days, less the second; STEPS or others."""

    def bind(number, without=(), steps=STEPS):
        lines = []
        for day in range(1, number + 1):
            (project / f"{day}.txt").write_text(f"text of day {day}\n")
            if day not in without:
                lines.append(f"  day-{day}: {{files: ['{day}.txt']}}\n")
        (project / "days.yaml").write_text(f"snapshots:\n{''.join(lines)}{steps}")
        return open_pipeline(recipe=str(project / "days.yaml"))

    return bind


def inputs(pipeline, role="dedup_index"):
    """What each instance reads in a role."""
    instances = pipeline.graph.instances.values()
    return {one.name: [source.node for source in one.inputs.get(role, ())] for one in instances}


def test_the_blocks_read_are_the_binary_digits():
    assert read_blocks(7) == [Block(0, 4), Block(4, 6), Block(6, 7)]
    for count in range(1, 200):
        blocks = read_blocks(count)
        assert len(blocks) == count.bit_count()
        assert [place for one in blocks for place in range(one.start, one.end)] == [*range(count)]
        assert all(one.start % (one.end - one.start) == 0 for one in blocks)


def test_every_block_is_merged_from_blocks_that_were_read_before_it():
    """A snapshot is merged once at most for each size, so at most log2(n) times."""
    merged = merged_blocks(200)
    known = {Block(place, place + 1) for place in range(200)}
    times = [0] * 200
    for block in merged:
        assert set(block.parts) <= known
        places = [place for one in block.parts for place in range(one.start, one.end)]
        assert places == [*range(block.start, block.end)]
        known.add(block)
        for place in places:
            times[place] += 1
    assert max(times) <= 7  # 128 is the greatest power of two up to 200.
    assert {block for count in range(1, 201) for block in read_blocks(count)} <= known


def test_a_snapshot_reads_levels_and_its_arrival_changes_none(days):
    before = {}
    for number in range(1, 10):
        graph = inputs(days(number))
        assert before.items() <= graph.items()
        before = graph
    assert before["index[day-1]"] == []
    assert before["index[day-2]"] == ["index[day-1]"]
    assert before["index[day-8]"] == ["merge[day-1..day-4]", "merge[day-5..day-6]", "index[day-7]"]
    assert before["index[day-9]"] == ["merge[day-1..day-8]"]
    assert before["merge[day-1..day-8]"] == [
        "merge[day-1..day-4]",
        "merge[day-5..day-6]",
        "index[day-7]",
        "index[day-8]",
    ]
    merges = [name for name in before if name.startswith("merge")]
    assert len(merges) == 4, "1..2, 1..4, 5..6 and 1..8: what nothing reads is not merged"


def test_an_added_snapshot_reuses_all_and_is_told_of_every_earlier_one(days, inline, store):
    first = execute(days(5), dispatch=inline)
    keys = {step.instance: step.key for step in first.steps}
    added = days(7)
    plan = added.plan()
    assert {step.instance: step.key for step in plan.steps if step.action == "reuse"} == keys
    made = execute(added, dispatch=inline)
    assert made.is_done
    manifest = made.step("index[day-7]").manifest
    path = store.backend.full(store.payload(manifest, "duplicates"))
    with open(f"{path}/statistics.json") as file:
        assert file.read().split() == [
            "{", '"earlier":', "[", "[", '"day-1",', '"day-2",', '"day-3",', '"day-4"', "],",
            "[", '"day-5",', '"day-6"', "]", "]", "}",
        ]  # fmt: skip


def test_a_retired_snapshot_concerns_the_levels_from_it_on_and_the_plan_says_why(
    days, inline, store
):
    execute(days(7), dispatch=inline)
    fewer = days(7, without=(4,))
    plan = fewer.plan()
    reused = [step.instance for step in plan.steps if step.action == "reuse"]
    assert {one for one in reused if not one.startswith("read")} == {
        "index[day-1]",
        "index[day-2]",
        "index[day-3]",
        "merge[day-1..day-2]",
    }
    assert plan.step("index[day-5]").cause == (
        "input dedup_index changed "
        "(merge[day-1..day-2], index[day-3] instead of merge[day-1..day-4])"
    )
    assert "day-4" not in " ".join(step.instance for step in plan.steps)
    done = execute(fewer, dispatch=inline)
    assert done.is_done

    # What the recipe named before keeps its names: without these, only what it names now stays.
    kept = {step.key for step in done.steps}
    for name, ref in store.refs("days/").items():
        if ref.stage.startswith("toy") and ref.key not in kept:
            store.backend.remove(f"refs/{name}.json")
    garbage = plan_gc(store, min_age_seconds=0)
    gone = {one.key for one in garbage.artifacts}
    assert gone
    assert not gone & kept
    assert {one.stage for one in garbage.artifacts} == {"toy_index", "toy_merge"}
    levels = {one.key for one in store.manifests("toy_merge")}
    assert levels - gone == levels & kept
    assert fewer.plan().is_done


def test_a_step_after_a_series_reads_all_of_it_in_levels(days):
    steps = STEPS + "  last: {stage: toy_merge, inputs: {dedup_index: 'merge:dedup_index'}}\n"
    graph = inputs(days(6, steps=steps))
    assert graph["last"] == ["merge[day-1..day-4]", "merge[day-5..day-6]"]
    steps = STEPS + (
        "  last: {stage: toy_merge, inputs: {dedup_index: ['merge[day-1..day-2]', "
        "'index[day-3]:dedup_index']}}\n"
    )
    assert inputs(days(3, steps=steps))["last"] == ["merge[day-1..day-2]", "index[day-3]"]


def test_a_step_with_nothing_to_merge_yet_is_checked_and_named(days):
    with pytest.raises(UsageError, match="nothing to merge yet"):
        days(2).graph.select("merge", "--through")
    wrong = STEPS.replace("each:dedup_index", "each:duplicates")
    with pytest.raises(UsageError, match=r"merge.*dedup_index"):
        days(2, steps=wrong)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("{levels: index}", "{levels: indx}", "no step 'indx', did you mean 'index'"),
        ("{levels: index}", "{levels: merge}", "'merge' has no levels"),
        ("{levels: index}", "{level: index}", "unknown key 'level', did you mean 'levels'"),
        ("{levels: index}", "{levels: index, checkpoints: index}", "not both"),
        ("merge[earlier]", "merge[each]", "names no level"),
        ("merge[earlier]", "merge[previous]", "names no level"),
        ("merge[earlier]", "merge[day-2..day-3]", "names no level"),
        ("merge[earlier]:dedup_index", "merge@2:dedup_index", "commits no checkpoints"),
        ("merge[earlier]:", "merge:", "cycle"),
        ("for_each: day-*\n", "for_each: [read]\n", "itself repeats"),
    ],
)
def test_what_levels_cannot_be_is_one_clear_error(days, old, new, expected):
    assert old in STEPS
    with pytest.raises(UsageError) as error:
        days(4, steps=STEPS.replace(old, new))
    assert expected in str(error.value)


def test_earlier_levels_are_for_steps_that_repeat_alike(days):
    steps = STEPS + "  last: {stage: toy_merge, inputs: {dedup_index: 'merge[earlier]'}}\n"
    with pytest.raises(UsageError, match="repeats as index does"):
        days(4, steps=steps)
