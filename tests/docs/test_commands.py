"""Every command line in docs/ parses, every value it sets is valid, and every recipe validates."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner
from docs_pages import DOCS, PAGES, ROOT, blocks, commands, ingot_commands

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.main import COMMANDS, main
from flows.recipe.graph import build_graph
from flows.recipe.notation import set_value
from flows.recipe.profile import PROFILE_KEYS, load_profile
from flows.recipe.recipe import BUNDLED, load_recipe
from flows.recipe.series import expand_series
from stages.engine import Stage
from stages.engine.protocol import stage_named, stage_names
from stages.examples.task_files import parse_tasks

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())


@pytest.fixture(autouse=True)
def with_the_stage_of_own_stage_md(own_stage):
    """`own-stage.md` shows commands and a recipe that use it."""


def parsed(arguments: list[str]) -> click.Context:
    """The innermost command with its parsed flags; click's error if it does not parse."""
    group: click.Command = main
    context = click.Context(main, info_name="ingot")
    while isinstance(group, click.Group):
        name, *arguments = arguments
        command = group.get_command(context, name)
        assert command is not None, f"no command {name}"
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context, info_name=name)
            group = command
            continue
        return command.make_context(name, arguments, parent=context)
    raise AssertionError


@by_page
def test_every_command_line_parses(page):
    for arguments in ingot_commands(page):
        assert parsed(arguments).info_name in arguments[:2]


@by_page
def test_values_that_are_set_on_a_stage_are_values_it_takes(page):
    for arguments in ingot_commands(page):
        given = parsed(arguments).params
        if arguments[0] != "stage" or given["name"] is None:
            continue
        stage, values = stage_named(given["name"]), {}
        for text in given["overrides"]:
            set_value(values, text)
        where = " ".join(arguments)
        stage.Execution.parse(values.pop("execution", {}), where=where)
        stage.Config.parse(values, where=where)
        for text in given["inputs"]:
            assert text.partition("=")[0] in stage.inputs, text


@by_page
def test_values_that_are_set_on_a_bundled_recipe_are_values_it_takes(page, tmp_path):
    bundled = {path.stem for path in BUNDLED.glob("*.yaml")}
    for arguments in ingot_commands(page):
        given = parsed(arguments).params
        if given.get("recipe") not in bundled or not given.get("overrides"):
            continue
        recipe = load_recipe(BUNDLED / f"{given['recipe']}.yaml", given["overrides"])
        graph = build_graph(recipe, Store.open(str(tmp_path / "store")))
        for step in (given.get("start"), given.get("through"), *given.get("force", ())):
            assert step is None or graph.select(step, "flag")


@by_page
def test_stages_that_are_run_as_on_a_node_exist(page):
    from stages.__main__ import main as run_stage

    for words in commands(page):
        if words[:4] == ["python", "-P", "-m", "stages"]:
            assert words[4] in stage_names()
            assert set(words[5::2]) <= {"--store", "--spec", "--key"}, words
    with pytest.raises(SystemExit):
        run_stage(["--no-such-flag"])


def recipes_of(page: Path) -> list[str]:
    found = [block.text for block in blocks(page, "yaml")]
    return [text for text in found if {"steps", "extends"} & set(yaml.safe_load(text))]


def profiles_of(page: Path) -> list[str]:
    found = [block.text for block in blocks(page, "yaml")]
    return [text for text in found if set(yaml.safe_load(text)) <= set(PROFILE_KEYS)]


def make_quickstart_step(store: Store, run_stage: Callable[..., Manifest], name: str) -> None:
    """An artifact named `quickstart/STEP` with that step's outputs, and nothing in them."""
    stage = stage_named(load_recipe(BUNDLED / "quickstart.yaml").steps[name].stage)
    members = {
        "name": f"empty_{name}",
        "version": 1,
        "reproducible": "bytes",
        "outputs": stage.outputs,
        "run": lambda self, context: None,
    }
    manifest = run_stage(type("Empty", (Stage,), members))
    store.set_ref(f"quickstart/{name}", manifest.stage, manifest.key)


@by_page
def test_every_recipe_validates(page, tmp_path, store, run_stage):
    (tmp_path / "flows").symlink_to(ROOT / "flows")
    (tmp_path / "a.jsonl").write_text("{}\n")
    texts = recipes_of(page)
    for name in sorted(set(re.findall(r"@quickstart/(\w+)", "".join(texts)))):
        make_quickstart_step(store, run_stage, name)
    for text in texts:
        names = set(re.findall(r"(?<!\w)snapshots/([\w.-]+)", text))
        names |= {f"{stem}new" for stem in re.findall(r'series: "([\w-]+)\*"', text)}
        for name in names:
            added = ["snapshot", "add", name, str(tmp_path / "a.jsonl"), "--store", store.url]
            assert CliRunner().invoke(main, added).exit_code == 0
        # Under its own name, so that a later one of the page can extend it.
        path = tmp_path / f"{yaml.safe_load(text)['name']}.yaml"
        path.write_text(text)
        build_graph(expand_series(load_recipe(path), store), store)


def tasks_of(page: Path) -> list[str]:
    found = [block.text for block in blocks(page, "yaml")]
    return [text for text in found if "formulations" in yaml.safe_load(text)]


@by_page
def test_every_yaml_block_is_a_recipe_a_task_or_a_profile_that_fits(page, tmp_path):
    recipes, profiles, tasks = recipes_of(page), profiles_of(page), tasks_of(page)
    assert len(recipes) + len(profiles) + len(tasks) == len(blocks(page, "yaml"))
    for text in tasks:
        assert parse_tasks(text.encode(), "own", where=str(page))
    for text in profiles:
        path = tmp_path / "profile.yaml"
        path.write_text(text)
        profile = load_profile(str(path), path)
        for name in profile.stages:
            stage_named(name).Execution.parse(profile.execution(name, {}, {}), where=name)


@by_page
def test_python_in_the_pages_compiles(page):
    for block in blocks(page, "python"):
        assert compile(block.text, str(page), "exec").co_code


def test_there_is_something_to_check():
    shown = {arguments[0] for page in PAGES for arguments in ingot_commands(page)}
    assert len(shown) >= 12
    assert shown <= set(COMMANDS)
    assert sum(len(recipes_of(page)) for page in PAGES) >= 5
    assert sum(len(profiles_of(page)) for page in PAGES) >= 1


def test_a_wrong_flag_and_a_wrong_command_do_not_parse():
    with pytest.raises(click.UsageError, match="No such option"):
        parsed(["run", "quickstart", "--thruogh", "filter"])
    with pytest.raises(AssertionError, match="no command rnu"):
        parsed(["rnu", "quickstart"])


def test_pages_name_no_machine_of_their_writers():
    for page in PAGES:
        text = page.read_text()
        for word in ("/home/", "/root/", "/tmp/", ".pyenv"):
            assert word not in text, f"{page.name}: {word}"
