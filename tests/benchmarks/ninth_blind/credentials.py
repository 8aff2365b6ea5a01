"""Passwords, credentials in URLs and headers, and tokens that are broken into parts."""

from __future__ import annotations

import base64
import random
import string

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.ninth_blind.keys import make_jwt
from tests.benchmarks.ninth_blind.services import LOWER, make_key
from tests.benchmarks.ninth_blind.words import (
    ALNUM,
    COMMON,
    HEX,
    NOUNS,
    URLSAFE,
    mixed,
    pick,
    split,
)


def make_password(rng: random.Random, symbols: str = "!.-_*+=^~") -> str:
    """A password as people choose or generators make them; no placeholder, never a plain word."""
    first, second = rng.sample(COMMON, 2)
    mark = rng.choice(symbols)
    return rng.choice(
        [
            f"{first.title()}{mark}{second.title()}{rng.randint(10, 99)}",
            f"{first[:4].title()}{rng.randint(1000, 9999)}{mark}{second}",
            f"{pick(rng, string.ascii_lowercase, 4)}-{mixed(rng, ALNUM, 6)}-{pick(rng, ALNUM, 5)}k",
            mixed(rng, ALNUM, rng.randint(14, 24)),
            mixed(rng, ALNUM, 9) + mark + mixed(rng, ALNUM, 8),
            pick(rng, HEX, 32),
        ]
    )


def _password(scene: Scene, argument: str) -> str:
    rng = scene.rng
    if argument == "random":
        return mixed(rng, ALNUM, rng.randint(18, 32))
    if argument == "hex":
        return pick(rng, HEX, rng.choice([40, 48, 64]))
    if argument == "human":
        first, second = rng.sample(COMMON, 2)
        mark = rng.choice("!-_.*")
        return f"{first.title()}{mark}{second.title()}{rng.randint(10, 99)}"
    if argument == "django":
        symbols = "!=+*(^)_-"
        return "django-insecure-" + mixed(rng, LOWER + symbols, 49) + "z"
    return make_password(rng)


def _url_password(scene: Scene, argument: str) -> str:
    rng = scene.rng
    if argument == "encoded":
        code = rng.choice(["40", "21", "23", "2F", "3D"])
        return f"{mixed(rng, ALNUM, 6)}%{code}{mixed(rng, ALNUM, 7)}"
    return make_password(rng, "!.-_*~")


def _bearer(scene: Scene, argument: str) -> str:
    rng = scene.rng
    forms = {
        "opaque": lambda: mixed(rng, URLSAFE, rng.randint(32, 60)).strip("-_") + "q7",
        "hex": lambda: pick(rng, HEX, rng.choice([40, 64])),
        "jwt": lambda: make_jwt(rng),
        "padded": lambda: base64.b64encode(rng.randbytes(40)).decode(),
    }
    return forms[argument or rng.choice(list(forms))]()


def _basic(scene: Scene, _: str) -> str:
    rng = scene.rng
    name = f"{rng.choice(NOUNS)}-{rng.choice(['bot', 'api', 'sync'])}"
    return base64.b64encode(f"{name}:{make_password(rng)}".encode()).decode()


_GLUES = {
    "line": "\n",
    "indent": "\n    ",
    "deep": "\n            ",
    "crlf": "\r\n",
    "backslash": "\\\n",
    "backslash_indent": "\\\n    ",
    "adjacent": '"\n    "',
    "adjacent_single": "'\n    '",
    "plus": '" +\n    "',
    "plus_single": "' +\n    '",
    "plus_before": '"\n    + "',
    "plus_inline": '" + "',
    "plus_inline_single": "' + '",
    "php": "' .\n    '",
    "lua": '" ..\n    "',
    "vb": '" & _\n    "',
    "sql": "' ||\n  '",
    "comma": '", "',
    "comma_line": '",\n    "',
    "comma_line_single": "',\n    '",
    "c_string": '" \\\n    "',
    "soft": "=\n",
    "quote": "\n> ",
    "comment": "\n# ",
    "slashes": "\n// ",
    "star": "\n * ",
    "added": "\n+",
    "html": "<br>\n",
    "wbr": "<wbr>",
    "elixir": '" <>\n    "',
    "haskell": '" ++\n    "',
    "tilde": "' ~\n    '",
    "append": '"\ntoken += "',
    "append_js": "';\ntoken += '",
    "append_data": '"\ndata += "',
    "append_data_js": "';\ndata += '",
    "fold": "\n  ",
    "shell": '"\nTOKEN="${TOKEN}',
    "rust_gap": "\\\n     ",
    "list": '"\n  - "',
}
_LONG = split(
    """
    github github_fine slack_bot stripe_long openai_project anthropic openrouter hugging_face npm
    pypi digitalocean sendgrid shopify databricks notion grafana groq google rubygems sentry figma
    """
)


def break_up(rng: random.Random, value: str, glue: str) -> str:
    """A value in two or three marked parts of at least 12 characters, with glue between."""
    count = 3 if len(value) > 90 or (len(value) > 60 and rng.random() < 0.5) else 2
    size = len(value) // count
    parts, at = [], 0
    for _ in range(count - 1):
        end = at + size + rng.randint(-3, 3)
        parts.append(value[at:end])
        at = end
    parts.append(value[at:])
    return _GLUES[glue].join(f"\x02{part}\x03" for part in parts)


def _broken(scene: Scene, argument: str) -> str:
    rng = scene.rng
    glue, _, what = argument.partition("/")
    if what == "jwt" or (not what and rng.random() < 0.25):
        return break_up(rng, make_jwt(rng, short=rng.random() < 0.6), glue)
    return break_up(rng, make_key(rng, what or rng.choice(_LONG)), glue)


def _broken_other(scene: Scene, argument: str) -> str:
    """A digest, image, certificate or the like in parts."""
    rng = scene.rng
    glue, _, what = argument.partition("/")
    forms = {
        "sha256": lambda: pick(rng, HEX, 64),
        "sha512": lambda: pick(rng, HEX, 128),
        "image": lambda: "iVBORw0KGgoAAAANSUhEUgAA" + base64.b64encode(rng.randbytes(60)).decode(),
        "gif": lambda: "R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==",
        "certificate": lambda: "MIIC" + base64.b64encode(rng.randbytes(93)).decode(),
        "public": lambda: (
            "AAAAC3NzaC1lZDI1NTE5AAAAI" + base64.b64encode(rng.randbytes(32)).decode()
        ),
        "font": lambda: "d09GMgABAAAAA" + base64.b64encode(rng.randbytes(66)).decode(),
        "base64": lambda: base64.b64encode(rng.randbytes(64)).decode(),
        "dna": lambda: pick(rng, "ACGT", 80),
        "hexdump": lambda: pick(rng, HEX, 96),
        "zeros": lambda: "0" * 64,
        "placeholder": lambda: rng.choice(["ghp_", "sk-ant-", "glpat-", "xoxb-"]) + "x" * 60,
        "alphabet": lambda: string.ascii_uppercase + string.ascii_lowercase + string.digits,
    }
    value = forms[what or rng.choice(["sha256", "sha512", "image", "certificate"])]()
    return break_up(rng, value, glue).replace("\x02", "").replace("\x03", "")


CREDENTIAL_MAKERS: dict[str, Maker] = {
    "password": _password,
    "url_password": _url_password,
    "azure_key": lambda scene, _: base64.b64encode(scene.rng.randbytes(64)).decode(),
    "bearer": _bearer,
    "basic": _basic,
    "broken": _broken,
    "broken_other": _broken_other,
}
