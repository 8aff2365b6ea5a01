"""Private keys of the thirteenth blind set in their encodings, and the public things beside them.

The numbers inside a key are random: it decodes, and opens nothing.
"""

from __future__ import annotations

import base64
import random
import textwrap
from collections.abc import Callable, Mapping

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc24, der

_RSA = bytes.fromhex("06092a864886f70d010101") + b"\x05\x00"
_EC = bytes.fromhex("06072a8648ce3d0201") + bytes.fromhex("06082a8648ce3d030107")
_ED25519 = bytes.fromhex("06032b6570")


def _integer(rng: random.Random, size: int) -> bytes:
    return der(2, bytes([0, rng.randint(128, 255)]) + rng.randbytes(size - 1))


def _number(value: int) -> bytes:
    return der(2, value.to_bytes(max(1, (value.bit_length() + 8) // 8), "big"))


def _pkcs1(rng: random.Random) -> bytes:
    halves = [_integer(rng, 128) for _ in range(5)]
    return der(48, _number(0), _integer(rng, 256), _number(65537), _integer(rng, 256), *halves)


def _sec1(rng: random.Random) -> bytes:
    curve, point = der(0xA0, _EC[9:]), der(0xA1, der(3, b"\0\4" + rng.randbytes(64)))
    return der(48, _number(1), der(4, rng.randbytes(32)), curve, point)


def _pkcs8(rng: random.Random) -> bytes:
    form = rng.random()
    if form < 0.7:
        return der(48, _number(0), der(48, _RSA), der(4, _pkcs1(rng)))
    if form < 0.85:
        point = der(0xA1, der(3, b"\0\4" + rng.randbytes(64)))
        key = der(48, _number(1), der(4, rng.randbytes(32)), point)
        return der(48, _number(0), der(48, _EC), der(4, key))
    return der(48, _number(0), der(48, _ED25519), der(4, der(4, rng.randbytes(32))))


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _mpint(rng: random.Random, size: int) -> bytes:
    return _string(bytes([0, rng.randint(128, 255)]) + rng.randbytes(size - 1))


def _openssh(rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        name, public = _string(b"ssh-ed25519"), rng.randbytes(32)
        fields = _string(public)
        secret = fields + _string(rng.randbytes(32) + public)
    else:
        name, modulus, exponent = _string(b"ssh-rsa"), _mpint(rng, 384), _string(b"\1\0\1")
        fields = exponent + modulus
        primes = b"".join(_mpint(rng, 192) for _ in range(3))
        secret = modulus + exponent + _mpint(rng, 384) + primes
    private = rng.randbytes(4) * 2 + name + secret + _string(b"deploy@build")
    private += bytes(range(1, 1 + -len(private) % 8))
    blob = _string(name + fields)
    head = b"openssh-key-v1\0" + _string(b"none") * 2 + _string(b"") + (1).to_bytes(4, "big")
    return head + blob + _string(private)


FORMS: Mapping[str, tuple[str, Callable[[random.Random], bytes], float]] = {
    "rsa": ("RSA PRIVATE KEY", _pkcs1, 4),
    "pkcs8": ("PRIVATE KEY", _pkcs8, 4),
    "openssh": ("OPENSSH PRIVATE KEY", _openssh, 3),
    "ec": ("EC PRIVATE KEY", _sec1, 1),
}
"""Name in the armor, encoding and share of each form of a key that is not encrypted."""
GLUES: Mapping[str, str] = {
    "lines": "\n",
    "indent2": "\n  ",
    "indent4": "\n    ",
    "indent6": "\n      ",
    "escaped": "\\n",
    "crlf": "\\r\\n",
    "quote": "\n> ",
    "comment": "\n# ",
    "plus": '\\n" +\n    "',
    "blank": " ",
}
"""What stands between two lines of a key in each writing."""


def armor(name: str, content: bytes, glue: str, width: int = 64) -> str:
    """Text of RFC 7468 with the body marked as the part to label."""
    lines = textwrap.wrap(base64.b64encode(content).decode(), width)
    body = f"\x02{glue.join(lines)}\x03"
    return glue.join((f"-----BEGIN {name}-----", body, f"-----END {name}-----"))


def _unmarked(text: str) -> str:
    return text.replace("\x02", "").replace("\x03", "")


def _pem(scene: Scene, argument: str) -> str:
    writing, _, form = argument.partition(" ")
    weights = [weight for _, _, weight in FORMS.values()]
    form = form or scene.rng.choices(tuple(FORMS), weights)[0]
    name, make, _ = FORMS[form]
    return armor(name, make(scene.rng), GLUES[writing or "lines"], 70 if form == "openssh" else 64)


def _pem_base64(scene: Scene, form: str) -> str:
    text = _unmarked(_pem(scene, f"lines {form}".strip()))
    return base64.b64encode(f"{text}\n".encode()).decode()


def _der_base64(scene: Scene, form: str) -> str:
    return base64.b64encode(FORMS[form or "pkcs8"][1](scene.rng)).decode()


def _armored_pgp(scene: Scene, name: str, packet: bytes, glue: str) -> str:
    content = packet + scene.rng.randbytes(scene.rng.randint(300, 700))
    check = base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
    lines = [*textwrap.wrap(base64.b64encode(content).decode(), 64), f"={check}"]
    head = [f"-----BEGIN PGP {name}-----"]
    if scene.rng.random() < 0.4:
        head.append(scene.rng.choice(("Version: GnuPG v2", "Comment: GPGTools")))
    body = f"\x02{glue.join(lines)}\x03"
    return glue.join((*head, "", body, f"-----END PGP {name}-----"))


def _pgp(scene: Scene, writing: str) -> str:
    packet = b"\x95\x03\x98\x04" + scene.rng.randbytes(4) + b"\x01\x08\x00"
    return _armored_pgp(scene, "PRIVATE KEY BLOCK", packet, GLUES[writing or "lines"])


def _pgp_public(scene: Scene, _: str) -> str:
    packet = b"\x99\x01\x0d\x04" + scene.rng.randbytes(4) + b"\x01\x08\x00"
    return _unmarked(_armored_pgp(scene, "PUBLIC KEY BLOCK", packet, "\n"))


def _pgp_signature(scene: Scene, _: str) -> str:
    return _unmarked(_armored_pgp(scene, "SIGNATURE", b"\x89\x01\x33\x04\x00\x01\x08\x00", "\n"))


def _putty(scene: Scene, writing: str) -> str:
    rng, glue = scene.rng, GLUES[writing or "lines"]
    public = _string(b"ssh-ed25519") + _string(rng.randbytes(32))
    private = base64.b64encode(_string(rng.randbytes(32))).decode()
    lines = (
        f"PuTTY-User-Key-File-{rng.choice('23')}: ssh-ed25519",
        "Encryption: none",
        f"Comment: eddsa-key-20{rng.randint(18, 25)}0{rng.randint(1, 9)}{rng.randint(10, 28)}",
        "Public-Lines: 2",
        *textwrap.wrap(base64.b64encode(public).decode(), 64),
        "Private-Lines: 1",
        f"\x02{private}\x03",
        f"Private-MAC: {rng.randbytes(32).hex()}",
    )
    return glue.join(lines)


def _putty_rsa(scene: Scene, writing: str) -> str:
    rng, glue = scene.rng, GLUES[writing or "lines"]
    public = _string(b"ssh-rsa") + _string(b"\x25") + _string(b"\0" + rng.randbytes(256))
    parts = [_string(rng.randbytes(256)), *(_string(b"\0" + rng.randbytes(128)) for _ in range(3))]
    lines = textwrap.wrap(base64.b64encode(b"".join(parts)).decode(), 64)
    public_lines = textwrap.wrap(base64.b64encode(public).decode(), 64)
    return glue.join(
        (
            *(
                "PuTTY-User-Key-File-2: ssh-rsa",
                "Encryption: none",
                "Comment: imported-openssh-key",
            ),
            *(f"Public-Lines: {len(public_lines)}", *public_lines, f"Private-Lines: {len(lines)}"),
            *(f"\x02{glue.join(lines)}\x03", f"Private-MAC: {rng.randbytes(20).hex()}"),
        )
    )


def _public_der(rng: random.Random) -> bytes:
    key = der(48, _integer(rng, 256), _number(65537))
    return der(48, der(48, _RSA), der(3, b"\0" + key))


def _certificate(rng: random.Random) -> bytes:
    name = der(
        48, der(49, der(48, bytes.fromhex("0603550403"), der(12, rng.randbytes(9).hex().encode())))
    )
    days = der(48, der(23, b"240301000000Z"), der(23, b"260301000000Z"))
    body = der(48, _integer(rng, 16), der(48, _RSA), name, days, name, _public_der(rng))
    return der(48, body, der(48, _RSA), der(3, b"\0" + rng.randbytes(256)))


def _public(name: str, make: Callable[[random.Random], bytes]) -> Maker:
    return lambda scene, writing: _unmarked(armor(name, make(scene.rng), GLUES[writing or "lines"]))


def _ssh_public(scene: Scene, form: str) -> str:
    rng = scene.rng
    if form == "rsa":
        blob = _string(b"ssh-rsa") + _string(b"\1\0\1") + _string(b"\0" + rng.randbytes(256))
        return "ssh-rsa " + base64.b64encode(blob).decode()
    blob = _string(b"ssh-ed25519") + _string(rng.randbytes(32))
    return "ssh-ed25519 " + base64.b64encode(blob).decode()


KEY_MAKERS: Mapping[str, Maker] = {
    "pem": _pem,
    "pem64": _pem_base64,
    "der64": _der_base64,
    "pgp": _pgp,
    "putty": _putty,
    "putty_rsa": _putty_rsa,
    "public_pem": _public("PUBLIC KEY", _public_der),
    "certificate": _public("CERTIFICATE", _certificate),
    "request": _public("CERTIFICATE REQUEST", _certificate),
    "pgp_public": _pgp_public,
    "pgp_signature": _pgp_signature,
    "ssh_public": _ssh_public,
    "cert64": lambda s, _: base64.b64encode(
        _unmarked(armor("CERTIFICATE", _certificate(s.rng), "\n")).encode()
    ).decode(),
    "public64": lambda s, _: base64.b64encode(_public_der(s.rng)).decode(),
    "fingerprint": lambda s, _: "SHA256:" + base64.b64encode(s.rng.randbytes(32)).decode()[:43],
}
