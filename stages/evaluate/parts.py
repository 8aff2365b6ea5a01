"""The evaluation cut into parts that workers measure: benchmarks, held-out sources, generations.

Bits per byte of held-out documents under a model and under the unigram model; texts that the
model writes, for people to read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from logging import Logger
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError, Stopped
from stages.engine import Input, ShardOutput, ShardResult
from stages.evaluate.benchmarks import TEXT, BadItem, Item
from stages.evaluate.config import EvaluateConfig, EvaluateExecution
from stages.evaluate.measure import Scorer, measure_choices, measure_texts
from stages.evaluate.questions import Prompt, Writer, judge
from stages.evaluate.writing import AnswerPart, answer, length_observations, write_answers
from stages.model.decoder import Decoder
from stages.model.files import read_model, read_tokenizer
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.answers import Answer
from stages.scoring.answers import from_table as answers_from_table
from stages.scoring.answers import to_table as answers_to_table
from stages.scoring.choices import Choice, choice_observations
from stages.scoring.choices import from_table as choices_from_table
from stages.scoring.choices import to_table as choices_to_table
from stages.scoring.dtypes import Dtype, arithmetic, weights_type
from stages.scoring.likelihood import encode_text, target_nll, unigram_nll
from stages.scoring.metrics import Normalisation
from stages.scoring.observations import Observation, from_table, to_table
from stages.tokens.chat_template import encode_prompt, read_template
from stages.tokens.vocabulary import SpecialTokens
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
    ranks: Ranks = ALONE,
    check_stop: Callable[[], None] = lambda: None,
) -> list[Observation]:
    """An observation for each held-out document of `source`, in the order of first appearance.

    bits per byte = Σ nll / ln 2 / Σ bytes over targets that stand for bytes: special tokens count
    on neither side, and the first token of a piece cut from a longer document has no target.
    """
    token_bytes = shards.token_bytes()
    size = shards.sequences[source]
    sequences = spread(size, min(size, max(1, max_tokens // shards.sequence_length)))
    rows = max(1, batch_tokens // shards.sequence_length) * ranks.layout.rows
    sums: dict[str, NDArray[np.float64]] = {}
    for start in range(0, len(sequences), rows):
        check_stop()
        chosen_B = sequences[start : start + rows]
        sources_B = np.full(len(chosen_B), shards.sources.index(source), dtype=np.int64)
        batch = shards.batch(sources_B, chosen_B)
        nll_BL = target_nll(
            model,
            *map(torch.from_numpy, (batch.tokens_BL, batch.targets_BL, batch.documents_BL)),
            ranks=ranks,
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


def read_prompts(checkpoint: Input, config: EvaluateConfig, log: Logger) -> list[Prompt]:
    """The prompts of the config, those of a chat rendered by the template of the checkpoint.

    A checkpoint without a template was not trained on conversations: its chat prompts are skipped
    with a warning. InputError where a template does not render, or ChatML lacks its tokens.
    """
    if not config.text_prompts and not config.chat_prompts:
        return []
    prompts = render_texts(checkpoint, config.text_prompts)
    chats = render_questions(checkpoint, config.chat_prompts)
    if chats is None and config.chat_prompts:
        log.warning("the checkpoint has no chat template: no chat prompt is asked")
    return [*prompts, *(chats or [])]


def render_texts(checkpoint: Input, texts: Sequence[str]) -> list[Prompt]:
    """Prompts of texts that the model goes on writing."""
    tokenizer = read_tokenizer(checkpoint)
    described = checkpoint.read_json("tokenizer_config.json")
    special = SpecialTokens.from_config(tokenizer, described)
    return [
        Prompt("text", text, (special.context, *encode_text(tokenizer, text))) for text in texts
    ]


def render_questions(checkpoint: Input, questions: Sequence[str]) -> list[Prompt] | None:
    """Prompts of questions by the template of the checkpoint; None without a template."""
    template = read_template(checkpoint)
    if template is None:
        return None
    tokenizer = read_tokenizer(checkpoint)
    described = checkpoint.read_json("tokenizer_config.json")
    prompts = []
    for question in questions:
        messages = [{"role": "user", "content": question}]
        text, ids = encode_prompt(tokenizer, template, messages, described)
        prompts.append(Prompt("chat", text, tuple(ids)))
    return prompts


OBSERVATIONS, CHOICES, WRITTEN = "observations", "choices", "answers"
USUAL: tuple[Normalisation, ...] = ("sum", "bytes")
"""Normalisations that an evaluation itself has; `score` has the others."""


@dataclass(frozen=True)
class BenchmarkPart:
    """Some of the drawn items of one benchmark: what a run that is killed does again."""

    id: str
    items: tuple[Item, ...]


ITEMS_OF_PART = 128
"""Items of a part. What they all begin with is computed once in each."""


def benchmark_parts(name: str, items: Sequence[Item]) -> list[BenchmarkPart]:
    """The items of a benchmark in parts."""
    return [
        BenchmarkPart(f"{name}-{start // ITEMS_OF_PART:04d}", tuple(items[start:][:ITEMS_OF_PART]))
        for start in range(0, len(items), ITEMS_OF_PART)
    ]


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


KEPT_ANSWERS = 5
"""Answers of each benchmark of questions that are kept: the first ones, not chosen."""


@dataclass(frozen=True)
class QuestionPart:
    """Questions of one benchmark and their prompts, in the order in which they are asked."""

    id: str
    items: tuple[Item, ...]
    prompts: tuple[Prompt, ...]


Part = BenchmarkPart | HeldOutPart | GenerationPart | QuestionPart | AnswerPart


@dataclass(frozen=True)
class PartResult:
    """What was measured of a part."""

    observed: list[Observation] = field(default_factory=list)
    bad: list[BadItem] = field(default_factory=list)
    generations: list[dict[str, str | None]] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    """How many items of which peculiarity: see `MeasuredChoices`."""
    answers: list[Answer] = field(default_factory=list)


@dataclass(frozen=True)
class Evaluator:
    """A checkpoint that is ready to be measured; each of several `ranks` has one, and calls it for
    the same parts in the same order."""

    model: Decoder
    tokenizer: Tokenizer
    special: SpecialTokens
    shards: TokenShards | None
    baseline: NDArray[np.float64] | None
    config: EvaluateConfig
    execution: EvaluateExecution
    ranks: Ranks
    check_stop: Callable[[], None]

    @classmethod
    def open(
        cls,
        model: Decoder,
        checkpoint: Input,
        held_out: Sequence[Input],
        config: EvaluateConfig,
        execution: EvaluateExecution,
        *,
        ranks: Ranks = ALONE,
        check_stop: Callable[[], None],
    ) -> Evaluator:
        """With the tokenizer of `checkpoint`, whose model is on its device; InputError for held-out
        shards that do not fit it. `check_stop` is called before each batch, and may raise."""
        tokenizer = read_tokenizer(checkpoint)
        described = checkpoint.read_json("tokenizer_config.json")
        special = SpecialTokens.from_config(tokenizer, described)
        shards = TokenShards(held_out) if held_out else None
        if shards is not None:
            check_shards(shards, model, tokenizer)
        baseline = unigram_nll(shards.train_counts()) if shards is not None else None
        return cls(
            model, tokenizer, special, shards, baseline, config, execution, ranks, check_stop
        )

    def measure(self, part: Part) -> PartResult:
        """Measure one part, inside of `arithmetic`."""
        config, execution = self.config, self.execution
        if isinstance(part, GenerationPart | QuestionPart):
            return self._write(part)
        if isinstance(part, AnswerPart):
            answers = write_answers(part, self.writer)
            return PartResult(length_observations(answers), answers=answers)
        if isinstance(part, BenchmarkPart):
            scorer = Scorer(
                self.model,
                self.tokenizer,
                self.special.context,
                self.baseline,
                execution.batch_tokens,
                self.ranks,
                self.check_stop,
            )
            choices = [item for item in part.items if item.form != TEXT]
            measured = measure_choices(
                scorer, choices, config.delimiter, unconditional=config.unconditional
            )
            several = {item.benchmark for item in part.items if item.right}
            observed = choice_observations(measured.choices, USUAL, several)
            observed += measure_texts(scorer, [item for item in part.items if item.form == TEXT])
            notes = dict(sorted(measured.notes.items()))
            return PartResult(observed, measured.bad, choices=measured.choices, notes=notes)
        assert self.shards is not None
        assert self.baseline is not None
        observed = measure_source(
            self.model,
            self.shards,
            part.source,
            self.baseline,
            max_tokens=config.max_held_out_tokens,
            batch_tokens=execution.batch_tokens,
            ranks=self.ranks,
            check_stop=self.check_stop,
        )
        return PartResult(observed)

    @property
    def writer(self) -> Writer:
        """The model as one that continues prompts, as the config says."""
        special, config = self.special, self.config
        return Writer(
            self.model,
            self.tokenizer,
            special.ends,
            config.max_new_tokens,
            config.temperature,
            config.seed,
            self.execution.batch_tokens,
            self.ranks,
            self.check_stop,
        )

    def _write(self, part: GenerationPart | QuestionPart) -> PartResult:
        """Rows of `generations.parquet`; of questions the answers, and what they are worth."""
        written = self.writer.write(part.prompts)
        rows: list[dict[str, str | None]] = [
            {"prompt": prompt.text, "completion": one.text, "form": prompt.form, "benchmark": None}
            for prompt, one in zip(part.prompts, written, strict=True)
        ]
        if isinstance(part, GenerationPart):
            return PartResult(generations=rows)
        kept = [{**row, "benchmark": part.items[0].benchmark} for row in rows[:KEPT_ANSWERS]]
        answers = [
            answer(item, item.question, one, chat=True)
            for item, one in zip(part.items, written, strict=True)
        ]
        judged = judge(part.items, [one.text for one in written])
        return PartResult(judged, generations=kept, answers=answers)


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
    """Measure one part in a worker: observations as scratch, bad items and generations as value."""

    def check_stop() -> None:
        if out.stopping:
            raise Stopped()

    place = torch.device(device)
    with arithmetic(place, config.dtype, execution.threads):
        model = _hold_model(checkpoint, place, config.dtype)
        evaluator = Evaluator.open(
            model, checkpoint, held_out, config, execution, check_stop=check_stop
        )
        result = evaluator.measure(part)
    out.write_scratch(OBSERVATIONS, to_table(result.observed))
    out.write_scratch(CHOICES, choices_to_table(result.choices))
    out.write_scratch(WRITTEN, answers_to_table(result.answers))
    return {
        "bad": [astuple(item) for item in result.bad],
        "generations": result.generations,
        "notes": result.notes,
    }


_held: dict[tuple[str, str, Dtype], Decoder] = {}


def _hold_model(checkpoint: Input, device: torch.device, dtype: Dtype) -> Decoder:
    """The model of `checkpoint`, read once for all parts that a process measures one by one."""
    name = checkpoint.digest, str(device), dtype
    if name not in _held:
        _held.clear()
        _held[name] = read_model(checkpoint).to(device, weights_type(dtype))
    return _held[name]


def read_part(result: ShardResult) -> PartResult:
    """What `measure_part` handed over."""
    observed = from_table(result.read_scratch(OBSERVATIONS))
    bad = [BadItem(*item) for item in result.value["bad"]]
    measured = choices_from_table(result.read_scratch(CHOICES))
    written = answers_from_table(result.read_scratch(WRITTEN))
    value = result.value
    return PartResult(observed, bad, value["generations"], measured, value["notes"], written)
