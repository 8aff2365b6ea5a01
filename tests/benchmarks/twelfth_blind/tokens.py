"""Credentials of the twelfth blind set: keys of services, tokens, passwords."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.twelfth_blind.words import FIRST, STEMS, draw, make_domain, make_user

"""Bytes of a signature by algorithm."""


def _checked(prefix: str) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        body = draw(rng, "alnum", 30)
        return prefix + body + crc_base62(body)

    return make


def _shape(pattern: str) -> Callable[[random.Random], str]:
    """A maker of a form: `{alphabet length}` is drawn, the rest is as written."""
    return lambda rng: re.sub(
        r"\{(\w+) (\d+)\}", lambda part: draw(rng, part[1], int(part[2])), pattern
    )


def _coded(size: int) -> Callable[[random.Random], str]:
    return lambda rng: base64.b64encode(rng.randbytes(size)).decode()


SERVICES: dict[str, Callable[[random.Random], str]] = {
    "github": _checked("ghp_"),
    "npm": _checked("npm_"),
    "openai": _shape("sk-proj-{b64u 74}T3BlbkFJ{b64u 74}"),
    "anthropic": _shape("sk-ant-api03-{b64u 93}AA"),
    "stripe": _shape("sk_live_{alnum 24}"),
    "stripe_hook": _shape("whsec_{alnum 32}"),
    "sendgrid": _shape("SG.{b64u 22}.{b64u 43}"),
    "aws": _shape("{b64 40}"),
    "pypi": _shape("pypi-AgEIcHlwaS5vcmc{b64u 150}"),
    "hf": _shape("hf_{alnum 34}"),
    "slack_hook": _shape("T{up 10}/B{up 10}/{alnum 24}"),
    "slack_bot": _shape("xoxb-{dig 12}-{dig 13}-{alnum 24}"),
    "telegram": _shape("7{dig 9}:AA{b64u 33}"),
    "digitalocean": _shape("dop_v1_{hex 64}"),
    "hex32": _shape("{hex 32}"),
    "mailgun": _shape("key-{hex 32}"),
    "grafana": _shape("glsa_{alnum 32}_{hex 8}"),
    "entra": _shape("{alnum 3}8Q~{alnum 34}"),
    "gitlab": _shape("glpat-{alnum 20}"),
    "google": _shape("AIza{b64u 35}"),
    "new_relic": _shape("NRAK-{up 27}"),
    "terraform": _shape("{alnum 14}.atlasv1.{alnum 67}"),
    "discord_hook": _shape("{b64u 68}"),
    "notion": _shape("ntn_{alnum 46}"),
    "docker": _shape("dckr_pat_{b64u 27}"),
    "azure": _coded(64),
    "azure_bus": _coded(32),
}


def make_key(rng: random.Random, service: str) -> str:
    """A key of a service in its published form; it never ends with a sign of punctuation."""
    while True:
        key = SERVICES[service](rng)
        if key[-1].isalnum() or key[-1] == "=":
            return key


def _json(value: dict[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def make_jwt(rng: random.Random, algorithm: str) -> str:
    """A token of three parts with claims of a login."""
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if algorithm == "RS256":
        head["kid"] = draw(rng, "hex", 16)
    start = rng.randint(1_550_000_000, 1_760_000_000)
    claims: dict[str, object] = {"sub": str(rng.randint(1, 99999)), "iat": start}
    if rng.random() < 0.6:
        claims["name"] = rng.choice(FIRST)
    if rng.random() < 0.5:
        claims |= {"iss": f"https://{make_domain(rng)}/", "role": rng.choice(("user", "admin"))}
    claims["exp"] = start + rng.choice((900, 3600, 86400))
    parts = (_json(head), _json(claims), rng.randbytes(SIGNATURES[algorithm]))
    return ".".join(map(segment, parts))


def _jwt(scene: Scene, form: str) -> str:
    return make_jwt(scene.rng, "RS256" if form == "rs" else scene.rng.choice(("HS256", "ES256")))


def _cursor(scene: Scene, _: str) -> str:
    page: dict[str, object] = {"id": scene.rng.randint(1, 99999), "dir": "next"}
    return segment(_json({**page, "at": draw(scene.rng, "dig", 10)}))


def make_password(rng: random.Random, form: str) -> str:
    """A password that a person chose or a tool generated; `url` and `cs` need no escape there."""
    if form == "long":
        return draw(rng, rng.choice(("hex", "alnum")), rng.choice((40, 50, 64)))
    if form == "b64":
        return base64.b64encode(rng.randbytes(32)).decode()
    signs = "-_" if form == "url" else "!#*-_+"
    sign, end = rng.choice(signs), rng.choice(string.ascii_letters + string.digits)
    word, other = rng.choice(STEMS), rng.choice(STEMS)
    chosen = (
        f"{word.title()}{rng.randint(1950, 2025)}{sign}{end}",
        f"{word}{sign}{other}{rng.randint(10, 99)}",
        f"{word[:3].upper()}{sign}{draw(rng, 'alnum', 7)}",
    )
    generated = draw(rng, "alnum", rng.randint(12, 22))
    return rng.choice((*chosen, generated, generated))


def _opaque(scene: Scene, _: str) -> str:
    rng = scene.rng
    if rng.random() < 0.25:
        return make_jwt(rng, rng.choice(("HS256", "RS256")))
    if rng.random() < 0.2:
        return make_key(rng, rng.choice(("github", "openai", "hf", "gitlab")))
    return draw(rng, rng.choice(("hex", "alnum", "alnum")), rng.choice((32, 40, 48, 64)))


def _basic(scene: Scene, _: str) -> str:
    login = f"{make_user(scene.rng)}:{make_password(scene.rng, '')}"
    return base64.b64encode(login.encode()).decode()


_SPLIT = ("github", "npm", "openai", "stripe", "sendgrid", "slack_bot", "anthropic", "hf")


def _half(scene: Scene, second: bool) -> str:
    rng = scene.rng

    def draw_whole() -> str:
        if rng.random() < 0.3:
            return make_jwt(rng, rng.choice(("HS256", "RS256")))
        return make_key(rng, rng.choice(_SPLIT))

    whole = scene.once("whole", draw_whole)
    at = int(scene.once("cut", lambda: str(int(len(whole) * rng.uniform(0.42, 0.58)))))
    return whole[at:] if second else whole[:at]


TOKEN_MAKERS: dict[str, Maker] = {
    "svc": lambda scene, name: make_key(scene.rng, name),
    "jwt": _jwt,
    "claims": _cursor,
    "pw": lambda scene, form: make_password(scene.rng, form),
    "tok": _opaque,
    "basic": _basic,
    "half1": lambda scene, _: _half(scene, second=False),
    "half2": lambda scene, _: _half(scene, second=True),
}
