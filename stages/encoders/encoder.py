"""A published encoder that is ready to run, and batches whose shapes follow from each text alone.

A sequence is padded to a multiple of `MULTIPLE`. Floating-point sums depend on the shape of a
product, and within one shape a library may sum some rows in another order than others. So a shape
is tried with equal rows before several sequences run in it; where their results differ, they run
one by one. The result of a sequence is then the same bytes whatever sequences come with it, which
is what lets a score be reused.

On a CPU with packed layers (see `packed`) the result of a sequence is what it gives alone. Several
run together only after a full batch and one of half its size gave equal rows the bytes of one
alone, and that is tried once there are enough sequences of a length to repay it. Elsewhere a batch
has as many rows as its length allows, always, and places without a sequence hold a copy.

Short passes cost a CPU little: one of 1,024 tokens keeps its cores as busy as one of 16,384, whose
activations no longer fit into the cache. A GPU needs the larger ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tokenizers
import torch
import transformers
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.encoders.packed import can_pack, pack_model
from stages.encoders.published import copy_encoder
from stages.training.devices import choose_device, determinism, device_name

if TYPE_CHECKING:
    from stages.encoders.config import EncoderExecution
    from stages.engine import Context

MULTIPLE = 8
"""Tokens that a padded length is a multiple of."""
LEAST_ROWS = 4
"""Of a batch: fewer sequences than these run no faster together than one by one."""
CPU_PASSES, GPU_PASSES = 2, 64
"""Sequences of the longest length in one pass, where nothing else is asked."""
REPAYING = 2
"""Full batches of one length, from which trying their shape costs less than it saves."""
CHARACTERS_A_TOKEN = 8
"""Of a long text so much is read at first; ordinary text has 3 to 5 characters a token."""

Sequences = Sequence[Sequence[int]]


@dataclass(frozen=True)
class EncoderSpec:
    """Which encoder, and how it computes. Picklable.

    `device` is torch's name. A sequence has at most `max_length` tokens, special ones included; a
    text gives the first `windows` such sequences.
    """

    folder: Path
    head: Literal["classifier", "none"]
    device: str
    precision: Literal["float32", "bfloat16"]
    max_length: int
    windows: int
    batch_tokens: int
    threads: int
    where: str
    """How an error names the model."""

    def workers(self, execution: EncoderExecution) -> int | None:
        """Worker processes of a map: on a GPU one, unless the execution asks for more."""
        return None if self.device == "cpu" else execution.workers or 1


def read_encoder(context: Context, head: Literal["classifier", "none"]) -> EncoderSpec:
    """The encoder in role `model` of a stage with an `EncoderExecution`, where workers can open it.

    The config has `precision`, `max_length` and `windows`. Records the layout. InputError for files
    that are not read.
    """
    config, execution, where = context.config, context.execution, f"{context.attempt.stage}.model"
    device = choose_device(execution.device)
    passes = CPU_PASSES if device.type == "cpu" else GPU_PASSES
    batch_tokens = execution.batch_tokens or config.max_length * passes
    context.devices_held = 1 if device.type == "cuda" else 0
    context.layout(
        device=device_name(device),
        threads=execution.threads,
        batch_tokens=batch_tokens,
        dtype=config.precision,
        torch=str(torch.__version__),
        transformers=transformers.__version__,
        tokenizers=tokenizers.__version__,
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
    )
    return EncoderSpec(
        folder=copy_encoder(context.one("model"), context.work / "model", where=where),
        head=head,
        device=str(device),
        precision=config.precision,
        max_length=config.max_length,
        windows=config.windows,
        batch_tokens=batch_tokens,
        threads=execution.threads,
        where=where,
    )


@lru_cache(maxsize=1)
def load_encoder(spec: EncoderSpec) -> Encoder:
    """The encoder on its device, once a process. InputError for what cannot be used."""
    model, labels, problem = _load_model(spec)
    return Encoder(spec, model, _load_tokenizer(spec), labels, problem)


class Encoder:
    """A model in inference mode and its tokenizer.

    `labels` are those of the model's config in their order, `problem` its `problem_type`; of an
    encoder without a classifier's head both are empty.
    """

    def __init__(
        self, spec: EncoderSpec, model: Any, tokenizer: Any, labels: tuple[str, ...], problem: str
    ) -> None:
        self.spec, self.labels, self.problem = spec, labels, problem
        self._model, self._tokenizer = model, tokenizer
        self._device = torch.device(spec.device)
        self._rows: dict[tuple[int, bool], int] = {}
        padding = getattr(model.config, "pad_token_id", None)
        self._padding = padding if isinstance(padding, int) and padding >= 0 else 0
        vocabulary = model.get_input_embeddings().weight.shape[0]
        size = tokenizer.get_vocab_size(with_added_tokens=True)
        if size > vocabulary:
            raise InputError(
                f"the tokenizer has {size:,} tokens, the model rows for {vocabulary:,}",
                where=spec.where,
                hint="pin the files of one model",
            )
        tokenizer.enable_truncation(spec.max_length)
        self._special = len(tokenizer.encode("").ids)
        self._seen: Counter[tuple[int, bool]] = Counter()
        self._packed = can_pack(self._device, getattr(torch, spec.precision))
        if self._packed:
            with self._arithmetic():
                pack_model(model, first_token=spec.head == "classifier")

    def tokenize(self, texts: Sequence[str]) -> list[tuple[list[list[int]], bool]]:
        """For each text its sequences, none where it has no token, and whether it goes on.

        Of a long text only the beginning is read, up to white space, where that holds more tokens
        than are asked for: it is the same tokens for a tokenizer that splits at white space.
        """
        limit = self.spec.windows * self.spec.max_length * CHARACTERS_A_TOKEN
        heads = [_cut(text, limit) for text in texts]
        encoded = self._tokenizer.encode_batch(heads)
        for row, (text, head) in enumerate(zip(texts, heads, strict=True)):
            if len(head) < len(text) and len(encoded[row].overflowing) < self.spec.windows:
                encoded[row] = self._tokenizer.encode(text)
        return [self._windows(one) for one in encoded]

    def _windows(self, encoding: Any) -> tuple[list[list[int]], bool]:
        parts = [encoding, *encoding.overflowing]
        ids = [part.ids for part in parts[: self.spec.windows]]
        return [one for one in ids if len(one) > self._special], len(parts) > self.spec.windows

    def run(self, sequences: Sequences, check_stop: Callable[[], None]) -> NDArray[np.float32]:
        """[sequence, output] The logits of each sequence, or its mean state without a head.

        `check_stop` is called before each pass, and may raise. InputError where the model gives
        what is not finite.
        """
        results: list[Any] = [None] * len(sequences)
        with self._arithmetic():
            for length, rows, members in self._batches([len(one) for one in sequences]):
                check_stop()
                ids = np.full((rows, length), self._padding, dtype=np.int64)
                mask = np.zeros_like(ids)
                for row in range(rows):
                    tokens = sequences[members[min(row, len(members) - 1)]]
                    ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
                output = self._forward(ids, mask)
                for row, member in enumerate(members):
                    results[member] = output[row]
        values: NDArray[np.float32] = np.stack(results) if results else np.empty((0, 0), np.float32)
        if not np.isfinite(values).all():
            lower = self.spec.precision != "float32"
            raise InputError(
                "the model gives numbers that are not finite",
                where=self.spec.where,
                hint="set precision to float32" if lower else "are its weights whole?",
            )
        return values

    @contextmanager
    def _arithmetic(self) -> Iterator[None]:
        """Inside it, torch computes as the specification says, and the same each time."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.spec.threads)
        try:
            with (
                torch.inference_mode(),
                determinism(self._device, required=True, compiled=False),
            ):
                yield
        finally:
            torch.set_num_threads(before)

    def _batches(self, lengths: Sequence[int]) -> Iterator[tuple[int, int, list[int]]]:
        """(padded length, rows, members) of each pass, the shortest first.

        A mask changes which kernel runs, so all are padded by at least one token; only those of the
        greatest length are not, and go by themselves.
        """
        most = self.spec.max_length
        shapes = [(min(most, n // MULTIPLE * MULTIPLE + MULTIPLE), n) for n in lengths]
        groups: dict[tuple[int, bool], list[int]] = {}
        for member, (length, tokens) in enumerate(shapes):
            groups.setdefault((length, length == tokens), []).append(member)
        for (length, full), members in sorted(groups.items()):
            rows = self._choose_rows(length, full, len(members))
            for start in range(0, len(members), rows):
                part = members[start : start + rows]
                yield length, len(part) if self._packed else rows, part

    def _choose_rows(self, length: int, full: bool, more: int) -> int:
        """Most sequences of one pass, where `more` of this shape wait: as many as fit, or one."""
        rows = self.spec.batch_tokens // length
        if rows < LEAST_ROWS:
            return 1
        self._seen[length, full] += more
        if self._packed and self._seen[length, full] < REPAYING * rows:
            return 1
        if (length, full) not in self._rows:
            self._rows[length, full] = rows if self._has_equal_rows(length, full, rows) else 1
        return self._rows[length, full]

    def _has_equal_rows(self, length: int, full: bool, rows: int) -> bool:
        """Whether a batch of equal sequences gives each the same bytes; if packed, in any size."""
        vocabulary = self._tokenizer.get_vocab_size(with_added_tokens=True)
        tokens = 1 + np.arange(length, dtype=np.int64) * 7919 % max(1, vocabulary - 1)
        tokens[tokens == self._padding] -= 1
        mask = np.ones_like(tokens)
        if not full:
            tokens[-1], mask[-1] = self._padding, 0
        sizes = (1, rows // 2 + 1, rows) if self._packed else (rows,)
        outputs = [self._forward(np.tile(tokens, (n, 1)), np.tile(mask, (n, 1))) for n in sizes]
        return all((output == outputs[0][0]).all() for output in outputs)

    def _forward(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {
            "input_ids": torch.from_numpy(ids).to(self._device),
            "attention_mask": torch.from_numpy(mask).to(self._device),
        }
        try:
            output = self._model(**inputs)
        except (IndexError, ValueError, RuntimeError) as error:
            raise InputError(
                f"the model cannot run {ids.shape[0]} sequences of {ids.shape[1]} tokens: "
                f"{str(error).splitlines()[0][:200]}",
                where=self.spec.where,
                hint="lower max_length to what the model was made for, or batch_tokens",
            ) from error
        if self.spec.head == "classifier":
            values = output.logits.float()
        else:
            weights = inputs["attention_mask"][..., None].float()
            values = (output.last_hidden_state.float() * weights).sum(1) / weights.sum(1)
        return values.cpu().numpy()  # type: ignore[no-any-return]


def _cut(text: str, limit: int) -> str:
    """The beginning of a text up to the last space or line feed within `limit` characters."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(" ", limit // 2, limit), text.rfind("\n", limit // 2, limit))
    return text[:end] if end > 0 else text


def _load_model(spec: EncoderSpec) -> tuple[Any, tuple[str, ...], str]:
    """Model, labels and problem type. InputError unless each weight is there and finite."""
    from transformers import AutoModel, AutoModelForSequenceClassification
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    kind: Any = AutoModelForSequenceClassification if spec.head == "classifier" else AutoModel
    options = {
        "local_files_only": True,
        "trust_remote_code": False,
        "use_safetensors": True,
        "dtype": torch.float32,
        "output_loading_info": True,
    }
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # What is missing is an error below; a surplus head is none.
    try:
        try:
            model, loaded = kind.from_pretrained(spec.folder, attn_implementation="sdpa", **options)
        except ValueError as error:
            if "scaled_dot_product_attention" not in str(error):
                raise
            model, loaded = kind.from_pretrained(
                spec.folder, attn_implementation="eager", **options
            )
    except Exception as error:  # Of many kinds, for a file that a library does not expect.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"transformers cannot load it: {reason[:300]}",
            where=spec.where,
            hint=f"it must be a model that {kind.__name__} knows",
        ) from error
    finally:
        logging.set_verbosity(verbosity)
    # What a head alone lacks is no loss: pooled states do not read it.
    missing = [name for name in loaded["missing_keys"] if not name.startswith("pooler.")]
    if missing:
        raise InputError(
            f"its files lack the weights {', '.join(sorted(missing)[:3])}, which would be drawn "
            "at random",
            where=spec.where,
            hint="give the model that was trained to classify, not the encoder that it began with",
        )
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise InputError(f"weight {name} is not finite", where=spec.where)
    model.eval().to(device=spec.device, dtype=getattr(torch, spec.precision))
    if spec.head != "classifier":
        return model, (), ""
    names = model.config.id2label
    labels = tuple(str(names[number]) for number in range(model.config.num_labels))
    return model, labels, str(model.config.problem_type or "")


def _load_tokenizer(spec: EncoderSpec) -> Any:
    """The tokenizer's fast form, as `transformers` completes it."""
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(
            spec.folder, local_files_only=True, trust_remote_code=False
        )
        tokenizer = loaded.backend_tokenizer
        tokenizer.no_padding()
        probe = tokenizer.encode("a b")
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"transformers cannot load its tokenizer: {reason[:300]}", where=spec.where
        ) from error
    if any(probe.type_ids):
        raise InputError("its tokenizer marks segments of a text, not supported", where=spec.where)
    return tokenizer
