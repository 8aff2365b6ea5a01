"""Names and values of the carriers of the eleventh set: assignments that several kinds share."""

from __future__ import annotations

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.eleventh_blind.tokens import make_jwt, make_key, make_password
from tests.benchmarks.eleventh_blind.words import APPS, HEX, PARTS, PLACEHOLDERS, pick, uuid

SERVICE_NAMES = {
    "github token": "github", "gitlab token": "gitlab", "slack bot token": "slack_bot",
    "openai api key": "openai", "anthropic api key": "anthropic", "stripe secret key": "stripe_old",
    "sendgrid api key": "sendgrid", "hf token": "hugging_face", "npm token": "npm",
    "digitalocean token": "digitalocean", "telegram bot token": "telegram",
    "aws secret access key": "aws_secret", "twilio auth token": "twilio",
    "cloudflare api token": "cloudflare", "datadog api key": "datadog", "groq api key": "groq",
    "gemini api key": "gemini", "google client secret": "google_client",
    "mailgun api key": "mailgun",
    "docker token": "docker", "grafana api token": "grafana",
    "stripe webhook secret": "stripe_hook",
    "weather api key": "plain", "maps service key": "plain", "sms gateway token": "plain_hex",
}  # fmt: skip
PASSWORD_NAMES = (
    *("db password", "database password", "smtp password", "mail password", "redis password"),
    *("admin password", "postgres password", "mysql root password", "ftp password", "app secret"),
    *("secret key", "jwt secret", "session secret", "email host password", "keystore password"),
)
JWT_NAMES = (
    *("access token", "auth token", "jwt", "id token", "service token", "token", "api token"),
    *("refresh token", "supabase service role key", "user token"),
)


def name_secret(kind: str, scene: Scene) -> None:
    """Choose a name and the secret that it is set to."""
    rng = scene.rng
    if kind == "provider_key":
        name, form = rng.choice(list(SERVICE_NAMES.items()))
        scene.value = make_key(rng, form)
    elif kind == "jwt":
        name, scene.value = rng.choice(JWT_NAMES), make_jwt(rng)
    else:
        name = rng.choice(PASSWORD_NAMES)
        is_key = name.split()[-1] in ("key", "secret")
        scene.value = make_password(rng, "long" if is_key else rng.choice(("", "strong")))
    scene.words = tuple(name.split())


def name_other(kind: str, scene: Scene) -> None:
    """Choose a name and a value that is no secret: a placeholder, a reference, an id, a count."""
    rng = scene.rng
    names = {"provider_key": list(SERVICE_NAMES), "jwt": list(JWT_NAMES)}
    own = names.get(kind, list(PASSWORD_NAMES))
    name, value = rng.choice(
        (
            *((rng.choice(own), rng.choice(PLACEHOLDERS)) for _ in range(5)),
            (
                rng.choice(own),
                rng.choice(("${SECRET}", "$TOKEN", "{{ vault_value }}", "%(secret)s")),
            ),
            ("commit sha", pick(rng, HEX, 40)),
            ("request id", uuid(rng)),
            ("checksum", f"sha256:{pick(rng, HEX, 64)}"),
            ("token url", f"https://{rng.choice(PARTS)}.test/oauth/token"),
            ("password min length", str(rng.randrange(8, 20))),
            ("token ttl", f"{rng.randrange(5, 90)}m"),
            ("secret file", f"/run/secrets/{rng.choice(APPS)}"),
            ("key prefix", f"{rng.choice(APPS)}_"),
        )
    )
    scene.words, scene.value = tuple(name.split()), value


def _named(scene: Scene, style: str) -> str:
    words = scene.words
    if style == "env":
        return "_".join(words).upper()
    if style == "camel":
        return words[0] + "".join(word.title() for word in words[1:])
    joint = {"snake": "_", "kebab": "-", "dot": ".", "words": " "}[style]
    return joint.join(words)


NAME_MAKERS: dict[str, Maker] = {"name": _named, "value": lambda scene, _: scene.value}
