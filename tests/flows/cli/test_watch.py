"""`ingot watch`: what it prints, and the exit codes of the run."""

from __future__ import annotations

import io
import json
import time

import pytest
from click.testing import CliRunner
from rich.console import Console

from artifacts_schema.errors import IngotError
from artifacts_schema.store import layout
from artifacts_schema.store.runs import find_run, write_run
from flows.cli.main import main
from flows.cli.progress import ProgressDisplay, format_blocks
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
    assert any(line.startswith("choose: made") and line and " out" in line for line in lines)


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


@pytest.fixture
def live_run(open_pipeline, inline, store):
    """The record of a run as it was while `choose` ran; a writer of that step's events.

    The first steps are made; `pack`, which reads `choose`, took 100 s before.
    """
    execute(open_pipeline(), dispatch=inline)
    run = find_run(store, "demo")
    states = {
        "choose": {"state": "running", "seconds": None, "began": time.time() - 5.0},
        "pack": {"state": "waiting", "key": None, "seconds": None, "expected_seconds": 100.0},
    }
    steps = [step.model_copy(update=states.get(step.instance, {})) for step in run.steps]
    run = run.model_copy(update={"state": "running", "steps": tuple(steps), "jobs": 1})
    write_run(store, run)
    (choose,) = [step for step in steps if step.instance == "choose"]
    path = store.backend.local_path(layout.work(choose.key, "events.jsonl"))
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [
        {"type": "progress", "time": second, "done": done, "total": 40, "unit": "training steps"}
        for second, done in ((0.0, 0), (10.0, 10))
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return run


def test_a_run_in_progress_is_told_with_the_time_left(watch, live_run):
    head, *lines = watch("demo", "--once").stdout.splitlines()
    # 30 s left of choose, then 100 s of pack.
    assert "running, 4 of 6 steps done, about 3 min left, since" in head
    assert "choose: 10 of 40 training steps, 30.0 s left" in lines
    assert lines[-1] == "waiting: pack"
    assert sum(": made " in line for line in lines) == 4
    left = json.loads(watch("demo", "--json").stdout)["left"]
    assert left == {"seconds": pytest.approx(130.0), "is_complete": True}


def test_who_attaches_late_sees_what_is_over_and_the_end(watch, live_run, store, monkeypatch):
    done = find_run(store, "demo").model_copy(update={"state": "done"})

    def end_run(_seconds):
        states = {"choose": "made", "pack": "failed"}
        steps = [
            step.model_copy(
                update={"state": states.get(step.instance, step.state), "error": "\x1b"}
            )
            for step in done.steps
        ]
        write_run(store, done.model_copy(update={"state": "failed", "steps": tuple(steps)}))

    monkeypatch.setattr("flows.cli.watch.time.sleep", end_run)
    result = watch("demo")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines[-4:-1]] == ["choose", "choose", "pack"]
    assert lines[-4].startswith("choose: run ")
    assert lines[-3].startswith("choose: made ")
    assert lines[-2] == r"pack: failed: \x1b"


def test_a_terminal_shows_a_watched_run_as_it_shows_its_own(live_run, store):
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    display = ProgressDisplay(console)
    for one in RunWatcher(store, live_run).look().steps:
        display.show(one)
    printed = console.file.getvalue()
    assert printed.count(": made ") == 4
    console.print(display.render())
    total, choose = console.file.getvalue()[len(printed) :].splitlines()
    assert total.startswith("all steps")
    assert "about 3 min left" in total
    assert choose.startswith("choose")
    assert "10 of 40" in choose
    assert choose.rstrip().endswith("0:00:05")
    assert max(len(total), len(choose)) <= 60


def test_blocks_rise_with_the_values_and_never_exceed_the_width():
    assert format_blocks([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8) == "▁▂▃▄▅▆▇█"
    assert format_blocks([float("nan"), 2.0, 2.0], 8) == "▁▁"
    assert len(format_blocks([float(i) for i in range(1000)], 60)) <= 60
    assert format_blocks([], 8) == ""
