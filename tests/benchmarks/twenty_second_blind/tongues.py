"""Makers of values for the texts in languages other than English."""

from __future__ import annotations

import string
import unicodedata

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.twenty_second_blind.tongues_words import (
    GIVEN,
    NAMES,
    PROJECTS,
    SSIDS,
    WORDS,
)

_SYMBOLS = "!@#%&?+=-_"
_ENDINGS = {"zh": "com", "ja": "jp", "ko": "kr", "vi": "vn", "cs": "cz", "el": "gr"} | {
    "ar": "sa",
    "fa": "ir",
    "hi": "in",
    "pt": "com.br",
}
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_LEET = str.maketrans({"a": "4", "e": "3", "i": "1", "o": "0", "s": "5"})


def _number(scene: Scene, length: int) -> str:
    return "".join(scene.rng.choices(string.digits, k=length))


def _drawn(scene: Scene, length: int, alphabet: str) -> str:
    """A random string with a digit in it, no sign first and none last."""
    middle = scene.rng.choices(alphabet, k=length - 3)
    middle.append(scene.rng.choice(string.digits))
    scene.rng.shuffle(middle)
    ends = scene.rng.choices([letter for letter in alphabet if letter.isalnum()], k=2)
    return "".join([ends[0], *middle, ends[1]])


def _words_of(argument: str) -> list[str]:
    return WORDS[argument].split()


def _plain_ascii(text: str) -> str:
    """The text without the marks of its letters, as people mostly type a password."""
    text = text.translate(str.maketrans({"ß": "ss", "ł": "l", "ø": "oe", "æ": "ae", "ı": "i"}))
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _one_word(scene: Scene, argument: str) -> str:
    word = scene.rng.choice(_words_of(argument))
    native = argument.endswith("_native") or not _plain_ascii(word).isascii()
    if not native and scene.rng.random() < 0.7:
        word = _plain_ascii(word.translate(_UMLAUTS) if argument == "de" else word)
    return word


def _word(scene: Scene, argument: str) -> str:
    """A word of the language with digits or a sign, as people make them up."""
    rng = scene.rng
    word = _one_word(scene, argument)
    style = rng.randrange(8)
    if style == 0:
        return word.capitalize() + str(rng.randrange(1961, 2026))
    if style == 1:
        return word.capitalize() + rng.choice("@#_-.") + _number(scene, rng.randrange(2, 5))
    if style == 2:
        return word + _number(scene, rng.randrange(2, 5))
    if style == 3:
        return word.capitalize() + _number(scene, rng.randrange(2, 4)) + rng.choice("!#?!")
    if style == 4:
        return word.translate(_LEET) + rng.choice("_-@") + _number(scene, 2)
    if style == 5:
        return word + rng.choice(["", "_", "."]) + _one_word(scene, argument).capitalize() + "7"
    if style == 6:
        return _number(scene, rng.randrange(2, 5)) + word.capitalize()
    return word.upper() + rng.choice(["_", "-", ""]) + _number(scene, rng.randrange(3, 5))


def _phrase(scene: Scene, argument: str) -> str:
    """Several words of the language joined by a sign."""
    rng = scene.rng
    words = rng.sample(_words_of(argument), rng.randrange(2, 5) if rng.random() < 0.8 else 3)
    style = rng.randrange(5)
    if style == 0:
        return "".join(word.capitalize() for word in words) + _number(scene, 2)
    if style == 1:
        return "_".join(words) + str(rng.randrange(3, 99))
    if style == 2:
        return ".".join(words)
    if style == 3:
        return "".join(words) + _number(scene, 2)
    return "-".join(words)


def _random(scene: Scene, argument: str) -> str:
    """A drawn password of letters, digits and signs; the argument is its length."""
    length = int(argument or 0) or scene.rng.randrange(9, 19)
    return _drawn(scene, length, string.ascii_letters + string.digits + _SYMBOLS)


def _plain(scene: Scene, argument: str) -> str:
    """A drawn password of letters and digits; the argument is its length."""
    length = int(argument or 0) or scene.rng.randrange(8, 17)
    return _drawn(scene, length, string.ascii_letters + string.digits)


def _lower(scene: Scene, argument: str) -> str:
    length = int(argument or 0) or scene.rng.randrange(8, 13)
    return _drawn(scene, length, string.ascii_lowercase + string.digits)


def _mixed(scene: Scene, argument: str) -> str:
    """A password as people of the language have them, of whatever kind."""
    kinds = [_word, _phrase, _random, _plain, _lower]
    make = scene.rng.choices(kinds, weights=[10, 3, 4, 3, 2])[0]
    return make(scene, argument if make in (_word, _phrase) else "")


def _hex(scene: Scene, argument: str) -> str:
    return "".join(scene.rng.choices("0123456789abcdef", k=int(argument or 32)))


def _digits(scene: Scene, argument: str) -> str:
    return str(scene.rng.randrange(1, 10)) + _number(scene, int(argument or 8) - 1)


def _groups(scene: Scene, argument: str) -> str:
    """Groups of four digits, as some routers have them on their label."""
    return argument.join(_number(scene, 4) for _ in range(4))


def _upper(scene: Scene, argument: str) -> str:
    return _drawn(scene, int(argument or 10), string.ascii_uppercase + "23456789")


def _name(scene: Scene, argument: str) -> str:
    return scene.rng.choice(NAMES[argument].split())


def _cap(scene: Scene, argument: str) -> str:
    """A first name (a family name for Japanese) as a text of the language writes it."""
    if argument in GIVEN:
        return scene.rng.choice(GIVEN[argument].split())
    return _name(scene, argument).capitalize()


def _user(scene: Scene, argument: str) -> str:
    rng = scene.rng
    name = _name(scene, argument)
    return rng.choice(
        [name, f"{name}{rng.randrange(2, 99)}", f"{name}.{rng.choice('bdfgkmprst')}", f"{name}_adm"]
    )


def _email(scene: Scene, argument: str) -> str:
    rng = scene.rng
    domain = "-".join(rng.sample(PROJECTS[argument].split(), rng.randrange(1, 3)))
    return f"{_name(scene, argument)}@{domain}.{_ENDINGS.get(argument, argument)}"


def _project(scene: Scene, argument: str) -> str:
    return scene.rng.choice(PROJECTS[argument].split())


def _db(scene: Scene, argument: str) -> str:
    ending = scene.rng.choice(["db", "prod", "v2", "app", "test"])
    return f"{_project(scene, argument)}_{ending}"


def _ssid(scene: Scene, argument: str) -> str:
    rng = scene.rng
    word = rng.choice(SSIDS[argument].split())
    return f"{word}{rng.choice(['_', '-', ''])}{rng.choice(['2G', '5G', 'Plus', '24'])}"


def _host(scene: Scene, argument: str) -> str:
    rng = scene.rng
    head = f"{rng.choice(['srv', 'nas', 'web', 'db', 'mail'])}{rng.randrange(2, 60)}"
    return f"{head}.{_project(scene, argument)}.{rng.choice(['lan', 'local', 'internal'])}"


def _ip(scene: Scene, argument: str) -> str:
    rng = scene.rng
    head = rng.choice(["192.168", "10.0", "10.20", "172.16"])
    return f"{head}.{rng.randrange(0, 90)}.{rng.randrange(2, 254)}"


def _port(scene: Scene, argument: str) -> str:
    return str(scene.rng.randrange(1024, 65536))


def _n(scene: Scene, argument: str) -> str:
    """A number up to the argument, from two or from the first number of `6-16` on."""
    first, _, last = argument.rpartition("-")
    return str(scene.rng.randrange(int(first or 2), int(last) + 1))


def _date(scene: Scene, argument: str) -> str:
    rng = scene.rng
    day, month = rng.randrange(1, 29), rng.randrange(1, 13)
    return f"{day:02}{argument}{month:02}{argument}{rng.randrange(2012, 2026)}"


def _day(scene: Scene, argument: str) -> str:
    """A date with the year first."""
    rng = scene.rng
    day, month = rng.randrange(1, 29), rng.randrange(1, 13)
    return f"{rng.randrange(2014, 2026)}{argument}{month:02}{argument}{day:02}"


def _meeting(scene: Scene, argument: str) -> str:
    return f"8{_number(scene, 2)} {_number(scene, 4)} {_number(scene, 4)}"


def _var(scene: Scene, argument: str) -> str:
    """A name of a variable."""
    rng = scene.rng
    return f"{rng.choice(['app', 'user', 'cfg', 'form', 'form_data', 'req'])}{rng.randrange(1, 9)}"


MAKERS: dict[str, Maker] = {
    "tongues_word": _word,
    "tongues_phrase": _phrase,
    "tongues_random": _random,
    "tongues_plain": _plain,
    "tongues_lower": _lower,
    "tongues_mixed": _mixed,
    "tongues_hex": _hex,
    "tongues_digits": _digits,
    "tongues_groups": _groups,
    "tongues_upper": _upper,
    "tongues_name": _name,
    "tongues_cap": _cap,
    "tongues_user": _user,
    "tongues_email": _email,
    "tongues_project": _project,
    "tongues_db": _db,
    "tongues_ssid": _ssid,
    "tongues_host": _host,
    "tongues_ip": _ip,
    "tongues_port": _port,
    "tongues_n": _n,
    "tongues_date": _date,
    "tongues_day": _day,
    "tongues_meeting": _meeting,
    "tongues_var": _var,
}
