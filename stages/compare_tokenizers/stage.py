"""The compare_tokenizers stage: how several tokenizers cut the same texts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import Field, field_validator

from artifacts_schema.config import Config, MapExecution
from artifacts_schema.errors import InputError
from stages.engine import Context, Inputs, Many, Stage


class CompareTokenizersConfig(Config):
    """What is measured, and on how much text."""

    names: tuple[str, ...] = Field(
        default=(),
        description="Names of the tokenizers in the comparison, in the order of the inputs; "
        "otherwise the snapshot of those brought along, algorithm and size of those trained here.",
    )
    reference: str = Field(
        default="en",
        min_length=1,
        description="Language of the parallel documents that the others are compared with.",
    )
    passage: str = Field(
        default="id",
        min_length=1,
        description="Field by which translations of a passage are known: of a document's metadata, "
        "or `url` or `title`.",
    )
    max_bytes: int = Field(
        default=50_000_000,
        ge=1,
        description="Bytes of documents to measure on, about, and of parallel ones; they are drawn "
        "by a stable hash of their duplicate class, or passage.",
    )

    @field_validator("names")
    @classmethod
    def _unique(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"two tokenizers are called '{twice[0]}'")
        if not all(name.strip() for name in names):
            raise ValueError("a name is empty")
        return names


class CompareTokenizers(Stage):
    """Measure how tokenizers cut the same documents, and the same passages in several languages.

    Fertility and the share of continued words (Rust et al. 2021) say how finely text is cut, by
    language and source; passages that are there in all languages say what a language costs beside
    the reference (Petrov et al. 2023). Of the vocabularies: which tokens no text used, and which
    no text can ever use (Land & Bartolo 2024).
    """

    name, version, reproducible = "compare_tokenizers", 1, "bytes"
    inputs = {
        "tokenizers": Many("tokenizer", at_least=1),
        "documents": Many("documents"),
        "parallel": Many("documents"),
    }
    outputs = {"comparison": "tokenizer_comparison"}
    libraries = ("numpy", "pyarrow", "regex", "tokenizers")
    handles_documents = True
    Config, Execution = CompareTokenizersConfig, MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """As many names as tokenizers, or none."""
        from stages.compare_tokenizers.contestants import check_names

        check_names(config.names, len(inputs["tokenizers"]))

    def run(self, context: Context) -> None:
        """Find what to measure, cut it with every tokenizer, look through the vocabularies."""
        from stages.compare_tokenizers.contestants import contestants_of
        from stages.compare_tokenizers.measure import measure_part
        from stages.compare_tokenizers.parallel import choose_passages, read_passages
        from stages.compare_tokenizers.parts import parts_of, sampled
        from stages.compare_tokenizers.tables import account, write_comparison
        from stages.compare_tokenizers.vocabulary import read_vocabulary

        config: CompareTokenizersConfig = context.config
        documents, parallel = context.many("documents"), context.many("parallel")
        if not documents and not parallel:
            raise InputError(
                "nothing to measure on",
                where="compare_tokenizers",
                hint="give `documents`, or `parallel`, or both",
            )
        tokenizers = contestants_of(context.many("tokenizers"), config.names)
        given = parts_of(parallel, "parallel")
        found = context.map(read_passages, given, passage=config.passage)
        passages = choose_passages(given, found, config)
        parts = [*sampled(parts_of(documents, "documents"), config.max_bytes), *passages.parts]
        measured = context.map(measure_part, parts, tokenizers=tokenizers)
        if not any(result.value["measured"] for result in measured):
            raise InputError(
                "no document was drawn", where="compare_tokenizers", hint="give more `max_bytes`"
            )
        vocabularies = context.map(read_vocabulary, tokenizers)
        write_comparison(context, tokenizers, measured, vocabularies)
        account(context, measured, passages)
