"""Private keys of the twelfth blind set: random numbers in the encodings that tools write."""

from __future__ import annotations

import base64
import random
import textwrap

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import bech32, crc24, der
from tests.benchmarks.twelfth_blind.words import draw

_RSA = bytes.fromhex("300d06092a864886f70d0101010500")
_P256 = bytes.fromhex("06082a8648ce3d030107")
_EC = bytes.fromhex("06072a8648ce3d0201")


def integer(value: int) -> bytes:
    """A positive number in DER."""
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def make_rsa(rng: random.Random) -> bytes:
    """RSAPrivateKey of PKCS #1 with 2048 bits; its factors are odd, not prime."""
    p, q = (rng.getrandbits(1024) | (3 << 1022) | 1 for _ in range(2))
    halves = [rng.getrandbits(1023) | 1 for _ in range(3)]
    numbers = [p * q, 65537, rng.getrandbits(2046) | 1, p, q, *halves]
    return der(0x30, b"\x02\x01\x00" + b"".join(map(integer, numbers)))


def _point(rng: random.Random) -> bytes:
    return der(0xA1, der(3, b"\x00\x04" + rng.randbytes(64)))


def make_ec(rng: random.Random) -> bytes:
    """ECPrivateKey of RFC 5915 on P-256."""
    secret = der(4, rng.randbytes(32))
    return der(0x30, b"\x02\x01\x01" + secret + der(0xA0, _P256) + _point(rng))


def make_ec_pkcs8(rng: random.Random) -> bytes:
    """The same key inside PKCS #8."""
    inner = der(0x30, b"\x02\x01\x01" + der(4, rng.randbytes(32)) + _point(rng))
    return der(0x30, b"\x02\x01\x00" + der(0x30, _EC + _P256) + der(4, inner))


def make_rsa_pkcs8(rng: random.Random) -> bytes:
    """An RSA key inside PKCS #8."""
    return der(0x30, b"\x02\x01\x00" + _RSA + der(4, make_rsa(rng)))


def make_ed25519(rng: random.Random) -> bytes:
    """An Ed25519 key in PKCS #8 (RFC 8410)."""
    return bytes.fromhex("302e020100300506032b657004220420") + rng.randbytes(32)


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def make_openssh(rng: random.Random) -> bytes:
    """An Ed25519 key in the format of OpenSSH (PROTOCOL.key), without encryption."""
    public, check = rng.randbytes(32), rng.randbytes(4)
    head = _string(b"ssh-ed25519") + _string(public)
    secret = check * 2 + head + _string(rng.randbytes(32) + public) + _string(b"me@laptop")
    secret += bytes(range(1, 1 + -len(secret) % 8))
    names = _string(b"none") + _string(b"none") + _string(b"")
    return b"openssh-key-v1\0" + names + b"\0\0\0\1" + _string(head) + _string(secret)


ENCODINGS = {
    "rsa": make_rsa,
    "p8": make_rsa_pkcs8,
    "ec": make_ec,
    "ecp8": make_ec_pkcs8,
    "ed": make_ed25519,
    "ossh": make_openssh,
}
_JOINTS = {"": "\n", "esc": "\\n", "ind2": "\n  ", "ind4": "\n    ", "quote": "\n> "}


def make_pgp(rng: random.Random) -> list[str]:
    """The lines of an armored secret-key packet: version 4, EdDSA, not encrypted."""
    public = bytes.fromhex("092b06010401da470f01") + b"\x01\x07\x40" + rng.randbytes(32)
    body = b"\x04" + rng.randbytes(4) + b"\x16" + public + b"\x00\x01\x00" + rng.randbytes(34)
    packet = bytes([0x94, len(body)]) + body
    content = packet + rng.randbytes(200)
    crc = base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
    return [*textwrap.wrap(base64.b64encode(content).decode(), 64), f"={crc}"]


def _body(scene: Scene, form: str) -> str:
    name, _, joint = form.partition(",")
    if name == "pgp":
        return "\n".join(make_pgp(scene.rng))
    text = base64.b64encode(ENCODINGS[name](scene.rng)).decode()
    return _JOINTS[joint].join(textwrap.wrap(text, 70 if name == "ossh" else 64))


def _whole(scene: Scene, _: str) -> str:
    lines = _body(scene, "rsa")
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----\n"
    return base64.b64encode(text.encode()).decode()


def _raw(scene: Scene, form: str) -> str:
    content = scene.rng.randbytes(32)
    if form == "hex":
        return content.hex()
    if form == "age":
        return bech32("age-secret-key-", content).upper()
    if form == "d":
        return base64.urlsafe_b64encode(content).decode().rstrip("=")
    if form == "ppk":
        return base64.b64encode(_string(content)).decode()
    return base64.b64encode(content).decode()


def _public(scene: Scene, form: str) -> str:
    width, count = map(int, form.split(","))
    return "\n".join(draw(scene.rng, "b64", width) for _ in range(count))


KEY_MAKERS: dict[str, Maker] = {"body": _body, "body64": _whole, "raw": _raw, "public": _public}
