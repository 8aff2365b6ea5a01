"""Many texts at once: each as if it were written alone, whatever shares its batch."""

import math
import random
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from published_shapes import OWN, SHAPES
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from artifacts_schema.errors import InputError
from stages.scoring.generation import Generator, Sampling, first_seen
from stages.scoring.likelihood import Request, encode_text, token_log_likelihoods
from stages.scoring.sampling import TIE

EVERY = {**SHAPES, **OWN}
GREEDY = Sampling(temperature=0)
WHOLE = Sampling(temperature=1.0, top_p=1.0)


def draw_prompts(count, longest=30, seed=0, vocabulary=61):
    """Prompts of 1 to `longest` tokens."""
    draw = random.Random(seed)
    return [
        [draw.randrange(3, vocabulary) for _ in range(draw.randint(1, longest))]
        for _ in range(count)
    ]


def write(model, prompts, sampling=GREEDY, *, batch=16, tokenizer=None, most=12, **rest):
    with Generator(model, tokenizer, batch=batch) as generator:
        return generator.write(prompts, sampling, max_new_tokens=most, **rest)


def assert_agree(one, other, tolerance=1e-4):
    """The same texts, and log-probabilities within `tolerance` nats; to the first tie at least."""
    for left, right in zip(one, other, strict=True):
        end = min([*left.ties, *right.ties, max(len(left.ids), len(right.ids))])
        assert left.ids[:end] == right.ids[:end]
        expected = pytest.approx(right.log_probabilities[:end], abs=tolerance)
        assert left.log_probabilities[:end] == expected


@pytest.fixture
def drawn():
    from stages.model.decoder import Decoder

    return lambda name: Decoder(EVERY[name], seed=3).eval()


@pytest.fixture
def small(make_model):
    """Weights so large that choices differ clearly; a context of 64."""
    return make_model(init_std=0.3)


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_is_the_texts_written_alone_and_scored_without_a_cache(drawn, name):
    """Of every architecture, in float32: within 1e-4 nats by one pass over the whole text too."""
    model, prompts = drawn(name), draw_prompts(7)
    alone = [one for prompt in prompts for one in write(model, [prompt])]
    for batch in (2, 3, 16):
        assert_agree(write(model, prompts, batch=batch), alone)
    requests = [Request(tuple(prompt), one.ids) for prompt, one in zip(prompts, alone, strict=True)]
    for scores, one in zip(token_log_likelihoods(model, requests), alone, strict=True):
        assert len(one.ids) == 12
        assert scores == pytest.approx(one.log_probabilities, abs=1e-4)


@settings(max_examples=8)
@given(data=st.data())
def test_a_drawn_text_depends_on_its_prompt_number_and_sample_alone(make_model, data):
    """In float64, where rounding moves no draw: any batch, order, company, and context."""
    model = make_model(init_std=0.3, context=24).double()
    prompts = draw_prompts(data.draw(st.integers(1, 6)), longest=40, seed=data.draw(st.integers()))
    sampling = Sampling(0.9, 0.9, data.draw(st.integers(0, 2**31)))
    stop = set(data.draw(st.lists(st.integers(0, 60), max_size=12)))
    expected = [
        one
        for number, prompt in enumerate(prompts)
        for one in write(model, [prompt], sampling, stop_ids=stop, samples=2, first_number=number)
    ]
    batch = data.draw(st.integers(1, 12))
    together = write(model, prompts, sampling, batch=batch, stop_ids=stop, samples=2)
    assert_agree(together, expected, 1e-9)
    places = [(one.prompt, one.sample) for one in together]
    assert places == [(number, sample) for number in range(len(prompts)) for sample in (0, 1)]
    fewer = write(model, prompts, sampling, batch=batch, stop_ids=stop)
    assert_agree(fewer, together[::2], 1e-9)
    for one in together:
        ended = one.ids[-1] in stop
        assert (one.ending == "end") is ended
        assert ended or len(one.ids) == 12
        assert not stop.intersection(one.ids[:-1])


def test_texts_beyond_the_context_see_what_a_text_alone_sees(make_model):
    """The rule of `first_seen`, by passes without a cache."""
    model = make_model(init_std=0.3, context=24).double()
    prompts = draw_prompts(5, longest=60, seed=4)
    assert max(map(len, prompts)) > 24
    for prompt, one in zip(prompts, write(model, prompts, most=40, batch=4), strict=True):
        ids = list(prompt)
        for token, log_probability in zip(one.ids, one.log_probabilities, strict=True):
            seen = ids[first_seen(len(ids), 24) :]
            with torch.no_grad():
                scores_V = model(torch.tensor([seen]))[0, -1].log_softmax(-1)
            assert token == int(scores_V.argmax())
            assert log_probability == pytest.approx(float(scores_V[token]), abs=1e-9)
            ids.append(token)


def test_equal_settings_give_equal_bits(small):
    prompts = draw_prompts(9)
    assert write(small, prompts, WHOLE, batch=4) == write(small, prompts, WHOLE, batch=4)


def test_a_stream_is_the_first_prompt_of_a_batch(small):
    with Generator(small) as generator:
        streamed = list(generator.stream([0, 20, 30], WHOLE, max_new_tokens=20))
    assert tuple(streamed) == write(small, [[0, 20, 30]], WHOLE, most=20)[0].ids


def test_the_model_has_its_attention_back(small):
    before = small.backend
    write(small, [[0, 20]])
    assert small.backend is before
    assert all(block.attention.backend is before for block in small.blocks)


@pytest.fixture
def passes(monkeypatch):
    """Rows and columns of each forward pass over prompts, and rows of each step."""
    record = {"read": [], "step": []}
    whole, single = Generator._pass, Generator._next

    def read(self, texts, cache):
        record["read"].append((len(texts), max(map(len, texts))))
        return whole(self, texts, cache)

    def step(self, tokens, *rest):
        record["step"].append(len(tokens))
        return single(self, tokens, *rest)

    monkeypatch.setattr(Generator, "_pass", read)
    monkeypatch.setattr(Generator, "_next", step)
    return record


def test_a_text_that_ends_leaves_its_place_and_no_pass_computes_it(small, passes):
    prompts = draw_prompts(12, seed=1)
    free = write(small, prompts, WHOLE, most=20)
    stop = {one.ids[number % 7] for number, one in enumerate(free[::2])}
    passes["read"].clear()
    passes["step"].clear()
    written = write(small, prompts, WHOLE, most=20, batch=4, stop_ids=stop)
    assert len({len(one.ids) for one in written}) > 4
    # The first token of a text is that of the pass over its prompt.
    assert sum(passes["step"]) == sum(len(one.ids) - 1 for one in written)
    assert max(passes["step"]) == 4
    assert len(passes["step"]) < sum(passes["step"]) / 2


def test_what_all_prompts_begin_with_and_equal_prompts_are_computed_once(small, passes):
    prefix = draw_prompts(1, seed=5, longest=1)[0] * 30
    prompts = [[*prefix, *tail] for tail in ([5, 6], [7], [5, 8, 9])]
    written = write(small, prompts, WHOLE, samples=3)
    assert passes["read"] == [(1, 30), (3, 3)]
    # Others of the same numbers, so that nothing is shared.
    passes["read"].clear()
    alone = [
        one
        for number, prompt in enumerate(prompts)
        for one in write(small, [prompt], WHOLE, samples=3, first_number=number)
    ]
    assert passes["read"] == [(1, 32), (1, 31), (1, 33)]
    assert_agree(written, alone)


def test_samples_of_a_prompt_differ(small):
    written = write(small, [[0, 20]], WHOLE, samples=8)
    assert len({one.ids for one in written}) == 8


def test_draws_have_the_probabilities_of_the_model(small):
    # 2,000 draws of one token: each share within 4 standard errors.
    written = write(small, [[0, 9]], WHOLE, samples=2000, most=1, batch=500)
    with torch.no_grad():
        scores_V = small(torch.tensor([[0, 9]]))[0, -1].log_softmax(-1)
    counts = torch.zeros(len(scores_V))
    for one in written:
        counts[one.ids[0]] += 1
        assert one.log_probabilities[0] == pytest.approx(float(scores_V[one.ids[0]]), abs=1e-5)
    p = scores_V.exp()
    assert ((counts / 2000 - p).abs() <= 4 * (p * (1 - p) / 2000).sqrt() + 1e-3).all()


@pytest.mark.parametrize(
    ("top_k", "top_p", "min_p"), [(5, 1.0, 0.0), (7, 0.8, 0.1), (None, 0.6, 0.05)]
)
def test_cuts_are_those_of_transformers_in_the_order_of_vllm(top_k, top_p, min_p):
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(0)).double() * 3
    warped = logits / 0.7
    if min_p:
        warped = MinPLogitsWarper(min_p)(None, warped)
    if top_k:
        warped = TopKLogitsWarper(top_k)(None, warped)
    warped = TopPLogitsWarper(top_p)(None, warped)
    sampling = Sampling(0.7, top_p, top_k=top_k, min_p=min_p)
    torch.testing.assert_close(sampling.probabilities(logits), torch.softmax(warped, dim=-1))


def test_tokens_that_are_cut_are_never_drawn():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(4, 1)
    uniform = torch.tensor([0.0, 0.5, 0.9, 1 - 2**-53], dtype=torch.float64)
    chosen = Sampling(1.0, 1.0, top_k=2).choose(logits, uniform)
    # Of e² and e: 0.731 and 0.269.
    assert chosen.tokens_B.tolist() == [0, 0, 1, 1]
    expected = logits.log_softmax(-1)[0, [0, 0, 1, 1]]
    torch.testing.assert_close(chosen.log_probabilities_B, expected)


def test_choices_between_tokens_as_good_are_listed(small):
    free = write(small, [[0, 20, 30]])[0]
    assert free.ties == ()
    twin, place = free.ids[4], free.ids.index(free.ids[4])
    other = next(token for token in range(5, 61) if token not in free.ids)
    weight = (small.head or small.embedding).weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[other] = weight[twin]
    try:
        tied = write(small, [[0, 20, 30]])[0]
    finally:
        weight.data.copy_(kept)
    assert tied.ids[:place] == free.ids[:place]
    assert tied.ids[place] in (twin, other)
    assert tied.ties[0] == place
    assert TIE == 1e-4


@dataclass(frozen=True)
class Letters(Sampling):
    """Draws tokens of whole ASCII characters and no others."""

    letters: tuple[bool, ...] = ()

    def probabilities(self, logits_BV):
        kept_BV = super().probabilities(logits_BV) * torch.tensor(self.letters)
        return kept_BV / kept_BV.sum(dim=-1, keepdim=True)


@pytest.fixture
def spelling(tokenizer, small):
    """A text that `small` writes after "Keys" by a sampling and a prompt, which come first."""
    pieces = [tokenizer.decode([token]) for token in range(tokenizer.get_vocab_size())]
    letters = tuple(piece.isascii() and piece.isprintable() and piece != "" for piece in pieces)
    sampling = Letters(1.0, 1.0, 5, letters=letters)
    prompt = [0, *encode_text(tokenizer, "Keys")]
    free = write(small, [prompt], sampling, tokenizer=tokenizer, most=24)[0]
    assert len(free.text) > 30
    return sampling, prompt, free


def test_a_stop_text_may_span_tokens_and_is_cut_off(small, tokenizer, spelling):
    sampling, prompt, free = spelling
    pieces = [tokenizer.decode([token], skip_special_tokens=True) for token in free.ids]
    assert "".join(pieces) == free.text
    ends = [len("".join(pieces[: n + 1])) for n in range(len(pieces))]
    for token in range(6, 16):
        border = ends[token]
        stop = free.text[border - 1 : border + 2]  # the end of a token and two characters more
        first = free.text.index(stop)
        one = write(
            small, [prompt], sampling, tokenizer=tokenizer, most=24, stop_texts=["\0", stop]
        )[0]
        assert one.ending == "stop"
        assert one.text == free.text[:first]
        needed = next(n for n, end in enumerate(ends) if end >= first + len(stop)) + 1
        assert one.ids == free.ids[:needed]
        assert len(one.log_probabilities) == needed


def test_the_first_of_several_stop_texts_cuts(small, tokenizer, spelling):
    sampling, prompt, free = spelling
    stops = [free.text[20:22], free.text[5:7], free.text[12:15]]
    one = write(small, [prompt], sampling, tokenizer=tokenizer, most=24, stop_texts=stops)[0]
    assert one.text == free.text[: min(free.text.index(stop) for stop in stops)]


def test_a_stop_id_is_among_the_ids_and_not_in_the_text(small, tokenizer, spelling):
    sampling, prompt, free = spelling
    place = 7
    one = write(
        small, [prompt], sampling, tokenizer=tokenizer, most=24, stop_ids={free.ids[place]}
    )[0]
    end = free.ids.index(free.ids[place])
    assert (one.ending, one.ids) == ("end", free.ids[: end + 1])
    assert one.text == tokenizer.decode(list(free.ids[:end]), skip_special_tokens=True)


def test_autocast_changes_the_matrices_alone(small):
    """bfloat16 has 8 bits of mantissa: log-probabilities move in the second decimal."""
    prompts = draw_prompts(5)
    exact = write(small, prompts, most=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = write(small, prompts, most=8)
    for one, other in zip(rough, exact, strict=True):
        assert one.ids[0] == other.ids[0] or one.log_probabilities[0] < 0
        assert one.log_probabilities[0] == pytest.approx(other.log_probabilities[0], abs=0.1)
        assert one.log_probabilities[0] != other.log_probabilities[0]


def test_a_model_that_is_broken_is_named(make_model):
    broken = make_model()
    with torch.no_grad():
        broken.blocks[1].mlp.down.weight.fill_(math.nan)
    with pytest.raises(InputError) as caught:
        write(broken, [[0, 20], [0, 21]], first_number=40)
    assert caught.value.where == "prompt 40, token 0"


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_p": 1.5},
        {"min_p": -0.1},
        {"top_k": 0},
        {"seed": -1},
    ],
    ids=lambda bad: str(*bad),
)
def test_a_value_out_of_range_is_named(bad):
    with pytest.raises(ValueError, match=str(*bad)):
        Sampling(**bad)


def test_what_cannot_be_written_is_refused(small, tokenizer):
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        write(small, [[0], []])
    with pytest.raises(ValueError, match="0 new tokens"):
        write(small, [[0]], most=0)
    with pytest.raises(ValueError, match="need a tokenizer"):
        write(small, [[0]], stop_texts=["x"])
    with pytest.raises(ValueError, match="stop text is empty"):
        write(small, [[0]], tokenizer=tokenizer, stop_texts=[""])
    with pytest.raises(ValueError, match="batch of 0"):
        write(small, [[0]], batch=0)
    assert write(small, []) == []
