"""OpenLineage: which events a run sends, what they hold and what they must not, and the export.

That they are valid by the spec's own classes is asked in tests/peers/test_openlineage.py.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import pytest
from click.testing import CliRunner

from artifacts_schema.errors import IngotError, Stopped, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.runs import find_run
from flows.cli.main import main
from flows.interchange.lineage_observer import (
    QUEUE_EVENTS,
    TRIES,
    OpenLineageObserver,
    Sender,
    open_target,
)
from flows.interchange.openlineage import dataset_name, job_namespace, scrub
from flows.recipe.execute import execute
from flows.recipe.profile import check_target, load_profile

STEPS = ["read[crawl-A]", "read[crawl-B]", "measure[crawl-A]", "measure[crawl-B]", "choose", "pack"]


@pytest.fixture
def sent(tmp_path, open_pipeline):
    """`sent(*overrides, **request)`: a pipeline whose profile sends to a file; what is in it."""
    file, profile = tmp_path / "events.ndjson", tmp_path / "team.yaml"
    profile.write_text(f"openlineage: {file}\n")
    pipeline = open_pipeline(profile=str(profile))
    return pipeline, lambda: read(file)


def read(file) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def of_job(events, name):
    return [event for event in events if event["job"]["name"] == name]


def types(events):
    return [event["eventType"] for event in events]


def test_each_step_starts_and_completes_within_the_run_of_its_recipe(sent, inline, store):
    pipeline, events = sent
    execute(pipeline, dispatch=inline)
    whole = of_job(events(), "demo")
    assert types(whole) == ["START", "COMPLETE"]
    assert events()[0] == whole[0]
    assert events()[-1] == whole[-1]
    (parent,) = {event["run"]["runId"] for event in whole}
    for name in STEPS:
        own = of_job(events(), f"demo.{name}")
        assert types(own) == ["START", "COMPLETE"], name
        (id,) = {event["run"]["runId"] for event in own}
        assert UUID(id).version == 5
        for event in own:
            above = event["run"]["facets"]["parent"]
            assert above["run"]["runId"] == parent
            assert above["job"] == {"namespace": job_namespace(store), "name": "demo"}
    assert len(events()) == 2 * (1 + len(STEPS))


def test_outputs_and_inputs_are_the_same_data_set_with_its_digest_and_counts(sent, inline, store):
    pipeline, events = sent
    plan = execute(pipeline, dispatch=inline)
    choose = next(one.manifest for one in plan.steps if one.instance == "choose")
    (complete,) = [e for e in of_job(events(), "demo.choose") if e["eventType"] == "COMPLETE"]
    place = store.backend.full(store.payload(choose, "documents"))
    (output,) = [one for one in complete["outputs"] if one["name"] == place]
    assert output["namespace"] == "file"
    assert output["facets"]["version"]["datasetVersion"] == choose.outputs["documents"].digest
    counts = output["outputFacets"]["outputStatistics"]
    account = choose.conservation
    assert (counts["rowCount"], counts["size"]) == (account.out, choose.outputs["documents"].bytes)
    counts = [one["inputFacets"]["inputStatistics"]["rowCount"] for one in complete["inputs"]]
    assert sum(counts) == 2 * account.records_in  # Documents, and a row of signals for each.
    made = {o["name"] for e in events() for o in e["outputs"]}
    pack = of_job(events(), "demo.pack")[0]
    assert {dataset["name"] for dataset in pack["inputs"]} == {output["name"]} <= made


def test_columns_are_those_of_the_kind_and_ids_pass_unchanged(sent, inline):
    pipeline, events = sent
    execute(pipeline, dispatch=inline)
    output = of_job(events(), "demo.choose")[1]["outputs"][0]
    schema = {one["name"]: one["type"] for one in output["facets"]["schema"]["fields"]}
    assert (schema["doc_id"], schema["origin_offset"]) == ("string", "int64")
    lineage = output["facets"]["columnLineage"]["fields"]
    ways = {
        name: {change["subtype"] for i in one["inputFields"] for change in i["transformations"]}
        for name, one in lineage.items()
    }
    assert ways["doc_id"] == {"IDENTITY"}
    assert ways["text"] == {"TRANSFORMATION"}
    assert "duplicate_class" not in ways
    assert len(lineage["doc_id"]["inputFields"]) == 4  # Two of documents, two of signals.
    assert len(lineage["text"]["inputFields"]) == 2


def test_a_failed_step_says_why_and_names_no_path(sent, inline, project, store):
    pipeline, events = sent

    def fail(store, step):
        job = inline(store, step)
        if step.instance == "choose":
            job.code, job.words = 1, "error: /home/ann/secret/corpus.txt: https://u:pw@h/x?sig=abc"
        return job

    with pytest.raises(IngotError):
        execute(pipeline, dispatch=fail)
    last = of_job(events(), "demo.choose")[-1]
    assert last["eventType"] == "FAIL"
    message = last["run"]["facets"]["errorMessage"]["message"]
    assert message == "…/corpus.txt: https://h/x"
    assert of_job(events(), "demo.pack") == []
    assert types(of_job(events(), "demo")) == ["START", "FAIL"]
    text = json.dumps(events())
    assert "ann" not in text
    assert "sig=abc" not in text


def test_a_stopped_step_is_aborted(sent, inline, open_pipeline):
    pipeline, events = sent

    class Waits:
        in_pool = False

        def events(self):
            return []

        def poll(self):
            return None

        def stop(self):
            return None

        def last_words(self):
            return ""

    with pytest.raises(Stopped):
        execute(pipeline, dispatch=lambda *_: Waits(), stopping=lambda: True)
    started = [event["job"]["name"] for event in events() if event["eventType"] == "START"]
    aborted = [event["job"]["name"] for event in events() if event["eventType"] == "ABORT"]
    assert sorted(started) == sorted(aborted) == ["demo", "demo.read[crawl-A]"]


def test_a_second_start_of_a_step_is_a_run_of_its_own(open_pipeline, store):
    events: list[dict] = []
    step = open_pipeline().plan().steps[0]
    observer = OpenLineageObserver(store, "demo", "1", Sender(events.append))
    observer.started(step)
    observer.failed(step, Stopped("ended for a hang"))
    observer.started(step)
    observer.ended(None)
    runs = [event["run"]["runId"] for event in of_job(events, f"demo.{step.instance}")]
    assert types(of_job(events, f"demo.{step.instance}")) == ["START", "ABORT", "START", "ABORT"]
    assert runs[0] == runs[1] != runs[2] == runs[3]


def test_a_run_in_which_all_is_reused_sends_nothing(sent, inline):
    pipeline, events = sent
    execute(pipeline, dispatch=inline)
    count = len(events())
    execute(pipeline, dispatch=inline)
    assert len(events()) == count


def test_the_export_repeats_what_was_sent(sent, inline, store, tmp_path):
    """The same runs, jobs and data sets; times are those of the manifests, to the second."""
    pipeline, events = sent
    execute(pipeline, dispatch=inline)
    file = tmp_path / "export.ndjson"
    result = CliRunner().invoke(
        main, ["lineage", "demo/pack", "--store", store.url, "--openlineage", str(file)]
    )
    assert result.exit_code == 0, result.output

    def plain(events):
        kept = []
        for event in events:
            event.pop("eventTime")
            if event["job"]["name"] == "demo":
                event["job"]["facets"].pop("documentation", None)  # Of the recipe, not its record.
            kept.append(json.dumps(event, sort_keys=True))
        return sorted(kept)

    assert plain(read(file)) == plain(events())
    ordered = [event["eventTime"] for event in read(file)]
    assert ordered == sorted(ordered)


def test_an_artifact_of_a_stage_alone_is_exported_without_a_parent(
    run_stage, given, store, tmp_path
):
    manifest, _ = given("truth", {"a.parquet": []})
    file = tmp_path / "export.ndjson"
    words = ["lineage", manifest.key, "--store", store.url, "--openlineage", str(file)]
    assert CliRunner().invoke(main, words).exit_code == 0
    events = read(file)
    assert types(events) == ["START", "COMPLETE"]
    assert all("parent" not in event["run"]["facets"] for event in events)


def test_run_ids_follow_from_the_record(sent, inline, store):
    from flows.interchange.openlineage import recipe_run, step_run

    pipeline, events = sent
    execute(pipeline, dispatch=inline)
    parent = recipe_run(store, "demo", find_run(store, "demo").id)
    assert {event["run"]["runId"] for event in of_job(events(), "demo")} == {parent.id}
    pack = step_run(parent, "pack", "characters")
    assert {event["run"]["runId"] for event in of_job(events(), "demo.pack")} == {pack.id}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cannot read /data/private/x.warc.gz: denied", "cannot read …/x.warc.gz: denied"),
        ("'/a/b'", "'…/b'"),
        ("~/keys/id", "…/id"),
        ("/store/main/data/x and /store/mainly/y", "/store/main/data/x and …/y"),
        ("s3://k:s@bucket/a?X-Amz-Signature=1", "s3://bucket/a"),
        ("https://h/p#t", "https://h/p"),
        ("1/2 of the documents, and/or more", "1/2 of the documents, and/or more"),
    ],
)
def test_texts_lose_logins_queries_and_folders(text, clean):
    assert scrub(text, "/store/main") == clean


def test_files_are_named_as_other_tools_name_them(s3_url, tmp_path):
    bucket = Store(f"{s3_url}/team/one")
    assert dataset_name(bucket, "data/x") == {"namespace": s3_url, "name": "team/one/data/x"}
    local = Store(str(tmp_path / "s"))
    assert dataset_name(local, "data/x") == {"namespace": "file", "name": f"{tmp_path}/s/data/x"}


@pytest.mark.parametrize(
    "target", ["http://u:p@host", "http://host/?key=1", "kafka://host", "http://", "https://h/#x"]
)
def test_a_target_with_a_secret_or_of_another_kind_is_refused(target, tmp_path):
    with pytest.raises(ValueError):
        check_target(target)
    file = tmp_path / "team.yaml"
    file.write_text(f"name: team\nopenlineage: {target}\n")
    with pytest.raises(UsageError, match=r"team\.yaml:2"):
        load_profile(str(file), tmp_path / "r.yaml")


@pytest.fixture
def server():
    """A server that answers with `codes`, the last one for ever; what it got is in `requests`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.arrived.release()
            self.server.requests.append((self.path, self.headers.get("Authorization"), body))
            codes = self.server.codes
            self.send_response(codes.pop(0) if len(codes) > 1 else codes[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.codes, server.requests = [201], []
    server.arrived = threading.Semaphore(0)
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def send(sender: Sender, count: int) -> None:
    for number in range(count):
        sender.put(lambda number=number: {"number": number})


def test_events_are_posted_in_order_with_the_key_of_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "abc")
    sender = Sender(open_target(server.url))
    send(sender, 3)
    assert sender.close() == 0
    assert [json.loads(body)["number"] for _, _, body in server.requests] == [0, 1, 2]
    assert {request[:2] for request in server.requests} == {("/api/v1/lineage", "Bearer abc")}


def test_an_error_of_the_server_is_tried_again_and_a_refusal_is_not(server):
    server.codes = [503, 429, 201]
    sender = Sender(open_target(f"{server.url}/own/path"), wait_seconds=0.0)
    send(sender, 1)
    assert all(server.arrived.acquire(timeout=30) for _ in range(TRIES))
    assert sender.close() == 0
    assert {path for path, _, _ in server.requests} == {"/own/path"}
    server.requests.clear()
    server.codes = [400]
    sender = Sender(open_target(server.url), wait_seconds=0.0)
    send(sender, 2)
    assert sender.close() == 2
    assert len(server.requests) == 2


def test_a_server_that_never_answers_holds_a_run_up_for_a_moment_only(caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender = Sender(open_target(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        begin = time.monotonic()
        send(sender, QUEUE_EVENTS + 50)
        assert time.monotonic() - begin < 1.0
        lost = sender.close(0.2)
    assert time.monotonic() - begin < 3.0
    assert lost >= QUEUE_EVENTS
    assert "were not delivered" in caplog.text


def test_a_dead_server_costs_a_line_and_no_run(tmp_path, open_pipeline, inline, caplog):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    profile = tmp_path / "team.yaml"
    profile.write_text(f"openlineage: http://127.0.0.1:{port}\n")
    assert execute(open_pipeline(profile=str(profile)), dispatch=inline).is_done
    (line,) = [r for r in caplog.records if "OpenLineage events" in r.message]
    assert line.levelname == "WARNING"


def test_a_key_that_is_no_header_ends_nothing(server, monkeypatch, caplog):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "schlüssel")
    sender = Sender(open_target(server.url))
    send(sender, 1)
    assert sender.close() == 1
    assert "schlüssel" not in caplog.text


def test_an_event_that_cannot_be_made_ends_nothing(caplog):
    events: list[dict] = []

    def fail():
        raise KeyError("no such thing")

    sender = Sender(events.append)
    sender.put(fail)
    send(sender, 1)
    assert sender.close() == 1
    assert events == [{"number": 0}]
