"""Makers of the kinds connection, password, bearer and broken_token."""

from __future__ import annotations

import base64
import json
import re
import string
from urllib.parse import quote

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc_base62, segment
from tests.benchmarks.eighteenth_blind.secrets_words import (
    BASES,
    CITIES,
    FIRMS,
    INNER,
    LABELS,
    NAMES,
    PHRASE,
    PROJECTS,
    SECRET_WORDS,
    TLDS,
    USERS,
)

_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "A": _ALNUM,
    "a": string.ascii_letters,
    "H": "0123456789abcdef",
    "U": string.ascii_uppercase + "234567",
    "L": string.ascii_lowercase + string.digits,
    "B": _ALNUM + "-_",
    "D": string.digits,
}
_BAD = re.compile(r"(?i)example|placeholder|x{6}|\*\*\*|\.\.\.|0{12}|changeme|[{}]")
_MARKS = {"": "!#$%*+-=?@^_.", "s": "-_.+#", "w": "_-.+@%", "x": "!#*+-?@_.", "u": "!*$^+-._~"}
"""Marks of a password by where it stands: in quotes, a sentence, a shell, XML, a URL."""
KEYS = {
    "githubpat": "github_pat_%A22_%A59",
    "gitlab": "glpat-%B20",
    "gitlabci": "glptt-%H40",
    "slackb": "xoxb-%D12-%D13-%A24",
    "slackp": "xoxp-%D12-%D12-%D13-%H32",
    "slackapp": "xapp-1-A%U10-%D13-%H64",
    "stripe": "sk_live_%A24",
    "stripelong": "sk_live_51%A97",
    "striper": "rk_live_%A24",
    "openai": "sk-%A20T3BlbkFJ%A20",
    "openaip": "sk-proj-%B74T3BlbkFJ%B74",
    "anthropic": "sk-ant-api03-%B93AA",
    "hf": "hf_%a34",
    "sendgrid": "SG.%B22.%B43",
    "google": "AIzaSy%B33",
    "digitalocean": "dop_v1_%H64",
    "shopify": "shpat_%H32",
    "pypi": "pypi-AgEIcHlwaS5vcmcCJ%B139",
    "vault": "hvs.CAESI%B90",
    "docker": "dckr_pat_%B27",
    "linear": "lin_api_%A40",
    "notion": "ntn_%D11%A35",
    "newrelic": "NRAK-%U27",
    "mailgun": "key-%H32",
    "mailchimp": "%H32-us12",
    "doppler": "dp.pt.%A43",
    "planetscale": "pscale_tkn_%B43",
    "databricks": "dapi%H32",
    "postman": "PMAK-%H24-%H34",
    "figma": "figd_%B40",
    "atlassian": "ATATT3xFfGF0%B171=%U8",
    "grafana": "glsa_%A32_%H8",
    "telegram": "7%D9:AA%B33",
    "discord": "MT%A22.%B6.%B38",
    "groq": "gsk_%A52",
    "replicate": "r8_%A37",
    "pulumi": "pul-%H40",
    "rubygems": "rubygems_%H48",
    "airtable": "pat%A14.%H64",
    "supabase": "sbp_%H40",
    "brevo": "xkeysib-%H64-%A16",
    "dynatrace": "dt0c01.%U24.%U64",
    "terraform": "%A14.atlasv1.%B67",
    "googleoauth": "ya29.a0%B160",
    "square": "EAAAE%B59",
    "facebook": "EAAC%A160",
    "perplexity": "pplx-%A48",
    "resend": "re_%A8_%A24",
    "asana": "2/%D16/%D16:%H32",
}
"""Forms of keys: `%` with the letter of an alphabet and a length stands for what is drawn."""


def _run(scene: Scene, alphabet: str, length: int) -> str:
    return "".join(scene.rng.choice(alphabet) for _ in range(length))


def _clean(make: Maker) -> Maker:
    """The maker, drawing again until its value looks like no placeholder."""

    def draw(scene: Scene, argument: str) -> str:
        value = make(scene, argument)
        while _BAD.search(value):
            value = make(scene, argument)
        return value

    return draw


def _pick(words: list[str]) -> Maker:
    return lambda scene, _: scene.rng.choice(words)


def _fill_form(scene: Scene, form: str) -> str:
    def draw(match: re.Match[str]) -> str:
        alphabet = _ALPHABETS[match[1]]
        last = "".join(filter(str.isalnum, alphabet))
        return _run(scene, alphabet, int(match[2]) - 1) + _run(scene, last, 1)

    return re.sub(r"%([AaHULBD])(\d+)", draw, form)


def key(scene: Scene, service: str) -> str:
    """A key of a service, of any one without argument; with a checksum if the service has one."""
    service = service or scene.rng.choice(["ghp", "npm", *KEYS])
    if service in ("ghp", "gho", "ghs", "ghu", "npm"):
        body = _run(scene, _ALNUM, 30)
        return f"{service}_{body}{crc_base62(body)}"
    return _fill_form(scene, KEYS[service])


def wrong_ghp(scene: Scene, prefix: str) -> str:
    """A token of GitHub's form whose checksum is wrong."""
    check = scene.rng.choice("zyxw") + _run(scene, _ALNUM, 5)
    return f"{prefix or 'ghp'}_{_run(scene, _ALNUM, 30)}{check}"


def form(scene: Scene, pattern: str) -> str:
    """What a form such as `%H32` stands for."""
    return _fill_form(scene, pattern)


def b64(scene: Scene, size: str) -> str:
    """Base64 of so many bytes."""
    return base64.b64encode(scene.rng.randbytes(int(size or 32))).decode()


def password(scene: Scene, place: str) -> str:
    """A password as people choose them, or a made one, with marks that its place allows."""
    rng, marks = scene.rng, _MARKS[place if place in _MARKS else ""]
    mark, word, other = rng.choice(marks), rng.choice(SECRET_WORDS), rng.choice(SECRET_WORDS)
    number = str(rng.choice((rng.randint(13, 99), rng.randint(1961, 2024), rng.randint(104, 9876))))
    length = rng.randint(10, 20)
    forms = [
        lambda: word + mark + number,
        lambda: word.lower() + number + mark + other.lower(),
        lambda: word + other + number,
        lambda: number + mark + word.lower() + rng.choice(marks) + other.title(),
        lambda: word.translate(str.maketrans("aeio", "4310")) + mark + number,
        lambda: _run(scene, _ALNUM, length) + str(rng.randint(2, 99)),
        lambda: _run(scene, _ALNUM, 6) + mark + _run(scene, _ALNUM, length - 5),
        lambda: (
            _run(scene, string.ascii_lowercase + string.digits, length) + str(rng.randint(2, 9))
        ),
    ]
    if place not in ("s", "w"):
        forms += [
            lambda: word + number + rng.choice("!?#*" if place != "u" else "!*$~"),
            lambda: word.lower() + mark + number + rng.choice("!+*" if place != "u" else "!+"),
        ]
    return rng.choice(forms)()


def url_password(scene: Scene, _: str) -> str:
    """A password in a URL, sometimes percent-encoded."""
    if scene.rng.random() < 0.8:
        return password(scene, "u")
    word, number = scene.rng.choice(SECRET_WORDS), scene.rng.randint(11, 9999)
    mark = scene.rng.choice("@#:/?&=@#")
    return quote(f"{word}{mark}{number}" + scene.rng.choice(["", "!", "+", "_x"]), safe="!+_")


def phrase(scene: Scene, mark: str) -> str:
    """A passphrase of four words or five, with blanks or another mark between them."""
    return (mark or " ").join(scene.rng.sample(PHRASE, scene.rng.choice((4, 5))))


def django(scene: Scene, prefix: str) -> str:
    """A SECRET_KEY as Django makes it."""
    alphabet = string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)"
    return prefix + _run(scene, alphabet, 49) + scene.rng.choice(string.ascii_lowercase)


def salt(scene: Scene, _: str) -> str:
    """A salt of WordPress: 64 characters with marks and blanks."""
    alphabet = _ALNUM * 2 + "!@#$%^&*()-_[]~`+=,.;:/?| "
    return scene.rng.choice(_ALNUM) + _run(scene, alphabet, 62) + scene.rng.choice(_ALNUM)


def jwt(scene: Scene, argument: str) -> str:
    """A signed web token; the argument names the algorithm, `long` asks for more claims."""
    rng = scene.rng
    algorithm = next((one for one in ("RS256", "ES256", "HS512") if one in argument), "HS256")
    size = {"HS256": 32, "HS512": 64, "RS256": 256, "ES256": 64}[algorithm]
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.2:
        head = {"typ": "JWT", "alg": algorithm}
    if algorithm in ("RS256", "ES256"):
        head["kid"] = _run(scene, _ALPHABETS["H"], 16)
    start = rng.randint(1_480_000_000, 1_740_000_000)
    claims: dict[str, object] = {"sub": str(rng.randint(100, 99999)), "iat": start}
    if rng.random() < 0.6:
        claims["exp"] = start + rng.choice((900, 3600, 86400, 2592000))
    if rng.random() < 0.5 or "long" in argument:
        claims |= {"name": rng.choice(NAMES), "role": rng.choice(("admin", "user", "editor"))}
    if rng.random() < 0.4 or "long" in argument:
        claims["iss"] = f"https://auth.{domain(scene, '')}/"
    parts = [json.dumps(one, separators=(",", ":")).encode() for one in (head, claims)]
    return ".".join(map(segment, (*parts, rng.randbytes(size))))


def basic(scene: Scene, _: str) -> str:
    """Base64 of a user and a password."""
    login = f"{scene.rng.choice(USERS)}:{password(scene, 'x')}"
    return base64.b64encode(login.encode()).decode()


def basic_of(scene: Scene, login: str) -> str:
    """Base64 of the argument, for a placeholder of documentation."""
    return base64.b64encode(login.encode()).decode()


def _cut(scene: Scene, token: str, count: int) -> list[str]:
    """The token in so many parts of at least 12 characters, somewhat unequal."""
    spare = len(token) - 12 * count
    places = sorted(scene.rng.randint(0, spare) for _ in range(count - 1))
    if spare > 40:
        places = [spare * at // count + scene.rng.randint(-4, 4) for at in range(1, count)]
    ends = [12 * (at + 1) + place for at, place in enumerate(places)]
    return [token[start:end] for start, end in zip([0, *ends], [*ends, len(token)], strict=True)]


def _token(scene: Scene, service: str) -> str:
    return _clean(jwt if service.startswith("jwt") else key)(scene, service.removeprefix("jwt"))


def part(scene: Scene, argument: str) -> str:
    """The next part of a broken token; `SERVICE COUNT` starts one (`dots`: at the dots)."""
    if argument:
        service, count = argument.split(" ")
        token = _token(scene, service)
        if count == "dots":
            parts = re.findall(r"[^.]+\.?", token)
        else:
            parts = _cut(scene, token, int(count))
        scene.memory["parts"] = "\n".join(parts)
    first, _, rest = scene.memory["parts"].partition("\n")
    scene.memory["parts"] = rest
    return first


def wrapped(scene: Scene, argument: str) -> str:
    """A token wrapped after so many characters: `SERVICE WIDTH FIRST|SEPARATOR`.

    The first line is shorter by FIRST; `\\n` in the separator is a line's end, `LT` and `GT`
    are angles.
    """
    head, _, separator = argument.partition("|")
    service, width, first = head.split(" ")
    between = separator.replace("\\n", "\n").replace("GT", ">").replace("LT", "<")
    for _ in range(200):
        token = _token(scene, service)
        start = int(width) - int(first)
        parts = [token[:start]]
        parts += [token[at : at + int(width)] for at in range(start, len(token), int(width))]
        if 2 <= len(parts) <= 4 and min(map(len, parts)) >= 12:
            return between.join(f"\x02{one}\x03" for one in parts)
    raise ValueError(f"no token breaks so: {argument}")


def domain(scene: Scene, _: str) -> str:
    """A domain of a firm."""
    name = scene.rng.choice(FIRMS).lower()
    return f"{name}{scene.rng.choice(['', '', '-it', 'tech', 'group'])}.{scene.rng.choice(TLDS)}"


def host(scene: Scene, _: str) -> str:
    """A host of a firm."""
    return f"{scene.rng.choice(LABELS)}.{domain(scene, '')}"


def mail(scene: Scene, _: str) -> str:
    """An address at a firm."""
    return f"{scene.rng.choice(['info', 'it', 'support', 'k.berg', 'noreply'])}@{domain(scene, '')}"


def number(scene: Scene, bounds: str) -> str:
    """A number between two bounds such as `1-99`."""
    low, _, high = (bounds or "10-9999").partition("-")
    return str(scene.rng.randint(int(low), int(high)))


def date(scene: Scene, style: str) -> str:
    """A day, as ISO writes it, or with dots or slashes as the argument."""
    day, month, year = (scene.rng.randint(*pair) for pair in ((1, 28), (1, 12), (2011, 2024)))
    return f"{day:02}{style}{month:02}{style}{year}" if style else f"{year}-{month:02}-{day:02}"


def time(scene: Scene, _: str) -> str:
    """A time of day."""
    return ":".join(f"{scene.rng.randint(0, top):02}" for top in (23, 59, 59))


def uuid(scene: Scene, _: str) -> str:
    """A UUID of version 4."""
    return form(scene, "%H8-%H4-4%H3-a%H3-%H12")


def address(scene: Scene, _: str) -> str:
    """A private IPv4 address."""
    return f"10.{scene.rng.randint(0, 250)}.{scene.rng.randint(0, 250)}.{scene.rng.randint(2, 250)}"


MAKERS: dict[str, Maker] = {
    "secrets_key": _clean(key),
    "secrets_nokey": wrong_ghp,
    "secrets_f": _clean(form),
    "secrets_b64": _clean(b64),
    "secrets_pw": _clean(password),
    "secrets_upw": _clean(url_password),
    "secrets_phrase": _clean(phrase),
    "secrets_django": _clean(django),
    "secrets_salt": _clean(salt),
    "secrets_jwt": _clean(jwt),
    "secrets_basic": _clean(basic),
    "secrets_basicof": basic_of,
    "secrets_p": part,
    "secrets_w": wrapped,
    "secrets_user": _pick(USERS),
    "secrets_name": _pick(NAMES),
    "secrets_firm": _pick(FIRMS),
    "secrets_db": _pick(BASES),
    "secrets_proj": _pick(PROJECTS),
    "secrets_city": _pick(CITIES),
    "secrets_inner": _pick(INNER),
    "secrets_dom": domain,
    "secrets_host": host,
    "secrets_mail": mail,
    "secrets_n": number,
    "secrets_date": date,
    "secrets_time": time,
    "secrets_uuid": uuid,
    "secrets_ip": address,
}
