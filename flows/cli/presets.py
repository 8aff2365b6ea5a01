"""`ingot presets [CORPUS]`: every published rule set, or what each would drop of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from flows.analysis.artifacts import format_title, open_store, refs_by_artifact
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table

if TYPE_CHECKING:
    from stages.filter.rules import Rule
    from stages.filter.verdicts import Comparison

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
def presets(corpus: str | None, only: tuple[str, ...], store: str, as_json: bool) -> None:
    """List every rule preset: its rules, their thresholds, signals and sources.

    With CORPUS, a name or key of what a filter step made, ask each preset alone about its
    documents, and say how they disagree.
    """  # fmt: skip
    from stages.filter.presets import PRESETS, preset_rules

    names = tuple(dict.fromkeys(only)) or tuple(PRESETS)
    for name in names:
        preset_rules(name)
    if corpus is None:
        _print_presets({name: PRESETS[name] for name in names}, as_json=as_json)
        return
    from flows.analysis.corpus import Corpus
    from stages.filter.verdicts import compare_presets

    opened = open_store(store)
    loaded = Corpus.open(opened, corpus)
    compared = compare_presets(loaded.inputs, names)
    if as_json:
        named = {"stage": loaded.manifest.stage, "key": loaded.manifest.key}
        print_json({"corpus": named, **_comparison_json(compared)})
        return
    title = format_title(loaded.manifest, refs_by_artifact(opened))
    echo(f"{title}: {compared.documents:,} documents\n")
    _print_comparison(compared)


def _print_presets(presets: dict[str, tuple[Rule, ...]], *, as_json: bool) -> None:
    """The presets, each with its sources, a note, and a line for each rule."""
    from stages.filter.presets import PRESET_NOTES

    if as_json:
        lines = [
            {
                "preset": name,
                "note": PRESET_NOTES.get(name),
                "rules": [_rule_json(rule) for rule in rules],
            }
            for name, rules in presets.items()
        ]
        print_json({"presets": lines})
        return
    for number, (name, rules) in enumerate(presets.items()):
        signals = len({rule.signal for rule in rules})
        count = f"{len(rules)} rule{'' if len(rules) == 1 else 's'}"
        if number:
            echo("")
        echo(f"{name}: {count}, {signals} signals")
        texts = [("from", source) for source in dict.fromkeys(rule.source for rule in rules)]
        texts += [("note", PRESET_NOTES[name])] if name in PRESET_NOTES else []
        for label, text in texts:
            for line in wrap(text, 96, initial_indent=f"  {label} ", subsequent_indent="       "):
                echo(line)
        width = max(len(rule.name) for rule in rules)
        for rule in rules:
            varies = f"({len(rule.by_language):,} languages)"
            passes = rule.passes.replace("(by language)", varies)
            more = f" {varies}" if rule.by_language and varies not in passes else ""
            echo(f"  {rule.name.ljust(width)}  {passes}{more}")


def _print_notes(names: Sequence[str]) -> None:
    from stages.filter.presets import PRESET_NOTES

    for name in names:
        if name in PRESET_NOTES:
            echo("")
            for line in wrap(f"{name}: {PRESET_NOTES[name]}", 96, subsequent_indent="  "):
                echo(line)


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


def _print_comparison(compared: Comparison) -> None:
    """What each keeps, which other is most and least like it, and every pair of a few."""
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
    _print_notes((*compared.presets, *compared.missing))
    if compared.missing:
        echo("\nnot applied, since signals are missing:")
        for name, signals in compared.missing.items():
            more = f", {len(signals) - SIGNALS_SHOWN} more" if signals[SIGNALS_SHOWN:] else ""
            echo(f"  {name}: {', '.join(signals[:SIGNALS_SHOWN])}{more}")
