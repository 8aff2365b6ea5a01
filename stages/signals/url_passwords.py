"""Passwords in addresses: `scheme://user:…@host`, those without a scheme, and lists of logins.

`ann:…@tcp(db:3306)/shop` (Go), `ann:…@host:3306`, `ann/…@host:1521` (Oracle). Hosts of examples
make none. Time is linear in the text: what is matched has a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.literals import find_all
from stages.signals.outputs import Span
from stages.signals.secret_values import (
    has_two_digits,
    is_chosen_words,
    is_mixed,
    is_password,
    is_phrase,
    is_placeholder,
    is_random,
    is_strong_password,
    says_password,
)

_LOGIN, _CALL_LOGIN = (
    re.compile(
        rf"{scheme}(?P<user>[^\s:/?#\"'<>\[\]{{}}$]{{0,64}}):(?P<password>[^\s/?#\"'<>{{}}]{{3,128}})"
        r"@(?P<host>\[?[A-Za-z0-9.:_-]{2,100}|[$#]?\{\w|%s|[\"'] ?[+.] ?\w)"
    )
    for scheme in (r"(?://(?<![^\s:]//)|(?<=:)\\/\\/)", r"\b(?:sips?|turns?):")
)
"""An address with a password up to its host, which code may fill in, and one of a call."""

_EXAMPLE_HOSTS = re.compile(r"example\.|domain\b|(?:db|your)host|your[_-]")
_ANY_HOST = re.compile(
    r"(?:[$#]?\{|%s|[\"'])|(?:localhost|127\.[0-9.]+|host(?:name)?[0-9]*|server)(?:\Z|[.:/])|.*\.example\b"
)
"""Hosts of examples and of development alike: a password there must look like one."""

_DRIVER_LOGIN = re.compile(
    r"(?:\A|[\"'`=\s])(?P<user>[\w.-]{1,64}):(?P<password>[^\s\"'`<>{}]{3,64})\Z"
)
_HOST_LOGIN = re.compile(
    r"@(?=(?://)?[\w.-]{1,80}:[0-9]{2,5}(?![\w.])|[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w.])|sips?\.|(?:db|mysql|redis|mongo|mq)[\w-]{0,20}\.)"
)
_LOGIN_BEFORE_HOST = re.compile(
    r"(?:\A|[\s\"'`=])(?:[\w.-]{1,40}[/\\])?[A-Za-z][\w.-]{0,40}:[\"']?"
    r"(?P<password>[^\s\"'`<>{}:@/]{6,64})[\"']?\Z"
)
"""`ann:…@host:3306` without a scheme."""

_ORACLE_BEFORE_HOST = re.compile(
    r"(?:\A|[\s\"'`=])[A-Za-z][\w$]{0,30}/(?P<password>[^\s\"'`<>{}:@/]{8,64})\Z"
)
_ORACLE_PORT = re.compile(r"(?://)?[\w.-]{1,80}:15[0-9]{2}")
"""Oracle's way: `ann/…@host:1521`."""

_DRIVER_REACH = 132
"""Addresses of databases without a scheme, as of Go's driver: `ann:…@tcp(db:3306)/shop`."""

_LETTER_AND_DIGIT = re.compile(r"(?=.*[A-Za-z]).*[0-9]")


_DRIVER_SIGNS, _ACCOUNTS = ("@tcp(", "@(", "@unix(", "@/"), ("root:", "admin:")
_CALLS = ("sip:", "sips:", "turn:", "turns:")


def find_url_passwords(text: str) -> Iterator[Span]:
    """The password of each `scheme://user:password@host`."""
    yield from _find_proxies(text)
    yield from _find_listed_logins(text)
    if "@" not in text:
        return
    for sign in _DRIVER_SIGNS:
        yield from _find_driver_logins(text, sign)
    for match in _HOST_LOGIN.finditer(text):
        login = _LOGIN_BEFORE_HOST.search(
            text, max(0, match.start() - _DRIVER_REACH), match.start()
        )
        if login is None:
            login = _ORACLE_BEFORE_HOST.search(
                text, max(0, match.start() - _DRIVER_REACH), match.start()
            )
            is_oracle = _ORACLE_PORT.match(text, match.end()) is not None
            if login is None or not (is_oracle and is_strong_password(login["password"])):
                continue
        if is_password(login["password"]):
            yield Span(*login.span("password"), "url_password", "<secret:url_password>")
    matches = [*_LOGIN.finditer(text)]
    if any(sign in text for sign in _CALLS):
        matches += _CALL_LOGIN.finditer(text)
    for match in matches:
        password, host = match["password"], match["host"].lower()
        if _EXAMPLE_HOSTS.match(host) or is_placeholder(password) or password[0] == "$":
            continue
        if password == "x-oauth-basic" and is_random(match["user"], 300):
            yield Span(*match.span("user"), "url_password", "<secret:url_password>")
        if says_password(password) or password in (match["user"], "x-oauth-basic"):
            continue
        if _ANY_HOST.match(host) and not (
            _LETTER_AND_DIGIT.match(password) or is_password(password) or is_phrase(password)
        ):
            continue
        yield Span(*match.span("password"), "url_password", "<secret:url_password>")


_PROXY = re.compile(
    r":[0-9]{2,5}:[A-Za-z][\w.-]{1,40}:(?P<password>[^\s:@/\"'<>|]{6,64})[\"']?,?(?=\s|\Z)"
)
_PROXY_HOST = re.compile(
    r"(?:\A|[\s\"'])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[a-z0-9-]{1,40}\.){1,4}[a-z]{2,10})\Z"
)


def _find_proxies(text: str) -> Iterator[Span]:
    """The passwords in lists of proxies: `host:port:ann:…`."""
    for match in _PROXY.finditer(text):
        password = match["password"]
        if (is_strong_password(password) or has_two_digits(password)) and _PROXY_HOST.search(
            text, max(0, match.start() - 100), match.start()
        ):
            yield Span(*match.span("password"), "url_password", "<secret:url_password>")


def _find_driver_logins(text: str, sign: str) -> Iterator[Span]:
    """The passwords of addresses without a scheme before each `sign`."""
    for place in find_all(text, sign):
        login = _DRIVER_LOGIN.search(text, max(0, place - _DRIVER_REACH), place)
        is_other = text.startswith("@//", place)  # Oracle's: `ann/…@//host`.
        if login is not None and not is_other and login["password"] != login["user"]:
            password = login["password"]
            if is_password(password) or is_chosen_words(password):
                yield Span(*login.span("password"), "url_password", "<secret:url_password>")


_OF_MAIL = re.compile(
    r"@(?:[A-Za-z0-9-]{1,40}\.){1,3}[A-Za-z]{2,10}(?: ?[:|] ?|;)(?P<password>[^\s:;|/\"'<>]{8,40})"
    r"[ \t]{0,4}(?=\r?\n|\Z)"
)
_BEGINS_WITH_USER = re.compile(r"(?:\A|\n)[ \t>*-]{0,6}[A-Za-z0-9][\w.+-]{0,40}\Z")
_LONGEST_USER = 48
_OF_ACCOUNT = re.compile(r"\w{4,5}:(?P<password>[^\s@:;|/\"'<>]{8,40})[ \t]{0,4}(?=\r?\n|\Z)")
_REPOSITORY = re.compile(r"(?:\A|\n)[ \t]{0,6}git\Z")


def _find_listed_logins(text: str) -> Iterator[Span]:
    """The password of each line that is a login: a mail address or an account, and a password."""
    for match in _OF_MAIL.finditer(text):
        before = text[max(0, match.start() - _LONGEST_USER) : match.start()]
        if _BEGINS_WITH_USER.search(before) and not _REPOSITORY.search(before):
            yield from _read_login(match)
    for account in _ACCOUNTS:
        for place in find_all(text, account):
            login = _OF_ACCOUNT.match(text, place)
            if login is not None and not text[text.rfind("\n", 0, place) + 1 : place].strip():
                yield from _read_login(login)


def _read_login(match: re.Match[str]) -> Iterator[Span]:
    value = match["password"]
    if is_strong_password(value) and (":" in match[0] or is_mixed(value)):
        yield Span(*match.span("password"), "password", "<secret:password>")
