"""Keys of services in the forms that their makers publish, with checksums where there are some.

Sources are the services' own pages on the formats of tokens. GitHub and npm end a token with the
CRC-32 of its entropy in base 62 (six digits), Grafana with the CRC-32 in hexadecimal.
"""

from __future__ import annotations

import base64
import random
import string
import zlib
from collections.abc import Callable

from tests.benchmarks.fourth_blind.words import ALNUM, HEX, draw

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
URL64 = ALNUM + "-_"


def checksum62(text: str) -> str:
    """The CRC-32 of a text as six digits of base 62."""
    rest, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, 62)
        digits = BASE62[digit] + digits
    return digits


def _checked(prefix: str) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        entropy = draw(ALNUM, 30, rng)
        return prefix + entropy + checksum62(entropy)

    return make


def _form(pattern: str) -> Callable[[random.Random], str]:
    """A maker from a pattern such as `glpat-{u20}`: letters choose an alphabet, then a count."""
    alphabets = {
        "h": HEX,
        "H": HEX.upper(),
        "d": string.digits,
        "x": ALNUM,
        "u": URL64,
        "A": string.ascii_uppercase + string.digits,
        "l": string.ascii_lowercase + string.digits,
        "b": string.ascii_uppercase + "234567",
    }

    def make(rng: random.Random) -> str:
        text = ""
        for part in pattern.replace("}", "{").split("{"):
            drawn = part[:1] in alphabets and part[1:].isdigit()
            text += draw(alphabets[part[0]], int(part[1:]), rng) if drawn else part
        return text

    return make


def _grafana(rng: random.Random) -> str:
    body = "glsa_" + draw(ALNUM, 32, rng)
    return f"{body}_{zlib.crc32(body.encode()):08x}"


def _discord(rng: random.Random) -> str:
    number = str(rng.randint(10**17, 10**18 - 1)).encode()
    first = base64.b64encode(number).decode().rstrip("=")
    return f"{first}.{draw(URL64, 6, rng)}.{draw(URL64, 38, rng)}"


def _azure(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(64)).decode()


def _pypi(rng: random.Random) -> str:
    head = b"\x02\x01\x08pypi.org\x02\x24" + rng.randbytes(99)
    return "pypi-" + base64.urlsafe_b64encode(head).decode().rstrip("=")


SERVICES: dict[str, Callable[[random.Random], str]] = {
    "aws_id": _form("AKIA{b16}"),
    "github": _checked("ghp_"),
    "github_oauth": _checked("gho_"),
    "github_server": _checked("ghs_"),
    "npm": _checked("npm_"),
    "gitlab": _form("glpat-{u20}"),
    "slack_bot": _form("xoxb-{d12}-{d13}-{x24}"),
    "slack_user": _form("xoxp-{d12}-{d12}-{d13}-{h32}"),
    "slack_hook": _form("https://hooks.slack.com/services/T{A8}/B{A10}/{x24}"),
    "stripe": _form("sk_live_{x24}"),
    "stripe_long": _form("sk_live_51{x97}"),
    "stripe_restricted": _form("rk_live_{x24}"),
    "google": _form("AIza{u35}"),
    "google_oauth": _form("GOCSPX-{u28}"),
    "openai": _form("sk-{x20}T3BlbkFJ{x20}"),
    "openai_project": _form("sk-proj-{u74}T3BlbkFJ{u74}"),
    "anthropic": _form("sk-ant-api03-{u93}AA"),
    "huggingface": _form("hf_{x34}"),
    "pypi": _pypi,
    "sendgrid": _form("SG.{u22}.{u43}"),
    "mailgun": _form("key-{h32}"),
    "mailchimp": _form("{h32}-us12"),
    "digitalocean": _form("dop_v1_{h64}"),
    "shopify": _form("shpat_{h32}"),
    "telegram": _form("6{d9}:AA{u33}"),
    "discord": _discord,
    "docker": _form("dckr_pat_{u27}"),
    "linear": _form("lin_api_{x40}"),
    "notion": _form("secret_{x43}"),
    "postman": _form("PMAK-{h24}-{h34}"),
    "newrelic": _form("NRAK-{A27}"),
    "grafana": _grafana,
    "databricks": _form("dapi{h32}"),
    "vault": _form("hvs.CAESI{u88}"),
    "terraform": _form("{x14}.atlasv1.{u67}"),
    "square": _form("EAAAE{u59}"),
    "planetscale": _form("pscale_tkn_{u43}"),
    "doppler": _form("dp.pt.{x43}"),
    "rubygems": _form("rubygems_{h48}"),
    "airtable": _form("pat{x14}.{h64}"),
    "figma": _form("figd_{u40}"),
    "atlassian": _form("ATATT3xFfGF0{u171}={H8}"),
    "groq": _form("gsk_{x52}"),
    "replicate": _form("r8_{x37}"),
    "supabase": _form("sbp_{h40}"),
    "pulumi": _form("pul-{h40}"),
    "buildkite": _form("bkua_{h40}"),
    "contentful": _form("CFPAT-{u43}"),
    "sentry": _form("sntryu_{h64}"),
}
"""Keys that say by themselves whose they are, by service."""


def service_key(rng: random.Random, name: str = "") -> str:
    """A key of one service, or of any. Azure's and AWS's secrets have no prefix: named alone."""
    if name == "azure":
        return _azure(rng)
    if name == "aws_secret":
        return draw(ALNUM + "+/", 40, rng)
    return SERVICES[name or rng.choice(sorted(SERVICES))](rng)
