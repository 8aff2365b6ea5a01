"""A published tokenizer: its files read as strict JSON and checked, tried in a process of its own,
and completed with the roles that it lacks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from artifacts_schema.errors import InputError
from stages.engine.strict_json import parse_object
from stages.tokens.chat_template import JINJA_FILE, JINJA_LIMIT, is_template_file
from stages.tokens.isolated import try_isolated
from stages.tokens.vocabulary import (
    END_OF_TEXT,
    FIM_MIDDLE,
    FIM_PREFIX,
    FIM_SUFFIX,
    PADDING,
    TURN_END,
    TURN_START,
    read_token_text,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
    by_name: dict[str, SourceFile] = {}
    for source in sources:
        path = PurePosixPath(source.name)
        template = is_template_file(source.name)
        name = f"{path.parent.name}/{path.name}" if template else path.name
        name = path.name if path.name == JINJA_FILE else name
        if name in LIMITS or template:
            if name in by_name:
                raise InputError(
                    f"{name} comes twice: {by_name[name].name} and {source.name}",
                    where="snapshot",
                    hint="pin the files of one tokenizer",
                )
            by_name[name] = source
    if TOKENIZER not in by_name:
        _refuse_other_forms([PurePosixPath(source.name).name for source in sources])
    raw = {
        name: _read(source, LIMITS.get(name, JINJA_LIMIT))
        for name, source in sorted(by_name.items())
    }
    parsed = {
        name: parse_object(data, where=by_name[name].name)
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


def _refuse_other_forms(names: list[str]) -> NoReturn:
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


MODELS = ("BPE", "Unigram", "WordPiece", "WordLevel")
MOST = 2**24
"""Tokens; the largest published vocabularies have 2**18."""


def check_ids(files: Files) -> None:
    """InputError if ids are not 0, 1, 2, … once each, or if two files differ about one."""
    model = files.content.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") not in MODELS:
        kind = model.get("type") if isinstance(model, dict) else model
        raise _file_error(f"has no model of a known type, but {str(kind)[:80]!r}")
    ids = dict(_vocabulary(model))
    names: dict[int, str] = {}
    for token, index in [*ids.items(), *_added(files.content)]:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < MOST:
            raise _file_error(f"gives {token[:80]!r} the id {str(index)[:80]}")
        if names.setdefault(index, token) != token:
            raise _file_error(
                f"gives id {index} twice, to {names[index][:80]!r} and {token[:80]!r}"
            )
        if ids.setdefault(token, index) != index:
            raise _file_error(f"gives {token[:80]!r} two ids, {ids[token]} and {index}")
    if not ids:
        raise _file_error("has no tokens")
    if len(names) != max(names) + 1:
        gaps = sorted(set(range(max(names))) - set(names))
        raise _file_error(
            f"has {len(gaps):,} gaps in its ids, at {', '.join(map(str, gaps[:5]))}"
            f"{' and on' if len(gaps) > 5 else ''}",
            hint="fill them with added tokens (`<|reserved_0|>`); a model has a row for each id",
        )
    for where, token, index in _ids_in_other_files(files):
        if ids.get(token) != index:
            known = ids.get(token, "none")
            raise InputError(
                f"gives {token[:80]!r} the id {str(index)[:80]}, {TOKENIZER} {known}",
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
                raise _file_error(f"has an entry {str(pair)[:80]!r} in its vocabulary")
            if pair[0] in seen:
                raise _file_error(f"has {pair[0][:80]!r} twice in its vocabulary")
            seen.add(pair[0])
            yield pair[0], index
    else:
        raise _file_error("has no vocabulary")


def _added(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    added = content.get("added_tokens") or []
    if not isinstance(added, list):
        raise _file_error("has added_tokens that are no list")
    for token in added:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise _file_error(f"has an added token {str(token)[:80]!r}")
        yield token["content"], token.get("id")


def _ids_in_other_files(files: Files) -> Iterator[tuple[str, str, Any]]:
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


def _file_error(what: str, hint: str | None = None) -> InputError:
    return InputError(what, where=TOKENIZER, hint=hint)


SECONDS = 300


def try_tokenizer(description: str) -> dict[str, list[str]]:
    """What `probe_tokenizer` finds; InputError if the library cannot use the tokenizer."""
    answer = try_isolated(
        "probe_tokenizer",
        description,
        seconds=SECONDS,
        processor_seconds=240,
        memory=16 * 2**30,
    )
    if "failed" in answer:
        raise _file_error(
            f"is refused by the library: {answer['failed']}",
            hint="is it whole, and of `tokenizers`' form?",
        )
    result: dict[str, list[str]] = answer["result"]
    return result


KEYS = ("bos_token", "eos_token", "pad_token", "unk_token")
BY_NAME = (TURN_START, TURN_END, FIM_PREFIX, FIM_MIDDLE, FIM_SUFFIX)


@dataclass
class Roles:
    """Tokens by `tokenizer_config.json`'s keys, what was added, and what else was changed."""

    named: dict[str, str]
    added: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def find_roles(files: Files, configured: Mapping[str, str | None]) -> Roles:
    """The roles that the stage's config names, then those that either file names.

    A padding token that has another role is dropped: a row padded with it would look like a text
    that ends in it. InputError if a role is not a token's text.
    """
    roles = Roles({})
    for key in KEYS:
        token = configured.get(key) or _named_token(files, key)
        if token is not None:
            roles.named[key] = token
    padding = roles.named.get("pad_token")
    for key in ("eos_token", "bos_token", "unk_token"):
        if padding is not None and roles.named.get(key) == padding:
            if configured.get("pad_token"):
                raise InputError(f"padding_token {padding!r} is {key} too", where="config")
            roles.changes.append(f"pad_token was {padding!r}, which is {key} too")
            del roles.named["pad_token"]
            break
    return roles


def complete_roles(files: Files, roles: Roles, *, add: bool) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer with all roles that it can have, and its tokenizer_config.json.

    Tokens that have a role are special ones from here on. What is missing is added after the last
    id if `add`; otherwise InputError where end or padding lacks.
    """
    from tokenizers import AddedToken, Tokenizer

    from stages.tokens.chat_template import read_published_template
    from stages.tokens.pre_tokenizers import llama_cpp_name

    tokenizer = Tokenizer.from_str(_deterministic(files, roles))
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    for key, token in roles.named.items():
        if token not in vocabulary:
            raise InputError(f"{key} is {token!r}, which the vocabulary lacks", where=CONFIG)
    for key, name in (("eos_token", END_OF_TEXT), ("pad_token", PADDING)):
        if key not in roles.named:
            if not add:
                raise InputError(
                    f"names no {key} of its own",
                    where=CONFIG,
                    hint="say which token it is (end_token, padding_token), or let `add_missing`",
                )
            roles.named[key] = name
    wanted = [*roles.named.values(), *(name for name in BY_NAME if add or name in vocabulary)]
    roles.added += [token for token in dict.fromkeys(wanted) if token not in vocabulary]
    have = {t.content for t in tokenizer.get_added_tokens_decoder().values() if t.special}
    lacking = [token for token in dict.fromkeys(wanted) if token not in have]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in lacking]
    )
    described: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **roles.named,
        "additional_special_tokens": [name for name in BY_NAME if name in wanted],
        "clean_up_tokenization_spaces": False,
        "pre_tokenizer": llama_cpp_name(tokenizer),
    }
    template = read_published_template(files.config, files.templates, where=CONFIG)
    if template is not None:
        described["chat_template"] = template
    return tokenizer, described


def _named_token(files: Files, key: str) -> str | None:
    for content, where in ((files.config, CONFIG), (files.special_map, SPECIAL_MAP)):
        try:
            token = read_token_text(content, key)
        except InputError as error:
            raise InputError(error.what, where=where) from None
        if token is not None:
            return token
    return None


def _deterministic(files: Files, roles: Roles) -> str:
    """tokenizer.json without what would cut, fill or vary an encoding."""
    content = dict(files.content)
    for key in ("truncation", "padding"):
        if content.get(key) is not None:
            content[key] = None
            roles.changes.append(f"{key} is off")
    if content["model"].get("dropout"):
        content["model"] = {**content["model"], "dropout": None}
        roles.changes.append("dropout is off")
    return json.dumps(content, ensure_ascii=False)
