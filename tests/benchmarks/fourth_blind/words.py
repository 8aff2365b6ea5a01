"""People, hosts and other words that surround the labelled values."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

from tests.benchmarks.fourth_blind.templates import Make

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits

GIVEN = (
    *("Annika", "Tobias", "Marek", "Ilaria", "Yusuf", "Priyanka", "Dmitri", "Sanne", "Oluwaseun"),
    *("Thuy", "Kenji", "Mireille", "Gonzalo", "Beatriz", "Eamon", "Katarzyna", "Halvard", "Noor"),
    *("Radka", "Joaquim", "Siobhan", "Ferenc", "Latoya", "Wenjie", "Ravi", "Elif", "Hannes"),
)
FAMILY = (
    *(
        "Brandstetter",
        "Kowalczyk",
        "Okonkwo",
        "Lindqvist",
        "Ferrante",
        "Moreau",
        "Takeda",
        "Yilmaz",
    ),
    *("Deshpande", "Vandenberghe", "Novotny", "Quintanilla", "Haugen", "Petrov", "Nakagawa"),
    *("Whitcombe", "Szabo", "Oliveira", "Iyer", "Rasmussen", "Castellanos", "Huang", "Mbeki"),
)
COMPANIES = (
    *(
        "tidewater-logistics",
        "brennholz-huber",
        "atelier-moreau",
        "nordfjord-energi",
        "kaizen-soft",
    ),
    *("quintafresca", "blueheron-labs", "lumenworks", "ostseeklinik", "pixelforge", "carbonleaf"),
    *("vinhos-alentejo", "stadtwerke-emsland", "madhavan-exports", "rivertonschools", "fjellsport"),
)
SUFFIXES = ("com", "de", "fr", "io", "co.uk", "net", "org", "it", "nl", "pl", "com.br", "co.jp")
MAILERS = (
    *("gmail.com", "gmx.de", "web.de", "outlook.com", "yahoo.co.jp", "mail.ru", "orange.fr"),
    *("libero.it", "naver.com", "qq.com", "proton.me", "uol.com.br", "seznam.cz", "wp.pl"),
    *("rediffmail.com", "t-online.de", "hotmail.es", "btinternet.com", "fastmail.com", "ziggo.nl"),
)
SERVICES = ("billing", "ingest", "auth", "search", "catalog", "mailer", "reports", "scheduler")
NOUNS = (
    *("maple", "harbor", "falcon", "ledger", "ember", "copper", "willow", "orbit", "granite"),
    *("saffron", "tundra", "marble", "otter", "juniper", "cobalt", "lantern", "meadow"),
)


def draw(alphabet: str, size: int, rng: random.Random) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choice(alphabet) for _ in range(size))


def domain(rng: random.Random) -> str:
    """The domain of an organisation; none is reserved for documentation."""
    return f"{rng.choice(COMPANIES)}.{rng.choice(SUFFIXES)}"


def host(rng: random.Random) -> str:
    """A host inside an organisation."""
    part = rng.choice(("db", "pg", "mysql", "cache", "mq", "smtp", "node"))
    return f"{part}{rng.randint(1, 19):02d}.{rng.choice(('prod', 'eu1', 'int'))}.{domain(rng)}"


def _uuid(rng: random.Random) -> str:
    digits = draw(HEX, 32, rng)
    fields = (digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:])
    return "-".join(fields)


def _date(rng: random.Random) -> str:
    return f"{rng.randint(2011, 2024)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def _clock(rng: random.Random) -> str:
    return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"


def _one(choices: tuple[str, ...]) -> Make:
    return lambda rng, _: rng.choice(choices)


def _plain(make: Callable[[random.Random], str]) -> Make:
    return lambda rng, _: make(rng)


def _version(rng: random.Random, parts: str) -> str:
    return ".".join(str(rng.randint(1, 29)) for _ in range(int(parts or 3)))


def _digits(rng: random.Random, size: str) -> str:
    return str(rng.randint(1, 9)) + draw(string.digits, int(size or 6) - 1, rng)


def _placeholder(rng: random.Random, name: str) -> str:
    """What people write where a secret belongs: a reference, a mask, or words in its place."""
    name = name or "token"
    upper, prefix = name.upper(), rng.choice(("", "my_", "prod_", "ci_", f"{rng.choice(NOUNS)}_"))
    return rng.choice(
        (
            *(f"${{{prefix.upper()}{upper}}}", f"${prefix.upper()}{upper}", f"%{upper}%"),
            *(f"<{prefix}{name}>", f"<your-{name}>", f"<YOUR_{upper}>", f"<insert {name} here>"),
            *(f"{{{{ {prefix}{name} }}}}", f"{{{{{prefix}{name}}}}}", f"{{{prefix}{name}}}"),
            *(f"YOUR_{upper}", f"YOUR_{upper}_HERE", f"your-{name}-here", f"REPLACE_{upper}"),
            *("*" * rng.randint(4, 24), "x" * rng.randint(8, 32), "X" * rng.randint(8, 32), "..."),
            *(
                "[REDACTED]",
                "[FILTERED]",
                "<redacted>",
                f"[{upper}]",
                f"__{upper}__",
                f"@@{name}@@",
            ),
            *(f"${{{{ secrets.{prefix.upper()}{upper} }}}}", f"$({prefix}{name})", f"%({name})s"),
            *(f"#{{{prefix}{name}}}", f"TODO-{name}", f"${{env.{prefix.upper()}{upper}}}"),
        )
    )


WORDS: dict[str, Make] = {
    "given": _one(GIVEN),
    "family": _one(FAMILY),
    "company": _one(COMPANIES),
    "domain": _plain(domain),
    "host": _plain(host),
    "service": _one(SERVICES),
    "noun": _one(NOUNS),
    "user": lambda rng, _: rng.choice(NOUNS) + rng.choice(("_app", "svc", "-rw", "_admin", "")),
    "uuid": _plain(_uuid),
    "date": _plain(_date),
    "clock": _plain(_clock),
    "version": _version,
    "digits": _digits,
    "hex": lambda rng, size: draw(HEX, int(size or 40), rng),
    "upper": lambda rng, size: draw(string.ascii_uppercase, int(size or 6), rng),
    "alnum": lambda rng, size: draw(ALNUM, int(size or 24), rng),
    "base64": lambda rng, size: draw(ALNUM + "+/", int(size or 64), rng),
    "placeholder": _placeholder,
    "int": lambda rng, most: str(rng.randint(1, int(most or 99))),
}
"""Words without a label, by the names that templates use."""
