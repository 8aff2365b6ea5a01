"""Bank account numbers (IBAN) in a text and in a run of digits.

An IBAN has the length and the shape of its country and the remainder 1 modulo 97 (ISO 13616, ISO
7064 MOD 97-10): a made-up number passes once in 97 times, if country, length and shape fit. The
registry and MOD 97-10 are python-stdnum's. Time is linear in the text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache

from stdnum import iban, numdb
from stdnum.iso7064 import mod_97_10

from stages.signals.outputs import to_character_offsets

_SPACES = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_HYPHENS = "\u2010-\u2013-"
_IBAN_GAP = (
    rf"(?:[{_SPACES}{_HYPHENS}./_+~\t\u200b\u00b7]| ?\r?\n[ \t]{{0,12}}|  | [{_HYPHENS}] "
    r"|&nbsp;|&#160;|%20|\\[,; ]|\\_)"
)
"""What parts the groups of an account: dots, strokes, the end of a line, escaped blanks as well."""

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


def is_printed(number: str) -> bool:
    """Whether an account is an example of the registry, or made of digits in their order."""
    return number in _PRINTED_IBANS or _COUNTED.search(number) is not None


_PRINTED_IBANS = frozenset(
    (
        *("GB82WEST12345698765432", "GB29NWBK60161331926819", "GB33BUKB20201555555555"),
        *("DE75512108001245126199", "DE62370400440532013001"),
        *("DE89370400440532013000", "DE91100000000123456789", "DE02120300000000202051"),
        *("NL91ABNA0417164300", "CH9300762011623852957", "AT611904300234573201"),
        *("BE68539007547034", "FR1420041010050500013M02606", "FR7630006000011234567890189"),
        *("ES9121000418450200051332", "IT60X0542811101000000123456", "IE29AIBK93115212345678"),
        *("PL61109010140000071219812874", "PT50000201231234567890154", "SE4550000000058398257466"),
        *("NO9386011117947", "DK5000400440116243", "FI2112345600000785", "LU280019400644750000"),
        *(
            "GR1601101250000000012300695",
            "CZ6508000000192000145399",
            "HU42117730161111101800000000",
        ),
        *("RO49AAAA1B31007593840000", "BG80BNBG96611020345678", "HR1210010051863000160"),
        *("SI56263300012039086", "SK3112000000198742637541", "EE382200221020145685"),
        *("LT121000011101001000", "LV80BANK0000435195001", "MT84MALT011000012345MTLCAST001S"),
        *(
            "CY17002001280000001200527600",
            "TR330006100519786457841326",
            "IS140159260076545510730339",
        ),
        *("LI21088100002324013AA", "MC5811222000010123456789030", "SA0380000000608010167519"),
        *("AE070331234567890123456", "IL620108000000099999999", "BR1800360305000010009795493C1"),
        *("LC55HEMM000100010012001200023015", "GI75NWBK000000007099453", "CR05015202001026284066"),
        *("UA213223130000026007233566001", "RS35260005601001611379", "KZ86125KZT5004100100"),
        *("AD1200012030200359100100", "AL47212110090000000235698741", "BA391290079401028494"),
        *("AZ21NABZ00000000137010001944", "BH67BMAG00001299123456", "FO6264600001631634"),
        *("DO28BAGR00000001212453611324", "EG380019000500000000263180002", "GL8964710001000206"),
        *("GE29NB0000000101904917", "GT82TRAJ01020000001210029690", "IQ98NBIQ850123456789012"),
        *("JO94CBJO0010000000000131000302", "KW81CBKU0000000000001234560101"),
        *("LB62099900000001001901229114", "LY83002048000020100120361", "MK07250120000058984"),
        *("MD24AG000225100013104168", "ME25505000012345678951", "MR1300020001010000123456753"),
        *("MU17BOMM0101101030300200000MUR", "PK36SCBL0000001123456702", "XK051212012345678906"),
        *(
            "PS92PALS000000000400123456702",
            "QA58DOHB00001234567890ABCDEFG",
            "SO211000001001000100141",
        ),
        *("SC18SSCB11010000000000001497USD", "SM86U0322509800000000270100", "SD8811123456789012"),
        *("SV62CENR00000000000000700025", "TL380080012345678910157", "TN5910006035183598478831"),
        *("VA59001123000012345678", "VG96VPVG0000012345678901", "BI4210000100010000332045181"),
        *("DJ2100010000000154000186964", "RU0304452522540817810538091310419"),
        *("NI45BAPR00000013000003558124", "MN121234123456789123", "FK88SC123456789012"),
        *("OM810180000001299123456", "YE15CBYE0001018861234567891234", "ST23000100010051845310146"),
        *("HN88CABF00000000000250005469", "BY13NBRB3600900000002Z00AB7B", "DE12500105170648489890"),
        *("DE44500105175407324931", "DE27100777770209299700", "NL39RABO0300065264"),
        *("GB94BARC10201530093459", "GB98MIDL07009312345678", "IE64IRCE92050112345678"),
    )
)
"""Examples of the registry of ISO 13616 and of what explains it: nobody's accounts."""

_COUNTED = re.compile(r"1234567890|0123456789|123456789\Z")
"""Digits in their order, in an account that somebody made up."""
