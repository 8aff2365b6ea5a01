"""Keys and tokens of services, in the forms that services document or scanners of secrets quote."""

from __future__ import annotations

import base64
import random
import re
import string
import uuid

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc_base62
from tests.benchmarks.ninth_blind.words import ALNUM, HEX, URLSAFE, mixed, pick, split

LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
_ALPHABETS = {
    "x": ALNUM,
    "u": URLSAFE,
    "h": HEX,
    "l": LOWER,
    "U": UPPER,
    "d": string.digits,
    "a": string.ascii_letters,
    "B": string.ascii_uppercase + "234567",
}

SERVICES: dict[str, str] = {
    # `{x30}` draws 30 letters and digits, u base64url, h hex, l lower, U upper, d digits; `{crc}`
    # is the checksum of GitHub and npm over what was drawn
    "github": "ghp_{x30}{crc}",
    "github_oauth": "gho_{x30}{crc}",
    "github_server": "ghs_{x30}{crc}",
    "github_user": "ghu_{x30}{crc}",
    "github_fine": "github_pat_{x22}_{x59}",
    "npm": "npm_{x30}{crc}",
    "gitlab": "glpat-{u20}",
    "gitlab_runner": "glrt-{u20}",
    "gitlab_deploy": "gldt-{u20}",
    "gitlab_trigger": "glptt-{h40}",
    "slack_bot": "xoxb-{d12}-{d13}-{x24}",
    "slack_user": "xoxp-{d12}-{d12}-{d13}-{h32}",
    "slack_app": "xapp-1-A0{U9}-{d13}-{h64}",
    "stripe": "sk_live_{x24}",
    "stripe_long": "sk_live_51{x97}",
    "stripe_restricted": "rk_live_{x24}",
    "stripe_hook": "whsec_{x32}",
    "openai_project": "sk-proj-{u74}T3BlbkFJ{u74}",
    "openai": "sk-{x20}T3BlbkFJ{x20}",
    "openai_service": "sk-svcacct-{u58}T3BlbkFJ{u58}",
    "anthropic": "sk-ant-api03-{u93}AA",
    "openrouter": "sk-or-v1-{h64}",
    "google": "AIzaSy{u33}",
    "google_secret": "GOCSPX-{u28}",
    "hugging_face": "hf_{a34}",
    "groq": "gsk_{x20}WGdyb3FY{x24}",
    "replicate": "r8_{x37}",
    "perplexity": "pplx-{x48}",
    "xai": "xai-{x80}",
    "langsmith": "lsv2_pt_{h32}_{h10}",
    "langfuse": "sk-lf-{uuid}",
    "pypi": "{pypi}",
    "rubygems": "rubygems_{h48}",
    "crates": "cio{x32}",
    "nuget": "oy2{l43}",
    "docker": "dckr_pat_{u27}",
    "digitalocean": "dop_v1_{h64}",
    "digitalocean_oauth": "doo_v1_{h64}",
    "sendgrid": "SG.{u22}.{u43}",
    "mailchimp": "{h32}-us{d1}",
    "brevo": "xkeysib-{h64}-{x16}",
    "shopify": "shpat_{h32}",
    "shopify_secret": "shpss_{h32}",
    "square": "EAAA{u60}",
    "square_secret": "sq0csp-{u43}",
    "databricks": "dapi{h32}",
    "doppler": "dp.pt.{x43}",
    "linear": "lin_api_{x40}",
    "notion": "ntn_{d11}{x35}",
    "notion_old": "secret_{x43}",
    "figma": "figd_{u40}",
    "airtable": "pat{x14}.{h64}",
    "grafana": "glsa_{x32}_{h8}",
    "newrelic": "NRAK-{U27}",
    "sentry": "sntryu_{h64}",
    "planetscale": "pscale_tkn_{u43}",
    "planetscale_password": "pscale_pw_{u43}",
    "supabase": "sbp_{h40}",
    "vault": "hvs.{u95}",
    "terraform": "{x14}.atlasv1.{u67}",
    "pulumi": "pul-{h40}",
    "sonar": "squ_{h40}",
    "postman": "PMAK-{h24}-{h34}",
    "telegram": "{d10}:AA{u33}",
    "telegram_old": "{d9}:AA{u33}",
    "easypost": "EZAK{x54}",
    "shippo": "shippo_live_{h40}",
    "lob": "live_{h35}",
    "typeform": "tfp_{u59}",
    "contentful": "CFPAT-{u43}",
    "readme": "rdme_{l70}",
    "prefect": "pnu_{l36}",
    "tailscale": "tskey-auth-k{x10}CNTRL-{x32}",
    "infracost": "ico-{x32}",
    "duffel": "duffel_live_{u43}",
    "dynatrace": "dt0c01.{B24}.{B64}",
    "heroku": "HRKU-AA{u58}",
    "hubspot": "pat-eu1-{uuid}",
    "flutterwave": "FLWSECK-{h32}-X",
    "paystack": "sk_live_{h40}",
    "mercadopago": "APP_USR-{d16}-0{d5}-{h32}-{d9}",
    "azure_client": "{x3}8Q~{u34}",
    "yandex_cloud": "AQVN{u36}",
    "cloudflare_origin": "v1.0-{h24}-{h146}",
    "artifactory": "AKCp8{x68}",
    "buildkite": "bkua_{h40}",
    "fly": "fo1_{u43}",
    "asana": "1/{d16}:{h32}",
    "scalingo": "tk-us-{x48}",
    "frameio": "fio-u-{u64}",
    "neon": "napi_{l64}",
    "elevenlabs": "sk_{h48}",
    "rootly": "rootly_{h64}",
    "clojars": "CLOJARS_{l60}",
}
NAMED: dict[str, str] = {
    # keys without a form of their own: a text must name the service beside them
    "AWS_SECRET_ACCESS_KEY": "{x40}",
    "TWILIO_AUTH_TOKEN": "{h32}",
    "DATADOG_API_KEY": "{h32}",
    "DD_APP_KEY": "{h40}",
    "CLOUDFLARE_API_TOKEN": "{x40}",
    "ALGOLIA_ADMIN_KEY": "{h32}",
    "WANDB_API_KEY": "{h40}",
    "COHERE_API_KEY": "{x40}",
    "ALIYUN_ACCESS_KEY_SECRET": "{x30}",
    "TENCENTCLOUD_SECRET_KEY": "{x32}",
    "MAILJET_SECRET_KEY": "{h32}",
    "TRELLO_TOKEN": "{h64}",
    "DISCORD_BOT_TOKEN": "MTA{x21}.G{x5}.{u38}",
    "VERCEL_TOKEN": "{x24}",
    "FASTLY_API_TOKEN": "{u32}",
    "HCLOUD_TOKEN": "{x64}",
    "OVH_APPLICATION_SECRET": "{x32}",
    "PLAID_SECRET": "{h30}",
    "RAZORPAY_KEY_SECRET": "{x24}",
    "OPENWEATHER_API_KEY": "{h32}",
    "ROLLBAR_ACCESS_TOKEN": "{h32}",
    "HONEYCOMB_API_KEY": "{x22}",
    "MAILERSEND_API_KEY": "mlsn.{h64}",
}


def draw_form(rng: random.Random, form: str) -> str:
    """A value of a form: each `{x30}` drawn, checksums computed."""
    drawn = ""
    for place, part in enumerate(re.split(r"[{}]", form)):
        if place % 2 == 0:
            drawn += part
        elif part == "uuid":
            drawn += str(uuid.UUID(int=rng.getrandbits(128), version=4))
        elif part == "crc":
            drawn += crc_base62(drawn.partition("_")[2])
        elif part == "pypi":
            drawn += _pypi(rng)
        else:
            drawn += _run(rng, _ALPHABETS[part[0]], int(part[1:]))
    return drawn


def _run(rng: random.Random, alphabet: str, count: int) -> str:
    text = (mixed if count >= 10 else pick)(rng, alphabet, count)
    if alphabet == string.digits and text[0] == "0":
        text = rng.choice("123456789") + text[1:]
    return _inner(rng, text)


def _inner(rng: random.Random, text: str) -> str:
    # base64url may end with - or _; a value that does is hard to cut out of a text by eye
    return text[:-1] + rng.choice(LOWER) if text[-1] in "-_" else text


def _pypi(rng: random.Random) -> str:
    # a macaroon, version 2: location, identifier, empty caveat, signature
    identifier = str(uuid.UUID(int=rng.getrandbits(128), version=4)).encode()
    packet = b"\x02\x01\x08pypi.org\x02" + bytes([len(identifier)]) + identifier
    packet += (
        b"\x00\x02" + bytes([18]) + b'{"version": 1, "p"' + b"\x00\x00\x06\x20" + rng.randbytes(32)
    )
    return "pypi-" + base64.urlsafe_b64encode(packet).decode().rstrip("=")


def make_key(rng: random.Random, service: str) -> str:
    """A key of a service by its name here."""
    return draw_form(rng, SERVICES[service])


def _key(scene: Scene, argument: str) -> str:
    names = argument.split() if argument else list(SERVICES)
    return make_key(scene.rng, scene.rng.choice(names))


def _named(scene: Scene, argument: str) -> str:
    return draw_form(scene.rng, NAMED[argument])


def _named_pair(scene: Scene, argument: str) -> str:
    """`NAME=value` of a key without a form; the argument is what stands between both."""
    name = scene.rng.choice(list(NAMED))
    return f"{name}{argument or '='}\x02{draw_form(scene.rng, NAMED[name])}\x03"


def _slack_hook(scene: Scene, _: str) -> str:
    return (
        f"T0{pick(scene.rng, UPPER, 8)}/B0{pick(scene.rng, UPPER, 9)}/{mixed(scene.rng, ALNUM, 24)}"
    )


def _discord_hook(scene: Scene, _: str) -> str:
    return (
        f"1{pick(scene.rng, string.digits, 18)}/{_inner(scene.rng, mixed(scene.rng, URLSAFE, 68))}"
    )


def _object_id(scene: Scene, argument: str) -> str:
    """The id of an object of Stripe, Google or AWS, which is no secret."""
    rng = scene.rng
    forms = {
        "stripe": ("cus_{x14}", "price_1{x23}", "evt_1{x23}", "prod_{x14}", "pi_3{x23}"),
        "google": ("G-{U10}", "GTM-{U7}", "AW-{d10}"),
        "aws": ("arn:aws:iam::{d12}:role/deploy", "vol-0{h16}", "ami-0{h16}", "vpc-0{h16}"),
    }
    return draw_form(rng, rng.choice(forms[argument]))


_PREFIXES = split(
    """
    ghp_ glpat- sk-ant- xoxb- sk_live_ hf_ npm_ SG. dop_v1_ AIza shpat_ pypi- dapi lin_api_ r8_
    gsk_
    """
)


def _prefix(scene: Scene, _: str) -> str:
    return scene.rng.choice(_PREFIXES)


def _key_mask(scene: Scene, _: str) -> str:
    rng = scene.rng
    prefix = rng.choice(_PREFIXES)
    return prefix + rng.choice(
        [
            "x" * 36,
            "*" * 20,
            "...",
            "XXXXXXXXXXXXXXXX",
            "<token>",
            "your_token_here",
            f"…{pick(rng, LOWER, 4)}",
        ]
    )


def _pattern(scene: Scene, _: str) -> str:
    return scene.rng.choice(_PREFIXES).replace(".", r"\.") + scene.rng.choice(
        ["[A-Za-z0-9]{36}", r"[\w-]{20,}", "[0-9a-f]{64}", "[A-Za-z0-9_-]{40,120}", r"\S+"]
    )


SERVICE_MAKERS: dict[str, Maker] = {
    "key": _key,
    "named": _named,
    "named_pair": _named_pair,
    "slack_hook": _slack_hook,
    "discord_hook": _discord_hook,
    "object_id": _object_id,
    "key_prefix": _prefix,
    "key_mask": _key_mask,
    "key_pattern": _pattern,
}
