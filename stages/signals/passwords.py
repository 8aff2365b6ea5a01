"""Passwords that only their name tells: beside it, below it, after it was asked for.

A name (`password`, `DB_PASS`, `Passwort`, `contraseña`, `密码`) is joined to its value in one of
the ways of `named_values.py`; the value must have a letter and a digit (`Password: winter79!`), as
people choose them, or be mixed as a generator makes it. Words alone (`krokodil-velvet`) and numbers
alone are passwords where the name is assigned a literal, or the end of a line. Where nothing but a
blank joins them, the value must stand out of prose by itself. Commands and calls are in
`login_calls.py`, addresses in `url_passwords.py`. Time is linear in the text: what is matched has
a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from stages.signals.literals import find_all, find_triples
from stages.signals.login_calls import cut_bare, find_login_calls, find_piped
from stages.signals.named_values import (
    ARGUMENT,
    ASSIGNS,
    BLOCK,
    CELL,
    FALLBACK,
    FIELD,
    GROUPS,
    OPEN,
    QUOTED,
    TAG_END,
    VERB,
    find_cells,
    find_inserted,
)
from stages.signals.outputs import Span
from stages.signals.password_names import (
    ANY_NAME,
    ENGLISH,
    FOREIGN,
    OF_APPLICATION,
    SHORT,
    choose_hints,
    to_small_letters,
)
from stages.signals.secret_values import (
    has_odd_brackets,
    is_chosen_number,
    is_chosen_words,
    is_grouped,
    is_mixed,
    is_password,
    is_phrase,
    is_strong_password,
    is_words_apart,
)

_FOR = (
    r"(?:[ \u00a0](?:for|to|from|von|für|zum|vom|du|de|del|do|da|от|для|до|к|на|в|na|w|per|voor"
    r"|k|ke|za|за"
    r"|til|till|för|pro)"
    r"(?:[ \u00a0](?!(?:user|login|account)\b)[^\s:=,;|\"'<>{}]{1,16}+){1,2}?"
    r"| de l['\u2019][^\s:=,;|\"'<>{}]{1,16}+)?"
)
"""What a password is for, between its name and its value: `пароль от вайфая …`."""

_COMPARED = r"[\"'\])]{0,3}(?:\s?[!=]==?\s?|\.equals(?:IgnoreCase)?\(\s?)(?=[\"'])"
"""A name and the literal that a program compares it with: `password == "…"`."""

_LEADERS = r"[ .]{0,2}\.{3,60}[ :]{1,3}|\]:? |\s{1,4}(?:/t )?REG_SZ\s{1,4}(?:/d )?"
"""Dots between a name and its value, a name in brackets, and the type in a registry of Windows."""

_VALUE = rf"{OPEN}(?:[\w.@+-]{{2,40}} ?[/&] )?(?:{QUOTED}|(?P<bare>{GROUPS}|[^\s\"'`<>]{{6,200}}))"
_NAMED_PASSWORD = re.compile(
    rf"(?:(?P<name>{ENGLISH})|(?P<foreign>{FOREIGN})|(?P<short>{SHORT}))(?P<tail>[\w-]{{0,24}}?)"
    rf"(?:(?P<firm>{_COMPARED}|{FALLBACK}|\.?{ASSIGNS}|{FIELD}|{ARGUMENT}|{BLOCK}|{TAG_END}"
    rf"|{CELL}|{_LEADERS})"
    rf"|(?P<verb>[\"\'\u201d)]?{VERB})"
    rf"|(?P<plain>{_FOR}\s+(?:-[pb]|--body|--value)[ =]?|{_FOR}[ \u00a0\t]{{1,2}}"
    r"(?:[07] |(?:auf|op|to|til|на|na|como|als|as) (?!\w{2,10}(?<=[a-z])[0-9]{1,2}\b)|\(?)"
    rf"|[ \t]{{3,24}}(?=[\"'])"
    r"|(?<=[码碼ド])(?=[!-~])))"
    rf"{_VALUE}",
    re.IGNORECASE,
)
_OTHER_TAIL = re.compile(
    r"hash|digest|file|path|len|(?<!ad)min|max|polic|field|reset|url|uri|prompt|label|hint|type|age\b"
    r"|expir"
    r"|chang|updat|creat|count|attempt|_?id\b|name|mode|histor|encod|strength|score|regex|pattern"
    r"|valid|input|column|salt|algorithm|crypt|auth(?:entication)?\b|manager|mgr|param|rule"
    r"|require|target|toggle|visib|secret",
    re.IGNORECASE,
)
_RESET_TO = re.compile(r"(?:re)?set to", re.IGNORECASE)
_ABOUT_PASSWORDS = re.compile(
    r"polic|length|strength|hint|rule|hash|manager|list|complex|encod|algorithm|format|authent"
    r"|requirement|expir|forgot|lost|reset",
    re.IGNORECASE,
)
_HASHED_BEFORE = re.compile(
    r"(?:(?:hash(?:ed)?|encrypt(?:ed)?|crypt(?:ed)?|digest|(?<![A-Za-z])(?:get|is|has|no))[_.-]?"
    r"|(?:md5|sha-?[0-9]{1,3}) ?\([\"']?)\Z",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[=:>\uff1a\uff1d\u055d-]")
_TYPE_7 = re.compile(r"(?:[0-9A-F]{2}){5,40}")
"""What Cisco writes behind `password 7`."""

_OF_USER = re.compile(
    r"\b(?:user|benutzer|usuario|usuário|utilisateur|utente|пользователя|host|server)\s\Z",
    re.IGNORECASE,
)


def find_named_passwords(text: str) -> Iterator[Span]:
    """Values that look like passwords, joined to `password`, `PWD`, `Passwort` and the like."""
    lowered = to_small_letters(text)
    triples = find_triples(lowered.encode("utf-8", "surrogatepass"))
    for hint in choose_hints(lowered, triples):
        for place in find_all(lowered, hint):
            match = _NAMED_PASSWORD.match(text, place)
            if match is not None:
                yield from _read_password(text, match)
            if text.startswith("passwd --stdin", place) or (
                match is None
                and (lowered.startswith("chpasswd", place - 2) or text.startswith(_STDIN, place))
            ):
                yield from find_piped(text, place)
            name = ANY_NAME.match(text, place)
            if name is not None:
                yield from _find_elsewhere(text, place, name.end())
    yield from find_login_calls(text, lowered, triples)
    if "insert" in lowered and "values" in lowered:
        for column, start, end in find_inserted(text):
            if ANY_NAME.search(column) and not _OTHER_TAIL.search(column):
                yield from _accept_cell(text, start, end)


_AN_APPLICATIONS = re.compile(rf"(?:{OF_APPLICATION})\Z", re.IGNORECASE)
_LOGIN_ABOVE = re.compile(
    r"session[\"')]{0,3}\(\{\s{0,8}\Z|"
    r"\b(?:login|user(?:name)?|user_?id"
    r"|account|pass(?:word)?|pwd)[\"']?\s?[:=]\s?[\"']?[^\s\"']{1,40}[\"']?,?\s+[\"']?\Z",
    re.IGNORECASE,
)
"""The field of a login right before a `secret`, which is its password then."""

_SHARED_ABOVE = re.compile(
    r"(?<![a-z])(?:radius|tacacs|ipsec|ike|l2tp|pptp|asterisk)(?![a-z])"
    r"|\bclient [\w.:/-]{1,60}\s?\{"
    r"|\bipaddr ?=|\btype ?= ?(?:friend|peer|user)\b|manager\.conf",
    re.IGNORECASE,
)
"""What servers and phones share a `secret` for."""

_PEER_BELOW = re.compile(r"\n(?:context|host|qualify|type|nat|disallow|callerid) ?=")
"""The options of a peer of Asterisk."""

_STORED = re.compile(r"\{(?:noop|plain|cleartext)\}", re.IGNORECASE)
"""How Spring and LDAP mark a password that is not hashed."""

_KEYS_AFTER = re.compile(r"\{(?:enter|tab)\}\Z|\\n\Z", re.IGNORECASE)
"""The keys that a test of a page types after a password."""


def _read_password(text: str, match: re.Match[str]) -> Iterator[Span]:
    """The value of a match, if the name is one of a password and the value looks like it."""
    start = match.start()
    if _OTHER_TAIL.search(match["tail"]) or _HASHED_BEFORE.search(text[max(0, start - 12) : start]):
        return
    strong = _first_strong(match) if match["verb"] else None
    if strong is not None:
        yield Span(*strong, "password", "<secret:password>")
        return
    if _ABOUT_PASSWORDS.search(_RESET_TO.sub("", match["verb"] or "")):
        return
    if match["short"] and not _may_be_short(text, match):
        return
    if text[start - 1 : start] == "1" and not match["firm"]:  # 1Password, a manager of passwords.
        return
    if match["plain"] is not None and _COMMAND.search(text, max(0, start - 6), start + 7):
        return
    if (
        (match["name"] or "").lower() == "secret"
        and not _AN_APPLICATIONS.search(text, max(0, start - 10), start)
        and not _LOGIN_ABOVE.search(text, max(0, start - 80), start)
        and not _SHARED_ABOVE.search(text, max(0, start - 160), start)
        and not _PEER_BELOW.search(text, match.end(), match.end() + 80)
    ):
        return
    if match["firm"] and _joins_no_value(text, start, match["firm"]):
        return
    group = "quoted" if match["quoted"] is not None else "bare"
    begin = match.start(group)
    stored = _STORED.match(match[group])
    if stored is not None:
        begin += stored.end()
    value = _KEYS_AFTER.sub("", match[group])
    if group == "quoted" and value[:1] == value[-1:] and value[:1] in ("'", '"'):  # In both signs.
        begin, value = begin + 1, value[1:-1]
    user = _USER_VALUE.match(value)
    if user is not None and _USER_AND_PASSWORD.search(text, max(0, start - 16), start):
        begin, value = begin + user.end(), value[user.end() :]
    if group == "bare":
        value = value if _is_whole(text, match, value) else cut_bare(value)
        if value.endswith("(") or value[:1] in (";", ",", "&", "|"):
            return
        if _is_variable(text, match, begin, value) if match["firm"] else _OTHER_FIELD.match(value):
            return
        if "\n" in (match["firm"] or "") and _NEXT_FIELD.match(value):
            return
    if stored is not None:
        value = value[stored.end() :]
    escaped, value = value, unescape(_ESCAPED.sub(r"\1", value))
    if _DIGEST.fullmatch(value) and (
        "==" in (match["firm"] or "").replace("!", "=")
        or _HASH_OF.search(text, max(0, start - 72), start)
    ):
        return
    if " " in value:
        fewest = 3 if _IS_PASSPHRASE.match(match["name"] or "") else 4
        is_found = is_grouped(value) or is_words_apart(value, fewest)
    else:
        is_found = _is_accepted(text, match, value)
    if is_found:
        yield Span(begin, begin + len(escaped), "password", "<secret:password>")


_FIELDS = re.compile(r"[=<>\"'(){}]|,\S*,|;\Z|,\Z")


def _is_whole(text: str, match: re.Match[str], value: str) -> bool:
    """Whether a value without quotes goes on behind a comma, semicolon or entity.

    Between tags it does, and where the signs of a whole line are mixed as a generator mixes them.
    """
    firm = match["firm"] or ""
    if firm.endswith(">") and "&" in value:
        return text.startswith("</", match.end("bare"))
    return firm.endswith(": ") and ";" in value and is_mixed(value) and not _FIELDS.search(value)


_ESCAPED = re.compile(r"\\([\"'](?=\w))")
_DIGEST = re.compile(r"[0-9a-fA-F]{32,128}")
"""What a program compares the hash of a password with."""

_HASH_OF = re.compile(
    r"(?:hash|md5|sha-?[0-9]{1,3}|digest|ntlm|checksum|prüfsumme|хеш|хэш|empreinte|somme)\W[^\n]{0,60}\Z",
    re.IGNORECASE,
)

_COMMAND = re.compile(r"(?:[`$#] ?|\n|sudo )passwd \Z")
"""The command takes the name of a user: `sudo passwd ann`."""

_NEXT_ITEM = re.compile(r"\s*\n\s*[-\u2013\u2014]")
_SECOND_ARGUMENT = re.compile(r"\\?[\"'],")
_USER_AND_PASSWORD = re.compile(
    r"(?:user|(?:user|login|logon|id|un|acc|account|usuario|usuário|utilisateur|benutzer|utente"
    r"|kullanıcı|логин|账号|帐号|帳號|用户名?|아이디)"
    r"(?: ?name)?\s?[/&:+|]\s?|[账帳帐][号號户戶]|用户名?)\Z",
    re.IGNORECASE,
)
_USER_VALUE = re.compile(r"[\w.@+-]{1,40}[:/|](?=.)")
"""Fields of both: `CURLOPT_USERPWD, "ann:…"`, `user/password: ann/…`."""


def _joins_no_value(text: str, start: int, firm: str) -> bool:
    """Whether what is after a name is the next item of a list, or a filter of a template.

    A name right behind a sign is a value itself (`"user.password=password", "…"`).
    """
    if _NEXT_ITEM.match(firm):
        return True
    if "|" in firm and text.rfind("{{", max(0, start - 80), start) >= 0:
        return True
    return _SECOND_ARGUMENT.match(firm) is not None and text[start - 1 : start] in ("=", ":")


def _first_strong(match: re.Match[str]) -> tuple[int, int] | None:
    """The place of the word right after the name, if it is a password: `the password … that I`."""
    word = _WORD_AFTER_NAME.match(match["verb"])
    value = cut_bare(word[1]) if word else ""
    if word is None or not (is_strong_password(value) and is_mixed(value)):
        return None
    start = match.start("verb") + word.start(1)
    return start, start + len(value)


_IS_PASSPHRASE = re.compile(r"pass[ -]?phrase|psk", re.IGNORECASE)


def _is_accepted(text: str, match: re.Match[str], value: str) -> bool:
    """Whether the value looks like a password, the more so the less joins it to its name."""
    if match["plain"] is not None:
        is_sure = (
            match["quoted"] is not None
            or " -" in match["plain"]
            or (match["plain"].endswith("7 ") and _TYPE_7.fullmatch(value) is not None)
            or text.startswith(("--", "re"), max(0, match.start() - 2))
            or _USER_BEFORE.search(text, max(0, match.start() - 80), match.start()) is not None
            or _DECLARED.search(text, max(0, match.start() - 40), match.start()) is not None
        )
        is_sure = is_sure and " " not in match["plain"].strip(" (")
        if _OF_USER.search(match["plain"]):
            return False
    elif match["verb"] is not None:
        is_sure = match["verb"][0] not in "\"')\u201d" and (
            not match["name"]
            or match["quoted"] is not None
            or _SURE_VERBS.search(match["verb"]) is not None
        )
    else:
        is_sure = _SIGN.search(match["firm"]) is not None or _is_no_name(value)
    if is_password(value) if is_sure else is_strong_password(value):
        return True
    if is_sure and match["quoted"] is not None and has_odd_brackets(value):
        return True
    is_of_address = match["firm"] == "=" and text[match.start() - 1 : match.start()] in ("&", "?")
    return is_of_address and is_password(value.replace(".", "-"))


_DECLARED = re.compile(r"(?:\A|\n)\s{0,8}(?:ENV|ARG|SetEnv|setenv) \w{0,30}\Z")
"""A variable that a Dockerfile, Apache or csh sets without a sign: `ENV DB_PASSWORD …`."""

_STDIN = "password-stdin"
_QUESTION = re.compile(
    r"(?:[^\n]{0,60}?(?:\?|\b(?:pls|plz|please|again|thx|bitte|svp|por favor)\b)|(?<=password)"
    r"|(?<=pass)|(?<=pw))[^\n]{0,20}\r?\n"
)
_ASKS = re.compile(
    r"\b(?:what|whats|was|send|give|tell|need|remember|know|share|got|again|wie|quel|cu[aá]l"
    r"|qual)\b",
    re.IGNORECASE,
)
_SHORT_QUESTION = 24
_OTHER_FIELD = re.compile(r"[a-z]{4,}(?:_[a-z]{2,})*=[\w-]")
"""The next field, which follows the word in logs."""

_ANSWER = re.compile(
    r"(?:[ \t>*-]{0,4}(?:\[[^\]\n]{1,30}\] ?)?(?:<?[^\s:<>\n][^:<>\n]{0,24}(?::|>) ?)?)"
    r"(?:it'?s |its |try |the pw is |[\w.-]{2,24} / )?[\"'`]?(?P<answer>[^\s\"'`<>]{6,64})[\"'`]?"
    r"[ \t]{0,3}(?:\r?\n|\Z)",
    re.IGNORECASE,
)


def _find_elsewhere(text: str, start: int, end: int) -> Iterator[Span]:
    """Values below the head of a column, and the line that answers who asks for a password."""
    for first, last in find_cells(text, start):
        yield from _accept_cell(text, first, last)
    question = _QUESTION.match(text, end)
    if question is None:
        return
    answer = _ANSWER.match(text, question.end())
    line = text[text.rfind("\n", max(0, start - 80), start) + 1 : question.end()]
    is_asked = _ASKS.search(line) is not None or ("?" in line and len(line) <= _SHORT_QUESTION)
    if answer is None or not is_asked or _ABOUT_PASSWORDS.search(line):
        return
    if is_password(answer["answer"]):
        yield Span(*answer.span("answer"), "password", "<secret:password>")


def _accept_cell(text: str, start: int, end: int) -> Iterator[Span]:
    """The cell of a table in [start, end) if it looks like a password."""
    value = text[start:end]
    if " " not in value and (
        is_password(value) or is_chosen_number(value) or is_chosen_words(value)
    ):
        yield Span(start, end, "password", "<secret:password>")


def _is_no_name(value: str) -> bool:
    """Whether a value without a sign before it has more than the one digit of `urllib2`."""
    return sum(c.isdigit() for c in value) > 1 or is_mixed(value) or is_strong_password(value)


def _may_be_short(text: str, match: re.Match[str]) -> bool:
    """Whether `pass` is the name of a password: not a verb, not the result of a test."""
    if match["plain"]:
        if (
            match["quoted"] is not None
            and _DEFINES.search(text, max(0, match.start() - 40), match.start()) is not None
        ):
            return True
        return _USER_BEFORE.search(text, max(0, match.start() - 80), match.start()) is not None
    if match["verb"] is None and is_phrase(match["quoted"] or match["bare"] or ""):
        return True
    is_result = match[0].startswith("PASS: ") and text[match.start() - 1 : match.start()] != "_"
    return not is_result and " " not in (match["verb"] or "").strip()


_DEFINES = re.compile(r"#define|:(?:local|global) |(?:\A|[\n;]) {0,8}set \Z")
_WORD_AFTER_NAME = re.compile(r"[ \u00a0]([^\s]{8,64})[ \u00a0]")
_NEXT_FIELD = re.compile(r"[\w.-]{1,40}[=:]")
"""The next field, below a name without a value."""


_USER_BEFORE = re.compile(
    r"\b(?:user(?:name)?|login|wi-?fi|ssid|wlan|machine|usuario|usuário|utilisateur|identifiant"
    r"|benutzer\w{0,5}|gebruiker\w{0,5}|utente|логин|пользователь|uživatel|użytkownik|kullanıcı)\b"
    r"[^\n]{1,60}\Z|(?:#|//|--) ?\Z|\b(?:login|user) [^\s]{1,40}\r?\n(?:\s{0,12}|[^\n]{0,60}\n)"
    r"(?:quote )?\Z",
    re.IGNORECASE,
)
_SURE_VERBS = re.compile(
    r"\b(?:is|are|was|will be|set to|changed to|reset to|ist|lautet|est|es|jest|adalah|é|és|е"
    r"|είναι|yra|është|هي|היא)\b|:|c.est"
    r"|(?<!\w)[èé](?!\w)",
    re.IGNORECASE,
)

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*\Z|[A-Z_][A-Z0-9_]*\Z")
_WORD_AND_NUMBER = re.compile(r"[a-z]{4,}_[0-9]{2,4}\Z|[a-z]{3,}(?:_[a-z]{3,}){1,3}[0-9]{3,5}\Z")
_OPTIONS = re.compile(r"(?:=[^\s,=()\"']{1,40}|:[0-9]{2,5}),\Z")
"""An option before in a list without blanks, as of `mount`: `username=ann,`."""


def _is_variable(text: str, match: re.Match[str], begin: int, value: str) -> bool:
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
