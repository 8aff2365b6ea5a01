"""E-mail addresses whose signs are spelled, escaped or interrupted, to be hidden or to be encoded.

- The '@' is a word in brackets (`ann [at] corp [dot] com`) or a word that hardly means anything
  else (`arroba`, `zavináč`, `собака`, `골뱅이`); a plain ` at ` needs a spelled dot, and a
  sign that the text speaks of an address.
- It is escaped: an entity of HTML, `\\u0040`, `%40` in a query, `\\@` in Perl and LaTeX.
- Tags, comments or characters without a width stand beside it, or blanks; or another sign stands
  for it, and the text says so (`ann★corp.jp`, `ann#corp.cn (#换成@)`).

The value is the whole of it, from the name to the last label. Every pattern is bounded, and looked
for around a literal only, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stages.signals.composed_addresses import LABEL, LETTERS, find_composed_emails
from stages.signals.literals import Literals, find_all, find_triples
from stages.signals.sample_addresses import is_sample, is_top_level

_LOCAL = rf"(?<![{LETTERS}_.@+-])[{LETTERS}][{LETTERS}_.+-]{{0,63}}"
_LONGEST_LOCAL = 64

_AT_WORDS = (
    r"(?:at(?: ?sign)?|ät|æt|et|ad|chez|bei|@|arr?oba|arrobas?e?|arobas[ee]?|zavin[áa][čc]"
    r"|ma[łl]pa|малпа|соба[чк]\w{1,2}"
    r"|chiocciola|kukac|snabel-?a|alfa-?kr[øo]ll|kr[øo]llalfa|apenstaartje|apestaart|klammeraffe"
    r"|miuku(?:mauku)?|kissanh[äa]nt[äa]|papaki|παπάκι|strudel|majmun\w?|маймунка|кльомба|равлик|afna"
    r"|a còng|שטרודל|כרוכית|آت"
    r"|アット(?:マーク)?|골뱅이)"
)
_DOT_WORDS = (
    r"(?:dot|d0t|punktum|punkt|punk|punto?|puntu|prik|ponto|point|kropka|te[čc]ka|точка|крапка|pont|piste|nokta|prick|bodka|pika"
    r"|to[čc]ka|punct|τελεία|chấm|titik|ドット|点|點|점|닷|نقطة|دوت|נקודה)"
)
_OPEN, _SHUT = r"(?:[\[({<]{1,2}|&lt;)", r"(?:[\])}>]{1,2}|&gt;)"
_SIGNS_WITHOUT_WIDTH = "\u200b-\u200f\u2060\u00ad\ufeff"
_INTERRUPTION = (
    rf"(?:</?[a-z][^<>\n]{{0,60}}>|<!--[^<>\n]{{0,60}}-->|[{_SIGNS_WITHOUT_WIDTH}]){{1,3}}"
)

_BRACKETED = rf"(?:\s|&nbsp;)?{_OPEN}\s?{_AT_WORDS}\s?{_SHUT}(?:\s|&nbsp;)?|[\[(]a[\])]"
_RARE_WORD = (
    r"[ \u00a0]{1,2}(?:arroba|arobase|zavin[áa][čc]|ma[łl]pa|собак[аи]|собачка|chiocciola|kukac"
    r"|snabel-?a|alfakr[øo]ll|krøllalfa|apenstaartje|klammeraffe|miuku|παπάκι|кльомба|שטרודל|アット(?:マーク)?"
    r"|골뱅이)[ \u00a0]{1,2}"
)
_BETWEEN_SIGNS = r"\s?(?P<sign>[*|~#_/-])at(?P=sign)\s?"
_ESCAPED = (
    r"&commat;|&#0{0,3}64;|&#x0{0,3}40;|\\{1,2}(?:u0040|x40)|%40|=40|\\@"
    r"|[\ufe6b\u24d0]|[ \u3000]?\uff20[ \u3000]?"
)
_MARK = re.compile(
    rf"(?P<bracketed>{_BRACKETED})|(?P<rare>{_RARE_WORD})|(?P<signed>{_BETWEEN_SIGNS})"
    rf"|(?P<escaped>{_ESCAPED})|(?P<broken>{_INTERRUPTION}@(?:{_INTERRUPTION})?|@{_INTERRUPTION})"
    r"|(?P<star>[\u2605\u2606\u25ce\u25cf\u25a0\u25c6\u25cb\u266a])|(?P<hash>[#\uff03*])"
    r"|(?P<loud>(?-i:\sAT\s))|(?P<bare>[ \u00a0](?:at|ät)[ \u00a0])"
    r"|(?P<spaced>[ \u00a0]@[ \u00a0])",
    re.IGNORECASE,
)
_DOT = (
    rf"(?:(?P<boxed>\s?{_OPEN}\s?(?:{_DOT_WORDS}|\.|,)\s?{_SHUT}\s?)"
    r"|(?P<signed>\s?(?P<sign>[*|~#_/-])dot(?P=sign)\s?)|(?P<escaped>&#0{0,3}46;|&#x0{0,3}2e;|&period;)"
    rf"|(?P<word>[ \u00a0]{_DOT_WORDS}[ \u00a0])|(?P<blank> \. )|(?P<plain>\.))"
)
_NEXT_LABEL = re.compile(rf"{_DOT}(?P<label>{LABEL})", re.IGNORECASE)
_FIRST_LABEL = re.compile(LABEL)
_LABEL_BETWEEN_SIGNS = re.compile(r"[A-Za-z0-9]{1,62}(?:-(?!dot-)[A-Za-z0-9]{1,62}){0,4}")
_NAME = re.compile(
    rf"{_LOCAL}(?:(?:\s?{_OPEN}\s?(?:{_DOT_WORDS}|\.)\s?{_SHUT}\s?"
    r"|[ ](?:dot|underscore|dash|hyphen|minus)[ ])"
    rf"[{LETTERS}_+-]{{1,40}}){{0,3}}\Z",
    re.IGNORECASE,
)
_NAME_BEFORE_SIGN = re.compile(r"(?<![A-Za-z0-9._+-])[A-Za-z0-9][A-Za-z0-9._+]{0,63}\Z")
_LONGEST_NAME = 100

_ASCII_LITERALS = (
    *("at)", "at]", "at}", "at>", "at&gt;", "AT)", "AT]", "At)", "At]", " AT ", "@)", "@]", "@}"),
    *("(a)", "[a]", "roba", "robas", "avina", "malpa", "chiocciola", "kukac", "nabel", "penstaart"),
    *(
        "et)",
        "majmun",
        "-at-",
        "_at_",
        "_AT_",
        "-AT-",
        "*at*",
        "|at|",
        "~at~",
        "#at#",
        "sign)",
        "ET)",
        "lammeraffe",
    ),
    *(
        "&commat;",
        "#64;",
        "#064;",
        "#x40;",
        "%40",
        "u0040",
        "\\x40",
        "=40",
        "\\@",
        " @",
        ">@",
        "@<",
        '"@">',
    ),
)
_OTHER_LITERALS = (
    *("ät)", "ät]", " ät ", "æt]", "æt)", "avináč", "małpa", "обак", "обачка", "παπάκι", "røll"),
    *(
        "кльомба",
        "שטרודל",
        "כרוכית",
        "آت",
        "còng",
        "アット",
        "골뱅이",
        "\uff20",
        "\ufe6b",
        "\u24d0",
        "\u200b@",
        "@\u200b",
        "\u2060@",
        "\u00ad@",
    ),
    *("\u2605", "\u2606", "\u25ce", "\u25cf", "\u25a0", "\u25c6", "\u25cb", "\u266a"),
)
_LITERALS = _ASCII_LITERALS + _OTHER_LITERALS
_CHOICE = Literals([literal.encode() for literal in _LITERALS])
_MARK_REACH = 66

_EXAMPLE_DOMAIN = re.compile(r"\b(?:example|domain|foo)\b", re.IGNORECASE)
_PARAMETER_BEFORE = re.compile(
    r"(?:(?:mail|login|user|account)\w{0,8}(?:=|%3D)"
    r"|[?&;](?!selm|msg|mid|uid)\w{1,20}=|mailto:)\Z",
    re.IGNORECASE,
)
_MAIL_BEFORE = re.compile(
    r"(?:mail|contact|kontakt|contato|contatt|correo|courriel|reach (?:me|us|her|him)"
    r"|writ(?:e|ing) to|send (?:\w{1,12} ){0,3}to"
    r"|(?:from|to|cc|addr\w{0,6})\s?:|\bat\b|escr[ií]b|écri|scriv|schreib|skriv|napi[sš]|pisz|íri?j"
    r"|почт|пошт|адрес|пиш|邮|郵|メール|메일|이메일|@:?)[^\n@]{0,40}\Z",
    re.IGNORECASE,
)
_MAIL_REACH = 60
_FREE_MAIL = re.compile(
    r"(?:gmail|googlemail|hotmail|outlook|yahoo|ymail|icloud|proton(?:mail)?|aol|live|gmx|web|yandex|mail|qq|163|126"
    r"|naver|daum|hanmail|comcast|btinternet|orange|wanadoo|free|libero|seznam|wp|onet|interia|zoho|fastmail|msn)\b",
    re.IGNORECASE,
)
_COMMON_WORDS = frozenset(
    (
        *("a", "and", "are", "available", "back", "based", "be", "been", "bought", "buy", "check"),
        *(
            "code",
            "else",
            "find",
            "found",
            "free",
            "good",
            "here",
            "him",
            "her",
            "hosted",
            "i",
            "is",
        ),
        *("it", "job", "live", "located", "look", "looking", "mail", "me", "meet", "more", "not"),
        *(
            "now",
            "off",
            "on",
            "one",
            "online",
            "only",
            "or",
            "order",
            "out",
            "over",
            "page",
            "read",
        ),
        *("register", "see", "sell", "shop", "site", "sold", "start", "stay", "store", "team"),
        *("that", "them", "there", "this", "time", "up", "us", "visit", "was", "we", "website"),
        *(
            "were",
            "work",
            "worked",
            "working",
            "works",
            "you",
            "email",
            "e-mail",
            "address",
            "reach",
        ),
    )
)
"""What stands before ` at ` in prose: `shop at target dot com`."""

_OFFICES = frozenset(
    (
        *("admin", "billing", "careers", "contact", "enquiries", "hello", "help", "info", "jobs"),
        *("office", "press", "privacy", "sales", "security", "support", "webmaster"),
    )
)
_SENTENCE_END = re.compile(r"[.,;!?)]?(?:\s|\Z|<)(?![a-z])")

_SAID_AFTER = re.compile(
    r"[^\n]{0,6}[（(【\[<,;、，。]?[^\n]{0,24}?[@\uff20]|[^\n]{0,40}(?:アット|半角|replace|换|換|変え|置き換え)"
)
_SAID_BEFORE = re.compile(r"[#*★☆◎●][^\n]{0,12}[@\uff20][^\n]{0,40}\Z")
_CODE_AFTER = re.compile(r"\s?[(\[={]")
_ARCHIVED = re.compile(
    rf"(?P<local>{_LOCAL}) at (?P<domain>(?:{LABEL}\.){{1,5}}[A-Za-z]{{2,12}})"
    r"(?P<after>>| wrote:| writes:| \(|$)?",
    re.MULTILINE,
)
_SIGNS_OF_ARCHIVE = (" wrote:", "rom:", "ail", "AUTHOR", "uthor")
_SENDER_BEFORE = re.compile(
    r"(?:^|\n|\W)(?:from|to|cc|e?-?mail|reply-to|contact)\s?:\s?[\"'(<]?\Z|<\Z"
    r"|(?-i:[A-ZÀ-ÞА-Я][\w.'’-]{1,20} [A-ZÀ-ÞА-Я][\w'’-]{1,20} \()\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Domain:
    """A domain: where it ends, its labels, and the first sign between two, with its sort."""

    end: int
    labels: tuple[str, ...]
    sort: str
    dot: str


def _choose_literals(text: str) -> list[str]:
    """The literals of signs that a text holds: few of them stand in it, and most in none."""
    most = len(_ASCII_LITERALS) if text.isascii() else len(_LITERALS)
    chosen = _CHOICE.choose(find_triples(text.encode("utf-8", "surrogatepass")))
    literals = [_LITERALS[number] for number in chosen if number < most]
    if "@" not in text:
        literals = [literal for literal in literals if "@" not in literal]
    return [literal for literal in literals if literal in text]


def find_obscured_emails(text: str) -> Iterator[tuple[int, int]]:
    """Places of addresses with a sign that is spelled, escaped or interrupted."""
    seen = set[int]()
    for place in (at for literal in _choose_literals(text) for at in find_all(text, literal)):
        mark = _find_mark(text, place)
        if mark is not None and mark.start() not in seen:
            seen.add(mark.start())
            span = _read_address(text, mark)
            if span is not None:
                yield span
    yield from _find_spelled_after_at(text)
    if "#" in text and ("@" in text or "\uff20" in text):
        yield from _find_replaced(text, seen)
    yield from find_composed_emails(text)
    if " at " in text:
        yield from _find_plain(text)


def _find_mark(text: str, place: int) -> re.Match[str] | None:
    """The sign that the literal at `place` belongs to."""
    first = max(0, place - _MARK_REACH if text[place : place + 2] in (">@", '"@') else place - 9)
    for mark in _MARK.finditer(text, first, place + _MARK_REACH):
        if mark.end() > place:
            return mark if mark.start() <= place + 2 else None
    return None


def _read_address(text: str, mark: re.Match[str]) -> tuple[int, int] | None:
    """The address around a sign, if it is one."""
    kind, between = mark.lastgroup or "", mark[0]
    if mark["signed"]:
        kind = "signed"
    sign = mark["sign"] if kind == "signed" and not between[:1].isspace() else None
    pattern = _NAME_BEFORE_SIGN if sign in ("-", "_") else _NAME
    name = pattern.search(text, max(0, mark.start() - _LONGEST_NAME), mark.start())
    domain = _read_domain(text, mark.end(), sign)
    if name is None or domain is None:
        return None
    local, start = name[0], name.start()
    if between == "%40":
        start += 2 * (text[start - 1 : start] == "%")  # `email%3Dann%40…`
        if not _PARAMETER_BEFORE.search(text, max(0, start - 24), start):
            return None
    if not _is_sure(text, kind, start, local, mark, domain):
        return None
    host = ".".join(domain.labels)
    if _EXAMPLE_DOMAIN.search(host) or is_sample(local, host):
        return None
    return start, domain.end


def _is_sure(
    text: str, kind: str, start: int, local: str, mark: re.Match[str], domain: _Domain
) -> bool:
    """Whether a sign of this kind means an '@' here."""
    is_spelled = domain.sort not in ("plain", "blank")
    if kind in ("rare", "star"):
        return True
    if kind == "bracketed":
        is_short = mark[0] in ("(a)", "[a]") or "et" in mark[0].lower() or "ad" in mark[0].lower()
        return not (is_short and not is_spelled and _looks_like_code(text, start, domain.end))
    if kind == "signed":
        return is_spelled or mark["sign"] in "*|~#" or mark[0][:1].isspace()
    if kind == "escaped":
        return mark[0] != "=40" or _is_mail_near(text, start)
    if kind == "broken":
        return not _looks_like_code(text, start, domain.end)
    if kind == "hash":
        return _is_said(text, start, mark, domain.end)
    if local.lower() in _COMMON_WORDS:
        return False
    if kind == "loud" and is_spelled:
        return True
    is_free = _FREE_MAIL.match(domain.labels[0]) is not None
    if kind == "spaced":
        is_named = is_free or _SENDER_BEFORE.search(text, max(0, start - 12), start) is not None
        is_named = is_named or (_is_mail_near(text, start) and not local.isalpha())
        return (is_named or is_spelled) and not _looks_like_code(text, start, domain.end)
    if not is_spelled:
        is_person = is_free and not local.isalpha()
        return is_person or ("ät" in mark[0] and _is_mail_near(text, start))
    if domain.sort == "word" and domain.dot not in ("dot", "punkt"):
        return False  # "at any point in"
    is_alone = start == 0 or text[start - 1] == "\n"
    is_office = local.lower() in _OFFICES and _SENTENCE_END.match(text, domain.end) is not None
    return is_free or is_alone or is_office or not local.isalpha() or _is_mail_near(text, start)


def _is_said(text: str, start: int, mark: re.Match[str], end: int) -> bool:
    """Whether the text says that a sign stands for an '@'."""
    after = text[end : end + 60]
    if mark[0] in after and _SAID_AFTER.match(after):
        return True
    return _SAID_BEFORE.search(text, max(0, start - 60), start) is not None


def _is_mail_near(text: str, start: int) -> bool:
    """Whether the line up to `start` speaks of mail."""
    return _MAIL_BEFORE.search(text, max(0, start - _MAIL_REACH), start) is not None


def _looks_like_code(text: str, start: int, end: int) -> bool:
    """Whether a call, an index or an assignment is around what has the form of an address."""
    line = text[text.rfind("\n", max(0, start - _MAIL_REACH), start) + 1 : start][-_MAIL_REACH:]
    if _CODE_AFTER.match(text, end) or line.rstrip().endswith(("=", "def", "return", "(", "[")):
        return True
    return text[start - 1 : start] not in ("", "\n") and not _is_mail_near(text, start)


def _read_domain(text: str, start: int, sign: str | None = None) -> _Domain | None:
    """The domain at `start`, up to the last label that may end one.

    Its signs are of one sort, or plain dots; with `sign`, the signs around ` at `, all are.
    """
    first = (_LABEL_BETWEEN_SIGNS if sign == "-" else _FIRST_LABEL).match(text, start)
    if first is None:
        return None
    labels, sort, dot, domain, end = [first[0]], "", "", None, first.end()
    for _ in range(5):
        following = _NEXT_LABEL.match(text, end)
        if following is None:
            break
        kind = next(
            name
            for name in ("boxed", "signed", "escaped", "word", "blank", "plain")
            if following[name]
        )
        if sort and kind not in (sort, "plain"):
            break
        if sort == "plain" and kind != "plain":
            break
        label, end = following["label"], following.end()
        if sign == "-" and kind == "signed":
            cut = label.find("-dot-")
            label, end = (label[:cut], end - len(label) + cut) if cut > 0 else (label, end)
        sort, dot = sort or kind, dot or following[kind].strip().lower()
        labels.append(label)
        if is_top_level(label.lower()):
            domain = _Domain(end, tuple(labels), sort, dot)
    return domain


def _find_spelled_after_at(text: str) -> Iterator[tuple[int, int]]:
    """Addresses whose dots alone are spelled: `ann@corp[dot]com`."""
    for place in find_all(text, "@"):
        domain = _read_domain(text, place + 1)
        if domain is not None and domain.sort in ("boxed", "word", "escaped"):
            name = _NAME.search(text, max(0, place - _LONGEST_LOCAL), place)
            host = ".".join(domain.labels)
            if name is not None and not is_sample(name[0], host):
                yield name.start(), domain.end


def _find_replaced(text: str, seen: set[int]) -> Iterator[tuple[int, int]]:
    """Addresses with another sign, where the text says which: `ann#corp.cn (#换成@)`."""
    for place in find_all(text, "#"):
        if text[place - 1 : place].isspace():  # A comment.
            continue
        mark = _MARK.match(text, place)
        if mark is not None and mark["hash"] and place not in seen:
            span = _read_address(text, mark)
            if span is not None:
                yield span


def _find_plain(text: str) -> Iterator[tuple[int, int]]:
    """Addresses with a plain ` at `, as archives of lists write senders, or with a spelled dot."""
    is_archive = any(sign in text for sign in _SIGNS_OF_ARCHIVE)
    is_spelled = any(f" {word} " in text for word in ("dot", "DOT", "Dot", "punkt", "point"))
    if not is_archive and not is_spelled and "(" not in text:
        return
    for place in find_all(text, " at "):
        mark = _MARK.match(text, place)
        span = _read_address(text, mark) if is_spelled and mark else None
        if span is not None:
            yield span
            continue
        local = _NAME.search(text, max(0, place - _LONGEST_LOCAL), place)
        match = _ARCHIVED.match(text, local.start()) if local else None
        if match is None or match.end("local") != place:
            continue
        host = match["domain"]
        if not is_top_level(host.rpartition(".")[2].lower()) or _EXAMPLE_DOMAIN.search(host):
            continue
        is_sender = _SENDER_BEFORE.search(text, max(0, match.start() - 48), match.start())
        is_person = _FREE_MAIL.match(host) is not None and not match["local"].isalpha()
        if is_sender or is_person or match["after"] in (" wrote:", " writes:"):
            yield match.start(), match.end("domain")
