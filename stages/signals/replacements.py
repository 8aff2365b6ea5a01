"""What stands in the place of personal data: a tag, or one of the examples reserved for the sort.

Which example is told by a hash of the value: the same value has the same example wherever it
stands, in any order of documents, and different values are spread over the examples, so that a
model does not learn one of them by heart. The examples belong to nobody; they are never found
again, and so a redacted text has nothing to redact.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Literal

Form = Literal["examples", "tags"]

TAGS = {
    "email": "<EMAIL>",
    "ip_address": "<IP_ADDRESS>",
    "phone": "<PHONE>",
    "iban": "<IBAN>",
    "card": "<CARD>",
}
"""The sorts of personal data, and the tag of each."""

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

_SIGNS = re.compile(r"[\W_]")
_FICTION = re.compile(
    r"(?:1?[2-9][0-9]{2}55501[0-9]{2}|(?:00?44|44|0)(?:2079460|7700900)[0-9]{3}"
    r"|(?:0033|33|0)19900[0-9]{4}|(?:0049|49|0)3023125[0-9]{3})"
    r"(?:(?:X|EXT)[0-9]{1,5})?"
)


def replacement(label: str, value: str, form: Form = "examples") -> str:
    """What stands in the place of a value of the sort `label`."""
    if form == "tags":
        return TAGS[label]
    examples = EXAMPLES_IPV6 if label == "ip_address" and ":" in value else EXAMPLES[label]
    digest = blake2b(_plain(label, value).encode("utf-8", "surrogatepass"), key=label.encode())
    return examples[int.from_bytes(digest.digest()[:8], "big") % len(examples)]


def is_reserved(label: str, value: str) -> bool:
    """Whether a value is one of the examples, or a phone number kept for fiction."""
    plain = _plain(label, value)
    if label == "phone":
        return _FICTION.fullmatch(plain) is not None or plain in _RESERVED["card"]
    return plain in _RESERVED[label]


def _plain(label: str, value: str) -> str:
    """A value without the signs that people group it with, in one case."""
    return value.lower() if label in ("email", "ip_address") else _SIGNS.sub("", value).upper()


_RESERVED = {
    label: frozenset(_plain(label, value) for value in values) for label, values in EXAMPLES.items()
}
