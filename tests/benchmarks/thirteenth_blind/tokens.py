"""Tokens of the thirteenth blind set: keys of services, web tokens, pieces of broken ones.

No value is anybody's: all are drawn at random in the shape that the service documents.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Mapping

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.thirteenth_blind.words import (
    BASE62,
    HEX,
    base64_of,
    draw,
    make_domain,
    make_uuid,
    mixed,
)

_URL64 = BASE62 + "-_"
_BASE32 = string.ascii_uppercase + "234567"
Make = Callable[[random.Random], str]


def _checked(prefix: str) -> Make:
    def make(rng: random.Random) -> str:
        body = mixed(rng, 30)
        return prefix + body + crc_base62(body)

    return make


def _url(rng: random.Random, size: int) -> str:
    """Characters of base64 for addresses, the first and last of which are no sign."""
    return rng.choice(BASE62) + mixed(rng, size - 2, _URL64) + rng.choice(BASE62)


def _discord(rng: random.Random) -> str:
    account = base64.b64encode(str(rng.randint(3 * 10**17, 12 * 10**17)).encode()).decode()
    return f"{account.rstrip('=')}.G{mixed(rng, 5)}.{_url(rng, 38)}"


def _slack_bot(rng: random.Random) -> str:
    return f"xoxb-{_digits(rng, 12)}-{_digits(rng, 13)}-{mixed(rng, 24)}"


def _digits(rng: random.Random, size: int) -> str:
    return rng.choice("123456789") + draw(rng, string.digits, size - 1)


SERVICES: Mapping[str, Make] = {
    "github": _checked("ghp_"),
    "github_fine": lambda r: f"github_pat_11{draw(r, _BASE32, 20)}_{mixed(r, 59)}",
    "github_app": _checked("ghs_"),
    "gitlab": lambda r: "glpat-" + _url(r, 20),
    "npm": _checked("npm_"),
    "openai": lambda r: f"sk-proj-{_url(r, 74)}T3BlbkFJ{_url(r, 74)}",
    "openai_old": lambda r: f"sk-{mixed(r, 20)}T3BlbkFJ{mixed(r, 20)}",
    "anthropic": lambda r: f"sk-ant-api03-{_url(r, 93)}AA",
    "aws_id": lambda r: "AKIA" + draw(r, _BASE32, 16),
    "aws": lambda r: mixed(r, 40, BASE62 + "/+"),
    "google": lambda r: "AIzaSy" + _url(r, 33),
    "google_oauth": lambda r: "GOCSPX-" + _url(r, 28),
    "slack": _slack_bot,
    "slack_app": lambda r: f"xapp-1-A0{draw(r, _BASE32, 9)}-{_digits(r, 13)}-{draw(r, HEX, 64)}",
    "stripe": lambda r: "sk_live_51" + mixed(r, 97),
    "stripe_old": lambda r: "sk_live_" + mixed(r, 24),
    "stripe_webhook": lambda r: "whsec_" + mixed(r, 32),
    "sendgrid": lambda r: f"SG.{_url(r, 22)}.{_url(r, 43)}",
    "hex32": lambda r: draw(r, HEX, 32),
    "mailgun": lambda r: "key-" + draw(r, HEX, 32),
    "mailchimp": lambda r: f"{draw(r, HEX, 32)}-us{r.randint(1, 21)}",
    "brevo": lambda r: f"xkeysib-{draw(r, HEX, 64)}-{mixed(r, 16)}",
    "telegram": lambda r: f"{_digits(r, 10)}:AA{_url(r, 33)}",
    "discord": _discord,
    "hugging_face": lambda r: "hf_" + draw(r, string.ascii_letters, 34),
    "docker": lambda r: "dckr_pat_" + _url(r, 27),
    "digitalocean": lambda r: "dop_v1_" + draw(r, HEX, 64),
    "shopify": lambda r: "shpat_" + draw(r, HEX, 32),
    "databricks": lambda r: "dapi" + draw(r, HEX, 32),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + _url(r, 160),
    "rubygems": lambda r: "rubygems_" + draw(r, HEX, 48),
    "notion": lambda r: f"ntn_{_digits(r, 11)}{mixed(r, 35)}",
    "linear": lambda r: "lin_api_" + mixed(r, 40),
    "airtable": lambda r: f"pat{mixed(r, 14)}.{draw(r, HEX, 64)}",
    "figma": lambda r: "figd_" + _url(r, 40),
    "postman": lambda r: f"PMAK-{draw(r, HEX, 24)}-{draw(r, HEX, 34)}",
    "new_relic": lambda r: "NRAK-" + draw(r, string.ascii_uppercase + string.digits, 27),
    "grafana": lambda r: f"glsa_{mixed(r, 32)}_{draw(r, HEX, 8)}",
    "terraform": lambda r: f"{mixed(r, 14)}.atlasv1.{_url(r, 67)}",
    "vault": lambda r: "hvs.CAESI" + _url(r, 86),
    "supabase": lambda r: "sbp_" + draw(r, HEX, 40),
    "groq": lambda r: "gsk_" + mixed(r, 52),
    "replicate": lambda r: "r8_" + mixed(r, 37),
    "openrouter": lambda r: "sk-or-v1-" + draw(r, HEX, 64),
    "perplexity": lambda r: "pplx-" + mixed(r, 48),
    "tailscale": lambda r: f"tskey-auth-k{mixed(r, 11)}CNTRL-{mixed(r, 32)}",
    "doppler": lambda r: "dp.pt." + mixed(r, 43),
    "pulumi": lambda r: "pul-" + draw(r, HEX, 40),
    "azure": lambda r: base64_of(r, 64),
    "alibaba_id": lambda r: "LTAI5t" + mixed(r, 18),
    "alibaba": lambda r: mixed(r, 30),
    "heroku": make_uuid,
    "sentry": lambda r: "sntryu_" + draw(r, HEX, 64),
}
"""Keys by the service that issues them; those of hexadecimal digits need a name beside them."""
FORMED: Mapping[str, float] = {
    "github": 6,
    "github_fine": 3,
    "gitlab": 3,
    "npm": 2,
    "openai": 5,
    "openai_old": 2,
    "anthropic": 3,
    "google": 6,
    "slack": 4,
    "stripe": 3,
    "stripe_old": 3,
    "sendgrid": 3,
    "telegram": 3,
    "discord": 2,
    "hugging_face": 3,
    "docker": 1,
    "digitalocean": 2,
    "shopify": 1,
    "databricks": 1,
    "pypi": 1,
    "notion": 1,
    "airtable": 1,
    "grafana": 1,
    "groq": 1,
    "openrouter": 1,
    "replicate": 1,
    "mailgun": 1,
    "google_oauth": 2,
    "vault": 1,
}
"""Shares of the services whose keys have a form of their own."""
_BROKEN: Mapping[str, float] = {
    "jwt": 9,
    "github": 4,
    "npm": 2,
    "openai": 4,
    "anthropic": 3,
    "sendgrid": 2,
    "slack": 2,
    "github_fine": 2,
    "stripe": 1,
    "digitalocean": 1,
    "pypi": 1,
    "openrouter": 1,
}
_GLUES: Mapping[str, str] = {
    "wrap": "\n",
    "quote": "\n> ",
    "quotes": "\n>> ",
    "backslash": "\\\n",
    "indent2": "\n  ",
    "indent4": "\n    ",
    "indent8": "\n        ",
    "comment": "\n# ",
    "slashes": "\n// ",
    "star": "\n * ",
    "literals": '"\n    "',
    "single": "'\n    '",
    "plus": '" +\n    "',
    "plus1": "' +\n  '",
    "plus_tab": '" +\n\t\t"',
    "java": '"\n        + "',
    "dot": "' .\n    '",
    "dots": '" ..\n  "',
    "basic": '" & _\n    "',
    "ruby": "' \\\n  '",
    "printable": "=\n",
    "join": "',\n  '",
    "joins": '",\n    "',
    "append": '"\nTOKEN+="',
    "tab": "\n\t",
    "erlang": '"\n   "',
    "caret": "^\n",
    "backtick": "` +\n  `",
    "space_plus": "' + '",
    "break": "<br>\n",
    "cpp": '"\n        "',
    "plus_same": '" + "',
}
"""What breaks a token in each writing."""
_WRAPPED = frozenset(
    {"wrap", "quote", "quotes", "printable", "indent2", "indent4", "indent8", "tab"}
)


def make_key(rng: random.Random, name: str = "") -> str:
    """A key of a service, of any with a form of its own by default."""
    return SERVICES[name or rng.choices(tuple(FORMED), tuple(FORMED.values()))[0]](rng)


def make_jwt(rng: random.Random) -> str:
    """A signed web token (RFC 7519) whose signature has the length of its algorithm."""
    algorithm = rng.choices(("HS256", "RS256", "ES256", "HS512"), (6, 4, 1, 0.5))[0]
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.2:
        head = {"typ": "JWT", "alg": algorithm}
    if algorithm[0] != "H":
        head["kid"] = draw(rng, HEX, 16)
    issued = rng.randint(1_500_000_000, 1_750_000_000)
    claims: dict[str, object] = {"sub": rng.choice((make_uuid(rng), str(rng.randint(1, 99999))))}
    extras = {
        "iss": f"https://auth.{make_domain(rng)}/",
        "email_verified": True,
        "role": rng.choice(("admin", "user", "editor", "service_role", "anon")),
        "scope": rng.choice(("openid profile", "read:all", "orders.read")),
        "jti": draw(rng, HEX, 32),
        "aud": rng.choice(("api", "web", "mobile-app")),
    }
    claims |= {name: extras[name] for name in rng.sample(sorted(extras), rng.randint(0, 4))}
    claims |= {"iat": issued, "exp": issued + rng.choice((900, 3600, 86400, 2592000))}
    parts = [segment(json.dumps(one, separators=(",", ":")).encode()) for one in (head, claims)]
    return ".".join((*parts, segment(rng.randbytes(SIGNATURES[algorithm]))))


def make_opaque(rng: random.Random) -> str:
    """A bearer token without a form: what servers of OAuth 2 issue."""
    sort = rng.random()
    if sort < 0.35:
        return mixed(rng, rng.choice((32, 36, 40, 48, 64)))
    if sort < 0.6:
        return draw(rng, HEX, rng.choice((32, 40, 64)))
    if sort < 0.8:
        return _url(rng, rng.choice((43, 64, 86)))
    return make_uuid(rng)


def cut(rng: random.Random, token: str, glue: str) -> list[str]:
    """Pieces of at least 12 characters: full lines where a text is wrapped, else drawn places."""
    if glue in _WRAPPED and len(token) > 72:
        widths = [size for size in (60, 64, 72, 76) if 12 <= len(token) % size < len(token)]
        width = rng.choice(widths or [59])
        pieces = [token[at : at + width] for at in range(0, len(token), width)]
        return pieces if len(pieces[-1]) >= 12 else [*pieces[:-2], pieces[-2] + pieces[-1]]
    count = 2 if len(token) < 90 else rng.choice((2, 3, 3, 4))
    size = len(token) // count
    slack = max(0, min(6, (size - 12) // 2))
    places = [at * size + rng.randint(-slack, slack) for at in range(1, count)]
    return [token[a:b] for a, b in zip([0, *places], [*places, len(token)], strict=True)]


def _broken(scene: Scene, argument: str) -> str:
    glue, _, name = argument.partition(" ")
    name = name or scene.rng.choices(tuple(_BROKEN), tuple(_BROKEN.values()))[0]
    token = make_jwt(scene.rng) if name == "jwt" else make_key(scene.rng, name)
    return _GLUES[glue].join(f"\x02{piece}\x03" for piece in cut(scene.rng, token, glue))


def _broken_other(scene: Scene, argument: str) -> str:
    """Base64 that is no token (an image, a font, a public key's middle), broken as tokens are."""
    glue, _, size = argument.partition(" ")
    text = base64_of(scene.rng, int(size or 96))
    return _GLUES[glue].join(cut(scene.rng, text, glue))


def _json64(scene: Scene, form: str) -> str:
    """Base64 of a JSON text that is no web token: a cursor, a source map, a header alone."""
    rng = scene.rng
    content: dict[str, object] = {
        "cursor": {"id": rng.randint(1000, 99999), "dir": "next", "limit": 50},
        "map": {"version": 3, "sources": [f"webpack:///src/{draw(rng, HEX, 5)}.js"], "names": []},
        "head": {"alg": rng.choice(("HS256", "RS256")), "typ": "JWT"},
        "state": {"returnTo": "/account", "nonce": draw(rng, HEX, 12)},
    }[form]
    return segment(json.dumps(content, separators=(",", ":")).encode())


def _of(make: Make) -> Maker:
    return lambda scene, _: make(scene.rng)


TOKEN_MAKERS: Mapping[str, Maker] = {
    "key": lambda s, name: make_key(s.rng, name),
    "jwt": _of(make_jwt),
    "opaque": _of(make_opaque),
    "broken": _broken,
    "broken_other": _broken_other,
    "json64": _json64,
    "basic": lambda s, _: base64.b64encode(
        f"{s.rng.choice(('admin', 'api', 'ci', 'sync'))}:{mixed(s.rng, 14)}".encode()
    ).decode(),
}
