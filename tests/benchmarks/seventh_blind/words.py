"""Ordinary words of the texts: people, places, companies, dates, identifiers without meaning."""

from __future__ import annotations

import random
import string
from uuid import UUID

from tests.benchmarks.blind_set import Maker, Scene

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"
BASE64URL = ALNUM + "-_"

FIRST_NAMES = (
    *("Wanjiru", "Tomasz", "Ilse", "Katriona", "Dimitris", "Nurul", "Mateo", "Sunniva", "Bao"),
    *("Ludmila", "Cormac", "Yasemin", "Eszter", "Rodrigo", "Hae-won", "Adaeze", "Jorunn", "Piotr"),
    *("Solveig", "Giulia", "Anouk", "Ravi", "Marisol", "Tamsin", "Vojtech", "Leilani", "Oskar"),
    *("Fenna", "Zofia", "Hamish", "Ngozi", "Benedikt", "Chiara", "Iker", "Aroha", "Stelian"),
)
LAST_NAMES = (
    *("Kariuki", "Wojcik", "Vandenberghe", "Macleod", "Papadakis", "Rahman", "Quiroga", "Dahl"),
    *("Tran", "Horvat", "Brennan", "Yildiz", "Szabo", "Moreira", "Ahn", "Okonkwo", "Lindqvist"),
    *("Zielinski", "Ferrante", "Boucher", "Iyer", "Villalobos", "Penrose", "Dvorak", "Kealoha"),
    *("Nyberg", "Hoekstra", "Lis", "Fraser", "Adeyemi", "Aigner", "Colombo", "Etxeberria", "Popa"),
)
CITIES = (
    *("Nakuru", "Gdynia", "Oostende", "Inverness", "Patras", "Ipoh", "Rosario", "Bodo", "Da Nang"),
    *("Rijeka", "Sligo", "Izmir", "Szeged", "Braga", "Daegu", "Enugu", "Linkoping", "Lecce"),
    *("Nantes", "Mysuru", "Merida", "Truro", "Olomouc", "Hilo", "Leeuwarden", "Graz", "Bilbao"),
)
COMPANIES = (
    *("Harbourline Freight", "Quernstone Bakery", "Ostfjord Sensors", "Bluecairn Analytics"),
    *("Tessellate Studio", "Marram Dental", "Kopernik Optics", "Savanna Solar", "Ferrowave"),
    *("Lanternfish Games", "Alder & Pike", "Cinnabar Press", "Velotransit", "Moorgate Cycles"),
    *("Pelagic Data", "Tindwerk", "Rookery Books", "Saltmarsh Energy", "Brightvale Clinic"),
)
PRODUCTS = (
    *(
        "invoicer",
        "skylark",
        "tidepool",
        "gatehouse",
        "quarry",
        "notebook-sync",
        "pantry",
        "orrery",
    ),
    *("beacon", "ledgerd", "heron", "wharf", "marmot", "cobbler", "trellis", "foxglove", "sundial"),
)
WORDS = (
    *("amber", "thistle", "copper", "walrus", "meadow", "lantern", "pebble", "saffron", "glacier"),
    *("juniper", "rocket", "velvet", "harbor", "magnet", "turnip", "cactus", "drizzle", "falcon"),
    *("gravel", "hazel", "icicle", "jigsaw", "kettle", "lichen", "mango", "nectar", "orchid"),
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def draw(rng: random.Random, alphabet: str, count: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choices(alphabet, k=count))


def slug(name: str) -> str:
    """A name as it stands in a domain: `Alder & Pike` gives `alder-pike`."""
    kept = "".join(character if character.isalnum() else " " for character in name.lower())
    return "-".join(kept.split())


def _choice(options: tuple[str, ...]) -> Maker:
    return lambda scene, _: scene.rng.choice(options)


def _drawn(alphabet: str) -> Maker:
    return lambda scene, count: draw(scene.rng, alphabet, int(count or 8))


def _integer(scene: Scene, bounds: str) -> str:
    low, _, high = bounds.partition("-")
    return str(scene.rng.randint(int(low), int(high)))


def _number(scene: Scene, count: str) -> str:
    return scene.rng.choice("123456789") + draw(scene.rng, string.digits, int(count) - 1)


def _date(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(2016, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _clock(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _day(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(2016, 2025)}"


def _version(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 14)}.{rng.randint(0, 30)}.{rng.randint(0, 20)}"


def _amount(scene: Scene, _: str) -> str:
    return f"{scene.rng.randint(4, 4000)}.{scene.rng.randint(0, 99):02}"


def _uuid(scene: Scene, _: str) -> str:
    return str(UUID(int=scene.rng.getrandbits(128), version=4))


def _host(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.choice(PRODUCTS)}-{rng.choice(('db', 'api', 'mq', 'web'))}{rng.randint(1, 9)}"


def _domain(scene: Scene, _: str) -> str:
    return slug(scene.rng.choice(COMPANIES)) + scene.rng.choice((".com", ".io", ".net", ".eu"))


FILLERS: dict[str, Maker] = {
    "pick": lambda scene, options: scene.rng.choice(options.split("|")),
    "int": _integer,
    "digits": _number,
    "hex": _drawn(HEX),
    "HEX": _drawn("0123456789ABCDEF"),
    "alnum": _drawn(ALNUM),
    "lower": _drawn(string.ascii_lowercase + string.digits),
    "upper": _drawn(string.ascii_uppercase + string.digits),
    "letters": _drawn(string.ascii_uppercase),
    "b64": _drawn(BASE64),
    "b64url": _drawn(BASE64URL),
    "date": _date,
    "clock": _clock,
    "day": _day,
    "version": _version,
    "amount": _amount,
    "uuid": _uuid,
    "first": _choice(FIRST_NAMES),
    "last": _choice(LAST_NAMES),
    "city": _choice(CITIES),
    "company": _choice(COMPANIES),
    "product": _choice(PRODUCTS),
    "word": _choice(WORDS),
    "host": _host,
    "domain": _domain,
}
