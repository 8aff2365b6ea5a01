"""Latent attention against `transformers`' DeepSeek-V3, and against keys and values written out."""

import pytest
import torch

from stages.model.attention import attention_backend
from stages.model.config import ModelConfig, RopeScaling
from stages.model.decoder import Decoder
from stages.model.layers import LatentAttention, compute_rotation

LATENT = {"query_rank": 20, "kv_rank": 12, "plain_width": 8, "rotary_width": 6, "value_width": 10}
DEEPSEEK_YARN = RopeScaling(factor=40, original_context=64, mscale=1.0, mscale_all_dim=0.7)


NAMES = {
    "query": "q_proj",
    "query_down": "q_a_proj",
    "query_norm": "q_a_layernorm",
    "query_up": "q_b_proj",
    "kv_down": "kv_a_proj_with_mqa",
    "kv_norm": "kv_a_layernorm",
    "kv_up": "kv_b_proj",
    "output": "o_proj",
}


def tiny(**changes) -> ModelConfig:
    values = {"vocabulary_size": 50, "width": 32, "layers": 1, "heads": 4, "latent": LATENT}
    return ModelConfig(**{**values, "init_std": 0.3, **changes})


def filled(config: ModelConfig) -> LatentAttention:
    """The attention of a layer, with norms that are not 1."""
    layer = LatentAttention(config, attention_backend("sdpa"))
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.normal_(1.0 if weight.dim() == 1 else 0.0, 0.3, generator=generator)
    return layer


@pytest.mark.parametrize("scaling", [None, DEEPSEEK_YARN])
@pytest.mark.parametrize("query_rank", [20, None])
def test_it_is_deepseeks_attention(query_rank, scaling):
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
        DeepseekV3Attention,
        DeepseekV3RotaryEmbedding,
    )

    config = tiny(latent={**LATENT, "query_rank": query_rank}, rope_scaling=scaling)
    rope = {"rope_type": "default"}
    if scaling is not None:
        rope = {
            "rope_type": "yarn",
            "factor": 40.0,
            "original_max_position_embeddings": 64,
            "mscale": 1.0,
            "mscale_all_dim": 0.7,
        }
    theirs_config = DeepseekV3Config(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=query_rank,
        kv_lora_rank=12,
        qk_nope_head_dim=8,
        qk_rope_head_dim=6,
        v_head_dim=10,
        max_position_embeddings=64 * 40,
        rope_parameters={**rope, "rope_theta": 10_000.0},
        rope_interleave=False,
        attn_implementation="eager",
    )
    ours, theirs = filled(config), DeepseekV3Attention(theirs_config, layer_idx=0).eval()
    theirs.load_state_dict(
        {f"{NAMES[n.split('.')[0]]}.weight": weight for n, weight in ours.state_dict().items()}
    )
    x_BLD = torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(1))
    positions_BL = torch.arange(9).expand(2, 9) * 17
    turns = DeepseekV3RotaryEmbedding(theirs_config)(x_BLD, positions_BL)
    causal = torch.full((9, 9), float("-inf")).triu(1)[None, None]
    with torch.no_grad():
        expected, _ = theirs(x_BLD, turns, causal)
        rotation = compute_rotation(positions_BL, 6, 10_000.0, scaling)
        torch.testing.assert_close(ours(x_BLD, rotation, None), expected, atol=2e-6, rtol=1e-5)


def test_heads_share_the_key_of_positions():
    """DeepSeek-V2, eqs. 9-19, written out head by head for one query."""
    config = tiny(latent={**LATENT, "query_rank": None})
    layer = filled(config)
    x_LD = torch.randn(5, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = layer(x_LD[None], None, None)[0, -1]
        narrow, shared = layer.kv_down(x_LD).split((12, 6), dim=-1)
        both = layer.kv_up(layer.kv_norm(narrow)).view(5, 4, 18)
        query = layer.query(x_LD[-1]).view(4, 14)
        mixed = []
        for head in range(4):
            scores = both[:, head, :8] @ query[head, :8] + shared @ query[head, 8:]
            mixed.append(torch.softmax(scores / 14**0.5, dim=0) @ both[:, head, 8:])
        torch.testing.assert_close(found, layer.output(torch.cat(mixed)), atol=1e-5, rtol=1e-5)


def test_packed_documents_give_the_logits_of_documents_apart():
    model = Decoder(tiny(layers=2), seed=1)
    generator = torch.Generator().manual_seed(5)
    pieces = [torch.randint(50, (1, length), generator=generator) for length in (5, 9)]
    documents_BL = torch.tensor([[0] * 5 + [1] * 9])
    with torch.no_grad():
        packed = model(torch.cat(pieces, dim=1), documents_BL=documents_BL)
        apart = torch.cat([model(piece) for piece in pieces], dim=1)
    torch.testing.assert_close(packed, apart, atol=1e-5, rtol=1e-5)
