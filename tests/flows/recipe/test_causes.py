"""What changed since a name was last made, told field by field."""

from __future__ import annotations

from artifacts_schema.manifest import Code, Manifest
from flows.recipe.plan import describe_changes
from stages.engine.spec import StageSpec


def made(config, identity):
    return Manifest(
        stage="filter", version=1, key="a" * 64, reproducible="bytes", config=config,
        identity=identity, inputs={}, outputs={}, attempt="x",
        code=Code(digest="0" * 64, libraries={}),
    )  # fmt: skip


def test_a_field_that_came_since_is_a_change_only_where_it_leaves_its_default():
    before = made({"least": 3, "policy": {"exact": True}}, {"least": 3})
    grown = {"least": 4, "policy": {"exact": True, "near": 0.8}, "languages": []}
    spec = StageSpec("filter", 1, grown, {"least": 4}, {})
    assert describe_changes(before, spec, {}) == "config least: 3 → 4"
    identity = {"least": 4, "languages": ["en"], "policy": {"near": 1}}
    spec = StageSpec("filter", 1, {**grown, "languages": ["en"]}, identity, {})
    assert describe_changes(before, spec, {}) == (
        'config least: 3 → 4; config policy.near: unset → 0.8; config languages: unset → ["en"]'
    )


def test_a_key_of_a_mapping_that_a_person_wrote_is_always_a_change():
    before = made({"thresholds": {"words": 50}}, {"thresholds": {"words": 50}})
    after = {"thresholds": {"words": 50, "lines": 2}}
    spec = StageSpec("filter", 1, after, after, {})
    assert describe_changes(before, spec, {}) == "config thresholds.lines: unset → 2"
