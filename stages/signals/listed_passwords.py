"""Passwords that stand beside the name of a user: in a pair, or in a list of accounts.

No word for passwords need be there: `Zugang: Mitglied / Tr4mv4j&17`, or below a line about
credentials a line for each account (`- root on db1: …`). The shape of the value decides, as
`told_passwords.py` rates it. Time is linear in the text: lines are read up to a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.device_logins import SERVICES
from stages.signals.login_calls import read_argument
from stages.signals.outputs import Span
from stages.signals.secret_values import is_chosen_words, is_password
from stages.signals.told_passwords import SURE, WEAK, WORDY, rate, trim

_PAIR = re.compile(r" / [\"'`*]{0,2}(?P<value>[!-~]{6,64})")
_USER = re.compile(r"(?:\A|[\s\"'`*(：:,])[\"'`*]{0,2}[\w.@+-]{2,40}[\"'`*]{0,2}\Z")
_OF_ACCOUNT = re.compile(
    r"log[ -]?in|log on|account|access|credential|creds|zugang|konto|anmeld|inlog|toegang"
    r"|identifiant|connexion|compte|accès|acces|usuari|cuenta|utente|credenzial|conta|учётк|учетк"
    r"|вход|логин|доступ|akun|hesap|giriş|přihl|logowan|dostęp|inloggning|pålogg|belép|kirjaut"
    r"|계정|로그인|账号|账户|帳號|登录"
    r"|ログイン|アカウント|tài khoản|تسجيل|\buse\b|\bsign in|router|nas\b|nvr"
    r"|wi-?fi|server|panel|portal|intranet|vpn|ftp|ssh|admin",
    re.IGNORECASE,
)
"""What a line with a name and its password speaks of."""


_ACCOUNT_BEFORE = re.compile(
    rf"(?:\A|\n|[.;] )[ \t>*-]{{0,6}}(?:(?:{'|'.join(SERVICES)}|disney\+|prime|appleid|wi-?fi|wlan"
    r"|nas|vpn|ftp|ssh|uber|psn|xbox|fritz!?box|e?mail|bank|keepass|portal|intranet)"
    r"[\w .]{0,16}(?:\s?[:\u2013\u2014|]|\s-)\s{1,2}[\w.@+-]{2,40}|root|admin(?:istrator)?)\Z",
    re.IGNORECASE,
)
_ACCOUNT_NOTE = re.compile(
    r" / `?(?P<loose>[^\s\"'`<>|]{8,64})`?[ \t]{0,4}(?=[\n.,;)]|\Z| (?:on|at|for) )"
)


def find_told_pairs(text: str) -> Iterator[Span]:
    """Passwords behind the name of a user and a slash, in a line that speaks of an account."""
    slash = text.find(" / ")
    while slash >= 0:
        note = _ACCOUNT_NOTE.match(text, slash)
        if note is not None and _ACCOUNT_BEFORE.search(text[max(0, slash - 80) : slash]):
            yield from read_argument(text, note)
        pair = _PAIR.match(text, slash)
        place = trim(text, *pair.span("value")) if pair is not None else (0, 0)
        if rate(text[slice(*place)]) > WEAK and not text.startswith((" /", "/"), place[1]):
            first = text.rfind("\n", max(0, slash - 200), slash)
            if text[first - 1 : first] == "?":  # The answer to a question.
                first = text.rfind("\n", max(0, slash - 200), first)
            line = text[max(first + 1, slash - 200) : slash]
            if _USER.search(line) and _OF_ACCOUNT.search(line):
                yield Span(*place, "password", "<secret:password>")
        slash = text.find(" / ", slash + 1)


_LIST_HINTS = ("creds", "credential", "logins", "passwords", "accounts", "zugangsdaten", "list: |")
_HEADING = re.compile(
    r"[^\n:=;{}()]{0,40}(?:\([\w .,/-]{1,24}\))?:?[ \t]*\|?[ \t]*\r?\n(?:[ \t]*\r?\n)?"
)
_BLOCK = re.compile(r"(?:[\w.@+-]{2,60}[ \t]*\r?\n){1,3}(?P<value>[!-~]{8,64})[ \t]*(?:\r?\n|\Z)")
"""A host and a user in lines of their own, and the password below them."""

_ITEM = re.compile(
    r"[ \t]*(?:[-*\u2022]|[0-9]{1,2}[.)])?[ \t]*[\w.@+-]{2,40}"
    r"(?: (?:on|at|@|auf|sur|en) [\w.-]{2,40})?"
    r"(?::[ \t]{0,4}| / | - |[ \t]{2,12})(?P<value>[\"'`]?[!-~]{6,64})[ \t]*(?:\r?\n|\Z)"
)
_SIGNS_AND_CASES = re.compile(
    r"(?=[^a-z]{0,20}[a-z])(?=[^A-Z]{0,20}[A-Z])(?=[^0-9]{0,20}[0-9])(?=\w{1,20}[!@#$%^&*+])[^:/\\]+\Z"
)
_FIELD_OF_USER = re.compile(
    r"[ \t>*-]{0,6}(?:user|login|e-?mail|name|id)\w{0,6}\s?:", re.IGNORECASE
)
_MOST_ITEMS = 20

_WITH = re.compile(
    r"[^\n]{0,70}?[\w.@+-]{2,40}[\"'`”»]? (?:with|using|mit|avec|con|com|met|med)"
    r" (?P<value>[\"'`“«„]?[!-~]{6,64})"
)
_OPENED_WITH = re.compile(r"\w+ it with (?P<value>[!-~]{6,64})", re.IGNORECASE)
_ANSWERED = re.compile(
    r"[^\n]{0,60}\n[^\n]{0,40}?\b(?:it['’]?s|try|use|should be) (?P<value>[!-~]{6,64})"
)
_SHAPES = {
    **dict.fromkeys(
        ("log in ", "log into ", "login", "logged in ", "sign in ", "zugang", "anmeld"), _WITH
    ),
    **dict.fromkeys(("einlogg", "connexion", "connecte", "logga in", "inloggen", "entrar"), _WITH),
    **dict.fromkeys(("open it with", "unlock it with", "decrypt it with"), _OPENED_WITH),
    **dict.fromkeys(("extract it with", "unzip it with"), _OPENED_WITH),
    **dict.fromkeys(("auth failed", "access denied", "can't log in", "can't login"), _ANSWERED),
}
"""Words about a login, and where its password is told without a word for passwords."""

LIST_HINTS = (*_LIST_HINTS, *_SHAPES)


def _find_login_words(text: str, place: int) -> Iterator[Span]:
    """The password that a sentence about a login, or its answer, tells."""
    start = text[place : place + 16].lower()
    shape = next((_SHAPES[hint] for hint in _SHAPES if start.startswith(hint)), None)
    match = shape.match(text, place) if shape is not None else None
    if match is None:
        return
    begin, end = trim(text, *match.span("value"))
    rating = rate(text[begin:end])
    if rating == SURE or (shape is _OPENED_WITH and rating == WORDY):
        yield Span(begin, end, "password", "<secret:password>")


def find_listed_passwords(text: str, place: int) -> Iterator[Span]:
    """Passwords of the accounts that are listed below a heading at `place`, a line each."""
    yield from _find_login_words(text, place)
    heading = _HEADING.match(text, place)
    if heading is None:
        return
    block = _BLOCK.match(text, heading.end())
    if block is not None and (
        rate(block["value"]) == SURE or _SIGNS_AND_CASES.match(block["value"])
    ):
        yield Span(*block.span("value"), "password", "<secret:password>")
        return
    is_chpasswd = text.startswith("list: |", place)
    end = heading.end()
    for _ in range(_MOST_ITEMS):
        item = _ITEM.match(text, end)
        if item is None:
            return
        begin, stop = trim(text, *item.span("value"))
        value = text[begin:stop]
        if _FIELD_OF_USER.match(text, end):
            end = item.end()
            continue
        if rate(value) > WEAK or (is_chpasswd and (is_password(value) or is_chosen_words(value))):
            yield Span(begin, stop, "password", "<secret:password>")
        end = item.end()
