"""Measure documents: quality, repetition, languages, addresses, code, personal data, secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from artifacts_schema.config import MapExecution
from stages.engine import Many, Maybe, One, Stage
from stages.signals.config import SignalsConfig

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.signals.tables import Given

COUNTED = (
    *("documents", "characters"),
    *("emails", "ip_addresses", "phones", "ibans", "cards", "secrets"),
    "mojibake_characters",
)
"""Counters of the manifest."""


class Signals(Stage):
    """Compute every signal about every document in one pass; drop nothing.

    Texts are split once, natively, and that is shared by the signals of Gopher, C4, FineWeb,
    RefinedWeb, DCLM and RedPajama-V2 in the definitions of their code; `columns.py` lists them all.
    Published line rules are run as views, and what rules ask of the text that is left is measured
    on it. What the address of a document says, and what its path and lines say where it is source
    code, is measured as well. With a `language_model` (a snapshot of one fastText file, such as
    lid.176) language and score are measured; `url_lists`, `word_lists` and models of
    `quality_models`, or `published_models`, bring signals of their own; what `pages` say of a
    document is carried on. Personal data, secrets and mojibake are stored as spans of views, which
    `filter` applies, beside those of `page_views`. Thresholds are `filter`'s too.
    """

    name, version, reproducible = "signals", 3, "bytes"
    inputs: ClassVar = {
        "documents": One("documents"),
        "pages": Maybe("pages"),
        "page_views": Maybe("views"),
        "language_model": Maybe("snapshot"),
        "url_lists": Many("snapshot"),
        "word_lists": Many("snapshot"),
        "ngram_model": Many("ngram_model"),
        "cutoffs": Many("cutoffs"),
        "classifier": Many("classifier"),
        "published_models": Many("snapshot"),
    }
    outputs: ClassVar = {"signals": "signals", "views": "views"}
    libraries = (
        *("fasttext-numpy2", "ftfy", "numba", "numpy", "phonenumbers", "pyarrow", "regex"),
        *("sentencepiece", "tld", "xxhash"),
    )
    handles_documents = True
    Config, Execution = SignalsConfig, MapExecution

    def run(self, context: Context) -> None:
        from stages.signals.columns import description_of_columns, signals_of
        from stages.signals.tables import measure_shard

        config, documents = context.config, context.one("documents")
        given = self._given(context)
        columns = description_of_columns(config, signals_of(given.asked(config)))
        context.write_json("signals", "signals.json", columns)
        results = context.map(measure_shard, documents.shards(), config=config, given=given)
        totals = {name: sum(result.value[name] for result in results) for name in COUNTED}
        context.count(**totals)
        context.conserve(records_in=documents.rows, out=totals["documents"], dropped={})

    @staticmethod
    def _given(context: Context) -> Given:
        """What lies beside the documents; files from outside where workers can open them."""
        from stages.signals.bad_words import pack_words
        from stages.signals.language import copy_model
        from stages.signals.models import Models
        from stages.signals.tables import Given
        from stages.signals.url_lists import pack_lists

        model, urls = context.maybe("language_model"), context.many("url_lists")
        words = context.many("word_lists")
        for left_out in pack_lists(urls, context.work) if urls else ():
            context.log.warning("url_lists: %s", left_out)
        if words:
            pack_words(words, context.work)
        return Given(
            language_model=copy_model(model, context.work) if model is not None else None,
            models=Models.of(context),
            pages=context.maybe("pages"),
            page_views=context.maybe("page_views"),
            url_lists=context.work if urls else None,
            word_lists=context.work if words else None,
        )
