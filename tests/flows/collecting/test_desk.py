"""Who gets which prompt, and what is kept of what they say."""

from __future__ import annotations

import errno
import itertools
import json
import os

import pytest

from artifacts_schema.errors import InputError, StoreError, UsageError
from flows.collecting.desk import CLAIM_SECONDS, Conflict
from flows.collecting.lines import DurableLines, read_lines
from tests.flows.collecting.conftest import answer_row, prompt_id

WINDOWS = [f"{letter:x}" * 32 for letter in range(10, 16)]
ids = (f"{number:032x}" for number in itertools.count(1_000))


def judge(desk, who, window, ranks=None, verdict="ranked", **changes):
    """Take the next prompt and judge it; its id and that of the judgement."""
    view = desk.next(who, window)
    number = next(ids)
    values = {"id": number, "prompt": view.question.id, "verdict": verdict}
    if verdict == "ranked":
        values["ranks"] = list(range(1, len(view.order) + 1)) if ranks is None else ranks
    desk.judge(who, window, **{**values, **changes})
    return view.question.id, number


def kept(desk):
    return read_lines(desk._lines.path)


def test_two_people_at_once_have_different_prompts_and_so_have_two_windows_of_one(desk):
    views = [
        desk.next(who, window)
        for who, window in zip(("Ada", "Bob", "Ada"), WINDOWS[:3], strict=True)
    ]
    assert [view.question.id for view in views] == [prompt_id(n) for n in range(3)]
    assert desk.next("Ada", WINDOWS[0]).question.id == prompt_id(0), "the same until it is judged"
    assert desk.next("Eve", WINDOWS[3]).question.id == prompt_id(3)
    assert desk.next("Joe", WINDOWS[4]) is None
    desk.release(WINDOWS[1])
    assert desk.next("Joe", WINDOWS[4]).question.id == prompt_id(1)


def test_a_person_is_one_in_any_spelling(open_desk):
    desk = open_desk(twice=1.0)
    assert desk.next("Zoë", WINDOWS[0]).question.id == prompt_id(0)
    assert desk.next(" ZOE\u0308", WINDOWS[1]).question.id == prompt_id(1), "claims are a person's"
    judge(desk, "Zoë", WINDOWS[0])
    judge(desk, "zoë", WINDOWS[1])
    assert {row["who"] for row in kept(desk)} == {"Zoë"}
    assert desk.progress("zoë ")["own"] == 2
    assert desk.progress("zoë ")["done"] == 0, "each prompt needs a second person"


def test_a_window_that_is_left_open_holds_its_prompt_for_half_an_hour(open_desk):
    now = [0.0]
    desk = open_desk(clock=lambda: now[0])
    desk.next("Ada", WINDOWS[0])
    now[0] = CLAIM_SECONDS - 1
    assert desk.next("Bob", WINDOWS[1]).question.id == prompt_id(1)
    now[0] = CLAIM_SECONDS + 1
    assert desk.next("Eve", WINDOWS[2]).question.id == prompt_id(0)
    # What Ada says then is not thrown away, though Eve has the prompt now.
    for who, window in (("Ada", WINDOWS[0]), ("Eve", WINDOWS[2])):
        desk.judge(
            who, window, id=next(ids), prompt=prompt_id(0), verdict="ranked", ranks=[1, 2, 3]
        )
    assert {one.who for one in desk.judgements.on(prompt_id(0))} == {"Ada", "Eve"}


def test_one_person_in_two_windows_judges_a_prompt_once(desk):
    prompt, _ = judge(desk, "Ada", WINDOWS[0])
    values = {"prompt": prompt, "verdict": "ranked", "ranks": [3, 2, 1]}
    with pytest.raises(Conflict, match="judged this prompt already"):
        desk.judge(" ada ", WINDOWS[1], id=next(ids), **values)
    assert len(kept(desk)) == 1


def test_sent_twice_it_counts_once_and_another_judgement_under_its_id_is_refused(desk):
    prompt, number = judge(desk, "Ada", WINDOWS[0], [2, 1, 3])
    again = {"id": number, "prompt": prompt, "verdict": "ranked"}
    desk.judge("Ada", WINDOWS[0], **again, ranks=[2, 1, 3])
    with pytest.raises(Conflict, match="saved with another ranking"):
        desk.judge("Ada", WINDOWS[0], **again, ranks=[1, 2, 3])
    assert len(kept(desk)) == 1


def test_ranks_are_kept_by_answer_and_not_by_place_on_the_page(open_desk):
    desk = open_desk([answer_row(n, list("abcde")) for n in range(20)])
    orders = set()
    for _ in range(20):
        view = desk.next("Ada", WINDOWS[0])
        orders.add(view.order)
        # Best first by the alphabet, wherever the page has the letters.
        ranks = [10 * (1 + place) for place in view.order]
        judge(desk, "Ada", WINDOWS[0], ranks)
    assert {tuple(row["ranks"]) for row in kept(desk)} == {(1, 2, 3, 4, 5)}
    assert len(orders) > 10, "each prompt has an order of its own"
    assert {tuple(row["order"]) for row in kept(desk)} == orders


@pytest.mark.parametrize(
    ("verdict", "ranks"), [("ranked", [1, 2]), ("ranked", []), ("neither", [1, 2, 3])]
)
def test_ranks_that_do_not_fit_the_answers_are_refused(desk, verdict, ranks):
    with pytest.raises(Conflict, match="3 answers"):
        desk.judge(
            "Ada", WINDOWS[0], id=next(ids), prompt=prompt_id(0), verdict=verdict, ranks=ranks
        )
    assert kept(desk) == []


def test_what_is_skipped_goes_to_somebody_else(desk):
    prompt, _ = judge(desk, "Ada", WINDOWS[0], verdict="skipped")
    assert desk.next("Ada", WINDOWS[0]).question.id != prompt
    assert desk.next("Bob", WINDOWS[1]).question.id == prompt
    assert desk.progress("Ada") == {
        "prompts": 4, "done": 0, "missing": 4, "own": 0, "skipped": 1,
    }  # fmt: skip


def test_what_is_taken_back_is_shown_again_and_stays_in_the_file(desk):
    judge(desk, "Ada", WINDOWS[0])
    prompt, number = judge(desk, "Ada", WINDOWS[0], [2, 1, 2])
    undo = next(ids)
    view = desk.undo("Ada", WINDOWS[0], id=undo, undoes=number)
    assert (view.question.id, view.ranks) == (prompt, (2, 1, 2))
    assert desk.undo("Ada", WINDOWS[0], id=undo, undoes=number).ranks == view.ranks, "sent twice"
    assert [set(row) & {"undoes"} for row in kept(desk)] == [set(), set(), {"undoes"}]
    assert desk.next("Ada", WINDOWS[0]).question.id == prompt
    assert desk.progress("Ada")["own"] == 1
    desk.judge("Ada", WINDOWS[0], id=next(ids), prompt=prompt, verdict="ranked", ranks=[1, 2, 3])
    with pytest.raises(Conflict, match="taken back already"):
        desk.undo("Ada", WINDOWS[0], id=next(ids), undoes=number)
    with pytest.raises(Conflict, match="no judgement of yours"):
        desk.undo("Bob", WINDOWS[1], id=next(ids), undoes=number)
    # After a reload a window knows none of its judgements: the last one, then the one before.
    assert desk.undo("Ada", WINDOWS[0], id=next(ids), undoes=None).question.id == prompt
    assert desk.undo("Ada", WINDOWS[0], id=next(ids), undoes=None).question.id == prompt_id(0)
    assert desk.undo("Ada", WINDOWS[0], id=next(ids), undoes=None) is None


def test_a_share_of_prompts_goes_to_two_people(open_desk):
    desk = open_desk([answer_row(n, ["yes", "no"]) for n in range(400)], twice=0.25)
    twice = [one for one in desk.questions if desk.needed(one) == 2]
    assert 70 < len(twice) < 130, "100 expected, standard deviation 8.7"
    for who, window in (("Ada", WINDOWS[0]), ("Bob", WINDOWS[1])):
        while desk.next(who, window) is not None:
            judge(desk, who, window)
    people = {one: len(desk.judgements.on(one)) for one in desk.questions}
    assert {one for one, count in people.items() if count == 2} == set(twice)
    assert set(people.values()) == {1, 2}


def test_a_restart_knows_what_was_kept_and_drops_a_cut_line(open_desk):
    desk = open_desk()
    judge(desk, "Ada", WINDOWS[0])
    prompt, number = judge(desk, "Ada", WINDOWS[0])
    desk.undo("Ada", WINDOWS[0], id=next(ids), undoes=number)
    path = desk._lines.path
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])  # As a kill in the middle of a write leaves it.
    again = open_desk(again=True)
    assert path.read_bytes() == whole
    assert again.progress("ada")["own"] == 1
    assert again.next("Ada", WINDOWS[3]).question.id == prompt


def test_a_full_disk_keeps_nothing_of_a_judgement_and_the_next_is_whole(desk, monkeypatch):
    judge(desk, "Ada", WINDOWS[0])
    before = desk._lines.path.read_bytes()
    write = os.pwrite

    def short(file, raw, offset):
        if len(raw) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, raw[:-19], offset)

    monkeypatch.setattr(os, "pwrite", short)
    with pytest.raises(StoreError, match="no space left"):
        judge(desk, "Ada", WINDOWS[0])
    assert desk._lines.path.read_bytes() == before
    assert desk.progress("Ada")["own"] == 1
    assert desk.next("Ada", WINDOWS[0]).question.id == prompt_id(1), "still claimed"
    monkeypatch.setattr(os, "pwrite", lambda file, raw, offset: write(file, raw[:7], offset))
    judge(desk, "Ada", WINDOWS[0])
    assert len(kept(desk)) == 2


def test_a_disk_that_could_not_even_be_cut_back_leaves_no_half_line(desk, monkeypatch):
    judge(desk, "Ada", WINDOWS[0])
    write, cut, written = os.pwrite, os.ftruncate, []

    def fail():
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def write_most(file, raw, offset):
        if written:
            fail()
        written.append(write(file, raw[:-5], offset))
        return written[0]

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write_most)
        patch.setattr(os, "ftruncate", lambda *where: fail() if written else cut(*where))
        with pytest.raises(StoreError, match="input or output error"):
            judge(desk, "Ada", WINDOWS[0])
    assert not desk._lines.path.read_bytes().endswith(b"\n"), "there is half a line"
    judge(desk, "Ada", WINDOWS[0], verdict="skipped")
    assert [row["verdict"] for row in kept(desk)] == ["ranked", "skipped"]
    assert desk._lines.path.read_bytes().endswith(b"}\n")


def test_a_line_is_synced_before_it_counts(desk, monkeypatch):
    """A judgement that `fsync` did not take is not kept, in memory or in the file."""

    def fail(file):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="input or output error"):
        judge(desk, "Ada", WINDOWS[0])
    assert kept(desk) == []
    assert desk.progress("Ada")["own"] == 0


def test_a_second_server_is_refused_and_a_broken_line_is_named(desk, tmp_path):
    with pytest.raises(UsageError, match="another process writes to it"):
        DurableLines(desk._lines.path)
    path = tmp_path / "broken.jsonl"
    path.write_text(json.dumps({"a": 1}) + "\nnot json\n")
    with pytest.raises(InputError, match="line 2"):
        DurableLines(path)
    assert read_lines(tmp_path / "none.jsonl") == []
