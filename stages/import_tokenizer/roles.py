"""Which token of a published tokenizer has which role, and the ones it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.import_tokenizer.files import CONFIG, SPECIAL_MAP, Files
from stages.text.special_tokens import (
    END_OF_TEXT,
    FIM_MIDDLE,
    FIM_PREFIX,
    FIM_SUFFIX,
    PADDING,
    TURN_END,
    TURN_START,
    spelling,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

KEYS = ("bos_token", "eos_token", "pad_token", "unk_token")
BY_NAME = (TURN_START, TURN_END, FIM_PREFIX, FIM_MIDDLE, FIM_SUFFIX)


@dataclass
class Roles:
    """Tokens by `tokenizer_config.json`'s keys, what was added, and what else was changed."""

    named: dict[str, str]
    added: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def find_roles(files: Files, given: Mapping[str, str | None]) -> Roles:
    """The roles that are told: by the config of the stage, then by either file.

    A padding token that has another role is none: a row that ends in it could not be told from a
    text that does. InputError if a role is not a token's text.
    """
    roles = Roles({})
    for key in KEYS:
        token = given.get(key) or _told(files, key)
        if token is not None:
            roles.named[key] = token
    padding = roles.named.get("pad_token")
    for key in ("eos_token", "bos_token", "unk_token"):
        if padding is not None and roles.named.get(key) == padding:
            if given.get("pad_token"):
                raise InputError(f"padding_token {padding!r} is {key} too", where="config")
            roles.changes.append(f"pad_token was {padding!r}, which is {key} too")
            del roles.named["pad_token"]
            break
    return roles


def complete(files: Files, roles: Roles, *, add: bool) -> tuple[Tokenizer, dict[str, Any]]:
    """The tokenizer with all roles that it can have, and its tokenizer_config.json.

    Tokens that have a role are special ones from here on. What is missing is added after the last
    id if `add`; otherwise InputError where end or padding lacks.
    """
    from tokenizers import AddedToken, Tokenizer

    from stages.text.chat_template import published_template
    from stages.text.pre_tokenizers import llama_cpp_name

    tokenizer = Tokenizer.from_str(_without_chance(files, roles))
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
    template = published_template(files.config, files.templates, where=CONFIG)
    if template is not None:
        described["chat_template"] = template
    return tokenizer, described


def _told(files: Files, key: str) -> str | None:
    for content, where in ((files.config, CONFIG), (files.special_map, SPECIAL_MAP)):
        try:
            token = spelling(content, key)
        except InputError as error:
            raise InputError(error.what, where=where) from None
        if token is not None:
            return token
    return None


def _without_chance(files: Files, roles: Roles) -> str:
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
