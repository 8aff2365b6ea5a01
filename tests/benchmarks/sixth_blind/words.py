"""Neutral fillers of the texts: people, firms, dates, versions, digests. None of them is a label."""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"

FIRST = [
    "Marta",
    "Jonas",
    "Priya",
    "Owen",
    "Hana",
    "Lukas",
    "Ingrid",
    "Tomas",
    "Aisha",
    "Felix",
    "Nadia",
    "Piotr",
    "Elena",
    "Ruben",
    "Sofie",
    "Kenji",
    "Carla",
    "Dmitri",
    "Yusuf",
    "Greta",
    "Anton",
    "Leila",
    "Mateo",
    "Fiona",
    "Bram",
    "Olga",
    "Stefan",
    "Wanda",
    "Niall",
    "Chiara",
    "Emre",
    "Petra",
    "Gareth",
    "Linnea",
    "Oskar",
    "Beatriz",
    "Tariq",
    "Maud",
    "Viktor",
    "Renata",
    "Colm",
    "Sanne",
    "Hugo",
    "Amara",
    "Jitka",
    "Davide",
]
LAST = [
    "Kowalczyk",
    "Brandt",
    "Venkat",
    "Hargreaves",
    "Sato",
    "Lindqvist",
    "Novotny",
    "Farouk",
    "Moreau",
    "Petrov",
    "Castellano",
    "Visser",
    "Oduya",
    "Pritchard",
    "Yilmaz",
    "Haugen",
    "Marchetti",
    "Duarte",
    "Keller",
    "Bielski",
    "Tanaka",
    "Fournier",
    "Rasmussen",
    "Okafor",
    "Whitlock",
    "Sandoval",
    "Drexler",
    "Mulcahy",
    "Ferrante",
    "Lindgren",
    "Zielinski",
    "Achterberg",
    "Bouchard",
    "Holub",
    "Quigley",
]
_NAME_A = [
    "brook",
    "harrow",
    "linden",
    "north",
    "cinder",
    "marble",
    "quarry",
    "fennel",
    "tallow",
    "ridge",
    "copper",
    "salt",
    "willow",
    "aspen",
    "grove",
    "larch",
    "heron",
    "otter",
    "falcon",
    "ember",
    "slate",
    "cedar",
    "thistle",
    "raven",
    "hollow",
    "anvil",
    "beacon",
    "orchard",
]
_NAME_B = [
    "field",
    "works",
    "gate",
    "soft",
    "bridge",
    "mill",
    "systems",
    "labs",
    "stone",
    "data",
    "craft",
    "port",
    "logic",
    "house",
    "wood",
    "design",
    "foods",
    "media",
    "energy",
    "tools",
    "haven",
    "yard",
    "robotics",
    "optics",
    "textil",
]
_TLDS = (
    "com",
    "com",
    "com",
    "net",
    "org",
    "io",
    "dev",
    "de",
    "fr",
    "co.uk",
    "eu",
    "nl",
    "it",
    "se",
)
PROVIDERS = {
    "": (
        "gmail.com",
        "gmail.com",
        "outlook.com",
        "yahoo.com",
        "hotmail.com",
        "icloud.com",
        "proton.me",
    ),
    "de": ("gmx.de", "web.de", "t-online.de", "gmail.com"),
    "fr": ("orange.fr", "free.fr", "laposte.net", "gmail.com"),
    "it": ("libero.it", "virgilio.it", "gmail.com"),
    "ru": ("mail.ru", "yandex.ru", "gmail.com"),
    "cn": ("qq.com", "163.com", "126.com"),
    "jp": ("yahoo.co.jp", "docomo.ne.jp", "gmail.com"),
    "kr": ("naver.com", "hanmail.net"),
    "pl": ("wp.pl", "o2.pl", "onet.pl"),
    "br": ("uol.com.br", "terra.com.br", "gmail.com"),
    "cz": ("seznam.cz", "centrum.cz"),
    "gb": ("btinternet.com", "sky.com", "hotmail.co.uk"),
}
_PACKAGES = [
    "requests",
    "lodash",
    "serde",
    "tokio",
    "numpy",
    "react",
    "left-pad",
    "chalk",
    "axios",
    "express",
    "rails",
    "sinatra",
    "junit",
    "boost",
    "gson",
    "okhttp",
    "pandas",
    "click",
    "typer",
    "vite",
    "esbuild",
    "prettier",
    "eslint",
    "hyper",
    "clap",
]
_PROJECTS = [
    "pgsync",
    "trailhead",
    "mailpit-relay",
    "quillbot-cli",
    "feedlane",
    "opengarden",
    "tidewatch",
    "sparrowdb",
    "kitebox",
    "ledgerline",
    "rackview",
    "notefold",
    "gantry-ui",
    "starling-api",
    "mosswiki",
]
_HOSTS = [
    "web01",
    "db02",
    "build-agent-7",
    "edge-fra-3",
    "ns1",
    "bastion",
    "worker-12",
    "staging-api",
    "relay4",
    "vps-311",
]
_PEOPLE = {
    "ja": ("山本 健一", "佐々木 由美", "小林 拓也", "中村 恵子"),
    "zh": ("王建国", "李雪梅", "陈伟", "周晓琳"),
    "ru": ("Ирина Соколова", "Павел Громов", "Анна Белова", "Сергей Климов"),
    "ko": ("김민수", "박지영", "이서준", "최은아"),
}


def chars(rng: random.Random, alphabet: str, size: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choices(alphabet, k=size))


def mixed(rng: random.Random, alphabet: str, size: int) -> str:
    """As `chars`, with at least two digits and three letters, as nearly every such key has."""
    if not any(map(str.isdigit, alphabet)):
        return chars(rng, alphabet, size)
    while True:
        text = chars(rng, alphabet, size)
        letters = sum(character.isalpha() for character in text)
        if letters >= min(3, size // 3) and sum(map(str.isdigit, text)) >= min(2, size // 4):
            return text


def b64(rng: random.Random, size: int) -> str:
    """Standard base64 of so many random bytes."""
    return base64.b64encode(rng.randbytes(size)).decode()


def first(scene: Scene) -> str:
    """Given name of the person whom the text is about."""
    return scene.once("first", lambda: scene.rng.choice(FIRST))


def last(scene: Scene) -> str:
    """Family name of the person whom the text is about."""
    return scene.once("last", lambda: scene.rng.choice(LAST))


def new_domain(rng: random.Random, tld: str = "") -> str:
    """A registered-looking domain outside the reserved ones."""
    a, b = rng.choice(_NAME_A), rng.choice(_NAME_B)
    joined = a + rng.choice(("", "", "", "-")) + b
    return f"{joined}.{tld or rng.choice(_TLDS)}"


def domain(scene: Scene, tld: str = "") -> str:
    """The domain of the firm in the text."""
    return scene.once("domain", lambda: new_domain(scene.rng, tld))


def _company(scene: Scene, _: str) -> str:
    return domain(scene).split(".")[0].replace("-", " ").title()


def _date(scene: Scene, style: str) -> str:
    rng = scene.rng
    year, month, day = rng.randrange(2011, 2026), rng.randrange(1, 13), rng.randrange(1, 29)
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    return {
        "": f"{year}-{month:02}-{day:02}",
        "log": f"{year}-{month:02}-{day:02} {clock},{rng.randrange(1000):03}",
        "iso": f"{year}-{month:02}-{day:02}T{clock}Z",
        "clf": f"{day:02}/{names[month - 1]}/{year}:{clock} +0000",
        "syslog": f"{names[month - 1]} {day:2} {clock}",
        "mail": f"{day} {names[month - 1]} {year} {clock} +0200",
        "text": f"{day} {names[month - 1]} {year}",
        "us": f"{month}/{day}/{year}",
        "de": f"{day}.{month}.{year}",
        "time": clock,
        "year": str(year),
        "unix": str(rng.randrange(1_400_000_000, 1_760_000_000)),
        "ms": str(rng.randrange(1_400_000_000_000, 1_760_000_000_000)),
    }[style]


def _number(scene: Scene, argument: str) -> str:
    low, high = (int(part) for part in (argument or "1-99").split("-"))
    return str(scene.rng.randrange(low, high + 1))


def _version(scene: Scene, argument: str) -> str:
    rng, parts = scene.rng, int(argument or 3)
    return ".".join(str(rng.randrange(0, 24 if n else 12)) for n in range(parts))


def _sized(alphabet: str) -> Maker:
    return lambda scene, argument: chars(scene.rng, alphabet, int(argument or 12))


def _digest(name: str) -> Maker:
    return lambda scene, _: hashlib.new(name, scene.rng.randbytes(9)).hexdigest()


def _choice(*options: str) -> Maker:
    return lambda scene, _: scene.rng.choice(options)


def _isbn(scene: Scene, _: str) -> str:
    body = "978" + chars(scene.rng, string.digits, 9)
    total = sum(int(digit) * (3 if n % 2 else 1) for n, digit in enumerate(body))
    check = str(-total % 10)
    return f"978-{body[3]}-{body[4:7]}-{body[7:]}-{check}"


def _isbn10(scene: Scene, _: str) -> str:
    body = "0" + chars(scene.rng, string.digits, 8)
    check = -sum((10 - n) * int(digit) for n, digit in enumerate(body)) % 11
    return f"{body[0]}-{body[1:4]}-{body[4:]}-{'X' if check == 10 else check}"


def words_in(words: tuple[str, ...], style: str) -> str:
    """Words of a name as an identifier: `upper`, `snake`, `camel`, `pascal`, `kebab` or `text`."""
    low = [word.lower() for word in words]
    capital = [word.capitalize() for word in low]
    return {
        "upper": "_".join(low).upper(),
        "snake": "_".join(low),
        "camel": low[0] + "".join(capital[1:]),
        "pascal": "".join(capital),
        "kebab": "-".join(low),
        "dotted": ".".join(low),
        "text": " ".join(words),
    }[style]


def _words(style: str) -> Maker:
    return lambda scene, _: words_in(scene.words, style)


def _user(scene: Scene, _: str) -> str:
    f, n = first(scene).lower(), last(scene).lower()
    return scene.once("user", lambda: scene.rng.choice((f, f + n[0], f[0] + n, f"{f}{n[:3]}")))


def _integrity(scene: Scene, _: str) -> str:
    return "sha512-" + b64(scene.rng, 64)


_one: dict[str, Callable[[Scene], str]] = {"first": first, "last": last, "domain": domain}
FILLERS: dict[str, Maker] = {
    **{name: (lambda scene, _, make=make: make(scene)) for name, make in _one.items()},  # type: ignore[misc]
    "other_first": lambda scene, _: scene.rng.choice(FIRST),
    "other_last": lambda scene, _: scene.rng.choice(LAST),
    "person": lambda scene, language: scene.rng.choice(_PEOPLE[language]),
    "tld": lambda scene, tld: domain(scene, tld),
    "site": lambda scene, tld: new_domain(scene.rng, tld),
    "company": _company,
    "user": _user,
    "handle": lambda scene, _: scene.rng.choice(FIRST).lower() + scene.rng.choice(_NAME_B)[:4],
    "date": _date,
    "n": _number,
    "version": _version,
    "hex": _sized(HEX),
    "HEX": _sized(HEX.upper()),
    "alnum": _sized(ALNUM),
    "upper": _sized(string.ascii_uppercase + string.digits),
    "digits": _sized(string.digits),
    "lower": _sized(string.ascii_lowercase),
    "b64": lambda scene, size: b64(scene.rng, int(size or 24)),
    "sha1": _digest("sha1"),
    "sha256": _digest("sha256"),
    "md5": _digest("md5"),
    "uuid": lambda scene, _: str(uuid.UUID(bytes=scene.rng.randbytes(16), version=4)),
    "integrity": _integrity,
    "isbn": _isbn,
    "isbn10": _isbn10,
    "package": _choice(*_PACKAGES),
    "project": lambda scene, _: scene.once("project", lambda: scene.rng.choice(_PROJECTS)),
    "host": _choice(*_HOSTS),
    "city": _choice(
        "Utrecht", "Leeds", "Graz", "Tampere", "Lyon", "Brno", "Porto", "Gdansk", "Boise"
    ),
    "street": _choice("Mill Lane", "Station Road", "Harbour Street", "Elm Avenue", "Castle Street"),
    "word": _choice(*_NAME_A),
    "item": _choice(
        "desk lamp", "bike pump", "espresso grinder", "tent pegs", "router", "amp", "kettle"
    ),
    "feature": _choice("login flow", "importer", "retry logic", "webhook", "cache", "PDF export"),
    "NAME": _words("upper"),
    "name": _words("snake"),
    "camel": _words("camel"),
    "pascal": _words("pascal"),
    "kebab": _words("kebab"),
    "dotted": _words("dotted"),
    "words": _words("text"),
    "value": lambda scene, _: scene.value,
}
