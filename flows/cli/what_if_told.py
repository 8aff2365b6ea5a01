"""What `ingot what-if` tells: the rules of a corpus, a changed decision, or a sweep."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from artifacts_schema.store.runs import recipes_run
from flows.cli.artifacts import names_of, title
from flows.cli.changed_decision import (
    Amount,
    Change,
    Moved,
    Sizes,
    failing_counts,
    least_ids,
    thresholds,
)
from flows.cli.corpus import Corpus
from flows.cli.output import Column, clean, echo, excerpt, print_table
from flows.cli.settings import changed, swept
from flows.cli.token_counts import Tokens, token_counts
from stages.filter.config import FilterConfig
from stages.filter.verdicts import Verdicts

EXCERPT = 160
"""Characters of a sample."""
BAR = 10
"""Characters of a bar that stands for all documents."""

Retention = tuple[str, Amount, Amount, Amount]
"""A source (or `all`): its documents, those kept before, those kept after."""


@dataclass(frozen=True)
class Asked:
    """A corpus, how it was named, and the config to decide by instead of its own."""

    corpus: Corpus
    text: str
    config: FilterConfig
    settings: tuple[str, ...]

    @cached_property
    def before(self) -> Verdicts:
        """The decision of the corpus's own config."""
        return self.corpus.decide(self.corpus.config)

    @cached_property
    def tokens(self) -> Tokens | None:
        """Tokens of each document, where a tokenizer read the corpus."""
        return token_counts(self.corpus, self.before)

    @cached_property
    def sizes(self) -> Sizes:
        """Characters and tokens of each document."""
        return Sizes(self.corpus.characters, None if self.tokens is None else self.tokens.of)

    @property
    def otherwise(self) -> int:
        """Documents that this program decides otherwise than the ledger says."""
        return int((self.before.kept != self.corpus.was_kept).sum())

    def change(self, config: FilterConfig) -> Change:
        """What `config` changes."""
        after = self.corpus.decide(config)
        return Change(self.before, after, (self.corpus.config, config), self.sizes)

    def to_json(self) -> dict[str, Any]:
        """What was asked."""
        manifest = self.corpus.manifest
        return {
            "corpus": {"stage": manifest.stage, "key": manifest.key},
            "settings": list(self.settings),
            "tokens": self.tokens and self.tokens.origin,
            "decided_otherwise": self.otherwise,
        }

    def head(self) -> None:
        """The lines above every answer."""
        echo(title(self.corpus.manifest, names_of(self.corpus.store)))
        if self.otherwise:
            echo(
                f"note: the program that made it decided {self.otherwise:,} documents otherwise; "
                "before is what this one decides"
            )


class Told(Protocol):
    """An answer: plain values, and lines for people."""

    decisions: int
    """How often every document was decided."""

    def to_json(self) -> dict[str, Any]: ...

    def print(self) -> None: ...


class RulesTold:
    """The checks of a corpus, and how many documents fail each."""

    decisions = 1

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        rules = {rule.name: rule.passes for rule in asked.config.rule_order()}
        numbers = thresholds(asked.config)
        self.rows = [
            {
                "rule": name,
                "stays": rules.get(name, ""),
                "threshold": numbers.get(name),
                "failing": failing,
                "failing_alone": alone,
            }
            for name, (failing, alone) in failing_counts(asked.before).items()
        ]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.asked.to_json(), "rules": self.rows}

    def print(self) -> None:
        """For people."""
        self.asked.head()
        echo()
        numbers = [_number_column("fail"), _number_column("it alone")]
        print_table(
            [Column("rule", wraps=True), Column("a document stays where", wraps=True), *numbers],
            [
                (row["rule"], row["stays"], f"{row['failing']:,}", f"{row['failing_alone']:,}")
                for row in self.rows
            ],
        )
        echo("\nchange one with --set RULE=VALUE")


class ChangeTold:
    """What stays, by source, and what comes and goes, by rule and with samples."""

    decisions = 2

    def __init__(self, asked: Asked, samples: int) -> None:
        self.asked, self.change = asked, asked.change(asked.config)
        self.retention = list(self.change.by_source())
        self.moved = self.change.moved()
        ids = self.change.before.doc_ids
        self.samples = {
            way: least_ids(ids, chosen, samples)
            for way, chosen in (("gained", self.change.gained), ("lost", self.change.lost))
        }
        rows = [row for rows in self.samples.values() for row in rows]
        self.texts = asked.corpus.texts([ids[row].as_py() for row in rows]) if rows else {}

    @property
    def total(self) -> Retention:
        """All documents."""
        everything = np.ones(len(self.change.before.kept), dtype=bool)
        chosen = (everything, self.change.before.kept, self.change.after.kept)
        of, before, after = (self.change.sizes.amount(part) for part in chosen)
        return "all", of, before, after

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **self.asked.to_json(),
            "retention": [_retention_json(row) for row in (self.total, *self.retention)],
            **{
                way: {
                    **asdict(self.change.sizes.amount(getattr(self.change, way))),
                    "by_rule": [moved.plain() for moved in self.moved[way]],
                    "samples": [self._sample_json(row) for row in self.samples[way]],
                }
                for way in ("gained", "lost")
            },
        }

    def print(self) -> None:
        """For people."""
        self.asked.head()
        echo()
        _print_amounts(self.total, self.asked.tokens, self.change)
        if len(self.retention) > 1:
            echo()
            _print_sources(self.retention)
        if not any(self.moved.values()):
            echo("\nthe same documents stay")
            return
        echo()
        _print_moved(self.moved)
        for way, rows in self.samples.items():
            for row in rows:
                self._print_sample(way, row)
        name, _, step = self.asked.text.removeprefix("@").partition(":")[0].rpartition("/")
        if name in recipes_run(self.asked.corpus.store):
            sets = (f"--set {shlex.quote(f'{step}.{path}')}" for path in self._paths())
            echo(f"\nkeep it: ingot run {name} --through {step} {' '.join(sets)}")

    def _paths(self) -> list[str]:
        """The settings as paths of the config."""
        fields = FilterConfig.model_fields
        return [
            text if text.partition("=")[0].split(".")[0].strip() in fields else f"thresholds.{text}"
            for text in self.asked.settings
        ]

    def _sample_json(self, row: int) -> dict[str, Any]:
        doc_id = self.change.before.doc_ids[row].as_py()
        found, moved = self.texts[doc_id], self.change.reason(row)
        return {
            "doc_id": doc_id,
            "source": found["source"],
            "url": found["url"],
            "rule": moved.reason,
            "value": moved.least,
            "excerpt": found["text"][:EXCERPT],
        }

    def _print_sample(self, way: str, row: int) -> None:
        doc_id = self.change.before.doc_ids[row].as_py()
        found, moved = self.texts[doc_id], self.change.reason(row)
        value = "" if moved.least is None else f" {_number(moved.least)}"
        echo(f"\n{way} {doc_id}  {moved.reason}{value}")
        for line in (found["url"], found["text"]):
            if line:
                echo(f"  {excerpt(line, EXCERPT)}")


class SweepTold:
    """Retention over several values of one threshold."""

    def __init__(self, asked: Asked, sweep: str) -> None:
        self.asked = asked
        self.name, values = swept(sweep)
        self.decisions = 1 + len(values)
        self.rows: list[tuple[float, Amount]] = []
        for value in values:
            settings = (*asked.settings, f"{self.name}={value:.10g}")
            change = asked.change(changed(asked.corpus.config, settings))
            self.rows.append((value, asked.sizes.amount(change.after.kept)))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        points = [{"value": value, **asdict(kept)} for value, kept in self.rows]
        documents = len(self.asked.before.kept)
        own = thresholds(self.asked.config).get(self.name)
        return {
            **self.asked.to_json(),
            "sweep": {"of": self.name, "now": own, "documents": documents, "points": points},
        }

    def print(self) -> None:
        """For people."""
        self.asked.head()
        documents = len(self.asked.before.kept)
        own = thresholds(self.asked.config).get(self.name)
        now = f", now {_number(own)}" if own is not None else ""
        echo(f"{self.name}{now}; {documents:,} documents\n")
        columns = [_number_column(heading) for heading in ("threshold", "documents", "kept")]
        columns += [Column(""), _number_column("characters")]
        if self.asked.tokens is not None:
            columns.append(_number_column("tokens"))
        rows = []
        for value, kept in self.rows:
            share = kept.documents / max(1, documents)
            cells = [_number(value), f"{kept.documents:,}", f"{share:.1%}", bar(share)]
            cells.append(f"{kept.characters:,}")
            rows.append([*cells, *([f"{kept.tokens:,}"] if kept.tokens is not None else [])])
        print_table(columns, rows)


def _number_column(heading: str) -> Column:
    """Where a terminal is too narrow, numbers go on in the next line; none is cut."""
    return Column(heading, right=True, wraps=True)


def bar(share: float) -> str:
    """A share of `BAR` characters, to an eighth of one."""
    eighths = round(share * BAR * 8)
    rest = " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return "█" * (eighths // 8) + rest


def _retention_json(row: Retention) -> dict[str, Any]:
    source, of, before, after = row
    return {"source": source, "of": asdict(of), "before": asdict(before), "after": asdict(after)}


def _print_amounts(total: Retention, tokens: Tokens | None, change: Change) -> None:
    """Documents, characters and tokens before and after."""
    _, of, before, after = total
    rows = []
    for name in ("documents", "characters", "tokens"):
        whole, one, two = (getattr(amount, name) for amount in (of, before, after))
        if whole is None:
            continue
        shares = [f"{part / max(1, whole):.1%}" for part in (one, two)]
        about = name == "tokens" and tokens is not None and not tokens.counted.all()
        label = f"{name}, about" if about else name
        parts = (f"{one:,}", shares[0], f"{two:,}", shares[1])
        rows.append((label, f"{whole:,}", *parts, f"{two - one:+,}"))
    titles = ("of", "before", "", "after", "", "change")
    print_table(["", *(_number_column(heading) for heading in titles)], rows)
    if tokens is None:
        echo("tokens: no tokenizer read this corpus")
        return
    unknown = bool((change.gained & ~tokens.counted).any())
    how = "; of those gained, as their source's tokens per character" if unknown else ""
    echo(f"tokens: {tokens.origin}{how if tokens.counted.any() else ''}")


def _print_sources(retention: Sequence[Retention]) -> None:
    numbers = ("documents", "before", "after", "change", "in characters")
    columns: list[Column | str] = ["source"]
    columns += [_number_column(heading) for heading in numbers]
    rows = [
        (
            source,
            f"{of.documents:,}",
            f"{before.documents:,}",
            f"{after.documents:,}",
            f"{after.documents - before.documents:+,}",
            f"{after.characters - before.characters:+,}",
        )
        for source, of, before, after in retention
    ]
    print_table(columns, rows)


def _print_moved(moved: dict[str, list[Moved]]) -> None:
    """One line for each rule that documents come from or go to."""
    rows = [
        (
            way,
            f"{one.documents:,}",
            one.reason,
            _values(one),
            _bounds(one),
        )
        for way, found in moved.items()
        for one in found
    ]
    numbers = [_number_column("values"), _number_column("threshold")]
    print_table(["", _number_column("documents"), "rule", *numbers], rows)


def _values(moved: Moved) -> str:
    if moved.least is None or moved.most is None:
        return ""
    least, most = _number(moved.least), _number(moved.most)
    return least if least == most else f"{least} to {most}"


def _bounds(moved: Moved) -> str:
    before, after = (
        "none" if bound is None else _number(bound) for bound in (moved.before, moved.after)
    )
    if before == after:
        return "" if moved.before is None else before
    return f"{before} → {after}"


def _number(value: float) -> str:
    return clean(f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}")
