"""The tokens of an edited text, carried over from its lines instead of found anew.

What a splitter makes of a run of characters without white space depends on that run alone, so a
line that only lost its neighbours keeps its tokens. Only lines from within which something was cut
are split again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.signals.line_rules.c4_lines import Lines
from stages.signals.line_rules.marks import KEPT, texts_of
from stages.signals.line_rules.sentences import sentence_counts
from stages.text.batch import Batch, Tokens
from stages.text.native import compiled

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
    codes, offsets = _without_citations(batch.codes, table, lines.citations, cited_lines)
    cited = split(texts_of(codes, offsets))
    cited_of = np.full(len(table), -1, dtype=np.int64)
    cited_of[cited_lines] = np.arange(len(cited_lines))
    sentences = np.zeros(len(table), dtype=np.int64)
    sentences[cited_lines] = sentence_counts(cited, cited.offsets[:-1], cited.offsets[1:])
    contents = table["content"][plain], table["content_end"][plain]
    sentences[plain] = sentence_counts(batch, *contents)
    return SplitLines(cited, cited_of, sentences)


@compiled
def _without_citations(
    codes: NDArray[np.uint32],
    table: NDArray[np.void],
    citations: NDArray[np.int64],
    which: NDArray[np.int64],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Code points of the lines `which`, end to end, and where each begins."""
    offsets = np.zeros(len(which) + 1, dtype=np.int64)
    for i in range(len(which)):
        line = table[which[i]]
        offsets[i + 1] = offsets[i] + line.content_end - line.content
        for citation in range(line.citations, line.citations_end):
            offsets[i + 1] -= citations[citation, 1] - citations[citation, 0]
    left = np.empty(offsets[-1], dtype=np.uint32)
    end = 0
    for i in range(len(which)):
        line = table[which[i]]
        start = line.content
        for citation in range(line.citations, line.citations_end):
            for k in range(start, citations[citation, 0]):
                left[end] = codes[k]
                end += 1
            start = citations[citation, 1]
        for k in range(start, line.content_end):
            left[end] = codes[k]
            end += 1
    return left, offsets


def edited_batch(
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
    _carry(
        offsets, lines.table, lines.offsets, verdicts, split.cited_of,
        tokens.starts, split.cited.offsets, cited.offsets, cited.starts,
        token_offsets, sources, starts,
    )  # fmt: skip
    sources, starts = sources[: token_offsets[-1]], starts[: token_offsets[-1]]
    found = Tokens(
        token_offsets,
        starts,
        starts + np.concatenate((tokens.lengths, cited.lengths))[sources],
        np.concatenate((tokens.kinds, cited.kinds))[sources],
        np.concatenate((tokens.hashes, cited.hashes))[sources],
        np.concatenate((tokens.powers, cited.powers))[sources],
    )
    return Batch(texts, codes, offsets, found)


@compiled
def _carry(
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
