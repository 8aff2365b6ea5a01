"""Agreement and pairs, counted by hand."""

from __future__ import annotations

import pytest

from flows.collecting.collection import _question
from flows.collecting.judgements import Judgement, Judgements
from flows.collecting.outcome import make_pairs, measure_agreement
from stages.examples.conversion import Origin
from stages.examples.shapes import preference_row
from stages.scoring.uncertainty import wilson
from tests.flows.collecting.conftest import answer_row, make_settings, prompt_id


def questions(count=3, texts=("a", "b", "c")):
    rows = [answer_row(number, list(texts)) for number in range(count)]
    return {row["prompt"]: _question(row) for row in rows}


def judgements(*said):
    """Of (who, prompt's number, ranks or a verdict)."""
    rows = []
    for number, (who, prompt, ranks) in enumerate(said):
        verdict = "ranked" if isinstance(ranks, tuple) else ranks
        one = Judgement(
            f"{number:032x}",
            prompt_id(prompt),
            who,
            f"2026-01-02T03:04:0{number}.000Z",
            verdict,
            ranks if verdict == "ranked" else (),
            (0, 1, 2),
        )
        rows.append(one.as_row())
    return Judgements(rows)


def pairs_of(known, choice="best", count=3):
    rows, counts = make_pairs(questions(count), known, make_settings(), choice)
    found = [(row["prompt_id"][-1], row["chosen"], row["rejected"], row["who"]) for row in rows]
    return found, dict(counts)


def test_the_best_with_the_worst_or_all_pairs_that_are_not_tied():
    known = judgements(("Ada", 0, (2, 1, 3)), ("Ada", 1, (1, 1, 2)), ("Ada", 2, (1, 1, 1)))
    assert pairs_of(known) == (
        [("0", "b", "c", ["Ada"]), ("1", "a", "c", ["Ada"])], {"all_tied": 1}
    )  # fmt: skip
    everything, _ = pairs_of(known, "all")
    assert {row[:3] for row in everything} == {
        ("0", "b", "a"), ("0", "b", "c"), ("0", "a", "c"), ("1", "a", "c"), ("1", "b", "c"),
    }  # fmt: skip


def test_people_of_one_mind_make_one_row_and_what_they_disagree_on_is_left_out():
    known = judgements(
        ("Ada", 0, (1, 2, 3)), ("Bob", 0, (1, 3, 2)), ("Ada", 1, (1, 2, 3)), ("Bob", 1, (3, 2, 1)),
        ("Ada", 2, "neither"), ("Bob", 2, "skipped"),
    )  # fmt: skip
    # On prompt 0 both have a before c, and a before b; b and c they order differently.
    assert pairs_of(known) == (
        [("0", "a", "c", ["Ada", "Bob"]), ("0", "a", "b", ["Ada", "Bob"])],
        {"disagreed": 1, "neither": 1},
    )
    everything, counts = pairs_of(known, "all")
    assert [row[:3] for row in everything] == [("0", "a", "b"), ("0", "a", "c")]
    assert counts == {"disagreed": 1 + 3, "neither": 1}


def test_rows_are_read_by_preferences_with_who_and_when():
    rows, _ = make_pairs(questions(), judgements(("Ada", 1, (3, 2, 1))), make_settings(), "best")
    assert rows[0]["checkpoint"] == make_settings().checkpoint
    assert (rows[0]["seed"], rows[0]["chosen_sample"], rows[0]["rejected_sample"]) == (7, 2, 0)
    row = preference_row(dict(rows[0]), Origin("0" * 32, "helpful.jsonl", "helpful"))
    assert [one["content"] for one in row["prompt"]] == ["Question 1?"]
    assert (row["chosen"][0]["content"], row["rejected"][0]["content"]) == ("c", "a")
    assert '"who": ["Ada"]' in row["metadata"]
    assert '"when": ["2026-01-02T03:04:00.000Z"]' in row["metadata"]


def test_agreement_counts_pairs_that_both_order_and_its_units_are_prompts():
    known = judgements(
        ("Ada", 0, (1, 2, 3)), ("Bob", 0, (1, 3, 2)),  # 2 same, 1 opposite
        ("Ada", 1, (1, 1, 2)), ("Bob", 1, (1, 2, 3)),  # 2 same, 1 tied by Ada
        ("Ada", 2, (1, 2, 3)), ("Bob", 2, "neither"),  # nothing to compare
    )  # fmt: skip
    agreement = measure_agreement(questions(), known)
    assert (agreement.prompts, agreement.pairs, agreement.same, agreement.tied) == (2, 5, 4, 1)
    assert agreement.share == 4 / 5
    assert agreement.doubt == "2 units"
    low, high = agreement.interval
    # Pairs of one prompt are not independent: wider than Wilson's interval of five.
    assert (low, high) != wilson(4, 5)
    assert 0 <= low < 0.8 < high <= 1


def test_with_two_answers_each_prompt_is_one_pair_and_the_interval_wilsons():
    said = [("Ada", n, (1, 2)) for n in range(40)] + [
        ("Bob", n, (1, 2) if n < 30 else (2, 1)) for n in range(40)
    ]
    rows = []
    for number, (who, prompt, ranks) in enumerate(said):
        one = Judgement(f"{number:032x}", prompt_id(prompt), who, "t", "ranked", ranks, (0, 1))
        rows.append(one.as_row())
    agreement = measure_agreement(questions(40, ("a", "b")), Judgements(rows))
    assert agreement.share == 0.75
    # 30 of 40 by Wilson (1927): .598 to .858.
    assert agreement.interval == pytest.approx((0.598, 0.858), abs=5e-4)
    assert agreement.doubt is None


def test_nobody_agrees_with_themselves_and_nothing_is_measured_without_two():
    known = judgements(("Ada", 0, (1, 2, 3)), ("ADA", 0, (3, 2, 1)))
    agreement = measure_agreement(questions(), known)
    assert (agreement.prompts, agreement.pairs, agreement.share) == (0, 0, None)


def test_equal_and_blank_answers_are_shown_once_or_not_at_all(make_collection):
    rows = [
        answer_row(0, ["yes", "yes ", "no"]),
        answer_row(1, ["same", "same", "same"]),
        answer_row(2, ["", "  ", "only"]),
        answer_row(3, [], excluded="too_long"),
    ]
    collection = make_collection(rows)
    assert list(collection.questions) == [prompt_id(0)]
    question = collection.questions[prompt_id(0)]
    assert (question.texts, question.samples) == (("yes", "no"), (0, 2))
    assert collection.excluded == {"same_answers": 2, "too_long": 1}
