"""A decoder as a model of `transformers` and back: config and weights, by family.

A family is a native class of `transformers`, or our own (`auto_classes`) for what none of them
expresses. Nothing of `transformers` is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError, UsageError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import build
from stages.model.huggingface.family import CLASSIFIER, MOST_LAYERS, Family, Fields, Weight
from stages.model.huggingface.native_families import DeepseekV3, Llama, Olmo2, Qwen3, SmolLM3
from stages.model.reward import SCORE


class Ingot(Family):
    """Every decoder; `config.json` has our own fields as `ingot`."""

    model_type, architecture = "ingot", "IngotForCausalLM"
    register = "stages.model.huggingface.auto_classes"

    def objection(self, config: ModelConfig) -> str | None:
        """None: it is our own."""
        return None

    def fields(self, config: ModelConfig) -> dict[str, Any]:
        """Our own fields, and the few that tools read of any model."""
        return {
            "ingot": config.plain(),
            "vocab_size": config.vocabulary_size,
            "hidden_size": config.width,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.kv_heads,
            "head_dim": config.head_width,
            "max_position_embeddings": config.context,
            "initializer_range": config.init_std,
            "tie_word_embeddings": config.tied_embeddings,
            "use_cache": True,
        }

    def shape(self, fields: Fields) -> dict[str, Any]:
        """The values of `ingot`; those that tools read must agree with them."""
        own = fields.table("ingot")
        if own is None:
            raise fields.wrong("ingot", "is missing")
        own.size("layers", most=MOST_LAYERS)
        for theirs, ours in (("vocab_size", "vocabulary_size"), ("hidden_size", "width")):
            own.demand(ours, fields.size(theirs))
        return dict(own.values)

    def weights(self, config: ModelConfig, fields: Fields) -> Iterator[Weight]:
        """Ingot's names, below `model.`."""
        with torch.device("meta"):
            names = list(Decoder(config).state_dict())
        for name in names:
            yield Weight(name, (f"model.{name}",))


FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (Llama(), Qwen3(), Olmo2(), SmolLM3(), DeepseekV3(), Ingot())
}
"""By `model_type`; of several that express a model, the first is taken."""


def family_of(config: ModelConfig) -> Family:
    """The first family that expresses `config`: a native class where there is one."""
    return next(family for family in FAMILIES.values() if family.objection(config) is None)


def to_config(
    config: ModelConfig,
    *,
    bos: int | None,
    eos: int | list[int] | None,
    pad: int | None,
    dtype: str = "float32",
    reward: bool = False,
) -> dict[str, Any]:
    """`config.json` of `config` with the ids of the tokenizer's special tokens.

    `dtype` is the type that `transformers` loads the weights in. Written so that transformers 4
    reads it too. With `reward` it is that of a reward model: a class for sequence classification
    with one label, whose pipelines give the score itself and not its sigmoid.
    """
    family = family_of(config)
    labels = {
        "architectures": [family.classifier],
        "id2label": {"0": "reward"},
        "label2id": {"reward": 0},
        "problem_type": "regression",
    }
    return {
        **family.fields(config),
        "architectures": [family.architecture],
        "model_type": family.model_type,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "pad_token_id": pad,
        "dtype": dtype,
        "torch_dtype": dtype,
        **(labels if reward else {}),
    }


def published_weights(config: ModelConfig, *, reward: bool = False) -> list[Weight]:
    """The decoder's weights, each with the names that its family publishes it by.

    With `reward` those of a reward model.
    """
    score = [Weight(SCORE, (SCORE,))] if reward else []
    return [*family_of(config).weights(config, Fields({}, "")), *score]


def to_weights(model: Decoder) -> dict[str, Tensor]:
    """Weights of `model` on CPU, under the names that its family publishes them by."""
    state = model.state_dict()
    published: dict[str, Tensor] = {}
    for weight in published_weights(model.config):
        published.update(weight.publish(state.pop(weight.name).detach().cpu()))
    assert not state, f"weights without a published name: {sorted(state)}"
    return published


def from_config(values: Mapping[str, Any], *, where: str) -> ModelConfig:
    """The config of a published `config.json`.

    InputError names what the decoder cannot express, a class that writes no text, or what is no
    config at all.
    """
    fields = Fields(values, where)
    for name in fields.sequence("architectures") or ():
        if str(name).endswith(CLASSIFIER):
            raise fields.wrong("architectures", f"names {str(name)[:80]}, which writes no text")
    shape = _find_family(fields).shape(fields)
    try:
        return ModelConfig.parse(shape, where=where)
    except UsageError as error:
        raise InputError(error.what, where=where) from None


def adoption(values: Mapping[str, Any], names: Collection[str], *, where: str) -> list[Weight]:
    """The decoder's weights, each with the published tensors that it is made of.

    `values` is the `config.json`, `names` are those of all tensors. InputError names tensors that
    are missing, and tensors that no weight of the model is made of.
    """
    fields = Fields(values, where)
    family, config = _find_family(fields), from_config(values, where=where)
    weights: list[Weight] = []
    for weight in family.weights(config, fields):
        missing = [name for name in weight.published if name not in names]
        if missing:
            raise InputError(f"tensor '{missing[0]}' is missing", where=where)
        weights.append(weight)
    used = {name for weight in weights for name in weight.published}
    left = sorted(
        name for name in set(names) - used if not family.superfluous(name, config, fields)
    )
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        examples = ", ".join(f"'{name[:80]}'" for name in left[:3])
        raise InputError(f"tensors that the model has no place for: {examples}{more}", where=where)
    return weights


def from_weights(
    values: Mapping[str, Any], weights: Mapping[str, Tensor], *, where: str
) -> Decoder:
    """A decoder of a published `config.json` and its tensors; InputError names what does not fit.

    A tied `lm_head.weight` may be present or absent; it is the embedding matrix either way.
    """
    config = from_config(values, where=where)
    own: dict[str, Tensor] = {}
    for weight in adoption(values, weights.keys(), where=where):
        own[weight.name] = weight.adopt(weights, where=where)
    return build(config, own, where=where)


def unread(values: Mapping[str, Any], *, where: str) -> list[str]:
    """Fields of a `config.json` with a value that neither we read nor `transformers` adds.

    They may describe the architecture of another class, so a person should look at them.
    """
    fields = Fields(values, where)
    _find_family(fields).shape(fields)
    stated = {name for name, value in values.items() if value not in (None, False, {}, [])}
    return sorted(stated - fields.read - _NOT_ARCHITECTURE)


_NOT_ARCHITECTURE = frozenset(
    (
        *("architectures", "model_type", "transformers_version", "dtype", "torch_dtype"),
        *("auto_map", "_name_or_path", "name_or_path", "_attn_implementation", "use_cache"),
        *("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "decoder_start_token_id"),
        *("attention_dropout", "pretraining_tp", "ep_size", "aux_loss_alpha", "seq_aux"),
        *("is_llama_config", "chunk_size_feed_forward", "problem_type", "id2label", "label2id"),
        *("return_dict", "num_nextn_predict_layers", "num_mtp_layers", "qk_head_dim"),
        *("head_dim", "rope_scaling", "rope_theta", "layer_types", "sliding_window"),
        *("max_window_layers", "no_rope_layer_interval", "transformers.js_config"),
    )
)
"""Fields that do not describe the architecture, or repeat others that are read."""


def _find_family(fields: Fields) -> Family:
    name = fields.values.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        text = repr(name)[:80]
        raise fields.wrong("model_type", f"is {text}{did_you_mean(str(name)[:80], FAMILIES)}")
    return FAMILIES[name]
