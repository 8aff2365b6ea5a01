"""The files of a published tokenizer, read as strict JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from artifacts_schema.errors import InputError
from stages.engine.strict_json import parse_object
from stages.text.chat_template import JINJA_FILE, JINJA_LIMIT, is_template_file

if TYPE_CHECKING:
    from stages.engine.sources import SourceFile

TOKENIZER, CONFIG = "tokenizer.json", "tokenizer_config.json"
SPECIAL_MAP, ADDED = "special_tokens_map.json", "added_tokens.json"
LIMITS = {TOKENIZER: 256_000_000, CONFIG: 16_000_000, SPECIAL_MAP: 1_000_000, ADDED: 16_000_000}
"""Bytes of the largest that is read; Gemma 3's tokenizer.json has 33 million."""

_SAVE = (
    "load it once where you trust its code, `AutoTokenizer.from_pretrained(DIR)`, and pin what "
    "`save_pretrained(OTHER)` writes"
)


@dataclass(frozen=True)
class Files:
    """Content of the files; those that the snapshot lacks are empty."""

    tokenizer: str
    content: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    special_map: dict[str, Any] = field(default_factory=dict)
    added: dict[str, Any] = field(default_factory=dict)
    templates: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


def read_files(sources: Sequence[SourceFile]) -> Files:
    """Find and parse the files, wherever in the snapshot they lie; others are not opened.

    InputError if there is no tokenizer.json, if a name comes twice, if a file is too large, or if
    it is not a JSON object (a key twice, NaN and broken UTF-8 included).
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        path = PurePosixPath(source.name)
        template = is_template_file(source.name)
        name = f"{path.parent.name}/{path.name}" if template else path.name
        name = path.name if path.name == JINJA_FILE else name
        if name in LIMITS or template:
            if name in found:
                raise InputError(
                    f"{name} comes twice: {found[name].name} and {source.name}",
                    where="snapshot",
                    hint="pin the files of one tokenizer",
                )
            found[name] = source
    if TOKENIZER not in found:
        _refuse([PurePosixPath(source.name).name for source in sources])
    raw = {
        name: _read(source, LIMITS.get(name, JINJA_LIMIT)) for name, source in sorted(found.items())
    }
    parsed = {
        name: parse_object(data, where=found[name].name)
        for name, data in raw.items()
        if name in LIMITS
    }
    return Files(
        tokenizer=raw[TOKENIZER].decode("utf-8"),
        content=parsed[TOKENIZER],
        config=parsed.get(CONFIG, {}),
        special_map=parsed.get(SPECIAL_MAP, {}),
        added=parsed.get(ADDED, {}),
        templates={name: data for name, data in raw.items() if name not in LIMITS},
        digests={name: hashlib.sha256(data).hexdigest() for name, data in raw.items()},
    )


def _read(source: SourceFile, limit: int) -> bytes:
    if source.bytes > limit:
        raise InputError(f"has {source.bytes:,} bytes, more than {limit:,}", where=source.name)
    with source.open() as file:
        return file.read()


def _refuse(names: list[str]) -> NoReturn:
    """Say what to do about a tokenizer in another form."""
    for ending, form in ((".model", "a SentencePiece model"), (".tiktoken", "tiktoken ranks")):
        others = [name for name in names if name.endswith(ending)]
        if others:
            raise InputError(f"{others[0]} is {form}, not read", where="snapshot", hint=_SAVE)
    if {"vocab.json", "merges.txt"} <= set(names) or "vocab.txt" in names:
        raise InputError("has a vocabulary, but no tokenizer.json", where="snapshot", hint=_SAVE)
    raise InputError(
        "has no tokenizer.json", where="snapshot", hint="`ingot snapshot add NAME FOLDER`"
    )
