"""Writing over a cache: the tokens and logits that whole forward passes give."""

import itertools

import pytest
import torch
from published_shapes import OWN, SHAPES
from transformers import TopPLogitsWarper

from stages.scoring.generation import Generator, Sampling, first_seen

EVERY = {**SHAPES, **OWN}
GREEDY = Sampling(temperature=0)


@pytest.fixture
def drawn():
    """`drawn(config)` → a decoder of random weights."""
    from stages.model.decoder import Decoder

    return lambda config: Decoder(config, seed=3).eval()


@pytest.fixture
def generator(make_model):
    """A context of 24 tokens, and weights so large that choices differ clearly."""
    return Generator(make_model(context=24, init_std=0.3))


def write(generator, prompt, sampling=GREEDY, most=8, stop=()):
    return list(generator.stream(prompt, sampling, max_new_tokens=most, stop_ids=stop))


@torch.no_grad()
def whole_logits(model, ids):
    """Of the token after `ids`, by one pass without a cache."""
    from stages.model.attention import attention_backend

    before = model.backend
    model.attend_by(attention_backend("sdpa"))
    try:
        return model(torch.tensor([list(ids)]))[0, -1]
    finally:
        model.attend_by(before)


@pytest.mark.parametrize("name", EVERY)
def test_logits_are_those_of_a_pass_without_a_cache(drawn, name):
    """A prompt, token by token, then another prompt that shares its beginning."""
    model = drawn(EVERY[name])
    generator = Generator(model)
    ids = torch.randint(3, 61, (16,), generator=torch.Generator().manual_seed(2)).tolist()
    other = [*ids[:7], 5, 9, 4]
    for text in (ids[:6], ids[:7], ids[:12], other, ids):
        expected = whole_logits(model, text)
        torch.testing.assert_close(generator.next_logits(text), expected, atol=2e-5, rtol=0)


def test_greedy_tokens_are_those_of_generation_without_a_cache(generator):
    for prompt in ([0, 20, 30], [0, 20, 31, 7]):
        ids = list(prompt)
        for token in write(generator, prompt, most=12):
            assert token == int(whole_logits(generator.model, ids).argmax())
            ids.append(token)
        assert len(ids) == len(prompt) + 12


def test_a_later_turn_costs_its_new_tokens_alone(generator, monkeypatch):
    lengths, whole, single = [], generator._pass, generator._next
    monkeypatch.setattr(
        generator,
        "_pass",
        lambda texts, *rest: lengths.append(len(texts[0])) or whole(texts, *rest),
    )
    monkeypatch.setattr(generator, "_next", lambda *rest: lengths.append(1) or single(*rest))
    answer = write(generator, [0, 20, 30], most=4)
    assert lengths == [3, 1, 1, 1]
    lengths.clear()
    write(generator, [0, 20, 30, *answer, 8, 9], most=2)
    # The last token that was drawn has not been read yet: it and the two new ones are.
    assert lengths == [3, 1]


@pytest.mark.parametrize("length", [23, 24, 25, 36, 37, 100])
def test_a_text_longer_than_the_context_is_seen_from_a_later_token(generator, length):
    ids = torch.randint(3, 61, (length,), generator=torch.Generator().manual_seed(1)).tolist()
    expected = whole_logits(generator.model, ids[first_seen(length, 24) :])
    torch.testing.assert_close(generator.next_logits(ids), expected, atol=2e-5, rtol=0)


def test_at_least_half_a_context_is_seen_and_at_most_one():
    for context in (1, 2, 3, 24, 25):
        for length in range(1, 120):
            seen = length - first_seen(length, context)
            assert min(length, context // 2) <= seen <= context
            assert seen >= 1


@pytest.mark.parametrize("top_p", [0.0, 0.3, 0.9, 1.0])
def test_the_nucleus_is_that_of_transformers(top_p):
    logits = torch.randn(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    warped = TopPLogitsWarper(top_p)(None, logits[None] / 0.7)[0]
    expected = torch.softmax(warped, dim=-1)
    torch.testing.assert_close(Sampling(0.7, top_p).probabilities(logits), expected)


def test_draws_follow_the_seed(generator):
    def drawn(seed):
        return write(generator, [0, 9], Sampling(1.0, 1.0, seed))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_it_ends_before_a_stop_token(generator):
    free = write(generator, [0, 20, 30], most=6)
    assert write(generator, [0, 20, 30], most=6, stop={free[3]}) == free[: free.index(free[3])]


def test_a_pass_that_was_interrupted_leaves_no_trace(generator, make_model, monkeypatch):
    """Ctrl-C between two layers: the first has the new keys, the second has not."""
    expected = write(Generator(make_model(context=24, init_std=0.3)), [0, 20, 30, 40], most=3)
    calls = []

    def interrupt(*arguments):
        calls.append(arguments)
        raise KeyboardInterrupt

    # Of several tokens by the modules, of one by `DecodeStep`.
    first_norm = generator._decode._norm
    for place, name, prompt in (
        (generator.model.blocks[1], "forward", [0, 20, 30, 31]),
        (generator._decode, "_norm", [0, 20, 30]),
    ):
        write(generator, [0, 20], most=2)
        late = itertools.chain([first_norm, first_norm], itertools.repeat(interrupt))
        hook = interrupt if name == "forward" else lambda *rest, late=late: next(late)(*rest)
        with monkeypatch.context() as patch:
            patch.setattr(place, name, hook)
            with pytest.raises(KeyboardInterrupt):
                write(generator, prompt)
        assert calls
        calls.clear()
        assert write(generator, [0, 20, 30, 40], most=3) == expected


def test_an_empty_prompt_is_refused(generator):
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        write(generator, [])
