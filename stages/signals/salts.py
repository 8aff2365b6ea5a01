"""Secrets of applications with signs in them, and those in the columns of an SQL `INSERT`.

WordPress, Django and others draw a secret from letters, digits and signs, also blanks: it is no run
of letters and digits, so it is searched beside its name. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.literals import Literals, Triples, find_all
from stages.signals.named_values import ASSIGNS, find_inserted
from stages.signals.outputs import Span
from stages.signals.secret_kinds import PUBLISHED
from stages.signals.secret_names import OTHER_TAIL, SURE_NAME, VALUE
from stages.signals.secret_values import is_mixed, is_random, looks_secret

_SALTED = re.compile(
    r"(?:(?:auth|logged_in|nonce|jwt|app|api|hash)_?(?:key|salt)|(?<!<)secret(?:[_.-]?(?:key"
    r"|token))?(?:_base)?"
    r"|jwt\.sign\([\w.{}: ]{1,60}, (?=[\"'])|hmac\.new\(b?(?=[\"'])|cookie(?:validation)?_?(?:key)?"
    rf"|signing_?key|encryption_?key)(?:(?:{ASSIGNS}|[\"'],\s{{0,20}})?(?P<quote>[\"'])"
    r"(?P<value>(?:(?!(?P=quote))[^\n\r\\]){32,128})(?P=quote)"
    r"|\s?[=:]\s?(?P<bare>[^\s\"'`]{40,128})(?=\s|\Z))",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"unique phrase|\A(?:(?:base64|arn|vault|ref):|AQICAH)|\AENC\[|://|@microsoft|your|change|insert|\$\{\w|\A\$\{.*\}\Z"
    r"|\{\{ ?\w|\$\([A-Za-z]+[ )]|\w{3,} \w{3,} \w{3,}",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[^A-Za-z0-9\s]")


def find_inserted_secrets(text: str) -> Iterator[Span]:
    """Literals in the columns of an SQL `INSERT` that are named as secrets are."""
    for column, start, end in find_inserted(text):
        if SURE_NAME.search(column) and not OTHER_TAIL.search(column):
            value = text[start:end]
            if looks_secret(value) and VALUE.fullmatch(value):
                yield Span(start, end, "assigned", "<secret:assigned>")


_HINTS = (
    *("_KEY", "_key", "_SALT", "_salt", "SECRET", "ecret", "ValidationKey", "_cookie"),
    *("jwt.sign(", "hmac.new("),
)
_LITERALS = Literals([hint.encode() for hint in _HINTS])
_ASSIGNING = re.compile(r"[=:\"'(]")


def find_salts(text: str, triples: Triples | None) -> Iterator[Span]:
    """Values full of signs and blanks beside a name, as WordPress and Django make them."""
    hints = [_HINTS[number] for number in _LITERALS.choose(triples)]
    for place in (place for hint in hints for place in find_all(text, hint)):
        if not _ASSIGNING.search(text, place, place + 24):
            continue
        match = _SALTED.search(text, max(0, place - 12), place + 220)
        if match is None or match.start() > place:
            continue
        group = "bare" if match["value"] is None else "value"
        value = match[group]
        signs = len(_SIGNS.findall(value))
        if not is_random(value, 430) or signs < (2 if is_mixed(value) else 5):
            continue
        if _PHRASE.search(value) or value.startswith(PUBLISHED):
            continue
        yield Span(*match.span(group), "assigned", "<secret:assigned>")
