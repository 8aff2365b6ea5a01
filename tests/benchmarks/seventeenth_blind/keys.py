"""Makers of account numbers, web tokens, private keys and keys of services.

The bytes are random and belong to nobody; lengths, prefixes and checksums are those of the real
forms. A maker's argument is one or more words.
"""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, bech32, crc24, crc_base62, der, segment
from tests.benchmarks.seventeenth_blind.keys_words import BANKS, FIRMS, FORMS, NAMES

_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "a": _ALNUM,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "t": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase,
    "b": _ALNUM + "_-",
    "s": _ALNUM + "+/",
}


def _characters(scene: Scene, letter: str, size: int) -> str:
    """Random characters of an alphabet; the ends are letters or digits, a number's first not 0."""
    alphabet = _ALPHABETS[letter]
    drawn = [scene.rng.choice(alphabet) for _ in range(size)]
    for end in (0, -1):
        if size and drawn[end] not in _ALNUM:
            drawn[end] = scene.rng.choice(_ALNUM)
    if letter == "d" and drawn and drawn[0] == "0":
        drawn[0] = scene.rng.choice("123456789")
    return "".join(drawn)


def draw(scene: Scene, argument: str) -> str:
    """A pattern: `{h40}` is 40 characters of alphabet h, `{g}` a UUID, `{i}` a number in base64."""

    def part(match: re.Match[str]) -> str:
        if match[1] == "g":
            raw = _characters(scene, "h", 32)
            variant = scene.rng.choice("89ab")
            return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-{variant}{raw[17:20]}-{raw[20:]}"
        if match[1] == "i":
            return segment(_characters(scene, "d", 18).encode())
        return _characters(scene, match[1], int(match[2]))

    return re.sub(r"\{(\w)(\d*)\}", part, argument)


def checked(scene: Scene, prefix: str) -> str:
    """A token of GitHub or npm: prefix, 30 characters, their checksum."""
    body = _characters(scene, "a", 30)
    return prefix + body + crc_base62(body)


def choose(scene: Scene, argument: str) -> str:
    """One of the alternatives between bars."""
    return scene.rng.choice(argument.split("|"))


def name(scene: Scene, language: str) -> str:
    """First and last name in a language."""
    first, last = (scene.rng.choice(part.split()) for part in NAMES[language])
    return last + first if language in ("ja", "zh", "ko") else f"{first} {last}"


def firm(scene: Scene, language: str) -> str:
    """A company, club or charity in a language."""
    return scene.rng.choice(FIRMS[language].split("|"))


# Account numbers (ISO 13616)


def _check_italy(body: str) -> str:
    odd = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21]
    total = sum(int(one) if at % 2 else odd[int(one)] for at, one in enumerate(body))
    return chr(65 + total % 26) + body


def _check_spain(body: str) -> str:
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)

    def digit(ten: str) -> str:
        rest = 11 - sum(w * int(one) for w, one in zip(weights, ten, strict=True)) % 11
        return str({10: 1, 11: 0}.get(rest, rest))

    return body[:8] + digit("00" + body[:8]) + digit(body[8:]) + body[8:]


def _check_norway(body: str) -> str:
    total = sum(w * int(one) for w, one in zip((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), body, strict=True))
    rest = -total % 11
    return body + str(rest) if rest < 10 else _check_norway(f"{(int(body) + 1) % 10**10:010}")


def _check_france(body: str) -> str:
    bank, branch, account = int(body[:5]), int(body[5:10]), int(body[10:])
    return f"{body}{97 - (89 * bank + 15 * branch + 3 * account) % 97:02}"


_NATIONAL: dict[str, Callable[[str], str]] = {
    "IT": _check_italy,
    "SM": _check_italy,
    "ES": _check_spain,
    "NO": _check_norway,
    "FR": _check_france,
    "MC": _check_france,
    "BE": lambda body: f"{body}{int(body) % 97 or 97:02}",
    "PT": lambda body: f"{body}{98 - int(body) * 100 % 97:02}",
}
"""What adds the check digits a country has inside its accounts."""


def _iban_check(country: str, account: str) -> int:
    digits = "".join(str(int(one, 36)) for one in f"{account}{country}00")
    return 98 - int(digits) % 97


def _style(text: str, style: str) -> str:
    if style in ("s", "n", "-", "lower"):
        joint = {"n": "\u00a0", "-": "-"}.get(style, " ")
        text = joint.join(text[at : at + 4] for at in range(0, len(text), 4))
    return text.lower() if style == "lower" else text


def _account(scene: Scene, country: str) -> str:
    account = draw(scene, FORMS[country])
    if "BANK" in account:
        account = account.replace("BANK", scene.rng.choice(BANKS[country].split()))
    return _NATIONAL.get(country, str)(account)


def iban(scene: Scene, argument: str) -> str:
    """The number of an account: country, then `s` (groups of four), `n`, `-` or `lower`."""
    country, _, style = argument.partition(" ")
    account = _account(scene, country)
    return _style(f"{country}{_iban_check(country, account):02}{account}", style)


def wrong_iban(scene: Scene, argument: str) -> str:
    """A number of the form of `iban` whose check digits are wrong."""
    country, _, style = argument.partition(" ")
    account = _account(scene, country)
    check = (_iban_check(country, account) + scene.rng.randrange(1, 80)) % 97
    return _style(f"{country}{check:02}{account}", style)


# Web tokens (RFC 7519)


def _claims(scene: Scene, flavour: str, issued: int) -> dict[str, object]:
    until = issued + scene.rng.choice((300, 3600, 86400, 604800, 2592000, 315360000))
    times: dict[str, object] = {"iat": issued, "exp": until}
    code = draw(scene, "{a24}")
    host = scene.rng.choice(("tessera", "nordwind", "quillstack", "brightlane", "kumo", "pelago"))
    first = scene.rng.choice(["anna", "jonas", "mehmet", "lucia", "piotr", "yuki", "priya", "omar"])
    forms: dict[str, dict[str, object]] = {
        "plain": {"sub": draw(scene, "{d6}"), "name": first, **times},
        "user": {"id": int(draw(scene, "{d4}")), "username": first, "role": "admin", **times},
        "mongo": {"_id": draw(scene, "{h24}"), **times},
        "auth0": {
            "iss": f"https://{host}.eu.auth0.com/",
            "sub": f"auth0|{draw(scene, '{h24}')}",
            "aud": f"https://api.{host}.io",
            **times,
            "azp": code,
            "scope": "openid profile email",
        },
        "google": {
            "iss": "https://accounts.google.com",
            "aud": draw(scene, "{d12}-{l32}.apps.googleusercontent.com"),
            "sub": draw(scene, "{d21}"),
            "email_verified": True,
            **times,
        },
        "keycloak": {
            "exp": until,
            "iat": issued,
            "jti": draw(scene, "{g}"),
            "iss": f"https://sso.{host}.de/realms/{host}",
            "sub": draw(scene, "{g}"),
            "typ": "Bearer",
            "preferred_username": first,
        },
        "cluster": {
            "aud": ["https://kubernetes.default.svc"],
            **times,
            "iss": "https://kubernetes.default.svc.cluster.local",
            "sub": f"system:serviceaccount:{host}:deployer",
        },
        "supabase": {
            "iss": "supabase",
            "ref": draw(scene, "{l20}"),
            "role": "service_role",
            **times,
        },
        "django": {
            "token_type": "access",
            **times,
            "jti": draw(scene, "{h32}"),
            "user_id": int(draw(scene, "{d3}")),
        },
        "laravel": {
            "iss": f"https://{host}.com.br/api/login",
            **times,
            "nbf": issued,
            "jti": draw(scene, "{a16}"),
            "sub": draw(scene, "{d3}"),
            "prv": draw(scene, "{h40}"),
        },
        "app": {**times, "iss": draw(scene, "{d6}")},
        "azure": {
            "aud": draw(scene, "{g}"),
            "iss": f"https://sts.windows.net/{draw(scene, '{g}')}/",
            **times,
            "oid": draw(scene, "{g}"),
            "tid": draw(scene, "{g}"),
            "ver": "1.0",
        },
    }
    return forms[flavour]


def jwt(scene: Scene, argument: str) -> str:
    """A signed token: algorithm and flavour of its claims."""
    algorithm, _, flavour = argument.partition(" ")
    head = {"alg": algorithm, "typ": "JWT"}
    if flavour in ("django", "laravel"):
        head = {"typ": "JWT", "alg": algorithm}
    if flavour in ("auth0", "google", "keycloak", "cluster", "azure"):
        head["kid"] = draw(scene, "{b43}")
    issued = scene.rng.randrange(1_420_000_000, 1_760_000_000)
    claims = _claims(scene, flavour or "plain", issued)
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (head, claims)]
    return ".".join(map(segment, [*parts, scene.rng.randbytes(SIGNATURES[algorithm])]))


def encoded(scene: Scene, argument: str) -> str:
    """Base64 of JSON, no token: `FORM` then `padded` for the alphabet with padding."""
    form, _, padding = argument.partition(" ")
    number = int(draw(scene, "{d6}"))
    contents: dict[str, object] = {
        "cursor": {
            "id": number,
            "created_at": f"20{number % 9 + 15}-0{number % 8 + 1}-11T08:30:00Z",
        },
        "map": {"version": 3, "sources": [f"webpack:///./src/page{number}.js"], "names": []},
        "head": {"alg": "RS256", "typ": "JWT", "kid": draw(scene, "{h16}")},
        "claims": {"sub": str(number), "scope": "read", "exp": 1_500_000_000 + number},
        "state": {"page": number % 90, "sort": "date", "filters": {"q": "shoes"}},
        "image": {"bucket": f"media-{number}", "key": "cover.jpg", "edits": {"width": 640}},
    }
    raw = json.dumps(contents[form], separators=(",", ":")).encode()
    return base64.b64encode(raw).decode() if padding else segment(raw)


# Private keys


def _integer(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _odd(scene: Scene, bits: int) -> int:
    return scene.rng.getrandbits(bits) | 1 << (bits - 1) | 1


def _rsa(scene: Scene, bits: int) -> bytes:
    primes = [_odd(scene, bits // 2) for _ in range(2)]
    others = [scene.rng.getrandbits(bits // 2) for _ in range(3)]
    private = scene.rng.getrandbits(bits)
    numbers = [0, _odd(scene, bits), 65537, private, *primes, *others]
    return der(0x30, *map(_integer, numbers))


_RSA_OID = der(0x30, bytes.fromhex("06092a864886f70d010101"), b"\x05\x00")
_P256_OID = bytes.fromhex("06082a8648ce3d030107")


def _ec(scene: Scene, with_curve: bool) -> bytes:
    point = der(0xA1, der(3, b"\x00\x04" + scene.rng.randbytes(64)))
    curve = der(0xA0, _P256_OID) if with_curve else b""
    return der(0x30, _integer(1), der(4, scene.rng.randbytes(32)), curve, point)


def _field(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _openssh(scene: Scene, kind: str) -> bytes:
    check = scene.rng.randbytes(4) * 2
    if kind == "ssh-rsa":
        number, others = (
            _odd(scene, 2048).to_bytes(257, "big"),
            [_odd(scene, bits).to_bytes(bits // 8 + 1, "big") for bits in (2048, 1024, 1024, 1024)],
        )
        public = _field(b"ssh-rsa", b"\x01\x00\x01", number)
        secret = _field(b"ssh-rsa", number, b"\x01\x00\x01", *others, b"root")
    else:
        point = scene.rng.randbytes(32)
        public = _field(b"ssh-ed25519", point)
        secret = _field(b"ssh-ed25519", point, scene.rng.randbytes(32) + point, b"deploy")
    secret = check + secret
    secret += bytes(range(1, 1 + -len(secret) % 8))
    return (
        b"openssh-key-v1\0" + _field(b"none", b"none", b"") + b"\0\0\0\1" + _field(public, secret)
    )


def _pkcs8(scene: Scene, kind: str) -> bytes:
    if kind == "ed":
        oid, inner = bytes.fromhex("06032b6570"), der(4, scene.rng.randbytes(32))
        return der(0x30, _integer(0), der(0x30, oid), der(4, inner))
    if kind == "ec":
        oid = der(0x30, bytes.fromhex("06072a8648ce3d0201"), _P256_OID)
        return der(0x30, _integer(0), oid, der(4, _ec(scene, False)))
    return der(0x30, _integer(0), _RSA_OID, der(4, _rsa(scene, 2048)))


def _sealed(scene: Scene) -> bytes:
    pbes2 = bytes.fromhex("06092a864886f70d01050d")
    salt = der(0x30, der(4, scene.rng.randbytes(8)), _integer(2048))
    derive = der(0x30, bytes.fromhex("06092a864886f70d01050c"), salt)
    cipher = der(0x30, bytes.fromhex("060960864801650304012a"), der(4, scene.rng.randbytes(16)))
    return der(0x30, der(0x30, pbes2, der(0x30, derive, cipher)), der(4, scene.rng.randbytes(1232)))


_KEYS: dict[str, Callable[[Scene], bytes]] = {
    "rsa": lambda scene: _rsa(scene, 2048),
    "rsa1024": lambda scene: _rsa(scene, 1024),
    "ec": lambda scene: _ec(scene, True),
    "p8": lambda scene: _pkcs8(scene, "rsa"),
    "p8ec": lambda scene: _pkcs8(scene, "ec"),
    "p8ed": lambda scene: _pkcs8(scene, "ed"),
    "ssh": lambda scene: _openssh(scene, "ssh-ed25519"),
    "sshrsa": lambda scene: _openssh(scene, "ssh-rsa"),
    "sealed": _sealed,
    "cipher": lambda scene: scene.rng.randbytes(1192),
    "pgp": lambda scene: b"\x94\x86\x04" + scene.rng.randbytes(620),
    "dsa": lambda scene: der(
        0x30, _integer(0), *(_integer(_odd(scene, bits)) for bits in (1024, 160, 1024, 1024, 160))
    ),
    "putty": lambda scene: _field(scene.rng.randbytes(32)),
    "puttyrsa": lambda scene: _field(
        scene.rng.randbytes(256), *(b"\0" + scene.rng.randbytes(128) for _ in range(3))
    ),
    "raw": lambda scene: scene.rng.randbytes(32),
}
_JOINTS = {
    "nl": "\n",
    "nl2": "\n  ",
    "nl4": "\n    ",
    "nl6": "\n      ",
    "nl8": "\n        ",
    "esc": r"\n",
    "esc2": r"\\n",
    "none": "",
    "blank": " ",
    "crlf": "\r\n",
    "rn": r"\r\n",
    "py": '\\n"\n    "',
    "plus": '\\n" +\n    "',
    "quote": "\n> ",
    "hash": "\n# ",
    "add": "\n+",
    "drop": "\n-",
    "tab": "\n\t",
    "slash": "\\n\\\n",
    "pct": "%0A",
}
"""What joins the lines of a key, by name."""


def key(scene: Scene, argument: str) -> str:
    """The body of a key: what it is, what joins its lines, characters a line (64)."""
    kind, joint, width, *_ = [*argument.split(), "64"]
    body = base64.b64encode(content := _KEYS[kind](scene)).decode()
    step = 70 if kind in ("ssh", "sshrsa") and width == "64" else int(width)
    lines = [body[at : at + step] for at in range(0, len(body), step)]
    if kind == "pgp":
        lines.append("=" + base64.b64encode(crc24(content).to_bytes(3, "big")).decode())
    return _JOINTS[joint].join(lines)


def wrapped(scene: Scene, argument: str) -> str:
    """A whole file of a key in base64: kind of key, its BEGIN label with `_` for blanks."""
    kind, label = argument.split()
    label = label.replace("_", " ")
    body = key(scene, f"{kind} nl")
    text = f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
    return base64.b64encode(text.encode()).decode()


def age(scene: Scene, argument: str) -> str:
    """A secret key of age, in capitals; a recipient (public key) for `public`."""
    if argument == "public":
        return bech32("age", scene.rng.randbytes(32))
    return bech32("age-secret-key-", scene.rng.randbytes(32)).upper()


def public(scene: Scene, argument: str) -> str:
    """The body of a certificate, public key, signature or message: its kind, what joins lines."""
    kind, joint, *_ = [*argument.split(), "none"]
    numbers = der(0x30, _integer(_odd(scene, 2048)), _integer(65537))
    make: dict[str, Callable[[], bytes]] = {
        "cert": lambda: der(0x30, der(0x30, scene.rng.randbytes(560)), scene.rng.randbytes(272)),
        "spki": lambda: der(0x30, _RSA_OID, der(3, b"\0", numbers)),
        "pkcs1": lambda: numbers,
        "dh": lambda: der(0x30, _integer(_odd(scene, 2048)), _integer(2)),
        "sshrsa": lambda: _field(b"ssh-rsa", b"\1\0\1", _odd(scene, 2048).to_bytes(257, "big")),
        "sshed": lambda: _field(b"ssh-ed25519", scene.rng.randbytes(32)),
        "short": lambda: scene.rng.randbytes(32),
        "pgp": lambda: b"\x99\x01\x0d\x04" + scene.rng.randbytes(300),
        "sig": lambda: b"\x89\x01\x33\x04\x00\x01\x08" + scene.rng.randbytes(304),
        "message": lambda: b"\x85\x01\x0c\x03" + scene.rng.randbytes(300),
        "any": lambda: scene.rng.randbytes(300),
    }
    body = base64.b64encode(make[kind]()).decode()
    return _JOINTS[joint].join(body[at : at + 64] for at in range(0, len(body), 64))


MAKERS: dict[str, Maker] = {
    "keys_draw": draw,
    "keys_crc": checked,
    "keys_or": choose,
    "keys_name": name,
    "keys_firm": firm,
    "keys_iban": iban,
    "keys_wrong_iban": wrong_iban,
    "keys_jwt": jwt,
    "keys_encoded": encoded,
    "keys_key": key,
    "keys_wrapped": wrapped,
    "keys_age": age,
    "keys_public": public,
}
