"""Names and values for the carriers: what a variable is called, and what stands in the place of a secret.

A carrier is a text that assigns a value to a name in a language or a format. As a positive it holds a
secret; as a hard negative the same text holds a placeholder, a reference to where the secret is kept,
or a setting of another kind.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable

from tests.benchmarks.blind_set import Scene
from tests.benchmarks.sixth_blind.credentials import (
    base64url,
    make_jwt,
    make_password,
)
from tests.benchmarks.sixth_blind.services import SERVICES, pick_service
from tests.benchmarks.sixth_blind.words import ALNUM, HEX, b64, chars, mixed, words_in

_JWT_NAMES = (
    "access token",
    "id token",
    "auth token",
    "jwt",
    "api token",
    "session token",
    "service role key",
)
_PASSWORD_NAMES = (
    "db password", "database password", "password", "admin password", "smtp password", "redis password",
    "mysql root password", "postgres password", "mail password", "ftp password", "ldap bind password",
    "keystore password", "rabbitmq password", "sudo password", "wifi password", "user passwd",
)  # fmt: skip
_SECRET_NAMES = (
    ("jwt secret", 64), ("session secret", 64), ("secret key", 64), ("app secret", 32), ("client secret", 40),
    ("secret key base", 128), ("cookie secret", 32), ("nextauth secret", 44), ("encryption key", 64),
    ("signing secret", 64),
)  # fmt: skip


def name_secret(kind: str, scene: Scene) -> None:
    """Give the scene a name and a secret of a kind: `provider_key`, `jwt` or `password`."""
    rng = scene.rng
    if kind == "provider_key":
        service = pick_service(rng)
        words, make = SERVICES[service]
        scene.words, scene.value = tuple(words.split()), make(rng)
    elif kind == "jwt":
        scene.words, scene.value = tuple(rng.choice(_JWT_NAMES).split()), make_jwt(rng)
    elif rng.random() < 0.65:
        scene.words, scene.value = tuple(rng.choice(_PASSWORD_NAMES).split()), make_password(rng)
    else:
        words, size = rng.choice(_SECRET_NAMES)
        value = b64(rng, 32) if size == 44 else mixed(rng, HEX if size != 40 else ALNUM, size)
        scene.words, scene.value = tuple(words.split()), value


def name_other(kind: str, scene: Scene) -> None:
    """Give the scene a name and a value that is no secret."""
    rng = scene.rng
    if rng.random() < 0.5:
        name_secret(kind, scene)
        scene.value = rng.choice(_replacements(kind, scene))
    else:
        words, make = rng.choice((*_SETTINGS, *_OWN.get(kind, ())))
        scene.words, scene.value = tuple(words.split()), make(rng)


def _replacements(kind: str, scene: Scene) -> list[str]:
    """Texts that stand where the scene's secret would: placeholders, references, masks."""
    _rng, words, secret = (
        scene.rng,
        scene.words,
        scene.value.replace("\x02", "").replace("\x03", ""),
    )
    upper, kebab, snake, text = (
        words_in(words, style) for style in ("upper", "kebab", "snake", "text")
    )
    general = [
        f"${{{upper}}}", f"${upper}", f"%{upper}%", f"{{{{ {snake} }}}}", f"<{kebab}>", f"<your {text}>",
        f"your-{kebab}", f"your_{snake}_here", f"YOUR_{upper}", f"REPLACE_WITH_{upper}", "changeme", "CHANGE_ME",
        "xxxxxxxxxxxxxxxx", "****************", "...", "redacted", "[REDACTED]", "TODO", "none",
        f"vault:secret/data/app#{snake}", f"op://infra/app/{kebab}", f"env:{upper}", f"insert {text} here",
        f"arn:aws:secretsmanager:eu-west-1:<account>:secret:{kebab}", f"projects/my-app/secrets/{kebab}/versions/latest",
        f"/run/secrets/{snake}", f"${{{upper}:-}}", f"${{{upper}:?missing}}", f"ssm:/app/prod/{snake}",
    ]  # fmt: skip
    if kind == "provider_key":
        mark = re.match(r"(?:[A-Za-z][A-Za-z0-9]{0,8}[_-]){1,2}|AKIA|AIza|SG\.", secret)
        if mark and not secret.startswith("http"):
            head = mark[0]
            general += [
                head + "x" * 24,
                head + "X" * 30,
                f"{head}...",
                f"{head}{'*' * 20}",
                f"{head}<redacted>",
            ] * 2
    if kind == "jwt":
        general += [
            "<jwt>",
            "header.payload.signature",
            "eyJ...",
            "xxxxx.yyyyy.zzzzz",
            "eyJhbGciOi...<snip>",
        ] * 2
    if kind == "password":
        general += [
            "password",
            "secret",
            "********",
            "my-secret-pw",
            "example",
            "test",
            "your_password",
        ] * 2
    return general


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(bytes=rng.randbytes(16), version=4))


def _fixed(*values: str) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(values)


_SETTINGS: tuple[tuple[str, Callable[[random.Random], str]], ...] = (
    ("git commit", lambda rng: chars(rng, HEX, 40)),
    ("build id", _uuid),
    ("image digest", lambda rng: "sha256:" + chars(rng, HEX, 64)),
    ("file checksum", lambda rng: chars(rng, HEX, 64)),
    ("content etag", lambda rng: chars(rng, HEX, 32)),
    ("trace id", lambda rng: chars(rng, HEX, 32)),
    ("tenant id", _uuid),
    ("bundle identifier", _fixed("com.trailhead.mobile", "io.feedlane.reader")),
    ("measurement id", lambda rng: "G-" + chars(rng, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 10)),
    ("s3 bucket", _fixed("feedlane-prod-assets-eu-west-1", "ledgerline-backups-2023")),
    ("sort key", _fixed("created_at", "tenant#invoice", "updated_at_desc")),
    ("token type", _fixed("bearer", "Bearer", "access_token", "opaque")),
    ("password policy", _fixed("min-12-upper-digit", "strict", "nist-800-63b")),
    ("token endpoint", _fixed("/oauth2/v1/token", "/realms/main/protocol/openid-connect/token")),
    ("public key path", _fixed("/etc/ssl/certs/app.pub", "keys/jwt_public.pem")),
    ("secret name", _fixed("prod-db-credentials", "app-tls", "registry-pull-secret")),
    ("cache key", _fixed("user:profile:v2:", "node-modules-v3-linux", "posts/index/page")),
    ("tokenizer name", _fixed("gpt2-medium", "bert-base-multilingual-cased", "cl100k_base")),
    ("password file", _fixed("/etc/app/password.txt", "~/.config/app/pw")),
    ("primary key", _fixed("customer_id", "invoice_line_id", "uuid_generate_v4()")),
    ("access token ttl", _fixed("15m", "3600", "P1D")),
    ("password hasher", _fixed("argon2id", "bcrypt", "pbkdf2_sha256")),
    ("schema version", lambda rng: f"{rng.randrange(2012, 2026)}{rng.randrange(10**9, 10**10)}"),
)
_OWN: dict[str, tuple[tuple[str, Callable[[random.Random], str]], ...]] = {
    "provider_key": (
        ("stripe publishable key", lambda rng: "pk_live_" + mixed(rng, ALNUM, 24)),
        ("stripe price id", lambda rng: "price_1" + mixed(rng, ALNUM, 23)),
        ("stripe customer", lambda rng: "cus_" + mixed(rng, ALNUM, 14)),
        ("google client id", lambda rng: f"{chars(rng, '123456789', 12)}-{chars(rng, 'abcdefgh0123456789', 32)}.apps.googleusercontent.com"),
        ("slack channel id", lambda rng: "C0" + chars(rng, "ABCDEFGHJKLMNP0123456789", 9)),
        ("aws role arn", lambda rng: f"arn:aws:iam::{chars(rng, '123456789', 12)}:role/deploy"),
        ("aws ami", lambda rng: "ami-0" + chars(rng, HEX, 16)),
        ("aws access key id", _fixed("AKIAIOSFODNN7EXAMPLE")),
        ("aws secret access key", _fixed("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")),
        ("npm integrity", lambda rng: "sha512-" + b64(rng, 64)),
        ("github client id", lambda rng: "Iv1." + chars(rng, HEX, 16)),
        ("azure subscription id", _uuid),
    ),
    "jwt": (
        ("next cursor", lambda rng: base64url(f'{{"offset":{rng.randrange(10**6)},"sort":"created_at"}}'.encode())),
        ("source map", lambda rng: base64url(f'{{"version":3,"file":"app.{rng.randrange(999)}.js","sources":[]}}'.encode())),
        ("jwt header", lambda rng: make_jwt(rng, 1)),
        ("page state", lambda rng: base64url(f'{{"page":{rng.randrange(99)},"filters":{{"lang":"en"}}}}'.encode())),
        ("main class", _fixed("org.mosswiki.server.boot.Application", "com.feedlane.ingest.pipeline.Main")),
        ("jwt algorithm", _fixed("RS256", "HS256", "ES384")),
        ("jwt issuer", _fixed("https://login.feedlane.io/", "accounts.ledgerline.net")),
        ("jwks uri", _fixed("https://login.feedlane.io/.well-known/jwks.json")),
    ),
    "password": (
        ("password label", _fixed("Enter your password", "Passwort eingeben", "Mot de passe")),
        ("password field", _fixed("user_password", "passwordInput", "login_form[password]")),
        ("forgot password url", _fixed("/account/forgot-password", "/reset")),
        ("password reset template", _fixed("emails/reset.html", "password_reset_v2")),
        ("secret type", _fixed("Opaque", "kubernetes.io/tls")),
        ("password column", _fixed("pwd_hash", "encrypted_password")),
        ("key file", _fixed("/etc/nginx/ssl/site.key", "certs/server.key")),
        ("passphrase prompt", _fixed("Enter passphrase for key:", "Passphrase (empty for none):")),
    ),
}  # fmt: skip
