"""Private keys of the fourteenth blind set and the public material that stands beside such keys.

The numbers in a key are random; only the encoding is that of the standard.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import bech32, crc24, der
from tests.benchmarks.fourteenth_blind.words import draw_name

_P256 = bytes.fromhex("06082a8648ce3d030107")
_EC = bytes.fromhex("06072a8648ce3d0201")
_RSA = bytes.fromhex("06092a864886f70d0101010500")
_ED25519 = bytes.fromhex("06032b6570")
JOINTS = {
    "": "\n", "i2": "\n  ", "i4": "\n    ", "i6": "\n      ", "i8": "\n        ", "tab": "\n\t",
    "esc": "\\n", "crlf": "\\r\\n", "one": "", "sp": " ", "quote": "\n> ", "hash": "\n# ",
    "js": '\\n" +\n    "',
}  # fmt: skip
"""What stands between the lines of a key, by the form of the file it stands in."""


def _number(rng: Random, bits: int) -> bytes:
    value = rng.getrandbits(bits) | 1 << (bits - 1) | 1
    return der(2, value.to_bytes(bits // 8 + 1, "big"))


def _small(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _rsa(rng: Random, bits: int = 2048) -> bytes:
    primes = [_number(rng, bits // 2) for _ in range(2)]
    exponents = [_small(rng.getrandbits(bits // 2) | 1) for _ in range(3)]
    secret = _small(rng.getrandbits(bits) | 1)
    public = (_number(rng, bits), _small(65537))
    return der(0x30, _small(0), *public, secret, *primes, *exponents)


def _ec(rng: Random, curve: bool = True) -> bytes:
    point = der(0xA1, der(3, b"\x00\x04" + rng.randbytes(64)))
    middle = [der(0xA0, _P256)] if curve else []
    return der(0x30, _small(1), der(4, rng.randbytes(32)), *middle, point)


def _pkcs8_rsa(rng: Random) -> bytes:
    return der(0x30, _small(0), der(0x30, _RSA), der(4, _rsa(rng)))


def _pkcs8_ec(rng: Random) -> bytes:
    return der(0x30, _small(0), der(0x30, _EC, _P256), der(4, _ec(rng, curve=False)))


def _pkcs8_ed(rng: Random) -> bytes:
    return der(0x30, _small(0), der(0x30, _ED25519), der(4, der(4, rng.randbytes(32))))


def _text(*parts: bytes) -> bytes:
    """Strings of the SSH protocol (RFC 4251, 5)."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _openssh(rng: Random, rsa: bool = False) -> bytes:
    if rsa:
        modulus = b"\x00\xb1" + rng.randbytes(383)
        public = _text(b"ssh-rsa", b"\x01\x00\x01", modulus)
        numbers = [modulus, b"\x01\x00\x01", *map(rng.randbytes, (384, 192, 192, 192))]
        secret = _text(b"ssh-rsa", *numbers)
    else:
        point = rng.randbytes(32)
        public = _text(b"ssh-ed25519", point)
        secret = _text(b"ssh-ed25519", point, rng.randbytes(32) + point)
    inner = rng.randbytes(4) * 2 + secret + _text(b"user@host")
    inner += bytes(range(1, 1 + -len(inner) % 8))
    head = b"openssh-key-v1\0" + _text(b"none", b"none", b"") + (1).to_bytes(4, "big")
    return head + _text(public, inner)


def _pgp(rng: Random) -> bytes:
    return b"\x95\x03\x98\x04" + rng.randbytes(600)


ENCODINGS: dict[str, Callable[[Random], bytes]] = {
    "rsa": _rsa,
    "rsa1024": lambda rng: _rsa(rng, 1024),
    "ec": _ec,
    "pkcs8": _pkcs8_rsa,
    "pkcs8ec": _pkcs8_ec,
    "pkcs8ed": _pkcs8_ed,
    "ossh": _openssh,
    "osshrsa": lambda rng: _openssh(rng, rsa=True),
    "pgp": _pgp,
    "ppk": lambda rng: _text(rng.randbytes(32)),
    "ppkrsa": lambda rng: _text(*map(rng.randbytes, (256, 129, 129, 128))),
}
_LABELS = {"rsa": "RSA ", "rsa1024": "RSA ", "ec": "EC ", "ossh": "OPENSSH ", "osshrsa": "OPENSSH "}


def _lines(content: bytes, width: int = 64) -> list[str]:
    text = base64.b64encode(content).decode()
    return [text[at : at + width] for at in range(0, len(text), width)]


def make_body(rng: Random, form: str, style: str = "") -> str:
    """The Base64 lines of a key, joined as the file has them; a PGP key ends with its checksum."""
    content = ENCODINGS[form](rng)
    lines = _lines(content, 70 if form.startswith("ossh") else 64)
    if form == "pgp":
        lines.append("=" + base64.b64encode(crc24(content).to_bytes(3, "big")).decode())
    return JOINTS[style].join(lines)


def _key(scene: Scene, shape: str) -> str:
    form, _, style = shape.partition(",")
    return make_body(scene.rng, form, style)


def _whole_in_base64(scene: Scene, shape: str) -> str:
    """A PEM file in Base64 once more; the second part of the argument is the width of a line."""
    form, _, width = shape.partition(",")
    label = _LABELS.get(form, "")
    body = make_body(scene.rng, form)
    pem = f"-----BEGIN {label}PRIVATE KEY-----\n{body}\n-----END {label}PRIVATE KEY-----\n"
    text = base64.b64encode(pem.encode()).decode()
    step = int(width or len(text))
    return "\n    ".join(text[at : at + step] for at in range(0, len(text), step))


def _public_pem(scene: Scene, style: str) -> str:
    rng = scene.rng
    key = der(0x30, _number(rng, 2048), _small(65537))
    content = der(0x30, der(0x30, _RSA), der(3, b"\x00" + key))
    return JOINTS[style].join(_lines(content))


def _certificate(scene: Scene, style: str) -> str:
    rng = scene.rng
    inner = der(0x30, der(0xA0, _small(2)), _number(rng, 64), rng.randbytes(620))
    content = der(0x30, inner, der(0x30, _RSA), der(3, b"\x00" + rng.randbytes(256)))
    return JOINTS[style].join(_lines(content))


def _public_ssh(scene: Scene, form: str) -> str:
    rng = scene.rng
    if form == "rsa":
        body = _text(b"ssh-rsa", b"\x01\x00\x01", b"\x00\xc3" + rng.randbytes(255))
        return "ssh-rsa " + base64.b64encode(body).decode()
    body = _text(b"ssh-ed25519", rng.randbytes(32))
    return "ssh-ed25519 " + base64.b64encode(body).decode()


def _public_pgp(scene: Scene, style: str) -> str:
    content = b"\x99\x01\x0d\x04" + scene.rng.randbytes(500)
    check = "=" + base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
    return JOINTS[style].join([*_lines(content), check])


def _fingerprint(scene: Scene, _: str) -> str:
    return "SHA256:" + base64.b64encode(scene.rng.randbytes(32)).decode().rstrip("=")


def _age(scene: Scene, _: str) -> str:
    return bech32("age-secret-key-", scene.rng.randbytes(32)).upper()


def _key_comment(scene: Scene, _: str) -> str:
    draw_name(scene, "en", {"en": "anna jan tom lea omar kai"}, "owner")
    return f"{scene.memory['owner']}-{scene.rng.choice(['laptop', 'desktop', 'ci', 'work'])}"


KEY_MAKERS: dict[str, Maker] = {
    "key": _key,
    "key64": _whole_in_base64,
    "wgkey": lambda scene, _: base64.b64encode(scene.rng.randbytes(32)).decode(),
    "agekey": _age,
    "agepub": lambda scene, _: bech32("age", scene.rng.randbytes(32)),
    "pubpem": _public_pem,
    "cert": _certificate,
    "sshpub": _public_ssh,
    "pgppub": _public_pgp,
    "fingerprint": _fingerprint,
    "keyname": _key_comment,
}
