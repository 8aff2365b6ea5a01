"""Answers taken out of texts, compared, voted on; pass@k."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from stages.scoring.answers import (
    Extraction,
    Judge,
    Normalise,
    chrf,
    is_right,
    majority,
    names_in_sentence,
    pass_at_k,
)
from stages.scoring.latex import last_boxed, normalise_math, normalise_minerva, same_latex

STRICT = Extraction("strict", r"#### (\-?[0-9\.\,]+)")
FLEXIBLE = Extraction("flexible", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", "last")
GSM8K = Normalise(case=True, patterns=(",", r"\$", r"(?s).*#### ", r"\.$"))


@pytest.mark.parametrize(
    ("text", "strict", "flexible"),
    [
        ("6 * 7 = 42.\n#### 42", "42", "42"),
        ("#### 1,234\nQuestion: #### 5", "1,234", "5"),
        ("She pays $18.50.", None, "$18.50."),
        ("Nothing.", None, None),
        ("", None, None),
        ("#### -3", "-3", "-3"),
    ],
)
def test_answers_are_taken_as_gsm8k_s_rules_say(text, strict, flexible):
    assert STRICT.extract(text) == strict
    assert FLEXIBLE.extract(text) == flexible


def test_the_first_group_that_is_not_empty_is_the_answer():
    assert Extraction("", "(a)?(b)?c").extract("bc") == "b"
    assert Extraction("", "(a)?(b)?c").extract("c") is None
    assert Extraction("", "(?:x) *y").extract("-x  y-") == "x  y"
    assert Extraction("", "x", "last").extract("") is None
    assert Extraction("").extract("  all of it\n") == "all of it"


def test_what_is_boxed_may_hold_braces_and_the_last_one_counts():
    boxed = Extraction("boxed", boxed=True)
    assert boxed.extract(r"\boxed{1} then \boxed{\frac{1}{2}}.") == r"\frac{1}{2}"
    assert boxed.extract(r"so $\boxed 7$") == "7"
    assert boxed.extract(r"\fbox{3}") == "3"
    assert boxed.extract(r"\boxed{never closed") is None
    assert boxed.extract("none") is None
    assert Extraction("n", r"\d+", boxed=True).extract(r"5 \boxed{x = 12}") == "12"


def test_what_a_task_ignores_is_ignored_on_both_sides():
    assert is_right("$1,042.", ["1042"], GSM8K)
    assert is_right("1042", ["#### 1,042"], GSM8K)
    assert not is_right("1041", ["1042"], GSM8K)
    assert not is_right(None, [""], GSM8K)
    assert is_right("Paris!", ["rome", "paris"], Normalise(case=True, punctuation=True))
    assert not is_right("Paris!", ["paris"], Normalise(case=True))
    assert is_right("x", [" x\n"], Normalise())


@pytest.mark.parametrize(
    ("n", "right", "k", "expected"),
    [  # Chen et al. 2021 by exact binomials.
        (1, 0, 1, 0), (5, 2, 1, 0.4), (5, 2, 3, 0.9), (10, 3, 1, 0.3), (10, 3, 5, 0.916667),
        (20, 7, 10, 0.998452), (200, 13, 1, 0.065), (200, 13, 10, 0.497551),
        (200, 13, 100, 0.999919), (4, 3, 2, 1),
    ],
)  # fmt: skip
def test_pass_at_k(n, right, k, expected):
    assert pass_at_k(n, right, k) == pytest.approx(expected, abs=5e-7)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(pair, data):
    n, right = pair
    k = data.draw(st.integers(1, n))
    draws = list(combinations([True] * right + [False] * (n - right), k))
    assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, draws)) / math.comb(n, k))


@pytest.mark.parametrize(("n", "right", "k"), [(0, 0, 1), (3, 4, 1), (3, 1, 4), (3, 1, 0)])
def test_pass_at_k_of_too_few_samples_is_an_error(n, right, k):
    with pytest.raises(ValueError, match="pass@"):
        pass_at_k(n, right, k)


def test_the_most_frequent_answer_wins_and_of_a_tie_the_first():
    assert majority(["1,000", "7", "1000", None], GSM8K) == majority(["1000", "1000"], GSM8K)
    tied = majority(["7", "8", "8", "7", "9"], Normalise())
    assert (tied.answer, tied.is_tied) == ("7", True)
    assert majority([None, None], Normalise()).answer is None
    assert not majority([None, "1"], Normalise()).is_tied


def test_a_pattern_without_end_is_an_error_and_no_score(monkeypatch):
    monkeypatch.setattr("stages.scoring.answers.PATTERN_SECONDS", 0.1)
    slow = Extraction("slow", r"(a|aa)+$")
    with pytest.raises(InputError, match="more than") as caught:
        slow.extract("a" * 60 + "b")
    assert "(a|aa)+$" in caught.value.where
    with pytest.raises(InputError):
        Extraction("", "(").extract("x")


def test_a_task_says_how_its_answers_are_judged():
    free = {
        "metric": "exact_match",
        "extraction": [{"name": "strict", "pattern": "a"}, {"name": "", "boxed": True}],
        "normalise": {"math": True, "patterns": ["x"]},
    }
    judge = Judge.from_task({"name": "t", "formulations": {"free": free}})
    assert [judge.name_of(rule) for rule in judge.rules] == ["exact_match_strict", "exact_match"]
    assert judge.normalise == Normalise(patterns=("x",), math=True)
    assert [r.extract(" b ") for r in Judge("t", "exact_match").rules] == ["b"]
    with pytest.raises(InputError, match="no free answers"):
        Judge.from_task({"name": "t", "formulations": {"cloze": {}}})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac12", r"\frac{1}{2}"), (r"\dfrac{1}{2}", "1/2"), ("0.5", r"\frac{1}{2}"),
        (r"x = 5", "5"), (r"90^\circ", "90"), (r"\left(1, 2\right)", "(1,2)"),
        (r"12\text{ cm}", "12"), (r"\sqrt3", r"\sqrt{3}"), ("1,000", "1000"), (r"\$5", "5"),
        (r"2\pi cm", r"2\pi"), ("50\\%", "50"), (".5", "0.5"), (r"\text{Monday}", "Monday"),
    ],
)  # fmt: skip
def test_answers_that_mathematicians_write_differently_are_equal(one, other):
    assert same_latex(one, other)
    assert same_latex(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("0,1", "01"), ("2/4", "1/2"), (r"\left", "le"), ("12", "21"), ("", "0"), ("a" * 2000, "b")],
)
def test_answers_that_differ_are_not_equal(one, other):
    assert not same_latex(one, other)


@given(st.text("\\frac{}12 sqrt.$/=,text", max_size=30))
def test_writing_alike_ends_for_any_text(text):
    normalise_math(text)
    normalise_minerva(text)
    last_boxed(text)
    assert same_latex(text, text)


def test_overlap_of_characters():
    """`abc` and `abd`: orders 1 to 3 have 2 of 3, 1 of 2 and 0 of 1 in common: mean 7/18."""
    assert chrf("a b c", ["abd"]) == pytest.approx(7 / 18)
    assert chrf("abc", ["xyz", "abc"]) == 1.0
    assert chrf("", ["abc"]) == chrf("abc", []) == 0.0
    # Recall counts four times: precision 1 and recall 1/2 of order 1 alone.
    assert chrf("a", ["ab"]) == pytest.approx(5 * 0.5 / (4 + 0.5))


def test_an_answer_names_what_it_was_asked_about_in_a_whole_sentence():
    assert names_in_sentence("Yes. You call Lock.acquire for that.", "Lock.acquire")
    assert not names_in_sentence("You call Lock.acquire for that", "Lock.acquire")
    assert not names_in_sentence("Lock.acquire it is.", "Lock.acquire")
    assert not names_in_sentence("You call Lock.acquired for that.", "Lock.acquire")
