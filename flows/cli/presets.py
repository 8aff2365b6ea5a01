"""`ingot presets [CORPUS]`: every published rule set, or what each would drop of a corpus."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

if TYPE_CHECKING:
    from stages.filter.comparison import Comparison
    from stages.filter.presets import Rule

PAIRS_SHOWN = 8
"""Presets of which every pair fits into a table."""
SIGNALS_SHOWN = 3


@click.command("presets")
@click.argument("corpus", required=False)
@click.option(
    "--only", metavar="PRESET", multiple=True, help="These presets alone; may be repeated."
)
@store_option
@json_option
def command(corpus: str | None, only: tuple[str, ...], store: str, as_json: bool) -> None:
    """List every rule preset: its rules, their thresholds, signals and sources.

    With CORPUS, a name or key of what a filter step made, ask each preset alone about its
    documents, and say how they disagree.
    """  # fmt: skip
    from stages.filter.presets import PRESETS, rules_of

    names = tuple(dict.fromkeys(only)) or tuple(PRESETS)
    for name in names:
        rules_of([name])
    if corpus is None:
        _list({name: PRESETS[name] for name in names}, as_json=as_json)
        return
    from flows.cli.artifacts import names_of, open_store, title
    from flows.cli.corpus import Corpus
    from flows.cli.output import print_json
    from stages.filter.comparison import compare_presets

    opened = open_store(store)
    asked = Corpus.open(opened, corpus)
    compared = compare_presets(asked.given, names)
    if as_json:
        named = {"stage": asked.manifest.stage, "key": asked.manifest.key}
        print_json({"corpus": named, **_comparison_json(compared)})
        return
    echo(f"{title(asked.manifest, names_of(opened))}: {compared.documents:,} documents\n")
    _tell(compared)


def _list(presets: dict[str, tuple[Rule, ...]], *, as_json: bool) -> None:
    """The presets, each with its sources and a line for each rule."""
    from flows.cli.output import print_json

    if as_json:
        listed = [
            {"preset": name, "rules": [_rule_json(rule) for rule in rules]}
            for name, rules in presets.items()
        ]
        print_json({"presets": listed})
        return
    for number, (name, rules) in enumerate(presets.items()):
        signals = len({rule.signal for rule in rules})
        echo(f"{chr(10) if number else ''}{name}: {_counted(rules)}, {signals} signals")
        for source in dict.fromkeys(rule.source for rule in rules):
            for line in wrap(source, 96, initial_indent="  from ", subsequent_indent="       "):
                echo(line)
        width = max(len(rule.name) for rule in rules)
        for rule in rules:
            varies = f"({len(rule.by_language):,} languages)"
            passes = rule.passes.replace("(by language)", varies)
            more = f" {varies}" if rule.by_language and varies not in passes else ""
            echo(f"  {rule.name.ljust(width)}  {passes}{more}")


def _counted(rules: tuple[Rule, ...]) -> str:
    return f"{len(rules)} rule{'' if len(rules) == 1 else 's'}"


def _rule_json(rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "signal": rule.signal,
        "minimum": rule.minimum if rule.minimum == rule.minimum else None,
        "maximum": rule.maximum if rule.maximum == rule.maximum else None,
        "allowed": list(rule.allowed),
        "by_language": dict(rule.by_language),
        "source": rule.source,
    }


def _comparison_json(compared: Comparison) -> dict[str, Any]:
    return {
        "documents": compared.documents,
        "presets": [
            {"preset": name, "kept": int(kept), "dropped": int(dropped)}
            for name, kept, dropped in zip(
                compared.presets, compared.kept, compared.dropped, strict=True
            )
        ],
        "only": {
            name: dict(zip(compared.presets, row.tolist(), strict=True))
            for name, row in zip(compared.presets, compared.only, strict=True)
        },
        "not_measured": {name: list(signals) for name, signals in compared.missing.items()},
    }


def _tell(compared: Comparison) -> None:
    """What each keeps, which other is most and least like it, and every pair of a few."""
    from flows.cli.output import Column, print_table

    rows = []
    for place, name in enumerate(compared.presets):
        differ = compared.only[place] + compared.only[:, place]
        rest = [other for other in range(len(compared.presets)) if other != place]
        near = min(rest, key=lambda other: int(differ[other]), default=None)
        far = max(rest, key=lambda other: int(differ[other]), default=None)
        kept = int(compared.kept[place])
        share = f"{kept / max(1, compared.documents):.1%}"
        ends = [
            "" if other is None else f"{compared.presets[other]} {int(differ[other]):,}"
            for other in (near, far)
        ]
        rows.append((name, f"{kept:,}", share, *ends))
    numbers = [Column("keeps", right=True), Column("share", right=True)]
    others = [Column(f"differs {end} from", wraps=True) for end in ("least", "most")]
    print_table([Column("preset", wraps=True), *numbers, *others], rows)
    if 1 < len(compared.presets) <= PAIRS_SHOWN:
        echo("\ndocuments that a row drops and a column keeps:")
        heads = [Column(str(place + 1), right=True) for place in range(len(compared.presets))]
        cells = [
            [f"{place + 1} {name}", *(f"{int(n):,}" for n in compared.only[place])]
            for place, name in enumerate(compared.presets)
        ]
        print_table(["", *heads], cells)
    elif len(compared.presets) > PAIRS_SHOWN:
        echo("\n--only A --only B shows every pair of a few; --json has all")
    if compared.missing:
        echo("\nnot asked, for want of signals:")
        for name, signals in compared.missing.items():
            more = f", {len(signals) - SIGNALS_SHOWN} more" if signals[SIGNALS_SHOWN:] else ""
            echo(f"  {name}: {', '.join(signals[:SIGNALS_SHOWN])}{more}")
