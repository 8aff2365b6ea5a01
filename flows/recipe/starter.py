"""A first recipe for a source of data: files, a model and tokens that fit time and memory.

The model is the largest whose compute-optimal number of tokens (20 for each parameter outside of
the embedding: Hoffmann et al. 2022, arXiv 2203.15556, table 3) fits the time on this machine; it
reads at most four epochs of the text (Muennighoff et al. 2023, arXiv 2305.16264: up to four,
repeated text is worth nearly as much as new text). Where that leaves time, the model is larger, up
to a parameter for each token that it reads. Of a source with far more text than that, a part of the
files is taken. Times are estimates: `ingot preflight` measures.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import InputError
from flows.recipe.recipe import RESERVED
from flows.recipe.survey import FileGroup
from flows.recipe.survey_source import DataSource
from stages.engine.allotment import available_cores

TOKENS_PER_PARAMETER = 20
MOST_EPOCHS = 4
BYTES_PER_TOKEN = 3.5
"""Of text under a vocabulary of some thousands (English: 3 to 4.5)."""
PRETRAINING_SHARE = 0.6
"""Of the time; the rest is for reading, measuring, tuning and evaluation."""
MODEL_SHARE = 0.5
"""Of the speed of one large matrix product, what training a small model reaches on a CPU."""
DEPTHS = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
"""One dial: width is 64 for each layer (`model.depth`)."""
VOCABULARIES = ((5e6, 3, 4096), (5e7, 6, 8192), (1e9, 10, 16384), (math.inf, 64, 32768))
"""Up to so many bytes of text, or up to so many layers, so many tokens in the vocabulary.

A small model would hold more weights in its embedding than in its layers.
"""
TRAINING_BYTES = 28
"""Of memory for each parameter in float32 on a CPU: weight, gradient and two moments, and the copy
of weight and moments that a checkpoint is written from."""
MEMORY_SHARE = 0.7
"""Of the memory, what these may take; the rest is for activations, data and the system."""
TEXT_MARGIN = 3.0
"""So many times the text of one epoch are taken from a large source: filters drop some."""
MANY_FILES = 20
"""Fewer files are not taken by their hash: the number could be 0."""
_SOURCES = ("text", "code", "chat")


@dataclass(frozen=True)
class Plan:
    """What is trained. `limit` says what bounds it: time, text or memory."""

    depth: int
    width: int
    parameters: int
    context: int
    vocabulary: int
    tokens: int
    epochs: float
    sequences_per_batch: int
    peak: float
    limit: str

    @property
    def decay_tokens(self) -> int:
        """Of the last phase: a third, as in the quickstart."""
        return self.tokens // 3

    @property
    def share(self) -> float:
        """Part of the files that holds enough text; 1 where half of them or more are needed."""
        share = min(1.0, TEXT_MARGIN * self.epochs)
        return 1.0 if share >= 0.5 else float(f"{share:.1g}")


def measure_speed() -> float:
    """Operations a second of float32 matrix products on all cores, the best of five.

    By CPU seconds, so that a machine that is busy now counts as the one that it is when idle.
    """
    import numpy as np

    size = 1024
    left, right = np.ones((2, size, size), dtype=np.float32)
    best = math.inf
    for _ in range(5):
        began = time.process_time()
        left @ right
        best = min(best, time.process_time() - began)
    return available_cores() * 2 * size**3 / best


def choose_plan(text_bytes: int, minutes: float, speed: float, memory: int, *, where: str) -> Plan:
    """Model and tokens for so much text and time, at `speed` operations a second, in `memory`.

    InputError at `where` if the text is less than a batch of the model, or no model fits.
    """
    budget = minutes * 60 * PRETRAINING_SHARE * speed * MODEL_SHARE
    plan = _plan(DEPTHS[0], text_bytes, budget)
    most = int(memory * MEMORY_SHARE / TRAINING_BYTES)
    if plan.parameters > most:
        raise InputError(
            f"the smallest model has {plan.parameters:,} parameters, and {format_bytes(memory)} of "
            f"memory hold the training of {most:,}",
            where=where, hint="use a machine with more memory",
        )  # fmt: skip
    for depth in DEPTHS[1:]:
        larger = _plan(depth, text_bytes, budget)
        body = larger.parameters - larger.vocabulary * larger.width
        fits_time = budget / (6 * larger.parameters) >= TOKENS_PER_PARAMETER * body
        fits_text = larger.limit == "text" and body <= larger.tokens
        if not (fits_time or fits_text):
            break
        if larger.parameters > most:
            plan = replace(plan, limit="memory")
            break
        plan = larger
    text_tokens = int(text_bytes / BYTES_PER_TOKEN)
    if text_tokens < plan.context * plan.sequences_per_batch:
        raise InputError(
            f"has about {text_tokens:,} tokens of text, less than one batch of "
            f"{plan.sequences_per_batch} sequences of {plan.context}",
            where=where, hint="add texts; a small model takes a million characters",
        )  # fmt: skip
    return plan


def _plan(depth: int, text_bytes: int, budget: float) -> Plan:
    """The plan of one depth; it trains for as long as the budget and the text allow."""
    from stages.model.config import ModelConfig, ModelShape
    from stages.model.size import count_parameters

    text_tokens = int(text_bytes / BYTES_PER_TOKEN)
    vocabulary = next(v for most, deep, v in VOCABULARIES if text_bytes < most or depth <= deep)
    context = 256 if depth <= 6 else 1024 if depth <= 12 else 2048
    shape = ModelShape(depth=depth, head_width=64, context=context)  # type: ignore[call-arg]
    config: ModelConfig = shape.with_vocabulary(vocabulary)
    parameters = count_parameters(config).total
    by_time, by_text = budget / (6 * parameters), MOST_EPOCHS * text_tokens
    tokens = _round(max(2048, min(by_time, by_text)))
    batch = next(size for most, size in _BATCH_TOKENS if tokens < most) // context
    peak = 2e-3 * math.sqrt(192 / config.width)
    return Plan(
        depth, config.width, parameters, context, vocabulary, tokens, tokens / max(1, text_tokens),
        max(1, batch), float(f"{peak:.2g}"), "time" if by_time < by_text else "text",
    )  # fmt: skip


_BATCH_TOKENS = ((5e6, 2048), (5e7, 8192), (1e9, 65536), (math.inf, 524288))
"""Up to so many tokens of training, so many in a batch."""


def _round(tokens: float) -> int:
    """Two significant digits."""
    digits = 10 ** max(0, int(math.log10(tokens)) - 1)
    return int(tokens // digits * digits)


def recipe_name(source: DataSource) -> str:
    """A name of a recipe from that of a source."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", source.name).strip("-_") or "corpus"
    name = name if name[0].isalpha() else f"corpus-{name}"
    return f"{name}-corpus" if name in RESERVED else name


def _take_part(plan: Plan, groups: Sequence[FileGroup]) -> str:
    """The key of an entry that takes a part of its files, if that is enough text."""
    files = sum(group.files for group in groups)
    if plan.share == 1.0 or files == 1:
        return ""
    if files * plan.share >= MANY_FILES:
        return f", share: {plan.share:g}"
    # The first files of several groups would be those of one group alone.
    return f", first: {math.ceil(files * plan.share)}" if len(groups) == 1 else ""


def write_recipe(
    name: str, source: DataSource, groups: Sequence[FileGroup], plan: Plan, *, chat: str,
    minutes: float, recipe_folder: Path,
) -> str:  # fmt: skip
    """The YAML of the recipe. `chat` is `own` (of the source), `sample` or `none`."""
    used = {use: [group for group in groups if group.use == use] for use in _SOURCES}
    keys = source.keys(recipe_folder)
    lines = [
        f"# By `ingot init` for {minutes:g} minutes on this machine: {_summary(used)}.",
        f"# {plan.parameters / 1e6:.1f} M parameters, {plan.tokens:,} tokens: {plan.epochs:.2g} "
        f"epochs (what {plan.limit} allows). Times are estimates; `ingot preflight` measures.",
        f"name: {name}",
        f"extends: {'base' if chat == 'none' else 'base-chat'}",
        "snapshots:",
    ]
    for use in _SOURCES:
        if used[use] and (use != "chat" or chat == "own"):
            patterns = json.dumps([group.pattern for group in used[use]], ensure_ascii=False)
            part = _take_part(plan, used[use]) if use != "chat" else ""
            lines.append(f"  {use}-files: {{{keys}, files: {patterns}{part}}}")
    lines.append("steps:")
    fields = {group.text_field for group in used["text"] if group.text_field}
    for use in ("text", "code"):
        if not used[use]:
            lines.append(f"  {use}: null")
        elif use == "text" and fields and fields != {"text"}:
            lines.append(f"  text: {{config: {{text_field: {json.dumps(fields.pop())}}}}}")
    if chat == "sample":
        lines += [
            "  sample: {stage: sample}  # about Python's modules: the data has no conversations",
            '  conversations: {inputs: {snapshot: "sample:conversations"}}',
        ]
    if plan.vocabulary != 4096:
        lines.append(f"  tokenizer: {{config: {{vocabulary_size: {plan.vocabulary}}}}}")
    if plan.context != 256:
        lines.append(f"  pack: {{config: {{sequence_length: {plan.context}}}}}")
        if chat != "none":
            lines.append(f"  pack_chat: {{config: {{sequence_length: {plan.context}}}}}")
    batch = f"sequences_per_batch: {plan.sequences_per_batch}"
    stable = plan.tokens - plan.decay_tokens
    lines += [
        "  pretrain:",
        "    config:",
        f"      model: {{depth: {plan.depth}, head_width: 64, context: {plan.context}}}",
        "      phases:",
        f"        - {{tokens: {stable}, {batch}, "
        f"learning_rate: {{peak: {plan.peak}, warmup_share: 0.05}}}}",
        f"        - {{tokens: {plan.decay_tokens}, {batch}, learning_rate: {{decay: linear}}}}",
    ]
    return "\n".join(lines) + "\n"


def _summary(used: dict[str, list[FileGroup]]) -> str:
    """`2,000 files, 3.1 MB of text, 0.2 MB of code`."""
    parts = []
    for use, word in (("text", "text"), ("code", "code"), ("chat", "conversations")):
        if used[use]:
            size = sum(group.text_bytes for group in used[use])
            parts.append(f"{format_bytes(size)} of {word}")
    files = sum(group.files for groups in used.values() for group in groups)
    return f"{files:,} file{'s' * (files != 1)}, about {', '.join(parts)}"
