"""The evaluation cut into parts that workers measure: benchmarks, held-out sources, generations.

Bits per byte of held-out documents under a model and under the unigram model; texts that the
model writes, for people to read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from logging import Logger
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError, Stopped
from stages.engine import Input, ShardOutput
from stages.evaluate.benchmarks import TEXT, Item, Scorer, measure_choices, measure_texts
from stages.evaluate.config import EvaluateConfig, EvaluateExecution
from stages.evaluate.observations import Observation, to_table
from stages.model.decoder import Decoder
from stages.model.files import read_model, read_tokenizer
from stages.scoring.likelihood import encode_text, generate, target_nll, unigram_nll
from stages.tokens import chat
from stages.tokens.chat_template import read_template, render_prompt
from stages.tokens.vocabulary import SpecialTokens
from stages.training.devices import current_device
from stages.training.losses import autocast
from stages.training.shard_index import DocumentSegment
from stages.training.token_shards import TokenShards, spread


def check_shards(shards: TokenShards, model: Decoder, tokenizer: Tokenizer) -> None:
    """InputError unless the shards hold this tokenizer's ids, in rows that the model can see."""
    if shards.vocabulary_size != tokenizer.get_vocab_size():
        raise InputError(
            f"held-out shards have a vocabulary of {shards.vocabulary_size}, "
            f"the checkpoint's tokenizer has {tokenizer.get_vocab_size()}",
            hint="evaluate on shards packed with the tokenizer of the checkpoint",
        )
    if shards.sequence_length > model.config.context:
        raise InputError(
            f"held-out sequences have {shards.sequence_length} tokens, "
            f"the model's context has {model.config.context}",
            hint="pack held-out text at the model's context",
        )


def measure_source(
    model: Decoder,
    shards: TokenShards,
    source: str,
    unigram_nll: NDArray[np.float64],
    *,
    max_tokens: int,
    batch_tokens: int,
    check_stop: Callable[[], None] = lambda: None,
) -> list[Observation]:
    """An observation for each held-out document of `source`, in the order of first appearance.

    bits per byte = Σ nll / ln 2 / Σ bytes over targets that stand for bytes: special tokens count
    on neither side, and the first token of a piece cut from a longer document has no target.
    """
    token_bytes = shards.token_bytes()
    size = shards.sequences[source]
    sequences = spread(size, min(size, max(1, max_tokens // shards.sequence_length)))
    rows = max(1, batch_tokens // shards.sequence_length)
    sums: dict[str, NDArray[np.float64]] = {}
    for start in range(0, len(sequences), rows):
        check_stop()
        chosen_B = sequences[start : start + rows]
        sources_B = np.full(len(chosen_B), shards.sources.index(source), dtype=np.int64)
        batch = shards.batch(sources_B, chosen_B)
        nll_BL = target_nll(
            model, *map(torch.from_numpy, (batch.tokens_BL, batch.targets_BL, batch.documents_BL))
        )
        targets_BL = np.maximum(batch.targets_BL, 0)
        bytes_BL = np.where(batch.targets_BL >= 0, token_bytes[targets_BL], 0)
        counted_BL = bytes_BL > 0
        measured_3BL = np.stack(
            [nll_BL * counted_BL, bytes_BL, unigram_nll[targets_BL] * counted_BL]
        )
        _add_pieces(sums, measured_3BL, shards.documents_of(sources_B, chosen_B))
    return [
        Observation(
            f"held_out/{source}",
            doc_id,
            "bits_per_byte",
            numerator=float(nll / math.log(2)),
            denominator=float(size),
            baseline=float(unigram / math.log(2)),
        )
        for doc_id, (nll, size, unigram) in sums.items()
        if size
    ]


def _add_pieces(
    sums: dict[str, NDArray[np.float64]],
    measured_3BL: NDArray[np.float64],
    documents: Sequence[Sequence[DocumentSegment]],
) -> None:
    """Add nll, bytes and unigram nll of every piece to its document's."""
    for row, pieces in enumerate(documents):
        for piece in pieces:
            span = slice(piece.start, piece.start + piece.length)
            total = sums.setdefault(piece.doc_id, np.zeros(3))
            total += measured_3BL[:, row, span].sum(axis=1)


@dataclass(frozen=True)
class Prompt:
    """What the model is to continue: `form` is `text` or `chat`."""

    form: str
    text: str
    ids: tuple[int, ...]


def read_prompts(checkpoint: Input, config: EvaluateConfig, log: Logger) -> list[Prompt]:
    """The prompts of the config, those of a chat rendered by the template of the checkpoint.

    A checkpoint without a template was not trained on conversations: its chat prompts are skipped
    with a warning. InputError where a template does not render, or ChatML lacks its tokens.
    """
    if not config.text_prompts and not config.chat_prompts:
        return []
    tokenizer = read_tokenizer(checkpoint)
    described = checkpoint.read_json("tokenizer_config.json")
    special = SpecialTokens.from_config(tokenizer, described)
    prompts = [
        Prompt("text", text, (special.context, *encode_text(tokenizer, text)))
        for text in config.text_prompts
    ]
    template = read_template(checkpoint)
    if template is None:
        if config.chat_prompts:
            log.warning("the checkpoint has no chat template: no chat prompt is asked")
        return prompts
    for question in config.chat_prompts:
        messages = [{"role": "user", "content": question}]
        if template == chat.CHAT_TEMPLATE:
            begin = chat.find_chat_start(tokenizer, special)
            prompt = chat.render_segments(messages, add_generation_prompt=True, begin=begin)
            ids, _ = chat.encode_segments(tokenizer, prompt)
            text = "".join(part.text for part in prompt)
        else:
            text = render_prompt(template, messages, described)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
        prompts.append(Prompt("chat", text, tuple(ids)))
    return prompts


def write_generations(
    model: Decoder,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    prompts: Sequence[Prompt],
    config: EvaluateConfig,
) -> list[dict[str, str]]:
    """Rows of `generations.parquet`: continued texts first, then answers.

    Both end at the token that ends a document or a turn. The prompt with number i is drawn with
    seed + i.
    """
    stop = {token for token in (special.end, special.turn_end) if token is not None}
    rows = []
    for number, prompt in enumerate(prompts):
        written = generate(
            model,
            list(prompt.ids),
            max_new_tokens=config.max_new_tokens,
            stop=stop,
            temperature=config.temperature,
            seed=config.seed + number,
        )
        completion = tokenizer.decode(written, skip_special_tokens=True)
        rows.append({"prompt": prompt.text, "completion": completion, "form": prompt.form})
    return rows


OBSERVATIONS = "observations"


@dataclass(frozen=True)
class BenchmarkPart:
    """The drawn items of one benchmark."""

    id: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class HeldOutPart:
    """One source of the held-out shards."""

    id: str
    source: str


@dataclass(frozen=True)
class GenerationPart:
    """All prompts."""

    prompts: tuple[Prompt, ...]
    id: str = "generations"


Part = BenchmarkPart | HeldOutPart | GenerationPart


def measure_part(
    part: Part,
    out: ShardOutput,
    *,
    checkpoint: Input,
    held_out: Sequence[Input],
    config: EvaluateConfig,
    execution: EvaluateExecution,
    device: str,
) -> dict[str, Any]:
    """Measure one part on a device: observations as scratch, bad items and generations as value."""
    place = torch.device(device)
    with (
        native_threads(execution.threads),
        current_device(place),
        autocast(place, execution.precision),
    ):
        model, tokenizer = read_model(checkpoint).to(place), read_tokenizer(checkpoint)
        special = SpecialTokens.from_config(
            tokenizer, checkpoint.read_json("tokenizer_config.json")
        )
        if isinstance(part, GenerationPart):
            written = write_generations(model, tokenizer, special, part.prompts, config)
            return {"generations": written}
        shards = TokenShards(held_out) if held_out else None
        if shards is not None:
            check_shards(shards, model, tokenizer)
        baseline = unigram_nll(shards.train_counts()) if shards is not None else None
        if isinstance(part, BenchmarkPart):
            prefix = special.context
            scorer = Scorer(model, tokenizer, prefix, baseline, execution.batch_tokens)
            choices = [item for item in part.items if item.form != TEXT]
            observed, bad = measure_choices(scorer, choices, config.delimiter)
            observed += measure_texts(scorer, [item for item in part.items if item.form == TEXT])
        else:
            assert shards is not None
            assert baseline is not None
            bad = []
            observed = measure_source(
                model,
                shards,
                part.source,
                baseline,
                max_tokens=config.max_held_out_tokens,
                batch_tokens=execution.batch_tokens,
                check_stop=lambda: _check_stop(out),
            )
    out.write_scratch(OBSERVATIONS, to_table(observed))
    return {"bad": [[item.benchmark, item.item_id, item.reason] for item in bad]}


@contextmanager
def native_threads(count: int) -> Iterator[None]:
    """Torch computes with `count` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _check_stop(out: ShardOutput) -> None:
    if out.stopping:
        raise Stopped("stopped on request", hint="run the same command to continue")
