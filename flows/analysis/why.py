"""Everything a store knows about a document: record, text, signals, verdicts, tokens.

Side tables have the row order of the documents they describe, so one lookup finds the row; token
indexes are searched. Only the needed columns are read. The ledger names all failing rules and gives
the numbers of the first; those of the others come from the signals and the config of the filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError, printable
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.documents import (
    Place,
    PlacesById,
    find_all_rows,
    find_by_file,
    find_documents,
    find_exact_duplicates,
    find_link,
    open_outputs,
    read_rows,
)
from stages.engine.inputs import Input
from stages.text.chat_rows import FOLDER, ID_COLUMN, list_texts

if TYPE_CHECKING:
    from stages.filter.config import FilterConfig

MAX_DOCUMENTS = 10
"""More documents than this under one address or prefix are an error that lists some."""
EXCERPT = 300
"""Characters."""

_SIDECAR_KINDS = ("signals", "views", "duplicates", "contamination", "ledger")
"""Kinds with a row for each document that are shown."""

_INDEXES = {"token_shards": "*.index.parquet", "excluded": "*.parquet"}
"""Kinds whose rows are found by id, and the names of their tables."""

_CORPUS = ("documents", *ID_COLUMN)
"""Kinds that a filter writes again; the filter's own rows get the kind `corpus` here."""

_ORDER = (
    "documents", "conversations", "preferences", "rejected", "signals", "views", "duplicates",
    "contamination", "exclusions", "ledger", "truth", "corpus", "excluded",
    "token_shards",
)  # fmt: skip


@dataclass(frozen=True)
class DocumentRow:
    """A row about a document in a table of an artifact; `kind` is `corpus` for filtered copies."""

    manifest: Manifest
    output: str
    kind: str
    path: str
    row: int
    values: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "stage": self.manifest.stage,
            "key": self.manifest.key,
            "output": self.output,
            "kind": self.kind,
            "path": self.path,
            "row": self.row,
            "values": self.values,
        }


@dataclass
class DocumentHistory:
    """A document and every row about it, from its record to its tokens."""

    doc_id: str
    rows: list[DocumentRow] = field(default_factory=list)

    def select(self, kind: str) -> list[DocumentRow]:
        """The rows of one kind, in the order of the pipeline."""
        return [row for row in self.rows if row.kind == kind]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"doc_id": self.doc_id, "sightings": [row.to_json() for row in self.rows]}


@dataclass(frozen=True)
class RuleFailure:
    """One failed check: the signal, its value, and the threshold; None where unknown."""

    rule: str
    value: float | int | str | None = None
    threshold: float | int | str | None = None
    signal: str | None = None


def read_histories(store: Store, manifests: Sequence[Manifest], text: str) -> list[DocumentHistory]:
    """The history of each document that `text` (id, id prefix, address, or file and row) names.

    Raises UsageError if there is none, or more than MAX_DOCUMENTS.
    """
    return [
        _read_history(store, manifests, doc_id, places)
        for doc_id, places in _find_places(store, manifests, text).items()
    ]


def _read_history(
    store: Store, manifests: Sequence[Manifest], doc_id: str, places: Sequence[Place]
) -> DocumentHistory:
    history = DocumentHistory(doc_id)
    for manifest, output, path, row in places:
        source = Input.from_manifest(store, manifest, output, full_check=False)
        ((_, values),) = read_rows(source, path, [row])
        kind = source.kind
        text = _take_text(values, kind)
        if text is not None:
            values["characters"] = len(text)
            values["excerpt"] = text[:EXCERPT]
        references = chain.from_iterable(manifest.inputs.values())
        if kind in _CORPUS and any(reference.kind == kind for reference in references):
            kind = "corpus"
        history.rows.append(DocumentRow(manifest, output, kind, path, row, values))
        if kind != "rejected":
            history.rows += _sidecar_rows(store, manifests, source, path, row, doc_id)
    for manifest, _, source in open_outputs(store, manifests, ("exclusions",)):
        history.rows += _indexed_rows(manifest, source, "*", doc_id)
    for entry in history.select("duplicates"):
        source = Input.from_manifest(store, entry.manifest, entry.output, full_check=False)
        entry.values["mates"] = asdict(find_exact_duplicates(source, doc_id, entry.values))
    for entry in history.select("ledger"):
        partner = entry.values["partner"]
        link = find_link(store, entry.manifest, doc_id, partner) if partner else None
        entry.values["link"] = asdict(link) if link else None
        entry.values["failures"] = [asdict(one) for one in find_failures(entry, history.rows)]
    history.rows.sort(
        key=lambda row: (_ORDER.index(row.kind), row.manifest.stage, row.manifest.key)
    )
    return history


def _find_places(store: Store, manifests: Sequence[Manifest], text: str) -> PlacesById:
    """Rows by document: by id if any matches, else by address, by part of it, by file."""
    match = find_documents(store, manifests, [text], parts=True)[text]
    searches = (
        (lambda: match.by_id, "give more of it"),
        (lambda: match.by_url, "add --in REF to search less"),
        (lambda: match.by_part, "give more of it"),
        (lambda: find_by_file(store, manifests, text), "add a row, as FILE:3"),
    )
    for search, hint in searches:
        places = search()
        if len(places) > MAX_DOCUMENTS:
            some = ", ".join(sorted(places)[:5])
            raise UsageError(
                f"'{printable(text)}' names {len(places)} documents: {some}, …", hint=hint
            )
        if places:
            return dict(sorted(places.items()))
    raise UsageError(
        f"no document '{printable(text)}'",
        where=store.url,
        hint="give 6 or more digits of its id, its address, or its file and row, as FILE:3; "
        "--all searches unnamed artifacts",
    )


def _sidecar_rows(
    store: Store,
    manifests: Sequence[Manifest],
    documents: Input,
    path: str,
    row: int,
    doc_id: str,
) -> Iterator[DocumentRow]:
    """Rows about a document in every artifact that read the output that holds it."""
    for manifest in manifests:
        references = chain.from_iterable(manifest.inputs.values())
        if all(reference.digest != documents.digest for reference in references):
            continue
        for name, output in manifest.outputs.items():
            source = Input.from_manifest(store, manifest, name, full_check=False)
            if output.kind in _INDEXES:
                yield from _indexed_rows(manifest, source, _INDEXES[output.kind], doc_id)
                continue
            in_folder = f"{sidecar_folder(documents.digest)}/{path}"
            places = {"signals": [path], "views": [path, in_folder]}.get(output.kind, [in_folder])
            if documents.kind in ID_COLUMN:
                places = [f"{FOLDER}/{in_folder}"]
            for place in places:
                if output.kind not in _SIDECAR_KINDS or not source.has(place):
                    continue
                for _, values in read_rows(source, place, [row]):
                    if values.pop("doc_id") == doc_id:
                        yield DocumentRow(manifest, name, output.kind, place, row, values)


def _indexed_rows(
    manifest: Manifest, source: Input, pattern: str, doc_id: str
) -> Iterator[DocumentRow]:
    """Rows of a document in tables that are searched by id."""
    for path, row, values in find_all_rows(source, pattern, [doc_id]):
        values.pop("doc_id")
        yield DocumentRow(manifest, source.output, source.kind, path, row, values)


def _take_text(values: dict[str, Any], kind: str) -> str | None:
    """Take the text out of a row; of a conversation or pair all its texts, one a line."""
    if kind not in ID_COLUMN:
        text: str | None = values.pop("text", None)
        return text
    texts = [text.text for text in list_texts(values, kind)]
    for name in ("messages", "prompt", "chosen", "rejected", "tools"):
        values.pop(name, None)
    return "\n".join(texts)


# Failed rules -------------------------------------------------------------------------------------


def find_failures(ledger: DocumentRow, rows: Sequence[DocumentRow]) -> list[RuleFailure]:
    """The checks that a row of a ledger failed, in the order of decision.

    `rows` are all rows about the document.
    """
    values = ledger.values
    first = RuleFailure(values["reason"] or "", values["value"], values["threshold"])
    config = None
    if ledger.manifest.stage == "filter":
        from stages.filter.config import FilterConfig

        with suppress(UsageError):  # Another version of the stage has another config.
            config = FilterConfig.parse(ledger.manifest.config, where="config")
    if config is None:
        return [first if name == first.rule else RuleFailure(name) for name in values["failing"]]
    rules, checks = _possible_failures(config, ledger, rows)
    failures = []
    for name in values["failing"]:
        if name in rules:
            failures.append(rules[name])
        elif name == first.rule and (first.value is not None or name not in checks):
            failures.append(first)
        else:
            failures.append(checks.get(name, RuleFailure(name)))
    return failures


def _possible_failures(
    config: FilterConfig, ledger: DocumentRow, rows: Sequence[DocumentRow]
) -> tuple[dict[str, RuleFailure], dict[str, RuleFailure]]:
    """The rules for a document, and the other checks, by name, as if it had failed them all."""
    from stages.filter import checks

    inputs: dict[str, Mapping[str, Any]] = {}
    for role in (*_CORPUS, "signals", "contamination", "exclusions"):
        outputs = {(r.stage, r.key, r.output) for r in ledger.manifest.inputs.get(role, ())}
        own = [r for r in rows if (r.manifest.stage, r.manifest.key, r.output) in outputs]
        inputs[role] = {name: value for r in reversed(own) for name, value in r.values.items()}
    document = next((inputs[role] for role in _CORPUS if inputs[role]), {})
    signals, link, duplicates = inputs["signals"], ledger.values["link"] or {}, config.duplicates
    measure = duplicates.measure
    others = [
        RuleFailure(
            checks.LANGUAGE, signals.get("language"), " or ".join(config.languages), "language"
        ),
        RuleFailure(
            checks.CONTAMINATION,
            inputs["contamination"].get("ngrams_hit"),
            config.contamination.min_ngrams_hit,
            "ngrams_hit",
        ),
        RuleFailure(checks.EXCLUSION, inputs["exclusions"].get("reason")),
        RuleFailure(checks.NEAR_DUPLICATE, link.get(measure), duplicates.threshold, measure),
    ]
    rules = [
        RuleFailure(
            rule.name,
            signals.get(rule.signal),
            " or ".join(rule.allowed) if rule.allowed else rule.threshold,
            rule.signal,
        )
        for rule in config.rules_for(document.get("source", ""), signals.get("language"))
    ]
    return {rule.rule: rule for rule in rules}, {other.rule: other for other in others}
