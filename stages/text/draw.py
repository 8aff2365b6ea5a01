"""Drawing by name: a document falls on the same side on every machine and in every snapshot."""

from __future__ import annotations

import hashlib


def draw(name: str, salt: str) -> float:
    """A number in [0, 1), uniform over names and fixed for a name and salt.

    The 53 highest bits of BLAKE2b keyed with the salt (at most 64 bytes), so exact in a double.
    """
    digest = hashlib.blake2b(name.encode(), digest_size=8, key=salt.encode()).digest()
    return float(int.from_bytes(digest, "big") >> 11) / 2**53
