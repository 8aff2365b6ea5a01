"""Addresses and numbers of people, firms and machines of the fourteenth blind set."""

from __future__ import annotations

import ipaddress
import re
import string
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.fourteenth_blind.words import (
    FIRST_NAMES,
    FREE_MAIL,
    LAST_NAMES,
    draw_domain,
    draw_name,
    draw_role,
    pick,
)

PLANS = {
    "us": ["(N12) N34-####", "N12-N34-####", "+1 N12-N34-####", "+1 (N12) N34-####", "N12.N34.####",
           "1-800-N34-####", "+1N12N34####"],
    "uk": ["020 7### ####", "0161 4## ####", "+44 (0)121 7## ####", "07### 6#####",
           "+44 7### 8#####", "01### 7#####", "0800 7## ####"],
    "de": ["030 / 4### ####", "0221-8######", "+49 89 3#####-#", "0171 6######", "(0711) 6### ###",
           "+49 (0) 40 6### ##", "0049 69 7######", "05### / 9##-#"],
    "at": ["+43 1 7## ## ##", "0664 / 4## ## ##", "+43 (0)662 8## ###"],
    "ch": ["044 4## ## ##", "+41 79 6## ## ##", "031 3## ## ##"],
    "fr": ["01 4# ## ## ##", "06 7# ## ## ##", "+33 4 7# ## ## ##", "04.9#.##.##.##",
           "+33 (0)1 5# ## ## ##"],
    "es": ["91 4## ## ##", "6## ## ## 4#", "+34 93 4## ## ##", "954 6## ###", "+34 6## ### 7##"],
    "mx": ["55 5### ####", "+52 33 3### ####", "(81) 8### ####"],
    "ar": ["011 4###-####", "+54 9 11 5###-####"],
    "pt": ["21 7## ## ##", "+351 9## ### ###", "22 6## ####"],
    "br": ["(11) 9####-####", "(21) 2###-####", "+55 51 9####-####", "0800 7## ####"],
    "it": ["02 4### ####", "+39 06 4######", "347 6######", "051/6#####", "+39 33# ### ####"],
    "pl": ["22 6## ## ##", "+48 6## ### ###", "5## ### ###", "(12) 4## ## ##"],
    "ru": ["+7 (495) 6##-##-##", "8 (812) 3##-##-##", "+7 9## ###-##-##", "8-9##-###-##-##"],
    "tr": ["0212 4## ## ##", "+90 532 4## ## ##", "0 (312) 4## ## ##"],
    "jp": ["03-5###-####", "090-6###-####", "+81 3-6###-####", "06-6###-####"],
    "cn": ["138########", "010-6#######", "+86 21 5### ####", "139-####-####"],
    "in": ["+91 98### #####", "080-4### ####", "099########", "+91-22-2#######"],
    "ae": ["+971 4 3## ####", "050 6## ####"],
    "eg": ["02 2### ####", "010 6### ####"],
    "nl": ["020 6## ## ##", "06-4#######", "+31 30 2## ####"],
    "se": ["08-6## ## ##", "+46 70 4## ## ##"],
    "au": ["(03) 9### ####", "04## 6## ###", "+61 2 8### ####"],
    "cz": ["+420 60# ### ###", "2## ### 4##"],
}  # fmt: skip
"""Ways of writing numbers by country: `#` is a digit, `N` one from 2 to 4."""
_FICTION = re.compile(
    r"555|7946 ?0|7 ?00 ?900|8081570|5550|91570|(\+33 |0)(1 99 00|2 61 91|3 53 01|4 65 71|6 39 98)"
)
_PUBLIC_FIRST = (24, 31, 45, 46, 62, 77, 78, 79, 80, 81, 83, 84, 85, 86, 87, 88, 89, 91, 93, 94, 95,
                 109, 118, 125, 138, 144, 151, 159, 176, 178, 185, 188, 193, 194, 195, 212, 213,
                 217)  # fmt: skip
_PUBLIC_SIX = ("2a01:4f8", "2a02:8108", "2003:e5", "2600:1700", "2604:a880", "2a00:1450",
               "2409:8a1e", "2804:14d", "2a01:e0a")  # fmt: skip
_NETWORKS = {
    "visa": ("4539", "4556", "4917", "4026", "4485", "4716", "4929"),
    "master": ("5173", "5299", "5404", "5412", "5267", "2223", "5339"),
    "amex": ("3717", "3791", "3459"),
    "diners": ("3607", "3624", "3681"),
    "discover": ("6011", "6445", "6512"),
    "jcb": ("3541", "3567", "3578"),
    "mir": ("2202", "2200"),
    "maestro16": ("6759", "6763"),
}
TEST_NUMBERS = (
    *("4111111111111111", "4242424242424242", "5555555555554444", "378282246310005"),
    *("4012888888881881", "5105105105105100", "6011111111111117", "371449635398431"),
)
"""Card numbers that payment services publish for tests."""
BANK_PLANS = {
    "DE": "n18", "AT": "n16", "CH": "n5c12", "FR": "n10c11n2", "ES": "n20", "IT": "a1n10c12",
    "NL": "a4n10", "BE": "n12", "PL": "n24", "PT": "n21", "GB": "a4n14", "IE": "a4n14",
    "LU": "n3c13", "DK": "n14", "SE": "n20", "FI": "n14", "NO": "n11", "CZ": "n20", "HU": "n24",
    "TR": "n5z1c16", "RO": "a4c16", "GR": "n7c16", "SA": "n2c18", "AE": "n19", "BG": "a4n6c8",
    "HR": "n17", "LT": "n16", "EE": "n16",
}  # fmt: skip
"""BBANs of the IBAN registry: digits, capital letters, characters, a zero."""
EXAMPLE_IBANS = ("GB29NWBK60161331926819", "DE89370400440532013000", "NL91ABNA0417164300")
"""IBANs that the registry and articles publish."""
_BANKS = {
    "NL": "ABNA INGB RABO", "GB": "BARC LOYD NWBK", "IE": "AIBK BOFI", "RO": "BTRL RNCB BRDE",
    "BG": "UNCR BNBG",
}  # fmt: skip


def _email(scene: Scene, shape: str) -> str:
    rng, (lang, _, place) = scene.rng, (shape or "en").partition("-")
    if place == "role":
        return f"{draw_role(scene, lang)}@{draw_domain(scene, lang)}"
    if "last" not in scene.memory:
        draw_name(scene, lang, LAST_NAMES, "last")
    if "first" not in scene.memory:
        draw_name(scene, lang, FIRST_NAMES, "first")
    first, last = scene.memory.pop("first"), scene.memory.pop("last")
    free = place == "free" or (not place and rng.random() < 0.4)
    host = rng.choice(FREE_MAIL[lang].split()) if free else draw_domain(scene, lang)
    number = str(rng.randint(1, 99)) if free and rng.random() < 0.5 else ""
    forms = (
        f"{first}.{last}",
        f"{first}.{last}",
        f"{first[0]}{last}",
        f"{first}_{last}",
        first + last,
    )
    return f"{rng.choice(forms)}{number}@{host}"


def make_phone(rng: Random, country: str) -> str:
    """A number of a country in one of its ways of writing, outside ranges kept for fiction."""
    while True:
        form = rng.choice(PLANS[country])
        number = re.sub("#", lambda _: rng.choice(string.digits), form)
        number = re.sub("N", lambda _: rng.choice("234"), number)
        if not _FICTION.search(number.replace("-", " ")):
            return number


def make_ip4(rng: Random) -> str:
    """A public address of one machine, version 4."""
    parts = [
        rng.choice(_PUBLIC_FIRST),
        rng.randint(1, 254),
        rng.randint(1, 254),
        rng.randint(2, 253),
    ]
    address = ".".join(map(str, parts))
    return address if ipaddress.ip_address(address).is_global else make_ip4(rng)


def make_ip6(rng: Random) -> str:
    """A public address of one machine, version 6, compressed as RFC 5952 writes it."""
    head = rng.choice(_PUBLIC_SIX)
    size = 8 - head.count(":") - 1
    groups = [f"{rng.randrange(0x10, 0x10000):x}" for _ in range(size)]
    if rng.random() < 0.4:
        groups = [groups[0], *["0"] * (size - 2), groups[-1]]
    return str(ipaddress.ip_address(":".join([head, *groups])))


def _private_ip(scene: Scene, _: str) -> str:
    rng = scene.rng
    head = rng.choice(["10.%d.%d", "192.168.%d.%d", "172.20.%d.%d"])
    return head % (rng.randint(0, 9), rng.randint(0, 40)) + (
        f".{rng.randint(2, 250)}" if head.startswith("10") else ""
    )


def _document_ip(scene: Scene, _: str) -> str:
    return f"{scene.rng.choice(['192.0.2', '198.51.100', '203.0.113'])}.{scene.rng.randint(1, 254)}"


def make_card(rng: Random, network: str) -> str:
    """The digits of a card number with its check digit."""
    name = network or rng.choice(["visa", "visa", "visa", "master", "master", "amex", "discover"])
    size = {"amex": 15, "diners": 14}.get(name, 16)
    head = rng.choice(_NETWORKS[name])
    body = head + pick(rng, string.digits, size - 1 - len(head))
    return body + luhn_digit(body)


def group_card(digits: str, joint: str) -> str:
    """The digits in the groups that are printed on a card."""
    cuts = (4, 10) if len(digits) < 16 else (4, 8, 12)
    starts = (0, *cuts)
    return joint.join(digits[a:b] for a, b in zip(starts, (*cuts, len(digits)), strict=True))


def _card(scene: Scene, shape: str) -> str:
    style, _, network = shape.partition("-")
    digits = make_card(scene.rng, network)
    return group_card(digits, {"sp": " ", "da": "-"}.get(style, ""))


def _wrong_card(scene: Scene, shape: str) -> str:
    digits = make_card(scene.rng, "visa")
    wrong = digits[:-1] + str((int(digits[-1]) + scene.rng.randint(1, 9)) % 10)
    return group_card(wrong, {"sp": " ", "da": "-"}.get(shape, ""))


def _test_card(scene: Scene, shape: str) -> str:
    return group_card(scene.rng.choice(TEST_NUMBERS), {"sp": " ", "da": "-"}.get(shape, ""))


def _imei(scene: Scene, _: str) -> str:
    body = "35" + pick(scene.rng, string.digits, 12)
    return body + luhn_digit(body)


def _long_number(scene: Scene, size: str) -> str:
    """A number of 13 to 19 digits that no check of cards passes."""
    while True:
        digits = pick(scene.rng, "123456789", 1) + pick(scene.rng, string.digits, int(size) - 1)
        if digits[-1] != luhn_digit(digits[:-1]):
            return digits


def make_iban(rng: Random, country: str, wrong: bool = False) -> str:
    """An account number with right check digits, or wrong ones."""
    alphabets = {"n": string.digits, "a": string.ascii_uppercase, "z": "0",
                 "c": string.digits}  # fmt: skip
    bban = ""
    for kind, size in re.findall(r"([a-z])(\d+)", BANK_PLANS[country]):
        is_bank = kind + size == "a4"
        bban += (
            rng.choice(_BANKS[country].split())
            if is_bank
            else pick(rng, alphabets[kind], int(size))
        )
    moved = "".join(str(int(one, 36)) for one in f"{bban}{country}00")
    check = 98 - int(moved) % 97
    if wrong:
        check = (check + rng.randint(1, 90) - 2) % 97 + 2
    return f"{country}{check:02}{bban}"


def _iban(scene: Scene, shape: str) -> str:
    country, _, style = shape.partition("-")
    number = make_iban(scene.rng, country or scene.rng.choice(list(BANK_PLANS)))
    return _group_iban(number, style)


def _group_iban(number: str, style: str) -> str:
    if style == "raw":
        return number
    joint = "-" if style == "da" else " "
    return joint.join(number[at : at + 4] for at in range(0, len(number), 4))


def _wrong_iban(scene: Scene, shape: str) -> str:
    country, _, style = shape.partition("-")
    return _group_iban(make_iban(scene.rng, country or "DE", wrong=True), style)


def _example_iban(scene: Scene, style: str) -> str:
    return _group_iban(scene.rng.choice(EXAMPLE_IBANS), style)


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": _email,
    "phone": lambda scene, country: make_phone(scene.rng, country or "us"),
    "ip4": lambda scene, _: make_ip4(scene.rng),
    "ip6": lambda scene, _: make_ip6(scene.rng),
    "privip": _private_ip,
    "docip": _document_ip,
    "card": _card,
    "wrongcard": _wrong_card,
    "testcard": _test_card,
    "imei": _imei,
    "long": _long_number,
    "iban": _iban,
    "wrongiban": _wrong_iban,
    "exampleiban": _example_iban,
}
