"""Values of the second blind set: valid ones, near misses, and what else stands in its texts.

Tokens have the shapes that their services and the public rules of gitleaks describe; cards end in
Luhn's digit (ISO/IEC 7812), accounts hold the check digits of ISO 13616, phone numbers are valid by
libphonenumber in their country. All are drawn; none was ever issued.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import string
import textwrap
from collections.abc import Callable, Mapping, Sequence

import phonenumbers

from tests.benchmarks.redaction_values import ALNUM, DIGITS, HEX, draw, luhn_digit
from tests.benchmarks.redaction_words_blind2 import (
    BBANS,
    CHOSEN,
    FIRST_NAMES,
    FREE_MAIL,
    LAST_NAMES,
    ROLES,
    TOP_DOMAINS,
    WORDS,
)

Make = Callable[[random.Random], str]
BASE64 = ALNUM + "+/"
URL_SAFE = ALNUM + "-_"
CAPITALS = string.ascii_uppercase

_YEARS = range(1961, 2025)


def repeat(alphabet: str, size: int, prefix: str = "", suffix: str = "") -> Make:
    """Makes `size` signs of an alphabet between a prefix and a suffix."""
    return lambda rng: prefix + draw(rng, alphabet, size) + suffix


def make_domain(rng: random.Random) -> str:
    """A name that a company or a club could have registered."""
    name = rng.choice(WORDS)
    if rng.random() < 0.6:
        name += rng.choice(["", "-"]) + rng.choice([*WORDS, *map(str.lower, LAST_NAMES)])
    return f"{name}.{rng.choice(TOP_DOMAINS)}"


def _local(rng: random.Random) -> str:
    first, last = rng.choice(FIRST_NAMES).lower(), rng.choice(LAST_NAMES).lower()
    year = rng.choice(_YEARS)
    return rng.choice(
        [
            *(f"{first}.{last}", f"{first}.{last}", f"{first[0]}.{last}", f"{first[0]}{last}"),
            *(
                f"{first}{last}{year % 100:02d}",
                f"{first}_{last}",
                f"{last}.{first}",
                f"{first}{year}",
            ),
            *(first, f"{first}-{last}", f"{first}.{last}+{rng.choice(WORDS)}", rng.choice(ROLES)),
            *(
                rng.choice(ROLES),
                f"{first.title()}.{last.title()}",
                draw(rng, string.ascii_lowercase, 7),
            ),
        ],
    )


def make_email(rng: random.Random) -> str:
    """An address at a free provider, or at an own domain (some below a department)."""
    chance = rng.random()
    if chance < 0.45:
        return f"{_local(rng)}@{rng.choice(FREE_MAIL)}"
    below = rng.choice(["mail.", "cs.", "stud.", "physik."]) if chance > 0.92 else ""
    return f"{_local(rng)}@{below}{make_domain(rng)}"


def _example_email(rng: random.Random) -> str:
    return f"{_local(rng)}@example.{rng.choice(['com', 'org', 'net'])}"


def _obscured_email(rng: random.Random) -> str:
    """An address as its owner hides it from robots on a page."""
    at, dot = rng.choice([("(at)", "."), (" [at] ", " [dot] "), (" AT ", " DOT "), ("&#64;", ".")])
    local, domain = make_email(rng).split("@")
    return local + at + domain.replace(".", dot)


def make_phone(
    rng: random.Random, forms: Mapping[str, Sequence[str]], country: str, style: str = ""
) -> str:
    """A number that libphonenumber calls valid in the country, in a form of the YAML file.

    `style` is `international` for forms with `+`, else empty for all forms. Raises ValueError if no
    number of a form is valid.
    """
    choices = [form for form in forms[country] if not style or "+" in form]
    form = rng.choice(choices or list(forms[country]))
    for _ in range(20_000):
        number = "".join(rng.choice(DIGITS) if sign == "#" else sign for sign in form)
        if is_valid_phone(number, country):
            return number
    raise ValueError(f"no valid number of {country} has the form {form!r}")


def is_valid_phone(number: str, country: str) -> bool:
    """Whether a number, as written, is valid for somebody in the country."""
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, country))
    except phonenumbers.NumberParseException:
        return False


def _ipv4(rng: random.Random) -> str:
    while True:
        address = ipaddress.IPv4Address(rng.randrange(1 << 24, 224 << 24))
        if address.is_global and len(set(address.packed)) == 4:
            return str(address)


def _ipv6(rng: random.Random) -> str:
    prefix = int(
        rng.choice(["2a01", "2a02", "2a03", "2600", "2604", "2400", "2001", "2804", "2c0f"]), 16
    )
    groups = [
        prefix,
        rng.randrange(0x1000, 0xFFFF) if prefix != 0x2001 else rng.randrange(0x400, 0xCFF),
    ]
    groups += [rng.randrange(1 << 16) for _ in range(2)]
    short = rng.random() < 0.4
    groups += (
        [0, 0, 0, rng.randrange(1, 999)] if short else [rng.randrange(1 << 16) for _ in range(4)]
    )
    address = ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))
    return str(address) if address.is_global else _ipv6(rng)


_NETWORKS = {
    "visa": (("4",), 16),
    "mastercard": (("51", "52", "53", "54", "55", "2221", "2500", "2720"), 16),
    "amex": (("34", "37"), 15),
    "discover": (("6011", "65"), 16),
    "jcb": (("3528", "3550", "3589"), 16),
    "mir": (("2200", "2202", "2204"), 16),
    "unionpay": (("6222", "6225", "6217"), 16),
}
_NETWORK_SHARES = (45, 34, 6, 4, 3, 5, 3)


def _card_digits(rng: random.Random, network: str) -> str:
    starts, size = _NETWORKS[network]
    start = rng.choice(starts)
    body = start + draw(rng, DIGITS, size - 1 - len(start))
    return body + luhn_digit(body)


def _card(network: str = "", *, solid: bool = False) -> Make:
    def make(rng: random.Random) -> str:
        chosen = network or rng.choices(list(_NETWORKS), _NETWORK_SHARES)[0]
        digits = _card_digits(rng, chosen)
        if solid or rng.random() < 0.4:
            return digits
        sizes = (4, 6, 5) if len(digits) == 15 else (4, 4, 4, 4)
        sign = rng.choices([" ", "-", "\N{NO-BREAK SPACE}", "."], [80, 15, 3, 2])[0]
        ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
        return sign.join(digits[end - size : end] for size, end in zip(sizes, ends, strict=True))

    return make


make_card = _card()


def iban_remainder(account: str) -> int:
    """ISO 13616: 1 for a valid account; `account` has no blanks."""
    return int("".join(str(int(sign, 36)) for sign in account[4:] + account[:4])) % 97


def make_solid_iban(rng: random.Random, country: str = "") -> str:
    """A valid account without blanks, of a country or of any."""
    country = country or rng.choice(sorted(BBANS))
    body, form = "", BBANS[country]
    parts = "".join(f" {sign}" if sign in "nac" else sign for sign in form).split()
    for part in parts:
        alphabet = {"n": DIGITS, "a": CAPITALS, "c": DIGITS * 40 + CAPITALS}[part[0]]
        body += draw(rng, alphabet, int(part[1:]))
    return f"{country}{98 - iban_remainder(country + '00' + body):02d}{body}"


def _iban(country: str = "") -> Make:
    def make(rng: random.Random) -> str:
        account = make_solid_iban(rng, country)
        if rng.random() < 0.35:
            return account
        sign = rng.choices([" ", "\N{NO-BREAK SPACE}", "-"], [94, 4, 2])[0]
        return sign.join(textwrap.wrap(account, 4))

    return make


make_iban = _iban()


def _made_password(rng: random.Random) -> str:
    alphabet = ALNUM if rng.random() < 0.45 else ALNUM * 2 + "!#*+-_@.?=~^"
    while True:
        value = draw(rng, ALNUM, 1) + draw(rng, alphabet, rng.choice([6, 8, 8, 10, 12, 14, 18, 22]))
        value += draw(rng, ALNUM, 1)
        kinds = (str.islower, str.isupper, str.isdigit)
        if all(any(kind(sign) for sign in value) for kind in kinds):
            return value


def _chosen_password(rng: random.Random) -> str:
    word, other = rng.choice(CHOSEN), rng.choice(CHOSEN)
    year, name = str(rng.choice(_YEARS)), rng.choice(FIRST_NAMES)
    leet = word.translate(str.maketrans("aeio", "4310"))
    return rng.choice(
        [
            *(
                word + year,
                f"{word.title()}{year}!",
                f"{name}{rng.randrange(10, 1000)}",
                leet + year[2:],
            ),
            *(
                f"{word}_{rng.randrange(100)}",
                f"{word}-{other.lower()}-{rng.choice(WORDS)}",
                f"{name}@{year}",
            ),
            *(
                f"ilove{name.lower()}{rng.randrange(100)}",
                f"{leet.title()}#{rng.randrange(10)}",
                word + other,
            ),
            *(
                f"{name.lower()}{year[2:]}{word}",
                f"{word.title()}.{rng.randrange(10, 100)}",
                f"!{word}{year}",
            ),
        ],
    )


def _url_password(rng: random.Random) -> str:
    value = _made_password(rng) if rng.random() < 0.6 else _chosen_password(rng)
    for sign, escape in (("@", "%40"), ("#", "%23"), ("?", "%3F"), ("^", "%5E")):
        value = value.replace(sign, escape)
    return value


def _assigned(rng: random.Random) -> str:
    alphabet, size = rng.choice(
        [
            (HEX, 32),
            (HEX, 40),
            (HEX, 64),
            (ALNUM, 20),
            (ALNUM, 24),
            (ALNUM, 32),
            (ALNUM, 40),
            (URL_SAFE, 43),
        ]
    )
    return (
        draw(rng, ALNUM if alphabet == URL_SAFE else alphabet, 1)
        + draw(rng, alphabet, size - 2)
        + "7"
    )


def base64_of(size: int) -> Make:
    """Makes base64 of that many random bytes."""
    return lambda rng: base64.b64encode(rng.randbytes(size)).decode()


def _url_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _json_web_token(rng: random.Random) -> str:
    algorithm = rng.choice(["HS256", "HS256", "RS256", "ES256"])
    header = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.4:
        header["kid"] = draw(rng, HEX, 16)
    issued = rng.randrange(1_400_000_000, 1_750_000_000)
    claims = {"sub": draw(rng, DIGITS, 6), "email": make_email(rng), "role": "user", "iat": issued}
    signature = rng.randbytes({"HS256": 32, "RS256": 256, "ES256": 64}[algorithm])
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in (header, claims))
    return ".".join([*map(_url_base64, parts), _url_base64(signature)])


def key_body(start: str, size: int, width: int = 64, last: str = "=") -> Make:
    """Makes base64 that begins with `start`, of `size` characters in lines of `width`."""

    def make(rng: random.Random) -> str:
        body = start + draw(rng, BASE64, size - len(start) - len(last)) + last
        return "\n".join(textwrap.wrap(body, width))

    return make


def _slack_token(rng: random.Random) -> str:
    if rng.random() < 0.75:
        return (
            f"xoxb-{draw(rng, '123456789', 1)}{draw(rng, DIGITS, 11)}-{draw(rng, DIGITS, 13)}-"
            + draw(rng, ALNUM, 24)
        )
    numbers = "-".join(draw(rng, "123456789", 12) for _ in range(3))
    return f"xoxp-{numbers}-{draw(rng, HEX, 32)}"


def _openai_key(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return f"sk-{draw(rng, ALNUM, 20)}T3BlbkFJ{draw(rng, ALNUM, 20)}"
    prefix = rng.choice(["sk-proj-", "sk-proj-", "sk-svcacct-"])
    return f"{prefix}{draw(rng, URL_SAFE, 73)}AT3BlbkFJ{draw(rng, URL_SAFE, 72)}9A"


def _twitter_bearer(rng: random.Random) -> str:
    body = draw(rng, ALNUM, 12) + rng.choice(["%2B", "%2F", "7a"]) + draw(rng, ALNUM, 16)
    return "A" * 22 + body + "%3D" + draw(rng, ALNUM, 50)


def _stripe_key(rng: random.Random) -> str:
    prefix = rng.choice(["sk_live_", "sk_live_", "rk_live_", "sk_test_"])
    return prefix + (draw(rng, ALNUM, 24) if rng.random() < 0.4 else "51" + draw(rng, ALNUM, 97))


def _discord_token(rng: random.Random) -> str:
    number = _url_base64((draw(rng, "123456789", 1) + draw(rng, DIGITS, 17)).encode())
    return f"{number}.G{draw(rng, URL_SAFE, 5)}.{draw(rng, URL_SAFE, 37)}k"


def _basic_auth(rng: random.Random) -> str:
    return base64.b64encode(f"{rng.choice(WORDS)}:{_made_password(rng)}".encode()).decode()


SECRETS: dict[str, Make] = {
    "aws_access_key": lambda rng: (
        rng.choice(["AKIA", "AKIA", "AKIA", "ASIA"]) + draw(rng, CAPITALS + "234567", 16)
    ),
    "google_api_key": repeat(URL_SAFE, 32, "AIzaSy", "w"),
    "google_oauth_secret": repeat(URL_SAFE, 27, "GOCSPX-", "k"),
    "github_token": lambda rng: (
        rng.choice(["ghp_", "ghp_", "ghp_", "gho_", "ghs_"]) + draw(rng, ALNUM, 36)
    ),
    "github_pat": lambda rng: f"github_pat_11{draw(rng, ALNUM, 20)}_{draw(rng, ALNUM, 59)}",
    "npm_token": repeat(ALNUM, 36, "npm_"),
    "gitlab_token": repeat(URL_SAFE, 19, "glpat-", "p"),
    "slack_token": _slack_token,
    "slack_webhook": lambda rng: (
        f"T0{draw(rng, CAPITALS + DIGITS, 8)}/B0{draw(rng, CAPITALS + DIGITS, 9)}/"
        + draw(rng, ALNUM, 24)
    ),
    "stripe_key": _stripe_key,
    "openai_key": _openai_key,
    "anthropic_key": repeat(URL_SAFE, 93, "sk-ant-api03-", "AA"),
    "hugging_face_token": repeat(string.ascii_letters, 34, "hf_"),
    "sendgrid_key": lambda rng: f"SG.{draw(rng, URL_SAFE, 22)}.{draw(rng, URL_SAFE, 42)}g",
    "pypi_token": lambda rng: (
        "pypi-AgEIcHlwaS5vcmcC" + draw(rng, URL_SAFE, rng.randrange(130, 160)) + "A"
    ),
    "json_web_token": _json_web_token,
    "private_key": key_body("MIIEpAIBAAKCAQEA", 1592),
    "azure_storage_key": base64_of(64),
    "azure_client_secret": lambda rng: f"{draw(rng, ALNUM, 3)}8Q~{draw(rng, ALNUM + '_~.-', 33)}c",
    "telegram_token": lambda rng: f"{rng.randrange(10**8, 8 * 10**9)}:AA{draw(rng, URL_SAFE, 32)}o",
    "docker_token": repeat(URL_SAFE, 26, "dckr_pat_", "4"),
    "shopify_token": lambda rng: (
        rng.choice(["shpat_", "shpat_", "shpss_", "shpca_"]) + draw(rng, HEX, 32)
    ),
    "twitter_bearer": _twitter_bearer,
    "twilio_key": repeat(HEX, 32, "SK"),
    "digitalocean_token": repeat(HEX, 64, "dop_v1_"),
    "assigned": _assigned,
    "password": _made_password,
    "chosen_password": _chosen_password,
    "url_password": _url_password,
}
"""Makers of the kinds of secrets. Of a private key the value is what stands between its two marks,
of a webhook what follows the address of the service."""

MAKERS: dict[str, Make] = {
    **SECRETS,
    "email": make_email,
    "example_email": _example_email,
    "obscured_email": _obscured_email,
    "archive_email": lambda rng: make_email(rng).replace("@", " at "),
    "ip_address": _ipv4,
    "ipv6": _ipv6,
    "card": make_card,
    "card_solid": _card(solid=True),
    **{name: _card(name) for name in ("amex", "jcb", "discover", "unionpay")},
    "iban": make_iban,
    "iban_solid": make_solid_iban,
    **{f"iban_{country.lower()}": _iban(country) for country in BBANS},
    "aws_secret": repeat(BASE64, 39, suffix="k"),
    "gitlab_runner": repeat(URL_SAFE, 19, "glrt-", "x"),
    "pem_rsa": key_body("MIIEpAIBAAKCAQEA", 1592),
    "pem_pkcs8": key_body("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ", 1624, last="=="),
    "pem_dsa": key_body("MIIBuwIBAAKBgQ", 612),
    "pem_encrypted": key_body("", 1596, last="=="),
    "pem_ec": key_body("MHcCAQEEI", 164, last="=="),
    "pem_openssh": key_body("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB", 540, 70),
    "pem_pgp": key_body("lQOYBF", 1100, last="\n=bX4q"),
    "basic_auth": _basic_auth,
    "discord_token": _discord_token,
    "twitter_access": lambda rng: f"{rng.randrange(10**8, 10**18)}-{draw(rng, ALNUM, 40)}",
    "wordpress_salt": lambda rng: "k" + draw(rng, ALNUM + "!@#^&*()-_[]{}<>~+=,.;:/?|", 62) + "7",
    "base64_32": base64_of(32),
    "digits15": repeat(DIGITS, 15),
    **{f"hex{size}": repeat(HEX, size) for size in (20, 32, 40, 64, 128)},
    **{f"alnum{size}": repeat(ALNUM, size) for size in (25, 27, 32, 45, 50)},
}
