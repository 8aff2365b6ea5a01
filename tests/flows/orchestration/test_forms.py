"""Flat forms: every field with its range and sentence, and the same key as the command line's."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError
from flows.orchestration.flow import run_name
from flows.orchestration.forms import (
    PIPELINE,
    STAGES,
    find_problem,
    recipe_form,
    request_from,
    stage_form,
    stage_spec,
    stored_names,
)
from flows.recipe.recipe import find_recipe, load_recipe
from stages.engine.protocol import all_stages, stage_named
from stages.engine.spec import StageSpec

SHIPPED = sorted(all_stages())


@pytest.fixture
def validate():
    """`validate(form, values)` → what the server's own validation finds wrong, by field."""
    from prefect.utilities.schema_tools.validation import validate

    def errors(form, values):
        return {
            str(error.path[0]) if error.path else error.message.split("'")[1]: error.message
            for error in validate(values, form.schema())
        }

    return errors


@pytest.mark.parametrize("name", SHIPPED)
def test_a_stage_form_is_flat_described_and_right_as_it_stands(name, validate):
    form = stage_form(stage_named(name), "/store")
    for key, field in form.fields.items():
        assert field["description"], key
        assert field["type"] in ("string", "integer", "number", "boolean", "array")
        assert field.get("items", {}).get("type", "string") != "object"
    wrong = validate(form, form.defaults())
    assert set(wrong) == set(form.required)  # What is missing is what nobody could guess.


def _leaves(model, path=()):
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, Config):
            yield from _leaves(nested, (*path, name))
        else:
            yield "__".join(("config", *path, name))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_stage_form_has_every_value_of_the_config_and_every_input(name):
    stage = stage_named(name)
    expected = {*_leaves(stage.Config), *(f"input__{role}" for role in stage.inputs)}
    assert set(stage_form(stage, "/store").fields) == expected | {"store", "profile", "name"}


@pytest.mark.parametrize("name", [name for name in SHIPPED if not stage_named(name).inputs])
def test_a_form_left_as_it_is_has_the_key_of_an_empty_config(store, name):
    form = stage_form(stage_named(name), "/store")
    values = {key: value for key, value in form.defaults().items() if key != "store"}
    assert stage_spec(store, name, values).key == StageSpec.make(stage_named(name), {}, {}).key


def test_values_of_nested_models_lists_and_mappings_reach_the_config(store, given):
    shards, tokenizer = given("token_shards", {}), given("tokenizer", {"tokenizer.json": {}})
    values = {
        "input__train": [shards[0].key],
        "input__tokenizer": tokenizer[0].key,
        "config__model__width": 96,
        "config__phases": "- tokens: 1000\n  mixture: {web: 1}\n  learning_rate: {peak: 1e-3}\n",
        "config__optimizer__clip": None,  # A cleared field is the default.
    }
    config = stage_spec(store, "pretrain", values).config
    assert config["model"]["width"] == 96
    assert config["model"]["layers"] == 6
    assert [phase["tokens"] for phase in config["phases"]] == [1000]
    assert config["optimizer"]["clip"] == 1.0


def test_a_text_shows_what_its_models_do_not_fill_in(store):
    """Two phases as one would write them, not all forty fields of them."""
    fields = stage_form(stage_named("pretrain"), "/store").fields
    stable, decaying = json.loads(fields["config__phases"]["default"])
    assert stable.keys() == {"tokens", "learning_rate"}
    assert stable["learning_rate"] == {"peak": 0.003, "warmup_share": 0.05}
    assert decaying["learning_rate"] == {"decay": "linear"}
    assert json.loads(fields["config__objective__parts"]["default"]) == [{"name": "causal"}]


def test_a_nested_default_is_the_owners_not_the_models(store):
    """dpo starts at 5e-6, whatever a learning rate is elsewhere."""
    fields = stage_form(stage_named("dpo"), "/store").fields
    assert fields["config__learning_rate__peak"]["default"] == 5e-6


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"input__documents": ["nothing"]}, r"input 'documents': no ref 'nothing'"),
        ({"input__documents": ["given/duplicates"]}, r"role 'documents' takes documents"),
        ({}, r"input 'documents' \(documents\) is missing"),
        ({"config__bnads": 3}, r"no field 'config__bnads'"),
    ],
)
def test_a_stage_form_that_cannot_run_says_why(store, given, values, message):
    manifest, _ = given("duplicates", {})
    store.set_ref("given/duplicates", manifest.stage, manifest.key)
    with pytest.raises(UsageError, match=message):
        stage_spec(store, "dedup", values)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"store": "relative/store"}, "store"),
        ({"through": "nowhere"}, "through"),
        ({"start": "nowhere"}, "start"),
        ({"overrides": ["nowhere.threshold=1"]}, "overrides"),
        ({"overrides": ["filter.duplicates"]}, "overrides"),
        ({"force": ["nowhere"]}, "force"),
        ({"strict_code": "perhaps"}, "strict_code"),
    ],
)
def test_a_field_of_a_recipe_is_checked_by_its_schema(validate, values, field):
    form = recipe_form(load_recipe(find_recipe("quickstart")), "/store")
    assert validate(form, form.defaults()) == {}
    assert set(validate(form, values)) == {field}


def test_what_crosses_fields_is_checked_without_making_a_store(tmp_path):
    place = tmp_path / "store"
    asked = {"recipe": "quickstart", "store": str(place)}
    assert find_problem(PIPELINE, asked) is None
    wrong = find_problem(PIPELINE, {**asked, "overrides": ["filter.duplicates.treshold=1"]})
    assert "did you mean 'threshold'?" in wrong
    missing = find_problem(f"{STAGES}dedup", {"store": str(place), "input__documents": ["a/b"]})
    assert missing == "input 'documents': no ref 'a/b'"
    assert not place.exists()


def test_a_store_that_is_none_is_said(tmp_path):
    (tmp_path / "ingot-store.json").write_text("{}")
    asked = {"recipe": "quickstart", "store": str(tmp_path)}
    assert "store of schema None" in find_problem(PIPELINE, asked)


def test_a_recipe_has_a_field_for_each_value_that_it_writes(validate):
    form = recipe_form(load_recipe(find_recipe("quickstart")), "/store")
    values = form.fields["values"]["properties"]
    assert values["pack__held_out_share"]["title"] == "pack.held_out_share"
    assert values["pack__held_out_share"]["default"] == 0.03
    assert all(one["description"] for one in values.values())
    assert validate(form, {"values": {"pack__held_out_share": 0.5}}) == {}
    assert set(validate(form, {"values": {"pack__held_out_share": 1.5}})) == {"values"}
    assert set(validate(form, {"values": {"filter__rules": ["nobodys"]}})) == {"values"}


def test_changed_values_become_overrides_and_typed_overrides_win():
    asked = {
        "recipe": "quickstart",
        "store": "/store",
        "values": {"pack__held_out_share": 0.5, "sft__phases__0__epochs": 8},
        "overrides": ["pack.held_out_share=0.25"],
    }
    overrides = request_from(asked).overrides
    assert overrides == ("pack.held_out_share=0.5", "pack.held_out_share=0.25")


def test_an_input_is_chosen_from_the_names_of_its_kind_or_typed(store, given, validate):
    duplicates, _ = given("duplicates", {})
    store.set_ref("runs/dedup", duplicates.stage, duplicates.key)
    documents, _ = given("documents", {})
    store.set_ref("runs/web", documents.stage, documents.key)
    names = stored_names(store.url)
    assert names == {"duplicates": ["runs/dedup"], "documents": ["runs/web"]}
    form = stage_form(stage_named("dedup"), store.url, names)
    choice, typed = form.fields["input__documents"]["items"]["anyOf"]
    assert choice["enum"] == ["runs/web"]
    assert "pattern" in typed
    for text in ("runs/web", documents.key[:12], "made/since"):
        assert validate(form, {"input__documents": [text]}) == {}
    assert set(validate(form, {"input__documents": ["no name!"]})) == {"input__documents"}


def test_a_store_that_is_not_there_offers_no_names(tmp_path):
    assert stored_names(str(tmp_path / "none")) == {}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("my nightly run", "my nightly run"),
        ("Tasty-Tuna", "web #9f2a"),
        ("gifted-dragonfly", "web #9f2a"),
        (None, "web #9f2a"),
    ],
)
def test_a_name_that_was_typed_is_kept(monkeypatch, given, name):
    """Prefect fills the field with two words and a hyphen."""
    known = SimpleNamespace(id="0000-9f2a", name=given)
    monkeypatch.setattr("flows.orchestration.flow.flow_run", known)
    assert run_name("web") == name
