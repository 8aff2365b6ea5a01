"""What tells a secret from a placeholder: no filler, and characters as various as chance has."""

from __future__ import annotations

import math
import re
from collections import Counter

_FILLER = re.compile(
    r"example|sample|placeholder|dummy|changeme|change[_-]me|redacted|your[_-]|[_-]here\b"
    r"|x{4}|\*{3}|\.{3}|1234567|abcdefg|0{6}|<[^<>]*>|\$\{|\{\{|\$\(|%\(",
    re.IGNORECASE,
)
_WORDS = frozenset(
    (
        *("admin", "changeit", "changeme", "default", "guest", "hunter2", "letmein", "mypass"),
        *("mypassword", "none", "null", "pass", "passw0rd", "passwd", "password", "password1"),
        *("pw", "pwd", "qwerty", "root", "s3cr3t", "secret", "test", "testing", "token", "toor"),
        *("user", "xxx", "yourpassword"),
    )
)
_SCALE = 1000
_LOGS = [0, *(int(c * math.log2(c) * _SCALE) for c in range(1, 256))]
"""c * log2(c) in whole thousandths of a bit, so that no rounding of a logarithm decides."""


def is_placeholder(value: str) -> bool:
    """Whether a value says that it stands for another one, or is a word that many use."""
    return value.lower() in _WORDS or _FILLER.search(value) is not None


def is_random(value: str, bits: int) -> bool:
    """Whether the entropy of the value's characters is at least `bits` hundredths a character.

    Shannon's, over the first 255 characters: n log2 n - sum of c log2 c, over n. 40 characters of
    random base64 have about 4.6 bits, hexadecimal at most 4, an English word of ten letters about
    3.
    """
    value = value[:255]
    size = len(value)
    if not size:
        return False
    spread = _LOGS[size] - sum(_LOGS[count] for count in Counter(value).values())
    return spread * 100 >= bits * _SCALE * size
