import pytest
import torch

from stages.scoring.generation import Generator, Sampling


def generate(model, prompt, *, max_new_tokens, stop=(), temperature=0.0, seed=0):
    """Ids that follow, over a cache, of the whole distribution; the model keeps its attention."""
    sampling = Sampling(temperature, top_p=1.0, seed=seed)
    with Generator(model) as generator:
        return list(
            generator.stream(prompt, sampling, max_new_tokens=max_new_tokens, stop_ids=stop)
        )


def test_greedy_takes_the_likeliest_token_each_time(model):
    ids = [0, 20, 30]
    written = generate(model, ids, max_new_tokens=6)
    for token in written:
        with torch.no_grad():
            assert token == int(model(torch.tensor([ids]))[0, -1].argmax())
        ids = [*ids, token]
    assert len(written) == 6


def test_generation_ends_before_a_stop_token(model):
    free = generate(model, [0, 20, 30], max_new_tokens=6)
    stopped = generate(model, [0, 20, 30], max_new_tokens=6, stop={free[3]})
    assert stopped == free[: free.index(free[3])]


def test_sampling_follows_the_seed(model):
    def drawn(seed):
        return generate(model, [0], max_new_tokens=8, temperature=1.0, seed=seed)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_sampled_tokens_have_the_probabilities_of_the_model(model):
    # 400 draws of one token; the likeliest token's share is within 4 standard deviations.
    with torch.no_grad():
        p = torch.softmax(model(torch.tensor([[0, 9]]))[0, -1], dim=-1)
    likeliest = int(p.argmax())
    drawn = [
        generate(model, [0, 9], max_new_tokens=1, temperature=1.0, seed=seed)[0]
        for seed in range(400)
    ]
    expected = float(p[likeliest])
    tolerance = 4 * (expected * (1 - expected) / 400) ** 0.5
    assert drawn.count(likeliest) / 400 == pytest.approx(expected, abs=tolerance)


def test_a_prompt_longer_than_the_context_still_continues(model):
    assert len(generate(model, [0] * 100, max_new_tokens=2)) == 2


def test_an_empty_prompt_is_refused(model):
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        generate(model, [], max_new_tokens=1)
