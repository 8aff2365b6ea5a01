"""What the carriers of the tenth blind set assign: a secret with its name, or another value."""

from __future__ import annotations

import random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.tenth_blind.keys import make_jwt
from tests.benchmarks.tenth_blind.services import EVERY, cased, make_key, make_password, variable_of
from tests.benchmarks.tenth_blind.words import pick, split

PASSWORDS = split("""
DB_PASSWORD DB_PASS MYSQL_PASSWORD POSTGRES_PASSWORD ADMIN_PASSWORD SMTP_PASSWORD REDIS_PASSWORD
EMAIL_PASSWORD FTP_PASSWORD WIFI_PASSWORD ROOT_PASSWORD MAIL_PASS KEYSTORE_PASSWORD JWT_SECRET
SESSION_SECRET APP_SECRET PASSWORD LDAP_BIND_PASSWORD
""")
TOKENS = split(
    "ACCESS_TOKEN AUTH_TOKEN JWT_TOKEN ID_TOKEN TOKEN SESSION_TOKEN SERVICE_ROLE_KEY API_TOKEN"
)
PLACEHOLDERS = split("""
your_{0}_here|your_{0}|YOUR_{1}|<{2}>|${{{1}}}|${{{1}}}|{{{{ {0} }}}}|********|changeme
replace_me|xxxxxxxxxxxxxxxx|REPLACE_WITH_{1}|$({1})|%{1}%|<your-{2}>|your-{2}-here|${{{1}:-}}
@{0}@
""")
SETTINGS = {
    "BUILD_COMMIT": "hex:40",
    "GIT_SHA": "hex:7",
    "SCHEMA_HASH": "hex:64",
    "REQUEST_ID": "uuid",
    "TENANT_ID": "uuid",
    "PASSWORD_MIN_LENGTH": "number",
    "TOKEN_EXPIRY": "number",
    "MAX_TOKENS": "number",
    "TOKEN_URL": "url",
    "PASSWORD_RESET_URL": "url",
    "SECRET_NAME": "path",
    "KEY_FILE": "path",
    "API_VERSION": "date",
    "TOKEN_TYPE": "word",
    "API_BASE": "url",
}


def remember(scene: Scene, name: str, value: str) -> None:
    """Keep what a carrier's slots will write."""
    scene.memory["carried name"], scene.value = name, value


def name_secret(kind: str, scene: Scene) -> None:
    """Choose the name and value that a carrier of a positive assigns."""
    rng = scene.rng
    if kind == "jwt":
        remember(scene, rng.choice(TOKENS), make_jwt(scene))
    elif kind == "password":
        remember(scene, rng.choice(PASSWORDS), make_password(rng).replace("$", "+"))
    else:
        service = rng.choice(EVERY)
        remember(scene, variable_of(rng, service), make_key(rng, service))


def setting(rng: random.Random, form: str) -> str:
    """A value of a setting that is no secret."""
    return {
        "hex:40": pick(rng, "0123456789abcdef", 40),
        "hex:7": pick(rng, "0123456789abcdef", 7),
        "hex:64": pick(rng, "0123456789abcdef", 64),
        "uuid": "-".join(pick(rng, "0123456789abcdef", size) for size in (8, 4, 4, 4, 12)),
        "number": str(rng.choice([8, 12, 16, 60, 900, 1024, 3600, 4096])),
        "url": rng.choice(["https", "http"])
        + f"://api.internal:{rng.randint(3000, 9000)}/v{rng.randint(1, 3)}",
        "path": f"/etc/app/{pick(rng, 'abcdefghijklmnop', 6)}.{rng.choice(['key', 'pem', 'txt'])}",
        "date": f"20{rng.randint(18, 26)}-{rng.randint(10, 12)}-{rng.randint(10, 28)}",
        "word": rng.choice(["bearer", "opaque", "refresh", "basic"]) + str(rng.randint(1, 9)),
    }[form]


def name_other(kind: str, scene: Scene) -> None:
    """Choose what a carrier of a negative assigns: a placeholder, a reference or a setting."""
    rng = scene.rng
    if rng.random() < 0.3:
        name = rng.choice(list(SETTINGS))
        remember(scene, name, setting(rng, SETTINGS[name]))
        return
    if kind == "provider_key":
        name = variable_of(rng, rng.choice(EVERY))
    else:
        name = rng.choice(TOKENS if kind == "jwt" else PASSWORDS)
    lower = cased(name, "lower")
    remember(scene, name, rng.choice(PLACEHOLDERS).format(lower, name, cased(name, "kebab")))


NAME_MAKERS: dict[str, Maker] = {
    "name": lambda scene, argument: cased(scene.memory["carried name"], argument),
    "value": lambda scene, argument: scene.value,
}
