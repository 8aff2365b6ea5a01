"""The chat template that a checkpoint carries: the one that its weights were last trained with.

It lies in the checkpoint's `tokenizer_config.json` as `chat_template`, and `state.json` records
where it comes from (see `make_trained_record` and `make_imported_record`). A model that was never
trained on conversations carries none. A template that somebody else wrote is data: it is rendered
by `transformers` in Jinja's sandbox, in a process of its own with limits, and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from artifacts_schema.errors import InputError
from stages.tokens.chat import (
    CHAT_TEMPLATE,
    encode_segments,
    find_chat_start,
    render_segments,
)
from stages.tokens.isolated import try_isolated
from stages.tokens.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.engine import Input


TOKENIZER_CONFIG, STATE, KEY = "tokenizer_config.json", "state.json", "chat_template"
JINJA_FILE, JINJA_FOLDER = "chat_template.jinja", "additional_chat_templates"
JINJA_LIMIT = 1_000_000
"""Bytes of the largest template that is read; published ones have up to 20,000."""
RENDER_SECONDS = 60
DATE = "2024-07-26"
"""What a template that asks for the day is told, unless a config says another; Llama 3.1's own
template falls to it."""

Template = str | list[dict[str, str]]
"""As tokenizer_config.json holds it: one, or several as {"name", "template"}."""


class TokenizerFiles(Protocol):
    """What carries a tokenizer's files: an input, or `TokenizerWithTemplate`."""

    def read_bytes(self, path: str) -> bytes:
        """Content of a file."""


@dataclass(frozen=True)
class TokenizerWithTemplate:
    """The files of a tokenizer, with the chat template that a checkpoint is to carry, or none."""

    source: TokenizerFiles
    template: Template | None

    def read_bytes(self, path: str) -> bytes:
        """Content of a file; that of tokenizer_config.json with the template."""
        content = self.source.read_bytes(path)
        if path != TOKENIZER_CONFIG:
            return content
        config = json.loads(content)
        config.pop(KEY, None)
        if self.template is not None:
            config[KEY] = self.template
        return (json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def read_template(checkpoint: Input) -> Template | None:
    """The template of a checkpoint; None where it was not trained on conversations."""
    if not checkpoint.has(TOKENIZER_CONFIG):
        return None
    template: Template | None = checkpoint.read_json(TOKENIZER_CONFIG).get(KEY)
    return template


def read_template_record(checkpoint: Input) -> dict[str, Any] | None:
    """What `state.json` of a checkpoint says of its template."""
    record: dict[str, Any] | None = checkpoint.read_json(STATE).get(KEY)
    return record


def make_trained_record(
    stage: str, before: Mapping[str, Any] | None, template: Template = CHAT_TEMPLATE
) -> dict[str, Any]:
    """Of a checkpoint that `stage` trained on conversations in `template`.

    `before` is the record it began with; it stays where it is that of an imported model's own
    template. `replaced` is the record of the template that the model had when it was imported, if
    that was another one.
    """
    digest = _digest(template)
    same = before is not None and before["sha256"] == digest
    if before is not None and same and before["source"].startswith("snapshot"):
        return dict(before)
    replaced = before.get("replaced") if before is not None and same else before
    return {
        "format": "ChatML" if template == CHAT_TEMPLATE else "the tokenizer's",
        "source": f"stage {stage}",
        "sha256": digest,
        "replaced": dict(replaced) if replaced is not None else None,
    }


def make_imported_record(template: Template, snapshot: str) -> dict[str, Any]:
    """Of a template that was imported from a snapshot, unchanged."""
    name = "ChatML" if template == CHAT_TEMPLATE else "imported"
    digest = _digest(template)
    return {"format": name, "source": f"snapshot {snapshot}", "sha256": digest, "replaced": None}


def read_published_template(
    config: Mapping[str, Any], files: Mapping[str, bytes], *, where: str
) -> Template | None:
    """The template of a published tokenizer, as data; None where it has none.

    `config` is tokenizer_config.json, `files` the Jinja files by path; as in `transformers` these
    come first. InputError if it is no text, or too long.
    """
    templates = {_template_name(path): _text(data, where=path) for path, data in files.items()}
    if templates:
        value: Any = [{"name": n, "template": templates[n]} for n in sorted(templates)]
        return templates["default"] if list(templates) == ["default"] else value
    value = config.get(KEY)
    several = isinstance(value, list) and all(
        isinstance(one, dict)
        and set(one) == {"name", "template"}
        and all(isinstance(text, str) for text in one.values())
        for one in value
    )
    if value is not None and not isinstance(value, str) and not several:
        raise InputError(f"chat_template is {str(value)[:80]!r}, no template", where=where)
    if len(json.dumps(value)) > JINJA_LIMIT:
        raise InputError(f"chat_template is longer than {JINJA_LIMIT:,} bytes", where=where)
    return value or None


def is_template_file(path: str) -> bool:
    """Whether `transformers` reads a chat template from a file of this path."""
    parts = path.split("/")
    return parts[-1] == JINJA_FILE or (parts[-2:-1] == [JINJA_FOLDER] and path.endswith(".jinja"))


def render_prompt(
    template: Template, messages: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
) -> str:
    """The prompt after which a model writes its answer to `messages`.

    `config` is tokenizer_config.json, whose special tokens the template may name. Dates that a
    template asks for are fixed, so that a prompt does not depend on the day. InputError where the
    template fails, or takes more time, memory or text than it may.
    """
    request = {
        "template": default_template(template),
        "messages": list(messages),
        "tokens": template_tokens(config),
        "date": DATE,
    }
    answer = try_isolated(
        "render_template",
        request,
        seconds=RENDER_SECONDS,
        processor_seconds=20,
        memory=4 * 2**30,
    )
    if "failed" in answer:
        raise _problem(f"does not render: {answer['failed']}")
    return str(answer["result"])


def render_conversations(
    template: Template,
    conversations: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    date: str = DATE,
) -> list[dict[str, Any]]:
    """Each conversation ({"messages", "tools"}) as rows of text; see the function in isolated.py.

    InputError where the template takes more time or memory than it may; what it does not render is
    reported for each.
    """
    request = {
        "template": default_template(template),
        "tokens": template_tokens(config),
        "date": date,
        "conversations": list(conversations),
    }
    answer = try_isolated(
        "render_conversations",
        request,
        seconds=10 * RENDER_SECONDS,
        processor_seconds=2 * RENDER_SECONDS,
        memory=4 * 2**30,
    )
    if "failed" in answer:
        raise _problem(f"does not render: {answer['failed']}")
    rows: list[dict[str, Any]] = answer["result"]
    return rows


def default_template(template: Template) -> str:
    """The template itself, or of several the one named `default`; InputError if there is none."""
    if isinstance(template, str):
        return template
    named = {one["name"]: one["template"] for one in template}
    if "default" not in named:
        raise _problem(f"has no default, but {', '.join(sorted(named))[:80]}")
    return named["default"]


def template_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens that a template may name, of tokenizer_config.json."""
    return {
        name: str(value.get("content")) if isinstance(value, dict) else value
        for name, value in config.items()
        if name in ("bos_token", "eos_token", "pad_token", "unk_token") and value is not None
    }


def encode_prompt(
    tokenizer: Tokenizer,
    template: Template,
    messages: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    tools: str | None = None,
) -> tuple[str, list[int]]:
    """The prompt after which a model writes its answer to `messages`, as text and as token ids.

    `config` is tokenizer_config.json, `tools` JSON text of a list of definitions. ChatML is
    rendered as in training, where what somebody wrote never becomes a special token. InputError as
    `render_prompt`, where ChatML lacks its tokens, and for tools in another template.
    """
    if template != CHAT_TEMPLATE:
        if tools is not None:
            raise InputError("tools are written by ChatML alone", where="the chat template")
        text = render_prompt(template, messages, config)
        return text, list(tokenizer.encode(text, add_special_tokens=False).ids)
    begin = find_chat_start(tokenizer, SpecialTokens.from_config(tokenizer, config))
    segments = render_segments(messages, add_generation_prompt=True, begin=begin, tools=tools)
    ids, _ = encode_segments(tokenizer, segments)
    return "".join(segment.text for segment in segments), ids


def _template_name(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return "default" if name == JINJA_FILE else name.removesuffix(".jinja")


def _text(data: bytes, *, where: str) -> str:
    if len(data) > JINJA_LIMIT:
        raise InputError(f"has {len(data):,} bytes, more than {JINJA_LIMIT:,}", where=where)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is no UTF-8: {error}", where=where) from None


def _digest(template: Template) -> str:
    text = template if isinstance(template, str) else json.dumps(template, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _problem(what: str) -> InputError:
    hint = "leave `chat_prompts` empty, or import the model with a template that renders"
    return InputError(f"the chat template {what}", where="checkpoint", hint=hint)
