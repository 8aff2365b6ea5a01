"""Lines as CCNet compares them: without case, figures, typographic punctuation and controls.

A line is what stands between line feeds, blank ones as well; its hash is the first eight bytes of
the SHA-1 of what is left of it (Wenzek et al. 2020; `compute_hashes` and `normalize_for_dedup` of
facebookresearch/cc_net). Their table of punctuation holds the full-width digit one by mistake,
which changes nothing here: digits have become zeros before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from stages.dedup.passages.occurrences import Occurrences, occurrences
from stages.text.punctuation import PUNCTUATION

VIEW = "duplicate_lines@ccnet"

_CONTROLS = bytes(code for code in (*range(32), 127) if code != ord("\n"))
_WHITE_SPACE = b" \t\x0b\x0c\r\x1c\x1d\x1e\x1f"
"""What `str.strip` takes from a line of ASCII."""
_ASCII = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789", b"abcdefghijklmnopqrstuvwxyz" + b"0" * 9
)
_DIGIT = re.compile(r"\d")
_TYPOGRAPHIC = "".join(sorted(char for char in PUNCTUATION if ord(char) >= 160))
_REMOVED = re.compile(rf"[{_TYPOGRAPHIC}\x00-\x09\x0b-\x1f\x7f-\x9f]+")


def normalised_lines(text: str) -> list[bytes]:
    """What CCNet hashes of each line, in UTF-8; empty for lines without anything else."""
    if text.isascii():
        stripped = [line.strip(_WHITE_SPACE) for line in text.encode().split(b"\n")]
        return b"\n".join(stripped).translate(_ASCII, _CONTROLS).split(b"\n")
    # Nothing that lies beyond a line feed bears on the lower case of a letter.
    lowered = "\n".join([line.strip() for line in text.split("\n")]).lower()
    return _REMOVED.sub("", _DIGIT.sub("0", lowered)).encode().split(b"\n")


def line_hash(normalised: bytes) -> bytes:
    """Eight bytes, to be read as a little-endian number."""
    return hashlib.sha1(normalised, usedforsecurity=False).digest()[:8]


BLANK = int.from_bytes(line_hash(b""), "little")
"""Hash of a line of which nothing is left."""


def line_occurrences(texts: Sequence[str], first_row: int) -> Occurrences:
    """Every line of the texts, which are the rows from `first_row` on; behind is the next line."""
    digests: list[bytes] = []
    lengths: list[int] = []
    counts: list[int] = []
    for text in texts:
        lines = normalised_lines(text)
        digests += map(line_hash, lines)
        lengths += map(len, text.split("\n"))
        counts.append(len(lines))
    number, size = np.array(counts, dtype=np.int64), np.array(lengths, dtype=np.int64)
    last = np.cumsum(number) - 1
    # A line and its line feed; the last one of a text has none.
    steps = size + 1
    steps[last] -= 1
    behind = np.cumsum(steps)
    behind -= np.repeat(behind[last] - [*map(len, texts)], number)
    starts = behind - steps
    return occurrences(
        np.frombuffer(b"".join(digests), dtype="<u8"),
        np.repeat(np.arange(first_row, first_row + len(texts)), number),
        starts,
        starts + size,
        behind,
    )
