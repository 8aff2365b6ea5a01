"""The decoder's weights, made of the published tensors one at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface import adopt, adoption, from_config
from stages.model.safetensors_writer import TensorSpec

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.import_model.files import ModelFiles
    from stages.import_model.published import Published
    from stages.import_model.tokenizer import CarriedTokenizer
    from stages.model.huggingface.weights import Weight

_VOCABULARY = ("embedding.weight", "head.weight")
_TIED_HEAD = "lm_head.weight"


class DecoderWeights:
    """Types and shapes of all weights, and each weight on demand.

    The vocabulary gets `rows` rows: those behind the published ones are their mean, which makes no
    new token likely (Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language
    Models"). InputError names a tensor that is missing, unknown or of another shape, before any is
    read.
    """

    def __init__(self, files: ModelFiles, published: Published, *, rows: int) -> None:
        self.published, self.rows, self.where = published, rows, files.config_where
        adopted = adoption(files.config, published.keys(), where=self.where)
        self.weights = {weight.name: weight for weight in adopted}
        expected = _shapes(from_config(files.config, where=self.where), self.where)
        assert expected.keys() == self.weights.keys(), "the family names every weight once"
        for name, shape in expected.items():
            self._check(self.weights[name], shape)
        self.specs = {
            name: TensorSpec(
                self._dtype(self.weights[name]),
                (rows, *shape[1:]) if name in _VOCABULARY else shape,
            )
            for name, shape in expected.items()
        }

    def __getitem__(self, name: str) -> Tensor:
        """A weight in the type that it was published in."""
        weight = adopt(self.weights[name], self.published, where=self.where)
        lacking = self.rows - weight.shape[0] if name in _VOCABULARY else 0
        if lacking:
            mean = mean_row(weight).to(weight.dtype)
            weight = torch.cat((weight, mean.expand(lacking, -1)))
        return weight.to(self.specs[name].dtype)

    def told(self, context: Context) -> Callable[[str], Tensor]:
        """Each weight on demand, with progress, unless the stage is asked to stop."""
        done = itertools.count(1)

        def get(name: str) -> Tensor:
            context.check_stop()
            weight = self[name]
            context.progress(next(done), len(self.specs), "weights")
            return weight

        return get

    def check_tied(self) -> None:
        """InputError if an output projection that is said to be the embedding is another matrix."""
        if "head.weight" in self.weights or _TIED_HEAD not in self.published:
            return
        name = self.weights["embedding.weight"].published[0]
        if not torch.equal(self.published[name], self.published[_TIED_HEAD]):
            raise InputError(
                f"says tie_word_embeddings, but '{_TIED_HEAD}' is not '{name}'",
                where=self.where,
                hint="set tie_word_embeddings as the model was trained, and pin the file again",
            )

    def _dtype(self, weight: Weight) -> torch.dtype:
        """The type of its tensors, or one that holds the numbers of all."""
        found = {self.published.entry(name).dtype for name in weight.published}
        return found.pop() if len(found) == 1 else torch.float32

    def _check(self, weight: Weight, shape: tuple[int, ...]) -> None:
        expected = shape[1:] if len(weight.published) > 1 else shape
        for name in weight.published:
            found = self.published.entry(name).shape
            if found != expected:
                raise InputError(
                    f"tensor '{name}' is {list(found)}, the config wants {list(expected)}",
                    where=self.where,
                )


def mean_row(weight_VD: Tensor) -> Tensor:
    """Mean of the rows, [D]: numpy adds them in one order, whatever the number of threads."""
    return torch.from_numpy(weight_VD.float().numpy().mean(0, dtype="float64")).float()


def vocabulary_rows(
    published: ModelConfig, tokenizer: CarriedTokenizer | None, *, new_tokens: str
) -> int:
    """Rows of the checkpoint's vocabulary; InputError if it is too small and is not to grow."""
    rows = published.vocabulary_size
    if tokenizer is None or tokenizer.vocabulary_size <= rows:
        return rows
    if new_tokens == "refuse":
        raise InputError(
            f"the tokenizer has {tokenizer.vocabulary_size:,} tokens, the model {rows:,} rows",
            where="tokenizer",
            hint="is it the model's? Then `new_tokens: mean` adds rows",
        )
    return max(tokenizer.vocabulary_size, tokenizer.padded_vocabulary_size)


def _shapes(config: ModelConfig, where: str) -> dict[str, tuple[int, ...]]:
    """Shapes of the decoder's weights; nothing is allocated."""
    try:
        with torch.device("meta"):
            state = Decoder(config).state_dict()
    except (RuntimeError, TypeError, OverflowError):  # More elements than 64 bits can count.
        raise InputError("describes a model that no machine can hold", where=where) from None
    return {name: tuple(weight.shape) for name, weight in state.items()}
