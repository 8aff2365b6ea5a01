"""Neutral fillers of the tenth blind set: people, firms, names of code, numbers, times."""

from __future__ import annotations

import random
import re
import string
from uuid import UUID

from tests.benchmarks.blind_set import Maker, Scene


def split(text: str) -> list[str]:
    """The parts of a table: one a line, or apart by `|`, or else by blanks."""
    return [
        part.strip() for part in re.split(r"[|\n]" if "|" in text else r"\s+", text) if part.strip()
    ]


NAMES = split("""
Ingrid Solvang|Tomasz Wilk|Chiara Bassani|Rohit Deshpande|Emeka Obiora|Yuto Hamasaki
Marta Quintela|Lars Brinkmann|Aoife Kinsella|Bastien Roche|Nadia Benali|Svetlana Drozdova
Hana Kovarova|Diego Arriaga|Sunita Pillai|Kwame Asante|Femke Terpstra|Piet Vandamme
Joonas Lehtola|Zeynep Aksoy|Huy Tran|Wei Luo|Andrei Munteanu|Gustavo Peixoto|Marcus Feld
Teresa Oakley|Owen Pritchard|Leila Haddad|Jonas Ekberg|Camille Thibault|Petra Zupan|Minh Dao
Renate Hollmann|Carlos Iturbe|Anneli Saar|Grace Wanjiru|Milan Petkov|Eszter Vamos|Noah Whitcomb
Priscilla Farrow|Ji-woo Seo|Takeshi Oda|Bruno Sacchi
""")
FIRMS = split("""
Nordhafen Brightwell Quarryside Lumenta Torvik Casterbridge Oakmere Solantis Veltro Pinewater
Kestrelworks Halvorsen Marisol Drybrook Everlane Tannery Ostwind Copperhill Bluefen Ravello
""")
TRADES = ["Logistics", "Dental", "Robotics", "Analytics", "Bakery", "Interiors", "Energy", "Books"]
PROJECTS = split("""
tidepool larkspur gridmap fernweh patchwork sundial metrolog quillpad seedbank riverrun
courier-api stocktake-web menuboard roomplan kiteboard feedmill parcelbot classbook farmgate
""")
NOUNS = split("""
order invoice user booking report student ticket device vendor session product patient member
article payment sensor driver recipe course comment
""")
VERBS = split("load save fetch update validate render parse submit format send create import")
CITIES = split("""
Ghent|Porto|Leeds|Kassel|Pune|Izmir|Tampere|Lublin|Nantes|Cordoba|Osaka|Curitiba|Bristol|Graz
""")
STREETS = [
    "Mill Lane",
    "Station Road",
    "Lindenweg",
    "Rue des Forges",
    "Via Cavour",
    "Harbour Street",
]
TOPICS = split("""
the retry logic|the export job|the new dashboard|the login page|pagination|the nightly sync
the mobile layout|the release notes|the cache layer|image upload|the search index
email templates
""")
TASKS = split("""
Fix the build|Add tests|Remove dead code|Bump the minimum version|Document the flags
Handle empty input|Use the shared helper|Avoid a second lookup|Clean up after review
""")


def pick(rng: random.Random, alphabet: str, size: int) -> str:
    """Random characters of an alphabet."""
    return "".join(rng.choice(alphabet) for _ in range(size))


def person(scene: Scene) -> str:
    """The person that the text is about."""
    return scene.once("person", lambda: scene.rng.choice(NAMES))


def firm(scene: Scene) -> str:
    """The firm that the text is about, one word."""
    return scene.once("firm", lambda: scene.rng.choice(FIRMS))


def host(scene: Scene, argument: str) -> str:
    """The domain of the text's firm."""
    return firm(scene).lower() + scene.once("tld", lambda: scene.rng.choice([".io", ".net", ".co"]))


def number(scene: Scene, argument: str) -> str:
    """A number from LOW-HIGH, written with as many digits as HIGH if LOW starts with a zero."""
    low, _, high = argument.partition("-")
    drawn = str(scene.rng.randint(int(low), int(high)))
    return drawn.zfill(len(high)) if low.startswith("0") and len(low) > 1 else drawn


def digits(scene: Scene, argument: str) -> str:
    """So many digits, the first not a zero."""
    return scene.rng.choice("123456789") + pick(scene.rng, string.digits, int(argument) - 1)


def hexadecimal(scene: Scene, argument: str) -> str:
    """So many hexadecimal digits."""
    return pick(scene.rng, "0123456789abcdef", int(argument))


def base64_text(scene: Scene, argument: str) -> str:
    """So many characters of base64."""
    return pick(scene.rng, string.ascii_letters + string.digits + "+/", int(argument))


def uuid(scene: Scene, argument: str) -> str:
    """A random UUID of version 4."""
    return str(UUID(int=scene.rng.getrandbits(128), version=4))


def date(scene: Scene, argument: str) -> str:
    """A day of 2016 to 2026 as ISO writes it, or with `slash`, `dot`, `mail`, `log`."""
    rng = scene.rng
    year, month, day = rng.randint(2016, 2026), rng.randint(1, 12), rng.randint(1, 28)
    months = split("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")
    return {
        "slash": f"{month:02}/{day:02}/{year}",
        "dot": f"{day:02}.{month:02}.{year}",
        "mail": f"{rng.choice(split('Mon Tue Wed Thu Fri'))}, {day} {months[month - 1]} {year}",
        "log": f"{day:02}/{months[month - 1]}/{year}",
    }.get(argument, f"{year}-{month:02}-{day:02}")


def time(scene: Scene, argument: str) -> str:
    """A time of the day with seconds."""
    rng = scene.rng
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def identifier(scene: Scene, argument: str) -> str:
    """The name of a function or variable in camel case, with `snake` in snake case."""
    verb, noun = scene.rng.choice(VERBS), scene.rng.choice(NOUNS)
    return f"{verb}_{noun}" if argument == "snake" else verb + noun.capitalize()


def choice(scene: Scene, argument: str) -> str:
    """One of the words that the argument names, apart by `|`."""
    return scene.rng.choice(argument.split("|"))


FILLERS: dict[str, Maker] = {
    "who": lambda scene, argument: person(scene),
    "first": lambda scene, argument: person(scene).split()[0],
    "last": lambda scene, argument: person(scene).split()[1],
    "other": lambda scene, argument: scene.rng.choice(NAMES),
    "firm": lambda scene, argument: f"{firm(scene)} {scene.rng.choice(TRADES)}",
    "host": host,
    "project": lambda scene, argument: scene.rng.choice(PROJECTS),
    "noun": lambda scene, argument: scene.rng.choice(NOUNS),
    "Noun": lambda scene, argument: scene.rng.choice(NOUNS).capitalize(),
    "call": identifier,
    "city": lambda scene, argument: scene.rng.choice(CITIES),
    "street": lambda scene, argument: f"{scene.rng.randint(2, 180)} {scene.rng.choice(STREETS)}",
    "topic": lambda scene, argument: scene.rng.choice(TOPICS),
    "task": lambda scene, argument: scene.rng.choice(TASKS),
    "n": number,
    "digits": digits,
    "hex": hexadecimal,
    "b64": base64_text,
    "uuid": uuid,
    "date": date,
    "time": time,
    "year": lambda scene, argument: str(scene.rng.randint(2008, 2026)),
    "version": lambda scene, argument: ".".join(str(scene.rng.randint(0, 14)) for _ in range(3)),
    "one": choice,
}
