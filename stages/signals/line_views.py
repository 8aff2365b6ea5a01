"""Line rules as views of a batch of texts: what each cuts, what is left, and signals on that.

FineWeb's rules (Penedo et al. 2024, section 3.5) are measured on what C4 without its rule on ends
left, as datatrove's `examples/fineweb.py` runs them: its C4 filter rewrites the text first.

The tokens of an edited text are carried over from its lines instead of split again. What a splitter
makes of a run of characters without white space depends on that run alone, so a line that only lost
its neighbours keeps its tokens; only lines from within which something was cut are split again.

Sentences are counted as spaCy's sentencizer splits them. A sentence ends after a mark (a token of
the kind SENTENCE_END) and the punctuation that follows, as soon as another token comes. spaCy's
tokens of white space are such tokens: all of a run of white space but one space after a word. So
white space after a last mark is a sentence too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.signals import c4, refinedweb
from stages.signals.c4 import Lines, find_c4_lines
from stages.signals.outputs import KEPT, Cuts, Marks, Signal, apply_marks, decode_texts, find_cuts
from stages.signals.quality import FILLED_LINE_SIGNALS, measure_lines
from stages.text.batch import PUNCTUATION, SENTENCE_END, Batch, Tokens

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
        count, ended, behind = int(starts[i] < ends[i]), False, starts[i]
        while token < len(token_starts) and token_starts[token] < ends[i]:
            if ended and _holds_space_token(codes, behind, token_starts[token]):
                count += 1
                ended = False
            if kinds[token] & SENTENCE_END:
                ended = True
            elif ended and not kinds[token] & PUNCTUATION:
                count += 1
                ended = False
            behind = token_ends[token]
            token += 1
        counts[i] = count + (ended and _holds_space_token(codes, behind, ends[i]))
    return counts


@kernel
def _holds_space_token(codes: NDArray[np.uint32], start: int, end: int) -> bool:
    """Whether the white space [start, end) after a token is more than one space."""
    return end > start and end > start + (codes[start] == _SPACE)


Split = Callable[[Sequence[str]], Batch]
"""The splitter that made the tokens of a batch."""


@dataclass(frozen=True, eq=False)
class SplitLines:
    """The lines that some variant keeps. Those with citations are texts of `cited`, without them.

    cited_of [lines]: which of those texts a line is, -1 if none. sentences [lines]: its sentences.
    """

    cited: Batch
    cited_of: NDArray[np.int64]
    sentences: NDArray[np.int64]


def split_lines(batch: Batch, lines: Lines, kept: NDArray[np.bool_], split: Split) -> SplitLines:
    """Tokens and sentences of the `kept` lines of a batch."""
    table = lines.table
    has_citation = table["citations"] < table["citations_end"]
    cited_lines, plain = np.flatnonzero(kept & has_citation), np.flatnonzero(kept & ~has_citation)
    codes, offsets = _cut_citations(batch.codes, table, lines.citations, cited_lines)
    cited = split(decode_texts(codes, offsets))
    cited_of = np.full(len(table), -1, dtype=np.int64)
    cited_of[cited_lines] = np.arange(len(cited_lines))
    sentences = np.zeros(len(table), dtype=np.int64)
    sentences[cited_lines] = count_sentences_within(cited, cited.offsets[:-1], cited.offsets[1:])
    contents = table["content"][plain], table["content_end"][plain]
    sentences[plain] = count_sentences_within(batch, *contents)
    return SplitLines(cited, cited_of, sentences)


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


def make_edited_batch(
    batch: Batch,
    lines: Lines,
    verdicts: NDArray[np.uint8],
    split: SplitLines,
    edited: tuple[Sequence[str], NDArray[np.uint32], NDArray[np.int64]],
) -> Batch:
    """The batch of the texts, code points and offsets that a variant's edits leave."""
    texts, codes, offsets = edited
    tokens, cited = batch.tokens, split.cited.tokens
    shape = len(tokens.starts) + len(cited.starts)
    token_offsets = np.zeros_like(offsets)
    sources, starts = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    _carry_tokens(
        offsets, lines.table, lines.offsets, verdicts, split.cited_of,
        tokens.starts, split.cited.offsets, cited.offsets, cited.starts,
        token_offsets, sources, starts,
    )  # fmt: skip
    sources, starts = sources[: token_offsets[-1]], starts[: token_offsets[-1]]
    edited_tokens = Tokens(
        token_offsets,
        starts,
        starts + np.concatenate((tokens.lengths, cited.lengths))[sources],
        np.concatenate((tokens.kinds, cited.kinds))[sources],
        np.concatenate((tokens.hashes, cited.hashes))[sources],
        np.concatenate((tokens.powers, cited.powers))[sources],
    )
    return Batch(texts, codes, offsets, edited_tokens)


@kernel
def _carry_tokens(
    offsets: NDArray[np.int64],
    table: NDArray[np.void],
    line_offsets: NDArray[np.int64],
    verdicts: NDArray[np.uint8],
    cited_of: NDArray[np.int64],
    starts: NDArray[np.int64],
    cited_texts: NDArray[np.int64],
    cited_tokens: NDArray[np.int64],
    cited_starts: NDArray[np.int64],
    token_offsets: NDArray[np.int64],
    sources: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """For each token of the edited texts its number (those of cited lines last) and its place.

    White space in front of a text is not there any more: the first token begins it.
    """
    token, count = 0, 0
    for text in range(len(offsets) - 1):
        place, is_first = offsets[text], True
        for i in range(line_offsets[text], line_offsets[text + 1]):
            line = table[i]
            if verdicts[i] != KEPT or (is_first and line.first == line.last):
                continue
            cited = cited_of[i]
            if cited < 0:
                while token < len(starts) and starts[token] < line.content:
                    token += 1
                while token < len(starts) and starts[token] < line.content_end:
                    sources[count] = token
                    places[count] = place + starts[token] - line.content
                    token, count = token + 1, count + 1
                place += line.content_end - line.content + 1
            else:
                begin = cited_texts[cited]
                if is_first:
                    begin = cited_starts[cited_tokens[cited]]
                for k in range(cited_tokens[cited], cited_tokens[cited + 1]):
                    sources[count] = len(starts) + k
                    places[count] = place + cited_starts[k] - begin
                    count += 1
                place += cited_texts[cited + 1] - begin + 1
            is_first = False
        token_offsets[text + 1] = count


FINEWEB_VIEW = "c4@fineweb"


def measure_fineweb(batch: Batch) -> dict[str, NDArray]:
    """What FineWeb's rules ask about each text; shares of nothing are 0."""
    columns = measure_lines(batch)
    return {
        **{signal.name: columns[signal.name] for signal in FILLED_LINE_SIGNALS},
        "filled_lines": columns["filled_lines"],
    }


_C4 = "Raffel et al. 2020 (C4), in {}"
_FINEWEB = "Penedo et al. 2024 (FineWeb), as datatrove computes it"

_OF_C4 = (
    ("sentences", "int64", "sentences", "Sentences of the kept lines, each counted alone."),
    ("lorem_ipsum_lines", "int64", "lines", "Lines with 'lorem ipsum' before any with a brace."),
    ("curly_brace_lines", "int64", "lines", "Otherwise good lines with an opening curly brace."),
    ("kept_line_share", "float64", "share", "Lines that are kept."),
)
_OF_FINEWEB = (
    (
        "terminal_punctuation_line_share",
        "float64",
        "share",
        "Filled lines whose last character ends a sentence.",
    ),
    ("short_line_share", "float64", "share", "Filled lines of at most 30 characters."),
    (
        "duplicate_filled_line_character_share",
        "float64",
        "share",
        "Characters in filled lines that repeat an earlier one, over characters but line feeds.",
    ),
    ("newline_to_word_ratio", "float64", "share", "Line feeds over tokens."),
    ("filled_lines", "int64", "lines", "Lines that are not blank."),
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
        for name, type_, unit, description in _OF_C4
    ),
    *(
        Signal(f"{FINEWEB_VIEW}/{name}", type_, unit, _FINEWEB, description, FINEWEB_VIEW)
        for name, type_, unit, description in _OF_FINEWEB
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
"""In the order of their views, for the columns of a run with all of `LINE_VIEWS`."""


Columns = dict[str, NDArray]

LINE_VIEWS = (*(variant.view for variant in c4.C4_VARIANTS), refinedweb.REFINEDWEB_VIEW)
"""Views of line rules, in alphabetical order."""


@dataclass(frozen=True, eq=False)
class EditedView:
    """What a view cuts from each text of a batch, and signals of what is left, one value a text.

    marks [characters]: the label of each, as in `cuts`. left: the batch of the edited texts, where
    signals ask for its tokens.
    """

    batch: Batch
    marks: Marks
    cuts: Cuts
    signals: Columns
    left: Batch | None = None

    @cached_property
    def edited(self) -> Sequence[str]:
        """The edited texts; made when asked for."""
        if self.left is not None:
            return self.left.texts
        if not len(self.cuts.starts):
            return self.batch.texts
        return decode_texts(*apply_marks(self.batch.codes, self.batch.offsets, self.marks))


def make_line_views(batch: Batch, views: Sequence[str], split: Split) -> list[EditedView]:
    """The views of a batch, in the order of `views`; each of them is one of `LINE_VIEWS`.

    `split` is the splitter that made the batch: lines that lose a citation are split again by it.
    """
    variants = [variant for variant in c4.C4_VARIANTS if variant.view in views]
    made = _make_c4_views(batch, variants, split) if variants else {}
    if refinedweb.REFINEDWEB_VIEW in views:
        made[refinedweb.REFINEDWEB_VIEW] = _make_refinedweb_view(batch)
    return [made[view] for view in views]


def _make_refinedweb_view(batch: Batch) -> EditedView:
    marks = refinedweb.mark_refinedweb(batch)
    cuts = find_cuts(refinedweb.REFINEDWEB_VIEW, marks, batch.offsets, refinedweb.REFINEDWEB_LABELS)
    share = refinedweb.measure_removed_words(batch, marks)
    return EditedView(
        batch, marks, cuts, {f"{refinedweb.REFINEDWEB_VIEW}/removed_word_share": share}
    )


def _make_c4_views(batch: Batch, variants: Sequence[c4.C4], split: Split) -> dict[str, EditedView]:
    lines = find_c4_lines(batch)
    verdicts = {variant.view: c4.judge_lines(lines, variant) for variant in variants}
    kept = np.logical_or.reduce([verdict == KEPT for verdict in verdicts.values()])
    parts = split_lines(batch, lines, kept, split)
    return {view: _make_c4_view(batch, view, lines, verdicts[view], parts) for view in verdicts}


def _make_c4_view(
    batch: Batch, view: str, lines: Lines, verdicts: NDArray[np.uint8], parts: SplitLines
) -> EditedView:
    marks = c4.mark_lines(batch.codes, lines, verdicts)
    cuts = find_cuts(view, marks, batch.offsets, c4.C4_LABELS)
    kept, sentences, lorem_ipsum, curly_brace = c4.count_lines(
        lines.offsets, verdicts, parts.sentences
    )
    signals: Columns = {
        f"{view}/sentences": sentences,
        f"{view}/lorem_ipsum_lines": lorem_ipsum,
        f"{view}/curly_brace_lines": curly_brace,
        f"{view}/kept_line_share": kept / np.maximum(np.diff(lines.offsets), 1),
    }
    if view != FINEWEB_VIEW:
        return EditedView(batch, marks, cuts, signals)
    codes, offsets = apply_marks(batch.codes, batch.offsets, marks)
    texts = decode_texts(codes, offsets)
    left = make_edited_batch(batch, lines, verdicts, parts, (texts, codes, offsets))
    signals |= {f"{view}/{name}": values for name, values in measure_fineweb(left).items()}
    return EditedView(batch, marks, cuts, signals, left)
