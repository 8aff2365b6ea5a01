"""Makers of bearer credentials and of tokens that are broken over lines or string pieces."""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Sequence
from itertools import pairwise

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc_base62, segment
from tests.benchmarks.twentieth_blind import tokens_words as words

_LOWER = string.ascii_lowercase + string.digits
_ALNUM = string.ascii_letters + string.digits
_URL = _ALNUM + "-_"
_HEX = "0123456789abcdef"
_SIZES = {"HS256": 32, "HS512": 64, "RS256": 256, "ES256": 64, "EdDSA": 64, "PS256": 256}
_LEAST = 12


def _text(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def _inner(rng: random.Random, alphabet: str, count: int) -> str:
    """Like `_text`, with a letter or digit at both ends."""
    return _text(rng, _ALNUM, 1) + _text(rng, alphabet, count - 2) + _text(rng, _ALNUM, 1)


def _epoch(rng: random.Random) -> int:
    return rng.randrange(1_480_000_000, 1_760_000_000)


def _claims(rng: random.Random) -> dict[str, object]:
    issued = _epoch(rng)
    subject = rng.choice(
        [str(rng.randrange(10, 99_999)), str(uuid.UUID(int=rng.getrandbits(128))), _name(rng)]
    )
    claims: dict[str, object] = {"sub": subject}
    if rng.random() < 0.5:
        claims["iss"] = f"https://auth.{_domain(rng)}"
    if rng.random() < 0.4:
        claims["role"] = rng.choice(words.ROLES)
    if rng.random() < 0.3:
        claims["scope"] = rng.choice(words.SCOPES)
    if rng.random() < 0.3:
        claims["jti"] = _text(rng, _HEX, 16)
    claims["iat"] = issued
    if rng.random() < 0.8:
        claims["exp"] = issued + rng.choice([900, 3600, 7200, 86_400, 2_592_000])
    return claims


def _web_token(rng: random.Random, algorithm: str = "") -> str:
    algorithm = algorithm or rng.choice(["HS256"] * 5 + ["RS256"] * 3 + list(_SIZES))
    head: dict[str, str] = {"alg": algorithm}
    if rng.random() < 0.85:
        head["typ"] = "JWT"
    if algorithm[:2] != "HS" and rng.random() < 0.6:
        head["kid"] = _text(rng, _HEX, rng.choice([8, 16, 40]))
    parts = [json.dumps(one, separators=(",", ":")).encode() for one in (head, _claims(rng))]
    while True:
        token = ".".join(map(segment, [*parts, rng.randbytes(_SIZES[algorithm])]))
        if token[-1].isalnum():
            return token


def _checked(rng: random.Random, prefix: str) -> str:
    body = _text(rng, _ALNUM, 30)
    return f"{prefix}_{body}{crc_base62(body)}"


def _wrong_checked(rng: random.Random, prefix: str, count: int = 36) -> str:
    """A token of GitHub's form with a wrong checksum."""
    body = _text(rng, _ALNUM, count)
    if crc_base62(body[:30]) == body[30:]:
        body = body[:-1] + ("A" if body[-1] != "A" else "B")
    return f"{prefix}_{body}"


def _name(rng: random.Random) -> str:
    return f"{rng.choice(words.NAMES)} {rng.choice(words.SURNAMES)}"


def _domain(rng: random.Random) -> str:
    first, second = rng.sample(words.WORDS, 2)
    glue = rng.choice(["", "-", ""])
    return f"{first}{glue}{second}.{rng.choice(words.DOMAINS)}"


def _password(rng: random.Random) -> str:
    style = rng.randrange(4)
    if style == 0:
        return rng.choice(words.PASSES) + str(rng.randrange(10, 9999)) + rng.choice("!#$.?")
    if style == 1:
        return _text(rng, _ALNUM, rng.randrange(10, 22))
    if style == 2:
        return "-".join(rng.sample(words.WORDS, 3))
    return _text(rng, _ALNUM + "!$%&*+=?_", rng.randrange(9, 17))


def _basic(rng: random.Random) -> str:
    login = f"{rng.choice(words.USERS)}:{_password(rng)}"
    return base64.b64encode(login.encode()).decode()


def _base64(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def _opaque(rng: random.Random) -> str:
    """A token as some server draws it: none of a known service."""
    style = rng.randrange(8)
    if style == 0:
        return _text(rng, _HEX, rng.choice([32, 40, 48, 64]))
    if style == 1:
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    if style == 2:
        return _base64(rng, rng.choice([24, 30, 32, 33, 48]))
    if style == 3:
        return _inner(rng, _URL, rng.randrange(32, 64))
    if style == 4:
        return f"{rng.choice(words.WORDS)[:3]}_{_text(rng, _ALNUM, rng.randrange(28, 40))}"
    if style == 5:
        return _text(rng, _LOWER, rng.randrange(24, 40))
    return _text(rng, _ALNUM, rng.randrange(24, 48))


def _pypi(rng: random.Random) -> str:
    ident = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    content = b"\x02\x01\x08pypi.org\x02\x24" + ident.encode() + b"\x00\x02\x2c"
    content += b'[2,["' + str(uuid.UUID(int=rng.getrandbits(128))).encode() + b'"]]'
    return "pypi-" + segment(content + b"\x00\x00\x06\x20" + rng.randbytes(32))


def _slack(rng: random.Random, prefix: str) -> str:
    numbers = [_text(rng, "123456789", rng.choice([11, 12, 13])) for _ in range(2)]
    if prefix == "xoxp":
        numbers.append(_text(rng, "123456789", 13))
        return "-".join([prefix, *numbers, _text(rng, _HEX, 32)])
    return "-".join([prefix, *numbers, _text(rng, _ALNUM, 24)])


_FORMS: dict[str, Callable[[random.Random], str]] = {
    "opq": _opaque,
    "jwt": _web_token,
    "jwths": lambda rng: _web_token(rng, "HS256"),
    "jwtrs": lambda rng: _web_token(rng, "RS256"),
    "jwtes": lambda rng: _web_token(rng, rng.choice(["ES256", "EdDSA"])),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "ghp": lambda rng: _checked(rng, "ghp"),
    "gho": lambda rng: _checked(rng, "gho"),
    "ghs": lambda rng: _checked(rng, "ghs"),
    "npm": lambda rng: _checked(rng, "npm"),
    "githubpat": lambda rng: f"github_pat_{_text(rng, _ALNUM, 22)}_{_text(rng, _ALNUM, 59)}",
    "glpat": lambda rng: "glpat-" + _inner(rng, _URL, 20),
    "xoxb": lambda rng: _slack(rng, "xoxb"),
    "xoxp": lambda rng: _slack(rng, "xoxp"),
    "openai": lambda rng: f"sk-{_text(rng, _ALNUM, 20)}T3BlbkFJ{_text(rng, _ALNUM, 20)}",
    "skproj": lambda rng: f"sk-proj-{_inner(rng, _URL, 74)}T3BlbkFJ{_inner(rng, _URL, 74)}",
    "ant": lambda rng: f"sk-ant-api03-{_inner(rng, _URL, 93)}AA",
    "stripe": lambda rng: f"sk_live_51{_text(rng, _ALNUM, 97)}",
    "stripeold": lambda rng: "sk_live_" + _text(rng, _ALNUM, 24),
    "rk": lambda rng: f"rk_live_51{_text(rng, _ALNUM, 97)}",
    "sg": lambda rng: f"SG.{_inner(rng, _URL, 22)}.{_inner(rng, _URL, 43)}",
    "pypi": _pypi,
    "hf": lambda rng: "hf_" + _text(rng, string.ascii_letters, 34),
    "dop": lambda rng: "dop_v1_" + _text(rng, _HEX, 64),
    "shpat": lambda rng: "shpat_" + _text(rng, _HEX, 32),
    "gcp": lambda rng: "AIzaSy" + _inner(rng, _URL, 33),
    "ya29": lambda rng: "ya29.a0A" + _inner(rng, _URL, 160),
    "glsa": lambda rng: f"glsa_{_text(rng, _ALNUM, 32)}_{_text(rng, _HEX, 8)}",
    "hvs": lambda rng: "hvs.CAES" + _inner(rng, _URL, 90),
    "dckr": lambda rng: "dckr_pat_" + _inner(rng, _URL, 27),
    "lin": lambda rng: "lin_api_" + _text(rng, _ALNUM, 40),
    "ntn": lambda rng: f"ntn_{_text(rng, string.digits, 11)}{_text(rng, _ALNUM, 35)}",
    "airtable": lambda rng: f"pat{_text(rng, _ALNUM, 14)}.{_text(rng, _HEX, 64)}",
    "gsk": lambda rng: "gsk_" + _text(rng, _ALNUM, 52),
    "r8": lambda rng: "r8_" + _text(rng, _ALNUM, 37),
    "sbp": lambda rng: "sbp_" + _text(rng, _HEX, 40),
    "dapi": lambda rng: "dapi" + _text(rng, _HEX, 32),
    "nvapi": lambda rng: "nvapi-" + _inner(rng, _URL, 64),
    "square": lambda rng: "EAAA" + _inner(rng, _URL, 60),
    "nrak": lambda rng: "NRAK-" + _text(rng, string.ascii_uppercase + string.digits, 27),
    "deepl": lambda rng: f"{uuid.UUID(int=rng.getrandbits(128), version=4)}:fx",
    "esapi": lambda rng: base64.b64encode(
        f"{_inner(rng, _URL, 20)}:{_inner(rng, _URL, 22)}".encode()
    ).decode(),
    "awssecret": lambda rng: _inner(rng, _ALNUM + "+/", 40),
    "awssession": lambda rng: "IQoJb3JpZ2luX2Vj" + _inner(rng, _ALNUM + "+/", 340),
    "telegram": lambda rng: f"{rng.randrange(10**9, 10**10)}:AA{_inner(rng, _URL, 33)}",
    "discord": lambda rng: (
        f"{segment(str(rng.randrange(10**17, 10**18)).encode())}."
        f"{_text(rng, _ALNUM, 6)}.{_inner(rng, _URL, 38)}"
    ),
    # Public things, cut and wrong ones: for hard negatives.
    "sha256": lambda rng: _text(rng, _HEX, 64),
    "sha512": lambda rng: _text(rng, _HEX, 128),
    "cert": lambda rng: "MIID" + _base64(rng, 300)[4:],
    "ssh": lambda rng: "AAAAB3NzaC1yc2EAAAADAQABAAABAQ" + _base64(rng, 255)[2:],
    "ed": lambda rng: "AAAAC3NzaC1lZDI1NTE5AAAAI" + _base64(rng, 33)[:43],
    "dkim": lambda rng: "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA" + _base64(rng, 255)[:344],
    "png": lambda rng: "iVBORw0KGgoAAAANSUhEUgAA" + _base64(rng, 180),
    "jwtcut": lambda rng: _web_token(rng, "HS256").rpartition(".")[0],
    "jwtnone": lambda rng: (
        segment(b'{"alg":"none","typ":"JWT"}')
        + "."
        + segment(json.dumps(_claims(rng), separators=(",", ":")).encode())
        + "."
    ),
    "shortghp": lambda rng: _wrong_checked(rng, "ghp", 27),
    "shortnpm": lambda rng: _wrong_checked(rng, "npm", 25),
    "btc": lambda rng: "bc1q" + _text(rng, "qpzry9x8gf2tvdw0s3jn54khce6mua7l", 38),
    "eth": lambda rng: "0x" + _text(rng, _HEX, 64),
    "cid": lambda rng: "bafybei" + _text(rng, "abcdefghijklmnopqrstuvwxyz234567", 52),
    "onion": lambda rng: _text(rng, "abcdefghijklmnopqrstuvwxyz234567", 55) + "d.onion",
    "dna": lambda rng: _text(rng, "ACGT", 180),
    "protein": lambda rng: "M" + _text(rng, "ACDEFGHIKLMNPQRSTVWY", 170),
}


def _make(rng: random.Random, form: str) -> str:
    """A value of a form: a name of `_FORMS`, or an alphabet and a count as `hex32`."""
    if form in _FORMS:
        return _FORMS[form](rng)
    alphabets = {"hex": _HEX, "HEX": _HEX.upper(), "low": _LOWER, "aln": _ALNUM, "up": ""}
    alphabets["up"] = string.ascii_uppercase + string.digits
    alphabets["n"] = string.digits[1:]
    name = form.rstrip(string.digits)
    count = int(form[len(name) :])
    if name == "bs":
        return _base64(rng, count)
    if name == "url":
        return _inner(rng, _URL, count)
    return _text(rng, alphabets[name], count)


def _token(scene: Scene, argument: str) -> str:
    return _make(scene.rng, argument or "opq")


def _cuts(rng: random.Random, value: str, how: str) -> list[int]:
    """Where a value is broken.

    `3` for so many parts alike in length, `w64` for lines of so many, `f30` or `f30,76` for a first
    line of so many and then others, `d` for behind its dots.
    """
    if how == "d":
        return [at + 1 for at, one in enumerate(value) if one == "."]
    if how.isdigit():
        count = min(int(how), len(value) // _LEAST)
        size = len(value) / count
        room = max(0, min(int(size / 4), int((size - _LEAST) / 2)))
        return [round(size * at) + rng.randint(-room, room) for at in range(1, count)]
    first, _, width = how[1:].partition(",")
    step = int(first) if how[0] == "w" else int(width or len(value))
    cuts = list(range(int(first), len(value), step))
    if len(value) - cuts[-1] < _LEAST:
        before = cuts[-2] if len(cuts) > 1 else 0
        cuts[-1] = len(value) - _LEAST
        if cuts[-1] - before < _LEAST:
            del cuts[-1]
    return cuts


_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\b": "\\", r"\l": "<", r"\g": ">", r"\a": "@"}


def _broken(scene: Scene, argument: str) -> str:
    """`FORM|HOW|SEPARATOR`: a value in parts, each marked; see `_cuts` and `_ESCAPES`."""
    form, how, between = argument.split("|", 2)
    for escape, sign in _ESCAPES.items():
        between = between.replace(escape, sign)
    while True:
        value = _make(scene.rng, scene.rng.choice(form.split("/")))
        ends = [0, *_cuts(scene.rng, value, how), len(value)]
        # A first part that ends right behind `{"sub":"` stands in published web tokens as well.
        if not (value.startswith("eyJ") and 1 < ends[1] - value.find(".") < 20):
            break
    parts = [value[start:end] for start, end in pairwise(ends)]
    return between.join(f"\x02{part}\x03" for part in parts)


def _pick(choices: Sequence[str]) -> Maker:
    return lambda scene, argument: scene.rng.choice(choices)


def _number(scene: Scene, argument: str) -> str:
    """A number of so many digits, four if none is told."""
    count = int(argument or 4)
    return str(scene.rng.randrange(10 ** (count - 1), 10**count))


def _time(scene: Scene, argument: str) -> str:
    rng = scene.rng
    year, month, day = rng.randrange(2015, 2026), rng.randrange(1, 13), rng.randrange(1, 29)
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    if argument == "day":
        return f"{year}-{month:02}-{day:02}"
    if argument == "clock":
        return clock
    if argument == "http":
        return f"{rng.choice(words.DAYS)}, {day:02} {words.MONTHS[month - 1]} {year} {clock} GMT"
    if argument == "iso":
        return f"{year}-{month:02}-{day:02}T{clock}Z"
    return f"{year}-{month:02}-{day:02} {clock}"


def _host(scene: Scene, argument: str) -> str:
    return f"{argument or scene.rng.choice(words.SUBS)}.{_domain(scene.rng)}"


def _private(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return rng.choice(["10.{}.{}.{}", "192.168.{1}.{2}"]).format(
        rng.randrange(0, 250), rng.randrange(0, 250), rng.randrange(2, 250)
    )


def _version(scene: Scene, argument: str) -> str:
    return ".".join(str(scene.rng.randrange(0, top)) for top in (8, 20, 12))


MAKERS: dict[str, Maker] = {
    "tokens_t": _token,
    "tokens_basic": lambda scene, argument: _basic(scene.rng),
    "tokens_br": _broken,
    "tokens_n": _number,
    "tokens_time": _time,
    "tokens_host": _host,
    "tokens_lan": _private,
    "tokens_ver": _version,
    "tokens_name": lambda scene, argument: _name(scene.rng),
    "tokens_first": _pick(words.NAMES),
    "tokens_user": _pick(words.USERS),
    "tokens_w": _pick(words.WORDS),
    "tokens_W": lambda scene, argument: scene.rng.choice(words.WORDS).capitalize(),
    "tokens_path": _pick(words.PATHS),
    "tokens_ua": _pick(words.AGENTS),
}
