"""What a carrier assigns: a secret under its name, or something that only looks alike."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.eighth_blind.credentials import (
    make_app_secret,
    make_generated,
    make_human,
    make_jwt,
)
from tests.benchmarks.eighth_blind.services import SERVICES, make_key, name_of
from tests.benchmarks.eighth_blind.words import (
    HEX,
    PROJECTS,
    draw_from,
    draw_pattern,
    make_domain,
    make_uuid,
    words_of,
)

_JWT_NAMES = words_of(
    "id_token access_token session_jwt service_jwt auth_token sync_jwt refresh_jwt"
)
_PASSWORDS = words_of(
    "db_password smtp_password admin_password ldap_bind_password keystore_password root_password "
    "vpn_password wifi_password backup_passphrase sudo_password mqtt_password imap_password "
    "grafana_admin_password sftp_password ipmi_password"
)
_APP_SECRETS = words_of(
    "session_secret flask_secret_key cookie_secret signing_secret encryption_secret"
)

# names of things that stand next to secrets, each with its harmless value
_NEIGHBOURS: dict[str, Callable[[random.Random], str]] = {
    "token_endpoint": lambda rng: f"https://login.{make_domain(rng)}/oauth2/token",
    "token_ttl_seconds": lambda rng: str(rng.choice([300, 900, 3600])),
    "tokenizer_revision": lambda rng: draw_from(rng, HEX, 40),
    "key_prefix": lambda rng: f"{rng.choice(PROJECTS)}:{rng.choice(PROJECTS)}:v{rng.randrange(9)}",
    "primary_key": lambda rng: rng.choice(["invoice_id", "tenant_uuid", "parcel_no"]),
    "key_file": lambda rng: f"/etc/{rng.choice(PROJECTS)}/tls/server.key",
    "cache_key": lambda rng: f"deps-{rng.choice(PROJECTS)}-{draw_from(rng, HEX, 12)}",
    "trace_id": lambda rng: draw_from(rng, HEX, 32),
    "image_digest": lambda rng: "sha256:" + draw_from(rng, HEX, 64),
    "request_id": make_uuid,
    "secret_name": lambda rng: f"{rng.choice(PROJECTS)}-{rng.choice(['db', 'tls', 'api'])}",
    "secret_ref": lambda rng: f"vault:kv/data/{rng.choice(PROJECTS)}#value",
}
_PASSWORD_NEIGHBOURS: dict[str, Callable[[random.Random], str]] = {
    "password_min_length": lambda rng: str(rng.randrange(8, 20)),
    "password_reset_url": lambda rng: f"https://{make_domain(rng)}/account/reset",
    "password_hasher": lambda rng: rng.choice(["argon2id", "pbkdf2_sha256", "bcrypt"]),
    "password_file": lambda rng: f"/run/secrets/{rng.choice(PROJECTS)}_db",
    "password_policy": lambda rng: rng.choice(["strict", "upper-lower-digit", "nist-800-63b"]),
    "password_label": lambda rng: rng.choice(["Contraseña", "Heslo", "Salasana", "Wachtwoord"]),
    "password_input_id": lambda rng: rng.choice(["login-password", "pwd-field", "txtPassword"]),
    "password_expiry_days": lambda rng: str(rng.choice([30, 60, 90])),
    "secret_backend": lambda rng: rng.choice(["hashicorp-vault", "aws-secretsmanager", "sops"]),
}


def _references(name: str) -> list[str]:
    upper, dashed = name.upper(), name.replace("_", "-")
    return [
        *(f"${{{upper}}}", f"{{{{ vault_{name} }}}}", f"<your-{dashed}>", f"YOUR_{upper}"),
        *("***", "<redacted>", f"%{upper}%", f"op://infra/{dashed}/credential", "xxxxxxxxxxxx"),
        *(f"{{{{ lookup('env', '{upper}') }}}}".replace("'", ""), "REPLACE_ME", "********"),
        *(f"${{{{ secrets.{upper} }}}}", f"!vault {dashed}", f"your-{dashed}-here"),
    ]


def name_secret(kind: str, scene: Scene) -> None:
    """Draw the name of a secret of the kind, and its value."""
    rng = scene.rng
    if kind == "provider_key":
        service = rng.choice(SERVICES)
        name, scene.value = name_of(service), make_key(rng, service)
    elif kind == "jwt":
        name, scene.value = rng.choice(_JWT_NAMES), make_jwt(rng)
    elif rng.random() < 0.2:
        name, scene.value = rng.choice(_APP_SECRETS), make_app_secret(rng)
    else:
        name = rng.choice(_PASSWORDS)
        scene.value = make_human(rng) if rng.random() < 0.4 else make_generated(rng, "!%*-_+=.?")
    scene.words = tuple(name.split("_"))


def name_other(kind: str, scene: Scene) -> None:
    """Draw a secret's name with a placeholder, or a neighbour's name with its value."""
    rng = scene.rng
    neighbours = _PASSWORD_NEIGHBOURS if kind == "password" else _NEIGHBOURS
    if rng.random() < 0.5:
        name = rng.choice(list(neighbours))
        scene.value = neighbours[name](rng)
    else:
        names = {"jwt": _JWT_NAMES, "password": _PASSWORDS}.get(kind)
        name = rng.choice(names) if names else name_of(rng.choice(SERVICES))
        scene.value = rng.choice([*_references(name), *_cut(kind, rng)])
    scene.words = tuple(name.split("_"))


def _cut(kind: str, rng: random.Random) -> list[str]:
    """Values of which a writer kept the head alone."""
    if kind == "jwt":
        return [make_jwt(rng).split(".")[0] + "...", "eyJhbGciOi...", "header.payload.signature"]
    if kind == "provider_key":
        heads = ["ghp_", "sk-proj-", "xoxb-", "glpat-", "hf_", "npm_", "dop_v1_", "SG."]
        filler = rng.choice(["xxxxxxxxxxxxxxxxxxxx", "..."])
        return [draw_pattern(rng, rng.choice(heads) + "[A-F]?..."), rng.choice(heads) + filler]
    return ["changeme", "{password}"]


def _camel(scene: Scene, argument: str) -> str:
    first, *rest = scene.words
    return first + "".join(word.title() for word in rest)


NAME_MAKERS: dict[str, Maker] = {
    "ENV": lambda scene, argument: "_".join(scene.words).upper(),
    "snake": lambda scene, argument: "_".join(scene.words),
    "kebab": lambda scene, argument: "-".join(scene.words),
    "dotted": lambda scene, argument: ".".join(scene.words),
    "camel": _camel,
    "Pascal": lambda scene, argument: "".join(word.title() for word in scene.words),
    "label": lambda scene, argument: " ".join(scene.words).capitalize(),
    "value": lambda scene, argument: scene.value,
}
