"""The decoder's weights, made of the published tensors one at a time.

Published safetensors files are untrusted; they are mapped and read tensor by tensor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.engine import Context
from stages.engine.strict_json import parse_object
from stages.import_model.files import CarriedTokenizer, ModelFiles
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.families import adoption, from_config
from stages.model.huggingface.family import Weight
from stages.model.huggingface.snapshot_files import INDEX
from stages.model.tensor_files import STORED_TYPES, TensorSpec


class SafetensorsFile:
    """An open file, read by the safetensors library, which checks that tensors fill it exactly.

    InputError if the header violates the format (the library accepts a duplicate name), or if
    a tensor is not of 16 or 32 bit floats.
    """

    def __init__(self, file: BinaryIO, *, where: str) -> None:
        self.where = where
        try:
            # By its descriptor: the path may have been replaced since the file was opened.
            self._file = safe_open(f"/dev/fd/{file.fileno()}", framework="pt")
        except (SafetensorError, OSError) as error:
            raise self._wrong(f"safetensors cannot read it: {error}") from None
        parse_object(file.read(int.from_bytes(file.read(8), "little")), where=where)
        self.metadata: Mapping[str, str] = self._file.metadata() or {}
        self.specs = {name: self._spec(name) for name in self._file.keys()}  # noqa: SIM118

    def read(self, name: str) -> Tensor:
        """A tensor in its own type; InputError if it holds a number that is not finite."""
        tensor: Tensor = self._file.get_tensor(name)
        # Both ends are NaN if one number is.
        if tensor.numel() and not all(end.isfinite() for end in tensor.aminmax()):
            raise self._wrong(f"has numbers that are not finite in '{name[:80]}'")
        return tensor

    def _spec(self, name: str) -> TensorSpec:
        described = self._file.get_slice(name)
        kind = described.get_dtype()
        if kind not in STORED_TYPES:
            raise InputError(
                f"'{name[:80]}' is of type {kind}, known are {', '.join(STORED_TYPES)}",
                where=self.where,
                hint="take the weights before quantization",
            )
        return TensorSpec(STORED_TYPES[kind], tuple(described.get_shape()))

    def _wrong(self, what: str) -> InputError:
        return InputError(what, where=self.where, hint="is it whole, and a safetensors file?")


class PublishedTensors(Mapping[str, Tensor]):
    """Tensors by name, in their own types. Nothing is kept: each look-up reads the file."""

    def __init__(self, place: Mapping[str, SafetensorsFile]) -> None:
        self.place = place

    def __getitem__(self, name: str) -> Tensor:
        return self.place[name].read(name)

    def __contains__(self, name: object) -> bool:
        return name in self.place  # Mapping's own would read the tensor.

    def __iter__(self) -> Iterator[str]:
        return iter(self.place)

    def __len__(self) -> int:
        return len(self.place)

    def spec(self, name: str) -> TensorSpec:
        """Type and shape of a tensor, from the header alone."""
        return self.place[name].specs[name]


@contextmanager
def open_tensors(files: ModelFiles) -> Iterator[PublishedTensors]:
    """All tensors, until the block ends.

    InputError if two files have one tensor, or if index and files disagree.
    """
    with ExitStack() as stack:
        place: dict[str, SafetensorsFile] = {}
        for name, source in files.weights.items():
            file = stack.enter_context(source.open())
            shard = SafetensorsFile(file, where=source.name)
            for tensor in shard.specs:
                if tensor in place:
                    first = place[tensor].where
                    raise InputError(f"'{tensor[:80]}' is in {first} too", where=source.name)
                if files.placed is not None and files.placed.get(tensor) != name:
                    raise _index_error(tensor, files.placed.get(tensor), name)
                place[tensor] = shard
        for tensor, name in (files.placed or {}).items():
            if tensor not in place:
                raise _index_error(tensor, name, None)
        yield PublishedTensors(place)


def _index_error(tensor: str, indexed: str | None, actual: str | None) -> InputError:
    return InputError(
        f"places '{tensor[:80]}' in {indexed or 'no file'}, it is in {actual or 'none'}",
        where=INDEX,
        hint="the files are not of one model; pin them again",
    )


_VOCABULARY = ("embedding.weight", "head.weight")
_TIED_HEAD = "lm_head.weight"


class DecoderWeights:
    """Types and shapes of all weights, and each weight on demand.

    The vocabulary gets `rows` rows: those after the published ones are their mean, which makes no
    new token likely (Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language
    Models"). InputError names a tensor that is missing, unknown or of another shape, before any is
    read.
    """

    def __init__(self, files: ModelFiles, published: PublishedTensors, *, rows: int) -> None:
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
        weight = self.weights[name].adopt(self.published, where=self.where)
        lacking = self.rows - weight.shape[0] if name in _VOCABULARY else 0
        if lacking:
            # NumPy adds the rows in one order, whatever the number of threads.
            mean_D = torch.from_numpy(weight.float().numpy().mean(0, dtype="float64"))
            weight = torch.cat((weight, mean_D.float().to(weight.dtype).expand(lacking, -1)))
        return weight.to(self.specs[name].dtype)

    def reporting(self, context: Context) -> Callable[[str], Tensor]:
        """Each weight on demand, with progress, unless the stage is asked to stop."""
        done = itertools.count(1)

        def get(name: str) -> Tensor:
            context.check_stop()
            weight = self[name]
            context.progress(next(done), len(self.specs), "weights")
            return weight

        return get

    def check_tied(self) -> None:
        """InputError if an output projection that should be the embedding is another matrix."""
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
        dtypes = {self.published.spec(name).dtype for name in weight.published}
        return dtypes.pop() if len(dtypes) == 1 else torch.float32

    def _check(self, weight: Weight, shape: tuple[int, ...]) -> None:
        expected = shape[1:] if len(weight.published) > 1 else shape
        for name in weight.published:
            actual = self.published.spec(name).shape
            if actual != expected:
                raise InputError(
                    f"tensor '{name}' is {list(actual)}, the config wants {list(expected)}",
                    where=self.where,
                )


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
