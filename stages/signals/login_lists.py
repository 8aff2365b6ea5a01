"""Passwords in lists of logins: one login a line, `ann@mail.org:…`, or an account and `:`.

A line holds nothing but the login; the domain or the name of the account tells that it is one.
Time is linear in the text: what is matched has a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.outputs import Span
from stages.signals.secret_values import is_mixed, is_strong_password

_OF_MAIL = re.compile(
    r"@(?:[A-Za-z0-9-]{1,40}\.){1,3}[A-Za-z]{2,10}(?: ?[:|] ?|;)(?P<password>[^\s:;|/\"'<>]{8,40})"
    r"[ \t]{0,4}(?=\r?\n|\Z)"
)
_BEGINS_WITH_USER = re.compile(r"(?:\A|\n)[ \t>*-]{0,6}[A-Za-z0-9][\w.+-]{0,40}\Z")
_LONGEST_USER = 48
_ACCOUNTS = ("root:", "admin:")
_OF_ACCOUNT = re.compile(r"\w{4,5}:(?P<password>[^\s@:;|/\"'<>]{8,40})[ \t]{0,4}(?=\r?\n|\Z)")
_REPOSITORY = re.compile(r"(?:\A|\n)[ \t]{0,6}git\Z")


def find_listed_logins(text: str) -> Iterator[Span]:
    """The password of each line that is a login: a mail address or an account, and a password."""
    place = text.find("@")
    while place >= 0:
        match = _OF_MAIL.match(text, place)
        if match is not None:
            before = text[max(0, place - _LONGEST_USER) : place]
            if _BEGINS_WITH_USER.search(before) and not _REPOSITORY.search(before):
                yield from _read_login(match)
        place = text.find("@", place + 1)
    for account in _ACCOUNTS:
        place = text.find(account)
        while place >= 0:
            match = _OF_ACCOUNT.match(text, place)
            if match is not None and not text[text.rfind("\n", 0, place) + 1 : place].strip():
                yield from _read_login(match)
            place = text.find(account, place + 1)


def _read_login(match: re.Match[str]) -> Iterator[Span]:
    value = match["password"]
    if is_strong_password(value) and (":" in match[0] or is_mixed(value)):
        yield Span(*match.span("password"), "password", "<secret:password>")
