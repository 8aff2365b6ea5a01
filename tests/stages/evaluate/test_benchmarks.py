import math

import numpy as np
import pytest

from stages.evaluate.benchmarks import Item, ItemRequest, delimited
from stages.evaluate.measure import Scorer, measure_choices, measure_texts
from stages.scoring.choices import choice_observations
from stages.scoring.likelihood import (
    Scored,
    continuation_request,
    encode_text,
    token_log_likelihoods,
)


class Preset(Scorer):
    """A scorer whose model finds the choices as likely as the test says."""

    def score(self, groups):
        scores = [Scored(np.array([one]), False) for one in self.unigram_nll]
        return [scores[: len(group)] for group in groups]


def measured(scorer, item):
    found = measure_choices(scorer, [item], " ")
    assert found.bad == []
    return {one.metric: one for one in choice_observations(found.choices, ("sum", "bytes"))}


@pytest.mark.parametrize(
    ("sums", "answer", "accuracy", "by_bytes"),
    [
        # The choices have 3, 5, 14 and 9 UTF-8 bytes; per byte -2.0, -1.08, -1.5, -1.7.
        ([-6.0, -5.4, -21.0, -15.3], 2, 0.0, 0.0),
        ([-6.0, -5.4, -21.0, -15.3], 1, 1.0, 1.0),
        # per byte -2.0, -2.0, -0.5, -1.0: the long one wins by bytes, the short one by sum
        ([-6.0, -10.0, -7.0, -9.0], 2, 0.0, 1.0),
        ([-6.0, -10.0, -7.0, -9.0], 0, 1.0, 0.0),
    ],
)
def test_choices_are_ranked_by_sum_and_by_sum_per_byte(
    model, tokenizer, sums, answer, accuracy, by_bytes
):
    choices = ("cat", "été", "a big elephant", "dog house")
    item = Item("quiz", "1", "multiple_choice", "It is", choices, answer)
    found = measured(Preset(model, tokenizer, 0, sums, 4096), item)
    assert found["accuracy"].numerator == accuracy
    assert found["accuracy_by_bytes"].numerator == by_bytes
    assert found["accuracy"].baseline == 0.25
    # the delimiter is part of what is predicted
    assert found["answer_bits_per_byte"].denominator == len(choices[answer].encode()) + 1
    assert found["answer_bits_per_byte"].numerator == -sums[answer] / math.log(2)


def test_choices_follow_the_prompt_after_the_delimiter(model, tokenizer):
    item = Item("quiz", "1", "multiple_choice", "The capital is", ("Rome", "Paris"), 1)
    found = measured(Scorer(model, tokenizer, 0, None, 4096), item)
    requests = [
        continuation_request(tokenizer, "The capital is", choice, prefix=0)
        for choice in (" Rome", " Paris")
    ]
    scores = np.array([one.sum() for one in token_log_likelihoods(model, requests)])
    assert found["accuracy"].numerator == float(scores.argmax() == 1)
    expected = -scores[1] / math.log(2)
    assert found["answer_bits_per_byte"].numerator == pytest.approx(expected, abs=1e-4)


def test_a_choice_with_a_context_of_its_own_follows_that_and_the_prompt(model, tokenizer):
    contexts = (" of Italy", " of France")
    put = ItemRequest("The capital", (" is Rome", " is Rome"), "cloze", 0, contexts=contexts)
    item = Item("quiz", "1", "multiple_choice", "Which?", ("Italy", "France"), 0, requests=(put,))
    found = measure_choices(Scorer(model, tokenizer, 0, None, 4096), [item], " ")
    requests = [
        continuation_request(tokenizer, "The capital" + context, " is Rome", prefix=0)
        for context in contexts
    ]
    scores = [math.fsum(one) for one in token_log_likelihoods(model, requests)]
    assert scores[0] != scores[1]
    measured = [math.fsum(choice.log_likelihoods) for choice in found.choices]
    assert measured == pytest.approx(scores, abs=1e-4)
    assert len({choice.prompt_digest for choice in found.choices}) == 2
    assert not found.notes  # Equal endings of two sentences are not equal choices.


def test_choices_after_nothing_are_measured_where_they_are_wanted(model, tokenizer):
    item = Item("quiz", "1", "multiple_choice", "The capital is", ("Rome", "Paris"), 1)
    scorer = Scorer(model, tokenizer, 0, None, 4096)
    plain = measure_choices(scorer, [item], " ").choices
    assert [one.unconditional for one in plain] == [None, None]
    both = measure_choices(scorer, [item], " ", unconditional=True).choices
    requests = [continuation_request(tokenizer, "", one, prefix=0) for one in ("Rome", "Paris")]
    expected = np.array([one.sum() for one in token_log_likelihoods(model, requests)])
    assert [one.unconditional for one in both] == pytest.approx(list(expected), abs=1e-4)
    sums = [[one.log_likelihood for one in choices] for choices in (plain, both)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-4)


@pytest.mark.parametrize(
    ("prompt", "choice", "expected"),
    [("a", "b", " b"), ("a ", "b", "b"), ("a\n", "b", "b"), ("a", " b", " b"), ("", "b", "b")],
)
def test_the_delimiter_never_doubles_white_space(prompt, choice, expected):
    assert delimited(prompt, choice, " ") == expected


def test_a_choice_longer_than_the_context_is_a_bad_item_and_the_others_are_scored(model, tokenizer):
    long = Item("quiz", "long", "multiple_choice", "It is", ("x y z " * 100, "cat"), 1)
    short = Item("quiz", "short", "multiple_choice", "It is", ("dog", "cat"), 1)
    scorer = Scorer(model, tokenizer, 0, None, 4096)
    found = measure_choices(scorer, [long, short], " ")
    assert {one.item_id for one in found.choices} == {"short"}
    assert [(one.item_id, one.reason) for one in found.bad] == [
        ("long", "choice_longer_than_context")
    ]


def test_a_text_under_a_uniform_model_costs_the_logarithm_of_the_vocabulary(uniform, tokenizer):
    text = "Return the first item of a dictionary. " * 8  # several windows of 64 tokens
    tokens = len(encode_text(tokenizer, text))
    size = tokenizer.get_vocab_size()
    assert tokens > 64
    unigram = np.full(size, 2.0)
    item = Item("prose", "1", "text", text, (), 0)
    (found,) = measure_texts(Scorer(uniform, tokenizer, 0, unigram, 256), [item])
    assert found.numerator == pytest.approx(tokens * math.log2(size), rel=1e-5)
    assert found.denominator == len(text.encode())
    assert found.baseline == pytest.approx(tokens * 2.0 / math.log(2))
