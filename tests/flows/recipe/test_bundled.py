"""Recipes that come with Ingot, in a package without the data that lies beside its sources."""

from __future__ import annotations

import shutil

import pytest

from artifacts_schema.errors import InputError
from flows.recipe import pipeline, recipe
from flows.recipe.pipeline import Pipeline, Request


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The recipes as `pip install` lays them out: `site-packages/flows/recipes`, nothing beside."""
    folder = tmp_path / "site-packages" / "flows" / "recipes"
    shutil.copytree(recipe.BUNDLED, folder)
    for module in (recipe, pipeline):
        monkeypatch.setattr(module, "BUNDLED", folder)
    return folder


def test_each_says_what_data_it_needs_and_whether_it_is_there(installed):
    recipes = {one["name"]: one for one in pipeline.bundled_recipes()}
    assert {"quickstart", "web", "anneal", "long_context"} <= set(recipes)
    assert all(one["description"] for one in recipes.values())
    assert (recipes["quickstart"]["snapshots"], recipes["quickstart"]["missing"]) == ([], {})
    assert set(recipes["web"]["missing"]) == set(recipes["web"]["snapshots"])
    assert "crawl-A" in recipes["web"]["snapshots"]


def test_a_plan_names_all_missing_data_and_how_to_point_to_it(installed, store, tmp_path):
    with pytest.raises(InputError) as caught:
        Pipeline.open(Request("web", store.url))
    said = str(caught.value)
    assert "does not come with Ingot" in said
    for name in ("crawl-A", "books", "language_model", "guarded"):
        assert name in said
    assert "--set snapshots.crawl-A.root=FOLDER" in said
    assert "shared" not in said  # A folder beside site-packages helps nobody.
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: web\n")
    with pytest.raises(InputError, match="does not come with Ingot"):
        Pipeline.open(Request(str(mine), store.url))


def test_only_what_the_chosen_steps_read_is_missed_and_pointing_to_data_is_enough(
    installed, store, tmp_path
):
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: web\nsteps: {only: {stage: ingest, inputs: {snapshot: books}}}\n")
    loaded = recipe.load_recipe(mine)
    assert set(pipeline.find_missing_data(loaded, {"books"})) == {"books"}
    (tmp_path / "texts").mkdir()
    override = f"snapshots.books.root={tmp_path / 'texts'}"
    assert pipeline.find_missing_data(recipe.load_recipe(mine, (override,)), {"books"}) == {}
