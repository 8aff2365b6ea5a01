"""Passwords of the thirteenth blind set, and the names and values that fill its carriers."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.thirteenth_blind.tokens import make_jwt, make_key
from tests.benchmarks.thirteenth_blind.words import (
    BASE62,
    FILLERS,
    FIRST_NAMES,
    HEX,
    base64_of,
    draw,
    mixed,
)

_WORDS = (
    *("Kestrel", "Sommer", "Lantern", "Orange", "Winter", "Tiger", "Granit", "Falcon", "Marina"),
    *(
        "Bonsai",
        "Pelikan",
        "Velvet",
        "Cobalt",
        "Monsoon",
        "Juniper",
        "Bergsee",
        "Soleil",
        "Azafran",
    ),
    *("Krakow", "Dragon", "Coffee", "Quartz", "Nevada", "Herbst", "Sakura", "Madrid", "Hockey"),
)
SECRET_NAMES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "password": (
        *(("db", "password"), ("db", "password"), ("database", "password"), ("smtp", "password")),
        *(("mail", "password"), ("admin", "password"), ("redis", "password"), ("ftp", "password")),
        *(("mysql", "root", "password"), ("postgres", "password"), ("keystore", "password")),
        *(("ldap", "bind", "password"), ("client", "secret"), ("app", "secret"), ("jwt", "secret")),
        *(
            ("session", "secret"),
            ("secret", "key", "base"),
            ("cookie", "secret"),
            ("webhook", "secret"),
        ),
        *(("rabbitmq", "password"), ("grafana", "admin", "password"), ("wifi", "password")),
    ),
    "jwt": (
        *(("access", "token"), ("id", "token"), ("auth", "token"), ("jwt",), ("session", "token")),
        *(("api", "token"), ("supabase", "service", "role", "key"), ("user", "token")),
    ),
}
_SERVICE_NAMES: Mapping[str, tuple[str, ...]] = {
    "github": ("github", "token"),
    "gitlab": ("gitlab", "token"),
    "openai": ("openai", "api", "key"),
    "anthropic": ("anthropic", "api", "key"),
    "google": ("google", "maps", "api", "key"),
    "slack": ("slack", "bot", "token"),
    "stripe": ("stripe", "secret", "key"),
    "sendgrid": ("sendgrid", "api", "key"),
    "telegram": ("telegram", "bot", "token"),
    "hugging_face": ("hf", "token"),
    "digitalocean": ("do", "api", "token"),
    "aws": ("aws", "secret", "access", "key"),
    "hex32": ("twilio", "auth", "token"),
    "npm": ("npm", "token"),
    "mailgun": ("mailgun", "api", "key"),
    "discord": ("discord", "token"),
    "groq": ("groq", "api", "key"),
    "databricks": ("databricks", "token"),
    "azure": ("azure", "storage", "account", "key"),
    "mailchimp": ("mailchimp", "api", "key"),
    "google_oauth": ("google", "client", "secret"),
    "stripe_webhook": ("stripe", "webhook", "secret"),
}
_Value = Callable[[Scene], str]


def _fixed(*values: str) -> _Value:
    return lambda scene: scene.rng.choice(values)


def _fill(name: str, argument: str = "", before: str = "") -> _Value:
    return lambda scene: before + FILLERS[name](scene, argument)


_OTHERS: Mapping[str, tuple[tuple[tuple[str, ...], _Value], ...]] = {
    "password": (
        (("db", "password"), _fill("no_password")),
        (("smtp", "password"), _fill("no_password")),
        (("password", "min", "length"), _fixed("8", "10", "12")),
        (("password", "file"), _fixed("/run/secrets/db_password", "/etc/mail/relay.secret")),
        (("secret", "name"), _fill("noun", before="prod-credentials-")),
        (("password", "reset", "path"), _fixed("/account/reset", "/users/password/new")),
        (("password", "hasher"), _fixed("argon2id", "bcrypt", "pbkdf2_sha256")),
        (
            ("token", "url"),
            _fixed("/oauth2/v1/token", "/realms/main/protocol/openid-connect/token"),
        ),
        (("session", "cookie", "name"), _fixed("sid", "connect.sid", "laravel_session")),
        (("primary", "key"), _fixed("order_id", "uuid", "customer_no")),
        (("password", "policy"), _fixed("strong", "nist-800-63b")),
        (("max", "tokens"), _fixed("512", "2048", "4096")),
        (("ssh", "key", "path"), _fixed("~/.ssh/id_ed25519", "/home/ci/.ssh/deploy")),
        (("key", "prefix"), _fill("noun", before="cache.")),
        (("password", "env"), _fixed("PGPASSWORD", "APP_DB_PASSWORD")),
        (("secret", "version"), _fixed("3", "latest", "12")),
    ),
    "provider_key": (
        (("github", "token"), _fixed("${GITHUB_TOKEN}", "ghp_xxxxxxxxxxxxxxxxxxxx", "<your PAT>")),
        (("openai", "api", "key"), _fixed("sk-...", "sk-xxxxxxxxxxxxxxxx", "YOUR_OPENAI_API_KEY")),
        (("commit", "sha"), _fill("hex", "40")),
        (("image", "digest"), _fill("hex", "64", "sha256:")),
        (("request", "id"), _fill("uuid")),
        (("stripe", "publishable", "key"), _fill("b62", "24", "pk_live_")),
        (("measurement", "id"), _fill("upper", "10", "G-")),
        (("aws", "account", "id"), _fill("n", "12")),
        (("aws", "access", "key", "id"), _fixed("AKIAIOSFODNN7EXAMPLE")),
        (("build", "hash"), _fill("hex", "20")),
        (("slack", "channel"), _fill("upper", "9", "C0")),
        (("twilio", "account", "sid"), _fill("hex", "32", "AC")),
        (("stripe", "price", "id"), _fill("b62", "24", "price_1")),
        (("api", "key", "header"), _fixed("X-API-Key", "apikey")),
        (("etag",), _fill("hex", "32")),
    ),
    "jwt": (
        (("access", "token"), _fill("no_token")),
        (("auth", "token"), _fixed("eyJ...", "eyJhbGciOiJIUzI1NiIs...", "<paste JWT here>")),
        (("jwks", "uri"), _fixed("/.well-known/jwks.json", "/oauth2/v3/certs")),
        (("token", "ttl"), _fixed("3600", "15m", "86400")),
        (("jwt", "algorithm"), _fixed("RS256", "HS256", "ES256")),
        (("commit",), _fill("hex", "40")),
        (("session", "id"), _fill("uuid")),
        (("trace", "id"), _fill("hex", "32")),
        (("integrity",), _fill("b64", "48", "sha384-")),
        (("token", "issuer"), _fill("domain", before="https://login.")),
        (("package",), _fixed("com.auth0.jwt.algorithms", "io.jsonwebtoken.impl.crypto")),
    ),
}


def make_password(rng: random.Random, style: str = "") -> str:
    """A password that a person or a program chose; `safe`: letters, digits, `-` and `_` only."""
    word, sort = rng.choice(_WORDS), rng.random()
    if sort < 0.3:
        joint = rng.choice("-_") if style == "safe" else rng.choice("#!@*-_.")
        tail = "" if style == "safe" else rng.choice(("", "!", "!", "*", "?"))
        return f"{word}{joint}{rng.randint(100, 9999)}{tail}"
    if sort < 0.45:
        return f"{word.lower()}{rng.choice(FIRST_NAMES).lower()}{rng.randint(10, 2024)}"
    if sort < 0.6 and style != "safe":
        body = mixed(rng, rng.randint(8, 14), BASE62 + "!#%*+=?@^_-")
        return rng.choice(BASE62) + body + rng.choice(BASE62)
    if sort < 0.7:
        leet = word.replace("a", "4").replace("e", "3").replace("o", "0").replace("i", "1")
        return f"{leet}{rng.randint(10, 999)}{rng.choice(('x', 'Q', 'zz', 'Kp'))}"
    if sort < 0.76:
        other, last = rng.sample(_WORDS, 2)
        return f"{word.lower()}-{other.lower()}-{last.lower()}-{rng.randint(10, 99)}"
    return mixed(rng, rng.choice((10, 12, 16, 20, 24)))


def make_secret(rng: random.Random) -> str:
    """A secret that a program drew for an application."""
    sort = rng.random()
    if sort < 0.4:
        return draw(rng, HEX, rng.choice((32, 64, 128)))
    if sort < 0.75:
        return mixed(rng, rng.choice((32, 40, 50, 64)))
    return base64_of(rng, 32)


def _url_password(rng: random.Random) -> str:
    if rng.random() < 0.15:
        escaped = rng.choice(("%40", "%23", "%21", "%2F"))
        return f"{rng.choice(_WORDS)}{escaped}{rng.randint(10, 9999)}"
    return make_password(rng, "safe")


def name_secret(kind: str, scene: Scene) -> None:
    """Name and value of a carrier's text in which the value is a secret of the kind."""
    rng = scene.rng
    if kind == "provider_key":
        service = rng.choice(tuple(_SERVICE_NAMES))
        scene.words, scene.value = _SERVICE_NAMES[service], make_key(rng, service)
        return
    scene.words = rng.choice(SECRET_NAMES[kind])
    if kind == "jwt":
        scene.value = make_jwt(rng)
    elif {"secret", "base"} & set(scene.words):
        scene.value = make_secret(rng)
    else:
        scene.value = make_password(rng, "safe")


def name_other(kind: str, scene: Scene) -> None:
    """Name and value of a carrier's text in which the value is no secret."""
    scene.words, value = scene.rng.choice(_OTHERS[kind])
    scene.value = value(scene)


def _camel(words: tuple[str, ...]) -> str:
    return words[0] + string.capwords(" ".join(words[1:])).replace(" ", "")


NAME_MAKERS: Mapping[str, Maker] = {
    "password": lambda s, style: make_password(s.rng, style),
    "secret": lambda s, _: make_secret(s.rng),
    "url_password": lambda s, _: _url_password(s.rng),
    "value": lambda s, _: s.value,
    "snake": lambda s, _: "_".join(s.words),
    "screaming": lambda s, _: "_".join(s.words).upper(),
    "camel": lambda s, _: _camel(s.words),
    "kebab": lambda s, _: "-".join(s.words),
    "dotted": lambda s, _: ".".join(s.words),
    "spaced": lambda s, _: " ".join(s.words),
}
