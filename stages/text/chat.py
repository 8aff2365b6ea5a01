"""Special tokens and the chat format: what a conversation becomes, and what of it is learnt.

The format is ChatML (`<|im_start|>role`, newline, content, `<|im_end|>`, newline) after the
tokenizer's token that begins a text, if it has one. It exists twice, as the Jinja template that a
release carries and as `segments`, which training uses; a test holds the two together, character by
character and mask by mask.

Contents are stripped of outer white space (as Llama 3's and Gemma's templates do). So no token
spans the border between the template's newline and the content, and what a model is trained on is
what it sees when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifacts_schema.errors import InputError
from stages.text.special_tokens import (
    BEGIN_OF_TEXT,
    END_OF_TEXT,
    PADDING,
    SPECIAL_TOKENS,
    TURN_END,
    TURN_START,
    SpecialTokens,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "BEGIN_OF_TEXT",
    "CHAT_TEMPLATE",
    "END_OF_TEXT",
    "PADDING",
    "ROLES",
    "SPECIAL_TOKENS",
    "TURN_END",
    "TURN_START",
    "Segment",
    "begin_of_chat",
    "encode",
    "segments",
]

ROLES = ("system", "user", "assistant", "tool")

CHAT_TEMPLATE = (
    "{{- bos_token }}"
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}"
    "{%- if message['role'] == 'assistant' %}"
    "{%- generation %}{{- message['content'] | trim + '<|im_end|>' }}{%- endgeneration %}"
    "{%- else %}"
    "{{- message['content'] | trim + '<|im_end|>' }}"
    "{%- endif %}"
    "{{- '\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}"
    "{%- endif %}"
)
"""Jinja, as `transformers` renders it; `{% generation %}` marks what an assistant mask covers."""


@dataclass(frozen=True)
class Segment:
    """A run of characters that is learnt as a whole, or not at all.

    `content` is what somebody wrote, in which a special token's spelling is plain text: nobody can
    end a turn, or speak as another role, by writing `<|im_end|>`.
    """

    text: str
    trained: bool
    content: bool = False


def begin_of_chat(tokenizer: Tokenizer, special: SpecialTokens) -> str:
    """What a conversation begins with: the spelling of `special.begin`, or nothing.

    InputError if the tokenizer has no tokens for turns.
    """
    for name, index in ((TURN_START, special.turn_start), (TURN_END, special.turn_end)):
        if index is None:
            raise InputError(
                f"the tokenizer has no special token '{name}', and a conversation needs it",
                where="tokenizer.json",
                hint="import it with `add_missing: true`",
            )
    return "" if special.begin is None else str(tokenizer.id_to_token(special.begin))


def segments(
    messages: Iterable[Mapping[str, str]],
    add_generation_prompt: bool = False,
    begin: str = BEGIN_OF_TEXT,
) -> list[Segment]:
    """The rendered conversation, cut where training starts and stops.

    `begin` is `begin_of_chat`'s. Each message has `role` and `content`. Trained are the assistant's
    content and the `<|im_end|>` that closes it (a model that never learns it never stops). The
    joined texts equal what `CHAT_TEMPLATE` renders; encode them with `encode`.
    """
    parts = [Segment(begin, False)]
    for message in messages:
        trained = message["role"] == "assistant"
        parts.append(Segment(f"{TURN_START}{message['role']}\n", False))
        parts.append(Segment(message["content"].strip(), trained, content=True))
        parts.append(Segment(TURN_END, trained))
        parts.append(Segment("\n", False))
    if add_generation_prompt:
        parts.append(Segment(f"{TURN_START}assistant\n", False))
    return _merged(parts)


def encode(tokenizer: Tokenizer, parts: Iterable[Segment]) -> tuple[list[int], list[bool]]:
    """Token ids of `parts` and, for each id, whether it is trained.

    Segment by segment, so that no token belongs to two of them. Content is encoded after the
    newline that precedes it and the newline's own ids are taken away: a tokenizer that puts a space
    before every text (SentencePiece's dummy prefix) puts none there, as it would in one pass.
    """
    ids: list[int] = []
    trained: list[bool] = []
    before = tokenizer.encode_special_tokens
    try:
        for part in parts:
            tokenizer.encode_special_tokens = part.content
            piece = _content(tokenizer, part.text) if part.content else _ids(tokenizer, part.text)
            ids += piece
            trained += [part.trained] * len(piece)
    finally:
        tokenizer.encode_special_tokens = before
    return ids, trained


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def _content(tokenizer: Tokenizer, text: str) -> list[int]:
    newline, whole = _ids(tokenizer, "\n"), _ids(tokenizer, f"\n{text}")
    if whole[: len(newline)] == newline:
        return whole[len(newline) :]
    return _ids(tokenizer, text)


def _merged(parts: list[Segment]) -> list[Segment]:
    """Neighbours of one sort joined, empty ones left out."""
    merged: list[Segment] = []
    for part in parts:
        if not part.text:
            continue
        last = merged[-1] if merged else None
        if last and (last.trained, last.content) == (part.trained, part.content):
            merged[-1] = Segment(last.text + part.text, part.trained, part.content)
        else:
            merged.append(part)
    return merged
