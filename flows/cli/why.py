"""`ingot why DOC_OR_URL`: what became of a document, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

SIGNALS_SHOWN = 5
PIECES_SHOWN = 5
COPIES_SHOWN = 5


@click.command("why")
@click.argument("document", metavar="DOC_OR_URL")
@store_option
@click.option("--in", "prefix", metavar="REF", help="Search only what refs of this beginning name.")
@click.option("--all", "everything", is_flag=True, help="Search artifacts without a name too.")
@click.option("--signals", "all_signals", is_flag=True, help="Show every signal.")
@json_option
def command(
    document: str,
    store: str,
    prefix: str | None,
    everything: bool,
    all_signals: bool,
    as_json: bool,
) -> None:
    """Follow a document from its record to its verdict and its tokens.

    DOC_OR_URL is a document's id, 6 or more digits of it, or its address (or a part of it); or the
    id of a conversation or preference pair.
    """
    from flows.cli.artifacts import in_scope, names_of, open_store, title
    from flows.cli.document_chain import document_chains
    from flows.cli.output import print_fields, print_json

    opened = open_store(store)
    chains = document_chains(opened, in_scope(opened, prefix, everything=everything), document)
    if as_json:
        print_json({"documents": [chain.to_json() for chain in chains]})
        return
    names = names_of(opened)
    for number, chain in enumerate(chains):
        if number:
            echo()
        echo(f"document {chain.doc_id}")
        told = _Telling(chain, all_signals, lambda manifest: title(manifest, names))
        print_fields([(f"  {name}", text) for name, text in told.lines()])


class _Telling:
    """A chain as names and sentences."""

    def __init__(self, chain: Any, all_signals: bool, title: Callable[[Any], str]) -> None:
        self.chain, self.all_signals, self.title = chain, all_signals, title

    def lines(self) -> list[tuple[str, str]]:
        """What is told, in the order of the pipeline."""
        tell = {
            **dict.fromkeys(("documents", "conversations", "preferences"), self._documents),
            "rejected": self._rejected,
            "signals": self._signals,
            "views": self._views,
            "duplicates": self._duplicates,
            "contamination": self._contamination,
            "exclusions": self._exclusions,
            "ledger": self._ledger,
            "corpus": self._corpus,
            "token_shards": self._tokens,
        }
        lines: list[tuple[str, str]] = list(self._origin())
        for sighting in self.chain.sightings:
            for name, text in tell[sighting.kind](sighting.values, sighting):
                whose = f"{self.title(sighting.manifest)}: " if name else ""
                lines.append((name, f"{whose}{text}"))
        pieces = len(self.chain.of("token_shards"))
        if pieces > PIECES_SHOWN:
            lines.append(("", f"and {pieces - PIECES_SHOWN} more pieces (--json lists all)"))
        return lines

    def _origin(self) -> list[tuple[str, str]]:
        """Address, title and record, as the first table that knows the document tells them."""
        from flows.cli.output import excerpt

        values = self.chain.sightings[0].values
        if "origin_offset" not in values:
            told = [("data set", values["source"]), ("begins", excerpt(values["excerpt"]))]
            return [(name, text) for name, text in told if text]
        end = values["origin_offset"] + values["origin_length"]
        record = (
            f"{values['snapshot']}: {values['origin_file']}, "
            f"bytes {values['origin_offset']:,} to {end:,}"
        )
        told = [("address", values.get("url")), ("title", excerpt(values.get("title") or ""))]
        told += [("date", values.get("date")), ("language", values.get("language"))]
        told += [("record", record), ("begins", excerpt(values.get("excerpt") or ""))]
        return [(name, text) for name, text in told if text]

    def _documents(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        return [("read", f"{seen.path} row {seen.row}, {values['characters']:,} characters")]

    def _rejected(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        detail = f" ({values['detail']})" if values["detail"] else ""
        return [("turned away", f"{values['reason']}{detail}")]

    def _signals(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        failed = [f for s in self.chain.of("ledger") for f in s.values["failures"]]
        decisive = {failure["signal"] for failure in failed}
        known = [(name, value) for name, value in values.items() if value is not None]
        chosen = [
            (name, value)
            for place, (name, value) in enumerate(known)
            if self.all_signals or place < SIGNALS_SHOWN or name in decisive
        ]
        rest = f" and {len(known) - len(chosen)} more" if len(chosen) < len(known) else ""
        return [("signals", ", ".join(f"{name} {_shown(v)}" for name, v in chosen) + rest)]

    def _views(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        """Spans by view and label; what a view cuts and what it replaces is one number."""
        lines = []
        for view in sorted({span["view"] for span in values["spans"]}):
            spans = [span for span in values["spans"] if span["view"] == view]
            labels = Counter(span["label"] for span in spans)
            told = ", ".join(f"{label} {count:,}" for label, count in sorted(labels.items()))
            characters = sum(span["end"] - span["start"] for span in spans)
            lines.append(("edits", f"{view}: {told} ({characters:,} characters)"))
        return lines

    def _duplicates(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        exact, mates = values["exact_class"], values["mates"]
        told = []
        if mates["normalised"]:
            raw = mates["raw"]
            to_the_byte = f", {'all' if raw == mates['normalised'] else f'{raw:,}'} to the byte"
            names = ", ".join(mates["doc_ids"][:COPIES_SHOWN])
            more = ", …" if mates["normalised"] > COPIES_SHOWN else ""
            told.append(f"{mates['normalised']:,} of the same text{to_the_byte}: {names}{more}")
        elif exact != self.chain.doc_id:
            told.append(f"same text as {exact}")
        pairs = [_near(pair) for pair in values["partners"][:COPIES_SHOWN]]
        more = ", …" if len(values["partners"]) > COPIES_SHOWN else ""
        near = f"{len(values['partners'])} near: {', '.join(pairs)}{more}"
        told.append(near if pairs else "no near copy listed")
        return [("copies", "; ".join(told))]

    def _contamination(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        if not values["hits"]:
            return [("benchmarks", "no n-gram shared")]
        hits = [
            f"{h['benchmark']} {h['item_id']} ({h['ngrams']}"
            + (f", {h['role'] or 'tools'} in {h['place']})" if "place" in h else ")")
            for h in values["hits"][:5]
        ]
        shared = f"{values['ngrams_hit']:,} of {values['ngrams']:,} n-grams shared"
        return [("benchmarks", f"{shared}: {', '.join(hits)}")]

    def _exclusions(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        return [("excluded", values["reason"])]

    def _ledger(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        if values["verdict"] == "kept":
            return [("verdict", f"kept, {values['edits']} edits")]
        first, *others = values["failures"]
        partner = f", kept partner {values['partner']}" if values["partner"] else ""
        partner += f": {_linked(values['link'])}" if values["link"] else ""
        lines = [("verdict", f"dropped by {_failed(first)}{partner}")]
        return lines + [("", f"also fails {_failed(failure)}") for failure in others]

    def _corpus(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        return [("corpus", f"{seen.path} row {seen.row}, {values['characters']:,} characters")]

    def _tokens(self, values: dict[str, Any], seen: Any) -> list[tuple[str, str]]:
        if seen in self.chain.of("token_shards")[PIECES_SHOWN:]:
            return []
        shard = seen.path.removesuffix(".index.parquet")
        start, length = values["start"], values["length"]
        within = values["document_start"]
        return [
            (
                "tokens",
                f"{seen.output} {shard} sequence {values['sequence']}, tokens {start} to "
                f"{start + length} (the document's {within} to {within + length})",
            )
        ]


def _near(pair: dict[str, Any]) -> str:
    """A partner with its similarity."""
    similarity = pair["similarity"]
    return f"{pair['doc_id']} {'not verified' if similarity is None else f'{similarity:.2f}'}"


def _linked(link: dict[str, Any]) -> str:
    """What makes two documents copies, in words."""
    if link["exact"] is not None:
        return "same text to the byte" if link["exact"] == "raw" else "same text once normalised"
    found = "found through a third document"
    agreed = found if link["band"] < 0 else f"agreed in band {link['band']}"
    if link["similarity"] is None:
        return f"not verified, {agreed}"
    measures = (f"{name} {link[name]:.2f}" for name in ("similarity", "containment"))
    return f"{', '.join(measures)}, {agreed}"


def _failed(failure: dict[str, Any]) -> str:
    """`gopher_few_words: words 12, threshold 50`, as far as it is known."""
    signal = f"{failure['signal']} " if failure["signal"] else ""
    value = f": {signal}{_shown(failure['value'])}" if failure["value"] is not None else ""
    threshold = failure["threshold"]
    bound = f", threshold {_shown(threshold)}" if threshold is not None else ""
    return f"{failure['rule']}{value}{bound}"


def _shown(value: Any) -> str:
    return (
        f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
