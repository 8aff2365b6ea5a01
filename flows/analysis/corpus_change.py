"""A corpus before and after: what came, what went and why, by snapshot.

The ledgers of both runs are joined by document in a database that holds what does not fit into
memory on disk: ids, verdicts and sizes, never text. All counts are exact.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Conservation
from flows.analysis.drift import DriftTable, measure_drift
from flows.analysis.run_corpus import (
    COLLECTED,
    DescribedDocuments,
    RunCorpus,
    described_documents,
    local_paths,
    signal_fields,
)
from flows.analysis.snapshot_copies import Copies, count_copies
from stages.engine.page import Artifact
from stages.engine.tally import languages
from stages.filter.config import DuplicatesPolicy, FilterConfig
from stages.filter.stage import Filter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = 1 << 30
"""Bytes that the database holds in memory."""
KEPT = "kept"

STAYED, RETIRED, FORGOTTEN, COPY_NOW, DROPPED_NOW, NOT_READ = (
    "stayed",
    "its snapshot was retired",
    "forgotten",
    "a copy of a kept document now",
    "fails a rule now",
    "not read any more",
)
NEW, READ_NOW, COPY_RETIRED, COPY_FORGOTTEN, COPY_GONE, PASSES_NOW = (
    "of a new snapshot",
    "read for the first time",
    "its earlier copy was retired",
    "its earlier copy was forgotten",
    "its earlier copy is dropped now",
    "passes now",
)
GONE = (RETIRED, FORGOTTEN, COPY_NOW, DROPPED_NOW, NOT_READ)
CAME = (NEW, READ_NOW, COPY_RETIRED, COPY_FORGOTTEN, COPY_GONE, PASSES_NOW)
CAME_BACK = (COPY_RETIRED, COPY_FORGOTTEN, COPY_GONE)
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
    """Documents of one snapshot, source and language that stayed, went or came for one cause."""

    snapshot: str
    source: str
    language: str
    cause: str
    reason: str
    """Why a document that went is dropped now, or one that came was dropped before; else empty."""
    before: Volume
    """As the corpus before holds them; empty for those that came."""
    after: Volume


@dataclass(frozen=True)
class Decision:
    """Documents of the corpus after, read and decided on: `reason` is `kept` or why they went."""

    snapshot: str
    source: str
    language: str
    reason: str
    documents: int


@dataclass(frozen=True)
class CorpusChange:
    """A corpus before and after, snapshots in the order in which they were decided on."""

    before: str
    after: str
    one_run: bool
    """Whether `before` is the same run without its newest snapshot."""
    snapshots: tuple[str, ...]
    new: tuple[str, ...]
    retired: tuple[str, ...]
    flows: tuple[Flow, ...]
    decisions: tuple[Decision, ...]
    records: Mapping[str, Conservation]
    """By snapshot what the reading steps of the run after account for."""
    forgotten: tuple[int, int]
    """Documents on the lists of forgotten ones that the filters read, before and after."""
    other_tokenizer: bool
    """Whether both were packed, and by different tokenizers."""
    copies: Copies | None
    """None if the filter was given no duplicates."""
    drift: DriftTable | None
    """None without a new snapshot, an earlier one of the same sources, or signals."""

    def volumes(self, *, after: bool, by: str = "snapshot") -> dict[str, Volume]:
        """What the corpus holds by `snapshot`, `source`, `language` or `cause`."""
        sums: dict[str, Volume] = {}
        for flow in self.flows:
            volume = flow.after if after else flow.before
            if volume.documents:
                name = getattr(flow, by)
                sums[name] = sums.get(name, Volume()) + volume
        return sums

    def total(self, *, after: bool) -> Volume:
        """All of one side."""
        return sum(self.volumes(after=after).values(), Volume())


def compare_corpora(
    before: RunCorpus | None, after: RunCorpus, *, memory: int = MEMORY
) -> CorpusChange:
    """What differs between two corpora; without `before`, what the newest snapshot added to one.

    UsageError if there is no `before` and no source has two snapshots.
    """
    with _database(memory) as database:
        tables = _Tables(database)
        for side, corpus in enumerate((before or after, after)):
            tables.add(corpus, side)
        order = tables.snapshots()
        new = _newest(tables, after) if before is None else None
        tables.join(new)
        was, now = ({*tables.present(side)} for side in ("before", "after"))
        added = tuple(name for name in order if name in now and name not in was)
        last = [*after.filters.values()][-1]
        policy = DuplicatesPolicy()
        if last.stage == Filter.name:
            policy = FilterConfig.model_validate(last.config).duplicates
        return CorpusChange(
            before=before.name if before is not None else f"the same run without {new}",
            after=after.name,
            one_run=before is None,
            snapshots=tuple(order),
            new=added,
            retired=tuple(name for name in order if name in was and name not in now),
            flows=tuple(tables.flows()),
            decisions=tuple(tables.decisions()),
            records=after.records(),
            forgotten=(
                sum((before or after).exclusions().values()),
                sum(after.exclusions().values()),
            ),
            other_tokenizer=before is not None and _other_tokenizer(before, after),
            copies=count_copies(database, after, policy, [n for n in order if n in now]),
            drift=measure_drift(database, [after, before or after], added),
        )


def _other_tokenizer(before: RunCorpus, after: RunCorpus) -> bool:
    was, now = (
        {r.digest for one in side.packs.values() for r in one.references if r.kind == "tokenizer"}
        for side in (before, after)
    )
    return bool(was and now and was != now)


def _newest(tables: _Tables, after: RunCorpus) -> str:
    """The last snapshot of a source that has an earlier one."""
    first: dict[str, str] = {}
    newest = ""
    for snapshot, source in tables.sources():
        if first.setdefault(source, snapshot) != snapshot:
            newest = snapshot
    if not newest:
        raise UsageError(
            "no source of this corpus has two snapshots, so there is nothing before it",
            where=after.name,
            hint="name an earlier run with --against",
        )
    return newest


@contextmanager
def _database(memory: int) -> Iterator[DuckDBPyConnection]:
    """A database in a folder that goes at the end; `memory` bytes of it are held in memory."""
    with tempfile.TemporaryDirectory(prefix="ingot-corpus-") as folder:
        settings: dict[str, Any] = {
            "threads": 1,
            "memory_limit": f"{memory >> 20}MiB",
            "temp_directory": folder,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(f"{folder}/corpus.duckdb", config=settings) as connection:
            yield connection


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
      ELSE $copy_gone
    END"""
_CAUSES = {
    "stayed": STAYED, "retired": RETIRED, "not_read": NOT_READ, "forgotten": FORGOTTEN,
    "copy_now": COPY_NOW, "dropped_now": DROPPED_NOW, "new": NEW, "read_now": READ_NOW,
    "copy_retired": COPY_RETIRED, "copy_forgotten": COPY_FORGOTTEN, "copy_gone": COPY_GONE,
    "passes_now": PASSES_NOW,
}  # fmt: skip


class _Tables:
    """The tables of the database: documents decided on, their tokens, and both sides joined."""

    def __init__(self, database: DuckDBPyConnection) -> None:
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
            self._insert("parts", side, self.filters[manifest.key])
        for manifest in corpus.packs.values():
            if manifest.key not in self.packs:
                self.packs[manifest.key] = len(self.packs)
                self._read_tokens(Artifact(corpus.store, manifest), self.packs[manifest.key])
            self._insert("packs", side, self.packs[manifest.key])

    def _insert(self, table: str, *values: int) -> None:
        self.database.execute(f"INSERT INTO {table} VALUES (?, ?)", values)

    def _read_ledger(self, artifact: Artifact, number: int) -> None:
        """One row a document, joined with what is still available of documents and signals."""
        ledger = artifact.output("ledger")
        for place, described in enumerate(described_documents(artifact)):
            paths = local_paths(ledger, f"{sidecar_folder(described.digest)}/*.parquet")
            if not paths:
                continue
            names, joins, values = _columns(described)
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
            for path in local_paths(artifact.output(name), "*/*.index.parquet")
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
            "coalesce(a.snapshot, b.snapshot) AS snapshot, coalesce(a.source, b.source) AS source, "
            "coalesce(a.language, b.language) AS language, "
            "coalesce(a.characters, b.characters) AS characters, "
            "coalesce(a.bytes, b.bytes) AS bytes, b.reason AS was, a.reason AS now, "
            "b.partner AS partner FROM before b FULL JOIN after a ON a.doc_id = b.doc_id "
            "WHERE b.reason = 'kept' OR a.reason = 'kept'"
        )

    def present(self, side: str) -> list[str]:
        """The snapshots of one side."""
        return [name for (name,) in self.database.execute(f"FROM {side}_snapshots").fetchall()]

    def flows(self) -> Iterator[Flow]:
        """What stayed, went and came, with its cause."""
        rows = self.database.execute(
            f"""
            WITH known AS (
              SELECT c.*, holder.now AS holder, tb.tokens AS tokens_before,
                ta.tokens AS tokens_after
              FROM change c LEFT JOIN change holder ON c.was IS NOT NULL AND c.was <> 'kept'
                AND holder.doc_id = c.partner
              LEFT JOIN tokens_before tb ON c.was = 'kept' AND tb.doc_id = c.doc_id
              LEFT JOIN tokens_after ta ON c.now = 'kept' AND ta.doc_id = c.doc_id)
            SELECT snapshot, source, language, {_CAUSE} AS cause,
              CASE WHEN was = 'kept' AND now <> 'kept' THEN now
                   WHEN now = 'kept' AND was <> 'kept' THEN was ELSE '' END AS reason,
              was = 'kept' AS held, now = 'kept' AS holds, count(*), sum(characters)::BIGINT,
              sum(bytes)::BIGINT, sum(tokens_before)::BIGINT, sum(tokens_after)::BIGINT
            FROM known GROUP BY ALL ORDER BY ALL""",
            _CAUSES,
        ).fetchall()
        named = _name_languages(row[2] for row in rows)
        for snapshot, source, language, cause, reason, held, holds, *sums in rows:
            documents, characters, size, tokens_before, tokens_after = sums
            yield Flow(
                snapshot, source, named[language], cause, reason or "",
                Volume(documents, characters, size, tokens_before) if held else Volume(),
                Volume(documents, characters, size, tokens_after) if holds else Volume(),
            )  # fmt: skip

    def decisions(self) -> Iterator[Decision]:
        """All documents of the corpus after, by what was decided."""
        rows = self.database.execute(
            "SELECT snapshot, source, language, reason, count(*) FROM after "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        named = _name_languages(row[2] for row in rows)
        for snapshot, source, language, reason, documents in rows:
            yield Decision(snapshot, source, named[language], reason, documents)


def _columns(described: DescribedDocuments) -> tuple[dict[str, str], str, dict[str, Any]]:
    """What a document's columns are read from: expressions by name, joins, and their values."""
    names = dict.fromkeys(("snapshot", "source"), _quoted(COLLECTED))
    languages, joins, values = [], "", dict[str, Any]()
    size = "NULL"
    for number, source in enumerate(described.signals):
        present = {"bytes", "language"} & signal_fields(source).keys()
        if not present:
            continue  # Scores of a model alone.
        joins += f" LEFT JOIN read_parquet($s{number}) s{number} ON s{number}.doc_id = l.doc_id"
        values[f"s{number}"] = local_paths(source)
        size = f"s{number}.bytes" if "bytes" in present else size
        languages += [f"s{number}.language"] if "language" in present else []
    if described.documents is not None:
        names = {"snapshot": "d.snapshot", "source": "d.source"}
        joins += " LEFT JOIN read_parquet($documents) d ON d.doc_id = l.doc_id"
        values["documents"] = local_paths(described.documents)
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
