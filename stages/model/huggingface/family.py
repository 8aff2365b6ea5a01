"""What a family is: a native class of `transformers`, and how a decoder is one of its models.

The values of a published `config.json` are each read as the type that they must have. Rotary
positions: transformers 5 reads `rope_parameters`; version 4 reads `rope_theta` and
`rope_scaling`, and takes its default base silently where `rope_theta` is missing
(vllm-project/vllm#42624). Both are written. A weight of the decoder says which published tensors
hold it.

Shapes: R rows, D width, E experts.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.model.config import ModelConfig, RopeScaling

_REQUIRED = object()
LARGEST = 2**31 - 1


class Fields:
    """A `config.json` that nobody vouches for; every InputError names the field and the file.

    Null counts as absent, as `transformers` writes what is not set.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where
        self.read: set[str] = set()

    def size(
        self, name: str, default: Any = _REQUIRED, *, least: int = 1, most: int = LARGEST
    ) -> Any:
        """A whole number from `least` to `most`; `default` (None, too) where it is absent."""
        return self._checked(
            name,
            default,
            lambda value: type(value) is int and least <= value <= most,
            f"not a whole number in {least} … {most}",
        )

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """A finite number; `default` (None, too) where it is absent."""
        value = self._checked(name, default, _is_float, "not a number")
        return value if value is default else float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false; `default` where it is absent."""
        what = "neither true nor false"
        return bool(self._checked(name, default, lambda value: isinstance(value, bool), what))

    def sequence(self, name: str) -> Sequence[Any] | None:
        """A list, None where it is absent."""
        return self._checked(
            name, None, lambda value: isinstance(value, list | tuple), "not a list"
        )

    def table(self, name: str) -> Fields | None:
        """A table in the table, None where it is absent or empty."""
        value = self._checked(name, None, lambda value: isinstance(value, Mapping), "not a table")
        return Fields(value, f"{self.where}: {name}") if value else None

    def demand(self, name: str, expected: Any, *, absent: Any = None) -> None:
        """InputError unless the field is `expected`; an absent one counts as `absent`."""
        value = self._read(name, expected if absent is None else absent)
        if value != expected:
            raise self.wrong(name, f"is {_shorten(value)}, only {expected!r} can be expressed")

    def wrong(self, name: str, what: str) -> InputError:
        """The error to raise about a field."""
        return InputError(f"{name} {what}", where=self.where)

    def _checked(self, name: str, default: Any, is_valid: Callable[[Any], bool], what: str) -> Any:
        value = self._read(name, default)
        if value is not default and not is_valid(value):
            raise self.wrong(name, f"is {_shorten(value)}, {what}")
        return value

    def _read(self, name: str, default: Any) -> Any:
        self.read.add(name)
        value = self.values.get(name)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise self.wrong(name, "is missing")
        return default


def _is_float(value: Any) -> bool:
    """Whether it is a number that a float holds; JSON has larger whole numbers."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


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
    rope = fields.table("rope_parameters") or fields.table("rope_scaling") or Fields({}, "")
    fields.demand("partial_rotary_factor", 1.0)
    rope.demand("partial_rotary_factor", 1.0)
    base = rope.number("rope_theta", fields.number("rope_theta", base))
    kind = rope.values.get("rope_type") or rope.values.get("type") or "default"
    known = ("default", *_READERS)
    if kind not in known:
        raise fields.wrong("rope_type", f"is {kind!r}; known are {', '.join(known)}")
    # An unknown field may change the positions by layer type, by axis, …
    if unknown := sorted(set(rope.values) - _KNOWN):
        raise rope.wrong(unknown[0], "is not known here")
    scaling = None if kind == "default" else _READERS[kind](rope, fields)
    return {"rope_base": base, "rope_scaling": scaling}


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


def _linear(rope: Fields, fields: Fields) -> dict[str, Any]:
    return {"kind": "linear", "factor": rope.number("factor")}


def _llama3(rope: Fields, fields: Fields) -> dict[str, Any]:
    return {
        "kind": "llama3",
        "factor": rope.number("factor"),
        "original_context": rope.size("original_max_position_embeddings"),
        "low_frequency": rope.number("low_freq_factor"),
        "high_frequency": rope.number("high_freq_factor"),
    }


def _yarn(rope: Fields, fields: Fields) -> dict[str, Any]:
    rope.demand("truncate", True)
    context = fields.size("max_position_embeddings")
    original = rope.size("original_max_position_embeddings", context)
    # As DeepSeek's configs do: without a factor, it is the ratio of the two lengths.
    return {
        "kind": "yarn",
        "factor": rope.number("factor", context / original),
        "original_context": original,
        "beta_fast": rope.number("beta_fast", 32.0),
        "beta_slow": rope.number("beta_slow", 1.0),
        **{name: rope.number(name, None) or None for name in _OPTIONAL},  # 0 means none
    }


_READERS = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}


SLIDING, FULL = "sliding_attention", "full_attention"


def window_fields(config: ModelConfig) -> dict[str, Any]:
    """`sliding_window`, whether it is used, and the type of each layer."""
    sliding = [config.window_of(layer) is not None for layer in range(config.layers)]
    return {
        "use_sliding_window": any(sliding),
        "sliding_window": config.window,
        "layer_types": [SLIDING if slides else FULL for slides in sliding],
    }


def read_windows(fields: Fields, layers: int, *, unlisted: list[bool]) -> dict[str, Any]:
    """`window` and `window_pattern` of a shape; `unlisted` are the layers that slide by default."""
    window = fields.size("sliding_window", None)
    if window is None or not fields.flag("use_sliding_window", False):
        return {}
    layer_types = fields.sequence("layer_types")
    if layer_types is None:
        slides = unlisted
    else:
        if len(layer_types) != layers or any(kind not in (SLIDING, FULL) for kind in layer_types):
            raise fields.wrong("layer_types", f"is not {layers} times {SLIDING} or {FULL}")
        slides = [kind == SLIDING for kind in layer_types]
    if not any(slides):
        return {}
    return {"window": window, "window_pattern": repeated_unit(slides)}


def repeated_unit(slides: list[bool]) -> str:
    """The shortest pattern of S and L that gives this list when it is repeated."""
    letters = "".join("S" if one else "L" for one in slides)
    count = len(letters)
    fitting = (n for n in range(1, count + 1) if (letters[:n] * count)[:count] == letters)
    return letters[: next(fitting)]


@dataclass(frozen=True)
class Weight:
    """A weight of the decoder by its name, and the published tensors that hold it.

    `published` has one name, or one for each expert where the decoder stacks them. With
    `interleaved` = (plain, rotary), the rows come in heads of `plain` + `rotary` rows, of which
    the published tensor has the rotary ones in neighbouring pairs, as DeepSeek turns them.
    """

    name: str
    published: tuple[str, ...]
    interleaved: tuple[int, int] | None = None

    def publish(self, weight: Tensor) -> dict[str, Tensor]:
        """The published tensors of the decoder's `weight`."""
        if self.interleaved is not None:
            weight = _reorder_rotary(weight, *self.interleaved, to_pairs=True)
        parts = weight.unbind(0) if len(self.published) > 1 else (weight,)
        return dict(zip(self.published, (part.contiguous() for part in parts), strict=True))

    def adopt(self, tensors: Mapping[str, Tensor], *, where: str) -> Tensor:
        """The decoder's weight; InputError if the tensors of experts differ in shape."""
        parts = [tensors[name] for name in self.published]
        try:
            weight = torch.stack(parts) if len(parts) > 1 else parts[0]
        except RuntimeError:
            text = f"'{self.published[0]}' and its like differ in shape or type"
            raise InputError(text, where=where) from None
        if self.interleaved is not None:
            weight = _reorder_rotary(weight, *self.interleaved, to_pairs=False)
        return weight


def _reorder_rotary(weight_RD: Tensor, plain: int, rotary: int, *, to_pairs: bool) -> Tensor:
    """`weight` with each head's rotary rows as neighbouring pairs, or as two halves.

    A pair (2i, 2i + 1) of DeepSeek's is the pair (i, i + rotary / 2) of Llama's: both turn by the
    angle of frequency i, so equal reorderings of query and key leave every score as it is.
    """
    rows = torch.arange(rotary)
    order = rows.view(2, -1).T.flatten() if to_pairs else rows.view(-1, 2).T.flatten()
    head = torch.cat((torch.arange(plain), plain + order))
    if weight_RD.shape[0] % (plain + rotary):
        return weight_RD  # Of the wrong shape, which is reported where it is loaded.
    heads = weight_RD.unflatten(0, (-1, plain + rotary))
    return heads[:, head].flatten(0, 1)


CLASSIFIER = "ForSequenceClassification"
"""How the names of classes of `transformers` end that score whole sequences."""

MOST_LAYERS = 4096
"""Far more than any published model has; a config of a billion would exhaust the memory."""


class Family(ABC):
    """A `model_type`. Nothing of `transformers` is imported: a family is names and numbers."""

    model_type: ClassVar[str]
    architecture: ClassVar[str]
    """Name of the class that loads the weights."""
    register: ClassVar[str | None] = None
    """Module to import before the Auto classes know the model; None for those of `transformers`."""

    @property
    def classifier(self) -> str:
        """Name of the class that scores sequences, for reward models."""
        return self.architecture.replace("ForCausalLM", CLASSIFIER)

    @abstractmethod
    def objection(self, config: ModelConfig) -> str | None:
        """What of `config` the class does not express; None if it is one of its models."""

    @abstractmethod
    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """`config.json` without the token ids and types, which are the same in each family."""

    @abstractmethod
    def shape(self, fields: Fields) -> dict[str, Any]:
        """Values of a `ModelConfig`; InputError about what the decoder does not express."""

    @abstractmethod
    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Every weight of the decoder, in the order of its layers.

        Lazily: a hostile config may name more layers than there is memory for.
        """

    def superfluous(self, name: str, config: ModelConfig, fields: Fields) -> bool:
        """Whether a published tensor is none of the model's weights, and may be ignored.

        Early Llamas were saved with the frequencies of their rotary positions.
        """
        tied_head = config.tied_embeddings and name == "lm_head.weight"
        return tied_head or name.endswith("rotary_emb.inv_freq")


def common_weights(config: ModelConfig) -> Iterator[Weight]:
    """Embedding, last norm and output projection, named alike in all native classes."""
    yield Weight("embedding.weight", ("model.embed_tokens.weight",))
    yield Weight("norm.weight", ("model.norm.weight",))
    if not config.tied_embeddings:
        yield Weight("head.weight", ("lm_head.weight",))


def common_fields(config: ModelConfig) -> dict[str, Any]:
    """The fields of `config.json` that all native classes have."""
    return {
        "vocab_size": config.vocabulary_size,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "hidden_act": "silu",
        "max_position_embeddings": config.context,
        "initializer_range": config.init_std,
        "rms_norm_eps": config.norm_epsilon,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": config.tied_embeddings,
        "use_cache": True,
    }


def common_shape(
    fields: Fields, *, tied: bool = False, epsilon: float = 1e-6, context: int = 2048
) -> dict[str, Any]:
    """The values that all native classes name alike; the arguments are the class's own defaults."""
    fields.demand("hidden_act", "silu")
    fields.demand("attention_bias", False)
    fields.demand("mlp_bias", False)
    fields.demand("rope_interleaved", False)
    if fields.table("quantization_config") is not None:
        raise fields.wrong("quantization_config", "is set; take the weights before quantization")
    heads = fields.size("num_attention_heads")
    return {
        "vocabulary_size": fields.size("vocab_size"),
        "width": fields.size("hidden_size"),
        "layers": fields.size("num_hidden_layers", most=MOST_LAYERS),
        "heads": heads,
        "kv_heads": fields.size("num_key_value_heads", heads),
        "mlp_width": fields.size("intermediate_size"),
        "context": fields.size("max_position_embeddings", context),
        "norm_epsilon": fields.number("rms_norm_eps", epsilon),
        "tied_embeddings": fields.flag("tie_word_embeddings", tied),
        "init_std": fields.number("initializer_range", 0.02),
    }


def first_mismatch(config: ModelConfig, **expected: Any) -> str | None:
    """The first field of `config` that is not as `expected`, in words; None if all are."""
    for name, expected_value in expected.items():
        value_found = getattr(config, name)
        if value_found != expected_value:
            text = value_found if isinstance(value_found, str | int | float) else "set"
            return f"{name} is {text}"
    return None
