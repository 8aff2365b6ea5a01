"""From text to token requests, by the conventions of EleutherAI/lm-evaluation-harness.

A prompt and its continuation are encoded as one text, and the continuation is what follows the
tokens of the prompt alone; white space at the end of a prompt goes to the continuation first, since
byte-level tokenizers bind a space to the word after it (lm_eval/api/model.py, `_encode_pair`).
Every request begins with a token that begins a text (`SpecialTokens.context`, as lm-eval's prefix
token), so that the first word is predicted too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Request:
    """Score `continuation` after `context`; neither is empty."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of `text` alone; what looks like a special token in it is read as ordinary characters."""
    before = tokenizer.encode_special_tokens
    tokenizer.encode_special_tokens = True
    try:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)
    finally:
        tokenizer.encode_special_tokens = before


def continuation_request(
    tokenizer: Tokenizer, prompt: str, continuation: str, *, prefix: int
) -> Request:
    """The request that scores `continuation` after token `prefix` and `prompt`, which may be empty.

    Where a token spans the border ("ab" + "c" = "abc"), the two are encoded apart: lm-eval
    would score only what is left after that token, perhaps nothing, and nothing wins.
    """
    bare = prompt.rstrip()
    continuation = prompt[len(bare) :] + continuation
    context = encode_text(tokenizer, bare)
    whole = encode_text(tokenizer, bare + continuation)
    if whole[: len(context)] == context:
        rest = whole[len(context) :]
    else:
        rest = encode_text(tokenizer, continuation)
    return Request((prefix, *context), tuple(rest))


def text_requests(tokenizer: Tokenizer, text: str, context: int, *, prefix: int) -> list[Request]:
    """Requests that together score every token of `text` once, each within `context` tokens.

    The first follows token `prefix`.
    """
    return rolling_requests([prefix, *encode_text(tokenizer, text)], context)


def rolling_requests(ids: list[int], context: int) -> list[Request]:
    """Windows that score ids[1:] once each, the last one with as much context as fits.

    lm_eval/utils.py, `get_rolling_token_windows` with a context length of one.
    """
    requests = []
    scored = 1
    while scored < len(ids):
        end = min(scored + context, len(ids))
        seen = ids[max(0, end - context - 1) : scored]
        requests.append(Request(tuple(seen), tuple(ids[scored:end])))
        scored = end
    return requests
