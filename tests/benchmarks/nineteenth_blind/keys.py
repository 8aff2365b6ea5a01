"""Makers of account numbers, web tokens, private keys and keys of services."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
from collections.abc import Callable
from datetime import UTC, datetime

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import (
    bech32,
    crc24,
    crc_base62,
    der,
    luhn_digit,
    segment,
)
from tests.benchmarks.nineteenth_blind.keys_words import ACCOUNTS, BANKS, PROVIDERS, WORDS

_PART = re.compile(r"\[([^\]]+)\](?:\{(\d+)(?:,(\d+))?\})?|(.)", re.DOTALL)
_PLACEHOLDER = re.compile(r"(?i)example|placeholder|x{6}|0{12}|changeme")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _letters(group: str) -> str:
    return re.sub(r"(\w)-(\w)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), group)


def draw(rng: random.Random, form: str) -> str:
    """A text of a form: literals and `[class]{n}` or `[class]{least,most}`."""
    text = ""
    for group, least, most, literal in _PART.findall(form):
        if literal:
            text += literal
        else:
            count = rng.randint(int(least or 1), int(most or least or 1))
            text += "".join(rng.choices(_letters(group), k=count))
    return text


# Account numbers


def _mod97(digits: str) -> int:
    return int(digits) % 97


def _number(text: str) -> str:
    return "".join(str(int(one, 36)) for one in text)


def _spain(bban: str, rng: random.Random) -> str:
    def digit(part: str) -> str:
        weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)
        total = 11 - sum(int(a) * b for a, b in zip(part, weights, strict=True)) % 11
        return {10: "1", 11: "0"}.get(total, str(total))

    account = draw(rng, "[0-9]{10}")
    return bban + digit("00" + bban) + digit(account) + account


def _italy(bban: str, _rng: random.Random) -> str:
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
    total = sum(odd[int(one)] if at % 2 == 0 else int(one) for at, one in enumerate(bban))
    return string.ascii_uppercase[total % 26] + bban


def _norway(bban: str, _rng: random.Random) -> str:
    while True:
        weights = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
        digit = -sum(int(a) * b for a, b in zip(bban, weights, strict=True)) % 11
        if digit < 10:
            return bban + str(digit)
        bban = bban[:4] + f"{(int(bban[4:]) + 1) % 10**6:06d}"


def _key97(bban: str, _rng: random.Random) -> str:
    return bban + f"{98 - _mod97(bban + '00'):02d}"


def _estonia(bban: str, _rng: random.Random) -> str:
    body = bban[2:-1]
    total = sum(int(one) * (7, 3, 1)[at % 3] for at, one in enumerate(reversed(body)))
    return bban[:-1] + str(-total % 10)


NATIONAL: dict[str, Callable[[str, random.Random], str]] = {
    "BE": lambda b, _: b + f"{_mod97(b) or 97:02d}",
    "ES": _spain,
    "EE": _estonia,
    "FI": lambda b, _: b + luhn_digit(b),
    "FR": lambda b, _: (
        b + f"{97 - (89 * int(b[:5]) + 15 * int(b[5:10]) + 3 * int(b[10:])) % 97:02d}"
    ),
    "MC": lambda b, _: (
        b + f"{97 - (89 * int(b[:5]) + 15 * int(b[5:10]) + 3 * int(b[10:])) % 97:02d}"
    ),
    "IT": _italy,
    "SM": _italy,
    "NO": _norway,
    "PT": _key97,
    "SI": _key97,
    "RS": _key97,
    "ME": _key97,
    "MK": _key97,
    "BA": _key97,
}
"""Digits of check that a country has inside its account numbers."""


def make_iban(rng: random.Random, country: str, off: int = 0) -> str:
    """A right account number of a country; wrong by `off` in its check digits."""
    while True:
        bban = rng.choice(BANKS[country].split()) + draw(rng, ACCOUNTS[country])
        if country in NATIONAL:
            bban = NATIONAL[country](bban, rng)
        check = 98 - _mod97(_number(bban + country + "00"))
        if off:
            check = (check + off - 2) % 97 + 2
        text = f"{country}{check:02d}{bban}"
        if not _PLACEHOLDER.search(text):
            return text


def _spaced(text: str, style: str, rng: random.Random) -> str:
    fours = [text[at : at + 4] for at in range(0, len(text), 4)]
    style = style or rng.choice("sssc")
    if style == "c":
        return text
    if style == "l":
        return text.lower()
    return {"s": " ", "-": "-", ".": ".", "n": "\xa0", "w": "\u202f"}[style].join(fours)


_COMMON = "DE DE FR NL ES IT BE AT CH GB PL PT IE LU FI SE DK NO CZ"


def _country(rng: random.Random, names: str) -> str:
    if names in ("", "any"):
        return rng.choice(_COMMON.split())
    return rng.choice(list(BANKS) if names == "all" else names.split(","))


def _iban(scene: Scene, argument: str) -> str:
    names, _, style = argument.partition(" ")
    return _spaced(make_iban(scene.rng, _country(scene.rng, names)), style, scene.rng)


def _bad_iban(scene: Scene, argument: str) -> str:
    names, _, style = argument.partition(" ")
    country = _country(scene.rng, names)
    return _spaced(make_iban(scene.rng, country, scene.rng.randint(1, 90)), style, scene.rng)


def _bban(scene: Scene, argument: str) -> str:
    """The number without country and check digits."""
    return make_iban(scene.rng, argument)[4:]


# Web tokens


def _uuid(rng: random.Random) -> str:
    return draw(rng, "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def _head(rng: random.Random, algorithm: str) -> dict[str, object]:
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.3:
        head = {"typ": "JWT", "alg": algorithm}
    if algorithm[:2] not in ("HS",) and rng.random() < 0.7:
        head["kid"] = draw(rng, rng.choice(["[A-Za-z0-9_-]{43}", "[0-9a-f]{40}", "[A-Za-z0-9]{8}"]))
    return head


def _claims(rng: random.Random, style: str) -> dict[str, object]:
    start = rng.randint(1_480_000_000, 1_765_000_000)
    times = {
        "iat": start,
        "exp": start + rng.choice([300, 900, 3600, 7200, 86400, 604800, 2592000]),
    }
    first, last = rng.choice(WORDS["first"]), rng.choice(WORDS["last"])
    domain = rng.choice(WORDS["domain"])
    mail = f"{first}.{last}@{domain}".lower()
    styles = "simple mongo full auth0 keycloak id laravel bare"
    style = style or rng.choice(styles.split())
    if style == "simple":
        return {"sub": str(rng.randint(1, 99999)), "name": f"{first} {last}", **times}
    if style == "mongo":
        return {"id": draw(rng, "[0-9a-f]{24}"), "iat": start}
    if style == "bare":
        return {
            "user_id": rng.randint(1, 9999),
            "role": rng.choice(["admin", "user"]),
            "iat": start,
        }
    if style == "laravel":
        return {
            "iss": f"https://{domain}/api/login",
            **times,
            "nbf": start,
            "jti": draw(rng, "[A-Za-z0-9]{16}"),
            "sub": rng.randint(1, 500),
            "prv": draw(rng, "[0-9a-f]{40}"),
        }
    if style == "auth0":
        return {
            "iss": f"https://{domain.split('.')[0]}.eu.auth0.com/",
            "sub": f"auth0|{draw(rng, '[0-9a-f]{24}')}",
            "aud": f"https://api.{domain}",
            **times,
            "scope": "openid profile email",
        }
    if style == "keycloak":
        return {
            **times,
            "jti": _uuid(rng),
            "iss": f"https://sso.{domain}/realms/main",
            "sub": _uuid(rng),
            "typ": "Bearer",
            "azp": "web",
            "preferred_username": first.lower(),
            "email": mail,
        }
    if style == "supabase":
        return {
            "iss": "supabase",
            "ref": draw(rng, "[a-z]{20}"),
            "role": "service_role",
            "iat": start,
            "exp": start + 315360000,
        }
    if style == "homeassistant":
        return {"iss": draw(rng, "[0-9a-f]{32}"), "iat": start, "exp": start + 315360000}
    if style == "kubernetes":
        return {
            "aud": ["https://kubernetes.default.svc"],
            **times,
            "iss": "https://kubernetes.default.svc",
            "sub": f"system:serviceaccount:{rng.choice(WORDS['app'])}:default",
        }
    if style == "google":
        return {
            "iss": "https://accounts.google.com",
            "aud": f"{rng.randint(10**11, 10**12)}-{draw(rng, '[a-z0-9]{32}')}"
            ".apps.googleusercontent.com",
            "sub": str(rng.randint(10**20, 10**21)),
            "email": mail,
            **times,
        }
    return {"sub": _uuid(rng), "email": mail, "roles": ["user"], **times}


def _json(content: dict[str, object]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


_SIZES = {"HS256": 32, "HS512": 64, "RS256": 256, "ES256": 64, "EdDSA": 64, "PS256": 256}


def _jwt(scene: Scene, argument: str) -> str:
    rng = scene.rng
    algorithm, _, style = argument.partition(" ")
    if algorithm in ("", "any"):
        names = "HS256 HS256 HS256 HS256 HS512 RS256 RS256 ES256 EdDSA PS256"
        algorithm = rng.choice(names.split())
    parts = [_json(_head(rng, algorithm)), _json(_claims(rng, style))]
    parts.append(rng.randbytes(_SIZES[algorithm]))
    return ".".join(map(segment, parts))


def _jwt_part(scene: Scene, argument: str) -> str:
    """Parts of a token: head, claims, `hc` both, `none` unsigned, `cut` begun signature, `sig`."""
    rng = scene.rng
    algorithm = "none" if argument == "none" else rng.choice(["HS256", "RS256", "HS512"])
    head = segment(_json(_head(rng, algorithm)))
    claims = segment(_json(_claims(rng, rng.choice(["simple", "mongo", "bare"]))))
    if argument == "none":
        head = segment(_json(rng.choice([{"alg": "none"}, {"alg": "none", "typ": "JWT"}])))
    return {
        "head": head,
        "claims": claims,
        "hc": f"{head}.{claims}",
        "none": f"{head}.{claims}.",
        "cut": f"{head}.{claims}.{draw(rng, '[A-Za-z0-9]{5}')}",
        "sig": segment(rng.randbytes(32)),
        "bit": head[: rng.randint(10, 20)],
        "begun": f"{head}.{claims[: rng.randint(8, 16)]}",
    }[argument]


def _decoded(scene: Scene, argument: str) -> str:
    """The claims or the head of a token, as JSON."""
    rng = scene.rng
    if argument == "head":
        return json.dumps(_head(rng, rng.choice(["HS256", "RS256"])))
    return json.dumps(_claims(rng, argument))


# Private and public keys


def _integer(rng: random.Random, bits: int) -> bytes:
    number = rng.getrandbits(bits) | 1 << bits - 1 | 1
    return der(2, number.to_bytes(bits // 8 + 1))


def _oid(code: str) -> bytes:
    return der(6, bytes.fromhex(code))


_RSA, _EC, _P256 = "2a864886f70d010101", "2a8648ce3d0201", "2a8648ce3d030107"
_VERSION = der(2, b"\0")
_THREE = der(2, b"\1\0\1")


def _below(rng: random.Random, bits: int) -> bytes:
    """A number of at most so many bits, as exponents and coefficients are."""
    number = rng.getrandbits(bits) | 1
    return der(2, number.to_bytes(number.bit_length() // 8 + 1))


def _rsa(rng: random.Random, bits: int) -> bytes:
    primes = [_integer(rng, bits // 2) for _ in range(2)]
    rest = [_below(rng, bits // 2) for _ in range(3)]
    return der(48, _VERSION, _integer(rng, bits), _THREE, _below(rng, bits - 1), *primes, *rest)


def _bits(rng: random.Random) -> int:
    return rng.choice([1024, 2048, 2048, 2048])


def _point(rng: random.Random) -> bytes:
    return der(3, b"\0\4" + rng.randbytes(64))


def _ec(rng: random.Random, named: bool = True) -> bytes:
    name = [der(0xA0, _oid(_P256))] if named else []
    return der(48, der(2, b"\1"), der(4, rng.randbytes(32)), *name, der(0xA1, _point(rng)))


def _algorithm(code: str, *more: bytes) -> bytes:
    return der(48, _oid(code), *(more or (der(5),)))


def _encrypted(rng: random.Random) -> bytes:
    prf = _algorithm("2a864886f70d0209")
    kdf = der(48, der(4, rng.randbytes(8)), der(2, b"\x08\0"), prf)
    cipher = der(48, _oid("60864801650304012a"), der(4, rng.randbytes(16)))
    parameters = der(48, der(48, _oid("2a864886f70d01050c"), kdf), cipher)
    scheme = der(48, _oid("2a864886f70d01050d"), parameters)
    return der(48, scheme, der(4, rng.randbytes(16 * rng.choice([40, 76]))))


def _dsa(rng: random.Random) -> bytes:
    sizes = (1024, 160, 1024, 1024, 160)
    return der(48, _VERSION, *(_integer(rng, bits) for bits in sizes))


def _text(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4) + part for part in parts)


def _mpint(rng: random.Random, bits: int) -> bytes:
    return b"\0" + (rng.getrandbits(bits) | 1 << bits - 1).to_bytes(bits // 8)


def _openssh(rng: random.Random, kind: str, locked: bool = False) -> bytes:
    if kind == "rsa":
        modulus, e = _mpint(rng, 2048), b"\1\0\1"
        public = _text(b"ssh-rsa", e, modulus)
        sizes = (2048, 1024, 1024, 1024)
        inner = _text(b"ssh-rsa", modulus, e, *(_mpint(rng, bits) for bits in sizes))
    elif kind == "ec":
        point = b"\4" + rng.randbytes(64)
        public = _text(b"ecdsa-sha2-nistp256", b"nistp256", point)
        inner = public + _text(rng.randbytes(32))
    else:
        point = rng.randbytes(32)
        public = _text(b"ssh-ed25519", point)
        inner = public + _text(rng.randbytes(32) + point)
    comment = f"{rng.choice(WORDS['user'])}@{rng.choice(WORDS['host'])}".encode()
    inner = rng.randbytes(4) * 2 + inner + _text(comment)
    inner += bytes(range(1, -len(inner) % 8 + 1))
    how = _text(b"none", b"none", b"")
    if locked:
        inner = rng.randbytes(-(-len(inner) // 16) * 16)
        options = _text(rng.randbytes(16)) + (16).to_bytes(4)
        how = _text(b"aes256-ctr", b"bcrypt", options)
    return b"openssh-key-v1\0" + how + (1).to_bytes(4) + _text(public, inner)


def _packet(tag: int, content: bytes) -> bytes:
    if len(content) < 256:
        return bytes([128 | tag << 2, len(content)]) + content
    return bytes([128 | tag << 2 | 1]) + len(content).to_bytes(2) + content


def _pgp_mpi(rng: random.Random, bits: int) -> bytes:
    return bits.to_bytes(2) + (rng.getrandbits(bits) | 1 << bits - 1).to_bytes(bits // 8)


def _pgp(rng: random.Random, secret: bool, rsa: bool = False) -> bytes:
    head = b"\4" + rng.randint(1_400_000_000, 1_760_000_000).to_bytes(4)
    if rsa:
        body = head + b"\1" + _pgp_mpi(rng, 2048) + b"\0\x11\1\0\1"
        if secret:
            body += b"\xfe\7\3\x0a" + rng.randbytes(8) + b"\xff" + rng.randbytes(16 + 672)
    else:
        body = head + b"\x16\x09\x2b\6\1\4\1\xda\x47\x0f\1\1\x07\x40" + rng.randbytes(32)
        if secret:
            body += b"\0" + b"\1\0" + b"\x80" + rng.randbytes(31) + rng.randbytes(2)
    first, last = rng.choice(WORDS["first"]), rng.choice(WORDS["last"])
    name = f"{first} {last} <{first.lower()}@{rng.choice(WORDS['domain'])}>".encode()
    signature = b"\4\x13\x16\x0a" + rng.randbytes(140)
    return _packet(5 if secret else 6, body) + _packet(13, name) + _packet(2, signature)


BODIES: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    "rsa": ("RSA PRIVATE KEY", lambda rng: _rsa(rng, _bits(rng))),
    "rsa1": ("RSA PRIVATE KEY", lambda rng: _rsa(rng, 1024)),
    "rsa4": ("RSA PRIVATE KEY", lambda rng: _rsa(rng, 4096)),
    "p8": (
        "PRIVATE KEY",
        lambda rng: der(48, _VERSION, _algorithm(_RSA), der(4, _rsa(rng, _bits(rng)))),
    ),
    "p8ec": (
        "PRIVATE KEY",
        lambda rng: der(48, _VERSION, _algorithm(_EC, _oid(_P256)), der(4, _ec(rng, False))),
    ),
    "ed": (
        "PRIVATE KEY",
        lambda rng: der(48, _VERSION, der(48, _oid("2b6570")), der(4, der(4, rng.randbytes(32)))),
    ),
    "ec": ("EC PRIVATE KEY", _ec),
    "dsa": ("DSA PRIVATE KEY", _dsa),
    "ssh": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "ed")),
    "sshrsa": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "rsa")),
    "sshec": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "ec")),
    "sshlock": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "ed", True)),
    "enc": ("ENCRYPTED PRIVATE KEY", _encrypted),
    "lock": ("RSA PRIVATE KEY", lambda rng: rng.randbytes(16 * rng.choice([38, 75]))),
    "putty": ("", lambda rng: _text(rng.randbytes(32))),
    "puttyrsa": ("", lambda rng: _text(*(_mpint(rng, bits) for bits in (2048, 1024, 1024, 1024)))),
    "pgp": ("PGP PRIVATE KEY BLOCK", lambda rng: _pgp(rng, True)),
    "pgprsa": ("PGP PRIVATE KEY BLOCK", lambda rng: _pgp(rng, True, True)),
}
"""Private keys: their label in PEM, and what makes the bytes."""


def _spki(rng: random.Random) -> bytes:
    key = der(48, _integer(rng, 2048), _THREE)
    return der(48, _algorithm(_RSA), der(3, b"\0" + key))


def _name(rng: random.Random) -> bytes:
    host = f"{rng.choice(WORDS['host'])}.{rng.choice(WORDS['domain'])}".encode()
    return der(48, der(49, der(48, _oid("550403"), der(12, host))))


def _certificate(rng: random.Random) -> bytes:
    year = rng.randint(16, 25)
    times = der(
        48, der(23, f"{year}0412101500Z".encode()), der(23, f"{year + 3}0412101500Z".encode())
    )
    scheme = _algorithm("2a864886f70d01010b")
    parts = (der(0xA0, der(2, b"\2")), _integer(rng, 128), scheme, _name(rng), times, _name(rng))
    return der(48, der(48, *parts, _spki(rng)), scheme, der(3, b"\0" + rng.randbytes(256)))


def _request(rng: random.Random) -> bytes:
    content = der(48, _VERSION, _name(rng), _spki(rng), der(0xA0))
    return der(48, content, _algorithm("2a864886f70d01010b"), der(3, b"\0" + rng.randbytes(256)))


PUBLIC: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    "spki": ("PUBLIC KEY", _spki),
    "ecpub": (
        "PUBLIC KEY",
        lambda rng: der(48, _algorithm(_EC, _oid(_P256)), _point(rng)),
    ),
    "edpub": (
        "PUBLIC KEY",
        lambda rng: der(48, der(48, _oid("2b6570")), der(3, b"\0" + rng.randbytes(32))),
    ),
    "rsapub": ("RSA PUBLIC KEY", lambda rng: der(48, _integer(rng, 2048), _THREE)),
    "cert": ("CERTIFICATE", _certificate),
    "csr": ("CERTIFICATE REQUEST", _request),
    "dh": ("DH PARAMETERS", lambda rng: der(48, _integer(rng, 2048), der(2, b"\2"))),
    "pgppub": ("PGP PUBLIC KEY BLOCK", lambda rng: _pgp(rng, False)),
    "sshrsa": ("", lambda rng: _text(b"ssh-rsa", b"\1\0\1", _mpint(rng, 2048))),
    "sshed": ("", lambda rng: _text(b"ssh-ed25519", rng.randbytes(32))),
    "sshec": (
        "",
        lambda rng: _text(b"ecdsa-sha2-nistp256", b"nistp256", b"\4" + rng.randbytes(64)),
    ),
    "pgpsig": ("", lambda rng: _packet(2, b"\4\0\x16\x08" + rng.randbytes(114))),
    "pgpmsg": ("", lambda rng: _packet(1, rng.randbytes(94)) + _packet(18, rng.randbytes(160))),
}
"""What is no secret: the label in PEM, and what makes the bytes."""

_SEPARATORS = {"%n": "\n", "%s": " ", "%g": ">", "%l": "<", "%-": ""}


def _lines(content: bytes, separator: str, width: int) -> str:
    encoded = base64.b64encode(content).decode()
    return separator.join(encoded[at : at + width] for at in range(0, len(encoded), width))


def _separator(text: str) -> str:
    for name, meaning in _SEPARATORS.items():
        text = text.replace(name, meaning)
    return text


def _body(scene: Scene, argument: str, table: str = "private") -> str:
    """Base64 of a key; after the first blank what stands between lines (`%n` is a line break)."""
    kinds, _, between = argument.partition(" ")
    name = scene.rng.choice(kinds.split(","))
    content = (BODIES if table == "private" else PUBLIC)[name][1](scene.rng)
    separator = _separator(between) if between else "\n"
    width = 70 if name.startswith("ssh") and table == "private" else 64
    text = _lines(content, separator, width)
    if name.startswith("pgp"):
        check = base64.b64encode(crc24(content).to_bytes(3)).decode()
        text += f"{separator}={check}"
    return text


def _pem(rng: random.Random, name: str) -> str:
    label, make = {**PUBLIC, **BODIES}[name]
    lines = _lines(make(rng), "\n", 70 if name.startswith("ssh") else 64)
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


def _wrapped(scene: Scene, argument: str) -> str:
    """Base64 of a whole PEM."""
    kinds, _, between = argument.partition(" ")
    content = _pem(scene.rng, scene.rng.choice(kinds.split(","))).encode()
    return _lines(content, _separator(between), 76) if between else _lines(content, "", 76)


def _base58check(content: bytes) -> str:
    content += hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, text = int.from_bytes(content, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


def _raw(scene: Scene, argument: str) -> str:
    """Keys without PEM: `age`, `nsec`, `npub`, `agepub`, `wif`, `xprv`, `xpub`, else X25519."""
    rng = scene.rng
    if argument == "age":
        return bech32("age-secret-key-", rng.randbytes(32)).upper()
    if argument == "agepub":
        return bech32("age", rng.randbytes(32))
    if argument in ("nsec", "npub"):
        return bech32(argument, rng.randbytes(32))
    if argument == "wif":
        return _base58check(b"\x80" + rng.randbytes(32) + b"\1")
    if argument == "xprv":
        return _base58check(
            bytes.fromhex("0488ade4") + bytes(9) + rng.randbytes(32) + b"\0" + rng.randbytes(32)
        )
    if argument == "xpub":
        return _base58check(
            bytes.fromhex("0488b21e") + bytes(9) + rng.randbytes(32) + b"\2" + rng.randbytes(32)
        )
    if argument == "b64u":
        return segment(rng.randbytes(32))
    key = bytearray(rng.randbytes(32))
    key[0], key[31] = key[0] & 248, key[31] & 127 | 64  # as X25519 has it
    return base64.b64encode(key).decode()


# Keys of services


def _checked(prefix: str) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        body = draw(rng, "[A-Za-z0-9]{30}")
        return prefix + body + crc_base62(body)

    return make


def _discord(rng: random.Random) -> str:
    account = segment(str(rng.randint(10**17, 10**18 + 3 * 10**17)).encode())
    return f"{account}.{draw(rng, 'G[A-Za-z0-9]{5}')}.{draw(rng, '[A-Za-z0-9_-]{37}[A-Za-z0-9]')}"


def _mapbox(rng: random.Random) -> str:
    claims = {"u": rng.choice(WORDS["first"]).lower(), "a": draw(rng, "cl[a-z0-9]{23}")}
    return f"sk.{segment(_json(claims))}.{draw(rng, '[A-Za-z0-9_-]{21}[A-Za-z0-9]')}"


MADE: dict[str, Callable[[random.Random], str]] = {
    "github_pat": _checked("ghp_"),
    "github_oauth": _checked("gho_"),
    "github_server": _checked("ghs_"),
    "npm_token": _checked("npm_"),
    "discord_bot": _discord,
    "mapbox_secret": _mapbox,
}


def _make(scene: Scene, argument: str) -> str:
    name = scene.rng.choice(argument.split("/"))
    while True:
        made = MADE[name](scene.rng) if name in MADE else draw(scene.rng, PROVIDERS[name])
        if not _PLACEHOLDER.search(made):
            return made


# What stands around


def _word(scene: Scene, argument: str) -> str:
    return scene.rng.choice(WORDS[argument])


def _pick(scene: Scene, argument: str) -> str:
    return scene.rng.choice(argument.split("|"))


def _date(scene: Scene, argument: str) -> str:
    stamp = scene.rng.randint(1_420_000_000, 1_760_000_000)
    if argument == "ts":
        return str(stamp)
    return datetime.fromtimestamp(stamp, UTC).strftime(argument or "%Y-%m-%d")


def _between(scene: Scene, argument: str) -> str:
    least, most = (argument or "2-999").split("-")
    return str(scene.rng.randint(int(least), int(most)))


def _amount(scene: Scene, argument: str) -> str:
    number = scene.rng.randint(900, 480_000) / 100
    text = f"{number:,.2f}"
    return text.translate(str.maketrans(",.", ".,")) if argument == "de" else text


def _form(scene: Scene, argument: str) -> str:
    return draw(scene.rng, argument)


MAKERS: dict[str, Maker] = {
    "keys_iban": _iban,
    "keys_badiban": _bad_iban,
    "keys_bban": _bban,
    "keys_jwt": _jwt,
    "keys_jwtpart": _jwt_part,
    "keys_decoded": _decoded,
    "keys_body": _body,
    "keys_public": lambda scene, argument: _body(scene, argument, "public"),
    "keys_wrapped": _wrapped,
    "keys_raw": _raw,
    "keys_make": _make,
    "keys_word": _word,
    "keys_pick": _pick,
    "keys_date": _date,
    "keys_num": _between,
    "keys_amount": _amount,
    "keys_form": _form,
}
