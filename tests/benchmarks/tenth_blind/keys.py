"""Keys and signed tokens of the tenth blind set: their structure is right, their numbers random."""

from __future__ import annotations

import base64
import json
import random
import struct

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, bech32, crc24, der, segment
from tests.benchmarks.tenth_blind.words import firm, person, pick

OIDS = {
    "rsa": "300d06092a864886f70d0101010500",
    "p256": "06082a8648ce3d030107",
    "ec": "06072a8648ce3d0201",
}


def integer(rng: random.Random, bits: int) -> bytes:
    """A random odd INTEGER of so many bits."""
    number = rng.getrandbits(bits) | 1 | 1 << (bits - 1)
    return der(2, number.to_bytes(bits // 8 + 1, "big"))


def rsa_private(rng: random.Random) -> bytes:
    """An RSAPrivateKey (RFC 8017, A.1.2) of 1024 or 2048 bits, its numbers not primes."""
    bits = rng.choice([1024, 2048])
    parts = [der(2, b"\0"), integer(rng, bits), der(2, b"\1\0\1"), integer(rng, bits)]
    return der(0x30, b"".join(parts + [integer(rng, bits // 2) for _ in range(5)]))


def rsa_public(rng: random.Random) -> bytes:
    """A SubjectPublicKeyInfo with an RSA key of 2048 bits."""
    key = der(0x30, integer(rng, 2048) + der(2, b"\1\0\1"))
    return der(0x30, bytes.fromhex(OIDS["rsa"]) + der(3, b"\0" + key))


def ec_private(rng: random.Random) -> bytes:
    """An ECPrivateKey (RFC 5915) on P-256."""
    point = der(3, b"\0\4" + rng.randbytes(64))
    curve = der(0xA0, bytes.fromhex(OIDS["p256"]))
    return der(0x30, der(2, b"\1") + der(4, rng.randbytes(32)) + curve + der(0xA1, point))


def pkcs8(rng: random.Random) -> bytes:
    """A PrivateKeyInfo (RFC 5208) with an RSA, EC or Ed25519 key."""
    kind = rng.choice(["rsa", "rsa", "ec", "ed25519"])
    if kind == "ed25519":
        return bytes.fromhex("302e020100300506032b657004220420") + rng.randbytes(32)
    if kind == "rsa":
        algorithm, key = bytes.fromhex(OIDS["rsa"]), rsa_private(rng)
    else:
        algorithm, key = der(0x30, bytes.fromhex(OIDS["ec"] + OIDS["p256"])), ec_private(rng)
    return der(0x30, der(2, b"\0") + algorithm + der(4, key))


def certificate(rng: random.Random) -> bytes:
    """What stands in a CERTIFICATE block: a sequence with a body, an algorithm and a signature."""
    signed = der(0x30, der(0xA0, der(2, b"\2")) + integer(rng, 64) + rng.randbytes(420))
    return der(0x30, signed + bytes.fromhex(OIDS["rsa"]) + der(3, b"\0" + rng.randbytes(256)))


def openssh(rng: random.Random) -> bytes:
    """An unencrypted Ed25519 key as `ssh-keygen` writes it (OpenSSH, PROTOCOL.key)."""

    def text(content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + content

    public = rng.randbytes(32)
    check = rng.randbytes(4) * 2
    body = check + text(b"ssh-ed25519") + text(public) + text(rng.randbytes(32) + public)
    body += text(b"deploy@" + pick(rng, "abcdefghiklmnoprst", 6).encode())
    body += bytes(range(1, 1 + -len(body) % 8))
    head = b"openssh-key-v1\0" + text(b"none") + text(b"none") + text(b"") + struct.pack(">I", 1)
    return head + text(text(b"ssh-ed25519") + text(public)) + text(body)


PRIVATE = {
    "RSA PRIVATE KEY": rsa_private,
    "EC PRIVATE KEY": ec_private,
    "PRIVATE KEY": pkcs8,
    "OPENSSH PRIVATE KEY": openssh,
}
PUBLIC = {"PUBLIC KEY": rsa_public, "CERTIFICATE": certificate}


def lines_of(content: bytes, width: int) -> list[str]:
    """Base64 in lines."""
    text = base64.b64encode(content).decode()
    return [text[at : at + width] for at in range(0, len(text), width)]


def block(scene: Scene, argument: str) -> str:
    """A PEM block, its body marked if the key is private: `LABEL|BETWEEN` or `LABEL`.

    BETWEEN separates the lines: `lf` (the default), `escaped`, `double` (two backslashes), `none`,
    `indent` (four blanks), `quote` (mail), `added` and `removed` (a diff), `hash` (a comment),
    `strings` (a string literal a line) and `plus` (strings that are added).
    """
    label, _, between = argument.partition("|")
    if label in {"any", ""}:
        label = scene.rng.choice(list(PRIVATE))
    forms = PRIVATE if label in PRIVATE else PUBLIC
    joint = {
        "escaped": "\\n", "double": "\\\\n", "none": "", "indent": "\n    ", "quote": "\n> ",
        "added": "\n+", "removed": "\n-", "hash": "\n# ", "strings": '\\n"\n    "',
        "plus": '\\n" +\n    "', "crlf": "\\r\\n", "deep": "\n        ",
    }.get(between, "\n")  # fmt: skip
    body = joint.join(lines_of(forms[label](scene.rng), 70 if "SSH" in label else 64))
    if forms is PRIVATE:
        body = f"\x02{body}\x03"
    return f"-----BEGIN {label}-----{joint}{body}{joint}-----END {label}-----"


def armor(scene: Scene, argument: str) -> str:
    """A PGP block, `private`, `public` or `signature`; the body of a private one is marked."""
    rng = scene.rng
    tag = {"private": 0x95, "public": 0x99, "signature": 0x89}[argument]
    packet = rng.randbytes(rng.randint(300, 500))
    content = bytes([tag]) + struct.pack(">H", len(packet)) + packet
    check = base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
    body = "\n".join([*lines_of(content, 64), f"={check}"])
    label = {"signature": "SIGNATURE"}.get(argument, f"{argument.upper()} KEY BLOCK")
    body = f"\x02{body}\x03" if argument == "private" else body
    return f"-----BEGIN PGP {label}-----\n\n{body}\n-----END PGP {label}-----"


def age_key(rng: random.Random) -> str:
    """An identity of age: 32 bytes in Bech32 with the prefix AGE-SECRET-KEY-."""
    return bech32("age-secret-key-", rng.randbytes(32)).upper()


def named_key(scene: Scene, argument: str) -> str:
    """A key that its name shows to be private: `age`, `wireguard` or `hex` (an account's key)."""
    rng = scene.rng
    if argument == "age":
        return age_key(rng)
    if argument == "wireguard":
        return base64.b64encode(rng.randbytes(32)).decode()
    return "0x" + rng.randbytes(32).hex()


def public_line(scene: Scene, argument: str) -> str:
    """A line of authorized_keys, without a comment."""
    body = b"\0\0\0\x0bssh-ed25519\0\0\0 " + scene.rng.randbytes(32)
    return "ssh-ed25519 " + base64.b64encode(body).decode()


def make_jwt(scene: Scene, argument: str = "") -> str:
    """A signed token with a subject and times."""
    rng = scene.rng
    algorithm = rng.choice(["HS256", "HS256", "HS256", "RS256", "ES256", "HS512"])
    head: dict[str, str] = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.3:
        head = {"typ": "JWT", "alg": algorithm}
    if algorithm == "RS256":
        head["kid"] = rng.randbytes(8).hex()
    start = rng.randint(1_480_000_000, 1_790_000_000)
    claims: dict[str, object] = {
        "sub": rng.choice([str(rng.randint(10, 99999)), rng.randbytes(12).hex()])
    }
    if rng.random() < 0.5:
        claims["name"] = person(scene)
    if rng.random() < 0.4:
        claims["iss"] = f"https://auth.{firm(scene).lower()}.io"
    claims |= {"role": rng.choice(["admin", "user", "editor"]), "iat": start}
    claims["exp"] = start + rng.choice([3600, 86400, 604800])

    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (head, claims)]
    signature = segment(rng.randbytes(SIGNATURES[algorithm]))
    return ".".join([*map(segment, parts), signature])


def jwt_part(scene: Scene, argument: str) -> str:
    """A part of a token: `head`, `claims`, or its start before an ellipsis (`cut`)."""
    parts = make_jwt(scene).split(".")
    return {"head": parts[0], "claims": parts[1]}.get(argument, f"{parts[0]}.{parts[1][:12]}...")


def base64_json(scene: Scene, argument: str) -> str:
    """Base64 of an object that is no token: a page's cursor or the state of a form."""
    rng = scene.rng
    content = {
        "id": rng.randint(100, 99999),
        "after": f"{rng.randint(2016, 2026)}-01-01",
        "dir": "next",
    }
    return base64.b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()


KEY_MAKERS: dict[str, Maker] = {
    "block": block,
    "armor": armor,
    "keyname": named_key,
    "publine": public_line,
    "jwt": make_jwt,
    "jwtpart": jwt_part,
    "cursor": base64_json,
}
