"""Makers of private and public keys in the forms of their programs, filled with random numbers.

Their outer structure is right (DER lengths, OpenSSH fields, checksums); the numbers belong to no
key.
"""

from __future__ import annotations

import base64
import hashlib
import random
import textwrap
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc24, der
from tests.benchmarks.eighth_blind.words import BASE58, HEX, draw_from, make_base64

_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def _integer(rng: random.Random, size: int) -> bytes:
    first = rng.randrange(128, 256)
    return der(2, b"\0", bytes([first]), rng.randbytes(size - 1))


def _oid(*content: int) -> bytes:
    return der(6, bytes(content))


_RSA = der(0x30, _oid(42, 134, 72, 134, 247, 13, 1, 1, 1), der(5))
_P256 = _oid(42, 134, 72, 206, 61, 3, 1, 7)
_EC = der(0x30, _oid(42, 134, 72, 206, 61, 2, 1), _P256)
_ED25519 = der(0x30, _oid(43, 101, 112))
_PBES2 = der(0x30, _oid(42, 134, 72, 134, 247, 13, 1, 5, 13))
_ZERO, _EXPONENT = der(2, b"\0"), der(2, b"\1\0\1")


def _rsa(rng: random.Random) -> bytes:
    size = rng.choice([128, 256])
    halves = [_integer(rng, size // 2) for _ in range(5)]
    return der(0x30, _ZERO, _integer(rng, size), _EXPONENT, _integer(rng, size), *halves)


def _ec(rng: random.Random) -> bytes:
    point = der(3, b"\0\4", rng.randbytes(64))
    return der(0x30, der(2, b"\1"), der(4, rng.randbytes(32)), der(0xA0, _P256), der(0xA1, point))


def _pkcs8(rng: random.Random) -> bytes:
    algorithm, inner = rng.choice(
        [(_RSA, _rsa(rng)), (_EC, _ec(rng)), (_ED25519, der(4, rng.randbytes(32)))]
    )
    return der(0x30, _ZERO, algorithm, der(4, inner))


def _encrypted(rng: random.Random) -> bytes:
    return der(0x30, _PBES2, der(4, rng.randbytes(8 * rng.randrange(40, 150))))


def _dsa(rng: random.Random) -> bytes:
    sizes = (128, 20, 128, 128, 20)
    return der(0x30, _ZERO, *(_integer(rng, size) for size in sizes))


def _field(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _ssh_public(rng: random.Random) -> bytes:
    return _field(b"ssh-ed25519") + _field(rng.randbytes(32))


def _openssh(rng: random.Random) -> bytes:
    check, public = rng.randbytes(4), _ssh_public(rng)
    private = check + check + public + _field(rng.randbytes(64)) + _field(b"deploy")
    private += bytes(range(1, 1 + -len(private) % 8))
    head = _field(b"none") + _field(b"none") + _field(b"") + (1).to_bytes(4, "big")
    return b"openssh-key-v1\0" + head + _field(public) + _field(private)


def _public(rng: random.Random) -> bytes:
    rsa = der(0x30, _integer(rng, 256), _EXPONENT)
    algorithm, key = rng.choice([(_RSA, rsa), (_EC, b"\4" + rng.randbytes(64))])
    return der(0x30, algorithm, der(3, b"\0", key))


def _certificate(rng: random.Random) -> bytes:
    body = der(0x30, der(0xA0, der(2, b"\2")), _integer(rng, 16), _public(rng))
    return der(0x30, body, _RSA, der(3, b"\0", rng.randbytes(256)))


KEY_BYTES: dict[str, Callable[[random.Random], bytes]] = {
    "RSA PRIVATE KEY": _rsa,
    "EC PRIVATE KEY": _ec,
    "DSA PRIVATE KEY": _dsa,
    "PRIVATE KEY": _pkcs8,
    "ENCRYPTED PRIVATE KEY": _encrypted,
    "OPENSSH PRIVATE KEY": _openssh,
    "PUBLIC KEY": _public,
    "RSA PUBLIC KEY": lambda rng: der(0x30, _integer(rng, 256), _EXPONENT),
    "CERTIFICATE": _certificate,
    "CERTIFICATE REQUEST": _certificate,
    "DH PARAMETERS": lambda rng: der(0x30, _integer(rng, 256), der(2, b"\2")),
    "SSH SIGNATURE": lambda rng: b"SSHSIG" + rng.randbytes(180),
}


def make_armor(rng: random.Random, tag: int) -> str:
    """The lines of an OpenPGP block whose first packet is of a tag, with its checksum."""
    packet = b"\4" + rng.randbytes(rng.randrange(220, 420))
    content = bytes([0x80 | tag << 2 | 1]) + len(packet).to_bytes(2, "big") + packet
    lines = textwrap.wrap(base64.b64encode(content).decode(), 64)
    return "\n".join([*lines, "=" + base64.b64encode(crc24(content).to_bytes(3, "big")).decode()])


def bech32_checksum(prefix: str, data: list[int]) -> list[int]:
    """The six values that end a Bech32 text (BIP 173)."""
    spread = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    value = 1
    for number in [*spread, *data, *[0] * 6]:
        top, value = value >> 25, (value & 0x1FFFFFF) << 5 ^ number
        for bit, part in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            value ^= part if top >> bit & 1 else 0
    return [(value ^ 1) >> 5 * (5 - place) & 31 for place in range(6)]


def make_age(rng: random.Random, prefix: str) -> str:
    """A Bech32 text of 32 random bytes, as age writes its keys."""
    data = [rng.randrange(32) for _ in range(51)] + [rng.choice([0, 16])]
    return f"{prefix}1" + "".join(_BECH32[n] for n in data + bech32_checksum(prefix, data))


def make_wif(rng: random.Random) -> str:
    """A Bitcoin key in the Wallet Import Format, compressed, with its checksum."""
    content = b"\x80" + rng.randbytes(32) + b"\1"
    content += hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, text = int.from_bytes(content, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return text


def _pem(scene: Scene, argument: str) -> str:
    """The body of a PEM block; after a dot in the argument its form: one, escaped, indent N."""
    label, _, form = argument.partition(".")
    body = base64.b64encode(KEY_BYTES[label](scene.rng)).decode()
    if form == "one":
        return body
    lines = textwrap.wrap(body, 70 if label.startswith("OPENSSH") else 64)
    joints = {"": "\n", "escaped": "\\n", "quote": "\n> ", "plus": "\n+", "star": "\n * "}
    return (joints[form] if form in joints else "\n" + " " * int(form)).join(lines)


def _putty(scene: Scene, argument: str) -> str:
    return "\n".join(textwrap.wrap(make_base64(scene.rng, int(argument)), 64))


KEY_MAKERS: dict[str, Maker] = {
    "pem": _pem,
    "pgp": lambda scene, argument: make_armor(scene.rng, int(argument)),
    "putty": _putty,
    "age": lambda scene, argument: make_age(scene.rng, "age-secret-key-").upper(),
    "age_public": lambda scene, argument: make_age(scene.rng, "age"),
    "wif": lambda scene, argument: make_wif(scene.rng),
    "curve": lambda scene, argument: make_base64(scene.rng, 32),
    "segwit": lambda scene, argument: draw_from(scene.rng, _BECH32, int(argument)),
    "eth": lambda scene, argument: draw_from(scene.rng, HEX, 64),
    "ssh_public": lambda scene, argument: base64.b64encode(_ssh_public(scene.rng)).decode(),
}
