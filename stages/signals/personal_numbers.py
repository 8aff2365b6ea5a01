"""Phone, bank account (IBAN) and payment card numbers in a run of digits.

A run of digits is a phone number, by the numbering plans that libphonenumber knows, if it is one of
four things:

- international (`+49 30 1234567`, `0049 30 1234567`) and valid in its country;
- after or before a word that names one (`Tel.:`, `Fax`, `call me at`, `mobile`; many languages):
  seven to fifteen digits; the plan is not checked, since the country is unknown;
- valid in one of the configured countries, in groups, and shortly after a word about calling or
  writing to somebody;
- valid in one of the configured countries and written as that country writes it: an area code in
  brackets or with a leading 0, or the groups of North America: `(212) 736-5000`, `020 7946 1234`,
  `01 84 17 61 18`.

A number that a word before it names otherwise (ISBN, order, invoice), a date and a part of a longer
number are none.

An IBAN has the length and the shape of its country and the remainder 1 modulo 97 (ISO 13616, ISO
7064 MOD 97-10): a made-up number passes once in 97 times, if country, length and shape fit. The
registry, MOD 97-10 and Luhn's sum are python-stdnum's; what tells a number from its context is
ours. A card number has a
length and first digits that a network issues (ISO/IEC 7812) and Luhn's sum, which one in ten
passes; a number that is not written in the groups of a card needs a word about cards near it. Time
is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from stdnum import iban, luhn, numdb

LOOK_BACK = 48
"""Characters before a number in which a word may name it."""

_NAMES = (
    r"(?:t[eé]l[eé])?phone|t[eé]l[eé]?f(?:on|ono|one|oon|ax)?\w{0,6}|tel|tél|puh|fon|fax|telefax"
    r"|facsimile|mobile?|mobil\w{0,8}|cell(?:ular|phone)?|celular|handy\w{0,8}|whats ?app|hotline"
    r"|helpline|sms|gsm|call|dial|ring|desk|pager|toll[ -]free|durchwahl|rufnummer|portable|móvil"
    r"|land ?line|switchboard|not(?:fall|ruf)nummer|festnetz\w{0,8}|cellphone|direct line"
    r"|telemóvel|тел\w{0,6}|факс|моб\w{0,6}|τηλ\w{0,6}|هاتف|جوال|فاكس|تلفون|फ़ोन|फोन|दूरभाष|मोबाइल"
    r"|ফোন|মোবাইল"
)
# In scripts without spaces.
_NAMES_WITHIN = (
    r"電話(?:番号)?|电话|手机|手機|传真|傳真|携帯|行動|熱線|热线|전화|핸드폰|โทร(?:ศัพท์)?"
)
_NAME_SEPARATORS = r"[\s.,:;=()\[\]#*|•/\u2013\uff08\uff09\uff0f\uff1a-]"
_SET_OFF = r"`|</?(?:b|strong|i|em|code|td|span)>"
"""Markup between a name and its number."""

NAMED_BEFORE = re.compile(
    rf"(?:(?<![^\W_])(?:{_NAMES})|{_NAMES_WITHIN})"
    r"(?:[ .]{0,2}(?:number|num|no|nr|n°|nº|№|us|me|him|her|them|now|on|at|is|to|free|today|office"
    rf"|home|work|line)\b\.?){{0,3}}(?:{_NAME_SEPARATORS}|{_SET_OFF}){{0,6}}\Z",
    re.IGNORECASE,
)
"""A word right before a number that names it: `Tel.:`, `call me at`, `電話番号`."""

NAMED_AFTER = re.compile(r"[ ,]{0,2}[ -]?\(?(?:office|fax|mobile|cell|phone|tel)\b", re.IGNORECASE)
LETTERED_BEFORE = re.compile(r"(?:^|[\n|•·])\s{0,4}(?:[TFPM]|Ph)[.:]?\s{1,2}\Z")
"""A letter that names it: `T 030 …` at the beginning of a line."""

TALK_BEFORE = re.compile(
    r"(?<![<\w])(?:(?:call|phon|dial|ring|text)(?:s|e|ed|ing)?\b|contact|reach|answer|messag|appel"
    r"|joindre|anruf|erreich|llam|chiam|ligue\b|ruf(?:en?|t)? (?:mich|uns|sie|ihn)\b|emergenc"
    r"|(?:customer|client|guest|technical|after[- ]sales) (?:service|support|care)|enquir|inquir"
    r"|reservation|booking|appointment|reception|front desk|voice ?mail|answering|speak|talk to"
    r"|get (?:in touch|hold of)|available|support line|info(?:rmation)? line|box office|bestell"
    r"|kontakt|auskunft|anmeld|zentrale|praxis|termin|renseignement|réserv|accueil|reserva|informes"
    r"|atención|prenota|contatt|afspraak|bereik|atendimento|reserve"
    r"|(?:my|our|his|her|their|your) (?:\w+ ){0,2}numbers?\b)[^0-9<>@]{0,40}\Z",
    re.IGNORECASE,
)
"""A word of calling or writing to somebody, and nothing between that may be redacted: so that a
redacted text says as much of a number as the text did. Tags such as `<PHONE>` are no words."""

OTHER_BEFORE = re.compile(
    r"(?<![^\W_])(?<![.@-])(?:isbn|issn|ean|upc|gtin|doi|iban|asin|sku|pmid|oclc|isrc|order|invoice|item"
    r"|product|part|model|serial|patent|no|nr|id|art|article|ref|code|case|account|bug|issue"
    r"|version|zip|room|page|views?|count|total|form|parcel|tracking|member|ticket|lat|lon|coordinates?|license|licence|ssn|security|vat|ust-idnr|siret|siren|инн"
    r"|огрн)(?:[ .-]{0,2}(?:number|num|no|nr|is|of|1[03])){0,2}[\s.:;=()#-]{0,4}\Z",
    re.IGNORECASE,
)
"""A word right before a number that names something else."""


FEWEST_DIGITS, MOST_DIGITS = 7, 15
"""Digits of a number: seven are the fewest looked at, fifteen the most that ITU-T E.164 allows."""

_SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_BETWEEN = rf"[{_SPACES}./\u2010-\u2014\u2212-]"
# Where one number may end and the next begin: two blanks, a stroke between blanks, a plus.
_CUT = re.compile(r"(?<=[0-9)])(?:[ \u00a0]{2,}|[ \u00a0][-/\u2013\u2014.][ \u00a0]|[ /]*(?=\+))")
_NUMBER = re.compile(
    rf"(?:\(?\+ ?|\()?[0-9](?:[0-9]|(?![ \u00a0]{{2}}){_BETWEEN}{{1,3}}(?=[0-9(])"
    rf"|{_BETWEEN}{{0,3}}\((?=[0-9]{{1,5}}\))|\){_BETWEEN}{{0,3}}(?=[0-9])){{5,30}}+"
)
_LONGEST = 48
"""Characters that hold the first seven digits of a number."""

_DIGIT = re.compile(r"[0-9]")
_GROUP = re.compile(r"[0-9]+")
_EXTENSION = re.compile(r"(?:[ ,;]{0,2}(?:x|[Ee]xt\.?)[ .:]{0,2})[0-9]{1,5}(?![0-9A-Za-z])")
_PHONE_TOUCHING_BEFORE = re.compile(r"(?:[\w@=#&%$€£¥^*+~\\-]|[0-9][.,:/]|[A-Za-z]/|[$€£¥#] )\Z")
_SUM_BEFORE = re.compile(r"[0-9)] ?\Z")
"""What stands before a plus between two blanks: the sum `36 + 62426244000`."""

_ASSIGNED_TO = re.compile(rf"(?<![^\W_])(?:{_NAMES})=\Z", re.IGNORECASE)
"""A field for a number: `phone=`."""

_PHONE_TOUCHING_AFTER = re.compile(
    r"[A-Za-z0-9_@=&%°\u00b2€$£]|[,:.][0-9]|\.[a-z]|-[0-9]|/[A-Za-z0-9]| [%€$£°]"
)

_GROUPED_NATIONAL = re.compile(
    r"\([0-9]|0[1-9]|(?:1[ .-])?[2-9][0-9]{2}([ .-])[2-9][0-9]{2}\1[0-9]{4}\Z"
)
_DATE = re.compile(
    rf"(?:(?:19|20)[0-9]{{2}}{_BETWEEN}[01]?[0-9]{_BETWEEN}[0-3]?[0-9]"
    rf"|[0-3]?[0-9]{_BETWEEN}[0-3]?[0-9]{_BETWEEN}(?:19|20)[0-9]{{2}}|[0-3]?[0-9]/[0-3]?[0-9]"
    rf"|(?:1[5-9]|20)[0-9]{{2}}{_BETWEEN}{{1,3}}(?:1[5-9]|20)[0-9]{{2}})(?![0-9])"
)
_DECIMAL_OR_IP = re.compile(r"\+?[0-9]+\.[0-9]+\Z|[0-9]{1,3}(?:\.[0-9]{1,3}){3}\Z")
_FEWEST_UNNAMED = 9
"""Digits of a national number that no word names: fewer are dates and clocks too often."""

_AREA_CODE = 3
"""Digits of an area code after which a number may be grouped otherwise than its country does."""


def find_phone_numbers(
    text: str, start: int, end: int, regions: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Places of phone numbers in the run [start, end); `regions` are ISO 3166 codes."""
    for piece_start, piece_end in _split_run(text, start, end):
        span = _find_number(text, piece_start, piece_end, regions)
        if span is not None:
            yield span


def _split_run(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run cut where one number ends and the next begins: no piece of fewer digits than one."""
    last = start
    for cut in _CUT.finditer(text, start, end):
        written = text[last : min(cut.start(), last + _LONGEST)]
        if len(_DIGIT.findall(written)) >= FEWEST_DIGITS or text[cut.end() : cut.end() + 1] == "+":
            yield last, cut.start()
            last = cut.end()
    yield last, end


def _find_number(text: str, start: int, end: int, regions: Sequence[str]) -> tuple[int, int] | None:
    """The number with which a piece begins, without brackets around it."""
    match = _NUMBER.search(text, start, end)
    if match is None:
        return None
    first, last = match.span()
    written = match[0]
    if written[0] == "(" and written.count("(") > written.count(")"):
        first += 1
    if not FEWEST_DIGITS <= len("".join(_GROUP.findall(written))) <= MOST_DIGITS:
        return None
    extension = _EXTENSION.match(text, last)
    stop = extension.end() if extension else last
    if _PHONE_TOUCHING_AFTER.match(text, stop):
        return None
    if written.startswith("+ ") and _SUM_BEFORE.search(text, max(0, first - 2), first):
        return None
    edge = first - 2 if text.startswith("**", max(0, first - 2)) else first  # Bold in Markdown.
    if _PHONE_TOUCHING_BEFORE.search(text, max(0, edge - 2), edge) and not _ASSIGNED_TO.search(
        text, max(0, edge - LOOK_BACK), edge
    ):
        return None
    return (first, stop) if _is_phone(text, first, last, regions) else None


def _is_phone(text: str, start: int, end: int, regions: Sequence[str]) -> bool:
    """Whether the text in [start, end) is a number of one of the four kinds."""
    written, before = text[start:end], text[max(0, start - LOOK_BACK) : start]
    groups = _GROUP.findall(written)
    digits = "".join(groups)
    if _DECIMAL_OR_IP.match(written):
        return False
    is_named = NAMED_BEFORE.search(before) is not None
    if "+" in written[:2]:
        return is_named or _is_valid(written, None)
    if len(set(digits)) < 3 or _DATE.match(written):
        return False
    if is_named or NAMED_AFTER.match(text, end):
        return True
    if OTHER_BEFORE.search(before) or len(digits) < _FEWEST_UNNAMED:
        return False
    if len(groups) == 1:
        return TALK_BEFORE.search(before) is not None and _is_valid_in(written, regions)
    if digits.startswith("00"):
        return _is_valid("+" + digits[2:], None)
    is_telling = _GROUPED_NATIONAL.match(written) is not None
    if (TALK_BEFORE.search(before) and written.count(".") != 1) or (
        is_telling and LETTERED_BEFORE.search(before)
    ):
        return _is_valid_in(written, regions)
    return is_telling and any(_is_written_in(region, written, groups) for region in regions)


def _is_valid(written: str, region: str | None) -> bool:
    import phonenumbers

    number = _parse_number(written, region)
    return number is not None and phonenumbers.is_valid_number(number)


def _is_valid_in(written: str, regions: Sequence[str]) -> bool:
    return any(_is_valid(written, region) for region in regions)


def _is_written_in(region: str, written: str, groups: list[str]) -> bool:
    """Whether a number is valid in a country and written in the groups of that country.

    Where the area code has three digits or more, the rest may be grouped otherwise.
    """
    import phonenumbers

    number = _parse_number(written, region)
    if number is None or not phonenumbers.is_valid_number_for_region(number, region):
        return False
    national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    known = _GROUP.findall(national)
    if groups in (known, ["1", *known]):
        return True
    return len(known) > 1 and known[0] == groups[0] and len(known[0]) >= _AREA_CODE


def _parse_number(written: str, region: str | None) -> Any:
    import phonenumbers

    try:
        return phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return None


_GAP = rf"[{_SPACES}\u2010-\u2013-]"
"""What parts the groups of an account or a card: any blank of a typesetter, or a hyphen."""

_NO_DIGIT = re.compile(r"[^0-9]")
_IBAN_HEAD = re.compile(rf"(?<![A-Za-z0-9])([A-Za-z]{{2}})[0-9]{{2}}(?={_GAP}?[A-Za-z0-9]{{4}})")
_IBAN_REACH = 12
"""Characters before a run of digits in which the IBAN that holds it begins: `MT84 MALT 0110…`."""

_IBAN_BODY = re.compile(rf"[A-Za-z]{{2}}[0-9]{{2}}(?:{_GAP}?[A-Za-z0-9]){{11,29}}")
_ALNUM = re.compile(r"[A-Za-z0-9]")

_GROUPED = re.compile(
    rf"(?<![0-9])(?:"
    rf"[2-6][0-9]{{3}}({_GAP})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{3}})?"
    rf"|3[0-9]{{3}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}}"
    rf")(?![0-9]| ?{_GAP}[0-9])"
)
_UNGROUPED = re.compile(r"(?<![0-9])[1-6][0-9]{11,18}(?![0-9])")
_CARD_TOUCHING_BEFORE = re.compile(r"(?:[A-Za-z0-9_@/=#&.$€£-]|[0-9][ ,:])\Z")
_CARD_TOUCHING_AFTER = re.compile(r"[A-Za-z0-9_@=&%]|[.,:/-][0-9]|\.[a-z]")
_CARD_WORDS = (
    r"(?<![<\w])(?:card|cc|visa|master ?card|amex|american express|diners|discover|jcb|maestro"
    r"|karte|kreditkarten?|carte|tarjeta|cartão|carta di credito)"
)
_CARD_WORD_REACH = 60
"""Characters around a number, without digits or another value, in which a word speaks of cards."""

_CARD_WORDS_BEFORE = re.compile(rf"{_CARD_WORDS}[^0-9<>@]{{0,{_CARD_WORD_REACH}}}\Z", re.IGNORECASE)
_CARD_WORDS_AFTER = re.compile(rf"[^0-9<>@]{{0,{_CARD_WORD_REACH}}}?{_CARD_WORDS}", re.IGNORECASE)

# First digits of the networks that check with Luhn, by length of the number (ISO/IEC 7812-1).
_AMEX = re.compile(r"3[47]")
_OLD_JCB = re.compile(r"2131|1800")
_DINERS = re.compile(r"30[0-5]|3095|3[689]")
_VISA = re.compile(r"4")
_MAESTRO = re.compile(r"50[0-9]|5[6-8]|6304|6390|67")
_SIXTEEN = re.compile(
    r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|220[0-4]|6011|6[45]|62|35(?:2[89]|[3-8])"
    r"|3[068]|50[0-9]|5[6-8]|6304|6390|67"
)
_LONG = re.compile(r"4|62|6011|6[45]|50[0-9]|5[6-8]|6304|6390|67")
_ISSUED = {
    12: (_MAESTRO,),
    13: (_VISA, _MAESTRO),
    14: (_DINERS, _MAESTRO),
    15: (_AMEX, _OLD_JCB, _MAESTRO),
    16: (_SIXTEEN,),
    17: (_LONG,),
    18: (_LONG,),
    19: (_LONG,),
}


def find_ibans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The place of an IBAN whose digits fill the run [start, end)."""
    head = _IBAN_HEAD.search(text, max(0, start - _IBAN_REACH), min(end, start + 8))
    while head is not None:
        stop = _iban_end(text, head.start(), _iban_length(head[1].upper()))
        if stop:
            yield head.start(), stop
            return
        head = _IBAN_HEAD.search(text, head.start() + 1, min(end, start + 8))


def _iban_end(text: str, start: int, length: int) -> int:
    """Where the IBAN at `start` ends if its check digits are right; otherwise 0."""
    body = _IBAN_BODY.match(text, start) if length else None
    if body is None:
        return 0
    letters = list(_ALNUM.finditer(body[0]))
    if len(letters) < length:
        return 0
    stop = start + letters[length - 1].end()
    if _ALNUM.match(text, stop):
        return 0
    return (
        stop if iban.is_valid("".join(c[0] for c in letters[:length]), check_country=False) else 0
    )


@cache
def _iban_length(country: str) -> int:
    """Characters of an IBAN of a country, by ISO 13616's registry; 0 where it has none."""
    ((_, entry),) = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall("[0-9]+", entry["bban"]))) if entry else 0


def find_cards(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Places of payment card numbers in the run [start, end)."""
    for match in _GROUPED.finditer(text, start, end):
        if _is_alone(text, match) and is_card(_NO_DIGIT.sub("", match[0])):
            yield match.span()
    for match in _UNGROUPED.finditer(text, start, end):
        if is_card(match[0], named=True) and _is_alone(text, match) and _has_card_word(text, match):
            yield match.span()


def is_card(number: str, *, named: bool = False) -> bool:
    """Whether digits are a number that a network issues, by its beginning, length and Luhn sum.

    Of 15 and 16 digits that are `named` a card the sum alone decides: networks grow.
    """
    if not (named and 15 <= len(number) <= 16) and not any(
        issued.match(number) for issued in _ISSUED.get(len(number), ())
    ):
        return False
    return bool(luhn.is_valid(number))


def _is_alone(text: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    return not _CARD_TOUCHING_BEFORE.search(text, max(0, start - 2), start) and not (
        _CARD_TOUCHING_AFTER.match(text, end)
    )


def _has_card_word(text: str, match: re.Match[str]) -> bool:
    """Whether a word before or after speaks of cards, nothing that may be redacted between."""
    start, end = match.span()
    if _CARD_WORDS_BEFORE.search(text, max(0, start - 2 * _CARD_WORD_REACH), start):
        return True
    return _CARD_WORDS_AFTER.match(text, end, end + 2 * _CARD_WORD_REACH) is not None
