"""What draws the slots of connection strings and passwords of the twentieth blind set."""

from __future__ import annotations

import base64
import string
from urllib.parse import quote

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.twentieth_blind import logins_words as words

_ALNUM = string.ascii_letters + string.digits
_DJANGO = "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)"
_SYMBOLS = {"": "!#%&*+-=?@^_~$", "plain": "-_!", "url": "-._~!*$^+", "ado": "!#%&*+-?@^_~$"}
"""Signs inside a password by where it stands: quoted, bare in a text, in a URL, before a `;`."""


def _draw(scene: Scene, alphabet: str, count: int) -> str:
    return "".join(scene.rng.choices(alphabet, k=count))


def _pick(scene: Scene, listed: str) -> str:
    return scene.rng.choice(listed.split())


def _digits(scene: Scene) -> str:
    rng = scene.rng
    return rng.choice(
        [
            str(rng.randint(1965, 2025)),
            str(rng.randint(10, 99)),
            str(rng.randint(100, 999)),
            f"{rng.randint(0, 9999):04}",
        ]
    )


def _strong(scene: Scene, signs: str) -> str:
    """A password of a generator: letters, digits and one to four signs, not at its ends."""
    rng = scene.rng
    size = rng.randint(10, 22)
    text = [rng.choice(_ALNUM) for _ in range(size)]
    for at in rng.sample(range(1, size - 1), rng.randint(1, 4)):
        text[at] = rng.choice(signs)
    text[rng.choice([0, size - 1])] = rng.choice(string.digits)
    return "".join(text).replace("..", ".7")


def _chosen(scene: Scene, signs: str, language: str = "en") -> str:
    """A password that a person chose: words of a language with digits and perhaps a sign."""
    rng = scene.rng
    first, second = rng.sample(words.WORDS[language].split(), 2)
    first = rng.choice([first.lower(), first.title(), first.title()])
    sign = rng.choice([*"!#@*$", ""]) if len(signs) > 5 else ""
    sign = sign if sign in signs else "!"
    leet = first.translate(str.maketrans("aeio", "4310"))
    return rng.choice(
        [
            f"{first}{_digits(scene)}",
            f"{first}{sign or '_'}{_digits(scene)}",
            f"{first}{second.title()}{rng.randint(1, 99)}",
            f"{first}{rng.choice('-_')}{second.lower()}{_digits(scene)}",
            f"{leet}{rng.choice('-_')}{_digits(scene)}",
            f"{rng.choice(_ALNUM[:26])}{rng.randint(2, 9)}{first}{_digits(scene)}",
        ]
    )


def _phrase(scene: Scene, between: str) -> str:
    return between.join(scene.rng.sample(words.PHRASE.split(), scene.rng.randint(4, 6)))


def password(scene: Scene, style: str) -> str:
    """A password: `plain` has no sign that ends it in a bare text, `url` stands in a URL.

    Other styles are the kind of password (`strong`, `phrase`, `hyphen`, `alnum`, ...) or the
    language of its words.
    """
    rng = scene.rng
    if style in words.WORDS:
        return _chosen(scene, "-_", style)
    if style == "cyr":
        return f"{_pick(scene, words.CYRILLIC)}{_digits(scene)}"
    if style == "phrase":
        return _phrase(scene, " ")
    if style == "hyphen":
        return _phrase(scene, "-") + str(rng.randint(2, 99))
    if style == "alnum":
        return (
            rng.choice(_ALNUM[:52])
            + _draw(scene, _ALNUM, rng.randint(9, 24))
            + str(rng.randint(0, 9))
        )
    if style == "strong":
        return _strong(scene, _SYMBOLS[""])
    if style == "bang":
        made = _chosen(scene, "-_")
        return rng.choice([made + rng.choice("!?*#"), rng.choice("!#@*") + made])
    if style == "pct":
        raw = _strong(scene, "@#/?:&=!$+")
        return quote(raw, safe="!$")
    signs = _SYMBOLS[style]
    if style == "url" and rng.random() < 0.15:
        return password(scene, "pct")
    if style == "" and rng.random() < 0.15:
        return password(scene, "bang")
    chance = rng.random()
    if chance < 0.35:
        return _strong(scene, signs)
    if chance < 0.7:
        return _chosen(scene, signs)
    return password(scene, "hyphen" if chance > 0.95 else "alnum")


def key(scene: Scene, style: str) -> str:
    """A secret of an application: `hexN`, `b64_N` (bytes), `url_N` (bytes), `alnumN`, ..."""
    rng = scene.rng
    if style == "django":
        return _draw(scene, _DJANGO, 50)
    if style == "uuid":
        raw = _draw(scene, "0123456789abcdef", 30)
        return f"{raw[:8]}-{raw[8:12]}-4{raw[12:15]}-a{raw[15:18]}-{raw[18:30]}"
    if style.startswith("hex"):
        return _draw(scene, "0123456789abcdef", int(style[3:]))
    if style.startswith("b64_"):
        return base64.b64encode(rng.randbytes(int(style[4:]))).decode()
    if style.startswith("url_"):
        return base64.urlsafe_b64encode(rng.randbytes(int(style[4:]))).decode().rstrip("=")
    if style == "azure":  # a client secret of Entra ID: `Q~` is its mark
        tail = _draw(scene, _ALNUM + "_-.", 33).replace("..", ".a")
        return f"{_draw(scene, _ALNUM, 3)}8Q~{tail}z"
    if style == "app":
        return " ".join(_draw(scene, string.ascii_lowercase, 4) for _ in range(4))
    if style == "five":
        return "-".join(_draw(scene, "23456789abcdefghjkmnpqrstuvwxyz", 5) for _ in range(2))
    if style == "recovery":
        return "-".join(_draw(scene, string.digits, 6) for _ in range(8))
    if style == "base32":
        return _draw(scene, string.ascii_uppercase + "234567", 32)
    if style == "router":
        return str(rng.randint(2, 9)) + _draw(scene, string.ascii_uppercase + "23456789", 11)
    return _draw(scene, _ALNUM, int(style.removeprefix("alnum")))


def pin(scene: Scene, size: str) -> str:
    """A number of so many digits that is no run of one digit."""
    count = int(size or 6)
    return str(scene.rng.randint(1, 9)) + _draw(scene, string.digits, count - 1)


def host(scene: Scene, style: str) -> str:
    """The name of a machine: public (``), of an intranet (`in`) or a private address (`ip`)."""
    rng = scene.rng
    if style == "ip":
        return rng.choice(["10.{}.{}.{}", "192.168.{1}.{2}"]).format(
            *(rng.randint(1, 250) for _ in range(3))
        )
    if style == "in":
        return f"{_pick(scene, words.HOSTS)}.{rng.choice(['internal', 'lan', 'corp', 'local'])}"
    domain = f"{_pick(scene, words.COMPANIES)}.{_pick(scene, words.TLDS)}"
    return domain if style == "bare" else f"{_pick(scene, words.HOSTS)}.{domain}"


def number(scene: Scene, size: str) -> str:
    """A number of so many digits."""
    return pin(scene, size or "4")


def hexes(scene: Scene, size: str) -> str:
    """Hexadecimal digits, as of a hash."""
    return _draw(scene, "0123456789abcdef", int(size or 12))


def date(scene: Scene, style: str) -> str:
    """A date, with the time if `time`."""
    rng = scene.rng
    day = f"{rng.randint(2014, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return f"{day} {clock}" if style == "time" else day


def _listed(listed: str) -> Maker:
    return lambda scene, _: _pick(scene, listed)


MAKERS: dict[str, Maker] = {
    "logins_pw": password,
    "logins_key": key,
    "logins_pin": pin,
    "logins_h": host,
    "logins_n": number,
    "logins_hex": hexes,
    "logins_date": date,
    "logins_u": _listed(words.USERS),
    "logins_co": _listed(words.COMPANIES),
    "logins_db": _listed(words.DATABASES),
    "logins_pr": _listed(words.PROJECTS),
    "logins_name": _listed(words.NAMES),
    "logins_city": _listed(words.CITIES),
}
