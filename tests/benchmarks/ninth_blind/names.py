"""What a carrier assigns: a name as words, and a secret of the name or a value that is none."""

from __future__ import annotations

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.ninth_blind.credentials import make_password
from tests.benchmarks.ninth_blind.keys import KEY_MAKERS, make_jwt
from tests.benchmarks.ninth_blind.services import NAMED, SERVICE_MAKERS, draw_form, make_key
from tests.benchmarks.ninth_blind.words import FILLERS

_JWT_NAMES = "id_token|access_token|session_jwt|service_jwt|refresh_token|supabase_service_key|jwt"
_PASSWORD_NAMES = (
    "db_password|smtp_password|admin_password|redis_password|ldap_bind_password|mqtt_password|"
    "keystore_password|postgres_password|session_secret|app_secret|cookie_secret|root_password|"
    "sftp_password|wifi_password|rabbitmq_password|jwt_secret|encryption_passphrase"
)
_KEY_NAMES = {
    "github": "github_token|gh_token|ghcr_token",
    "gitlab": "gitlab_token|ci_push_token",
    "slack_bot": "slack_bot_token|slack_token",
    "stripe": "stripe_secret_key|stripe_api_key",
    "openai_project": "openai_api_key",
    "anthropic": "anthropic_api_key|claude_api_key",
    "hugging_face": "hf_token|huggingface_token",
    "npm": "npm_token|node_auth_token",
    "sendgrid": "sendgrid_api_key",
    "digitalocean": "digitalocean_token|do_token",
    "shopify": "shopify_access_token",
    "databricks": "databricks_token",
    "pypi": "twine_token|pypi_token",
    "telegram": "telegram_bot_token",
    "grafana": "grafana_token",
    "linear": "linear_api_key",
    "notion": "notion_token",
    "airtable": "airtable_api_key",
    "docker": "docker_hub_token",
    "doppler": "doppler_token",
    "newrelic": "new_relic_api_key",
    "postman": "postman_api_key",
    "vault": "vault_token",
    "tailscale": "ts_authkey",
    "google": "maps_server_key",
    "brevo": "brevo_api_key",
    "groq": "groq_api_key",
    "terraform": "tf_token_app_terraform_io",
}
_NEGATIVES: dict[str, tuple[tuple[str, str], ...]] = {
    # names, and the maker (with its argument) of a value that is no secret
    "jwt": (
        ("jwt_header|token_header", "jwt_header"),
        ("id_token|access_token|session_jwt", "jwt_cut"),
        ("next_cursor|page_token|after", "cursor"),
        ("source_map|inline_map", "source_map"),
        ("access_token|jwt", "ref"),
        ("id_token|jwt", "placeholder"),
        ("request_id|trace_id|job_id", "uuid"),
        ("etag|content_digest", "sha256"),
        ("jwt_ttl|token_lifetime_seconds", "int:300-86400"),
        ("integrity", "integrity"),
    ),
    "provider_key": (
        ("github_token|stripe_secret_key|openai_api_key|slack_token|npm_token", "ref"),
        ("github_token|anthropic_api_key|hf_token|sendgrid_api_key", "key_mask"),
        ("token_prefix|key_prefix", "key_prefix"),
        ("token_pattern|secret_regex", "key_pattern"),
        ("price_id|customer_id|event_id", "object_id:stripe"),
        ("role_arn|image_id|volume_id", "object_id:aws"),
        ("analytics_id|tag_id", "object_id:google"),
        ("commit_sha|revision|git_ref", "sha"),
        ("request_id|correlation_id|trace_id", "uuid"),
        ("checksum|layer_digest", "sha256"),
        ("api_key_file|token_path", "path"),
        ("openai_api_key|linear_api_key|api_token", "placeholder"),
        ("integrity", "integrity"),
        ("api_key_max_age_days|token_length", "int:20-400"),
    ),
    "password": (
        ("db_password|smtp_password|admin_password|app_secret", "ref"),
        ("db_password|redis_password|root_password|cookie_secret", "placeholder"),
        ("password_min_length|password_history|max_password_age", "int:6-90"),
        ("password_file|secret_file|passphrase_path", "path"),
        ("secret_name|password_secret|credentials_secret", "slug"),
        ("password_hint_version|secret_version", "ver"),
        ("password_changed_at|secret_rotated_at", "iso"),
        ("build_digest|checksum", "sha256"),
        ("password_reset_host|secret_host", "host"),
    ),
}
_VALUES: dict[str, Maker] = {**FILLERS, **KEY_MAKERS, **SERVICE_MAKERS}


def _set(scene: Scene, names: str, value: str) -> None:
    scene.words = tuple(scene.rng.choice(names.split("|")).split("_"))
    scene.value = value


def name_secret(kind: str, scene: Scene) -> None:
    """Draws a name and a secret of a carried kind."""
    rng = scene.rng
    if kind == "jwt":
        _set(scene, _JWT_NAMES, make_jwt(rng))
    elif kind == "password":
        _set(scene, _PASSWORD_NAMES, make_password(rng))
    elif rng.random() < 0.25:
        name = rng.choice(list(NAMED))
        _set(scene, name.lower(), draw_form(rng, NAMED[name]))
    else:
        service = rng.choice(list(_KEY_NAMES))
        _set(scene, _KEY_NAMES[service], make_key(rng, service))


def name_other(kind: str, scene: Scene) -> None:
    """Draws a name and a value that is no secret."""
    names, maker = scene.rng.choice(_NEGATIVES[kind])
    name, _, argument = maker.partition(":")
    _set(scene, names, _VALUES[name](scene, argument))


NAME_MAKERS: dict[str, Maker] = {
    "snake": lambda scene, _: "_".join(scene.words),
    "upper": lambda scene, _: "_".join(scene.words).upper(),
    "kebab": lambda scene, _: "-".join(scene.words),
    "dotted": lambda scene, _: ".".join(scene.words),
    "camel": lambda scene, _: scene.words[0] + "".join(word.title() for word in scene.words[1:]),
    "pascal": lambda scene, _: "".join(word.title() for word in scene.words),
    "spoken": lambda scene, _: " ".join(scene.words),
    "value": lambda scene, _: scene.value,
}
