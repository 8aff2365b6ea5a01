"""The page in a browser: keys, ties, skip, undo, two windows, a full disk, a dead server."""

from __future__ import annotations

import errno
import os

import pytest

from flows.collecting.lines import read_lines
from tests.flows.collecting.conftest import KEY, answer_row, prompt_id


@pytest.fixture
def open_page(browser, url):
    """`open_page(who)`: a window that this person has begun in."""
    pages, problems = [], []

    def make(who="Ada", key=KEY, **options):
        page = browser.new_page(**options)
        pages.append(page)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        page.fill("#who", who)
        page.fill("#key", key)
        page.press("#key", "Enter")
        return page

    yield make
    for page in pages:
        page.close()
    assert problems == []


def shows(page, number):
    page.wait_for_selector(f"#prompt >> text=Question {number}?")


def texts(page):
    return [one.inner_text() for one in page.query_selector_all("article .text")]


def heads(page):
    return [one.inner_text() for one in page.query_selector_all("article button")]


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def kept(desk):
    return read_lines(desk._lines.path)


def test_keys_rank_the_answers_and_the_file_has_them_by_answer(open_page, desk):
    page = open_page()
    shows(page, 0)
    places = {text.split()[0]: place for place, text in enumerate(texts(page), start=1)}
    assert page.is_disabled("#save")
    # The last one that is left is the worst.
    press(page, str(places["three"]), str(places["one"]))
    ranked = dict(zip(texts(page), heads(page), strict=True))
    assert ranked["three 0"].endswith("is best")
    assert ranked["one 0"].endswith("is 2nd")
    assert ranked["two 0"].endswith("is 3rd")
    press(page, "Enter")
    shows(page, 1)
    row = kept(desk)[0]
    assert (row["who"], row["verdict"], row["ranks"]) == ("Ada", "ranked", [2, 3, 1])
    assert row["when"].endswith("Z")
    page.wait_for_selector("#status >> text=1 of 4 prompts done; 1 by you")


def test_ties_neither_and_skip(open_page, desk):
    page = open_page()
    shows(page, 0)
    press(page, "1", "=", "3", "Enter")
    shows(page, 1)
    press(page, "t", "Enter")
    shows(page, 2)
    press(page, "n")
    shows(page, 3)
    press(page, "s")
    page.wait_for_selector("#prompt >> text=Nothing is left for you:")
    rows = kept(desk)
    assert [row["verdict"] for row in rows] == ["ranked", "ranked", "neither", "skipped"]
    first = dict(zip(rows[0]["order"], (1, 2, 1), strict=True))
    assert rows[0]["ranks"] == [first[number] for number in range(3)]
    assert rows[1]["ranks"] == [1, 1, 1]
    page.wait_for_selector("#status >> text=3 of 4 prompts done; 3 by you, 1 skipped")


def test_a_click_places_an_answer_and_another_takes_it_back(open_page, desk):
    page = open_page()
    shows(page, 0)
    buttons = page.locator("article button")
    buttons.nth(2).click()
    assert heads(page)[2].endswith("is best")
    buttons.nth(2).click()
    assert not any("is" in head.split() for head in heads(page))
    buttons.nth(1).click()
    press(page, "Escape", "Enter")
    assert kept(desk) == [], "nothing is ranked"
    buttons.nth(0).click()
    buttons.nth(1).click()
    press(page, "Enter")  # After a click, Enter saves.
    shows(page, 1)
    assert len(kept(desk)) == 1


def test_undo_brings_the_prompt_back_with_its_ranks_before_and_after_a_reload(open_page, desk):
    page = open_page()
    shows(page, 0)
    press(page, "2", "3", "Enter")
    shows(page, 1)
    press(page, "u")
    shows(page, 0)
    assert [head.split(" is ")[-1] for head in heads(page)] == ["3rd", "best", "2nd"]
    press(page, "Escape", "3", "2", "Enter")
    shows(page, 1)
    page.reload()
    page.click("text=Begin")
    shows(page, 1)
    press(page, "u")
    shows(page, 0)
    assert [head.split(" is ")[-1] for head in heads(page)] == ["3rd", "2nd", "best"]
    assert [set(row) & {"undoes"} != set() for row in kept(desk)] == [False, True, False, True]


def test_two_windows_have_two_prompts_and_one_prompt_is_judged_once(open_page, desk):
    ada, same = open_page("Ada"), open_page(" ada")
    shows(ada, 0)
    shows(same, 1)
    # The first window is forgotten (half an hour, a restart), and the second has its prompt too.
    desk._claims.clear()
    same.click("text=Begin")
    shows(same, 0)
    press(ada, "1", "2", "Enter")
    shows(ada, 1)
    press(same, "2", "1", "Enter")
    same.wait_for_selector("#message >> text=you have judged this prompt already")
    shows(same, 2)
    assert [row["prompt"] for row in kept(desk)] == [prompt_id(0)]


def test_undo_is_of_what_this_window_saved(open_page, desk):
    first, second = open_page("Ada"), open_page("Ada")
    shows(first, 0)
    shows(second, 1)
    press(first, "1", "2", "Enter")
    shows(first, 2)
    press(second, "1", "2", "Enter")
    shows(second, 3)
    press(first, "u")
    shows(first, 0)


def test_a_window_that_is_closed_gives_its_prompt_back(open_page, desk):
    first, second = open_page("Ada"), open_page("Bob")
    shows(first, 0)
    shows(second, 1)
    first.goto("about:blank")
    press(second, "1", "2", "Enter")
    shows(second, 0)


def test_what_cannot_be_saved_stays_on_the_page(open_page, desk, monkeypatch):
    page = open_page()
    shows(page, 0)

    def full(file, raw, offset):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    press(page, "2", "1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        press(page, "Enter")
        page.wait_for_selector(".error >> text=not saved: no space left")
    assert heads(page)[1].endswith("is best")
    page.route("**/judgements", lambda route: route.abort())
    press(page, "Enter")
    page.wait_for_selector(".error >> text=the server does not answer")
    page.unroute("**/judgements")
    press(page, "Enter")
    shows(page, 1)
    assert len(kept(desk)) == 1


def test_a_wrong_key_and_no_name_are_said(open_page):
    page = open_page(key="wrong")
    page.wait_for_selector(".error >> text=the key is missing or wrong")
    page = open_page(who=" ")
    page.wait_for_selector(".error >> text=write your name first")


HOSTILE = "<img src=x onerror='document.title=1'><script>document.title=2</script>"


@pytest.fixture
def hostile(open_desk):
    return open_desk([answer_row(0, [HOSTILE, "fine"])])


class TestHostile:
    @pytest.fixture
    def desk(self, hostile):
        return hostile

    def test_what_a_model_writes_is_a_text(self, open_page):
        page = open_page()
        shows(page, 0)
        assert HOSTILE in texts(page)
        assert page.query_selector_all("article img, article script") == []
        assert page.title() == "Ingot: rank answers"
