"""Measure documents: quality, repetition, lines, scripts, personal data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from artifacts_schema.config import Config
from stages.engine import Maybe, One, Stage

if TYPE_CHECKING:
    from stages.engine import Context

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Gopher's English list."""


class SignalsConfig(Config):
    """What is measured."""

    stop_words: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=STOP_WORDS,
        description="Words that ordinary text holds; by default Gopher's eight English ones.",
    )
    redact: tuple[Literal["email", "ip_address"], ...] = Field(
        default=("email", "ip_address"),
        description="Personal data whose spans enter the view; every sort is counted in any case.",
    )
    language_characters: int = Field(
        default=1000,
        ge=1,
        description="Characters from the beginning by which a language model judges a text.",
    )


class Signals(Stage):
    """Compute every signal about every document in one pass; drop nothing.

    Words are split once and shared by Gopher's quality and repetition signals, FineWeb's line
    signals and the rest; `columns.py` lists them all. With a `language_model` (a snapshot of one
    fastText file, such as lid.176) language and score are measured too. Redaction of personal data
    is stored as spans of the view `personal_data`, which `filter` applies. Thresholds are
    `filter`'s too.
    """

    name, version, reproducible = "signals", 1, "bytes"
    inputs: ClassVar = {"documents": One("documents"), "language_model": Maybe("snapshot")}
    outputs: ClassVar = {"signals": "signals", "views": "views"}
    libraries = ("fasttext-numpy2", "numpy", "pyarrow", "regex")
    handles_documents = True
    Config = SignalsConfig

    def run(self, context: Context) -> None:
        from stages.signals.columns import description_of_columns
        from stages.signals.language import copy_model
        from stages.signals.tables import measure_shard

        config = context.config
        documents, given = context.one("documents"), context.maybe("language_model")
        model = copy_model(given, context.work) if given is not None else None
        described = description_of_columns(config.stop_words, with_language=model is not None)
        context.write_json("signals", "signals.json", described)
        results = context.map(
            measure_shard,
            documents.shards(),
            stop_words=config.stop_words,
            redact=config.redact,
            model=model,
            language_characters=config.language_characters,
        )
        totals = {
            name: sum(result.value[name] for result in results)
            for name in ("documents", "characters", "emails", "ip_addresses")
        }
        context.count(**totals)
        context.conserve(records_in=documents.rows, out=totals["documents"], dropped={})
