"""The routes of the page as a window meets them."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from flows.collecting.lines import read_lines
from tests.flows.collecting.conftest import KEY, prompt_id

WINDOW, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def client(url):
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30
    ) as client:
        yield client


def body(who="Ada", window=WINDOW, **more):
    return {"who": who, "window": window, **more}


def judgement(number=1, prompt=0, **more):
    values = {"id": f"{number:032x}", "prompt": prompt_id(prompt), "verdict": "ranked"}
    return body(**{**values, "ranks": [2, 1, 3], **more})


def error(response):
    return response.status_code, response.json()["error"]["code"]


def test_a_prompt_is_shown_blind_judged_and_taken_back(client):
    value = client.post("/next", json=body()).json()
    question = value["question"]
    assert question["messages"] == [{"role": "user", "content": "Question 0?", "calls": None}]
    assert sorted(one["text"] for one in question["answers"]) == ["one 0", "three 0", "two 0"]
    assert set(question["answers"][0]) == {"text", "cut"}
    assert "sft" not in str(value)
    assert client.post("/judgements", json=judgement()).json() == {"kept": f"{1:032x}"}
    value = client.post("/next", json=body()).json()
    assert value["question"]["prompt"] == prompt_id(1)
    assert value["progress"]["own"] == value["progress"]["done"] == 1
    value = client.post("/undo", json=body(id=f"{2:032x}")).json()
    assert (value["question"]["prompt"], value["question"]["ranks"]) == (prompt_id(0), [2, 1, 3])
    assert value["progress"]["done"] == 0
    assert error(client.post("/undo", json=body(id=f"{3:032x}"))) == (404, "nothing_to_undo")
    assert error(client.post("/undo", json=body("Bob", id=f"{4:032x}", undoes=f"{1:032x}"))) == (
        409, "conflict",
    )  # fmt: skip


def test_two_windows_with_one_prompt_and_a_hundred_requests_at_once(client, desk):
    with ThreadPoolExecutor(20) as pool:
        sent = [
            pool.submit(client.post, "/judgements", json=judgement(number, window=window))
            for number in range(50)
            for window in (WINDOW, OTHER)
        ]
        answers = [one.result() for one in sent]
    # One id wins; sent again from another window it is the same judgement.
    assert sum(one.is_success for one in answers) == 2
    assert all(error(one) == (409, "conflict") for one in answers if not one.is_success)
    assert len(read_lines(desk._lines.path)) == 1


def test_people_at_once_get_different_prompts(client):
    with ThreadPoolExecutor(4) as pool:
        sent = [
            pool.submit(client.post, "/next", json=body(f"P{number}", f"{number:032x}"))
            for number in range(5)
        ]
        questions = [one.result().json()["question"] for one in sent]
    prompts = [one["prompt"] for one in questions if one is not None]
    assert sorted(prompts) == [prompt_id(n) for n in range(4)]
    assert questions.count(None) == 1


def test_without_the_key_under_another_name_or_from_another_site_nothing_is_done(client, url):
    for path in ("/next", "/judgements", "/undo", "/release"):
        assert error(httpx.post(url + path, json=body())) == (401, "invalid_api_key")
    headers = {"Host": "rebound.example"}
    assert error(client.post("/next", json=body(), headers=headers)) == (421, "wrong_host")
    headers = {"Origin": "https://evil.example"}
    assert error(client.post("/next", json=body(), headers=headers)) == (403, "wrong_origin")
    assert client.post("/next", json=body(), headers={"Origin": url}).is_success
    assert error(client.get("/judgements.jsonl")) == (404, "not_found")
    page = httpx.get(url)
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert page.headers["content-security-policy"].count("'sha256-") == 2
    assert "http" not in page.text


@pytest.mark.parametrize(
    "changes",
    [
        {"who": " "}, {"who": "a\x00b"}, {"who": "x" * 65}, {"who": "a\u202eb"}, {"window": "1"},
        {"id": "../../x"}, {"verdict": "best"}, {"ranks": [0, 1, 2]}, {"ranks": ["1", 2, None]},
        {"ranks": [1] * 17}, {"when": "2020-01-01"},
    ],
)  # fmt: skip
def test_what_is_no_judgement_is_refused(client, desk, changes):
    assert error(client.post("/judgements", json=judgement(**changes))) == (400, "invalid_body")
    for raw in (b"{", b"[]", b"\xff", b'{"who": "\\ud800", "window": "' + b"a" * 32 + b'"}'):
        assert error(client.post("/next", content=raw)) == (400, "invalid_body")
    assert desk.judgements.by_id == {}


def test_what_is_not_on_the_disk_is_not_said_to_be(client, desk, monkeypatch):
    def full(file, raw, offset):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        response = client.post("/judgements", json=judgement())
        assert error(response) == (507, "not_saved")
        assert "no space left" in response.json()["error"]["message"]
    assert client.post("/judgements", json=judgement()).is_success
    assert len(read_lines(desk._lines.path)) == 1
