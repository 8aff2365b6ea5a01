"""Every kind by name. Side tables name the documents they lie beside by `beside(digest)`."""

from __future__ import annotations

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds.documents import (
    CONTAMINATION,
    DEDUP_INDEX,
    DOCUMENTS,
    DUPLICATES,
    EXCLUSIONS,
    LEDGER,
    PAGES,
    REJECTED,
    SIGNALS,
    SNAPSHOT,
    VIEWS,
)
from artifacts_schema.kinds.schema import Column, Kind, Table
from artifacts_schema.kinds.training import (
    BENCHMARKS,
    CHECKPOINT,
    CLASSIFIER,
    CONVERSATIONS,
    CUTOFFS,
    EVALUATION,
    MEGATRON_DATASET,
    NGRAM_MODEL,
    PREFERENCES,
    RELEASE,
    TOKEN_SHARDS,
    TOKENIZER,
    TOKENIZER_COMPARISON,
    TRAINING_RUN,
    TRUTH,
)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        SNAPSHOT,
        DOCUMENTS,
        REJECTED,
        PAGES,
        SIGNALS,
        VIEWS,
        DUPLICATES,
        DEDUP_INDEX,
        CONTAMINATION,
        LEDGER,
        EXCLUSIONS,
        CONVERSATIONS,
        PREFERENCES,
        BENCHMARKS,
        TRUTH,
        NGRAM_MODEL,
        CLASSIFIER,
        CUTOFFS,
        TOKENIZER,
        TOKENIZER_COMPARISON,
        TOKEN_SHARDS,
        MEGATRON_DATASET,
        CHECKPOINT,
        TRAINING_RUN,
        EVALUATION,
        RELEASE,
    )
}

__all__ = ["KINDS", "Column", "Kind", "Table", "beside", "kind_named"]


def kind_named(name: str) -> Kind:
    """The kind called `name`; UsageError with the nearest name if there is none."""
    from artifacts_schema.config import did_you_mean

    if name not in KINDS:
        raise UsageError(f"no kind '{name}'{did_you_mean(name, KINDS)}")
    return KINDS[name]


def sidecar_folder(documents_digest: str) -> str:
    """Folder of the tables that describe the documents output with this digest."""
    return documents_digest[:12]
