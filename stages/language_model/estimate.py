"""An n-gram model estimated from lines of tokens, out of core, and written as ARPA and as tables.

The definition is lmplz's (Heafield et al. 2013), interpolated modified Kneser-Ney smoothing; one
error of lmplz is not reproduced: at the end of its counting it enters the last n-gram of each
order into the counts of counts with how often it occurs instead of its adjusted count. ARPA text
is written as lmplz writes it, without a Python object for each n-gram.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import InputError, UsageError
from stages.language_model.config import NgramConfig
from stages.language_model.counts import Counts, PaddedKeys, compute_discounts, word_bits
from stages.language_model.tables import (
    ARPA,
    DESCRIPTION,
    Description,
    hash_ngrams,
    table_name,
    write_table,
    write_vocabulary,
)
from stages.language_model.vocabulary import END, SPECIAL, Lines, Vocabulary

Progress = Callable[[str, int], None]
"""Called with the phase ("read", "count", "normalise", "write") and how much of it is done: lines
in "read", else orders."""

_ROWS = 1 << 15


def estimate(
    batches: Iterable[pa.Table | list[list[str]]],
    folder: Path,
    config: NgramConfig,
    memory: str = "2GB",
    on_progress: Progress = lambda phase, done: None,
) -> Description:
    """Make `folder`, which must not exist, a model of the lines in `batches`.

    A batch is a table with a string column `line`, tokens between spaces, or lists of tokens.
    Tokens named <s>, </s>, <unk> are skipped. DuckDB gets `memory` and spills into `folder`; on top
    come the vocabulary, about 30 bytes a word and its letters, and some ten MB. The bytes made
    depend neither on `memory` nor on how lines fall into batches. A failure leaves an unfinished
    folder: call this within `write_whole`. Raises InputError without a token, UsageError if
    `memory` is too little (tens of MB at least).
    """
    work = folder / "work"
    folder.mkdir(parents=True)
    work.mkdir()
    text = _read(batches, work / "ids", on_progress)
    if text.vocabulary.size > 1 << word_bits(config.order):
        raise InputError(
            f"{text.vocabulary.size:,} different words; a model of order {config.order} takes "
            f"{1 << word_bits(config.order):,}",
            hint="choose a lower order, or split the text into pieces of words",
        )
    vocabulary, new_ids = _rank_words(text, config)
    orders = range(1, config.order + 1)
    try:
        counts = Counts.open(work / "counts", config.order, memory)
        keys = PaddedKeys(config.order)
        with (work / "ids").open("rb") as file:
            while block := file.read(4 * _ROWS):
                counts.add(*keys.encode(new_ids[np.frombuffer(block, "<i4")]))
        on_progress("count", 0)
        counts.count(config.prune_by_order(), vocabulary.size)
        computed = [compute_discounts(counts.counts_of_counts(order)) for order in orders]
        discounts = [discount or config.discount_fallback for discount in computed]
        sizes = [counts.sizes(order) for order in orders]
        on_progress("normalise", 0)
        counts.normalise(discounts)
        slots = _write(counts, [kept for kept, _ in sizes], folder, vocabulary, on_progress)
        counts.connection.close()
    except duckdb.OutOfMemoryException as error:
        raise UsageError(
            f"{memory} of memory do not suffice: {str(error).splitlines()[0]}",
            where=str(folder),
            hint="give the estimation more memory",
        ) from None
    shutil.rmtree(work)
    description = Description(
        config=config.plain(),
        lines=text.lines,
        tokens=text.tokens,
        counts=[kept for kept, _ in sizes],
        counts_before_pruning=[every for _, every in sizes],
        discounts=discounts,
        fallback_orders=[order for order in orders if not computed[order - 1]],
        word_bytes=len(vocabulary.arena),
        word_slots=len(vocabulary.slots),
        table_slots=slots,
    )
    content = json.dumps(description.model_dump(mode="json"), indent=1)
    (folder / DESCRIPTION).write_text(content + "\n")
    return description


@dataclass(frozen=True)
class _Text:
    """What was read: its words, and how often each was seen."""

    vocabulary: Vocabulary
    seen: NDArray[np.int64]
    lines: int
    tokens: int


def _read(batches: Iterable[pa.Table | list[list[str]]], path: Path, progress: Progress) -> _Text:
    """Write the text to `path` as int32 ids, `END` after each line."""
    vocabulary, seen = Vocabulary.new(), np.zeros(1 << 12, np.int64)
    count = tokens = 0
    with path.open("wb") as file:
        for batch in batches:
            for lines in _lines(batch):
                ids, offsets = vocabulary.learn(lines)
                if vocabulary.size > len(seen):
                    seen = np.concatenate((seen, np.zeros(vocabulary.size, np.int64)))
                np.add.at(seen, ids, 1)
                file.write(np.insert(ids, offsets[1:], END).astype("<i4").tobytes())
                count, tokens = count + len(lines), tokens + len(ids)
            progress("read", count)
    if not tokens:
        raise InputError("no tokens to estimate a language model from")
    return _Text(vocabulary, seen[: vocabulary.size], count, tokens)


def _lines(batch: pa.Table | list[list[str]]) -> Iterator[Lines]:
    if isinstance(batch, list):
        yield Lines.from_texts([" ".join(tokens) for tokens in batch])
        return
    for chunk in batch.column("line").cast(pa.large_string()).chunks:
        _, offsets, data = chunk.buffers()
        ends = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        yield Lines(np.frombuffer(data or b"", np.uint8), ends)


def _rank_words(text: _Text, config: NgramConfig) -> tuple[Vocabulary, NDArray[np.int32]]:
    """(the kept words, new ids of all words, those of kept words first).

    Words seen more often than `prune` says are kept, of these the `vocabulary` most frequent; of
    equally frequent words those that came first.
    """
    words, seen, first = text.vocabulary, text.seen, len(SPECIAL)
    kept = seen > config.prune_by_order()[0]
    if config.vocabulary is not None:
        kept[first + np.argsort(-seen[first:], kind="stable")[config.vocabulary :]] = False
    kept[:first] = True
    new_ids = np.empty(words.size, np.int32)
    new_ids[kept] = np.arange(kept.sum())
    new_ids[~kept] = np.arange(kept.sum(), words.size)
    if kept.all():
        return words, new_ids
    return Vocabulary.new(words.word(index) for index in np.flatnonzero(kept).tolist()), new_ids


def _write(
    counts: Counts, sizes: list[int], folder: Path, vocabulary: Vocabulary, progress: Progress
) -> list[int]:
    """The ARPA file and the tables. Slots of the tables of orders 2, 3, …"""
    longest, slots = len(sizes), []
    texts = vocabulary.to_arrow()
    with (folder / ARPA).open("wb") as file:
        heads = "".join(f"ngram {order}={size}\n" for order, size in enumerate(sizes, 1))
        file.write(f"\\data\\\n{heads}\n".encode())
        for order, size in enumerate(sizes, 1):
            progress("write", order - 1)
            file.write(f"\\{order}-grams:\n".encode())
            weights = np.zeros((size, 2), "<f4") if order == 1 else None
            for batch in counts.entries(order, _ROWS):
                columns = [batch.column(f"word_{place}") for place in range(order)]
                file.write(_format_entries(batch, columns, texts, backoff=order < longest))
                words = np.stack([column.to_numpy() for column in columns], axis=1)
                p, backoff = batch.column("p").to_numpy(), batch.column("gamma").to_numpy()
                if weights is not None:
                    weights[words[:, 0], 0], weights[words[:, 0], 1] = p, backoff
                else:
                    counts.add_hashes(hash_ngrams(words), p, backoff)
            file.write(b"\n")
            if weights is not None:
                write_vocabulary(folder, vocabulary, weights)
            else:
                rows = counts.by_hash(_ROWS)
                slots.append(write_table(folder / table_name(order), size, rows))
        file.write(b"\\end\\\n")
    return slots


def _format_entries(
    batch: pa.RecordBatch, columns: list[pa.Array], texts: pa.LargeBinaryArray, *, backoff: bool
) -> memoryview:
    """The n-grams of a batch as lines: numbers, tab, words."""
    space, tab, empty, newline = (
        pa.scalar(text, pa.large_binary()) for text in (b" ", b"\t", b"", b"\n")
    )
    gram = pc.binary_join_element_wise(*(texts.take(column) for column in columns), space)
    names = ["p_text", "gamma_text"] if backoff else ["p_text"]
    score, *weight = (_shorten(batch.column(name)).cast(pa.large_binary()) for name in names)
    lines = pc.binary_join_element_wise(score, gram, *weight, tab)
    return memoryview(pc.binary_join_element_wise(lines, empty, newline).buffers()[2])


def _shorten(numbers: pa.StringArray) -> pa.StringArray:
    """Numbers without ".0" at their end, nor a sign before 0."""
    if pc.any(pc.ends_with(numbers, ".0")).as_py():
        numbers = pc.replace_substring_regex(numbers, r"\.0$", "")
        numbers = pc.if_else(pc.equal(numbers, "-0"), "0", numbers)
    return numbers
