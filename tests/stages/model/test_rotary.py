"""Rotary frequencies against `transformers`' own, and what a rotation must keep."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.model.config import RopeScaling
from stages.model.layers import (
    compute_rotation,
    default_positions,
    rotary_frequencies,
    rotate,
    yarn_attention_factor,
)

YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 128}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "original_max_position_embeddings": 128,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(
    ("scaling", "theirs"),
    [
        ({"factor": 8, "original_context": 128}, YARN),
        (
            {"factor": 8, "original_context": 128, "beta_fast": 20, "beta_slow": 2},
            {**YARN, "beta_fast": 20, "beta_slow": 2},
        ),
        (
            {"factor": 8, "original_context": 128, "mscale": 0.7, "mscale_all_dim": 1.3},
            {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3},
        ),
        (
            {"factor": 8, "original_context": 128, "attention_factor": 1.25},
            {**YARN, "attention_factor": 1.25},
        ),
        (  # both bounds are the first channel
            {"factor": 8, "original_context": 6},
            {**YARN, "original_max_position_embeddings": 6},
        ),
        ({"kind": "linear", "factor": 8}, {"rope_type": "linear", "factor": 8.0}),
        ({"kind": "llama3", "factor": 8, "original_context": 128}, LLAMA3),
    ],
)
def test_stretched_frequencies_are_those_of_transformers(base, width, scaling, theirs):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=4 * width,
        num_attention_heads=4,
        max_position_embeddings=1024,
        rope_parameters={**theirs, "rope_theta": base},
    )
    expected, factor = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config)
    ours = RopeScaling(**scaling)
    torch.testing.assert_close(rotary_frequencies(width, base, ours), expected, rtol=1e-6, atol=0)
    at_zero = compute_rotation(torch.zeros(1, 1), width, base, ours)
    assert at_zero.cos_B1LC[0, 0, 0, 0].item() == pytest.approx(factor, rel=1e-6)


def test_yarn_keeps_fast_channels_and_stretches_slow_ones():
    # Peng et al. 2023, eqs. 17-18: with alpha 1 and beta 32, a channel that turns more than 32
    # times over the original context stays, one that turns less than once is stretched by it all.
    scaling = RopeScaling(factor=4, original_context=4096)
    plain, stretched = rotary_frequencies(128, 1e4), rotary_frequencies(128, 1e4, scaling)
    turns = 4096 * plain / (2 * math.pi)
    # Bounds are rounded to whole channels, outwards: one channel is a factor of 1e4^(1/64) = 1.155
    fast, slow = turns > 32 * 1.16, turns < 1 / 1.16
    assert fast.sum() > 15
    assert slow.sum() > 15
    assert torch.equal(stretched[fast], plain[fast])
    torch.testing.assert_close(stretched[slow], plain[slow] / 4)
    between = (stretched < plain) & (stretched > plain / 4)
    assert between.sum() > 15


def test_yarn_raises_cos_and_sin_by_a_tenth_of_the_logarithm():
    # Peng et al. 2023, eq. 22: sqrt(1/t) = 0.1 ln(s) + 1; for s = 16 it is 1.2773
    assert yarn_attention_factor(RopeScaling(factor=16, original_context=8)) == pytest.approx(
        1.2773, abs=5e-5
    )


def test_deepseeks_yarn_multiplies_the_scores_instead():
    # DeepSeek-V3's config: factor 40, mscale = mscale_all_dim = 1: cos and sin stay, scores grow
    # by (0.1 ln 40 + 1)² = 1.873854
    scaling = RopeScaling(factor=40, original_context=4096, mscale=1.0, mscale_all_dim=1.0)
    rotation = compute_rotation(torch.zeros(1, 1), 64, 1e4, scaling)
    assert rotation.cos_B1LC[0, 0, 0, 0] == 1
    assert rotation.score_factor == pytest.approx(1.873854, abs=5e-6)
    assert compute_rotation(torch.zeros(1, 1), 64, 1e4).score_factor == 1


@settings(max_examples=30, deadline=None)
@given(
    first=st.integers(0, 200),
    second=st.integers(0, 200),
    shift=st.integers(0, 5000),
    width=st.sampled_from([2, 8, 30]),
)
def test_scores_depend_on_the_distance_alone(first, second, shift, width):
    generator = torch.Generator().manual_seed(width)
    query, key = torch.randn(2, 1, 1, 1, width, generator=generator)

    def score(query_position, key_position):
        turned = [
            rotate(x, compute_rotation(torch.tensor([[position]]), width, 10_000.0))
            for x, position in ((query, query_position), (key, key_position))
        ]
        return (turned[0] * turned[1]).sum()

    # angles of thousands of radians in float32: 5000 · 2^-24
    torch.testing.assert_close(
        score(first, second), score(first + shift, second + shift), rtol=0, atol=2e-2
    )


def test_partial_rotation_turns_the_first_channels_and_leaves_the_rest():
    x = torch.randn(1, 2, 5, 12, generator=torch.Generator().manual_seed(0))
    rotation = compute_rotation(torch.arange(5)[None], 4, 100.0)
    turned = rotate(x, rotation)
    assert torch.equal(turned[..., 4:], x[..., 4:])
    assert torch.equal(turned[..., :4], rotate(x[..., :4], rotation))
    # channel 0 turns with channel 2, by the position in radians (frequency 100^0 = 1)
    expected = x[0, 0, 3, 0] * math.cos(3) - x[0, 0, 3, 2] * math.sin(3)
    torch.testing.assert_close(turned[0, 0, 3, 0], expected)


def test_positions_restart_at_each_piece():
    documents_BL = torch.tensor([[0, 0, 0, 1, 1, 2, -1, -1], [7, 7, 7, 7, 7, 7, 7, 7]])
    assert default_positions(documents_BL, documents_BL).tolist() == [
        [0, 1, 2, 0, 1, 0, 0, 1],
        [0, 1, 2, 3, 4, 5, 6, 7],
    ]
    assert default_positions(documents_BL, None).tolist() == [list(range(8))] * 2
