"""Whether words or a number alone are a password, by what joins them to its name.

Words without a digit (`krokodil-velvet`) and numbers stand beside the names of passwords in forms,
code and documentation as well: so the place must be a literal that is assigned, a field of a login
or the rest of a line. Three words or more that hyphens join are a passphrase wherever they are
assigned or stated. All patterns are bounded.
"""

from __future__ import annotations

import re

from stages.signals.named_values import ASSIGNS
from stages.signals.secret_values import has_joined_words, is_phrase

USER_BEFORE = re.compile(
    r"\b(?:user(?:name)?|login|wi-?fi|ssid|wlan|machine|usuario|usuário|utilisateur|identifiant"
    r"|benutzer\w{0,5}|gebruiker\w{0,5}|utente|логин|пользователь|uživatel|użytkownik|kullanıcı)\b"
    r"[^\n]{1,60}\Z|(?:#|//|--) ?\Z|\b(?:login|user) [^\s]{1,40}\r?\n(?:\s{0,12}|[^\n]{0,60}\n)"
    r"(?:quote )?\Z",
    re.IGNORECASE,
)
SURE_VERBS = re.compile(
    r"\b(?:is|are|was|will be|set to|changed to|reset to|ist|lautet|est|es|jest|adalah|é|és|е"
    r"|είναι|yra|është|هي|היא)\b|:|c.est"
    r"|(?<!\w)[èé](?!\w)",
    re.IGNORECASE,
)

_ASSIGNED = re.compile(rf"{ASSIGNS}\Z")
_ABOUT_BEFORE = re.compile(
    r"(?<![a-z])(?:forgot|reset|confirm|repeat|change|show|hide|wrong|invalid|incorrect|missing"
    r"|require|enter|no"
    r"|weak|strong|toggle|type|label|placeholder|name|for|id|text|title|message|error|hint|help"
    r"|is|has"
    r"|get|set|check|validate|verify|compare|match|hash)(?:ten|ed|s)?[\"':=<>_. -]{0,3}\Z",
    re.IGNORECASE,
)
"""What stands right before the name of a label, a message or a function about passwords."""

_DEFINES = re.compile(r"(?:define|put|add|set\w{0,12})\(\s?[\"'][\w.]{0,40}\Z", re.IGNORECASE)
_TAG_BEFORE = re.compile(r"<(?:(?:property|entry|param|init-param)\b[^<>]{0,60})?\Z")
_LOGIN_NEAR = re.compile(
    r"(?:user|login|usr|uid|e-?mail|account|host|server|ssid|wi-?fi|wlan|data ?base|db|benutzer"
    r"|usuario|usuário|utilisateur|identifiant|логин|用户|用戶|帳號|账号|ユーザ|아이디)",
    re.IGNORECASE,
)
_NEAR = 160
_LINE_BEFORE = re.compile(r"(?:^|\n|<br ?/?>|[.;/|>•·]\s)[^\n:=;,/|<>(){}\[\]\"']{0,50}\Z")
_LINE_AFTER = re.compile(r"[.!]?[ \t]{0,8}(?:\Z|[\r\n]|#|//|<|\||/ )")
_FIELD_BEFORE = re.compile(r"[:\uff1a]\s?[^\s:,;]{1,40}(?: [0-9]{2,4}){0,3}[\s,;/|]{1,4}\Z")
_WIRELESS = re.compile(r"wi-?fi|wlan|hotspot|вай-?фа|와이파이", re.IGNORECASE)
_DECLARES = re.compile(
    r"\b(?:const|let|var|val|string|char ?\*|final|auto|dim|my|our)\W{1,3}[\w$]{0,20}\Z",
    re.IGNORECASE,
)
_ENGLISH_NAME = re.compile(r"pass(?:words?|wd|phrase|code|key)?|pwd|pw", re.IGNORECASE)
_CODE_BEFORE = re.compile(r"[,{(\[]\s*\Z")
_CODE_AFTER = re.compile(r"\s*[})\],]")
_FIELDS_BEFORE = re.compile(r"[;\"'][\w ]{1,30}=[^;=\"']{0,80};\s?\Z")


def may_be_words(text: str, match: re.Match[str], value: str) -> bool:
    """Whether words or a number alone are what a name is assigned, not what is said of it."""
    quoted = match["quoted"] is not None
    start, end = match.start(), match.start("quoted" if quoted else "bare") + len(value)
    before = text[max(0, start - 60) : start]
    if is_phrase(value) and (before.endswith("set") or not _ABOUT_BEFORE.search(before)):
        return _may_be_phrase(text, match, end, quoted)
    if match["short"] and before[-1:] not in ("_", ".") and not _WIRELESS.search(match[0]):
        return False
    if _ABOUT_BEFORE.search(before) and not before.endswith("require"):
        return False
    firm = match["firm"]
    if (
        firm is not None
        and "." in value
        and not quoted
        and not (firm == "=" and _FIELDS_BEFORE.search(before))
    ):
        is_assigned = firm == "=" and (
            (match["name"] or match["short"] or "").isupper() or "--" in before[-20:]
        )
        return (text[end : end + 1] in ('"', "&") and firm == "=") or (
            (is_assigned or (firm == ": " and value.count(".") > 2))
            and _LINE_AFTER.match(text, end) is not None
            and _has_login(text, start, end, before)
        )
    if firm is None:
        verb = (match["verb"] or "").strip()
        if match["plain"] is not None:
            return _is_argument(text, match, before, end, value)
        is_told = verb.endswith(":") or has_joined_words(value) or value.isdecimal()
        is_told = is_told or _WIRELESS.search(match[0]) is not None
        return is_told and (
            quoted
            or _LINE_AFTER.match(text, end) is not None
            or (value.isdecimal() and text[end : end + 2] in (", ", "; ", " ("))
        )
    if firm.endswith(">") and "td" not in firm:
        return _TAG_BEFORE.search(before) is not None and text.startswith("</", end)
    if _DEFINES.search(before):
        return quoted
    if not _ASSIGNED.match(firm):
        is_cell = "td" in firm or "|" in firm
        return has_joined_words(value) and (
            (is_cell and _LINE_AFTER.match(text, end) is not None) or (quoted and "." in firm)
        )
    if quoted:
        return has_joined_words(value) or _has_login(text, start, end, before)
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if "=" in firm and ":" not in firm:
        after = text[end : end + 1]
        if firm != "=":
            return False
        if after == ";":
            return _FIELDS_BEFORE.search(before) is not None or before.endswith('"')
        if after in ("&", '"') or "--" in before[-20:]:
            return True
        return after in ("", " ", "\n", "\r") and (
            line == line.upper()
            or "=" in line
            or "." in line
            or _has_login(text, start, end, before)
        )
    if not _LINE_AFTER.match(text, end):
        return False
    if not _LINE_BEFORE.search(before) and not _FIELD_BEFORE.search(before):
        return False
    above = text[max(0, start - len(line) - 60) : start - len(line)]
    if _CODE_BEFORE.search(above) or _CODE_AFTER.match(text, end):
        return False
    return has_joined_words(value) or value.isdecimal() or _has_login(text, start, end, before)


def _may_be_phrase(text: str, match: re.Match[str], end: int, quoted: bool) -> bool:
    """Whether three words or more that hyphens join are assigned or stated, not what code names."""
    firm = match["firm"]
    if firm is None:
        if match["plain"] is not None:
            return (
                quoted
                or USER_BEFORE.search(text, max(0, match.start() - 80), match.start()) is not None
                or _LINE_AFTER.match(text, end) is not None
            )
        return SURE_VERBS.search(match["verb"]) is not None
    if firm.endswith(">"):
        return text.startswith("</", end)
    return quoted or _PHRASE_AFTER.match(text, end) is not None


_PHRASE_AFTER = re.compile(r"[),;&'\"<|@]|\s|[.!]?\Z")


def _has_login(text: str, start: int, end: int, before: str) -> bool:
    """Whether a field of a login is near, or the name is part of a longer one: `DB_PASSWORD`."""
    if before[-1:] in ("_", ".", "-") or _DECLARES.search(before):
        return True
    name = re.match(r"[^\W_]+", text[start : start + 24])
    if name is not None and not _ENGLISH_NAME.match(name[0]):
        return True
    near = text[max(0, start - _NEAR) : start] + " " + text[end : end + _NEAR // 2]
    return _LOGIN_NEAR.search(near) is not None


def _is_argument(text: str, match: re.Match[str], before: str, end: int, value: str) -> bool:
    """Whether words follow a name as the argument of a statement, or of a login in prose."""
    if match["quoted"] is not None:
        return has_joined_words(value) or "-p" in match["plain"] or before.lower().endswith("with ")
    if value.isdecimal() and _WIRELESS.search(before[-12:] + match[0]):
        return _LINE_AFTER.match(text, end) is not None
    if " " in match["plain"].strip() or not (has_joined_words(value) or value.isdecimal()):
        return False
    is_login = before.endswith("require") or USER_BEFORE.search(before) is not None
    if is_login and "-" in value and sum(map(str.isupper, value)) > 1:
        return True
    return is_login and _LINE_AFTER.match(text, end) is not None


_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*\Z|[A-Z_][A-Z0-9_]*\Z")
_WORD_AND_NUMBER = re.compile(r"[a-z]{4,}_[0-9]{2,4}\Z|[a-z]{3,}(?:_[a-z]{3,}){1,3}[0-9]{3,5}\Z")
_OPTIONS = re.compile(r"(?:=[^\s,=()\"']{1,40}|:[0-9]{2,5}),\Z")
"""An option before in a list without blanks, as of `mount`: `username=ann,`."""


def is_variable(text: str, match: re.Match[str], begin: int, value: str) -> bool:
    """Whether a value without quotes is a name of a program: `password = pw1`, `f(password=p1)`.

    A name with two digits at the end of a line that begins with the password's is a value of an
    INI file.
    """
    sign = match["firm"].strip(" \t\n\"'])}")
    if not _IDENTIFIER.match(value) or sign not in ("=", ":="):
        return False
    end = begin + len(value)
    after = text[end : end + 1]
    if after == "," and _OPTIONS.search(text, max(0, match.start() - 40), match.start()):
        return False
    if after in (",", ")"):
        return True
    if " " not in match["firm"].lstrip("\"'])} ") and not match["firm"].startswith(" "):
        return False
    return (
        sum(c.isdigit() for c in value) < 2
        or after not in ("", "\n", "\r")
        or ("_" in value and not _WORD_AND_NUMBER.match(value))
    )
