"""Keys of services in the forms that the services document, and credentials of applications."""

from __future__ import annotations

import base64
import random
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc_base62
from tests.benchmarks.tenth_blind.keys import make_jwt
from tests.benchmarks.tenth_blind.words import pick, split

WORD = string.ascii_letters + string.digits
URL64 = WORD + "-_"
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def checked(rng: random.Random, prefix: str) -> str:
    """A token of 30 random characters and its checksum."""
    body = pick(rng, WORD, 30)
    return prefix + body + crc_base62(body)


def pypi(rng: random.Random) -> str:
    """A macaroon of pypi.org: a fixed start and base64 of its caveats."""
    return "pypi-AgEIcHlwaS5vcmcC" + pick(rng, URL64, rng.randint(130, 150))


def discord(rng: random.Random) -> str:
    """A bot's token: its id in base64, a time and a digest."""
    number = str(rng.randint(10**17, 10**18 - 1))
    head = base64.b64encode(number.encode()).decode().rstrip("=")
    return f"{head}.G{pick(rng, URL64, 5)}.{pick(rng, URL64, 38)}"


# Each service: names of its variable, and parts that are drawn. A part is a fixed text or
# (alphabet, size). A service without a prefix stands only where its name says what it is.
Part = str | tuple[str, int]
SERVICES: dict[str, tuple[str, tuple[Part, ...]]] = {
    "github_fine": ("GITHUB_TOKEN GH_PAT", ("github_pat_", (WORD, 22), "_", (WORD, 59))),
    "gitlab": ("GITLAB_TOKEN GITLAB_PAT", ("glpat-", (URL64, 20))),
    "slack_bot": (
        "SLACK_BOT_TOKEN SLACK_TOKEN",
        ("xoxb-", (string.digits, 12), "-", (string.digits, 13), "-", (WORD, 24)),
    ),
    "stripe": ("STRIPE_SECRET_KEY STRIPE_KEY", ("sk_live_", (WORD, 24))),
    "stripe_new": ("STRIPE_SECRET_KEY", ("sk_live_51", (WORD, 97))),
    "stripe_hook": ("STRIPE_WEBHOOK_SECRET", ("whsec_", (WORD, 32))),
    "sendgrid": ("SENDGRID_API_KEY", ("SG.", (URL64, 22), ".", (URL64, 43))),
    "mailgun": ("MAILGUN_API_KEY", ("key-", (HEX, 32))),
    "mailchimp": ("MAILCHIMP_API_KEY", ((HEX, 32), "-us14")),
    "google": ("GEMINI_API_KEY YOUTUBE_API_KEY", ("AIzaSy", (URL64, 33))),
    "google_client": ("GOOGLE_CLIENT_SECRET", ("GOCSPX-", (URL64, 28))),
    "openai": ("OPENAI_API_KEY", ("sk-", (WORD, 20), "T3BlbkFJ", (WORD, 20))),
    "openai_project": ("OPENAI_API_KEY", ("sk-proj-", (URL64, 74), "T3BlbkFJ", (URL64, 74))),
    "anthropic": ("ANTHROPIC_API_KEY", ("sk-ant-api03-", (URL64, 93), "AA")),
    "openrouter": ("OPENROUTER_API_KEY", ("sk-or-v1-", (HEX, 64))),
    "groq": ("GROQ_API_KEY", ("gsk_", (WORD, 52))),
    "hugging_face": ("HF_TOKEN HUGGINGFACE_TOKEN", ("hf_", (string.ascii_letters, 34))),
    "replicate": ("REPLICATE_API_TOKEN", ("r8_", (WORD, 37))),
    "digitalocean": ("DIGITALOCEAN_TOKEN", ("dop_v1_", (HEX, 64))),
    "telegram": ("TELEGRAM_BOT_TOKEN BOT_TOKEN", ("7", (string.digits, 9), ":AA", (URL64, 33))),
    "shopify": ("SHOPIFY_ACCESS_TOKEN", ("shpat_", (HEX, 32))),
    "databricks": ("DATABRICKS_TOKEN", ("dapi", (HEX, 32))),
    "linear": ("LINEAR_API_KEY", ("lin_api_", (WORD, 40))),
    "notion": ("NOTION_TOKEN", ("secret_", (WORD, 43))),
    "airtable": ("AIRTABLE_TOKEN", ("pat", (WORD, 14), ".", (HEX, 64))),
    "postman": ("POSTMAN_API_KEY", ("PMAK-", (HEX, 24), "-", (HEX, 34))),
    "docker": ("DOCKERHUB_TOKEN", ("dckr_pat_", (URL64, 27))),
    "newrelic": ("NEW_RELIC_API_KEY", ("NRAK-", (string.ascii_uppercase + string.digits, 27))),
    "circleci": ("CIRCLECI_TOKEN", ("CCIPAT_", (WORD, 22), "_", (HEX, 40))),
    "figma": ("FIGMA_TOKEN", ("figd_", (URL64, 40))),
    "resend": ("RESEND_API_KEY", ("re_", (WORD, 8), "_", (WORD, 24))),
    "brevo": ("BREVO_API_KEY", ("xkeysib-", (HEX, 64), "-", (WORD, 16))),
    "twilio": ("TWILIO_AUTH_TOKEN", ((HEX, 32),)),
    "aws": ("AWS_SECRET_ACCESS_KEY", ((WORD + "+/", 40),)),
    "cloudflare": ("CLOUDFLARE_API_TOKEN CF_API_TOKEN", ((URL64, 40),)),
    "datadog": ("DATADOG_API_KEY DD_API_KEY", ((HEX, 32),)),
    "weather": ("OPENWEATHER_API_KEY WEATHER_API_KEY", ((HEX, 32),)),
    "news": ("NEWS_API_KEY", ((HEX, 32),)),
    "cloudinary": ("CLOUDINARY_API_SECRET", ((URL64, 27),)),
    "spotify": ("SPOTIFY_CLIENT_SECRET", ((HEX, 32),)),
    "razorpay": ("RAZORPAY_KEY_SECRET", ((WORD, 24),)),
}
DRAWN = {
    "github": ("GITHUB_TOKEN GH_TOKEN", lambda rng: checked(rng, "ghp_")),
    "github_oauth": ("GITHUB_OAUTH_TOKEN", lambda rng: checked(rng, "gho_")),
    "npm": ("NPM_TOKEN", lambda rng: checked(rng, "npm_")),
    "pypi": ("PYPI_TOKEN TWINE_PASSWORD", pypi),
    "discord": ("DISCORD_TOKEN BOT_TOKEN", discord),
}
PREFIXED = [name for name, (_, parts) in SERVICES.items() if isinstance(parts[0], str)]
EVERY = [*SERVICES, *DRAWN, "github", "github", "openai", "telegram", "google"]
"""Names to draw from: tutorials name these last services most."""


def make_key(rng: random.Random, name: str) -> str:
    """A key of a service in its published form."""
    if name in DRAWN:
        return DRAWN[name][1](rng)
    return "".join(
        part if isinstance(part, str) else pick(rng, *part) for part in SERVICES[name][1]
    )


def variable_of(rng: random.Random, name: str) -> str:
    """A name of the variable that holds the key of a service."""
    return rng.choice((DRAWN if name in DRAWN else SERVICES)[name][0].split())


def service_key(scene: Scene, argument: str) -> str:
    """A key of a named service, or of the text's service, which `variable` names too."""
    if not argument:
        argument = scene.once("service", lambda: scene.rng.choice(EVERY))
    elif argument == "prefixed":
        argument = scene.rng.choice([*PREFIXED, *DRAWN])
    return make_key(scene.rng, argument)


def service_variable(scene: Scene, argument: str) -> str:
    """The variable of the text's service in capitals, or in `lower`, `camel` or `kebab` case."""
    name = scene.once("service", lambda: scene.rng.choice(EVERY))
    return cased(scene.once("variable", lambda: variable_of(scene.rng, name)), argument)


def cased(name: str, case: str) -> str:
    """A name in capitals, in another case."""
    words = name.lower().split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return {"lower": "_".join(words), "kebab": "-".join(words), "camel": camel}.get(case, name)


STEMS = split("""
Falcon harbour Kastanie tigre Monsun granite Laterne quartz Biscuit Regenbogen pelican mosaic
Sturmwind cactus Marmelade rocket nebula Trompete walnut Zitrone
""")


def make_password(rng: random.Random) -> str:
    """A password that somebody chose (half of them) or generated, of eight characters or more."""
    if rng.random() < 0.5:
        stem = rng.choice(STEMS)
        if rng.random() < 0.4:
            stem = stem.replace("a", "@").replace("o", "0")
        tail = rng.choice(
            [f"{rng.randint(100, 9999)}", f"{rng.randint(10, 99)}!", f"#{rng.randint(100, 999)}"]
        )
        return stem + rng.choice(["", "_", "-", "."]) + tail + pick(rng, "!$#%", rng.randint(0, 2))
    size = rng.choice([12, 14, 16, 20])
    plain = pick(rng, WORD, size - 2)
    return rng.choice(
        [plain + pick(rng, "!$%^*", 2), plain[:5] + rng.choice("!_-.*") + plain[5:], plain]
    )


def make_url_password(rng: random.Random) -> str:
    """A password that may stand in a URL: no character that has to be escaped."""
    return rng.choice(
        [
            pick(rng, WORD, rng.choice([10, 14, 16, 22])),
            rng.choice(STEMS) + str(rng.randint(100, 9999)),
            rng.choice(STEMS) + "%40" + str(rng.randint(10, 999)),
            pick(rng, WORD, 6) + "-" + pick(rng, WORD, 8),
        ]
    )


def account_key(rng: random.Random) -> str:
    """An account key of Azure: 64 bytes in base64."""
    return base64.b64encode(rng.randbytes(64)).decode()


def make_bearer(scene: Scene, argument: str) -> str:
    """A token of a header: a JWT or (`opaque`) none; `basic` is a user and password in base64."""
    rng = scene.rng
    if argument == "basic":
        user = rng.choice(["admin", "api", "deploy", "monitor", "svc-backup", "jenkins"])
        return base64.b64encode(f"{user}:{make_password(rng)}".encode()).decode()
    if argument != "opaque" and rng.random() < 0.5:
        sanctum = f"{rng.randint(1, 900)}|" + pick(rng, WORD, 40)
        return make_jwt(scene) if rng.random() < 0.85 else sanctum
    names = split("openai github hugging_face groq replicate sendgrid")
    return rng.choice(
        [
            pick(rng, HEX, rng.choice([32, 40, 64])),
            pick(rng, URL64, rng.choice([32, 43, 48])),
            "ya29.a0" + pick(rng, URL64, 120),
            make_key(rng, rng.choice(names)),
        ]
    )


def slack_hook(scene: Scene, argument: str) -> str:
    """The path of a webhook of Slack: team, channel and secret."""
    capitals = string.ascii_uppercase + string.digits
    parts = pick(scene.rng, capitals, 8), pick(scene.rng, capitals, 9), pick(scene.rng, WORD, 24)
    return "T0{}/B0{}/{}".format(*parts)


def make_simple_password(rng: random.Random) -> str:
    """A password of letters and digits, chosen or generated."""
    if rng.random() < 0.6:
        return rng.choice(STEMS) + str(rng.randint(100, 99999))
    return pick(rng, WORD, rng.choice([10, 12, 16, 24]))


def broken(scene: Scene, argument: str) -> str:
    """A token in two parts, each marked: `JOINT` or `JOINT.jwt`; the joint is a name of JOINTS."""
    rng = scene.rng
    joint, _, kind = argument.partition(".")
    names = [
        "github",
        "github_fine",
        "openai",
        "sendgrid",
        "npm",
        "hugging_face",
        "groq",
        "digitalocean",
    ]
    whole = make_jwt(scene) if kind == "jwt" else make_key(rng, rng.choice(names))
    at = rng.randint(14, len(whole) - 14)
    if kind == "jwt" and len(whole) > 150:
        at = rng.choice([64, 72, 76])
    return f"\x02{whole[:at]}\x03{JOINTS[joint]}\x02{whole[at:]}\x03"


JOINTS = {
    "plus": '" + "', "plusline": '" +\n    "', "single": "' + '", "singleline": "' +\n    '",
    "implicit": '"\n    "', "implicit1": "'\n    '", "dot": '" . "', "dots": "' .\n    '",
    "ampline": '" & _\n    "', "line": "\n", "indent": "\n    ", "deep": "\n        ",
    "back": "\\\n", "backin": "\\\n    ", "soft": "=\n", "quote": "\n> ", "hash": "\n# ",
    "slash": "\n// ", "star": "\n * ", "comma": '", "', "commaline": '",\n    "',
    "concat": '" ++ "', "double": '" ~ "', "br": "<br>", "wbr": "<wbr>", "rust": '",\n        "',
    "lua": '" .. "', "shell": '""', "tab": "\n\t", "sql": "' || '", "stringify": '"\\\n"',
}  # fmt: skip


SERVICE_MAKERS: dict[str, Maker] = {
    "key": service_key,
    "variable": service_variable,
    "password": lambda scene, argument: make_password(scene.rng),
    "simple": lambda scene, argument: make_simple_password(scene.rng),
    "urlpass": lambda scene, argument: make_url_password(scene.rng),
    "account": lambda scene, argument: account_key(scene.rng),
    "bearer": make_bearer,
    "broken": broken,
    "slackhook": slack_hook,
    "discordhook": lambda scene, argument: (
        f"{scene.rng.randint(10**17, 10**18 - 1)}/{pick(scene.rng, URL64, 68)}"
    ),
}
