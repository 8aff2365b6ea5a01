"""`ingot why DOC_OR_URL`: the history of a document, and the reasons for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from flows.analysis.artifacts import format_title, list_in_scope, open_store, refs_by_artifact
from flows.analysis.documents import ordinal_row
from flows.analysis.why import DocumentHistory, DocumentRow, read_histories
from flows.cli.options import json_option, store_option
from flows.cli.output import echo, excerpt, format_value, print_fields, print_json

SIGNALS_SHOWN = 5
PIECES_SHOWN = 5
DUPLICATES_SHOWN = 5
HITS_SHOWN = 5

Lines = list[tuple[str, str]]
"""Label and text."""


@click.command("why")
@click.argument("document", metavar="DOC_OR_URL")
@store_option
@click.option(
    "--in", "prefix", metavar="REF", help="Search only what refs beginning with this name."
)
@click.option("--all", "everything", is_flag=True, help="Search artifacts without a name too.")
@click.option("--signals", "all_signals", is_flag=True, help="Show every signal.")
@json_option
def why(document: str, store: str, all_signals: bool, as_json: bool, **scope: Any) -> None:
    """Follow a document from its record to its verdict and its tokens.

    DOC_OR_URL is a document's id, 6 or more digits of it, its address (or a part of it), or its
    file and row, as data.jsonl:3; or the id of a conversation or preference pair.
    """
    opened = open_store(store)
    manifests = list_in_scope(opened, **scope)
    histories = read_histories(opened, manifests, document)
    if as_json:
        print_json({"documents": [history.to_json() for history in histories]})
        return
    refs = refs_by_artifact(opened)
    for number, history in enumerate(histories):
        if number:
            echo()
        echo(f"document {history.doc_id}")
        lines = _render_origin(history.rows[0].values)
        hidden = history.select("token_shards")[PIECES_SHOWN:]
        for row in history.rows:
            if row not in hidden:
                for label, text in _render_row(history, row, all_signals):
                    title = f"{format_title(row.manifest, refs)}: " if label else ""
                    lines.append((label, f"{title}{text}"))
        if hidden:
            lines.append(("", f"and {len(hidden)} more pieces (--json lists all)"))
        print_fields([(f"  {label}", line) for label, line in lines])


def _render_row(history: DocumentHistory, row: DocumentRow, all_signals: bool) -> Lines:
    values = row.values
    match row.kind:
        case "documents" | "conversations" | "preferences" | "corpus":
            label = "corpus" if row.kind == "corpus" else "read"
            return [(label, f"{row.path} row {row.row}, {values['characters']:,} characters")]
        case "rejected":
            detail = f" ({values['detail']})" if values["detail"] else ""
            return [("rejected", f"{values['reason']}{detail}")]
        case "signals":
            return [("signals", _render_signals(history, values, all_signals))]
        case "views":
            return _render_views(values)
        case "duplicates":
            return [("copies", _render_duplicates(values, history.doc_id))]
        case "contamination":
            return [("benchmarks", _render_contamination(values))]
        case "exclusions":
            return [("excluded", values["reason"])]
        case "ledger":
            return _render_ledger(values)
        case "excluded":
            tokens = f"{values['tokens']:,} tokens" if values["tokens"] else "the document"
            rest = "nothing of it is packed" if values["whole"] else "the rest is packed"
            return [("left out", f"{tokens}: {values['reason']}; {rest}")]
        case "token_shards":
            return [("tokens", _render_tokens(row))]
    raise AssertionError(row.kind)


def _render_signals(history: DocumentHistory, values: dict[str, Any], all_signals: bool) -> str:
    """The first few signals, and those that a failed rule reads."""
    ledgers = history.select("ledger")
    decisive = {failure["signal"] for one in ledgers for failure in one.values["failures"]}
    known = [(name, value) for name, value in values.items() if value is not None]
    chosen = [
        (name, value)
        for place, (name, value) in enumerate(known)
        if all_signals or place < SIGNALS_SHOWN or name in decisive
    ]
    rest = f" and {len(known) - len(chosen)} more" if len(chosen) < len(known) else ""
    return ", ".join(f"{name} {format_value(value)}" for name, value in chosen) + rest


def _render_duplicates(values: dict[str, Any], doc_id: str) -> str:
    same, partners, parts = values["mates"], values["partners"], []
    if same["normalised"]:
        identical = "all" if same["raw"] == same["normalised"] else f"{same['raw']:,}"
        ids = _shorten(same["doc_ids"], same["normalised"])
        parts.append(f"{same['normalised']:,} of the same text, {identical} to the byte: {ids}")
    elif values["exact_class"] != doc_id:
        parts.append(f"same text as {values['exact_class']}")
    similarities = [
        "not verified" if pair["similarity"] is None else f"{pair['similarity']:.2f}"
        for pair in partners
    ]
    pairs = [f"{pair['doc_id']} {n}" for pair, n in zip(partners, similarities, strict=True)]
    near = f"{len(pairs)} near: {_shorten(pairs, len(pairs))}"
    parts.append(near if pairs else "no near copy listed")
    return "; ".join(parts)


def _render_origin(values: dict[str, Any]) -> Lines:
    """Address, title and record, by the first table that has the document."""
    lines: list[tuple[str, str | None]]
    if "origin_offset" not in values:
        lines = [("data set", values["source"]), ("begins", excerpt(values["excerpt"]))]
    else:
        end = values["origin_offset"] + values["origin_length"]
        row = ordinal_row(values)
        place = f"bytes {values['origin_offset']:,} to {end:,}" if row is None else f"row {row:,}"
        record = f"{values['snapshot']}: {values['origin_file']}, {place}"
        lines = [
            ("address", values.get("url")),
            ("title", excerpt(values.get("title") or "")),
            ("date", values.get("date")),
            ("language", values.get("language")),
            ("record", record),
            ("begins", excerpt(values.get("excerpt") or "")),
        ]
    return [(label, text) for label, text in lines if text]


def _render_views(values: dict[str, Any]) -> Lines:
    """Spans by view and label; cut and replaced spans are counted together."""
    lines = []
    for view in sorted({span["view"] for span in values["spans"]}):
        spans = [span for span in values["spans"] if span["view"] == view]
        labels = Counter(span["label"] for span in spans)
        text = ", ".join(f"{label} {count:,}" for label, count in sorted(labels.items()))
        characters = sum(span["end"] - span["start"] for span in spans)
        lines.append(("edits", f"{view}: {text} ({characters:,} characters)"))
    return lines


def _render_contamination(values: dict[str, Any]) -> str:
    if not values["hits"]:
        return "no n-gram shared"
    hits = [
        f"{hit['benchmark']} {hit['item_id']} ({hit['ngrams']}"
        + (f", {hit['role'] or 'tools'} in {hit['place']})" if "place" in hit else ")")
        for hit in values["hits"][:HITS_SHOWN]
    ]
    return f"{values['ngrams_hit']:,} of {values['ngrams']:,} n-grams shared: {', '.join(hits)}"


def _render_ledger(values: dict[str, Any]) -> Lines:
    if values["verdict"] == "kept":
        return [("verdict", f"kept, {values['edits']} edits")]
    first, *others = values["failures"]
    partner = f", kept partner {values['partner']}" if values["partner"] else ""
    partner += f": {_format_link(values['link'])}" if values["link"] else ""
    lines = [("verdict", f"dropped by {_format_failure(first)}{partner}")]
    return lines + [("", f"also fails {_format_failure(failure)}") for failure in others]


def _render_tokens(row: DocumentRow) -> str:
    shard = row.path.removesuffix(".index.parquet")
    names = ("sequence", "start", "length", "document_start")
    sequence, start, length, within = (row.values[name] for name in names)
    return (
        f"{row.output} {shard} sequence {sequence}, tokens {start} to {start + length} "
        f"(the document's {within} to {within + length})"
    )


def _shorten(texts: Sequence[str], count: int) -> str:
    """The first few of `count` texts."""
    return ", ".join(texts[:DUPLICATES_SHOWN]) + (", …" if count > DUPLICATES_SHOWN else "")


def _format_link(link: dict[str, Any]) -> str:
    """What makes two documents duplicates, in words."""
    if link["exact"] is not None:
        return "same text to the byte" if link["exact"] == "raw" else "same text once normalised"
    band = f"agreed in band {link['band']}"
    evidence = "found through a third document" if link["band"] < 0 else band
    if link["similarity"] is None:
        return f"not verified, {evidence}"
    measures = (f"{name} {link[name]:.2f}" for name in ("similarity", "containment"))
    return f"{', '.join(measures)}, {evidence}"


def _format_failure(failure: dict[str, Any]) -> str:
    """`gopher_few_words: words 12, threshold 50`, as far as it is known."""
    signal = f"{failure['signal']} " if failure["signal"] else ""
    value = f": {signal}{format_value(failure['value'])}" if failure["value"] is not None else ""
    threshold = failure["threshold"]
    bound = f", threshold {format_value(threshold)}" if threshold is not None else ""
    return f"{failure['rule']}{value}{bound}"
