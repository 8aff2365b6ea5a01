"""Makers of personal data: e-mail addresses, telephone numbers, IP addresses, cards, IBANs."""

from __future__ import annotations

import ipaddress
import random
from itertools import pairwise

from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.fifth_blind.fillers import (
    ALNUM,
    DIGITS,
    HEX,
    UPPER,
    chars,
    company_domain,
    split_words,
)
from tests.benchmarks.fifth_blind.templates import Maker, Scene

_FREE = (
    *("gmail.com",) * 12, *("yahoo.com", "hotmail.com", "outlook.com") * 2, "gmx.de", "web.de",
    *("protonmail.com", "icloud.com", "yahoo.co.jp", "mail.ru", "qq.com", "163.com", "naver.com"),
    *("orange.fr", "libero.it", "wp.pl", "seznam.cz", "uol.com.br", "googlemail.com", "aol.com"),
)  # fmt: skip
_ROLES = split_words("mailboxes")


def make_email(scene: Scene, owner: str) -> str:
    """An address of the scene's person, or of the company with `role`; `idn` has other letters."""
    rng, first, last = scene.rng, scene.first.lower(), scene.last.lower()
    if owner == "role":
        return f"{rng.choice(_ROLES)}@{scene.domain}"
    if owner == "idn":
        name = rng.choice(("müller-bau.de", "café-lumière.fr", "smörgås.se", "łódź-tech.pl"))
        return f"{rng.choice(('kontakt', 'info', first))}@{name}"
    if owner == "unicode":
        name = rng.choice(("jörg", "rené.dubois", "søren", "müller", "josé.garcia"))
        return f"{name}@{scene.domain}"
    year = rng.randrange(60, 100)
    local = rng.choices(
        (
            f"{first}.{last}", f"{first[0]}{last}", f"{first}{last}", f"{first}_{last}", first,
            f"{last}.{first}", f"{first}-{last}", f"{first}{year}", f"{last}{rng.randrange(9999)}",
            f"{first}.{last}+{rng.choice(('lists', 'shop', 'dev', 'news'))}", f"{first[0]}.{last}",
            f"{first}.{rng.choice('abcdehjklmrst')}.{last}",
        ),
        (20, 12, 12, 4, 8, 3, 3, 8, 5, 3, 8, 2),
    )[0]  # fmt: skip
    domain = rng.choice(_FREE) if rng.random() < 0.45 else scene.domain
    if rng.random() < 0.08:
        domain = rng.choice(("mail.", "lists.", "cs.", "dev.", "eu.")) + company_domain(rng)
    address = f"{local}@{domain}"
    return address.title() if rng.random() < 0.02 else address


# Each country: its patterns as written at home, then with the country's code. `n` is any digit,
# `z` a digit from 2 to 9 that is not 5, so that no number lies in a range kept for fiction.
_US = split_words("area_codes")
_PHONES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "us": (
        ("(AAA) zzn-nnnn", "(AAA) zzn-nnnn", "AAA-zzn-nnnn", "AAA.zzn.nnnn", "(AAA)zzn-nnnn",
         "AAA zzn nnnn", "1-AAA-zzn-nnnn"),
        ("+1 AAA-zzn-nnnn", "+1 (AAA) zzn-nnnn", "+1-AAA-zzn-nnnn", "+1AAAzznnnnn",
         "+1 AAA zzn nnnn", "+1.AAA.zzn.nnnn"),
    ),
    "uk": (
        ("020 7zzn nnnn", "0161 4zz nnnn", "079zn nnnnnn", "078zn nnn nnn", "(020) 7zzn nnnn"),
        ("+44 20 7zzn nnnn", "+44 (0)20 7zzn nnnn", "+44 79zn nnnnnn", "+4478znnnnnnn"),
    ),
    "de": (
        ("089 / 2znn nn nn", "030 2znn nnnn", "0171 zznnnnn", "0511/zznnnn", "0221-9znnnnn"),
        ("+49 89 2znnnn-nn", "+49 (0)30 2znnnnnn", "+49 171 zznnnnn", "0049 221 9znnnnn"),
    ),
    "fr": (
        ("01 4z nn nn nn", "06 8n nn nn nn", "04.7z.nn.nn.nn", "0234zznnnn"),
        ("+33 1 4z nn nn nn", "+33 (0)1 4z nn nn nn", "+3368nnnnnnn", "+33 6 6n nn nn nn"),
    ),
    "es": (
        ("91 zzn nn nn", "93 zzn nn nn", "6zz nnn nnn", "6zz nn nn nn"),
        ("+34 91 zzn nn nn", "+34 6zz nnn nnn", "+346zznnnnnn"),
    ),
    "it": (
        ("06 zznn nnnn", "02 zznnnnnn", "347 zznnnnn", "051/zznnnn"),
        ("+39 02 zznnnnnn", "+39 06 zznn nnnn", "+39 347 zznnnnn"),
    ),
    "nl": (
        ("020-6zznnnn", "06-2znnnnnn", "030 2zz nn nn", "010 - 4zz nn nn"),
        ("+31 20 6zz nnnn", "+31 (0)30 2zz nn nn", "+31 6 2znnnnnn"),
    ),
    "pl": (
        ("22 6zz nn nn", "60z nnn nnn", "(22) 8zz-nn-nn"),
        ("+48 22 6zz nn nn", "+48 60z nnn nnn"),
    ),
    "se": (
        ("08-6zz nn nn", "070-2zz nn nn", "031-7zz nn nn"),
        ("+46 8 6zz nn nn", "+46 70 2zz nn nn"),
    ),
    "jp": (
        ("03-3zzn-nnnn", "090-zznn-nnnn", "06-6zzn-nnnn"),
        ("+81-3-3zzn-nnnn", "+81 90-zznn-nnnn"),
    ),
    "cn": (
        ("010-6zznnnnn", "138 znnn nnnn", "139znnnnnnn"),
        ("+86 10 6zzn nnnn", "+86 138 znnn nnnn"),
    ),
    "kr": (
        ("02-3zzn-nnnn", "010-zznn-nnnn", "02-7zz-nnnn"),
        ("+82 2-3zzn-nnnn", "+82-10-zznn-nnnn"),
    ),
    "ru": (("8 (495) zzn-nn-nn", "8-916-zzn-nn-nn"), ("+7 (495) zzn-nn-nn", "+7 916 zzn-nn-nn")),
    "tr": (("0212 2zz nn nn", "(0212) 2zz nn nn", "0532 zzn nn nn"), ("+90 212 2zz nn nn",)),
    "br": (("(11) 3znn-nnnn", "(11) 9zznn-nnnn"), ("+55 11 3znn-nnnn", "+55 (11) 9zznn-nnnn")),
    "cz": (("224 zzn nnn", "603 znn nnn"), ("+420 224 zzn nnn", "+420 607 znn nnn")),
    "ae": (("04 3zz nnnn",), ("+971 4 3zz nnnn", "+971 50 zzn nnnn")),
    "in": (("98zzn nnnnn", "022 2zzn nnnn"), ("+91 98zzn nnnnn", "+91-22-2zzn nnnn")),
    "au": (("(02) 92zn nnnn", "041z nnn nnn"), ("+61 2 92zn nnnn", "+61 41z nnn nnn")),
}  # fmt: skip
COUNTRIES = tuple(_PHONES)


def make_phone(scene: Scene, country: str) -> str:
    """A number of a country as written at home or abroad, or with its code if none is named."""
    rng = scene.rng
    chosen = country or rng.choice(("us", "us", "us", "uk", "uk", "de", *COUNTRIES))
    home, abroad = _PHONES[chosen]
    pattern = rng.choice(home if country and rng.random() < 0.65 else abroad)
    pattern = pattern.replace("AAA", rng.choice(_US))
    rest = {"n": DIGITS, "z": "2346789"}
    return "".join(rng.choice(rest[sign]) if sign in rest else sign for sign in pattern)


def make_ip(scene: Scene, version: str) -> str:
    """A public unicast address, of version 4 in three of four texts if none is named."""
    rng = scene.rng
    if (version or ("4" if rng.random() < 0.75 else "6")) == "4":
        while True:
            octets = [rng.randrange(20, 223), *(rng.randrange(0, 256) for _ in range(3))]
            address = ipaddress.ip_address(".".join(map(str, octets)))
            # Two groups above 40, so that nobody reads a version number.
            if (
                address.is_global
                and sum(octet > 40 for octet in octets) > 1
                and octets[3] not in (0, 255)
            ):
                return str(address)
    head = rng.choice(("2001:470:1f", "2a01:4f8:c", "2600:1f18:4", "2a02:8108:8", "2604:a880:4"))
    groups = [head + chars(rng, HEX[1:], 2), *(chars(rng, HEX[1:], 4) for _ in range(5))]
    form = rng.random()
    if form < 0.4:
        text = f"{groups[0]}::{rng.choice('123456789abcdef')}"
    elif form < 0.7:
        text = f"{groups[0]}:{groups[1]}::{groups[2]}"
    else:
        count = 8 - groups[0].count(":") - 1
        text = ":".join([groups[0], *(chars(rng, HEX[1:], 4) for _ in range(count))])
    return text.upper() if rng.random() < 0.06 else text


_BRANDS = (
    *(("4", 16, 44), ("51", 16, 8), ("52", 16, 8), ("54", 16, 8), ("55", 16, 6), ("2221", 16, 3)),
    *(("34", 15, 5), ("37", 15, 8), ("6011", 16, 4), ("3528", 16, 3), ("36", 14, 2), ("62", 16, 2)),
)


def group_card(number: str, separator: str) -> str:
    """A card's digits in groups as its network prints them: 4-6-5, 4-6-4 or fours."""
    sizes = {15: (4, 6, 5), 14: (4, 6, 4)}.get(len(number), (4, 4, 4, 4))
    places = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    return separator.join(number[a:b] for a, b in pairwise(places))


def card_digits(rng: random.Random) -> str:
    """Digits of a card with a prefix of a network and a valid check digit."""
    prefix, size, _ = rng.choices(_BRANDS, [weight for *_, weight in _BRANDS])[0]
    body = prefix + rng.choice("2346789") + chars(rng, DIGITS, size - len(prefix) - 2)
    return body + luhn_digit(body)


def make_card(scene: Scene, form: str) -> str:
    """A card in digits (`plain`) or mostly in groups."""
    separator = (
        ""
        if form == "plain"
        else scene.rng.choice((" ",) * 6 + ("-",) * 4 + ("",) * 5 + ("\u00a0",))
    )
    return group_card(card_digits(scene.rng), separator)


# Structure of the domestic part by the IBAN registry (SWIFT): n digits, a capitals, c either.
BBAN = {
    "DE": "n18", "GB": "a4n14", "FR": "n10c11n2", "ES": "n20", "IT": "a1n10c12", "NL": "a4n10",
    "BE": "n12", "AT": "n16", "CH": "n5c12", "PL": "n24", "SE": "n20", "DK": "n14", "FI": "n14",
    "NO": "n11", "PT": "n21", "IE": "a4n14", "CZ": "n20", "HU": "n24", "GR": "n7c16", "TR": "n22",
    "SA": "n2c18", "AE": "n19", "LU": "n3c13", "SK": "n20", "HR": "n17", "EE": "n16", "LT": "n16",
    "RO": "a4c16",
}  # fmt: skip
_BANKS = split_words("banks")


def iban_remainder(iban: str) -> int:
    """Remainder by ISO 7064 mod 97-10; 1 for a valid IBAN."""
    text = iban[4:] + iban[:4]
    return int("".join(str(int(sign, 36)) for sign in text)) % 97


def iban_digits(rng: random.Random, country: str) -> str:
    """A valid IBAN of a country without spaces; national check digits are not computed."""
    body, structure = "", BBAN[country]
    for part in structure.replace("n", " n").replace("a", " a").replace("c", " c").split():
        size = int(part[1:])
        if part == "a4":
            body += rng.choice(_BANKS)
        else:
            body += chars(rng, {"n": DIGITS, "a": UPPER, "c": DIGITS + UPPER[:6]}[part[0]], size)
    return f"{country}{98 - iban_remainder(f'{country}00{body}'):02}{body}"


def make_iban(scene: Scene, country: str) -> str:
    """An IBAN in groups of four or without spaces; of `country`, or of any."""
    rng = scene.rng
    number = iban_digits(rng, country or rng.choice(("DE", "DE", "DE", "FR", "GB", "NL", *BBAN)))
    form = rng.random()
    if form < 0.5:
        return " ".join(number[start : start + 4] for start in range(0, len(number), 4))
    if form < 0.53:
        return "\u00a0".join(number[start : start + 4] for start in range(0, len(number), 4))
    return number.lower() if form < 0.55 else number


def _card_miss(scene: Scene, form: str) -> str:
    """Sixteen digits with a card's prefix whose check digit is wrong."""
    body = "4" + chars(scene.rng, DIGITS, 14)
    wrong = str((int(luhn_digit(body)) + scene.rng.randrange(1, 10)) % 10)
    return group_card(body + wrong, {"spaces": " ", "dashes": "-"}.get(form, ""))


def _iban_miss(scene: Scene, form: str) -> str:
    """An IBAN's form with check digits that are wrong."""
    number = iban_digits(scene.rng, scene.rng.choice(("DE", "FR", "NL", "ES", "PL")))
    check = (int(number[2:4]) - 2 + scene.rng.randrange(1, 97)) % 97 + 2
    wrong = f"{number[:2]}{check:02}{number[4:]}"
    step = 4 if form == "spaces" else len(wrong)
    return " ".join(wrong[start : start + step] for start in range(0, len(wrong), step))


def _creditor_reference(scene: Scene, _: str) -> str:
    """A structured creditor reference of ISO 11649: the same checksum as an IBAN, no account."""
    body = chars(scene.rng, DIGITS, 12)
    number = f"RF{98 - iban_remainder(f'RF00{body}'):02}{body}"
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


def _imei(scene: Scene, _: str) -> str:
    body = "35" + chars(scene.rng, DIGITS, 12)
    return body + luhn_digit(body)


def _isbn(scene: Scene, form: str) -> str:
    body = scene.rng.choice(("9780", "9781", "9783")) + chars(scene.rng, DIGITS, 8)
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body))
    number = body + str(-total % 10)
    return f"{number[:3]}-{number[3]}-{number[4:8]}-{number[8:12]}-{number[12]}" if form else number


def _lei(scene: Scene, _: str) -> str:
    body = "5299" + "00" + chars(scene.rng, UPPER + DIGITS, 12)
    number = int("".join(str(int(sign, 36)) for sign in body + "00"))
    return f"{body}{98 - number % 97:02}"


def _doc_ip(scene: Scene, _: str) -> str:
    """An address that RFC 5737 keeps for documentation."""
    return scene.rng.choice(("192.0.2.", "198.51.100.", "203.0.113.")) + str(
        scene.rng.randrange(1, 255)
    )


def _private_ip(scene: Scene, _: str) -> str:
    rng = scene.rng
    two, three = rng.randrange(256), rng.randrange(1, 255)
    return rng.choice(
        (f"10.{two}.{two}.{three}", f"192.168.{two}.{three}", f"172.{16 + two % 16}.{two}.{three}")
    )


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": make_email,
    "phone": make_phone,
    "ip": make_ip,
    "card": make_card,
    "iban": make_iban,
    "cardmiss": _card_miss,
    "ibanmiss": _iban_miss,
    "creditor": _creditor_reference,
    "imei": _imei,
    "isbn": _isbn,
    "lei": _lei,
    "docip": _doc_ip,
    "privateip": _private_ip,
    "bic": lambda scene, _: chars(scene.rng, UPPER, 4) + "DEFF" + scene.rng.choice(("", "XXX")),
    "serial": lambda scene, _: "-".join(chars(scene.rng, ALNUM[26:], 5) for _ in range(5)),
}
