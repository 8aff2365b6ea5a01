"""n-grams counted, discounted and normalised by DuckDB, out of core.

An n-gram is one integer of 128 bits: its last word in the highest bits, its first in the lowest,
as many bits a word as let the longest n-gram fit. Then the order of the integers is kenlm's
suffix order, the n-gram without its first word is a shift, its context (all but the last word)
is a mask, and each step of the estimation is a group or a join on one column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.engine.database import database_settings
from stages.engine.kernels import kernel
from stages.language_model.tables import SLOT
from stages.language_model.vocabulary import BEGIN, END, UNKNOWN

Discounts = tuple[float, float, float]
"""What is taken from counts of 1, of 2, and of 3 or more."""


def compute_discounts(counts_of_counts: Sequence[int]) -> Discounts | None:
    """Those that n1, n2, n3, n4 n-grams with counts of 1 to 4 give; None where they give none.

    D(k) = k - (k + 1) Y n(k+1) / n(k), Y = n1 / (n1 + 2 n2) (Chen & Goodman 1998, equation 26).
    There are none where n1, n2 or n3 is 0 or a discount would be below 0, which small corpora and
    corpora of repeated text do; lmplz stops there unless it is given a fallback.
    """
    n = [0, *counts_of_counts]
    if not all(n[1:4]):
        return None
    y = n[1] / (n[1] + 2 * n[2])
    one, two, three = (k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
    return (one, two, three) if min(one, two, three) >= 0 else None


KEY_BITS = 127


def word_bits(order: int) -> int:
    """Bits that a word may take: 25 in 5-grams, which is 33 million words."""
    return min(31, KEY_BITS // order)


class PaddedKeys:
    """The n-grams that end at each token of a stream of ids in which `END` ends each line.

    Each line is preceded by order - 1 times <s>, as in lmplz.
    """

    def __init__(self, order: int) -> None:
        self._window = np.full(order, BEGIN, np.uint64)
        self._bits = word_bits(order)

    def encode(self, ids: NDArray[np.int32]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """(higher, lower 64 bits) of the n-grams at the next `ids`."""
        high, low = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
        _fill_keys(ids, self._window, self._bits, high, low)
        return high, low


@kernel
def _fill_keys(
    ids: NDArray[np.int32],
    window: NDArray[np.uint64],
    bits: int,
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
) -> None:
    order = len(window)
    for at in range(len(ids)):
        for k in range(order - 1):
            window[k] = window[k + 1]
        window[order - 1] = np.uint64(ids[at])
        upper = lower = np.uint64(0)
        for k in range(order):
            shift = k * bits
            if shift < 64:
                lower |= window[k] << np.uint64(shift)
                if shift + bits > 64:
                    upper |= window[k] >> np.uint64(64 - shift)
            else:
                upper |= window[k] << np.uint64(shift - 64)
        high[at], low[at] = upper, lower
        if ids[at] == END:
            window[:] = BEGIN


@dataclass(frozen=True)
class Counts:
    """The tables of one estimation in a DuckDB database, `grams_N`, `contexts_N` and `model_N`."""

    connection: Any
    writer: Any
    """A second connection, which writes while a result of the first is read."""
    order: int

    @classmethod
    def open(cls, folder: Path, order: int, memory: str) -> Counts:
        """An empty database in `folder`, which holds its overflow too."""
        folder.mkdir()
        settings = database_settings(memory, folder / "overflow")
        connection = duckdb.connect(str(folder / "counts.duckdb"), config=settings)
        connection.execute("SET enable_progress_bar = false")
        connection.execute("CREATE TABLE padded (high UBIGINT, low UBIGINT)")
        return cls(connection, connection.cursor(), order)

    def add(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> None:
        """Padded n-grams, one a token."""
        _insert(self.connection, "padded", pa.table({"high": high, "low": low}))

    def count(self, prune: list[int], kept_words: int) -> None:
        """Make `grams_1` … `grams_N`: (key, n, kept), n the adjusted count.

        The adjusted count of the longest n-grams and of those that begin with <s> is how often they
        occur, of others how many different words precede them (Kneser & Ney 1995). Pruned are
        those that occur at most `prune[order - 1]` times, and those with a word of an id from
        `kept_words` on; they count for what they were seen.
        """
        order, bits = self.order, word_bits(self.order)
        self._run("""
            CREATE TABLE occurrences AS
            SELECT high::HUGEINT * 18446744073709551616 + low AS key, count(*) AS n
            FROM padded GROUP BY high, low""")
        self._run("DROP TABLE padded")
        for length in range(order, 0, -1):
            padding = _repeated(BEGIN, order - length, bits)
            after_padding = f"(key >> {bits * (order - length)})"
            sources = [
                f"""SELECT {after_padding} AS key, n, n AS seen FROM occurrences
                WHERE {_low("key", bits * (order - length))} = {padding}
                AND {_word(after_padding, 0, bits)} = {BEGIN}
                AND {_word(after_padding, 1, bits)} <> {BEGIN}"""
            ]
            if length == order:
                sources = [
                    f"SELECT key, n, n AS seen FROM occurrences "
                    f"WHERE {_word('key', 1, bits)} <> {BEGIN}"
                ]
            elif length == 1:
                sources = [f"SELECT {UNKNOWN}::HUGEINT, 0, 0", f"SELECT {BEGIN}::HUGEINT, 0, 0"]
            if length < order:
                sources.append(
                    f"SELECT key >> {bits}, count(*), sum(seen)::BIGINT FROM grams_{length + 1} "
                    "GROUP BY 1"
                )
            kept = [f"seen > {prune[length - 1]}"] if prune[length - 1] else []
            kept += [
                f"{_word('key', place, bits)} < {kept_words}"
                for place in range(length)
                if kept_words < 1 << bits
            ]
            special = f"key <= {END} OR" if length == 1 else ""
            self._run(f"""
                CREATE TABLE grams_{length} AS
                SELECT key, n, seen, {f"{special} ({' AND '.join(kept)})" if kept else "true"} kept
                FROM ({" UNION ALL ".join(sources)}) AS found(key, n, seen)""")
        self._run("DROP TABLE occurrences")

    def counts_of_counts(self, length: int) -> list[int]:
        """How many n-grams have the adjusted count 1, 2, 3 and 4."""
        counts = dict(
            self._run(
                f"SELECT n, count(*) FROM grams_{length} WHERE n BETWEEN 1 AND 4 GROUP BY n"
            ).fetchall()
        )
        return [counts.get(n, 0) for n in range(1, 5)]

    def sizes(self, length: int) -> tuple[int, int]:
        """(n-grams in the model, n-grams before pruning)."""
        return self._run(f"SELECT count(*) FILTER (kept), count(*) FROM grams_{length}").fetchone()

    def normalise(self, discounts: list[tuple[float, float, float]]) -> None:
        """Make `model_1` … `model_N`: (key, p, gamma), probability and back-off weight.

        p(w | context) = (n - D(n)) / sum + gamma(context) p(w | shorter context), gamma the mass
        that discounts and pruning take from the context; unigrams go on to 1 / |V|, of all words
        but <s> (Chen & Goodman 1998, 4.1; Heafield et al. 2013).
        """
        bits = word_bits(self.order)
        for length in range(1, self.order + 1):
            one, two, three = (_decimal(d) for d in discounts[length - 1])
            self._run(f"""
                CREATE TABLE contexts_{length} AS
                SELECT {_low("key", bits * (length - 1))} AS key, sum(n)::DOUBLE AS total,
                    ({one} * count(*) FILTER (kept AND n = 1)
                    + {two} * count(*) FILTER (kept AND n = 2)
                    + {three} * count(*) FILTER (kept AND n > 2)
                    + coalesce(sum(n) FILTER (NOT kept), 0)::DOUBLE) / sum(n)::DOUBLE AS gamma
                FROM grams_{length} GROUP BY 1""")
        for length in range(1, self.order + 1):
            one, two, three = (_decimal(d) for d in discounts[length - 1])
            discounted = (
                f"(n - CASE n WHEN 0 THEN 0 WHEN 1 THEN {one} WHEN 2 THEN {two} ELSE {three} END)"
            )
            if length == 1:
                source = "grams_1 AS gram, contexts_1 AS context"
                shorter = "(SELECT 1 / (count(*) - 1)::DOUBLE FROM grams_1 WHERE kept)"
                probability = f"""CASE gram.key WHEN {BEGIN} THEN 1
                    ELSE {discounted} / context.total + context.gamma * {shorter} END"""
            else:
                source = f"""grams_{length} AS gram
                    JOIN contexts_{length} AS context
                        ON context.key = {_low("gram.key", bits * (length - 1))}
                    JOIN model_{length - 1} AS shorter ON shorter.key = gram.key >> {bits}"""
                probability = f"{discounted} / context.total + context.gamma * shorter.p"
            gamma = "1"
            if length < self.order:
                source += f" LEFT JOIN contexts_{length + 1} AS next ON next.key = gram.key"
                gamma = "coalesce(next.gamma, 1)"
            self._run(f"""
                CREATE TABLE model_{length} AS
                SELECT gram.key, {probability} AS p, {gamma} AS gamma FROM {source} WHERE kept""")
        for length in range(1, self.order + 1):
            self._run(f"DROP TABLE grams_{length}")
            self._run(f"DROP TABLE contexts_{length}")

    def entries(self, length: int, rows: int) -> Iterator[pa.RecordBatch]:
        """The model's n-grams in suffix order: word_0 … (int32), p, gamma (log10, float32), texts.

        `p_text` and `gamma_text` are the shortest decimals that give the same float32.
        """
        bits = word_bits(self.order)
        words = ", ".join(
            f"{_word('key', place, bits)}::INTEGER AS word_{place}" for place in range(length)
        )
        self._run("CREATE OR REPLACE TABLE hashed (hash UBIGINT, p FLOAT, backoff FLOAT)")
        yield from self.connection.sql(f"""
            SELECT * EXCLUDE (key), p::VARCHAR AS p_text, gamma::VARCHAR AS gamma_text FROM (
                SELECT key, {words}, {_log10("least(p, 1)")} AS p, {_log10("gamma")} AS gamma
                FROM model_{length})
            ORDER BY key""").to_arrow_reader(rows)
        self._run(f"DROP TABLE model_{length}")

    def add_hashes(
        self, hashes: NDArray[np.uint64], p: NDArray[np.float32], backoff: NDArray[np.float32]
    ) -> None:
        """n-grams of a hash table, while `entries` is read."""
        _insert(self.writer, "hashed", pa.table({"hash": hashes, "p": p, "backoff": backoff}))

    def by_hash(self, rows: int) -> Iterator[NDArray[np.void]]:
        """The rows of `add_hashes`, sorted, as rows of `SLOT`."""
        query = self.writer.sql("SELECT * FROM hashed ORDER BY hash")
        for batch in query.to_arrow_reader(rows):
            block = np.empty(len(batch), SLOT)
            for name in SLOT.names or ():
                block[name] = batch.column(name).to_numpy()
            yield block

    def _run(self, statement: str) -> Any:
        return self.connection.execute(statement)


def _insert(connection: Any, name: str, table: pa.Table) -> None:
    connection.register("incoming", table)
    connection.execute(f"INSERT INTO {name} SELECT * FROM incoming")
    connection.unregister("incoming")


def _low(key: str, bits: int) -> str:
    """The lowest `bits` of a key."""
    return f"({key} & {(1 << bits) - 1}::HUGEINT)"


def _word(key: str, place: int, bits: int) -> str:
    """The word at a place of a key, from the first."""
    return f"(({key} >> {place * bits}) & {(1 << bits) - 1})"


def _repeated(word: int, times: int, bits: int) -> int:
    return sum(word << (bits * place) for place in range(times))


def _log10(value: str) -> str:
    """float32; of zero -99, as ARPA files have it."""
    return f"(CASE WHEN {value} > 0 THEN log10({value}) ELSE -99 END)::FLOAT"


def _decimal(value: float) -> str:
    """A number as SQL's DOUBLE, to the last bit."""
    return f"{value!r}::DOUBLE"
