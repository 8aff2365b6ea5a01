"""Personal data of the tenth blind set, drawn in the forms that registries and carriers publish."""

from __future__ import annotations

import ipaddress
import random
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.tenth_blind.words import firm, person, pick, split

MAILBOXES = split("""
gmail.com gmail.com gmail.com qq.com hotmail.com yahoo.com outlook.com 163.com 126.com gmx.de
web.de orange.fr libero.it mail.ru yandex.ru naver.com icloud.com proton.me yahoo.com.br
""")
ORGANISATIONS = [
    "{}.com",
    "{}.org",
    "{}.de",
    "{}.fr",
    "{}.co.uk",
    "{}.io",
    "mail.{}.net",
    "cs.{}.edu",
    "{}.ac.jp",
]
OFFICES = split("info contact support hello sales office billing admin team press jobs")
RESERVED_MAIL = split("""
user@example.com john.doe@example.com test@example.org admin@example.net you@yourdomain.com
jane@example.com first.last@example.org qa@acme.test noreply@example.com
""")


def make_email(scene: Scene, argument: str) -> str:
    """The address of the text's person, or with `office` that of a firm's office."""
    rng = scene.rng
    host = rng.choice(ORGANISATIONS).format(firm(scene).lower())
    if argument == "office":
        return f"{rng.choice(OFFICES)}@{host}"
    first, last = person(scene).lower().replace("-", "").split()
    local = rng.choice(
        [
            f"{first}.{last}",
            f"{first}{last}",
            f"{first[0]}{last}",
            f"{first}{rng.randint(2, 989)}",
            f"{last}.{first}{rng.randint(61, 99)}",
            f"{first}_{last}",
            f"{last}{first[:2]}",
        ]
    )
    if argument != "work" and rng.random() < 0.6:
        host = rng.choice(MAILBOXES)
        if host == "qq.com":
            local = rng.choice("123456789") + pick(rng, string.digits, rng.randint(7, 9))
    return f"{local}@{host}"


# Calling code, trunk prefix, and national numbers in their groups: N is 2 to 9, X any digit. The
# ranges that regulators keep for fiction are in none of them.
PLANS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "US": (
        "1",
        "",
        ("212 4NX XXXX", "415 7NX XXXX", "503 2NX XXXX", "617 8NX XXXX", "312 6NX XXXX"),
    ),
    "CA": ("1", "", ("416 9NX XXXX", "604 6NX XXXX")),
    "GB": ("44", "0", ("20 8NXX XXXX", "161 8NX XXXX", "7NXX 8XX XXX", "1475 6NX XXX")),
    "DE": ("49", "0", ("30 2NXX XXXX", "89 5NXX XXX", "171 NXX XXXX", "40 3NX XXX NX")),
    "FR": ("33", "0", ("1 4N XX XX XX", "6 7X XX XX XX", "4 7N XX XX XX", "7 6X XX XX XX")),
    "IN": ("91", "0", ("9N1XX XXXXX", "8NXXX XXXXX", "7NXXX XXXXX")),
    "IT": ("39", "", ("02 4NXX XXXX", "347 NXX XXXX", "06 5NXX XXXX")),
    "ES": ("34", "", ("91 4NX XX XX", "6N4 XXX XXX", "93 2NX XX XX")),
    "NL": ("31", "0", ("20 6NX XXXX", "6 2NXX XXXX")),
    "PL": ("48", "", ("22 6NX XX XX", "60N XXX XXX")),
    "BR": ("55", "", ("11 9NXXX XXXX", "19 9NXXX XXXX", "21 2NXX XXXX")),
    "MX": ("52", "", ("81 1NXX XXXX", "55 5NXX XXXX")),
    "AR": ("54", "", ("11 4NXX XXXX",)),
    "TR": ("90", "0", ("532 NXX XX XX", "212 3NX XX XX")),
    "RU": ("7", "8 ", ("495 7NX XX XX", "916 NXX XX XX")),
    "UA": ("380", "0", ("97 NXX XX XX",)),
    "CN": ("86", "", ("138 NXXX XXXX", "159 NXXX XXXX")),
    "JP": ("81", "0", ("3 5NXX XXXX", "90 7NXX XXXX")),
    "KR": ("82", "0", ("10 4NXX XXXX", "51 2NX XXXX")),
    "TW": ("886", "0", ("933 NXX XXX", "2 2NXX XXXX")),
    "VN": ("84", "0", ("90 3NX XXXX", "98 9NX XXXX")),
    "RO": ("40", "0", ("730 NXX XXX",)),
    "KE": ("254", "0", ("720 NXX XXX",)),
    "GH": ("233", "0", ("54 NXX XXXX", "20 NXX XXXX")),
    "ID": ("62", "0", ("851 4NXX XXXX",)),
    "AU": ("61", "0", ("2 9NXX XXXX", "3 8NXX XXXX")),
    "SE": ("46", "0", ("8 5NX XXX XX",)),
    "CH": ("41", "0", ("44 2NX XX XX", "79 4NX XX XX")),
}
PLACEHOLDER_PHONES = split("""
(555) 010-0199|555-0142|+1 (555) 555-0123|+44 7700 900123|020 7946 0958|555-0100|+1 555-0177
+91 XXXXX XXXXX|+1 (XXX) XXX-XXXX|+49 XXX XXXXXXX|09XX-XXX-XXXX|+212 6XX XX XX XX|(XXX) XXX-XXXX
+30 XXX XXX XXXX|+977-XXXXXXXXXX|+33 X XX XX XX XX|(***) ***-**12|0161 496 0000
""")


def make_phone(rng: random.Random, country: str, style: str) -> str:
    """A number of a country.

    Styles: `link` (calling code and digits, no plus), `e164`, `intl` (plus and groups), `dash`,
    `paren` (the area in brackets), `zero` (the trunk prefix in brackets), `bare` (national digits)
    and `local` (national, in groups).
    """
    code, trunk, plans = PLANS[country]
    template = rng.choice(plans)
    written = "".join(
        rng.choice("23456789") if c == "N" else rng.choice("0123456789") if c == "X" else c
        for c in template
    )
    area, _, rest = written.partition(" ")
    plain = written.replace(" ", "")
    match style:
        case "link":
            return code + plain
        case "e164":
            return f"+{code}{plain}"
        case "dash":
            return f"+{code}-{written.replace(' ', '-')}"
        case "paren":
            return f"+{code} ({area}) {rest.replace(' ', '-')}"
        case "zero":
            return f"+{code} (0){written}"
        case "bare":
            return trunk.strip() + plain
        case "local" if country in {"US", "CA"}:
            return f"({area}) {rest.replace(' ', '-')}"
        case "local":
            return trunk + written
        case "hyphen":
            return (trunk + written).replace(" ", "-")
        case _:
            return f"+{code} {written}"


def phone(scene: Scene, argument: str) -> str:
    """A number: `STYLE`, or `STYLE.COUNTRY`; the country is the text's if it is not named."""
    style, _, country = argument.partition(".")
    country = country or scene.once("country", lambda: scene.rng.choice(list(PLANS)))
    return make_phone(scene.rng, country, style)


def linked_phone(scene: Scene, argument: str) -> str:
    """One number of the text twice: with `link` its plus and digits, or else as people read it."""
    country = scene.once("linked country", lambda: scene.rng.choice(split("US IN FR DE BR GB CH")))
    number = scene.once("linked", lambda: make_phone(scene.rng, country, "intl"))
    return "+" + "".join(filter(str.isdigit, number)) if argument == "link" else number


def make_ip4(rng: random.Random) -> str:
    """A public IPv4 address, not that of a well-known resolver."""
    while True:
        address = ipaddress.IPv4Address(rng.getrandbits(32))
        first, *_, last = address.packed
        if address.is_global and not address.is_multicast and 12 < first < 223 and 1 < last < 255:
            return str(address)


def make_ip6(rng: random.Random) -> str:
    """A public IPv6 address in one of the blocks that the registries hand out most."""
    block = rng.choice(["2a01:4f8", "2a02:8108", "2a00:1450", "2607:f8b0", "2400:cb00", "2620:10d"])
    groups = [f"{rng.getrandbits(16):x}" for _ in range(rng.choice([2, 3, 6, 6]))]
    compact = (
        f"{block}:{':'.join(groups)}" if len(groups) == 6 else f"{block}:{groups[0]}::{groups[1]}"
    )
    return str(ipaddress.IPv6Address(compact))


def private_ip(scene: Scene, argument: str) -> str:
    """A private address; `doc` and `doc6` are of RFC 5737 and 3849, `local` a loopback."""
    rng = scene.rng
    if argument == "doc":
        return rng.choice(["192.0.2.{}", "198.51.100.{}", "203.0.113.{}"]).format(
            rng.randint(2, 250)
        )
    if argument == "doc6":
        return f"2001:db8:{rng.getrandbits(12):x}::{rng.randint(1, 99)}"
    if argument == "local":
        return rng.choice(["127.0.0.1", "127.0.0.1", "0.0.0.0"])
    block = rng.choice(
        ["192.168.{}.{}", "192.168.{}.{}", "10.0.{}.{}", "172.17.{}.{}", "10.12.{}.{}"]
    )
    return block.format(rng.randint(0, 60), rng.randint(2, 250))


BRANDS = {
    "visa": (("4539", "4716", "4485", "4929", "4532", "4024"), 16),
    "mastercard": (("5105", "5218", "5333", "5412", "5589", "2221", "2720"), 16),
    "amex": (("3412", "3456", "3728", "3791"), 15),
    "discover": (("6011", "6441", "6559"), 16),
    "diners": (("3612", "3645"), 14),
}
TEST_CARDS = split("""
4111111111111111 4242424242424242 5555555555554444 378282246310005 4000056655665556
6011111111111117 5105105105105100 4012888888881881 30569309025904 4000000000000002
371449635398431
""")


def group_card(number: str, style: str) -> str:
    """The digits in the groups that are printed on a card, apart by a blank or a hyphen."""
    sizes = {15: (4, 6, 5), 14: (4, 6, 4)}.get(len(number), (4, 4, 4, 4))
    parts, start = [], 0
    for size in sizes:
        parts.append(number[start : start + size])
        start += size
    return {"spaced": " ", "dashed": "-"}.get(style, "").join(parts)


def make_card(rng: random.Random, brand: str, wrong: bool = False) -> str:
    """A number of a brand with a right (or a wrong) last digit, none of those in TEST_CARDS."""
    while True:
        starts, size = BRANDS[brand]
        body = rng.choice(starts)
        body += pick(rng, string.digits, size - len(body) - 1)
        last = luhn_digit(body)
        number = body + (str((int(last) + rng.randint(1, 9)) % 10) if wrong else last)
        if number not in TEST_CARDS and len(set(number)) > 4:
            return number


def card(scene: Scene, argument: str) -> str:
    """A card number: `STYLE` or `STYLE.BRAND`; `wrong` and `test` as brands are of negatives."""
    style, _, brand = argument.partition(".")
    if brand == "test":
        return group_card(scene.rng.choice(TEST_CARDS), style)
    drawn = scene.rng.choice(split("visa visa visa mastercard mastercard amex discover diners"))
    number = make_card(scene.rng, drawn if brand in {"", "wrong"} else brand, brand == "wrong")
    return group_card(number, style)


# Form of the BBAN by country (SWIFT's IBAN registry): n a digit, a a capital letter, c either.
IBANS = {
    "DE": "n18", "FR": "n10c11n2", "NL": "a4n10", "GB": "a4n14", "ES": "n20", "IT": "a1n10c12",
    "BE": "n12", "AT": "n16", "CH": "n5c12", "PL": "n24", "PT": "n21", "TR": "n6c16", "IE": "a4n14",
    "SE": "n20", "DK": "n14", "FI": "n14", "NO": "n11", "CZ": "n20", "RO": "a4c16", "HR": "n17",
    "GR": "n7c16", "HU": "n24", "LU": "n3c13", "SA": "n2c18", "AE": "n19",
}  # fmt: skip
BANKS = split("RABO INGB TRIO BUKB LOYD MIDL AIBK BOFI BTRL RNCB")
PUBLISHED_IBANS = split("""
DE89370400440532013000 GB29NWBK60161331926819 NL91ABNA0417164300 CH9300762011623852957
FR1420041010050500013M02606 ES9121000418450200051332 BE68539007547034 TR330006100519786457841326
IT60X0542811101000000123456 AT611904300234573201 PL61109010140000071219812874
""")


def check_digits(country: str, bban: str) -> str:
    """The two check digits of an IBAN (ISO 13616: 98 minus the remainder by 97)."""
    digits = "".join(str(int(character, 36)) for character in f"{bban}{country}00")
    return f"{98 - int(digits) % 97:02}"


def make_iban(rng: random.Random, country: str, wrong: bool = False) -> str:
    """An IBAN of a country with right (or wrong) check digits."""
    form, bban = IBANS[country], ""
    parts = form.replace("n", " n").replace("a", " a").replace("c", " c").split()
    for kind, size in ((part[0], int(part[1:])) for part in parts):
        if kind == "a":
            bban += rng.choice(BANKS) if size == 4 else pick(rng, string.ascii_uppercase, size)
        else:
            bban += pick(rng, string.digits, size)
    check = check_digits(country, bban)
    if wrong:
        check = f"{(int(check) - 2 + rng.randint(1, 96)) % 97 + 2:02}"
    return country + check + bban


def iban(scene: Scene, argument: str) -> str:
    """An IBAN: `STYLE` or `STYLE.COUNTRY`; `wrong` and `test` as countries are of negatives."""
    style, _, country = argument.partition(".")
    if country == "test":
        number = scene.rng.choice(PUBLISHED_IBANS)
    else:
        wrong = country == "wrong"
        drawn = scene.rng.choice(list(IBANS)) if country in {"", "wrong"} else country
        number = make_iban(scene.rng, drawn, wrong)
    if style != "spaced":
        return number
    return " ".join(number[at : at + 4] for at in range(0, len(number), 4))


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": make_email,
    "reserved": lambda scene, argument: scene.rng.choice(RESERVED_MAIL),
    "phone": phone,
    "linked": linked_phone,
    "nophone": lambda scene, argument: scene.rng.choice(PLACEHOLDER_PHONES),
    "ip4": lambda scene, argument: make_ip4(scene.rng),
    "ip6": lambda scene, argument: make_ip6(scene.rng),
    "private": private_ip,
    "card": card,
    "iban": iban,
}
