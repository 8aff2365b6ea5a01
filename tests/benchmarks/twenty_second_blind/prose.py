"""Makers of values for the texts in English prose.

A code of digits always holds a 7 and a number beside it in a negative never does, so that no
negative has the value of a positive by chance.
"""

from __future__ import annotations

import string
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.twenty_second_blind.prose_words import (
    DAYS,
    DOMAINS,
    FILES,
    FIRST,
    GOODS,
    HOSTS,
    LAST,
    MONTHS,
    PLACES,
    WORDS,
)

_PLAIN = "0123456" + "89"
_CLEAR = "".join(one for one in string.ascii_letters + string.digits if one not in "0O1lI")


def _draw(rng: Random, alphabet: str, size: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


def _cased(rng: Random, word: str) -> str:
    return rng.choice((word, word, word.capitalize(), word.capitalize(), word.upper()))


def _weak(scene: Scene, argument: str) -> str:
    """A password as people choose it: a word or two, digits, perhaps a sign."""
    rng = scene.rng
    word, other = rng.sample(WORDS, 2)
    year = str(rng.randrange(1968, 2026))
    few = str(rng.randrange(10, 1000))
    leet = word.replace("a", "4").replace("e", "3").replace("o", "0").replace("i", "1")
    forms = (
        _cased(rng, word) + year,
        _cased(rng, word) + few + rng.choice("!#$*"),
        word + few,
        word + other + few,
        word.capitalize() + other.capitalize() + few,
        rng.choice(FIRST) + year + rng.choice(("", "!", "#")),
        word.capitalize() + rng.choice("_-.") + other + few,
        leet.capitalize() + few + rng.choice(("", "!")),
        rng.choice(PLACES) + rng.choice(("", "_", "-")) + year,
        few + word + rng.choice("$#!*"),
        word + "4" + other + str(rng.randrange(2, 100)),
    )
    return rng.choice(forms)


def _mid(scene: Scene, argument: str) -> str:
    """Drawn letters and digits, at least one of each."""
    rng = scene.rng
    alphabet = rng.choice((_CLEAR, string.ascii_lowercase + string.digits))
    size = int(argument or rng.randrange(7, 15))
    value = _draw(rng, alphabet, size - 3)
    return (
        rng.choice(string.ascii_lowercase) + value + rng.choice(string.digits) + rng.choice("kwzt")
    )


def _strong(scene: Scene, argument: str) -> str:
    """A drawn password with signs inside; it starts with a letter and ends without a stop."""
    rng = scene.rng
    signs = argument or "!#$%&*+-=^_?~/"
    body = [rng.choice(_CLEAR) for _ in range(rng.randrange(7, 15))]
    for _ in range(rng.randrange(2, 5)):
        body.insert(rng.randrange(1, len(body)), rng.choice(signs))
    if argument and not set(signs) & set(body):
        body.insert(3, signs[0])
    return rng.choice(string.ascii_letters) + "".join(body) + rng.choice("23456789XKpd")


def _pass(scene: Scene, argument: str) -> str:
    return scene.rng.choice((_weak, _weak, _weak, _mid, _mid, _strong))(scene, "")


def _demo(scene: Scene, argument: str) -> str:
    """What a demo or test account has: mostly a word with digits."""
    rng = scene.rng
    word = rng.choice(WORDS)
    stem = rng.choice(("demo", "test", "guest", "try"))
    forms = (
        f"{stem}{word}{rng.randrange(10, 1000)}",
        f"{stem}_{rng.choice(WORDS)}{rng.randrange(10, 100)}",
        f"{stem.capitalize()}{word.capitalize()}{rng.randrange(10, 2030)}",
        f"{word.capitalize()}@{stem}{rng.randrange(10, 1000)}",
    )
    return rng.choice((*forms, _weak(scene, ""), _mid(scene, "10")))


def _wifi(scene: Scene, argument: str) -> str:
    """A Wi-Fi key of eight characters or more; one of `words` has no drawn letters."""
    rng = scene.rng
    one, two, three = rng.sample(WORDS, 3)
    forms = (
        f"{one}{two}{rng.randrange(100, 1000)}",
        f"{one.capitalize()}{two.capitalize()}{rng.randrange(10, 100)}",
        f"{one}-{two}-{three}",
        f"{one}_{two}_{rng.randrange(1970, 2026)}",
        _draw(rng, "ABCDEF" + string.digits, 8) + "FA",
        _draw(rng, _CLEAR, 9) + str(rng.randrange(10, 100)) + "x",
        f"{rng.choice(PLACES)}{rng.choice(('Guest', 'Cafe', 'House', 'WiFi'))}"
        f"{rng.randrange(2011, 2026)}",
    )
    return rng.choice(forms[:3] if argument == "words" else forms)


def _phrase(scene: Scene, argument: str) -> str:
    """A passphrase of words."""
    rng = scene.rng
    words = rng.sample(WORDS, rng.randrange(4, 6))
    joint = argument or rng.choice((" ", " ", "-", "."))
    return joint.join(words)


def _code(scene: Scene, argument: str) -> str:
    """So many digits, one of them a 7; it looks like no year."""
    rng = scene.rng
    size = int(argument or 6)
    body = [rng.choice(string.digits) for _ in range(size - 2)]
    body.insert(rng.randrange(0, len(body) + 1), "7")
    return rng.choice("3456789") + "".join(body)


def _zoom(scene: Scene, argument: str) -> str:
    """The passcode of a meeting: six digits, six letters and digits, or a word with digits."""
    rng = scene.rng
    if rng.random() < 0.5:
        return _code(scene, "6")
    if rng.random() < 0.5:
        return rng.choice("abdeghkmn") + _draw(rng, _CLEAR, 4) + rng.choice("23456") + "Q"
    return rng.choice(WORDS) + str(rng.randrange(10, 2026))


def _recovery(scene: Scene, argument: str) -> str:
    """A recovery code: two groups of five, or four groups of four."""
    rng = scene.rng
    alphabet = "abcdefghjkmnpqrstuvwxyz23456789"
    groups, size = (4, 4) if argument == "4" else (2, 5)
    return "-".join(_draw(rng, alphabet, size) for _ in range(groups))


def _student(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.choice(FIRST)[:2].lower()}-{_draw(rng, _CLEAR, 5)}-{rng.randrange(100, 1000)}"


def _user(scene: Scene, argument: str) -> str:
    rng = scene.rng
    first, last = rng.choice(FIRST).lower(), rng.choice(LAST).lower()
    number = rng.randrange(10, 100)
    forms = (f"{first[0]}{last}", f"{first}.{last}", f"{first}{number}", f"{last}_{number}")
    return rng.choice(forms)


def _email(scene: Scene, argument: str) -> str:
    return f"{_user(scene, '')}@{scene.rng.choice(DOMAINS)}"


def _full(scene: Scene, argument: str) -> str:
    return f"{scene.rng.choice(FIRST)} {scene.rng.choice(LAST)}"


def _number(scene: Scene, argument: str) -> str:
    """So many digits without a 7, as negatives may have them too."""
    rng = scene.rng
    return rng.choice("1234568") + _draw(rng, _PLAIN, int(argument or 3) - 1)


def _meeting(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"8{_draw(rng, _PLAIN, 2)} {_draw(rng, _PLAIN, 4)} {_draw(rng, _PLAIN, 4)}"


def _date(scene: Scene, argument: str) -> str:
    return f"{scene.rng.choice(MONTHS)} {scene.rng.randrange(1, 29)}"


def _iso(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"20{rng.choice('12')}{rng.choice('01234')}-0{rng.randrange(1, 7)}-{_two(rng)}"


def _two(rng: Random) -> str:
    return rng.choice(("04", "11", "15", "18", "22", "26"))


def _address(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"192.168.{rng.choice(_PLAIN)}.{rng.randrange(2, 60)}"


def _link(scene: Scene, argument: str) -> str:
    rng = scene.rng
    body = _draw(rng, string.ascii_letters, 8) + "/" + _draw(rng, string.ascii_letters, 6)
    return f"https://{rng.choice(DOMAINS)}/f/{body}"


def _digest(scene: Scene, argument: str) -> str:
    return _draw(scene.rng, "0123456" + "89abcdef", int(argument or 64))


def _ssid(scene: Scene, argument: str) -> str:
    rng = scene.rng
    place = rng.choice(PLACES)
    forms = (f"{place}-Guest", f"{place}_Events", f"{place} House", f"{place}-WiFi", f"{place}_5G")
    return rng.choice(forms)


def _pick(*words: str) -> Maker:
    def maker(scene: Scene, argument: str) -> str:
        return scene.rng.choice(words)

    return maker


MAKERS: dict[str, Maker] = {
    "prose_weak": _weak,
    "prose_mid": _mid,
    "prose_strong": _strong,
    "prose_pass": _pass,
    "prose_demo": _demo,
    "prose_wifi": _wifi,
    "prose_phrase": _phrase,
    "prose_code": _code,
    "prose_zoom": _zoom,
    "prose_recovery": _recovery,
    "prose_student": _student,
    "prose_user": _user,
    "prose_email": _email,
    "prose_full": _full,
    "prose_number": _number,
    "prose_meeting": _meeting,
    "prose_date": _date,
    "prose_iso": _iso,
    "prose_ip": _address,
    "prose_link": _link,
    "prose_digest": _digest,
    "prose_ssid": _ssid,
    "prose_first": _pick(*FIRST),
    "prose_last": _pick(*LAST),
    "prose_place": _pick(*PLACES),
    "prose_host": _pick(*HOSTS),
    "prose_app": _pick(*GOODS),
    "prose_day": _pick(*DAYS),
    "prose_file": _pick(*FILES),
    "prose_hour": _pick("9:30", "10:00", "11:15", "2:30", "4:00", "6:00", "8:15"),
}
