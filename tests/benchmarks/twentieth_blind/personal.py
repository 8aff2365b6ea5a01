"""Draws addresses of mail, phones, machines, and cards of the twentieth blind set.

Each maker takes the scene and the argument of a slot. What it draws from is in
`personal_words.py`; checks of drawn numbers are in the tests, which use other libraries.
"""

from __future__ import annotations

import datetime
import ipaddress
import random
import re
import unicodedata

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.twentieth_blind import personal_words as words

_LATIN = ("en", "en", "en", "de", "fr", "es", "it", "pl", "pt", "nl", "sv", "cs")
_FOLD = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "ä": "ae", "ö": "oe", "ü": "ue", "ı": "i"})


def _ascii(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.lower().translate(_FOLD))
    return re.sub(r"[^a-z]", "", plain)


def _pattern(rng: random.Random, pattern: str) -> str:
    """Choices `{a|b}` taken, then `#` a digit, `%` one of 2 to 9."""
    text = re.sub(r"\{([^{}]*)\}", lambda found: rng.choice(found[1].split("|")), pattern)
    text = re.sub("#", lambda _: rng.choice("0123456789"), text)
    return re.sub("%", lambda _: rng.choice("23456789"), text)


def name(scene: Scene, argument: str) -> str:
    """A person's name of a language; `:own` addresses that follow are of this person."""
    key = argument or scene.rng.choice(_LATIN)
    if key in words.PAIRS:
        shown, _, latin = scene.rng.choice(words.PAIRS[key]).partition("|")
        scene.memory["person"] = latin
        return shown
    first = scene.rng.choice(words.FIRST[key].split())
    last = scene.rng.choice(words.LAST[key].split())
    scene.memory["person"] = f"{_ascii(first)} {_ascii(last)}"
    return f"{first} {last}"


def first(scene: Scene, argument: str) -> str:
    """A first name of a language."""
    return name(scene, argument or "en").split()[0]


def last(scene: Scene, argument: str) -> str:
    """A family name of a language."""
    return name(scene, argument or "en").split()[-1]


def host(scene: Scene, argument: str) -> str:
    """A firm's domain; the argument is its top-level domain."""
    rng = scene.rng
    joint = rng.choice(["", "", "-"])
    label = rng.choice(words.FIRM_HEADS.split()) + joint + rng.choice(words.FIRM_TAILS.split())
    label += rng.choice(["", "", "", str(rng.randint(2, 99))]) if not argument else ""
    return f"{label}.{argument or rng.choice(words.TOP.split())}"


def firm(scene: Scene, argument: str) -> str:
    """A firm's name."""
    label = scene.rng.choice(words.FIRM_HEADS.split()) + scene.rng.choice(words.FIRM_TAILS.split())
    return label.capitalize() + (f" {argument}" if argument else "")


def user(scene: Scene, _: str) -> str:
    """A login of a person or a program's account."""
    rng = scene.rng
    return rng.choice(
        [
            rng.choice(words.USERS.split()) + rng.choice(["", str(rng.randint(1, 99))]),
            _ascii(rng.choice(words.FIRST["en"].split())),
            rng.choice(words.WORDS.split())
            + rng.choice(["_", "-", ""])
            + rng.choice(words.USERS.split()),
            _ascii(rng.choice(words.LAST["en"].split())) + rng.choice("abcdfgjkmt"),
        ]
    )


def _local(scene: Scene) -> str:
    """What stands before the `@` for the person of the scene (or a new one)."""
    rng = scene.rng
    given, family = scene.memory["person"].split()
    year, few = str(rng.randint(60, 99)), str(rng.randint(1, 999))
    return rng.choice(
        [
            *[f"{given}.{family}"] * 4,
            *(f"{given[0]}.{family}", f"{given[0]}{family}", f"{given}_{family}", given, family),
            *(f"{family}.{given}", f"{given}{family}{year}", f"{given}{few}", f"{given}-{family}"),
            *(f"{family}{given[0]}", f"{given}.{family}{few}"),
        ]
    )


def _mail_parts(scene: Scene, style: str) -> tuple[str, str]:
    rng = scene.rng
    if style == "office":
        return rng.choice(words.OFFICE.split()), host(scene, "")
    if style.startswith("office-"):
        return rng.choice(words.OFFICE.split()[:8]), host(scene, style[7:])
    if style.startswith("own") and "person" in scene.memory:
        style = style[3:].lstrip("-")
    else:
        style = style.removeprefix("own").lstrip("-")
        name(scene, style if style in words.FIRST else "")
    local = _local(scene)
    if style == "nick":
        nick = user(scene, "") + str(rng.randint(1, 2009))
        return nick, rng.choice(words.FREE.split())
    if style == "free":
        return local, rng.choice(words.FREE.split())
    if style in words.FREE_OF and rng.random() < 0.5:
        return local, rng.choice(words.FREE_OF[style].split())
    if style == "tag":
        return f"{local}+{rng.choice(words.WORDS.split())}", rng.choice(
            [*words.FREE.split(), host(scene, "")]
        )
    if style == "uni":
        return local, rng.choice(words.FACULTIES) + rng.choice(words.UNIVERSITIES.split())
    tops = {
        "cn": "com.cn",
        "jp": "co.jp",
        "kr": "co.kr",
        "br": "com.br",
        "cs": "cz",
        "uk": "co.uk",
        "tr": "com.tr",
        "il": "co.il",
        "ua": "com.ua",
    }
    return local, host(scene, tops.get(style, style))


def email(scene: Scene, argument: str) -> str:
    """An address of mail: `STYLE` or `STYLE/FORM`, where FORM hides the `@` or the dots."""
    style, _, form = argument.partition("/")
    rng = scene.rng
    if style.startswith("idn-"):
        locals_, hosts = words.IDN_MAIL[style[4:]]
        return f"{rng.choice(locals_.split())}@{rng.choice(hosts.split())}"
    local, domain = _mail_parts(scene, style)
    dots = {
        "sq": (" [at] ", " [dot] "),
        "sq2": ("[at]", "."),
        "par": (" (at) ", "."),
        "par2": ("(at)", "(dot)"),
        "par3": (" (at) ", " (dot) "),
        "up": (" AT ", " DOT "),
        "up2": (" AT ", "."),
        "word": (" at ", " dot "),
        "cur": ("{at}", "{dot}"),
        "ang": (" <at> ", " <dot> "),
        "ent": ("&#64;", "."),
        "ent2": ("&#x40;", "&#46;"),
        "pct": ("%40", "."),
        "wide": ("＠", "."),
        "sp": (" @ ", "."),
        "star": (" *at* ", " *dot* "),
        "arob": (" [arobase] ", " [point] "),
        "chio": (" [chiocciola] ", " [punto] "),
        "klam": (" [Klammeraffe] ", " [Punkt] "),
        "arroba": (" (arroba) ", " (punto) "),
        "sobaka": (" [собака] ", "."),
        "malpa": (" [małpa] ", " [kropka] "),
        "comat": ("&commat;", "&period;"),
        "json": ("\\u0040", "."),
        "under": (" [_at_] ", " [_dot_] "),
        "nospam": ("@", "."),
        "math": (" -at- ", " -dot- "),
    }
    if form == "upper":
        return f"{local}@{domain}".upper()
    if form == "title":
        return ".".join(part.capitalize() for part in local.split(".")) + f"@{domain}"
    sign, dot = dots[form] if form else ("@", ".")
    if form in ("sq", "par3", "up", "word", "ang", "star", "under", "math", "arob", "cur"):
        local = local.replace(".", dot) if form == "under" else local
    return local + sign + domain.replace(".", dot)


def phone(scene: Scene, argument: str) -> str:
    """A phone number: `COUNTRY` or `COUNTRY_STYLE` (`any` is each country).

    Styles: `i` international (also none), `e` without blanks, `n` national, `z` with 00, `t` with
    (0), `h` hyphens, `o` dots, `p` area in brackets, `s` slash, `x` bare digits, `nh`, `no`, `nx`
    the same for national ones.
    """
    rng = scene.rng
    country, _, style = argument.partition("_")
    country = country if country != "any" else rng.choice(list(words.PHONES))
    code, trunk, patterns = words.PHONES[country]
    number = _pattern(rng, rng.choice(patterns))
    area, _, rest = number.replace("-", " ").partition(" ")
    if style == "w":  # a mobile number, as messengers write it
        number = _pattern(rng, patterns[-1])
    compact = re.sub(r"\D", "", number)
    national = trunk + number
    tight = trunk.strip() + number.replace("-", " ")
    return {
        "": f"+{code} {number}",
        "i": f"+{code} {number}",
        "e": f"+{code}{compact}",
        "w": f"+{code}{compact}",
        "n": national,
        "z": f"00{code} {number}",
        "zx": f"00{code}{compact}",
        "t": f"+{code} (0) {number}" if trunk == "0" else f"+{code} {number}",
        "t2": f"+{code} (0){number}" if trunk == "0" else f"+{code} {number}",
        "h": f"+{code}-" + re.sub(r"[ -]", "-", number),
        "o": f"+{code}." + re.sub(r"[ -]", ".", number),
        "p": f"+{code} ({area}) {rest}",
        "pe": f"+{code}({area}){rest.replace(' ', '')}",
        "np": f"8 ({area}) {number[4:]}"
        if country == "ru"
        else f"({trunk.strip()}{area}) {rest.replace(' ', '-') if country in 'us tf' else rest}",
        "s": f"+{code} {area}/{rest}",
        "ns": f"{trunk}{area}/{rest}",
        "ns2": f"{trunk}{area} / {rest}",
        "nh": tight.replace(" ", "-"),
        "no": tight.replace(" ", "."),
        "nx": trunk.strip() + compact,
        "x": code + compact,
        "1h": f"{code}-" + re.sub(r"[ -]", "-", number),
        "nd": f"{trunk}{area} - {rest}",
        "nb": f"+{code}\u00a0" + number.replace(" ", "\u00a0"),
        "u": f"+{code}\u2011" + re.sub(r"[ -]", "\u2011", number),
        "rfc": f"+{code}-" + re.sub(r"[ -]", "-", number),
    }[style]


def num(scene: Scene, argument: str) -> str:
    """A pattern with digits: `#` any, `%` 2 to 9, `{a|b}` a choice."""
    return _pattern(scene.rng, argument)


def whole(scene: Scene, argument: str) -> str:
    """A whole number of a range `low-high`."""
    low, high = argument.split("-")
    return str(scene.rng.randint(int(low), int(high)))


def hexa(scene: Scene, argument: str) -> str:
    """So many hex digits."""
    return "".join(scene.rng.choice("0123456789abcdef") for _ in range(int(argument)))


def pick(scene: Scene, argument: str) -> str:
    """One of the words between bars."""
    return scene.rng.choice(argument.split("|"))


def date(scene: Scene, argument: str) -> str:
    """A moment of 2012 to 2025 in the format of `strftime` (ISO date)."""
    start = datetime.datetime(2012, 1, 1, tzinfo=datetime.UTC)
    moment = start + datetime.timedelta(seconds=scene.rng.randrange(13 * 365 * 86_400))
    return moment.strftime(argument or "%Y-%m-%d")


def city(scene: Scene, _: str) -> str:
    """A city."""
    return scene.rng.choice(words.CITIES.split())


def word(scene: Scene, _: str) -> str:
    """A plain word, as names of projects and machines."""
    return scene.rng.choice(words.WORDS.split())


def _right(rng: random.Random, network: str) -> str:
    if network in ("", "any"):
        network = rng.choice(["visa", "visa", "visa", "mc", "mc", "mc", "amex", "disc"])
    prefixes, lengths = words.CARDS[network]
    prefix = rng.choice(prefixes)
    size = lengths[0] if rng.random() < 0.7 else rng.choice(lengths)
    body = prefix + "".join(rng.choice("0123456789") for _ in range(size - 1 - len(prefix)))
    return body + luhn_digit(body)


def _grouped(digits: str, joint: str) -> str:
    if len(digits) == 15:
        return joint.join((digits[:4], digits[4:10], digits[10:]))
    if len(digits) == 14:
        return joint.join((digits[:4], digits[4:10], digits[10:]))
    if len(digits) == 19 and digits[0] == "6":
        return joint.join((digits[:6], digits[6:]))
    return joint.join(digits[at : at + 4] for at in range(0, len(digits), 4))


_JOINTS = {"": "", "s": " ", "h": "-", "n": "\u00a0", "o": ".", "d": "  "}


def card(scene: Scene, argument: str) -> str:
    """A card's number: `NETWORK`, with `_s` (blanks), `_h` (hyphens), `_n` (no-break blanks)."""
    network, _, style = argument.partition("_")
    return _grouped(_right(scene.rng, network), _JOINTS[style])


def bad(scene: Scene, argument: str) -> str:
    """Like a card's number, but its check digit is wrong."""
    network, _, style = argument.partition("_")
    digits = _right(scene.rng, network)
    wrong = (int(digits[-1]) + scene.rng.randint(1, 9)) % 10
    return _grouped(digits[:-1] + str(wrong), _JOINTS[style])


def loose(scene: Scene, argument: str) -> str:
    """A pattern as of `num` whose digits do not satisfy Luhn's formula."""
    while True:
        text = _pattern(scene.rng, argument)
        digits = re.sub(r"\D", "", text)
        if luhn_digit(digits[:-1]) != digits[-1]:
            return text


def imei(scene: Scene, _: str) -> str:
    """The number of a mobile device, with its check digit."""
    body = _pattern(scene.rng, "{35|86|01}######%#####")[:14]
    return body + luhn_digit(body)


def ip(scene: Scene, argument: str) -> str:
    """A public address: `4` (also none), `6`, `6full`, `6up`."""
    rng = scene.rng
    if not argument.startswith("6"):
        while True:
            octets = [rng.choice(words.FIRST_OCTETS), rng.randint(2, 254), rng.randint(2, 254)]
            text = ".".join(map(str, [*octets, rng.randint(2, 253)]))
            if ipaddress.ip_address(text).is_global:
                return text
    groups = [int(part, 16) for part in rng.choice(words.NETWORKS_6.split()).split(":")]
    groups += [rng.randrange(1, 65_536), rng.choice([0, rng.randrange(65_536)])]
    if rng.random() < 0.5:
        groups += [0, 0, 0, rng.randrange(1, 4096)]
    else:
        groups += [rng.randrange(65_536) for _ in range(4)]
    address = ipaddress.IPv6Address(b"".join(one.to_bytes(2) for one in groups))
    text = address.exploded if argument == "6full" else str(address)
    return text.upper() if argument == "6up" else text


def private(scene: Scene, argument: str) -> str:
    """An address of a private network, or `doc` of documentation, `loop`, `link`, `cgn`."""
    head = {
        "": "{10.##|192.168|10.0|172.16|172.2#}",
        "doc": "{192.0.2|198.51.100|203.0.113}",
        "loop": "127.0",
        "link": "169.254",
        "cgn": "100.{64|72|96|101}",
    }[argument]
    parts = [str(int(one)) for one in _pattern(scene.rng, head).split(".")]
    while len(parts) < 4:
        parts.append(str(scene.rng.randint(1, 254)))
    return ".".join(parts)


def net(scene: Scene, argument: str) -> str:
    """A network in CIDR form whose host bits are zero: `4` (also none), `6`."""
    if argument == "6":
        head = scene.rng.choice(words.NETWORKS_6.split())
        return f"{head}:{scene.rng.randrange(1, 65_536):x}::/48"
    size = scene.rng.choice([16, 20, 22, 24, 24])
    number = ipaddress.ip_network(f"{ip(scene, '')}/{size}", strict=False)
    return str(number)


MAKERS: dict[str, Maker] = {
    "personal_email": email,
    "personal_phone": phone,
    "personal_ip": ip,
    "personal_card": card,
    "personal_name": name,
    "personal_first": first,
    "personal_last": last,
    "personal_host": host,
    "personal_firm": firm,
    "personal_user": user,
    "personal_num": num,
    "personal_int": whole,
    "personal_hex": hexa,
    "personal_pick": pick,
    "personal_date": date,
    "personal_city": city,
    "personal_word": word,
    "personal_bad": bad,
    "personal_loose": loose,
    "personal_imei": imei,
    "personal_private": private,
    "personal_net": net,
}
