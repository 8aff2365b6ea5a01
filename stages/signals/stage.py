"""Measure documents: quality, repetition, scripts, addresses, code, personal data, secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from artifacts_schema.config import Config
from stages.engine import Many, Maybe, One, Stage

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.signals.tables import Given

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Gopher's English list."""


COUNTED = (
    "documents",
    "characters",
    "emails",
    "ip_addresses",
    "secrets",
    "mojibake_characters",
)
"""Counters of the manifest."""


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
    signals and the rest; `columns.py` lists them all. What the address of a document says, and what
    its path and lines say where it is source code, is measured as well; with `url_lists` the
    addresses are held against them, with a `language_model` (a snapshot of one fastText file, such
    as lid.176) language and score are measured, and what `pages` say of a document is carried on.
    Personal data, secrets and mojibake are stored as spans of views, which `filter` applies, beside
    those of `page_views`. Thresholds are `filter`'s too.
    """

    name, version, reproducible = "signals", 2, "bytes"
    inputs: ClassVar = {
        "documents": One("documents"),
        "pages": Maybe("pages"),
        "page_views": Maybe("views"),
        "language_model": Maybe("snapshot"),
        "url_lists": Many("snapshot"),
    }
    outputs: ClassVar = {"signals": "signals", "views": "views"}
    libraries = ("fasttext-numpy2", "ftfy", "numpy", "pyarrow", "regex", "tld", "xxhash")
    handles_documents = True
    Config = SignalsConfig

    def run(self, context: Context) -> None:
        from stages.signals.columns import description_of_columns, signals_of
        from stages.signals.tables import measure_shard

        config, documents = context.config, context.one("documents")
        given = self._given(context)
        described = description_of_columns(config.stop_words, signals_of(**given.columns))
        context.write_json("signals", "signals.json", described)
        results = context.map(
            measure_shard,
            documents.shards(),
            stop_words=config.stop_words,
            redact=config.redact,
            given=given,
        )
        totals = {name: sum(result.value[name] for result in results) for name in COUNTED}
        context.count(**totals)
        context.conserve(records_in=documents.rows, out=totals["documents"], dropped={})

    @staticmethod
    def _given(context: Context) -> Given:
        """What lies beside the documents; files from outside where workers can open them."""
        from stages.signals.language import copy_model
        from stages.signals.tables import Given
        from stages.signals.url_lists import pack_lists

        model, lists = context.maybe("language_model"), context.many("url_lists")
        for left_out in pack_lists(lists, context.work) if lists else ():
            context.log.warning("url_lists: %s", left_out)
        return Given(
            language_model=copy_model(model, context.work) if model is not None else None,
            language_characters=context.config.language_characters,
            pages=context.maybe("pages"),
            page_views=context.maybe("page_views"),
            url_lists=context.work if lists else None,
        )
