"""Shapes of published models, by name: the numbers of their `config.json` files.

The vocabulary is left out, which the tokenizer decides. Each leads, by its shape alone, to the
native class of its family (`stages.model.huggingface`).
"""

from __future__ import annotations

from typing import Any

_LLAMA: dict[str, Any] = {"norm_epsilon": 1e-5, "tied_embeddings": False}
_SMOLLM2: dict[str, Any] = {**_LLAMA, "context": 8192, "tied_embeddings": True}
_QWEN3: dict[str, Any] = {
    "qk_norm": "head",
    "head_width": 128,
    "kv_heads": 8,
    "rope_base": 1e6,
    "norm_epsilon": 1e-6,
    "context": 40960,
}
_OLMO2: dict[str, Any] = {
    "qk_norm": "width",
    "norm": "output",
    "rope_base": 5e5,
    "norm_epsilon": 1e-6,
    "context": 4096,
    "tied_embeddings": False,
}
_LATENT: dict[str, Any] = {
    "kv_rank": 512,
    "plain_width": 128,
    "rotary_width": 64,
    "value_width": 128,
}


def _sizes(width: int, layers: int, heads: int, kv_heads: int, mlp_width: int) -> dict[str, Any]:
    return {
        "width": width,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "mlp_width": mlp_width,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "llama-2-7b": {**_LLAMA, **_sizes(4096, 32, 32, 32, 11008), "context": 4096},
    "llama-3-8b": {
        **_LLAMA,
        **_sizes(4096, 32, 32, 8, 14336),
        "context": 8192,
        "rope_base": 5e5,
    },
    "llama-3-70b": {
        **_LLAMA,
        **_sizes(8192, 80, 64, 8, 28672),
        "context": 8192,
        "rope_base": 5e5,
    },
    "llama-3.2-1b": {
        **_LLAMA,
        **_sizes(2048, 16, 32, 8, 8192),
        "context": 131072,
        "rope_base": 5e5,
        "rope_scaling": {"kind": "llama3", "factor": 32.0, "original_context": 8192},
        "tied_embeddings": True,
    },
    "tinyllama-1.1b": {**_LLAMA, **_sizes(2048, 22, 32, 4, 5632), "context": 2048},
    "smollm2-135m": {
        **_SMOLLM2,
        **_sizes(576, 30, 9, 3, 1536),
        "rope_base": 1e5,
        "init_std": 0.041666666666666664,
    },
    "smollm2-360m": {**_SMOLLM2, **_sizes(960, 32, 15, 5, 2560), "rope_base": 1e5},
    "smollm2-1.7b": {**_SMOLLM2, **_sizes(2048, 24, 32, 32, 8192), "rope_base": 1.3e5},
    "qwen3-0.6b": {**_QWEN3, **_sizes(1024, 28, 16, 8, 3072)},
    "qwen3-1.7b": {**_QWEN3, **_sizes(2048, 28, 16, 8, 6144)},
    "qwen3-4b": {**_QWEN3, **_sizes(2560, 36, 32, 8, 9728)},
    "qwen3-8b": {**_QWEN3, **_sizes(4096, 36, 32, 8, 12288), "tied_embeddings": False},
    "olmo-2-1b": {**_OLMO2, **_sizes(2048, 16, 16, 16, 8192)},
    "olmo-2-7b": {**_OLMO2, **_sizes(4096, 32, 32, 32, 11008)},
    "olmo-2-13b": {**_OLMO2, **_sizes(5120, 40, 40, 40, 13824)},
    "olmo-2-32b": {**_OLMO2, **_sizes(5120, 64, 40, 8, 27648)},
    "smollm3-3b": {
        **_sizes(2048, 36, 16, 4, 11008),
        "nope_every": 4,
        "rope_base": 5e6,
        "norm_epsilon": 1e-6,
        "context": 65536,
    },
    "deepseek-v3": {
        **_sizes(7168, 61, 128, 128, 18432),
        "latent": {**_LATENT, "query_rank": 1536},
        "experts": {
            "experts": 256,
            "chosen": 8,
            "shared": 1,
            "width": 2048,
            "first": 3,
            "groups": 8,
            "chosen_groups": 4,
            "scale": 2.5,
        },
        "rope_scaling": {
            "factor": 40.0,
            "original_context": 4096,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        "context": 163840,
        "norm_epsilon": 1e-6,
        "tied_embeddings": False,
    },
    "moonlight-16b-a3b": {
        **_sizes(2048, 27, 16, 16, 11264),
        "latent": _LATENT,
        "experts": {
            "experts": 64,
            "chosen": 6,
            "shared": 2,
            "width": 1408,
            "first": 1,
            "scale": 2.446,
        },
        "rope_base": 5e4,
        "context": 8192,
        "norm_epsilon": 1e-5,
        "tied_embeddings": False,
    },
}
"""Fields of a shape by the name of a published model."""
