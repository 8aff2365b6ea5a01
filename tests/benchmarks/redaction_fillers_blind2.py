"""What stands in the second blind set's texts without a label: names, dates, identifiers, hashes.

None of it is a value that a reader would want removed (the label guide is in the YAML file).
"""

from __future__ import annotations

import calendar
import random
import textwrap

from tests.benchmarks.redaction_values import ALNUM, DIGITS, HEX, draw, luhn_digit
from tests.benchmarks.redaction_values_blind2 import (
    CAPITALS,
    Make,
    base64_of,
    key_body,
    make_domain,
    make_solid_iban,
)
from tests.benchmarks.redaction_words_blind2 import CITIES, FIRST_NAMES, LAST_NAMES, WORDS


def _bad_iban(rng: random.Random) -> str:
    """An account with one digit changed, which ISO 7064's mod 97 always notices."""
    account = make_solid_iban(rng, rng.choice(["DE", "AT", "ES", "PL", "BE", "FI"]))
    place = rng.randrange(6, len(account))
    other = str((int(account[place]) + rng.randrange(1, 10)) % 10)
    changed = account[:place] + other + account[place + 1 :]
    return " ".join(textwrap.wrap(changed, 4)) if rng.random() < 0.6 else changed


def _isbn13(rng: random.Random) -> str:
    body = "978" + draw(rng, DIGITS, 9)
    total = sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(body))
    return f"{body[:3]}-{body[3]}-{body[4:8]}-{body[8:]}-{-total % 10}"


def _isbn10(rng: random.Random) -> str:
    body = draw(rng, "012389", 1) + draw(rng, DIGITS, 8)
    check = -sum((10 - place) * int(digit) for place, digit in enumerate(body)) % 11
    return f"{body[0]}-{body[1:5]}-{body[5:]}-{'X' if check == 10 else check}"


def _ean(rng: random.Random) -> str:
    body = rng.choice(["40", "50", "76", "87", "30"]) + draw(rng, DIGITS, 10)
    total = sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(body))
    return body + str(-total % 10)


def _imei(rng: random.Random) -> str:
    body = rng.choice(["35", "86"]) + draw(rng, DIGITS, 12)
    return body + luhn_digit(body)


def _private_ip(rng: random.Random) -> str:
    low, high = rng.randrange(256), rng.randrange(1, 255)
    return rng.choice(
        [
            f"192.168.{low}.{high}",
            f"10.{low}.{high}.{rng.randrange(1, 255)}",
            f"172.16.{low}.{high}",
        ]
    )


def _choices(*words: str) -> Make:
    return lambda rng: rng.choice(words)


def _clock(rng: random.Random) -> str:
    return f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"


def _date(rng: random.Random) -> str:
    return f"{rng.randrange(2006, 2025)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"


def _price(rng: random.Random) -> str:
    amount = f"{rng.randrange(5, 900)}.{rng.randrange(100):02d}"
    return rng.choice(
        [f"${amount}", f"{amount} EUR", f"£{amount}", f"€ {amount.replace('.', ',')}"]
    )


FILLERS: dict[str, Make] = {
    "first": _choices(*FIRST_NAMES),
    "last": _choices(*LAST_NAMES),
    "name": lambda rng: f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}",
    "user": lambda rng: rng.choice(
        [
            rng.choice(FIRST_NAMES).lower(),
            rng.choice(WORDS) + str(rng.randrange(100)),
            rng.choice(LAST_NAMES).lower() + "_x",
        ]
    ),
    "word": _choices(*WORDS),
    "city": _choices(*CITIES),
    "company": lambda rng: (
        rng.choice(LAST_NAMES)
        + rng.choice([" GmbH", " Ltd", " S.A.", " Inc.", " B.V.", " Sp. z o.o.", " & Co"])
    ),
    "street": lambda rng: (
        rng.choice(LAST_NAMES)
        + f"{rng.choice([' Street', ' Rd', ' Allee', ' Avenue'])} {rng.randrange(1, 200)}"
    ),
    "domain": make_domain,
    "host": lambda rng: (
        f"{rng.choice(['db', 'mx1', 'git', 'srv2', 'app', 'cache'])}.{make_domain(rng)}"
    ),
    "hostname": lambda rng: (
        f"{rng.choice(['web', 'db', 'node', 'vps', 'pi'])}-{rng.randrange(1, 60):02d}"
    ),
    "private_ip": _private_ip,
    "list": _choices("users", "devel", "announce"),
    "dow": _choices("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "mon": _choices(*calendar.month_abbr[1:]),
    "month": _choices("January", "March", "April", "June", "August", "October", "November"),
    "year": lambda rng: str(rng.randrange(1990, 2025)),
    "date": _date,
    "time": _clock,
    "ts": lambda rng: str(rng.randrange(1_300_000_000, 1_750_000_000)),
    "price": _price,
    "cc": _choices("DE", "FR", "GB", "PL", "IT", "CN", "US", "NL"),
    "semver": lambda rng: f"{rng.randrange(12)}.{rng.randrange(30)}.{rng.randrange(20)}",
    "uuid": lambda rng: "-".join(draw(rng, HEX, size) for size in (8, 4, 4, 4, 12)),
    "git": lambda rng: draw(rng, HEX, rng.choice([7, 8, 10])),
    "lat": lambda rng: f"{rng.uniform(-60, 70):.{rng.randrange(4, 8)}f}",
    "lon": lambda rng: f"{rng.uniform(-180, 180):.{rng.randrange(4, 8)}f}",
    "isbn13": _isbn13,
    "isbn10": _isbn10,
    "ean": _ean,
    "imei": _imei,
    "bic": lambda rng: (
        draw(rng, CAPITALS, 4) + rng.choice(["DE", "FR", "AT", "GB", "PL"]) + draw(rng, CAPITALS, 2)
    ),
    "bad_iban": _bad_iban,
    "bcrypt": lambda rng: (
        f"$2{rng.choice('aby')}$1{rng.randrange(3)}${draw(rng, ALNUM + './', 53)}"
    ),
    "sha512b64": base64_of(64),
    "certificate": key_body("MIIDazCCAlOgAwIBAgIUe", 700),
}
"""Makers by name of slot."""
