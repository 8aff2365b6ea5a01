"""The chat format: what a conversation becomes, and what of it is trained.

The format is ChatML (`<|im_start|>role`, newline, content, `<|im_end|>`, newline) after the
tokenizer's token that begins a text, if it has one. It exists twice, as the Jinja template that a
release carries and as `render_segments`, which training uses; a test compares the two, character by
character and mask by mask.

Contents are stripped of outer white space (as Llama 3's and Gemma's templates do). So no token
crosses the border between the template's newline and the content, and what a model is trained on is
what it sees at inference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from artifacts_schema.errors import InputError
from stages.tokens.vocabulary import (
    BEGIN_OF_TEXT,
    TURN_END,
    TURN_START,
    SpecialTokens,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer


ROLES = ("system", "user", "assistant", "tool")

CHAT_TEMPLATE = (
    "{{- bos_token }}"
    "{%- if tools %}"
    "{{- '<|im_start|>system\\n' }}"
    "{%- if messages[0]['role'] == 'system' and messages[0]['content'] | trim %}"
    "{{- messages[0]['content'] | trim + '\\n\\n' }}"
    "{%- endif %}"
    "{{- '# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\n"
    "You are provided with function signatures within <tools></tools> XML tags:\\n<tools>' }}"
    "{%- for tool in tools %}"
    "{{- '\\n' + (tool | tojson) }}"
    "{%- endfor %}"
    "{{- '\\n</tools>\\n\\nFor each function call, return a json object with function name and "
    'arguments within <tool_call></tool_call> XML tags:\\n<tool_call>\\n{"name": '
    '<function-name>, "arguments": <args-json-object>}\\n</tool_call><|im_end|>\\n\' }}'
    "{%- endif %}"
    "{%- for message in messages %}"
    "{%- if not (tools and loop.first and message['role'] == 'system') %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}"
    "{%- if message['role'] == 'assistant' %}"
    "{%- generation %}"
    "{%- set text = message['content'] | trim if message['content'] else '' %}"
    "{%- set thought = message['reasoning_content'] or message['reasoning'] or '' %}"
    "{%- if thought | trim %}"
    "{%- set text = ('<think>\\n' + thought | trim + '\\n</think>\\n\\n' + text) | trim %}"
    "{%- endif %}"
    "{{- text }}"
    "{%- for call in message['tool_calls'] or [] %}"
    "{%- set call = call['function'] if call['function'] else call %}"
    "{{- '\\n' if text or not loop.first else '' }}"
    "{{- '<tool_call>\\n{\"name\": ' + (call['name'] | tojson) + ', \"arguments\": ' }}"
    "{{- call['arguments'] if call['arguments'] is string else call['arguments'] | tojson }}"
    "{{- '}\\n</tool_call>' }}"
    "{%- endfor %}"
    "{{- '<|im_end|>' }}"
    "{%- endgeneration %}"
    "{%- else %}"
    "{{- message['content'] | trim + '<|im_end|>' }}"
    "{%- endif %}"
    "{{- '\\n' }}"
    "{%- endif %}"
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


def find_chat_start(tokenizer: Tokenizer, special: SpecialTokens) -> str:
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


def render_segments(
    messages: Iterable[Mapping[str, Any]],
    add_generation_prompt: bool = False,
    begin: str = BEGIN_OF_TEXT,
    tools: str | None = None,
) -> list[Segment]:
    """The rendered conversation, cut where training starts and stops.

    `begin` is that of `find_chat_start`; `tools` is JSON text of a list of definitions. A message
    is one of the kind `conversations`, of which `role` and `content` must be there. Trained are
    what the assistant says (its tool calls included) and the `<|im_end|>` that closes it (a model
    that never learns it never stops), unless the message's weight is 0. The joined texts equal what
    `CHAT_TEMPLATE` renders; encode them with `encode_segments`.
    """
    parts = [Segment(begin, False)]
    messages = list(messages)
    if tools is not None:
        first = messages[0] if messages and messages[0]["role"] == "system" else None
        messages = messages[1:] if first else messages
        parts.append(Segment(f"{TURN_START}system\n", False))
        parts.append(
            Segment(_format_tools(format_message(first) if first else "", tools), False, True)
        )
        parts.append(Segment(f"{TURN_END}\n", False))
    for message in messages:
        trained = message["role"] == "assistant" and message.get("weight") != 0
        parts.append(Segment(f"{TURN_START}{message['role']}\n", False))
        parts.append(Segment(format_message(message), trained, content=True))
        parts.append(Segment(TURN_END, trained))
        parts.append(Segment("\n", False))
    if add_generation_prompt:
        parts.append(Segment(f"{TURN_START}assistant\n", False))
    return _merge_segments(parts)


def format_message(message: Mapping[str, Any]) -> str:
    """A message's reasoning, its content without outer white space, then its tool calls.

    As Qwen's models write them. Reasoning stands between the lines `<think>` and `</think>`, as in
    a content that holds it already. Tool calls are one block each: the line `<tool_call>`, a JSON
    object with `name` and `arguments` (their JSON text as it is), the line `</tool_call>` (Qwen2.5,
    Hermes).
    """
    text = message["content"].strip()
    thought = (message.get("reasoning") or "").strip()
    if thought and message["role"] == "assistant":
        text = f"<think>\n{thought}\n</think>\n\n{text}".strip()
    parts = [text]
    for call in message.get("tool_calls") or ():
        name = json.dumps(call["name"], ensure_ascii=False)
        parts.append(
            f'<tool_call>\n{{"name": {name}, "arguments": {call["arguments"]}}}\n</tool_call>'
        )
    return "\n".join(part for part in parts if part)


def count_unused_fields(
    messages: Iterable[Mapping[str, Any]], learnt: bool = True, weighted: bool = False
) -> Counter[str]:
    """How many messages have what neither the rendered text nor the training holds, by what it is.

    Of weights, `render_segments` uses 0 and 1 of the assistant's messages, and 0 of others; of
    messages that are not `learnt` (a prompt), 0 alone. `weighted` training uses all of the
    assistant's.
    """
    counts = Counter[str]()
    for message in messages:
        own = learnt and message["role"] == "assistant"
        calls = message.get("tool_calls") or ()
        ids = [message.get("tool_call_id"), *(call["id"] for call in calls)]
        weight = message.get("weight")
        counts["messages_with_reasoning_unused"] += (
            message.get("reasoning") is not None and message["role"] != "assistant"
        )
        counts["messages_with_name_unused"] += message.get("name") is not None
        counts["messages_with_tool_call_id_unused"] += any(one is not None for one in ids)
        is_used = weight is None or weight == 0 or (own and (weighted or weight == 1))
        counts["messages_with_weight_unused"] += not is_used
    return +counts


def _format_tools(system: str, tools: str) -> str:
    """The system prompt that tells of tools, as Qwen2.5's template words it."""
    definitions = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in json.loads(tools))
    before = f"{system}\n\n" if system else ""
    return (
        f"{before}# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        f"{definitions}\n</tools>\n\nFor each function call, return a json object with function "
        "name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def encode_segments(tokenizer: Tokenizer, parts: Iterable[Segment]) -> tuple[list[int], list[bool]]:
    """Token ids of `parts` and, for each id, whether it is trained.

    Segment by segment, so that no token belongs to two of them. Content is encoded after the
    newline that precedes it and the newline's own ids are taken away: a tokenizer that puts a space
    before every text (SentencePiece's dummy prefix) puts none there, as it would in one pass.
    """
    ids: list[int] = []
    trained: list[bool] = []
    for part, encoding, skip in _encodings(tokenizer, parts):
        piece = encoding.ids[skip:]
        ids += piece
        trained += [part.trained] * len(piece)
    return ids, trained


class LocatedTokens(NamedTuple):
    """Tokens of a rendered conversation, [tokens] each: ids, and the characters that they cover.

    `starts` and `stops` count from the begin of the whole text.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


def locate_tokens(
    tokenizer: Tokenizer, parts: Iterable[Segment], known: dict[str, Encoding] | None = None
) -> LocatedTokens:
    """The tokens of `encode_segments`, each with its place.

    `known` keeps what texts of the template are encoded to, from one conversation to the next.
    """
    import numpy as np

    ids: list[int] = []
    stops: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
    starts: list[NDArray[np.int64]] = []
    position = 0
    for part, encoding, skip in _encodings(tokenizer, parts, known):
        ids += encoding.ids[skip:]
        offsets = np.array(encoding.offsets[skip:], dtype=np.int64).reshape(-1, 2)
        offsets += position - (1 if skip else 0)
        starts.append(np.maximum(offsets[:, 0], position))
        stops.append(offsets[:, 1])
        position += len(part.text)
    ends = np.concatenate(stops)
    # Byte-level tokenizers leave white space out of a token's offsets: it begins where the last
    # one ended.
    begins = np.minimum(np.concatenate([*starts, ends[:0]]), ends[:-1])
    return LocatedTokens(np.array(ids, dtype=np.int64), begins, ends[1:])


def _encodings(
    tokenizer: Tokenizer, parts: Iterable[Segment], known: dict[str, Encoding] | None = None
) -> Iterator[tuple[Segment, Encoding, int]]:
    """Each part with its encoding, and how many tokens of that are of a newline put before it."""
    before, known = tokenizer.encode_special_tokens, {} if known is None else known
    try:
        tokenizer.encode_special_tokens = True
        newline = _encode(tokenizer, "\n").ids
        for part in parts:
            tokenizer.encode_special_tokens = part.content
            if not part.content:
                if part.text not in known:
                    known[part.text] = _encode(tokenizer, part.text)
                yield part, known[part.text], 0
                continue
            whole = _encode(tokenizer, f"\n{part.text}")
            if whole.ids[: len(newline)] == newline:
                yield part, whole, len(newline)
            else:
                yield part, _encode(tokenizer, part.text), 0
    finally:
        tokenizer.encode_special_tokens = before


def _encode(tokenizer: Tokenizer, text: str) -> Encoding:
    return tokenizer.encode(text, add_special_tokens=False)


def _merge_segments(parts: list[Segment]) -> list[Segment]:
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
