"""The token account: what there is of each source and language, what a run plans to read of it, how
often, what is left; and, once it ran, what it did read.

Sequences are counted exactly. Tokens (padding is none) of a plan are expected ones: a whole epoch
is all tokens of a source, a part of one its share of them; of what is planned of a source, each
language has its share of the source's tokens. What a run did read is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError

if TYPE_CHECKING:
    from stages.training.clock import SampleClock
    from stages.training.data import TokenShards

LANGUAGES = (
    "expected, of what is planned: each language has its share of a source's tokens; "
    "counted, of what was read"
)
"""How tokens by language are found."""


@dataclass(frozen=True)
class Planned:
    """Plan of one source in sequences: available, planned, and by phase; `positions` in tokens."""

    source: str
    available: int
    planned: int
    positions: int
    by_phase: tuple[int, ...]

    @property
    def epochs(self) -> float:
        """Planned over available sequences; 0 for an empty source."""
        return self.planned / self.available if self.available else 0.0


@dataclass(frozen=True)
class Stock:
    """What token shards hold, by source: tokens, documents, and tokens by language."""

    tokens: Mapping[str, int]
    documents: Mapping[str, int]
    languages: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, shards: TokenShards) -> Stock:
        """Of the shards that a run reads; the language of a document without one is ''."""
        return cls(shards.total("tokens"), shards.total("documents"), shards.languages)


@dataclass(frozen=True)
class Entry:
    """The account of one source or language, in tokens; `realised` is None before the run.

    `repeated` are planned tokens beyond the first epoch, `left` are those that are never read.
    """

    name: str
    available: float
    planned: float
    repeated: float
    left: float
    realised: float | None = None

    @property
    def epochs(self) -> float:
        """How often the plan reads a token; 0 where there are none."""
        return self.planned / self.available if self.available else 0.0

    def plain(self) -> dict[str, Any]:
        """JSON-ready, in whole tokens."""
        return {
            "available_tokens": round(self.available),
            "planned_tokens": round(self.planned),
            "epochs": self.epochs,
            "repeated_tokens": round(self.repeated),
            "left_tokens": round(self.left),
            "realised_tokens": None if self.realised is None else round(self.realised),
        }


@dataclass(frozen=True)
class SourceEntry(Entry):
    """The account of a source; `sequences` is its exact plan, `cap` the most epochs allowed."""

    sequences: Planned = field(kw_only=True)
    documents: int = field(kw_only=True)
    cap: float | None = field(kw_only=True)
    tokens_by_phase: tuple[float, ...] = field(kw_only=True)

    @property
    def epochs(self) -> float:
        """How often the plan reads a sequence."""
        return self.sequences.epochs

    def plain(self) -> dict[str, Any]:
        """JSON-ready, sequences beside tokens."""
        counted = self.sequences
        return {
            **super().plain(),
            "max_epochs": self.cap,
            "documents": self.documents,
            "planned_tokens_by_phase": [round(tokens) for tokens in self.tokens_by_phase],
            "planned_positions": counted.positions,
            "available_sequences": counted.available,
            "planned_sequences": counted.planned,
            "unseen_sequences": max(0, counted.available - counted.planned),
            "planned_sequences_by_phase": list(counted.by_phase),
        }


@dataclass(frozen=True)
class TokenAccount:
    """The account of a run by source and by language, each in the order of names."""

    sources: tuple[SourceEntry, ...]
    languages: tuple[Entry, ...]
    stock: Stock

    @classmethod
    def of(cls, clock: SampleClock, stock: Stock, caps: Mapping[str, float]) -> TokenAccount:
        """The account of a plan; `caps` are the most epochs by source, where there is a limit."""
        sources = tuple(_entry(one, stock, caps.get(one.source)) for one in clock.planned())
        return cls(sources, _languages(sources, stock), stock)

    def realised(self, tokens: Mapping[str, int], languages: Mapping[str, int]) -> TokenAccount:
        """The account after the run: `tokens` that it read of each source, and of each language."""
        return replace(
            self,
            sources=tuple(replace(one, realised=tokens[one.name]) for one in self.sources),
            languages=tuple(replace(one, realised=languages[one.name]) for one in self.languages),
        )

    def plain(self) -> dict[str, Any]:
        """JSON-ready: sources and languages by name, and how the languages were found."""
        return {
            "sources": {one.name: one.plain() for one in self.sources},
            "languages": {one.name: one.plain() for one in self.languages},
            "languages_are": LANGUAGES,
        }

    def lines(self) -> list[str]:
        """One line a source, for a log."""
        return [
            f"{one.name}: {one.planned:,.0f} of {one.available:,.0f} tokens planned "
            f"({one.epochs:.2f} epochs, {one.repeated:,.0f} repeated, {one.left:,.0f} never read)"
            for one in self.sources
        ]


def caps_of(
    sources: Sequence[str], most: float | None, by_source: Mapping[str, float]
) -> dict[str, float]:
    """The most epochs of each source that has a limit; `by_source` wins over `most`.

    UsageError for a source that is none of `sources`.
    """
    for name in by_source:
        if name not in sources:
            near = did_you_mean(name, sources)
            raise UsageError(f"no source '{name}' in the token shards{near}", where="epochs")
    limits = {} if most is None else dict.fromkeys(sources, most)
    return {**limits, **by_source}


def refusals(clock: SampleClock, caps: Mapping[str, float]) -> list[UsageError]:
    """One error, with its numbers, for each source that the plan reads more often than its cap."""
    planned = clock.planned()
    every = sum(one.planned for one in planned)
    return [
        _refusal(one, clock, caps[one.source], every)
        for one in planned
        if one.source in caps and one.planned > allowed(one, caps[one.source])
    ]


def allowed(one: Planned, cap: float) -> int:
    """Sequences of a source that may be read; 0.1 epochs of 10 are 1."""
    return int(Decimal(repr(float(cap))) * one.available)


def _refusal(one: Planned, clock: SampleClock, cap: float, every: int) -> UsageError:
    """What is needed and what would fit; `every` are the planned sequences of all sources."""
    most = allowed(one, cap)
    step = clock.last_within(one.source, most)
    said = f"source '{one.source}' would be read {one.epochs:.2f} times, max_epochs is {cap:g}"
    return UsageError(
        f"{said}: {one.planned:,} sequences planned, {most:,} allowed ({one.available:,} "
        f"available), {one.planned - most:,} too many",
        where="phases",
        hint=f"plan it as {_floor(most / every)} of all sequences (now {one.planned / every:.4g}), "
        f"or stop after {clock.tokens_until(step):,} of {clock.tokens:,} tokens (training step "
        f"{step:,} of {clock.steps:,}), or add data",
    )


def check_caps(clock: SampleClock, caps: Mapping[str, float]) -> None:
    """Raise UsageError, with the numbers of all, if the plan reads some source too often."""
    errors = refusals(clock, caps)
    if errors:
        said = "; ".join(error.what for error in errors)
        raise UsageError(said, where="phases", hint="; ".join(error.hint or "" for error in errors))


def _floor(share: float) -> str:
    """A share with four decimals, never above it."""
    return f"{int(share * 10_000) / 10_000:.4g}"


def _entry(one: Planned, stock: Stock, cap: float | None) -> SourceEntry:
    """Of a source: tokens as its sequences tell them."""
    available = stock.tokens.get(one.source, 0)
    mean = available / one.available if one.available else 0.0
    return SourceEntry(
        name=one.source,
        available=available,
        planned=one.planned * mean,
        repeated=max(0, one.planned - one.available) * mean,
        left=max(0, one.available - one.planned) * mean,
        sequences=one,
        documents=stock.documents.get(one.source, 0),
        cap=cap,
        tokens_by_phase=tuple(count * mean for count in one.by_phase),
    )


def _languages(sources: Sequence[SourceEntry], stock: Stock) -> tuple[Entry, ...]:
    """By language: each source's numbers in the proportion of its tokens by language."""
    sums: dict[str, Entry] = {}
    for one in sources:
        spoken = stock.languages.get(one.name, {})
        total = sum(spoken.values())
        for code, tokens in spoken.items():
            before = sums.get(code, Entry(code, 0, 0, 0, 0))
            share = tokens / total if total else 0.0
            sums[code] = Entry(
                code,
                before.available + tokens,
                before.planned + one.planned * share,
                before.repeated + one.repeated * share,
                before.left + one.left * share,
            )
    return tuple(sums[code] for code in sorted(sums))
