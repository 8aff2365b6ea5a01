"""Bank account (IBAN) and payment card numbers in a run of digits.

An IBAN has the length and the shape of its country and the remainder 1 modulo 97 (ISO 13616, ISO
7064 MOD 97-10): a made-up number passes once in 97 times, if country, length and shape fit. The
registry, MOD 97-10 and Luhn's sum are python-stdnum's. A card number has a length and first digits
that a network issues (ISO/IEC 7812) and Luhn's sum, which one in ten passes. Digits in the
groups of a card, and 15 or 16 of them alone, need no word beside them; others need one about cards.
Time is linear in the text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache

from stdnum import iban, luhn, numdb
from stdnum.iso7064 import mod_97_10

from stages.signals.named_values import find_head
from stages.signals.outputs import to_character_offsets

_SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_HYPHENS = "\u2010-\u2013-"
_GAP = rf"[{_SPACES}{_HYPHENS}]"
"""What parts the groups of a card: any blank of a typesetter, or a hyphen."""

_IBAN_GAP = (
    rf"(?:[{_SPACES}{_HYPHENS}./_+~\t\u200b\u00b7]| ?\r?\n[ \t]{{0,12}}|  | [{_HYPHENS}] "
    r"|&nbsp;|&#160;|%20|\\[,; ]|\\_)"
)
"""What parts the groups of an account: dots, strokes, the end of a line, escaped blanks as well."""

_NO_DIGIT = re.compile(r"[^0-9]")
_IBAN_HEAD = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=IBAN)|(?<=%3D)|(?<=%20)|(?<=%3A)"
    r"|(?<==3D)|(?<=\\[nrt])|(?<=\?3[0-9]))"
    rf"([A-Za-z]{{2}}) ?[0-9]{{2}}(?={_IBAN_GAP}?[A-Za-z0-9])"
)
_IBAN_BODY = re.compile(rf"[A-Za-z]{{2}} ?[0-9]{{2}}(?:{_IBAN_GAP}?[A-Za-z0-9]){{11,29}}")
_OTHER_LENGTHS = {
    **dict.fromkeys(("AO", "CV", "GW", "MZ"), 25),
    **dict.fromkeys(("DZ", "IR"), 26),
    **dict.fromkeys(("CF", "CG", "CM", "GA", "GQ", "KM", "MG", "TD"), 27),
    **dict.fromkeys(("BF", "BJ", "CI", "MA", "ML", "NE", "SN", "TG"), 28),
}
"""Countries that use such numbers, but are not in the registry of ISO 13616."""

_OTHER_BODY = re.compile(r"[A-Za-z]{0,4}[0-9]{16,24}")
_ALNUM = re.compile(r"[A-Za-z0-9]")
_CHARACTER = re.compile(r"&nbsp;|&#160;|%20|([A-Za-z0-9])")
"""A character of an account, or a blank that is escaped."""

_NAME_AFTER = re.compile(r"[A-Z][a-z]{2,15}:")
"""The next field of a form whose line breaks were lost: `…226Bank:`."""

_CURRENCY_AFTER = re.compile(
    r"(?:EUR|USD|GBP|CHF|PLN|SEK|NOK|DKK|CZK|HUF|RON|BGN|TRY|ISK)(?![A-Za-z0-9])"
    r"|(?:BIC|SWIFT)(?![a-z])"
)
"""The currency of an account, which SWIFT's MT940 writes right behind it, or the next field."""

_HEADS = (b"AA00", b"AA 00")
"""Two capitals and two digits, as `marks` has them."""

_LOWER_HEAD = re.compile(rf"(?<![A-Za-z0-9])([a-z]{{2}})[0-9]{{2}}(?={_IBAN_GAP}?[a-z0-9]{{2}})")
_LOWER_REACH = 12
"""Characters before a run of digits in which an IBAN in small letters begins: `mt84 malt 0110…`."""

_NUMBER_SEPARATOR = r"[ \t]{0,3}(?:[,;|/:&\t]|<[^<>]{1,20}>|\\t| )[ \t\"']{0,3}"
_EXPIRY = rf"(?:0[1-9]|1[0-2])(?: ?[/-] ?|{_NUMBER_SEPARATOR})?(?:20)?[2-3][0-9](?![0-9])"
_GROUPED = re.compile(
    rf"(?<![0-9])(?:"
    rf"[2-6][0-9]{{3}}({_GAP})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{3}})?"
    rf"|3[0-9]{{3}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}}"
    rf")(?![0-9]| ?{_GAP}(?!{_EXPIRY})[0-9])"
)
_LOOSE = re.compile(
    rf"(?<![0-9])(?:[1-69]|(?=86))(?:[0-9]|(?:[ .]{{1,2}}|(?![ .]){_GAP})(?=[0-9]{{2}})){{11,26}}"
    rf"(?![0-9]|{_GAP}[0-9])"
)
_UNGROUPED = re.compile(r"(?<![0-9])(?:[1-69]|86)[0-9]{11,18}(?![0-9])")
"""Digits in any groups, or in none: for these a word must speak of cards."""

_CARD_TOUCHING_BEFORE = re.compile(r"(?:[A-Za-z0-9_@/=#&.$€£-]|[0-9][ ,:])\Z")
_CARD_TOUCHING_AFTER = re.compile(r"(?![LlNn](?![A-Za-z0-9]))[A-Za-z0-9_@=%]|[.,:/-][0-9]|\.[a-z]")
"""A whole number of Java or JavaScript ends in `L` or `n`."""

_EXPIRY_AFTER = re.compile(
    rf"[\"']?{_NUMBER_SEPARATOR}[\"']?{_EXPIRY}|[,;]?\s{{1,2}}(?:exp|valid|good thru|gültig|vto"
    rf"|ven[ct]|scad|ważn|до)"
    rf"[^0-9\n]{{0,16}}{_EXPIRY}",
    re.IGNORECASE,
)
"""The month and year that stand after a card's number: `,08/27`, `|04|2027`."""

_PARAMETERS_AFTER = re.compile(
    r"&(?:exp\w{0,12}|cv[cv]2?)=|[\"'],\s{0,20}[\"'](?:exp\w{0,12}|cv[cv]2?)[\"']\s?:",
    re.IGNORECASE,
)
"""What follows a number in a form or an object: `number=…&exp=1027&cvc=468`."""

_ROUND = re.compile(r"(?:[0-9]{2}00\W?){4}")
"""Rows of hundreds: `3000 3100 3200 3300`."""

_NUMBER_BEFORE = re.compile(r"(?:(?<![\w-])number|\[number\])=[\"']?\Z")
_NUMBERS_OF_OTHER_KINDS = re.compile(
    r"(?:(?:order|track|invoice|ref|serial|imei|meid|iccid|isbn|ean|upc|gtin|sku|ticket|case|customer"
    r"|member|account|acct|konto|booking|shipment|parcel|transaction|trx|txn|trace|session|user"
    r"|device|job|build|batch|request|node|object|guild|bestell|sendung|rechnung|commande|pedido"
    r"|ordine|номер|nonce|checksum|tweet|policy|meter|contract|licen[cs]e|permit|kunden"
    r"|vertrag|client|application|zamówieni|objednáv|заказ|трек|单号|编号|流水号|番号|번호|운송장|sipariş|الطلب"
    r"|הזמנה|ऑर्डर|พัสดุ|(?<![^\W_])(?:s/?n|run|seed|resi|đơn))\w{0,8}"
    r"(?:[ _.-]?(?:id|no|nr|num|number|code))?"
    r"|(?:event|message|post|tweet|status|chat|channel|thread)\w{0,8}"
    r"[ _.-]?(?:id|no|nr|num|number|code)|(?<![a-z])(?!paid|said)[a-z]{0,2}ids?\b|token|hash"
    r"|timestamp|epoch|\bnr\b|n°|#|№)"
    r"[ \t:=#.\"'()\[\]-]{0,8}\Z|[+*/<(\[-]\s?\Z|\s=\s?\Z",
    re.IGNORECASE,
)
"""What names a number that is no card's, and the signs of arithmetic in code."""

_PAYS = re.compile(
    r"(?:pay(?:ment)?s?|charge|authori[sz]e|refund|luhn|checkout)\w{0,12}\(\s?[\"']?\Z",
    re.IGNORECASE,
)
"""A call that takes the number of a card: `process_payment(4…, 866)`."""

_OTHER_REACH = 48
_NAMES_CARD = (
    r"(?:(?:credit|debit|pay(?:ment)?|bank|gift|virtual|corporate)?[ _-]?card"
    r"(?:holder|[ _-]?(?:numbers?"
    r"|nr|no|num))?(?![a-z]{3})|\bcc|c_?c(?=_?n)|(?<![^\W_])pan\b"
    r"|card(?:num+ers?|nummer)|carte bleue|(?-i:\bCB\b)"
    r"|pa(?:id|y|ying)(?: \w{1,8}){0,2} (?:with|by|via|using|from|w/)(?!\w)"
    r"|pay[ée] avec|bezahlt? mit|pagu?[eéo]i? con|paguei com|оплат\w{0,4}"
    r"|guarantee\w{0,2} (?:with|by)|declined\b"
    r"|primary[ _]?account|visa|master ?card|amex|american express|diners|discover|jcb\b|maestro"
    r"|union ?pay"
    r"|rupay|uzcard|humo|сбер|втб\b|тинькофф|т-банк|альфа-?банк|приват(?:банк)?\b|монобанк|monobank|privatbank|cvv2?|cvc2?|\bcsc\b|kredit|karten?(?:nummer|nr)?(?![a-z]{4})|\b(?:debit|credit)\b"
    r"|cart[ea]s?\b|tarjeta|cart[ãa]o|carta di|kaart|kort(?:nummer)?\b|kortti"
    r"|kartu|kart[ıiyau]?\b|bankkártya|карт[аыеу]|картк[аиуо]|карточк|κάρτα|بطاقة|כרטיס|カード|信用卡|银行卡|银联|借记卡|储蓄卡|卡号|卡號|카드"
    r"|کارت|کارڈ|कार्ड|কার্ড|கார்டு|కార్డ్|ಕಾರ್ಡ್|കാർഡ്|કાર્ડ|ਕਾਰਡ|\bkadi?\b|\bkk-nr\b"
    r"|thẻ|บัตร)"
)
_NO_TAG = r"(?<!<(?=(?-i:CARD>)))"
_CARD_WORDS = rf"{_NO_TAG}(?<![a-z]){_NAMES_CARD}"
_CARD_WORD_REACH = 60
"""Characters around a number, without digits or another value, in which a word speaks of cards."""

_APART = r"(?:[^0-9<@]|<(?!(?-i:[A-Z_]{2,12}>))[^<>\n]{1,40}>|(?<![0-9])[0-9]{1,2}(?![0-9]))"
"""What may stand between: also tags but those of a redacted value, times and small numbers."""

_CARD_WORDS_BEFORE = re.compile(
    rf"{_NO_TAG}{_NAMES_CARD}{_APART}{{0,{_CARD_WORD_REACH}}}\Z", re.IGNORECASE
)
_CARD_WORDS_AFTER = re.compile(rf"[^0-9<>@]{{0,{_CARD_WORD_REACH}}}?{_CARD_WORDS}", re.IGNORECASE)
_CARD_COLUMN = re.compile(_CARD_WORDS, re.IGNORECASE)
_TRACK_BEFORE, _TRACK_AFTER = (
    re.compile(r"(?:(?<![A-Za-z0-9])B|[^A-Za-z0-9_.]|\A)\Z"),
    re.compile(
        r"(?:[=D]|\^[A-Za-z /.'-]{2,30}\^)[2-4][0-9](?:0[1-9]|1[0-2])(?:[0-9]{3}|(?![0-9A-Za-z]))"
    ),
)
"""What a magnetic stripe has around the number (ISO/IEC 7813)."""

_CHAIN = re.compile(r"[\s\"',;|]{1,6}")
_NAMED_CARD = re.compile(
    rf"(?:{_NAMES_CARD})[\w \[\]%-]{{0,16}}?[\"'\])]{{0,2}}\s{{0,2}}(?:=>|=|:)\s{{0,2}}[\"']?\Z",
    re.IGNORECASE,
)
_MESSAGE_FIELD = re.compile(
    r"\b(?:F|DE|P|bit|field|element)[ _.-]?\[?0{0,2}2\]?(?:\s?[=:]\s?|\s)[\"'\[]?\Z"
    r"|\b(?:5A ?0?8|57 ?1[0-9A-F]) ?\Z",
    re.IGNORECASE,
)
"""The second field of a message of ISO 8583 is the number of the card, and so is EMV's tag 5A."""

_TAGGED_CARD = re.compile(
    rf"<(?!(?-i:CARD>))[^<>]{{0,40}}{_NAMES_CARD}[^<>]{{0,40}}>\s{{0,4}}(?:<[^<>]{{0,30}}>\s{{0,4}})?\Z",
    re.IGNORECASE,
)
_NO_CARD_NAME = re.compile(
    r"(?<![^\W_])(?:id|hash|token|order|track\w*|serial|ean|isbn|imei|iccid|ref\w*|session|request"
    r"|trace)"
    r"(?: (?:no|nr|number))?[\"'\])\s]{0,3}[=:#]?\s{0,2}[\"']?\Z",
    re.IGNORECASE,
)

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


def find_ibans(text: str, encoded: bytes, marks: bytes) -> Iterator[tuple[int, int]]:
    """Places of IBANs in capitals; `encoded` is `text` in UTF-8, `marks` what each byte is.

    Marks are `A` for a capital of ASCII, `0` for a digit and a blank for what may stand between.
    """
    places = list[int]()
    for head in _HEADS:
        place = marks.find(head)
        while place >= 0:
            if encoded[place : place + 2] in _iban_countries():
                places.append(place)
            place = marks.find(head, place + 1)
    free = 0
    for start in to_character_offsets(text, encoded, sorted(places)) if places else ():
        match = _IBAN_HEAD.match(text, start) if start >= free else None
        stop = _iban_end(text, start, _iban_length(match[1])) if match else 0
        if stop:
            yield start, stop
            free = stop


def find_lower_ibans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The place of an IBAN in small letters whose digits fill the run [start, end)."""
    head = _LOWER_HEAD.search(text, max(0, start - _LOWER_REACH), min(end, start + 8))
    while head is not None:
        stop = _iban_end(text, head.start(), _iban_length(head[1].upper()))
        if stop:
            yield head.start(), stop
            return
        head = _LOWER_HEAD.search(text, head.start() + 1, min(end, start + 8))


@cache
def _iban_countries() -> frozenset[bytes]:
    """Countries with an IBAN, in ASCII."""
    letters = string.ascii_uppercase
    names = (a + b for a in letters for b in letters)
    return frozenset(name.encode() for name in names if _iban_length(name))


def _iban_end(text: str, start: int, length: int) -> int:
    """Where the IBAN at `start` ends if its check digits are right; otherwise 0."""
    body = _IBAN_BODY.match(text, start) if length else None
    if body is None:
        return 0
    letters = [one for one in _CHARACTER.finditer(body[0]) if one[1]]
    if len(letters) < length:
        return 0
    stop = start + letters[length - 1].end()
    if _ALNUM.match(text, stop) and not (
        _NAME_AFTER.match(text, stop) or _CURRENCY_AFTER.match(text, stop)
    ):
        return 0
    number = "".join(c[0] for c in letters[:length])
    return stop if _is_iban(number) else 0


def _is_iban(number: str) -> bool:
    """Whether the check digits are right, and the rest has the letters of its country."""
    if number[:2].upper() not in _OTHER_LENGTHS:
        return bool(iban.is_valid(number, check_country=False))
    turned = number[4:].upper() + number[:4].upper()
    return _OTHER_BODY.fullmatch(number[4:]) is not None and mod_97_10.is_valid(turned)


@cache
def _iban_length(country: str) -> int:
    """Characters of an IBAN of a country, by ISO 13616's registry; 0 where it has none."""
    if country in _OTHER_LENGTHS:
        return _OTHER_LENGTHS[country]
    ((_, entry),) = numdb.get("iban").info(country)
    return 4 + sum(map(int, re.findall("[0-9]+", entry["bban"]))) if entry else 0


def find_cards(text: str, start: int, end: int, previous: int = -1) -> Iterator[tuple[int, int]]:
    """Places of payment card numbers in [start, end); one before them ended at `previous`."""
    for match in _GROUPED.finditer(text, start, end):
        if (
            _is_alone(text, match)
            and not _ROUND.fullmatch(match[0])
            and is_card(_NO_DIGIT.sub("", match[0]))
        ):
            yield match.span()
    for shape in (_LOOSE, _UNGROUPED):
        for match in shape.finditer(text, start, end):
            if is_card(_NO_DIGIT.sub("", match[0]), named=True) and (
                (_is_alone(text, match) and _has_card_word(text, match, previous))
                or _is_on_track(text, match)
            ):
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
    """Whether nothing touches a number but the name of a card or its expiry."""
    start, end = match.span()
    if _PARAMETERS_AFTER.match(text, end):
        return True
    if _NUMBER_BEFORE.search(text, max(0, start - 9), start):
        return True
    if _CARD_TOUCHING_BEFORE.search(text, max(0, start - 2), start) and not _is_named_card(
        text, start
    ):
        return False
    if not _CARD_TOUCHING_AFTER.match(text, end) or _EXPIRY_AFTER.match(text, end):
        return True
    return (
        text.startswith((",", ";"), end) and _CARD_COLUMN.search(find_head(text, start)) is not None
    )


def _is_on_track(text: str, match: re.Match[str]) -> bool:
    """Whether a number stands as on the second or first track of a magnetic stripe."""
    start, end = match.span()
    return (
        _TRACK_BEFORE.search(text, max(0, start - 2), start) is not None
        and _TRACK_AFTER.match(text, end) is not None
    )


def _is_bare_card(text: str, match: re.Match[str]) -> bool:
    """Whether 15 or 16 digits alone are a card's: in web text hardly another number has its sum.

    Of the numbers of so many digits in 18 MB of prose and code none had; what is named otherwise
    is none.
    """
    if len(match[0]) not in (15, 16) or not match[0].isdecimal() or not is_card(match[0]):
        return False
    before = text[max(0, match.start() - _OTHER_REACH) : match.start()]
    if _PAYS.search(before):
        return True
    return _NUMBERS_OF_OTHER_KINDS.search(before) is None


def _is_named_card(text: str, start: int) -> bool:
    """Whether a field, or a tag, right before is named as a card is: `card_number=`."""
    before = text[max(0, start - _CARD_WORD_REACH) : start]
    if _NO_CARD_NAME.search(before):
        return False
    if _MESSAGE_FIELD.search(before):
        return True
    return _NAMED_CARD.search(before) is not None or _TAGGED_CARD.search(before) is not None


def _has_card_word(text: str, match: re.Match[str], previous: int) -> bool:
    """Whether a word before or after speaks of cards, nothing that may be redacted between."""
    start, end = match.span()
    if _EXPIRY_AFTER.match(text, end) or _is_named_card(text, start):
        return True
    if _PARAMETERS_AFTER.match(text, end) or _is_bare_card(text, match):
        return True
    if 0 <= previous <= start and _CHAIN.fullmatch(text, previous, start):
        return True
    if _CARD_COLUMN.search(find_head(text, start)):
        return True
    before = text[max(0, start - 2 * _CARD_WORD_REACH) : start]
    if _CARD_WORDS_BEFORE.search(before) and not _NO_CARD_NAME.search(before):
        return True
    return _CARD_WORDS_AFTER.match(text, end, end + 2 * _CARD_WORD_REACH) is not None
