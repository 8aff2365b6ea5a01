"""Makers of the nineteenth blind set's personal kinds: addresses, telephones, hosts, cards.

An argument is a list of words. A single letter names a person of the text (`name:a de`, then
`mail:a`), two letters a language or a country.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import luhn_digit
from tests.benchmarks.nineteenth_blind.personal_words import (
    CITIES,
    FREE,
    LATIN,
    NICKS,
    NICKS_B,
    PEOPLE,
    PLANS,
    ROLES,
    ROLES_OF,
    SITE_A,
    SITE_B,
    STREETS,
    TLDS,
    words_of,
)

_DRAMA = re.compile(
    r"^(\+?1[ .-]?)?\(?[2-9]\d\d\)?[ .-]?555[ .-]?\d{4}$|\b0?20 7946 0|1632 960|7700 900|"
    r"\b0?1\d1 496 0|0491 57|\+61 [278] ?5550|"
    r"(\+33 |\b0)(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
)


def _digits(rng: Random, count: int) -> str:
    return "".join(rng.choice(string.digits) for _ in range(count))


def _ascii_of(word: str) -> tuple[str, str]:
    shown, _, plain = word.partition("/")
    return shown, plain or shown.lower()


def _person(scene: Scene, argument: str) -> tuple[str, list[str]]:
    """The language of a person, and first and last name, each shown and in ASCII."""
    words = argument.split()
    language = next((word for word in words if word in PEOPLE), "")

    def make() -> str:
        code = language or scene.rng.choice(LATIN)
        first, last = (_ascii_of(scene.rng.choice(part.split())) for part in PEOPLE[code])
        return "|".join((code, *first, *last))

    keys = [word for word in words if len(word) == 1]
    drawn = scene.once(f"person {keys[0]}", make) if keys else make()
    code, *names = drawn.split("|")
    return code, names


def _name(scene: Scene, argument: str) -> str:
    code, (first, _, last, _) = _person(scene, argument)
    if code in ("zh", "ko"):
        return last + first
    return f"{last} {first}" if code in ("ja", "vi") else f"{first} {last}"


def _ascii_name(scene: Scene, argument: str) -> str:
    _, (_, first, _, last) = _person(scene, argument)
    return f"{first.capitalize()} {last.capitalize()}"


def _user_of(rng: Random, names: list[str]) -> str:
    first, last = names[1], names[3]
    number = rng.choice([str(rng.randint(1, 99)), str(rng.randint(1965, 2006)), ""])
    styles = [
        *[f"{first}.{last}"] * 4,
        *[f"{first[0]}{last}"] * 2,
        *[f"{first[0]}.{last}", first, f"{last}.{first}", f"{first}_{last}", f"{first}{last}"],
        *[f"{first}{last}{number}", f"{last}{first[0]}", f"{first}-{last}", last],
        *[f"{first}.{last}{number}"],
    ]
    return rng.choice(styles)


def _nick(scene: Scene, argument: str) -> str:
    rng = scene.rng
    joint = rng.choice(["", "", "_", "-", "."] if "." in argument else ["", "", "_", "-"])
    number = rng.choice(["", str(rng.randint(1, 99)), str(rng.randint(1980, 2009)), ""])
    return rng.choice(NICKS) + joint + rng.choice(NICKS_B) + number


def _site(rng: Random, code: str) -> str:
    joint = rng.choice(["", "", "", "-"])
    name = rng.choice(SITE_A) + joint + rng.choice(SITE_B)
    return f"{name}.{rng.choice(TLDS.get(code, TLDS['en']).split())}"


def _host(scene: Scene, argument: str) -> str:
    return _site(scene.rng, argument)


def _server(scene: Scene, argument: str) -> str:
    rng = scene.rng
    kind = rng.choice(words_of("web db app mail node srv build cache worker proxy ns gw edge api"))
    return f"{kind}{rng.choice(['', '-', '-0'])}{rng.randint(1, 9)}"


def _mail(scene: Scene, argument: str) -> str:
    rng = scene.rng
    code, names = _person(scene, argument)
    words = argument.split()
    if "role" in words:
        roles = ROLES_OF[code].split() if code in ROLES_OF and code in words else ROLES
        return f"{rng.choice(roles)}@{_site(rng, code)}"
    if "tag" in words:
        tag = rng.choice(words_of("github shop lists newsletter spam work amazon jira test dev"))
        return f"{_user_of(rng, names)}+{tag}@gmail.com"
    if "deep" in words:
        part = rng.choice(words_of("cs mail math eng lists it physics med staff mx eu corp phys"))
        return f"{_user_of(rng, names)}@{part}.{_site(rng, code)}"
    if "number" in words:
        return f"{_digits(rng, rng.randint(8, 10)).replace('0', '3')}@qq.com"
    if "idn" in words:
        places = "müller-bau.de bäckerei-köhler.de élan-conseil.fr señal.es пример-сайт.рф почта.рф"
        places = places.replace("пример-сайт", "стройдом") + " 中文邮箱.中国 københavn-tryk.dk"
        return f"{rng.choice(['info', 'kontakt', names[1], names[3]])}@{rng.choice(places.split())}"
    if "native" in words:
        return f"{names[0]}.{names[2]}@{_site(rng, code)}"
    if "caps" in words:
        return f"{names[1]}.{names[3]}@{_site(rng, code)}".upper()
    if "mixed" in words:
        return f"{names[1].capitalize()}.{names[3].capitalize()}@{_site(rng, code)}"
    free = "free" in words or ("work" not in words and rng.random() < 0.45)
    if free:
        local = _nick(scene, ".") if rng.random() < 0.3 else _user_of(rng, names)
        return f"{local}@{rng.choice(FREE[code].split())}"
    return f"{_user_of(rng, names)}@{_site(rng, code)}"


def _obscured(scene: Scene, argument: str) -> str:
    """An address with other marks: the argument's first word is for `@`, the second for a dot.

    `_` is a blank; without a second word dots stay. A letter after these is a person.
    """
    at, dot, *rest = [*argument.split(" "), ""]
    local, _, host = _mail(scene, " ".join(word for word in rest if word)).partition("@")
    mark = " @ " if at == "SPACED" else at.replace("_", " ")
    text = local + mark + host
    if dot in ("", "-"):
        return text
    mark_of_dot = dot.replace("_", " ")
    if "all" in rest:
        local = local.replace(".", mark_of_dot)
    return local + mark + host.replace(".", mark_of_dot)


def _entities(scene: Scene, argument: str) -> str:
    mail = _mail(scene, "")
    if argument == "all":
        return "".join(f"&#{ord(one)};" for one in mail)
    return mail.replace("@", argument)


def _group(rng: Random, pattern: str) -> str:
    pools = {"X": string.digits, "N": "23456789"}
    return "".join(rng.choice(pools.get(one, one)) for one in pattern)


def _telephone(scene: Scene, argument: str) -> str:
    """A number: `de`, `+de` or `00de`, then a style, `m` or `l` for mobile or landline."""
    while True:
        number = _draw_telephone(scene.rng, argument.split())
        if not _DRAMA.search(number):
            return number


def _draw_telephone(rng: Random, words: list[str]) -> str:
    first = words[0] if words else "+" + rng.choice(list(PLANS))
    abroad = first.rstrip(string.ascii_lowercase)
    code, trunk, styles, land, mobile = PLANS[first[len(abroad) :] or rng.choice(list(PLANS))]
    both = f"{land}|{mobile}"
    pattern = rng.choice({"m": mobile, "l": land}.get(words[-1] if words else "", both).split("|"))
    groups = [_group(rng, part) for part in pattern.split()]
    given = [word for word in words[1:] if word not in ("m", "l")]
    if abroad:
        return _abroad(rng, abroad + code, trunk, groups, given[0] if given else "")
    style = given[0] if given else rng.choice(styles.split())
    if trunk.endswith(" ") and style in ("h", "c", "d", "/"):
        trunk = trunk.strip() + {"h": "-", "/": "-", "d": ".", "c": ""}[style]
    if code == "86" and len(groups[0]) == 3 and groups[0].startswith("1"):
        trunk = ""
    area, rest = trunk + groups[0], groups[1:]
    if style in ("p", "ph"):
        area = f"{trunk}({groups[0]})" if trunk.startswith("8") else f"({trunk}{groups[0]})"
        dashed = style == "ph" or code in ("1", "81", "82", "886")
        return f"{area} {('-' if dashed else ' ').join(rest)}"
    if style == "/":
        return f"{area}/{''.join(rest)}"
    if style == "sh":
        return f"{area} {'-'.join(rest)}"
    if style == "one":
        return "-".join(["1", area, *rest])
    return {"s": " ", "h": "-", "d": ".", "c": "", "n": "\u00a0"}[style].join([area, *rest])


_ZERO_IN_BRACKETS = words_of("49 44 43 41 46 31 32 61 64 27 33")


def _abroad(rng: Random, code: str, trunk: str, groups: list[str], style: str) -> str:
    if code in ("+54",) and len(groups) == 3 and groups[1].startswith("5"):
        groups = ["9", *groups]
    style = style or rng.choice(
        words_of("s s s h c c d p") + (["z"] if code[-2:] in _ZERO_IN_BRACKETS else [])
    )
    if style == "z":
        return f"{code} (0){groups[0]} {' '.join(groups[1:])}"
    if style in ("p", "ph"):
        joint = "-" if style == "ph" or code in ("+1", "+7", "+55") else " "
        return f"{code} ({groups[0]}) {joint.join(groups[1:])}"
    if style == "sh":
        return f"{code} {'-'.join(groups)}"
    return {"s": " ", "h": "-", "d": ".", "c": "", "n": "\u00a0"}[style].join([code, *groups])


def _other_digits(scene: Scene, argument: str) -> str:
    """A telephone number in the digits of another script: `ar`, `fa` or `fw`, then a country."""
    script, _, rest = argument.partition(" ")
    zero = {"ar": 0x660, "fa": 0x6F0, "fw": 0xFF10}[script]
    number = _telephone(scene, rest)
    table = {ord(digit): chr(zero + int(digit)) for digit in string.digits}
    return number.translate({**table, 45: 0xFF0D} if script == "fw" else table)


_OCTETS = [
    5,
    23,
    31,
    34,
    35,
    37,
    45,
    46,
    51,
    52,
    54,
    62,
    66,
    67,
    69,
    77,
    78,
    79,
    80,
    81,
    82,
    83,
    84,
    85,
    86,
    87,
    88,
    89,
    90,
    91,
    92,
    93,
    94,
    95,
    96,
    98,
    103,
    104,
    106,
    109,
    111,
    114,
    117,
    118,
    121,
    123,
    125,
    128,
    129,
    130,
    131,
    134,
    137,
    138,
    139,
    141,
    142,
    144,
    146,
    149,
    151,
    157,
    158,
    159,
    161,
    162,
    163,
    165,
    167,
    168,
    173,
    176,
    177,
    178,
    179,
    181,
    185,
    186,
    188,
    190,
    193,
    194,
    195,
    199,
    200,
    201,
    202,
    206,
    207,
    209,
    212,
    213,
    216,
    217,
    218,
    219,
    220,
    222,
]


def _ip(scene: Scene, argument: str) -> str:
    rng = scene.rng
    octets = [rng.choice(_OCTETS), rng.randint(1, 254), rng.randint(0, 255), rng.randint(1, 254)]
    return ".".join(map(str, octets))


def _neighbour(scene: Scene, argument: str) -> str:
    """An address of the network of the text, other than the last one drawn from it."""

    def make() -> str:
        return _ip(scene, "").rpartition(".")[0]

    net = scene.once("network", make)
    at = int(scene.memory.get("neighbour", scene.rng.randint(2, 150)))
    scene.memory["neighbour"] = str(at + scene.rng.randint(1, 5))
    return f"{net}.{at}"


_NETS = words_of(
    "2a01:4f8 2a02:8108 2a00:1450 2a03:b0c0 2a01:e0a 2a02:c207 2604:a880 2600:3c03 2607:f8b0 "
    "2001:41d0 2001:470 2001:67c 2400:cb00 2405:201 2408:8207 2804:14d 2c0f:f530 2003:e6 2601:646 "
    "2a0a:e5c0 2606:4700"
)


def _ip6(scene: Scene, argument: str) -> str:
    rng = scene.rng
    group = lambda: f"{rng.randint(0x1000, 0xFFFF):x}"  # noqa: E731
    net = f"{rng.choice(_NETS)}:{group()}"
    style = (
        argument.split()[0] if argument else rng.choice(words_of("full full short short mid up"))
    )
    if style == "short":
        return f"{net}::{rng.choice(['1', '2', '10', f'{rng.randint(3, 0xFFF):x}'])}"
    if style == "mid":
        return f"{net}:{group()}::{rng.randint(1, 0xFFF):x}"
    text = ":".join([net, *(group() for _ in range(5))])
    return text.upper() if style == "up" else text


def _network(scene: Scene, argument: str) -> str:
    """A public network, its host bits zero: its mask is 24 or 16."""
    rng = scene.rng
    first, second, third = rng.choice(_OCTETS), rng.randint(1, 254), rng.randint(1, 254)
    return f"{first}.{second}.0.0/16" if argument == "16" else f"{first}.{second}.{third}.0/24"


def _private(scene: Scene, argument: str) -> str:
    rng = scene.rng
    last = f"{rng.randint(0, 254)}.{rng.randint(2, 254)}"
    return rng.choice([f"10.{rng.randint(0, 254)}.{last}", f"192.168.{last}", f"172.{20}.{last}"])


_BRANDS: dict[str, tuple[str, str]] = {
    "visa": ("4", "16"),
    "visa19": ("4", "19"),
    "visa13": ("4", "13"),
    "mc": ("51 52 53 54 55 2221 2345 2512 2680", "16"),
    "amex": ("34 37", "15"),
    "disc": ("6011 65 644 649", "16"),
    "diners": ("36 38 300 305", "14"),
    "jcb": ("3528 3540 3566 3589", "16"),
    "up": ("622126 622588 6217 6228 6225", "16"),
    "up19": ("621700 622202 622848 621226", "19"),
    "maestro": ("6759 5018 5020 6304", "16 18 19"),
    "maestro12": ("5018 6304", "12 13"),
    "mir": ("2200 2202 2204", "16"),
    "rupay": ("6521 6076 5085", "16"),
    "elo": ("636368 438935 504175", "16"),
    "troy": ("9792", "16"),
    "ir": ("603799 621986 610433 627412 589210", "16"),
    "verve": ("506109", "19"),
}
_USUAL = words_of("visa visa visa visa visa mc mc mc mc amex amex disc")


def _card_digits(rng: Random, brand: str) -> str:
    prefixes, sizes = _BRANDS[brand]
    start = rng.choice(prefixes.split())
    body = start + _digits(rng, int(rng.choice(sizes.split())) - len(start) - 1)
    return body + luhn_digit(body)


def _grouped(rng: Random, digits: str, style: str) -> str:
    joint = {"s": " ", "h": "-", "c": "", "d": ".", "n": "\u00a0", "w": "  ", "u": "_"}[style]
    if len(digits) in (14, 15):
        parts = [digits[:4], digits[4:10], digits[10:]]
    else:
        parts = [digits[at : at + 4] for at in range(0, len(digits), 4)]
    return joint.join(parts)


def _card(scene: Scene, argument: str) -> str:
    """A card: its network or `any`, then a style of its groups."""
    brand, style, *_ = [*argument.split(), "", ""]
    if brand in ("", "any"):
        brand = scene.rng.choice(_USUAL)
    digits = _card_digits(scene.rng, brand)
    return _grouped(scene.rng, digits, style or scene.rng.choice("sssccch"))


def _wrong_card(scene: Scene, argument: str) -> str:
    """Like a card, but the check digit is another."""
    rng = scene.rng
    brand, style, *_ = [*argument.split(), "", ""]
    digits = _card_digits(rng, rng.choice(_USUAL) if brand in ("", "any") else brand)
    digits = digits[:-1] + str((int(digits[-1]) + rng.randint(1, 9)) % 10)
    return _grouped(rng, digits, style or rng.choice("sssccch"))


def _number(scene: Scene, argument: str) -> str:
    """So many digits; what stands before `|` in the argument leads. Never right by Luhn's sum."""
    lead, _, size = argument.rpartition("|")
    count = int(size or 6) - len(lead)
    first = "" if lead else str(scene.rng.randint(1, 9))
    body = lead + first + _digits(scene.rng, count - len(first) - 1)
    right = luhn_digit(body)
    return body + scene.rng.choice([one for one in string.digits if one != right])


def _imei(scene: Scene, argument: str) -> str:
    body = scene.rng.choice(["353918", "356938", "861536", "014085"]) + _digits(scene.rng, 8)
    return body + luhn_digit(body)


def _integer(scene: Scene, argument: str) -> str:
    low, _, high = argument.partition("-")
    return str(scene.rng.randint(int(low), int(high)))


def _two(scene: Scene, argument: str) -> str:
    """A number of two digits, its zero kept."""
    low, _, high = argument.partition("-")
    return f"{scene.rng.randint(int(low), int(high)):02}"


def _date(scene: Scene, argument: str) -> str:
    rng = scene.rng
    year, month, day = rng.randint(2004, 2025), rng.randint(1, 12), rng.randint(1, 28)
    if argument == "log":
        names = words_of("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")
        return f"{day:02}/{names[month - 1]}/{year}"
    if argument == "syslog":
        names = words_of("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")
        return f"{names[month - 1]} {day:2}"
    if argument == "dot":
        return f"{day:02}.{month:02}.{year}"
    if argument == "us":
        return f"{month:02}/{day:02}/{year}"
    return f"{year}-{month:02}-{day:02}"


def _time(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _text_of(alphabet: str) -> Maker:
    def make(scene: Scene, argument: str) -> str:
        return "".join(scene.rng.choice(alphabet) for _ in range(int(argument or 8)))

    return make


def _pick(scene: Scene, argument: str) -> str:
    return scene.rng.choice(argument.split("|"))


def _version(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 19)}.{rng.randint(0, 30)}.{rng.randint(0, 12)}"


def _place(table: dict[str, str]) -> Maker:
    def make(scene: Scene, argument: str) -> str:
        return scene.rng.choice(table.get(argument, table["en"]).split()).replace("_", " ")

    return make


def _company(scene: Scene, argument: str) -> str:
    rng = scene.rng
    form = {
        "de": "GmbH",
        "fr": "SARL",
        "it": "S.r.l.",
        "es": "S.L.",
        "nl": "B.V.",
        "pl": "Sp. z o.o.",
    }
    end = form.get(argument) or rng.choice(["Ltd", "Inc.", "LLC", "Ltd.", "& Co.", "Group"])
    return f"{rng.choice(SITE_A).capitalize()}{rng.choice(SITE_B)} {end}"


def _expiry(scene: Scene, argument: str) -> str:
    month, year = scene.rng.randint(1, 12), scene.rng.randint(24, 31)
    return f"{month:02}{argument or '/'}{year}"


def _word(scene: Scene, argument: str) -> str:
    return scene.rng.choice(SITE_A) + scene.rng.choice(["-", "_", ""]) + scene.rng.choice(SITE_B)


def _part(index: int) -> Callable[[Scene, str], str]:
    def make(scene: Scene, argument: str) -> str:
        return _person(scene, argument)[1][index]

    return make


MAKERS: dict[str, Maker] = {
    "personal_name": _name,
    "personal_asciiname": _ascii_name,
    "personal_first": _part(0),
    "personal_last": _part(2),
    "personal_login": lambda scene, argument: _person(scene, argument)[1][1],
    "personal_nick": _nick,
    "personal_mail": _mail,
    "personal_obf": _obscured,
    "personal_ent": _entities,
    "personal_host": _host,
    "personal_srv": _server,
    "personal_tel": _telephone,
    "personal_telx": _other_digits,
    "personal_ip": _ip,
    "personal_near": _neighbour,
    "personal_ip6": _ip6,
    "personal_net": _network,
    "personal_priv": _private,
    "personal_card": _card,
    "personal_bad": _wrong_card,
    "personal_num": _number,
    "personal_imei": _imei,
    "personal_int": _integer,
    "personal_two": _two,
    "personal_date": _date,
    "personal_time": _time,
    "personal_hex": _text_of("0123456789abcdef"),
    "personal_uhex": _text_of("0123456789ABCDEF"),
    "personal_up": _text_of(string.ascii_uppercase + string.digits),
    "personal_b64": _text_of(string.ascii_letters + string.digits),
    "personal_pick": _pick,
    "personal_ver": _version,
    "personal_city": _place(CITIES),
    "personal_street": _place(STREETS),
    "personal_co": _company,
    "personal_exp": _expiry,
    "personal_word": _word,
}
