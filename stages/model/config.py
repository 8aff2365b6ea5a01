"""The shape of a decoder. No torch here: recipes and plans read these fields too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, did_you_mean
from stages.model.presets import PRESETS


class RopeScaling(Config):
    """How rotary positions are stretched beyond the length that a model was trained with."""

    kind: Literal["yarn", "linear", "llama3"] = Field(
        default="yarn",
        description="YaRN (Peng et al. 2023, arXiv 2309.00071), position interpolation (Chen et "
        "al. 2023, arXiv 2306.15595), or that of Llama 3.1.",
    )
    factor: float = Field(ge=1, description="How many times longer sequences become.")
    original_context: int | None = Field(
        default=None, ge=2, description="Longest sequence before, in tokens; `linear` needs none."
    )
    beta_fast: float = Field(
        default=32.0,
        gt=0,
        description="yarn: channels that turn more often over the original context stay.",
    )
    beta_slow: float = Field(
        default=1.0,
        gt=0,
        description="yarn: channels that turn less often are stretched by all of `factor`.",
    )
    attention_factor: float | None = Field(
        default=None,
        gt=0,
        description="yarn: what cos and sin are multiplied by; 0.1 · ln(factor) + 1 by default.",
    )
    mscale: float | None = Field(
        default=None, gt=0, description="yarn, as DeepSeek has it: 0.1 · mscale · ln(factor) + 1."
    )
    mscale_all_dim: float | None = Field(
        default=None,
        gt=0,
        description="yarn, as DeepSeek has it: divides the former, and the attention scores of "
        "latent attention are multiplied by its square.",
    )
    low_frequency: float = Field(
        default=1.0, gt=0, description="llama3: turns over the original context that are stretched."
    )
    high_frequency: float = Field(
        default=4.0, gt=0, description="llama3: turns over the original context that stay."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.kind != "linear" and self.original_context is None:
            raise ValueError(f"{self.kind} needs original_context")
        own = ("attention_factor", "mscale", "mscale_all_dim")
        if self.kind != "yarn" and any(getattr(self, name) is not None for name in own):
            raise ValueError(f"{', '.join(own)} belong to yarn, not to {self.kind}")
        if self.beta_slow >= self.beta_fast:
            raise ValueError("beta_slow is not below beta_fast")
        if self.low_frequency >= self.high_frequency:
            raise ValueError("low_frequency is not below high_frequency")
        return self


class LatentAttention(Config):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1)."""

    query_rank: int | None = Field(
        default=None, ge=1, description="Channels that queries are compressed to; not by default."
    )
    kv_rank: int = Field(ge=1, description="Channels that keys and values are compressed to.")
    plain_width: int = Field(ge=1, description="Channels of a head's key without positions.")
    rotary_width: int = Field(
        ge=2, multiple_of=2, description="Channels with rotary positions; heads share their key."
    )
    value_width: int = Field(ge=1, description="Channels of a head's value.")


class Experts(Config):
    """Mixture of experts: each token takes `chosen` of many SwiGLUs, and the shared ones always.

    Scores are sigmoids, choice is limited to groups of experts, and a bias in the choice alone
    balances their load (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
    """

    experts: int = Field(ge=2, description="Routed experts of a layer.")
    chosen: int = Field(ge=1, description="Routed experts that a token goes to.")
    width: int = Field(ge=1, description="Channels inside each expert.")
    shared: int = Field(
        default=1, ge=0, description="Experts that every token goes to, built as one SwiGLU."
    )
    first: int = Field(default=1, ge=0, description="Dense layers before the first with experts.")
    groups: int = Field(default=1, ge=1, description="Groups of experts; they divide `experts`.")
    chosen_groups: int = Field(
        default=1,
        ge=1,
        description="Groups that a token's experts come from: those with the highest sum of their "
        "two best scores.",
    )
    scale: float = Field(
        default=1.0, gt=0, description="What the weights of the chosen are multiplied by."
    )
    normalise: bool = Field(
        default=True, description="Divide the weights of a token's experts by their sum."
    )
    bias_rate: float = Field(
        default=0.001,
        ge=0,
        le=1,
        description="What a training step adds to the bias of experts that had too few tokens, and "
        "takes from the others' (Wang et al. 2024, arXiv 2408.15664); 0: no balancing.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.experts % self.groups:
            raise ValueError(f"experts {self.experts} is not a multiple of groups {self.groups}")
        if self.chosen_groups > self.groups:
            raise ValueError(f"chosen_groups {self.chosen_groups} of groups {self.groups}")
        if self.groups > 1 and self.experts == self.groups:
            raise ValueError("groups of one expert: a group is judged by its two best")
        if self.chosen > self.chosen_groups * self.experts // self.groups:
            raise ValueError(f"chosen_groups hold fewer than the {self.chosen} chosen experts")
        return self


class ModelShape(Config):
    """A decoder without its vocabulary, which the tokenizer decides."""

    depth: int | None = Field(
        default=None,
        ge=1,
        description="One dial for the size: so many `layers`, `width` 64 · depth (up to a multiple "
        "of the head width), heads of 128 channels, each with a key and value of its own. It "
        "stands for these numbers; one that is given, and is not its default, wins.",
    )
    width: int = Field(default=192, ge=2, description="Channels of the residual stream.")
    layers: int = Field(default=6, ge=1, description="Decoder blocks.")
    heads: int = Field(
        default=6, ge=1, description="Query heads; they divide `width`, unless `head_width` is set."
    )
    kv_heads: int = Field(
        default=3, ge=1, description="Key and value heads (GQA); they divide `heads`."
    )
    head_width: int | None = Field(
        default=None, ge=2, description="Channels of a head; `width` / `heads` by default."
    )
    mlp_width: int | None = Field(
        default=None,
        ge=1,
        description="Channels in the SwiGLU; 8/3 of `width` by default, up to a multiple of 32.",
    )
    context: int = Field(default=256, ge=2, description="Longest sequence, in tokens.")
    rope_base: float = Field(default=10000.0, gt=1, description="Base of the rotary frequencies.")
    rope_share: float = Field(
        default=1.0, gt=0, le=1, description="Share of a head's channels with rotary positions."
    )
    rope_scaling: RopeScaling | None = Field(
        default=None, description="How rotary positions are stretched; not by default."
    )
    nope_every: int = Field(
        default=0,
        ge=0,
        description="Every so many layers, one has no positions (NoPE: Kazemnejad et al. 2023, "
        "arXiv 2305.19466); 0: none. SmolLM3 has 4.",
    )
    window: int | None = Field(
        default=None,
        ge=1,
        description="Tokens that a query sees in layers with a sliding window, itself among them.",
    )
    window_pattern: str = Field(
        default="S",
        pattern="^[SL]+$",
        description="Which layers have the window (S) and which see all (L), repeated over the "
        "layers: `SSSL`.",
    )
    latent: LatentAttention | None = Field(
        default=None, description="Latent attention instead of grouped key and value heads."
    )
    experts: Experts | None = Field(
        default=None, description="Experts instead of one SwiGLU a layer."
    )
    qk_norm: Literal["none", "head", "width"] = Field(
        default="none",
        description="RMSNorm of queries and keys before positions: none, within each head (Qwen3), "
        "or over all heads (OLMo 2).",
    )
    norm: Literal["pre", "output"] = Field(
        default="pre",
        description="Where RMSNorm stands: before attention and SwiGLU, or on what they add "
        "(OLMo 2, arXiv 2501.00656).",
    )
    norm_epsilon: float = Field(default=1e-5, gt=0, lt=1, description="Added inside every RMSNorm.")
    logit_softcap: float | None = Field(
        default=None,
        gt=0,
        description="Bound of the logits: cap · tanh(logit / cap) (Gemma 2, arXiv 2408.00118).",
    )
    tied_embeddings: bool = Field(
        default=True, description="Use the embedding matrix as output projection too."
    )
    init_std: float = Field(
        default=0.02, gt=0, le=1, description="Standard deviation of the initial weights."
    )

    @model_validator(mode="before")
    @classmethod
    def _dial_becomes_numbers(cls, values: Any) -> Any:
        """Numbers alone bear identity: two ways to say one architecture have one key.

        A form gives every field, so a number at its default is no answer to the dial.
        """
        if not isinstance(values, Mapping):
            return values
        if values.get("latent") is not None:  # Each head has its own key and value.
            heads = values.get("heads", cls.model_fields["heads"].default)
            values = {"kv_heads": heads, **values}
        depth = values.get("depth")
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
            return values
        fields = cls.model_fields
        left = {name for name in _SIZES if values.get(name) == fields[name].default}
        stated = {name: v for name, v in values.items() if name not in left and name != "depth"}
        return {**sizes_for_depth(depth, stated), **stated}

    @model_validator(mode="before")
    @classmethod
    def _preset_becomes_numbers(cls, values: Any) -> Any:
        """Replace `preset: NAME` by that model's numbers; other fields of the config override them.

        No field of its own, so a value that equals its default still counts as written.
        """
        if cls is not ModelShape or not isinstance(values, Mapping) or "preset" not in values:
            return values
        name = values["preset"]
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"no model preset {name!r}{did_you_mean(str(name), PRESETS)}")
        numbers = dict(PRESETS[name])
        for key, value in values.items():
            old = numbers.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                value = {**old, **value}
            numbers[key] = value
        del numbers["preset"]
        return numbers

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.depth is not None:
            raise ValueError(f"depth {self.depth!r} is not a whole number")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.window is None and self.window_pattern != "S":
            raise ValueError(f"window_pattern {self.window_pattern} needs a window")
        if self.experts is not None and self.experts.first >= self.layers:
            raise ValueError(f"experts.first {self.experts.first} leaves no layer with experts")
        if self.latent is None:
            self._heads_fit()
        else:
            self._latent_fits(self.latent)
        return self

    def _heads_fit(self) -> None:
        width = self.head_width
        if width is None:
            if self.width % self.heads:
                raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
            width = self.width // self.heads
            text = f"width / heads is {width}"
        else:
            text = f"head_width is {width}"
        rotary = int(width * self.rope_share)
        if rotary < 2 or rotary % 2:
            if self.rope_share != 1:
                text += f", of which rope_share {self.rope_share:g} leaves {rotary}"
            raise ValueError(f"{text}; rotary embeddings need an even head width")

    def _latent_fits(self, latent: LatentAttention) -> None:
        demands = {
            "kv_heads": (self.kv_heads, self.heads),
            "rope_share": (self.rope_share, 1),
            "qk_norm": (self.qk_norm, "none"),
        }
        for name, (value, expected) in demands.items():
            if value != expected:
                raise ValueError(f"latent attention needs {name} {expected}, found {value}")
        own = latent.plain_width + latent.rotary_width
        if self.head_width not in (None, own):
            raise ValueError(f"head_width is {self.head_width}, that of latent attention {own}")

    def with_vocabulary(self, vocabulary_size: int) -> ModelConfig:
        """The complete config of a decoder over `vocabulary_size` tokens."""
        return ModelConfig(vocabulary_size=vocabulary_size, **self.model_dump())


def preset(name: str) -> ModelShape:
    """The shape of a published model; UsageError with the nearest name if there is none."""
    return ModelShape.parse({"preset": name}, where=f"preset {name}")


class ModelConfig(ModelShape):
    """A complete decoder, every size resolved; `model.json` of a checkpoint holds these fields."""

    vocabulary_size: int = Field(ge=1, description="Rows of the embedding matrix.")
    head_width: int = Field(
        default=0, ge=2, validate_default=True, description="Channels of a head's query and key."
    )
    mlp_width: int = Field(
        default=0, ge=1, validate_default=True, description="Channels inside the SwiGLU."
    )

    @model_validator(mode="before")
    @classmethod
    def _sizes_are_resolved(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        # Wrong values stay as they are: the fields' own checks name them.
        shape = ModelShape.model_validate(
            {name: value for name, value in values.items() if name in ModelShape.model_fields}
        )
        sizes = {name: getattr(shape, name) for name in _SIZES}
        return {
            **values,
            **sizes,
            "depth": None,
            "head_width": shape.head_width or _default_head_width(shape),
            "mlp_width": shape.mlp_width or default_mlp_width(shape.width),
        }

    @property
    def rotary_width(self) -> int:
        """Channels of a head that turn with the position."""
        if self.latent is not None:
            return self.latent.rotary_width
        return int(self.head_width * self.rope_share)

    @property
    def value_width(self) -> int:
        """Channels of a head's value."""
        return self.head_width if self.latent is None else self.latent.value_width

    def rotates(self, layer: int) -> bool:
        """Whether `layer`, from 0, has rotary positions."""
        return self.nope_every == 0 or (layer + 1) % self.nope_every != 0

    def window_of(self, layer: int) -> int | None:
        """Tokens that a query sees in `layer`, from 0; None for all."""
        letter = self.window_pattern[layer % len(self.window_pattern)]
        return self.window if letter == "S" else None

    def has_experts(self, layer: int) -> bool:
        """Whether `layer`, from 0, has experts instead of one SwiGLU."""
        return self.experts is not None and layer >= self.experts.first

    def unlike(self, shape: ModelShape) -> list[str]:
        """Names of the fields that `shape` sets, and that this decoder has otherwise."""
        wanted = shape.with_vocabulary(self.vocabulary_size)
        return [name for name in shape.identity() if getattr(wanted, name) != getattr(self, name)]

    def plain(self) -> dict[str, Any]:
        """The values as JSON-ready Python, without what the plain decoder does not have.

        So `model.json` of a plain decoder keeps its bytes when an architecture is added.
        """
        fields = type(self).model_fields
        kept = {
            name: value
            for name, value in super().plain().items()
            if name in _PLAIN or value != fields[name].default
        }
        if self.head_width == _default_head_width(self):
            del kept["head_width"]
        return kept


_SIZES = ("width", "layers", "heads", "kv_heads")
"""The sizes that `depth` sets."""

_PLAIN = frozenset(
    (
        *("width", "layers", "heads", "kv_heads", "mlp_width", "context", "rope_base"),
        *("norm_epsilon", "tied_embeddings", "init_std", "vocabulary_size"),
    )
)
"""The fields of the plain decoder, which `model.json` always has."""


def sizes_for_depth(depth: int, sizes: Mapping[str, Any]) -> dict[str, int]:
    """`width`, `layers`, `heads` and `kv_heads` of a `depth`, beside the sizes that are given.

    One dial as nanochat has it (Karpathy 2025, nanochat/gpt.py).
    """
    head_width = _whole(sizes.get("head_width"), 128)
    width = _whole(sizes.get("width"), -(-64 * depth // head_width) * head_width)
    heads = _whole(sizes.get("heads"), max(1, width // head_width))
    return dict(zip(_SIZES, (width, depth, heads, heads), strict=True))


def default_mlp_width(width: int) -> int:
    """8/3 of `width`, up to a multiple of 32: three such matrices weigh two of 4 · `width`.

    Shazeer 2020, "GLU Variants Improve Transformer", section 2, keeps the parameter count so.
    """
    return -(-8 * width // (3 * 32)) * 32


def _default_head_width(shape: ModelShape) -> int:
    if shape.latent is not None:
        return shape.latent.plain_width + shape.latent.rotary_width
    return shape.width // shape.heads


def _whole(value: Any, default: int) -> int:
    """`value` where it is a size; what is wrong with any other, the field's own check says."""
    return value if isinstance(value, int) and value >= 1 else default
