"""The stage that makes items of long context."""

from __future__ import annotations

from typing import Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, Maybe, Stage
from stages.long_context.config import LongContextConfig


class LongContext(Stage):
    """Hide needles in haystacks of stated lengths, and make RULER's other families of items.

    An item has as many tokens as its length allows, by the tokenizer that it is made for. Its
    answer is written (RULER's string match) or ranked among wrong ones, which shows something of
    models that are too small to write it. Haystacks are noise, other needles, or sentences of
    documents: held-out ones, so that the model did not learn them by heart.
    """

    name, version, reproducible = "long_context", 1, "bytes"
    inputs = {
        "tokenizer": Maybe("tokenizer"),
        "checkpoint": Maybe("checkpoint"),
        "documents": Many("documents"),
    }
    outputs = {"benchmarks": "benchmarks"}
    libraries = ("pyarrow", "tokenizers")
    Config, Execution = LongContextConfig, MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """One source of a tokenizer; lengths within the context of a checkpoint."""
        if bool(inputs.get("tokenizer")) == bool(inputs.get("checkpoint")):
            raise UsageError(
                "lengths are in tokens of one tokenizer",
                where="long_context",
                hint="give either `tokenizer`, whose checkpoints all share its items, or "
                "`checkpoint`",
            )
        if not inputs.get("checkpoint"):
            return
        from stages.training.run_plan import model_shape

        shape = model_shape(inputs["checkpoint"][0])
        if shape is not None and max(config.lengths) > shape.context:
            raise UsageError(
                f"items of {max(config.lengths):,} tokens, the model's context has "
                f"{shape.context:,}",
                where="long_context.lengths",
                hint="lower the lengths, or raise the context by training on longer sequences",
            )

    def run(self, context: Context) -> None:
        from stages.long_context.items import (
            describe_tasks,
            list_parts,
            make_items,
            read_sentences,
        )

        config: LongContextConfig = context.config
        source = context.maybe("checkpoint") or context.maybe("tokenizer")
        assert source is not None, "check_plan saw one"
        documents = context.many("documents")
        sentences: tuple[str, ...] = ()
        if documents:
            sentences = read_sentences(documents, max(config.lengths), config.seed)
        results = context.map(
            make_items, list_parts(config), source=source, sentences=sentences, config=config
        )
        context.write_json("benchmarks", "tasks.json", describe_tasks(config))
        context.count(
            items=sum(result.value["items"] for result in results),
            tokens=sum(result.value["tokens"] for result in results),
            sentences=len(sentences),
        )
