"""Makers of the sixteenth blind set for secrets: passwords, tokens, tokens in pieces.

Names of makers start with `secrets_`. Everything is drawn; no value is of a real account.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.sixteenth_blind import secrets_words as words

ALNUM = string.ascii_letters + string.digits
DIGITS = string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "-_"
PLAIN = ALNUM + "_-.!*"
HARD = ALNUM + "#$%&!?=^*@+"
WORDPRESS = ALNUM + "!@#$%^&*()-_ []~`+=,.;:/?|"
DJANGO = LOWER + "!@#$%^&*(-_=+)"
SMALLEST_PIECE = 12
"""Characters of the shortest labelled piece of a broken token."""


def pick(rng: random.Random, alphabet: str, count: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choice(alphabet) for _ in range(count))


def mixed(rng: random.Random, alphabet: str, count: int) -> str:
    """As `pick`, with at least a capital, a small letter and a digit, and a letter at both ends."""
    while True:
        text = pick(rng, alphabet, count)
        classes = (str.isupper, str.islower, str.isdigit)
        if text[0].isalpha() and text[-1].isalnum() and all(any(map(is_, text)) for is_ in classes):
            return text


# ---- passwords ----


def human_password(rng: random.Random) -> str:
    """What a person makes up: words, a number, a sign inside."""
    one, other = rng.sample(words.WORDS, 2)
    number = rng.choice(
        [str(rng.randint(1950, 2024)), str(rng.randint(10, 99)), pick(rng, DIGITS, 3)]
    )
    leet = one.translate(str.maketrans("aeo", "430"))
    text = rng.choice(
        [
            f"{one}{number}",
            f"{one}{rng.choice('_!.*')}{number}",
            f"{one.lower()}{number}{other.lower()}",
            f"{one}-{other}{number}",
            f"{leet}{number}",
            f"{pick(rng, string.ascii_lowercase, 3)}{one[:5]}{number}",
        ]
    )
    return text if len(text) >= 8 else human_password(rng)


def quoted_password(rng: random.Random) -> str:
    """As `human_password`, often with a sign at its end, which quotation marks make part of it."""
    return human_password(rng) + rng.choice(["", "", "!", ".", "*", "!!", "#", "$"])


def phrase(rng: random.Random, joint: str) -> str:
    return joint.join(word.lower() for word in rng.sample(words.WORDS, 4))


PASSWORDS: dict[str, Callable[[random.Random], str]] = {
    "human": human_password,
    "quoted": quoted_password,
    "plain": lambda rng: mixed(rng, PLAIN, rng.randint(10, 16)),
    "alnum": lambda rng: mixed(rng, ALNUM, rng.randint(10, 24)),
    "long": lambda rng: mixed(rng, ALNUM, rng.randint(28, 48)),
    "hard": lambda rng: mixed(rng, HARD, rng.randint(10, 16)),
    "url": lambda rng: mixed(rng, ALNUM + "_-.~!", rng.randint(10, 18)),
    "percent": lambda rng: (
        mixed(rng, ALNUM, rng.randint(5, 8))
        + rng.choice(["%40", "%23", "%21", "%2F", "%24", "%3A"])
        + mixed(rng, ALNUM, rng.randint(3, 6))
    ),
    "django": lambda rng: pick(rng, LOWER, 1) + pick(rng, DJANGO, 48) + pick(rng, LOWER, 1),
    "phrase": lambda rng: phrase(rng, "-"),
    "spaced": lambda rng: phrase(rng, " "),
    "app": lambda rng: " ".join(pick(rng, string.ascii_lowercase, 4) for _ in range(4)),
    "lower": lambda rng: (
        pick(rng, string.ascii_lowercase, 3) + pick(rng, LOWER, 7) + pick(rng, DIGITS, 2)
    ),
    "digits": lambda rng: rng.choice("123456789") + pick(rng, DIGITS, 7),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "hex32": lambda rng: pick(rng, HEX, 32),
    "hex40": lambda rng: pick(rng, HEX, 40),
    "hex64": lambda rng: pick(rng, HEX, 64),
    "b64": lambda rng: base64.b64encode(rng.randbytes(32)).decode(),
    "b64_16": lambda rng: base64.b64encode(rng.randbytes(16)).decode(),
    "b64_64": lambda rng: base64.b64encode(rng.randbytes(64)).decode(),
    "hex128": lambda rng: pick(rng, HEX, 128),
    "wordpress": lambda rng: mixed(rng, WORDPRESS, 64),
    "insecure": lambda rng: "django-insecure-" + PASSWORDS["django"](rng),
    "secretkey": lambda rng: base64.b64encode(rng.randbytes(30)).decode(),
    "secret45": lambda rng: mixed(rng, ALNUM, 45),
    "secret50": lambda rng: mixed(rng, ALNUM, 50),
    "laravel": lambda rng: "base64:" + base64.b64encode(rng.randbytes(32)).decode(),
}


def make_password(scene: Scene, argument: str) -> str:
    """A password of a style; without one, a person's or a generator's with harmless signs."""
    style = argument or scene.rng.choice(["human", "human", "plain", "alnum"])
    return PASSWORDS[style](scene.rng)


# ---- tokens of known forms ----


def make_jwt(rng: random.Random) -> str:
    """A signed web token whose parts decode (RFC 7519)."""
    algorithm = rng.choice(["HS256", "HS256", "HS256", "RS256", "RS256", "ES256", "HS512"])
    issued = rng.randint(1_500_000_000, 1_740_000_000)
    site = f"https://auth.{rng.choice(words.SITES)}.{rng.choice(words.ENDINGS)}"
    first = rng.choice(words.FIRST_NAMES).lower()
    claims = rng.choice(
        [
            {"sub": str(rng.randint(1000, 999999)), "name": first, "iat": issued},
            {"iss": site, "sub": f"{first}{rng.randint(1, 99)}", "iat": issued},
            {
                "user_id": rng.randint(10, 99999),
                "role": rng.choice(["admin", "editor"]),
                "iat": issued,
            },
        ]
    )
    claims["exp"] = issued + rng.choice([3600, 86400, 604800])
    head = {"alg": algorithm, "typ": "JWT"}
    if algorithm == "RS256" and rng.random() < 0.5:
        head["kid"] = pick(rng, URL, 22)
    parts = [segment(json.dumps(one, separators=(",", ":")).encode()) for one in (head, claims)]
    return ".".join([*parts, segment(rng.randbytes(SIGNATURES[algorithm]))])


def make_discord(rng: random.Random) -> str:
    number = str(rng.randint(10**17, 10**18 - 1))
    return f"{segment(number.encode())}.{pick(rng, ALNUM, 6)}.{pick(rng, URL, 38)}"


def checked(prefix: str) -> Callable[[random.Random], str]:
    """A token of GitHub or npm with its CRC."""

    def make(rng: random.Random) -> str:
        body = mixed(rng, ALNUM, 30)
        return prefix + body + crc_base62(body)

    return make


def form(prefix: str, alphabet: str, count: int) -> Callable[[random.Random], str]:
    """A prefix and so many characters, the last a letter or digit."""
    return lambda rng: (
        prefix + pick(rng, alphabet, count - 1) + pick(rng, HEX if alphabet == HEX else UPPER, 1)
    )


TOKENS: dict[str, Callable[[random.Random], str]] = {
    "github": checked("ghp_"),
    "gho": checked("gho_"),
    "ghs": checked("ghs_"),
    "npm": checked("npm_"),
    "github_pat": lambda rng: f"github_pat_11A{pick(rng, UPPER, 19)}_{pick(rng, ALNUM, 59)}",
    "gitlab": form("glpat-", URL, 20),
    "slack": lambda rng: (
        f"xoxb-{rng.randint(10**11, 10**12 - 1)}-{rng.randint(10**12, 10**13 - 1)}-"
        + pick(rng, ALNUM, 24)
    ),
    "slack_user": lambda rng: (
        f"xoxp-{rng.randint(10**11, 10**12 - 1)}-{rng.randint(10**11, 10**12 - 1)}-"
        f"{rng.randint(10**12, 10**13 - 1)}-{pick(rng, HEX, 32)}"
    ),
    "openai": lambda rng: f"sk-proj-{pick(rng, URL, 74)}T3BlbkFJ{pick(rng, URL, 73)}A",
    "openai_old": lambda rng: f"sk-{pick(rng, ALNUM, 20)}T3BlbkFJ{pick(rng, ALNUM, 20)}",
    "anthropic": lambda rng: f"sk-ant-api03-{pick(rng, URL, 86)}-{pick(rng, URL, 6)}AA",
    "stripe": form("sk_live_", ALNUM, 24),
    "stripe_new": form("sk_live_51", ALNUM, 97),
    "sendgrid": lambda rng: f"SG.{pick(rng, URL, 22)}.{pick(rng, URL, 42)}E",
    "pypi": lambda rng: "pypi-AgEIcHlwaS5vcmcC" + pick(rng, URL, 157) + "Q",
    "google": form("AIzaSy", URL, 33),
    "ya29": form("ya29.a0A", URL, 160),
    "digitalocean": form("dop_v1_", HEX, 64),
    "huggingface": form("hf_", string.ascii_letters, 34),
    "docker": form("dckr_pat_", URL, 27),
    "shopify": form("shpat_", HEX, 32),
    "telegram": lambda rng: f"{rng.randint(10**9, 7 * 10**9)}:AA{pick(rng, URL, 32)}w",
    "databricks": form("dapi", HEX, 32),
    "azure": PASSWORDS["b64_64"],
    "vault": form("hvs.CAESI", URL, 86),
    "grafana": lambda rng: f"glsa_{pick(rng, ALNUM, 32)}_{pick(rng, HEX, 8)}",
    "postman": lambda rng: f"PMAK-{pick(rng, HEX, 24)}-{pick(rng, HEX, 34)}",
    "doppler": form("dp.pt.", ALNUM, 43),
    "linear": form("lin_api_", ALNUM, 40),
    "airtable": lambda rng: f"pat{pick(rng, ALNUM, 14)}.{pick(rng, HEX, 64)}",
    "newrelic": form("NRAK-", UPPER, 27),
    "discord": make_discord,
    "replicate": form("r8_", ALNUM, 37),
    "groq": form("gsk_", ALNUM, 52),
    "atlassian": lambda rng: (
        f"ATATT3xFfGF0{pick(rng, URL, 171)}={pick(rng, UPPER[:6] + '0123456789', 8)}"
    ),
    "mailgun": form("key-", HEX, 32),
    "rubygems": form("rubygems_", HEX, 48),
    "notion": form("secret_", ALNUM, 43),
    "facebook": form("EAAG", ALNUM, 176),
    "jwt": make_jwt,
    "opaque": lambda rng: rng.choice(
        [
            mixed(rng, ALNUM, 32),
            mixed(rng, URL, 43),
            mixed(rng, ALNUM, 40),
            pick(rng, HEX, 40),
            pick(rng, HEX, 64),
        ]
    ),
    "uuid": PASSWORDS["uuid"],
    "hex32": PASSWORDS["hex32"],
    "hex40": PASSWORDS["hex40"],
    "hex64": PASSWORDS["hex64"],
    "alnum40": form("", ALNUM, 40),
    "alnum42": form("00", URL, 40),
    "influx": lambda rng: base64.urlsafe_b64encode(rng.randbytes(64)).decode(),
    "sanctum": lambda rng: f"{rng.randint(1, 400)}|{mixed(rng, ALNUM, 40)}",
    "twitter": lambda rng: (
        f"AAAAAAAAAAAAAAAAAAAAA{mixed(rng, ALNUM, 24)}%3D{mixed(rng, ALNUM, 50)}"
    ),
    "long": lambda rng: mixed(rng, URL, rng.randint(70, 120)),
}


def make_token(scene: Scene, argument: str) -> str:
    """A whole token of a form."""
    return TOKENS[argument or "opaque"](scene.rng)


def make_basic(scene: Scene, _: str) -> str:
    """Base64 of a user and a password (RFC 7617)."""
    user = make_user(scene, "")
    return base64.b64encode(f"{user}:{make_password(scene, '')}".encode()).decode()


def make_part(scene: Scene, argument: str) -> str:
    """Piece K of N of a token that all pieces of the text share.

    `FORM K/N` cuts at random, `FORM K=N` into equal lengths (the last may be shorter), `FORM K.N`
    behind each dot. Every piece has at least `SMALLEST_PIECE` characters.
    """
    name, place = argument.split(" ")
    number, joint, count = int(place[0]), place[1], int(place[2])
    token = scene.once(f"token {name}", lambda: TOKENS[name](scene.rng))
    if joint == ".":
        cuts = [at for at, one in enumerate(token, start=1) if one == "."]
    elif joint == "=":
        size = -(-len(token) // count)
        cuts = [at * size for at in range(1, count)]
    else:
        spare = len(token) - SMALLEST_PIECE * count
        offsets = scene.once(
            f"cuts {name} {count}",
            lambda: " ".join(
                map(str, sorted(scene.rng.randint(0, spare) for _ in range(count - 1)))
            ),
        )
        cuts = [
            int(offset) + SMALLEST_PIECE * at for at, offset in enumerate(offsets.split(), start=1)
        ]
    edges = [0, *cuts, len(token)]
    return token[edges[number - 1] : edges[number]]


# ---- what stands around them ----


def make_user(scene: Scene, _: str) -> str:
    rng = scene.rng
    initial = rng.choice(string.ascii_lowercase)
    return rng.choice([*words.SERVICE_USERS, *(f"{initial}{name}" for name in words.SURNAMES)])


def make_site(scene: Scene, _: str) -> str:
    return f"{scene.rng.choice(words.SITES)}.{scene.rng.choice(words.ENDINGS)}"


def make_host(scene: Scene, argument: str) -> str:
    machine = argument or scene.rng.choice(words.MACHINES)
    return f"{machine}.{make_site(scene, '')}"


def make_private_ip(scene: Scene, _: str) -> str:
    rng = scene.rng
    low, high = rng.randint(0, 255), rng.randint(2, 254)
    return rng.choice([f"192.168.{low}.{high}", f"10.{rng.randint(0, 255)}.{low}.{high}"])


def choose(options: tuple[str, ...]) -> Maker:
    return lambda scene, _: scene.rng.choice(options)


def drawn(alphabet: str) -> Maker:
    """Characters of an alphabet, their count as the argument."""
    return lambda scene, argument: pick(scene.rng, alphabet, int(argument or 8))


def make_base64(scene: Scene, argument: str) -> str:
    """So many characters of base64, without padding."""
    return base64.b64encode(scene.rng.randbytes(int(argument))).decode()[: int(argument)]


def make_number(scene: Scene, argument: str) -> str:
    return scene.rng.choice("123456789") + pick(scene.rng, DIGITS, int(argument or 4) - 1)


def make_date(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(2015, 2025)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def make_time(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"


MAKERS: dict[str, Maker] = {
    "secrets_pw": make_password,
    "secrets_tok": make_token,
    "secrets_basic": make_basic,
    "secrets_part": make_part,
    "secrets_user": make_user,
    "secrets_site": make_site,
    "secrets_host": make_host,
    "secrets_lan": make_private_ip,
    "secrets_first": choose(words.FIRST_NAMES),
    "secrets_surname": choose(words.SURNAMES),
    "secrets_db": choose(words.DATABASES),
    "secrets_word": lambda scene, _: scene.rng.choice(words.WORDS).lower(),
    "secrets_hex": drawn(HEX),
    "secrets_upperhex": drawn(HEX.upper()),
    "secrets_alnum": drawn(ALNUM),
    "secrets_upper": drawn(UPPER),
    "secrets_lower": drawn(LOWER),
    "secrets_b64": make_base64,
    "secrets_n": make_number,
    "secrets_date": make_date,
    "secrets_time": make_time,
}
