"""What of packed conversations a model learns to say: their pieces, and shares by speaker.

Of a training step the sample clock of its run says which sequences it read; of packed conversations
by themselves, the first sequences are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_inputs
from flows.analysis.training_batches import open_run_data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from stages.training.token_shards import TokenShards

FIRST_SEQUENCES = 64
"""Sequences of packed conversations that are read where no training step is named."""

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
class Share:
    """Tokens of a speaker, and how many of them are learnt."""

    speaker: str
    tokens: int
    learnt: int


@dataclass(frozen=True)
class Masks:
    """Some conversations, and all tokens that were read, by speaker."""

    conversations: tuple[MaskedConversation, ...]
    shares: tuple[Share, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def read_masks(store: Store, manifest: Manifest, training_step: int | None, most: int) -> Masks:
    """Those of a training step of a pretraining run, or of what `pack_chat` made.

    At most `most` conversations come with their text. UsageError for an artifact that is neither,
    for a run without a training step, and for a step that the run does not have.
    """
    if manifest.stage == "pack_chat":
        if training_step is not None:
            raise UsageError(
                "packed conversations have no training steps",
                where="--training-step",
                hint="name the run that reads them, or leave it out",
            )
        return _of_packed(store, manifest, most)
    if training_step is None:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} is no artifact of pack_chat, so a training "
            "step must be named",
            where="--training-step",
        )
    data = open_run_data(store, manifest, where="REF")
    where = f"--training-step {training_step}"
    if training_step > data.clock.steps:
        raise UsageError(f"the run has {data.clock.steps} training steps", where=where)
    if data.clock.skipped(training_step):
        raise UsageError("the run skips this training step: it read nothing", where=where)
    draw = data.clock.batch(training_step)
    tokenizer = _tokenizer(store, manifest)
    return _read(data.shards, draw.sources, draw.sequences, tokenizer, most)


def _of_packed(store: Store, manifest: Manifest, most: int) -> Masks:
    import numpy as np

    from stages.engine.inputs import Input
    from stages.training.token_shards import TokenShards

    shards = TokenShards([Input.from_manifest(store, manifest, "train")])
    sources, sequences = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, name in enumerate(shards.sources):
        count = min(shards.sequences[name], -(-FIRST_SEQUENCES // len(shards.sources)))
        sources.append(np.full(count, number, dtype=np.int64))
        sequences.append(np.arange(count, dtype=np.int64))
    tokenizer = _tokenizer(store, manifest)
    return _read(shards, np.concatenate(sources), np.concatenate(sequences), tokenizer, most)


def _tokenizer(store: Store, manifest: Manifest) -> Tokenizer:
    from stages.tokens.vocabulary import load_plain_tokenizer

    inputs = load_inputs(store, {"tokenizer": manifest.inputs["tokenizer"]})
    return load_plain_tokenizer(inputs["tokenizer"][0].read_bytes("tokenizer.json").decode())


def _read(
    shards: TokenShards,
    sources: NDArray[np.int64],
    sequences: NDArray[np.int64],
    tokenizer: Tokenizer,
    most: int,
) -> Masks:
    import numpy as np

    from stages.training.token_marks import LEARNT, SPEAKERS, speakers_of

    marked = np.array([shards.sources[one] in shards.marked_sources for one in sources.tolist()])
    text = shards.batch(sources[~marked], sequences[~marked]) if (~marked).any() else None
    counts = {}
    if text is not None:
        tokens = int((text.documents_BL >= 0).sum())
        counts[TEXT] = (tokens, tokens)
    conversations: list[MaskedConversation] = []
    if marked.any():
        chosen = sources[marked], sequences[marked]
        ids_BL, marks_BL = shards.batch(*chosen).tokens_BL, shards.marks(*chosen)
        speakers_BL, learnt_BL = speakers_of(marks_BL), (marks_BL & LEARNT) > 0
        for number, speaker in enumerate(SPEAKERS):
            own_BL = (speakers_BL == number) & (marks_BL > 0)
            counts[speaker] = int(own_BL.sum()), int((own_BL & learnt_BL).sum())
        for row, pieces in enumerate(shards.documents_of(*chosen)):
            for piece in pieces[: most - len(conversations)]:
                place = slice(piece.start, piece.start + piece.length)
                parts = _pieces(
                    tokenizer, ids_BL[row, place], speakers_BL[row, place], learnt_BL[row, place]
                )
                source = shards.sources[int(chosen[0][row])]
                conversations.append(MaskedConversation(piece.doc_id, source, tuple(parts)))
    shares = tuple(Share(name, *counted) for name, counted in counts.items() if counted[0])
    return Masks(tuple(conversations), shares)


def _pieces(
    tokenizer: Tokenizer,
    ids: NDArray[np.integer],
    speakers: NDArray[np.int64],
    learnt: NDArray[np.bool_],
) -> Iterator[Piece]:
    """Runs of one speaker that are learnt or not as a whole."""
    import numpy as np

    from stages.training.token_marks import SPEAKERS

    changes = (np.diff(speakers) != 0) | (np.diff(learnt.astype(np.int8)) != 0)
    borders: Sequence[int] = [0, *(np.flatnonzero(changes) + 1).tolist(), len(ids)]
    for start, end in pairwise(borders):
        text = tokenizer.decode(ids[start:end].tolist(), skip_special_tokens=False)
        yield Piece(SPEAKERS[int(speakers[start])], bool(learnt[start]), text)
