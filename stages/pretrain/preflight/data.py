"""The data: how often it is read, whether ids are in range, what there is to compare with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store
from artifacts_schema.store.lineage import ancestors
from stages.engine.inputs import Input
from stages.pretrain.held_out import HeldOutSet, spread
from stages.pretrain.preflight.report import Finding
from stages.training.account import TokenAccount
from stages.training.data import TokenShards

MANY_EPOCHS = 4.0
"""Up to so many, repeated tokens teach about as much as new ones (Muennighoff et al. 2023, arXiv
2305.16264)."""
SAMPLED = 4
"""Sequences of each source whose ids are looked at; each may lie in another file."""
MOST_SOURCES = 64


def check_epochs(account: TokenAccount) -> Finding:
    """How often each source is read; more than its cap is refused before there is a plan."""
    by_epochs = sorted(account.sources, key=lambda one: -one.epochs)
    shown = ", ".join(f"{one.name} {one.epochs:.2f}" for one in by_epochs[:5])
    more = f" and {len(by_epochs) - 5} more" if len(by_epochs) > 5 else ""
    tokens = sum(one.planned for one in account.sources)
    said = f"{tokens:,.0f} tokens planned; epochs: {shown}{more}"
    numbers = {"epochs": {one.name: round(one.epochs, 4) for one in account.sources}}
    if by_epochs[0].epochs <= MANY_EPOCHS:
        return Finding("data", "ok", said, numbers=numbers)
    hint = f"beyond {MANY_EPOCHS:g} epochs a repeated token teaches little; set max_epochs"
    return Finding("data", "warning", said, hint, numbers)


def check_ids(train: Sequence[Input]) -> Finding:
    """Read a few sequences of each source: every id is one of the vocabulary.

    Their files are not hashed for it; in a remote store none is fetched for it.
    """
    if not all(given.backend.local for given in train):
        said = "the token shards are in a remote store; ids are checked as they are read"
        return Finding("token ids", "ok", said)
    shards = TokenShards([replace(one, full_check=False, _checked=set()) for one in train])
    sources = list(shards.sources)[:MOST_SOURCES]
    read = 0
    try:
        for number, name in enumerate(sources):
            size = shards.sequences[name]
            sequences_B = spread(size, min(size, SAMPLED))
            shards.batch(np.full(len(sequences_B), number), sequences_B)
            read += len(sequences_B)
    except InputError as error:
        said = f"{error.where}: {error.what}" if error.where else error.what
        return Finding("token ids", "refusal", said, error.hint or "pack again", error=error)
    said = f"{read:,} sequences of {len(sources):,} sources sampled, all within the vocabulary"
    return Finding("token ids", "ok", said, numbers={"sampled_sequences": read})


def check_held_out(held_out: HeldOutSet) -> Finding:
    """Whether there is something to measure on."""
    count = len(held_out.sources_B)
    if count:
        said = f"{count:,} sequences of {', '.join(held_out.sources)}"
        return Finding("held-out", "ok", said, numbers={"held_out_sequences": count})
    said = "no sequences: there will be no held-out loss"
    return Finding("held-out", "warning", said, "give pack's held_out output")


def check_contamination(store: Store, train: Sequence[Input]) -> Finding:
    """Whether the documents behind the shards were compared with benchmarks, by their lineage."""
    seen = {role for given in train for role in _roles_above(store, given)}
    if "contamination" in seen:
        return Finding("contamination", "ok", "documents were compared with benchmarks")
    return Finding(
        "contamination",
        "warning",
        "no document was compared with benchmarks, so scores on them will prove little",
        "give filter the output of decontaminate",
    )


def _roles_above(store: Store, given: Input) -> Iterator[str]:
    manifest = store.manifest(given.stage, given.key)
    if manifest is not None:
        yield from (edge.role for edge in ancestors(store, manifest))
