"""Generation from a cache, as without one, of every architecture as our own class."""

from __future__ import annotations

import pytest
import torch
from published_shapes import OWN, SHAPES
from transformers import DynamicCache

from stages.model.huggingface.auto_classes import IngotConfig, IngotForCausalLM

EVERY = {**SHAPES, **OWN}
TOKENS_BL = torch.randint(3, 61, (3, 12), generator=torch.Generator().manual_seed(2))
LENGTH = 24
WINDOWS = "windows and norms on what is added"


@pytest.fixture
def own(drawn):
    """`own(name)` → the decoder of a shape as `IngotForCausalLM`."""

    def make(name):
        model = drawn(EVERY[name])
        loaded = IngotForCausalLM(
            IngotConfig.from_model_config(model.config, eos_token_id=None, pad_token_id=2)
        )
        loaded.model.load_state_dict(model.state_dict())
        return loaded.eval()

    return make


def written(model, mask_BL=None, **how):
    how = {"max_new_tokens": LENGTH - 12, "do_sample": False, "pad_token_id": 2, **how}
    return model.generate(TOKENS_BL, attention_mask=mask_BL, eos_token_id=None, **how)


def padded():
    """Rows that begin with padding, of different lengths."""
    mask_BL = torch.ones_like(TOKENS_BL)
    mask_BL[0, :5] = 0
    mask_BL[2, :1] = 0
    return mask_BL


@pytest.mark.parametrize("name", EVERY)
def test_what_is_written_is_the_same_with_a_cache_and_without(own, name):
    model = own(name)
    for mask_BL in (None, padded()):
        whole, cached = (written(model, mask_BL, use_cache=use) for use in (False, True))
        assert torch.equal(whole, cached)
        assert whole.shape[1] == LENGTH


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("mask", ["none", "padded"])
def test_logits_of_parts_are_those_of_the_whole_row(own, name, mask):
    """A prompt, a few tokens at once, then one by one: the windows reach into what was before."""
    model = own(name)
    mask_BL = None if mask == "none" else padded()
    with torch.no_grad():
        whole = model(TOKENS_BL, attention_mask=mask_BL).logits
        cache, start, found = DynamicCache(config=model.config), 0, []
        for stop in (4, 9, 10, 11, 12):
            own_BL = None if mask_BL is None else mask_BL[:, :stop]
            given = TOKENS_BL[:, start:stop]
            result = model(given, attention_mask=own_BL, past_key_values=cache)
            assert result.past_key_values is cache
            found.append(result.logits)
            start = stop
    kept = (torch.ones_like(TOKENS_BL) if mask_BL is None else mask_BL).bool()
    torch.testing.assert_close(torch.cat(found, 1)[kept], whole[kept], atol=1e-5, rtol=0)


def test_a_call_costs_its_own_tokens_alone(own, monkeypatch):
    model = own(WINDOWS)
    seen = []
    forward = model.model.forward
    monkeypatch.setattr(
        model.model, "forward", lambda *given: seen.append(given[0].shape[1]) or forward(*given)
    )
    written(model)
    assert seen == [12, *[1] * 11]
    assert model(TOKENS_BL).past_key_values is None
    assert model(TOKENS_BL, use_cache=True).past_key_values.get_seq_length() == 12


def test_a_cache_leaves_nothing_behind_in_the_decoder(own):
    """Asked by itself afterwards, the decoder has a mask of its own tokens."""
    model = own(WINDOWS)
    with torch.no_grad():
        before = model.model(TOKENS_BL)
        written(model)
        assert torch.equal(model.model(TOKENS_BL), before)


def test_beams_take_their_rows_of_the_cache_along(own):
    model = own("soft-capped logits")
    whole, cached = (written(model, padded(), use_cache=use, num_beams=3) for use in (False, True))
    assert torch.equal(whole, cached)


def test_it_goes_on_from_a_cache_that_it_gave(own):
    model = own(WINDOWS)
    first = written(model, max_new_tokens=6, return_dict_in_generate=True)
    again = model.generate(
        first.sequences,
        past_key_values=first.past_key_values,
        max_new_tokens=6,
        do_sample=False,
        eos_token_id=None,
    )
    assert torch.equal(again, written(model, max_new_tokens=12))
