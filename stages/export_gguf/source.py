"""What a GGUF file is made of: a checkpoint, or a release that `export` wrote, read alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from artifacts_schema.errors import CorruptArtifact
from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import WEIGHTS_FILE, read_config, read_tokenizer
from stages.model.huggingface.families import from_config, published_weights
from stages.model.tensor_files import STORED_TYPES, open_tensors

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor


@dataclass(frozen=True)
class Source:
    """The architecture and the tokenizer of an input; its weights by their published names."""

    config: ModelConfig
    tokenizer: Tokenizer
    tokenizer_config: Mapping[str, Any]
    _input: Input

    @classmethod
    def read(cls, source: Input) -> Source:
        """Of a `checkpoint` or a `release`; no weight is read."""
        if source.kind == "release":
            where = f"release {source.key[:12]}/config.json"
            config = from_config(source.read_json("config.json"), where=where)
        else:
            config = read_config(source)
        described = source.read_json("tokenizer_config.json")
        return cls(config, read_tokenizer(source), described, source)

    @contextmanager
    def weights(self) -> Iterator[Callable[[str], Tensor]]:
        """A function from a published name to the tensor, mapped, until the block ends.

        CorruptArtifact unless the files hold the weights of the config. Only for families in which
        each weight is published as one tensor, unchanged.
        """
        where = f"{self._input.kind} {self._input.key[:12]}/{WEIGHTS_FILE}"
        stored = {
            weight.published[0]: (
                weight.published[0] if self._input.kind == "release" else weight.name
            )
            for weight in published_weights(self.config)
        }
        with torch.device("meta"):
            state = Decoder(self.config).state_dict()
        with open_tensors(self._input, WEIGHTS_FILE) as tensors:
            for weight in published_weights(self.config):
                name = stored[weight.published[0]]
                expected = tuple(state[weight.name].shape)
                if name not in tensors or tensors.shape(name) != expected:
                    raise CorruptArtifact(f"'{name}' is not {list(expected)}", where=where)
                if tensors.dtype(name) not in STORED_TYPES:
                    raise CorruptArtifact(f"'{name}' holds {tensors.dtype(name)}", where=where)
            yield lambda published: tensors[stored[published]]
