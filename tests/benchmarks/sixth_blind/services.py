"""Keys of services in the forms that the services publish, with their checksums where they have one.

Each entry is a service, the words that name its variable, and a maker of a key. GitHub and npm end in
a CRC-32 of the random part in base 62 (github.blog, 2021), Grafana in a CRC-32 in hexadecimal. Keys of
PyPI are macaroons, Discord's begin with the bot's number in base64.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
import zlib
from collections.abc import Callable

from tests.benchmarks.blind_standards import crc_base62
from tests.benchmarks.sixth_blind.words import ALNUM, HEX, URLSAFE, b64, chars, mixed

_LOWNUM = string.ascii_lowercase + string.digits
_UPNUM = string.ascii_uppercase + string.digits
_BASE32 = string.ascii_uppercase + "234567"
Make = Callable[[random.Random], str]


def crc_hex(head: str) -> str:
    """CRC-32 of the text before a Grafana token's last underscore, lowest byte first."""
    return zlib.crc32(head.encode()).to_bytes(4, "little").hex()


def _checked(prefix: str) -> Make:
    def make(rng: random.Random) -> str:
        body = mixed(rng, ALNUM, 30)
        return prefix + body + crc_base62(body)

    return make


def _key(prefix: str, alphabet: str, size: int, end: str = "") -> Make:
    return lambda rng: prefix + mixed(rng, alphabet, size) + end


def _grafana(rng: random.Random) -> str:
    head = "glsa_" + mixed(rng, ALNUM, 32)
    return f"{head}_{crc_hex(head)}"


def _pypi(rng: random.Random) -> str:
    caveat = json.dumps({"permissions": "user", "version": 1}).encode()
    identifier = str(uuid.UUID(bytes=rng.randbytes(16), version=4)).encode()
    packet = b"\x02\x01\x08pypi.org\x02" + bytes([len(identifier)]) + identifier + b"\x00\x02"
    packet += bytes([len(caveat)]) + caveat + b"\x00\x00\x06\x20" + rng.randbytes(32)
    return "pypi-" + base64.urlsafe_b64encode(packet).decode().rstrip("=")


def _discord(rng: random.Random) -> str:
    number = str(rng.randrange(4 * 10**17, 13 * 10**17)).encode()
    head = base64.urlsafe_b64encode(number).decode().rstrip("=")
    return f"{head}.{'G' + mixed(rng, ALNUM, 5)}.{mixed(rng, URLSAFE, 38)}"


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(bytes=rng.randbytes(16), version=4))


def _digits(rng: random.Random, size: int) -> str:
    return rng.choice("123456789") + chars(rng, string.digits, size - 1)


def _slack_hook(rng: random.Random) -> str:
    path = f"T{chars(rng, _UPNUM, 10)}/B{chars(rng, _UPNUM, 10)}/{mixed(rng, ALNUM, 24)}"
    return f"https://hooks.slack.com/services/\x02{path}\x03"


def _discord_hook(rng: random.Random) -> str:
    path = f"{_digits(rng, 19)}/{mixed(rng, URLSAFE, 68)}"
    return f"https://discord.com/api/webhooks/\x02{path}\x03"


def _mapbox(rng: random.Random) -> str:
    body = json.dumps({"u": chars(rng, _LOWNUM, 9), "a": "ck" + chars(rng, _LOWNUM, 23)})
    encoded = base64.urlsafe_b64encode(body.replace(" ", "").encode()).decode().rstrip("=")
    return f"sk.{encoded}.{mixed(rng, URLSAFE, 22)}"


def _sentry_org(rng: random.Random) -> str:
    body = json.dumps(
        {"iat": rng.randrange(1_690_000_000, 1_750_000_000), "url": "https://sentry.io"}
    )
    return f"sntrys_{base64.b64encode(body.encode()).decode()}_{mixed(rng, ALNUM, 43)}"


SERVICES: dict[str, tuple[str, Make]] = {
    "github": ("github token", _checked("ghp_")),
    "github_app": ("gh server token", _checked("ghs_")),
    "github_fine": (
        "github pat",
        lambda rng: f"github_pat_11{mixed(rng, _UPNUM, 20)}_{mixed(rng, ALNUM, 59)}",
    ),
    "npm": ("npm token", _checked("npm_")),
    "gitlab": ("gitlab token", _key("glpat-", URLSAFE, 20)),
    "gitlab_runner": ("runner token", _key("glrt-", URLSAFE, 20)),
    "grafana": ("grafana token", _grafana),
    "pypi": ("pypi token", _pypi),
    "aws": ("aws access key id", _key("AKIA", _BASE32, 16)),
    "aws_secret": ("aws secret access key", lambda rng: b64(rng, 30)),
    "stripe": ("stripe secret key", _key("sk_live_", ALNUM, 24)),
    "stripe_long": ("stripe api key", _key("sk_live_51", ALNUM, 97)),
    "stripe_restricted": ("stripe restricted key", _key("rk_live_", ALNUM, 24)),
    "stripe_hook": ("stripe webhook secret", _key("whsec_", ALNUM, 32)),
    "slack": (
        "slack bot token",
        lambda rng: f"xoxb-{_digits(rng, 12)}-{_digits(rng, 13)}-{mixed(rng, ALNUM, 24)}",
    ),
    "slack_user": (
        "slack user token",
        lambda rng: (
            f"xoxp-{_digits(rng, 12)}-{_digits(rng, 12)}-{_digits(rng, 13)}-{mixed(rng, HEX, 32)}"
        ),
    ),
    "slack_hook": ("slack webhook url", _slack_hook),
    "discord": ("discord token", _discord),
    "discord_hook": ("discord webhook url", _discord_hook),
    "telegram": (
        "telegram bot token",
        lambda rng: f"{_digits(rng, 10)}:AA{mixed(rng, URLSAFE, 33)}",
    ),
    "google": ("google maps key", _key("AIzaSy", URLSAFE, 33)),
    "google_oauth": ("google client secret", _key("GOCSPX-", URLSAFE, 28)),
    "openai": (
        "openai api key",
        lambda rng: f"sk-{mixed(rng, ALNUM, 20)}T3BlbkFJ{mixed(rng, ALNUM, 20)}",
    ),
    "openai_project": (
        "openai api key",
        lambda rng: f"sk-proj-{mixed(rng, URLSAFE, 74)}T3BlbkFJ{mixed(rng, URLSAFE, 74)}",
    ),
    "anthropic": ("anthropic api key", _key("sk-ant-api03-", URLSAFE, 93, "AA")),
    "huggingface": ("hf token", _key("hf_", string.ascii_letters, 34)),
    "replicate": ("replicate api token", _key("r8_", ALNUM, 37)),
    "groq": ("groq api key", _key("gsk_", ALNUM, 52)),
    "perplexity": ("pplx api key", _key("pplx-", ALNUM, 48)),
    "digitalocean": ("digitalocean token", _key("dop_v1_", HEX, 64)),
    "shopify": ("shopify access token", _key("shpat_", HEX, 32)),
    "twilio": ("twilio auth token", _key("", HEX, 32)),
    "sendgrid": (
        "sendgrid api key",
        lambda rng: f"SG.{mixed(rng, URLSAFE, 22)}.{mixed(rng, URLSAFE, 43)}",
    ),
    "mailgun": ("mailgun api key", _key("key-", HEX, 32)),
    "mailchimp": (
        "mailchimp api key",
        lambda rng: f"{mixed(rng, HEX, 32)}-us{rng.randrange(1, 22)}",
    ),
    "brevo": (
        "brevo api key",
        lambda rng: f"xkeysib-{mixed(rng, HEX, 64)}-{mixed(rng, ALNUM, 16)}",
    ),
    "square": ("square access token", _key("sq0atp-", URLSAFE, 22)),
    "docker": ("docker hub token", _key("dckr_pat_", URLSAFE, 27)),
    "azure_storage": ("azure storage key", lambda rng: b64(rng, 64)),
    "azure_client": (
        "azure client secret",
        lambda rng: f"{mixed(rng, ALNUM, 3)}8Q~{mixed(rng, URLSAFE, 34)}",
    ),
    "databricks": ("databricks token", _key("dapi", HEX, 32)),
    "notion": ("notion token", _key("ntn_", ALNUM, 46)),
    "linear": ("linear api key", _key("lin_api_", ALNUM, 40)),
    "atlassian": (
        "jira api token",
        lambda rng: f"ATATT3xFfGF0{mixed(rng, URLSAFE, 171)}={chars(rng, HEX.upper(), 8)}",
    ),
    "newrelic": ("new relic api key", _key("NRAK-", _UPNUM, 27)),
    "postman": ("postman api key", lambda rng: f"PMAK-{mixed(rng, HEX, 24)}-{mixed(rng, HEX, 34)}"),
    "heroku": ("heroku api key", _key("HRKU-AA", URLSAFE, 58)),
    "vault": ("vault token", _key("hvs.CAESI", URLSAFE, 87)),
    "terraform": (
        "tfe token",
        lambda rng: f"{mixed(rng, ALNUM, 14)}.atlasv1.{mixed(rng, ALNUM, 67)}",
    ),
    "doppler": ("doppler token", _key("dp.st.prd.", ALNUM, 43)),
    "planetscale": ("pscale token", _key("pscale_tkn_", URLSAFE, 43)),
    "sentry": ("sentry auth token", _key("sntryu_", HEX, 64)),
    "sentry_org": ("sentry auth token", _sentry_org),
    "figma": ("figma token", _key("figd_", URLSAFE, 40)),
    "airtable": ("airtable pat", lambda rng: f"pat{mixed(rng, ALNUM, 14)}.{mixed(rng, HEX, 64)}"),
    "rubygems": ("gem host api key", _key("rubygems_", HEX, 48)),
    "crates": ("cargo registry token", _key("cio", ALNUM, 32)),
    "mapbox": ("mapbox secret token", _mapbox),
    "tailscale": (
        "tailscale authkey",
        lambda rng: f"tskey-auth-k{mixed(rng, ALNUM, 11)}CNTRL-{mixed(rng, ALNUM, 32)}",
    ),
    "pulumi": ("pulumi access token", _key("pul-", HEX, 40)),
    "supabase": ("supabase access token", _key("sbp_", HEX, 40)),
    "netlify": ("netlify auth token", _key("nfp_", ALNUM, 36)),
    "buildkite": ("buildkite api token", _key("bkua_", HEX, 40)),
    "shippo": ("shippo token", _key("shippo_live_", HEX, 40)),
    "plaid": ("plaid access token", lambda rng: f"access-production-{_uuid(rng)}"),
    "contentful": ("contentful management token", _key("CFPAT-", URLSAFE, 43)),
    "cloudflare": ("cloudflare api token", _key("", URLSAFE[:-2], 40)),
    "datadog": ("datadog api key", _key("", HEX, 32)),
    "dynatrace": (
        "dynatrace api token",
        lambda rng: f"dt0c01.{mixed(rng, _BASE32, 24)}.{mixed(rng, _BASE32, 64)}",
    ),
    "alibaba": ("aliyun access key id", _key("LTAI5t", ALNUM, 18)),
}
COMMON = [
    "github",
    "aws",
    "aws_secret",
    "stripe",
    "slack",
    "slack_hook",
    "google",
    "openai",
    "openai_project",
    "sendgrid",
    "npm",
    "gitlab",
    "telegram",
    "discord",
    "huggingface",
    "azure_storage",
]
"""Services that leak most often; half of the keys are theirs."""
NAMELESS = {"aws_secret", "twilio", "azure_storage", "cloudflare", "datadog"}
"""Services whose keys have no mark of their own: only a text that names them tells what they are."""
UNBROKEN = NAMELESS | {"slack_hook", "discord_hook", "aws", "mailchimp"}


def pick_service(rng: random.Random, marked: bool = False) -> str:
    """A service; with `marked`, one whose keys are known by their form."""
    while True:
        name = rng.choice(COMMON) if rng.random() < 0.45 else rng.choice(tuple(SERVICES))
        if not (marked and name in NAMELESS):
            return name
