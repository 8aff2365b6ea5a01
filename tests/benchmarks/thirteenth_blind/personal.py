"""Personal data of the thirteenth blind set: addresses, phones, cards, accounts, look-alikes."""

from __future__ import annotations

import ipaddress
import random
import re
import string
from collections.abc import Callable, Mapping

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.thirteenth_blind.words import FIRST_NAMES, HEX, LAST_NAMES, draw, make_domain

_MAILBOXES = (
    *("gmail.com", "gmail.com", "gmail.com", "yahoo.com", "hotmail.com", "outlook.com", "gmx.de"),
    *(
        "web.de",
        "t-online.de",
        "orange.fr",
        "free.fr",
        "libero.it",
        "wp.pl",
        "mail.ru",
        "yandex.ru",
    ),
    *("qq.com", "163.com", "icloud.com", "protonmail.com", "uol.com.br", "naver.com", "aol.com"),
)
_ROLES = ("info", "office", "kontakt", "contact", "hello", "sales", "support", "admin", "presse")

PLANS: Mapping[str, tuple[str, ...]] = {
    "us": ("(A) N-####", "A-N-####", "+1 A-N-####", "A.N.####", "+1 (A) N-####", "1-A-N-####"),
    "us_plain": ("+1AN####", "AN####"),
    "uk": (
        "020 7[1-8]## ####",
        "+44 20 8[1-8]## ####",
        "07[89]## [1-8]#####",
        "0161 [2-8]## ####",
        "+44 (0)117 9[2-7]# ####",
        "+44 7[89]## [1-8]#####",
        "01223 [3-8]#####",
    ),
    "uk_plain": ("+44207[1-8]######", "07[89]##[1-8]#####"),
    "de": (
        "030 / [2-9]## ## ##",
        "+49 (0)89 [2-9]######",
        "0[67]## [2-9]#####",
        "+49 40 [2-9]#####-0",
        "0341 - [2-9]## ## ##",
        "0171 / [2-9]## ## ##",
        "+49 151 [2-9]#######",
        "(0221) [2-9]####-##",
    ),
    "de_plain": ("+4930[2-9]######", "0176[2-9]#######"),
    "fr": (
        "01 4[0-8] ## ## ##",
        "06 [1-2]# ## ## ##",
        "+33 (0)4 7[2-8] ## ## ##",
        "05.5[2-8].##.##.##",
        "+33 6 [1-2]# ## ## ##",
    ),
    "fr_plain": ("+336[1-2]#######", "014[0-8]######"),
    "es": (
        "9[135]# [2-8]## ###",
        "6[1-9]# ### ###",
        "+34 93 [2-8]## ## ##",
        "+34 6[1-9]# ## ## ##",
        "(+34) 95[2-8] ## ## ##",
    ),
    "it": (
        "+39 02 [2-8]######",
        "06 [2-8]### ####",
        "051/[2-8]#####",
        "+39 3[234]# [2-8]## ####",
        "011 [2-8]## ## ##",
    ),
    "pl": ("+48 22 [2-8]## ## ##", "[56]0# ### ###", "(12) [2-8]## ## ##", "+48 [67]9# ### ###"),
    "ru": (
        "+7 (495) [2-9]##-##-##",
        "8 (812) [3-7]##-##-##",
        "8-9[0-2]#-[2-9]##-##-##",
        "+7 9[0-2]# [2-9]## ## ##",
    ),
    "tr": (
        "+90 (212) [2-8]## ## ##",
        "0532 [2-8]## ## ##",
        "0 312 [2-4]## ## ##",
        "+90 54# [2-8]## ####",
    ),
    "jp": (
        "03-[3-6]###-####",
        "0[789]0-[1-9]###-####",
        "+81-6-[4-6]###-####",
        "06-6[2-9]##-####",
        "+81 90 [1-9]### ####",
    ),
    "cn": (
        "+86 1[358][0-9] #### ####",
        "010-[5-8]#######",
        "1[358][5-9]########",
        "021-[5-6]### ####",
        "+86-755-[2-8]#######",
    ),
    "in": ("+91 9[0-9]### #####", "022-2[2-8]## ####", "+91-80-4[1-9]######", "9[0-9]########"),
    "br": (
        "(11) 9[4-9]###-####",
        "+55 21 [2-3]###-####",
        "(31) 3[2-5]##-####",
        "+55 (41) 9[6-9]###-####",
    ),
    "br_plain": ("55119[6-9]#######", "55219[6-9]#######"),
    "pt": ("+351 21[0-9] ### ###", "9[136]# ### ###", "22[0-9] ### ###", "(+351) 239 [4-8]## ###"),
    "nl": ("+31 20 [2-7]## ####", "06-[1-5]#######", "030 - [2-7]## ## ##"),
    "ch": ("+41 44 [2-8]## ## ##", "079 [2-8]## ## ##", "+41 (0)31 [3-9]## ## ##"),
    "at": ("+43 1 [2-8]######", "0664 / [2-8]## ## ##", "+43 (0)316 [3-8]#####"),
    "au": ("(02) 9[2-8]## ####", "04[1-3]# [2-8]## ###", "+61 3 9[2-8]## ####"),
    "se": ("08-[4-7]## ## ##", "+46 70 [2-8]## ## ##"),
    "mx": ("+52 55 [1-8]### ####", "(33) 3[1-8]## ####"),
    "ar": ("+54 11 4[2-9]##-####", "(0351) 4[2-8]#-####"),
    "kr": ("02-[2-8]##-####", "010-[2-9]###-####"),
    "ua": ("+380 44 [2-5]## ## ##", "(067) [2-8]## ## ##"),
    "sa": ("+966 5[0345] ### ####", "+966 11 4[1-8]# ####"),
    "eg": ("+20 2 2[3-7]## ####", "010[0-2] ### ####"),
    "za": ("+27 11 [3-8]## ####", "08[234] [2-8]## ####"),
}
"""Ways of writing a number by country: `#` a digit, `[..]` one of these, A and N as in the USA."""

_AREAS = ("212", "303", "415", "512", "617", "704", "847", "916")
TEST_CARDS = (
    *("4111 1111 1111 1111", "4242 4242 4242 4242", "5555 5555 5555 4444", "4012888888881881"),
    *("4242424242424242", "378282246310005", "6011111111111117", "5105105105105100"),
    *("4111111111111111", "5555555555554444", "371449635398431"),
)
PUBLISHED_IBANS = (
    *("DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19"),
    *("FR14 2004 1010 0505 0001 3M02 606", "NL91 ABNA 0417 1643 00", "CH93 0076 2011 6238 5295 7"),
    *("DE89370400440532013000", "ES91 2100 0418 4502 0005 1332", "BE68 5390 0754 7034"),
)
"""Numbers that standards, registries and payment services publish as examples."""
ACCOUNTS: Mapping[str, str] = {
    "DE": "n18",
    "AT": "n16",
    "CH": "n5c12",
    "NL": "n10",
    "GB": "n14",
    "IE": "n14",
    "PL": "n24",
    "TR": "n5z1c16",
    "SE": "n20",
    "DK": "n14",
    "FI": "n14",
    "NO": "n11",
    "LU": "n3c13",
    "CZ": "n20",
    "RO": "c16",
    "SA": "n2c18",
    "BE": "BE",
    "FR": "FR",
    "ES": "ES",
    "PT": "PT",
}
"""Account number behind the check digits by country: n digits, c digits where letters
are possible, z zeros; behind a bank's letters where `_BANKS` has some."""
_BANKS: Mapping[str, tuple[str, ...]] = {
    "NL": ("INGB", "RABO", "TRIO", "SNSB"),
    "GB": ("LOYD", "BARC", "MIDL", "BUKB"),
    "IE": ("AIBK", "BOFI"),
    "RO": ("BTRL", "RNCB", "INGB"),
}
_RESERVED_PREFIXES = (
    "198.18.",
    "198.19.",
    "192.88.99.",
    "192.31.196.",
    "192.52.193.",
    "192.175.48.",
)
_CARD_HEADS = {
    "visa": "4",
    "mastercard": "5",
    "mastercard2": "2",
    "amex": "3",
    "discover": "6",
    "jcb": "35",
    "unionpay": "62",
    "diners": "36",
}


def make_email(rng: random.Random, form: str = "") -> str:
    """An address; forms: `role` and `firm` (a person) at a firm, `free` at a mail service."""
    name, surname = rng.choice(FIRST_NAMES).lower(), rng.choice(LAST_NAMES).lower()
    form = form or rng.choice(("firm", "free", "free", "role"))
    if form == "role":
        return f"{rng.choice(_ROLES)}@{make_domain(rng)}"
    names = (f"{name}.{surname}", f"{name[0]}.{surname}", f"{name[0]}{surname}")
    if form == "firm":
        return f"{rng.choice((*names, name))}@{make_domain(rng)}"
    number = str(rng.randint(1, 99) if rng.random() < 0.5 else rng.randint(1960, 2008))
    names = (*names, f"{name}_{surname}", f"{name}{surname}{number}", surname + number)
    return f"{rng.choice(names)}@{rng.choice(_MAILBOXES)}"


def make_phone(rng: random.Random, plan: str) -> str:
    """A number of a plan; the exchanges that are kept for fiction are not drawn."""
    text = rng.choice(PLANS[plan])
    text = text.replace(
        "A", rng.choice(("212", "303", "415", "512", "617", "704", "847", "916")), 1
    )
    exchange = rng.choice("23456789") + rng.choice("2346789") + rng.choice(string.digits)
    text = text.replace("N", exchange, 1)
    pattern = re.compile(r"\[([0-9-]+)\]|#")

    def digit(match: re.Match[str]) -> str:
        if not match[1]:
            return rng.choice(string.digits)
        low, dash, high = match[1].partition("-")
        return str(rng.randint(int(low), int(high))) if dash else rng.choice(low)

    number = pattern.sub(digit, text)
    while "555" in number:
        number = pattern.sub(digit, text)
    return number


def make_ipv4(rng: random.Random) -> str:
    """A public unicast address that is no network's first or last."""
    while True:
        address = ipaddress.IPv4Address(rng.getrandbits(32))
        text = str(address)
        is_edge = text.endswith((".0", ".255")) or text.startswith(_RESERVED_PREFIXES)
        if (
            address.is_global
            and not address.is_multicast
            and address.packed[0] >= 11
            and not is_edge
        ):
            return text


def make_ipv6(rng: random.Random) -> str:
    """A public address of one machine in the short writing of RFC 5952."""
    head = rng.choice(("2a01:4f8", "2a02:8109", "2600:1f18", "2a00:1450", "2001:41d0", "2409:8a00"))
    middle = f"{draw(rng, HEX[1:], 1)}{draw(rng, HEX, 3)}:{draw(rng, HEX[1:], 2)}"
    tail = rng.choice(
        ("::1", f"::{rng.randint(2, 99)}", ":" + ":".join(draw(rng, HEX[1:], 4) for _ in range(4)))
    )
    return ipaddress.IPv6Address(f"{head}:{middle}{tail}").compressed


def _card_digits(rng: random.Random, network: str) -> str:
    head, size = {
        "visa": ("4" + draw(rng, string.digits, 5), 16),
        "mastercard": (f"5{rng.randint(1, 5)}", 16),
        "mastercard2": (str(rng.randint(2221, 2720)), 16),
        "amex": (rng.choice(("34", "37")), 15),
        "discover": (rng.choice(("6011", "65")), 16),
        "jcb": (str(rng.randint(3528, 3589)), 16),
        "unionpay": ("62", 16),
        "diners": ("36", 14),
    }[network]
    body = head + draw(rng, string.digits, size - 1 - len(head))
    return body + luhn_digit(body)


def make_card(rng: random.Random, writing: str = "") -> str:
    """A card's number; writings: `plain`, `spaces`, `dashes` (any of the first two by default)."""
    networks, weights = tuple(_CARD_HEADS), (10, 6, 1, 3, 2, 0.6, 0.5, 0.4)
    digits = _card_digits(rng, rng.choices(networks, weights)[0])
    joint = {"plain": "", "spaces": " ", "dashes": "-"}[writing or rng.choice(("plain", "spaces"))]
    if len(digits) < 16:
        return joint.join((digits[:4], digits[4:10], digits[10:]))
    return joint.join(digits[at : at + 4] for at in range(0, 16, 4))


def make_other_number(rng: random.Random, size: int, head: str = "") -> str:
    """Digits that are no card's: Luhn's formula rejects them."""
    body = head + draw(rng, string.digits, size - 1 - len(head))
    if not head:
        body = rng.choice("123456789") + body[1:]
    return body + rng.choice([one for one in string.digits if one != luhn_digit(body)])


def _rest(digits: str) -> int:
    return int("".join(str(int(one, 36)) for one in digits)) % 97


def _bban(rng: random.Random, country: str) -> str:
    digits = draw(rng, string.digits, 21)
    if country == "BE":
        return digits[:10] + f"{int(digits[:10]) % 97 or 97:02}"
    if country == "PT":
        return digits[:19] + f"{98 - int(digits[:19] + '00') % 97:02}"
    if country == "FR":
        bank, branch, account = digits[:5], digits[5:10], digits[10:21]
        key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(account)) % 97
        return f"{bank}{branch}{account}{key:02}"
    if country == "ES":
        checks = [_spanish_digit("00" + digits[:8]), _spanish_digit(digits[8:18])]
        return digits[:8] + "".join(checks) + digits[8:18]
    parts = re.findall(r"([a-z])(\d+)", ACCOUNTS[country])
    number = "".join(
        "0" * int(size) if sort == "z" else draw(rng, string.digits, int(size))
        for sort, size in parts
    )
    return rng.choice(_BANKS.get(country, ("",))) + number


def _spanish_digit(digits: str) -> str:
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)
    number = 11 - sum(int(one) * by for one, by in zip(digits, weights, strict=True)) % 11
    return {11: "0", 10: "1"}.get(number, str(number))


def make_iban(rng: random.Random, argument: str = "", off: int = 0) -> str:
    """An account's number of `COUNTRY` or `COUNTRY plain`; `off` makes its check digits wrong."""
    country, _, writing = argument.partition(" ")
    country = country or rng.choice(tuple(ACCOUNTS))
    bban = _bban(rng, country)
    check = (98 - _rest(bban + country + "00") + off - 2) % 97 + 2
    compact = f"{country}{check:02}{bban}"
    if writing == "plain":
        return compact
    return " ".join(compact[at : at + 4] for at in range(0, len(compact), 4))


def _private4(rng: random.Random) -> str:
    one, two, three = (rng.randint(1, 254) for _ in range(3))
    return rng.choice(
        (
            f"192.168.{one}.{two}",
            f"10.{one}.{two}.{three}",
            f"172.{rng.randint(16, 31)}.{two}.{three}",
        )
    )


def _imei(rng: random.Random) -> str:
    body = "35" + draw(rng, string.digits, 12)
    return body + luhn_digit(body)


def _isbn(rng: random.Random) -> str:
    body = "9783" + draw(rng, string.digits, 8)
    return body + str(-sum(int(one) * (1 + 2 * (at % 2)) for at, one in enumerate(body)) % 10)


def _mac(rng: random.Random) -> str:
    return ":".join(draw(rng, HEX, 2) for _ in range(6))


def _message_id(scene: Scene, _: str) -> str:
    left = f"{draw(scene.rng, string.digits, 14)}.{draw(scene.rng, HEX, 6)}"
    return f"<{left}@{scene.rng.choice(('mail', 'mx1', 'relay'))}.{make_domain(scene.rng)}>"


def _phone(scene: Scene, plan: str) -> str:
    usual = [name for name in PLANS if not name.endswith("plain")]
    return make_phone(scene.rng, plan or scene.rng.choice(usual))


def _of(make: Callable[[random.Random], str]) -> Maker:
    return lambda scene, _: make(scene.rng)


PERSONAL_MAKERS: Mapping[str, Maker] = {
    "email": lambda s, form: make_email(s.rng, form),
    "email_angle": lambda s, _: f"<\x02{make_email(s.rng, s.rng.choice(('firm', 'free')))}\x03>",
    "msgid": _message_id,
    "phone": _phone,
    "ip4": _of(make_ipv4),
    "ip6": _of(make_ipv6),
    "card": lambda s, writing: make_card(s.rng, writing),
    "iban": lambda s, argument: make_iban(s.rng, argument),
    "private4": _of(_private4),
    "doc4": lambda s, _: (
        s.rng.choice(("192.0.2.", "198.51.100.", "203.0.113.")) + str(s.rng.randint(1, 254))
    ),
    "doc6": lambda s, _: f"2001:db8:{draw(s.rng, HEX[1:], 3)}::{draw(s.rng, HEX[1:], 2)}",
    "mac": _of(_mac),
    "quad": lambda s, _: (
        f"{s.rng.randint(1, 9)}.{s.rng.randint(0, 20)}.{s.rng.randint(0, 9)}.{s.rng.randint(0, 30)}"
    ),
    "imei": _of(_imei),
    "isbn": _of(_isbn),
    "test_card": lambda s, _: s.rng.choice(TEST_CARDS),
    "no_card": lambda s, size: make_other_number(s.rng, int(size)),
    "visa_like": lambda s, _: make_other_number(s.rng, 16, "4"),
    "published_iban": lambda s, _: s.rng.choice(PUBLISHED_IBANS),
    "wrong_iban": lambda s, argument: make_iban(s.rng, argument, s.rng.randint(3, 90)),
}
