"""Keys of services, web tokens, bearer tokens and broken tokens of the fourteenth blind set."""

from __future__ import annotations

import base64
import json
import re
import string
import uuid
from random import Random

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, segment
from tests.benchmarks.fourteenth_blind.words import alphanumeric, pick, random_hex

SERVICES = {
    "github": "ghp_{w30}{crc}", "github_app": "ghs_{w30}{crc}", "github_oauth": "gho_{w30}{crc}",
    "github_fine": "github_pat_{w22}_{w59}", "gitlab": "glpat-{b20}", "npm": "npm_{w30}{crc}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{b150}", "aws": "AKIA{k16}", "google": "AIzaSy{b33}",
    "google_oauth": "GOCSPX-{b28}", "slack": "xoxb-{d12}-{d13}-{w24}",
    "slack_user": "xoxp-{d12}-{d12}-{d13}-{h32}", "slack_app": "xapp-1-A{u10}-{d13}-{h64}",
    "stripe": "sk_live_{w24}", "stripe_new": "sk_live_51{w97}", "stripe_rk": "rk_live_{w24}",
    "stripe_hook": "whsec_{w32}", "sendgrid": "SG.{b22}.{b43}", "mailgun": "key-{h32}",
    "mailchimp": "{h32}-us{i1-21}", "openai": "sk-{w20}T3BlbkFJ{w20}",
    "openai_project": "sk-proj-{b74}T3BlbkFJ{b74}", "anthropic": "sk-ant-api03-{b93}AA",
    "hf": "hf_{a34}", "digitalocean": "dop_v1_{h64}", "shopify": "shpat_{h32}",
    "square": "sq0atp-{b22}", "telegram": "{d10}:AA{b33}", "docker": "dckr_pat_{b27}",
    "notion": "secret_{w43}", "linear": "lin_api_{w40}", "figma": "figd_{b40}",
    "postman": "PMAK-{h24}-{h34}", "databricks": "dapi{h32}", "airtable": "pat{w14}.{h64}",
    "new_relic": "NRAK-{u27}", "doppler": "dp.pt.{w43}", "planetscale": "pscale_tkn_{b43}",
    "terraform": "{w14}.atlasv1.{b67}", "vault": "hvs.CAES{b88}", "grafana": "glsa_{w32}_{h8}",
    "dynatrace": "dt0c01.{k24}.{k64}", "heroku": "HRKU-{g}", "replicate": "r8_{w37}",
    "groq": "gsk_{w52}", "supabase": "sbp_{h40}", "brevo": "xkeysib-{h64}-{w16}",
    "azure": "{base64}", "rubygems": "rubygems_{h48}", "alibaba": "LTAI{w20}",
    "langsmith": "lsv2_pt_{h32}_{h10}", "perplexity": "pplx-{w48}", "discord": "{s}.{w6}.{b38}",
    "cargo": "cio{w32}", "atlassian": "ATATT3xFfGF0{b171}={H8}", "tencent": "AKID{w32}",
    "slack_hook": "https://hooks.slack.com/services/T{u10}/B{u10}/{w24}",
    "discord_hook": "https://discord.com/api/webhooks/{d18}/{b68}",
}  # fmt: skip
"""Keys by service: literal text, and how many characters of which alphabet."""
_ALPHABETS = {
    "w": string.ascii_letters + string.digits, "b": string.ascii_letters + string.digits + "-_",
    "h": string.digits + "abcdef", "d": string.digits, "H": string.digits + "ABCDEF",
    "u": string.ascii_uppercase + string.digits, "a": string.ascii_letters,
    "k": string.ascii_uppercase + "234567",
}  # fmt: skip
_COMMON = (
    "github github github_fine gitlab npm aws google google slack stripe sendgrid openai "
    "openai_project anthropic hf telegram discord slack_hook mailgun digitalocean"
)
BREAKS = {
    "wrap": "\n", "i2": "\n  ", "i4": "\n    ", "i6": "\n      ", "i8": "\n        ",
    "quote": "\n> ", "hash": "\n# ", "qp": "=\n", "bs": "\\\n", "bs4": "\\\n    ",
    "py": '"\n    "', "pysq": "'\n    '", "py8": '"\n        "', "js": '" +\n  "',
    "jssq": "' +\n    '", "java": '"\n            + "', "php": "' .\n    '", "go": '" +\n\t"',
    "vb": '" & _\n        "', "lua": '" ..\n  "', "ruby": '" \\\n  "', "sql": "' || '",
    "plus": '" + "', "mail": "\n    ", "comment": "\n * ", "slashes": "\n// ",
}  # fmt: skip
"""What stands between the pieces of a broken token, by the place where it is broken."""


def make_key(rng: Random, service: str) -> str:
    """A key of a service in its published form."""

    def draw(part: re.Match[str]) -> str:
        kind, size = part[1], part[2]
        if kind == "s":  # the number of a user in Base64
            return base64.b64encode(pick(rng, "123456789", 18).encode()).decode()
        if kind == "g":
            return str(uuid.UUID(int=rng.getrandbits(128), version=4))
        if kind == "i":
            low, _, high = size.partition("-")
            return str(rng.randint(int(low), int(high)))
        first = pick(rng, "123456789", 1) if kind == "d" else pick(rng, _ALPHABETS[kind], 1)
        return first + pick(rng, _ALPHABETS[kind], int(size) - 1)

    form = SERVICES[service]
    if form == "{base64}":
        return base64.b64encode(rng.randbytes(64)).decode()
    text = re.sub(r"\{([a-zA-Z])([\d-]*)\}", draw, form)
    if text.endswith("{crc}"):
        body = text.removesuffix("{crc}")
        return body + crc_base62(body.partition("_")[2])
    # a key never ends in a joint of words, so that its end is clear
    return re.sub(r"[-_]$", "x", text)


def _key(scene: Scene, services: str) -> str:
    rng = scene.rng
    return make_key(rng, rng.choice(services.split("|") if services else _COMMON.split()))


def make_jwt(rng: Random, algorithm: str = "") -> str:
    """A signed JSON web token (RFC 7519) with its claims, dated, and a random signature."""
    algorithm = algorithm or rng.choice(
        ["HS256", "HS256", "HS256", "RS256", "RS256", "ES256", "HS512"]
    )
    head = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.3:  # the order of several libraries
        head = {"typ": "JWT", "alg": algorithm}
    if algorithm in ("RS256", "ES256") and rng.random() < 0.6:
        head["kid"] = random_hex(rng, 16)
    issued = rng.randint(1_420_000_000, 1_760_000_000)
    flavour = rng.randrange(4)
    claims: dict[str, object] = {"sub": str(rng.randint(1, 99_999))}
    if flavour == 1:
        claims = {
            "iss": f"https://auth.{alphanumeric(rng, 6).lower()}.io/",
            "sub": f"auth0|{random_hex(rng, 24)}",
            "aud": random_hex(rng, 12),
        }
    elif flavour == 2:
        claims = {
            "user_id": rng.randint(1, 9999),
            "token_type": "access",
            "jti": random_hex(rng, 32),
        }
    elif flavour == 3:
        claims = {"id": random_hex(rng, 24), "role": rng.choice(["user", "admin", "editor"])}
    claims |= {"iat": issued, "exp": issued + rng.choice([900, 3600, 86400, 604800])}
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (head, claims)]
    return ".".join(map(segment, [*parts, rng.randbytes(SIGNATURES[algorithm])]))


def _header(scene: Scene, algorithm: str) -> str:
    head = {"alg": algorithm or "HS256", "typ": "JWT"}
    return segment(json.dumps(head, separators=(",", ":")).encode())


def _claims(scene: Scene, _: str) -> str:
    rng = scene.rng
    claims = {"sub": str(rng.randint(1, 99_999)), "iat": rng.randint(1_420_000_000, 1_760_000_000)}
    return segment(json.dumps(claims, separators=(",", ":")).encode())


def _source_map(scene: Scene, _: str) -> str:
    names = {"version": 3, "sources": [f"src/{alphanumeric(scene.rng, 8)}.ts"], "mappings": "AAAA"}
    return base64.b64encode(json.dumps(names).encode()).decode()


def make_opaque(rng: Random, form: str) -> str:
    """A bearer token that says nothing of itself, or a web token."""
    form = form or rng.choice(["hex40", "hex64", "alnum", "alnum", "url", "uuid", "jwt", "jwt"])
    if form == "jwt":
        return make_jwt(rng)
    if form == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    if form.startswith("hex"):
        return random_hex(rng, int(form[3:]))
    if form == "url":
        return segment(rng.randbytes(32))
    return alphanumeric(rng, rng.choice([32, 40, 48, 64]))


def _basic(scene: Scene, _: str) -> str:
    rng = scene.rng
    user = rng.choice(["deploy", "apiuser", "jenkins", "monitor", "svc-sync"])
    return base64.b64encode(f"{user}:{alphanumeric(rng, rng.randint(10, 18))}".encode()).decode()


def split_token(rng: Random, token: str) -> list[str]:
    """The pieces of a token, each of at least 12 characters."""
    if len(token) <= 110:
        cut = rng.randint(max(12, len(token) // 3), len(token) - 12)
        return [token[:cut], token[cut:]]
    width = rng.choice([56, 60, 64, 72])
    starts = list(range(0, len(token), width))
    if len(token) - starts[-1] < 12:
        starts.pop()
    return [token[a:b] for a, b in zip(starts, [*starts[1:], len(token)], strict=True)]


def _broken(scene: Scene, shape: str) -> str:
    services, _, style = shape.rpartition(",")
    service = scene.rng.choice(services.split("|"))
    token = make_jwt(scene.rng) if service == "jwt" else make_key(scene.rng, service)
    pieces = split_token(scene.rng, token)
    return BREAKS[style].join(f"\x02{piece}\x03" for piece in pieces)


def _broken_other(scene: Scene, shape: str) -> str:
    """A hash, a digest or an encoded file over lines; it opens nothing."""
    form, _, style = shape.partition(",")
    rng = scene.rng
    if form == "sha512":
        text = "sha512-" + base64.b64encode(rng.randbytes(64)).decode()
    elif form == "uuid":
        text = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    elif form.startswith("hex"):
        text = random_hex(rng, int(form[3:]))
    else:
        text = base64.b64encode(rng.randbytes(int(form[3:]))).decode()
    return BREAKS[style].join(split_token(rng, text))


TOKEN_MAKERS: dict[str, Maker] = {
    "apikey": _key,
    "jwt": lambda scene, algorithm: make_jwt(scene.rng, algorithm),
    "jwthead": _header,
    "jwtclaims": _claims,
    "sourcemap": _source_map,
    "opaque": lambda scene, form: make_opaque(scene.rng, form),
    "basic": _basic,
    "broken": _broken,
    "pieces": _broken_other,
}
