"""The server as a client of OpenAI's meets it, with a model that counts words as tokens."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from flows.serving.loopback import MOST_BODY_BYTES

KEY = "a-key-of-more-than-16-letters"


@pytest.fixture
def client(url):
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30
    ) as client:
        yield client


def events(response):
    lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def error(response):
    return response.status_code, response.json()["error"]["code"]


def test_a_text_is_continued_and_counted(client):
    answer = client.post("/v1/completions", json={"prompt": "say go", "max_tokens": 3}).json()
    assert answer["choices"][0]["text"] == "go go go "
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    ended = client.post("/v1/completions", json={"prompt": ["the end"]}).json()
    assert ended["choices"][0] == {
        "index": 0, "text": "end end ", "logprobs": None, "finish_reason": "stop",
    }  # fmt: skip


def test_a_conversation_is_answered_whole_and_in_pieces(client):
    body = {
        "model": "me/sft",
        "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "say hello"}]},
        ],
        "max_completion_tokens": 4,
    }
    whole = client.post("/v1/chat/completions", json=body).json()
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "hello " * 4}
    options = {"stream": True, "stream_options": {"include_usage": True}}
    with client.stream("POST", "/v1/chat/completions", json={**body, **options}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        chunks = events(response)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": "hello "}
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]) == "hello " * 4
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["usage"] == whole["usage"]


@pytest.mark.parametrize(
    ("stop", "text"), [("o g", "g"), (["zzz", "go g"], ""), ("never there", "go go go ")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_text_ends_the_answer_before_it(client, stop, text, stream):
    body = {"prompt": "go", "max_tokens": 3, "stop": stop, "stream": stream}
    if stream:
        with client.stream("POST", "/v1/completions", json=body) as response:
            written = "".join(one["choices"][0]["text"] for one in events(response))
    else:
        written = client.post("/v1/completions", json=body).json()["choices"][0]["text"]
    assert written == text


def test_without_the_key_under_another_name_or_from_another_site_nothing_is_told(url, client):
    for key in (None, "Bearer wrong", f"Basic {KEY}", "Bearer"):
        headers = {} if key is None else {"Authorization": key}
        assert error(httpx.get(f"{url}/v1/models", headers=headers)) == (401, "invalid_api_key")
    headers = {"Host": "rebound.example"}
    assert error(client.get("/v1/models", headers=headers)) == (421, "wrong_host")
    headers = {"Origin": "https://evil.example"}
    assert error(client.get("/v1/models", headers=headers)) == (403, "wrong_origin")
    assert client.get("/v1/models", headers={"Origin": url}).json()["data"][0]["id"] == "me/sft"
    for path in ("/load_model", "/reset", "/docs", "/v1/embeddings"):
        assert error(client.post(path, json={})) == (404, "not_found")


@pytest.mark.parametrize(
    ("change", "status", "code", "words"),
    [
        ({"prompt": "go " * 40}, 400, "context_length_exceeded", "the prompt has 40 tokens"),
        ({"n": 2}, 400, "invalid_body", "n is 1 here"),
        ({"logit_bias": {"5": 100}}, 400, "invalid_body", "logit_bias is {} here"),
        ({"guided_json": {}}, 400, "invalid_body", "guided_json is not known here"),
        ({"temperature": -1}, 400, "invalid_body", "temperature"),
        ({"prompt": ["a", "b"]}, 400, "invalid_body", "prompt"),
        ({"stop": [""]}, 400, "invalid_body", "stop"),
        ({"model": "gpt-4"}, 404, "model_not_found", "this server has 'me/sft'"),
        ({"prompt": "x" * MOST_BODY_BYTES}, 413, "body_too_large", "the body has over"),
        ({"prompt": "break"}, 500, "generation_failed", "not finite"),
        ({"prompt": "fault"}, 500, "generation_failed", "a bug"),
        ({"stream": True, "stream_options": "x"}, 400, "invalid_body", "stream_options"),
    ],
)
def test_what_is_wrong_is_said(client, change, status, code, words):
    response = client.post("/v1/completions", json={"prompt": "go", **change})
    assert error(response) == (status, code)
    assert words in response.json()["error"]["message"]
    assert client.post("/v1/completions", json={"prompt": "go", "n": 1, "user": "me"}).is_success


def test_bodies_that_are_no_requests_and_conversations_that_do_not_render(client):
    for raw in (b"{", b"[]", b"\xff", b'"text"'):
        assert error(client.post("/v1/completions", content=raw)) == (400, "invalid_body")
    wrong = {"messages": [{"role": "assistant", "content": "hi"}]}
    assert error(client.post("/v1/chat/completions", json=wrong)) == (400, "invalid_messages")
    spelled = {"messages": [{"role": "user", "content": "a <|x|>"}]}
    assert error(client.post("/v1/chat/completions", json=spelled)) == (400, "special_token")
    picture = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}
    assert error(client.post("/v1/chat/completions", json=picture)) == (400, "invalid_body")


def test_tools_are_shown_unless_the_choice_is_none_and_calls_are_checked(client):
    body = {"messages": [{"role": "user", "content": "say go"}], "max_tokens": 1}
    tool = {"type": "function", "function": {"name": "f"}}

    def asked(**more):
        return client.post("/v1/chat/completions", json={**body, **more})

    plain = asked().json()["usage"]["prompt_tokens"]
    assert asked(tools=[tool]).json()["usage"]["prompt_tokens"] > plain
    assert asked(tools=[tool], tool_choice="none").json()["usage"]["prompt_tokens"] == plain
    assert error(asked(tools=[tool], tool_choice="required")) == (400, "invalid_body")
    wrong = {"role": "assistant", "tool_calls": [{"function": "x"}]}
    body["messages"].insert(0, wrong)
    assert error(asked()) == (400, "invalid_body")


def test_a_slow_prompt_keeps_nobody_else_waiting(client, model, monkeypatch):
    slow = threading.Event()
    monkeypatch.setattr(model, "encode_plain", lambda text: slow.wait(20) and ["go"])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/v1/completions", json={"prompt": "x", "max_tokens": 1})
        assert client.get("/v1/models", timeout=5).is_success
        slow.set()
        assert asked.result().is_success


def test_a_hundred_at_once_are_answered_or_refused(client, model):
    model.gate.clear()

    def ask(number):
        return client.post("/v1/completions", json={"prompt": f"n {number}", "max_tokens": 2})

    with ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(ask, number) for number in range(100)]
        while sum(one.done() for one in asked) < 95:  # Two are written, three wait.
            time.sleep(0.01)
        model.gate.set()
        answers = [one.result() for one in asked]
    refused = [one for one in answers if one.status_code == 429]
    assert len(refused) == 95
    assert model.most_at_once == 2
    assert all(one.headers["retry-after"] for one in refused)
    for number, one in enumerate(answers):
        if one.status_code != 429:
            assert one.json()["choices"][0]["text"] == f"{number} " * 2


@pytest.mark.parametrize("stream", [False, True])
def test_what_nobody_waits_for_is_not_written(url, client, model, stream):
    model.gate.clear()
    body = {"prompt": "go", "max_tokens": 39, "stream": stream}
    with closing(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))) as raw:
        content = json.dumps(body).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {url[7:]}\r\nAuthorization: Bearer {KEY}"
        raw.sendall(f"{head}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        time.sleep(0.3)
    time.sleep(1.5)  # The server looks twice a second.
    model.gate.set()
    assert client.post("/v1/completions", json={"prompt": "go", "max_tokens": 1}).is_success
    assert model.written < 10


def test_streams_go_at_once_and_one_that_is_cancelled_leaves_its_place(client, model):
    """Two are written together; the third gets the place of the first, whose client goes."""
    model.gate.clear()
    long = {"prompt": "a", "max_tokens": 39, "stream": True}

    def written(prompt):
        body = {"prompt": prompt, "max_tokens": 3}
        return client.post("/v1/completions", json=body).json()["choices"][0]["text"]

    with ThreadPoolExecutor(2) as pool:
        with client.stream("POST", "/v1/completions", json=long) as first:
            others = [pool.submit(written, name) for name in ("b", "c")]
            time.sleep(0.5)
            assert not any(one.done() for one in others)
            assert first.is_success
        time.sleep(0.5)
        model.gate.set()
        assert [one.result() for one in others] == ["b b b ", "c c c "]
    # A step at most was begun for the text that nobody waits for.
    assert model.written <= 3 + 3 + 1
    assert model.most_at_once == 2


def test_an_unexpected_error_ends_its_batch_and_no_answer_that_waits(client, model):
    model.gate.clear()

    def ask(prompt):
        return client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 3})

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask, "fault")]
        time.sleep(0.3)
        asked += [pool.submit(ask, name) for name in ("b", "c")]
        time.sleep(0.3)
        model.gate.set()
        answers = [one.result() for one in asked]
    assert error(answers[0]) == (500, "generation_failed")
    assert [one.json()["choices"][0]["text"] for one in answers[1:]] == ["b b b ", "c c c "]


def test_the_page_loads_nothing_from_elsewhere(url):
    page = httpx.get(url)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http" not in page.text.replace("http-equiv", "")


def test_the_page_runs_its_own_script_and_no_other(url):
    policy = httpx.get(url).headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert policy.count("'sha256-") == 2
