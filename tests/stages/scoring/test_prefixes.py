"""Requests that begin alike: what is computed once, and that it changes no score."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.scoring.likelihood import Request, score_requests
from stages.scoring.prefixes import share_prefixes


def texts_of(groups):
    """Of every row: the sequences that its places spell, read along the trie."""
    spelled = {}
    for group in groups:
        for row in group.rows:
            parents = [max((k for k in range(i) if row.ends[k] > i), default=-1)
                       for i in range(len(row.tokens))]  # fmt: skip
            for number, places in row.places:
                path, at = [], int(places[-1])
                while at >= 0:
                    path.append(int(row.tokens[at]))
                    at = parents[at]
                spelled[number] = [*group.stem.tolist(), *reversed(path)]
                assert [row.positions[p] for p in places] == list(
                    range(len(spelled[number]) - len(places), len(spelled[number]))
                )
    return [spelled[number] for number in range(len(spelled))]


few_tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(
    sequences=st.lists(few_tokens, min_size=1, max_size=20),
    most_tokens=st.integers(1, 30),
    token_cost=st.integers(0, 20),
    least=st.tuples(st.integers(1, 4), st.integers(1, 12)),
    data=st.data(),
)
def test_every_text_is_read_along_its_trie(sequences, most_tokens, token_cost, least, data):
    scored = [data.draw(st.integers(1, len(one))) for one in sequences]
    groups = share_prefixes(
        sequences,
        scored,
        most_tokens=most_tokens,
        token_cost=token_cost,
        least_stem=least[0],
        least_after=least[1],
    )
    assert texts_of(groups) == sequences
    for group in groups:
        for row in group.rows:
            longest = max(len(sequences[n]) for n, _ in row.places) - len(group.stem)
            assert len(row.tokens) <= max(most_tokens, longest)


def few_shot(items, shots=300, question=20, answers=(3, 2, 4)):
    """Items whose prompts all begin with `shots` tokens, in two formulations that part late."""
    random = np.random.default_rng(5)
    draw = lambda n: tuple(random.integers(5, 300, n).tolist())  # noqa: E731
    preamble = (0, *draw(shots))
    requests = []
    for item in range(items):
        begin = (*preamble, 310 + item, *draw(question - 1))
        requests += [Request(begin, draw(n)) for n in answers]
        listed = begin + draw(9)
        requests += [Request(listed, (letter,)) for letter in (7, 8, 9)]
    return requests


def test_shared_beginnings_are_computed_once():
    requests = few_shot(40)
    inputs = [[*one.context, *one.continuation][:-1] for one in requests]
    groups = share_prefixes(inputs, [len(one.continuation) for one in requests])
    (group,) = groups
    assert len(group.stem) == 301
    assert len(group.stem) + sum(len(row.tokens) for row in group.rows) == 301 + 40 * (
        20 + (2 + 1 + 3) + 9
    )
    assert sum(map(len, inputs)) == 40 * (6 * 321 + (2 + 1 + 3) + 3 * 9)


@pytest.fixture(scope="module")
def long_model(make_model):
    return make_model(context=400, init_std=0.3)


def compare(model, requests, tolerance, **how):
    plain = score_requests(model, requests, batch_tokens=1, share=False)
    shared = score_requests(model, requests, **how)
    for one, other in zip(shared, plain, strict=True):
        np.testing.assert_allclose(one.log_likelihoods, other.log_likelihoods, atol=tolerance)
    return plain, shared


@pytest.mark.parametrize("batch_tokens", [1, 700, 4096])
def test_scores_are_those_of_each_request_alone(long_model, batch_tokens):
    requests = few_shot(12)
    plain, shared = compare(long_model, requests, 1e-4, batch_tokens=batch_tokens)
    assert [one.is_greedy for one in shared] == [one.is_greedy for one in plain]


def test_in_double_precision_they_are_equal_to_nine_digits(make_model):
    model = make_model(context=400, init_std=0.3).double()
    compare(model, few_shot(6), 1e-9)


LATENT = {"kv_rank": 16, "plain_width": 8, "rotary_width": 4, "value_width": 8}


@pytest.mark.parametrize(
    "shape",
    [
        {"window": 24, "window_pattern": "SL"},
        {"nope_every": 2},
        {"qk_norm": "head", "norm": "output", "logit_softcap": 5.0},
        {"kv_heads": 4, "rope_scaling": {"kind": "linear", "factor": 2.0}},
        {
            "kv_heads": 4,
            "latent": {"kv_rank": 16, "plain_width": 8, "rotary_width": 4, "value_width": 8},
        },
        {"experts": {"experts": 4, "chosen": 2, "width": 16}},
    ],
    ids=lambda shape: "-".join(shape),
)
def test_so_they_are_for_every_architecture(make_model, shape):
    model = make_model(context=400, init_std=0.3, **shape)
    compare(model.double(), few_shot(5), 1e-9)


def test_order_does_not_matter_nor_texts_that_are_cut(make_model):
    model = make_model(context=64, init_std=0.3)
    requests = few_shot(6, shots=30) + few_shot(3, shots=90)  # The last are cut at their left end.
    forwards = score_requests(model, requests)
    backwards = score_requests(model, requests[::-1])[::-1]
    for one, other in zip(forwards, backwards, strict=True):
        np.testing.assert_allclose(one.log_likelihoods, other.log_likelihoods, atol=1e-4)
    compare(model, requests, 1e-4)


def test_texts_that_continue_each_other_and_equal_ones_have_scores_of_their_own(long_model):
    requests = [Request((0, 9, 8), (7,) * n) for n in (1, 2, 2, 5)] + [Request((0,), (9, 8, 7))]
    _, shared = compare(long_model, requests, 1e-4)
    assert [len(one.log_likelihoods) for one in shared] == [1, 2, 2, 5, 3]


def test_the_likeliest_continuation_is_greedy_and_no_other_is(long_model):
    ids = [0, 9, 8]
    with torch.no_grad():
        for _ in range(4):
            ids.append(int(long_model(torch.tensor([ids]))[0, -1].argmax()))
    likeliest = tuple(ids[3:])
    others = [(*likeliest[:-1], (likeliest[-1] + 1) % 300), (likeliest[0] + 1, *likeliest[1:])]
    scored = score_requests(long_model, [Request((0, 9, 8), one) for one in (likeliest, *others)])
    assert [one.is_greedy for one in scored] == [True, False, False]
