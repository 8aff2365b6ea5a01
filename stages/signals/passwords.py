"""Passwords that only their place tells: beside their name, in addresses, in commands.

A name (`password`, `DB_PASS`, `Passwort`, `contraseña`, `密码`) is joined to its value in one of
the ways of `named_values.py`; the value must have a letter and a digit (`Password: winter79!`), as
people choose them, or be mixed as a generator makes it. Words alone and numbers alone are not
searched. Where nothing but a blank joins them, the value must stand out of prose by itself. The
password of `scheme://user:password@host` may be any that is no placeholder. Time is linear in the
text: what is matched has a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stages.signals.named_values import (
    ARGUMENT,
    ASSIGNS,
    BLOCK,
    CELL,
    FALLBACK,
    FIELD,
    OPEN,
    QUOTED,
    TAG_END,
    VERB,
)
from stages.signals.outputs import Span
from stages.signals.secret_values import (
    is_password,
    is_placeholder,
    is_strong_password,
    says_password,
)

# The part between "://" and "@" of an address with a password.
_LOGIN = re.compile(
    r"://(?P<user>[^\s:/?#@\"'<>\[\]{}$]{0,64}):(?P<password>[^\s/?#\"'<>{}]{3,64})@(?P<host>\[?[A-Za-z0-9.:_-]{2,100})"
)
_EXAMPLE_HOSTS = re.compile(r"example\.|domain\b|(?:db|your)host|your[_-]")
_ANY_HOST = re.compile(
    r"(?:localhost|127\.[0-9.]+|host(?:name)?[0-9]*|server)(?:\Z|[.:/])|.*\.example\b"
)
"""Hosts of examples and of development alike: a password there must look like one."""

_LETTER_AND_DIGIT = re.compile(r"(?=.*[A-Za-z]).*[0-9]")


def find_url_passwords(text: str) -> Iterator[Span]:
    """The password of each `scheme://user:password@host`."""
    if "@" not in text or "://" not in text:
        return
    for match in _LOGIN.finditer(text):
        password, host = match["password"], match["host"].lower()
        if _EXAMPLE_HOSTS.match(host) or is_placeholder(password) or password[0] == "$":
            continue
        if says_password(password) or password in (match["user"], "x-oauth-basic"):
            continue
        if _ANY_HOST.match(host) and not (
            _LETTER_AND_DIGIT.match(password) or is_password(password)
        ):
            continue
        yield Span(*match.span("password"), "url_password", "<secret:url_password>")


_ENGLISH = (
    r"(?<=require)pass|(?<=ssh)pass(?=\s+-p)|passw(?:or)?ds?|passwo?rt|pass-?(?:phrase|code|key)s?"
    r"|passwrd|pwd|pword|(?<![a-z])psk(?![a-z])"
    r"|(?<![a-z])psw(?![a-z])|(?<![a-z])pw(?![a-z])|(?<![a-z])mdp(?![a-z])"
)
_FOREIGN = (
    r"passord(?:et)?|nnwort|htwoord|contrase(?:ñ|n|&ntilde;)as?"
    r"|senhas?|парол[ьяеюи]\w{0,2}|密码|密碼|口令|パスワード|暗証番号|has[łl]o|hesl[oa]|jelsz[óo]\w{0,3}"
    r"|l[öo]senord(?:et)?|adgangskoden?|salasan[aä]\w{0,2}|κωδικ[όο]ς?(?: πρόσβασης)?"
    r"|[şs]ifre(?:si|m|niz)?"
    r"|parol[aăe]|كلمة (?:المرور|السر)|סיסמ(?:ה|א|ת)\w{0,3}|비밀번호[는은]?|비번|암호[는은]?"
    r"|mật khẩu|รหัสผ่าน|(?:kata )?sandi(?:nya)?|पासवर्ड|lozink[ae]|лозинка\w?|(?<![a-z])clave"
    r"|gjalda?|(?<=palavra-)passe|(?<=mot de )passe"
)
_SHORT = "(?:(?<![A-Za-z])|{})passe?(?![a-z])|(?-i:(?<=[a-z])Pass(?![a-z]))".format(
    "|".join(
        f"(?<={word})"
        for word in ["user", "db", "root", "admin", "mail", "smtp", "ftp", "sql", "my"]
    )
)
_HINTS = ("pass", "pw", "psk", "htwoord")
"""Parts of the names of passwords, in small letters: what is searched first."""

_FOREIGN_HINTS = (
    *(
        ("é", "mdp"),
        ("ü", "nnwort"),
        ("ñ", "contrase"),
        ("ó", "clave"),
        ("ã", "senha"),
        ("è", "parol"),
    ),
    *(
        ("ě", "heslo"),
        ("ł", "hasł"),
        ("ł", "haslo"),
        ("ş", "şifre"),
        ("ş", "sifre"),
        ("ø", "adgangsk"),
    ),
    *(("ä", "salasan"), ("ö", "lösenord"), ("ó", "jelsz"), ("п", "парол"), ("л", "лозинк")),
    *(("密", "密码"), ("密", "密碼"), ("口", "口令"), ("パ", "パスワード"), ("暗", "暗証番号")),
    *(
        ("비", "비밀번호"),
        ("비", "비번"),
        ("암", "암호"),
        ("κ", "κωδικ"),
        ("ك", "كلمة"),
        ("ס", "סיסמ"),
    ),
    *(("ậ", "mật khẩu"), ("ร", "รหัสผ่าน"), ("प", "पासवर्ड"), ("ă", "parol"), ("\0", "sandi")),
)
"""Those of other languages, and a character that a longer text of the language has."""

_ASCII_HINTS = (*_HINTS, *dict.fromkeys(hint for _, hint in _FOREIGN_HINTS if hint.isascii()))
_SHORT_TEXT = 1000
"""Characters of a text in which all are searched."""

_VALUE = rf"{OPEN}(?:[\w.@+-]{{2,40}} ?/ )?(?:{QUOTED}|(?P<bare>[^\s\"'`<>]{{6,200}}))"
_NAMED_PASSWORD = re.compile(
    rf"(?:(?P<name>{_ENGLISH})|(?P<foreign>{_FOREIGN})|(?P<short>{_SHORT}))(?P<tail>[\w-]{{0,24}}?)"
    rf"(?:(?P<firm>{FALLBACK}|{ASSIGNS}|{ARGUMENT}|{BLOCK}|{FIELD}|{TAG_END}|{CELL})"
    rf"|(?P<verb>{VERB})"
    r"|(?P<plain>\s+-p\s?|[ \u00a0\t]{1,2}\(?))"
    rf"{_VALUE}",
    re.IGNORECASE,
)
_OTHER_TAIL = re.compile(
    r"hash|digest|file|path|len|min|max|polic|field|reset|url|uri|prompt|label|hint|type|age\b"
    r"|expir"
    r"|chang|updat|creat|count|attempt|_?id\b|name|mode|histor|encod|strength|score|regex|pattern"
    r"|valid|input|column|salt|algorithm|crypt|auth(?:entication)?\b|manager|mgr|param|rule"
    r"|require",
    re.IGNORECASE,
)
_ABOUT_PASSWORDS = re.compile(
    r"polic|length|strength|hint|rule|hash|manager|list|complex", re.IGNORECASE
)
_HASHED_BEFORE = re.compile(
    r"(?:hash(?:ed)?|encrypt(?:ed)?|crypt(?:ed)?|digest|(?<![A-Za-z])(?:get|is|has|no))[_.-]?\Z",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"[,;\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]|&\w+=|(?:\*\*|__)(?=[.,;:)]{0,2}\Z)"
    r"|&quot;|&#(?:x27|39|34);|&[lg]t;|\\[nrt\"']|/>|\)[.,;]?\Z|\Z"
)
_USER_BEFORE = re.compile(r"\b(?:user(?:name)?|login)\b[^\n]{1,44}\Z", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*\Z|[A-Z_][A-Z0-9_]*\Z")
_ENGLISH_VERBS = re.compile(
    r"\b(?:is|are|was|will be|set to|changed to|reset to)\b|:|c.est", re.IGNORECASE
)
_SIGN = re.compile(r"[=:>-]")


def find_named_passwords(text: str) -> Iterator[Span]:
    """Values that look like passwords, joined to `password`, `PWD`, `Passwort` and the like."""
    lowered = text.lower()
    if len(lowered) != len(text):  # A capital that has no small letter of one character.
        lowered = text
    for hint in _choose_hints(lowered):
        place = lowered.find(hint)
        while place >= 0:
            match = _NAMED_PASSWORD.match(text, place)
            if match is not None:
                yield from _read_password(text, match)
            elif lowered.startswith("chpasswd", place - 2):
                yield from _find_piped(text, place)
            if hint == "pass":
                yield from _find_before_name(text, place)
            place = lowered.find(hint, place + 1)
    yield from _find_in_commands(text, lowered)


def _choose_hints(lowered: str) -> Sequence[str]:
    """The parts of names that a text may have, by its length and letters."""
    is_short = len(lowered) <= _SHORT_TEXT
    if lowered.isascii():
        return _ASCII_HINTS if is_short else _HINTS
    return [*_HINTS, *(hint for letter, hint in _FOREIGN_HINTS if is_short or letter in lowered)]


def _read_password(text: str, match: re.Match[str]) -> Iterator[Span]:
    """The value of a match, if the name is one of a password and the value looks like it."""
    start = match.start()
    if _OTHER_TAIL.search(match["tail"]) or _HASHED_BEFORE.search(text[max(0, start - 12) : start]):
        return
    if _ABOUT_PASSWORDS.search(match["verb"] or ""):
        return
    if match["short"] and not _may_be_short(text, match):
        return
    group = "quoted" if match["quoted"] is not None else "bare"
    value = match[group]
    if group == "bare":
        value = _cut_bare(value)
        if match["firm"] and _is_variable(text, match, value):
            return
    if _is_accepted(text, match, value):
        begin = match.start(group)
        yield Span(begin, begin + len(value), "password", "<secret:password>")


def _is_accepted(text: str, match: re.Match[str], value: str) -> bool:
    """Whether the value looks like a password, the more so the less joins it to its name."""
    if match["plain"] is not None:
        is_sure = (
            match["quoted"] is not None
            or "-p" in match["plain"]
            or text.startswith("--", max(0, match.start() - 2))
        )
    elif match["verb"] is not None:
        is_sure = not match["name"] or _ENGLISH_VERBS.search(match["verb"]) is not None
    else:
        is_sure = _SIGN.search(match["firm"]) is not None or _is_no_name(value)
    return is_password(value) if is_sure else is_strong_password(value)


def _is_no_name(value: str) -> bool:
    """Whether a value without a sign before it has more than the one digit of `urllib2`."""
    return sum(c.isdigit() for c in value) > 1 or is_strong_password(value)


def _may_be_short(text: str, match: re.Match[str]) -> bool:
    """Whether `pass` is the name of a password: not a verb, not the result of a test."""
    if match["plain"]:
        return _USER_BEFORE.search(text, max(0, match.start() - 60), match.start()) is not None
    return not match[0].startswith("PASS:") and " " not in (match["verb"] or "").strip()


def _cut_bare(value: str) -> str:
    """A value without quotes up to where the next field, markup or the sentence goes on."""
    cut = _CUT.search(value, 1)
    return (value[: cut.start()] if cut else value).rstrip(".:)]}\\")


def _is_variable(text: str, match: re.Match[str], value: str) -> bool:
    """Whether a value without quotes is a name of a program: `password = pw1`, `f(password=p1)`.

    A name with two digits at the end of a line that begins with the password's is a value of an
    INI file.
    """
    sign = match["firm"].strip(" \t\n\"'])}")
    if not _IDENTIFIER.match(value) or sign not in ("=", ":="):
        return False
    after = text[match.start("bare") + len(value) :][:1]
    if after in (",", ")"):
        return True
    if " " not in match["firm"].lstrip("\"'])} ") and not match["firm"].startswith(" "):
        return False
    return sum(c.isdigit() for c in value) < 2 or after not in ("", "\n", "\r") or "_" in value


_WHO = r"[^\s:\"'`/|]{1,40}"
_SURE = r"[\"']?(?P<sure>[^\s\"'`<>|]{6,64})"
_PAIR = rf"\s{{0,2}}[=:(]\s{{0,2}}[(\[]?\s{{0,2}}[\"'][^\s\"']{{1,64}}[\"'],\s{{0,3}}{_SURE}"
_STATED = (
    rf"\w{{0,8}}(?:\s?[:=]|\s(?:is|are|ist|sind))?\s{{1,2}}{_WHO}\s?[/|:]\s?"
    r"(?P<loose>[^\s\"'`<>|]{8,64})"
)
_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (hint, re.compile(shape, re.IGNORECASE))
    for hint, shape in (
        ("curl", rf"curl\s[^\n|;]{{0,80}}?(?:-u|--user)[ =]?[\"']?{_WHO}:{_SURE}"),
        ("mysql", rf"mysql\w*\s[^\n|;]{{0,80}}?\s-p{_SURE}"),
        (
            "net use",
            r"net user? [^\s]{1,80}(?: \\\\[^\s]{1,80})? (?P<loose>[^\s\"'`<>|/]{8,64})",
        ),
        ("identified", rf"identified (?:with \w+ )?by (?:password )?{_SURE}"),
        ("securestring", rf"securestring (?:-String )?{_SURE}"),
        ("login", rf"login(?:{_PAIR}|{_STATED})"),
        ("auth", rf"auth\w{{0,20}}{_PAIR}"),
        ("cred", rf"cred(?:entials?\w{{0,20}}{_PAIR}|{_STATED})"),
    )
)
"""What the search looks for first, and the command or call with the password."""

_PIPED = re.compile(
    r"(?:echo|printf) (?:-\w )?[\"']?(?:[\w.-]{1,32}:)?(?P<piped>[^\s\"'|]{6,64})[\"']?"
    r"\s{0,2}\|\s{0,2}(?:sudo )?"
    r"(?:ch)?\Z"
)
_BEFORE_NAME = re.compile(
    r"(?P<value>[^\s\"'`(]{8,64})[\"'`)]?,? (?:as|is|was|ist|est|es|é|è) (?:the|my|your|our|a|das"
    r"|dein|mein"
    r"|ihr|le|la|el|mi|tu|su|o|sua|il) (?:\w{1,12} ){0,2}\Z",
    re.IGNORECASE,
)


def _find_in_commands(text: str, lowered: str) -> Iterator[Span]:
    """Passwords of commands and calls without a name: `curl -u ann:…`, `auth=("ann", "…")`."""
    for hint, shape in _COMMANDS:
        place = lowered.find(hint)
        while place >= 0:
            match = shape.match(text, place)
            if match is not None:
                group = match.lastgroup or "sure"
                value = _cut_bare(match[group])
                if is_password(value) and (group == "sure" or is_strong_password(value)):
                    begin = match.start(group)
                    yield Span(begin, begin + len(value), "password", "<secret:password>")
            place = lowered.find(hint, place + 1)


def _find_piped(text: str, place: int) -> Iterator[Span]:
    """The password in `echo "ann:…" | chpasswd`."""
    piped = _PIPED.search(text, max(0, place - 120), place)
    if piped is not None and is_password(piped["piped"]):
        yield Span(*piped.span("piped"), "password", "<secret:password>")


def _find_before_name(text: str, place: int) -> Iterator[Span]:
    """The password in `use … as the password`."""
    if text[place - 1 : place] != " ":
        return
    match = _BEFORE_NAME.search(text, max(0, place - 120), place)
    if match is not None and is_strong_password(match["value"]):
        yield Span(*match.span("value"), "password", "<secret:password>")
