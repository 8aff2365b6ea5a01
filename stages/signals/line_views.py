"""Line rules as views of a batch of texts: what each cuts, and signals on what is left.

FineWeb's rules (Penedo et al. 2024, section 3.5) are measured on what C4 without its rule on ends
left, as datatrove's `examples/fineweb.py` runs them: its C4 filter rewrites the text first.

The tokens of an edited text are counted line by line instead of split again. What a splitter makes
of a run of characters without white space depends on that run alone, so a line that only lost its
neighbours keeps its tokens; only lines that lose a citation are split again.

Sentences are counted as spaCy's sentencizer splits them. A sentence ends after a mark (a token of
the kind SENTENCE_END) and the punctuation that follows, as soon as another token comes. spaCy's
tokens of white space are such tokens: all of a run of white space but one space after a word. So
white space after a last mark is a sentence too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals import c4, refinedweb
from stages.signals.c4 import Lines, find_c4_lines
from stages.signals.outputs import KEPT, Cuts, Signal, apply_marks, decode_texts, find_cuts
from stages.signals.quality import FILLED_LINE_SIGNALS, LINE_COUNTS, measure_lines
from stages.text.batch import PUNCTUATION, SENTENCE_END, Batch, sum_before

_SPACE = ord(" ")


def count_sentences_within(
    batch: Batch, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sentences within characters [starts[i], ends[i]) of the batch; none where that is empty.

    The stretches come in order, without overlap, and part no token.
    """
    tokens = batch.tokens
    return _count_within(batch.codes, tokens.starts, tokens.ends, tokens.kinds, starts, ends)


@kernel
def _count_within(
    codes: NDArray[np.uint32],
    token_starts: NDArray[np.int64],
    token_ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    counts = np.zeros(len(starts), dtype=np.int64)
    token = 0
    for i in range(len(starts)):
        while token < len(token_starts) and token_starts[token] < starts[i]:
            token += 1
        count, ended, last = int(starts[i] < ends[i]), False, starts[i]
        while token < len(token_starts) and token_starts[token] < ends[i]:
            if ended and _holds_space_token(codes, last, token_starts[token]):
                count += 1
                ended = False
            if kinds[token] & SENTENCE_END:
                ended = True
            elif ended and not kinds[token] & PUNCTUATION:
                count += 1
                ended = False
            last = token_ends[token]
            token += 1
        counts[i] = count + (ended and _holds_space_token(codes, last, ends[i]))
    return counts


@kernel
def _holds_space_token(codes: NDArray[np.uint32], start: int, end: int) -> bool:
    """Whether the white space [start, end) after a token is more than one space."""
    return end > start and end > start + (codes[start] == _SPACE)


Split = Callable[[Sequence[str]], Batch]
"""The splitter that made the tokens of a batch."""


def count_in_lines(
    batch: Batch, lines: Lines, kept: NDArray[np.bool_], split: Split
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[lines] tokens, and sentences, of the `kept` lines without their citations."""
    table = lines.table
    has_citation = table["citations"] < table["citations_end"]
    cited_lines, plain = np.flatnonzero(kept & has_citation), np.flatnonzero(kept & ~has_citation)
    codes, offsets = _cut_citations(batch.codes, table, lines.citations, cited_lines)
    cited = split(decode_texts(codes, offsets))
    tokens, sentences = np.zeros((2, len(table)), dtype=np.int64)
    tokens[cited_lines] = np.diff(cited.tokens.offsets)
    sentences[cited_lines] = count_sentences_within(cited, cited.offsets[:-1], cited.offsets[1:])
    starts, ends = table["content"][plain], table["content_end"][plain]
    first, last = np.searchsorted(batch.tokens.starts, [starts, ends])
    tokens[plain] = last - first
    sentences[plain] = count_sentences_within(batch, starts, ends)
    return tokens, sentences


def _cut_citations(
    codes: NDArray[np.uint32],
    table: NDArray[np.void],
    citations: NDArray[np.int64],
    lines: NDArray[np.int64],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Code points of `lines` without their citations, end to end, and where each begins."""
    borders = np.zeros(len(codes) + 1, dtype=np.int8)
    borders[table["content"][lines]] += 1
    borders[table["content_end"][lines]] -= 1
    inside = np.cumsum(borders[:-1], dtype=np.int8).astype(np.bool_)
    for start, end in citations.tolist():
        inside[start:end] = False
    before = np.concatenate(([0], np.cumsum(inside)))
    sizes = before[table["content_end"][lines]] - before[table["content"][lines]]
    return codes[inside], np.concatenate(([0], np.cumsum(sizes)))


FINEWEB_VIEW = "c4@fineweb"
FINEWEB_SIGNALS = (*FILLED_LINE_SIGNALS, LINE_COUNTS[0])
"""What FineWeb's rules ask of a text."""

_C4 = "Raffel et al. 2020 (C4), in {}"
_C4_COLUMNS = (
    ("sentences", "int64", "sentences", "Sentences of the kept lines, each counted alone."),
    ("lorem_ipsum_lines", "int64", "lines", "Lines with 'lorem ipsum' before any with a brace."),
    ("curly_brace_lines", "int64", "lines", "Otherwise good lines with an opening curly brace."),
    ("kept_line_share", "float64", "share", "Lines that are kept."),
)

LINE_SIGNALS: tuple[Signal, ...] = (
    *(
        Signal(
            f"{variant.view}/{name}",
            type_,
            unit,
            _C4.format(variant.source),
            description,
            variant.view,
        )
        for variant in c4.C4_VARIANTS
        for name, type_, unit, description in _C4_COLUMNS
    ),
    *(
        replace(signal, name=f"{FINEWEB_VIEW}/{signal.name}", view=FINEWEB_VIEW)
        for signal in FINEWEB_SIGNALS
    ),
    Signal(
        f"{refinedweb.REFINEDWEB_VIEW}/removed_word_share",
        "float64",
        "share",
        refinedweb.REFINEDWEB_SOURCE,
        "Words that the line corrections take; 1 for a text without words.",
        refinedweb.REFINEDWEB_VIEW,
    ),
)
"""In the order of their views, for the columns of a run with all line rules."""


@dataclass(frozen=True, eq=False)
class LineView:
    """What a view cuts from each text of a batch, and signals of what is left, one value a text."""

    cuts: Cuts
    signals: dict[str, NDArray]


def make_line_views(batch: Batch, views: Sequence[str], split: Split) -> list[LineView]:
    """The views of a batch, in the order of `views`; each of them is a line rule of the config.

    `split` is the splitter that made the batch: lines that lose a citation are split again by it.
    """
    variants = [variant for variant in c4.C4_VARIANTS if variant.view in views]
    by_name = _make_c4_views(batch, variants, split) if variants else {}
    if refinedweb.REFINEDWEB_VIEW in views:
        by_name[refinedweb.REFINEDWEB_VIEW] = _make_refinedweb_view(batch)
    return [by_name[view] for view in views]


def _make_refinedweb_view(batch: Batch) -> LineView:
    view, marks = refinedweb.REFINEDWEB_VIEW, refinedweb.mark_refinedweb(batch)
    cuts = find_cuts(view, marks, batch.offsets, refinedweb.REFINEDWEB_LABELS)
    share = refinedweb.measure_removed_words(batch, marks)
    return LineView(cuts, {f"{view}/removed_word_share": share})


def _make_c4_views(batch: Batch, variants: Sequence[c4.C4], split: Split) -> dict[str, LineView]:
    lines = find_c4_lines(batch)
    verdicts = {variant.view: c4.judge_lines(lines, variant) for variant in variants}
    kept = np.logical_or.reduce([verdict == KEPT for verdict in verdicts.values()])
    tokens, sentences = count_in_lines(batch, lines, kept, split)
    return {
        view: _make_c4_view(batch, view, lines, verdicts[view], tokens, sentences)
        for view in verdicts
    }


def _make_c4_view(
    batch: Batch,
    view: str,
    lines: Lines,
    verdicts: NDArray[np.uint8],
    tokens: NDArray[np.int64],
    sentences: NDArray[np.int64],
) -> LineView:
    marks = c4.mark_lines(batch.codes, lines, verdicts)
    cuts = find_cuts(view, marks, batch.offsets, c4.C4_LABELS)
    kept, kept_sentences, lorem_ipsum, curly_brace = c4.count_lines(
        lines.offsets, verdicts, sentences
    )
    signals = {
        f"{view}/sentences": kept_sentences,
        f"{view}/lorem_ipsum_lines": lorem_ipsum,
        f"{view}/curly_brace_lines": curly_brace,
        f"{view}/kept_line_share": kept / np.maximum(np.diff(lines.offsets), 1),
    }
    if view == FINEWEB_VIEW:
        texts = decode_texts(*apply_marks(batch.codes, batch.offsets, marks))
        kept_tokens = np.diff(sum_before(tokens * (verdicts == KEPT), lines.offsets))
        columns = measure_lines(texts, kept_tokens)
        signals |= {f"{view}/{one.name}": columns[one.name] for one in FINEWEB_SIGNALS}
    return LineView(cuts, signals)
