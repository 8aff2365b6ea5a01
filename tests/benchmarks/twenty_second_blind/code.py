"""Makers of values for the texts of one writer."""

from __future__ import annotations

import random
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.twenty_second_blind.code_words import (
    APPS,
    DOMAINS,
    FIRST,
    LAST,
    SSIDS,
    TLDS,
    USERS,
    WORDS,
)

ALNUM = string.ascii_letters + string.digits
CRYPT = "./" + string.digits + string.ascii_letters
QUOTED, BARE = "!@#%&*+-=?_^~", "!@_-+"
"""Marks of values between quotes, and of those that stand free in a command or a file."""


def _pick(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def _digits(rng: random.Random) -> str:
    year = str(rng.randrange(1975, 2026))
    return rng.choice((year, year, str(rng.randrange(100, 1000)), str(rng.randrange(1000, 10000))))


def _word(rng: random.Random, marks: str) -> str:
    word = rng.choice(WORDS)
    if len(word) < 5 or rng.random() < 0.3:
        word += rng.choice(WORDS)
    return (word.capitalize() if rng.random() < 0.3 else word) + _digits(rng)


def _ruled(rng: random.Random, marks: str) -> str:
    word, mark, digits = rng.choice(WORDS).capitalize(), rng.choice(marks), _digits(rng)
    return rng.choice((f"{word}{mark}{digits}", f"{word}{digits}{mark}", f"{word}_{digits}{mark}"))


def _leet(rng: random.Random, marks: str) -> str:
    word = rng.choice(WORDS) + rng.choice(WORDS)
    return word.translate(str.maketrans("aeio", "4310")) + str(rng.randrange(10, 100))


def _joined(rng: random.Random, marks: str) -> str:
    return "".join(rng.sample(WORDS, rng.choice((2, 2, 3))))


def _mixed(rng: random.Random, marks: str) -> str:
    must = [rng.choice(part) for part in (string.ascii_letters, string.digits)]
    rest = list(must[1] + _pick(rng, ALNUM, rng.randrange(6, 15)))
    rng.shuffle(rest)
    return must[0] + "".join(rest)


def _marked(rng: random.Random, marks: str) -> str:
    inner = list(_pick(rng, ALNUM, rng.randrange(6, 13)) + _pick(rng, marks, rng.randrange(1, 4)))
    rng.shuffle(inner)
    return rng.choice(ALNUM) + "".join(inner) + rng.choice(ALNUM)


def _passphrase(rng: random.Random, marks: str) -> str:
    return "-".join(rng.sample(WORDS, rng.randrange(3, 5)))


ALL = (_word, _word, _word, _ruled, _ruled, _leet, _mixed, _mixed, _marked, _joined)
STYLES = {
    "": (ALL, QUOTED),
    "bare": (ALL, BARE),
    "plain": ((_word, _word, _mixed, _mixed, _leet, _joined), ""),
    "easy": ((_word, _word, _word, _joined), ""),
    "strong": ((_mixed, _marked, _marked, _ruled), QUOTED),
    "special": ((_marked, _ruled), QUOTED),
    "strongbare": ((_mixed, _marked, _ruled), BARE),
    "wifi": ((_word, _joined, _mixed, _leet, _ruled, _passphrase), QUOTED),
}


def _password(scene: Scene, argument: str) -> str:
    styles, marks = STYLES[argument]
    value = ""
    while len(value) < 8:
        value = scene.rng.choice(styles)(scene.rng, marks)
    return value


def _port(scene: Scene, argument: str) -> str:
    return str(scene.rng.randrange(1024, 65536))


def _key(scene: Scene, argument: str) -> str:
    return _pick(scene.rng, ALNUM, int(argument or scene.rng.randrange(24, 49)))


def _hex(scene: Scene, argument: str) -> str:
    return _pick(scene.rng, string.hexdigits[:16], int(argument))


def _base64(scene: Scene, argument: str) -> str:
    return _pick(scene.rng, ALNUM + "+/", 86) + "=="


def _crypt(scene: Scene, argument: str) -> str:
    if argument == "bcrypt":
        return "$2b$10$" + _pick(scene.rng, CRYPT, 53)
    return f"$6${_pick(scene.rng, CRYPT, 16)}${_pick(scene.rng, CRYPT, 86)}"


def _number(scene: Scene, argument: str) -> str:
    count = int(argument)
    return str(scene.rng.randrange(10 ** (count - 1), 10**count))


def _pin(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.randrange(100, 1000)}-{rng.randrange(10, 100)}-{rng.randrange(100, 1000)}"


def _uuid(scene: Scene, argument: str) -> str:
    return "-".join(_pick(scene.rng, string.hexdigits[:16], count) for count in (8, 4, 4, 4, 12))


def _user(scene: Scene, argument: str) -> str:
    number = str(scene.rng.randrange(2, 99)) if scene.rng.random() < 0.3 else ""
    return scene.rng.choice(USERS) + number


def _app(scene: Scene, argument: str) -> str:
    return scene.rng.choice(APPS)


def _first(scene: Scene, argument: str) -> str:
    return scene.rng.choice(FIRST)


def _name(scene: Scene, argument: str) -> str:
    return f"{scene.rng.choice(FIRST)} {scene.rng.choice(LAST)}"


def _domain(scene: Scene, argument: str) -> str:
    return scene.once("domain", lambda: f"{scene.rng.choice(DOMAINS)}.{scene.rng.choice(TLDS)}")


def _email(scene: Scene, argument: str) -> str:
    local = argument or scene.rng.choice(FIRST).lower()
    return f"{local}@{_domain(scene, '')}"


def _host(scene: Scene, argument: str) -> str:
    rng = scene.rng
    role = rng.choice(("db", "web", "app", "node", "srv", "nas", "mail", "ci"))
    return (
        f"{role}{rng.randrange(1, 40)}.{rng.choice(DOMAINS)}.{rng.choice(('lan', 'local', 'int'))}"
    )


def _ip(scene: Scene, argument: str) -> str:
    rng = scene.rng
    net = rng.choice(("192.168", "10.10", "172.16", "10.0"))
    return f"{net}.{rng.randrange(0, 60)}.{rng.randrange(2, 254)}"


def _ssid(scene: Scene, argument: str) -> str:
    return scene.rng.choice(SSIDS) + _pick(scene.rng, string.hexdigits[:16].upper(), 4)


def _version(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.randrange(1, 9)}.{rng.randrange(0, 20)}.{rng.randrange(0, 15)}"


def _time(scene: Scene, argument: str) -> str:
    rng = scene.rng
    day = f"{rng.randrange(2015, 2026)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    return f"{day} {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


MAKERS: dict[str, Maker] = {
    "code_pw": _password,
    "code_port": _port,
    "code_key": _key,
    "code_hex": _hex,
    "code_b64": _base64,
    "code_crypt": _crypt,
    "code_num": _number,
    "code_pin": _pin,
    "code_uuid": _uuid,
    "code_user": _user,
    "code_app": _app,
    "code_first": _first,
    "code_name": _name,
    "code_domain": _domain,
    "code_email": _email,
    "code_host": _host,
    "code_ip": _ip,
    "code_ssid": _ssid,
    "code_version": _version,
    "code_time": _time,
}
