"""A decoder in words, for the model card."""

from __future__ import annotations

from collections.abc import Iterator

from stages.model.config import ModelConfig, RopeScaling
from stages.model.count import count_parameters


def architecture(model: ModelConfig, dtype: str) -> str:
    """A paragraph: parameters, then what the decoder is made of, each part as its config says.

    `dtype` is the type of the released weights, in words.
    """
    count = count_parameters(model)
    active = f" ({count.active:,} active for a token)" if model.experts is not None else ""
    first = (
        f"A decoder of {count.total:,} parameters{active}, {count.without_embeddings:,} without "
        f"embeddings: {model.layers} layers of width {model.width}"
    )
    tied = "tied to the output projection" if model.tied_embeddings else "not tied"
    last = (
        f"Context {model.context:,} tokens, vocabulary {model.vocabulary_size:,}, embeddings {tied}"
        f", weights in {dtype}."
    )
    return f"{first}, {', '.join(_parts(model))}. {last}"


def _parts(model: ModelConfig) -> Iterator[str]:
    if model.latent is None:
        yield (
            f"{model.heads} query heads over {model.kv_heads} key and value heads of "
            f"{model.head_width} channels"
        )
    else:
        yield f"{model.heads} heads of latent attention (rank {model.latent.kv_rank})"
    if model.qk_norm != "none":
        over = "each head" if model.qk_norm == "head" else "all heads"
        yield f"queries and keys normalised over {over}"
    if model.window is not None:
        yield f"sliding windows of {model.window:,} tokens (layers {model.window_pattern})"
    yield f"SwiGLU of {model.mlp_width}"
    if model.experts is not None:
        experts = model.experts
        yield (
            f"from layer {experts.first} on {experts.chosen} of {experts.experts} experts of "
            f"{experts.width} and {experts.shared} shared"
        )
    yield "RMSNorm" if model.norm == "pre" else "RMSNorm on what each part adds"
    yield _positions(model)
    if model.logit_softcap is not None:
        yield f"logits capped at {model.logit_softcap:g}"


def _positions(model: ModelConfig) -> str:
    words = f"rotary positions of base {model.rope_base:g}"
    if model.rope_share != 1:
        words += f" on {model.rope_share:.0%} of the channels"
    if model.rope_scaling is not None:
        words += f" {_stretched(model.rope_scaling)}"
    return words + (f" except in every {model.nope_every}th layer" if model.nope_every else "")


def _stretched(scaling: RopeScaling) -> str:
    names = {"yarn": "YaRN", "linear": "interpolation", "llama3": "Llama 3.1's method"}
    return f"stretched {scaling.factor:g} times by {names[scaling.kind]}"
