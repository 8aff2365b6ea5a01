"""Messages about runs: a fall is found, each occasion is one message, the address is secret."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module

import pytest
from slack_server import HOST, slack_server

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.runs import load_runs
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from flows.report.paired_scores import find_regressions
from tests.flows.orchestration.conftest import PLUGIN, STAGES, brought_up, install

QUIZ = """\
name: quizzes
steps:
  numbers: {stage: ui_numbers}
  quiz: {stage: ui_quiz, config: {right: 240}, inputs: {exclusions: numbers}}
"""


def test_a_score_that_fell_beyond_chance_is_found_against_the_run_before(tmp_path, monkeypatch):
    """240 → 235 of 400 is chance, 240 → 160 is not; an unevaluated run between is passed over."""
    from stages.engine import protocol

    monkeypatch.setenv("PYTHONPATH", install(tmp_path)["PYTHONPATH"])
    monkeypatch.syspath_prepend(str(PLUGIN))
    for name, place in STAGES.items():
        module, _, cls = place.partition(":")
        monkeypatch.setitem(protocol._registered, name, getattr(import_module(module), cls))
    recipe, place = tmp_path / "quizzes.yaml", str(tmp_path / "store")
    recipe.write_text(QUIZ)
    worse = []
    for value, through in (
        ("quiz.right=240", None),
        ("quiz.right=235", None),
        ("numbers.rows=5", "numbers"),
        ("quiz.right=160", None),
    ):
        execute(Pipeline.open(Request(str(recipe), place, overrides=(value,), through=through)))
        store = Store.open(place)
        worse.append(find_regressions(store, next(load_runs(store, "quizzes"))))
    assert [len(one) for one in worse] == [0, 0, 0, 1]
    (fall,) = worse[3]
    assert (fall.before, fall.after, fall.paired) == (235 / 400, 0.4, False)
    assert fall.high < 0


@pytest.mark.parametrize(
    "text", ["", "ftp://h/x", "https://", "hooks.slack.com/x", "https://h/x\nhttps://h/y"]
)
def test_what_is_no_address_is_refused_and_not_repeated(tmp_path, text):
    from flows.orchestration.notifications import read_target

    file = tmp_path / "url"
    file.touch(mode=0o600)
    file.write_text(text)
    with pytest.raises(UsageError, match="expected a URL") as caught:
        read_target(file)
    assert "h/x" not in str(caught.value)
    file.write_text("https://h/x\n")
    assert read_target(file) == "https://h/x"
    file.chmod(0o644)
    with pytest.raises(IngotError, match="others can read or write the address"):
        read_target(file)


@pytest.fixture
def receiver():
    """A webhook's receiver: its URL, which holds a secret, and the messages that it got."""
    token, messages = secrets.token_urlsafe(24), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == f"/hook/{token}":
                messages.append(json.loads(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook/{token}", token, messages
    server.shutdown()
    server.server_close()


@pytest.mark.full
@pytest.mark.server
def test_each_occasion_is_one_message_and_its_address_is_kept_secret(ui, tmp_path, receiver):
    url, token, messages = receiver
    file, recipe = tmp_path / "url", tmp_path / "quizzes.yaml"
    file.touch(mode=0o600)
    file.write_text(url)
    recipe.write_text(QUIZ)
    occasions = ("--on", "failure", "--on", "regression", "--on", "completion")
    for _ in range(2):  # The same twice sends no message twice.
        done = ui.ingot("notify", "ops", "--url-file", str(file), *occasions)
        assert done.returncode == 0, done.stderr
    listed = json.loads(ui.ingot("notify", "--list", "--json").stdout)
    assert [one["on"] for one in listed] == ["completion", "failure", "regression"]

    output = done.stdout

    def run(right):
        nonlocal output
        before = len(messages)
        words = ("--store", str(tmp_path / "store"), "--set", f"quiz.right={right}")
        done = ui.ingot("run", str(recipe), *words, PREFECT_LOGGING_LEVEL="DEBUG")
        output += done.stdout + done.stderr
        ui.until(lambda: len(messages) > before)
        time.sleep(4)  # Another message would come within this time.
        return done.returncode, messages[before:]

    code, sent = run(240)
    assert (code, [one["occasion"] for one in sent]) == (0, ["completion"])
    assert sent[0]["run"].startswith("quizzes #")
    assert sent[0]["url"].startswith(f"{ui.ui}/")
    code, sent = run(160)
    assert (code, sorted(one["occasion"] for one in sent)) == (0, ["completion", "regression"])
    fall = next(one for one in sent if one["occasion"] == "regression")
    assert fall["run"].startswith("quizzes@")
    assert (
        "quiz of quiz, accuracy: 0.600 → 0.400 (95 % interval of the difference -0.2"
        in (fall["message"])
    )
    again = ui.ask("pipeline/toys", store=str(tmp_path / "other"), through="numbers")
    assert again.is_success
    ui.until(lambda: messages[-1]["run"].startswith("toys"))
    assert messages.pop()["occasion"] == "completion"
    code, sent = run(0)
    assert (code, [one["occasion"] for one in sent]) == (2, ["failure"])
    assert "nobody answered" in sent[0]["message"]

    assert token not in output
    files = [path for path in ui.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if token.encode() in path.read_bytes()]
    assert token not in ui.api.post("/block_documents/filter", json={}).text
    assert ui.ingot("notify", "ops", "--remove").returncode == 0
    assert json.loads(ui.ingot("notify", "--list", "--json").stdout) == []
    gone = ui.ingot("notify", "ops", "--remove")
    assert (gone.returncode, "no messages 'ops' are sent" in gone.stderr) == (2, True)


@pytest.mark.full
@pytest.mark.server
def test_a_message_by_e_mail(ui, tmp_path):
    letters = []

    def serve():
        with listener.accept()[0] as connection, connection.makefile("rwb", 0) as stream:
            stream.write(b"220 mail.example\r\n")
            while line := stream.readline():
                if line.upper().startswith(b"DATA"):
                    stream.write(b"354 go on\r\n")
                    lines = []
                    while (line := stream.readline()) != b".\r\n":
                        lines.append(line)
                    letters.append(b"".join(lines).decode())
                stream.write(b"250 mail.example\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]
        file, recipe = tmp_path / "url", tmp_path / "quizzes.yaml"
        file.touch(mode=0o600)
        file.write_text(f"mailto://127.0.0.1:{port}?from=ingot@example.org&to=ops@example.org")
        recipe.write_text(QUIZ)
        done = ui.ingot("notify", "letters", "--url-file", str(file), "--on", "completion")
        assert done.returncode == 0, done.stderr
        try:
            words = ("run", str(recipe), "--store", str(tmp_path / "store"))
            assert ui.ingot(*words).returncode == 0
            ui.until(lambda: letters)
        finally:
            assert ui.ingot("notify", "letters", "--remove").returncode == 0
    assert "Subject: Ingot: completion of quizzes" in letters[0]
    assert "ops@example.org" in letters[0]


@pytest.mark.full
@pytest.mark.server
def test_slack_gets_payloads_that_it_takes_and_its_address_is_kept_secret(tmp_path):
    """By Prefect's block for Slack, in the server's process, to a stand-in of `hooks.slack.com`."""
    token = secrets.token_hex(12)
    file, recipe, folder = tmp_path / "url", tmp_path / "quizzes.yaml", tmp_path / "ui"
    file.touch(mode=0o600)
    file.write_text(f"https://{HOST}/services/T{9:08d}/B{7:08d}/{token}\n")
    recipe.write_text(QUIZ)
    folder.mkdir()
    with (
        slack_server(tmp_path / "certificates") as slack,
        brought_up(folder, **slack.environment) as ui,
    ):
        words = ("--on", "failure", "--on", "completion")
        done = ui.ingot("notify", "ops", "--url-file", str(file), *words)
        assert done.returncode == 0, done.stderr
        for right, code, occasion in ((240, 0, "completion"), (0, 2, "failure")):
            more = ("--store", str(tmp_path / "store"), "--set", f"quiz.right={right}")
            assert ui.ingot("run", str(recipe), *more).returncode == code
            ui.until(lambda occasion=occasion: occasion in json.dumps(slack.messages))
        log = (folder / "home" / "prefect.log").read_text()
    assert slack.errors == []
    assert len(slack.messages) == 2
    for (path, payload), occasion in zip(slack.messages, ("completion", "failure"), strict=True):
        assert path == f"/services/T{9:08d}/B{7:08d}/{token}"
        (attachment,) = payload["attachments"]
        assert attachment["title"].startswith(f"Ingot: {occasion} of quizzes #")
        assert f"{ui.ui}/" in attachment["text"]
    assert "nobody answered" in slack.messages[1][1]["attachments"][0]["text"]
    assert token not in log + done.stdout + done.stderr
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert not [one for one in files if token.encode() in one.read_bytes()]


@pytest.mark.parametrize(
    ("content_type", "body", "answer"),
    [
        ("application/json", b'{"text": "x"}', (200, "ok")),
        ("application/json", b'{"username": "x"}', (400, "no_text")),
        ("application/json", b"text", (400, "invalid_payload")),
        ("text/plain", b'{"text": "x"}', (400, "invalid_payload")),
    ],
)
def test_the_stand_in_refuses_what_slack_refuses(tmp_path, content_type, body, answer):
    with slack_server(tmp_path) as slack:
        assert slack.answer("/services/T/B/x", content_type, body) == answer
        assert (len(slack.messages), len(slack.errors)) == ((1, 0) if answer[0] == 200 else (0, 1))
