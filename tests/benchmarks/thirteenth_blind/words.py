"""Fillers of the thirteenth blind set: people, firms, hosts, dates, strings that are no value."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Mapping

from tests.benchmarks.blind_set import Maker

BASE62 = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
FIRST_NAMES = (
    *("Hannah", "Jonas", "Meike", "Torsten", "Lucia", "Alvaro", "Ines", "Thibault", "Camille"),
    *("Beatriz", "Rodrigo", "Chiara", "Matteo", "Agnieszka", "Pawel", "Dmitri", "Olga", "Emre"),
    *("Zeynep", "Kenji", "Haruka", "Wei", "Xin", "Omar", "Layla", "Priya", "Arjun", "Grace"),
    *("Callum", "Fiona", "Tyler", "Megan", "Declan", "Saskia", "Pieter", "Astrid", "Nils"),
)
LAST_NAMES = (
    *("Brandstetter", "Kowalczyk", "Lindqvist", "Moreau", "Ferreira", "Okafor", "Tanaka", "Weiss"),
    *(
        "Delgado",
        "Rinaldi",
        "Yilmaz",
        "Petrov",
        "Sharma",
        "Hughes",
        "Novak",
        "Vermeulen",
        "Garnier",
    ),
    *("Ibarra", "Schuster", "Castelli", "Haddad", "Watanabe", "Zhang", "Marsh", "Keller", "Duarte"),
    *("Osborne", "Sorensen", "Bianchi", "Wieczorek", "Albrecht", "Quintero", "Lefebvre", "Mehta"),
)
FIRM_PARTS = (
    *("nord", "alpen", "blue", "green", "river", "stein", "metro", "quick", "solar", "pixel"),
    *("atlas", "harbor", "linden", "monte", "terra", "vector", "cedar", "ember", "fjord", "prima"),
)
FIRM_ENDS = (
    *("werk", "soft", "logistics", "labs", "media", "bau", "travel", "optik", "foods", "clinic"),
    *("systems", "print", "garden", "motors", "studio", "data", "verein", "school", "tools"),
)
TLDS = (
    *("com", "com", "com", "de", "de", "org", "net", "io", "fr", "es", "it", "pl", "co.uk"),
    *("com.br", "nl", "at", "ch", "ru", "com.tr", "co.jp", "cn", "in", "pt", "se", "eu"),
)
CITIES = (
    *("Leipzig", "Graz", "Lyon", "Sevilla", "Porto", "Torino", "Gdansk", "Kazan", "Izmir", "Osaka"),
    *("Chengdu", "Pune", "Leeds", "Denver", "Austin", "Curitiba", "Gent", "Malmo", "Cork"),
)
NOUNS = (
    *(
        "invoice",
        "report",
        "session",
        "worker",
        "gateway",
        "billing",
        "catalog",
        "mailer",
        "search",
    ),
    *("profile", "export", "sync", "inventory", "orders", "reviews", "metrics", "uploads", "queue"),
)
USERS = ("deploy", "app", "webapp", "svc_sync", "reporting", "backup", "django", "wp", "etl", "crm")
_PLACEHOLDERS = (
    *("CHANGE_ME", "your_password_here", "<password>", "********", "xxxxxxxx", "YOUR_PASSWORD"),
    *("${DB_PASSWORD}", "{{ db_password }}", "[redacted]", "<your-password>", "REPLACE_ME"),
    *("%PASSWORD%", "<secret>", "••••••••", "$PASSWORD", "TODO", "<hidden>"),
)
_TOKEN_PLACEHOLDERS = (
    *(
        "<token>",
        "YOUR_TOKEN",
        "YOUR_ACCESS_TOKEN",
        "${TOKEN}",
        "$TOKEN",
        "{{token}}",
        "<your-token>",
    ),
    *("{access_token}", "xxxxxxxxxxxxxxxx", "$ACCESS_TOKEN", "<access_token>", "%s", "[token]"),
    *("***", "INSERT_TOKEN_HERE", "{{ access_token }}", "<JWT>", "${{ secrets.API_TOKEN }}"),
)


def draw(rng: random.Random, alphabet: str, size: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choices(alphabet, k=size))


def mixed(rng: random.Random, size: int, alphabet: str = BASE62) -> str:
    """A random string that holds a small letter, a capital and a digit."""
    while True:
        text = draw(rng, alphabet, size)
        if any(map(str.isdigit, text)) and text.lower() != text != text.upper():
            return text


def base64_of(rng: random.Random, size: int) -> str:
    """Base64 of so many random bytes, with padding."""
    return base64.b64encode(rng.randbytes(size)).decode()


def make_domain(rng: random.Random) -> str:
    """A name that a firm could have registered."""
    joint = rng.choice(("", "", "", "-"))
    return f"{rng.choice(FIRM_PARTS)}{joint}{rng.choice(FIRM_ENDS)}.{rng.choice(TLDS)}"


def make_date(rng: random.Random) -> str:
    """A day of 2016 to 2025 as ISO 8601 writes it."""
    return f"{rng.randint(2016, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def make_uuid(rng: random.Random) -> str:
    """A random UUID of version 4 (RFC 9562)."""
    text = draw(rng, HEX, 32)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{rng.choice('89ab')}{text[17:20]}-{text[20:]}"


def _clock(rng: random.Random) -> str:
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _digits(rng: random.Random, size: int) -> str:
    return rng.choice("123456789") + draw(rng, string.digits, size - 1)


def _version(rng: random.Random) -> str:
    return f"{rng.randint(0, 12)}.{rng.randint(0, 30)}.{rng.randint(0, 20)}"


def _pick(*options: str) -> Maker:
    return lambda scene, _: scene.rng.choice(options)


FILLERS: Mapping[str, Maker] = {
    "first": _pick(*FIRST_NAMES),
    "last": _pick(*LAST_NAMES),
    "person": lambda s, _: f"{s.rng.choice(FIRST_NAMES)} {s.rng.choice(LAST_NAMES)}",
    "nick": lambda s, _: s.rng.choice(FIRST_NAMES).lower() + str(s.rng.randint(2, 99)),
    "firm": lambda s, _: (s.rng.choice(FIRM_PARTS) + s.rng.choice(FIRM_ENDS)).capitalize(),
    "repo": lambda s, _: f"{s.rng.choice(FIRM_PARTS)}-{s.rng.choice(NOUNS)}",
    "domain": lambda s, _: make_domain(s.rng),
    "host": lambda s, _: f"{s.rng.choice(NOUNS)}{s.rng.randint(1, 9)}.{make_domain(s.rng)}",
    "box": lambda s, _: (
        f"{s.rng.choice(('web', 'db', 'srv', 'node', 'vps'))}{s.rng.randint(1, 40):02}"
    ),
    "city": _pick(*CITIES),
    "noun": _pick(*NOUNS),
    "user": _pick(*USERS),
    "date": lambda s, _: make_date(s.rng),
    "time": lambda s, _: _clock(s.rng),
    "uuid": lambda s, _: make_uuid(s.rng),
    "ver": lambda s, _: _version(s.rng),
    "n": lambda s, size: _digits(s.rng, int(size)),
    "hex": lambda s, size: draw(s.rng, HEX, int(size)),
    "upper": lambda s, size: draw(s.rng, string.ascii_uppercase + string.digits, int(size)),
    "b62": lambda s, size: mixed(s.rng, int(size)),
    "b64": lambda s, size: base64_of(s.rng, int(size)),
    "ref": lambda s, size: draw(s.rng, string.ascii_lowercase, int(size)),
    "port": lambda s, _: str(
        s.rng.choice((22, 443, 3000, 5000, 8080, 8443, s.rng.randint(1024, 65000)))
    ),
    "ephemeral": lambda s, _: str(s.rng.randint(32768, 60999)),
    "small": lambda s, _: str(s.rng.randint(2, 90)),
    "no_password": _pick(*_PLACEHOLDERS),
    "no_token": _pick(*_TOKEN_PLACEHOLDERS),
}
