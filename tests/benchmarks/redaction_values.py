"""Values that redaction must find, made by seeded generators; two generators a kind.

Those of the development side and those of the test side share no names, domains, countries of
accounts and phone numbers where there are several, ways of writing, or prefixes where a service has
more than one. What each value is follows from the standard or the page of the service, not from our
patterns: numbering plans (libphonenumber's metadata), ISO 13616 and ISO 7064, ISO/IEC 7812, and the
token formats that services publish. No value stands in a file: all are drawn when a test runs.
"""

from __future__ import annotations

import base64
import ipaddress
import itertools
import json
import random
import re
import string
import zlib
from collections.abc import Callable

from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.splits import Side

LOWER, DIGITS = string.ascii_lowercase, string.digits
ALNUM = string.ascii_letters + DIGITS
URL64, HEX = ALNUM + "-_", "0123456789abcdef"
Make = Callable[[random.Random], str]


def draw(rng: random.Random, alphabet: str, size: int) -> str:
    """`size` characters of an alphabet."""
    return "".join(rng.choices(alphabet, k=size))


# E-mail: RFC 5322 and RFC 6531 --------------------------------------------------------------------
_NAMES: dict[Side, list[str]] = {
    "development": [
        "anna",
        "peter",
        "maria",
        "schmidt",
        "jones",
        "laura",
        "becker",
        "martin",
        "rossi",
        "dupont",
    ],
    "test": [
        "olufemi",
        "grace",
        "kowalski",
        "nguyen",
        "ibarra",
        "okafor",
        "lindqvist",
        "tanaka",
        "moreau",
        "silva",
    ],
}
_FOREIGN: dict[Side, list[str]] = {
    "development": ["jörg.müller", "josé", "иван.петров", "山田", "zoë.h"],
    "test": ["søren.ågård", "françois", "ольга", "王小明", "münüşe", "αλέξης", "begoña.ruiz"],
}
_HOSTS: dict[Side, list[str]] = {
    "development": [
        "brightfield.com",
        "uni-kassel.de",
        "mail.harborview.org",
        "oakline.co.uk",
        "web.it",
    ],
    "test": [
        "northwind-labs.io",
        "lyceum.edu",
        "correo.vallecito.com.mx",
        "atelier.fr",
        "163.com",
        "kyoto-u.ac.jp",
        "posta.gov.tr",
        "quill.dev",
    ],
}
_FOREIGN_HOSTS: dict[Side, list[str]] = {
    "development": ["müller-bau.de", "почта.рф", "例子.中国"],
    "test": ["bücherstube.at", "школа.рф", "商店.公司", "crèmerie.fr", "παράδειγμα.ελ"],
}


def make_email(rng: random.Random, side: Side) -> str:
    """One in five has a part outside ASCII."""
    name, other = rng.sample(_NAMES[side], 2)
    shapes = {
        "development": [f"{name}.{other}", f"{name}{rng.randrange(10, 99)}", f"{name[0]}.{other}"],
        "test": [
            *(f"{name}_{other}", f"{name}+{draw(rng, LOWER, 4)}", f"{other[0]}{name[:5]}"),
            *(f"{name}-{other}.{rng.randrange(1950, 2010)}", f"{name.title()}.{other[0].upper()}"),
        ],
    }[side]
    local, host = rng.choice(shapes), rng.choice(_HOSTS[side])
    if rng.random() < 0.2:
        if rng.random() < 0.5:
            local = rng.choice(_FOREIGN[side])
        else:
            host = rng.choice(_FOREIGN_HOSTS[side])
    return f"{local}@{host}"


# Numbers ------------------------------------------------------------------------------------------
_NATIONAL: dict[Side, list[str]] = {
    "development": ["US", "GB", "DE", "FR", "CA", "IT", "JP"],
    "test": ["US", "AU", "NL", "IT", "CH", "AT", "BE", "IN", "IE", "BR", "JP", "DE", "GB"],
}
_ABROAD: dict[Side, list[str]] = {
    "development": ["US", "DE", "FR", "ES", "PL"],
    "test": ["GB", "SE", "KR", "ZA", "MX", "TR", "NG", "GR", "FI", "AR", "NZ", "SG"],
}
_BLANKS: dict[Side, list[str]] = {
    "development": [" ", " ", "-", "\u00a0"],
    "test": [" ", " ", "\u202f", "\u2009", "\u00a0", "\u2007", "-"],
}


def _phone(rng: random.Random, region: str) -> object:
    """A valid number: an example of its plan with its last digits drawn again."""
    import phonenumbers as lib

    kind = rng.choice([lib.PhoneNumberType.MOBILE, lib.PhoneNumberType.FIXED_LINE])
    example = lib.example_number_for_type(region, kind)
    while True:
        plain = lib.national_significant_number(example)
        cut = min(rng.choice([4, 5, 6]), len(plain) - 3)
        number = lib.parse(f"+{example.country_code}{plain[:-cut]}{draw(rng, DIGITS, cut)}", region)
        kept_for_fiction = example.country_code == 1 and "55501" in str(number.national_number)
        if lib.is_valid_number(number) and len(set(plain)) > 2 and not kept_for_fiction:
            return number


def make_international(rng: random.Random, side: Side) -> str:
    """With its country code, and the separators of the side."""
    import phonenumbers as lib

    number = _phone(rng, rng.choice(_ABROAD[side]))
    if rng.random() < 0.3:
        return str(lib.format_number(number, lib.PhoneNumberFormat.E164))
    text = str(lib.format_number(number, lib.PhoneNumberFormat.INTERNATIONAL))
    between = rng.choice(_BLANKS[side])
    if side == "test" and rng.random() < 0.2:
        between = "."
    return text.replace("-", between).replace(" ", between)


def make_national(rng: random.Random, side: Side) -> str:
    """As its country writes it; on the test side often grouped otherwise, as people do."""
    import phonenumbers as lib

    number = _phone(rng, rng.choice(_NATIONAL[side]))
    text = str(lib.format_number(number, lib.PhoneNumberFormat.NATIONAL))
    if side == "development" and rng.random() < 0.6:
        return text
    plain = "".join(filter(str.isdigit, text))
    ways = [text, text, text.replace(" ", "\u00a0"), text.replace(" ", "-"), plain]
    if len(plain) >= 10:
        ways.append(f"{plain[:3]}.{plain[3:6]}.{plain[6:]}")
        ways.append(f"{plain[:4]}/{plain[4:]}")
    return rng.choice(ways)


def make_card(rng: random.Random, side: Side, between: str | None = None) -> str:
    """A number of a network with its groups, or without (`between` is empty)."""
    heads = {
        "development": [("4", 16), ("51", 16), ("37", 15)],
        "test": [("4", 16), ("55", 16), ("2221", 16), ("34", 15), ("6011", 16), ("3530", 16)],
    }[side]
    head, size = rng.choice(heads)
    body = head + draw(rng, DIGITS, size - 1 - len(head))
    number = body + luhn_digit(body)
    if between is None:
        between = rng.choice([*_BLANKS[side], *([" ", "\u2011"] if side == "test" else [])])
    cuts = [0, 4, 10, 15] if size == 15 else [0, 4, 8, 12, 16]
    return between.join(number[a:b] for a, b in itertools.pairwise(cuts))


_BBANS: dict[Side, dict[str, str]] = {
    "development": {"DE": "18n", "FR": "10n11c2n", "ES": "20n", "GB": "4a14n"},
    "test": {
        "NL": "4a10n",
        "IT": "1a10n12c",
        "CH": "5n12c",
        "PL": "24n",
        "BE": "12n",
        "NO": "11n",
        "MT": "4a5n18c",
        "SE": "20n",
        "AT": "16n",
        "PT": "21n",
        "SA": "2n18c",
    },
}


def make_iban(rng: random.Random, side: Side) -> str:
    """Country, check digits (ISO 7064 MOD 97-10) and a body of the country's shape."""
    country = rng.choice(sorted(_BBANS[side]))
    body = "".join(
        draw(rng, {"n": DIGITS, "a": string.ascii_uppercase, "c": DIGITS}[sort], int(size))
        for size, sort in re.findall(r"([0-9]+)([nac])", _BBANS[side][country])
    )
    plain = "".join(str(int(c, 36)) for c in f"{body}{country}00")
    number = f"{country}{98 - int(plain) % 97:02d}{body}"
    between = rng.choice([*_BLANKS[side], ""])
    number = between.join(number[i : i + 4] for i in range(0, len(number), 4))
    return number.lower() if side == "test" and rng.random() < 0.05 else number


def make_ip(rng: random.Random, side: Side) -> str:
    """A public address: IPv4, and one in four of IPv6 in one of its forms."""
    if rng.random() < 0.25:
        heads = {"development": [0x2001_0470, 0x2A02_0908], "test": [0x2606_4700, 0x2404_6800]}
        number = (rng.choice(heads[side]) << 96) | rng.getrandbits(64 if side == "test" else 96)
        address = ipaddress.IPv6Address(number)
        return address.exploded if rng.random() < 0.3 else str(address)
    first = {"development": (31, 100), "test": (101, 223)}[side]
    while True:
        parts = [rng.randrange(*first), *(rng.randrange(256) for _ in range(3))]
        text = ".".join(map(str, parts))
        if ipaddress.ip_address(text).is_global and len(text) >= 10:
            return text


# Secrets ------------------------------------------------------------------------------------------
def _crc(body: str) -> str:
    """CRC-32 in base 62, six digits: how GitHub and npm end their tokens."""
    number, text, alphabet = zlib.crc32(body.encode()), "", DIGITS + string.ascii_uppercase + LOWER
    while number:
        number, digit = divmod(number, 62)
        text = alphabet[digit] + text
    return text.rjust(6, "0")


def _checked(prefix: str) -> Make:
    def make(rng: random.Random) -> str:
        body = draw(rng, ALNUM, 30)
        return prefix + body + _crc(body)

    return make


def _after(prefix: str, alphabet: str, size: int, suffix: str = "") -> Make:
    return lambda rng: prefix + draw(rng, alphabet, size) + suffix


def _jwt(algorithm: str, claim: str) -> Make:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    def make(rng: random.Random) -> str:
        body = {claim: draw(rng, ALNUM, 12), "iat": rng.randrange(10**9, 2 * 10**9)}
        return f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(body)}.{draw(rng, URL64, 43)}"

    return make


def _key_block(name: str, lines: int) -> Make:
    def make(rng: random.Random) -> str:
        body = "\n".join(draw(rng, ALNUM + "+/", 64) for _ in range(lines))
        return f"-----BEGIN {name}PRIVATE KEY-----\n{body}\n-----END {name}PRIVATE KEY-----"

    return make


def _password(symbols: str, least: int) -> Make:
    """Letters of both cases, at least one digit and often a symbol, as rules for passwords ask."""

    def make(rng: random.Random) -> str:
        size = rng.randrange(least, 15)
        drawn = [rng.choice(string.ascii_uppercase), rng.choice(DIGITS), rng.choice(LOWER)]
        drawn += [*rng.choices(ALNUM, k=size - 4), rng.choice(symbols)]
        rng.shuffle(drawn)
        first = next(i for i, c in enumerate(drawn) if c.isalpha())
        drawn[0], drawn[first] = drawn[first], drawn[0]
        return "".join(drawn)

    return make


def _human_password(rng: random.Random) -> str:
    """A word, a number and a sign: what people choose."""
    word = rng.choice(
        [
            "Dragon",
            "summer",
            "Kestrel",
            "marmalade",
            "Tulip",
            "hockey",
            "Bamboo",
            "winter",
            "orchid",
        ]
    )
    return f"{word}{rng.randrange(10, 2030)}{rng.choice(['!', '#', '', '?', '*'])}"


def _slack(kind: str) -> Make:
    return lambda rng: (
        f"xox{kind}-{draw(rng, '123456789', 12)}-{draw(rng, '123456789', 13)}-"
        f"{draw(rng, ALNUM, 24)}"
    )


def _webhook(rng: random.Random) -> str:
    capital = string.ascii_uppercase + DIGITS
    return (
        f"hooks.slack.com/services/T{draw(rng, capital, 9)}/B{draw(rng, capital, 10)}/"
        f"{draw(rng, ALNUM, 24)}"
    )


SECRETS: dict[str, dict[Side, Make]] = {
    kind: {"development": development, "test": test}
    for kind, development, test in (
        (
            "aws_access_key",
            *(_after(p, string.ascii_uppercase + "234567", 16) for p in ("AKIA", "ASIA")),
        ),
        ("google_api_key", _after("AIza", URL64, 35), _after("AIzaSy", URL64, 33)),
        ("google_oauth_secret", _after("GOCSPX-", ALNUM, 28), _after("GOCSPX-", URL64[:-2], 28)),
        ("github_token", _checked("ghp_"), _checked("gho_")),
        (
            "github_pat",
            *(lambda r: f"github_pat_11{draw(r, ALNUM, 20)}_{draw(r, ALNUM, 59)}",) * 2,
        ),
        ("npm_token", _checked("npm_"), _checked("npm_")),
        ("gitlab_token", _after("glpat-", ALNUM, 20), _after("glpat-", URL64[:-1], 20)),
        ("slack_token", _slack("b"), _slack("p")),
        ("slack_webhook", _webhook, _webhook),
        ("stripe_key", _after("sk_live_", ALNUM, 24), _after("rk_live_", ALNUM, 99)),
        (
            "openai_key",
            lambda r: f"sk-{draw(r, ALNUM, 20)}T3BlbkFJ{draw(r, ALNUM, 20)}",
            lambda r: f"sk-svcacct-{draw(r, URL64, 58)}T3BlbkFJ{draw(r, URL64[:-2], 58)}",
        ),
        (
            "anthropic_key",
            lambda r: f"sk-ant-api03-{draw(r, URL64, 92)}A",
            lambda r: f"sk-ant-admin01-{draw(r, URL64, 92)}A",
        ),
        ("hugging_face_token", *(_after("hf_", string.ascii_letters, 34),) * 2),
        ("sendgrid_key", *(lambda r: f"SG.{draw(r, ALNUM, 22)}.{draw(r, ALNUM, 43)}",) * 2),
        ("pypi_token", *(_after("pypi-AgEIcHlwaS5vcmc", URL64, n, "x") for n in (120, 160))),
        ("json_web_token", _jwt("HS256", "sub"), _jwt("RS384", "client_id")),
        ("private_key", _key_block("RSA ", 12), _key_block("OPENSSH ", 6)),
        (
            "azure_storage_key",
            *(_after("", ALNUM + "+/", 86, "=="),) * 2,
        ),
        (
            "azure_client_secret",
            *(lambda r: f"{draw(r, ALNUM, 3)}{r.choice(DIGITS)}Q~{draw(r, ALNUM + '-_.', 33)}a",)
            * 2,
        ),
        (
            "telegram_token",
            *(lambda r: f"{r.randrange(10**8, 10**10)}:AA{draw(r, URL64, 32)}x",) * 2,
        ),
        ("docker_token", _after("dckr_pat_", URL64[:-2], 27), _after("dckr_oat_", ALNUM, 32)),
        ("shopify_token", _after("shpat_", HEX, 32), _after("shpss_", HEX, 32)),
        ("twitter_bearer", *(lambda r: f"{'A' * 22}{draw(r, ALNUM + '%', 80)}x",) * 2),
        ("twilio_key", _after("SK", HEX, 32), _after("SK", HEX, 32)),
        ("digitalocean_token", _after("dop_v1_", HEX, 64), _after("dor_v1_", HEX, 64)),
        ("assigned", _after("", ALNUM, 32), _after("", ALNUM + "+/", 43, "=")),
        ("password", _password("!#$%&*", 9), _password("!?@#$^*-_+", 8)),
        ("chosen_password", _human_password, _human_password),
        ("url_password", _password("!*-_.", 8), _password("!~-_+", 7)),
    )
}
"""By kind, the two generators."""
