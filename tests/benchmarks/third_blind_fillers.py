"""What stands in texts of the third blind set and identifies nobody and opens nothing.

Many values are near misses: numbers that look like telephones, versions that look like addresses,
digests that look like keys. Those with check digits (ISBN, EAN, IMEI, SIREN) have the right ones.
"""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Callable

from tests.benchmarks.third_blind_people import ACCOUNTS, Person, luhn_digit, remainder_97
from tests.benchmarks.third_blind_secrets import BASE62, HEX, draw

Make = Callable[[random.Random, str], str]

_WORDS = "harbour ledger canvas pebble lantern orchid tundra ember willow saffron basalt meadow"
_WORDS += " copper quartz velvet anchor cinder maple falcon prairie ridge beacon juniper cobalt"
_USERS = "mreyes dkowal annaliese_b tomv kdub zephyr42 ingrid-s rpatel moss_piglet qwertz jtl9"
_PACKAGES = "lodash react express left-pad webpack vue axios eslint svelte date-fns three chalk"
_SCOPES = "babel/core types/node angular/cli nestjs/common storybook/react vue/compiler-sfc"
_HOSTS = "db01 cache pg-primary mq.internal redis-master mysql.svc.cluster.local warehouse-db"
_PLACES = "Leeds Bremen Lyon Sevilla Utrecht Gdańsk Porto Malmö Graz Trieste Osaka Pune Recife"


def _number(rng: random.Random, span: str) -> str:
    low, _, high = span.partition("-")
    return str(rng.randint(int(low), int(high)))


def _digits(rng: random.Random, size: str) -> str:
    return rng.choice("123456789") + draw(rng, string.digits, int(size) - 1)


def _date(rng: random.Random, form: str) -> str:
    year, month, day = rng.randint(2009, 2025), rng.randint(1, 12), rng.randint(1, 28)
    forms = {
        "": f"{year}-{month:02}-{day:02}",
        "de": f"{day:02}.{month:02}.{year}",
        "us": f"{month:02}/{day:02}/{year}",
        "solid": f"{year}{month:02}{day:02}",
    }
    return forms[form]


def _time(rng: random.Random, _: str) -> str:
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _dotted(rng: random.Random, _: str) -> str:
    """Draw a version of four numbers below 256, as addresses have."""
    parts = [rng.randint(1, 20), rng.randint(0, 12), rng.randint(0, 40), rng.randint(0, 200)]
    return ".".join(map(str, parts))


def _private(rng: random.Random, _: str) -> str:
    low, high = rng.randint(0, 254), rng.randint(2, 250)
    return rng.choice(
        [
            f"192.168.{low}.{high}",
            f"10.{low}.{low}.{high}",
            f"172.{rng.randint(16, 31)}.{low}.{high}",
        ]
    )


def _documentation(rng: random.Random, _: str) -> str:
    return f"{rng.choice(['192.0.2', '198.51.100', '203.0.113'])}.{rng.randint(1, 254)}"


def _isbn13(rng: random.Random, _: str) -> str:
    group, publisher = rng.choice("0134"), draw(rng, string.digits, 4)
    body = f"978{group}{publisher}{draw(rng, string.digits, 4)}"
    check = -sum(int(digit) * (1 + at % 2 * 2) for at, digit in enumerate(body)) % 10
    return f"978-{group}-{publisher}-{body[8:]}-{check}"


def _isbn10(rng: random.Random, _: str) -> str:
    body = "3" + draw(rng, string.digits, 8)
    check = -sum((10 - at) * int(digit) for at, digit in enumerate(body)) % 11
    return f"{body[0]}-{body[1:4]}-{body[4:]}-{'X' if check == 10 else check}"


def _ean(rng: random.Random, _: str) -> str:
    body = "40" + draw(rng, string.digits, 10)
    return body + str(-sum(int(digit) * (1 + at % 2 * 2) for at, digit in enumerate(body)) % 10)


def _passing(prefix: str, size: int) -> Make:
    """Draw a number that passes Luhn and is no card: an IMEI, a SIRET, the number of a SIM."""

    def make(rng: random.Random, _: str) -> str:
        body = prefix + draw(rng, string.digits, size - 1 - len(prefix))
        return body + luhn_digit(body)

    return make


def _failing(rng: random.Random, between: str) -> str:
    """Draw sixteen digits that fail Luhn, in groups of four."""
    body = rng.choice("12346789") + draw(rng, string.digits, 14)
    number = body + str((int(luhn_digit(body)) + rng.randint(1, 9)) % 10)
    return between.join(number[at : at + 4] for at in range(0, 16, 4))


def _bad_account(rng: random.Random, _: str) -> str:
    """Draw what has the form of an account and fails modulo 97."""
    country = rng.choice(sorted(ACCOUNTS))
    body = ACCOUNTS[country](rng)
    right = 98 - remainder_97(body + country + "00")
    wrong = rng.choice([check for check in range(2, 99) if check != right])
    number = f"{country}{wrong:02}{body}"
    return " ".join(number[at : at + 4] for at in range(0, len(number), 4))


def _reference(rng: random.Random, _: str) -> str:
    """Draw a creditor reference (ISO 11649), whose check digits are those of accounts."""
    body = draw(rng, string.digits, rng.choice([8, 12, 16]))
    number = f"RF{98 - remainder_97(body + 'RF00'):02}{body}"
    return " ".join(number[at : at + 4] for at in range(0, len(number), 4))


def _base64(rng: random.Random, size: str) -> str:
    return base64.b64encode(rng.randbytes(int(size))).decode()


def _png(rng: random.Random, size: str) -> str:
    start = (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10\x08\x06\x00\x00\x00"
    )
    return base64.b64encode(start + rng.randbytes(int(size))).decode()


def _lines(rng: random.Random, form: str) -> str:
    """Draw base 64 in lines of 64: `COUNT`, or `START/COUNT`."""
    start, _, count = form.rpartition("/")
    text = start + draw(rng, BASE62 + "+/", 64 * int(count) - len(start) - rng.randint(2, 40))
    return "\n".join(text[at : at + 64] for at in range(0, len(text), 64))


def _words(texts: str) -> Make:
    choices = texts.split()
    return lambda rng, _: rng.choice(choices)


FILLERS: dict[str, Make] = {
    "num": _number,
    "digits": _digits,
    "hex": lambda rng, size: draw(rng, HEX, int(size)),
    "upper": lambda rng, size: draw(rng, string.ascii_uppercase + string.digits, int(size)),
    "alnum": lambda rng, size: draw(rng, BASE62, int(size)),
    "b64": _base64,
    "png": _png,
    "lines": _lines,
    "uuid": lambda rng, _: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "sha1": lambda rng, _: draw(rng, HEX, 40),
    "sha256": lambda rng, _: draw(rng, HEX, 64),
    "md5": lambda rng, _: draw(rng, HEX, 32),
    "integrity": lambda rng, _: f"sha512-{_base64(rng, '64')}",
    "date": _date,
    "time": _time,
    "version": lambda rng, _: f"{rng.randint(0, 19)}.{rng.randint(0, 30)}.{rng.randint(0, 40)}",
    "dotted": _dotted,
    "private": _private,
    "documentation": _documentation,
    "isbn13": _isbn13,
    "isbn10": _isbn10,
    "ean": _ean,
    "imei": _passing("35", 15),
    "siret": _passing("4", 14),
    "sim": _passing("8949", 19),
    "failing": _failing,
    "bad_account": _bad_account,
    "reference": _reference,
    "word": _words(_WORDS),
    "Word": lambda rng, _: rng.choice(_WORDS.split()).title(),
    "user": _words(_USERS),
    "package": _words(_PACKAGES),
    "scope": _words(_SCOPES),
    "host": _words(_HOSTS),
    "place": _words(_PLACES),
}
"""Values without a label, by the name of their slot."""

OF_PERSON: dict[str, Callable[[Person], str]] = {
    "name": lambda person: person.name,
    "first": lambda person: person.first,
    "last": lambda person: person.last,
    "company": lambda person: person.company.replace("-", " ").title(),
    "site": lambda person: f"www.{person.domain}",
    "domain": lambda person: person.domain,
}
"""Parts of a person that the set does not label: names are no type of it."""
