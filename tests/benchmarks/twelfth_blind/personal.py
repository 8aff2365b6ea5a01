"""Personal values of the twelfth blind set: addresses, phone numbers, cards, accounts."""

from __future__ import annotations

import ipaddress
import random
import re
import unicodedata

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.twelfth_blind.words import FIRST, LAST, draw, make_domain

PROVIDERS = (
    *("gmail.com", "gmx.de", "web.de", "t-online.de", "outlook.com", "yahoo.fr", "wanadoo.fr"),
    *("hotmail.co.uk", "libero.it", "icloud.com", "proton.me", "ziggo.nl", "bluewin.ch"),
)
ROLES = ("info", "office", "kontakt", "secretariat", "support", "bookings", "buero", "admin")
# `#` is any digit, `N` one of 2 to 9; the leading digits keep out of the ranges for fiction
PLANS: dict[str, tuple[str, ...]] = {
    "uk": ("01865 2#####", "01392 4#####", "020 8### ####", "01223 3#####"),
    "uk_mobile": ("07812 ######", "07941 ######", "07538######"),
    "uk_plus": ("+44 1865 2#####", "+44 (0)20 8### ####", "+44 7812 ######"),
    "de": ("05251 2#####", "0751 3####", "06421 4####", "0341 2######"),
    "de_slash": ("05251/2#####", "07531/3####", "0341/2######"),
    "de_plus": ("+49 5251 2#####", "+49 (0)751 3####", "+49 341 2######-0"),
    "de_mobile": ("0151 4#######", "0176 6#######", "0160/94######"),
    "fr": ("02 41 8# ## ##", "03 87 9# ## ##", "06 12 ## ## ##", "05 62 2# ## ##"),
    "fr_dot": ("02.41.8#.##.##", "04.76.4#.##.##"),
    "fr_plus": ("+33 2 41 8# ## ##", "+33 (0)4 76 4# ## ##"),
    "es": ("941 2# ## ##", "948 2## ###", "63# ### ###"),
    "es_plus": ("+34 941 2# ## ##", "+34 63# ### ###"),
    "it": ("0532 2#####", "049 8######"),
    "it_plus": ("+39 347 #######", "+39 0532 2#####"),
    "nl": ("038 - 4## ## ##", "038-4######", "06-2#######"),
    "nl_plus": ("+31 38 4## ## ##", "+31 (0)6 2#######"),
    "pl": ("58 6## ## ##", "(58) 6##-##-##"),
    "se": ("08-6## ## ##", "031-7## ## ##"),
    "us": ("937-NN4-####", "208-3N6-####", "(937) NN4-####"),
    "us_paren": ("(937) NN4-####", "(208) 3N6-####"),
    "us_dot": ("937.NN4.####", "208.3N6.####"),
    "br_plus": ("+55 11 9####-####", "+55 (41) 9####-####"),
    "in_plus": ("+91 98### #####", "+91-97########"),
    "jp": ("03-3###-####", "045-6##-####"),
    "ch_plus": ("+41 62 8## ## ##", "+41 79 4## ## ##"),
    "at_plus": ("+43 732 6#####", "+43 664 2######"),
    "ru_plus": ("+7 (812) 3##-##-##", "+7 921 ###-##-##"),
    "au": ("(03) 9### ####", "0412 ### ###"),
    "ie_plus": ("+353 61 3#####", "+353 87 2######"),
    "e164": ("+447812######", "+491514#######", "+33612######", "+1937NN4####", "+34636######"),
}
# letters of a bank or digits; the lengths are those of the registry less four
IBANS = {
    "DE": "#" * 18, "AT": "#" * 16, "CH": "#" * 17, "NL": "BANK" + "#" * 10, "BE": "#" * 12,
    "FR": "#" * 23, "ES": "#" * 20, "IT": "X" + "#" * 22, "PL": "#" * 24, "PT": "#" * 21,
    "DK": "#" * 14, "FI": "#" * 14, "GB": "BANK" + "#" * 14, "IE": "BANK" + "#" * 14,
    "SE": "#" * 20, "CZ": "#" * 20, "LU": "#" * 16,
}  # fmt: skip
BANK_CODES = {
    "NL": ("INGB", "RABO", "ABNA"),
    "GB": ("BARC", "LOYD", "NWBK"),
    "IE": ("AIBK", "BOFI"),
}


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return plain.lower()


def _email(scene: Scene, form: str) -> str:
    rng = scene.rng
    if form == "role":
        return f"{rng.choice(ROLES)}@{make_domain(rng)}"
    first, last = _fold(rng.choice(FIRST)), _fold(rng.choice(LAST))
    local = rng.choice(
        (f"{first}.{last}", f"{first[0]}.{last}", f"{first}{rng.randint(1, 99)}", f"{first}_{last}")
    )
    return f"{local}@{rng.choice((rng.choice(PROVIDERS), make_domain(rng)))}"


def make_phone(rng: random.Random, plan: str) -> str:
    """A number in a writing of its country."""
    digits = {"#": "0123456789", "N": "2346789"}
    return "".join(rng.choice(digits.get(one, one)) for one in rng.choice(PLANS[plan]))


def _ip4(scene: Scene, _: str) -> str:
    while True:
        # no first part below 20, so that none looks like a version
        parts = [scene.rng.randint(23, 220), *(scene.rng.randint(1, 254) for _ in range(3))]
        address = ipaddress.IPv4Address(bytes(parts))
        if address.is_global and not address.is_multicast:
            return str(address)


def _ip6(scene: Scene, _: str) -> str:
    rng = scene.rng
    head = rng.choice(("2a02:8108", "2a01:4f8", "2600:1700", "2a01:cb08", "2406:da14"))
    groups = [f"{rng.randint(1, 0xFFFF):x}" for _ in range(6)]
    if rng.random() < 0.4:
        return f"{head}:{groups[0]}:{groups[1]}::{groups[2]}"
    return ":".join([head, *groups])


def group(digits: str, joint: str) -> str:
    """A card number in groups as cards print them."""
    sizes = (4, 6, 5) if len(digits) == 15 else (4, 4, 4, 4)
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return joint.join(digits[end - size : end] for end, size in zip(ends, sizes, strict=True))


JOINTS = {"plain": "", "spaced": " ", "dashed": "-"}


def make_card(rng: random.Random, brand: str) -> str:
    """The digits of a card of a brand, with the right last digit."""
    heads = {
        "visa": "4",
        "mc": str(rng.randint(51, 55)),
        "amex": rng.choice(("34", "37")),
        "discover": "6011",
    }
    head = heads[brand]
    body = head + draw(rng, "dig", (14 if brand == "amex" else 15) - len(head))
    return body + luhn_digit(body)


def _card(scene: Scene, form: str) -> str:
    brand, _, style = form.rpartition("_")
    brand = brand or scene.rng.choice(("visa", "visa", "mc", "mc", "amex"))
    return group(make_card(scene.rng, brand), JOINTS[style])


def _bad_card(scene: Scene, style: str) -> str:
    body = scene.rng.choice("3456") + draw(scene.rng, "dig", 14)
    wrong = (int(luhn_digit(body)) + scene.rng.randint(1, 9)) % 10
    return group(f"{body}{wrong}", JOINTS[style])


def make_iban(rng: random.Random, country: str) -> str:
    """An account number of a country with the check digits of ISO 13616."""
    shape = IBANS[country]
    if shape.startswith("BANK"):
        shape = rng.choice(BANK_CODES[country]) + shape[4:]
    account = "".join(draw(rng, "dig", 1) if one == "#" else one for one in shape)
    rest = int("".join(str(int(one, 36)) for one in account + country + "00")) % 97
    return f"{country}{98 - rest:02}{account}"


def _write_iban(iban: str, style: str) -> str:
    return iban if style == "plain" else " ".join(re.findall(".{1,4}", iban))


def _iban(scene: Scene, form: str) -> str:
    country, style = form.split("_")
    return _write_iban(make_iban(scene.rng, country), style)


def _bad_iban(scene: Scene, form: str) -> str:
    country, style = form.split("_")
    iban = make_iban(scene.rng, country)
    # one wrong digit never passes a check by 97
    return _write_iban(f"{iban[:-1]}{(int(iban[-1]) + scene.rng.randint(1, 9)) % 10}", style)


def _bic(scene: Scene, country: str) -> str:
    letters = "".join(scene.rng.choices("ABCDEGKLMNOPRST", k=4))
    return f"{letters}{country}{scene.rng.choice(('FF', '2A', '21', 'MM', 'PP'))}XXX"


PERSONAL_MAKERS: dict[str, Maker] = {
    "email": _email,
    "phone": lambda scene, plan: make_phone(scene.rng, plan),
    "ip4": _ip4,
    "ip6": _ip6,
    "card": _card,
    "badcard": _bad_card,
    "iban": _iban,
    "badiban": _bad_iban,
    "bic": _bic,
}
