"""Makers of tokens, passwords and their parts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from collections.abc import Callable
from typing import Any

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.eighth_blind.services import WITH_HEAD, make_key
from tests.benchmarks.eighth_blind.words import (
    ALNUM,
    HEX,
    PEOPLE,
    PROJECTS,
    URLSAFE,
    ascii_of,
    draw_from,
    draw_pattern,
    make_base64,
    make_domain,
    make_moment,
    make_uuid,
    words_of,
)

_WORDS = words_of(
    "Fjellrev Trommel Hagelbui Kastanje Bruinvis Zeemeeuw Mlecznik Borowik Lastovka Kobliha "
    "Sardinha Caracol Azulejo Peixaria Lampone Girasole Ginepro Tartaruga Kukkaro Mustikka "
    "Hernekeitto Skvader Lingon Vattkorn Karpatka Turtledove Marzipan Quagmire Bandicoot Wolfram "
    "Petrichor Saltmarsh Kittiwake Toboggan Ocelot Papaya Chicory Rutabaga Gondola Mandrake"
)
_SIGNS = "!#%*-_+=.?"


def _part(content: dict[str, Any] | bytes) -> str:
    plain = (
        content
        if isinstance(content, bytes)
        else json.dumps(content, separators=(",", ":")).encode()
    )
    return base64.urlsafe_b64encode(plain).decode().rstrip("=")


def make_jwt(rng: random.Random) -> str:
    """A signed JSON Web Token; HMAC signatures are right for a random key."""
    algorithm = rng.choice(["HS256", "HS256", "HS512", "RS256", "ES256"])
    issued = int(make_moment(rng).timestamp())
    first, last = (ascii_of(part) for part in rng.choice(PEOPLE))
    payload = {
        "sub": rng.choice([make_uuid(rng), f"{first}.{last}", draw_pattern(rng, "^#####")]),
        "iss": f"https://login.{make_domain(rng)}/",
        "iat": issued,
        "exp": issued + rng.choice([900, 3600, 86400]),
        **rng.choice(
            [
                *({}, {"scope": "read write"}, {"role": "editor"}, {"aud": rng.choice(PROJECTS)}),
                {"jti": make_uuid(rng), "tenant": draw_pattern(rng, "t-^###")},
            ]
        ),
    }
    header = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.3:
        header["kid"] = draw_from(rng, HEX, 8)
    signed = f"{_part(header)}.{_part(payload)}"
    if algorithm.startswith("HS"):
        digest = hashlib.sha256 if algorithm == "HS256" else hashlib.sha512
        return f"{signed}.{_part(hmac.new(rng.randbytes(32), signed.encode(), digest).digest())}"
    return f"{signed}.{_part(rng.randbytes(256 if algorithm == 'RS256' else 64))}"


def make_generated(rng: random.Random, signs: str = _SIGNS) -> str:
    """A password from a manager: letters, digits and some signs."""
    size = rng.randrange(12, 25)
    text = draw_from(rng, ALNUM + signs * 2, size - 3)
    return rng.choice("abcdefgh") + text + rng.choice("23456789") + rng.choice("KLMNPQRS")


def make_human(rng: random.Random) -> str:
    """A password that somebody thought of: words with digits."""
    word, second = rng.sample(_WORDS, 2)
    leet = word.replace("a", "4", 1).replace("o", "0", 1).replace("i", "1", 1)
    return rng.choice(
        [
            *(f"{word}!{rng.randrange(1960, 2024)}", f"{leet}#{rng.randrange(10, 99)}"),
            *(
                f"{word}{second}{rng.randrange(10, 999)}",
                f"{word.lower()}_{rng.randrange(100, 999)}",
            ),
            f"{rng.randrange(10, 99)}{leet}{rng.choice('!?.+')}{second[:3]}",
        ]
    )


def make_password(rng: random.Random, style: str = "") -> str:
    """A password of a style: gen, human, phrase, url (what needs no escape in a URL), or any."""
    if style == "url":
        plain = make_human(rng).translate(str.maketrans("!#?+", "._--"))
        return rng.choice([make_generated(rng, "-_."), plain])
    if style == "phrase":
        return "-".join(word.lower() for word in rng.sample(_WORDS, 4))
    if style == "human" or (not style and rng.random() < 0.4):
        return make_human(rng)
    return make_generated(rng)


def make_app_secret(rng: random.Random) -> str:
    """A secret that an application signs or encrypts with."""
    return rng.choice(
        [
            *(
                draw_from(rng, HEX, 64),
                draw_from(rng, URLSAFE, 43) + "8",
                draw_from(rng, ALNUM, 50),
            ),
            *(make_base64(rng, 32), draw_from(rng, HEX, 40)),
        ]
    )


def make_token(rng: random.Random) -> str:
    """A credential of a header: opaque, a JWT or a service's key."""
    chance = rng.random()
    if chance < 0.3:
        return make_jwt(rng)
    if chance < 0.45:
        return make_key(rng, rng.choice(WITH_HEAD))
    size = rng.choice([32, 40, 43, 64])
    return draw_from(rng, rng.choice([ALNUM, HEX, URLSAFE]), size - 1) + rng.choice("0123456789")


def make_basic(rng: random.Random) -> str:
    """The base64 of a login for Basic authentication."""
    login = f"{ascii_of(rng.choice(PEOPLE)[1])}:{make_password(rng)}"
    return base64.b64encode(login.encode()).decode()


def _breakable(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return make_jwt(rng)
    while True:
        key = make_key(rng, rng.choice(WITH_HEAD))
        if len(key) >= 34 and ":" not in key and "/" not in key:
            return key


def _near_miss(rng: random.Random) -> str:
    """What has the head of a key and is a placeholder."""
    return rng.choice(
        [
            "ghp_" + "x" * 36,
            "github_pat_<your-fine-grained-token-goes-here>",
            "sk-proj-your-openai-key-goes-here-do-not-commit",
            "glpat-REPLACE-ME-WITH-YOUR-TOKEN",
            "xoxb-your-bot-token-from-the-app-page",
            "sk_live_" + "*" * 32,
            "npm_" + "X" * 36,
            "hf_your_token_from_huggingface_settings",
        ]
    )


LONG: dict[str, Callable[[random.Random], str]] = {
    "": _breakable,
    "jwt": make_jwt,
    "sha512": lambda rng: draw_from(rng, HEX, 128),
    "sha256": lambda rng: draw_from(rng, HEX, 64),
    "sri": lambda rng: "sha384-" + make_base64(rng, 48),
    "png": lambda rng: "iVBORw0KGgoAAAANSUhEUgAA" + make_base64(rng, 72),
    "sig": lambda rng: make_base64(rng, 64),
    "gif": lambda rng: "R0lGODlhAQABAIAAAAAAAP" + make_base64(rng, 60),
    "cert": lambda rng: (
        "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQG" + make_base64(rng, 48)
    ),
    "ssh": lambda rng: "AAAAB3NzaC1yc2EAAAADAQABAAABAQ" + make_base64(rng, 90),
    "font": lambda rng: "d09GMgABAAAAAA" + make_base64(rng, 78),
    "map": lambda rng: (
        "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbImFwcC50cyJdLCJuYW1lcyI6W10sIm1hcHBpbmdzIjoi"
        + draw_from(rng, "ABCGHIQSY", 40)
    ),
    "near": _near_miss,
    "words": lambda rng: "-".join(rng.sample(PROJECTS, 8)),
    "url": lambda rng: f"https://{make_domain(rng)}/" + "/".join(rng.sample(PROJECTS, 5)),
    "cdr": lambda rng: "".join(rng.choice("ACGT") for _ in range(90)),
}
"""What is long enough to be broken over lines, by its name in a template; the first are tokens."""


def _piece(number: int, count: int) -> Maker:
    def make(scene: Scene, argument: str) -> str:
        rng = scene.rng
        whole = scene.once(f"long {argument}", lambda: LONG[argument](rng))
        size = len(whole)
        cuts = scene.once(
            f"cuts {argument}",
            lambda: " ".join(
                str(size * place // count + rng.randrange(-size // 12, size // 12))
                for place in range(1, count)
            ),
        )
        ends = [0, *map(int, cuts.split()), size]
        return whole[ends[number] : ends[number + 1]]

    return make


def _json_base64(scene: Scene, argument: str) -> str:
    content = {"id": scene.rng.randrange(10**6), "sort": ["created", "desc"], "page": argument}
    return base64.b64encode(json.dumps(content).encode()).decode()


def _key(scene: Scene, argument: str) -> str:
    services = argument.split("|") if argument else WITH_HEAD
    return make_key(scene.rng, scene.rng.choice(services))


CREDENTIAL_MAKERS: dict[str, Maker] = {
    "jwt": lambda scene, argument: make_jwt(scene.rng),
    "jwt_head": lambda scene, argument: make_jwt(scene.rng).split(".")[0],
    "jwt_payload": lambda scene, argument: make_jwt(scene.rng).split(".")[1],
    "json64": _json_base64,
    "pw": lambda scene, argument: make_password(scene.rng, argument),
    "app_secret": lambda scene, argument: make_app_secret(scene.rng),
    "token": lambda scene, argument: make_token(scene.rng),
    "opaque": lambda scene, argument: draw_from(scene.rng, ALNUM, int(argument) - 1) + "7",
    "basic": lambda scene, argument: make_basic(scene.rng),
    "key": _key,
    "slack_hook": lambda scene, argument: (
        draw_pattern(scene.rng, "T0!##!#!###/B0!#!##!!##/") + draw_from(scene.rng, ALNUM, 24)
    ),
    "webhook": lambda scene, argument: (
        draw_pattern(scene.rng, "1" + "#" * 18 + "/") + draw_from(scene.rng, URLSAFE, 67) + "k"
    ),
    "half1": _piece(0, 2),
    "half2": _piece(1, 2),
    "third1": _piece(0, 3),
    "third2": _piece(1, 3),
    "third3": _piece(2, 3),
}
