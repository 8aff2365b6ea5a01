"""JSON web tokens, private keys, passwords, opaque tokens, and tokens that lines part."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import string
from collections.abc import Callable
from urllib.parse import quote

from tests.benchmarks.blind_standards import der
from tests.benchmarks.fourth_blind.services import BASE62, URL64, service_key
from tests.benchmarks.fourth_blind.templates import Make
from tests.benchmarks.fourth_blind.words import ALNUM, GIVEN, HEX, NOUNS, domain, draw


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwt(rng: random.Random, _: str = "") -> str:
    """A JSON web token; HS256 is signed, the signatures of RS256 and ES256 have their lengths."""
    algorithm = rng.choice(("HS256", "HS256", "RS256", "ES256"))
    header = {"alg": algorithm, "typ": "JWT"}
    if algorithm != "HS256" and rng.random() < 0.7:
        header["kid"] = draw(HEX, 16, rng)
    issued = rng.randint(1_450_000_000, 1_720_000_000)
    claims = {"sub": str(rng.randint(1000, 10**9)), "iat": issued, "exp": issued + 3600}
    more = {
        "iss": f"https://auth.{domain(rng)}/",
        "name": rng.choice(GIVEN),
        "scope": "read:orders write:orders",
        "roles": ["editor", "billing"],
        "jti": draw(HEX, 24, rng),
    }
    claims.update({k: more[k] for k in rng.sample(sorted(more), rng.randint(0, 4))})
    spaced = rng.random() < 0.2
    joints = (", ", ": ") if spaced else (",", ":")
    body = ".".join(_url64(json.dumps(x, separators=joints).encode()) for x in (header, claims))
    if algorithm == "HS256":
        signature = hmac.digest(rng.randbytes(32), body.encode(), hashlib.sha256)
    else:
        signature = rng.randbytes(256 if algorithm == "RS256" else 64)
    return f"{body}.{_url64(signature)}"


def _length(size: int) -> bytes:
    if size < 128:
        return bytes((size,))
    data = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((128 + len(data),)) + data


def _integer(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _rsa(rng: random.Random, bits: int) -> bytes:
    """A PKCS #1 structure whose numbers have the lengths of a key's; they are no primes."""
    half = bits // 2
    sizes = (bits, 0, bits - 1, half, half, half - 1, half - 2, half - 1)
    top = [rng.getrandbits(size) | 1 << (size - 1) | 1 if size else 65537 for size in sizes]
    return der(48, _integer(0), *map(_integer, top))


def key_body(rng: random.Random, kind: str) -> str:
    """The base64 of a private key in lines of 64 (OpenSSH: 70), without its first and last line."""
    width = 64
    if kind == "rsa":
        data = _rsa(rng, rng.choice((1024, 2048)))
    elif kind == "pkcs8":
        algorithm = der(48, bytes.fromhex("06092a864886f70d0101010500"))
        data = der(48, _integer(0), algorithm, der(4, _rsa(rng, 2048)))
    elif kind == "ec":
        curve = bytes.fromhex("a00a06082a8648ce3d030107")
        public = b"\x00\x04" + rng.randbytes(64)
        data = der(48, _integer(1), der(4, rng.randbytes(32)), curve, der(0xA1, der(3, public)))
    elif kind == "ed25519":
        head = bytes.fromhex("302e020100300506032b657004220420")
        data = head + rng.randbytes(32)
    elif kind == "openssh":
        width = 70
        head = b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01\0\0\0\x33\0\0\0\x0b"
        data = head + b"ssh-ed25519\0\0\0\x20" + rng.randbytes(32) + rng.randbytes(180)
    else:
        data = b"\x95\x03\x98\x04" + rng.randbytes(920)
    text = base64.b64encode(data).decode()
    return "\n".join(text[k : k + width] for k in range(0, len(text), width))


def _key(rng: random.Random, argument: str) -> str:
    """`KIND` or `KIND,JOINT`: the lines of a key with another joint between them."""
    kind, _, joint = argument.partition(",")
    body = key_body(rng, kind)
    joints = {
        "escaped": "\\n",
        "double": "\\\\n",
        "four": "\n    ",
        "two": "\n  ",
        "java": '\\n" +\n        "',
        "c": '\\n"\n    "',
        "hash": "\n# ",
        "quote": "\n> ",
        "tab": "\n\t",
        "array": '",\n    "',
        "php": "\\n'\n  . '",
        "one": "",
        "carriage": "\r\n",
        "html": "<br>\n",
    }
    return body.replace("\n", joints[joint]) if joint else body


def _age(rng: random.Random, _: str) -> str:
    return "AGE-SECRET-KEY-1" + draw("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, rng)


def _bytes64(rng: random.Random, size: str) -> str:
    return base64.b64encode(rng.randbytes(int(size or 32))).decode()


def made_password(rng: random.Random, form: str = "") -> str:
    """A password that a program drew: letters and digits of both cases, or with signs."""
    if form == "word":
        return draw(ALNUM, rng.randint(14, 24), rng)
    signs = "!#%*-_.+=?^~" if form == "sign" else "-_.!*"
    while True:
        text = draw(ALNUM + signs, rng.randint(12, 22), rng)
        if text[0].isalnum() and text[-1].isalnum() and any(c.isdigit() for c in text):
            return text


CHOSEN = (
    *("Sommer", "tr0mbone", "Fuessli", "kartofel", "Barcelona", "hunter", "Schnucki", "M1sty"),
    *(
        "galatasaray",
        "Naruto",
        "belle",
        "Peugeot",
        "r0ssi",
        "Lisboa",
        "zeppelin",
        "K4tze",
        "Dinamo",
    ),
    *(
        "saudade",
        "Ludwig",
        "babushka",
        "Cloclo",
        "pierogi",
        "Benfica",
        "Sakura",
        "w1nter",
        "Toulouse",
    ),
)
"""What people begin a password with."""


def chosen_password(rng: random.Random, _: str = "") -> str:
    """A password as people choose them: words of several languages, years and signs."""
    first = rng.choice(CHOSEN)
    return rng.choice(
        (
            f"{first}{rng.randint(1968, 2023)}!",
            f"{first}_{rng.choice(NOUNS)}{rng.randint(1, 99)}",
            f"{rng.choice(NOUNS)}-{rng.choice(NOUNS)}-{rng.choice(NOUNS)}-{rng.randint(10, 99)}",
            f"{first}#{rng.randint(100, 9999)}",
            f"{first}{rng.randint(10, 99)}@{rng.choice(NOUNS).title()}",
        )
    )


def password(rng: random.Random, form: str = "") -> str:
    """A password that a program made or that somebody chose; `word` needs no quotes anywhere."""
    if form == "word" and rng.random() < 0.35:
        end = rng.choice((rng.randint(1968, 2023), f"_{rng.choice(NOUNS)}{rng.randint(1, 99)}"))
        return f"{rng.choice(CHOSEN)}{end}"
    if form == "url":
        return quote(made_password(rng, "sign"), safe="!*")
    if form == "django":
        return draw(string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)", 49, rng) + "x"
    if form == "at" and rng.random() < 0.5:
        return f"{made_password(rng, 'word')}@{rng.randint(1, 99)}"
    return made_password(rng, form) if form or rng.random() < 0.5 else chosen_password(rng)


def opaque(rng: random.Random, form: str = "") -> str:
    """A token of access that does not say whose it is: hexadecimal, base 62 or base64 for URLs."""
    if form == "hex":
        return draw(HEX, rng.choice((32, 40, 64)), rng)
    if form == "basic":
        pair = f"{rng.choice(NOUNS)}:{password(rng)}"
        return base64.b64encode(pair.encode()).decode()
    size = rng.randint(28, 64)
    return draw(rng.choice((BASE62, URL64, string.ascii_lowercase + string.digits)), size, rng)


def _any_token(rng: random.Random, name: str) -> str:
    long_ones = ("anthropic", "github", "digitalocean", "openai", "stripe_long", "sendgrid", "pypi")
    name = name or rng.choice((*long_ones, "jwt", "vault", "gitlab", "huggingface", "shopify"))
    return jwt(rng) if name == "jwt" else service_key(rng, name)


BREAKS: dict[str, str] = {
    "line": "\n",
    "indent": "\n    ",
    "tab": "\n\t",
    "crlf": "\r\n",
    "shell": "\\\n",
    "soft": "=\n",
    "quote": "\n> ",
    "hash": "\n# ",
    "slash": "\n// ",
    "star": "\n * ",
    "python": '"\n    "',
    "plus": '" +\n    "',
    "dot": "' .\n    '",
    "amp": '" & _\n    "',
    "caret": '"\n  ^ "',
    "lua": '" ..\n  "',
    "concat": '"\n  <> "',
    "tick": "' +\n  '",
    "html": "<br>\n",
    "vba": '" & vbCrLf & _\n    "',
    "erb": '" \\\n  "',
}
"""What stands between the parts of a token that lines part."""


def broken(rng: random.Random, argument: str) -> str:
    """`BREAK` or `BREAK,SERVICE`: a token in two parts, long ones in parts of 40 to 76."""
    joint, _, name = argument.partition(",")
    token = _any_token(rng, name)
    width = rng.randint(40, 76)
    if len(token) <= width + 8:
        width = rng.randint(len(token) * 2 // 5, len(token) * 7 // 10)
    parts = [token[k : k + width] for k in range(0, len(token), width)]
    return BREAKS[joint].join(parts)


def _lines(alphabet: str) -> Callable[[random.Random, str], str]:
    def make(rng: random.Random, count: str) -> str:
        return "\n".join(draw(alphabet, 64, rng) for _ in range(int(count or 4)))

    return make


TOKENS: dict[str, Make] = {
    "jwt": jwt,
    "key": _key,
    "age": _age,
    "bytes64": _bytes64,
    "password": password,
    "chosen": chosen_password,
    "opaque": opaque,
    "broken": broken,
    "provider": service_key,
    "lines64": _lines(ALNUM + "+/"),
    "lines_hex": _lines(HEX),
}
"""Makers of secrets, by the names that templates use."""
