"""Values of people: e-mail addresses, phone numbers, IP addresses, payment cards and IBANs.

Phone numbers follow the numbering plan of their country and avoid the ranges that regulators keep
for fiction (555-01xx in North America, Ofcom's drama numbers). Cards carry a Luhn digit, IBANs the
check digits of ISO 13616 and, for the countries in `_NATIONAL`, those of the national account number.
"""

from __future__ import annotations

import ipaddress
import random
import re
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.sixth_blind.words import PROVIDERS, chars, domain, first, last

DIGITS = string.digits


def _email(scene: Scene, argument: str) -> str:
    """An address: `role:NAME`, `free:COUNTRY`, `work`, `odd`, or by default any ordinary one."""
    style, _, detail = argument.partition(":")
    rng, f, n = scene.rng, first(scene).lower(), last(scene).lower()
    if style == "role":
        return f"{detail}@{domain(scene)}"
    local = rng.choice(
        (f"{f}.{n}", f"{f}.{n}", f"{f[0]}{n}", f"{f}_{n}", f"{f[0]}.{n}", f, f"{n}.{f}", f"{f}-{n}")
    )
    if style == "odd":
        return rng.choice(
            (
                f"{f}+{rng.choice(('news', 'shop', 'git', 'lists'))}@{domain(scene)}",
                f"{first(scene)}.{last(scene)}@{domain(scene).upper()}",
                f"{f}.o'{n}@{domain(scene)}",
                f"{rng.choice(('jürgen', 'zoë', 'andré', 'søren', 'łukasz'))}.{n}@{domain(scene)}",
                f"{local}@{rng.choice(('müller-bau.de', 'café-lune.fr', 'smørrebrød.dk', 'почта.рф'))}",
                f"{local}@mail.{rng.choice(('cs', 'physik', 'math'))}.uni-{domain(scene)}",
                f"{f}@{n}.{rng.choice(('photography', 'museum', 'technology', 'xyz'))}",
            )
        )
    if style == "free" or (style == "" and rng.random() < 0.45):
        number = rng.choice(("", "", str(rng.randrange(60, 2009)), str(rng.randrange(10, 99))))
        return f"{local}{number}@{rng.choice(PROVIDERS[detail])}"
    return f"{local}@{domain(scene)}"


_PHONES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # country: area codes or first digits (A), writings; N is 2-9, # any digit
    "us": (
        (
            "212",
            "415",
            "617",
            "312",
            "206",
            "303",
            "404",
            "512",
            "702",
            "718",
            "305",
            "215",
            "503",
            "612",
            "713",
            "919",
        ),
        (
            "(A) N#N-####",
            "A-N#N-####",
            "(A) N#N-####",
            "A-N#N-####",
            "A.N#N.####",
            "+1 A N#N ####",
            "+1-A-N#N-####",
            "+1 (A) N#N-####",
            "1-A-N#N-####",
            "A N#N ####",
            "+1AN#N####",
        ),
    ),
    "gb": (
        ("7", "8"),
        (
            "020 A1## ####",
            "020 A2## ####",
            "+44 20 A3## ####",
            "+44 (0)20 A1## ####",
            "0161 2## ####",
            "+44 161 2## ####",
            "07A71 ######",
            "+44 7A72 ######",
            "07A73######",
        ),
    ),
    "de": (
        ("30", "89", "40", "69", "221", "711"),
        (
            "0A N######",
            "(0A) N######",
            "0A / N######",
            "0A/N######",
            "+49 A N######",
            "+49 (0)A N######",
            "+49 (0) A N## ## ##",
            "0171 N######",
            "+49 171 N######",
            "0176-N#######",
            "0A-N######",
        ),
    ),
    "at": (("1",), ("01 N######", "+43 1 N######", "0664 N######", "+43 664 N######")),
    "ch": (
        ("44", "31", "61"),
        ("0A N## ## ##", "+41 A N## ## ##", "079 N## ## ##", "+41 79 N## ## ##"),
    ),
    "fr": (
        ("1 4#", "4 7#", "5 6#", "6 2#", "6 8#", "3 2#"),
        ("0A ## ## ##", "0A ## ## ##", "+33 A ## ## ##", "+33 (0)A ## ## ##", "0A.##.##.##"),
    ),
    "es": (
        ("91", "93", "61", "65"),
        ("A# ## ## ##", "A# ### ###", "+34 A# ## ## ##", "(+34) A# ### ###"),
    ),
    "it": (
        ("02", "06", "051"),
        (
            "A N######",
            "A-N######",
            "+39 A N######",
            "347 N######",
            "+39 347 N## ####",
            "338-N######",
        ),
    ),
    "pt": (("21#", "22#", "91#", "96#"), ("A ### ###", "+351 A ### ###", "(+351) A ### ###")),
    "nl": (
        ("20", "30", "10"),
        (
            "0A-N## ####",
            "0A N######",
            "+31 A N## ####",
            "+31 (0)A N######",
            "06-2#######",
            "06 5#######",
            "+31 6 2#######",
        ),
    ),
    "pl": (
        ("22", "12", "61"),
        (
            "A N## ## ##",
            "(A) N## ## ##",
            "+48 A N## ## ##",
            "50# ### ###",
            "+48 60# ### ###",
            "tel.60# ### ###",
        ),
    ),
    "ru": (
        ("495", "812", "916", "903"),
        (
            "+7 (A) N##-##-##",
            "8 (A) N##-##-##",
            "+7 A N##-##-##",
            "8-A-N##-##-##",
            "8 (A) N##-##-##",
        ),
    ),
    "ua": (("44", "67", "50"), ("+380 A N## ## ##", "+380 (A) N##-##-##", "(0A) N##-##-##")),
    "jp": (
        ("3",),
        (
            "03-N###-####",
            "03-N###-####",
            "03（N###）####",
            "06-6N##-####",
            "090-N###-####",
            "+81-3-N###-####",
            "+81 90-N###-####",
        ),
    ),
    "cn": (
        ("138", "139", "186", "150"),
        (
            "A #### ####",
            "A########",
            "A-####-####",
            "+86 A #### ####",
            "010-6N######",
            "021-5N######",
            "0755-8N######",
        ),
    ),
    "kr": (
        ("10",),
        ("010-N###-####", "010-N###-####", "02-5N#-####", "02-7N#-####", "+82-10-N###-####"),
    ),
    "br": (
        ("11", "21", "31"),
        (
            "(A) 9N###-####",
            "(A) 3N##-####",
            "+55 A 9N###-####",
            "(A) 9 N###-####",
            "+55 (A) 3N##-####",
        ),
    ),
    "tr": (
        ("212", "216", "532", "542"),
        ("0A N## ## ##", "(0A) N## ## ##", "+90 A N## ## ##", "+90 (A) N## ## ##"),
    ),
    "se": (
        ("8",),
        (
            "08-5## ### ##",
            "08-6## ## ##",
            "+46 8 6## ## ##",
            "070-3## ## ##",
            "+46 70 5## ## ##",
            "+46 (0)8 6## ## ##",
        ),
    ),
    "cz": (("22", "60", "72", "77"), ("A# ### ###", "+420 A# ### ###", "(+420) A# ### ###")),
    "in": (
        ("98", "99"),
        ("+91 AN## #####", "+91-AN########", "AN## #####", "080-2N######", "+91 80 2N## ####"),
    ),
    "au": (
        ("2", "3"),
        ("(0A) 9N## ####", "0A 9N## ####", "+61 A 9N## ####", "041N ### ###", "+61 41N ### ###"),
    ),
}
COUNTRIES = tuple(_PHONES)
_INTERNATIONAL = "int"


def make_phone(rng: random.Random, country: str = "") -> str:
    """A number in a writing of its country; `int` is any country's with its `+`."""
    only_plus, country = country == _INTERNATIONAL, "" if country == _INTERNATIONAL else country
    areas, forms = _PHONES[country or rng.choice(COUNTRIES)]
    plus = [form for form in forms if form.startswith(("+", "(+"))]
    form = rng.choice(plus if only_plus else forms).replace("A", rng.choice(areas), 1)
    form = form.removeprefix("tel.")
    while True:
        text = "".join(
            rng.choice("23456789") if mark == "N" else rng.choice(DIGITS) if mark == "#" else mark
            for mark in form
        )
        digits = re.sub(r"\D", "", text)
        if not re.search(r"55501|7946|0000|1234|(\d)\1{4}", digits):
            return text


_V4_FIRST = (
    5,
    23,
    31,
    37,
    45,
    46,
    51,
    62,
    77,
    78,
    79,
    *range(80, 96),
    104,
    109,
    128,
    131,
    134,
    138,
)
_V4_FIRST += (
    141,
    144,
    151,
    158,
    159,
    162,
    165,
    176,
    178,
    185,
    188,
    193,
    194,
    195,
    199,
    212,
    213,
    216,
)
_V6_HEAD = ("2a01:4f8", "2a02:8109", "2a00:23c5", "2600:1700", "2607:fb90", "2403:6200", "2804:14c")
_V6_HEAD += ("2001:41d0", "2001:16b8", "2409:8a55", "2a0c:5a80")


def make_v4(rng: random.Random) -> str:
    """A public IPv4 address of the ranges that hosts and subscribers get."""
    while True:
        text = f"{rng.choice(_V4_FIRST)}.{rng.randrange(1, 255)}.{rng.randrange(256)}.{rng.randrange(2, 254)}"
        if ipaddress.ip_address(text).is_global and len(text) > 10:
            return text


def make_v6(rng: random.Random) -> str:
    """A public IPv6 address, shortened as RFC 5952 wants it, as most programs print it."""
    groups = [rng.choice(_V6_HEAD)]
    if rng.random() < 0.4:
        text = f"{groups[0]}:{rng.randrange(1, 65536):x}:{rng.randrange(1, 65536):x}::{rng.randrange(1, 4096):x}"
    else:
        text = ":".join([*groups, *(f"{rng.randrange(1, 65536):x}" for _ in range(6))])
    return str(ipaddress.ip_address(text))


def _ip(scene: Scene, argument: str) -> str:
    version = argument or ("6" if scene.rng.random() < 0.15 else "4")
    return make_v6(scene.rng) if version == "6" else make_v4(scene.rng)


def luhn_valid(digits: str) -> bool:
    """Whether a digit string passes the Luhn check."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def with_luhn(body: str) -> str:
    """The body and its Luhn digit."""
    return next(body + digit for digit in DIGITS if luhn_valid(body + digit))


_BRANDS = (
    # first digits, length, weight
    (("4",), 16, 10.0),
    (tuple(str(n) for n in (51, 52, 53, 54, 55, 2221, 2350, 2720)), 16, 8.0),
    (("34", "37"), 15, 3.0),
    (("6011", "644", "65"), 16, 1.0),
    (("3530", "3566", "3588"), 16, 0.7),
    (("36", "38"), 14, 0.5),
)


def make_card(rng: random.Random) -> str:
    """Digits of a card: an issuer's first digits, its length, a Luhn digit, no published test number."""
    heads, size, _ = rng.choices(_BRANDS, [weight for *_, weight in _BRANDS])[0]
    while True:
        head = rng.choice(heads)
        digits = with_luhn(head + chars(rng, DIGITS, size - len(head) - 1))
        if len(set(digits)) > 6 and not re.search(r"(\d)\1{3}|0000|1234", digits):
            return digits


def group_card(digits: str, separator: str) -> str:
    """The digits as they are printed: 4-4-4-4, 4-6-5 for 15 digits, 4-6-4 for 14."""
    sizes = {16: (4, 4, 4, 4), 15: (4, 6, 5), 14: (4, 6, 4)}[len(digits)]
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return separator.join(digits[at : at + size] for at, size in zip(starts, sizes, strict=True))


def _card(scene: Scene, argument: str) -> str:
    """A card: `plain`, `space`, `dash`, or by default any writing, odd spaces seldom."""
    separators = {"plain": "", "space": " ", "dash": "-"}
    separator = separators.get(argument)
    if separator is None:
        separator = scene.rng.choices(
            ("", " ", "-", "\u00a0", "\u2009", "."), (8, 10, 5, 0.7, 0.2, 0.2)
        )[0]
    return group_card(make_card(scene.rng), separator)


def _not_card(scene: Scene, argument: str) -> str:
    """Sixteen digits that begin as a card does and fail the Luhn check; grouped by `space` or `dash`."""
    while True:
        digits = scene.rng.choice("45") + chars(scene.rng, "123456789", 15)
        if not luhn_valid(digits):
            return group_card(digits, {"space": " ", "dash": "-"}.get(argument, ""))


_BBAN = {
    # n: digit, a: upper-case letter, c: either
    "DE": "n18", "GB": "a4n14", "FR": "n23", "NL": "a4n10", "ES": "n20", "IT": "a1n22", "BE": "n12",
    "AT": "n16", "CH": "n17", "PL": "n24", "PT": "n21", "IE": "a4n14", "SE": "n20", "NO": "n11",
    "DK": "n14", "FI": "n14", "CZ": "n20", "LU": "n3c13", "TR": "n5n1c16", "GR": "n7c16", "HU": "n24",
    "RO": "a4c16", "SK": "n20", "LT": "n16", "EE": "n16", "HR": "n17", "SA": "n2c18", "AE": "n19",
}  # fmt: skip
_COMMON = ("DE", "DE", "FR", "NL", "ES", "IT", "GB", "BE", "AT", "PL")
BANKS = {"GB": ("BARC", "NWBK", "LOYD", "MIDL"), "NL": ("INGB", "ABNA", "RABO", "KNAB"),
         "IE": ("AIBK", "BOFI"), "RO": ("BTRL", "RNCB")}  # fmt: skip
_ODD_CIN = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _national(country: str, bban: str) -> str:
    """The account number with its national check digits, for the countries that have simple ones."""
    if country == "BE":
        return bban[:10] + f"{int(bban[:10]) % 97 or 97:02}"
    if country == "PT":
        return bban[:19] + f"{98 - int(bban[:19] + '00') % 97:02}"
    if country == "FR":
        return bban[:21] + f"{97 - int(bban[:21] + '00') % 97:02}"
    if country == "ES":
        weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)
        checks = ("00" + bban[:8], bban[10:])
        marks = (11 - _weighted(part, weights) % 11 for part in checks)
        return bban[:8] + "".join({10: "1", 11: "0"}.get(n, str(n)) for n in marks) + bban[10:]
    if country == "IT":
        total = sum(_ODD_CIN[int(d)] if n % 2 == 0 else int(d) for n, d in enumerate(bban[1:]))
        return chr(65 + total % 26) + bban[1:]
    return bban


def iban_valid(text: str) -> bool:
    """Whether the check digits of ISO 13616 hold (spaces ignored)."""
    compact = re.sub(r"[\W_]", "", text)
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def make_iban(rng: random.Random, country: str = "") -> str:
    """An account of a country, without spaces; by default the common countries prevail."""
    country = country or (rng.choice(_COMMON) if rng.random() < 0.7 else rng.choice(tuple(_BBAN)))
    alphabets = {"n": DIGITS, "a": string.ascii_uppercase, "c": DIGITS}
    parts = re.findall(r"([nac])(\d+)", _BBAN[country])
    bban = "".join(chars(rng, alphabets[kind], int(size)) for kind, size in parts)
    if country in BANKS:
        bban = rng.choice(BANKS[country]) + bban[4:]
    bban = _national(country, bban)
    number = int("".join(str(int(character, 36)) for character in bban + country + "00"))
    return f"{country}{98 - number % 97:02}{bban}"


def group_iban(text: str, separator: str = " ") -> str:
    """In groups of four."""
    return separator.join(text[at : at + 4] for at in range(0, len(text), 4))


def _iban(scene: Scene, argument: str) -> str:
    """`COUNTRY`, `plain`, `COUNTRY:plain` or any; most are grouped, odd spaces and dashes are rare."""
    country, _, style = argument.rpartition(":") if ":" in argument else (argument, "", "")
    if argument == "plain":
        country, style = "", "plain"
    text = make_iban(scene.rng, country)
    if style == "plain":
        return text
    separator = scene.rng.choices((" ", "", "\u00a0", "-", "\u2009"), (10, 7, 0.7, 0.3, 0.2))[0]
    return group_iban(text, separator)


def _not_iban(scene: Scene, argument: str) -> str:
    """An IBAN whose check digits are wrong."""
    text = make_iban(scene.rng, argument)
    wrong = (int(text[2:4]) + scene.rng.randrange(3, 60)) % 97
    changed = f"{text[:2]}{wrong:02}{text[4:]}"
    return _not_iban(scene, argument) if iban_valid(changed) else group_iban(changed)


def _bic(scene: Scene, _: str) -> str:
    country = scene.rng.choice(("DE", "FR", "NL", "BE", "AT"))
    return (
        chars(scene.rng, string.ascii_uppercase, 4) + country + chars(scene.rng, DIGITS, 2) + "XXX"
    )


PERSONAL_MAKERS: dict[str, Maker] = {
    "bic": _bic,
    "email": _email,
    "phone": lambda scene, country: make_phone(scene.rng, country),
    "ip": _ip,
    "card": _card,
    "not_card": _not_card,
    "luhn": lambda scene, head: with_luhn(head + chars(scene.rng, DIGITS, 14 - len(head))),
    "luhn19": lambda scene, head: with_luhn(head + chars(scene.rng, DIGITS, 18 - len(head))),
    "iban": _iban,
    "not_iban": _not_iban,
}
