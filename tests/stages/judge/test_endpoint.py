"""An endpoint that is slow, busy, broken, wrong or hostile."""

import os

import pytest

from artifacts_schema.errors import Stopped, UsageError
from stages.judge.config import JudgeExecution
from stages.judge.endpoint import Endpoint, JudgeAway, ask_all, read_key
from stages.judge.journal import Answer, Journal

from .judge_server import completion

BODY = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


def open_endpoint(server, key=None, waits=None, **execution):
    settings = JudgeExecution(url=server.url, **{"longest_wait": 8.0, "timeout": 5, **execution})
    return Endpoint(settings, key, (waits if waits is not None else []).append)


def test_a_busy_server_is_asked_again_after_growing_pauses(serve):
    replies = [(429, {}, b""), (500, {}, b"oops"), (503, {}, b""), (502, {}, b"")]
    server = serve(lambda n, _: replies[n] if n < len(replies) else completion("Verdict: A"))
    waits = []
    answer = open_endpoint(server, waits=waits).ask(BODY)
    assert (answer.text, answer.status) == ("Verdict: A", "answered")
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 3)
    assert waits == [1, 2, 4, 8]
    assert server.bodies == [BODY] * 5


def test_a_server_says_how_long_to_wait_up_to_a_limit(serve):
    replies = [(429, {"Retry-After": "3"}, b""), (429, {"Retry-After": "9999"}, b""),
               (429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"")]  # fmt: skip
    server = serve(lambda n, _: replies[n] if n < 3 else completion("A"))
    waits = []
    open_endpoint(server, waits=waits).ask(BODY)
    assert waits == [3, 8, 4]


def test_a_cut_connection_is_tried_again(serve):
    server = serve(lambda n, _: (200, {}, None) if n == 0 else completion("B"))
    assert open_endpoint(server).ask(BODY).text == "B"
    assert len(server.bodies) == 2
    always = serve(lambda *_: (200, {}, None))
    with pytest.raises(JudgeAway, match="connection was cut"):
        open_endpoint(always, attempts=2).ask(BODY)


def test_a_slow_server_is_away_after_its_attempts(serve):
    import threading

    release = threading.Event()

    def reply(n, _):
        release.wait(20)
        return completion("A")

    server = serve(reply)
    with pytest.raises(JudgeAway, match="does not answer") as caught:
        open_endpoint(server, timeout=0.1, attempts=2).ask(BODY)
    release.set()
    assert "kept" in str(caught.value)
    assert isinstance(caught.value, Stopped)


@pytest.mark.parametrize(
    "raw",
    [b"<html>busy</html>", b"{}", b'{"choices": []}', b"[" * 5000,
     b'{"choices": [{"message": {"content": 7}}]}', b"\xff"],
)  # fmt: skip
def test_what_is_no_completion_is_malformed_after_all_attempts(serve, raw):
    server = serve(lambda *_: (200, {}, raw))
    answer = open_endpoint(server, attempts=3).ask(BODY)
    assert (answer.text, answer.status) == ("", "malformed")
    assert len(server.bodies) == 3


def test_what_it_refuses_is_not_asked_again(serve):
    server = serve(lambda *_: (400, {}, b"too long"))
    assert open_endpoint(server).ask(BODY).status == "refused"
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "message"), [(401, "key is not"), (404, "no such"), (302, "302")]
)
def test_what_a_person_must_mend_ends_the_run_without_the_key(serve, status, message):
    key = "sk-very-secret"
    server = serve(lambda *_: (status, {"Location": "http://127.0.0.1:9/"}, f"bad {key}".encode()))
    with pytest.raises(UsageError, match=message) as caught:
        open_endpoint(server, key).ask(BODY)
    assert key not in str(caught.value)
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
    assert len(server.bodies) == 1


def test_requests_have_a_limit(serve):
    server = serve(lambda *_: completion("A"))
    endpoint = open_endpoint(server, max_requests=2)
    endpoint.ask(BODY)
    endpoint.ask(BODY)
    with pytest.raises(JudgeAway, match="max_requests"):
        endpoint.ask(BODY)
    assert len(server.bodies) == 2


def test_after_a_failure_answers_under_way_are_kept_and_no_more_is_asked(serve):
    def reply(n, body):
        return (401, {}, b"") if body["n"] == 3 else completion("A")

    server = serve(reply)
    kept = []
    bodies = {str(n): {**BODY, "n": n} for n in range(40)}
    with pytest.raises(UsageError, match="key"):
        ask_all(open_endpoint(server, concurrency=2), bodies, kept.append, lambda: None)
    assert len(server.bodies) < 40
    assert len(kept) == len(server.bodies) - 1


def test_a_stop_ends_it_with_what_is_under_way_kept(serve):
    server = serve(lambda *_: completion("A"))
    kept = []

    def check():
        if kept:
            raise Stopped()

    bodies = {str(n): {**BODY, "n": n} for n in range(200)}
    with pytest.raises(Stopped):
        ask_all(open_endpoint(server, concurrency=1), bodies, kept.append, check)
    assert 0 < len(kept) < 200
    assert len(kept) == len(server.bodies)


def test_keys_come_from_a_variable_or_a_file_of_its_owner(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", " sk-1 \n")
    assert read_key(JudgeExecution(key_variable="JUDGE_KEY")) == "sk-1"
    path = tmp_path / "key"
    path.write_text("sk-2\n")
    path.chmod(0o600)
    assert read_key(JudgeExecution(key_file=str(path))) == "sk-2"
    assert read_key(JudgeExecution()) is None
    link = tmp_path / "link"
    os.symlink(path, link)
    wrong = [{"key_variable": "NO_SUCH_KEY"}, {"key_file": str(tmp_path / "none")},
             {"key_file": str(link)}, {"key_file": str(tmp_path)}]  # fmt: skip
    for settings in wrong:
        with pytest.raises(UsageError):
            read_key(JudgeExecution(**settings))
    path.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        read_key(JudgeExecution(key_file=str(path)))


@pytest.mark.parametrize(
    "url",
    [None, "http://example.org/v1", "https://user:pw@host/v1", "s3://bucket/v1", "host/v1",
     "https://host/v1?key=x"],
)  # fmt: skip
def test_addresses_that_would_leak_are_refused(url):
    with pytest.raises(UsageError) as caught:
        Endpoint(JudgeExecution(url=url), None)
    assert "pw" not in str(caught.value)


def test_a_line_that_a_kill_cut_is_dropped(tmp_path):
    path = tmp_path / "answers.jsonl"
    journal = Journal(path)
    journal.add(Answer("a" * 64, "Verdict: Ä", "answered", 1, 2))
    journal.add(Answer("b" * 64, "", "refused"))
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        again = Journal(path)
        assert set(again.answers) == {"a" * 64, "b" * 64} if cut == len(whole) else True
        again.add(Answer("c" * 64, "x", "answered"))
        assert Journal(path).answers == again.answers
