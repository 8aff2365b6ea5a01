"""`ingot metrics`: what it says of runs, by arithmetic, read by Prometheus's own parser."""

from __future__ import annotations

import http.client
import io
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from artifacts_schema.errors import StoreError, UsageError
from artifacts_schema.store import Store, failpoints, layout
from artifacts_schema.store.lease import this_process
from artifacts_schema.store.runs import Run, RunStep, find_run, new_run_id, write_run
from flows.cli.main import main
from flows.interchange.metrics import METRICS, RUNS, StoreMetrics
from flows.interchange.metrics_server import MetricsServer, parse_address
from flows.interchange.step_events import MOST_NAMES
from flows.recipe.execute import execute
from flows.recipe.observers import Recorder
from stages.engine import events, protocol
from stages.engine.runner import run_stage
from tests.flows.orchestration.conftest import RECIPE as TOYS
from tests.flows.orchestration.conftest import install

KEY = "ab" * 32


def parse(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Name → labels without recipe and run → value, by Prometheus's own parser."""
    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k not in ("recipe", "run")}
            values.setdefault(sample.name, {})[tuple(sorted(labels.items()))] = sample.value
    return values


def value(text: str, metric: str, **labels: str) -> float | None:
    """The one value of a metric for a step without a snapshot."""
    if "step" in labels:
        labels.setdefault("snapshot", "")
    return parse(text).get(metric, {}).get(tuple(sorted(labels.items())))


class Clock:
    """Monotonic seconds, set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e3
        return self.now


@pytest.fixture
def metrics(store):
    return StoreMetrics(store, clock=Clock())


@pytest.fixture
def running(store):
    """`running(state, **step)`: write a record of this process with one step."""
    me, number = this_process(), new_run_id()

    def write(state: str = "running", *, recipe: str = "demo", id: str = number, **step) -> Run:
        fields = {"instance": "train", "stage": "pretrain", "key": KEY, "state": "running", **step}
        run = Run(
            id=id, recipe=recipe, state=state, started="2026-01-01T00:00:00Z",
            updated="2026-01-01T00:00:00Z", steps=(RunStep(**fields),), machine=me.machine,
            process=me.process, process_started=me.started,
        )  # fmt: skip
        write_run(store, run)
        return run

    return write


def append(store: Store, name: str, *rows: dict) -> None:
    path = store.backend.local_path(layout.work(KEY, name))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def trained(step: int) -> dict:
    return {"type": "metric", "training_step": step, "tokens": 100 * step, "loss": 3.0}


def test_a_finished_run_is_counted_as_its_manifests_count(open_pipeline, inline, store, metrics):
    plan = execute(open_pipeline(), dispatch=inline)
    text = metrics.text().decode()
    choose = next(step.manifest for step in plan.steps if step.instance == "choose")
    account = choose.conservation
    labels = {"step": "choose"}
    assert value(text, "ingot_step_records_in", **labels) == 6  # Lines of the demo corpus.
    assert value(text, "ingot_step_records_out", **labels) == account.out
    short = value(text, "ingot_step_records_dropped", **labels, reason="short")
    assert short == 6 - account.out > 0
    assert value(text, "ingot_step_written_bytes", **labels) == choose.size
    read = [store.manifest(*one.name).output(one.output).bytes for one in choose.references]
    assert value(text, "ingot_step_read_bytes", **labels) == sum(read)
    crawl = {"step": "read", "snapshot": "crawl-A"}
    assert value(text, "ingot_step_read_bytes", **crawl) == len("alpha\nbeta\n\npi\ngamma\n")
    assert value(text, "ingot_step_state", **crawl, state="made") == 1
    assert value(text, "ingot_run_state", state="done") == 1
    assert value(text, "ingot_run_steps", state="made") == 6


def test_every_metric_obeys_the_conventions():
    for name, kind in METRICS.items():
        assert name.startswith("ingot_")
        assert kind.counts == name.endswith("_total")
        assert not re.search(r"_(ms|minutes|hours|mb|gb|percent)(_|$)", name)
        assert kind.labels[:2] == ("recipe", "run")
        assert kind.text.endswith(".")


def test_steps_of_a_kill_are_lost_while_the_step_still_runs(store, metrics, running):
    running()
    append(store, "events.jsonl", {"type": "started"}, *map(trained, range(1, 8)))
    first = metrics.text().decode()
    assert value(first, "ingot_training_steps_lost_total", step="train", cause="restart") == 0
    append(store, "events.jsonl", {"type": "started"}, *map(trained, range(6, 9)))
    text = metrics.text().decode()
    assert value(text, "ingot_training_steps_lost_total", step="train", cause="restart") == 2
    assert value(text, "ingot_training_tokens_total", step="train") == 100 * (7 + 3)
    assert value(text, "ingot_step_starts_total", step="train") == 2


def test_mfu_is_the_last_row_of_the_telemetry(store, metrics, running):
    running()
    append(store, "events.jsonl", {"type": "started"}, trained(1))
    append(store, "telemetry/telemetry.jsonl", *({"mfu": share} for share in (0.2, 0.4)))
    assert value(metrics.text().decode(), "ingot_training_mfu_ratio", step="train") == 0.4


def test_mfu_of_a_finished_run_is_in_its_table(store):
    from flows.interchange.metrics import _last_mfu

    buffer = io.BytesIO()
    pq.write_table(pa.table({"mfu": pa.array([0.1, 0.3, None], pa.float64())}), buffer)
    store.backend.replace("data/t.parquet", buffer.getvalue())
    assert _last_mfu(store, "data/t.parquet") == 0.3
    store.backend.replace("data/t.parquet", b"no table")
    assert _last_mfu(store, "data/t.parquet") is None
    assert _last_mfu(store, "data/none.parquet") is None


def test_a_removed_work_folder_and_a_clock_that_jumps_end_nothing(store, metrics, running):
    running()
    append(store, "events.jsonl", {"type": "started", "time": 1e9}, trained(1), trained(2))
    metrics.text()
    store.backend.remove(layout.work(KEY))
    assert value(metrics.text().decode(), "ingot_training_steps_total", step="train") == 2
    append(store, "events.jsonl", {"type": "started", "time": 5.0}, trained(1), trained(2))
    text = metrics.text().decode()
    assert value(text, "ingot_training_steps_lost_total", step="train", cause="restart") == 2
    assert value(text, "ingot_step_last_event_time_seconds", step="train") == 5.0


def test_only_the_newest_run_and_those_that_go_on_are_exported(store, metrics, running):
    for number in range(RUNS + 2):
        state = "running" if number == RUNS else "done"
        running(state, id=f"20260101T00000000{number}-0000")
    running("done", recipe="other")
    text = metrics.text().decode()
    runs = set(re.findall(r'run="(20260101T[^"]*)"', text))
    assert runs == {f"20260101T00000000{number}-0000" for number in (RUNS, RUNS + 1)}
    assert 'recipe="other"' in text
    only = StoreMetrics(store, ["other"]).text().decode()
    assert 'recipe="demo"' not in only


def test_a_run_whose_process_is_gone_is_lost(store, metrics, running):
    write_run(store, running().model_copy(update={"process_started": "1"}))
    text = metrics.text().decode()
    assert value(text, "ingot_run_state", state="lost") == 1
    assert value(text, "ingot_run_state", state="running") == 0


def test_names_that_prometheus_must_quote_come_back_as_they_were(store, metrics, running):
    running(instance='a"b\\[c\nd]')
    steps = {dict(labels)["step"] for labels in parse(metrics.text().decode())["ingot_step_state"]}
    assert steps == {'a"b\\'}


def test_drop_reasons_are_bounded_and_lose_no_record(store, metrics, running, run_stage):
    from artifacts_schema.manifest import Conservation
    from flows.interchange.metrics import _StepReader

    reader = _StepReader(store)
    dropped = {f"rule {n}": 1 for n in range(MOST_NAMES + 30)}
    account = Conservation(records_in=len(dropped), out=0, dropped=dropped)

    class Committed:
        telemetry, conservation, size = {}, account, 0

    reader.manifest = Committed()
    counts = [v for n, _, v in reader.samples() if n == "ingot_step_records_dropped"]
    assert (len(counts), sum(counts)) == (MOST_NAMES + 1, len(dropped))


def test_queue_time_is_measured_by_the_clock_of_the_run(open_pipeline, store):
    times = iter([100.0, 107.25])
    pipeline = open_pipeline()
    recorder = Recorder(pipeline=pipeline, clock=lambda: next(times))
    plan = pipeline.plan()
    step = plan.steps[0]
    recorder.planned(plan)
    recorder.started(step)
    waiting = find_run(store, "demo").steps[0]
    assert (waiting.state, waiting.queue_seconds) == ("running", None)
    assert waiting.began is not None
    recorder.event(step, {"type": "progress"})
    recorder.event(step, {"type": "started"})
    recorder.event(step, {"type": "started"})  # Its program started again: it waits no more.
    assert find_run(store, "demo").steps[0].queue_seconds == 7.25


def test_documents_of_finished_shards_are_counted_while_the_step_runs(
    open_pipeline, store, metrics, running, project, monkeypatch
):
    """Four files of three documents, a shard each: a scrape before each shard is recorded."""
    from stages.ingest.stage import Ingest

    monkeypatch.setitem(protocol._registered, "ingest", Ingest)
    monkeypatch.setattr(events, "PROGRESS_SECONDS", 0.0)
    for number in range(4):
        rows = [json.dumps({"text": f"Document {number} {row}."}) for row in range(3)]
        (project / f"{number}.jsonl").write_text("\n".join(rows) + "\n")
    recipe = project / "texts.yaml"
    recipe.write_text(
        'name: texts\nsnapshots: {texts: {files: ["*.jsonl"]}}\n'
        "steps: {read: {stage: ingest, inputs: {snapshot: texts}}}\n"
    )
    step = open_pipeline(recipe=str(recipe)).plan().step("read")
    running(stage="ingest", key=step.key)
    seen = []

    def scrape(point: str) -> None:
        if point == "shard recorded":
            text = metrics.text().decode()
            seen.append(value(text, "ingot_step_rows_total", step="train", output="documents"))

    monkeypatch.setattr(failpoints, "on_failpoint", scrape)
    run_stage(store, step.spec, expected_key=step.key)
    assert seen[:4] == [None, 3, 6, 9]
    assert set(seen[4:]) == {12}, "its second part writes pages"


def test_a_scrape_during_a_run_has_rows_and_queue_time(store, tmp_path):
    """The step of another process has written two shards of a row, and waits for a file."""
    environment, gate, recipe = install(tmp_path), tmp_path / "gate", tmp_path / "toys.yaml"
    recipe.write_text(TOYS)
    words = ("run", str(recipe), "--store", store.url, "--no-prefect")
    process = subprocess.Popen(
        [sys.executable, "-m", "ingot_entry", *words, "--set", f"learn.gate={gate}"],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not Path(f"{gate}.starts").exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1)  # The run looks at its steps' events five times a second.
        text = StoreMetrics(store).text().decode()
        labels = {"step": "learn"}
        assert value(text, "ingot_step_state", **labels, state="running") == 1
        assert value(text, "ingot_step_rows_total", **labels, output="exclusions") == 2
        assert value(text, "ingot_step_run_seconds", **labels) is None, "it has not committed"
        began = value(text, "ingot_step_start_time_seconds", **labels)
        last = value(text, "ingot_step_last_event_time_seconds", **labels)
        assert 0 < value(text, "ingot_step_queue_seconds", **labels) <= last - began + 1
    finally:
        gate.touch()
        assert process.wait(60) == 0


def test_the_command_prints_and_writes_and_names_what_is_wrong(
    open_pipeline, inline, store, tmp_path
):
    execute(open_pipeline(), dispatch=inline)

    def run(*words: str):
        return CliRunner().invoke(main, ["metrics", *words, "--store", store.url])

    printed = run("demo")
    assert value(printed.stdout, "ingot_run_steps", state="made") == 6
    file = tmp_path / "ingot.prom"
    assert run("--output", str(file)).exit_code == 0
    assert parse(file.read_text()).keys() == parse(printed.stdout).keys()
    assert file.stat().st_mode & 0o777 == 0o644
    assert run("dmo").exit_code == 2
    assert run("--every", "5").exit_code == 2
    assert run("--listen", ":0", "--output", str(file)).exit_code == 2
    assert run("--listen", "0.0.0.0:9464").exit_code == 2


def test_the_file_is_written_again_and_a_store_that_is_away_costs_one_line(
    running, store, tmp_path, monkeypatch
):
    """Looks: well, twice away, well again with another state; then it is interrupted."""
    file, states = tmp_path / "ingot.prom", []
    folders, is_away = type(store.backend).folders, [False, True, True, False]

    def list_folders(backend, folder):
        if folder == "runs" and is_away.pop(0):
            raise StoreError("the disk is away")
        return folders(backend, folder)

    def sleep(seconds):
        assert seconds == 5.0
        states.append(value(file.read_text(), "ingot_run_state", state="running"))
        running("done")
        if len(states) == 4:
            raise KeyboardInterrupt

    running()
    monkeypatch.setattr(type(store.backend), "folders", list_folders)
    monkeypatch.setattr("flows.cli.metrics.time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr("flows.interchange.metrics.FRESH_SECONDS", -1.0)
    words = ["metrics", "--output", str(file), "--every", "5", "--store", store.url]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert states == [1, 1, 1, 0]
    assert result.stderr == "error: the disk is away\n"


def test_a_store_in_a_bucket_is_read_too(s3_url):
    store, number = Store.open(s3_url), new_run_id()
    step = RunStep(instance="train", stage="pretrain", key=KEY, state="running")
    run = Run(
        id=number, recipe="demo", state="running", started="2026-01-01T00:00:00Z",
        updated="2026-01-01T00:00:00Z", steps=(step,), machine="another",
    )  # fmt: skip
    write_run(store, run)
    metrics, path = StoreMetrics(store, clock=Clock()), layout.work(KEY, "events.jsonl")
    assert value(metrics.text().decode(), "ingot_training_steps_total", step="train") is None
    for steps in (3, 5):
        events = [{"type": "started"}, *map(trained, range(1, steps + 1))]
        store.backend.replace(path, b"".join(json.dumps(e).encode() + b"\n" for e in events))
        text = metrics.text().decode()
        assert value(text, "ingot_training_steps_total", step="train") == steps
    assert value(text, "ingot_step_starts_total", step="train") == 1


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("localhost", ("127.0.0.1", 9464)),
        (":0", ("127.0.0.1", 0)),
        ("[::1]:9000", ("::1", 9000)),
        ("127.8.0.1:1", ("127.8.0.1", 1)),
    ],
)
def test_addresses_of_loopback(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:9464", "[::]:1", "10.0.0.7", "example.org:80", "127.0.0.1:99999", "a@:1", ":x"],
)
def test_other_addresses_are_refused(text):
    with pytest.raises(UsageError):
        parse_address(text)


@pytest.fixture
def server(metrics):
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: MetricsServer, path: str = "/metrics", host: str = "127.0.0.1"):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], body


def test_the_server_sends_metrics_to_clients_of_this_machine_alone(server, running):
    running()
    status, kind, body = get(server)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert value(body, "ingot_run_state", state="running") == 1
    assert get(server, "/other")[0] == 404
    assert get(server, host="evil.example:9464")[0] == 404


def test_a_store_that_cannot_be_read_fails_the_scrape_and_says_no_path(
    server, running, store, monkeypatch
):
    def fail(backend, folder):
        raise StoreError("the disk is away", where=backend.full(folder))

    running()
    assert get(server)[0] == 200
    monkeypatch.setattr(type(store.backend), "folders", fail)
    status, _, body = get(server)
    assert status == 503
    assert store.url not in body


def test_metrics_that_the_page_names_exist():
    page = Path(__file__).parents[3] / "docs" / "how-to" / "metrics-and-lineage.md"
    names = set(re.findall(r"\bingot_[a-z0-9_]+", page.read_text(encoding="utf-8")))
    assert len(names) > 10
    assert names <= METRICS.keys()
