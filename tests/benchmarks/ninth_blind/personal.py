"""Personal data: addresses of e-mail, numbers of phones, IP addresses, cards and IBANs.

Each maker of a value has a partner that makes what only looks like it: reserved domains, numbers of
other things, private addresses, wrong check digits, published test numbers.
"""

from __future__ import annotations

import ipaddress
import random
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.ninth_blind.words import (
    COMMON,
    DOMAINS,
    FIRSTS,
    LASTS,
    MAILERS,
    NOUNS,
    pick,
    plain,
)

PHONES: dict[str, tuple[str, ...]] = {
    # d is a digit, s one from 2 to 9, a and t codes of areas and of free calls; the writings are
    # those of each country's numbering plan
    "US": ("(a) sdd-dddd", "+1 a-sdd-dddd", "a.sdd.dddd", "a-sdd-dddd", "1-t-sdd-dddd"),
    "GB": ("+44 20 7sdd dddd", "020 8sdd dddd", "077dd dddddd", "+44 (0)131 sdd dddd"),
    "DE": ("+49 30 sddddddd", "089 / sddd dddd", "+49 (0)40 sdd dd dd-d", "0221-sdddddd"),
    "FR": ("+33 6 sd dd dd dd", "01 4d dd dd dd", "+33 (0)1 4d dd dd dd", "07.sd.dd.dd.dd"),
    "ES": ("+34 6sd dd dd dd", "91 sdd dd dd", "944 dd dd dd", "+34 93 sdd dd dd", "6sd dddddd"),
    "IT": ("+39 02 sddd dddd", "06 sddddddd", "+39 34s ddd dddd", "33s-ddddddd", "055 sddddd"),
    "NL": ("+31 6 sddddddd", "020-sdd dddd", "06-sddddddd", "+31 (0)30 sdd dddd", "010 sdd dd dd"),
    "PL": ("+48 51d ddd ddd", "22 sdd dd dd", "60d-ddd-ddd", "+48 12 sdd dd dd", "(58) sdd dd dd"),
    "CZ": ("+420 60s ddd ddd", "+420 2s1 ddd ddd", "77s ddd ddd", "+4207sddddddd"),
    "HU": ("+36 30 sdd dddd", "06 1 sdd dddd", "+36-20-sdd-dddd", "06-70/sdd-dddd"),
    "DK": ("+45 sd dd dd dd", "+45 sddd dddd", "+45sddddddd"),
    "NO": ("+47 9sd dd ddd", "+47 22 sd dd dd", "+4741dddddd"),
    "SE": ("+46 70 sdd dd dd", "+46 (0)31 sd dd dd", "073-sdd dd dd", "+46 8 5sd ddd dd"),
    "FI": ("+358 40 sdd dddd", "+358 50 sdddddd", "09 sddd ddd"),
    "PT": ("+351 91s ddd ddd", "+351 21 sdd dddd", "22s ddd ddd"),
    "CH": ("+41 44 sdd dd dd", "079 sdd dd dd", "+41 (0)31 sdd dd dd"),
    "AT": ("+43 664 sdddddd", "+43 1 sdddddd", "0316 / sdd ddd"),
    "BR": ("+55 11 9sddd-dddd", "(21) 9sddd-dddd", "(31) 3sdd-dddd", "+55 (51) 3sdd-dddd"),
    "MX": ("+52 55 5sdd dddd", "(33) 3sdd dddd", "+52 81 8sdd dddd"),
    "AR": ("+54 11 4sdd-dddd", "+54 9 11 sddd-dddd", "(011) 4sdd-dddd"),
    "IN": ("+91 98sdd ddddd", "+91-22-2sdd dddd", "+91 7sdddddddd", "080-4sdd dddd"),
    "JP": ("03-3sdd-dddd", "+81 90-sddd-dddd", "06-6sdd-dddd", "080-sddd-dddd"),
    "KR": ("010-sddd-dddd", "+82 2-7sd-dddd", "02-5sd-dddd"),
    "AU": ("+61 2 9sdd dddd", "(03) 9sdd dddd", "04ss dd2 ddd", "+61 4ss dd3 ddd"),
    "NZ": ("+64 21 sdd dddd", "(09) 3sd dddd", "+64 4 4sd dddd"),
    "ZA": ("+27 82 sdd dddd", "021 4sd dddd", "+27 11 8sd dddd"),
    "KE": ("+254 7sd dddddd", "07ss ddd ddd"),
    "TR": ("+90 532 sdd dd dd", "0 (212) 2sd dd dd", "+90 312 4sd dd dd"),
    "GR": ("+30 210 sdd dddd", "+30 694 sdd dddd"),
    "UA": ("+380 67 sdd dd dd", "(044) 2sd-dd-dd", "+380 (50) sdd-dd-dd"),
}  # fmt: skip

TEST_CARDS = (
    *("4242424242424242", "4000056655665556", "5555555555554444", "2223003122003222"),
    *("5200828282828210", "378282246310005", "371449635398431", "6011111111111117"),
    *("6011000990139424", "3566002020360505", "4111111111111111", "5105105105105100"),
    *("4012888888881881", "6011000000000004", "4000000000003220", "4000000000009995"),
)
"""Test numbers that Stripe, PayPal and Adyen publish."""

PUBLISHED_IBANS = (
    *("GB29NWBK60161331926819", "DE89370400440532013000", "FR1420041010050500013M02606"),
    *("NL91ABNA0417164300", "ES9121000418450200051332", "IT60X0542811101000000123456"),
    *("BE68539007547034", "AT611904300234573201", "CH9300762011623852957"),
    "PL61109010140000071219812874",
    *("SE4550000000058398257466", "NO9386011117947", "DK5000400440116243", "FI2112345600000785"),
    *("IE29AIBK93115212345678", "PT50000201231234567890154", "CZ6508000000192000145399"),
)  # fmt: skip
"""Examples of the SWIFT registry."""

IBANS: dict[str, tuple[str, ...]] = {
    # the account part: d digits, l letters, codes of banks in capitals; as the registry writes it
    "DE": ("d" * 18,), "AT": ("d" * 16,), "CH": ("d" * 17,),
    "NL": ("INGBdddddddddd", "RABOdddddddddd"),
    "BE": ("d" * 12,), "FR": ("d" * 23, "d" * 20 + "ldd"), "ES": ("d" * 20,),
    "IT": ("l" + "d" * 22,),
    "PT": ("d" * 21,), "IE": ("BOFI" + "d" * 14,), "GB": ("BARC" + "d" * 14, "MIDL" + "d" * 14),
    "DK": ("d" * 14,), "NO": ("d" * 11,), "SE": ("d" * 20,), "FI": ("d" * 14,), "EE": ("d" * 16,),
    "LV": ("HABA" + "d" * 13,), "LT": ("d" * 16,), "PL": ("d" * 24,), "CZ": ("d" * 20,),
    "SK": ("d" * 20,), "HU": ("d" * 24,), "SI": ("d" * 15,), "HR": ("d" * 17,), "GR": ("d" * 23,),
    "RO": ("BTRL" + "d" * 16,), "BG": ("UNCR" + "d" * 14,), "LU": ("d" * 16,), "TR": ("d" * 22,),
    "CY": ("d" * 24,), "MT": ("VALL" + "d" * 5 + "l" * 2 + "d" * 16,), "IS": ("d" * 22,),
    "AE": ("d" * 19,), "SA": ("d" * 20,), "GE": ("TB" + "d" * 16,), "RS": ("d" * 18,),
}  # fmt: skip


_AREAS = (
    "201 206 212 213 214 303 305 312 313 404 415 416 503 512 514 602 604 612 617 619 646 702 703 "
    "718 773 808 813 843 865 919 978"
)
_FREE = "800 833 844 855 866 877 888"


def _drawn(rng: random.Random, form: str) -> str:
    groups = {
        "d": string.digits,
        "s": "23456789",
        "l": string.ascii_uppercase,
        "a": _AREAS.split(),
        "t": _FREE.split(),
    }
    return "".join(rng.choice(groups.get(character, character)) for character in form)


def make_phone(rng: random.Random, country: str) -> str:
    """A number of a country in one of its writings, outside the ranges kept for fiction."""
    while True:
        number = _drawn(rng, rng.choice(PHONES[country]))
        digits = "".join(character for character in number if character.isdigit())
        fiction = "555" in digits or digits.endswith(("0000", "1111", "1234"))
        if not fiction and not any(
            part in digits
            for part in (*("207946", "7700900", "199000", "491570", "35301"), "8465004", "161496")
        ):
            return number


def make_card(rng: random.Random, style: str = "", wrong: bool = False) -> str:
    """A card number of a brand; `style` is plain, spaces or dashes, drawn if empty."""
    visa = f"4{rng.randint(1000, 9999)}"
    mastercard = rng.choice([f"5{rng.randint(1100, 5999)}", f"2{rng.randint(230, 710)}"])
    discover = rng.choice(["6011", f"65{rng.randint(0, 9)}"])
    head = rng.choice([visa, visa, mastercard, mastercard, "34", "37", "36", discover])
    length = {"34": 15, "37": 15, "36": 14}.get(head[:2], 16)
    body = head + pick(rng, string.digits, length - 1 - len(head))
    last = luhn_digit(body)
    if wrong:
        last = str((int(last) + rng.randint(1, 9)) % 10)
    digits = body + last
    if digits in TEST_CARDS:
        return make_card(rng, style, wrong)
    style = style or rng.choice(["plain", "spaces", "spaces", "dashes"])
    return group_card(digits, style)


def group_card(digits: str, style: str) -> str:
    """Digits of a card in the groups that its brand prints."""
    if style == "plain":
        return digits
    sizes = {14: (4, 6, 4), 15: (4, 6, 5)}.get(len(digits), (4, 4, 4, 4))
    parts, at = [], 0
    for size in sizes:
        parts.append(digits[at : at + size])
        at += size
    return {"spaces": " ", "dashes": "-"}[style].join(parts)


def make_iban(rng: random.Random, country: str, wrong: bool = False) -> str:
    """An IBAN without spaces, with right or wrong check digits (ISO 13616: remainder 1 mod 97)."""
    account = _drawn(rng, rng.choice(IBANS[country]))
    number = "".join(str(int(character, 36)) for character in f"{account}{country}00")
    check = 98 - int(number) % 97
    if wrong:
        check = 2 + (check - 2 + rng.randint(1, 95)) % 97
    iban = f"{country}{check:02d}{account}"
    return make_iban(rng, country, wrong) if iban in PUBLISHED_IBANS else iban


def group_iban(iban: str) -> str:
    """An IBAN in groups of four."""
    return " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))


def make_ip(rng: random.Random, version: int) -> str:
    """A public address of one machine, outside well-known resolvers and reserved ranges."""
    if version == 6:
        heads = (
            "2a01:4f8",
            "2a02:8108",
            "2001:41d0",
            "2604:a880",
            "2a00:1450",
            "2400:6180",
            "2003:c7",
        )
        groups = [f"{rng.getrandbits(16):x}" for _ in range(6)]
        if rng.random() < 0.5:
            return f"{rng.choice(heads)}:{groups[0]}:{groups[1]}::{rng.randint(2, 4000):x}"
        return ":".join([rng.choice(heads), *groups])
    while True:
        first = rng.choice(
            [
                *range(23, 100),
                *range(101, 126),
                *range(128, 169),
                *range(176, 192),
                *range(193, 223),
            ]
        )
        address = ipaddress.IPv4Address((first << 24) + rng.getrandbits(24))
        last = int(address) & 255
        if address.is_global and 1 < last < 255 and (int(address) >> 8) & 0xFFFF > 999:
            return str(address)


def _email(scene: Scene, argument: str) -> str:
    rng = scene.rng
    first, last = plain(rng.choice(FIRSTS)).lower(), plain(rng.choice(LASTS)).lower()
    domain = rng.choice(MAILERS if argument == "home" else DOMAINS)
    if argument == "role":
        roles = (
            "support billing kontakt info sales presse facturacion hr security bestellung office"
        )
        return f"{rng.choice(roles.split())}@{domain}"
    local = rng.choice(
        [
            f"{first}.{last}",
            f"{first[0]}{last}",
            f"{last}.{first}",
            f"{first}_{last}",
            f"{first}{rng.randint(60, 99)}",
        ]
    )
    if argument == "tag":
        local = f"{first}.{last}+{rng.choice(NOUNS)}"
    if argument == "upper":
        return f"{first.title()}.{last.title()}@{domain}"
    if argument == "sub":
        return f"{local}@{rng.choice(['mail', 'it', 'students', 'corp'])}.{domain}"
    return f"{local}@{domain}"


def _email_reserved(scene: Scene, _: str) -> str:
    rng = scene.rng
    local = rng.choice(["jane.doe", "user", "alice", "admin", "you", "bob", "first.last", "test"])
    domain = rng.choice(
        ["example.com", "example.org", "example.net", "mail.example.com", "corp.example"]
    )
    return f"{local}@{domain}"


def _ip(scene: Scene, argument: str) -> str:
    version = int(argument) if argument else scene.rng.choice([4, 4, 4, 6])
    return make_ip(scene.rng, version)


def _ip_private(scene: Scene, argument: str) -> str:
    rng = scene.rng
    tail = f"{rng.randint(0, 255)}.{rng.randint(2, 254)}"
    return rng.choice(
        [f"10.{rng.randint(0, 255)}.{tail}", f"192.168.{tail}", f"172.{rng.randint(16, 31)}.{tail}"]
    )


def _ip_reserved(scene: Scene, argument: str) -> str:
    rng = scene.rng
    four = [f"{head}.{rng.randint(1, 254)}" for head in ("192.0.2", "198.51.100", "203.0.113")]
    six = [
        f"2001:db8:{rng.getrandbits(16):x}::{rng.randint(1, 99)}",
        f"2001:db8::{rng.getrandbits(12):x}",
    ]
    return rng.choice({"4": four, "6": six}.get(argument, four + six))


def _ip_local6(scene: Scene, _: str) -> str:
    rng = scene.rng
    tail = ":".join(f"{rng.getrandbits(16):x}" for _ in range(4))
    return rng.choice([f"fe80::{tail}", f"fd{rng.getrandbits(8):02x}:{tail}::{rng.randint(1, 99)}"])


def _version4(scene: Scene, _: str) -> str:
    rng = scene.rng
    third = rng.choice([rng.randint(0, 250), rng.randint(256, 7000)])
    return f"{rng.randint(1, 130)}.{rng.randint(0, 20)}.{third}.{rng.randint(1, 250)}"


def _mac(scene: Scene, argument: str) -> str:
    return (argument or ":").join(f"{scene.rng.getrandbits(8):02x}" for _ in range(6))


def _fingerprint(scene: Scene, _: str) -> str:
    return ":".join(f"{scene.rng.getrandbits(8):02x}" for _ in range(16))


def _card_test(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return group_card(rng.choice(TEST_CARDS), argument or rng.choice(["plain", "spaces", "dashes"]))


def _card_mask(scene: Scene, _: str) -> str:
    last = pick(scene.rng, string.digits, 4)
    return scene.rng.choice(
        [f"**** **** **** {last}", f"XXXX-XXXX-XXXX-{last}", f"•••• {last}", f"4xxxxxxxxxxx{last}"]
    )


def _iban(scene: Scene, argument: str) -> str:
    country = scene.rng.choice(argument.split()) if argument else scene.rng.choice(list(IBANS))
    iban = make_iban(scene.rng, country)
    return group_iban(iban) if scene.rng.random() < 0.5 else iban


def _iban_wrong(scene: Scene, argument: str) -> str:
    iban = make_iban(scene.rng, argument or scene.rng.choice(list(IBANS)), wrong=True)
    return group_iban(iban) if scene.rng.random() < 0.4 else iban


def _iban_published(scene: Scene, _: str) -> str:
    iban = scene.rng.choice(PUBLISHED_IBANS)
    return group_iban(iban) if scene.rng.random() < 0.5 else iban


def _iban_mask(scene: Scene, _: str) -> str:
    country, last = scene.rng.choice(["DE", "FR", "NL", "ES"]), pick(scene.rng, string.digits, 4)
    return scene.rng.choice(
        [
            f"{country}** **** **** **** {last}",
            f"{country}XX XXXX XXXX XXXX {last}",
            f"{country}…{last}",
        ]
    )


def _phone(scene: Scene, argument: str) -> str:
    return make_phone(scene.rng, scene.rng.choice(argument.split() if argument else list(PHONES)))


def _phone_fiction(scene: Scene, _: str) -> str:
    rng = scene.rng
    last = f"01{rng.randint(0, 99):02d}"
    return rng.choice(
        [
            f"(212) 555-{last}",
            f"+1-415-555-{last}",
            f"020 7946 0{rng.randint(100, 999)}",
            f"07700 900{rng.randint(100, 999)}",
        ]
    )


def _phone_mask(scene: Scene, _: str) -> str:
    two = pick(scene.rng, string.digits, 2)
    return scene.rng.choice(
        [
            f"+49 *** *****{two}",
            f"(xxx) xxx-xx{two}",
            f"***-***-**{two}",
            f"06 ** ** ** {two}",
            "+XX XXX XXX XXX",
            "XXX-XXX-XXXX",
        ]
    )


def _digits(scene: Scene, argument: str) -> str:
    return scene.rng.choice("123456789") + pick(scene.rng, string.digits, int(argument) - 1)


def _luhn_wrong(scene: Scene, argument: str) -> str:
    """Digits of another thing in a card's length, which fail the check of a card."""
    rng = scene.rng
    body = rng.choice("123456789") + pick(rng, string.digits, int(argument) - 2)
    return body + str((int(luhn_digit(body)) + rng.randint(1, 9)) % 10)


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": _email,
    "email_reserved": _email_reserved,
    "phone": _phone,
    "phone_fiction": _phone_fiction,
    "phone_mask": _phone_mask,
    "ip": _ip,
    "ip_private": _ip_private,
    "ip_reserved": _ip_reserved,
    "ip_local6": _ip_local6,
    "version4": _version4,
    "mac": _mac,
    "fingerprint": _fingerprint,
    "card": lambda scene, argument: make_card(scene.rng, argument),
    "card_wrong": lambda scene, argument: make_card(scene.rng, argument, wrong=True),
    "card_test": _card_test,
    "card_mask": _card_mask,
    "iban": _iban,
    "iban_wrong": _iban_wrong,
    "iban_published": _iban_published,
    "iban_mask": _iban_mask,
    "digits": _digits,
    "luhn_wrong": _luhn_wrong,
    "passphrase_words": lambda scene, _: " ".join(scene.rng.sample(COMMON, 4)),
}
