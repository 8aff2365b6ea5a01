"""Keys of services in their published forms, with their checksums."""

from __future__ import annotations

import base64
import random
import re
import string
import zlib
from collections.abc import Callable

from tests.benchmarks.blind_standards import crc_base62
from tests.benchmarks.eighth_blind.words import ALNUM, HEX, URLSAFE, draw_from, make_uuid

_ALPHABETS = {
    "x": HEX,
    "X": HEX.upper(),
    "w": ALNUM,
    "u": URLSAFE,
    "a": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "d": string.digits,
}

# A form holds slots such as {w36}: so many characters of an alphabet. x is hexadecimal, w letters
# and digits, u the same with - and _, a and A one case with digits, d digits. The first part of a
# pair is what a variable with such a key is called.
FORMS: dict[str, tuple[str, str]] = {
    "github_fine": ("github_pat", "github_pat_11{A9}0{w10}_{w59}"),
    "gitlab": ("gitlab_token", "glpat-{u20}"),
    "gitlab_runner": ("runner_token", "glrt-{u20}"),
    "slack_bot": ("slack_bot_token", "xoxb-{d12}-{d13}-{w24}"),
    "slack_app": ("slack_app_token", "xapp-1-A0{A9}-{d13}-{x64}"),
    "openai": ("openai_api_key", "sk-proj-{u74}T3BlbkFJ{u74}"),
    "anthropic": ("anthropic_api_key", "sk-ant-api03-{u93}AA"),
    "openrouter": ("openrouter_api_key", "sk-or-v1-{x64}"),
    "groq": ("groq_api_key", "gsk_{w52}"),
    "xai": ("xai_api_key", "xai-{w80}"),
    "perplexity": ("pplx_api_key", "pplx-{w48}"),
    "replicate": ("replicate_api_token", "r8_{w37}"),
    "hugging_face": ("hf_token", "hf_{w34}"),
    "tavily": ("tavily_api_key", "tvly-dev-{w32}"),
    "langsmith": ("langsmith_api_key", "lsv2_pt_{x32}_{x10}"),
    "stripe": ("stripe_secret_key", "sk_live_51{w97}"),
    "stripe_restricted": ("stripe_restricted_key", "rk_live_51{w97}"),
    "stripe_webhook": ("stripe_webhook_secret", "whsec_{w32}"),
    "square": ("square_access_token", "sq0atp-{u22}"),
    "flutterwave": ("flw_secret_key", "FLWSECK-{x32}-X"),
    "paystack": ("paystack_secret_key", "sk_live_{x40}"),
    "mollie": ("mollie_api_key", "live_{w30}"),
    "shopify": ("shopify_access_token", "shpat_{x32}"),
    "sendgrid": ("sendgrid_api_key", "SG.{u22}.{u43}"),
    "mailgun": ("mailgun_api_key", "key-{x32}"),
    "mailchimp": ("mailchimp_api_key", "{x32}-us1{d1}"),
    "brevo": ("brevo_api_key", "xkeysib-{x64}-{w16}"),
    "resend": ("resend_api_key", "re_{w8}_{w24}"),
    "twilio": ("twilio_auth_token", "{x32}"),
    "telegram": ("telegram_bot_token", "7{d9}:AA{u33}"),
    "google_oauth": ("google_client_secret", "GOCSPX-{u28}"),
    "google": ("gcp_api_key", "AIzaSy{u33}"),
    "aws_secret": ("aws_secret_access_key", "{w19}/{w14}+{w5}"),
    "digitalocean": ("digitalocean_token", "dop_v1_{x64}"),
    "docker": ("dockerhub_token", "dckr_pat_{u27}"),
    "terraform": ("tfe_token", "{w14}.atlasv1.{w67}"),
    "vault": ("vault_token", "hvs.CAES{u90}"),
    "doppler": ("doppler_token", "dp.pt.{w43}"),
    "pulumi": ("pulumi_access_token", "pul-{x40}"),
    "databricks": ("databricks_token", "dapi{x32}"),
    "supabase": ("supabase_access_token", "sbp_{x40}"),
    "planetscale": ("pscale_password", "pscale_pw_{u43}"),
    "neon": ("neon_api_key", "napi_{a64}"),
    "cloudflare": ("cloudflare_api_token", "{u40}"),
    "fastly": ("fastly_api_token", "{u32}"),
    "netlify": ("netlify_auth_token", "nfp_{w36}"),
    "datadog": ("datadog_api_key", "{x32}"),
    "new_relic": ("new_relic_api_key", "NRAK-{A27}"),
    "dynatrace": ("dynatrace_api_token", "dt0c01.{A24}.{A64}"),
    "sentry": ("sentry_auth_token", "sntryu_{x64}"),
    "pagerduty": ("pagerduty_api_token", "u+{u18}"),
    "posthog": ("posthog_personal_key", "phx_{w43}"),
    "linear": ("linear_api_key", "lin_api_{w40}"),
    "notion": ("notion_token", "ntn_{d11}{w35}"),
    "figma": ("figma_token", "figd_{u40}"),
    "airtable": ("airtable_pat", "pat{w14}.{x64}"),
    "asana": ("asana_access_token", "2/{d16}/{d16}:{x32}"),
    "hubspot": ("hubspot_access_token", "pat-eu1-{x8}-{x4}-4{x3}-a{x3}-{x12}"),
    "typeform": ("typeform_token", "tfp_{w44}_{w14}"),
    "contentful": ("contentful_management_token", "CFPAT-{u43}"),
    "postman": ("postman_api_key", "PMAK-{x24}-{x34}"),
    "rubygems": ("gem_host_api_key", "rubygems_{x48}"),
    "clojars": ("clojars_token", "CLOJARS_{x60}"),
    "nuget": ("nuget_api_key", "oy2{a43}"),
    "artifactory": ("artifactory_api_key", "AKCp8{w68}"),
    "buildkite": ("buildkite_api_token", "bkua_{x40}"),
    "prefect": ("prefect_api_key", "pnu_{w36}"),
    "sourcegraph": ("src_access_token", "sgp_{x40}"),
    "tailscale": ("tailscale_auth_key", "tskey-auth-k{w11}CNTRL-{w32}"),
    "duffel": ("duffel_access_token", "duffel_live_{u43}"),
    "infracost": ("infracost_api_key", "ico-{w32}"),
    "easypost": ("easypost_api_key", "EZAK{w54}"),
    "readme": ("readme_api_key", "rdme_xn8s9h{x64}"),
    "deno": ("deno_deploy_token", "ddp_{w36}"),
    "algolia": ("algolia_admin_api_key", "{x32}"),
    "maxmind": ("maxmind_license_key", "{w6}_{w29}_mmk"),
}
NAMED_ONLY = frozenset(
    name for name, (_, form) in FORMS.items() if form.startswith("{") or name == "pagerduty"
)
"""Services whose keys have no head: only a name beside them says what they are."""


def _with_crc(head: str) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        body = draw_from(rng, ALNUM, 30)
        return head + body + crc_base62(body)

    return make


def make_grafana(rng: random.Random) -> str:
    """A token of a Grafana service account; its end is the CRC-32 of the rest, low byte first."""
    body = draw_from(rng, ALNUM, 32)
    checksum = zlib.crc32(f"glsa_{body}".encode()).to_bytes(4, "little").hex()
    return f"glsa_{body}_{checksum}"


def make_pypi(rng: random.Random) -> str:
    """A token of PyPI: a macaroon (version 2) of the place pypi.org."""
    name = make_uuid(rng).encode()
    content = b"\2\1\x08pypi.org\2" + bytes([len(name)]) + name + b"\0"
    content += b"\2\3[1]\0\0\6\x20" + rng.randbytes(32)
    return "pypi-" + base64.urlsafe_b64encode(content).decode().rstrip("=")


def make_discord(rng: random.Random) -> str:
    """A token of a Discord bot: its id in base64, a time and a signature."""
    number = str(rng.randrange(10**17, 10**18)).encode()
    head = base64.b64encode(number).decode().rstrip("=")
    return f"{head}.G{draw_from(rng, URLSAFE, 5)}.{draw_from(rng, URLSAFE, 38)}"


CHECKED: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "github": ("github_token", _with_crc("ghp_")),
    "github_app": ("gh_app_token", _with_crc("ghs_")),
    "github_oauth": ("github_oauth_token", _with_crc("gho_")),
    "npm": ("npm_token", _with_crc("npm_")),
    "grafana": ("grafana_sa_token", make_grafana),
    "pypi": ("twine_password", make_pypi),
    "discord": ("discord_bot_token", make_discord),
}
SERVICES = (*FORMS, *CHECKED)
WITH_HEAD = tuple(name for name in SERVICES if name not in NAMED_ONLY)


def make_key(rng: random.Random, service: str) -> str:
    """A key of a service."""
    if service in CHECKED:
        return CHECKED[service][1](rng)
    key = re.sub(
        r"\{([xXwuaAd])([0-9]+)\}",
        lambda slot: draw_from(rng, _ALPHABETS[slot[1]], int(slot[2])),
        FORMS[service][1],
    )
    return key[:-1] + rng.choice(ALNUM) if key[-1] in "-_" else key


def name_of(service: str) -> str:
    """What a variable that holds a key of the service is called, in small letters."""
    return CHECKED[service][0] if service in CHECKED else FORMS[service][0]
