"""Personal data: e-mail addresses, phone numbers, IP addresses, cards and IBANs."""

from __future__ import annotations

import ipaddress
import random
import re
import string
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.seventh_blind.words import (
    COMPANIES,
    FIRST_NAMES,
    LAST_NAMES,
    WORDS,
    draw,
    slug,
)

MAIL_HOSTS = (
    *("gmail.com", "outlook.com", "proton.me", "web.de", "libero.it", "wp.pl", "seznam.cz"),
    *("naver.com", "orange.fr", "uol.com.br", "bigpond.net.au", "telenet.be", "ziggo.nl"),
    *("icloud.com", "freemail.hu", "abv.bg", "sapo.pt", "bluewin.ch", "centrum.sk", "yahoo.gr"),
)
OFFICES = (
    *("info", "kontakt", "facturas", "support", "jobs", "press", "datenschutz", "ordini"),
    *("bestellung", "rezerwacje", "accueil", "hello", "security", "dpo", "geral", "billing"),
)
TLDS = (".com", ".de", ".pl", ".co.ke", ".no", ".com.tr", ".fr", ".org", ".co.nz", ".it", ".ie")

PHONES = {
    "US": (
        "+1 AAA-EEE-XXXX",
        "(AAA) EEE-XXXX",
        "AAA-EEE-XXXX",
        "+1 (AAA) EEE-XXXX",
        "AAA.EEE.XXXX",
    ),
    "CA": ("+1 604-EEE-XXXX", "(416) EEE-XXXX", "1-514-EEE-XXXX"),
    "GB": (
        "+44 7[458]XX XXXXXX",
        "07[458]XX XXXXXX",
        "020 7[1-6]XX XXXX",
        "0161 [27]XX XXXX",
        "+44 (0)20 7[1-6]XX XXXX",
    ),
    "IE": ("+353 8[5-7] XXX XXXX", "08[5-7] XXX XXXX", "01 [4-8]XX XXXX"),
    "DE": (
        "+49 15[127]X XXXXXXX",
        "0151 XXXXXXXX",
        "+49 89 [2-9]XXXXXX",
        "040 / [3-8]XX XX XX",
        "+49 (0)89 [2-9]XXXXXX",
    ),
    "AT": ("+43 664 XXXXXXX", "0676 XXXXXXX", "+43 1 [5-8]XXXXXX"),
    "CH": ("+41 7[6-9] XXX XX XX", "07[6-9] XXX XX XX", "044 [2-8]XX XX XX"),
    "FR": ("+33 6 [1245]X XX XX XX", "06 [1245]X XX XX XX", "04 7[2-8] XX XX XX", "02.40.XX.XX.XX"),
    "BE": ("+32 47X XX XX XX", "047X/XX.XX.XX", "02 [5-7]XX XX XX"),
    "NL": ("+31 6 [1-5]XXXXXXX", "06-[1-5]XXXXXXX", "020-[4-7]XXXXXX"),
    "ES": ("+34 6[1-9]X XXX XXX", "6[1-9]X XX XX XX", "94[3-8] XX XX XX"),
    "PT": ("+351 9[1236]X XXX XXX", "9[1236]X XXX XXX", "22 [3-7]XX XX XX"),
    "IT": ("+39 3[2-4]X XXX XXXX", "3[2-4]X XXXXXXX", "+39 02 [4-8]XXXXXX", "051 [2-6]XXXXX"),
    "PL": ("+48 [5-7]XX XXX XXX", "[5-7]XX-XXX-XXX", "22 [5-8]XX XX XX", "0048 [5-7]XX XXX XXX"),
    "CZ": ("+420 7[2-7]X XXX XXX", "7[2-7]X XXX XXX"),
    "HU": ("+36 20 [2-4]XX XXXX", "06 70 [3-6]XX XXXX", "+36 1 [2-4]XX XXXX"),
    "RO": ("+40 72X XXX XXX", "072X XXX XXX", "021 [3-4]XX XX XX"),
    "GR": ("+30 69[3479] XXX XXXX", "69[3479]XXXXXXX", "210 [3-9]XXXXXX"),
    "TR": (
        "+90 53[2-9] XXX XX XX",
        "053[2-9] XXX XX XX",
        "(0212) [2-6]XX XX XX",
        "0090 53[2-9] XXX XX XX",
    ),
    "FI": ("+358 40 XXX XXXX", "050 XXX XXXX"),
    "SE": ("+46 73 XXX XX XX", "073-XXX XX XX"),
    "NO": ("+47 4[0-8]X XX XXX", "9[0-5]X XX XXX", "22 [3-9]X XX XX"),
    "DK": ("+45 [2-6]X XX XX XX", "[2-6]X XX XX XX"),
    "KE": ("+254 7[0-2]X XXX XXX", "07[0-2]X XXX XXX"),
    "NG": ("+234 80[3-9] XXX XXXX", "080[3-9] XXX XXXX"),
    "ZA": ("+27 8[2-4] XXX XXXX", "08[2-4] XXX XXXX", "021 [4-7]XX XXXX"),
    "EG": ("+20 10 XXXX XXXX", "010 XXXX XXXX"),
    "IL": ("+972 5[2-4]-XXX-XXXX", "05[2-4]-XXXXXXX"),
    "AE": ("+971 5[0256] XXX XXXX", "05[0256] XXX XXXX"),
    "IN": ("+91 9[1-9]XXX XXXXX", "9[1-9]XXXXXXXX", "+91-98XXX-XXXXX"),
    "VN": ("+84 9[0-8] XXX XX XX", "09[0-8]X XXX XXX"),
    "MY": ("+60 12-XXX XXXX", "012-XXX XXXX"),
    "PH": ("+63 917 XXX XXXX", "0917 XXX XXXX"),
    "KR": ("+82 10-[2-9]XXX-XXXX", "010-[2-9]XXX-XXXX", "02-[2-7]XX-XXXX"),
    "JP": ("+81 90-[2-9]XXX-XXXX", "080-[2-9]XXX-XXXX", "03-[3-6]XXX-XXXX"),
    "CN": ("+86 13[5-9] XXXX XXXX", "13[5-9]XXXXXXXX", "021-6XXXXXXX"),
    "AU": ("+61 4[3-8]X XXX XXX", "04[3-8]X XXX XXX", "(03) 9[1-6]XX XXXX"),
    "NZ": ("+64 21 [2-9]XX XXX", "027 [2-9]XX XXXX", "09 [3-6]XX XXXX"),
    "BR": ("+55 11 9[6-9]XXX-XXXX", "(21) 9[6-9]XXX-XXXX", "(11) 3[0-9]XX-XXXX"),
    "AR": ("+54 9 11 [3-6]XXX-XXXX", "011 4[3-9]XX-XXXX"),
    "CL": ("+56 9 [5-9]XXX XXXX", "9 [5-9]XXX XXXX"),
    "CO": ("+57 31[0-8] XXX XXXX", "31[0-8] XXX XXXX"),
    "MX": ("+52 55 [1-8]XXX XXXX", "55 [1-8]XXX XXXX"),
    "UA": ("+380 67 XXX XX XX", "067 XXX XX XX"),
}
"""Writings by country, `[2-9]` and `X` for digits; none is of a range kept for fiction."""
_AREAS = ("212", "312", "415", "503", "617", "702", "786", "808", "919", "206", "303", "512")
_FREE = re.compile(r"AAA|EEE|\[([^\]]+)\]|X")

BRANDS = (
    *("4" for _ in range(6)),
    *("51", "52", "53", "54", "55", "2221", "2400", "2695"),
    *("34", "37", "6011", "65", "36", "3530", "3568", "6212", "6225", "2201"),
)
"""First digits of Visa, Mastercard, American Express, Discover, Diners, JCB, UnionPay and Mir."""

# country: form of the account part, and the letters with which a bank's code starts
IBANS = {
    "DE": ("n18", ()),
    "GB": ("n14", ("BARC", "NWBK", "MIDL", "LOYD", "MONZ")),
    "FR": ("n23", ()),
    "NL": ("n10", ("ABNA", "INGB", "RABO", "BUNQ", "TRIO")),
    "ES": ("n20", ()),
    "IT": ("a1n22", ()),
    "BE": ("n12", ()),
    "AT": ("n16", ()),
    "CH": ("n17", ()),
    "PL": ("n24", ()),
    "PT": ("n21", ()),
    "SE": ("n20", ()),
    "DK": ("n14", ()),
    "NO": ("n11", ()),
    "FI": ("n14", ()),
    "IE": ("n14", ("AIBK", "BOFI", "IPBS")),
    "CZ": ("n20", ()),
    "SK": ("n20", ()),
    "HU": ("n24", ()),
    "GR": ("n23", ()),
    "RO": ("c16", ("BTRL", "RNCB", "BRDE", "INGB")),
    "TR": ("n22", ()),
    "LU": ("n16", ()),
    "HR": ("n17", ()),
    "SI": ("n15", ()),
    "BG": ("n14", ("UNCR", "STSA", "BPBI")),
    "EE": ("n16", ()),
    "LV": ("n13", ("HABA", "UNLA")),
    "LT": ("n16", ()),
    "MT": ("n23", ("VALL", "MMEB")),
    "IL": ("n19", ()),
    "AE": ("n19", ()),
    "SA": ("n20", ()),
    "GE": ("n16", ("BG", "TB")),
    "KZ": ("n16", ()),
    "UA": ("n25", ()),
}


def make_email(rng: random.Random) -> str:
    """An address of a person (most) or of an office."""
    first, last = slug(rng.choice(FIRST_NAMES)), slug(rng.choice(LAST_NAMES))
    if rng.random() < 0.2:
        local, host = rng.choice(OFFICES), ""
    else:
        local = rng.choice(
            (
                *(f"{first}.{last}", f"{first[0]}.{last}", f"{last}{first[0]}", f"{first}_{last}"),
                *(f"{first}.{last}{rng.randint(60, 99)}", f"{first}+{rng.choice(WORDS)}", first),
            )
        )
        host = rng.choice(MAIL_HOSTS) if rng.random() < 0.4 else ""
    company = slug(rng.choice(COMPANIES)) + rng.choice(TLDS)
    if not host:
        host = f"mail.{company}" if rng.random() < 0.1 else company
    address = f"{local}@{host}"
    return address.title() if rng.random() < 0.03 else address


def _fill_digit(rng: random.Random, match: re.Match[str]) -> str:
    if match[0] == "AAA":
        return rng.choice(_AREAS)
    if match[0] == "EEE":  # 555 is kept for fiction, N11 for services
        return rng.choice("2346789") + rng.choice("023456789") + rng.choice(string.digits)
    if match[1] is None:
        return rng.choice(string.digits)
    low, dash, high = match[1].partition("-")
    return str(rng.randint(int(low), int(high))) if dash else rng.choice(match[1])


def make_phone(rng: random.Random, country: str = "") -> str:
    """A number in one of the writings of a country, by default of any."""
    pattern = rng.choice(PHONES[country or rng.choice(sorted(PHONES))])
    return _FREE.sub(lambda match: _fill_digit(rng, match), pattern)


def make_public_ipv4(rng: random.Random) -> str:
    """An address that is routed on the internet, of one machine (not `.0` or `.255`)."""
    while True:
        parts = (
            rng.randint(11, 217),
            rng.randint(1, 254),
            rng.randint(1, 254),
            rng.randint(2, 253),
        )
        address = ipaddress.IPv4Address(".".join(map(str, parts)))
        if address.is_global and not address.is_multicast:
            return str(address)


def make_public_ipv6(rng: random.Random) -> str:
    """An address of a provider's block, written in full or compressed."""
    head = rng.choice(("2a01:e0a", "2a02:8108", "2604:a880", "2600:1f18", "2804:14c", "2409:4072"))
    groups = [f"{rng.randint(0x1000, 0xFFFF):x}" for _ in range(6)]
    if rng.random() < 0.4:
        return f"{head}:{groups[0]}:{groups[1]}::{rng.randint(1, 0xFFFF):x}"
    return ":".join((head, *groups))


def luhn_valid(digits: str) -> bool:
    """Whether the last digit of a number is its Luhn digit."""
    return luhn_digit(digits[:-1]) == digits[-1]


def make_card(rng: random.Random, writing: str = "") -> str:
    """A card number; `writing` is the separator of its groups, `plain` for none, empty for any."""
    head = rng.choice(BRANDS)
    length = 15 if head in ("34", "37") else 14 if head == "36" else 16
    body = head + draw(rng, string.digits, length - 1 - len(head))
    number = body + luhn_digit(body)
    separator = writing or rng.choices((" ", "-", "plain"), (5, 2, 3))[0]
    if separator == "plain":
        return number
    ends = (4, 8, 12, 16) if length == 16 else (4, 10, length)
    return separator.join(
        number[start:end] for start, end in zip((0, *ends), ends, strict=False) if start < length
    )


def make_unchecked_number(rng: random.Random, head: str, length: int) -> str:
    """A number with such first digits that fails the Luhn check."""
    body = head + draw(rng, string.digits, length - 1 - len(head))
    right = luhn_digit(body)
    return body + rng.choice(string.digits.replace(right, ""))


def _iban_digits(text: str) -> int:
    return int("".join(str(int(character, 36)) for character in text))


def iban_valid(text: str) -> bool:
    """Whether a number passes the mod-97 check of ISO 13616."""
    compact = re.sub(r"[\s-]", "", text)
    return _iban_digits(compact[4:] + compact[:4]) % 97 == 1


def make_iban(rng: random.Random, country: str = "", wrong: bool = False) -> str:
    """An IBAN without blanks; `wrong` shifts its check digits."""
    country = country or rng.choice(sorted(IBANS))
    form, banks = IBANS[country]
    alphabets = {"n": string.digits, "a": string.ascii_uppercase, "c": string.digits + "ACEGKRX"}
    account = (rng.choice(banks) if banks else "") + "".join(
        draw(rng, alphabets[kind], int(count)) for kind, count in re.findall(r"([nac])(\d+)", form)
    )
    check = 98 - _iban_digits(f"{account}{country}00") % 97
    if wrong:
        check = (
            check + rng.randint(5, 80)
        ) % 97 + 2  # 2 to 98, not the right one by the test's loop
    number = f"{country}{check:02}{account}"
    return make_iban(rng, country, wrong) if wrong and iban_valid(number) else number


def _in_fours(text: str) -> str:
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def _plain(make: Callable[[random.Random], str]) -> Maker:
    return lambda scene, _: make(scene.rng)


def _iban(scene: Scene, argument: str) -> str:
    country, _, writing = argument.partition("/")
    number = make_iban(scene.rng, country)
    spaced = writing == "fours" or (not writing and scene.rng.random() < 0.55)
    return _in_fours(number) if spaced else number


def _unchecked(scene: Scene, argument: str) -> str:
    head, _, length = argument.partition("/")
    return make_unchecked_number(scene.rng, head, int(length))


def _luhn_number(scene: Scene, argument: str) -> str:
    head, _, length = argument.partition("/")
    body = head + draw(scene.rng, string.digits, int(length) - 1 - len(head))
    return body + luhn_digit(body)


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": _plain(make_email),
    "phone": lambda scene, country: make_phone(
        scene.rng, scene.rng.choice(country.split("|")) if country else ""
    ),
    "ip4": _plain(make_public_ipv4),
    "ip6": _plain(make_public_ipv6),
    "ip": lambda scene, _: (make_public_ipv4 if scene.rng.random() < 0.8 else make_public_ipv6)(
        scene.rng
    ),
    "card": lambda scene, writing: make_card(scene.rng, writing),
    "iban": _iban,
    "wrong_iban": lambda scene, country: make_iban(scene.rng, country, wrong=True),
    "unchecked": _unchecked,
    "luhn": _luhn_number,
}
