"""Makers of passwords and secrets of applications, and of what stands around them."""

from __future__ import annotations

import base64
import re
import string
import uuid
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.twenty_first_blind import passwords_words as words

_ALNUM = string.ascii_letters + string.digits
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BASE32 = string.ascii_uppercase + "234567"
_DJANGO = string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)"
_BCRYPT = "./" + _ALNUM
_UNLIKELY = re.compile(r"(?i)example|placeholder|x{4}|\*\*|\.\.|0{6}|changeme|test|--|__|pass")
_LEET = str.maketrans("aeios", "43105")


def _text(rng: Random, alphabet: str, size: int) -> str:
    return "".join(rng.choices(alphabet, k=size))


def _strong(rng: Random, symbols: str, last: str) -> str:
    size = rng.choice((8, 9, 10, 10, 11, 12, 12, 12, 14, 16, 16, 18, 20, 24))
    middle = [rng.choice(_ALNUM) for _ in range(size - 5)]
    middle += rng.choices(symbols, k=rng.choice((1, 1, 2, 3)))
    middle += [rng.choice(string.digits), rng.choice(string.ascii_uppercase)]
    rng.shuffle(middle)
    return rng.choice(_ALNUM) + "".join(middle) + rng.choice(last)


def _alnum(rng: Random) -> str:
    size = rng.choice((8, 10, 12, 12, 14, 16, 16, 20, 24, 32))
    alphabet = rng.choice((_ALNUM, _ALNUM, _ALNUM, string.ascii_lowercase + string.digits))
    letters = string.ascii_letters if alphabet is _ALNUM else string.ascii_lowercase
    middle = _text(rng, alphabet, size - 3) + rng.choice(string.digits)
    return rng.choice(letters) + middle + rng.choice(letters)


def _chosen(rng: Random, language: str, marks: str) -> str:
    """A word with digits, as people make them up."""
    pool = words.WORDS[language or rng.choice(("en", "en", "en", *words.WORDS))]
    one, two = rng.sample(pool, 2)
    year = str(rng.choice((rng.randint(1958, 2009), rng.randint(2014, 2025))))
    number = str(rng.randint(10, 9999))
    mark = rng.choice(marks)
    forms = (
        one.capitalize() + year + mark,
        one.capitalize() + mark + number,
        one + number,
        one + two.capitalize() + number,
        one.capitalize() + two.capitalize() + mark + str(rng.randint(1, 99)),
        f"{one.capitalize()}-{two.capitalize()}-{number}",
        rng.choice(words.FIRST).capitalize() + year + mark,
        one.capitalize().translate(_LEET) + mark + number,
        number[:2] + one.capitalize() + mark + two[:3] + number[-2:],
        one[0].upper() + mark + one[1:].translate(_LEET) + year[-2:],
        f"{one}_{year}",
    )
    return rng.choice(forms)


def _phrase(rng: Random, joint: str = "") -> str:
    count = rng.choice((4, 4, 5, 6)) if joint != " " else rng.choice((4, 5, 6, 7))
    chosen = rng.sample(words.WORDS["en"], count)
    joint = joint or rng.choice("---._")
    if rng.random() < 0.3 and joint != " ":
        chosen = [one.capitalize() for one in chosen]
    if rng.random() < 0.3:
        chosen[-1] += str(rng.randint(2, 98))
    return joint.join(chosen)


def _password(rng: Random, style: str) -> str:
    name, _, language = style.partition("-")
    if name in ("", "mix"):  # Between quotes, or alone at the end of a line.
        name = rng.choice(("strong", "strong", "strong", "word", "word", "alnum", "safe", "phrase"))
    if name in ("bare", "prose"):  # Ends where a sentence's mark may follow.
        name = rng.choice(("plain", "plain", "safe", "plainword", "plainword", "alnum"))
    if name == "strong":
        return _strong(rng, "!@#%^*+-_=?~.", _ALNUM + "!#*?")
    if name == "raw":  # Also with what shells and XML take as their own.
        return _strong(rng, "!@#$%&*()[];,:|/", _ALNUM + "!#$%&*")
    if name == "plain":
        return _strong(rng, "!@#%*+-_=^", _ALNUM)
    if name == "safe":
        return _strong(rng, "-_.+", _ALNUM)
    if name == "alnum":
        return _alnum(rng)
    if name == "word":
        return _chosen(rng, language, "!!!#*?@_-")
    if name == "plainword":
        made = _chosen(rng, language, "@#_-.!")
        return made if made[-1].isalnum() else made + rng.choice(string.digits)
    if name == "phrase":
        return _phrase(rng)
    if name == "spaced":
        return _phrase(rng, " ")
    if name == "cyrillic":
        word = rng.choice(words.CYRILLIC)
        return rng.choice((word, word.capitalize())) + str(rng.randint(100, 2025))
    raise ValueError(f"no style of passwords: {style}")


def make_pw(scene: Scene, style: str) -> str:
    """A password of a style; `word-de` takes a word of a language."""
    while True:
        made = _password(scene.rng, style)
        if not _UNLIKELY.search(made) and len(made) >= 7:
            return made


def make_hex(scene: Scene, size: str) -> str:
    """So many hexadecimal digits."""
    return f"{scene.rng.getrandbits(4 * int(size or 64)):0{int(size or 64)}x}"


def make_b64(scene: Scene, size: str) -> str:
    """Base64 of so many bytes."""
    return base64.b64encode(scene.rng.randbytes(int(size or 32))).decode()


def make_b64url(scene: Scene, size: str) -> str:
    """Base64 for URLs of so many bytes; it begins and ends with a letter."""
    body = base64.urlsafe_b64encode(scene.rng.randbytes(int(size or 32))).decode().rstrip("=")
    return "k" + body[1:-1].replace("--", "Zq").replace("__", "x7") + "Q"


def make_alnum(scene: Scene, size: str) -> str:
    """So many letters and digits."""
    return _text(scene.rng, _ALNUM, int(size or 32))


def make_django(scene: Scene, _: str) -> str:
    """A key as Django's `startproject` makes it, of letters, digits and marks."""
    return "q" + _text(scene.rng, _DJANGO, 48).replace("**", "*z") + "7"


def make_pin(scene: Scene, size: str) -> str:
    """A PIN; four digits are no year and no usual port."""
    count = int(size or 6)
    return str(scene.rng.choice((4, 6, 7, 9))) + _text(scene.rng, "2345679", count - 1)


def make_groups(scene: Scene, form: str) -> str:
    """Groups of letters or digits: `lower-4-4` is four groups of four, hyphens between."""
    alphabet, count, size = form.split("-")
    letters = {
        "lower": string.ascii_lowercase,
        "alnum": string.ascii_lowercase + string.digits,
        "upper": _CROCKFORD,
        "digits": "123456789",
        "hex": string.hexdigits[:16],
    }[alphabet]
    return "-".join(_text(scene.rng, letters, int(size)) for _ in range(int(count)))


def make_spacedgroups(scene: Scene, form: str) -> str:
    """The same with blanks."""
    return make_groups(scene, form).replace("-", " ")


def make_base32(scene: Scene, size: str) -> str:
    """A secret of one-time passwords."""
    return _text(scene.rng, _BASE32, int(size or 32))


def make_uuid(scene: Scene, _: str) -> str:
    """A random UUID."""
    return str(uuid.UUID(int=scene.rng.getrandbits(128), version=4))


def make_azure(scene: Scene, _: str) -> str:
    """A client secret as Entra ID makes it: three characters, `8Q~`, 34 characters."""
    body = _text(scene.rng, _ALNUM + "_.~-", 33).replace("..", ".a").replace("--", "-b")
    return _text(scene.rng, _ALNUM, 3) + "8Q~" + body + scene.rng.choice(_ALNUM)


def make_seed(scene: Scene, count: str) -> str:
    """So many words with blanks."""
    return " ".join(scene.rng.sample(words.WORDS["en"], int(count or 12)))


def make_bcrypt(scene: Scene, _: str) -> str:
    """A hash of bcrypt."""
    return "$2" + scene.rng.choice("aby") + "$10$" + _text(scene.rng, _BCRYPT, 53)


def make_user(scene: Scene, _: str) -> str:
    """An account of a person or service."""
    rng = scene.rng
    first, last = rng.choice(words.FIRST), rng.choice(words.LAST)
    person = rng.choice((first[0] + last, f"{first}.{last}", f"{last}{first[0]}", first))
    return rng.choice((person, rng.choice(words.ACCOUNTS)))


def make_first(scene: Scene, _: str) -> str:
    """A first name."""
    return scene.rng.choice(words.FIRST).capitalize()


def make_firm(scene: Scene, _: str) -> str:
    """A firm's name, small."""
    return scene.rng.choice(words.COMPANIES)


def make_brand(scene: Scene, _: str) -> str:
    """A firm's name, capital."""
    return make_firm(scene, "").capitalize()


def make_subject(scene: Scene, _: str) -> str:
    """What an application or database is for."""
    return scene.rng.choice(words.SUBJECTS)


def make_city(scene: Scene, _: str) -> str:
    """A town."""
    return scene.rng.choice(words.CITIES)


def make_host(scene: Scene, _: str) -> str:
    """A host's name."""
    rng = scene.rng
    head = rng.choice((rng.choice(words.SUBJECTS), f"db{rng.randint(1, 9)}", "mail", "vpn", "git"))
    return f"{head}.{rng.choice(words.COMPANIES)}.{rng.choice(words.ENDINGS)}"


def make_ip(scene: Scene, _: str) -> str:
    """A private address."""
    rng = scene.rng
    return rng.choice(("10.0", "192.168", "172.16")) + f".{rng.randint(0, 99)}.{rng.randint(2, 99)}"


def make_n(scene: Scene, bounds: str) -> str:
    """A whole number between bounds, `1-99` if there are none."""
    low, high = (bounds or "1-99").split("-")
    return str(scene.rng.randint(int(low), int(high)))


def make_date(scene: Scene, _: str) -> str:
    """A day as ISO writes it."""
    rng = scene.rng
    return f"{rng.randint(2012, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def make_time(scene: Scene, _: str) -> str:
    """A time of day."""
    rng = scene.rng
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def make_pick(scene: Scene, choices: str) -> str:
    """One of the parts between bars."""
    return scene.rng.choice(choices.split("|"))


MAKERS: dict[str, Maker] = {
    f"passwords_{name.removeprefix('make_')}": make
    for name, make in list(globals().items())
    if name.startswith("make_")
}
