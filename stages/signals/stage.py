"""Measure documents: quality, repetition, lines, scripts, personal data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from artifacts_schema.config import Config
from stages.engine import One, Stage

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


class Signals(Stage):
    """Compute every signal about every document in one pass; drop nothing.

    Words are split once and shared by Gopher's quality and repetition signals, FineWeb's line
    signals and the rest; `columns.py` lists them all. Redaction of personal data is stored as spans
    of the view `personal_data`, which `filter` applies. Thresholds are `filter`'s too.
    """

    name, version, reproducible = "signals", 1, "bytes"
    inputs: ClassVar = {"documents": One("documents")}
    outputs: ClassVar = {"signals": "signals", "views": "views"}
    libraries = ("numpy", "pyarrow", "regex")
    handles_documents = True
    Config = SignalsConfig

    def run(self, context: Context) -> None:
        from stages.signals.columns import description_of_columns
        from stages.signals.tables import measure_shard

        config = context.config
        documents = context.one("documents")
        context.write_json("signals", "signals.json", description_of_columns(config.stop_words))
        results = context.map(
            measure_shard, documents.shards(), stop_words=config.stop_words, redact=config.redact
        )
        totals = {
            name: sum(result.value[name] for result in results)
            for name in ("documents", "characters", "emails", "ip_addresses")
        }
        context.count(**totals)
        context.conserve(records_in=documents.rows, out=totals["documents"], dropped={})
