"""Measure documents: quality, repetition, languages, addresses, code, personal data, secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import UsageError
from stages.engine import Many, Maybe, Stage
from stages.signals.config import SignalsConfig

if TYPE_CHECKING:
    from stages.engine import Context, Inputs
    from stages.signals.measure import RunInputs

CHAT = ("conversations", "preferences")
COUNTED = (
    "characters",
    *("emails", "ip_addresses", "phones", "ibans", "cards", "secrets"),
    "mojibake_characters",
)
"""Counters of the manifest, besides the rows by kind."""
_PAGE_ROLES = ("pages", "page_views", "url_lists")


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
    `filter` applies, besides those of `page_views`. Thresholds are `filter`'s too.

    In place of documents it takes conversations and preferences: the same is measured of each row,
    and a span names its message.
    """

    name, version, reproducible = "signals", 34, "bytes"
    inputs: ClassVar = {
        "documents": Maybe("documents"),
        "conversations": Many("conversations"),
        "preferences": Many("preferences"),
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
        *("fasttext-numpy2", "ftfy", "numba", "numpy", "phonenumbers", "pyarrow"),
        *("python-stdnum", "regex", "sentencepiece", "tld", "xxhash"),
        *("jieba", "kiwipiepy", "kiwipiepy_model", "pythainlp", "spacy"),
        *("sudachidict-core", "sudachipy"),
    )
    handles_documents = True
    Config, Execution = SignalsConfig, MapExecution

    @classmethod
    def check_plan(cls, config: SignalsConfig, inputs: Inputs) -> None:
        check_roles({role for role, references in inputs.items() if references})

    @classmethod
    def columns(cls, config: SignalsConfig, inputs: Inputs) -> Mapping[str, str] | None:
        """Names and types of the signals; None if a classifier's name is not known."""
        from stages.signals.columns import ColumnChoice, choose_signals

        names = [model.name for model in config.published_classifiers]
        for upstream in inputs.get("classifier", ()):
            settings = getattr(upstream.config, "classifier", None)
            if settings is None:
                return None
            names.append(settings.name)
        choice = ColumnChoice(
            config.groups,
            config.line_rules,
            language=bool(inputs.get("language_model")),
            url_lists=bool(inputs.get("url_lists")),
            word_lists=bool(inputs.get("word_lists")),
            ngram_models=bool(inputs.get("ngram_model") or config.published_ngram_models),
            classifiers=names,
            pages=bool(inputs.get("pages")),
            language_splitters=bool(config.language_splitters),
        )
        return {signal.name: signal.type for signal in choose_signals(choice)}

    def run(self, context: Context) -> None:
        from stages.signals.chat import measure_chat_shard
        from stages.signals.columns import choose_signals, describe_columns
        from stages.signals.measure import measure_shard
        from stages.text.chat_rows import list_chat_shards
        from stages.text.language_splitters import load_language_splitter

        config, documents = context.config, context.many("documents")
        check_roles({role for role in self.inputs if context.many(role)}, where="signals")
        for language in config.language_splitters:
            load_language_splitter(language)
        inputs = self._read_inputs(context)
        columns = describe_columns(config, choose_signals(inputs.choose_columns(config)))
        context.write_json("signals", "signals.json", columns)
        chat = {role: context.many(role) for role in CHAT}
        shards = [shard for one in documents for shard in one.shards()]
        results = context.map(measure_shard, shards, config=config, inputs=inputs)
        talks = list_chat_shards(chat, where="signals")
        results += context.map(measure_chat_shard, talks, config=config, inputs=inputs)
        kinds = CHAT if any(chat.values()) else ("documents",)
        totals = {name: sum(r.value.get(name, 0) for r in results) for name in (*kinds, *COUNTED)}
        context.count(**totals)
        records = sum(one.rows for artifacts in (documents, *chat.values()) for one in artifacts)
        context.conserve(records_in=records, out=sum(totals[kind] for kind in kinds), dropped={})

    @staticmethod
    def _read_inputs(context: Context) -> RunInputs:
        """The inputs besides the documents, with files from outside where workers can open them."""
        from stages.signals.bad_words import pack_words
        from stages.signals.measure import RunInputs
        from stages.signals.models import Models, copy_model
        from stages.signals.urls import pack_lists

        model, urls = context.maybe("language_model"), context.many("url_lists")
        words = context.many("word_lists")
        for message in pack_lists(urls, context.work) if urls else ():
            context.log.warning("url_lists: %s", message)
        if words:
            pack_words(words, context.work)
        return RunInputs(
            language_model=copy_model(model, context.work) if model is not None else None,
            models=Models.from_context(context),
            pages=context.maybe("pages"),
            page_views=context.maybe("page_views"),
            url_lists=context.work if urls else None,
            word_lists=context.work if words else None,
        )


def check_roles(roles: Collection[str], where: str | None = None) -> None:
    """UsageError unless the roles are documents, or conversations and preferences."""
    chat = [role for role in CHAT if role in roles]
    if not chat and "documents" not in roles:
        raise UsageError("give documents, or conversations and preferences", where=where)
    if chat and (others := [role for role in ("documents", *_PAGE_ROLES) if role in roles]):
        raise UsageError(
            f"{' and '.join(chat)} go with no {', '.join(others)}",
            where=where,
            hint="measure documents in one step, conversations and preferences in another",
        )
