"""Names and values of the carriers: assignments of a secret or of something harmless."""

from __future__ import annotations

import random
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.seventh_blind.credentials import (
    encode_json,
    make_jwt,
    make_password,
    make_phrase,
    make_secret,
)
from tests.benchmarks.seventh_blind.services import SERVICES, UNFORMED
from tests.benchmarks.seventh_blind.words import ALNUM, BASE64URL, HEX, WORDS, draw

NAME_MAKERS: dict[str, Maker] = {
    "value": lambda scene, _: scene.value,
    "NAME": lambda scene, _: "_".join(scene.words).upper(),
    "name": lambda scene, _: "_".join(scene.words),
    "kebab": lambda scene, _: "-".join(scene.words),
    "camel": lambda scene, _: scene.words[0] + "".join(map(str.title, scene.words[1:])),
}
"""The value of a carrier, and its name in the writings of constants, variables, keys and Java."""

_PASSWORD_NAMES = (
    *("db password", "admin password", "smtp password", "mysql root password", "redis password"),
    *(
        "session secret",
        "django secret key",
        "cookie secret",
        "ldap bind password",
        "wifi password",
    ),
    *("keystore password", "backup encryption passphrase", "rabbitmq password", "ftp password"),
)
_JWT_NAMES = ("auth token", "access token", "id token", "service jwt", "session jwt", "api jwt")


def name_secret(kind: str, scene: Scene) -> None:
    """Sets a name and a value of a kind for a carrier."""
    rng = scene.rng
    if kind == "provider_key":
        services = {**SERVICES, **UNFORMED}
        words, make = services[rng.choice(sorted(services))]
        scene.value = make(rng)
    elif kind == "jwt":
        words, scene.value = rng.choice(_JWT_NAMES), make_jwt(rng, short=rng.random() < 0.5)
    else:
        words = rng.choice(_PASSWORD_NAMES)
        generated = "secret" in words
        scene.value = make_secret(rng) if generated else make_password(rng)
        if "passphrase" in words:
            scene.value = make_phrase(rng)
    scene.words = tuple(words.split())


def name_other(kind: str, scene: Scene) -> None:
    """Sets a name and a harmless value that look like those of a kind, for a carrier."""
    rng = scene.rng
    words, value = rng.choice(_others(kind, rng))
    scene.words, scene.value = tuple(words.split()), value


def _others(kind: str, rng: random.Random) -> tuple[tuple[str, str], ...]:
    word, other = rng.sample(WORDS, 2)
    if kind == "provider_key":
        return (
            ("stripe price id", f"price_1{draw(rng, ALNUM, 23)}"),
            ("stripe publishable key", f"pk_live_51{draw(rng, ALNUM, 97)}"),
            ("build sha", draw(rng, HEX, 40)),
            ("image digest", f"sha256:{draw(rng, HEX, 64)}"),
            ("github app id", str(rng.randint(100000, 999999))),
            ("slack channel id", f"C0{draw(rng, string.ascii_uppercase, 9)}"),
            ("openai api key", rng.choice(("<your-openai-key>", "sk-your-key-here"))),
            ("openai model", f"ft:gpt-3.5-turbo:{word}-{other}"),
            ("api key header", f"X-{word.title()}-Api-Key"),
            ("github token secret name", f"{word}-{other}-github-token"),
            ("aws region", rng.choice(("eu-west-3", "ap-south-1", "sa-east-1"))),
            ("api key path", f"/run/secrets/{word}_api_key"),
        )
    if kind == "jwt":
        return (
            ("next cursor", encode_json({"after": rng.randint(1000, 10**9), "limit": 50})),
            ("asset name", f"{draw(rng, BASE64URL, 22)}.{draw(rng, BASE64URL, 12)}.min.js"),
            ("build fingerprint", ".".join(draw(rng, HEX, 32) for _ in range(3))),
            ("jwt issuer", f"https://login.{word}-{other}.io/"),
            ("auth token", rng.choice(("eyJ...", "<jwt>", "eyJhbGciOi...", "your.jwt.here"))),
            ("id token class", f"io.{word}.{other}.auth.IdTokenVerifier"),
            ("jwks uri", f"https://login.{word}.io/{other}/.well-known/jwks.json"),
            ("page state", encode_json({word: other, "page": rng.randint(2, 900)})),
            ("key thumbprint", draw(rng, BASE64URL, 43)),
        )
    return (
        ("password min length", str(rng.randint(8, 64))),
        ("password reset url", f"/account/{word}/reset-password"),
        ("password file", f"/run/secrets/{word}_{other}_password"),
        ("db password", rng.choice(("changeme", "<password>", "********", "your-password-here"))),
        ("password hint", f"the {word} from our {other} trip"),
        ("secret name", f"prod/{word}/{other}-credentials"),
        ("password field", f"input_{word}_password"),
        ("password hash algorithm", rng.choice(("argon2id", "bcrypt", "scrypt", "pbkdf2_sha256"))),
        ("password policy", f"{word}-{other}-strict"),
        ("token endpoint", f"https://login.{word}.io/{other}/token"),
        ("password expires days", str(rng.randint(30, 365))),
        ("secret rotation schedule", f"{rng.randint(0, 59)} {rng.randint(0, 23)} * * 0"),
    )
