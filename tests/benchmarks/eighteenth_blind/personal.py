"""What draws the slots of the group `personal`: addresses, numbers, machines and cards."""

from __future__ import annotations

import datetime
import ipaddress
import re
import unicodedata

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.eighteenth_blind.personal_words import (
    CITIES,
    DOMAINS,
    FIRST,
    HANDLES,
    HOSTS,
    LAST,
    NETWORKS,
    OFFICES,
    USERS,
)

_LATIN = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "æ": "ae", "ł": "l", "ı": "i", "đ": "d"}
)
_PLAIN = str.maketrans({"ł": "l", "ı": "i", "đ": "d", "ø": "o", "æ": "ae", "ß": "ss"})
_GROUPS = {13: (4, 3, 3, 3), 14: (4, 6, 4), 15: (4, 6, 5), 16: (4, 4, 4, 4), 19: (4, 4, 4, 4, 3)}
_ZEROS = {"arab": "٠", "pers": "۰", "deva": "०", "wide": "０", "thai": "๐", "beng": "০"}
_OCTETS = (5, 23, 31, 37, 45, 46, 51, 62, 77, 78, 80, 84, 91, 93, 103, 109, 116, 121, 138, 141)
_OCTETS += (146, 159, 163, 176, 178, 185, 188, 193, 195, 200, 201, 212, 213, 217, 218, 220)
_PREFIXES = ("2a01:4f8", "2a02:8109", "2003:e7", "2600:1f18", "2604:a880", "2a00:1450", "2607:f8b0")
_PREFIXES += (
    "2405:201",
    "2400:cb00",
    "2a03:2880",
    "2001:41d0",
    "2804:14c",
    "240e:3b7",
    "2c0f:fb50",
)


def _ascii(name: str, language: str) -> str:
    """A name as it stands in an address: small Latin letters."""
    table = _LATIN if language in {"de", "da", "sv", "fi"} else _PLAIN
    small = unicodedata.normalize("NFD", name.lower().translate(table))
    return re.sub(r"[^a-z-]", "", small)


def _person(scene: Scene, key: str) -> tuple[str, str, str, str]:
    """First and last name as written and as in addresses; a key stands for one person."""
    language, names = key[:2], list[str]()
    for kind, words in (("first", FIRST), ("last", LAST)):
        word = scene.once(
            f"{kind} {key}", lambda words=words: scene.rng.choice(words[language].split())
        )
        shown, _, latin = word.partition(":")
        names += [shown, latin or _ascii(shown, language)]
    return names[0], names[1], names[2], names[3]


def _write(scene: Scene, argument: str, usual: str) -> str:
    """A pattern with its tokens: `LANGUAGE[NUMBER]|PATTERN`, with choices `{a|b}`.

    `%n %m` are the names as written, `%f %l` in Latin (`%F %L` with a capital), `%i` the initial,
    `%o` an office, `%d` the domain's word, `%e` another one, `%w` a handle, `%y` two digits, `%Y` a
    year, `%c` a city.
    """
    key, _, pattern = argument.partition("|")
    first, first_latin, last, last_latin = _person(scene, key or "en")
    language, rng = (key or "en")[:2], scene.rng
    domains = DOMAINS.get(language, DOMAINS["en"]).split()
    tokens = {
        "n": first,
        "m": last,
        "f": first_latin,
        "l": last_latin,
        "F": first_latin.capitalize(),
        "L": last_latin.capitalize(),
        "i": first_latin[0],
        "o": rng.choice(OFFICES.get(language, OFFICES["en"]).split()),
        "d": scene.once(f"domain {language}", lambda: rng.choice(domains)),
        "e": rng.choice([one for one in domains if one != scene.memory[f"domain {language}"]]),
        "w": rng.choice(HANDLES.split()),
        "y": f"{rng.randrange(100):02}",
        "Y": str(rng.randrange(1958, 2006)),
        "c": rng.choice(CITIES.get(language, CITIES["en"]).split()),
    }
    chosen = re.sub(r"\{([^}]*)\}", lambda match: rng.choice(match[1].split("|")), pattern or usual)
    return re.sub(r"%([a-zA-Z])", lambda match: tokens.get(match[1], match[0]), chosen)


def _mail(scene: Scene, argument: str) -> str:
    """An address by a pattern; `~` stands for its at sign."""
    return _write(scene, argument, "%f.%l~%d.com").replace("~", "@")


def _name(scene: Scene, argument: str) -> str:
    """A person's name, or another pattern of names."""
    return _write(scene, argument, "%n %m")


def _looks_right(text: str) -> bool:
    """Whether neighbouring groups of digits make a number with a card's check digit."""
    groups = re.findall(r"\d+", text)
    runs = (
        "".join(groups[start:end])
        for start in range(len(groups))
        for end in range(start + 1, len(groups) + 1)
    )
    return any(13 <= len(run) <= 19 and luhn_digit(run[:-1]) == run[-1] for run in runs)


def _draw(scene: Scene, pattern: str) -> str:
    """Digits by a pattern: `#` any, `&` none of 0."""
    return re.sub("[#&]", lambda match: str(scene.rng.randrange(match[0] == "&", 10)), pattern)


def _digits(scene: Scene, argument: str) -> str:
    """Digits by a pattern that no check digit makes a card's number."""
    while _looks_right(text := _draw(scene, argument)):
        pass
    return text


def _phone(scene: Scene, argument: str) -> str:
    """A number by a pattern of `_draw`; `deva|` before it writes it in that script."""
    script, bar, pattern = argument.rpartition("|")
    text = _draw(scene, pattern)
    if bar:
        zero = ord(_ZEROS[script])
        text = re.sub(r"\d", lambda match: chr(zero + int(match[0])), text)
    return text


def _ip(scene: Scene, _: str) -> str:
    """A public address of version 4."""
    rng = scene.rng
    while True:
        numbers = rng.choice(_OCTETS), rng.randrange(1, 254), rng.randrange(1, 254)
        address = ".".join(map(str, (*numbers, rng.randrange(2, 254))))
        if ipaddress.ip_address(address).is_global:
            return address


def _ip6(scene: Scene, argument: str) -> str:
    """A public address of version 6: `full`, in `upper` case, or short."""
    rng = scene.rng
    groups = [f"{rng.randrange(0x1000, 0xFFFF):x}" for _ in range(6)]
    address = f"{rng.choice(_PREFIXES)}:{':'.join(groups)}"
    if argument != "full" and rng.random() < 0.6:
        address = f"{rng.choice(_PREFIXES)}:{':'.join(groups[:2])}::{rng.choice(groups)}"
    whole = ipaddress.ip_address(address)
    text = whole.exploded if argument == "full" else whole.compressed
    return text.upper() if argument == "upper" else text


def _card(scene: Scene, argument: str) -> str:
    """A card's number, `NETWORK[|BETWEEN]`: between its groups, or a pattern with `#`."""
    network, _, between = argument.partition("|")
    rng = scene.rng
    if network in {"", "any"}:
        network = rng.choice(["visa", "visa", "mastercard", "mastercard", "amex"])
    prefixes, size = NETWORKS[network]
    body = rng.choice(prefixes.split())
    while len(body) < size - 1:
        body += str(rng.randrange(10))
    number = body + luhn_digit(body)
    if "#" in between:
        rest = iter(number)
        return re.sub("#", lambda _: next(rest), between)
    groups, at = list[str](), 0
    for length in _GROUPS[size]:
        groups.append(number[at : at + length])
        at += length
    return between.join(groups)


def _imei(scene: Scene, argument: str) -> str:
    """The number of a mobile device, with its check digit; `#` of a pattern are its digits."""
    body = scene.rng.choice(["35", "86"]) + "".join(str(scene.rng.randrange(10)) for _ in range(12))
    rest = iter(body + luhn_digit(body))
    return re.sub("#", lambda _: next(rest), argument or "#" * 15)


def _time(scene: Scene, argument: str) -> str:
    """A moment of 2011 to 2026 in a format of `strftime`, in UTC."""
    start = datetime.datetime(2011, 1, 1, tzinfo=datetime.UTC)
    moment = start + datetime.timedelta(seconds=scene.rng.randrange(15 * 365 * 86400))
    return moment.strftime(argument or "%Y-%m-%d %H:%M:%S")


def _hex(scene: Scene, argument: str) -> str:
    """So many hexadecimal digits, the first a letter."""
    rng = scene.rng
    return rng.choice("abcdef") + "".join(
        rng.choice("0123456789abcdef") for _ in range(int(argument or "8") - 1)
    )


def _one(scene: Scene, argument: str) -> str:
    """One of several words, parted by bars."""
    return scene.rng.choice(argument.split("|"))


MAKERS: dict[str, Maker] = {
    "personal_mail": _mail,
    "personal_name": _name,
    "personal_digits": _digits,
    "personal_phone": _phone,
    "personal_ip": _ip,
    "personal_ip6": _ip6,
    "personal_card": _card,
    "personal_imei": _imei,
    "personal_time": _time,
    "personal_hex": _hex,
    "personal_one": _one,
    "personal_host": lambda scene, _: scene.rng.choice(HOSTS.split()),
    "personal_user": lambda scene, _: scene.rng.choice(USERS.split()),
    "personal_city": lambda scene, language: scene.rng.choice(CITIES[language or "en"].split()),
}
