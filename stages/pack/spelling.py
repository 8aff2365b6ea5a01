"""From ids of texts to ids of documents: what stands before, between and after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from artifacts_schema.errors import InputError
from stages.engine.arrays import arrow_array
from stages.text.native import compiled

if TYPE_CHECKING:
    from stages.pack.encode import Encoder
    from stages.pack.fim import Segment
    from stages.pack.plan import Plan

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spelt:
    """Ids of documents, one after the other, and how many each has; 0 for one of no tokens."""

    ids: npt.NDArray[Any]
    lengths: Ints
    turned: int = 0
    """Documents that are turned to fill in the middle."""


@dataclass(frozen=True)
class _Parts:
    """Runs of encoded ids, in order: which document's, from where, how many, what goes before."""

    document: Ints
    first: Ints
    length: Ints
    before: Sequence[tuple[int, ...]]


def spelt(
    texts: pa.StringArray,
    turned: Mapping[int, Sequence[Segment]],
    encoder: Encoder,
    plan: Plan,
) -> Spelt:
    """Each text as begin (if the tokenizer has one), its ids, end; those of `turned` as it says.

    A turned one that takes more than a sequence is spelt as if it were not. InputError if an id
    lies outside the vocabulary.
    """
    start = tuple(plan.tokens.document_start)
    if not turned:
        encoded = encoder(texts)
        rows = np.arange(len(texts), dtype=np.int64)
        parts = _Parts(rows, encoded.starts[:-1], encoded.lengths, [start] * len(texts))
        return _joined(encoded.ids, parts, len(texts), plan)
    plain = [row for row in range(len(texts)) if row not in turned]
    segments = [segment for found in turned.values() for segment in found]
    written = pa.array([segment.text for segment in segments], pa.string()).cast(texts.type)
    encoded = encoder(pa.concat_arrays([_of(texts, plain), written]))
    parts = _Parts(
        np.array(plain + [row for row, found in turned.items() for _ in found], dtype=np.int64),
        encoded.starts[:-1],
        encoded.lengths,
        [start] * len(plain) + [segment.before for segment in segments],
    )
    whole = np.bincount(parts.document, parts.length + [len(b) for b in parts.before]) + 1
    long = [row for row in turned if whole[row] > plan.sequence_length]
    ids = encoded.ids
    if long:
        again = encoder(_of(texts, long))
        parts = _instead(parts, long, start, len(ids) + again.starts[:-1], again.lengths)
        ids = np.concatenate([ids, again.ids])
    order = np.argsort(parts.document, kind="stable")
    before = [parts.before[place] for place in order.tolist()]
    parts = _Parts(parts.document[order], parts.first[order], parts.length[order], before)
    return replace(_joined(ids, parts, len(texts), plan), turned=len(turned) - len(long))


def _instead(
    parts: _Parts, rows: Sequence[int], start: tuple[int, ...], first: Ints, length: Ints
) -> _Parts:
    """The parts without those of some documents, which have one each instead, at the end."""
    stays = ~np.isin(parts.document, rows)
    before = [one for one, stay in zip(parts.before, stays, strict=True) if stay]
    return _Parts(
        np.concatenate([parts.document[stays], rows]),
        np.concatenate([parts.first[stays], first]),
        np.concatenate([parts.length[stays], length]),
        before + [start] * len(rows),
    )


def _of(texts: pa.StringArray, rows: Sequence[int]) -> pa.StringArray:
    return texts.take(arrow_array(np.array(rows, dtype=np.int64)))


def _joined(ids: npt.NDArray[np.uint32], parts: _Parts, documents: int, plan: Plan) -> Spelt:
    """The documents of `parts`, which are in their order; those without any id are left out."""
    if len(ids) and int(ids.max()) >= plan.vocabulary_size:
        raise InputError(
            f"a text has token {int(ids.max())}, but the vocabulary has {plan.vocabulary_size}",
            where="tokenizer.json",
            hint="make the tokenizer anew, or import it again",
        )
    before = np.array([token for tokens in parts.before for token in tokens], dtype=np.int64)
    befores = np.array([len(tokens) for tokens in parts.before], dtype=np.int64)
    said = np.bincount(parts.document, parts.length, minlength=documents).astype(np.int64)
    marks = np.bincount(parts.document, befores, minlength=documents).astype(np.int64)
    lengths = np.where(said > 0, said + marks + 1, 0)
    joined = np.empty(int(lengths.sum()), dtype=np.dtype(plan.dtype))
    _join(
        joined,
        ids,
        (parts.document, parts.first, parts.length, befores),
        before,
        lengths,
        plan.tokens.end,
    )
    return Spelt(joined, lengths)


@compiled
def _join(
    out: npt.NDArray[Any],
    ids: npt.NDArray[np.uint32],
    parts: tuple[Ints, Ints, Ints, Ints],
    before: Ints,
    lengths: Ints,
    end: int,
) -> None:
    document, first, length, befores = parts
    place, mark = 0, 0
    for part in range(len(document)):
        marks = befores[part]
        if lengths[document[part]]:
            for token in before[mark : mark + marks]:
                out[place] = token
                place += 1
            for token in ids[first[part] : first[part] + length[part]]:
                out[place] = token
                place += 1
            if part + 1 == len(document) or document[part + 1] != document[part]:
                out[place] = end
                place += 1
        mark += marks
