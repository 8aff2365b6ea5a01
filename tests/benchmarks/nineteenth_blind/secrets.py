"""Makers of passwords, credentials of headers and tokens that are broken over lines."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from urllib.parse import quote

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.nineteenth_blind import secrets_words as words

ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
BAD = re.compile(r"(?i)example|placeholder|x{6}|\*\*\*|\.\.|0{12}|changeme|[{}]")
LEET = str.maketrans("aeios", "43105")
Draw = Callable[[random.Random], str]


def chars(rng: random.Random, alphabet: str, least: int, most: int = 0) -> str:
    """So many characters of an alphabet, `least` to `most`."""
    return "".join(rng.choices(alphabet, k=rng.randint(least, most or least)))


def mixed(rng: random.Random, symbols: str, least: int, most: int) -> str:
    """Letters and digits with one to four symbols inside, all classes there."""
    body = list(chars(rng, ALNUM, least, most))
    places = rng.sample(range(1, len(body) - 1), 6)
    for at in places[: rng.randint(1, 4)]:
        body[at] = rng.choice(symbols)
    body[places[4]], body[places[5]] = rng.choice(string.digits), rng.choice("bcdfghkmnpqrt")
    return "".join(body)


def b64(rng: random.Random, count: int) -> str:
    """Base64 of so many random bytes."""
    return base64.b64encode(rng.randbytes(count)).decode()


def word_password(rng: random.Random, marks: str = "!!!_-.*") -> str:
    """A password as people choose it: a word or two, digits, at times a mark."""
    word = rng.choice(words.WORDS)
    other = rng.choice(words.WORDS + [one.lower() for one in words.FIRST])
    year = str(rng.randint(1962, 2024))
    digits = rng.choice([year, year[2:], chars(rng, string.digits, 2, 4), year])
    form = rng.randrange(7)
    if form == 0:
        return word.capitalize() + digits
    if form == 1:
        return word.capitalize() + digits + (rng.choice("!!!*?") if marks else "")
    if form == 2:
        return word.capitalize() + other.capitalize() + digits
    if form == 3:
        return word + rng.choice("-_.") + other + rng.choice("-_.") + digits
    if form == 4:
        start, rest = word[0].upper(), word[1:].translate(LEET)
        return start + rest + (rng.choice(marks) if marks else "") + digits
    if form == 5:
        return other + digits + word[:3].upper()
    return digits + word.capitalize() + other[:3]


def phrase(rng: random.Random, glue: str) -> str:
    """A passphrase of four to six words."""
    return glue.join(rng.sample(words.DICE, rng.randint(4, 6)))


def plain(rng: random.Random) -> str:
    """Letters and digits of a generator."""
    text = chars(rng, ALNUM, 9, 20)
    return text[:-2] + rng.choice(string.digits) + rng.choice("bcdfghkmnpqrt")


def any_password(rng: random.Random) -> str:
    """A value that may stand without quotes in most files."""
    form = rng.random()
    if form < 0.4:
        return word_password(rng)
    return plain(rng) if form < 0.7 else mixed(rng, "!*+-_.^~%=", 9, 18)


def prose_password(rng: random.Random) -> str:
    """A value whose end is clear where a sentence goes on."""
    form = rng.random()
    if form < 0.5:
        return word_password(rng, "").rstrip("!*?")
    return plain(rng) if form < 0.75 else mixed(rng, "!#$%*+-_", 9, 15)


def url_password(rng: random.Random) -> str:
    """A password of a URL, percent-encoded where needed."""
    form = rng.random()
    if form < 0.3:
        return word_password(rng, "!_-.").replace("?", "!")
    if form < 0.65:
        return plain(rng)
    if form < 0.82:
        return mixed(rng, "-_.~!", 10, 18)
    return quote(mixed(rng, "@:/#?&=+-_!", 10, 18), safe="-_.~!")


PASSWORDS: dict[str, Draw] = {
    "": any_password,
    "word": word_password,
    "plain": plain,
    "prose": prose_password,
    "url": url_password,
    "strong": lambda rng: mixed(rng, "!#$%()*+,-.:;=?@[]^_~&/|", 10, 22),
    "sym": lambda rng: mixed(rng, "!#$%*+-_?^~@", 10, 18),
    "ado": lambda rng: mixed(rng, "!#$%*+-_?^~@", 9, 16),
    "long": lambda rng: chars(rng, ALNUM, 28, 48),
    "hex32": lambda rng: rng.randbytes(16).hex(),
    "hex40": lambda rng: rng.randbytes(20).hex(),
    "hex64": lambda rng: rng.randbytes(32).hex(),
    "hero": lambda rng: "p" + rng.randbytes(32).hex(),
    "sas": lambda rng: quote(b64(rng, 32), safe=""),
    "laravel": lambda rng: "base64:" + b64(rng, 32),
    "hex128": lambda rng: rng.randbytes(64).hex(),
    "b24": lambda rng: b64(rng, 24),
    "b32": lambda rng: b64(rng, 32),
    "b64": lambda rng: b64(rng, 64),
    "urlsafe": lambda rng: "k" + chars(rng, URLSAFE, 40) + "Q",
    "django": lambda rng: (
        chars(rng, LOWER, 1) + chars(rng, LOWER + "!@#$%^&*(-_=+)", 48) + chars(rng, LOWER, 1)
    ),
    "salt": lambda rng: (
        chars(rng, ALNUM, 1)
        + chars(rng, ALNUM + "!@#%^&*()-_[]+=~,.;:/?|", 62)
        + chars(rng, ALNUM, 1)
    ),
    "pin4": lambda rng: str(rng.randint(2013, 9879)),
    "pin6": lambda rng: str(rng.randint(201_345, 987_654)),
    "pin8": lambda rng: str(rng.randint(20_134_567, 98_765_432)),
    "wifi": lambda rng: rng.choice(
        [word_password(rng, ""), chars(rng, string.digits, 20), plain(rng)]
    ),
    "phrase": lambda rng: phrase(rng, " "),
    "dashes": lambda rng: phrase(rng, "-"),
    "app": lambda rng: " ".join(chars(rng, string.ascii_lowercase, 4) for _ in range(4)),
    "wpapp": lambda rng: " ".join(chars(rng, ALNUM, 4) for _ in range(6)),
    "apple": lambda rng: "-".join(chars(rng, string.ascii_lowercase, 4) for _ in range(4)),
    "code": lambda rng: "-".join(chars(rng, LOWER, 5) for _ in range(2)),
    "totp": lambda rng: chars(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
    "bitlocker": lambda rng: "-".join(f"{11 * rng.randint(9100, 65535):06d}" for _ in range(8)),
    "license": lambda rng: "-".join(
        chars(rng, string.ascii_uppercase + "2346789", 5) for _ in range(5)
    ),
    "azure": lambda rng: (
        chars(rng, ALNUM, 3) + "8Q~" + chars(rng, ALNUM + "-_.~", 33) + chars(rng, ALNUM, 1)
    ),
    "google": lambda rng: "GOCSPX-" + chars(rng, URLSAFE, 27) + chars(rng, ALNUM, 1),
    "unicode": lambda rng: (
        rng.choice(["Müsli", "Grüße", "Señal", "Châteaux", "Żubr", "Пароход", "Весна", "Łódka"])
        + chars(rng, string.digits, 3, 4)
        + rng.choice(["", "!", "ß"])
    ),
}


def make_password(scene: Scene, argument: str) -> str:
    """A password of a style; styles before `|` are chosen from."""
    draw = PASSWORDS[scene.rng.choice(argument.split("|"))]
    while BAD.search(value := draw(scene.rng)):
        pass
    return value


def web_token(rng: random.Random, algorithm: str = "") -> str:
    """A signed web token."""
    sizes = {**SIGNATURES, "EdDSA": 64, "PS256": 256}
    name = algorithm or rng.choice(["HS256"] * 3 + ["HS512", "RS256", "ES256", "EdDSA", "PS256"])
    head: dict[str, object] = {"alg": name, "typ": "JWT"}
    if name in ("RS256", "ES256", "PS256"):
        head["kid"] = rng.randbytes(rng.choice([4, 10, 20])).hex()
    issued = rng.randint(1_560_000_000, 1_740_000_000)
    user = rng.choice(words.FIRST).lower()
    claims: dict[str, object] = rng.choice(
        [
            {"sub": str(rng.randint(10, 999_999)), "name": user.title()},
            {"user_id": rng.randint(1, 90_000), "username": user + str(rng.randint(1, 99))},
            {
                "iss": f"https://auth.{rng.choice(words.DOMAINS)}/",
                "sub": str(uuid.UUID(int=rng.getrandbits(128))),
            },
            {"id": rng.randbytes(12).hex(), "role": rng.choice(["admin", "user", "editor"])},
            {"email": f"{user}@{rng.choice(words.DOMAINS)}", "scope": "read write"},
        ]
    )
    claims |= {"iat": issued}
    if rng.random() < 0.8:
        claims["exp"] = issued + rng.choice([900, 3600, 86_400, 604_800, 2_592_000])
    parts = [json.dumps(one, separators=(",", ":")).encode() for one in (head, claims)]
    return ".".join(segment(part) for part in [*parts, rng.randbytes(sizes[name])])


def checked(prefix: str) -> Draw:
    """Tokens with a CRC-32 at their end."""

    def draw(rng: random.Random) -> str:
        body = chars(rng, ALNUM, 30)
        return prefix + body + crc_base62(body)

    return draw


def simple(prefix: str, alphabet: str, least: int, most: int = 0) -> Draw:
    """Tokens of a prefix and random characters, the last a letter or digit."""
    last = "0123456789" if alphabet.startswith("0123456789abcdef") else LOWER
    return lambda rng: (
        prefix + chars(rng, alphabet, least - 1, most - 1 if most else 0) + chars(rng, last, 1)
    )


HEX = "0123456789abcdef"
TOKENS: dict[str, Draw] = {
    "jwt": web_token,
    "hs": lambda rng: web_token(rng, "HS256"),
    "rs": lambda rng: web_token(rng, "RS256"),
    "es": lambda rng: web_token(rng, "ES256"),
    "ghp": checked("ghp_"),
    "gho": checked("gho_"),
    "ghs": checked("ghs_"),
    "npm": checked("npm_"),
    "pat": lambda rng: (
        "github_pat_11"
        + chars(rng, string.ascii_uppercase + string.digits, 20)
        + "_"
        + chars(rng, ALNUM, 59)
    ),
    "glpat": simple("glpat-", URLSAFE, 20),
    "glrt": simple("glrt-", URLSAFE, 20),
    "xoxb": lambda rng: (
        f"xoxb-{chars(rng, '123456789', 12)}-{chars(rng, '123456789', 13)}-{chars(rng, ALNUM, 24)}"
    ),
    "xoxp": lambda rng: (
        "xoxp-"
        + "-".join(chars(rng, "123456789", 12) for _ in range(3))
        + "-"
        + rng.randbytes(16).hex()
    ),
    "xapp": lambda rng: (
        f"xapp-1-A0{chars(rng, '123456789BCDEFGH', 9)}-"
        f"{chars(rng, '123456789', 13)}-{rng.randbytes(32).hex()}"
    ),
    "openai": lambda rng: "sk-" + chars(rng, ALNUM, 20) + "T3BlbkFJ" + chars(rng, ALNUM, 20),
    "proj": lambda rng: (
        "sk-proj-" + chars(rng, URLSAFE, 74) + "T3BlbkFJ" + chars(rng, URLSAFE, 73) + "A"
    ),
    "ant": lambda rng: "sk-ant-api03-" + chars(rng, URLSAFE, 93) + "AA",
    "aws": simple("", BASE64, 40),
    "stripe": simple("sk_live_", ALNUM, 24),
    "stripe99": simple("sk_live_51", ALNUM, 97),
    "rk": simple("rk_live_", ALNUM, 24),
    "sg": lambda rng: (
        f"SG.{chars(rng, URLSAFE, 22)}.{chars(rng, URLSAFE, 42)}{chars(rng, ALNUM, 1)}"
    ),
    "pypi": lambda rng: "pypi-AgEIcHlwaS5vcmc" + chars(rng, URLSAFE, 150, 160) + "A",
    "hf": simple("hf_", string.ascii_letters, 34),
    "ya29": simple("ya29.a0A", URLSAFE, 150, 200),
    "aiza": simple("AIzaSy", URLSAFE, 33),
    "dop": simple("dop_v1_", HEX, 64),
    "shpat": simple("shpat_", HEX, 32),
    "eaa": simple("EAAC", ALNUM, 160, 190),
    "hvs": simple("hvs.CAESI", URLSAFE, 86),
    "nrak": simple("NRAK-", string.ascii_uppercase + string.digits, 27),
    "pmak": lambda rng: f"PMAK-{rng.randbytes(12).hex()}-{rng.randbytes(17).hex()}",
    "dckr": simple("dckr_pat_", URLSAFE, 27),
    "discord": lambda rng: (
        segment(chars(rng, "123456789", 18).encode())
        + "."
        + chars(rng, URLSAFE, 6)
        + "."
        + chars(rng, URLSAFE, 37)
        + "k"
    ),
    "telegram": lambda rng: chars(rng, "123456789", 10) + ":AA" + chars(rng, URLSAFE, 32) + "k",
    "gsk": simple("gsk_", ALNUM, 52),
    "r8": simple("r8_", ALNUM, 37),
    "lin": simple("lin_api_", ALNUM, 40),
    "ntn": simple("ntn_", ALNUM, 46),
    "figd": simple("figd_", URLSAFE, 40),
    "airtable": lambda rng: "pat" + chars(rng, ALNUM, 14) + "." + rng.randbytes(32).hex(),
    "databricks": lambda rng: "dapi" + rng.randbytes(16).hex(),
    "atlassian": simple("ATATT3xFfGF0", URLSAFE, 172, 180),
    "asana": lambda rng: f"1/{chars(rng, '123456789', 16)}:{rng.randbytes(16).hex()}",
    "hex32": lambda rng: rng.randbytes(16).hex(),
    "hex40": lambda rng: rng.randbytes(20).hex(),
    "hex64": lambda rng: rng.randbytes(32).hex(),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "alnum32": simple("", ALNUM, 32),
    "alnum40": simple("", ALNUM, 40),
    "urlsafe43": lambda rng: "s" + chars(rng, URLSAFE, 41) + "w",
    "opaque": simple("", ALNUM, 24, 64),
    "b44": lambda rng: b64(rng, 32),
    "twitter": lambda rng: (
        "A" * 20
        + chars(rng, ALNUM, 18)
        + "%2B"
        + chars(rng, ALNUM, 30)
        + "%3D"
        + chars(rng, ALNUM, 43)
    ),
    "sanctum": lambda rng: f"{rng.randint(2, 980)}|{chars(rng, ALNUM, 40)}",
    "grafana": lambda rng: "glsa_" + chars(rng, ALNUM, 32) + "_" + rng.randbytes(4).hex(),
    "mailchimp": lambda rng: rng.randbytes(16).hex() + "-us" + str(rng.randint(2, 21)),
    "zoho": lambda rng: f"1000.{rng.randbytes(16).hex()}.{rng.randbytes(16).hex()}",
    "iqo": simple("IQoJb3JpZ2luX2Vj", BASE64, 300, 420),
    "mailgun": lambda rng: "key-" + rng.randbytes(16).hex(),
}


def token(rng: random.Random, names: str) -> str:
    """A token of one of the forms named."""
    draw = TOKENS[rng.choice(names.split("|"))]
    while BAD.search(value := draw(rng)):
        pass
    return value


def make_token(scene: Scene, argument: str) -> str:
    """A token of a form; forms before `|` are chosen from."""
    return token(scene.rng, argument)


def make_basic(scene: Scene, argument: str) -> str:
    """Base64 of user and password; the argument names the password's style."""
    style = argument or scene.rng.choice(["plain", "word", "sym", "strong", "hex32"])
    user = scene.rng.choice([make_user, make_email])(scene, "")
    while BAD.search(
        value := base64.b64encode(f"{user}:{make_password(scene, style)}".encode()).decode()
    ):
        pass
    return value


def cut(rng: random.Random, text: str, how: str) -> list[str]:
    """Parts of 12 characters and more: so many, at dots, or of a width (`w60`)."""
    if how == "dots":
        head, claims, signature = text.split(".")
        return [head + ".", claims + ".", signature]
    width = int(how[1:]) if how[0] == "w" else 0
    if width and len(text) >= width + 12:
        while 0 < len(text) % width < 12:
            width -= 1
        return [text[at : at + width] for at in range(0, len(text), width)]
    count = 2 if width else int(how)
    spare = len(text) - 12 * count
    ends = sorted(rng.randint(0, spare) for _ in range(count - 1))
    places = [0, *(end + 12 * at for at, end in enumerate(ends, 1)), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


ESCAPES = {"n": "\n", "t": "\t", "g": ">", "l": "<", "a": "@", "r": "\r", "\\": "\\"}


def make_broken(scene: Scene, argument: str) -> str:
    r"""A token in parts, each marked: `FORM;HOW;GLUE` with `\n`, `\g` (>), `\l` (<) in the glue."""
    names, how, glue = argument.split(";", 2)
    parts = cut(scene.rng, token(scene.rng, names), how)
    joint = re.sub(r"\\(.)", lambda match: ESCAPES[match[1]], glue)
    return joint.join(f"\x02{part}\x03" for part in parts)


def make_lines(scene: Scene, argument: str) -> str:
    r"""Characters without worth over lines: `ALPHABET=START;COUNT;WIDTH;GLUE`."""
    name, count, width, glue = argument.split(";", 3)
    name, _, start = name.partition("=")
    alphabet = {"hex": HEX, "b64": BASE64, "alnum": ALNUM, "url": URLSAFE, "HEX": HEX.upper()}[name]
    text = start + chars(scene.rng, alphabet, int(count))
    joint = re.sub(r"\\(.)", lambda match: ESCAPES[match[1]], glue)
    return joint.join(text[at : at + int(width)] for at in range(0, len(text), int(width)))


def make_user(scene: Scene, _: str) -> str:
    """An account's name."""
    rng = scene.rng
    first, last = rng.choice(words.FIRST).lower(), rng.choice(words.LAST).lower()
    form = rng.randrange(5)
    return (
        [first + "." + last, first[0] + last, f"{first}{rng.randint(2, 99)}"][form]
        if form < 3
        else rng.choice(words.USERS)
    )


def make_service(scene: Scene, _: str) -> str:
    """A database's or service's account."""
    return scene.rng.choice(words.USERS)


def make_email(scene: Scene, _: str) -> str:
    """An address of a person."""
    rng = scene.rng
    return f"{rng.choice(words.FIRST)}.{rng.choice(words.LAST)}@{rng.choice(words.DOMAINS)}".lower()


def make_host(scene: Scene, _: str) -> str:
    """A machine of a firm, or of a cluster."""
    rng = scene.rng
    name = rng.choice(words.HOSTS)
    return (
        name
        + "."
        + rng.choice([*words.DOMAINS, "internal", "svc.cluster.local", "lan", "prod.local"])
    )


def make_private(scene: Scene, _: str) -> str:
    """An address of a private network."""
    rng = scene.rng
    return rng.choice(["10.{}.{}.{}", "192.168.{1}.{2}", "172.20.{1}.{2}"]).format(
        *(rng.randint(0, 240), rng.randint(0, 240), rng.randint(2, 250))
    )


def make_date(scene: Scene, argument: str) -> str:
    """A date in a format of strftime."""
    when = datetime.fromtimestamp(scene.rng.randint(1_400_000_000, 1_740_000_000), UTC)
    return when.strftime(argument or "%Y-%m-%d")


def make_number(scene: Scene, argument: str) -> str:
    """A whole number of a range."""
    least, most = argument.split("-")
    return str(scene.rng.randint(int(least), int(most)))


def make_version(scene: Scene, _: str) -> str:
    """A version of software."""
    return f"{scene.rng.randint(0, 12)}.{scene.rng.randint(0, 20)}.{scene.rng.randint(0, 30)}"


def make_blank_uuid(scene: Scene, _: str) -> str:
    """An id that is no secret."""
    return str(uuid.UUID(int=scene.rng.getrandbits(128), version=4))


def chosen(values: list[str]) -> Maker:
    """A maker that chooses from a list."""
    return lambda scene, _: scene.rng.choice(values)


MAKERS: dict[str, Maker] = {
    "secrets_pw": make_password,
    "secrets_tok": make_token,
    "secrets_basic": make_basic,
    "secrets_brk": make_broken,
    "secrets_lines": make_lines,
    "secrets_user": make_user,
    "secrets_svc": make_service,
    "secrets_email": make_email,
    "secrets_host": make_host,
    "secrets_ip": make_private,
    "secrets_date": make_date,
    "secrets_n": make_number,
    "secrets_ver": make_version,
    "secrets_uuid": make_blank_uuid,
    "secrets_first": chosen(words.FIRST),
    "secrets_full": lambda scene, _: (
        f"{scene.rng.choice(words.FIRST)} {scene.rng.choice(words.LAST)}"
    ),
    "secrets_db": chosen(words.DATABASES),
    "secrets_dom": chosen(words.DOMAINS),
    "secrets_app": chosen(words.APPS),
    "secrets_co": chosen(words.COMPANIES),
    "secrets_city": chosen(words.CITIES),
    "secrets_ssid": chosen(words.SSIDS),
    "secrets_pick": lambda scene, argument: scene.rng.choice(argument.split("|")),
    "secrets_hex": lambda scene, argument: scene.rng.randbytes(int(argument)).hex(),
    "secrets_b64": lambda scene, argument: b64(scene.rng, int(argument)),
    "secrets_alnum": lambda scene, argument: chars(scene.rng, ALNUM, int(argument)),
}
