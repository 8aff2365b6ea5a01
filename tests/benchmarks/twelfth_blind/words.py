"""Words of the twelfth blind set around the values: names, places, times, identifiers."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tests.benchmarks.blind_set import Maker, Scene

FIRST = (
    *("Alice", "Bastian", "Carla", "Dieter", "Elena", "Farid", "Grace", "Hugo", "Ilse", "Jonas"),
    *("Katrin", "Leon", "Marta", "Nuno", "Olga", "Pilar", "Quentin", "Rosa", "Sven", "Tamara"),
    *("Ulla", "Viktor", "Wanda", "Yusuf", "Zoe", "Priya", "Kenji", "Amara", "Declan", "Inês"),
)
LAST = (
    *("Albrecht", "Barros", "Cavanagh", "Dupuis", "Eriksen", "Fontaine", "Grabowski", "Hartley"),
    *("Iversen", "Jansen", "Kowalczyk", "Lindner", "Moretti", "Novak", "Okafor", "Pereira"),
    *("Quigley", "Rademacher", "Santoro", "Tanaka", "Urban", "Vandamme", "Whitcombe", "Zeller"),
    *("Müller", "García", "Singh", "Petrova", "Holloway", "Brunner"),
)
TOWNS = (
    *("Paderborn", "Konstanz", "Exeter", "Limerick", "Angers", "Logroño", "Ferrara", "Zwolle"),
    *("Linz", "Aarau", "Tampere", "Gdynia", "Aveiro", "Dayton", "Boise", "Geelong"),
)
STEMS = (
    *("linden", "harbour", "orchard", "copper", "meadow", "signal", "paper", "granite", "willow"),
    *("lantern", "falcon", "pepper", "atlas", "comet", "juniper", "maple", "quartz", "saffron"),
)
ENDS = (
    *("shop", "works", "board", "tools", "service", "club", "desk", "sync", "store", "portal"),
    *("tracker", "notes", "mail", "base"),
)
TOPS = ("com", "org", "net", "io", "de", "fr", "es", "it", "nl", "co.uk", "ch", "at", "pl", "eu")
STREETS = ("Mill Lane", "High Street", "Church Road", "Station Road", "Orchard Way", "King Street")
BANKS = ("Sparkasse", "Volksbank", "Raiffeisenbank", "Landesbank", "Stadtbank")
ALPHABETS = {
    "hex": "0123456789abcdef",
    "dig": string.digits,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "alnum": string.ascii_letters + string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "b64u": string.ascii_letters + string.digits + "-_",
    "bech": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
    "aa": "ACDEFGHIKLMNPQRSTVWY",
}


def draw(rng: random.Random, alphabet: str, length: int) -> str:
    """So many characters of a named alphabet."""
    return "".join(rng.choices(ALPHABETS[alphabet], k=length))


def pick(options: Sequence[str]) -> Maker:
    """A maker that takes one of some words."""
    return lambda scene, _: scene.rng.choice(options)


def make_slug(rng: random.Random) -> str:
    """The name of a project or host."""
    joint = rng.choice(("-", "-", "", "_")) if rng.random() < 0.8 else ""
    return rng.choice(STEMS) + joint + rng.choice(ENDS)


def make_domain(rng: random.Random) -> str:
    """A registered domain outside the reserved ones."""
    return f"{rng.choice(STEMS)}-{rng.choice(ENDS)}.{rng.choice(TOPS)}"


def make_user(rng: random.Random) -> str:
    """A login name of at most eight letters."""
    first, last = rng.choice(FIRST[:28]), rng.choice(LAST[:24])
    return (first[0] + last).lower()[: rng.randint(4, 8)]


def _moment(rng: random.Random) -> datetime:
    return datetime(2019, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(220_000_000))


def when(form: str) -> Maker:
    """A maker of a moment in a form of `strftime`."""
    return lambda scene, _: _moment(scene.rng).strftime(form)


def characters(alphabet: str) -> Maker:
    """A maker of as many characters of an alphabet as its argument says."""
    return lambda scene, count: draw(scene.rng, alphabet, int(count))


def _number(scene: Scene, bounds: str) -> str:
    low, high = bounds.split("-")
    return str(scene.rng.randint(int(low), int(high)))


def _iso(scene: Scene, _: str) -> str:
    form = scene.rng.choice(("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S"))
    return _moment(scene.rng).strftime(form)


def _club(scene: Scene, _: str) -> str:
    town = scene.rng.choice(TOWNS)
    return scene.rng.choice(
        (f"{town} Rowing Club", f"TSV {town}", f"{town} Chess Society", f"Harmonie {town}")
    )


def _firm(scene: Scene, _: str) -> str:
    return f"{scene.rng.choice(LAST)} {scene.rng.choice(('GmbH', 'Ltd', 'SARL', 'Inc.', '& Co'))}"


def _private_address(scene: Scene, _: str) -> str:
    rng = scene.rng
    head = rng.choice(("10.0", "192.168", "172.18", "10.42"))
    return f"{head}.{rng.randint(0, 254)}.{rng.randint(2, 254)}"


FILLERS: dict[str, Maker] = {
    **{name: characters(name) for name in ALPHABETS},
    "first": pick(FIRST),
    "last": lambda scene, _: scene.rng.choice(LAST[:24]),
    "name": lambda scene, _: f"{scene.rng.choice(FIRST)} {scene.rng.choice(LAST)}",
    "town": pick(TOWNS),
    "street": lambda scene, _: f"{scene.rng.randint(1, 180)} {scene.rng.choice(STREETS)}",
    "bank": lambda scene, _: f"{scene.rng.choice(BANKS)} {scene.rng.choice(TOWNS)}",
    "club": _club,
    "firm": _firm,
    "slug": lambda scene, _: make_slug(scene.rng),
    "host": lambda scene, _: (
        f"{scene.rng.choice(('api', 'app', 'db', 'mail'))}.{make_domain(scene.rng)}"
    ),
    "user": lambda scene, _: make_user(scene.rng),
    "n": _number,
    "one": lambda scene, options: scene.rng.choice(options.split("|")),
    "uuid": lambda scene, _: str(uuid.UUID(int=scene.rng.getrandbits(128), version=4)),
    "version": lambda scene, _: ".".join(str(scene.rng.randint(0, 19)) for _ in range(3)),
    "mac": lambda scene, _: ":".join(draw(scene.rng, "hex", 2) for _ in range(6)),
    "private": _private_address,
    "day": when("%Y-%m-%d"),
    "date": when("%d %B %Y"),
    "clock": when("%H:%M"),
    "expiry": when("%m/%y"),
    "clf": when("%d/%b/%Y:%H:%M:%S +0000"),
    "syslog": when("%b %d %H:%M:%S"),
    "iso": _iso,
}
