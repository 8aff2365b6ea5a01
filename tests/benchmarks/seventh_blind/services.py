"""Keys and tokens of services, in the forms that the services publish or their users document."""

from __future__ import annotations

import base64
import random
import string
import zlib
from collections.abc import Callable
from uuid import UUID

from tests.benchmarks.blind_standards import crc_base62
from tests.benchmarks.seventh_blind.words import ALNUM, BASE64, BASE64URL, HEX, draw

UPPER = string.ascii_uppercase + string.digits

Make = Callable[[random.Random], str]


def crc_hex(text: str) -> str:
    """The CRC-32 of a text in hexadecimal, lowest byte first, as tokens of Grafana end."""
    return zlib.crc32(text.encode()).to_bytes(4, "little").hex()


def _checked(prefix: str) -> Make:
    def make(rng: random.Random) -> str:
        body = draw(rng, ALNUM, 30)
        return prefix + body + crc_base62(body)

    return make


def _form(*parts: str | tuple[str, int]) -> Make:
    """Fixed texts and so many characters of an alphabet, in turn."""

    def make(rng: random.Random) -> str:
        return "".join(part if isinstance(part, str) else draw(rng, *part) for part in parts)

    return make


def _grafana(rng: random.Random) -> str:
    head = "glsa_" + draw(rng, ALNUM, 32)
    return f"{head}_{crc_hex(head)}"


def _pypi(rng: random.Random) -> str:
    """A macaroon (version 2) for pypi.org: identifier, one caveat, signature."""
    identifier = str(UUID(int=rng.getrandbits(128), version=4)).encode()
    caveat = b'{"version":1,"permissions":"user"}'
    body = b"\x02\x01\x08pypi.org\x02\x24" + identifier + b"\x00"
    body += b"\x02" + bytes([len(caveat)]) + caveat + b"\x00\x00\x06\x20" + rng.randbytes(32)
    return "pypi-" + base64.urlsafe_b64encode(body).decode().rstrip("=")


def _discord(rng: random.Random) -> str:
    user = str(rng.randint(10**17, 9 * 10**17)).encode()
    return f"{base64.b64encode(user).decode()}.G{draw(rng, ALNUM, 5)}.{draw(rng, BASE64URL, 38)}"


def _telegram(rng: random.Random) -> str:
    return f"{rng.randint(5 * 10**8, 7 * 10**9)}:AA{draw(rng, BASE64URL, 33)}"


def _slack(rng: random.Random) -> str:
    numbers = (rng.randint(10**11, 9 * 10**12), rng.randint(10**11, 9 * 10**12))
    return f"xoxb-{numbers[0]}-{numbers[1]}-{draw(rng, ALNUM, 24)}"


def _slack_app(rng: random.Random) -> str:
    number = rng.randint(10**11, 9 * 10**12)
    return f"xapp-1-A0{draw(rng, UPPER, 9)}-{number}-{draw(rng, HEX, 64)}"


def _lettered(make: Make) -> Make:
    """Draws until the key has digits and letters, as almost every real one has."""

    def draw_mixed(rng: random.Random) -> str:
        while True:
            value = make(rng)
            if any(map(str.isdigit, value)) and any(map(str.isalpha, value)):
                return value

    return draw_mixed


# service: the words of a variable that holds it, its maker
SERVICES: dict[str, tuple[str, Make]] = {
    "github": ("github token", _checked("ghp_")),
    "github_app": ("github app token", _checked("ghs_")),
    "github_oauth": ("github oauth token", _checked("gho_")),
    "github_fine": ("github pat", _form("github_pat_11", (UPPER, 20), "_", (ALNUM, 59))),
    "gitlab": ("gitlab token", _form("glpat-", (BASE64URL, 20))),
    "npm": ("npm token", _checked("npm_")),
    "pypi": ("pypi token", _pypi),
    "rubygems": ("gem host api key", _form("rubygems_", (HEX, 48))),
    "docker": ("docker hub pat", _form("dckr_pat_", (BASE64URL, 27))),
    "slack": ("slack bot token", _slack),
    "slack_app": ("slack app token", _slack_app),
    "discord": ("discord bot token", _discord),
    "telegram": ("telegram bot token", _telegram),
    "stripe": ("stripe secret key", _form("sk_live_51", (ALNUM, 97))),
    "stripe_restricted": ("stripe restricted key", _form("rk_live_51", (ALNUM, 97))),
    "stripe_webhook": ("stripe webhook secret", _form("whsec_", (ALNUM, 32))),
    "openai": (
        "openai api key",
        _form("sk-proj-", (BASE64URL, 74), "T3BlbkFJ", (BASE64URL, 73), "A"),
    ),
    "openai_old": ("openai api key", _form("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20))),
    "anthropic": ("anthropic api key", _form("sk-ant-api03-", (BASE64URL, 93), "AA")),
    "google": ("google api key", _form("AIzaSy", (BASE64URL, 33))),
    "google_client": ("google client secret", _form("GOCSPX-", (BASE64URL, 28))),
    "huggingface": ("hf token", _form("hf_", (string.ascii_letters, 34))),
    "replicate": ("replicate api token", _form("r8_", (ALNUM, 37))),
    "groq": ("groq api key", _form("gsk_", (ALNUM, 52))),
    "perplexity": ("pplx api key", _form("pplx-", (ALNUM, 48))),
    "openrouter": ("openrouter api key", _form("sk-or-v1-", (HEX, 64))),
    "langsmith": ("langsmith api key", _form("lsv2_pt_", (HEX, 32), "_", (HEX, 10))),
    "sendgrid": ("sendgrid api key", _form("SG.", (BASE64URL, 22), ".", (BASE64URL, 43))),
    "mailgun": ("mailgun api key", _form("key-", (HEX, 32))),
    "mailchimp": ("mailchimp api key", _form((HEX, 32), "-us", ("123456789", 1))),
    "brevo": ("brevo api key", _form("xkeysib-", (HEX, 64), "-", (ALNUM, 16))),
    "resend": ("resend api key", _form("re_", (ALNUM, 8), "_", (ALNUM, 24))),
    "digitalocean": ("digitalocean token", _form("dop_v1_", (HEX, 64))),
    "netlify": ("netlify auth token", _form("nfp_", (ALNUM, 36))),
    "planetscale": ("planetscale token", _form("pscale_tkn_", (BASE64URL, 43))),
    "supabase": ("supabase access token", _form("sbp_", (HEX, 40))),
    "databricks": ("databricks token", _form("dapi", (HEX, 32))),
    "newrelic": ("new relic api key", _form("NRAK-", (UPPER, 27))),
    "grafana": ("grafana token", _grafana),
    "vault": ("vault token", _form("hvs.", (BASE64URL, 90))),
    "terraform": ("tf api token", _form((ALNUM, 14), ".atlasv1.", (BASE64URL, 67))),
    "pulumi": ("pulumi access token", _form("pul-", (HEX, 40))),
    "doppler": ("doppler token", _form("dp.pt.", (ALNUM, 43))),
    "linear": ("linear api key", _form("lin_api_", (ALNUM, 40))),
    "notion": ("notion token", _form("ntn_", (string.digits, 11), (ALNUM, 35))),
    "airtable": ("airtable pat", _form("pat", (ALNUM, 14), ".", (HEX, 64))),
    "figma": ("figma token", _form("figd_", (BASE64URL, 40))),
    "postman": ("postman api key", _form("PMAK-", (HEX, 24), "-", (HEX, 34))),
    "shopify": ("shopify admin token", _form("shpat_", (HEX, 32))),
    "shopify_secret": ("shopify api secret", _form("shpss_", (HEX, 32))),
    "square": ("square app secret", _form("sq0csp-", (BASE64URL, 43))),
    "flutterwave": ("flw secret key", _form("FLWSECK-", (HEX, 32), "-X")),
    "duffel": ("duffel access token", _form("duffel_live_", (BASE64URL, 43))),
    "tailscale": ("ts authkey", _form("tskey-auth-k", (ALNUM, 11), "CNTRL-", (ALNUM, 32))),
    "sonar": ("sonar token", _form("sqp_", (HEX, 40))),
    "circleci": ("circleci token", _form("CCIPAT_", (ALNUM, 22), "_", (HEX, 40))),
    "atlassian": ("jira api token", _form("ATATT3xFfGF0", (BASE64URL, 170), "=", (HEX, 8))),
    "adafruit": ("adafruit io key", _form("aio_", (ALNUM, 28))),
    "contentful": ("contentful management token", _form("CFPAT-", (BASE64URL, 43))),
    "readme": ("readme api key", _form("rdme_xn8s9h", (HEX, 64))),
}
"""Keys with a form of their own, so that they can stand in prose too."""

UNFORMED: dict[str, tuple[str, Make]] = {
    "aws": ("aws secret access key", _lettered(_form((BASE64, 40)))),
    "twilio": ("twilio auth token", _lettered(_form((HEX, 32)))),
    "datadog": ("datadog api key", _lettered(_form((HEX, 32)))),
    "cloudflare": ("cloudflare api token", _lettered(_form((BASE64URL.replace("-", ""), 40)))),
    "algolia": ("algolia admin api key", _lettered(_form((HEX, 32)))),
    "azure": (
        "azure client secret",
        _form((ALNUM, 3), "8Q~", (BASE64URL, 34)),
    ),
    "facebook": ("facebook app secret", _lettered(_form((HEX, 32)))),
    "fastly": ("fastly api token", _lettered(_form((BASE64URL.replace("-", ""), 32)))),
    "deepseek": ("deepseek api key", _form("sk-", (HEX, 32))),
    "plaid": ("plaid secret", _lettered(_form((HEX, 30)))),
}
"""Keys without a form of their own: only a name beside them says what they are."""


def make_key(rng: random.Random, service: str) -> str:
    """A key of a service, with a form or without; KeyError for an unknown service."""
    return (SERVICES.get(service) or UNFORMED[service])[1](rng)


def make_webhook(rng: random.Random, service: str) -> str:
    """A webhook address whose secret path stands between the marks of `templates.fill`."""
    if service == "slack":
        path = f"T0{draw(rng, UPPER, 8)}/B0{draw(rng, UPPER, 9)}/{draw(rng, ALNUM, 24)}"
        return f"https://hooks.slack.com/services/\x02{path}\x03"
    if service == "discord":
        path = f"{rng.randint(10**17, 13 * 10**17)}/{draw(rng, BASE64URL, 68)}"
        return f"https://discord.com/api/webhooks/\x02{path}\x03"
    raise ValueError(f"no webhook form of {service}")
