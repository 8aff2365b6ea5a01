"""Texts that come and go: each as if it were written alone, whatever shares its batch."""

import random

import pytest
from published_shapes import OWN, SHAPES

from artifacts_schema.errors import InputError
from stages.scoring.continuous import ContinuousBatch
from stages.scoring.generation import Generator, Sampling

EVERY = {**SHAPES, **OWN}


@pytest.fixture
def small(make_model):
    """In float64, where rounding changes no choice; a context of 64."""
    return make_model(init_std=0.3).double()


def draw_jobs(count, seed=0):
    """Prompts with the sampling and most tokens of each."""
    draw = random.Random(seed)
    return [
        (
            [draw.randrange(3, 61) for _ in range(draw.randint(1, 30))],
            Sampling(draw.choice([0, 0.7, 1.0]), draw.choice([0.9, 1.0]), seed=draw.randrange(99)),
            draw.randint(1, 20),
        )
        for _ in range(count)
    ]


def alone(model, prompt, sampling, most, stop=()):
    with Generator(model) as generator:
        return list(generator.stream(prompt, sampling, max_new_tokens=most, stop_ids=stop))


def ids_of(text, prompt, stop=()):
    return [one for one in text.row.ids[len(prompt) :] if one not in stop]


def write_all(batch, jobs, every=1):
    """Add a job every `every` steps where a place is free; the texts, in the order of the jobs."""
    texts, step = [], 0
    while len(texts) < len(jobs) or len(batch):
        if len(texts) < len(jobs) and len(batch) < batch.places and step % every == 0:
            prompt, sampling, most = jobs[len(texts)]
            texts.append(batch.add(prompt, sampling, max_new_tokens=most))
        batch.step()
        step += 1
    return texts


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("places", [1, 4])
def test_each_text_is_what_it_is_alone(small, places, every):
    jobs = draw_jobs(20)
    stop = {7, 11, 30}
    with Generator(small) as generator:
        batch = ContinuousBatch(generator, places=places, stop_ids=stop)
        texts = write_all(batch, jobs, every)
    for text, (prompt, sampling, most) in zip(texts, jobs, strict=True):
        expected = alone(small, prompt, sampling, most, stop)
        assert ids_of(text, prompt, stop) == expected
        assert text.tokens == len(expected)
    assert {text.ending for text in texts} == {"end", "length"}


@pytest.mark.parametrize("name", EVERY)
def test_every_architecture_writes_what_it_writes_alone(name):
    from stages.model.decoder import Decoder

    model = Decoder(EVERY[name], seed=3).double().eval()
    jobs = [(prompt, sampling, 5) for prompt, sampling, _ in draw_jobs(5, seed=2)]
    with Generator(model) as generator:
        texts = write_all(ContinuousBatch(generator, places=3), jobs, every=2)
    for text, (prompt, sampling, most) in zip(texts, jobs, strict=True):
        assert ids_of(text, prompt) == alone(model, prompt, sampling, most)


def test_texts_beyond_the_context_are_what_they_are_alone(make_model):
    model = make_model(init_std=0.3, context=24).double()
    jobs = [(prompt, sampling, 30) for prompt, sampling, _ in draw_jobs(5)]
    with Generator(model) as generator:
        texts = write_all(ContinuousBatch(generator, places=4), jobs, every=2)
    for text, (prompt, sampling, most) in zip(texts, jobs, strict=True):
        assert ids_of(text, prompt) == alone(model, prompt, sampling, most)


def test_a_text_that_is_removed_leaves_its_place_and_changes_no_other(small):
    jobs = [(prompt, sampling, 20) for prompt, sampling, _ in draw_jobs(3)]
    with Generator(small) as generator:
        batch = ContinuousBatch(generator, places=3)
        texts = [batch.add(prompt, one, max_new_tokens=most) for prompt, one, most in jobs]
        unread = len(batch)
        batch.remove(texts[0])
        batch.step()
        batch.remove(texts[1])
        assert (unread, len(batch)) == (3, 1)
        while len(batch):
            batch.step()
    prompt, sampling, most = jobs[2]
    assert ids_of(texts[2], prompt) == alone(small, prompt, sampling, most)
    assert texts[1].tokens == 1


def test_the_next_turn_reads_its_new_tokens_alone(small, monkeypatch):
    read = []
    whole = Generator._pass

    def count(self, texts, cache):
        read.append(max(map(len, texts)))
        return whole(self, texts, cache)

    first = [5, 9] * 15
    sampling = Sampling(0)
    with Generator(small) as generator:
        batch = ContinuousBatch(generator, places=2)
        (text,) = write_all(batch, [(first, sampling, 6)])
        turn = [*text.row.ids, 20, 21]
        monkeypatch.setattr(Generator, "_pass", count)
        # Both go on from the same text, which stays as it is.
        texts = write_all(batch, [(turn, sampling, 6), ([*first, 40, 41], sampling, 6)])
        monkeypatch.undo()
    # The last token of an answer was chosen, not read.
    assert sorted(read) == [2, 3]
    assert ids_of(texts[0], turn) == alone(small, turn, sampling, 6)
    assert ids_of(texts[1], [*first, 40, 41]) == alone(small, [*first, 40, 41], sampling, 6)


def test_prompts_beyond_a_pass_wait_for_the_next_step(small):
    with Generator(small) as generator:
        generator.read_tokens = 40
        batch = ContinuousBatch(generator, places=4)
        texts = [batch.add([5] * 30, Sampling(0), max_new_tokens=9) for _ in range(3)]
        batch.step()
        assert [text.tokens for text in texts] == [1, 0, 0]
        batch.step()
        assert [text.tokens for text in texts] == [2, 1, 0]
        batch.step()
        assert [text.tokens for text in texts] == [3, 2, 1]


def test_a_text_that_fails_ends_no_other(small, monkeypatch):
    whole = Generator._pass

    def break_first(self, texts, cache):
        logits_BV = whole(self, texts, cache)
        logits_BV[[text == [5, 60] for text in map(list, texts)]] = float("nan")
        return logits_BV

    monkeypatch.setattr(Generator, "_pass", break_first)
    with Generator(small) as generator:
        batch = ContinuousBatch(generator, places=2)
        broken, kept = (
            batch.add(prompt, Sampling(0), max_new_tokens=4) for prompt in ([5, 60], [5, 6])
        )
        batch.step()
        assert isinstance(broken.failure, InputError)
        assert len(batch) == 1
        while len(batch):
            batch.step()
    assert ids_of(kept, [5, 6]) == alone(small, [5, 6], Sampling(0), 4)
