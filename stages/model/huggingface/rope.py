"""Rotary positions as a `config.json` says them, both ways.

transformers 5 reads `rope_parameters`; version 4 reads `rope_theta` and `rope_scaling`, and takes
its default base silently where `rope_theta` is missing (vllm-project/vllm#42624). Both are written.
"""

from __future__ import annotations

from typing import Any

from stages.model.config import ModelConfig, RopeScaling
from stages.model.huggingface.fields import Fields

_OPTIONAL = ("attention_factor", "mscale", "mscale_all_dim")
_KNOWN = frozenset(
    (
        *("rope_type", "type", "rope_theta", "partial_rotary_factor", "finetuned", "factor"),
        *("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
        *("beta_fast", "beta_slow", "truncate", *_OPTIONAL),
    )
)


def rope_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields of `config.json` that say how positions turn."""
    scaling = config.rope_scaling
    named = {"rope_type": "default"} if scaling is None else _scaling_fields(scaling)
    fields = {
        "rope_theta": config.rope_base,
        "rope_parameters": {**named, "rope_theta": config.rope_base},
    }
    return fields if scaling is None else {**fields, "rope_scaling": named}


def read_rope(fields: Fields, *, base: float = 10000.0) -> dict[str, Any]:
    """`rope_base` and `rope_scaling` of a shape; InputError about a kind that it cannot express."""
    given = fields.table("rope_parameters") or fields.table("rope_scaling") or Fields({}, "")
    fields.demand("partial_rotary_factor", 1.0)
    given.demand("partial_rotary_factor", 1.0)
    base = given.number("rope_theta", fields.number("rope_theta", base))
    kind = given.values.get("rope_type") or given.values.get("type") or "default"
    known = ("default", *_READERS)
    if kind not in known:
        raise fields.wrong("rope_type", f"is {kind!r}; known are {', '.join(known)}")
    _check_known(given)
    scaling = None if kind == "default" else _READERS[kind](given, fields)
    return {"rope_base": base, "rope_scaling": scaling}


def _check_known(given: Fields) -> None:
    """What we do not know may turn positions otherwise: by layer type, by axis, …"""
    strange = sorted(set(given.values) - _KNOWN)
    if strange:
        raise given.wrong(strange[0], "is not known here")


def _scaling_fields(scaling: RopeScaling) -> dict[str, Any]:
    fields: dict[str, Any] = {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling.kind == "linear":
        return fields
    fields["original_max_position_embeddings"] = scaling.original_context
    if scaling.kind == "llama3":
        return {
            **fields,
            "low_freq_factor": scaling.low_frequency,
            "high_freq_factor": scaling.high_frequency,
        }
    fields.update(beta_fast=scaling.beta_fast, beta_slow=scaling.beta_slow)
    optional = {name: getattr(scaling, name) for name in _OPTIONAL}
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def _linear(given: Fields, fields: Fields) -> dict[str, Any]:
    return {"kind": "linear", "factor": given.number("factor")}


def _llama3(given: Fields, fields: Fields) -> dict[str, Any]:
    return {
        "kind": "llama3",
        "factor": given.number("factor"),
        "original_context": given.size("original_max_position_embeddings"),
        "low_frequency": given.number("low_freq_factor"),
        "high_frequency": given.number("high_freq_factor"),
    }


def _yarn(given: Fields, fields: Fields) -> dict[str, Any]:
    given.demand("truncate", True)
    context = fields.size("max_position_embeddings")
    original = given.size("original_max_position_embeddings", context)
    # As DeepSeek's configs do: without a factor, it is the ratio of the two lengths.
    return {
        "kind": "yarn",
        "factor": given.number("factor", context / original),
        "original_context": original,
        "beta_fast": given.number("beta_fast", 32.0),
        "beta_slow": given.number("beta_slow", 1.0),
        **{name: given.number(name, None) or None for name in _OPTIONAL},  # 0 means none
    }


_READERS = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}
