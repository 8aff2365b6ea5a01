"""What must be true of a tokenizer.json before the library is given it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artifacts_schema.errors import InputError
from stages.import_tokenizer.files import ADDED, CONFIG, TOKENIZER, Files

MODELS = ("BPE", "Unigram", "WordPiece", "WordLevel")
MOST = 2**24
"""Tokens; the largest published vocabularies have 2**18."""


def check(files: Files) -> None:
    """InputError if ids are not 0, 1, 2, … once each, or if two files differ about one."""
    model = files.content.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") not in MODELS:
        kind = model.get("type") if isinstance(model, dict) else model
        raise _problem(f"has no model of a known type, but {str(kind)[:80]!r}")
    ids = dict(_vocabulary(model))
    names: dict[int, str] = {}
    for token, index in [*ids.items(), *_added(files.content)]:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < MOST:
            raise _problem(f"gives {token[:80]!r} the id {str(index)[:80]}")
        if names.setdefault(index, token) != token:
            raise _problem(f"gives id {index} twice, to {names[index][:80]!r} and {token[:80]!r}")
        if ids.setdefault(token, index) != index:
            raise _problem(f"gives {token[:80]!r} two ids, {ids[token]} and {index}")
    if not ids:
        raise _problem("has no tokens")
    if len(names) != max(names) + 1:
        gaps = sorted(set(range(max(names))) - set(names))
        raise _problem(
            f"has {len(gaps):,} gaps in its ids, at {', '.join(map(str, gaps[:5]))}"
            f"{' and on' if len(gaps) > 5 else ''}",
            hint="fill them with added tokens (`<|reserved_0|>`); a model has a row for each id",
        )
    for where, token, index in _told_elsewhere(files):
        if ids.get(token) != index:
            told = ids.get(token, "none")
            raise InputError(
                f"gives {token[:80]!r} the id {str(index)[:80]}, {TOKENIZER} {told}",
                where=where,
                hint="the files are not of one tokenizer; save it again with transformers",
            )


def _vocabulary(model: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(token, id) of the model; InputError if it is neither a table nor Unigram's list."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        yield from vocabulary.items()
    elif isinstance(vocabulary, list):
        seen: set[str] = set()
        for index, pair in enumerate(vocabulary):
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
                raise _problem(f"has an entry {str(pair)[:80]!r} in its vocabulary")
            if pair[0] in seen:
                raise _problem(f"has {pair[0][:80]!r} twice in its vocabulary")
            seen.add(pair[0])
            yield pair[0], index
    else:
        raise _problem("has no vocabulary")


def _added(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    added = content.get("added_tokens") or []
    if not isinstance(added, list):
        raise _problem("has added_tokens that are no list")
    for token in added:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise _problem(f"has an added token {str(token)[:80]!r}")
        yield token["content"], token.get("id")


def _told_elsewhere(files: Files) -> Iterator[tuple[str, str, Any]]:
    """(file, token, id) of the other files."""
    decoder = files.config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise InputError("added_tokens_decoder is no table", where=CONFIG)
    for key, token in decoder.items():
        content = token.get("content") if isinstance(token, dict) else token
        if not isinstance(content, str):
            raise InputError(f"added_tokens_decoder has {str(token)[:80]!r}", where=CONFIG)
        yield CONFIG, content, int(key) if key.isdecimal() and len(key) < 12 else key
    for token, index in files.added.items():
        yield ADDED, token, index


def _problem(what: str, hint: str | None = None) -> InputError:
    return InputError(what, where=TOKENIZER, hint=hint)
