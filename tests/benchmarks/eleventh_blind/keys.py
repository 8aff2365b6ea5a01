"""Private keys, and what stands beside them, in the eleventh set: DER, OpenSSH, PGP, PuTTY, age.

The numbers inside are drawn: the forms are whole, but no pair of keys fits together.
"""

from __future__ import annotations

import base64
import random
import textwrap

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import bech32, crc24, der
from tests.benchmarks.eleventh_blind.words import BASE64, HEX, domain, pick

RSA = bytes.fromhex("300d06092a864886f70d0101010500")
EC = bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107")
P256 = bytes.fromhex("06082a8648ce3d030107")
ED25519 = bytes.fromhex("300506032b6570")


def _integer(rng: random.Random, bits: int) -> bytes:
    number = rng.getrandbits(bits) | 1 << bits - 1 | 1
    return der(2, number.to_bytes(bits // 8 + 1, "big"))


def _rsa(rng: random.Random, bits: int = 2048) -> bytes:
    half = bits // 2
    sizes = (half, half, half, half, half)
    head = (der(2, b"\0"), _integer(rng, bits), der(2, b"\1\0\1"), _integer(rng, bits))
    return der(0x30, *head, *(_integer(rng, size) for size in sizes))


def _ec(rng: random.Random) -> bytes:
    public = b"\0\4" + rng.randbytes(64)
    return der(
        0x30, der(2, b"\1"), der(4, rng.randbytes(32)), der(0xA0, P256), der(0xA1, der(3, public))
    )


def _ec_inner(rng: random.Random) -> bytes:
    public = b"\0\4" + rng.randbytes(64)
    return der(0x30, der(2, b"\1"), der(4, rng.randbytes(32)), der(0xA1, der(3, public)))


def _pkcs8(algorithm: bytes, key: bytes) -> bytes:
    return der(0x30, der(2, b"\0"), algorithm, der(4, key))


def _text(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _openssh(rng: random.Random) -> bytes:
    public, check = rng.randbytes(32), rng.randbytes(4)
    blob = _text(b"ssh-ed25519") + _text(public)
    comment = f"{rng.choice(('root', 'deploy', 'ci'))}@{domain(rng)}".encode()
    inner = check * 2 + blob + _text(rng.randbytes(32) + public) + _text(comment)
    inner += bytes(range(1, 1 + -len(inner) % 8))
    head = b"openssh-key-v1\0" + _text(b"none") * 2 + _text(b"") + (1).to_bytes(4, "big")
    return head + _text(blob) + _text(inner)


PRIVATE = {
    "RSA PRIVATE KEY": _rsa,
    "PRIVATE KEY": lambda rng: _pkcs8(RSA, _rsa(rng)),
    "EC PRIVATE KEY": _ec,
    "OPENSSH PRIVATE KEY": _openssh,
    "PRIVATE KEY ec": lambda rng: _pkcs8(EC, _ec_inner(rng)),
    "PRIVATE KEY ed": lambda rng: _pkcs8(ED25519, der(4, rng.randbytes(32))),
}
PUBLIC = {
    "CERTIFICATE": lambda rng: der(
        0x30, der(0x30, rng.randbytes(520)), RSA, der(3, b"\0", rng.randbytes(256))
    ),
    "PUBLIC KEY": lambda rng: der(
        0x30, RSA, der(3, b"\0", der(0x30, _integer(rng, 2048), der(2, b"\1\0\1")))
    ),
    "RSA PUBLIC KEY": lambda rng: der(0x30, _integer(rng, 2048), der(2, b"\1\0\1")),
    "CERTIFICATE REQUEST": lambda rng: der(
        0x30, der(0x30, rng.randbytes(380)), RSA, der(3, b"\0", rng.randbytes(256))
    ),
    "PUBLIC KEY ec": lambda rng: der(0x30, EC, der(3, b"\0\4", rng.randbytes(64))),
}


def encode(content: bytes) -> str:
    """Base64 with padding."""
    return base64.b64encode(content).decode()


def wrap(text: str, width: int, joint: str) -> str:
    """The text in lines of a width, joined."""
    return joint.join(textwrap.wrap(text, width))


_JOINTS = {
    "": "\n",
    "escaped": "\\n",
    "indent": "\n    ",
    "indent2": "\n  ",
    "deep": "\n        ",
    "quoted": '\\n" +\n    "',
    "mail": "\n> ",
    "crlf": "\r\n",
    "line": "",
    "space": " ",
    "comment": "\n# ",
}


def _body(scene: Scene, argument: str) -> str:
    """A private key's body; `<<body:FORM/JOINT>>`."""
    form, _, joint = argument.partition("/")
    width = 70 if form.startswith("OPENSSH") else 64
    return wrap(encode(PRIVATE[form](scene.rng)), width, _JOINTS[joint])


def _public(scene: Scene, argument: str) -> str:
    form, _, joint = argument.partition("/")
    return wrap(encode(PUBLIC[form](scene.rng)), 64, _JOINTS[joint])


def _pgp(scene: Scene, argument: str) -> str:
    """The body of an armor with its checksum; the argument is its length in bytes."""
    content = b"\x95" + scene.rng.randbytes(int(argument) - 1)
    return f"{wrap(encode(content), 64, chr(10))}\n={encode(crc24(content).to_bytes(3, 'big'))}"


def _ssh_public(scene: Scene, argument: str) -> str:
    kind = argument.encode() or b"ssh-ed25519"
    rest = (
        scene.rng.randbytes(32) if kind == b"ssh-ed25519" else b"\1\0\1" + scene.rng.randbytes(257)
    )
    return encode(_text(kind) + _text(rest))


def wireguard(rng: random.Random) -> str:
    """32 bytes in base64: a key of WireGuard, private or public."""
    return encode(rng.randbytes(32))


KEY_MAKERS: dict[str, Maker] = {
    "body": _body,
    "public": _public,
    "pgp": _pgp,
    "ssh_public": _ssh_public,
    "wg": lambda scene, _: wireguard(scene.rng),
    "age": lambda scene, _: bech32("age-secret-key-", scene.rng.randbytes(32)).upper(),
    "age_public": lambda scene, _: bech32("age", scene.rng.randbytes(32)),
    "wallet": lambda scene, _: pick(scene.rng, HEX, 64),
    "jwk": lambda scene, argument: pick(scene.rng, BASE64[:62] + "-_", int(argument or 43)),
    "fingerprint": lambda scene, _: "SHA256:" + pick(scene.rng, BASE64, 43),
    "hexpairs": lambda scene, argument: ":".join(
        pick(scene.rng, HEX, 2) for _ in range(int(argument))
    ),
    "keyid": lambda scene, argument: pick(scene.rng, HEX.upper(), int(argument or 16)),
}
