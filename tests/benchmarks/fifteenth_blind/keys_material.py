"""Private and public keys of the group `keys` in the encodings of RSA, EC, OpenSSH, OpenPGP, PuTTY.

The frames are those of the standards; the numbers are random, so no key signs or opens anything.
"""

from __future__ import annotations

import base64
import random
import struct
import textwrap

from tests.benchmarks.blind_set import Scene
from tests.benchmarks.blind_standards import bech32, crc24, der
from tests.benchmarks.fifteenth_blind.keys_words import HOSTS, PEOPLE, WORDS

_RSA = der(0x30, bytes.fromhex("06092a864886f70d0101010500"))
_P256 = bytes.fromhex("06082a8648ce3d030107")
_EC = der(0x30, bytes.fromhex("06072a8648ce3d0201"), _P256)
_ED25519 = der(0x30, bytes.fromhex("06032b6570"))


def _integer(number: int) -> bytes:
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _odd(rng: random.Random, bits: int) -> int:
    return rng.getrandbits(bits) | 3 << (bits - 2) | 1


def _rsa_numbers(rng: random.Random, bits: int) -> tuple[int, ...]:
    p, q = _odd(rng, bits // 2), _odd(rng, bits // 2)
    n = p * q
    d, dp, dq, qi = (rng.randrange(3, limit) | 1 for limit in (n, p, q, p))
    return n, 65537, d, p, q, dp, dq, qi


def _ec_key(rng: random.Random, with_curve: bool) -> bytes:
    curve = der(0xA0, _P256) if with_curve else b""
    point = der(0xA1, der(3, b"\0\x04" + rng.randbytes(64)))
    return der(0x30, _integer(1), der(4, rng.randbytes(32)), curve, point)


def _string(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _multiple(number: int) -> bytes:
    return _string(number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _openssh(rng: random.Random, kind: str) -> bytes:
    comment = f"{rng.choice(WORDS)}@{rng.choice(HOSTS)}".encode()
    check = rng.randbytes(4) * 2
    if kind == "openssh_rsa":
        n, e, d, p, q, _, _, qi = _rsa_numbers(rng, 2048)
        public = _string(b"ssh-rsa") + _multiple(e) + _multiple(n)
        secret = _string(b"ssh-rsa") + b"".join(map(_multiple, (n, e, d, qi, p, q)))
    else:
        point = rng.randbytes(32)
        public = _string(b"ssh-ed25519", point)
        secret = _string(b"ssh-ed25519", point, rng.randbytes(32) + point)
    body = check + secret + _string(comment)
    body += bytes(range(1, -len(body) % 8 + 1))
    start = b"openssh-key-v1\0" + _string(b"none", b"none", b"")
    return start + struct.pack(">I", 1) + _string(public, body)


def _pgp(rng: random.Random, secret: bool) -> bytes:
    """Packets of OpenPGP: a key of Ed25519, its user and a signature (RFC 4880, 5)."""
    body = b"\x04" + rng.randrange(1 << 30, 7 << 28).to_bytes(4, "big") + b"\x16"
    body += bytes.fromhex("092b06010401da470f01010740") + rng.randbytes(32)
    if secret:
        body += b"\0\x01\0" + rng.randbytes(34)
    user = f"{rng.choice(PEOPLE['en'])} <{rng.choice(WORDS)}@{rng.choice(HOSTS)}>".encode()
    start = bytes([0x94 if secret else 0x98, len(body)]) + body
    signature = b"\x04\x13\x16" + rng.randbytes(141)
    return start + bytes([0xB4, len(user)]) + user + bytes([0x88, len(signature)]) + signature


def key_bytes(rng: random.Random, kind: str) -> bytes:
    """The content of a private (`cert`, `spki…`, `csr`: public) key file, before base64."""
    match kind:
        case "rsa":
            return der(0x30, _integer(0), *map(_integer, _rsa_numbers(rng, 2048)))
        case "rsa1024":
            return der(0x30, _integer(0), *map(_integer, _rsa_numbers(rng, 1024)))
        case "pkcs8":
            return der(0x30, _integer(0), _RSA, der(4, key_bytes(rng, "rsa")))
        case "pkcs8_1024":
            return der(0x30, _integer(0), _RSA, der(4, key_bytes(rng, "rsa1024")))
        case "ec":
            return _ec_key(rng, with_curve=True)
        case "pkcs8_ec":
            return der(0x30, _integer(0), _EC, der(4, _ec_key(rng, with_curve=False)))
        case "ed25519":
            return der(0x30, _integer(0), _ED25519, der(4, der(4, rng.randbytes(32))))
        case "dsa":
            numbers = (_odd(rng, size) for size in (1024, 160, 1024, 1024, 159))
            return der(0x30, _integer(0), *map(_integer, numbers))
        case "encrypted":
            salt, start = der(4, rng.randbytes(8)), der(4, rng.randbytes(16))
            kdf = der(
                0x30, bytes.fromhex("06092a864886f70d01050c"), der(0x30, salt, _integer(2048))
            )
            cipher = der(0x30, bytes.fromhex("060960864801650304012a"), start)
            scheme = bytes.fromhex("06092a864886f70d01050d")
            return der(0x30, der(0x30, scheme, der(0x30, kdf, cipher)), der(4, rng.randbytes(144)))
        case "openssh" | "openssh_rsa":
            return _openssh(rng, kind)
        case "spki_rsa":
            numbers = _rsa_numbers(rng, 2048)[:2]
            return der(0x30, _RSA, der(3, b"\0" + der(0x30, *map(_integer, numbers))))
        case "spki_ec":
            return der(0x30, _EC, der(3, b"\0\x04" + rng.randbytes(64)))
        case "spki_ed25519":
            return der(0x30, _ED25519, der(3, b"\0" + rng.randbytes(32)))
        case _:  # a certificate or a request: the outer frame is right, the rest is random
            signature = der(3, b"\0" + rng.randbytes(64))
            return der(0x30, der(0x30, _integer(2), rng.randbytes(180)), _EC, signature)


JOINTS = {
    **{f"n{size}": "\n" + " " * size for size in (0, 2, 3, 4, 6, 8, 10, 12)},
    "tab": "\n\t", "e": "\\n", "ee": "\\\\n", "r": "\\r\\n", "x": "", "s": " ", "gt": "\n> ",
    "hash": "\n# ", "star": "\n * ", "slash": "\n// ", "semi": "\n; ", "lit": '\\n"\n    "',
    "plus": '\\n" +\n    "', "apos": "\\n' +\n  '", "diff": "\n+", "nb": '\\n", "',
    "slashn": "\\n\\\n", "dot": '\\n" .\n    "',
    "br": "<br>\n", "back": "\\\n", "bar": "\n| ", "list": '",\n  "', "xml": "&#10;",
}  # fmt: skip
"""What stands between the lines of a key, by its name in a template."""


def lines_of(data: bytes, joint: str, width: int = 64) -> str:
    """Base64 in lines, joined as a template demands."""
    return JOINTS[joint or "n0"].join(textwrap.wrap(base64.b64encode(data).decode(), width))


def key(scene: Scene, argument: str) -> str:
    """The lines of a key: `KIND,JOINT`."""
    kind, _, joint = argument.partition(",")
    width = 70 if kind.startswith("openssh") else 64
    return lines_of(key_bytes(scene.rng, kind), joint, width)


LABELS = {
    "rsa": "RSA PRIVATE KEY", "ec": "EC PRIVATE KEY", "openssh": "OPENSSH PRIVATE KEY",
    "openssh_rsa": "OPENSSH PRIVATE KEY", "encrypted": "ENCRYPTED PRIVATE KEY",
    "cert": "CERTIFICATE", "spki_rsa": "PUBLIC KEY", "spki_ec": "PUBLIC KEY",
}  # fmt: skip


def key64(scene: Scene, argument: str) -> str:
    """A whole PEM file in base64 once more, in one line or joined: `KIND,JOINT`."""
    kind, _, joint = argument.partition(",")
    label = LABELS.get(kind, "PRIVATE KEY")
    body = key(scene, kind)
    text = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    return lines_of(text.encode(), joint or "x", 76)


def pgp(scene: Scene, argument: str) -> str:
    """The armored lines of a secret or `public` key, with the checksum: `KIND,JOINT`."""
    kind, _, joint = argument.partition(",")
    data = _pgp(scene.rng, kind != "public")
    check = base64.b64encode(crc24(data).to_bytes(3, "big")).decode()
    return f"{lines_of(data, joint)}{JOINTS[joint or 'n0']}={check}"


def putty(scene: Scene, argument: str) -> str:
    """Private lines of a PuTTY key: `ed25519` (one line) or `rsa`; `public` lines likewise."""
    rng = scene.rng
    if argument == "public":
        return lines_of(_string(b"ssh-ed25519", rng.randbytes(32)), "n0")
    if argument == "rsa":
        _, _, d, p, q, _, _, qi = _rsa_numbers(rng, 2048)
        return lines_of(b"".join(map(_multiple, (d, p, q, qi))), "n0")
    return lines_of(_string(rng.randbytes(32)), "n0")


def ssh_public(scene: Scene, argument: str) -> str:
    """The base64 of a public key line of OpenSSH: `ed25519` or `rsa`."""
    if argument == "rsa":
        n, e = _rsa_numbers(scene.rng, 2048)[:2]
        return base64.b64encode(_string(b"ssh-rsa") + _multiple(e) + _multiple(n)).decode()
    return base64.b64encode(_string(b"ssh-ed25519", scene.rng.randbytes(32))).decode()


def age(scene: Scene, argument: str) -> str:
    """An identity of age, or with `public` its recipient."""
    data = scene.rng.randbytes(32)
    return bech32("age", data) if argument else bech32("age-secret-key-", data).upper()
