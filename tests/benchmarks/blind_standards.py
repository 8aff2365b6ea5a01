"""Checksums and encodings that values of the blind sets have, as the standards state them.

They draw nothing: what a set draws is its writer's own. `test_blind_values.py` compares them with
published examples.
"""

from __future__ import annotations

import base64
import string
import zlib

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
SIGNATURES = {"HS256": 32, "HS512": 64, "RS256": 256, "ES256": 64}
"""Bytes of the signature of a web token by its algorithm (RFC 7518, 3.1; RSA of 2,048 bits)."""


def luhn_digit(digits: str) -> str:
    """The check digit that goes behind these digits (ISO/IEC 7812-1, annex B)."""
    doubled = [int(one) * (2 - at % 2) for at, one in enumerate(reversed(digits))]
    return str(-sum(one - 9 if one > 9 else one for one in doubled) % 10)


def crc_base62(body: str) -> str:
    """The six characters at the end of a token of GitHub or npm: CRC-32 of the body in base 62."""
    number, text = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        text = _BASE62[digit] + text
    return text


def crc24(content: bytes) -> int:
    """The checksum of OpenPGP's armor (RFC 4880, 6.1)."""
    crc = 0xB704CE
    for byte in content:
        crc ^= byte << 16
        for _ in range(8):
            crc = crc << 1 ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc & 0xFFFFFF


def der(tag: int, *parts: bytes) -> bytes:
    """An element of DER: tag, length, contents (X.690, 8.1)."""
    content = b"".join(parts)
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    size = (len(content).bit_length() + 7) // 8
    return bytes([tag, 128 | size]) + len(content).to_bytes(size, "big") + content


def der_end(content: bytes) -> int:
    """Where the first element of DER ends."""
    if content[1] < 128:
        return 2 + content[1]
    count = content[1] & 127
    return 2 + count + int.from_bytes(content[2 : 2 + count], "big")


def bech32(prefix: str, content: bytes) -> str:
    """Bech32 of BIP 173, in small letters."""
    bits = "".join(f"{byte:08b}" for byte in content)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[at : at + 5], 2) for at in range(0, len(bits), 5)]
    head = [ord(one) >> 5 for one in prefix] + [0] + [ord(one) & 31 for one in prefix]
    check = 1
    for value in [*head, *values, *[0] * 6]:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for at, generator in enumerate(_GENERATORS):
            check ^= generator if top >> at & 1 else 0
    values += [(check ^ 1) >> 5 * (5 - at) & 31 for at in range(6)]
    return f"{prefix}1" + "".join(_BECH32[value] for value in values)


def segment(content: bytes) -> str:
    """Base64 of a web token: the alphabet of URLs, no padding (RFC 7515)."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def decode_segment(part: str) -> bytes:
    """The bytes of a segment of a web token."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
