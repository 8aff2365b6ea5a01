"""Names and values for the carriers: assignments of a secret, or of what only looks like one."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.benchmarks.fifth_blind.credentials import (
    CREDENTIAL_MAKERS,
    make_jwt,
    make_password,
    make_secret,
)
from tests.benchmarks.fifth_blind.fillers import (
    ALNUM,
    DIGITS,
    FILLERS,
    HEX,
    UPPER,
    URLSAFE,
    chars,
    split_words,
    words_form,
)
from tests.benchmarks.fifth_blind.services import SERVICES, draw_service
from tests.benchmarks.fifth_blind.templates import Scene

_TOKENS = split_words("token_names", ", ")
_PASSWORDS = split_words("password_names", ", ")
_SECRETS = split_words("secret_names", ", ")


def name_secret(kind: str, scene: Scene) -> None:
    """Give the scene a name and a secret of a kind of carriers: jwt, provider_key or password."""
    rng = scene.rng
    if kind == "jwt":
        scene.words, scene.value = tuple(rng.choice(_TOKENS).split()), make_jwt(scene, "")
    elif kind == "provider_key":
        service = SERVICES[draw_service(rng, marked=False)]
        scene.words, scene.value = service.words, service.make(rng)
    elif rng.random() < 0.6:
        scene.words = tuple(rng.choice(_PASSWORDS).split())
        scene.value = make_password(scene, "marks")
    else:
        scene.words, scene.value = tuple(rng.choice(_SECRETS).split()), make_secret(scene, "")


def name_other(kind: str, scene: Scene) -> None:
    """Give the scene a name and a value that is no secret: a placeholder, or another setting."""
    if scene.rng.random() < 0.45:
        words, value = scene.rng.choice(_OTHERS[kind])(scene)
        scene.words, scene.value = tuple(words.split()), value
        return
    name_secret(kind, scene)
    scene.value = _placeholder(kind, scene, scene.value)


def _placeholder(kind: str, scene: Scene, secret: str) -> str:
    """A text in the place of a secret, whose name the scene has."""
    rng, words = scene.rng, scene.words
    upper, snake, kebab = (words_form(words, form) for form in ("upper", "", "kebab"))
    general = [
        f"${{{upper}}}",
        f"<{snake}>",
        f"<your-{kebab}>",
        f"YOUR_{upper}",
        f"your_{snake}_here",
        f"{{{{ {snake} }}}}",
        f"vault:secret/data/{rng.choice(('ci', 'prod', 'app'))}#{snake}",
        f"op://Infra/{kebab}/credential",
        f"/run/secrets/{snake}",
        f"%{upper}%",
        f"REPLACE_WITH_{upper}",
        "arn:aws:secretsmanager:eu-west-1:" + chars(rng, DIGITS, 12) + f":secret:{kebab}",
        "ENC[AES256_GCM,data:" + FILLERS["base64"](scene, "24") + ",type:str]",
        rng.choice(
            ("xxxxxxxxxxxx", "****************", "REDACTED", "[hidden]", "<redacted>", "...")
        ),
        rng.choice(("changeme", "CHANGE_ME", "change-me", "TODO", "replace-me", "none", "dummy")),
    ]
    if kind == "jwt":
        own = ["eyJhbGciOi...", "header.payload.signature", "eyJ...<snip>", "your.jwt.token"]
    elif kind == "provider_key":
        prefix = next((secret[:end] for end in range(8, 2, -1) if secret[end - 1] in "-_."), "")
        own = [
            f"{prefix}{'x' * rng.randrange(16, 40)}",
            f"{prefix}{'X' * rng.randrange(16, 40)}",
            f"{prefix}...",
            f"{prefix}your-key-here",
            f"{prefix}{'*' * 20}{secret[-4:]}",
        ]
    else:
        own = ["your-password", "mypassword", "password-goes-here", "<password>", "********"]
    return rng.choice(general if rng.random() < 0.65 else own)


def _fixed(words: str, value: str) -> Callable[[Scene], tuple[str, str]]:
    return lambda _: (words, value)


def _drawn(words: str, make: Callable[[random.Random], str]) -> Callable[[Scene], tuple[str, str]]:
    return lambda scene: (words, make(scene.rng))


def _uuid(rng: random.Random) -> str:
    return FILLERS["uuid"](Scene(rng), "")


def _cursor(rng: random.Random) -> str:
    return CREDENTIAL_MAKERS["b64json"](Scene(rng), "offset")


_SETTINGS = (
    _drawn("image digest", lambda rng: "sha256:" + chars(rng, HEX, 64)),
    _drawn("commit sha", lambda rng: chars(rng, HEX, 40)),
    _drawn("build id", _uuid),
    _drawn("file md5", lambda rng: chars(rng, HEX, 32)),
)

_OTHERS: dict[str, tuple[Callable[[Scene], tuple[str, str]], ...]] = {
    "jwt": (
        *_SETTINGS,
        _drawn("next cursor", _cursor),
        _drawn("page cursor", _cursor),
        _fixed("jwt algorithm", "RS256"),
        _fixed("token class", "org.springframework.security.oauth2.jwt.Jwt"),
        _fixed("jwt header name", "X-Auth-Jwt"),
        _fixed("token url", "/oauth2/v2.0/token"),
        _fixed("token issuer", "accounts.service.internal"),
        _drawn("integrity", lambda rng: "sha512-" + FILLERS["base64"](Scene(rng), "64")),
        _drawn("key id", lambda rng: chars(rng, URLSAFE, 27)),
        _fixed("cookie name", "access_token_cookie"),
    ),
    "provider_key": (
        *_SETTINGS,
        _drawn("integrity", lambda rng: "sha384-" + FILLERS["base64"](Scene(rng), "48")),
        _drawn("stripe publishable key", lambda rng: "pk_live_51" + chars(rng, ALNUM, 97)),
        _drawn("stripe price id", lambda rng: "price_1" + chars(rng, ALNUM, 23)),
        _drawn("stripe customer id", lambda rng: "cus_" + chars(rng, ALNUM, 14)),
        _drawn("slack channel id", lambda rng: "C0" + chars(rng, UPPER + DIGITS, 9)),
        _drawn("aws account id", lambda rng: chars(rng, DIGITS, 12)),
        _drawn("aws subnet id", lambda rng: "subnet-0" + chars(rng, HEX, 16)),
        _drawn("recaptcha site key", lambda rng: "6L" + chars(rng, URLSAFE, 38)),
        _drawn("ga measurement id", lambda rng: "G-" + chars(rng, UPPER + DIGITS, 10)),
        _drawn("contract address", lambda rng: "0x" + chars(rng, HEX, 40)),
        _drawn("cloudflare zone id", lambda rng: chars(rng, HEX, 32)),
        _drawn("model revision", lambda rng: chars(rng, HEX, 40)),
        _fixed("openai model", "gpt-4o-mini-2024-07-18"),
        _fixed("aws access key id", "AKIAIOSFODNN7EXAMPLE"),
        _fixed("aws secret access key", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        _fixed("api key header", "X-Api-Key"),
        _fixed("github token file", "/etc/ci/github-token"),
    ),
    "password": (
        _fixed("password min length", "12"),
        _fixed("password policy", "strict"),
        _fixed("password hash algorithm", "argon2id"),
        _fixed("password reset url", "/account/password/reset"),
        _fixed("password file", "/run/secrets/db_password"),
        _fixed("password label", "Your password"),
        _fixed("password hint", "At least 8 characters"),
        _fixed("password field", "user_password"),
        _fixed("password reset template", "mail/password_reset.html"),
        _fixed("password expiry days", "90"),
        _fixed("secret name", "orders-db-credentials"),
        _fixed("secret store", "aws-secretsmanager"),
        _fixed("token type", "Bearer"),
        _fixed("token lifetime", "3600"),
        _fixed("primary key", "customer_id"),
        _fixed("cache key prefix", "orders:v2"),
        _fixed("key vault name", "kv-orders-prod"),
        _fixed("private key path", "/etc/ssl/private/server.key"),
        _fixed("csrf cookie name", "csrftoken"),
        _fixed("tokenizer name", "bert-base-uncased"),
        _fixed("secret santa date", "December 19"),
        _drawn(
            "password changed at", lambda rng: f"{rng.randrange(2015, 2026)}-04-1{rng.randrange(9)}"
        ),
        _drawn("config checksum", lambda rng: chars(rng, HEX, 64)),
        _drawn("public key id", lambda rng: chars(rng, HEX.upper(), 16)),
    ),
}
