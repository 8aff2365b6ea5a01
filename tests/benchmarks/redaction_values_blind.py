"""Values of the blind set and the slots of its templates, all drawn when they are needed.

Names, hosts, countries of accounts and prefixes of tokens differ from those of the older sets
wherever there is a choice. Phone numbers have the forms in redaction_texts_blind.yaml and are valid
by their country's plan (libphonenumber's metadata). Sources of the other shapes are those of
redaction_values.py.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import itertools
import json
import random
import re
import string
import uuid
from collections.abc import Callable

from tests.benchmarks.redaction_values import (
    ALNUM,
    DIGITS,
    HEX,
    LOWER,
    SECRETS,
    URL64,
    _after,
    _checked,
    draw,
    luhn_digit,
)

BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase
Make = Callable[[random.Random], str]
Forms = dict[str, dict[str, list[str]]]
"""Written forms of phone numbers: by country, national and international ones."""

_FIRST = (
    *("miriam", "tobias", "chidi", "ewa", "rahul", "beatriz", "henrik", "yuki", "samira", "luca"),
    *("agnes", "pavel", "thandi", "ines", "declan", "noor", "gustavo", "leila", "marek", "priya"),
)
_LAST = (
    *("hartmann", "oduya", "wisniewska", "deshpande", "carvalho", "nygaard", "fournier", "byrne"),
    *("castellano", "verhoeven", "dlamini", "horvath", "pereira", "sundaram", "mccabe", "aalto"),
)
_MAIL_HOSTS = (
    *("gmail.com", "outlook.com", "gmx.de", "web.de", "yahoo.co.in", "hotmail.fr", "proton.me"),
    *("t-online.de", "orange.fr", "uol.com.br", "qq.com", "icloud.com", "libero.it", "wp.pl"),
    *("students.unitown.ac.uk", "cs.lakeside.edu", "kanzlei-sommer.de", "tiendalaluna.com.ar"),
    *("ops.shipyard.cloud", "helpdesk.rivermead.org.au", "padaria-central.pt", "verein.tirol"),
)
_WORDS = (
    *("Pepper", "lantern", "Kaktus", "bicycle", "Sunflower", "rocket", "Himbeere", "tortuga"),
    *("Falcon", "pumpkin", "Gandalf", "chocolat", "Monsoon", "arsenal", "Sparky", "pinguin"),
)


# Personal data ------------------------------------------------------------------------------------
def make_email(rng: random.Random) -> str:
    """Addresses as people register them, one in sixteen with letters outside ASCII."""
    first, last, host = rng.choice(_FIRST), rng.choice(_LAST), rng.choice(_MAIL_HOSTS)
    year = rng.randrange(60, 100)
    local = rng.choice(
        [
            *(f"{first}.{last}", f"{first}{last}", f"{first[0]}{last}", f"{last}.{first}"),
            *(f"{first}{year}", f"{first}_{last}{year}", f"{first}.{last[0]}", f"{last}-{first}"),
            *(f"{first}.{last}+{rng.choice(['shop', 'news', 'gh'])}", f"{first[0]}.{last}"),
            *(f"{first.title()}.{last.title()}", f"{rng.choice(['info', 'sales', 'jobs'])}.{last}"),
        ]
    )
    if rng.random() < 1 / 16:
        local = rng.choice(["jürgen.weiß", "mária.kovács", "andré", "наталья", "佐藤", "łukasz.b"])
        local += rng.choice(["", str(year)])
    return f"{local}@{host}"


def make_phone(rng: random.Random, forms: Forms, country: str, style: str = "") -> str:
    """A number that the country's plan allows, in one of the country's written forms."""
    import phonenumbers as lib

    style = style or rng.choice(["national", "national", "international"])
    while True:
        form = rng.choice(forms[country][style])
        text = re.sub("#", lambda _: rng.choice(DIGITS), form)
        text = re.sub("@", lambda _: rng.choice(DIGITS[2:]), text)
        plain = re.sub("^00", "+", text) if style == "international" else text
        number = lib.parse(plain.replace("(0)", ""), country)
        kept_for_fiction = number.country_code == 1 and "555" in text
        if lib.is_valid_number(number) and not kept_for_fiction:
            return text


def make_ipv4(rng: random.Random) -> str:
    """A public address of a single host."""
    while True:
        number = rng.getrandbits(32)
        address = ipaddress.IPv4Address(number)
        well_known = number & 0xFF in (0, 255) or len(set(str(address))) < 4
        if address.is_global and not address.is_multicast and not well_known:
            return str(address)


def make_ip(rng: random.Random) -> str:
    """A public address; three in ten of IPv6, written compressed, in full or in capitals."""
    if rng.random() >= 0.3:
        return make_ipv4(rng)
    head = rng.choice([0x2003_00C0, 0x2A01_E0A0, 0x2401_4900, 0x2804_014C, 0x2600_1700])
    number = (head << 96) | (rng.getrandbits(32) << 64) | rng.getrandbits(64)
    address = ipaddress.IPv6Address(number)
    return rng.choice([str(address), str(address), address.exploded, str(address).upper()])


def make_card(rng: random.Random) -> str:
    """A number of a network, in the groups printed on the card or without any."""
    heads = (("4", 16), ("53", 16), ("2720", 16), ("37", 15), ("36", 14), ("6505", 16), ("62", 16))
    head, size = rng.choice(heads)
    body = head + draw(rng, DIGITS, size - 1 - len(head))
    number = body + luhn_digit(body)
    cuts = {16: (4, 8, 12), 15: (4, 10), 14: (4, 10)}[size]
    between = rng.choice(["", " ", " ", "-"])
    places = [0, *cuts, size]
    return between.join(number[a:b] for a, b in itertools.pairwise(places))


_BBANS = {
    "DE": "18n", "FR": "10n11x2n", "ES": "20n", "GB": "4A14n", "IE": "4A14n", "LU": "3n13x",
    "DK": "14n", "FI": "14n", "CZ": "20n", "HU": "24n", "PT": "21n", "RO": "4A16x", "TR": "22n",
    "NL": "4A10n", "BR": "23n1A1x", "HR": "17n",
}  # fmt: skip


def make_iban(rng: random.Random) -> str:
    """Check digits by ISO 7064 MOD 97-10; in one run, or in fours with some separator."""
    country = rng.choice(sorted(_BBANS))
    alphabets = {"n": DIGITS, "A": UPPER, "x": DIGITS + UPPER}
    parts = re.findall(r"([0-9]+)([nAx])", _BBANS[country])
    body = "".join(draw(rng, alphabets[sort], int(size)) for size, sort in parts)
    plain = "".join(str(int(c, 36)) for c in f"{body}{country}00")
    number = f"{country}{98 - int(plain) % 97:02d}{body}"
    between = rng.choice(["", "", " ", " ", "\u00a0", "-"])
    return between.join(number[i : i + 4] for i in range(0, len(number), 4))


# Secrets ------------------------------------------------------------------------------------------
def _one(*makers: Make) -> Make:
    return lambda rng: rng.choice(makers)(rng)


def make_password(rng: random.Random) -> str:
    """What a password manager makes: letters of both cases, digits, and mostly signs."""
    signs = rng.choice(["", "!*+-_", "!@^*?"])
    drawn = [rng.choice(UPPER), rng.choice(DIGITS), rng.choice(DIGITS), rng.choice(LOWER)]
    drawn += rng.choices(ALNUM + 3 * signs, k=rng.randrange(6, 17))
    rng.shuffle(drawn)
    return rng.choice(ALNUM) + "".join(drawn) + rng.choice(ALNUM)


def make_chosen_password(rng: random.Random) -> str:
    """What people choose: words with a year, a number or a sign."""
    one, two = rng.sample(_WORDS, 2)
    number, sign = rng.randrange(2, 999), rng.choice("!*+")
    return rng.choice(
        [
            *(f"{one}{rng.randrange(1970, 2026)}{sign}", f"{one}-{two}-{number}"),
            *(f"{number}{one}{sign}", f"{one}{two.title()}{number}", f"{one}_{number}{sign}"),
            *(f"{one}@{number}", f"{one.title()}{number}{two.upper()}"),
        ]
    )


def _key_block(rng: random.Random) -> str:
    name, head, lines = rng.choice(
        [
            *(("RSA ", "MIIEpAIBAAKCAQEA", 25), ("", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 26)),
            *(("EC ", "MHcCAQEEI", 3), ("OPENSSH ", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", 7)),
        ]
    )
    body = head + draw(rng, BASE64, 64 * lines - len(head) - rng.randrange(2, 40)) + "=="
    rows = [body[i : i + 64] for i in range(0, len(body), 64)]
    return "\n".join(
        [f"-----BEGIN {name}PRIVATE KEY-----", *rows, f"-----END {name}PRIVATE KEY-----"]
    )


def _json_web_token(rng: random.Random) -> str:
    """RFC 7519, without blanks in its JSON; the signature is as long as the algorithm makes it."""
    algorithm, size = rng.choice([("HS256", 32), ("ES256", 64), ("RS256", 256)])
    header = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.5:
        header["kid"] = draw(rng, HEX, 16)
    start = rng.randrange(15 * 10**8, 18 * 10**8)
    claims = {"sub": str(rng.randrange(10**6)), "iat": start, "exp": start + 3600}
    if rng.random() < 0.5:
        claims |= {"role": "service_role", "iss": rng.choice(_WORDS)}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (header, claims)]
    parts.append(rng.randbytes(size))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _bearer(rng: random.Random) -> str:
    """An app-only token: base64 of an id padded with zeros, then two parts, percent-encoded."""
    body = f"{'A' * 21}{draw(rng, ALNUM, 4)}{rng.choice('EAQg')}{'A' * 7}{draw(rng, ALNUM, 14)}"
    return f"{body}%2B{draw(rng, ALNUM, 13)}%3D{draw(rng, ALNUM, 50)}"


def _hashed(bits: int) -> Make:
    return lambda rng: rng.randbytes(bits // 8).hex()


BLIND_SECRETS: dict[str, Make] = {kind: sides["test"] for kind, sides in SECRETS.items()} | {
    "aws_access_key": _one(*(_after(p, UPPER + DIGITS[2:8], 16) for p in ("AKIA", "AKIA", "ASIA"))),
    "google_api_key": _after("AIzaSy", URL64, 33),
    "github_token": _one(*map(_checked, ("ghp_", "ghp_", "ghs_", "ghu_", "gho_"))),
    "gitlab_token": _after("glpat-", URL64, 20),
    "slack_token": _one(SECRETS["slack_token"]["development"], SECRETS["slack_token"]["test"]),
    "stripe_key": _one(_after("sk_live_51", ALNUM, 97), _after("sk_live_", ALNUM, 24)),
    "openai_key": _one(
        lambda r: f"sk-proj-{draw(r, URL64, 74)}T3BlbkFJ{draw(r, URL64[:-2], 74)}",
        lambda r: f"sk-{draw(r, ALNUM, 20)}T3BlbkFJ{draw(r, ALNUM, 20)}",
    ),
    "anthropic_key": lambda r: f"sk-ant-api03-{draw(r, URL64, 93)}AA",
    "json_web_token": _json_web_token,
    "private_key": _key_block,
    "docker_token": _after("dckr_pat_", URL64[:-2], 27),
    "shopify_token": _one(*(_after(p, HEX, 32) for p in ("shpat_", "shpca_", "shppa_"))),
    "twitter_bearer": _bearer,
    "digitalocean_token": _one(_after("dop_v1_", HEX, 64), _after("doo_v1_", HEX, 64)),
    "assigned": _one(
        *(_hashed(128), _hashed(256), _hashed(160), _after("", ALNUM, 40)),
        *(_after("", URL64[:-2], 43), lambda r: base64.b64encode(r.randbytes(32)).decode()),
    ),
    "password": make_password,
    "chosen_password": make_chosen_password,
    "url_password": _one(
        lambda r: draw(r, ALNUM, r.randrange(10, 25)),
        lambda r: f"{r.choice(_WORDS)}{r.randrange(10, 9999)}",
        lambda r: f"{draw(r, ALNUM, 6)}{r.choice('!-_.~')}{draw(r, ALNUM, 6)}",
    ),
}
"""By kind; the generators of the test side where a service has only one form."""

PARTNERS: dict[str, Make] = {
    "ipv4": make_ipv4,
    "aws_secret": _after("", BASE64, 40),
    "assigned_x32": _after("", ALNUM, 32),
}
"""Labelled values by the name of their slot: of one form only, or next to one of another kind."""


# Slots that hold no value -------------------------------------------------------------------------
def _isbn(rng: random.Random) -> str:
    body = f"978{rng.choice(['0', '1', '3', '2'])}{draw(rng, DIGITS, 8)}"
    check = -sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(body)) % 10
    return f"{body[:3]}-{body[3]}-{body[4:8]}-{body[8:]}-{check}"


def _certificate(rng: random.Random) -> str:
    rows = [draw(rng, BASE64, 64) for _ in range(rng.randrange(3, 8))]
    rows[0] = "MIID" + rows[0][4:]
    return "\n".join(rows)


FILLERS: dict[str, Make] = {
    "uuid": lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4)),
    "isbn": _isbn,
    "md5": _hashed(128),
    "sha1": _hashed(160),
    "sha256": _hashed(256),
    "sri": lambda r: "sha512-" + base64.b64encode(r.randbytes(64)).decode(),
    "sri384": lambda r: "sha384-" + base64.b64encode(r.randbytes(48)).decode(),
    "digest64": lambda r: base64.b64encode(hashlib.sha512(r.randbytes(9)).digest()).decode(),
    "digest32": lambda r: base64.b64encode(r.randbytes(32)).decode(),
    "png": lambda r: "iVBORw0KGgoAAAANSUhEUgAA" + draw(r, BASE64, r.randrange(80, 300)),
    "jpeg": lambda r: "/9j/4AAQSkZJRgABAQ" + draw(r, BASE64, r.randrange(80, 300)),
    "b64_md5": lambda r: base64.b64encode(r.randbytes(16)).decode(),
    "certificate": _certificate,
    "ed25519": lambda r: "AAAAC3NzaC1lZDI1NTE5AAAAI" + draw(r, BASE64, 43),
    "rsa_public": lambda r: "AAAAB3NzaC1yc2EAAAADAQABAAABgQ" + draw(r, BASE64, 342),
    "name": lambda r: f"{r.choice(_FIRST).title()} {r.choice(_LAST).title()}",
    "user": lambda r: r.choice(_FIRST) + str(r.randrange(1, 99)),
    "word": lambda r: r.choice(_WORDS).lower(),
}
"""By the name of a slot."""
