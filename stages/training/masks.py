"""What of packed conversations a model learns to say: their pieces, and shares by speaker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from stages.training.token_marks import BEGINS, LEARNT, SPEAKERS, speakers_of
from stages.training.token_shards import TokenShards

FIRST_SEQUENCES = 64
"""Sequences of packed conversations that are read where no training step says which."""

TEXT = "text"
"""Whose tokens those are that no conversation holds: all of them are learnt."""


@dataclass(frozen=True)
class Piece:
    """A run of characters of one speaker (`stages.training.token_marks.SPEAKERS`)."""

    speaker: str
    learnt: bool
    text: str


@dataclass(frozen=True)
class MaskedConversation:
    """A conversation as it was packed."""

    conversation_id: str
    source: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class MaskedPair:
    """Two answers to one prompt, each after it; None where there is no such answer."""

    preference_id: str
    source: str
    chosen: tuple[Piece, ...] | None
    rejected: tuple[Piece, ...] | None

    @property
    def sides(self) -> tuple[tuple[Piece, ...] | None, tuple[Piece, ...] | None]:
        """Chosen, rejected."""
        return self.chosen, self.rejected

    @property
    def prompt(self) -> tuple[Piece, ...]:
        """The pieces that both begin with; of a single answer those before what is learnt."""
        if self.chosen is None or self.rejected is None:
            alone = self.chosen or self.rejected or ()
            return tuple(takewhile(lambda piece: not piece.learnt, alone))
        both = takewhile(
            lambda two: two[0] == two[1], zip(self.chosen, self.rejected, strict=False)
        )
        return tuple(one for one, _ in both)


@dataclass(frozen=True)
class Share:
    """Tokens of a speaker, and how many of them are learnt."""

    speaker: str
    tokens: int
    learnt: int


@dataclass(frozen=True)
class Masks:
    """Some conversations or pairs, and all tokens that were read, by speaker.

    `dropped` counts rows that are not learnt, by reason.
    """

    conversations: tuple[MaskedConversation, ...]
    shares: tuple[Share, ...]
    pairs: tuple[MaskedPair, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def first_masks(shards: TokenShards, tokenizer: Tokenizer, most: int) -> Masks:
    """Those of the first sequences of each source; at most `most` conversations have a text."""
    sources, sequences = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, name in enumerate(shards.sources):
        count = min(shards.sequences[name], -(-FIRST_SEQUENCES // len(shards.sources)))
        sources.append(np.full(count, number, dtype=np.int64))
        sequences.append(np.arange(count, dtype=np.int64))
    return masks_of(shards, np.concatenate(sources), np.concatenate(sequences), tokenizer, most)


def masks_of(
    shards: TokenShards,
    sources: NDArray[np.int64],
    sequences: NDArray[np.int64],
    tokenizer: Tokenizer,
    most: int,
) -> Masks:
    """Those of some sequences, by their source and number in it; what is text is learnt whole."""
    marked = np.array([shards.sources[one] in shards.marked_sources for one in sources.tolist()])
    text = shards.batch(sources[~marked], sequences[~marked]) if (~marked).any() else None
    counts = {}
    if text is not None:
        tokens = int((text.documents_BL >= 0).sum())
        counts[TEXT] = (tokens, tokens)
    conversations: list[MaskedConversation] = []
    pairs: list[MaskedPair] = []
    if marked.any():
        chosen = sources[marked], sequences[marked]
        ids_BL, marks_BL = shards.batch(*chosen).tokens_BL, shards.marks(*chosen)
        speakers_BL, learnt_BL = speakers_of(marks_BL), (marks_BL & LEARNT) > 0
        for number, speaker in enumerate(SPEAKERS):
            own_BL = (speakers_BL == number) & (marks_BL > 0)
            counts[speaker] = int(own_BL.sum()), int((own_BL & learnt_BL).sum())
        for row, pieces in enumerate(shards.documents_of(*chosen)):
            source = shards.sources[int(chosen[0][row])]
            for piece in pieces[: most - len(conversations) - len(pairs)]:
                place = slice(piece.start, piece.start + piece.length)
                parts = [
                    tuple(cut_pieces(tokenizer, *one))
                    for one in _cut_conversations(
                        marks_BL[row, place],
                        ids_BL[row, place],
                        speakers_BL[row, place],
                        learnt_BL[row, place],
                    )
                ]
                if source in shards.paired_sources:
                    pairs.append(MaskedPair(piece.doc_id, source, *parts))
                else:
                    conversations.append(MaskedConversation(piece.doc_id, source, *parts))
    shares = tuple(Share(name, *counted) for name, counted in counts.items() if counted[0])
    return Masks(tuple(conversations), shares, tuple(pairs))


def _cut_conversations(
    marks: NDArray[np.uint8], *arrays: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], ...]]:
    """The parts of the arrays that belong to each conversation of a document."""
    edges = [0, *np.flatnonzero(marks[1:] & BEGINS) + 1, len(marks)]
    for start, end in pairwise(edges):
        yield tuple(array[start:end] for array in arrays)


def cut_pieces(
    tokenizer: Tokenizer,
    ids: NDArray[np.integer],
    speakers: NDArray[np.int64],
    learnt: NDArray[np.bool_],
) -> Iterator[Piece]:
    """Runs of one speaker that are learnt or not as a whole."""
    changes = (np.diff(speakers) != 0) | (np.diff(learnt.astype(np.int8)) != 0)
    borders: Sequence[int] = [0, *(np.flatnonzero(changes) + 1).tolist(), len(ids)]
    for start, end in pairwise(borders):
        text = tokenizer.decode(ids[start:end].tolist(), skip_special_tokens=False)
        yield Piece(SPEAKERS[int(speakers[start])], bool(learnt[start]), text)
