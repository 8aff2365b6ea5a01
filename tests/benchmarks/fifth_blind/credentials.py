"""Makers of JSON web tokens, private keys, passwords, opaque tokens, and of tokens over lines."""

from __future__ import annotations

import json
import random
from base64 import b64encode, urlsafe_b64encode
from itertools import pairwise

from tests.benchmarks.fifth_blind.fillers import (
    ALNUM,
    BASE64,
    DIGITS,
    FILLERS,
    FIRST,
    HEX,
    LAST,
    URLSAFE,
    chars,
    new_scene,
    split_words,
)
from tests.benchmarks.fifth_blind.services import SERVICES, draw_service
from tests.benchmarks.fifth_blind.templates import Maker, Scene


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def make_jwt(scene: Scene, form: str) -> str:
    """A signed token (RFC 7519) with claims of a service; `short` has a small payload."""
    rng = scene.rng
    algorithm, size = rng.choice(
        (("HS256", 32), ("HS256", 32), ("RS256", 256), ("ES256", 64), ("HS512", 64))
    )
    if form == "short":
        algorithm, size = "HS256", 32
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if algorithm == "RS256" and rng.random() < 0.6:
        head["kid"] = chars(rng, URLSAFE, 27)
    if rng.random() < 0.3:
        head = dict(reversed(head.items()))
    start = rng.randrange(1_500_000_000, 1_760_000_000)
    claims: dict[str, object] = {
        "sub": chars(rng, DIGITS[1:], 6),
        "iat": start,
        "exp": start + 3600,
    }
    if form != "short":
        claims |= rng.choice(
            (
                {"iss": f"https://auth.{scene.domain}/", "aud": "api", "scope": "read write"},
                {"name": f"{scene.first} {scene.last}", "role": "admin"},
                {"user_id": rng.randrange(9999), "jti": chars(rng, HEX, 32)},
                {
                    "iss": "supabase",
                    "ref": chars(rng, HEX[10:] + "ghijk", 20),
                    "role": "service_role",
                },
            )
        )
    separators = (",", ":") if rng.random() < 0.9 else (", ", ": ")
    parts = (json.dumps(part, separators=separators).encode() for part in (head, claims))
    return ".".join([*map(_encode, parts), _encode(rng.randbytes(size))])


def _length(size: int) -> bytes:
    if size < 128:
        return bytes([size])
    data = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([128 + len(data)]) + data


def _node(tag: int, *parts: bytes) -> bytes:
    """A node of ASN.1 in DER (X.690)."""
    body = b"".join(parts)
    return bytes([tag]) + _length(len(body)) + body


def _integer(rng: random.Random, bits: int) -> bytes:
    return _node(2, b"\0" + (rng.getrandbits(bits) | 1 << (bits - 1) | 1).to_bytes(bits // 8))


def _rsa(rng: random.Random) -> bytes:
    """RSAPrivateKey of RFC 8017; its numbers have the right sizes and are not primes."""
    bits = rng.choice((1024, 2048, 2048, 2048, 4096))
    half = [_integer(rng, bits // 2) for _ in range(5)]
    public = _node(2, (65537).to_bytes(3))
    return _node(0x30, _node(2, b"\0"), _integer(rng, bits), public, _integer(rng, bits - 8), *half)


_RSA_ID = bytes.fromhex("300d06092a864886f70d0101010500")
_ED25519_ID = bytes.fromhex("300506032b6570")
_P256 = bytes.fromhex("06082a8648ce3d030107")


def _openssh(rng: random.Random) -> bytes:
    """An ed25519 key as ssh-keygen writes it (PROTOCOL.key)."""

    def field(data: bytes) -> bytes:
        return len(data).to_bytes(4) + data

    public, check = rng.randbytes(32), rng.randbytes(4)
    pair = field(b"ssh-ed25519") + field(public)
    secret = check * 2 + pair + field(rng.randbytes(32) + public) + field(b"deploy@build")
    padding = bytes(range(1, 1 + -len(secret) % 8))
    head = b"openssh-key-v1\0" + field(b"none") * 2 + field(b"") + (1).to_bytes(4)
    return head + field(pair) + field(secret + padding)


def key_der(rng: random.Random, form: str) -> bytes:
    """The bytes of a private key: rsa, ec, pkcs8, ed25519, openssh, dsa, pgp or encrypted."""
    if form == "rsa":
        return _rsa(rng)
    if form == "ec":
        public = _node(0xA1, _node(3, b"\0\4" + rng.randbytes(64)))
        return _node(0x30, _node(2, b"\1"), _node(4, rng.randbytes(32)), _node(0xA0, _P256), public)
    if form == "pkcs8":
        return _node(0x30, _node(2, b"\0"), _RSA_ID, _node(4, _rsa(rng)))
    if form == "ed25519":
        return _node(0x30, _node(2, b"\0"), _ED25519_ID, _node(4, _node(4, rng.randbytes(32))))
    if form == "openssh":
        return _openssh(rng)
    if form == "dsa":
        numbers = [_integer(rng, bits) for bits in (1024, 160, 1024, 1024, 160)]
        return _node(0x30, _node(2, b"\0"), *numbers)
    if form == "pgp":
        return b"\x95\x03\x98\x04" + rng.randbytes(rng.choice((560, 700, 930)))
    return _node(0x30, bytes.fromhex("304906092a864886f70d01050d"), _node(4, rng.randbytes(1216)))


JOINTS = {
    "": "\n", "nl2": "\n  ", "nl4": "\n    ", "nl6": "\n      ", "esc": "\\n", "csv": "\\n",
    "quote": "\n> ", "plus": '\\n" +\n    "', "adjacent": '\\n"\n    "', "none": "",
}  # fmt: skip


def make_key_body(scene: Scene, argument: str) -> str:
    """Base 64 of a private key in lines: `FORM` or `FORM,JOINT`, the joint by its name."""
    form, _, joint = argument.partition(",")
    width = 70 if form == "openssh" else 64
    text = b64encode(key_der(scene.rng, form)).decode()
    lines = [text[start : start + width] for start in range(0, len(text), width)]
    return JOINTS[joint].join(lines)


def _public_body(scene: Scene, argument: str) -> str:
    """Base 64 of a certificate or a public key: so many bytes, and a joint."""
    size, _, joint = argument.partition(",")
    text = b64encode(b"\x30\x82" + scene.rng.randbytes(int(size))).decode()
    return JOINTS[joint].join(text[start : start + 64] for start in range(0, len(text), 64))


_WORDS = split_words("password_words")


def make_password(scene: Scene, form: str) -> str:
    """A password that a person or a generator chose; `plain` has only letters and digits.

    `marks` has signs that need no quotes in a configuration or an address.
    """
    rng = scene.rng
    number, word = (
        rng.choice((rng.randrange(10, 99), rng.randrange(1980, 2026))),
        rng.choice(_WORDS),
    )
    random_one = chars(rng, ALNUM, rng.randrange(10, 25))
    if form == "plain":
        return rng.choice((f"{word}{number}x{rng.randrange(9)}", random_one, random_one))
    mark, end = rng.choice("!._-*+~^"), rng.choice("!!!*+~^")
    return rng.choice(
        (
            f"{word}{number}{end}",
            f"{word.lower()}{mark}{rng.choice(_WORDS)}{number}",
            word.replace("e", "3").replace("o", "0").replace("i", "1") + f"{mark}{number}",
            f"{rng.choice(LAST).lower()}{mark}{rng.choice(FIRST)}{number}",
            random_one,
            random_one,
            chars(rng, ALNUM, 6) + mark + chars(rng, ALNUM, rng.randrange(5, 12)),
            rng.choice(ALNUM)
            + chars(rng, ALNUM + "!%^*_-+=.", rng.randrange(10, 22))
            + rng.choice(ALNUM),
            "-".join(rng.choice(_WORDS).lower() for _ in range(4)) + f"-{rng.randrange(100)}",
        )
    )


def make_secret(scene: Scene, _: str) -> str:
    """A secret that an application signs or encrypts with: hexadecimal, base 64 or signs."""
    rng = scene.rng
    return rng.choice(
        (
            chars(rng, HEX, 64),
            chars(rng, HEX, 32),
            b64encode(rng.randbytes(32)).decode(),
            chars(rng, ALNUM, rng.randrange(24, 50)),
            chars(rng, URLSAFE, 43),
        )
    )


def make_opaque(scene: Scene, form: str) -> str:
    """An opaque access token of a service; `hex` and `uuid` forms are as common as in APIs."""
    rng = scene.rng
    choice = (
        form
        or rng.choices(("hex", "long", "urlsafe", "google", "uuid", "alnum"), (3, 3, 4, 1, 1, 4))[0]
    )
    if choice == "hex":
        return chars(rng, HEX, rng.choice((32, 40, 64)))
    if choice == "long":
        return b64encode(rng.randbytes(rng.choice((48, 72)))).decode()
    if choice == "google":
        return "ya29.a0A" + chars(rng, URLSAFE, 160)
    if choice == "uuid":
        return FILLERS["uuid"](scene, "")
    return chars(rng, URLSAFE if choice == "urlsafe" else ALNUM, rng.randrange(24, 64)) + "k"


def make_basic(scene: Scene, _: str) -> str:
    """Credentials of the Basic scheme (RFC 7617)."""
    user = scene.rng.choice((scene.first.lower(), "api", "svc-deploy", "jenkins", "elastic"))
    return b64encode(f"{user}:{make_password(scene, 'marks')}".encode()).decode()


def make_service(scene: Scene, name: str) -> str:
    """A key of the service of that name, or of any whose keys are known by their form."""
    return SERVICES[name or draw_service(scene.rng, marked=True)].make(scene.rng)


_LONG = ("openai", "anthropic", "github_fine_grained", "stripe", "sendgrid", "pypi", "digitalocean",
         "atlassian", "groq", "slack_app", "vault", "terraform", "dropbox")  # fmt: skip

BREAKS = {
    "plain": "\n", "indent4": "\n    ", "indent8": "\n        ", "tab": "\n\t", "soft": "=\n",
    "backslash": "\\\n", "backslash4": "\\\n    ", "quote": "\n> ",
    "comment": "\n# ", "slashes": "\n// ", "star": "\n * ",
    "plus": '" +\n    "', "pluss": "' +\n    '", "adjacent": '"\n    "', "adjacents": "'\n    '",
    "dot": "'\n    . '", "dots": '"\n    .. "', "amp": '" & _\n    "', "concat": '" ++\n    "',
    "dedent": '" \\\n    "', "sq": "' \\\n    '",
}  # fmt: skip


def break_token(rng: random.Random, token: str, joint: str, width: int) -> str:
    """A token broken every `width` signs or a bit less; always into two parts at least."""
    width = min(width, max(12, len(token) * 2 // 3))
    first = width - rng.randrange(0, 8)
    cuts = [0, *range(first, len(token), width), len(token)]
    return joint.join(token[a:b] for a, b in pairwise(cuts))


def make_broken(scene: Scene, argument: str) -> str:
    """`WHAT,JOINT`: a JSON web token, a service's key or an opaque token over lines."""
    what, _, joint = argument.partition(",")
    rng = scene.rng
    if what == "any":
        what = rng.choice(("jwt", "service", "service"))
    if what == "jwt":
        token = make_jwt(scene, "")
    elif what == "opaque":
        token = chars(rng, ALNUM, 40) + chars(rng, URLSAFE, rng.choice((60, 104, 160))) + "x"
    else:
        token = make_service(scene, rng.choice(_LONG))
    if joint == "soft":
        token = token.replace("=", "=3D")
    return break_token(rng, token, BREAKS[joint], rng.choice((36, 48, 60, 64, 72)))


def make_broken_other(scene: Scene, argument: str) -> str:
    """`ALPHABET,SIZE,JOINT`: signs over lines that are no token, as of a digest or an image."""
    alphabet, size, joint = argument.split(",")
    text = chars(scene.rng, {"hex": HEX, "base64": BASE64, "alnum": ALNUM}[alphabet], int(size))
    return break_token(scene.rng, text, BREAKS[joint], scene.rng.choice((48, 60, 64, 72)))


CREDENTIAL_MAKERS: dict[str, Maker] = {
    "jwt": make_jwt,
    "keybody": make_key_body,
    "publicbody": _public_body,
    "password": make_password,
    "passwordat": lambda scene, _: (
        make_password(scene, "plain") + "%40" + chars(scene.rng, DIGITS, 2)
    ),
    "secret": make_secret,
    "django": lambda scene, _: chars(
        scene.rng, DIGITS + "abcdefghijklmnopqrstuvwxyz!@#%^&*(-_=+)", 50
    ),
    "opaque": make_opaque,
    "basic": make_basic,
    "service": make_service,
    "broken": make_broken,
    "brokenother": make_broken_other,
    "jwtpart": lambda scene, index: make_jwt(scene, "short").split(".")[int(index)],
    "b64json": lambda scene, text: b64encode(
        json.dumps({text or "id": scene.rng.randrange(10**6)}).encode()
    ).decode(),
    "b32": lambda scene, size: chars(scene.rng, "023456789ACDEFGHJKLMNPQRSTUVWXYZ", int(size)),
}

__all__ = ["CREDENTIAL_MAKERS", "break_token", "key_der", "make_jwt", "new_scene"]
