"""A recipe over a series reads the snapshots of the store, in the order of their names."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import InputError, UsageError
from flows.recipe.recipe import snapshot_entry
from flows.recipe.series import series_order
from flows.recipe.snapshots import take_snapshot

STEPS = "steps:\n  read: {stage: lines, for_each: 'day-*', inputs: {snapshot: each}}\n"


@pytest.fixture
def recipe(project):
    """`recipe(snapshots)` → the path of a recipe with these lines under `snapshots:`."""

    def write(lines):
        path = project / "series.yaml"
        path.write_text(f"snapshots:\n{lines}{STEPS}")
        return str(path)

    return write


@pytest.fixture
def take(project, store):
    """`take(name)`: a snapshot of one file of a line, named in the store."""

    def make(name):
        (project / f"{name}.txt").write_text(f"{name}\n")
        source = snapshot_entry(name, {"files": [str(project / f"{name}.txt")]}, "test")
        manifest = take_snapshot(store, source)
        store.name(f"snapshots/{name}", manifest)
        return manifest

    return make


def instances(pipeline):
    return [step.instance for step in pipeline.plan().steps]


def test_new_snapshots_are_read_without_a_change_of_the_recipe(recipe, take, open_pipeline):
    path = recipe("  days: {series: 'day-*'}\n")
    taken = {name: take(name) for name in ("day-9", "day-10", "other")}
    pipeline = open_pipeline(recipe=path)
    assert instances(pipeline) == ["read[day-9]", "read[day-10]"]
    assert pipeline.snapshots["day-9"].key == taken["day-9"].key
    take("day-11")
    assert instances(open_pipeline(recipe=path)) == [
        "read[day-9]",
        "read[day-10]",
        "read[day-11]",
    ]


def test_what_the_recipe_names_itself_stands_where_it_is_written_and_a_null_leaves_out(
    recipe, take, open_pipeline, project
):
    for name in ("day-1", "day-2", "day-3"):
        take(name)
    path = recipe("  day-2: null\n  day-3: {files: [day-3.txt]}\n  days: {series: 'day-*'}\n")
    assert instances(open_pipeline(recipe=path)) == ["read[day-3]", "read[day-1]"]


def test_a_snapshot_stays_what_it_was_when_its_files_change(recipe, take, open_pipeline, project):
    taken = take("day-1")
    (project / "day-1.txt").write_text("changed\n")
    pipeline = open_pipeline(recipe=recipe("  days: {series: 'day-*'}\n"))
    assert pipeline.snapshots["day-1"].key == taken.key


def test_a_series_without_a_snapshot_says_how_to_take_one(recipe, open_pipeline):
    with pytest.raises(InputError, match=r"no snapshot 'day-\*' yet") as error:
        open_pipeline(recipe=recipe("  days: {series: 'day-*'}\n"))
    assert "ingot snapshot watch" in (error.value.hint or "")


def test_a_name_that_is_no_snapshot(recipe, take, open_pipeline, store):
    manifest = take("day-1")
    store.set_ref("snapshots/day-2", "lines", manifest.key)
    with pytest.raises((InputError, UsageError), match="day-2"):
        open_pipeline(recipe=recipe("  days: {series: 'day-*'}\n"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"series": "day-*", "files": ["x"]}, "series: given with files"),
        ({"series": "day-*", "first": 2}, "first: does not go with series"),
        ({"series": 7}, "expected a pattern of names"),
        ({"series": "a/b"}, "expected a pattern of names"),
    ],
)
def test_wrong_entries(values, message):
    with pytest.raises(UsageError, match=message):
        snapshot_entry("days", values, "test")


def test_numbers_in_names_are_numbers():
    names = ["crawl-10", "crawl-9b", "crawl-9", "crawl", "CC-MAIN-2024-33", "CC-MAIN-2024-4"]
    assert sorted(names, key=series_order) == [
        "CC-MAIN-2024-4",
        "CC-MAIN-2024-33",
        "crawl",
        "crawl-9",
        "crawl-9b",
        "crawl-10",
    ]
