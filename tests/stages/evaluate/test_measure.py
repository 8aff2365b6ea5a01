"""Items put to a model in several ways at once, and what is wrong with some."""

import hashlib
import json
import math

import numpy as np
import pytest
import torch

from artifacts_schema.errors import InputError
from stages.evaluate.benchmarks import Item, ItemRequest, read_items
from stages.evaluate.measure import Scorer, measure_choices, measure_texts
from stages.scoring.choices import choice_observations
from stages.scoring.likelihood import encode_text, score_requests
from stages.scoring.metrics import METRICS
from stages.scoring.observations import results_table

CLOZE = ItemRequest("Question: the capital of Italy\nAnswer:", (" Paris", " Rome"), "cloze", 0)
LISTED = ItemRequest(
    "Question: the capital of Italy\nA. Paris\nB. Rome\nAnswer:", (" A", " B"), "multiple_choice", 0
)
SHOT = ItemRequest(f"Question: the sky\nAnswer: blue\n\n{CLOZE.prompt}", CLOZE.choices, "cloze", 1)


def italy(*requests, answer=1, choices=("Paris", "Rome"), prompt="the capital of Italy"):
    return Item("quiz", "italy", "multiple_choice", prompt, choices, answer, requests=requests)


@pytest.fixture
def scorer(model, tokenizer):
    return Scorer(model, tokenizer, 0, None, 4096)


def test_every_formulation_and_number_of_shots_is_measured_as_if_alone(scorer):
    found = measure_choices(scorer, [italy(CLOZE, LISTED, SHOT)], " ")
    assert (found.bad, dict(found.notes)) == ([], {})
    assert [(one.formulation, one.shots, one.choice) for one in found.choices] == [
        ("cloze", 0, 0), ("cloze", 0, 1), ("multiple_choice", 0, 0), ("multiple_choice", 0, 1),
        ("cloze", 1, 0), ("cloze", 1, 1),
    ]  # fmt: skip
    apart = [measure_choices(scorer, [italy(one)], " ").choices for one in (CLOZE, LISTED, SHOT)]
    for one, other in zip(found.choices, [c for group in apart for c in group], strict=True):
        assert one.log_likelihoods == pytest.approx(other.log_likelihoods, abs=1e-4)
        assert (one.is_greedy, one.prompt_digest) == (other.is_greedy, other.prompt_digest)
    digests = [hashlib.blake2b(r.prompt.encode(), digest_size=8).hexdigest()
               for r in (CLOZE, LISTED, SHOT)]  # fmt: skip
    assert [one.prompt_digest for one in found.choices[::2]] == digests
    first = found.choices[1]
    assert (first.characters, first.bytes, first.scored_bytes) == (4, 4, 5)  # Rome
    names = {
        (o.formulation, o.shots, o.metric) for o in choice_observations(found.choices, ["sum"])
    }
    assert len(names) == 3 * 2


def test_what_is_scored_is_the_prompt_and_the_choice_as_they_are(scorer, tokenizer, model):
    (choice, _) = measure_choices(scorer, [italy(CLOZE)], "ignored").choices
    ids = [0, *encode_text(tokenizer, CLOZE.prompt + CLOZE.choices[0])]
    start = 1 + len(encode_text(tokenizer, CLOZE.prompt))
    with torch.no_grad():
        log_p = torch.log_softmax(model(torch.tensor([ids]))[0].double(), -1)
    expected = [float(log_p[at - 1, ids[at]]) for at in range(start, len(ids))]
    assert choice.log_likelihoods == pytest.approx(expected, abs=1e-5)


def test_free_requests_are_not_ranked(scorer):
    free = ItemRequest("the capital of Italy is", (), "free", 0, ("Rome",))
    found = measure_choices(scorer, [italy(CLOZE, free)], " ")
    assert {one.formulation for one in found.choices} == {"cloze"}
    written = Item("quiz", "w", "free", "the capital", (), 0, requests=(free,))
    assert measure_choices(scorer, [written], " ").choices == []


def test_one_choice_alone_is_a_text_to_be_written(scorer, model, tokenizer):
    ids = [0, *encode_text(tokenizer, "the capital of")]
    with torch.no_grad():
        for _ in range(2):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    likeliest = tokenizer.decode(ids[-2:], skip_special_tokens=False)
    assert encode_text(tokenizer, f"the capital of{likeliest}") == ids[1:]
    texts = (likeliest, " keys", " a list")
    items = [
        Item("last", str(n), "multiple_choice", "the capital of", (text,), 0,
             requests=(ItemRequest("the capital of", (text,), "cloze", 0),))
        for n, text in enumerate(texts)
    ]  # fmt: skip
    choices = measure_choices(scorer, items, " ").choices
    rows = results_table(choice_observations(choices, list(METRICS)[:2])).to_pylist()
    by_metric = {row["metric"]: row for row in rows}
    assert set(by_metric) == {"greedy_match", "answer_nats", "perplexity", "answer_bits_per_byte"}
    assert by_metric["greedy_match"]["value"] == pytest.approx(1 / 3)
    nats = [-one.log_likelihood for one in choices]
    assert by_metric["perplexity"]["value"] == pytest.approx(math.exp(np.mean(nats)))
    # The delta method: the error of e^x is e^x times that of x.
    assert by_metric["perplexity"]["standard_error"] == pytest.approx(
        math.exp(np.mean(nats)) * np.std(nats, ddof=1) / math.sqrt(3)
    )
    assert by_metric["perplexity"]["low"] < by_metric["perplexity"]["value"]


@pytest.mark.parametrize(
    ("choices", "note"),
    [
        ((" Rome", " Rome"), "equal_choices"),
        ((" Rome", " Rome is Rome"), "prefix_choices"),
    ],
)
def test_equal_choices_and_prefixes_of_others_are_measured_and_counted(scorer, choices, note):
    request = ItemRequest("the capital is", choices, "cloze", 0)
    found = measure_choices(scorer, [italy(request, answer=0, choices=choices)], " ")
    assert dict(found.notes) == {note: 1}
    first, second = found.choices
    size = len(first.log_likelihoods)
    assert second.log_likelihoods[:size] == pytest.approx(first.log_likelihoods, abs=1e-5)
    assert first.log_likelihood >= second.log_likelihood
    assert choice_observations(found.choices, ["sum"])[0].numerator == 1.0  # The first of equals.


def test_a_prompt_longer_than_the_context_loses_its_left_end_and_is_counted(scorer, tokenizer):
    long = ItemRequest("keys are values " * 60 + "the capital is", (" Rome", " Paris"), "cloze", 5)
    found = measure_choices(scorer, [italy(long), italy(CLOZE)], " ")
    assert dict(found.notes) == {"prompts_cut": 1}
    context = scorer.model.config.context
    ids = [0, *encode_text(tokenizer, long.prompt + " Rome")]
    with torch.no_grad():
        log_p = torch.log_softmax(scorer.model(torch.tensor([ids[-context - 1 : -1]]))[0], -1)
    size = len(found.choices[0].log_likelihoods)
    expected = [float(log_p[-n, ids[-n]]) for n in range(size, 0, -1)]
    assert found.choices[0].log_likelihoods == pytest.approx(expected, abs=1e-4)


def test_a_choice_that_no_token_is_of_is_a_bad_item(scorer, tokenizer):
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Replace

    deaf = Tokenizer.from_str(tokenizer.to_str())
    deaf.normalizer = Replace("Rome", "")
    request = ItemRequest("the capital is", ("Rome", " Paris"), "cloze", 0)
    unheard = Scorer(scorer.model, deaf, 0, None, 4096)
    found = measure_choices(unheard, [italy(request), italy(CLOZE, choices=("x", "y"))], " ")
    assert [one.reason for one in found.bad] == ["choice_without_tokens"]


@pytest.mark.parametrize("form", ["choices", "text"])
def test_what_is_not_finite_names_its_item(make_model, tokenizer, form):
    broken = make_model()
    with torch.no_grad():
        broken.embedding.weight.fill_(math.nan)
    scorer = Scorer(broken, tokenizer, 0, None, 4096)
    text = Item("quiz", "italy", "text", "the sky", (), 0)
    measure = {
        "choices": lambda: measure_choices(scorer, [italy(CLOZE)], " "),
        "text": lambda: measure_texts(scorer, [text]),
    }[form]
    with pytest.raises(InputError, match="is not finite") as caught:
        measure()
    assert caught.value.where == "quiz/italy"


def request(formulation="cloze", choices=(" Paris", " Rome"), **changes):
    plain = {"formulation": formulation, "shots": 0, "prompt": "p", "choices": list(choices)}
    return {**plain, "references": [], "contexts": [], **changes}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"requests": [request(choices=(" Paris", ""))]}, "empty_choice"),
        ({"requests": [request(choices=(" Paris",))], "answer": 1}, "answer_is_no_choice"),
        ({"requests": [request(choices=())]}, "answer_is_no_choice"),
        ({"form": "free", "choices": [], "answer": None, "requests": []}, "no_request"),
        ({"choices": [], "requests": [request()]}, "fewer_than_two_choices"),
    ],
)
def test_requests_that_cannot_be_scored_make_a_bad_item(changes, reason):
    row = {"benchmark": "quiz", "item_id": "1", "form": "multiple_choice", "prompt": "p",
           "choices": ["Paris", "Rome"], "answer": 0, "requests": [request()]}  # fmt: skip
    items, bad = read_items([row, {**row, "item_id": "2", **changes}])
    assert [one.item_id for one in items] == ["1"]
    assert [one.reason for one in bad] == [reason]
    (put,) = items[0].ranked(" ")
    assert put == ItemRequest("p", (" Paris", " Rome"), "cloze", 0)


@pytest.mark.parametrize("right", [None, [], [1], [0, 2], [0, True], "0", [0.0]])
def test_right_choices_that_are_not_said_make_a_bad_item(right):
    row = {"benchmark": "quiz", "item_id": "1", "form": "multiple_choice", "prompt": "p",
           "choices": ["Paris", "Rome"], "answer": 0, "metadata": '{"right": [0, 1]}'}  # fmt: skip
    metadata = json.dumps({"right": right} if right is not None else {})
    rows = [row, {**row, "item_id": "2", "metadata": metadata}]
    items, bad = read_items(rows, several={"quiz"})
    assert [one.right for one in items] == [(0, 1)]
    assert [one.reason for one in bad] == ["right_choices_unknown"]
    # Of other benchmarks the field is one like any.
    assert [one.right for one in read_items(rows)[0]] == [(), ()]


def test_scores_of_items_do_not_depend_on_the_items_beside_them(scorer):
    items = [italy(CLOZE, LISTED, SHOT), italy(SHOT)]
    together = measure_choices(scorer, items, " ").choices
    apart = [c for one in items for c in measure_choices(scorer, [one], " ").choices]
    for one, other in zip(together, apart, strict=True):
        assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)


def test_one_pass_computes_the_tokens_of_the_trie(scorer, monkeypatch):
    """Beginnings of the formulations, and of the choices after them, are computed once."""
    passed = []
    monkeypatch.setattr(
        "stages.evaluate.measure.score_requests",
        lambda model, requests, **how: passed.append(requests) or score_requests(model, requests),
    )
    counted = []
    hook = scorer.model.register_forward_pre_hook(lambda _, given: counted.append(given[0].numel()))
    try:
        measure_choices(scorer, [italy(CLOZE, LISTED)], " ")
    finally:
        hook.remove()
    (requests,) = passed
    texts = [(*one.context, *one.continuation)[:-1] for one in requests]
    nodes = {text[: n + 1] for text in texts for n in range(len(text))}
    assert sum(counted) == len(nodes) < sum(map(len, texts)) / 2
