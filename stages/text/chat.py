"""Special tokens and the chat format: what a conversation becomes, and what of it is learnt.

The format is ChatML (`<|im_start|>role`, newline, content, `<|im_end|>`, newline) after one
`<|begin_of_text|>`. It exists twice, as the Jinja template that a release carries and as
`segments`, which training uses; a test holds the two together, character by character and mask by
mask.

Contents are stripped of outer white space (as Llama 3's and Gemma's templates do). So no token
spans the border between the template's newline and the content, and what a model is trained on is
what it sees when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BEGIN_OF_TEXT = "<|begin_of_text|>"
END_OF_TEXT = "<|end_of_text|>"
PADDING = "<|pad|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"

SPECIAL_TOKENS = (BEGIN_OF_TEXT, END_OF_TEXT, PADDING, TURN_START, TURN_END)
"""Every tokenizer that Ingot trains has these, with ids 0 to 4 in this order."""

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


def segments(
    messages: Iterable[Mapping[str, str]], add_generation_prompt: bool = False
) -> list[Segment]:
    """The rendered conversation, cut where training starts and stops.

    Each message has `role` and `content`. Trained are the assistant's content and the `<|im_end|>`
    that closes it (a model that never learns it never stops). The joined texts equal what
    `CHAT_TEMPLATE` renders; encode them with `encode`, or each with `add_special_tokens=False`.
    """
    parts = [Segment(BEGIN_OF_TEXT, False)]
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

    Segment by segment, so that no token belongs to two of them.
    """
    ids: list[int] = []
    trained: list[bool] = []
    before = tokenizer.encode_special_tokens
    try:
        for part in parts:
            tokenizer.encode_special_tokens = part.content
            piece = tokenizer.encode(part.text, add_special_tokens=False).ids
            ids += piece
            trained += [part.trained] * len(piece)
    finally:
        tokenizer.encode_special_tokens = before
    return ids, trained


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
