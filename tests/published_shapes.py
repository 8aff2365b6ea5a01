"""Tiny shapes, one or more for each family, that use all of what the family has."""

from __future__ import annotations

from typing import Any

from stages.model.config import Experts, LatentAttention, ModelConfig, RopeScaling

TINY: dict[str, Any] = {
    "vocabulary_size": 61,
    "width": 32,
    "layers": 4,
    "heads": 4,
    "kv_heads": 2,
    "mlp_width": 48,
    "context": 64,
    "rope_base": 500.0,
    "init_std": 0.2,
    "norm_epsilon": 1e-5,
}
YARN = RopeScaling(factor=4.0, original_context=16)
DEEPSEEK_YARN = RopeScaling(
    factor=40.0, original_context=4096, mscale=0.707, mscale_all_dim=1.0, beta_fast=16.0
)
LLAMA3 = RopeScaling(
    kind="llama3", factor=8.0, original_context=16, low_frequency=1.0, high_frequency=4.0
)
LATENT = LatentAttention(query_rank=20, kv_rank=12, plain_width=10, rotary_width=8, value_width=6)
PLAIN_LATENT = LatentAttention(kv_rank=12, plain_width=10, rotary_width=8, value_width=6)
EXPERTS = Experts(
    experts=8,
    chosen=3,
    shared=2,
    width=16,
    first=1,
    groups=4,
    chosen_groups=2,
    scale=2.5,
    normalise=True,
)


def shape(**changes: Any) -> ModelConfig:
    """The tiny shape with changes; the kv heads of latent attention are its heads."""
    values = {**TINY, **changes}
    if "latent" in changes:
        values["kv_heads"] = values["heads"]
    return ModelConfig(**values)


SHAPES: dict[str, ModelConfig] = {
    "llama": shape(),
    "llama tied, free head width": shape(tied_embeddings=True, head_width=12),
    "llama one head of keys": shape(kv_heads=1),
    "llama yarn": shape(rope_scaling=YARN),
    "llama linear": shape(rope_scaling=RopeScaling(kind="linear", factor=4.0)),
    "llama 3.1": shape(rope_scaling=LLAMA3),
    "qwen3": shape(qk_norm="head", head_width=16, norm_epsilon=1e-6),
    "qwen3 tied, windows": shape(
        qk_norm="head", window=5, window_pattern="SSL", tied_embeddings=True
    ),
    "qwen3 yarn": shape(qk_norm="head", rope_scaling=YARN.model_copy(update={"factor": 2.0})),
    "olmo2": shape(qk_norm="width", norm="output", norm_epsilon=1e-6, tied_embeddings=False),
    "smollm3": shape(nope_every=4, tied_embeddings=True),
    "smollm3 untied, windows": shape(nope_every=2, window=4, window_pattern="LS"),
    "smollm3 heads that do not divide the width": shape(width=30, head_width=8),
    "deepseek_v3": shape(latent=LATENT, experts=EXPERTS, tied_embeddings=False),
    "deepseek_v3 plain queries, no normalising": shape(
        latent=PLAIN_LATENT,
        experts=EXPERTS.model_copy(
            update={"normalise": False, "groups": 1, "chosen_groups": 1, "first": 0}
        ),
    ),
    "deepseek_v3 yarn": shape(latent=LATENT, experts=EXPERTS, rope_scaling=DEEPSEEK_YARN),
    "deepseek_v3 without experts": shape(latent=LATENT, tied_embeddings=False),
}
"""By name, whose first word is the family."""

OWN: dict[str, ModelConfig] = {
    "half of the channels turn": shape(rope_share=0.5),
    "soft-capped logits": shape(logit_softcap=15.0, tied_embeddings=False),
    "experts without latent attention": shape(experts=EXPERTS, qk_norm="head"),
    "windows and norms on what is added": shape(norm="output", window=6, window_pattern="SL"),
}
"""What no native class expresses."""
