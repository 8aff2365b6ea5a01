"""Copies between the snapshots of a corpus, from the duplicates that its filters read.

A document has a copy in a snapshot if that holds another document of the same normalised text, or
one that a verified pair at the filter's threshold joins with such a text. Pairs are taken as they
are measured, without chains, and whatever the filter decided about either document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artifacts_schema.errors import InputError
from flows.analysis.corpus_database import CorpusDatabase
from flows.analysis.run_corpus import RunCorpus
from stages.engine.inputs import Input
from stages.filter.config import DuplicatesPolicy


@dataclass(frozen=True)
class Copies:
    """Documents with copies, by snapshot; snapshots are in the order in which they were decided."""

    snapshots: tuple[str, ...]
    documents: Mapping[str, int]
    """Documents by snapshot that were compared."""
    pairs: Mapping[tuple[str, str], int]
    """Documents of the first snapshot with a copy in the second, which may be the same one."""
    with_earlier: Mapping[str, int]
    """Documents by snapshot with a copy in any earlier one."""
    threshold: float | None
    """Least similarity of a copy; None if only equal texts count."""
    measure: str


def count_copies(
    database: CorpusDatabase,
    corpus: RunCorpus,
    policy: DuplicatesPolicy,
    snapshots: Sequence[str],
) -> Copies | None:
    """Copies among the documents in the view `after` of `database`; None without duplicates.

    InputError if duplicates that the filters read were collected since.
    """
    paths = _duplicate_paths(database, corpus)
    if not paths:
        return None
    database.execute(_MEMBERS, {"paths": paths})
    database.execute(
        _LINKS,
        {
            "paths": paths,
            "measure": policy.measure,
            "threshold": 2.0 if policy.threshold is None else policy.threshold,
            "accepts": policy.threshold is not None and policy.unverified == "accept",
        },
    )
    database.execute(_REACH)
    database.execute("CREATE TABLE ages (snapshot VARCHAR, age INTEGER)")
    database.insert("ages", [(name, age) for age, name in enumerate(snapshots)])
    counted = database.execute("SELECT snapshot, sum(documents)::BIGINT FROM members GROUP BY 1")
    documents = dict(counted.fetchall())
    pairs = {(row, column): count for row, column, count in database.execute(_PAIRS).fetchall()}
    return Copies(
        tuple(name for name in snapshots if name in documents),
        documents,
        pairs,
        dict(database.execute(_WITH_EARLIER).fetchall()),
        policy.threshold,
        policy.measure,
    )


def _duplicate_paths(database: CorpusDatabase, corpus: RunCorpus) -> list[str]:
    sources: dict[str, Input] = {}
    for manifest in corpus.filters.values():
        for reference in manifest.inputs.get("duplicates", ()):
            if reference.digest not in sources:
                try:
                    loaded = Input.load(corpus.store, reference, full_check=False)
                except InputError:
                    return []  # Collected: without all of them the counts would be too small.
                sources[reference.digest] = loaded
    return [path for source in sources.values() for path in database.tables(source, "*/*.parquet")]


_MEMBERS = """
    CREATE TABLE members AS
    SELECT d.exact_class AS class, a.snapshot, count(*) AS documents
    FROM read_parquet($paths) d JOIN after a ON a.doc_id = d.doc_id GROUP BY ALL"""
"""Documents of each class of equal normalised texts, by snapshot."""

_LINKS = """
    CREATE TABLE links AS
    WITH listed AS (
      SELECT doc_id AS one, unnest(partners, recursive := true)
      FROM (SELECT doc_id, partners FROM read_parquet($paths) WHERE len(partners) > 0)),
    near AS (
      SELECT one, doc_id AS two FROM listed
      WHERE if($measure = 'containment', containment, similarity) >= $threshold::FLOAT
         OR ($accepts AND similarity IS NULL))
    SELECT one, two FROM near UNION SELECT two, one FROM near"""
"""Pairs of classes, both ways round. Similarities are stored as float32."""

_REACH = """
    CREATE TABLE reach AS
    SELECT class, snapshot, bool_or(near) AS near, max(documents) AS documents FROM (
      SELECT links.one AS class, m.snapshot, true AS near, 0 AS documents
      FROM links JOIN members m ON m.class = links.two
      UNION ALL SELECT class, snapshot, false, documents FROM members)
    GROUP BY class, snapshot"""
"""The snapshots in which each class, or a class near to it, has documents."""

_HAS_COPY = "(r.near OR r.snapshot <> m.snapshot OR r.documents > 1)"

_PAIRS = f"""
    SELECT m.snapshot, r.snapshot, sum(m.documents)::BIGINT
    FROM members m JOIN reach r ON r.class = m.class AND {_HAS_COPY} GROUP BY ALL"""

_WITH_EARLIER = """
    SELECT snapshot, sum(documents)::BIGINT FROM (
      SELECT DISTINCT m.class, m.snapshot, m.documents
      FROM members m JOIN reach r ON r.class = m.class
      JOIN ages mine ON mine.snapshot = m.snapshot JOIN ages other ON other.snapshot = r.snapshot
      WHERE other.age < mine.age)
    GROUP BY snapshot"""
