"""Makers of passwords, connection strings, bearer tokens and broken tokens of the fifteenth set.

Every secret is drawn at random; none is a credential that somebody uses.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, bech32, crc_base62, segment
from tests.benchmarks.fifteenth_blind.secrets_words import (
    ADJECTIVES,
    DATABASES,
    FIRST_NAMES,
    FORMS,
    NOUNS,
    PASSWORD_WORDS,
    ROLES,
    TOP_LEVELS,
)

_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
    "alpha": string.ascii_letters,
    "hexup": "0123456789ABCDEF",
    "hex": "0123456789abcdef",
    "dig": string.digits,
    "up": string.ascii_uppercase + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "b32": string.ascii_uppercase + "234567",
}
_NAMES = "|".join(_ALPHABETS)
_SYMBOLS = "!#*_-.+?^~@%="
_URL_SYMBOLS = ("-", "_", ".", "~", "!", "*", "%40", "%23", "%21", "%2B", "%3F", "%5E", "%24")
_SHORTEST_PART = 12
"""Characters of the shortest part of a broken token."""
_NOT_AT_A_CUT = "-._=+/"
"""Characters that no part starts or ends with, so that nobody disputes the ends of its label."""


def _draw(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choices(_ALPHABETS[alphabet], k=count))


def _mixed(rng: random.Random, count: int) -> str:
    """Letters and digits with at least one of each case and a digit; the ends are alphanumeric."""
    while True:
        text = _draw(rng, "alnum", count)
        if re.search(r"[a-z]", text) and re.search(r"[A-Z]", text) and re.search(r"\d", text):
            return text


def _chosen(rng: random.Random) -> str:
    """A password as a person chooses it, without a symbol at its end."""
    word, other = rng.sample(PASSWORD_WORDS, 2)
    number = str(rng.choice((rng.randint(11, 9999), rng.randint(1961, 2026))))
    symbol = rng.choice("!#@*_-.+")
    leet = word.replace("a", "@", 1).replace("o", "0", 1).capitalize()
    return rng.choice(
        (
            word + number,
            word.capitalize() + number,
            word.capitalize() + symbol + number,
            word + other.capitalize() + number,
            leet + symbol + number,
            word.capitalize() + symbol + other + number,
            number + symbol + word.capitalize() + other,
            word.upper() + symbol + other + number,
        )
    )


def _generated(rng: random.Random, symbols: tuple[str, ...]) -> str:
    """A password as a program generates it: symbols inside, alphanumeric ends."""
    letters = list(_mixed(rng, rng.randint(10, 20)))
    for _ in range(rng.randint(1, 3)):
        letters[rng.randint(1, len(letters) - 2)] = rng.choice(symbols)
    return "".join(letters)


def _password(scene: Scene, argument: str) -> str:
    """A password of a person or program; `end` lets it end with a symbol, as within quotes."""
    rng = scene.rng
    text = _chosen(rng) if rng.random() < 0.5 else _generated(rng, tuple(_SYMBOLS))
    return text + rng.choice("!#*?") if argument == "end" and rng.random() < 0.4 else text


def _in_url(scene: Scene, _: str) -> str:
    """A password as it stands in an address: reserved characters are percent-encoded."""
    rng = scene.rng
    kind = rng.random()
    if kind < 0.35:
        return _mixed(rng, rng.randint(9, 24))
    if kind < 0.7:
        return _generated(rng, _URL_SYMBOLS)
    chosen = _chosen(rng)
    for symbol in "@#+":
        chosen = chosen.replace(symbol, f"%{ord(symbol):02X}")
    return chosen


def _random(alphabet: str) -> Maker:
    """Draws so many characters as the argument states."""
    return lambda scene, argument: _draw(scene.rng, alphabet, int(argument))


def _alphanumeric(scene: Scene, argument: str) -> str:
    """Letters and digits, as many as the argument states: a length or a range of lengths."""
    shortest, _, longest = argument.partition("-")
    return _mixed(scene.rng, scene.rng.randint(int(shortest), int(longest or shortest)))


def _base64(scene: Scene, argument: str) -> str:
    return base64.b64encode(scene.rng.randbytes(int(argument))).decode()


def _base64_url(scene: Scene, argument: str) -> str:
    while True:
        text = segment(scene.rng.randbytes(int(argument)))
        if text[0] not in _NOT_AT_A_CUT and text[-1] not in _NOT_AT_A_CUT:
            return text


def _phrase(scene: Scene, argument: str) -> str:
    """A passphrase of so many words, joined by hyphens."""
    return "-".join(scene.rng.sample(PASSWORD_WORDS, int(argument)))


def _basic(scene: Scene, _: str) -> str:
    """Credentials of HTTP's Basic scheme."""
    return base64.b64encode(f"{_user(scene, '')}:{_password(scene, '')}".encode()).decode()


def _uuid(scene: Scene, _: str) -> str:
    return str(uuid.UUID(bytes=scene.rng.randbytes(16), version=4))


def _number(scene: Scene, argument: str) -> str:
    low, high = map(int, argument.split("-"))
    return str(scene.rng.randint(low, high))


def _date(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(2015, 2026)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _time(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _user(scene: Scene, _: str) -> str:
    rng = scene.rng
    name = rng.choice(FIRST_NAMES)
    return rng.choice((rng.choice(ROLES), name, f"{name}{rng.randint(1, 99)}", f"svc_{name}"))


def _first_name(scene: Scene, _: str) -> str:
    return scene.rng.choice(FIRST_NAMES).capitalize()


def _app(scene: Scene, _: str) -> str:
    return f"{scene.rng.choice(ADJECTIVES)}-{scene.rng.choice(NOUNS)}"


def _domain(scene: Scene, _: str) -> str:
    rng = scene.rng
    name = rng.choice(ADJECTIVES) + rng.choice(NOUNS)
    return f"{name}.{rng.choice(TOP_LEVELS)}"


def _host(scene: Scene, _: str) -> str:
    rng = scene.rng
    role = rng.choice(("db", "srv", "node", "prod", "data", "app", "int", "mx", "lab"))
    return f"{role}{rng.randint(1, 24)}.{_domain(scene, '')}"


def _database(scene: Scene, _: str) -> str:
    return scene.rng.choice(DATABASES)


def make_jwt(rng: random.Random, algorithm: str) -> str:
    """A signed web token of a random person, with a random signature of the right length."""
    start = rng.randint(1_560_000_000, 1_790_000_000)
    claims = {
        "sub": rng.choice((str(rng.randint(10**5, 10**9)), rng.choice(FIRST_NAMES))),
        rng.choice(("scope", "role", "tenant", "client_id")): rng.choice(NOUNS),
        "iat": start,
        "exp": start + rng.choice((900, 3600, 86_400, 604_800)),
    }
    head = {"alg": algorithm, "typ": "JWT"}
    parts = [json.dumps(one, separators=(",", ":")).encode() for one in (head, claims)]
    while True:
        signature = segment(rng.randbytes(SIGNATURES[algorithm]))
        if signature[-1] not in _NOT_AT_A_CUT:
            return ".".join([*map(segment, parts), signature])


def _jwt(scene: Scene, argument: str) -> str:
    return make_jwt(scene.rng, argument or scene.rng.choice(("HS256", "ES256", "HS256", "RS256")))


def make_token(rng: random.Random, name: str) -> str:
    """A token of a service's form; KeyError for an unknown name."""
    if name in ("jwt", "rsjwt"):
        return make_jwt(rng, "HS256" if name == "jwt" else "RS256")
    if name in ("ghp", "gho", "ghs", "npm"):
        body = _draw(rng, "alnum", 30)
        return f"{name}_{body}{crc_base62(body)}"
    if name == "age":
        return bech32("age-secret-key-", rng.randbytes(32)).upper()
    if name == "discord":
        account = segment(str(rng.randint(10**18, 10**19 - 1)).encode())
        return f"{account}.{_draw(rng, 'alnum', 6)}.{_mixed(rng, 38)}"
    while True:
        text = ""
        for part in FORMS[name].split():
            drawn = re.fullmatch(rf"({_NAMES})(\d+)", part)
            text += _draw(rng, drawn[1], int(drawn[2])) if drawn else part
        if text[-1] not in _NOT_AT_A_CUT or FORMS[name].endswith("="):
            return text


def _token(scene: Scene, argument: str) -> str:
    return make_token(scene.rng, argument)


def cut(rng: random.Random, token: str, count: int, equal: bool) -> list[str]:
    """So many parts of a token; `equal` are lines of one width, the last one shorter."""
    if equal:
        width = -(-len(token) // count)
        while len(token) - width * (count - 1) < _SHORTEST_PART:
            width -= 1
        ends = [width * at for at in range(1, count)]
    else:
        size = len(token) / count
        slack = max(0, min(int(size / 4), int(size) - _SHORTEST_PART - 1) // 2)
        ends = [round(size * at) + rng.randint(-slack, slack) for at in range(1, count)]
        for at, end in enumerate(ends):
            near = sorted(range(end - 4, end + 5), key=lambda one, end=end: abs(one - end))
            ends[at] = next(
                (one for one in near if not set(token[one - 1 : one + 1]) & set(_NOT_AT_A_CUT)), end
            )
    return [token[start:end] for start, end in zip([0, *ends], [*ends, len(token)], strict=True)]


def _part(scene: Scene, argument: str) -> str:
    """A part of the text's token: `ghp 1/2` is the first of two; `ghp 1/2w` has equal widths."""
    name, place = argument.split()
    equal = place.endswith("w")
    at, count = map(int, place.rstrip("w").split("/"))
    token = scene.once(f"whole {name}", lambda: _cuttable(scene.rng, name, count, equal))
    state = random.Random(token)  # the same cuts for each part of the text
    return cut(state, token, count, equal)[at - 1]


def _cuttable(rng: random.Random, name: str, count: int, equal: bool) -> str:
    """A token whose parts are long enough and start and end with letters or digits."""
    while True:
        token = make_token(rng, name)
        parts = cut(random.Random(token), token, count, equal)
        ends = "".join(part[0] + part[-1] for part in parts)[1:-1]
        if all(len(part) >= _SHORTEST_PART for part in parts) and not set(ends) & set(
            _NOT_AT_A_CUT
        ):
            return token


MAKERS: dict[str, Maker] = {
    "secrets_pw": _password,
    "secrets_url": _in_url,
    "secrets_rnd": _alphanumeric,
    "secrets_hex": _random("hex"),
    "secrets_dig": _random("dig"),
    "secrets_up": _random("up"),
    "secrets_low": _random("low"),
    "secrets_b32": _random("b32"),
    "secrets_b64": _base64,
    "secrets_b64u": _base64_url,
    "secrets_phrase": _phrase,
    "secrets_basic": _basic,
    "secrets_uuid": _uuid,
    "secrets_n": _number,
    "secrets_date": _date,
    "secrets_time": _time,
    "secrets_user": _user,
    "secrets_name": _first_name,
    "secrets_app": _app,
    "secrets_domain": _domain,
    "secrets_host": _host,
    "secrets_db": _database,
    "secrets_jwt": _jwt,
    "secrets_tok": _token,
    "secrets_part": _part,
}
