"""What the carriers of the twelfth blind set assign: a name with or without a secret."""

from __future__ import annotations

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.twelfth_blind.tokens import make_jwt, make_key, make_password
from tests.benchmarks.twelfth_blind.words import draw, make_domain, make_slug

_TOKENS = ("access_token", "auth_token", "service_role_key", "id_token", "user_jwt")
_SERVICES = {
    "openai": "openai_api_key",
    "anthropic": "anthropic_api_key",
    "stripe": "stripe_secret_key",
    "sendgrid": "sendgrid_api_key",
    "github": "github_token",
    "gitlab": "gitlab_token",
    "aws": "aws_secret_access_key",
    "hf": "hf_token",
    "slack_bot": "slack_bot_token",
    "telegram": "telegram_bot_token",
    "google": "google_api_key",
    "npm": "npm_token",
    "hex32": "datadog_api_key",
}
_PASSWORDS = (
    *("db_password", "admin_password", "smtp_password", "redis_password", "keystore_password"),
    *("mysql_password", "ftp_pass", "jwt_secret", "session_secret", "mqtt_password"),
)


def name_secret(kind: str, scene: Scene) -> None:
    """Choose the name and the secret of a positive."""
    rng = scene.rng
    if kind == "jwt":
        name, scene.value = rng.choice(_TOKENS), make_jwt(rng, rng.choice(("HS256", "RS256")))
    elif kind == "provider_key":
        service = rng.choice(list(_SERVICES))
        name, scene.value = _SERVICES[service], make_key(rng, service)
    else:
        name = rng.choice(_PASSWORDS)
        scene.value = make_password(rng, "long" if name.endswith("secret") else "")
    scene.words = tuple(name.split("_"))


def name_other(kind: str, scene: Scene) -> None:
    """Choose the name and the value of a negative: a placeholder, a reference or a setting."""
    rng = scene.rng
    slug, host = make_slug(rng), make_domain(rng)
    others = {
        "jwt": (
            ("jwt_issuer", f"https://{host}/"),
            ("jwt_algorithm", rng.choice(("RS256", "HS256", "ES256"))),
            ("access_token", "your-access-token"),
            ("token_lifetime", str(rng.randint(60, 90000))),
            ("jwt_key_id", draw(rng, "hex", 16)),
            ("token_url", f"https://{host}/oauth/token"),
        ),
        "provider_key": (
            ("openai_api_key", "your-openai-key"),
            ("openai_model", rng.choice(("gpt-4o", "gpt-4o-mini", "o3-mini"))),
            ("stripe_secret_key", "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx"),
            ("sentry_release", draw(rng, "hex", 40)),
            ("aws_region", rng.choice(("eu-west-1", "us-east-2", "ap-south-1"))),
            ("google_project_id", f"{slug}-{rng.randint(100000, 999999)}"),
            ("api_key_header", "X-Api-Key"),
            ("slack_channel", f"{slug}-alerts"),
        ),
        "password": (
            ("db_password", "changeme"),
            ("admin_password", "your-password"),
            ("password_min_length", str(rng.randint(8, 20))),
            ("password_file", f"/run/secrets/{slug}"),
            ("password_reset_url", f"https://{host}/reset"),
            ("smtp_password", "********"),
            ("secret_name", slug),
        ),
    }
    name, scene.value = rng.choice(others[kind])
    scene.words = tuple(name.split("_"))


def _key(scene: Scene, style: str) -> str:
    words = scene.words
    if style == "camel":
        return words[0] + "".join(word.title() for word in words[1:])
    joined = ("-" if style == "kebab" else "_").join(words)
    return joined.upper() if style == "env" else joined


NAME_MAKERS: dict[str, Maker] = {"key": _key, "held": lambda scene, _: scene.value}
