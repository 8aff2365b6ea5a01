"""The files of a release: weights in shards, and the other files that `transformers` loads.

Weights go from the checkpoint's file to shards a tensor at a time. The layout is that of
`save_pretrained`: `model.safetensors` where everything fits into one file, else
`model-00001-of-0000N.safetensors` and an index that says which file holds which tensor.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import WEIGHTS_FILE, check_weights
from stages.model.huggingface.families import published_weights, to_config
from stages.model.huggingface.family import Weight
from stages.model.reward import RewardModel
from stages.model.tensor_files import STORED_TYPES, TensorSpec, open_tensors, write_tensors
from stages.tokens.chat_template import JINJA_FILE, KEY
from stages.tokens.vocabulary import SpecialTokens


def model_folder(
    model: ModelConfig,
    tokenizer: Tokenizer,
    tokenizer_config: Mapping[str, Any],
    dtype: str,
    *,
    reward: bool = False,
) -> dict[str, bytes]:
    """Every file that `transformers` reads but the weights; equal inputs give equal bytes.

    A `reward` model has none for generation.

    The model may have more rows than the tokenizer has tokens (a padded vocabulary), not fewer:
    InputError then, and where the tokenizer lacks a token for end or padding. The chat template is
    the one that `tokenizer_config` has, unchanged; where it has none, the release has none.
    """
    size = tokenizer.get_vocab_size()
    if size > model.vocabulary_size:
        raise InputError(
            f"the tokenizer has {size} tokens, the model {model.vocabulary_size}",
            where="checkpoint",
            hint="the checkpoint's files do not belong together; make it again",
        )
    special = SpecialTokens.from_config(tokenizer, tokenizer_config)
    padding = special.padding
    config = to_config(
        model, bos=special.begin, eos=special.end, pad=padding, dtype=dtype, reward=reward
    )
    # Both ends stop a generation: a text ends with one, an answer with the other.
    ends = [token for token in (special.end, special.turn_end) if token is not None]
    generation = {"bos_token_id": special.begin, "eos_token_id": ends, "pad_token_id": padding}
    # transformers 4 knows the class by this name only (huggingface/transformers#47553), and tools
    # that predate chat_template.jinja read the template here.
    named = {
        **tokenizer_config,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.context,
        # transformers 4 would make token_type_ids too, which `generate` of these classes refuses.
        "model_input_names": ["input_ids", "attention_mask"],
    }
    files = {
        "config.json": to_json(config),
        **({} if reward else {"generation_config.json": to_json(generation)}),
        "tokenizer.json": tokenizer.to_str(pretty=True).encode(),
        "tokenizer_config.json": to_json(named),
    }
    template = tokenizer_config.get(KEY)
    # transformers reads this file first, and takes it for the only template: not for several.
    return {**files, JINJA_FILE: template.encode()} if isinstance(template, str) else files


def to_json(value: Any) -> bytes:
    """Indented JSON with sorted keys."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class StoredWeights:
    """The weights in a checkpoint's files: type and shape of each, and each on demand, mapped."""

    specs: Mapping[str, TensorSpec]
    read: Callable[[str], Tensor]

    @classmethod
    @contextmanager
    def opened(
        cls, checkpoint: Input, config: ModelConfig, model_class: type[Decoder] = Decoder
    ) -> Iterator[StoredWeights]:
        """Of a checkpoint, until the block ends; CorruptArtifact unless they are a `config`'s."""
        where = f"checkpoint {checkpoint.key[:12]}/{WEIGHTS_FILE}"
        with open_tensors(checkpoint, WEIGHTS_FILE) as tensors:
            with torch.device("meta"):
                check_weights(model_class(config), tensors, where=where)
            specs = {}
            for name in tensors:
                dtype = tensors.dtype(name)
                if dtype not in STORED_TYPES:
                    raise CorruptArtifact(f"'{name}' holds {dtype}", where=where)
                specs[name] = TensorSpec(STORED_TYPES[dtype], tensors.shape(name))
            yield cls(specs, tensors.__getitem__)


@dataclass(frozen=True)
class ReleasedWeights:
    """Every tensor of a release by its published name, in the type that it is released in."""

    specs: Mapping[str, TensorSpec]
    weights: Mapping[str, Weight]
    stored: StoredWeights
    metadata: Mapping[str, str] = field(default_factory=lambda: {"format": "pt"})
    """Of each file."""

    @classmethod
    def plan(
        cls, config: ModelConfig, stored: StoredWeights, dtype: str, *, reward: bool = False
    ) -> ReleasedWeights:
        """`dtype` is a name of `DTYPES`, or `keep` for the type that each is stored in.

        `stored` are the weights of `config`, with `reward` those of a reward model.
        """
        specs: dict[str, TensorSpec] = {}
        weights: dict[str, Weight] = {}
        for weight in published_weights(config, reward=reward):
            spec = stored.specs[weight.name]
            chosen = spec.dtype if dtype == "keep" else DTYPES[dtype]
            empty = torch.empty(spec.shape, dtype=chosen, device="meta")
            for name, tensor in weight.publish(empty).items():
                specs[name] = TensorSpec(chosen, tuple(tensor.shape))
                weights[name] = weight
        return cls(specs, weights, stored)

    @property
    def dtype(self) -> str:
        """The type of most bytes, as `config.json` names it."""
        sizes: Counter[torch.dtype] = Counter()
        for spec in self.specs.values():
            sizes[spec.dtype] += spec.bytes
        return _NAMES[sizes.most_common(1)[0][0]]

    @property
    def dtypes(self) -> str:
        """All types that occur, in words."""
        present = {spec.dtype for spec in self.specs.values()}
        return " and ".join(name for name, dtype in DTYPES.items() if dtype in present)

    @property
    def description(self) -> Mapping[str, Any] | None:
        """What `config.json` says of quantised weights; None where they are plain."""
        return None

    @property
    def outside_parameters(self) -> int:
        """Numbers of the release that are in no parameter of a loaded model."""
        return 0

    def numbers(self) -> Mapping[str, Callable[[], Tensor]]:
        """By the decoder's names of quantised weights, what gives their numbers in float32."""
        return {}

    def tensor(self, name: str) -> Tensor:
        """One tensor; InputError if a finite number of it is too large for the type."""
        weight = self.weights[name]
        stored = weight.publish(self.stored.read(weight.name))[name]
        return convert_weight(stored, self.specs[name].dtype, name)

    def write(self, folder: Path, max_shard_bytes: int, check: Callable[[int], None]) -> list[str]:
        """Write the files of weights into `folder`, and the index where there are several.

        `check(done)` is called before each tensor with how many were written.
        """
        done = 0

        def tensor(name: str) -> Tensor:
            nonlocal done
            check(done)
            done += 1
            return self.tensor(name)

        return write_tensors(
            lambda name: (folder / name).open("wb"),
            WEIGHTS_FILE,
            self.specs,
            tensor,
            most=max_shard_bytes,
            metadata=self.metadata,
        )


def convert_weight(weight: Tensor, dtype: torch.dtype, name: str) -> Tensor:
    """`weight` in `dtype`, rounded to nearest; InputError where that makes a number infinite."""
    stored = weight.to(dtype)
    # An infinity is rare, and to look for finite numbers takes a copy of the weight.
    overflows = stored.dtype != weight.dtype and bool(stored.isinf().any())
    if overflows and bool((stored.isinf() & weight.isfinite()).any()):
        largest = float(weight.abs().max())
        raise InputError(
            f"'{name}' holds {largest:.3g}, {_NAMES[dtype]} ends at {torch.finfo(dtype).max:.3g}",
            where="export",
            hint="release in bfloat16 or float32: set `dtype`",
        )
    return stored


@dataclass
class ReleasedModel:
    """The decoder with the numbers that a release holds, in float32; memory has a block at a time.

    `rounded` says, after a pass, whether one of them is another than the checkpoint's.
    """

    config: ModelConfig
    stored: StoredWeights
    dtype: str
    rounded: bool = False
    model_class: type[Decoder] = Decoder
    quantised: Mapping[str, Callable[[], Tensor]] = field(default_factory=dict)
    """By the decoder's names of quantised weights, what gives their numbers in float32."""

    @torch.no_grad()
    def __call__(self, tokens_BL: Tensor) -> Tensor:
        """Logits [batch, length, vocabulary]; of a reward model scores [batch, length]."""
        with torch.device("meta"):
            model = self.model_class(self.config)
        states_BLD: Tensor | None = None
        last = self.config.layers - 1
        for layer in range(self.config.layers):
            self._load(model.blocks[layer], f"blocks.{layer}.")
            if layer == 0:
                self._load(model.embedding, "embedding.")
            if layer == last:
                self._load(model.norm, "norm.")
            if layer == last and model.head is not None:
                self._load(model.head, "head.")
            if layer == last and isinstance(model, RewardModel):
                self._load(model.score, "score.")
            layers = range(layer, layer + 1)
            states_BLD = model(tokens_BL, layers=layers, states_BLD=states_BLD)
            model.blocks[layer].to("meta")
            if model.head is not None:
                model.embedding.to("meta")
        assert states_BLD is not None, "a model has layers"
        return states_BLD

    def _load(self, module: nn.Module, prefix: str) -> None:
        """Give a module on the meta device its weights."""
        own = {name: self._weight(prefix + name) for name in module.state_dict()}
        module.load_state_dict(own, assign=True)

    def _weight(self, name: str) -> Tensor:
        stored = self.stored.read(name)
        if name in self.quantised:
            self.rounded = True
            return self.quantised[name]()
        chosen = stored.dtype if self.dtype == "keep" else DTYPES[self.dtype]
        released = convert_weight(stored, chosen, name)
        # A mapped file is not aligned, and native kernels may round differently on it: a copy.
        wide = released.to(torch.float32, copy=True)
        self.rounded = self.rounded or not torch.equal(wide, stored.float())
        return wide
