"""What draws the slots of account numbers, web tokens, private keys and keys of services.

Every value has the length and the checksum that its standard states; none of them is in use.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable
from functools import partial

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import (
    SIGNATURES,
    bech32,
    crc24,
    crc_base62,
    der,
    luhn_digit,
    segment,
)
from tests.benchmarks.sixteenth_blind.keys_words import (
    ACCOUNTS,
    CLAIMS,
    COMMON_COUNTRIES,
    COMPANIES,
    DOMAINS,
    FORMS,
    JOINTS,
    NAMES,
    PUBLISHED_IBANS,
    USERS,
)

_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "-_",
    "B": string.ascii_uppercase + "234567",
    "d": string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "l": string.ascii_lowercase,
    "L": string.ascii_letters,
    "s": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + string.digits,
    "U": string.ascii_uppercase,
    "x": string.ascii_lowercase + string.digits,
}
_BLOCK = re.compile(r"\{([aBbdhHlLsuUx])(\d+)(?:-(\d+))?\}")
_IBAN_LIKE = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}")


def expand(pattern: str, rng: random.Random) -> str:
    """Replace each `{aN}` or `{aN-M}` by so many characters of the alphabet, `{g}` by a UUID."""

    def draw(match: re.Match[str]) -> str:
        low = int(match[2])
        size = rng.randint(low, int(match[3] or low))
        return "".join(rng.choices(_ALPHABETS[match[1]], k=size))

    pattern = pattern.replace("{g}", "{h8}-{h4}-4{h3}-a{h3}-{h12}")
    return _BLOCK.sub(draw, pattern)


# Account numbers


def _as_number(text: str) -> int:
    return int("".join(str(int(one, 36)) for one in text))


def has_iban_checksum(compact: str) -> bool:
    """Whether the two check digits are right (ISO 13616: the rest by 97 is 1)."""
    return _as_number(compact[4:] + compact[:4]) % 97 == 1


def make_iban(country: str, rng: random.Random) -> str:
    """An account number with the check digits of its country and of ISO 13616."""
    body = expand(rng.choice(ACCOUNTS[country]), rng)
    body = _NATIONAL.get(country, lambda text: text)(body)
    return f"{country}{98 - _as_number(body + country + '00') % 97:02}{body}"


def _spain(body: str) -> str:
    def digit(digits: str) -> str:
        rest = 11 - sum(int(one) * 2**at % 11 for at, one in enumerate(digits)) % 11
        return {10: "1", 11: "0"}.get(rest, str(rest))

    return body[:8] + digit("00" + body[:8]) + digit(body[8:]) + body[8:]


def _belgium(body: str) -> str:
    return body[:10] + f"{int(body[:10]) % 97 or 97:02}"


def _france(body: str) -> str:
    return body[:21] + f"{97 - (int(body[:21]) * 100) % 97:02}"


_ODD = "1 0 5 7 9 13 15 17 19 21 2 4 18 20 11 3 6 8 12 14 16 10 22 25 24 23"
"""What a letter or digit in an odd place counts for in an Italian account."""


def _italy(body: str) -> str:
    odd = [int(one) for one in _ODD.split()]
    total = 0
    for at, one in enumerate(body[1:]):
        number = int(one) if one.isdigit() else ord(one) - 65
        total += number if at % 2 else odd[number]
    return string.ascii_uppercase[total % 26] + body[1:]


def _portugal(body: str) -> str:
    return body[:19] + f"{98 - (int(body[:19]) * 100) % 97:02}"


def _czechia(body: str) -> str:
    """Prefix and account number are multiples of 11 by their weights."""

    def mend(digits: str) -> str:
        weights = (6, 3, 7, 9, 10, 5, 8, 4, 2, 1)[-len(digits) :]
        total = sum(int(one) * weight for one, weight in zip(digits, weights, strict=True))
        if (rest := -total % 11) < 10 - int(digits[-1]):
            return digits[:-1] + str(int(digits[-1]) + rest)
        return mend(f"{(int(digits) + 1) % 10 ** len(digits):0{len(digits)}}")

    return body[:4] + mend(body[4:10]) + mend(body[10:])


def _norway(body: str) -> str:
    weights = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
    rest = -sum(int(one) * weight for one, weight in zip(body[:10], weights, strict=True)) % 11
    if rest < 10:
        return body[:10] + str(rest)
    return _norway(f"{int(body[:10]) + 1:010}0")


def _dutch(body: str) -> str:
    """The account number is a multiple of 11 by its weights ("elfproef")."""
    number = int(body[4:])
    while sum(int(one) * (10 - at) for at, one in enumerate(f"{number:010}")) % 11:
        number += 1
    return body[:4] + f"{number:010}"


def _poland(body: str) -> str:
    weights = (3, 9, 7, 1, 3, 9, 7)
    total = sum(int(one) * weight for one, weight in zip(body[:7], weights, strict=True))
    return body[:7] + str(-total % 10) + body[8:]


def _mod_97(body: str) -> str:
    return body[:-2] + f"{98 - (int(body[:-2]) * 100) % 97:02}"


_NATIONAL: dict[str, Callable[[str], str]] = {
    "BA": _mod_97,
    "BE": _belgium,
    "CZ": _czechia,
    "ES": _spain,
    "FR": _france,
    "IT": _italy,
    "MC": _france,
    "NL": _dutch,
    "NO": _norway,
    "PL": _poland,
    "PT": _portugal,
    "RS": _mod_97,
    "SI": _mod_97,
    "SK": _czechia,
}


def _write(compact: str, style: str) -> str:
    """As printed: `s` blanks after four, `-` hyphens, `.` dots, `n` no-break blanks, `l` small."""
    joints = {"s": " ", "-": "-", ".": ".", "n": "\u00a0"}
    if style in joints:
        return joints[style].join(re.findall(".{1,4}", compact))
    return compact.lower() if style == "l" else compact


def _iban(scene: Scene, argument: str) -> str:
    country, _, style = argument.partition(" ")
    return _write(make_iban(country or scene.rng.choice(COMMON_COUNTRIES), scene.rng), style)


def _bad_iban(scene: Scene, argument: str) -> str:
    """A number of the right length whose check digits are wrong."""
    country, _, style = argument.partition(" ")
    right = make_iban(country, scene.rng)
    digits = (int(right[2:4]) + scene.rng.randint(2, 40)) % 90 + 3
    wrong = f"{country}{digits:02}{right[4:]}"
    return _write(wrong, style) if not has_iban_checksum(wrong) else _bad_iban(scene, argument)


def _published(scene: Scene, argument: str) -> str:
    """The number that the registry of IBANs, a bank or an article prints as example."""
    country, _, style = argument.partition(" ")
    numbers = [one for one in PUBLISHED_IBANS if one.startswith(country)]
    return _write(scene.rng.choice(numbers), style)


def _pattern(scene: Scene, argument: str) -> str:
    """Characters by a pattern; never an account's or a card's number by chance."""
    text = expand(argument, scene.rng)
    for match in _IBAN_LIKE.finditer(re.sub(r"[ .-]", "", text)):
        if any(has_iban_checksum(match[0][:end]) for end in range(15, len(match[0]) + 1)):
            return _pattern(scene, argument)
    digits = re.findall(r"[3-6]\d{12,18}", text)
    if any(luhn_digit(one[:-1]) == one[-1] for one in digits):
        return _pattern(scene, argument)
    return text


# Web tokens


def _compact_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def make_jwt(flavour: str, rng: random.Random) -> str:
    """A signed token: head, claims of a known issuer, a signature of the algorithm's size."""
    head, claims = CLAIMS[flavour]
    issued = rng.randint(1_540_000_000, 1_760_000_000)
    life = rng.choice((300, 900, 3600, 3600, 7200, 86400, 604800, 2592000))
    if flavour in {"supabase", "service", "hass"}:
        life = 315_360_000

    def draw(value: object) -> object:
        if isinstance(value, dict):
            return {key: draw(one) for key, one in value.items()}
        if isinstance(value, list):
            return [draw(one) for one in value]
        if not isinstance(value, str):
            return value
        if value in {"IAT", "EXP"}:
            return issued + (life if value == "EXP" else 0)
        if value.startswith("INT "):
            return int(expand(value[4:], rng))
        value = re.sub(r"\bUSER\b", rng.choice(USERS), value).replace("HOST", rng.choice(DOMAINS))
        return expand(value.replace("NAME", rng.choice(rng.choice(tuple(NAMES.values())))), rng)

    algorithm = str(head["alg"])
    parts = [_compact_json(draw(head)), _compact_json(draw(claims))]
    return ".".join(map(segment, [*parts, rng.randbytes(SIGNATURES[algorithm])]))


def _jwt(scene: Scene, argument: str) -> str:
    return make_jwt(argument or scene.rng.choice(("api", "user", "login", "node")), scene.rng)


def _head(scene: Scene, argument: str) -> str:
    """The first part of a token alone."""
    return make_jwt(argument or "api", scene.rng).split(".", maxsplit=1)[0]


def _base64_json(scene: Scene, argument: str) -> str:
    """Base64 of an object of JSON that is no token; the pattern is of the object without braces."""
    text = "{" + expand(argument.replace("(", "{").replace(")", "}"), scene.rng) + "}"
    return base64.b64encode(text.encode()).decode()


# Private keys


def _integer(number: int) -> bytes:
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _odd(bits: int, rng: random.Random) -> int:
    return rng.getrandbits(bits) | 1 << (bits - 1) | 1


def _rsa_numbers(bits: int, rng: random.Random) -> list[int]:
    half = bits // 2
    prime, other = (_odd(half, rng) | 1 << (half - 2) for _ in range(2))
    private, one, two, inverse = (rng.getrandbits(size) for size in (bits - 1, half, half, half))
    return [prime * other, 65537, private, prime, other, one, two, inverse]


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _openssh(kind: str, rng: random.Random) -> bytes:
    comment = f"{rng.choice(USERS)}@{rng.choice(DOMAINS).split('.')[0]}".encode()
    if kind == "ed25519":
        point = rng.randbytes(32)
        name, public = b"ssh-ed25519", _string(point)
        private = _string(point) + _string(rng.randbytes(32) + point)
    else:
        numbers = [
            _string(one.to_bytes(one.bit_length() // 8 + 1, "big"))
            for one in _rsa_numbers(int(kind), rng)
        ]
        name, public = b"ssh-rsa", numbers[1] + numbers[0]
        private = numbers[0] + numbers[1] + numbers[2] + numbers[7] + numbers[3] + numbers[4]
    check = rng.randbytes(4)
    inner = check + check + _string(name) + private + _string(comment)
    inner += bytes(range(1, -len(inner) % 8 + 1))
    head = b"openssh-key-v1\0" + _string(b"none") * 2 + _string(b"") + (1).to_bytes(4, "big")
    return head + _string(_string(name) + public) + _string(inner)


_P256 = bytes.fromhex("06082a8648ce3d030107")
_K256 = bytes.fromhex("06052b8104000a")
_EC_KEY = bytes.fromhex("06072a8648ce3d0201")
_RSA_KEY = bytes.fromhex("06092a864886f70d0101010500")


def make_key(kind: str, rng: random.Random) -> bytes:
    """A private key in DER, OpenSSH's format or OpenPGP's packets (its numbers are random)."""
    if kind.startswith(("rsa", "p8rsa")):
        bits = int(kind.rpartition("rsa")[2])
        body = der(0x30, _integer(0), *map(_integer, _rsa_numbers(bits, rng)))
        if kind.startswith("rsa"):
            return body
        return der(0x30, _integer(0), der(0x30, _RSA_KEY), der(4, body))
    if kind in {"ec", "k1", "p8ec"}:
        point = der(0xA1, der(3, b"\0\4" + rng.randbytes(64)))
        secret = der(4, rng.randbytes(32))
        if kind == "p8ec":
            inner = der(0x30, _integer(1), secret, point)
            return der(0x30, _integer(0), der(0x30, _EC_KEY, _P256), der(4, inner))
        curve = _P256 if kind == "ec" else _K256
        return der(0x30, _integer(1), secret, der(0xA0, curve), point)
    if kind == "p8ed":
        algorithm = der(0x30, bytes.fromhex("06032b6570"))
        return der(0x30, _integer(0), algorithm, der(4, der(4, rng.randbytes(32))))
    if kind == "dsa":
        sizes = (1024, 160, 1024, 1024, 160)
        return der(0x30, _integer(0), *(_integer(_odd(size, rng)) for size in sizes))
    if kind.startswith("ssh"):
        return _openssh(kind[3:], rng)
    if kind == "p8enc":  # PBES2 (RFC 8018): key derivation, AES-256-CBC, then what is encrypted
        derivation = der(0x30, der(4, rng.randbytes(8)), _integer(2048))
        scheme = der(0x30, bytes.fromhex("06092a864886f70d01050d"), derivation)
        return der(0x30, scheme, der(4, rng.randbytes(1232)))
    if kind == "ppked":  # PuTTY: the private numbers alone, each behind its length
        return _string(rng.randbytes(32))
    if kind == "ppkrsa":
        numbers = _rsa_numbers(1024, rng)
        parts = (numbers[2], numbers[3], numbers[4], numbers[7])
        return b"".join(_string(one.to_bytes(one.bit_length() // 8 + 1, "big")) for one in parts)
    if kind.startswith("raw"):
        return rng.randbytes(int(kind[3:]))
    if kind == "pgp":  # a secret-key packet of old format (tag 5), then the user's identity
        secret = b"\x04" + rng.randbytes(4) + b"\x01" + rng.randbytes(rng.choice((480, 920)))
        user = f"{rng.choice(NAMES['en'])} <{rng.choice(USERS)}@{rng.choice(DOMAINS)}>".encode()
        return (
            b"\x95" + len(secret).to_bytes(2, "big") + secret + b"\xb4" + bytes([len(user)]) + user
        )
    raise ValueError(f"no kind of private key: {kind}")


def _body(scene: Scene, argument: str) -> str:
    """The lines of base64 of a key: `KIND JOINT`, `ind6` for a joint of six blanks."""
    kind, _, joint = argument.partition(" ")
    between = JOINTS.get(joint or "nl", "\n" + " " * int(re.sub(r"\D", "", joint) or 0))
    content = make_key(kind, scene.rng)
    width = 70 if kind.startswith("ssh") else 64
    text = base64.b64encode(content).decode()
    lines = re.findall(f".{{1,{width}}}", text)
    if kind == "pgp":
        lines.append("=" + base64.b64encode(crc24(content).to_bytes(3, "big")).decode())
    return between.join(lines)


_LABELS = {"rsa": "RSA PRIVATE KEY", "ec": "EC PRIVATE KEY", "ssh": "OPENSSH PRIVATE KEY"}


def _wrapped(scene: Scene, argument: str) -> str:
    """Base64 of a whole file of PEM, with 76 characters a line if a joint is named."""
    kind, _, joint = argument.partition(" ")
    label = next((name for key, name in _LABELS.items() if kind.startswith(key)), "PRIVATE KEY")
    pem = f"-----BEGIN {label}-----\n{_body(scene, kind)}\n-----END {label}-----\n"
    text = base64.b64encode(pem.encode()).decode()
    between = "\n" + " " * int(re.sub(r"\D", "", joint) or 0)
    return between.join(re.findall(".{1,76}", text)) if joint else text


def _public(scene: Scene, argument: str) -> str:
    """Base64 of random bytes in lines, as of a certificate or a public key: `HEX SIZE JOINT`."""
    prefix, size, joint = (argument + "  ").split(" ")[:3]
    content = bytes.fromhex(prefix) + scene.rng.randbytes(int(size))
    between = JOINTS.get(joint or "nl", "\n" + " " * int(re.sub(r"\D", "", joint) or 0))
    return between.join(re.findall(".{1,64}", base64.b64encode(content).decode()))


def _age(scene: Scene, argument: str) -> str:
    text = bech32(argument or "age-secret-key-", scene.rng.randbytes(32))
    return text if argument else text.upper()


# Keys of services


def make_service_key(service: str, rng: random.Random) -> str:
    """A key of the form of its service, with the checksum of GitHub and npm."""
    form = rng.choice(FORMS[service].split("|"))
    if "{id}" in form:
        number = base64.b64encode(expand("1{d18}", rng).encode()).decode()
        form = form.replace("{id}", number.rstrip("="))
    if "{crc}" not in form:
        return expand(form, rng)
    prefix = form.replace("{crc}", "")
    body = expand("{a30}", rng)
    return prefix + body + crc_base62(body)


def _service_key(scene: Scene, argument: str) -> str:
    return make_service_key(argument or scene.rng.choice(tuple(FORMS)), scene.rng)


# What stands around the values


def _number(scene: Scene, argument: str) -> str:
    low, high = map(int, argument.split("-"))
    return str(scene.rng.randint(low, high))


def _date(scene: Scene, argument: str) -> str:
    day, month, year = scene.rng.randint(1, 28), scene.rng.randint(1, 12), scene.rng.randint(12, 25)
    forms = {
        "": f"20{year}-{month:02}-{day:02}",
        "de": f"{day:02}.{month:02}.20{year}",
        "fr": f"{day:02}/{month:02}/20{year}",
        "us": f"{month}/{day}/20{year}",
        "time": f"20{year}-{month:02}-{day:02}T{day % 24:02}:{month * 4:02}:{year * 2:02}",
    }
    return forms[argument]


def _choice(scene: Scene, argument: str) -> str:
    return scene.rng.choice(argument.split("|"))


def _word(words: tuple[str, ...], scene: Scene, _: str) -> str:
    return scene.rng.choice(words)


def _company(scene: Scene, argument: str) -> str:
    return scene.rng.choice(COMPANIES[argument or scene.rng.choice(tuple(COMPANIES))])


def _name(scene: Scene, argument: str) -> str:
    return scene.rng.choice(NAMES[argument or "en"])


_SHORT: dict[str, Maker] = {
    "iban": _iban,
    "bad": _bad_iban,
    "pub": _published,
    "r": _pattern,
    "jwt": _jwt,
    "head": _head,
    "json": _base64_json,
    "body": _body,
    "wrap": _wrapped,
    "public": _public,
    "age": _age,
    "key": _service_key,
    "n": _number,
    "date": _date,
    "w": _choice,
    "name": _name,
    "co": _company,
    "host": partial(_word, DOMAINS),
    "user": partial(_word, USERS),
}
MAKERS: dict[str, Maker] = {f"keys_{name}": maker for name, maker in _SHORT.items()}
