"""Values of people in the eleventh set: addresses, numbers of phones, machines, cards, accounts."""

from __future__ import annotations

import ipaddress
import random
import re
import string
from itertools import pairwise

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.eleventh_blind.words import (
    FIRST,
    FREE_MAIL,
    LAST,
    domain,
    pick,
    split_words,
)

ROLES = (
    *("info", "info", "contact", "kontakt", "support", "sales", "office", "billing", "hello"),
    *("security", "service", "privacy", "jobs", "press", "orders", "bestellung", "redaktion"),
)
AREAS = {
    "us": split_words("212 303 312 404 415 503 512 617 702 718 816 919 972"),
    "de": split_words("030 040 069 089 0211 0221 0341 0421 0511 0711 0761 0911"),
    "uk": split_words("0113 0114 0115 0117 0121 0131 0141 0151"),
    "it": split_words("02 06 011 041 051 055 081"),
    "nl": split_words("010 020 030 040 050 070"),
    "at": split_words("01 0316 0512 0662 0732"),
    "br": split_words("11 21 31 41 51 61"),
    "jp": split_words("03 06"),
}
PLANS = {
    "us": ("(A) E-####", "A-E-####", "A.E.####", "(A)E-####", "A E ####"),
    "us_intl": ("+1 A E ####", "+1 (A) E-####", "+1-A-E-####", "+1AE####", "1-A-E-####"),
    "us_free": ("1-8!!-E-####", "(8!!) E-####", "1 8!! E ####", "+1 8!! E ####"),
    "de": (
        "A / %## ## ##",
        "A %######",
        "A/%## ## ##",
        "A - %## ## ## #",
        "(A) %####-##",
        "A-%######",
    ),
    "de_intl": (
        "+49 B %######",
        "+49 (0)B %## ## ##",
        "+49 (B) %#####-##",
        "+49-B-%######",
        "+49B%######",
    ),
    "de_mobile": (
        "017# #######",
        "0151 ########",
        "+49 176 ########",
        "0160/#######",
        "+4917########",
    ),
    "fr": ("0@ ## ## ## ##", "0@.##.##.##.##", "0@########", "0@-##-##-##-##"),
    "fr_intl": ("+33 @ ## ## ## ##", "+33 (0)@ ## ## ## ##", "+33@########"),
    "uk": ("020 7%## ####", "A %## ####", "(A) %## ####", "07%## ######", "07%########"),
    "uk_intl": ("+44 20 7%## ####", "+44 (0)B %## ####", "+44 7%## ######", "+447%########"),
    "it": ("A %######", "+39 A %######", "A/%######", "3%# #######", "+39 3%# ### ####"),
    "es": ("9%# ## ## ##", "9%# ### ###", "+34 6## ### ###", "+34 9%# ## ## ##"),
    "nl": ("A-%## ## ##", "+31 (0)B %######", "06-%#######", "+31 6 %#######"),
    "ch": ("044 %## ## ##", "+41 44 %## ## ##", "+41 (0)79 %## ## ##", "079 %## ## ##"),
    "at": ("A/%## ## ##", "+43 B %## ## ##", "+43 (0)B %######", "0664 / ### ## ##"),
    "se": ("08-%## ## ##", "070-### ## ##", "+46 8 %## ## ##", "+46 70 ### ## ##"),
    "pl": ("22 %## ## ##", "+48 22 %## ## ##", "+48 6## ### ###", "6## ### ###"),
    "br": ("(A) 9%###-####", "+55 A 9%###-####", "(A) 3###-####"),
    "in": ("+91 9#### #####", "+91-98########", "+91 8#########"),
    "jp": ("A-%###-####", "090-%###-####", "+81-3-%###-####"),
    "ru": ("+7 (495) %##-##-##", "8 (812) %##-##-##", "+7 9## ###-##-##", "8-9##-###-##-##"),
    "dk": ("%# ## ## ##", "+45 %# ## ## ##"),
    "au": ("(02) 9### ####", "+61 2 9### ####", "1300 %## ###"),
    "cn": ("+86 10 8### ####", "13# #### ####", "+86 138 #### ####"),
}
# 555 numbers; ranges that Ofcom, Arcep and ACMA keep for drama; and, of +49, those of the BNetzA
FICTION = re.compile(
    r"555|7946 ?0|0?1632|(?<!\d)(0?1(13|14|15|17|21|31|41|51|61)) 496 0|7700 ?900|"
    r"0?19900|0?26191|0?35301|0?46571|0?53649|0?63998|23125|66969|4004|49 ?15706|5550|7010"
)
IBANS = {
    "DE": "dddddddddddddddddd", "AT": "dddddddddddddddd", "CH": "dddddcccccccccccc",
    "FR": "ddddddddddcccccccccccdd", "ES": "dddddddddddddddddddd", "IT": "Addddddddddcccccccccccc",
    "NL": "AAAAdddddddddd", "BE": "dddddddddddd", "GB": "AAAAdddddddddddddd",
    "IE": "AAAAdddddddddddddd", "PT": "ddddddddddddddddddddd", "PL": "dddddddddddddddddddddddd",
    "SE": "dddddddddddddddddddd", "DK": "dddddddddddddd", "FI": "dddddddddddddd",
    "NO": "ddddddddddd", "CZ": "dddddddddddddddddddd", "LU": "dddccccccccccccc",
    "RO": "AAAAcccccccccccccccc",
}  # fmt: skip
CARDS = ("4", "4", "4", "51", "52", "53", "54", "55", "2221", "2720", "34", "37", "6011", "65")


def slug(name: str) -> str:
    """The name as it stands in an address."""
    return name.lower()


def make_email(rng: random.Random, style: str = "") -> str:
    """An address of a person (at a firm or a mail service) or of an office."""
    first, last = slug(rng.choice(FIRST)), slug(rng.choice(LAST))
    style = style or rng.choice(("person", "person", "role", "free"))
    if style == "role":
        return f"{rng.choice(ROLES)}@{domain(rng)}"
    if style == "free":
        tail = rng.choice(("", str(rng.randrange(60, 99)), str(rng.randrange(100))))
        local = rng.choice(
            (f"{first}.{last}{tail}", f"{first}{last}{tail}", f"{last}{tail}", f"{first}_{last}")
        )
        return f"{local}@{rng.choice(FREE_MAIL)}"
    local = rng.choice((f"{first}.{last}", f"{first[0]}.{last}", f"{first[0]}{last}", first, last))
    sub = rng.choice(("", "", "", "cs.", "mail."))
    return f"{local}@{sub}{domain(rng)}"


def make_phone(rng: random.Random, plan: str) -> str:
    """A number of a plan, outside the ranges kept for fiction."""
    country = plan.partition("_")[0]
    while True:
        form = rng.choice(PLANS[plan])
        area = rng.choice(AREAS.get(country, ("",)))
        exchange = f"{rng.randrange(200, 999)}"
        text = form.replace("A", area).replace("B", area.lstrip("0")).replace("E", exchange)
        text = text.replace("!!", rng.choice(("00", "88", "77", "66")))
        text = text.replace("@", rng.choice("123459667"))
        text = re.sub("%", lambda _: rng.choice("23456789"), text)
        text = re.sub("#", lambda _: rng.choice(string.digits), text)
        digits = re.sub(r"\D", "", text)
        repeats = re.search(r"(\d)\1{4}|1234|5678", digits)
        if (
            not repeats
            and exchange[1:] != "11"
            and not FICTION.search(text)
            and not FICTION.search(digits)
        ):
            return text


def make_ipv4(rng: random.Random) -> str:
    """A public unicast address that is nobody's example."""
    while True:
        address = ipaddress.IPv4Address(rng.randrange(11 << 24, 223 << 24))
        octets = address.packed
        plain = address.is_global and not address.is_multicast and 0 < octets[3] < 255
        if plain and len(set(octets)) == 4 and octets[0] not in (100, 127, 169, 172, 192, 198, 203):
            return str(address)


def make_ipv6(rng: random.Random) -> str:
    """A global unicast address of one host."""
    head = rng.choice(("2a01", "2a02", "2600", "2001:41d0", "2a03", "2804", "2607"))
    count = 8 - len(head.split(":"))
    groups = [f"{rng.randrange(0x100, 0xFFFF):x}" for _ in range(count)]
    if rng.random() < 0.5:
        groups[3:] = ["", f"{rng.randrange(2, 0xFFFF):x}"]
    return ":".join([head, *groups])


def make_card(rng: random.Random, style: str = "") -> str:
    """A number with an issuer's first digits and a right check digit, in a usual grouping."""
    head = rng.choice(
        [one for one in CARDS if one not in ("34", "37")] if style == "four" else CARDS
    )
    size = 15 if head in ("34", "37") else 16
    body = head + pick(rng, string.digits, size - 1 - len(head))
    number = body + luhn_digit(body)
    joint = {"plain": "", "space": " ", "dash": "-"}.get(style) if style else None
    if joint is None:
        joint = rng.choice((" ", " ", "-", ""))
    cuts = (0, 4, 10, 15) if size == 15 else (0, 4, 8, 12, 16)
    return joint.join(number[a:b] for a, b in pairwise(cuts))


def make_iban(rng: random.Random, country: str) -> str:
    """An account number with the length of its country and right check digits (ISO 13616)."""
    alphabets = {"d": string.digits, "A": string.ascii_uppercase, "c": string.digits}
    bban = "".join(rng.choice(alphabets[sign]) for sign in IBANS[country])
    number = "".join(str(int(c, 36)) for c in f"{bban}{country}00")
    return f"{country}{98 - int(number) % 97:02}{bban}"


def grouped(compact: str) -> str:
    """In groups of four."""
    return " ".join(compact[at : at + 4] for at in range(0, len(compact), 4))


def _email(scene: Scene, argument: str) -> str:
    if argument == "of":  # the address of the person that the text names as <<first@1>> <<last@1>>
        first = slug(scene.once("first@1", lambda: scene.rng.choice(FIRST)))
        last = slug(scene.once("last@1", lambda: scene.rng.choice(LAST)))
        local = scene.rng.choice((f"{first}.{last}", f"{first[0]}{last}", first, f"{last}"))
        return f"{local}@{scene.rng.choice((domain(scene.rng), scene.rng.choice(FREE_MAIL)))}"
    return make_email(scene.rng, argument)


def _iban(scene: Scene, argument: str) -> str:
    country, _, style = argument.partition("_")
    compact = make_iban(scene.rng, country or scene.rng.choice(list(IBANS)))
    spaced = scene.rng.random() < 0.6 if not style else style == "spaced"
    return grouped(compact) if spaced else compact


def _wrong_digits(scene: Scene, argument: str) -> str:
    """A long number that fails Luhn's check: an order, a transaction, a time in microseconds."""
    size, first = int(argument), scene.rng.choice("12346789")
    body = first + pick(scene.rng, string.digits, size - 2)
    return body + str((int(luhn_digit(body)) + scene.rng.randrange(1, 9)) % 10)


def _imei(scene: Scene, argument: str) -> str:
    body = scene.rng.choice(("35", "86")) + pick(scene.rng, string.digits, 12)
    return body + luhn_digit(body)


def _private_ip(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return rng.choice(
        (
            f"192.168.{rng.randrange(0, 60)}.{rng.randrange(2, 250)}",
            f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}",
            f"172.{rng.randrange(16, 32)}.{rng.randrange(4)}.{rng.randrange(1, 255)}",
        )
    )


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": _email,
    "phone": lambda scene, plan: make_phone(scene.rng, plan or scene.rng.choice(list(PLANS))),
    "ip": lambda scene, _: make_ipv4(scene.rng),
    "ip6": lambda scene, _: make_ipv6(scene.rng),
    "card": lambda scene, style: make_card(scene.rng, style),
    "iban": _iban,
    "notcard": _wrong_digits,
    "imei": _imei,
    "lan": _private_ip,
}
