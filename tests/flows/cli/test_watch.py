"""`ingot watch`: what it prints, and the exit codes of the run."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from artifacts_schema.errors import IngotError
from artifacts_schema.store.runs import find_run, write_run
from flows.cli.main import main
from flows.cli.watch import format_blocks, render_screen
from flows.recipe.execute import execute
from flows.recipe.observers import RunWatcher


@pytest.fixture
def watch(store):
    return lambda *more: CliRunner().invoke(main, ["watch", *more, "--store", store.url])


def test_a_finished_run_is_told_in_lines_and_ends_well(watch, open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    told = watch("demo")
    assert told.exit_code == 0
    head, *lines = told.stdout.splitlines()
    name = find_run(store, "demo").name
    assert head.startswith(f"{name}: done, 6 of 6 steps done, since ")
    assert lines[-1] == f"{name}: done"
    assert any(line.startswith("choose") and "made" in line and " out" in line for line in lines)


def test_without_a_name_the_newest_run_is_watched(watch, open_pipeline, inline):
    execute(open_pipeline(), dispatch=inline)
    assert watch("--once").stdout == watch("demo", "--once").stdout


def test_a_failed_run_ends_with_1_and_its_error(watch, open_pipeline, inline, project):
    (project / "data/b/three.txt").write_text("good\nFAIL\n")
    with pytest.raises(IngotError):
        execute(open_pipeline(), dispatch=inline)
    told = watch("demo")
    assert told.exit_code == 1
    assert "failed: read[crawl-B]" in told.stdout.splitlines()[-1]


def test_a_run_whose_process_is_gone_ends_with_75_and_the_way_on(
    watch, open_pipeline, inline, store
):
    execute(open_pipeline(), dispatch=inline)
    run = find_run(store, "demo")
    write_run(store, run.model_copy(update={"state": "running", "process_started": "1"}))
    told = watch("demo")
    assert told.exit_code == 75
    assert "its process is gone; `ingot run demo` continues" in told.stdout


def test_json_holds_steps_and_records(watch, open_pipeline, inline):
    execute(open_pipeline(), dispatch=inline)
    told = json.loads(watch("demo", "--json").stdout)
    (choose,) = [step for step in told["steps"] if step["instance"] == "choose"]
    assert choose["records"]["records_in"] == 6  # Lines of the demo corpus.
    assert told["lost"] is False


def test_what_there_is_none_of_says_so(watch, open_pipeline, inline):
    nothing = watch()
    assert (nothing.exit_code, "no recipe has run" in nothing.stderr) == (2, True)
    execute(open_pipeline(), dispatch=inline)
    unknown = watch("demmo")
    assert (unknown.exit_code, "did you mean 'demo'" in unknown.stderr) == (2, True)


def test_the_screen_shows_every_step_and_hides_what_a_terminal_would_obey(
    open_pipeline, inline, store
):
    from rich.console import Console

    execute(open_pipeline(), dispatch=inline)
    run = find_run(store, "demo")
    steps = (run.steps[0].model_copy(update={"state": "failed", "error": "\x1b[2Jboom"}),)
    write_run(store, run.model_copy(update={"steps": steps + run.steps[1:]}))
    console = Console(width=100, record=True, force_terminal=False)
    console.print(render_screen(RunWatcher(store, run).look()))
    text = console.export_text()
    assert all(step.instance in text for step in run.steps)
    assert r"\x1b[2Jboom" in text


def test_blocks_rise_with_the_values_and_never_exceed_the_width():
    assert format_blocks([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8) == "▁▂▃▄▅▆▇█"
    assert format_blocks([float("nan"), 2.0, 2.0], 8) == "▁▁"
    assert len(format_blocks([float(i) for i in range(1000)], 60)) <= 60
    assert format_blocks([], 8) == ""
