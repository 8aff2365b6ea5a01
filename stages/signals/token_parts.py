"""Tokens whose parts stand apart: in two variables, two messages of a chat, two cells.

    part1 = "hf_48jphlY1nk82m5Vo"            [05:17] Ann: first half npm_YubGcBz2MrggEOX
    part2 = "aY6xTRoVDWdW0z2nAn"             [05:18] Ann: second half XnpsPS1kczATy4T0sNzZQ

The first part begins as a token of a known form and is too short for one. Runs of letters and
digits that follow within a few lines are joined to it; the whole must have the form, and something
must say that they belong together: the length that the form wants to the character, lines that
begin alike but for a word, or nothing but quotes between. Parts that a program or a mail joins by
the end of a line are in `broken_tokens.py`. Time is linear in the text: what is looked at has a
bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.outputs import Span
from stages.signals.secret_kinds import SecretKind, is_json_object, make_tag
from stages.signals.secret_values import is_placeholder, is_random

_CHARACTER = r"(?:[A-Za-z0-9_~-]|%(?:2[BFbf]|3[Dd]))"
_PART = re.compile(
    r"(?:[%&\\](?:(?<=%)(?:0[AD]|20)|(?<=\\)(?:[nrtz-]|u200[bd])|(?<=&)#?\w{2,12};))*+"
    rf"(?P<part>(?:(?<=[\"'`])\.)?{_CHARACTER}(?:{_CHARACTER}|\.){{7,}}=?)"
)
_NAMES = re.compile(r"[\"']?\s?(?:[:=(]|<-)")
"""What follows a name: no part of a token."""

_BEGIN = re.compile(rf"{_CHARACTER}+(?:[.:]{_CHARACTER}+)*(?:\.(?=[\"'`]))?")
_WEB_BEGIN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){0,2}(?:\.(?!\.))?")
_TOKEN_LIKE = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_FEWEST, _FEWEST_OF_PART, _MOST_PARTS = 12, 8, 4
"""Characters of the first part and of others, and parts of a token."""

_REACH, _MOST_LINES = 400, 3
"""Characters and ends of lines between two parts."""

_LONGEST_PART = 1200
_FEWEST_BITS = 280
"""Hundredths of a bit a character of a whole token: hexadecimal digits have up to 400."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}")
_NOTHING = re.compile(
    r"(?:\\[nrtz-]|\\u200[bd]|%0[AD]|%20|</?\w[^<>\n]{0,60}>|&#?\w{2,12};|\([a-z ]{0,24}\)"
    r"|(?<=[\"' (+])[fbrLuN](?=[\"'])|(?<=[\"'])(?:s|sv|_s)\b|[^\w<:=/()|\t]|<(?!\w)"
    r"|\|\||\|[ \t]*\n[ \t]*(?:\|(?:[ \t]*(?:\([a-z ]{1,24}\)[ \t]*)?\|)?)?|(?<=[\"'])\)"
    r"|\((?=[@L]?[\"'])|(?<=\n)[ \t]{0,20}/[/*]{1,2}"
    r"|(?<![^\W_])[A-Za-z_][\w.]{0,40}"
    r"(?:(?:\(|::?)(?=\s{0,20}(?:\w{1,16}, ?)?[@L]?[\"'])(?:\s{0,20}\w{1,16},)?|\(\)(?= ?[+&.]))"
    r"){1,80}+"
)
"""What may stand between parts that follow each other at once: signs, tags, the name of a call."""

_PARTS = """
    part half piece chunk rest remainder parte mitad metà metade resto partie moitié reste
    teil hälfte deel helft halvan delen del halvdel halvdelen osa loput puolisko część
    połowa reszta část polovina zbytek časť zvyšok fele rész része jumătate restul polovica
    част половина часть частина решта остаток остальное продолжение μέρος μισό kısmı kısım
    yarısı bölüm parça devamı phần nửa bagian separuh sisanya bahagi kalahati sehemu nusu
    bahagian pool daļa dalis puse dio pola
"""
_ENDS = "ends with|ends in|endet mit|termina en|termina con|finit par|followed by"
_PART_WORD = re.compile(
    rf"\b(?:{'|'.join(_PARTS.split())}|{_ENDS})\b"
    r"|חלק|חצי|سوم|جزء|نصف|نیمه|بخش|باقي|भाग|हिस्सा|आधा|অংশ|ส่วน|ครึ่ง|பகுதி|半|部分|続き|残り|剩下|余下|부분|나머지|절반",
    re.IGNORECASE,
)
"""Words for a part of a token, or its rest."""

_REST = re.compile(
    r"\b(?:then|and|plus|dann|danach|luego|poi|puis|daarna|sedan|deretter|sitten|potem|potom)\b"
    r"|потом|затем|потім|接着|次に|[和與与]|그리고",
    re.IGNORECASE,
)
_LONGEST_REMARK = 60
"""Words before the second of two parts, and characters between them at most."""

_FRAME_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
_WORD = re.compile(r"[^\W_]")
_CLAUSE = re.compile(r"[,;{、，،]")
_LONGEST_FRAME, _MOST_OF_FRAME, _FEWEST_OF_FRAME = 80, 8, 4
"""Characters, words and signs before a part that are compared; so many, and one may be added."""

_LONGEST_NUMBER = 3
_COUNTING_WORDS = """
    second third last tail end ends right back bottom two three zweite zweiter zweites
    hinten ende zwei deuxième seconde fin deux segunda segundo final dos dois seconda
    secondo fine due tweede andra andre anden andet toinen druga drugi drugie druhá druhý
    druhé második doua втора второй вторая второе друга друге δεύτερο ikinci kedua sau 后半 後半
    後 后 둘째 뒤 ثاني الثاني दूसरा beta lower foot
"""
_COUNTING = frozenset(_COUNTING_WORDS.split())
"""Words for the second of two parts, and characters of a letter or number that counts them."""

_MASK = re.compile(r"\*{3}|\*\*(?!\w)|[•●█]|x{3}|\u2026(?!\s*\u2026)|\.{3}(?!\s*\.{3})|\[")
"""What hides the rest of a token."""

_LENGTHS = {"glpat-": (26,), **{f"{sort}_live_": (32, 107) for sort in ("sk", "rk")}}
_AFTER_ACCOUNT = 35
"""Usual characters of tokens that may have others, and of those of Telegram after the account."""

_SIGNATURES = frozenset((43, 64, 86, 88, 128, 171, 342, 512, 683))
"""Characters of the last part of a JSON web token: of 32, 48, 64, 66, 96, 128, 256, 384 and 512
bytes in base64 (RFC 7518, 3.1)."""


def may_go_on(text: str, sort: SecretKind, start: int, end: int) -> bool:
    """Whether the token [start, end), which has the form of its kind, is only the beginning of one.

    The last part of a JSON web token may have any length from 20 on, and hardly any is used; keys
    of Anthropic end with zeros; after others a word must say that a part follows.
    """
    token = text[start:end]
    if sort.literal == "eyJ":
        return len(token.rpartition(".")[2]) not in _SIGNATURES
    if sort.label == "anthropic_key" and not token.endswith("AA"):
        return True
    return _PART_WORD.search(text, end, end + _LONGEST_REMARK) is not None


def find_parts(text: str, sort: SecretKind, start: int) -> Iterator[Span]:
    """The parts of a token that begins at `start`, where the literal of its kind is.

    Nothing where no further part completes what stands there.
    """
    literal = sort.begins or sort.literal
    shape = _WEB_BEGIN if literal == "eyJ" else _BEGIN
    begin = shape.match(text, start, start + _LONGEST_PART)
    if begin is None or len(begin[0]) < _FEWEST or _MASK.match(text, begin.end()):
        return
    joined, parts = begin[0], [(start, begin.end())]
    if joined.endswith("-") and text.startswith(("\n", "\r\n"), begin.end()):
        joined, parts = joined[:-1], [(start, begin.end() - 1)]  # A hyphen of typesetting.
    for _ in range(_MOST_PARTS - 1):
        part = _next_part(text, parts[-1][1])
        if part is None or (text.startswith(literal, part[0]) and joined[-1] != "."):
            return  # The next one begins anew.
        joined += text[slice(*part)]
        parts.append(part)
        if _is_whole(sort, joined) and (
            _has_exact_length(sort, joined) or _belong_together(text, parts)
        ):
            for place in parts:
                yield Span(*place, sort.label, make_tag(sort.label))
            return


def _next_part(text: str, end: int) -> tuple[int, int] | None:
    """The place of the next run of characters that may be a part of a token."""
    stop = min(len(text), end + _REACH)
    for _ in range(_MOST_LINES + 1):
        feed = text.find("\n", end, stop)
        line_end = feed if feed >= 0 else stop
        for run in _PART.finditer(text, end, min(len(text), line_end + _LONGEST_PART)):
            if run.start() >= line_end:
                break
            part = run["part"].rstrip(".")
            start = run.start("part")
            if (
                len(part) >= _FEWEST_OF_PART
                and _TOKEN_LIKE.search(part)
                and not _TIME.match(part)
                and not _NAMES.match(text, run.end())
            ):
                return start, start + len(part)
        if feed < 0:
            return None
        end = feed + 1
    return None


def _is_whole(sort: SecretKind, joined: str) -> bool:
    """Whether parts have the form of a kind together."""
    match = sort.shape.fullmatch(joined)
    if match is None or not sort.check(joined) or is_placeholder(joined):
        return False
    return is_random(joined[len(sort.literal) :], _FEWEST_BITS)


def _has_exact_length(sort: SecretKind, joined: str) -> bool:
    """Whether a token has one length and this is it; of a JSON web token, whether its parts fit."""
    if sort.label == "telegram_token":
        return len(joined.rpartition(":")[2]) == _AFTER_ACCOUNT
    if sort.literal != "eyJ":
        others = joined[:-1], joined + joined[-1]
        lengths = _LENGTHS.get(sort.literal, ())
        return len(joined) in lengths or not any(map(sort.shape.fullmatch, others))
    _, payload, signature = joined.split(".")
    return len(signature) in _SIGNATURES and is_json_object(payload)


def _belong_together(text: str, parts: list[tuple[int, int]]) -> bool:
    """Whether nothing but signs stands between parts, or nearly the same before each.

    What stands before a part in its line, behind the part before, may differ in numbers and in one
    word.
    """
    before = [0, *(end for _, end in parts)]
    frames = [_frame(text, end, start) for end, (start, _) in zip(before, parts, strict=False)]
    for place in range(len(parts) - 1):
        end, start = parts[place][1], parts[place + 1][0]
        if _NOTHING.fullmatch(text, end, start):
            continue
        if start - end <= _LONGEST_REMARK and (
            _PART_WORD.search(text, end, start) or _REST.search(text, end, start)
        ):
            continue
        one, two = frames[place], frames[place + 1]
        pairs = [(one, two)]
        if min(len(one), len(two)) >= _FEWEST_OF_FRAME:
            pairs += [(one[:-1], two), (one, two[:-1])]
        if not any(_are_alike(*pair) for pair in pairs):
            return False
    return True


def _are_alike(one: list[str], two: list[str]) -> bool:
    """Whether the last words and signs of two lines are the same but for one that counts."""
    shared = min(len(one), len(two))
    if not shared:
        return not one and not two
    if not any(word.isalnum() for word in one[-shared:]):
        return False
    pairs = [pair for pair in zip(one[-shared:], two[-shared:], strict=True) if pair[0] != pair[1]]
    return not pairs or (len(pairs) == 1 and _count_on(*pairs[0]))


def _count_on(one: str, two: str) -> bool:
    """Whether two words number two parts: `a` and `b`, `first` and `second`, `KeyA` and `KeyB`."""
    if max(len(one), len(two)) <= _LONGEST_NUMBER or two in _COUNTING:
        return one.isalnum() and two.isalnum()
    return len(one) == len(two) and one[:-1] == two[:-1]


def _frame(text: str, end: int, start: int) -> list[str]:
    """The last words and signs in the line before a part, behind `end`; numbers are all alike."""
    first = max(end, text.rfind("\n", 0, start) + 1, start - _LONGEST_FRAME)
    line = text[first:start].lower().lstrip("\"'`")
    clause = _CLAUSE.split(line)[-1]
    words = _FRAME_WORD.findall(clause if _WORD.search(clause) else line)[-_MOST_OF_FRAME:]
    return ["0" if word.isdecimal() else word for word in words]
