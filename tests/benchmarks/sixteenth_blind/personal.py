"""Makers of the sixteenth set for mail addresses, telephone numbers, IP addresses and cards.

A template names a maker and its argument: a language, a pattern of digits, a card network. What a
maker draws is random and has the checksum, the length and the range that its standard demands.
"""

from __future__ import annotations

import datetime
import ipaddress
import random
import re
import string
import unicodedata
from itertools import pairwise

import phonenumbers

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.sixteenth_blind.personal_words import (
    DEVELOPER_HOSTS,
    HANDLES,
    LOCALES,
    TEST_CARDS,
)

_LETTERS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "o", "æ": "ae", "ł": "l", "đ": "d", "ı": "i"}
)
_FICTION = re.compile(
    r"1\d{3}555\d{4}$|1\d{3}\d*5550\d\d$|"
    r"44(7700900|2079460|1632960|1\d14960|8081570|9098790|3069990)|"
    r"61(491570|491571|[2378]5550|[2378]7010|1800160|1[38]00975)|"
    r"33(19900|26191|35301|46571|53649|63998)|353209|"
    r"49(3023125|4066969|2214710|8999998|6990009|15228817386|171392|1729925|17604069)|"
    r"46(313900|406280|84650|980319|701740)"
)
"""Ranges kept for drama, as digits with the country code in front."""
_OWN_ENDINGS = ("dev", "io", "net")
_NETWORKS_6 = (
    "2a01:4f8:c17 2a01:4f9:2b 2600:1f18:24e6 2604:a880:400 2400:6180:100 2001:41d0:8 "
    "2a03:b0c0:3 2409:4063:2e8 2a02:8108:9ac0 2600:1700:5a1 2a00:1450:4009 2804:14d:7280"
)
_PREFIXES = {
    "visa": "4",
    "mc": "51 52 53 54 55 2221 2350 2547 2699",
    "amex": "34 37",
    "disc": "6011 65 644",
    "jcb": "3528 3541 3566 3589",
    "diners": "36",
    "up": "622588 622260 625094 621226 628258",
    "mir": "2200 2202 2204",
    "iran": "603799 610433 627412 589210 636214 502229",
    "ukraine": "5168 4149 5375 4441 5457",
    "russia": "4276 5469 4817 2202 5536",
    "elo": "636368 438935 504175",
    "rupay": "607384 652150 608032",
}


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def _pair(word: str) -> tuple[str, str]:
    """A word as it is written and as an address spells it."""
    native, _, roman = word.replace("_", " ").partition("=")
    folded = unicodedata.normalize("NFD", (roman or native).lower().translate(_LETTERS))
    return native, "".join(one for one in folded if one in string.ascii_lowercase)


def _choose(scene: Scene, language: str, field: str) -> tuple[str, str]:
    words = getattr(LOCALES[language or "en"], field).split()
    return _pair(scene.rng.choice(words))


def name(scene: Scene, argument: str) -> str:
    """A person; the next mailbox of the text is theirs. Argument: a language, `up` for capitals."""
    language, _, style = argument.partition(" ")
    forename, one = _choose(scene, language, "forenames")
    surname, two = _choose(scene, language, "surnames")
    scene.memory["person"] = f"{one} {two}"
    joint = "" if language in ("zh", "ja", "ko") else " "
    family_first = language in ("zh", "ja", "ko", "vi", "hu")
    parts = (surname, forename) if family_first else (forename, surname)
    text = joint.join(parts)
    return text.upper() if style == "up" else text


def forename(scene: Scene, argument: str) -> str:
    """A first name in a language; the next mailbox of the text is of somebody with this name."""
    native, one = _choose(scene, argument, "forenames")
    scene.memory["person"] = f"{one} {_choose(scene, argument, 'surnames')[1]}"
    return native


def surname(scene: Scene, argument: str) -> str:
    """A family name in a language; the next mailbox of the text is of somebody with this name."""
    native, two = _choose(scene, argument, "surnames")
    one, _, _ = scene.memory.get("person", "").partition(" ")
    scene.memory["person"] = f"{one or _choose(scene, argument, 'forenames')[1]} {two}"
    return native


def city(scene: Scene, argument: str) -> str:
    """A town where a language is spoken."""
    return _choose(scene, argument, "cities")[0]


def host(scene: Scene, argument: str) -> str:
    """A firm's domain in a language."""
    rng, locale = scene.rng, LOCALES[argument or "en"]
    trade = rng.choice(locale.trades.split())
    family = _choose(scene, argument, "surnames")[1]
    town = _choose(scene, argument, "cities")[1]
    label = rng.choice(
        [f"{family}-{trade}", f"{trade}-{town}", f"{family}{trade}", f"{trade}{town}"]
    )
    return f"{label}.{rng.choice(locale.endings.split())}"


def mail(scene: Scene, argument: str) -> str:
    """An address. Argument: a language and `free`, `firm`, `role`, `uni`, `dev` or nothing."""
    rng = scene.rng
    language, _, kind = argument.partition(" ")
    locale = LOCALES[language or "en"]
    kind = kind or rng.choice(["free", "firm"])
    if kind == "role":
        return f"{rng.choice(locale.roles.split())}@{host(scene, language)}"
    if "person" not in scene.memory:
        name(scene, language)
    one, two = scene.memory.pop("person").split(" ")
    if kind == "firm":
        local = rng.choice(
            [f"{one}.{two}", f"{one}.{two}", f"{one[0]}{two}", f"{one[0]}.{two}", one]
        )
        return f"{local}@{host(scene, language)}"
    if kind == "uni":
        local = rng.choice([f"{one}.{two}", f"{one[0]}{two}", two, one])
        return f"{local}@{rng.choice(locale.campus.split())}"
    number = str(rng.choice([rng.randrange(1, 100), rng.randrange(1960, 2008)]))
    handle = rng.choice(HANDLES.split())
    both = rng.choice([f"{one}.{two}", f"{one}{two}", f"{one}_{two}", f"{two}.{one}"])
    short = rng.choice([f"{one}{number}", f"{handle}{number}", f"{one[0]}{two}{number}"])
    local = rng.choice([both, short, f"{one}.{two}{number}"])
    if kind == "dev":
        own = f"{rng.choice([one, 'me', 'hi', 'dev', two])}@{two}.{rng.choice(_OWN_ENDINGS)}"
        return rng.choice([own, f"{local}@{rng.choice(DEVELOPER_HOSTS.split())}"])
    return f"{local}@{rng.choice(locale.mailboxes.split())}"


def user(scene: Scene, _: str) -> str:
    """A name on a forum or a login."""
    rng = scene.rng
    return rng.choice(HANDLES.split()) + rng.choice(["", "", str(rng.randrange(1, 100))])


def pick(scene: Scene, argument: str) -> str:
    """One of the alternatives between bars."""
    return scene.rng.choice(argument.split("|"))


def fill(scene: Scene, argument: str) -> str:
    """A pattern: `#` a digit, `%` one from 1 to 9, `^` a letter, `?` a small hexadecimal digit."""
    rng, kinds = scene.rng, {"#": string.digits, "%": "123456789"}
    kinds |= {"^": string.ascii_uppercase, "?": "0123456789abcdef"}
    return "".join(rng.choice(kinds.get(one, one)) for one in argument)


def phone(scene: Scene, argument: str) -> str:
    """A valid number outside the ranges of drama. Argument: region, blank, pattern as of `fill`.

    Raises ValueError if 3,000 draws of the pattern hold no valid number.
    """
    region, _, patterns = argument.partition(" ")
    pattern = scene.rng.choice(patterns.split("|"))
    for _ in range(3000):
        text = fill(scene, pattern)
        try:
            number = phonenumbers.parse(text, region)
        except phonenumbers.NumberParseException:
            continue
        international = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
        if phonenumbers.is_valid_number(number) and not _FICTION.match(international[1:]):
            return text
    raise ValueError(f"no valid number of {region} in {pattern}")


def number(scene: Scene, argument: str) -> str:
    """A whole number in a range `a-b`, both ends included."""
    low, _, high = argument.partition("-")
    return str(scene.rng.randint(int(low), int(high)))


def hexadecimal(scene: Scene, argument: str) -> str:
    """So many hexadecimal digits, the first one a letter."""
    return scene.rng.choice("abcdef") + "".join(
        scene.rng.choices("0123456789abcdef", k=int(argument) - 1)
    )


def date(scene: Scene, argument: str) -> str:
    """A moment from 2012 to 2025 in a form of `strftime`."""
    start = datetime.datetime(2012, 1, 1)
    moment = start + datetime.timedelta(seconds=scene.rng.randrange(14 * 365 * 86400))
    return moment.strftime(argument or "%Y-%m-%d")


def ip4(scene: Scene, argument: str) -> str:
    """A public IPv4 address of one machine. Argument: its first bytes, or nothing."""
    rng = scene.rng
    while True:
        begin = argument.split(".") if argument else [str(rng.randrange(23, 223))]
        rest = [str(rng.randrange(1, 255)) for _ in range(4 - len(begin))]
        address = ipaddress.IPv4Address(".".join(begin + rest))
        if address.is_global and not address.is_multicast:
            return str(address)


def ip6(scene: Scene, argument: str) -> str:
    """A public IPv6 address. Argument: `full` (eight groups), `short` (with `::`) or nothing."""
    rng = scene.rng
    prefix = rng.choice(_NETWORKS_6.split())

    def group() -> str:
        return f"{rng.randrange(16, 65536):x}"

    form = argument or rng.choice(["full", "short", "short"])
    if form == "full":
        return f"{prefix}:{':'.join(group() for _ in range(5))}"
    tail = rng.choice(["1", "2", "a", f"{group()}", f"{group()}:{group()}"])
    return f"{prefix}:{group()}::{tail}"


def private(scene: Scene, argument: str) -> str:
    """A private IPv4 address (RFC 1918). Argument: its first bytes, or nothing."""
    rng = scene.rng
    begin = argument or rng.choice(["10.0", "10", "192.168", "192.168.1", "192.168.0", "172.17.0"])
    parts = begin.split(".")
    return ".".join(parts + [str(rng.randrange(2, 254)) for _ in range(4 - len(parts))])


def reserved(scene: Scene, argument: str) -> str:
    """An address of the ranges for documentation (RFC 5737, RFC 3849). Argument: 4 or 6."""
    rng = scene.rng
    if argument == "6":
        return f"2001:db8:{rng.randrange(1, 9999):x}::{rng.randrange(1, 9999):x}"
    return f"{rng.choice(['192.0.2', '198.51.100', '203.0.113'])}.{rng.randrange(1, 255)}"


def card(scene: Scene, argument: str) -> str:
    """A card's number. Argument: network or `any`, then `s` blanks, `d` hyphens, `x` any style."""
    rng = scene.rng
    network, _, style = argument.partition(" ")
    if network in ("", "any"):
        network = rng.choice(["visa"] * 5 + ["mc"] * 4 + ["amex", "disc"])
    size = {"amex": 15, "diners": 14}.get(network, 16)
    while True:
        prefix = rng.choice(_PREFIXES[network].split())
        body = prefix + _digits(rng, size - 1 - len(prefix))
        whole = body + luhn_digit(body)
        if whole not in TEST_CARDS.split() and len(set(whole)) > 4:
            return _grouped(rng, whole, style)


def _grouped(rng: random.Random, digits: str, style: str) -> str:
    if style == "x":
        style = rng.choice(["", "s", "s"])
    if style not in ("s", "d"):
        return digits
    cuts = {15: (0, 4, 10, 15), 14: (0, 4, 10, 14)}.get(len(digits), (0, 4, 8, 12, 16))
    return {"s": " ", "d": "-"}[style].join(digits[at:to] for at, to in pairwise(cuts))


def published_card(scene: Scene, argument: str) -> str:
    """A published test number. Argument: `s`, `d` or nothing."""
    return _grouped(scene.rng, scene.rng.choice(TEST_CARDS.split()), argument)


def not_card(scene: Scene, argument: str) -> str:
    """Digits whose last one is not Luhn's. Argument: how many, how they begin, style."""
    rng = scene.rng
    size, _, rest = argument.partition(" ")
    begin, _, style = rest.partition(" ")
    begin = begin or rng.choice("123456789")
    body = begin + _digits(rng, int(size) - 1 - len(begin))
    return _grouped(rng, body + str((int(luhn_digit(body)) + rng.randrange(1, 10)) % 10), style)


def groups(scene: Scene, argument: str) -> str:
    """So many groups of four digits, no four of them together a number that passes Luhn."""
    count = int(argument)
    while True:
        parts = [_digits(scene.rng, 4) for _ in range(count)]
        runs = ["".join(parts[at : at + 4]) for at in range(count - 3)]
        if all(luhn_digit(run[:-1]) != run[-1] for run in runs):
            return " ".join(parts)


def imei(scene: Scene, _: str) -> str:
    """An IMEI: 15 digits from 35 on, the last one Luhn's (3GPP TS 23.003, annex B)."""
    body = "35" + _digits(scene.rng, 12)
    return body + luhn_digit(body)


def expiry(scene: Scene, argument: str) -> str:
    """Month and year of expiry. Argument: what joins them, then `y` for a year of four digits."""
    rng = scene.rng
    century = "20" if argument.endswith("y") else ""
    return f"{rng.randrange(1, 13):02}{argument[:1]}{century}{rng.randrange(22, 32)}"


MAKERS: dict[str, Maker] = {
    f"personal_{label}": maker
    for label, maker in {
        "name": name,
        "first": forename,
        "last": surname,
        "city": city,
        "host": host,
        "mail": mail,
        "user": user,
        "pick": pick,
        "fill": fill,
        "phone": phone,
        "num": number,
        "hex": hexadecimal,
        "date": date,
        "ip4": ip4,
        "ip6": ip6,
        "private": private,
        "reserved": reserved,
        "card": card,
        "testcard": published_card,
        "notcard": not_card,
        "groups": groups,
        "imei": imei,
        "expiry": expiry,
    }.items()
}
"""What the slots of this writer's templates name."""
