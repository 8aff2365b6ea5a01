"""Values of people: addresses of mail, phones, IP addresses, cards and IBANs, and near misses."""

from __future__ import annotations

import ipaddress
import random
import string
import unicodedata

from tests.benchmarks.fourth_blind.templates import Make
from tests.benchmarks.fourth_blind.words import FAMILY, GIVEN, MAILERS, domain, draw

NATIONAL: dict[str, tuple[str, ...]] = {
    "DE": ("030 68#####0", "0171 3#####2", "089/45####-#0", "(0221) 97####5", "0151-62####73"),
    "FR": ("01 45 ## ## ##", "06.71.##.##.##", "04-78-##-##-##", "0612######"),
    "GB": ("0161 496 2###", "07812 ######", "(0117) 925 ####", "020 8985 ####"),
    "US": ("(503) 228-####", "617-492-####", "312.427.####", "206 325 ####"),
    "ES": ("91 532 ## ##", "612 ## ## ##", "934 ### ###"),
    "IT": ("06 4782 ####", "347 61#####", "02/86####47"),
    "BR": ("(11) 98###-####", "(21) 2553-####", "41 99###-####"),
    "NL": ("020-62#-####", "06 1234 ####", "0302 3####8"),
    "PL": ("22 621 ## ##", "601 ### ###", "12 422-##-##"),
    "RU": ("8 (495) 62#-##-##", "8 916 ###-##-##", "8-812-31#-##-##"),
    "JP": ("03-3581-####", "090-3###-####", "06-6345-####"),
    "KR": ("02-734-####", "010-3###-####", "051-464-####"),
    "TR": ("0212 293 ## ##", "0532 ### ## ##", "(0312) 418 ## ##"),
    "CN": ("010-6512####", "138 0### ####", "021-6329####"),
    "SE": ("08-654 ## ##", "070-3## ## ##"),
    "IN": ("022 2284 ####", "98200 #####"),
}
"""How phone numbers are written at home; `#` is any digit. None lies in a range for fiction."""

INTERNATIONAL = (
    *("+49 30 68#####0", "+49 (0)171 3#####2", "+33 1 45 ## ## ##", "+33 (0)6 71 ## ## ##"),
    *("+44 7812 ######", "+44 (0)117 925 ####", "+1 503 228 ####", "+1-617-492-####"),
    *("+1 (312) 427-####", "+34 91 532 ## ##", "+39 06 4782 ####", "+55 11 98###-####"),
    *("+31 20 62# ####", "+48 22 621 ## ##", "+7 495 62#-##-##", "+81 3-3581-####"),
    *("+82 10-3###-####", "+90 212 293 ## ##", "+86 138 0### ####", "+46 70 3## ## ##"),
    *("0049 89 45####0", "+91 98200 #####", "+41 44 261 ## ##", "+43 1 512 ## ##"),
)

CARDS = (
    *(("4539", 16), ("4916", 16), ("4024", 16), ("5246", 16), ("5412", 16), ("2720", 16)),
    *(("3728", 15), ("3437", 15), ("6011", 16), ("3589", 16), ("3614", 14), ("5588", 16)),
)
"""First digits and lengths of Visa, Mastercard, American Express, Discover, JCB and Diners."""

PUBLISHED_CARDS = (
    *("4242 4242 4242 4242", "4111111111111111", "5555555555554444", "3782 822463 10005"),
    *("4000 0566 5566 5556", "6011111111111117", "5105-1051-0510-5100"),
)
"""Test numbers that providers of payment print in their documentation."""

IBANS = {
    "DE": "#" * 18,
    "AT": "#" * 16,
    "CH": "#" * 17,
    "NL": "INGB" + "#" * 10,
    "GB": "NWBK" + "#" * 14,
    "IE": "AIBK" + "#" * 14,
    "DK": "#" * 14,
    "SE": "#" * 20,
    "LU": "#" * 16,
    "GR": "#" * 23,
    "RO": "BTRL" + "A#" * 8,
    "TR": "#####0" + "#" * 16,
    "SA": "##" + "#" * 18,
    "AE": "#" * 19,
    "BG": "UNCR" + "#" * 14,
    "CY": "#" * 24,
    "LV": "HABA" + "#" * 13,
    "LT": "#" * 16,
}
"""Bank's part of an IBAN: `#` is a digit, `A` a letter where it follows the bank's name."""

PUBLISHED_IBANS = (
    *("DE89 3704 0044 0532 0130 00", "GB82 WEST 1234 5698 7654 32", "NL91ABNA0417164300"),
    *("FR14 2004 1010 0505 0001 3M02 606", "CH93 0076 2011 6238 5295 7", "DE89370400440532013000"),
)
"""Examples that the registry and documentation print."""


def _ascii(name: str) -> str:
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()


def email(rng: random.Random, form: str = "") -> str:
    """An address of mail: `obfuscated`, `foreign` and `quoted` are rarer ways to write one."""
    given, family = rng.choice(GIVEN).lower(), rng.choice(FAMILY).lower()
    local = rng.choice(
        (
            *(f"{given}.{family}", f"{given[0]}{family}", f"{given}_{family}{rng.randint(60, 99)}"),
            *(f"{family}.{given[0]}", f"{given}{rng.randint(1, 999)}", f"{given}-{family}"),
            *(f"{given}.{family}+{rng.choice(('lists', 'git', 'shop'))}", f"{family}{given[:2]}"),
        )
    )
    at = rng.choice(MAILERS) if rng.random() < 0.5 else domain(rng)
    if form == "role":
        return f"{rng.choice(('kontakt', 'info', 'sales', 'office', 'bestellung'))}@{domain(rng)}"
    if form == "obfuscated":
        name, _, last = at.rpartition(".")
        return f"{local.replace('+', '.')} [at] {name.replace('.', ' [dot] ')} [dot] {last}"
    if form == "foreign":
        names = ("jürgen.möller", "josé.muñoz", "zoë.çelik", "søren.ødegård", "иван.петров")
        return f"{rng.choice(names)}@{rng.choice(('bücherei-köln.de', 'café-liège.be', at))}"
    if form == "upper":
        return f"{local}@{at}".upper()
    return f"{local}@{at}"


def phone(rng: random.Random, region: str = "") -> str:
    """A phone number as written at home in a region, or with its country's code."""
    forms = NATIONAL[region] if region else INTERNATIONAL
    return "".join(rng.choice(string.digits) if c == "#" else c for c in rng.choice(forms))


def ipv4(rng: random.Random, _: str = "") -> str:
    """A routable address of version 4 outside the ranges for documentation."""
    while True:
        first = rng.choice((24, 37, 46, 62, 77, 80, 85, 91, 109, 151, 176, 185, 188, 194, 212, 217))
        address = f"{first}.{rng.randint(1, 254)}.{rng.randint(1, 254)}.{rng.randint(1, 254)}"
        if ipaddress.ip_address(address).is_global:
            return address


def ipv6(rng: random.Random, form: str = "") -> str:
    """A routable address of version 6, as `long` or in its short form."""
    prefix = rng.choice((0x2A01_04F8, 0x2001_0470, 0x2A02_0908, 0x2600_1700, 0x2804_14D4))
    low = rng.getrandbits(64) if rng.random() < 0.6 else rng.randint(2, 0xFFFF)
    address = ipaddress.IPv6Address(prefix << 96 | rng.getrandbits(32) << 64 | low)
    return address.exploded if form == "long" else str(address)


def luhn(digits: str) -> int:
    """The check digit that ends a number whose other digits are these."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return -total % 10


def card(rng: random.Random, form: str = "") -> str:
    """A card's number with its check digit; `form` is what parts its groups, or `any`."""
    first, size = rng.choice(CARDS)
    body = first + draw(string.digits, size - len(first) - 1, rng)
    number = body + str(luhn(body))
    joint = {"": "", "any": rng.choice((" ", "-", "", "\u00a0")), "thin": "\u202f"}.get(form, form)
    if size == 16:
        return joint.join(number[k : k + 4] for k in range(0, 16, 4))
    return joint.join((number[:4], number[4:10], number[10:]))


def no_card(rng: random.Random, form: str = "") -> str:
    """A number like a card's, whose check digit is wrong."""
    number = card(rng, form)
    return number[:-1] + str((int(number[-1]) + rng.randint(1, 9)) % 10)


def mod97(text: str) -> int:
    """The remainder by 97 of an IBAN whose first four characters moved to its end."""
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97


def iban(rng: random.Random, form: str = "") -> str:
    """An IBAN with its check digits; `form`: `plain`, `nbsp`, `thin`, `lower`, else groups."""
    country = rng.choice(sorted(IBANS))
    bank = IBANS[country]
    filled = bank[:4] + "".join(
        rng.choice(string.ascii_uppercase) if c == "A" else c for c in bank[4:]
    )
    filled = "".join(rng.choice(string.digits) if c == "#" else c for c in filled)
    bare = f"{country}00{filled}"
    number = f"{country}{98 - mod97(bare):02d}{filled}"
    groups = [number[k : k + 4] for k in range(0, len(number), 4)]
    joint = {"plain": "", "lower": "", "nbsp": "\u00a0", "thin": "\u2009", "dash": "-"}
    text = joint.get(form, " ").join(groups)
    return text.lower() if form == "lower" else text


def no_iban(rng: random.Random, form: str = "") -> str:
    """An IBAN whose check digits are wrong."""
    number = iban(rng, form)
    wrong = (int(number[2:4]) + rng.randint(1, 96) - 2) % 97 + 2
    while wrong == int(number[2:4]):
        wrong = (wrong + 1 - 2) % 97 + 2
    return f"{number[:2]}{wrong:02d}{number[4:]}"


def _private(rng: random.Random, _: str) -> str:
    return rng.choice(
        (
            f"10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}",
            f"192.168.{rng.randint(0, 255)}.{rng.randint(1, 254)}",
            f"172.{rng.randint(16, 31)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}",
        )
    )


def _reserved(rng: random.Random, _: str) -> str:
    return f"{rng.choice(('192.0.2', '198.51.100', '203.0.113'))}.{rng.randint(1, 254)}"


def _reserved6(rng: random.Random, _: str) -> str:
    return str(ipaddress.IPv6Address(0x2001_0DB8 << 96 | rng.getrandbits(16)))


def _isbn(rng: random.Random, _: str) -> str:
    body = "978" + draw(string.digits, 9, rng)
    check = -sum(int(c) * (3 if k % 2 else 1) for k, c in enumerate(body)) % 10
    return f"{body[:3]}-{body[3]}-{body[4:8]}-{body[8:12]}-{check}"


def _fiction(rng: random.Random, _: str) -> str:
    last = rng.randint(100, 199)
    return rng.choice((f"212-555-0{last}", f"(415) 555-0{last}", f"07700 900{last}"))


PERSONAL: dict[str, Make] = {
    "email": email,
    "phone": phone,
    "ipv4": ipv4,
    "ipv6": ipv6,
    "card": card,
    "iban": iban,
    "no_card": no_card,
    "no_iban": no_iban,
    "published_card": lambda rng, _: rng.choice(PUBLISHED_CARDS),
    "published_iban": lambda rng, _: rng.choice(PUBLISHED_IBANS),
    "private_ip": _private,
    "reserved_ip": _reserved,
    "reserved_ip6": _reserved6,
    "isbn": _isbn,
    "fiction": _fiction,
}
"""Makers of personal data and of what looks like it, by the names that templates use."""
