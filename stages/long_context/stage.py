"""The stage that makes items of long context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, Maybe, Stage, check_all
from stages.long_context.config import QUESTIONS, LongContextConfig


class LongContext(Stage):
    """Hide needles in haystacks of stated lengths, and make RULER's other families of items.

    An item has as many tokens as its length allows, by the tokenizer that it is made for. Its
    answer is written (RULER's string match) or ranked among wrong ones, which shows something of
    models that are too small to write it. Haystacks are noise, other needles, or sentences of
    documents: held-out ones, so that the model did not learn them by heart. The families `qa_1` and
    `qa_2` ask questions on documents, both of which rows of the user's have.
    """

    name, version, reproducible = "long_context", 1, "bytes"
    inputs = {
        "tokenizer": Maybe("tokenizer"),
        "checkpoint": Maybe("checkpoint"),
        "documents": Many("documents"),
        "qa_1": Maybe("snapshot"),
        "qa_2": Maybe("snapshot"),
    }
    outputs = {"benchmarks": "benchmarks"}
    libraries = ("pyarrow", "tokenizers")
    Config, Execution = LongContextConfig, MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """One source of a tokenizer, rows of questions for the families that need them, lengths
        within the context of a checkpoint."""
        check_all(
            lambda: check_tokenizer(inputs),
            lambda: check_questions(config, inputs),
            lambda: _check_lengths(config, inputs),
        )

    def run(self, context: Context) -> None:
        from stages.long_context.items import (
            describe_tasks,
            list_parts,
            make_items,
            prepare_questions,
            read_sentences,
        )

        config: LongContextConfig = context.config
        source = context.maybe("checkpoint") or context.maybe("tokenizer")
        assert source is not None, "check_plan saw one"
        documents = context.many("documents")
        sentences: tuple[str, ...] = ()
        if documents:
            sentences = read_sentences(documents, max(config.lengths), config.seed)
        rows = {name: one for name in QUESTIONS if (one := context.maybe(name)) is not None}
        check_questions(config, rows)
        questions = {
            name: prepare_questions(name, one, source, config) for name, one in rows.items()
        }
        results = context.map(
            make_items,
            list_parts(config),
            source=source,
            sentences=sentences,
            questions=questions,
            config=config,
        )
        context.write_json("benchmarks", "tasks.json", describe_tasks(config))
        context.count(
            items=sum(result.value["items"] for result in results),
            tokens=sum(result.value["tokens"] for result in results),
            sentences=len(sentences),
            **(
                {"questions": sum(len(one.questions) for one in questions.values())} if rows else {}
            ),
        )


def check_tokenizer(inputs: Inputs) -> None:
    """UsageError unless there is one source of a tokenizer."""
    if bool(inputs.get("tokenizer")) == bool(inputs.get("checkpoint")):
        raise UsageError(
            "lengths are in tokens of one tokenizer",
            where="long_context",
            hint="give either `tokenizer`, whose checkpoints all share its items, or `checkpoint`",
        )


def check_questions(config: LongContextConfig, inputs: Mapping[Any, Any]) -> None:
    """UsageError for a family of questions without rows, or rows without their family."""
    for name in QUESTIONS:
        if name in config.families and not inputs.get(name):
            raise UsageError(
                f"family {name} asks questions of a data set, and has none",
                where="long_context.families",
                hint=f"give a snapshot with rows of SQuAD or HotpotQA to role `{name}`, or leave "
                f"{name} out of `families`",
            )
        if name not in config.families and inputs.get(name):
            raise UsageError(
                f"role `{name}` has rows, and family {name} is not made",
                where="long_context.families",
                hint=f"add {name} to `families`, or take the input away",
            )


def _check_lengths(config: LongContextConfig, inputs: Inputs) -> None:
    """UsageError for lengths beyond the context of the checkpoint."""
    from stages.training.run_plan import model_shape

    if not inputs.get("checkpoint") or inputs.get("tokenizer"):
        return  # None, or one too many, which is an error of its own.
    shape = model_shape(inputs["checkpoint"][0])
    if shape is not None and max(config.lengths) > shape.context:
        raise UsageError(
            f"items of {max(config.lengths):,} tokens, the model's context has {shape.context:,}",
            where="long_context.lengths",
            hint="lower the lengths, or raise the context by training on longer sequences",
        )
