"""The command line: what it prints, its exit codes, and its one line for each error."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import COMMANDS, main
from flows.recipe.execute import execute


@pytest.fixture
def ingot(store):
    """`ingot(*arguments)`: run a command on the test's store; the click result."""

    def call(*arguments, with_store=True):
        more = ["--store", store.url] if with_store else []
        return CliRunner().invoke(main, [*map(str, arguments), *more])

    return call


@pytest.fixture
def recipe(project):
    """Path of the demo recipe."""
    return project / "demo.yaml"


@pytest.fixture
def made(open_pipeline, inline):
    """The demo recipe, run to its end."""
    return execute(open_pipeline(), dispatch=inline)


def test_help_names_every_command_and_imports_nothing_heavy():
    heavy = ("pydantic", "pyarrow", "rich", "fsspec", "yaml", "duckdb", "torch", "prefect")
    script = (
        "import sys; from flows.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', [m for m in {heavy!r} if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("HEAVY []")
    for name in COMMANDS:
        assert f"\n  {name} " in run.stdout


def test_no_plan_imports_what_trains(recipe, store):
    script = (
        "import sys; from flows.cli.main import main\n"
        f"try: main(['plan', 'none', '--store', {store.url!r}])\n"
        "except SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'pyarrow', 'numpy', 'prefect') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "HEAVY []"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pln"], "error: no command 'pln', did you mean 'plan'?"),
        (["plan"], "error: Missing argument 'RECIPE'"),
        (["plan", "nothing"], "error: no recipe 'nothing'"),
        (["plan", "nothing.yaml"], "error: nothing.yaml: no such file"),
        (["ls", "--jsn"], "error: No such option"),
        (["show", "gone"], "error: {store}: no ref 'gone'"),
        (["show", "abcdef012345"], "error: {store}: no artifact 'abcdef012345'"),
        (["ls", "gone"], "error: {store}: no artifact of stage or name 'gone'"),
        (["stage", "chose"], "error: no stage 'chose', did you mean 'choose'?"),
        (["snapshot", "add", "a/b", "x"], "error: 'a/b' cannot be a name"),
        (["snapshot", "add", "a", "none*"], "error: snapshot a: no file matches 'none*'"),
    ],
)
def test_a_wrong_command_is_one_line_and_exit_2(ingot, store, arguments, told):
    result = ingot(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(told.format(store=store.url))
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("command", [("plan",), ("stage", "choose")])
def test_a_folder_that_is_not_installed_is_named_once_not_once_a_step(
    ingot, recipe, monkeypatch, command
):
    """Stages are known by the entry points of installed packages, and so is Ingot itself."""
    monkeypatch.setattr("stages.engine.protocol._installed", dict)
    monkeypatch.setattr("stages.engine.protocol._registered", {})
    result = ingot(*command, *([recipe] if command == ("plan",) else []))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no stage is installed: Ingot runs from a folder")
    assert result.stderr.count("\n") == 1


def test_debug_shows_the_traceback(ingot):
    result = ingot("show", "gone", "--debug")
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_a_bug_is_one_line_and_exit_1(ingot, monkeypatch):
    monkeypatch.setattr("artifacts_schema.store.Store.manifests", lambda self, **more: 1 / 0)
    result = ingot("ls")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ZeroDivisionError: division by zero (--debug shows")


def test_a_store_that_is_not_there_is_told_by_readers_and_not_made(tmp_path):
    place = tmp_path / "none"
    result = CliRunner().invoke(main, ["ls", "--store", str(place)])
    assert result.exit_code == 2 or result.exit_code == 1
    assert f"error: {place}: " in result.stderr
    assert not place.exists()


def test_the_store_may_come_from_the_environment(made, store):
    result = CliRunner().invoke(main, ["ls", "--json"], env={"INGOT_STORE": store.url})
    assert len(json.loads(result.stdout)) == 8  # two snapshots and six steps


def test_plan_prints_an_aligned_table(ingot, recipe, made):
    result = ingot("plan", recipe, "--set", "choose.least.characters=5")
    lines = result.stdout.splitlines()
    head, row = lines[0], next(line for line in lines if line.startswith("choose"))
    assert row.index("run") == head.index("does")
    assert row[head.index("why") :] == "config least.characters: 4 → 5"
    assert lines[-1].endswith("1 to run, 1 depend, 4 reused")


def test_plan_as_json_is_the_plan(ingot, recipe, made):
    plan = json.loads(ingot("plan", recipe, "--json").stdout)
    assert [step["action"] for step in plan["steps"]] == ["reuse"] * 6
    assert plan["steps"][4]["key"] == made.step("choose").key
    assert {step["where"]["pool"] for step in plan["steps"]} == {"local"}


def test_a_stage_alone_goes_where_the_profile_says_unless_it_is_made(
    ingot, made, tmp_path, monkeypatch
):
    """There is no Slurm: its first command is the error, and what is made needs none."""
    profile = tmp_path / "cluster.yaml"
    profile.write_text("pools: {big: {type: slurm}}\nresources: {choose: {pool: big, cpus: 2}}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    read = ["--input", "documents=demo/read[crawl-A]", "--input", "signals=demo/measure[crawl-A]"]
    more = ["--profile", str(profile), *read]
    gone = ingot("stage", "choose", *more)
    assert gone.exit_code == 2
    assert gone.stderr.splitlines()[-1].startswith("error: choose: no command 'squeue'")
    many = ingot("stage", "choose", *more, "--set", "execution.workers=3")
    assert many.exit_code == 2
    assert "resources.choose: 3 workers of 1 threads on 2 cores" in many.stderr
    characters = ["--input", "documents=demo/choose", "--profile", str(profile)]
    assert ingot("stage", "characters", *characters).stdout.startswith("reused characters")


def test_plan_as_json_says_where_each_step_would_run(ingot, recipe, made, tmp_path):
    profile = tmp_path / "cluster.yaml"
    profile.write_text(
        "pools: {big: {type: slurm}}\nresources: {choose: {pool: big, cpus: 8, memory: 1 GB}}\n"
    )
    plan = json.loads(ingot("plan", recipe, "--profile", str(profile), "--json").stdout)
    where = {step["step"]: step["where"] for step in plan["steps"]}
    big = {"pool": "big", "nodes": 1, "cpus": 8, "gpus": 0, "memory": ["1 GB"], "time": None}
    assert where["choose"] == big
    assert where["pack"]["pool"] == "local"


def test_a_wrong_recipe_lists_its_problems(ingot, recipe):
    recipe.write_text(
        recipe.read_text().replace("measure, for", "mesure, for") + "  x: {stage: y}\n"
    )
    result = ingot("plan", recipe)
    assert result.exit_code == 2
    assert "2 problems:" in result.stderr
    assert "steps.measure.stage" in result.stderr


def test_run_without_prefect_makes_and_then_reuses(ingot, recipe, installed_stages):
    first = ingot("run", recipe, "--no-prefect", "--jobs", "2")
    assert first.exit_code == 0, first.stderr
    assert "read[crawl-A]: made " in first.stderr
    assert "5 in, 4 out" in first.stderr
    again = ingot("run", recipe)
    assert again.exit_code == 0
    assert "nothing to do: all 6 steps are made" in again.stderr
    assert again.stdout == first.stdout
    assert "short 2" in first.stdout  # the funnel


def test_a_failed_run_tells_the_step_and_exits_1(ingot, recipe, installed_stages, project):
    (project / "data/a/one.txt").write_text("FAIL\n")
    result = ingot("run", recipe, "--no-prefect")
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: read[crawl-A]: lines failed: ValueError: a line that cannot")
    assert "Traceback" not in result.stderr


def test_a_stage_alone_has_the_key_of_the_step(ingot, made, project):
    (project / "c.yaml").write_text("least: {characters: 1}\n")
    inputs = [
        part
        for text in (
            "documents=demo/read[crawl-A]",
            "documents=demo/read[crawl-B]:documents",
            "signals=demo/measure[crawl-A]",
            "signals=" + made.step("measure[crawl-B]").key[:12],
        )
        for part in ("--input", text)
    ]
    result = ingot(
        "stage", "choose", "--config", project / "c.yaml", "--set", "least.characters=4", *inputs
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == f"reused choose {made.step('choose').key}"
    written = ingot("stage", "choose", "--set", "least.characters=4", *inputs,
                    "--write-spec", project / "spec.json")  # fmt: skip
    assert written.stdout.strip() == made.step("choose").key


def test_a_stage_alone_runs_and_names_what_it_made(ingot, made, store, installed_stages):
    result = ingot("stage", "measure", "--input", "documents=demo/choose", "--as", "mine/measured")
    assert result.exit_code == 0, result.stderr
    ref = store.ref("mine/measured")
    assert result.stdout.startswith(f"made measure {ref.key}")


def test_the_spec_of_a_stage_alone_runs_on_a_node(ingot, made, store, tmp_path, installed_stages):
    spec = tmp_path / "spec.json"
    key = ingot("stage", "measure", "--input", "documents=demo/choose", "--write-spec", spec)
    command = [sys.executable, "-P", "-m", "stages", "measure", "--store", store.url,
               "--spec", str(spec), "--key", key.stdout.strip()]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert store.manifest("measure", key.stdout.strip()) is not None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--input", "documents"], "--input documents: "),
        (["--input", "document=demo/choose"], "--input document=demo/choose: "),
        (
            ["--input", "documents=demo/measure[crawl-A]"],
            "--input documents=demo/measure[crawl-A]: ",
        ),
        (["--input", "documents=demo/chose"], "'demo/chose'"),
        ([], "'documents'"),
        (["--set", "x=1"], "--set x=1"),
    ],
)
def test_a_stage_asked_for_wrongly_tells_the_flag(ingot, made, arguments, told):
    result = ingot("stage", "measure", *arguments)
    assert result.exit_code == 2
    assert told in result.stderr


def test_stages_are_listed_with_what_they_read(ingot):
    result = ingot("stage", "--json")
    listed = json.loads(result.stdout)
    assert listed["choose"]["inputs"]["documents"] == {
        "kind": "documents",
        "least": 1,
        "most": None,
    }
    assert listed["choose"]["config"]["properties"]["least"]


def test_snapshot_add_pins_and_names(ingot, project, store):
    result = ingot("snapshot", "add", "mine", project / "data", "--json")
    added = json.loads(result.stdout)
    assert (added["ref"], added["files"]) == ("snapshots/mine", 3)
    assert store.ref("snapshots/mine").key == added["key"]


def test_ls_show_and_lineage_agree(ingot, made):
    key = made.step("choose").key
    (listed,) = json.loads(ingot("ls", "choose", "--json").stdout)
    assert listed["key"] == key
    assert listed["names"] == ["demo/choose"]
    manifest = json.loads(ingot("show", "demo/choose", "--json").stdout)
    assert manifest["outputs"]["documents"]["digest"] == listed["outputs"]["documents"]["digest"]
    shown = ingot("show", key[:8]).stdout
    assert "6 in, 4 out" in shown
    assert 'least: {"characters": 4}' in shown
    up = ingot("lineage", "demo/choose").stdout
    assert up.count("(as above)") == 2
    assert "snapshot: snapshot " in up
    down = json.loads(ingot("lineage", "demo/crawl-A", "--down", "--json").stdout)
    assert {edge["child"]["stage"] for edge in down["edges"]} == {
        "lines", "measure", "choose", "characters",
    }  # fmt: skip


def test_trace_ends_at_the_files(ingot, made, project):
    told = ingot("trace", "demo/pack").stdout
    assert str(project / "data/b/three.txt") in told
    assert "5 in, 4 out (empty 1)" in told
    chain = json.loads(ingot("trace", "demo/pack", "--json").stdout)["chain"]
    assert chain[-1]["stage"] == "characters"
    assert chain[0]["files"]


def test_trace_says_that_a_batch_needs_a_training_run(ingot, made):
    result = ingot("trace", "demo/pack", "--training-step", "1")
    assert result.exit_code == 2
    assert "--training-step" in result.stderr


def test_a_collected_ancestor_breaks_the_chain(ingot, made, store):
    assert ingot("gc", "--artifact", "demo/read[crawl-B]", "--delete").exit_code == 0
    assert "(collected)" in ingot("lineage", "demo/choose").stdout
    result = ingot("trace", "demo/choose")
    assert result.exit_code == 2
    assert "lines " in result.stderr


def sightings(result, number=0):
    return json.loads(result.stdout)["documents"][number]["sightings"]


def test_why_follows_a_kept_document_to_its_tokens(ingot, made):
    seen = sightings(ingot("why", "https://example.org/crawl-B/three.txt#0", "--json"))
    assert [s["kind"] for s in seen] == [
        "documents", "signals", "ledger", "corpus", "token_shards", "token_shards",
    ]  # fmt: skip
    assert seen[0]["values"]["origin_offset"] == 0
    assert seen[0]["values"]["origin_length"] == len("delta epsilon\n")
    assert seen[1]["values"]["characters"] == len("delta epsilon")
    assert seen[2]["values"]["verdict"] == "kept"
    assert [s["values"]["length"] for s in seen[4:]] == [8, 5]


def test_why_tells_the_rule_value_and_threshold_of_a_dropped_one(ingot, made):
    told = ingot("why", "three.txt#14").stdout
    assert "record   crawl-B: three.txt, bytes 14 to 17" in told
    assert "verdict  choose" in told
    assert "dropped by short: 2, threshold 4" in told
    assert "tokens" not in told


def test_why_finds_by_id_and_by_prefix(ingot, made):
    doc_id = json.loads(ingot("why", "three.txt#14", "--json").stdout)["documents"][0]["doc_id"]
    for wanted in (doc_id, doc_id[:6]):
        found = json.loads(ingot("why", wanted, "--json").stdout)["documents"]
        assert [one["doc_id"] for one in found] == [doc_id]


def test_why_tells_of_records_that_were_turned_away(ingot, made):
    told = ingot("why", "https://example.org/crawl-A/one.txt#11").stdout
    assert "rejected  lines " in told
    assert told.rstrip().endswith(": empty")


def test_why_searches_what_is_named_unless_told_otherwise(
    ingot, made, open_pipeline, inline, store
):
    execute(open_pipeline("read.upper=true", through="read"), dispatch=inline)
    assert ingot("why", "three.txt#0").stdout.count("read ") == 2  # old by demo/choose, new by ref
    assert ingot("why", "three.txt#0", "--in", "demo/pack").stdout.count("read ") == 1
    result = ingot("why", "nowhere.txt")
    assert result.exit_code == 2
    assert "'nowhere.txt'" in result.stderr
    assert "'none'" in ingot("why", "x", "--in", "none").stderr


def test_text_of_documents_cannot_steer_the_terminal(ingot, open_pipeline, inline, project):
    (project / "data/b/three.txt").write_text("\x1b[2Jgone \x07bell\n")
    execute(open_pipeline(), dispatch=inline)
    told = ingot("why", "three.txt#0").stdout
    assert "\x1b" not in told
    assert "\x07" not in told
    assert r"\x1b[2Jgone \x07bell" in told


def test_verify_finds_a_flipped_byte_and_quick_does_not(ingot, made, store):
    assert ingot("verify").exit_code == 0
    manifest = made.step("choose").manifest
    path = Path(store.backend.full(store.payload(manifest, "documents", "00000.parquet")))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    result = ingot("verify", "demo/choose", "--json")
    assert result.exit_code == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem["what"] == "the file's bytes changed"
    assert ingot("verify", "--quick").exit_code == 0
    assert ingot("verify", "demo/pack").exit_code == 0


def test_gc_tells_first_and_removes_only_when_told(ingot, made, open_pipeline, inline, store):
    execute(open_pipeline("choose.least.characters=9"), dispatch=inline)
    old = made.step("choose").key
    dry = ingot("gc", "--min-age", "0")
    assert f"artifact  choose {old[:12]}" in dry.stdout
    assert "--delete removes it" in dry.stdout
    assert store.manifest("choose", old) is not None
    removed = json.loads(ingot("gc", "--min-age", "0", "--delete", "--json").stdout)
    assert old in [artifact["key"] for artifact in removed["artifacts"]]
    assert store.manifest("choose", old) is None
    assert ingot("verify").exit_code == 0
    assert "nothing to remove; 8 artifacts are in use" in ingot("gc", "--min-age", "0").stdout
    assert "nothing to remove" in ingot("gc").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_running_step_kindly_and_exits_75(
    number, recipe, store, installed_stages
):
    recipe.write_text(
        "snapshots: {crawl: {files: ['data/a']}}\n"
        "steps: {slow: {stage: wait, inputs: {snapshot: crawl}}}\n"
    )
    script = (
        "import flows.cli.progress as p; p.LINE_SECONDS = 0.0\n"
        "from flows.cli.main import main; main()"
    )
    command = ["run", str(recipe), "--no-prefect", "--store", store.url]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *command], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "1 of 2 naps" in line:  # The stage runs, so its handlers stand.
            process.send_signal(number)
            break
    told = process.stderr.read()
    assert process.wait() == 75
    assert "slow: stopped" in told
    assert told.splitlines()[-1] == "error: stopped on request (the same command continues)"
    (key,) = [key for key in store.backend.folders("work") if len(key) == 64]
    assert not store.work_state(key).running


def test_recipes_that_come_with_ingot_are_listed(ingot):
    result = ingot("recipes", "--json", with_store=False)
    listed = {one["name"]: one for one in json.loads(result.stdout)}
    assert listed["quickstart"]["missing"] == {}
    assert "crawl-A" in listed["web"]["snapshots"]
    assert "quickstart" in ingot("recipes", with_store=False).stdout


def test_a_question_starts_no_store(recipe, tmp_path):
    place = tmp_path / "volume" / "store"
    planned = CliRunner().invoke(main, ["plan", str(recipe), "--store", str(place)])
    assert planned.exit_code == 0, planned.stderr
    assert str(place) in planned.stdout
    assert f"demo in {place}: 6 to run" in planned.stdout
    for words in (["account", str(recipe)], ["preflight", str(recipe)], ["ls"], ["why", "a"]):
        asked = CliRunner().invoke(main, [*words, "--store", str(place)])
        assert asked.exit_code != 0
        assert str(place) in asked.stderr
    assert not (tmp_path / "volume").exists()


def test_an_input_is_spelled_as_in_a_recipe(ingot, made):
    words = ("stage", "measure", "--input")
    plain = ingot(*words, "documents=demo/choose", "--write-spec", "/dev/null")
    marked = ingot(*words, "documents=@demo/choose:documents", "--write-spec", "/dev/null")
    assert plain.exit_code == 0, plain.stderr
    assert plain.stdout == marked.stdout
