"""Personal data in a text: e-mail and IP addresses, phone, bank account and card numbers, as spans.

What each sort is, is in `network_addresses.py`, `phone_numbers.py` and `account_numbers.py`; what
replaces it, in `replacements.py`. Numbers are looked for where digits run (`number_runs.py`), so a
text without an '@' and without seven digits in a row costs a look. Redacting twice is redacting
once. Numbers without check digits that only context tells (social security, passports, driving
licences) are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stages.signals.account_numbers import cards, ibans
from stages.signals.config import PHONE_REGIONS
from stages.signals.network_addresses import emails, ip_addresses
from stages.signals.number_runs import number_runs, with_plain_digits
from stages.signals.phone_numbers import phone_numbers
from stages.signals.replacements import Form, is_reserved, replacement
from stages.signals.signal import Signal, count
from stages.signals.spans import Span, without_overlap

COUNTED = {
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


def personal_data(
    text: str, phone_regions: Sequence[str] = PHONE_REGIONS, form: Form = "examples"
) -> list[Span]:
    """Every value of the sorts of `TAGS` in `text`, from left to right, without overlaps."""
    found = [
        Span(start, end, label, replacement(label, text[start:end], form))
        for label, start, end in _found(text, phone_regions)
        if not is_reserved(label, text[start:end])
    ]
    # Of two that start together (8.8.8.8@corp.com) the longer stays.
    return without_overlap(found) if len(found) > 1 else found


def personal_counts(texts: Sequence[Sequence[Span]]) -> dict[str, list[int]]:
    """The columns of `PERSONAL_SIGNALS`: one value for the spans of each text."""
    return {
        name: [sum(span.label == label for span in spans) for spans in texts]
        for name, label in COUNTED.items()
    }


def _found(text: str, phone_regions: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Sort and place of each value; an account number before the phone number it looks like."""
    for start, end in emails(text):
        yield "email", start, end
    for start, end in ip_addresses(text):
        yield "ip_address", start, end
    plain = with_plain_digits(text)
    for run in number_runs(plain):
        for start, end in ibans(plain, *run):
            yield "iban", start, end
        for start, end in cards(plain, *run):
            yield "card", start, end
        for start, end in phone_numbers(plain, *run, phone_regions):
            yield "phone", start, end
