"""Passwords, and the names and values that fill the carriers of the fourteenth blind set."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.fourteenth_blind.tokens import make_jwt, make_key
from tests.benchmarks.fourteenth_blind.words import alphanumeric, draw_domain, pick, random_hex

_WORDS = (
    "sommer dragon falcon winter tiger marina sunshine coffee orange lisboa estrella amigo soleil "
    "montagne krakow wiosna galaxy purple guitar panther shadow bicycle herbst regen toronto "
    "bonjour pirate rocket walnut biscuit karamba istanbul natasha zvezda sakura"
)
_INNER = "!*-_+?^%"


def make_password(rng: Random, shape: str = "") -> str:
    """A password of 8 to 24 characters, drawn by a generator or chosen by a person.

    `url` stands in an address unescaped, `say` in a sentence, `quoted` between quotes; other shapes
    stand alone in a line.
    """
    if shape == "url":
        inner = "-_.~"
    elif shape == "quoted":
        inner = _INNER + "@#$&"
    else:
        inner = _INNER
    if rng.random() < 0.5:
        body = list(alphanumeric(rng, rng.randint(10, 20)))
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            body[rng.randint(1, len(body) - 2)] = rng.choice(inner)
        body[rng.randint(1, len(body) - 2)] = rng.choice(string.digits)
        return "".join(body)
    word, other = rng.choice(_WORDS.split()), rng.choice(_WORDS.split())
    year = str(rng.randint(1965, 2025))
    digits = pick(rng, string.digits, rng.randint(3, 5))
    tail = "" if shape in ("url", "say") else rng.choice(["", "!", "!", "*"])
    return rng.choice(
        [
            word.title() + year + tail,
            word + rng.choice("-_.") + other + digits,
            word.title() + rng.choice("-_.") + digits + other.title(),
            word.translate(str.maketrans("aeio", "43!0" if shape == "quoted" else "4310")) + digits,
            word.title() + other.title() + digits + tail,
        ]
    )


def make_secret(rng: Random, form: str = "") -> str:
    """A secret of an application: random hexadecimal digits, letters and digits, or Base64."""
    form = form or rng.choice(["hex32", "hex64", "alnum", "base64"])
    if form.startswith("hex"):
        return random_hex(rng, int(form[3:]))
    if form == "base64":
        return base64.b64encode(rng.randbytes(32)).decode()
    if form == "django":
        return pick(rng, string.ascii_lowercase + string.digits + "!@%^*(-_=+)", 49) + "k"
    return alphanumeric(rng, rng.choice([24, 32, 40]))


_PASSWORD_NAMES = (
    "db password|database password|mysql password|postgres password|smtp password|redis password|"
    "admin password|mail password|ftp password|ldap bind password|keystore password|"
    "rabbitmq password"
)
_SECRET_NAMES = [
    "app secret",
    "session secret",
    "jwt secret",
    "secret key",
    "client secret",
    "cookie secret",
]
_JWT_NAMES = [
    "access token",
    "jwt",
    "id token",
    "auth token",
    "jwt token",
    "session token",
    "api token",
    "token",
]
_KEY_NAMES = {
    "github": "github token", "gitlab": "gitlab token", "npm": "npm token",
    "aws": "aws access key id",
    "google": "google api key", "slack": "slack bot token", "stripe": "stripe secret key",
    "sendgrid": "sendgrid api key", "mailgun": "mailgun api key", "openai": "openai api key",
    "openai_project": "openai api key", "anthropic": "anthropic api key", "hf": "hf token",
    "telegram": "telegram bot token", "discord": "discord token", "shopify": "shopify access token",
    "groq": "groq api key", "notion": "notion token", "mailchimp": "mailchimp api key",
    "slack_hook": "slack webhook url", "digitalocean": "digitalocean token",
    "google_oauth": "google client secret", "stripe_hook": "stripe webhook secret",
    "replicate": "replicate api token", "databricks": "databricks token",
}  # fmt: skip


def name_secret(kind: str, scene: Scene) -> None:
    """The name and the value of a positive in a carrier."""
    rng = scene.rng
    if kind == "jwt":
        name, scene.value = rng.choice(_JWT_NAMES), make_jwt(rng)
    elif kind == "provider_key":
        service = rng.choice(list(_KEY_NAMES))
        name, scene.value = _KEY_NAMES[service], make_key(rng, service)
    elif rng.random() < 0.7:
        name, scene.value = rng.choice(_PASSWORD_NAMES.split("|")), make_password(rng)
    else:
        name, scene.value = rng.choice(_SECRET_NAMES), make_secret(rng)
    scene.words = tuple(name.split())


def _variable(words: str) -> str:
    return words.upper().replace(" ", "_")


def _placeholder(rng: Random, name: str) -> str:
    return rng.choice(
        [
            f"your-{name.replace(' ', '-')}",
            f"<{name.replace(' ', '_')}>",
            "${" + _variable(name) + "}",
            f"{{{{ {name.replace(' ', '_')} }}}}",
            f"YOUR_{_variable(name)}",
            f"<your {name}>",
            "REPLACE_ME",
            "xxxxxxxxxxxxxxxx",
            "************",
        ]
    )


_Other = dict[str, Callable[[Random, Scene], str]]
_OTHER_JWT: _Other = {
    "jwt algorithm": lambda rng, _: rng.choice(["RS256", "HS256", "ES256"]),
    "jwt issuer": lambda _, scene: f"https://auth.{draw_domain(scene, 'en')}/",
    "jwt expiration": lambda rng, _: rng.choice(["3600", "15m", "7d", "86400"]),
    "access token ttl": lambda rng, _: str(rng.choice([300, 900, 1800])),
    "token url": lambda _, scene: f"https://login.{draw_domain(scene, 'en')}/oauth2/token",
    "jwt header name": lambda rng, _: rng.choice(["X-Auth-Token", "Authorization"]),
    "jwt audience": lambda rng, _: rng.choice(["mobile-app", "api://default", "account"]),
    "jwt kid": lambda rng, _: random_hex(rng, 40),
    "jwks uri": lambda _, scene: f"https://{draw_domain(scene, 'en')}/.well-known/jwks.json",
    "jwt public key file": lambda rng, _: rng.choice(["/etc/keys/jwt.pub", "certs/jwt_public.pem"]),
}
_OTHER_KEY: _Other = {
    "stripe publishable key": lambda rng, _: "pk_live_" + alphanumeric(rng, 24),
    "stripe price id": lambda rng, _: "price_1" + alphanumeric(rng, 23),
    "aws default region": lambda rng, _: rng.choice(["eu-central-1", "us-east-2"]),
    "aws access key id": lambda _rng, _: "AKIAIOSFODNN7EXAMPLE",
    "openai model": lambda rng, _: rng.choice(["gpt-4o-mini", "gpt-4.1"]),
    "git commit": lambda rng, _: random_hex(rng, 40),
    "google client id": lambda rng, _: (
        f"{pick(rng, '123456789', 12)}-{alphanumeric(rng, 32).lower()}.apps.googleusercontent.com"
    ),
    "sendgrid template id": lambda rng, _: "d-" + random_hex(rng, 32),
    "telegram chat id": lambda rng, _: "-100" + pick(rng, "123456789", 10),
    "slack channel": lambda rng, _: "C0" + pick(rng, string.ascii_uppercase + string.digits, 9),
    "ga measurement id": lambda rng, _: "G-" + random_hex(rng, 10).upper(),
    "github token": lambda _rng, _: "ghp_" + "x" * 36,
    "image digest": lambda rng, _: "sha256:" + random_hex(rng, 64),
}
_OTHER_PASSWORD: _Other = {
    "password min length": lambda rng, _: str(rng.choice([8, 10, 12, 14])),
    "password hasher": lambda rng, _: rng.choice(["argon2id", "bcrypt", "pbkdf2_sha256"]),
    "db password file": lambda rng, _: rng.choice(["/run/secrets/db_password", "secrets/db.txt"]),
    "db user": lambda rng, _: rng.choice(["appuser", "reporting", "wordpress"]),
    "password reset url": lambda _, scene: f"https://{draw_domain(scene, 'en')}/account/reset",
    "secret name": lambda rng, _: rng.choice(["db-credentials", "tls-wildcard", "app-secrets"]),
    "password max age days": lambda rng, _: str(rng.choice([60, 90, 180])),
    "password field": lambda rng, _: rng.choice(["user_password", "passwd", "pwd"]),
    "token endpoint auth method": lambda rng, _: rng.choice(["client_secret_basic", "none"]),
}
_OTHERS = {"jwt": _OTHER_JWT, "provider_key": _OTHER_KEY, "password": _OTHER_PASSWORD}
_EMPTY_NAMES = {
    "jwt": _JWT_NAMES,
    "provider_key": list(_KEY_NAMES.values()),
    "password": _PASSWORD_NAMES.split("|") + _SECRET_NAMES,
}


def name_other(kind: str, scene: Scene) -> None:
    """The name and the value of a negative: a setting beside the secret, or a placeholder."""
    rng = scene.rng
    if rng.random() < 0.4:
        name = rng.choice(_EMPTY_NAMES[kind])
        scene.value = _placeholder(rng, name)
    else:
        name = rng.choice(list(_OTHERS[kind]))
        scene.value = _OTHERS[kind][name](rng, scene)
    scene.words = tuple(name.split())


def _camel(scene: Scene, _: str) -> str:
    head, *tail = scene.words
    return head + "".join(word.title() for word in tail)


NAME_MAKERS: dict[str, Maker] = {
    "NAME": lambda scene, _: "_".join(scene.words).upper(),
    "snake": lambda scene, _: "_".join(scene.words),
    "kebab": lambda scene, _: "-".join(scene.words),
    "dotted": lambda scene, _: ".".join(scene.words),
    "camel": _camel,
    "Pascal": lambda scene, _: "".join(word.title() for word in scene.words),
    "spoken": lambda scene, _: " ".join(scene.words),
    "value": lambda scene, _: scene.value,
    "pw": lambda scene, shape: make_password(scene.rng, shape),
    "secret": lambda scene, form: make_secret(scene.rng, form),
}
