"""The compare_tokenizers stage: how several tokenizers cut the same texts."""

from __future__ import annotations

from typing import Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import InputError
from stages.compare_tokenizers.config import CompareTokenizersConfig
from stages.engine import Context, Inputs, Many, Stage


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
        from stages.compare_tokenizers.config import check_names

        check_names(config.names, len(inputs["tokenizers"]))

    def run(self, context: Context) -> None:
        """Find what to measure, cut it with every tokenizer, look through the vocabularies."""
        from stages.compare_tokenizers.measure import (
            count_documents,
            measure_part,
            name_tokenizers,
            read_vocabulary,
            write_comparison,
        )
        from stages.compare_tokenizers.parts import (
            choose_passages,
            list_parts,
            read_passages,
            sample_parts,
        )

        config: CompareTokenizersConfig = context.config
        documents, parallel = context.many("documents"), context.many("parallel")
        if not documents and not parallel:
            raise InputError(
                "nothing to measure on",
                where="compare_tokenizers",
                hint="give `documents`, or `parallel`, or both",
            )
        tokenizers = name_tokenizers(context.many("tokenizers"), config.names)
        candidates = list_parts(parallel, "parallel")
        translations = context.map(read_passages, candidates, passage=config.passage)
        passages = choose_passages(candidates, translations, config)
        parts = [
            *sample_parts(list_parts(documents, "documents"), config.max_bytes),
            *passages.parts,
        ]
        measured = context.map(measure_part, parts, tokenizers=tokenizers)
        if not any(result.value["measured"] for result in measured):
            raise InputError(
                "no document was drawn", where="compare_tokenizers", hint="give more `max_bytes`"
            )
        vocabularies = context.map(read_vocabulary, tokenizers)
        write_comparison(context, tokenizers, measured, vocabularies)
        count_documents(context, measured, passages)
