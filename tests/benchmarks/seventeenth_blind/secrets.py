"""Makers of the seventeenth set's secrets: passwords, tokens of known forms and their pieces."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.seventeenth_blind.secrets_words import (
    COMPANIES,
    DATABASES,
    PEOPLE,
    SUBDOMAINS,
    TLDS,
    USERS,
    WORDS,
)

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
PIECE = 12
"""Least characters of a piece of a broken token."""


def _draw(rng: Random, alphabet: str, size: int) -> str:
    return "".join(rng.choices(alphabet, k=size))


def _number(rng: Random, size: int) -> str:
    return rng.choice("123456789") + _draw(rng, string.digits, size - 1)


def _octets(rng: Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def _word_password(rng: Random, marks: str) -> str:
    """A word, a mark and a number, in one of the orders that people use."""
    word, mark = rng.choice(WORDS), rng.choice(marks)
    number = rng.choice([f"{rng.randint(1960, 2025)}", f"{rng.randint(100, 9999)}"])
    title = word.title()
    return rng.choice(
        [title + mark + number, title + number + mark, mark.join([title, number, word[:3].upper()])]
    )


def _low_password(rng: Random) -> str:
    return "".join(rng.sample(WORDS, 2)) + f"{rng.randint(10, 999)}"


def _mixed(rng: Random, marks: str, least: int = 12, most: int = 20) -> str:
    """Random characters with one to three marks inside, letters and a digit at the ends."""
    inner = list(_draw(rng, ALNUM, rng.randint(least, most) - 4))
    for at in rng.sample(range(len(inner)), rng.randint(1, 3)):
        inner[at] = rng.choice(marks)
    return (
        rng.choice(string.ascii_letters)
        + "".join(inner)
        + rng.choice(string.ascii_uppercase)
        + rng.choice(string.ascii_lowercase)
        + rng.choice(string.digits)
    )


def _random(rng: Random, size: int) -> str:
    """Letters and digits, at least one of each."""
    text = _draw(rng, ALNUM, size - 3)
    return rng.choice(string.ascii_lowercase) + text + rng.choice("23456789") + rng.choice("KMRTX")


def _encoded(rng: Random) -> str:
    """A password as it stands in a URL: marks in percent encoding."""
    code = rng.choice(["%40", "%23", "%21", "%2F", "%24", "%3A", "%26"])
    return _random(rng, rng.randint(5, 8)) + code + _random(rng, rng.randint(4, 8))


def password(scene: Scene, style: str) -> str:
    """A password; without a style one that needs no quotes and may stand in a URL.

    Styles: word, low, gen, plain (none of them ends with a mark), hum and sym (with `@#$%&`, for
    quoted values), pct, phrase, and a name with a size: an20, hex32, b32 (Base64 of so many bytes),
    url43.
    """
    rng = scene.rng
    if style.rstrip(string.digits) in _SIZED and style[-1:].isdigit():
        name = style.rstrip(string.digits)
        return _SIZED[name](rng, int(style[len(name) :]))
    styles: dict[str, Callable[[], str]] = {
        "word": lambda: _word_password(rng, "!_-*."),
        "low": lambda: _low_password(rng),
        "gen": lambda: _mixed(rng, "!*-_+~"),
        "plain": lambda: rng.choice(
            [_low_password(rng), _mixed(rng, "-_"), _random(rng, rng.randint(9, 18))]
        ),
        "hum": lambda: _word_password(rng, "@#$!&"),
        "sym": lambda: _mixed(rng, "@#$%&!*()^?=+", 14, 24),
        "pct": lambda: _encoded(rng),
        "phrase": lambda: "-".join(rng.sample(WORDS, 4)),
    }
    if style:
        return styles[style]()
    return styles[rng.choice(["word", "word", "low", "gen", "gen", "plain", "plain"])]()


_SIZED: dict[str, Callable[[Random, int], str]] = {
    "an": _random,
    "hex": lambda rng, size: _draw(rng, HEX, size),
    "b": _octets,
    "url": lambda rng, size: _draw(rng, URLSAFE, size - 1) + rng.choice(ALNUM),
    "n": _number,
}


def web_token(rng: Random, algorithm: str = "") -> str:
    """A signed JSON web token."""
    algorithm = algorithm or rng.choice(["HS256", "HS256", "HS256", "ES256", "HS512", "RS256"])
    issued = rng.randint(1_480_000_000, 1_760_000_000)
    claims: dict[str, object] = {
        "sub": rng.choice([_number(rng, 5), _draw(rng, HEX, 24), _uuid(rng)]),
        "iat": issued,
        "exp": issued + rng.choice([3600, 86400, 604800]),
    }
    if rng.random() < 0.5:
        claims["role"] = rng.choice(["user", "admin", "editor", "service"])
    head = rng.choice([{"alg": algorithm, "typ": "JWT"}, {"typ": "JWT", "alg": algorithm}])
    body = [json.dumps(part, separators=(",", ":")).encode() for part in (head, claims)]
    return ".".join(map(segment, [*body, rng.randbytes(SIGNATURES[algorithm])]))


def _uuid(rng: Random) -> str:
    text = _draw(rng, HEX, 32)
    parts = text[:8], text[8:12], "4" + text[13:16], rng.choice("89ab") + text[17:20], text[20:]
    return "-".join(parts)


def _with_crc(prefix: str) -> Callable[[Random], str]:
    def make(rng: Random) -> str:
        body = _draw(rng, ALNUM, 30)
        return prefix + body + crc_base62(body)

    return make


def _basic(rng: Random) -> str:
    pair = f"{rng.choice(USERS)}:{rng.choice([_low_password(rng), _mixed(rng, '!-_')])}"
    return base64.b64encode(pair.encode()).decode()


PATTERNS = {
    "pat": "github_pat_ an22 _ an59",
    "glpat": "glpat- url20",
    "stripe": "sk_live_ an24",
    "stripe2": "sk_live_51 an97",
    "openai": "sk-proj- url74 T3BlbkFJ url74",
    "openai2": "sk- an20 T3BlbkFJ an20",
    "anthropic": "sk-ant-api03- url93 AA",
    "google": "AIza url35",
    "sendgrid": "SG. url22 . url43",
    "slack": "xoxb- n12 - n13 - an24",
    "slackp": "xoxp- n12 - n12 - n13 - hex32",
    "slackapp": "xapp-1-A0 up9 - n13 - hex64",
    "hf": "hf_ al34",
    "shopify": "shpat_ hex32",
    "do": "dop_v1_ hex64",
    "pypi": "pypi-AgEIcHlwaS5vcmc url150",
    "telegram": "n10 :AA url33",
    "databricks": "dapi hex32",
    "docker": "dckr_pat_ url27",
    "vault": "hvs.CAES url88",
    "grafana": "glsa_ an32 _ hex8",
    "linear": "lin_api_ an40",
    "notion": "ntn_ n11 an35",
    "airtable": "pat an14 . hex64",
    "postman": "PMAK- hex24 - hex34",
    "newrelic": "NRAK- up27",
    "pulumi": "pul- hex40",
    "supabase": "sbp_ hex40",
    "atlassian": "ATATT3xFfGF0 url171 = uphex8",
    "mailgun": "key- hex32",
    "square": "EAAA url60",
    "facebook": "EAA an180",
    "ya29": "ya29.a0 url160",
    "sentry": "sntryu_ hex64",
    "groq": "gsk_ an52",
    "replicate": "r8_ an37",
    "figma": "figd_ url40",
    "doppler": "dp.pt. an43",
    "netlify": "nfp_ an36",
    "sonar": "sqp_ hex40",
    "rubygems": "rubygems_ hex48",
    "discord": "MT an24 . url6 . url38",
    "openrouter": "sk-or-v1- hex64",
    "planetscale": "pscale_tkn_ url43",
    "twitter": "AAAAAAAAAAAAAAAAAAAAA an91",
    "okta": "00 url40",
    "zoho": "1000. hex32 . hex32",
    "gocspx": "GOCSPX- url28",
    "pscale": "pscale_pw_ url43",
}
"""Forms of tokens: fixed text, or an alphabet with a count."""
_ALPHABETS = {
    "an": ALNUM,
    "al": string.ascii_letters,
    "hex": HEX,
    "uphex": HEX.upper(),
    "up": string.ascii_uppercase + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "n": string.digits,
    "url": URLSAFE,
}


def token(scene: Scene, form: str) -> str:
    """A token of a known form; a style of `password` with a size is an opaque one."""
    rng = scene.rng
    if form.startswith("jwt"):
        return web_token(rng, form[3:])
    if form in ("ghp", "gho", "ghs", "npm"):
        return _with_crc(f"{form}_")(rng)
    if form == "basic":
        return _basic(rng)
    if form == "discord":
        number = base64.b64encode(f"1{_draw(rng, string.digits, 18)}".encode()).decode()
        return f"{number.rstrip('=')}.{_draw(rng, URLSAFE, 6)}.{_draw(rng, ALNUM, 38)}"
    if form == "uuid":
        return _uuid(rng)
    if form == "opaque":
        return password(scene, rng.choice(["an32", "an40", "hex32", "hex40", "hex64", "url43"]))
    if form not in PATTERNS:
        return password(scene, form)
    text = ""
    for part in PATTERNS[form].split():
        name = part.rstrip(string.digits)
        sized = name in _ALPHABETS and name != part
        if sized and name == "n":
            text += _number(rng, int(part[len(name) :]))
        elif sized:
            drawn = _draw(rng, _ALPHABETS[name], int(part[len(name) :]))
            text += drawn[:-1] + ("k" if drawn[-1] in "-_" else drawn[-1])
        else:
            text += part
    return text


def _cut(rng: Random, whole: str, count: int) -> list[str]:
    """A text in so many pieces: lines of one width, or cut by hand; each has `PIECE` or more."""
    width = -(-len(whole) // count)
    even = [whole[at : at + width] for at in range(0, len(whole), width)]
    if len(even) == count and len(even[-1]) >= PIECE and rng.random() < 0.5:
        return even
    spare = len(whole) - PIECE * count
    # Cuts by hand differ from equal parts by at most a third of what is spare.
    shares = [spare // count + rng.randint(-(spare // count) // 3, 0) for _ in range(count - 1)]
    sizes = [PIECE + share for share in shares]
    ends = [sum(sizes[:at]) for at in range(count)]
    return [whole[start:end] for start, end in zip(ends, [*ends[1:], len(whole)], strict=True)]


def part(scene: Scene, argument: str) -> str:
    """Piece i of n of one token of a form: `ghp 1/2`; `dot` cuts a web token behind its dots."""
    form, _, place = argument.partition(" ")
    at, _, count = place.partition("/")

    def cut() -> str:
        whole = token(scene, form.removesuffix("dot"))
        if form.endswith("dot"):
            return whole.replace(".", ".\n")
        return "\n".join(_cut(scene.rng, whole, int(count)))

    return scene.once(f"pieces of {form}", cut).split("\n")[int(at) - 1]


def _host(scene: Scene, argument: str) -> str:
    rng = scene.rng
    tld = argument or rng.choice(TLDS)
    return f"{rng.choice(SUBDOMAINS)}.{rng.choice(COMPANIES)}.{tld}"


def _private_address(scene: Scene, argument: str) -> str:
    rng = scene.rng
    head = rng.choice(["10.{}", "192.168", "172.{}"])
    second = rng.randint(16, 31) if head.startswith("172") else rng.randint(0, 99)
    return f"{head.format(second)}.{rng.randint(0, 60)}.{rng.randint(2, 250)}"


def _choice(words: list[str]) -> Maker:
    return lambda scene, _: scene.rng.choice(words)


def _sized(name: str) -> Maker:
    return lambda scene, size: _draw(scene.rng, _ALPHABETS[name], int(size))


def _date(scene: Scene, argument: str) -> str:
    rng = scene.rng
    year, month, day = rng.randint(2014, 2025), rng.randint(1, 12), rng.randint(1, 28)
    return f"{day:02}.{month:02}.{year}" if argument == "de" else f"{year}-{month:02}-{day:02}"


def _clock(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


MAKERS: dict[str, Maker] = {
    "secrets_pw": password,
    "secrets_token": token,
    "secrets_part": part,
    "secrets_host": _host,
    "secrets_lan": _private_address,
    "secrets_user": _choice(USERS),
    "secrets_db": _choice(DATABASES),
    "secrets_firm": _choice(COMPANIES),
    "secrets_who": _choice(PEOPLE),
    "secrets_word": _choice(WORDS),
    "secrets_date": _date,
    "secrets_clock": _clock,
    "secrets_uuid": lambda scene, _: _uuid(scene.rng),
    "secrets_n": lambda scene, size: _number(scene.rng, int(size)),
    "secrets_hex": _sized("hex"),
    "secrets_up": _sized("up"),
    "secrets_uphex": _sized("uphex"),
    "secrets_low": _sized("low"),
    "secrets_an": _sized("an"),
    "secrets_b64": lambda scene, size: _draw(scene.rng, ALNUM + "+/", int(size)),
    "secrets_octets": lambda scene, size: _octets(scene.rng, int(size)),
}
