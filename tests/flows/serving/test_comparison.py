"""Two models beside each other: sides, choices, the file, its summary."""

from __future__ import annotations

import json
import resource
import signal
from collections import Counter

import httpx
import pytest
from click.testing import CliRunner

from artifacts_schema.errors import IngotError
from flows.cli.main import main
from flows.serving.comparison import Candidate, Comparison, Unknown

KEY = "a-key-of-more-than-16-letters"
ONE, TWO = Candidate("me/one", "a" * 64), Candidate("me/two", "b" * 64)


@pytest.fixture
def compare(choices):
    def make(first=ONE, second=TWO, file=choices):
        return Comparison((first, second), file, blind=True, who="login")

    return make


@pytest.fixture
def client(compared):
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=compared[0], headers=headers, timeout=30) as client:
        yield client


def test_sides_are_drawn_anew_for_each_question(compare):
    comparison = compare()
    lefts = Counter(comparison.names(comparison.draw())[0] for _ in range(400))
    # Binomial of 400 draws: 200 ± 5 standard deviations of 10.
    assert abs(lefts["me/one"] - 200) <= 50
    assert lefts.total() == 400


def choose_winner(comparison, winner, who=""):
    number = comparison.draw()
    choice = "tie" if winner is None else ("left", "right")[comparison.names(number).index(winner)]
    comparison.choose(number, choice, who)


def test_the_summary_counts_wins_on_either_side_with_wilsons_interval(compare):
    comparison = compare()
    assert comparison.summary() == (0, 0, 0, None)
    for winner in ["me/one"] * 7 + ["me/two"] * 3 + [None] * 2:
        choose_winner(comparison, winner)
    summary = comparison.summary()
    assert summary[:3] == (7, 3, 2)
    # Wilson's interval of 7 of 10: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n), z = 1.959964.
    assert summary.interval == pytest.approx((0.396773, 0.892207), abs=1e-4)
    # Seen from the other one, and beside another pair, whose choices are not counted.
    other = compare(TWO, ONE)
    assert other.summary()[:3] == (3, 7, 2)
    third = compare(ONE, Candidate("me/one", "c" * 64))
    choose_winner(third, None)
    assert third.summary() == (0, 0, 1, None)
    assert compare().summary() == summary


def test_a_choice_is_a_line_and_counts_once(compare, choices):
    comparison = compare()
    number = comparison.draw()
    left, right = comparison.names(number)
    comparison.choose(number, "left", "ann")
    with pytest.raises(Unknown):
        comparison.choose(number, "right", "ann")
    line = json.loads(choices.read_text())
    assert (line["who"], line["choice"], line["blind"]) == ("ann", "left", True)
    assert (line["left"], line["right"]) == (left, right)
    assert {line["left_key"], line["right_key"]} == {ONE.key, TWO.key}
    assert line["time"].endswith("+00:00")
    assert choices.stat().st_mode & 0o777 == 0o600
    choose_winner(comparison, None)
    assert json.loads(choices.read_text().splitlines()[1])["who"] == "login"


def test_a_choice_that_the_disk_takes_in_part_leaves_no_half_line(compare, choices):
    """A limit on the size of files stands for the disk: the kernel writes what fits."""
    comparison = compare()
    choose_winner(comparison, "me/one")
    before = choices.read_bytes()
    limits, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.SIG_IGN
    handler = signal.signal(signal.SIGXFSZ, ignored)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        with pytest.raises(IngotError, match=r"cannot be written"):
            choose_winner(comparison, "me/two")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert choices.read_bytes() == before
    choose_winner(comparison, "me/two")
    assert comparison.summary()[:3] == (1, 1, 0)


def test_a_file_of_other_lines_or_that_cannot_be_written_is_refused(compare, choices, tmp_path):
    for text in ("no json\n", "[1]\n", '{"choice": "left"}\n', '{"choice": 1}\n'):
        choices.write_text(text)
        with pytest.raises(IngotError):
            compare()
        assert choices.read_text() == text
    for wrong in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(IngotError):
            compare(file=wrong)


def test_the_protocol_has_both_models_and_aliases_that_hide_them(client, compared):
    blind = compared[1]
    names = [one["id"] for one in client.get("/v1/models").json()["data"]]
    assert names == ["me/one", "me/two"]
    drawn = client.post("/compare/questions", json={}).json()
    assert (drawn["names"] is None) == blind

    def answer(model):
        body = {"model": model, "messages": [{"role": "user", "content": "go"}], "max_tokens": 1}
        value = client.post("/v1/chat/completions", json=body).json()
        return value["model"], value["choices"][0]["message"]["content"]

    by_name = {"me/one": "go ", "me/two": "GO "}
    assert {name: answer(name)[1] for name in names} == by_name
    assert answer("")[0] == "me/one"
    aliases = [f"{drawn['question']}:{side}" for side in ("left", "right")]
    written = [answer(alias) for alias in aliases]
    assert [model for model, _ in written] == aliases
    body = {"question": drawn["question"], "choice": "tie", "who": "ann"}
    chosen = client.post("/compare/choices", json=body).json()
    assert [by_name[chosen[side]] for side in ("left", "right")] == [text for _, text in written]
    assert chosen["summary"] == "me/one 0, me/two 0, ties 1"
    assert client.post("/compare/choices", json=body).status_code == 404
    assert client.post("/compare/choices", json={**body, "choice": "both"}).status_code == 400
    assert (
        client.post("/v1/completions", json={"model": aliases[0], "prompt": "x"}).status_code == 404
    )


def test_a_server_of_one_model_compares_nothing(url):
    headers = {"Authorization": f"Bearer {KEY}"}
    for route in ("questions", "choices"):
        assert httpx.post(f"{url}/compare/{route}", headers=headers, json={}).status_code == 404


@pytest.mark.parametrize(
    "arguments", [["a", "--blind"], ["a", "--choices", "f"], ["a", "b", "c"], ["a", "b", "--plan"]]
)
def test_what_cannot_be_compared_is_refused_before_anything_is_opened(arguments):
    result = CliRunner().invoke(main, ["serve", *arguments, "--store", "/nowhere"])
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 2


@pytest.fixture
def page(browser, compared):
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(compared[0])
    yield page
    assert problems == []
    page.close()


def text_of(page, selector):
    return page.inner_text(selector).strip()


def test_the_page_shows_two_answers_and_after_the_choice_their_names(page, compared, choices):
    page.fill("#key", KEY)
    page.press("#key", "Tab")
    page.wait_for_selector("#name >> text=me/one and me/two")
    page.fill("#who", "ann")
    page.fill("#most", "2")
    page.fill("#text", "say <b>go</b>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#choose-left:visible")
    answers = {text_of(page, "#left"), text_of(page, "#right")}
    assert answers == {"<b>go</b> <b>go</b>", "<B>GO</B> <B>GO</B>"}
    shown = {text_of(page, "#left-name"), text_of(page, "#right-name")}
    assert shown == ({"left", "right"} if compared[1] else {"me/one", "me/two"})
    left = text_of(page, "#left")
    page.click("#choose-left")
    page.wait_for_selector("#summary >> text=Wilson")
    name = "me/one" if left.startswith("<b>") else "me/two"
    assert text_of(page, "#left-name") == name
    assert not page.is_visible("#choices")
    line = json.loads(choices.read_text())
    assert (line["who"], line["left"], line["choice"]) == ("ann", name, "left")
