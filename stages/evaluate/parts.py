"""The evaluation cut into parts that workers measure: benchmarks, held-out sources, generations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from artifacts_schema.errors import Stopped
from stages.evaluate.benchmarks import Scorer, measure_items
from stages.evaluate.config import EvaluateConfig, EvaluateExecution
from stages.evaluate.generations import Prompt, write_generations
from stages.evaluate.held_out import check_shards, measure_source
from stages.evaluate.items import Item
from stages.evaluate.observations import to_table
from stages.model.files import read_model, read_tokenizer
from stages.scoring.unigram import unigram_nll
from stages.text.special_tokens import SpecialTokens
from stages.training.data import TokenShards

if TYPE_CHECKING:
    from stages.engine import Input, ShardOutput

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
) -> dict[str, Any]:
    """Measure one part: observations as scratch, bad items and generations as value."""
    with native_threads(execution.threads):
        model, tokenizer = read_model(checkpoint), read_tokenizer(checkpoint)
        special = SpecialTokens.of(tokenizer, checkpoint.read_json("tokenizer_config.json"))
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
            observed, bad = measure_items(scorer, part.items, config.delimiter)
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
