"""Makers of the personal kinds of the fifteenth blind set: email, phone, ip, card.

Patterns draw digits: `#` is any, `N` one of 2 to 9, `Z` one of 1 to 9, `{a|b}` one of the choices;
all else stands as it is.
"""

from __future__ import annotations

import datetime
import ipaddress
import random
import re
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.fifteenth_blind.personal_words import (
    FIRM_STEMS,
    FIRM_TAILS,
    FIRST_NAMES,
    LAST_NAMES,
    MAIL_HOSTS,
    ROLES,
    TOP_DOMAINS,
)

NETWORKS = {
    "visa": (("4539", "4716", "4485", "4929", "4024", "4556", "4147", "4266", "4751", "4978"), 16),
    "mc": (("5412", "5290", "5168", "5391", "5425", "5134", "5218", "5577", "2234", "2561"), 16),
    "amex": (("3714", "3724", "3763", "3791", "3437", "3772"), 15),
    "diners": (("3614", "3656", "3678"), 14),
    "discover": (("6011", "6445", "6510", "6498"), 16),
    "jcb": (("3529", "3541", "3568", "3583"), 16),
    "unionpay": (("6222", "6225", "6214", "6259"), 16),
    "mir": (("2200", "2202", "2204"), 16),
    "rupay": (("6073", "6521", "6080"), 16),
    "elo": (("6362", "5067", "6504"), 16),
    "maestro": (("6759", "6763", "5018"), 16),
}
"""First digits and length of the cards of a network."""
TEST_CARDS = {
    "visa": ("4111111111111111", "4242424242424242", "4012888888881881", "4000056655665556"),
    "mc": ("5555555555554444", "5105105105105100", "5200828282828210", "2223003122003222"),
    "amex": ("378282246310005", "371449635398431"),
    "discover": ("6011111111111117", "6011000990139424"),
    "jcb": ("3530111333300000", "3566002020360505"),
    "diners": ("30569309025904", "38520000023237"),
    "declined": ("4000000000000002", "4000000000009995", "4000002500003155"),
}
"""Numbers that payment services print for tests of their interfaces."""
_FICTION = re.compile(
    r"555|7700900|2079460|(\d)\1{5}|0?1632960|639980|19900....$|3023125|6990009|4066969"
    r"|2214710|8999998|17139200|1617155|491570|1234|5678|0000"
)
"""Digits of numbers that are reserved for films, and runs that look like placeholders."""
_V6_PREFIXES = (
    *("2a01:4f8", "2a02:8109", "2001:41d0", "2a00:1450", "2600:1f18", "2604:a880", "2a03:b0c0"),
    *("2003:e5", "2a01:e0a", "2400:cb00", "240e:3a1", "2804:14c", "2a0b:f4c2", "2607:f8b0"),
)
_DOTS = ("192.0.2.", "198.51.100.", "203.0.113.")


def fill_pattern(rng: random.Random, pattern: str) -> str:
    """The pattern with its choices and digits drawn."""
    chosen = re.sub(r"\{([^}]*)\}", lambda match: rng.choice(match[1].split("|")), pattern)
    digits = {"#": "0123456789", "N": "23456789", "Z": "123456789"}
    return "".join(rng.choice(digits[one]) if one in digits else one for one in chosen)


def _number(scene: Scene, pattern: str) -> str:
    return fill_pattern(scene.rng, pattern)


def _telephone(scene: Scene, pattern: str) -> str:
    while True:
        number = fill_pattern(scene.rng, pattern)
        if not _FICTION.search(re.sub(r"\D", "", number)):
            return number


def _person(scene: Scene, argument: str) -> tuple[str, str, str, str]:
    """First and last name as written, then both in the letters of an address."""

    def draw() -> str:
        first, last = (
            scene.rng.choice(FIRST_NAMES[argument[:2]]),
            scene.rng.choice(LAST_NAMES[argument[:2]]),
        )
        return "\n".join((first[0], last[0], first[1], last[1]))

    one, two, three, four = scene.once(f"person {argument}", draw).split("\n")
    return one, two, three, four


def _first(scene: Scene, argument: str) -> str:
    return _person(scene, argument)[0]


def _last(scene: Scene, argument: str) -> str:
    return _person(scene, argument)[1]


def _name(scene: Scene, argument: str) -> str:
    first, last, *_ = _person(scene, argument)
    if argument[:2] in ("ja", "zh", "ko"):
        return f"{last}{' ' if argument[:2] == 'ja' else ''}{first}"
    return f"{last} {first}" if argument[:2] in ("hu", "vi") else f"{first} {last}"


def _user(scene: Scene, argument: str) -> str:
    _, _, first, last = _person(scene, argument or "en")
    forms = (f"{first[0]}{last}", f"{first}{last[:2]}", f"{last}{scene.rng.randrange(2, 99)}")
    return scene.once(f"user {argument}", lambda: scene.rng.choice(forms))


def _firm(scene: Scene, argument: str) -> str:
    def draw() -> str:
        return scene.rng.choice(FIRM_STEMS) + scene.rng.choice(FIRM_TAILS)

    return scene.once(f"firm {argument}", draw)


def _domain(scene: Scene, argument: str) -> str:
    """The domain of the firm of a text, under a domain of the language."""
    top = scene.once(f"top {argument}", lambda: scene.rng.choice(TOP_DOMAINS[argument[:2] or "en"]))
    return f"{_firm(scene, argument[2:])}.{top}"


def _title(scene: Scene, argument: str) -> str:
    """The name of the firm of a text as a heading."""
    return _firm(scene, argument).replace("-", " ").title()


def _email(scene: Scene, argument: str) -> str:
    """An address: `LANGUAGE[NUMBER][,firm|role|free]`; by default a mailbox of a provider."""
    who, _, form = argument.partition(",")
    rng, language = scene.rng, who[:2]
    _, _, first, last = _person(scene, who)
    if form == "role":
        return f"{rng.choice(ROLES.get(language, ROLES['en']))}@{_domain(scene, language)}"
    if form == "firm":
        local = rng.choice((f"{first}.{last}", f"{first}.{last}", f"{first[0]}{last}", first, last))
        return f"{local}@{_domain(scene, language)}"
    two = str(rng.randrange(1, 99))
    local = rng.choice(
        (
            *(f"{first}.{last}", f"{first}{last}", f"{first}_{last}", f"{first}.{last}{two}"),
            *(f"{first}{rng.randrange(1968, 2006)}", f"{last}{first}", f"{first[0]}.{last}{two}"),
        )
    )
    if language == "zh" and rng.random() < 0.5:
        return fill_pattern(rng, "Z########{|#}") + rng.choice(("@qq.com", "@163.com", "@126.com"))
    return f"{local}@{rng.choice(MAIL_HOSTS[language])}"


def _join(digits: str, form: str) -> str:
    """The digits of a card in groups; a plain run without a form."""
    if not form:
        return digits
    sizes = {15: (4, 6, 5), 14: (4, 6, 4)}.get(len(digits), (4, 4, 4, 4))
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    blank = {"s": " ", "n": "\u00a0"}.get(form, form)
    return blank.join(
        digits[start : start + size] for start, size in zip(starts, sizes, strict=True)
    )


def _card(scene: Scene, argument: str) -> str:
    """A card's number: `NETWORK[,FORM]`; the form is what separates its groups (`s`: a blank)."""
    network, _, form = argument.partition(",")
    prefixes, size = NETWORKS[network]
    while True:
        body = fill_pattern(scene.rng, scene.rng.choice(prefixes) + "#" * (size - 5))
        if not re.search(r"(\d)\1{4}", body):
            return _join(body + luhn_digit(body), form)


def _test_card(scene: Scene, argument: str) -> str:
    network, _, form = argument.partition(",")
    return _join(scene.rng.choice(TEST_CARDS[network]), form)


def _not_card(scene: Scene, pattern: str) -> str:
    """Digits by a pattern whose last one is not Luhn's; the last sign of the pattern is a digit."""
    text = fill_pattern(scene.rng, pattern)
    right = luhn_digit(re.sub(r"\D", "", text)[:-1])
    if text[-1] != right:
        return text
    return text[:-1] + str((int(right) + scene.rng.randrange(1, 10)) % 10)


def _luhn(scene: Scene, pattern: str) -> str:
    """Digits by a pattern, and Luhn's digit behind them (an IMEI, a SIM's number)."""
    text = fill_pattern(scene.rng, pattern)
    return text + luhn_digit(re.sub(r"\D", "", text))


def _expiry(scene: Scene, form: str) -> str:
    month, year = scene.rng.randrange(1, 13), scene.rng.randrange(2026, 2032)
    return (
        (form or "mm/yy")
        .replace("mm", f"{month:02}")
        .replace("yyyy", str(year))
        .replace("yy", f"{year % 100:02}")
    )


def _v4(scene: Scene, argument: str) -> str:
    """A public address of one machine: no round octets, none of a known resolver."""
    while True:
        head = scene.rng.choice((5, 31, 37, 45, 46, 62, 78, 80, 85, 88, 91, 93, 104, 109, 138, 142))
        head = scene.rng.choice((head, scene.rng.randrange(23, 100), scene.rng.randrange(128, 223)))
        octets = [head, *(scene.rng.randrange(2, 254) for _ in range(3))]
        text = ".".join(map(str, octets))
        if ipaddress.ip_address(text).is_global and len(set(octets)) == 4:
            return text.replace(".", argument or ".")


def _network(scene: Scene, argument: str) -> str:
    """A public network of IPv4 with its length: 8, 16, 20, 22 or 24 bits."""
    size = int(argument or scene.rng.choice(("16", "20", "22", "24")))
    return str(ipaddress.ip_network(f"{_v4(scene, '')}/{size}", strict=False))


def _v6(scene: Scene, argument: str) -> str:
    """A public IPv6 address: `full`, `upper`, `short` (::n), or any without an argument."""
    rng = scene.rng
    groups = rng.choice(_V6_PREFIXES).split(":")
    form = argument or rng.choice(("full", "full", "short", "mixed"))
    parts = [f"{rng.randrange(0x11, 0x10000):x}" for _ in range(8 - len(groups))]
    if form == "short":
        return ":".join([*groups, *parts[: rng.choice((1, 2))]]) + f"::{rng.randrange(2, 0x3FF):x}"
    if form == "mixed":
        return ":".join([*groups, *parts[:2]]) + "::" + ":".join(parts[-2:])
    text = ":".join([*groups, *parts])
    return text.upper() if form == "upper" else text


def _private(scene: Scene, argument: str) -> str:
    """A private or reserved address: 10, 172, 192, shared, link, doc, loop, group, ula, …"""
    rng = scene.rng
    one, two, three = (rng.randrange(2, 254) for _ in range(3))
    return {
        "10": f"10.{one}.{two}.{three}",
        "172": f"172.{rng.randrange(16, 32)}.{two}.{three}",
        "192": f"192.168.{rng.choice((0, 1, 2, 10, 50, 178))}.{three}",
        "shared": f"100.{rng.randrange(64, 128)}.{two}.{three}",
        "link": f"169.254.{two}.{three}",
        "doc": f"{rng.choice(_DOTS)}{three}",
        "loop": f"127.0.{rng.choice((0, 0, 1))}.{rng.choice((1, 1, 53, three))}",
        "group": f"{rng.choice((224, 239))}.{one}.{two}.{three}",
        "ula": f"fd{rng.randrange(256):02x}:{one:x}a:{two:x}c::{three:x}",
        "link6": f"fe80::{one:x}{two:02x}:{three:x}ff:fe{one:02x}:{two:x}{three:02x}",
        "doc6": f"2001:db8:{one:x}:{two:x}::{three:x}",
    }[argument]


def _letters(alphabet: str) -> Maker:
    def make(scene: Scene, argument: str) -> str:
        return "".join(scene.rng.choice(alphabet) for _ in range(int(argument)))

    return make


def _pick(scene: Scene, argument: str) -> str:
    return scene.rng.choice(argument.split("|"))


def _integer(scene: Scene, argument: str) -> str:
    first, _, last = argument.partition("-")
    return str(scene.rng.randrange(int(first), int(last) + 1))


def _date(scene: Scene, argument: str) -> str:
    start = datetime.datetime(2016, 1, 1, tzinfo=datetime.UTC)
    moment = start + datetime.timedelta(seconds=scene.rng.randrange(300_000_000))
    if argument == "epoch":
        return str(int(moment.timestamp()))
    return moment.strftime(argument or "%Y-%m-%d")


MAKERS: dict[str, Maker] = {
    "personal_email": _email,
    "personal_name": _name,
    "personal_first": _first,
    "personal_last": _last,
    "personal_user": _user,
    "personal_firm": _firm,
    "personal_title": _title,
    "personal_domain": _domain,
    "personal_tel": _telephone,
    "personal_num": _number,
    "personal_card": _card,
    "personal_testcard": _test_card,
    "personal_bad": _not_card,
    "personal_luhn": _luhn,
    "personal_exp": _expiry,
    "personal_v4": _v4,
    "personal_v6": _v6,
    "personal_net": _network,
    "personal_private": _private,
    "personal_hex": _letters("0123456789abcdef"),
    "personal_alnum": _letters(string.ascii_letters + string.digits),
    "personal_upper": _letters(string.ascii_uppercase + string.digits),
    "personal_lower": _letters(string.ascii_lowercase),
    "personal_pick": _pick,
    "personal_int": _integer,
    "personal_date": _date,
}
"""What draws the slots of the templates of email, phone, ip and card."""
