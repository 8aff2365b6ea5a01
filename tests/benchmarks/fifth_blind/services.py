"""Keys of services in the forms their documentation or a secret scanner publishes.

Checksums are computed where a published form has one: GitHub's and npm's CRC-32 in base 62
(GitHub's engineering blog, 2021-04-05), Grafana's CRC-32 in little-endian hexadecimal
(pkg/components/satokengen).
"""

from __future__ import annotations

import random
import zlib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.fifth_blind.fillers import (
    ALNUM,
    BASE32,
    BASE64,
    DIGITS,
    FILLERS,
    HEX,
    LETTERS,
    LOWER,
    UPPER,
    URLSAFE,
    chars,
    new_scene,
)

_BASE62 = DIGITS + UPPER + LOWER


def checksum62(body: str) -> str:
    """CRC-32 of a token's random part, six digits of base 62."""
    number, text = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        text = _BASE62[digit] + text
    return text


def _checked(prefix: str) -> Callable[[random.Random], str]:
    def key(rng: random.Random) -> str:
        body = chars(rng, ALNUM, 30)
        return prefix + body + checksum62(body)

    return key


def grafana_checksum(head: str) -> str:
    """CRC-32 of everything before the last underscore, bytes from the lowest, in hexadecimal."""
    return zlib.crc32(head.encode()).to_bytes(4, "little").hex()


def _grafana(rng: random.Random) -> str:
    head = "glsa_" + chars(rng, ALNUM, 32)
    return f"{head}_{grafana_checksum(head)}"


def _base64(size: int, prefix: str = "", end: str = "") -> Callable[[random.Random], str]:
    return lambda rng: prefix + b64encode(rng.randbytes(size)).decode() + end


def _discord(rng: random.Random) -> str:
    bot = urlsafe_b64encode(chars(rng, "123456789", 18).encode()).decode()
    return f"{bot}.{chars(rng, ALNUM, 6)}.{chars(rng, URLSAFE, 38)}"


def _pypi(rng: random.Random) -> str:
    fixed = b"\x02\x01\x08pypi.org\x02\x24"
    identifier = str(FILLERS["uuid"](new_scene(rng), "")).encode()
    macaroon = fixed + identifier + b"\x00\x02,[2," + rng.randbytes(84)
    return "pypi-" + urlsafe_b64encode(macaroon).decode().rstrip("=")


def _form(pattern: str) -> Callable[[random.Random], str]:
    """A key from a pattern in which `{x20}` is twenty signs of an alphabet.

    Alphabets: x letters and digits, h hexadecimal, d digits, a lower, A upper case letters, L all
    letters, u URL-safe base 64, 6 base 64, l lower case letters and digits, U upper and digits.
    """
    alphabets = {
        "x": ALNUM, "h": HEX, "d": DIGITS, "a": LOWER, "A": UPPER, "L": LETTERS, "u": URLSAFE,
        "6": BASE64, "l": LOWER + DIGITS, "U": UPPER + DIGITS, "2": BASE32, "H": HEX.upper(),
    }  # fmt: skip

    def key(rng: random.Random) -> str:
        text = ""
        for piece in pattern.split("{"):
            slot, closed, rest = piece.partition("}")
            text += chars(rng, alphabets[slot[0]], int(slot[1:])) + rest if closed else piece
        return text

    return key


@dataclass(frozen=True)
class Service:
    """A kind of key: the words that name it in code, and what makes one; weight by how common."""

    words: tuple[str, ...]
    make: Callable[[random.Random], str]
    weight: float = 1.0


def _kind(words: str, make: str | Callable[[random.Random], str], weight: float = 1.0) -> Service:
    return Service(tuple(words.split()), _form(make) if isinstance(make, str) else make, weight)


_UUID = "{h8}-{h4}-4{h3}-a{h3}-{h12}"

SERVICES: dict[str, Service] = {
    "github": _kind("github token", _checked("ghp_"), 6),
    "github_oauth": _kind("gh oauth token", _checked("gho_"), 1),
    "github_app": _kind("github token", _checked("ghs_"), 1),
    "github_fine_grained": _kind("github pat", "github_pat_11{U20}_{x59}", 2),
    "gitlab": _kind("gitlab token", "glpat-{u20}", 3),
    "gitlab_runner": _kind("runner token", "glrt-{u20}", 0.5),
    "aws_id": _kind("aws access key id", "AKIA{216}", 5),
    "aws_secret": _kind("aws secret access key", "{640}", 5),
    "google_api": _kind("google maps api key", "AIzaSy{u33}", 4),
    "google_oauth": _kind("google client secret", "GOCSPX-{u28}", 1),
    "slack_bot": _kind("slack bot token", "xoxb-{d12}-{d13}-{x24}", 4),
    "slack_user": _kind("slack token", "xoxp-{d11}-{d11}-{d12}-{h32}", 1),
    "slack_app": _kind("slack app token", "xapp-1-A{U10}-{d13}-{h64}", 0.5),
    "slack_webhook": _kind(
        "slack webhook url", "https://hooks.slack.com/services/T{U8}/B{U10}/{x24}", 2
    ),
    "discord_webhook": _kind(
        "discord webhook url", "https://discord.com/api/webhooks/1{d17}/{u68}", 1
    ),
    "discord_bot": _kind("discord token", _discord, 2),
    "stripe": _kind("stripe secret key", "sk_live_51{x97}", 3),
    "stripe_old": _kind("stripe key", "sk_live_{x24}", 1),
    "stripe_restricted": _kind("stripe api key", "rk_live_51{x97}", 0.5),
    "stripe_webhook": _kind("stripe webhook secret", "whsec_{x32}", 1),
    "openai_old": _kind("openai api key", "sk-{x20}T3BlbkFJ{x20}", 3),
    "openai": _kind("openai api key", "sk-proj-{u74}T3BlbkFJ{u74}", 3),
    "anthropic": _kind("anthropic api key", "sk-ant-api03-{u93}AA", 2),
    "groq": _kind("groq api key", "gsk_{x52}", 0.7),
    "xai": _kind("xai api key", "xai-{x80}", 0.4),
    "perplexity": _kind("perplexity api key", "pplx-{x48}", 0.5),
    "openrouter": _kind("openrouter api key", "sk-or-v1-{h64}", 0.7),
    "huggingface": _kind("hf token", "hf_{L34}", 3),
    "replicate": _kind("replicate api token", "r8_{x37}", 0.6),
    "langsmith": _kind("langchain api key", "lsv2_pt_{h32}_{h10}", 0.5),
    "pinecone": _kind("pinecone api key", "pcsk_{x5}_{x63}", 0.5),
    "wandb": _kind("wandb api key", "{h40}", 1),
    "sendgrid": _kind("sendgrid api key", "SG.{u22}.{u43}", 3),
    "mailgun": _kind("mailgun api key", "key-{h32}", 1),
    "mailchimp": _kind("mailchimp api key", "{h32}-us{d1}", 1),
    "brevo": _kind("brevo api key", "xkeysib-{h64}-{x16}", 0.7),
    "twilio": _kind("twilio auth token", "{h32}", 2),
    "npm": _kind("npm token", _checked("npm_"), 2),
    "pypi": _kind("pypi token", _pypi, 1),
    "rubygems": _kind("gem host api key", "rubygems_{h48}", 0.6),
    "crates": _kind("cargo registry token", "cio{x32}", 0.4),
    "nuget": _kind("nuget api key", "oy2{l43}", 0.5),
    "clojars": _kind("clojars token", "CLOJARS_{h60}", 0.2),
    "docker": _kind("docker pat", "dckr_pat_{u27}", 1),
    "digitalocean": _kind("digitalocean token", "dop_v1_{h64}", 1),
    "heroku": _kind("heroku api key", "HRKU-AA{u58}", 0.5),
    "heroku_old": _kind("heroku api key", _UUID, 0.7),
    "cloudflare": _kind("cloudflare api token", "{u40}", 1),
    "cloudflare_ca": _kind("cloudflare origin ca key", "v1.0-{h24}-{h146}", 0.2),
    "fly": _kind("fly access token", "fo1_{u43}", 0.3),
    "supabase": _kind("supabase access token", "sbp_{h40}", 0.5),
    "planetscale": _kind("planetscale token", "pscale_tkn_{u43}", 0.4),
    "terraform": _kind("tf cloud token", "{x14}.atlasv1.{u67}", 0.8),
    "vault": _kind("vault token", "hvs.CAES{u90}", 0.8),
    "doppler": _kind("doppler token", "dp.pt.{x43}", 0.4),
    "pulumi": _kind("pulumi access token", "pul-{h40}", 0.4),
    "databricks": _kind("databricks token", "dapi{h32}", 0.8),
    "grafana": _kind("grafana token", _grafana, 0.8),
    "newrelic": _kind("new relic api key", "NRAK-{U27}", 0.6),
    "datadog": _kind("datadog api key", "{h32}", 1),
    "sentry": _kind("sentry auth token", "sntryu_{h64}", 0.6),
    "honeycomb": _kind("honeycomb api key", "hcaik_01{l56}", 0.2),
    "shopify": _kind("shopify access token", "shpat_{h32}", 1.2),
    "shopify_secret": _kind("shopify api secret", "shpss_{h32}", 0.7),
    "square": _kind("square access token", "EAAA{u60}", 0.7),
    "paypal": _kind("braintree access token", "access_token$production${l16}${h32}", 0.3),
    "plaid": _kind("plaid access token", "access-production-" + _UUID, 0.4),
    "razorpay": _kind("razorpay key secret", "{x24}", 0.5),
    "flutterwave": _kind("flutterwave secret key", "FLWSECK-{h32}-X", 0.3),
    "easypost": _kind("easypost api key", "EZAK{x54}", 0.3),
    "shippo": _kind("shippo token", "shippo_live_{h40}", 0.3),
    "telegram": _kind("telegram bot token", "6{d9}:AA{u33}", 3),
    "facebook": _kind("facebook access token", "EAA{x6}BO{x150}", 0.8),
    "dropbox": _kind("dropbox access token", "sl.B{u134}", 0.5),
    "notion": _kind("notion token", "ntn_{d11}{x35}", 0.7),
    "notion_old": _kind("notion token", "secret_{x43}", 0.5),
    "airtable": _kind("airtable token", "pat{x14}.{h64}", 0.7),
    "linear": _kind("linear api key", "lin_api_{x40}", 0.5),
    "figma": _kind("figma token", "figd_{u40}", 0.5),
    "postman": _kind("postman api key", "PMAK-{h24}-{h34}", 0.6),
    "atlassian": _kind("jira api token", "ATATT3xFfGF0{u171}={H8}", 1),
    "bitbucket": _kind("bitbucket app password", "ATBB{x24}{H8}", 0.6),
    "mapbox": _kind("mapbox secret token", "sk.eyJ1Ijoi{x60}.{u22}", 0.5),
    "algolia": _kind("algolia admin api key", "{h32}", 0.8),
    "contentful": _kind("contentful management token", "CFPAT-{u43}", 0.4),
    "typeform": _kind("typeform token", "tfp_{u44}_{x14}", 0.3),
    "launchdarkly": _kind("launchdarkly sdk key", "sdk-" + _UUID, 0.5),
    "sonar": _kind("sonar token", "sqp_{h40}", 0.8),
    "circleci": _kind("circle token", "CCIPAT_{x22}_{h40}", 0.4),
    "buildkite": _kind("buildkite api token", "bkua_{h40}", 0.3),
    "tailscale": _kind("tailscale authkey", "tskey-auth-k{x11}CNTRL-{x32}", 0.5),
    "okta": _kind("okta api token", "00{u40}", 0.5),
    "adafruit": _kind("adafruit io key", "aio_{x28}", 0.4),
    "azure_storage": _kind("azure storage key", _base64(64), 1.5),
    "azure_client": _kind("azure client secret", "{x3}8Q~{u34}", 1.2),
    "alibaba": _kind("aliyun access key secret", "{x30}", 0.7),
    "tencent": _kind("tencent secret id", "AKID{x32}", 0.5),
    "prefect": _kind("prefect api key", "pnu_{x36}", 0.3),
    "readme": _kind("readme api key", "rdme_{l70}", 0.2),
}

UNMARKED = frozenset(
    (
        "aws_secret", "wandb", "twilio", "heroku_old", "cloudflare", "datadog", "razorpay",
        "algolia", "okta", "alibaba", "azure_storage", "mailchimp", "nuget", "square",
    )
)  # fmt: skip
"""Keys whose form alone does not tell them from a hash or an id: drawn only beside their name."""


def draw_service(rng: random.Random, marked: bool) -> str:
    """The name of a service by weight; with `marked`, one whose key is known by its form."""
    names = [name for name in SERVICES if not marked or name not in UNMARKED]
    return rng.choices(names, [SERVICES[name].weight for name in names])[0]
