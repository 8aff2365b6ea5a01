"""A conversation as rows of tokens: how it is written, what is learnt of it, who speaks.

Two formats write it: ChatML by our own renderer, and any Jinja template by `transformers` in
isolation. ChatML gives one row a conversation. So does a template by which the text up to each
answer is how the whole conversation begins. By another (Qwen 3's drops earlier reasoning) each
learnt answer is a row of its own, with the context that inference would show.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from artifacts_schema.errors import InputError
from stages.tokens.chat import (
    CHAT_TEMPLATE,
    LocatedTokens,
    Segment,
    find_chat_start,
    format_message,
    locate_tokens,
    render_segments,
)
from stages.tokens.chat_template import render_conversations
from stages.tokens.isolated import MARK
from stages.tokens.vocabulary import SpecialTokens
from stages.training.config import LearntTurns
from stages.training.token_marks import SPEAKERS, make_marks

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Span = tuple[int, int]
"""First character, and the one after the last."""

AT_ONCE = 4000
"""Conversations that one isolated process renders: its start costs a second or two."""

PROTECTED = "\ufdd0"
"""A character that no text may hold. Inside what spells a special token, it keeps it a text."""


@dataclass(frozen=True)
class EncodedRow:
    """Token ids and marks (see `token_marks`) of one row, and its text as it was rendered.

    `weights` is how much each token counts where it is learnt, if not all count 1.
    """

    ids: npt.NDArray[np.int64]
    marks: npt.NDArray[np.uint8]
    text: str
    weights: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Refused:
    """Why a conversation cannot be written in the format: a reason, and what there is to say."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Learning:
    """What is learnt: which turns, and within them what `pattern` matches, or all.

    Of a pattern with groups, what the first group matches.
    """

    scope: LearntTurns = "assistant"
    pattern: re.Pattern[str] | None = None

    def mark(
        self,
        text: str,
        tokens: LocatedTokens,
        answers: Sequence[Span],
        contents: Sequence[tuple[int, int, str]],
        weights: Sequence[float],
    ) -> EncodedRow:
        """`tokens` of `text`, with marks; `answers` are what may be learnt, in order, by `weights`.

        `contents` says whose text is where, besides answers. A token is learnt if all of it is.
        """
        ids, starts, stops = tokens
        speakers = np.zeros(len(ids), dtype=np.int64)
        for start, stop, role in contents:
            speakers[_inside(starts, stops, (start, stop))] = SPEAKERS.index(role)
        for answer in answers:
            speakers[_inside(starts, stops, answer)] = SPEAKERS.index("assistant")
        learnt = np.zeros(len(ids), dtype=np.bool_)
        for span in self._spans(text, answers):
            learnt |= _inside(starts, stops, span)
        learnt[:1] = False
        weights_N = None
        if any(weight != 1 for weight in weights):
            weights_N = np.ones(len(ids), dtype=np.float32)
            for answer, weight in zip(answers, weights, strict=True):
                weights_N[_inside(starts, stops, answer)] = weight
        return EncodedRow(ids, make_marks(learnt, speakers), text, weights_N)

    def _spans(self, text: str, answers: Sequence[Span]) -> Iterator[Span]:
        spans = {
            "assistant": answers,
            "last": answers[-1:],
            "everything": [(0, len(text))],
        }[self.scope]
        for start, stop in spans:
            if self.pattern is None:
                yield start, stop
                continue
            group = 1 if self.pattern.groups else 0
            for match in self.pattern.finditer(text, start, stop):
                if match.group(group):
                    yield match.span(group)


def _inside(
    starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], span: Span
) -> npt.NDArray[np.bool_]:
    return (starts >= span[0]) & (stops <= span[1]) & (stops > span[0])


class ChatML:
    """The format of `stages/tokens/chat.py`: one row a conversation."""

    def __init__(self, tokenizer: Tokenizer, special: SpecialTokens, learning: Learning) -> None:
        self.tokenizer, self.learning = tokenizer, learning
        self.begin = find_chat_start(tokenizer, special)
        self._known: dict[str, Encoding] = {}

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[list[EncodedRow] | Refused]:
        """Each conversation, rows of the kind `conversations`."""
        for row in rows:
            yield [self._encode(row)]

    def _encode(self, row: Mapping[str, Any]) -> EncodedRow:
        parts = render_segments(row["messages"], begin=self.begin, tools=row["tools"])
        speaking = iter(_speakers(row))
        answers: list[Span] = []
        contents: list[tuple[int, int, str]] = []
        position = 0
        for part in parts:
            span = (position, position + len(part.text))
            position = span[1]
            if part.content:
                contents.append((*span, next(speaking)))
            if part.trained and answers and answers[-1][1] == span[0]:
                answers[-1] = (answers[-1][0], span[1])
            elif part.trained:
                answers.append(span)
        text = "".join(part.text for part in parts)
        own = (one for one in row["messages"] if one["role"] == "assistant")
        weights = [weight for one in own if (weight := _weight(one)) != 0]
        return self.learning.mark(
            text, locate_tokens(self.tokenizer, parts, self._known), answers, contents, weights
        )


def _weight(message: Mapping[str, Any]) -> float:
    """How much its tokens count where they are learnt."""
    weight = message.get("weight")
    return 1.0 if weight is None else weight


def _speakers(row: Mapping[str, Any]) -> Iterator[str]:
    messages = row["messages"]
    if row["tools"] is not None:
        yield "system"
        messages = messages[1:] if messages[0]["role"] == "system" else messages
    for message in messages:
        if format_message(message):
            yield message["role"]


class JinjaFormat:
    """A chat template that somebody else wrote, for a tokenizer that has its tokens.

    `config` is tokenizer_config.json; `date` what the template is told that the day is. The ids are
    those of `transformers`, but what spells a special token inside a message stays a text.
    """

    def __init__(
        self,
        template: str,
        tokenizer: Tokenizer,
        config: Mapping[str, Any],
        date: str,
        learning: Learning,
    ) -> None:
        self.template, self.config, self.date = template, config, date
        self.tokenizer, self.learning = tokenizer, learning
        added = tokenizer.get_added_tokens_decoder().values()
        special = sorted((token.content for token in added if token.special), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special)) or "(?!)")
        self._spelt = re.compile(
            "|".join(re.escape(_protect(one)) for one in special if len(one) > 1) or "(?!)"
        )

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[list[EncodedRow] | Refused]:
        """Each conversation; reasons are `not_rendered` and `content_dropped`."""
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            requests = [self._for_template(row) for row in part]
            rendered = render_conversations(self.template, requests, self.config, self.date)
            for row, request, answer in zip(part, requests, rendered, strict=True):
                yield self._encode(row, request, answer)

    def _for_template(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The conversation as `transformers` describes one to templates."""
        tools = None if row["tools"] is None else json.loads(row["tools"])
        request = {"messages": [_message(one) for one in row["messages"]], "tools": tools}
        return _map_texts(request, lambda text: self._special.sub(_protect_match, text))

    def _encode(
        self, row: Mapping[str, Any], request: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> list[EncodedRow] | Refused:
        if "failed" in answer:
            return Refused("not_rendered", str(answer["failed"]))
        encoded = []
        for made in answer["rows"]:
            messages = request["messages"][: made["messages"]]
            contents = _locate(made["text"], made["marked"], messages)
            if isinstance(contents, Refused):
                return contents
            for call in (call for one in messages for call in one.get("tool_calls", ())):
                if (name := call["function"]["name"]) not in made["text"]:
                    return Refused("content_dropped", f"the call of '{name}'")
            answers: list[Span] = []
            weights: list[float] = []
            for number, start, stop, exact in made["answers"]:
                weight = _weight(row["messages"][number])
                if weight == 0:
                    continue
                ends = [match.end() for match in self._special.finditer(made["text"], 0, stop)]
                if not ends or ends[-1] <= start:
                    return Refused("not_rendered", "no special token ends what the assistant says")
                if not exact:
                    start = max((end for end in ends if end <= start), default=start)
                answers.append((start, ends[-1]))
                weights.append(weight)
            if answers or len(answer["rows"]) == 1:
                encoded.append(self._row(made["text"], answers, contents, weights))
        if self.learning.scope != "assistant":
            encoded = encoded[-1:]  # Its text is that of the whole conversation.
        return encoded

    def _row(
        self,
        text: str,
        answers: Sequence[Span],
        contents: Sequence[tuple[int, int, str]],
        weights: Sequence[float],
    ) -> EncodedRow:
        """Encode a row in one pass, as `transformers` does, but for what is protected.

        Where a token would lie across the begin of an answer, inference sees another one: there the
        text is encoded in parts.
        """
        parts = list(self._parts(text))
        clean = "".join(part.text for part in parts)
        if len(clean) != len(text):
            answers = [(_without(text, a), _without(text, b)) for a, b in answers]
            contents = [(_without(text, a), _without(text, b), role) for a, b, role in contents]
        tokens = locate_tokens(self.tokenizer, parts)
        if any(((tokens.starts < one) & (one < tokens.stops)).any() for one, _ in answers):
            borders = [place for answer in answers for place in answer]
            tokens = locate_tokens(self.tokenizer, list(_cut(parts, borders)))
        return self.learning.mark(clean, tokens, answers, contents, weights)

    def _parts(self, text: str) -> Iterator[Segment]:
        """The text cut around what is protected, without the marks of it."""
        position = 0
        for match in self._spelt.finditer(text):
            yield Segment(text[position : match.start()].replace(PROTECTED, ""), False)
            yield Segment(match.group().replace(PROTECTED, ""), False, content=True)
            position = match.end()
        yield Segment(text[position:].replace(PROTECTED, ""), False)


def _protect(text: str) -> str:
    return text[0] + PROTECTED + text[1:]


def _protect_match(match: re.Match[str]) -> str:
    return _protect(match.group())


def _without(text: str, position: int) -> int:
    """The place of `position` once the marks of what is protected are gone."""
    return position - text.count(PROTECTED, 0, position)


def _cut(parts: Sequence[Segment], borders: Sequence[int]) -> Iterator[Segment]:
    """The parts, cut at these places of the whole text as well."""
    position = 0
    for part in parts:
        stop = position + len(part.text)
        inner = sorted({b for b in borders if position < b < stop})
        for start, end in zip([position, *inner], [*inner, stop], strict=True):
            yield Segment(part.text[start - position : end - position], False, part.content)
        position = stop


def _message(one: Mapping[str, Any]) -> dict[str, Any]:
    made = {"role": one["role"], "content": one["content"]}
    if one.get("reasoning") is not None:
        made["reasoning_content"] = one["reasoning"]
    if one.get("tool_calls"):
        made["tool_calls"] = [
            {
                "type": "function",
                **({"id": call["id"]} if call.get("id") is not None else {}),
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in one["tool_calls"]
        ]
    for name in ("tool_call_id", "name"):
        if one.get(name) is not None:
            made[name] = one[name]
    return made


def _map_texts(value: Any, change: Any) -> Any:
    """`value` with `change` applied to every text in it, names of fields left as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(one, change) for one in value]
    if isinstance(value, dict):
        return {name: _map_texts(one, change) for name, one in value.items()}
    return value


def _locate(
    text: str, marked: str | None, messages: Sequence[Mapping[str, Any]]
) -> list[tuple[int, int, str]] | Refused:
    """Where each content lies in `text`, and whose it is; Refused if one is not there.

    `marked` is the text with marks in place of contents (see isolated.py). Where a template writes
    otherwise because of a content, contents are looked for one after the other.
    """
    wanted = [number for number, one in enumerate(messages) if one["content"].strip()]
    exact = _by_marks(text, marked, messages) if marked is not None else None
    if exact is not None and {number for number, _, _ in exact} >= set(wanted):
        return [(start, stop, messages[number]["role"]) for number, start, stop in exact]
    contents, position = [], 0
    for number in wanted:
        forms = _forms(messages[number]["content"])
        places = [(text.find(form, position), form) for form in forms]
        places = [place for place in places if place[0] >= 0] or [
            (text.find(form), form) for form in forms if form in text
        ]
        if not places:
            detail = f"what message {number + 1} ({messages[number]['role']}) says"
            return Refused("content_dropped", detail)
        start, form = places[0]
        position = start + len(form)
        contents.append((start, position, messages[number]["role"]))
    return contents


def _by_marks(
    text: str, marked: str, messages: Sequence[Mapping[str, Any]]
) -> list[tuple[int, int, int]] | None:
    """(message, start, stop) of each content, or None where the marked text is another's."""
    pieces = re.split(f"{MARK}(\\d+){MARK}", marked)
    contents, position = [], 0
    for piece, number in zip(pieces[::2], [*map(int, pieces[1::2]), None], strict=True):
        if not text.startswith(piece, position):
            return None
        position += len(piece)
        if number is None:
            break
        form = next(
            (one for one in _forms(messages[number]["content"]) if text.startswith(one, position)),
            None,
        )
        if form is None:
            return None
        contents.append((number, position, position + len(form)))
        position += len(form)
    return contents if position == len(text) else None


def _forms(content: str) -> list[str]:
    """How templates write a content: as it is, stripped, without reasoning, in JSON."""
    answer = content.rsplit("</think>", 1)[-1].strip()
    quoted = json.dumps(content, ensure_ascii=False)[1:-1]
    return [form for form in dict.fromkeys((content, content.strip(), answer, quoted)) if form]


def check_format(chat_format: ChatML | JinjaFormat) -> bool:
    """Whether a conversation of several answers is one row; InputError for a template of no use.

    A system message may be what a template has no place for: such conversations are refused one by
    one.
    """
    talk = [
        {"role": role, "content": content}
        for role, content in (
            ("user", "What is two and two?"),
            ("assistant", "It is four."),
            ("user", "And three and three?"),
            ("assistant", "It is six."),
        )
    ]
    (made,) = chat_format.encode([{"messages": talk, "tools": None}])
    if isinstance(made, Refused):
        what = {"not_rendered": "does not render", "content_dropped": "drops"}[made.reason]
        raise InputError(
            f"the chat template {what}: {made.detail}",
            where="chat_template",
            hint="use another template, or `template: chatml`",
        )
    return len(made) == 1


def count_unwritten(
    messages: Sequence[Mapping[str, Any]], rows: Sequence[EncodedRow], weighted: bool = False
) -> Counter[str]:
    """What a template did not write of messages, and weights other than 0 and 1.

    `weighted` training uses all weights of the assistant's messages.
    """
    counts = Counter[str]()
    for one in messages:
        thought, weight = (one.get("reasoning") or "").strip(), one.get("weight")
        lacking = bool(thought) and not any(thought in made.text for made in rows)
        counts["messages_with_reasoning_unused"] += lacking
        is_used = weight in (None, 0, 1) or (weighted and one["role"] == "assistant")
        counts["messages_with_weight_unused"] += not is_used
    return +counts


def choose_format(
    template: str,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    config: Mapping[str, Any],
    date: str,
    learning: Learning,
) -> ChatML | JinjaFormat:
    """The format that writes by `template`; `config` is tokenizer_config.json."""
    if template == CHAT_TEMPLATE:
        return ChatML(tokenizer, special, learning)
    return JinjaFormat(template, tokenizer, config, date, learning)
