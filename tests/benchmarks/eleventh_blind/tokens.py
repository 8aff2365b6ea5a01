"""Tokens, keys of services and passwords of the eleventh set, in documented forms."""

from __future__ import annotations

import base64
import json
import random
import string
from urllib.parse import quote

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.eleventh_blind.words import (
    ALNUM,
    FIRST,
    HEX,
    LAST,
    LOWER,
    PARTS,
    UPPER,
    URLSAFE,
    domain,
    moment,
    pick,
    uuid,
)

DIGITS = string.digits
BASE32 = string.ascii_lowercase + "234567"
KEYS: dict[str, tuple[str | tuple[str, int], ...]] = {
    "github_fine": ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": ("glpat-", (URLSAFE, 20)),
    "slack_bot": ("xoxb-", (DIGITS, 12), "-", (DIGITS, 13), "-", (ALNUM, 24)),
    "slack_user": ("xoxp-", (DIGITS, 12), "-", (DIGITS, 12), "-", (DIGITS, 13), "-", (HEX, 32)),
    "openai": ("sk-proj-", (URLSAFE, 74), "T3BlbkFJ", (URLSAFE, 74)),
    "openai_old": ("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20)),
    "anthropic": ("sk-ant-api03-", (URLSAFE, 93), "AA"),
    "stripe": ("sk_live_51", (ALNUM, 97)),
    "stripe_old": ("sk_live_", (ALNUM, 24)),
    "stripe_restricted": ("rk_live_", (ALNUM, 24)),
    "stripe_hook": ("whsec_", (ALNUM, 32)),
    "sendgrid": ("SG.", (URLSAFE, 22), ".", (URLSAFE, 43)),
    "hugging_face": ("hf_", (string.ascii_letters, 34)),
    "digitalocean": ("dop_v1_", (HEX, 64)),
    "shopify": ("shpat_", (HEX, 32)),
    "telegram": ((DIGITS[1:], 10), ":AA", (URLSAFE, 33)),
    "mailgun": ("key-", (HEX, 32)),
    "pypi": ("pypi-AgEIcHlwaS5vcmc", (URLSAFE, 160)),
    "docker": ("dckr_pat_", (URLSAFE, 27)),
    "databricks": ("dapi", (HEX, 32)),
    "groq": ("gsk_", (ALNUM, 52)),
    "replicate": ("r8_", (ALNUM, 37)),
    "notion": ("ntn_", (DIGITS, 11), (ALNUM, 35)),
    "linear": ("lin_api_", (ALNUM, 40)),
    "postman": ("PMAK-", (HEX, 24), "-", (HEX, 34)),
    "airtable": ("pat", (ALNUM, 14), ".", (HEX, 64)),
    "new_relic": ("NRAK-", (UPPER, 27)),
    "grafana": ("glsa_", (ALNUM, 32), "_", (HEX, 8)),
    "figma": ("figd_", (URLSAFE, 40)),
    "rubygems": ("rubygems_", (HEX, 48)),
    "google_client": ("GOCSPX-", (URLSAFE, 28)),
    "gemini": ("AIzaSy", (URLSAFE, 33)),
    "vault": ("hvs.", (URLSAFE, 95)),
    "planetscale": ("pscale_tkn_", (URLSAFE, 43)),
    "doppler": ("dp.pt.", (ALNUM, 43)),
    "perplexity": ("pplx-", (ALNUM, 48)),
    "brevo": ("xkeysib-", (HEX, 64), "-", (ALNUM, 16)),
    "netlify": ("nfp_", (ALNUM, 36)),
    "tailscale": ("tskey-auth-", (ALNUM, 11), "CNTRL-", (ALNUM, 32)),
    "aws_secret": ((ALNUM + "/+", 40),),
    "twilio": ((HEX, 32),),
    "cloudflare": ((URLSAFE, 40),),
    "datadog": ((HEX, 32),),
    "azure": (("".join(sorted(ALNUM)), 86), "=="),
    "plain": ((ALNUM, 32),),
    "plain_hex": ((HEX, 40),),
}
CHECKED = {"github": "ghp_", "github_oauth": "gho_", "github_actions": "ghs_", "npm": "npm_"}
EVERY = (*CHECKED, *KEYS)


def make_key(rng: random.Random, name: str) -> str:
    """A key of a service in its published form."""
    if name in CHECKED:
        body = pick(rng, ALNUM, 30)
        return f"{CHECKED[name]}{body}{crc_base62(body)}"
    return "".join(part if isinstance(part, str) else pick(rng, *part) for part in KEYS[name])


def make_jwt(rng: random.Random, algorithm: str = "") -> str:
    """A signed token; its claims are those of a login, an account of a service or an API."""
    algorithm = algorithm or rng.choice(("HS256", "HS256", "HS256", "RS256", "ES256", "HS512"))
    head = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.2:
        head = {"typ": "JWT", "alg": algorithm}
    if algorithm == "RS256":
        head["kid"] = pick(rng, HEX, 24)
    issued = int(moment(rng).timestamp())
    claims: dict[str, object] = rng.choice(
        (
            {"sub": uuid(rng), "role": rng.choice(("user", "admin", "editor"))},
            {"id": rng.randrange(1, 90000), "username": rng.choice(LAST).lower()},
            {
                "iss": f"https://auth.{domain(rng)}/",
                "sub": f"auth0|{pick(rng, HEX, 24)}",
                "aud": "api",
            },
            {"userId": pick(rng, HEX, 24), "email": f"{rng.choice(FIRST).lower()}@{domain(rng)}"},
        )
    )
    claims |= {"iat": issued, "exp": issued + rng.choice((900, 3600, 86400))}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (head, claims)]
    return ".".join(map(segment, [*parts, rng.randbytes(SIGNATURES[algorithm])]))


def make_password(rng: random.Random, style: str = "") -> str:
    """A password that somebody chose or a generator drew.

    `url`: of plain characters; `encoded`: with a percent sign; `long`: an application's secret;
    `strong`: with a letter or digit at both ends, where a sign would have a meaning of its own.
    """
    drawn = "".join(rng.sample(string.ascii_letters, 7)) + pick(rng, DIGITS, 2)
    if style == "encoded":
        return quote(drawn + rng.choice("@#/!$&") + pick(rng, ALNUM, 3), safe="")
    if style == "long":
        return pick(rng, ALNUM, rng.choice((20, 24, 32)))
    if rng.random() < 0.45:
        return _choose_password(rng, style)
    letters = list(drawn + pick(rng, ALNUM, rng.randrange(1, 9)))
    if style != "url" and rng.random() < 0.5:
        letters += pick(rng, "!#%*+?_-", 2)
    rng.shuffle(letters)
    return pick(rng, ALNUM, 1) + "".join(letters) + pick(rng, ALNUM, 1)


def _choose_password(rng: random.Random, style: str) -> str:
    """One as people choose them: words or a name, a year or a number, perhaps a sign."""
    word, second = rng.choice(PARTS), rng.choice((*FIRST, *PARTS)).lower()
    number = rng.choice((str(rng.randrange(10, 99)), str(rng.randrange(1960, 2026))))
    plain = (
        f"{word}{second.title()}{number}",
        f"{word.title()}{second}{number}",
        f"{word}_{number}{second}",
    )
    signed = (
        f"{word.title()}@{number}",
        f"{word}.{second}{number}",
        f"{word.title()}{second}#{number}",
    )
    ended = (
        f"{word.title()}{number}!",
        f"{word.title()}{second.title()}{number}!",
        f"{second}{number}$",
    )
    forms = {"url": plain, "strong": plain + signed}.get(style, plain + signed + ended)
    return rng.choice(forms)


def _key(scene: Scene, argument: str) -> str:
    return make_key(
        scene.rng, scene.rng.choice(argument.split(",")) if argument else scene.rng.choice(PREFIXED)
    )


PREFIXED = tuple(name for name in EVERY if name in CHECKED or isinstance(KEYS[name][0], str))
BROKEN = (
    *("github", "github_fine", "npm", "gitlab", "slack_bot", "openai", "anthropic", "stripe"),
    *("sendgrid", "pypi", "digitalocean", "hugging_face", "groq"),
)


def _part(scene: Scene, argument: str) -> str:
    """A part of a broken token: `NUMBER/COUNT[/NAMES]`, where JWT is a name too."""
    number, count, names = [*argument.split("/"), ""][:3]

    def draw() -> str:
        rng = scene.rng
        name = rng.choice(names.split(",") if names else (*BROKEN, *("jwt",) * 8))
        return make_jwt(rng) if name == "jwt" else make_key(rng, name)

    whole = scene.once("broken", draw)
    size = -(-len(whole) // int(count))
    return whole[(int(number) - 1) * size : int(number) * size]


def _slack_path(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"T{pick(rng, UPPER, 10)}/B{pick(rng, UPPER, 10)}/{pick(rng, ALNUM, 24)}"


def _basic(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return base64.b64encode(
        f"{rng.choice(LAST).lower()}:{make_password(rng, 'strong')}".encode()
    ).decode()


def _opaque(scene: Scene, argument: str) -> str:
    """An access token without a form of its own."""
    rng = scene.rng
    form = argument or rng.choice(("hex", "url", "url", "alnum", "dotted"))
    if form == "hex":
        return pick(rng, HEX, rng.choice((32, 40, 64)))
    if form == "dotted":
        return f"{pick(rng, ALNUM, 12)}.{pick(rng, URLSAFE[:-2], 40)}"
    return pick(rng, ALNUM, 1) + pick(
        rng, URLSAFE if form == "url" else ALNUM, rng.choice((31, 42, 63))
    )


def _half_jwt(scene: Scene, argument: str) -> str:
    """The head of a token alone, or its head and claims without a signature, shortened."""
    head, claims, _ = make_jwt(scene.rng).split(".")
    return head if argument == "head" else f"{head}.{claims[: int(argument)]}"


TOKEN_MAKERS: dict[str, Maker] = {
    "key": _key,
    "jwt": lambda scene, argument: make_jwt(scene.rng, argument),
    "half_jwt": _half_jwt,
    "pw": lambda scene, style: make_password(scene.rng, style),
    "part": _part,
    "slack": _slack_path,
    "discord": lambda scene, _: f"{pick(scene.rng, DIGITS[1:], 18)}/{pick(scene.rng, URLSAFE, 68)}",
    "basic": _basic,
    "opaque": _opaque,
    "b64json": lambda scene, _: base64.b64encode(
        json.dumps({"cursor": scene.rng.randrange(10**8), "sort": scene.rng.choice(PARTS)}).encode()
    ).decode(),
    "base32": lambda scene, argument: pick(scene.rng, BASE32, int(argument)).upper(),
    "lower": lambda scene, argument: pick(scene.rng, LOWER, int(argument)),
    "urlsafe": lambda scene, argument: pick(scene.rng, URLSAFE, int(argument)),
}
