"""Makers of personal data: mail addresses, phone numbers, IP addresses, cards and IBANs."""

from __future__ import annotations

import ipaddress
import random
import re
from pathlib import Path

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.eighth_blind.words import (
    PEOPLE,
    ascii_of,
    draw_pattern,
    make_domain,
    person_of,
    words_of,
)

_FREEMAIL = (
    *("gmail.com", "outlook.com", "proton.me", "seznam.cz", "wp.pl", "libero.it", "gmx.at"),
    *("laposte.net", "sapo.pt", "uol.com.br", "abv.bg", "naver.com", "web.de", "ziggo.nl"),
    *("hotmail.co.uk", "icloud.com", "fastmail.fm", "bluewin.ch", "telia.com", "inbox.lv"),
)
_ROLES = (
    *("billing", "buchhaltung", "reservas", "kundtjanst", "sklep", "support", "press", "hr"),
    *("datenschutz", "secretariat", "objednavky", "abuse", "office", "careers", "ufficio.acquisti"),
)


def _phone_forms() -> dict[str, list[str]]:
    content = Path(__file__).with_name("texts").joinpath("phone_forms.txt").read_text("utf-8")
    lines = re.findall(r"^([A-Z]{2}): (.+)$", content, re.MULTILINE)
    return {country: forms.split("; ") for country, forms in lines}


PHONES = _phone_forms()
"""How each country writes its numbers: patterns, those with + at their start international."""


def make_phone(rng: random.Random, country: str = "", form: str = "") -> str:
    """A phone number of a country; `form` is `i` international, `t` E.164, `n` national.

    Without a form any of the country's, or an international one if no country is named.
    """
    forms = PHONES[country or rng.choice(list(PHONES))]
    abroad = [pattern for pattern in forms if pattern.startswith("+")]
    if form == "n":
        forms = [pattern for pattern in forms if pattern not in abroad]
    elif form or not country:
        forms = abroad
    number = draw_pattern(rng, rng.choice(forms))
    return re.sub(r"\(0\)|[^\d+]", "", number) if form == "t" else number


def _phone(scene: Scene, argument: str) -> str:
    country, _, form = argument.partition(".")
    return make_phone(scene.rng, country, form)


def make_mail(rng: random.Random, first: str, last: str) -> str:
    """The address of a person, at a firm or a large provider."""
    first, last = ascii_of(first), ascii_of(last)
    local = rng.choice(
        [
            *(f"{first}.{last}", f"{first[0]}.{last}", f"{last}{first[0]}", f"{first}_{last}"),
            *(f"{first}{rng.randrange(60, 99)}", f"{first[0]}{last}", f"{last}.{first}", first),
            *(f"{first}-{last}", f"{first}.{last}+{rng.choice(['lists', 'shop', 'ci'])}"),
        ]
    )
    host = rng.choice(_FREEMAIL) if rng.random() < 0.35 else make_domain(rng)
    if rng.random() < 0.06:
        local = local.title()
    if host not in _FREEMAIL and rng.random() < 0.12:
        host = f"{rng.choice(['mail', 'cs', 'eng', 'lists', 'students'])}.{host}"
    return f"{local}@{host}"


def _mail(scene: Scene, argument: str) -> str:
    if argument == "role":
        return f"{scene.rng.choice(_ROLES)}@{make_domain(scene.rng)}"
    first, last = scene.rng.choice(PEOPLE) if argument == "other" else person_of(scene)
    return make_mail(scene.rng, first, last)


_FIRST_OCTETS = (
    *(31, 37, 46, 51, 62, 77, 79, 81, 82, 84, 86, 89, 91, 93, 95, 103, 109, 111, 122, 130, 139),
    *(144, 151, 158, 163, 177, 178, 185, 188, 193, 195, 200, 202, 212, 213, 217, 220),
)
_PREFIXES = words_of(
    "2a01:cb0* 2a02:8** 2001:1c0* 2003:e* 2600:17** 2804:14* 240b:1* 2a0d:3** 2405:20*"
)


def make_ip4(rng: random.Random) -> str:
    """A public IPv4 address of a range in which providers have subscribers."""
    while True:
        octets = [rng.choice(_FIRST_OCTETS), *(rng.randrange(256) for _ in range(2))]
        address = ".".join(map(str, [*octets, rng.randrange(2, 254)]))
        if ipaddress.ip_address(address).is_global:
            return address


def make_ip6(rng: random.Random) -> str:
    """A public IPv6 address, of a subscriber in full or of a server shortened."""
    prefix = draw_pattern(rng, rng.choice(_PREFIXES))
    if rng.random() < 0.5:
        end = draw_pattern(rng, rng.choice(["^", "^*", "^***"]))
        return f"{prefix}:{draw_pattern(rng, '^***:^**')}::{end}"
    return ":".join([prefix, *(draw_pattern(rng, "^***") for _ in range(6))])


_CARDS = (
    *(("visa", "4", 16), ("visa", "4", 16), ("mastercard", "5[12345]", 16)),
    *(("mastercard", "2[3456]", 16), ("amex", "3[47]", 15), ("discover", "6011", 16)),
    *(("jcb", "35[345678]", 16), ("diners", "36", 14), ("unionpay", "62", 16)),
)
TEST_CARDS = (
    *("4242424242424242", "4000056655665556", "5555555555554444", "5200828282828210"),
    *("378282246310005", "6011111111111117", "3566002020360505", "4111111111111111"),
)
"""Numbers that Stripe, Adyen and the networks publish for tests."""


def group_card(digits: str, joint: str) -> str:
    """A card number as its brand prints it, with a joint between its groups."""
    sizes = {15: (4, 6, 5), 14: (4, 6, 4)}.get(len(digits), (4, 4, 4, 4))
    parts, at = [], 0
    for size in sizes:
        parts.append(digits[at : at + size])
        at += size
    return joint.join(parts)


def make_card(rng: random.Random, brand: str = "", wrong: bool = False) -> str:
    """The digits of a card, with a right or a wrong check digit."""
    _, head, size = rng.choice([card for card in _CARDS if brand in ("", card[0])])
    body = draw_pattern(rng, head)
    body = draw_pattern(rng, body + "#" * (size - 1 - len(body)))
    right = int(luhn_digit(body))
    return body + str((right + rng.randrange(1, 10)) % 10 if wrong else right)


def _card(scene: Scene, argument: str) -> str:
    brand, _, form = argument.partition(".")
    joint = {"plain": "", "space": " ", "dash": "-"}.get(form)
    if joint is None:
        joint = scene.rng.choice([" ", " ", "-", ""])
    return group_card(make_card(scene.rng, brand), joint)


def _wrong_card(scene: Scene, argument: str) -> str:
    digits = make_card(scene.rng, "visa" if argument == "visa" else "", wrong=True)
    return digits if argument == "plain" else group_card(digits, scene.rng.choice([" ", "-"]))


def _test_card(scene: Scene, argument: str) -> str:
    return group_card(scene.rng.choice(TEST_CARDS), scene.rng.choice(["", " ", "-"]))


def _not_luhn(scene: Scene, argument: str) -> str:
    body = draw_pattern(scene.rng, "^" + "#" * (int(argument) - 2))
    return body + str((int(luhn_digit(body)) + scene.rng.randrange(1, 10)) % 10)


# BBANs of the IBAN registry (SWIFT): `#` is a digit, `$` the code of a bank of the country
IBANS = {
    "AT": "[1-6]####" + "#" * 11, "BE": "#" * 12, "BG": "$9###10########",
    "CY": "00[25]#####" + "#" * 16,
    "CH": "00[78]##############", "CZ": "0[138]00" + "#" * 16, "DE": "[1-8]##[5-7]####" + "#" * 10,
    "DK": "#" * 14, "EE": "[127]#" + "#" * 14, "ES": "#" * 20, "FI": "[1235]#" + "#" * 12,
    "FR": "[1-5]####" + "#" * 18, "GB": "$" + "#" * 14, "GR": "01[1247]#" + "#" * 19,
    "HR": "#" * 17,
    "HU": "1[0127]######" + "#" * 16, "IE": "$" + "#" * 14, "IT": "!0[13]###" + "#" * 17,
    "LT": "[37]####" + "#" * 11, "LU": "0[01]#" + "#" * 13, "LV": "$0000" + "#" * 9,
    "MT": "$" + "#" * 23, "NL": "$0#########", "NO": "#" * 11, "PL": "1[01246]#" + "#" * 21,
    "PT": "00[0134]#" + "#" * 17, "RO": "$" + "#" * 16, "SE": "[1-9]00" + "#" * 17,
    "SI": "0[124]###" + "#" * 10, "SK": "0[1289]00" + "#" * 16, "TR": "000[16]#0" + "#" * 16,
}  # fmt: skip
_BANKS = {
    "BG": ("STSA", "UNCR", "BPBI"), "GB": ("LOYD", "BARC", "SRLG", "MIDL", "HBUK"),
    "IE": ("BOFI", "AIBK", "IPBS"), "LV": ("HABA", "UNLA", "PARX"), "MT": ("VALL", "MMEB"),
    "NL": ("RABO", "INGB", "TRIO", "BUNQ", "SNSB"), "RO": ("BTRL", "RNCB", "INGB", "BRDE"),
}  # fmt: skip
PUBLISHED_IBANS = (
    *("DE89370400440532013000", "GB29NWBK60161331926819", "FR1420041010050500013M02606"),
    *("NL91ABNA0417164300", "BE68539007547034", "CH9300762011623852957", "AT611904300234573201"),
    *("ES9121000418450200051332", "IT60X0542811101000000123456", "NO9386011117947"),
    *("PL61109010140000071219812874", "SE4550000000058398257466", "FI2112345600000785"),
)
"""The examples of the IBAN registry."""


def iban_digits(text: str) -> int:
    """The number of ISO 13616 whose remainder by 97 is 1 for a right IBAN."""
    compact = text.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4]))


def make_iban(rng: random.Random, country: str = "", wrong: bool = False) -> str:
    """An IBAN without blanks, with right or with wrong check digits."""
    country = country or rng.choice(list(IBANS))
    bank = rng.choice(_BANKS.get(country, ("",)))
    account = draw_pattern(rng, IBANS[country]).replace("$", bank)
    check = 98 - iban_digits(f"{country}00{account}") % 97
    if wrong:
        check = (check + rng.randrange(2, 90)) % 97 or 41
    return f"{country}{check:02d}{account}"


def group_iban(iban: str) -> str:
    """An IBAN as it is printed: groups of four."""
    return " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))


def _iban(wrong: bool) -> Maker:
    def make(scene: Scene, argument: str) -> str:
        country, _, form = argument.partition(".")
        iban = make_iban(scene.rng, country, wrong)
        plain = form == "plain" or (form != "space" and scene.rng.random() < 0.4)
        return iban if plain else group_iban(iban)

    return make


def _published_iban(scene: Scene, argument: str) -> str:
    iban = scene.rng.choice(PUBLISHED_IBANS)
    return iban if scene.rng.random() < 0.5 else group_iban(iban)


def _private_ip(scene: Scene, argument: str) -> str:
    pattern = scene.rng.choice(["10.^#.^#.^#", "192.168.^.^#", "172.[12]9.^.1##", "10.0.^.^"])
    return draw_pattern(scene.rng, pattern)


def _documentation_ip(scene: Scene, argument: str) -> str:
    network = scene.rng.choice(["192.0.2", "198.51.100", "203.0.113"])
    return f"{network}.{scene.rng.randrange(1, 255)}"


PERSONAL_MAKERS: dict[str, Maker] = {
    "mail": _mail,
    "phone": _phone,
    "ip4": lambda scene, argument: make_ip4(scene.rng),
    "ip6": lambda scene, argument: make_ip6(scene.rng),
    "private_ip": _private_ip,
    "doc_ip": _documentation_ip,
    "card": _card,
    "wrong_card": _wrong_card,
    "test_card": _test_card,
    "not_luhn": _not_luhn,
    "iban": _iban(wrong=False),
    "wrong_iban": _iban(wrong=True),
    "published_iban": _published_iban,
}
