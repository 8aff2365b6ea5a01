"""How fast `filter` decides, beside DuckDB with the same decision in SQL.

    python -m tests.benchmarks.filter [--documents 1000000] [--shards 10] [--failing 0.005]

Synthetic documents carry every signal that some preset asks for, drawn so that each bound fails in
a small share of them, and so that what has no lower bound is 0 in half of them, as most shares of
repeated text are; all presets are on. Decided is from the signal columns on the disk to the
ledger on the disk: assessed shard by shard, copies (a tenth of the documents has a verified pair)
with the files that maps leave, and the ledger with all failing rules. The kept text is not written:
that is a copy of the documents. DuckDB evaluates the same rules in the order of decision over the
same tables with one thread and writes the same columns; it decides no copies. CPU seconds, in turn,
three rounds after one that does not count; medians, with the least and greatest ratio of a round.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.file_table import File
from artifacts_schema.kinds import KINDS, sidecar_folder
from artifacts_schema.store.remote import backend_at
from stages.engine.inputs import Input
from stages.engine.outputs import TableWriter
from stages.filter.assess import assess_shard, read_findings, reason_names
from stages.filter.config import FilterConfig
from stages.filter.copies import DecidedCopies, LocalMaps, shard_starts
from stages.filter.exclusions import Exclusions
from stages.filter.ledger import add_copies, ledger_table
from stages.filter.links import add_duplicates
from stages.filter.presets import PRESETS
from stages.filter.rules import Rule
from stages.filter.sidecars import align_tables
from tests.benchmarks.extraction import table
from tests.benchmarks.ingest import ratio, side_by_side

LANGUAGES = ("de", "fr", "ja", "ru")
CONFIG = FilterConfig.parse(
    {"rules": tuple(PRESETS), "views": (), "personal_data": "keep"}, where="benchmark"
)
LEDGER = "ledger.parquet"
COUNTS = {"characters", "words", "words@dclm", "stop_words", "stop_words@dclm"}
"""Signals that are whole numbers; the others stay fractions, which costs no less to read."""


def column(
    rule_set: Sequence[Rule], words: NDArray[np.int64], failing: float, seed: int
) -> pa.Array:
    """Values of one signal: most pass all bounds, `failing` of them lie beyond each.

    Each is so many out of the words of its document, as shares of real text are.
    """
    draw, documents = np.random.default_rng(seed), len(words)
    if rule_set[0].allowed:
        names = pa.array(["head", "middle", "tail"])
        return names.take(pa.array(draw.choice(3, documents, p=[0.6, 0.4 - failing, failing])))
    low = [b for r in rule_set if r.minimum is not None for b in _bounds(r)]
    high = [b for r in rule_set if r.maximum is not None for b in _bounds(r)]
    least = max(low, default=0.0)
    most = min(high, default=least + 1)
    values = least + (most - least) * draw.random(documents)
    if not low:
        values[draw.random(documents) < 0.5] = 0.0
    for bound, beyond in ((low, -1.0), (high, 1.0)):
        for edge in sorted(set(bound)):
            rows = draw.random(documents) < failing
            values[rows] = edge + beyond * (0.01 + draw.random(rows.sum()))
    values = np.rint(values * words) / words
    kind = pa.int64() if rule_set[0].signal in COUNTS else pa.float64()
    made = pa.array(values, mask=draw.random(documents) < 0.001)
    return made.cast(kind, safe=False)


def _bounds(rule: Rule) -> list[float]:
    asked = (rule.for_language(language).threshold for language in (None, *LANGUAGES))
    return [bound for bound in asked if not np.isnan(bound)]


def make(folder: Path, documents: int, shards: int, failing: float) -> list[Input]:
    """Documents without text, their signals and duplicates, as inputs of a stage."""
    by_signal: dict[str, list[Rule]] = {}
    for rule in CONFIG.rule_order():
        by_signal.setdefault(rule.signal, []).append(rule)
    paths: dict[str, list[File]] = {"documents": [], "signals": [], "duplicates": []}
    for number in range(shards):
        size = documents // shards
        names = [hashlib.md5(f"{number}-{i}".encode()).hexdigest() for i in range(size)]
        ids = pa.array(names)
        columns: dict[str, Any] = {"doc_id": ids}
        words = np.exp(np.random.default_rng(number).uniform(3.9, 7.6, size)).astype(np.int64)
        for place, (signal, rules) in enumerate(by_signal.items()):
            columns[signal] = column(rules, words, failing, seed=1000 * number + place)
        columns["language"] = pa.array(LANGUAGES).take(pa.array(np.arange(size) % 4))
        schema = KINDS["documents"].tables["*.parquet"].arrow()
        empty = {name: pa.nulls(size, schema.field(name).type) for name in schema.names}
        blank = pa.repeat(pa.scalar(""), size)
        filled = {name: blank for name in schema.names if not schema.field(name).nullable}
        filled |= {
            n: pa.array(np.zeros(size, np.int64)) for n in ("origin_offset", "origin_length")
        }
        web = pa.repeat(pa.scalar("web"), size)
        rows = {**empty, **filled, "doc_id": ids, "source": web}
        tables = {"documents": pa.table(rows, schema=schema), "signals": pa.table(columns)}
        for kind, made in tables.items():
            paths[kind].append(_written(folder / kind, f"{number:05d}.parquet", made, kind))
        name = f"{sidecar_folder('documents' * 8)}/{number:05d}.parquet"
        paths["duplicates"].append(_written(folder / "duplicates", name, pairs(ids), "duplicates"))
    statistics = b'{"parameters": {"floor": 0.5}}'
    (folder / "duplicates" / "statistics.json").write_bytes(statistics)
    paths["duplicates"].append(File(path="statistics.json", bytes=len(statistics), sha256=""))
    backend = backend_at(str(folder))
    return [
        Input(backend, kind, "benchmark", kind * 8, kind, kind, kind * 8, tuple(files), False)
        for kind, files in paths.items()
    ]


def _written(folder: Path, name: str, rows: pa.Table, kind: str | None) -> File:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, TableWriter(file, rows.schema, kind=kind, path=name) as to:
        to.write(rows)
    return File(path=name, bytes=path.stat().st_size, sha256="", rows=len(rows))


def pairs(ids: pa.StringArray) -> pa.Table:
    """Duplicates: verified pairs of every tenth document with the next one."""
    schema = KINDS["duplicates"].tables["*/*.parquet"].arrow()
    lengths = np.zeros(len(ids), dtype=np.int32)
    lengths[: len(ids) - 1 : 10] = 1
    near = np.full(int(lengths.sum()), 0.9, dtype=np.float32)
    partners = [ids.take(pa.array(np.flatnonzero(lengths) + 1)), near, near, near.astype(np.int32)]
    type_ = schema.field("partners").type
    items = pa.StructArray.from_arrays(
        [pa.array(column) for column in partners], fields=list(type_.value_type)
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.table(
        [ids, ids, ids, pa.ListArray.from_arrays(offsets, items, type=type_)], schema=schema
    )


def ingot(inputs: Sequence[Input], folder: Path, times: dict[str, list[float]]) -> None:
    """Assess, decide and write the ledger, as the stage does; notes the seconds of each part."""
    clock, policy = [time.process_time()], CONFIG.duplicates
    documents, signals, duplicates = inputs
    shards = align_tables([documents], [signals], [], None)
    shards, earlier = add_duplicates(shards, [duplicates], [], [documents], policy)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        maps = LocalMaps(Path(name))
        results = maps(assess_shard, shards, config=CONFIG, exclusions=Exclusions())
        clock.append(time.process_time())
        decided = DecidedCopies.decide(
            maps, shards, results, earlier, policy, ledgers=0, memory=1 << 30
        )
        clock.append(time.process_time())
        names = reason_names(CONFIG)
        edges = pairwise(shard_starts(shards))
        for shard, result, (start, stop) in zip(shards, results, edges, strict=True):
            known = decided.among(start, stop)
            final = add_copies(read_findings(result), known.copies(), names, 0.8)
            edits = np.zeros(stop - start, dtype=np.int32)
            ids = shard.documents.read(["doc_id"])["doc_id"]
            rows = ledger_table(ids, names, final, known.partners(), edits, pa.array(edits))
            _written(folder, f"{shard.id}-{LEDGER}", rows, None)
    clock.append(time.process_time())
    for part, seconds in zip(("assess", "copies", "ledger"), np.diff(clock), strict=True):
        times.setdefault(part, []).append(float(seconds))


def condition(rule: Rule) -> str:
    """The rule as an SQL condition that is true where a document fails."""
    signal = f'"{rule.signal}"'
    if rule.allowed:
        return f"{signal} NOT IN ({', '.join(repr(label) for label in rule.allowed)})"
    sign = "<" if rule.minimum is not None else ">"
    if not rule.by_language:
        return f"{signal} {sign} {rule.threshold!r}"
    cases = " ".join(
        f"WHEN '{language}' THEN {rule.for_language(language).threshold!r}"
        for language in LANGUAGES
    )
    return f"{signal} {sign} CASE language {cases} END"


def duckdb(signals: Path, folder: Path) -> None:
    """The same decision in SQL."""
    import duckdb as engine

    rules = CONFIG.rule_order()
    failing = ", ".join(f"CASE WHEN {condition(rule)} THEN '{rule.name}' END" for rule in rules)
    value = " ".join(
        f"WHEN '{rule.name}' THEN " + ("NULL" if rule.allowed else f'"{rule.signal}"')
        for rule in rules
    )
    threshold = " ".join(
        f"WHEN '{rule.name}' THEN " + ("NULL" if rule.allowed else f"{rule.threshold!r}::DOUBLE")
        for rule in rules
        if not np.isnan(rule.threshold)
    )
    with engine.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(
            f"""COPY (
                SELECT doc_id, reason IS NULL AS kept, reason, failing,
                    CASE reason {value} END AS value, CASE reason {threshold} END AS threshold
                FROM (
                    SELECT *, failing[1] AS reason FROM (
                        SELECT *, list_filter([{failing}], lambda x: x IS NOT NULL) AS failing
                        FROM read_parquet('{signals}/*.parquet')
                    )
                )
            ) TO '{folder}/duckdb.parquet'
            (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 8192)"""
        )


def check_equal(folder: Path) -> None:
    """Both name the same reason and the same failing rules for every document, copies apart."""
    paths = sorted(folder.glob(f"*-{LEDGER}"))
    own = pa.concat_tables([pq.read_table(path) for path in paths]).select(["doc_id", "failing"])
    other = pq.read_table(folder / "duckdb.parquet", columns=["doc_id", "failing"])
    copies = ("near_duplicate", "exact_duplicate")
    expected = dict(zip(*(other[name].to_pylist() for name in ("doc_id", "failing")), strict=True))
    for doc_id, failing in zip(*(own[n].to_pylist() for n in ("doc_id", "failing")), strict=True):
        rules = [name for name in failing if name not in copies]
        assert rules == expected[doc_id], (doc_id, rules, expected[doc_id])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--failing", type=float, default=0.005, help="share beyond each bound")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(prefix="ingot-benchmark-") as name:
        folder = Path(name)
        inputs = make(folder, chosen.documents, chosen.shards, chosen.failing)
        parts: dict[str, list[float]] = {}
        works: dict[str, Callable[[], object]] = {
            "ingot": partial(ingot, inputs, folder, parts),
            "DuckDB": partial(duckdb, folder / "signals", folder),
        }
        seconds = side_by_side(works, chosen.rounds)
        check_equal(folder)
    rules = len(CONFIG.rule_order())
    rate = {work: chosen.documents / statistics.median(spent) for work, spent in seconds.items()}
    rows = [
        (work, f"{statistics.median(spent):.2f}", f"{rate[work]:,.0f}")
        for work, spent in seconds.items()
    ]
    print(f"{chosen.documents:,} documents, {rules} rules of {len(PRESETS)} presets")
    print(table(("decide and ledger", "CPU s", "documents a CPU s"), rows))
    print(f"DuckDB over ingot: {ratio(seconds['DuckDB'], seconds['ingot'])}")
    split = [(part, f"{statistics.median(spent[1:]):.2f}") for part, spent in parts.items()]
    print(table(("of ingot's", "CPU s"), split))


if __name__ == "__main__":
    main()
