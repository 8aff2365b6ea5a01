"""The fields of a recipe: what it writes, each with the type and range of its config."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from flows.recipe.fields import changed_settings, recipe_fields
from flows.recipe.recipe import BUNDLED, find_recipe, load_recipe


@pytest.fixture
def quickstart():
    return recipe_fields(load_recipe(find_recipe("quickstart")))


def test_what_the_recipe_writes_is_a_field_with_its_range_and_sentence(quickstart):
    by_path = {field.path: field for field in quickstart}
    share = by_path["pack.held_out_share"]
    assert share.shape == {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0.03}
    assert by_path["pretrain.phases.0.tokens"].default == 2_600_000
    assert by_path["pretrain.phases.0.learning_rate.decay"].shape["enum"][:2] == ["none", "linear"]
    assert by_path["filter.thresholds.gopher_duplicate_5_grams"].default == 0.3
    assert all(field.description for field in quickstart)


def test_presets_are_chosen_from_a_list(quickstart):
    (rules,) = [field for field in quickstart if field.path == "filter.rules"]
    assert rules.default == ["gopher_quality@datatrove", "gopher_repetition@datatrove", "garbled"]
    assert set(rules.default) < set(rules.shape["items"]["enum"])


@pytest.mark.parametrize("name", sorted(path.stem for path in BUNDLED.glob("*.yaml")))
def test_every_field_left_as_it_is_changes_nothing(name):
    fields = recipe_fields(load_recipe(find_recipe(name)))
    assert len({field.key for field in fields}) == len(fields)
    assert changed_settings(fields, {field.key: field.default for field in fields}) == []


def test_a_changed_field_is_the_set_that_changes_it(quickstart):
    values = {"pretrain__phases__0__tokens": 400_000, "pack__held_out_share": None}
    settings = changed_settings(quickstart, values)
    assert settings == ["pretrain.phases.0.tokens=400000"]
    recipe = load_recipe(find_recipe("quickstart"), settings)
    assert recipe.steps["pretrain"].config["phases"][0]["tokens"] == 400_000


def test_a_key_that_no_field_has_is_refused(quickstart):
    with pytest.raises(UsageError, match="no field"):
        changed_settings(quickstart, {"pretrain__phases__9__tokens": 1})
