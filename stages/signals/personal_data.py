"""Personal data in a text as spans: e-mail and IP addresses, phone, bank account and card numbers.

What phone, account and card numbers are, is in `phone_numbers.py`, `account_numbers.py` and
`card_numbers.py`. They all have seven digits with nothing between them but blanks, dots, hyphens,
slashes and brackets, so they are searched in runs of these, and a text without an '@' and without
seven digits in a row costs one pass; cards in groups that other signs part and numbers with letters
(`1-800-FLOWERS`) are found by the shape of their bytes. Redacting twice is redacting once. Numbers
without check digits that only context identifies (social security, passports, driving licences) are
not searched.

E-mail addresses are in `addresses.py`, IP addresses in `ip_addresses.py`. Time is linear in the
text.

A value is replaced by a tag, or by one of the examples reserved for its kind. A hash of the value
chooses the example: the same value has the same example everywhere, in any order of documents, and
different values are spread over the examples, so that a model does not learn one of them by heart.
The examples belong to nobody; they are never found again, so a redacted text has nothing to
redact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from string import ascii_uppercase
from typing import Literal

from stages.signals.account_numbers import find_ibans, find_lower_ibans, is_printed
from stages.signals.addresses import find_emails
from stages.signals.card_networks import is_test_number
from stages.signals.card_numbers import find_cards, find_parted_cards, is_called_test
from stages.signals.config import PHONE_REGIONS
from stages.signals.dialled_numbers import find_lettered_numbers
from stages.signals.ip_addresses import find_ip_addresses
from stages.signals.outputs import Signal, Span, count, drop_overlaps, to_character_offsets
from stages.signals.phone_numbers import find_phone_numbers

FEWEST_DIGITS = 7
_BLANKS = " \u00a0\u2002\u2003\u2007\u2009\u200a\u202f"
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2212-"
_BETWEEN = f"+()./{_BLANKS}{_HYPHENS}"
_SIGN_BEFORE = re.compile(r"(?:\(?\+ ?|\()\Z")
_RUN = re.compile(rf"[0-9][0-9{re.escape(_BETWEEN)}]*+")

# By bytes of UTF-8: what is a capital, a digit, what may stand between two (and parts of other
# characters).
_MARKS = bytes(
    ord("A" if chr(byte) in ascii_uppercase else "0" if chr(byte) in "0123456789" else mark)
    for byte, mark in enumerate(" " if byte in _BETWEEN.encode() else "x" for byte in range(256))
)
_MARKED_RUN = re.compile(rb"0[0 ]{%d,}+" % (FEWEST_DIGITS - 1))

_ZEROS = "\u0660\u06f0\u0966\u09e6\u0e50\u1040\u17e0\uff10"
"""In Arabic, Persian, Devanagari, Bengali, Thai, Burmese, Khmer and full-width forms."""
_OTHER_DIGITS = "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS)
_LEADS = tuple(sorted({zero.encode()[:-1] for zero in _ZEROS}))
_HAS_OTHER = re.compile(f"[{_OTHER_DIGITS}]{{2}}")
_FULL_WIDTH_SIGNS = dict(
    zip(map(ord, "\uff0b\uff08\uff09\uff0d\uff0e\uff0f\u30fc\u3000"), "+()-./- ", strict=True)
)
_FOLDED = re.compile(f"[{_OTHER_DIGITS}{''.join(map(chr, _FULL_WIDTH_SIGNS))}]+")
_TIED = re.compile(r"(?<=[0-9)])~(?=[0-9(])")
_ASCII_FORMS = _FULL_WIDTH_SIGNS | {
    ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)
}


def fold_digits(text: str) -> str:
    """`text`, as long as it was, with the digits of `_ZEROS` as ASCII.

    The full-width signs of a number go with them, and the blanks of TeX: `+48~632~980~445`.
    Unchanged without two such digits in a row.
    """
    if "~" in text:
        text = _TIED.sub(" ", text)
    if text.isascii():
        return text
    encoded = text.encode("utf-8", "surrogatepass")
    if not any(lead in encoded for lead in _LEADS) or not _HAS_OTHER.search(text):
        return text
    return _FOLDED.sub(lambda match: match[0].translate(_ASCII_FORMS), text)


def mark_bytes(encoded: bytes) -> bytes:
    """For each byte of a text in UTF-8 `A`, `0` or a blank, where it matters, otherwise `x`."""
    return encoded.translate(_MARKS)


def find_number_runs(text: str, encoded: bytes, marks: bytes) -> list[tuple[int, int]]:
    """Places of runs with seven digits or more, and the plus or bracket before; plain digits.

    `encoded` is `text` in UTF-8, and `marks` its bytes by `mark_bytes`.
    """
    places = [
        match.start()
        for match in _MARKED_RUN.finditer(marks)
        if match[0].count(b"0") >= FEWEST_DIGITS
    ]
    runs = []
    for place in to_character_offsets(text, encoded, places):
        match, before = _RUN.match(text, place), _SIGN_BEFORE.search(text, max(0, place - 3), place)
        if match is not None:
            runs.append((before.start() if before else place, match.end()))
    return runs


Form = Literal["examples", "tags"]

TAGS = {
    "email": "<EMAIL>",
    "ip_address": "<IP_ADDRESS>",
    "phone": "<PHONE>",
    "iban": "<IBAN>",
    "card": "<CARD>",
}
"""The kinds of personal data, and the tag of each."""

EXAMPLES = {
    "email": ("email@example.com", "firstname.lastname@example.org"),  # RFC 2606
    "ip_address": (  # RFC 5737
        *("192.0.2.1", "192.0.2.146", "198.51.100.7"),
        *("198.51.100.93", "203.0.113.12", "203.0.113.201"),
    ),
    "phone": (  # Kept for fiction: NANPA 555-01xx, Ofcom, ARCEP, Bundesnetzagentur.
        *("+1 202-555-0142", "+1 312-555-0187", "+44 20 7946 0958"),
        *("+44 7700 900461", "+33 1 99 00 27 38", "+49 30 23125 614"),
    ),
    "iban": (  # The examples of the registry of ISO 13616.
        *("DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19"),
        "FR14 2004 1010 0505 0001 3M02 606",
    ),
    "card": ("4111 1111 1111 1111", "5555 5555 5555 4444", "3782 822463 10005"),  # Test numbers.
}
EXAMPLES_IPV6 = ("2001:db8::1", "2001:db8:25::7a", "2001:db8:4d2::31")
"""RFC 3849."""

_SEPARATORS = re.compile(r"&nbsp;|&#160;|%20|[\W_]")
_FICTION = re.compile(r"(?:1?[2-9][0-9]{2}|1)?55501[0-9]{2}|0?1234567|[0-9]{0,5}12345678(?:90?)?")
"""North America's numbers for fiction, and digits in their order, also after an area code."""

_KEPT_FOR_FICTION = re.compile(
    r"(?:(?:00)?44|0)(?:2079460[0-9]{3}|1(?:1[3-8]|[2-6]1)4960[0-9]{3}|1914980[0-9]{3}"
    r"|2896496[0-9]{3}|2920180[0-9]{3}|1632960[0-9]{3}|7700900[0-9]{3}|8081570[0-9]{3}"
    r"|9098790[0-9]{3}|3069990[0-9]{3})"
    r"|(?:(?:00)?33|0)(?:19900|26191|35301|46571|53649|63998)[0-9]{4}"
    r"|(?:(?:00)?49|0)(?:3023125|6990009|4066969|2214710|8999998)[0-9]{3}"
    r"|(?:(?:00)?61|0)(?:[2378](?:5550|7010)[0-9]{4}|491570[0-9]{3})"
)
_SAYS_FICTION = re.compile(
    r"beispiel|ofcom|\bfilms?\b|arcep|acma\b|fictiti|fiction|drama|televi[sz]i|placeholder",
    re.IGNORECASE,
)
_LITERAL_BEFORE = re.compile(r"(?:[(=\[]|[=:,] )[\"']\Z")
_FICTION_REACH = 60
"""Numbers that Ofcom, ARCEP, the Bundesnetzagentur and ACMA keep for fiction are none where a word
near them says so, and as literals of code; elsewhere people write them, like any other, for
somebody."""

_EXTENSION = re.compile(r"(?:X|EXT)[0-9]{1,5}\Z")


def choose_replacement(label: str, value: str, form: Form = "examples") -> str:
    """The replacement of a value of the kind `label`."""
    if form == "tags":
        return TAGS[label]
    examples = EXAMPLES_IPV6 if label == "ip_address" and ":" in value else EXAMPLES[label]
    digest = blake2b(
        _normalise_value(label, value).encode("utf-8", "surrogatepass"), key=label.encode()
    )
    return examples[int.from_bytes(digest.digest()[:8], "big") % len(examples)]


def is_reserved(label: str, value: str) -> bool:
    """Whether a value is one of the examples, or a phone number kept for fiction."""
    plain = _normalise_value(label, value)
    if label == "phone":
        number = _EXTENSION.sub("", plain)
        return _FICTION.fullmatch(number) is not None or number in _RESERVED_NUMBERS
    if label == "card" and is_test_number(plain):
        return True
    if label == "iban" and is_printed(plain):
        return True
    return plain in _RESERVED[label]


def _normalise_value(label: str, value: str) -> str:
    """A value without the signs that people group it with, in one case."""
    return value.lower() if label in ("email", "ip_address") else _SEPARATORS.sub("", value).upper()


_RESERVED = {
    label: frozenset(_normalise_value(label, value) for value in values)
    for label, values in EXAMPLES.items()
}
_EXAMPLE_BEFORE = re.compile(
    r"(?:example|beispiel|exemple|ejemplo|esempio|exemplo|voorbeeld|przykład|пример|placeholder"
    r"|test[- ]?(?:konto|account|iban))"
    r"(?:(?: d[aei]l?| für| van)?[ _-]?iban)?[\"']?\s?[:=]\s?[\"']?\Z",
    re.IGNORECASE,
)
"""A label that calls an account an example: `"example": "LB62…"`, `Beispiel: DE75 …`."""

_RESERVED_NUMBERS = _RESERVED["phone"] | _RESERVED["card"]

COUNT_COLUMNS = {
    "email_count": "email",
    "ip_count": "ip_address",
    "phone_count": "phone",
    "iban_count": "iban",
    "card_count": "card",
}
"""Columns, and the label each counts."""

PERSONAL_SIGNALS: tuple[Signal, ...] = (
    count("email_count", "addresses", "datatrove", "E-mail addresses."),
    count("ip_count", "addresses", "datatrove", "Public IPv4 and IPv6 addresses."),
    count("phone_count", "numbers", "libphonenumber", "Phone numbers."),
    count("iban_count", "numbers", "ISO 13616", "Bank account numbers with right check digits."),
    count(
        "card_count", "numbers", "ISO/IEC 7812", "Payment card numbers with a right check digit."
    ),
)


def find_personal_data(
    text: str, phone_regions: Sequence[str] = PHONE_REGIONS, form: Form = "examples"
) -> list[Span]:
    """Every value of the kinds of `TAGS` in `text`, from left to right, without overlaps."""
    spans = [
        Span(start, end, label, choose_replacement(label, text[start:end], form))
        for label, start, end in _find_values(text, phone_regions)
    ]
    # Of two that start together (8.8.8.8@corp.com) the longer stays; a reserved account number
    # holds what looks like a phone number.
    alone = drop_overlaps(spans) if len(spans) > 1 else spans
    return [
        span
        for span in alone
        if not is_reserved(span.label, text[span.start : span.end])
        and not (span.label == "phone" and _is_called_fiction(text, span))
        and not (span.label == "card" and is_called_test(text, span.start, span.end))
        and not (
            span.label == "iban"
            and _EXAMPLE_BEFORE.search(text, max(0, span.start - 24), span.start)
        )
    ]


def _is_called_fiction(text: str, span: Span) -> bool:
    """Whether a phone number is kept for fiction, and a word near it, or code, says so."""
    plain = _normalise_value("phone", text[span.start : span.end])
    if not _KEPT_FOR_FICTION.fullmatch(plain):
        return False
    first, last = max(0, span.start - _FICTION_REACH), span.end + _FICTION_REACH
    if _LITERAL_BEFORE.search(text, max(0, span.start - 3), span.start):
        return True
    return _SAYS_FICTION.search(text, first, last) is not None


def count_personal_data(texts: Sequence[Sequence[Span]]) -> dict[str, list[int]]:
    """The columns of `PERSONAL_SIGNALS`: one value for the spans of each text."""
    return {
        name: [sum(span.label == label for span in spans) for spans in texts]
        for name, label in COUNT_COLUMNS.items()
    }


def _find_values(text: str, phone_regions: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Kind and place of each value; an account number before the phone number it looks like."""
    for start, end in find_emails(text):
        yield "email", start, end
    addresses = list(find_ip_addresses(text))
    for start, end in addresses:
        yield "ip_address", start, end
    plain, previous, previous_card = fold_digits(text), -1, -1
    encoded = plain.encode("utf-8", "surrogatepass")
    marks = mark_bytes(encoded)
    for start, end in find_ibans(plain, encoded, marks):
        yield "iban", start, end
    for start, end in find_parted_cards(plain, encoded, marks):
        yield "card", start, end
    for start, end in find_lettered_numbers(plain, encoded, marks):
        yield "phone", start, end
    for run in find_number_runs(plain, encoded, marks):
        for start, end in find_lower_ibans(plain, *run):
            yield "iban", start, end
        for start, end in find_cards(plain, *run, previous_card):
            previous_card = end
            yield "card", start, end
        for start, end in find_phone_numbers(plain, *run, phone_regions, previous):
            if not is_reserved("card", plain[start:end]):
                previous = end
            if not any(start < last and first < end for first, last in addresses):
                yield "phone", start, end
