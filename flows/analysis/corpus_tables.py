"""The ledgers of two corpora in a database: documents decided on, their tokens, and both joined.

The database holds what does not fit into memory on disk: ids, verdicts and sizes, never text. All
counts are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from artifacts_schema.kinds import sidecar_folder
from flows.analysis.corpus_database import CorpusDatabase
from flows.analysis.run_corpus import (
    COLLECTED,
    DescribedDocuments,
    RunCorpus,
    described_documents,
    signal_fields,
)
from stages.engine.page import Artifact
from stages.engine.tally import languages

KEPT = "kept"

STAYED, RETIRED, FORGOTTEN, COPY_NOW, DROPPED_NOW, NOT_READ = (
    "stayed",
    "its snapshot was retired",
    "forgotten",
    "a copy of a kept document now",
    "fails a rule now",
    "not read any more",
)
NEW, READ_NOW, COPY_RETIRED, COPY_FORGOTTEN, COPY_DROPPED, PASSES_NOW = (
    "of a new snapshot",
    "read for the first time",
    "its earlier copy was retired",
    "its earlier copy was forgotten",
    "its earlier copy is dropped now",
    "passes now",
)
REMOVED = (RETIRED, FORGOTTEN, COPY_NOW, DROPPED_NOW, NOT_READ)
ADDED = (NEW, READ_NOW, COPY_RETIRED, COPY_FORGOTTEN, COPY_DROPPED, PASSES_NOW)
RETURNED = (COPY_RETIRED, COPY_FORGOTTEN, COPY_DROPPED)
"""Causes for which a document that the corpus lacked before as a copy is in it now."""


@dataclass(frozen=True)
class Volume:
    """How much text: documents; characters and UTF-8 bytes before edits; tokens as packed.

    None where bytes were not measured, or nothing was packed.
    """

    documents: int = 0
    characters: int = 0
    bytes: int | None = None
    tokens: int | None = None

    def __add__(self, other: Volume) -> Volume:
        def add(one: int | None, two: int | None) -> int | None:
            return two if one is None else one if two is None else one + two

        return Volume(
            self.documents + other.documents,
            self.characters + other.characters,
            add(self.bytes, other.bytes),
            add(self.tokens, other.tokens),
        )


@dataclass(frozen=True)
class Flow:
    """Documents of a snapshot, source and language that stayed, or came or went for one cause."""

    snapshot: str
    source: str
    language: str
    cause: str
    reason: str
    """Why those removed are dropped now, or those added were dropped before; else empty."""
    before: Volume
    """As the corpus before holds them; empty for those that were added."""
    after: Volume


@dataclass(frozen=True)
class Decision:
    """Documents that the corpus after decided on: `reason` is `kept`, or why they were dropped."""

    snapshot: str
    source: str
    language: str
    reason: str
    documents: int


_CAUSE = """
    CASE
      WHEN was = 'kept' AND now = 'kept' THEN $stayed
      WHEN was = 'kept' AND now IS NULL
        THEN if(snapshot IN (SELECT snapshot FROM after_snapshots), $not_read, $retired)
      WHEN was = 'kept' AND now = 'exclusion' THEN $forgotten
      WHEN was = 'kept' AND now IN ('exact_duplicate', 'near_duplicate') THEN $copy_now
      WHEN was = 'kept' THEN $dropped_now
      WHEN was IS NULL THEN if(snapshot IN (SELECT snapshot FROM before_snapshots), $read_now, $new)
      WHEN was NOT IN ('exact_duplicate', 'near_duplicate') THEN $passes_now
      WHEN holder IS NULL THEN $copy_retired
      WHEN holder = 'exclusion' THEN $copy_forgotten
      ELSE $copy_dropped
    END"""
_CAUSES = {
    "stayed": STAYED, "retired": RETIRED, "not_read": NOT_READ, "forgotten": FORGOTTEN,
    "copy_now": COPY_NOW, "dropped_now": DROPPED_NOW, "new": NEW, "read_now": READ_NOW,
    "copy_retired": COPY_RETIRED, "copy_forgotten": COPY_FORGOTTEN, "copy_dropped": COPY_DROPPED,
    "passes_now": PASSES_NOW,
}  # fmt: skip


class CorpusTables:
    """The tables of the database: documents decided on, their tokens, and both sides joined."""

    def __init__(self, database: CorpusDatabase) -> None:
        self.database = database
        self.filters: dict[str, int] = {}
        self.packs: dict[str, int] = {}
        database.execute(
            "CREATE TABLE decided (filter INTEGER, input INTEGER, doc_id VARCHAR, "
            "snapshot VARCHAR, source VARCHAR, language VARCHAR, reason VARCHAR, partner VARCHAR, "
            "characters BIGINT, bytes BIGINT)"
        )
        database.execute("CREATE TABLE token_counts (pack INTEGER, doc_id VARCHAR, tokens BIGINT)")
        database.execute("CREATE TABLE parts (side INTEGER, filter INTEGER)")
        database.execute("CREATE TABLE packs (side INTEGER, pack INTEGER)")

    def add(self, corpus: RunCorpus, side: int) -> None:
        """Read the ledgers and token counts of a corpus that were not read for the other one."""
        for manifest in corpus.filters.values():
            if manifest.key not in self.filters:
                self.filters[manifest.key] = len(self.filters)
                self._read_ledger(Artifact(corpus.store, manifest), self.filters[manifest.key])
            self.database.insert("parts", [(side, self.filters[manifest.key])])
        for manifest in corpus.packs.values():
            if manifest.key not in self.packs:
                self.packs[manifest.key] = len(self.packs)
                self._read_tokens(Artifact(corpus.store, manifest), self.packs[manifest.key])
            self.database.insert("packs", [(side, self.packs[manifest.key])])

    def _read_ledger(self, artifact: Artifact, number: int) -> None:
        """One row a document, joined with what is still available of documents and signals."""
        ledger = artifact.output("ledger")
        for place, described in enumerate(described_documents(artifact)):
            paths = self.database.tables(ledger, f"{sidecar_folder(described.digest)}/*.parquet")
            if not paths:
                continue
            names, joins, values = _columns(self.database, described)
            self.database.execute(
                f"INSERT INTO decided SELECT {number}, {place}, l.doc_id, {names['snapshot']}, "
                f"{names['source']}, {names['language']}, coalesce(l.reason, 'kept'), l.partner, "
                f"l.characters, {names['bytes']} FROM read_parquet($ledger) l {joins}",
                {"ledger": paths, **values},
            )

    def _read_tokens(self, artifact: Artifact, number: int) -> None:
        paths = [
            path
            for name, output in artifact.manifest.outputs.items()
            if output.kind == "token_shards"
            for path in self.database.tables(artifact.output(name), "*/*.index.parquet")
        ]
        if paths:
            self.database.execute(
                f"INSERT INTO token_counts SELECT {number}, doc_id, sum(length) "
                "FROM read_parquet($paths) GROUP BY doc_id",
                {"paths": paths},
            )

    def sources(self) -> list[tuple[str, str]]:
        """Snapshot and source of all documents, in the order in which they were decided on."""
        return self.database.execute(
            "SELECT snapshot, source FROM decided GROUP BY ALL ORDER BY min(filter), min(input), 1"
        ).fetchall()

    def snapshots(self) -> list[str]:
        """All snapshots, in that order."""
        return list(dict.fromkeys(snapshot for snapshot, _ in self.sources()))

    def join(self, new: str | None) -> None:
        """Put both sides beside each other; with `new`, before is the same without that one."""
        for side, name in enumerate(("before", "after")):
            self.database.execute(
                f"CREATE VIEW {name} AS SELECT * FROM decided WHERE filter IN "
                f"(SELECT filter FROM parts WHERE side = {side})"
                + (f" AND snapshot <> {_quoted(new)}" if new and name == "before" else "")
            )
            self.database.execute(
                f"CREATE TABLE {name}_snapshots AS SELECT DISTINCT snapshot FROM {name}"
            )
            self.database.execute(
                f"CREATE VIEW tokens_{name} AS SELECT doc_id, tokens FROM token_counts WHERE pack "
                f"IN (SELECT pack FROM packs WHERE side = {side})"
            )
        self.database.execute(
            "CREATE TABLE change AS SELECT coalesce(a.doc_id, b.doc_id) AS doc_id, "
            "coalesce(a.snapshot, b.snapshot) AS snapshot, "
            "b.source AS source_before, b.language AS language_before, "
            "a.source AS source_after, a.language AS language_after, "
            "coalesce(a.characters, b.characters) AS characters, "
            "coalesce(a.bytes, b.bytes) AS bytes, b.reason AS was, a.reason AS now, "
            "b.partner AS partner FROM before b FULL JOIN after a ON a.doc_id = b.doc_id "
            "WHERE b.reason = 'kept' OR a.reason = 'kept'"
        )

    def present(self, side: str) -> list[str]:
        """The snapshots of one side."""
        return [name for (name,) in self.database.execute(f"FROM {side}_snapshots").fetchall()]

    def flows(self) -> Iterator[Flow]:
        """What stayed, was added and was removed, with its cause."""
        rows = self.database.execute(
            f"""
            WITH known AS (
              SELECT c.*, holder.now AS holder, tb.tokens AS tokens_before,
                ta.tokens AS tokens_after
              FROM change c LEFT JOIN change holder ON c.was IS NOT NULL AND c.was <> 'kept'
                AND holder.doc_id = c.partner
              LEFT JOIN tokens_before tb ON c.was = 'kept' AND tb.doc_id = c.doc_id
              LEFT JOIN tokens_after ta ON c.now = 'kept' AND ta.doc_id = c.doc_id)
            SELECT snapshot, source_before, language_before, source_after, language_after,
              {_CAUSE} AS cause,
              CASE WHEN was = 'kept' AND now <> 'kept' THEN now
                   WHEN now = 'kept' AND was <> 'kept' THEN was ELSE '' END AS reason,
              was = 'kept' AS held, now = 'kept' AS holds, count(*), sum(characters)::BIGINT,
              sum(bytes)::BIGINT, sum(tokens_before)::BIGINT, sum(tokens_after)::BIGINT
            FROM known GROUP BY ALL ORDER BY ALL""",
            _CAUSES,
        ).fetchall()
        named = _name_languages(label for row in rows for label in (row[2], row[4]))
        for snapshot, source_was, language_was, source, language, cause, reason, *rest in rows:
            held, holds, documents, characters, size, tokens_before, tokens_after = rest
            was = (source_was, named[language_was]) if held else (source, named[language])
            now = (source, named[language]) if holds else was
            before = Volume(documents, characters, size, tokens_before) if held else Volume()
            after = Volume(documents, characters, size, tokens_after) if holds else Volume()
            if was == now:
                yield Flow(snapshot, *now, cause, reason or "", before, after)
            else:  # Another source or language was measured since.
                yield Flow(snapshot, *was, cause, reason or "", before, Volume())
                yield Flow(snapshot, *now, cause, reason or "", Volume(), after)

    def displaced(self, new: str) -> int:
        """Documents of other snapshots that are dropped as copies of kept ones in `new`."""
        rows = self.database.execute(
            "SELECT count(*) FROM after a JOIN after p ON p.doc_id = a.partner WHERE a.reason IN "
            "('exact_duplicate', 'near_duplicate') AND a.snapshot <> $new AND p.snapshot = $new",
            {"new": new},
        )
        return int(rows.fetchall()[0][0])

    def decisions(self) -> Iterator[Decision]:
        """All documents of the corpus after, by what was decided."""
        rows = self.database.execute(
            "SELECT snapshot, source, language, reason, count(*) FROM after "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        named = _name_languages(row[2] for row in rows)
        for snapshot, source, language, reason, documents in rows:
            yield Decision(snapshot, source, named[language], reason, documents)


def _columns(
    database: CorpusDatabase, described: DescribedDocuments
) -> tuple[dict[str, str], str, dict[str, Any]]:
    """What a document's columns are read from: expressions by name, joins, and their values."""
    names = dict.fromkeys(("snapshot", "source"), _quoted(COLLECTED))
    languages, joins, values = [], "", dict[str, Any]()
    size = "NULL"
    for number, source in enumerate(described.signals):
        present = {"bytes", "language"} & signal_fields(source).keys()
        if not present:
            continue  # Scores of a model alone.
        joins += f" LEFT JOIN read_parquet($s{number}) s{number} ON s{number}.doc_id = l.doc_id"
        values[f"s{number}"] = database.tables(source)
        size = f"s{number}.bytes" if "bytes" in present else size
        languages += [f"s{number}.language"] if "language" in present else []
    if described.documents is not None:
        names = {"snapshot": "d.snapshot", "source": "d.source"}
        joins += " LEFT JOIN read_parquet($documents) d ON d.doc_id = l.doc_id"
        values["documents"] = database.tables(described.documents)
        languages.append("d.language")
    language = f"coalesce({', '.join([*languages, 'NULL'])})"
    return {**names, "language": language, "bytes": size}, joins, values


def _name_languages(labels: Iterable[str | None]) -> dict[str | None, str]:
    """Declared and measured languages as primary subtags."""
    different = list(dict.fromkeys(labels))
    column = pa.chunked_array([pa.array(different, pa.string())])
    return dict(zip(different, languages(column).to_pylist(), strict=True))


def _quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
