"""The plan of a run, made and checked before its first step: data, learning rate, token account.

The token account says of each source and language how much there is, how much a run plans to read,
how often, what is left, and after the run how much it read. Sequences are counted exactly. Tokens
of a plan (without padding) are expected numbers: a whole epoch is all tokens of a source, a part of
an epoch its share of them; each language has its share of a source's planned tokens. Tokens that a
run has read are counted. `run_account` is the content of `run.json`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from stages.engine import Input
from stages.pretrain.config import PretrainConfig
from stages.pretrain.plan_check import epoch_caps, phases_of_run, skipped_steps
from stages.training.sample_clock import Planned, SampleClock
from stages.training.schedule import Schedule, Timeline, schedule
from stages.training.token_shards import TokenShards

if TYPE_CHECKING:
    from stages.pretrain.task import HeldOutSet
    from stages.training.fit import TrainedRun


LANGUAGES = (
    "expected, of what is planned: each language has its share of a source's tokens; "
    "counted, of what was read"
)
"""How tokens by language are found."""


@dataclass(frozen=True)
class Stock:
    """What token shards hold, by source: tokens, documents, and tokens by language."""

    tokens: Mapping[str, int]
    documents: Mapping[str, int]
    languages: Mapping[str, Mapping[str, int]]

    @classmethod
    def from_shards(cls, shards: TokenShards) -> Stock:
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
        """JSON-ready, with sequences and tokens."""
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
    def from_clock(
        cls, clock: SampleClock, stock: Stock, caps: Mapping[str, float]
    ) -> TokenAccount:
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


def cap_errors(clock: SampleClock, caps: Mapping[str, float]) -> list[UsageError]:
    """One error, with its numbers, for each source that the plan reads more often than its cap."""
    planned, errors = clock.planned(), []
    every = sum(one.planned for one in planned)
    for one in planned:
        cap = caps.get(one.source, math.inf)
        # 0.1 epochs of 10 sequences are 1.
        most = int(Decimal(repr(float(cap))) * one.available) if cap < math.inf else one.planned
        if one.planned <= most:
            continue
        step = clock.last_within(one.source, most)
        share = int(most / every * 10_000) / 10_000
        text = f"source '{one.source}' would be read {one.epochs:.2f} times, max_epochs is {cap:g}"
        errors.append(
            UsageError(
                f"{text}: {one.planned:,} sequences planned, {most:,} allowed ({one.available:,} "
                f"available), {one.planned - most:,} too many",
                where="phases",
                hint=f"plan it as {share:.4g} of all sequences (now {one.planned / every:.4g}), or "
                f"stop after {clock.tokens_until(step):,} of {clock.tokens:,} tokens (training "
                f"step {step:,} of {clock.steps:,}), or add data",
            )
        )
    return errors


def check_caps(clock: SampleClock, caps: Mapping[str, float]) -> None:
    """Raise UsageError, with the numbers of all, if the plan reads some source too often."""
    errors = cap_errors(clock, caps)
    if errors:
        text = "; ".join(error.what for error in errors)
        raise UsageError(text, where="phases", hint="; ".join(error.hint or "" for error in errors))


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


def clock_of_run(
    run: PretrainConfig, sources: Mapping[str, int], lengths: Mapping[str, int]
) -> SampleClock:
    """The clock of a run over shards of these `sources` (each with its number of sequences).

    `lengths` has the tokens of a sequence of each. A skipped range of tokens skips every training
    step that would read one of them. Raises UsageError for a phase that cannot be run, and for a
    range that skips nothing.
    """
    phases = phases_of_run(run, sources, lengths)
    return SampleClock(sources, phases, run.seed, skipped_steps(run, Timeline(phases)))


@dataclass(frozen=True)
class Plan:
    """What each training step reads, its learning rate, and what that makes of the tokens."""

    clock: SampleClock
    schedule: Schedule
    account: TokenAccount


def make_plan(config: PretrainConfig, shards: TokenShards, start: Input | None = None) -> Plan:
    """Phases as training steps over the sources that `shards` hold; `start` is the checkpoint.

    Raises UsageError, with the numbers, for a mixture that these sources cannot fill, or a source
    that would be read more often than `max_epochs` or `epochs` allow.
    """
    plan = unchecked_plan(config, shards, start)
    check_caps(plan.clock, caps(config, shards))
    return plan


def unchecked_plan(config: PretrainConfig, shards: TokenShards, start: Input | None = None) -> Plan:
    """As `make_plan`, without the check of how often sources are read."""
    clock = clock_of_run(config, shards.sequences, shards.lengths)
    segments = [
        (phase, settings.learning_rate)
        for phase, settings in zip(clock.phases, config.phases, strict=True)
    ]
    account = TokenAccount.from_clock(clock, Stock.from_shards(shards), caps(config, shards))
    rate = 0.0
    if start is not None and config.clock == "restart":
        rate = float(start.read_json("state.json").get("learning_rate", 0.0))
    return Plan(clock, schedule(segments, where="phases", start=rate), account)


def caps(config: PretrainConfig, shards: TokenShards) -> dict[str, float]:
    """The most epochs by source, where there is a limit."""
    return epoch_caps(shards.sources, config.max_epochs, config.epochs)


def check_tokenizer(tokenizer: Input, *shards: TokenShards | None) -> None:
    """Raise InputError unless all shards were packed with `tokenizer`."""
    for one in shards:
        if one is not None and one.tokenizer != tokenizer.digest:
            raise InputError(
                f"token shards were packed with tokenizer {short(one.tokenizer)}, "
                f"given is {short(tokenizer.digest)}",
                where="tokenizer",
                hint="give the tokenizer that packed them, or pack again",
            )


def run_account(
    config: PretrainConfig,
    plan: Plan,
    shards: TokenShards,
    held_out: HeldOutSet,
    run: TrainedRun,
) -> dict[str, Any]:
    """Phases, the token account with what was realised, the baseline, and the model's size."""
    from stages.model.size import count_parameters

    rows = run.log.rows("metrics")
    read = {name: sum(row[f"tokens/{name}"] for row in rows) for name in shards.sources}
    languages = _read_by_language(plan, rows, sum(read.values()))
    count = count_parameters(run.model.config)
    return {
        **planned_account(config, plan),
        **plan.account.realised(read, languages).plain(),
        "held_out_sequences": len(held_out.sources_B),
        **held_out.unigram(shards.train_counts()),
        "parameters": {"total": count.total, "without_embeddings": count.without_embeddings},
    }


def _read_by_language(plan: Plan, rows: list[dict[str, Any]], tokens: int) -> dict[str, int]:
    """Tokens that were read of each language: counted apart where there are several."""
    languages = [entry.name for entry in plan.account.languages if entry.available]
    counts = dict.fromkeys((entry.name for entry in plan.account.languages), 0)
    if len(languages) == 1:
        return {**counts, languages[0]: tokens}
    return counts | {
        name: sum(row[f"language_tokens/{name}"] for row in rows) for name in languages
    }


def planned_account(config: PretrainConfig, plan: Plan) -> dict[str, Any]:
    """Phases, skipped training steps and token account of a planned run, JSON-ready.

    `tokens` of a phase are positions, padding included.
    """
    phases = []
    for phase, settings in zip(plan.clock.phases, config.phases, strict=True):
        plain: Mapping[str, Any] = settings.plain()
        names = ("sequences_per_batch", "mixture", "mixture_end", "learning_rate")
        phases.append(
            {
                "training_steps": phase.steps,
                "tokens": phase.tokens,
                "sequence_length": phase.sequence_length,
                **{name: plain[name] for name in names},
            }
        )
    return {
        "phases": phases,
        "skipped_training_steps": [list(part) for part in plan.clock.skip],
        **plan.account.plain(),
    }
