"""The page of the server in a browser: talk, stop, a wrong key."""

from __future__ import annotations

import pytest

KEY = "a-key-of-more-than-16-letters"


@pytest.fixture
def page(browser, url):
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    yield page
    assert problems == []
    page.close()


def say(page, text):
    page.fill("#text", text)
    page.keyboard.press("Enter")


def turns(page, kind):
    return [one.inner_text().strip() for one in page.query_selector_all(f".{kind}")]


def test_it_names_the_model_and_shows_what_it_writes(page):
    page.fill("#key", KEY)
    page.press("#key", "Tab")
    page.wait_for_selector("#name >> text=me/sft")
    page.fill("#most", "3")
    say(page, "say <b>go</b>")
    page.wait_for_selector(".note >> text=cut at the most tokens")
    assert turns(page, "user") == ["say <b>go</b>"]
    assert turns(page, "assistant") == ["<b>go</b> <b>go</b> <b>go</b>"]
    say(page, "the end")
    page.wait_for_selector(".assistant >> text=end end")
    page.wait_for_selector("#send >> text=Send")
    assert turns(page, "assistant")[1] == "end end"
    page.click("#clear")
    assert turns(page, "assistant") == []


def test_an_answer_can_be_stopped(page, model):
    page.fill("#key", KEY)
    model.gate.clear()
    say(page, "go")
    page.wait_for_selector("#send >> text=Stop")
    page.click("#send")
    page.wait_for_selector(".note >> text=stopped")
    model.gate.set()
    say(page, "the end")
    page.wait_for_selector(".assistant >> text=end end")


def test_a_wrong_key_is_said(page):
    page.fill("#key", "wrong")
    page.press("#key", "Tab")
    page.wait_for_selector("#name >> text=the key is missing or wrong")
    say(page, "go")
    page.wait_for_selector(".error >> text=the key is missing or wrong")
    assert turns(page, "assistant") == []
