"""`ingot gc --budget`: it proposes first, drops what it proposed, and refuses what it cannot do."""

from __future__ import annotations

import json

import pytest

from flows.recipe.execute import execute


@pytest.fixture
def made(open_pipeline, inline):
    """The demo recipe, run."""
    return execute(open_pipeline(), dispatch=inline)


def test_gc_proposes_refs_for_a_budget_and_drops_them_with_delete(ingot, made, store):
    everything = ("gc", "--min-age", "0")
    before = store.refs()
    whole = json.loads(ingot(*everything, "--budget", "1TB", "--json").stdout)
    assert (whole["reached"], whole["drops"]) == (True, [])
    budget = f"{(whole['bytes'] - 1000) / 1000:.3f}KB"
    proposed = json.loads(ingot(*everything, "--budget", budget, "--json").stdout)
    table = ingot(*everything, "--budget", budget).stdout
    assert store.refs() == before, "a proposal changes nothing"
    assert proposed["reached"]
    names = {drop["ref"] for drop in proposed["drops"]}
    assert names
    assert all(name in table for name in names)
    assert ingot(*everything, "--budget", budget, "--delete").exit_code == 0
    assert before.keys() - store.refs().keys() == names
    after = json.loads(ingot(*everything, "--budget", budget, "--json").stdout)
    assert after["bytes"] == proposed["bytes_after"]


def test_a_budget_out_of_reach_drops_nothing_and_says_what_holds_the_rest(ingot, made, store):
    before = store.refs()
    told = ingot("gc", "--budget", "1KB", "--min-age", "0", "--keep", "*")
    assert "cannot be reached" in told.stdout
    assert "names that are kept" in told.stdout
    refused = ingot("gc", "--budget", "1KB", "--min-age", "0", "--keep", "*", "--delete")
    assert refused.exit_code == 2
    assert store.refs() == before


def test_sizes_and_options_that_make_no_sense_are_refused(ingot, made):
    for wrong in (
        ["--budget", "much"],
        ["--keep", "x"],
        ["--budget", "1GB", "--artifact", "demo/pack"],
    ):
        assert ingot("gc", *wrong).exit_code == 2
