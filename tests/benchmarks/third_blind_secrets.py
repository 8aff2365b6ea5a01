"""Secrets of the third blind set, in the published form of each service.

Lengths and alphabets are those that the services document or that their own scanners look for.
GitHub's and npm's tokens end in the CRC-32 of their 30 random characters, in base 62
(github.blog, "Behind GitHub's new authentication token formats", 2021-04-05); a PyPI token is a
macaroon, a web token signed claims, and a private key begins with the bytes of its structure.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
import zlib
from collections.abc import Callable

Make = Callable[[random.Random, str], str]

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
URL64 = BASE62 + "-_"
HEX = "0123456789abcdef"


def draw(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def checksum(body: str) -> str:
    """Return the six characters with which a token of GitHub or npm ends."""
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits.rjust(6, "0")


def _checked(*prefixes: str) -> Make:
    def make(rng: random.Random, _: str) -> str:
        body = draw(rng, BASE62, 30)
        return rng.choice(prefixes) + body + checksum(body)

    return make


def _after(prefix: str, alphabet: str, size: int, suffix: str = "") -> Make:
    """Draw `prefix` (one of several between bars), `size` characters and `suffix`."""
    return lambda rng, _: rng.choice(prefix.split("|")) + draw(rng, alphabet, size) + suffix


def _slack(rng: random.Random, kind: str) -> str:
    parts = [str(rng.randint(10**11, 10**13 - 1)) for _ in range(3)]
    if kind == "user":
        return f"xoxp-{'-'.join(parts)}-{draw(rng, HEX, 32)}"
    if kind == "app":
        team = draw(rng, string.ascii_uppercase + string.digits, 10)
        return f"xapp-1-A{team}-{parts[0]}-{draw(rng, HEX, 64)}"
    return f"xoxb-{parts[0]}-{parts[1]}-{draw(rng, BASE62, 24)}"


def _slack_hook(rng: random.Random, _: str) -> str:
    team, app = (draw(rng, string.ascii_uppercase + string.digits, 10) for _ in range(2))
    return f"https://hooks.slack.com/services/T{team}/B{app}/{draw(rng, BASE62, 24)}"


def _stripe(rng: random.Random, _: str) -> str:
    prefix = rng.choice(["sk_live_", "sk_live_", "rk_live_", "sk_test_"])
    if rng.random() < 0.4:  # Accounts of before 2019
        return prefix + draw(rng, BASE62, 24)
    return f"{prefix}51{draw(rng, BASE62, 97)}"


def _google_access(rng: random.Random, _: str) -> str:
    return "ya29.a0A" + draw(rng, URL64, rng.randint(150, 190))


def _azure_client(rng: random.Random, _: str) -> str:
    start, body = draw(rng, BASE62, 3), draw(rng, URL64 + "~.", 33)
    return f"{start}{rng.choice('78')}Q~{body}{draw(rng, BASE62, 1)}"


def _storage_key(rng: random.Random, _: str) -> str:
    return base64.b64encode(rng.randbytes(64)).decode()


def _telegram(rng: random.Random, _: str) -> str:
    return f"{rng.randint(10**8, 7 * 10**9)}:AA{draw(rng, 'EFGH', 1)}{draw(rng, URL64, 32)}"


def _pypi(rng: random.Random, _: str) -> str:
    token_id, project = (str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(2))
    caveat = json.dumps([3, project]).encode()
    body = b"\x02\x01\x08pypi.org\x02\x24" + token_id.encode() + b"\x00\x02"
    body += bytes([len(caveat)]) + caveat + b"\x00\x00\x06\x20" + rng.randbytes(32)
    return "pypi-" + _url64(body)


def _sendgrid(rng: random.Random, _: str) -> str:
    return f"SG.{draw(rng, URL64, 22)}.{draw(rng, URL64, 43)}"


def _openai(rng: random.Random, _: str) -> str:
    if rng.random() < 0.5:
        return f"sk-{draw(rng, BASE62, 20)}T3BlbkFJ{draw(rng, BASE62, 20)}"
    return f"sk-proj-{draw(rng, URL64, 74)}T3BlbkFJ{draw(rng, URL64, 74)}"


PROVIDERS: dict[str, Make] = {
    "aws_id": _after("AKIA|AKIA|AKIA|ASIA", string.ascii_uppercase + "234567", 16),
    "aws_secret": _after("", BASE62 + BASE62 + "/+", 40),
    "github": _checked("ghp_", "ghp_", "ghp_", "gho_", "ghu_", "ghs_"),
    "github_fine": lambda rng, _: f"github_pat_11{draw(rng, BASE62, 20)}_{draw(rng, BASE62, 59)}",
    "gitlab": _after("glpat-", URL64, 20),
    "gitlab_runner": _after("glrt-|GR1348941", URL64, 20),
    "slack": _slack,
    "slack_hook": _slack_hook,
    "stripe": _stripe,
    "stripe_hook": _after("whsec_", BASE62, 32),
    "google_key": _after("AIzaSy", URL64, 33),
    "google_secret": _after("GOCSPX-", URL64, 28),
    "google_access": _google_access,
    "azure_client": _azure_client,
    "azure_storage": _storage_key,
    "azure_devops": _after("", string.ascii_lowercase + "234567", 52),
    "telegram": _telegram,
    "docker": _after("dckr_pat_", URL64, 27),
    "shopify": _after("shpat_|shpat_|shpss_|shpca_|shppa_", HEX, 32),
    "twilio_sid": _after("AC", HEX, 32),
    "twilio_key": _after("SK", HEX, 32),
    "twilio_token": _after("", HEX, 32),
    "digitalocean": _after("dop_v1_|dop_v1_|doo_v1_", HEX, 64),
    "npm": _checked("npm_"),
    "pypi": _pypi,
    "sendgrid": _sendgrid,
    "huggingface": _after("hf_", string.ascii_letters, 34),
    "openai": _openai,
    "anthropic": _after("sk-ant-api03-", URL64, 93, "AA"),
}
"""Keys that a service hands out, by a name for the templates."""

PREFIXED = "github github_fine gitlab slack stripe google_key google_secret google_access telegram"
PREFIXED += " docker shopify digitalocean npm pypi sendgrid huggingface openai anthropic"


def make_provider(rng: random.Random, _: str = "") -> str:
    """Draw a key that names its service itself."""
    return PROVIDERS[rng.choice(PREFIXED.split())](rng, "")


def make_jwt(rng: random.Random, _: str = "") -> str:
    """Draw a signed web token (RFC 7519): header, claims and a signature of the right size."""
    algorithm, size = rng.choice(
        [("HS256", 32), ("HS256", 32), ("RS256", 256), ("ES256", 64), ("HS512", 64)]
    )
    header = {"alg": algorithm, "typ": "JWT"}
    if algorithm in ("RS256", "ES256"):
        header["kid"] = draw(rng, HEX, 40) if rng.random() < 0.5 else draw(rng, URL64, 22)
    if rng.random() < 0.3:
        header = {"typ": "JWT"} | header
    issued = rng.randint(1_480_000_000, 1_760_000_000)
    user = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    claims = rng.choice(
        [
            {"sub": user, "iat": issued, "exp": issued + 3600},
            {"user_id": rng.randint(1, 90_000), "role": "editor", "exp": issued},
            {"iss": "https://login.luftena.io/", "aud": user, "iat": issued, "scope": "read:all"},
            {"id": draw(rng, HEX, 24), "iat": issued},
            {"token_type": "access", "exp": issued, "jti": draw(rng, HEX, 32), "user_id": 12},
            {"role": "anon", "iss": "supabase", "ref": draw(rng, "abcdefghij", 20), "iat": issued},
        ]
    )
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in (header, claims))
    return ".".join([*map(_url64, parts), _url64(rng.randbytes(size))])


_KEYS = {
    "rsa": ("RSA PRIVATE KEY", bytes.fromhex("308204a40201000282010100"), 1192),
    "ec": ("EC PRIVATE KEY", bytes.fromhex("30770201010420"), 121),
    "pkcs8": (
        "PRIVATE KEY",
        bytes.fromhex("308204bd020100300d06092a864886f70d0101010500048204a7"),
        1217,
    ),
    "ec8": ("PRIVATE KEY", bytes.fromhex("308187020100301306072a8648ce3d0201"), 138),
    "ed25519": ("PRIVATE KEY", bytes.fromhex("302e020100300506032b657004220420"), 48),
    "dsa": ("DSA PRIVATE KEY", bytes.fromhex("308201bb02010002818100"), 447),
    "openssh": (
        "OPENSSH PRIVATE KEY",
        b"openssh-key-v1\x00\x00\x00\x00\x04none\x00\x00\x00\x04none\x00\x00\x00\x00\x00\x00\x00\x01",
        410,
    ),
    "encrypted": (
        "ENCRYPTED PRIVATE KEY",
        bytes.fromhex("3082052e305806092a864886f70d01050d304b"),
        1330,
    ),
}


def _pem(label: str, data: bytes, newline: str, indent: str, width: int, head: str = "") -> str:
    text = base64.b64encode(data).decode()
    lines = [text[at : at + width] for at in range(0, len(text), width)]
    return f"{newline}{indent}".join(
        [f"-----BEGIN {label}-----", *([head] if head else []), *lines, f"-----END {label}-----"]
    )


def make_private_key(rng: random.Random, form: str = "") -> str:
    """Draw the block of a private key.

    `form` is `NAME`, `NAME/escaped` (line ends as backslash n), `NAME/4` (indented by 4 spaces);
    NAME is one of `_KEYS`, `pgp`, or `any`.
    """
    name, _, layout = form.partition("/")
    if name in ("", "any"):
        name = rng.choice(["rsa", "rsa", "ec", "pkcs8", "ed25519", "openssh", "openssh", "dsa"])
    newline = "\\n" if layout == "escaped" else "\n"
    indent = " " * int(layout) if layout.isdigit() else ""
    if name == "pgp":
        head = rng.choice(["", "Version: GnuPG v2\n", "Comment: GPGTools\n"])
        data = b"\x95\x03\x98\x04" + rng.randbytes(rng.randint(500, 900))
        block = _pem("PGP PRIVATE KEY BLOCK", data, "\n", "", 64, head or " ").replace(
            "\n \n", "\n\n"
        )
        end = block.rindex("\n")
        return f"{block[:end]}\n={draw(rng, BASE62, 4)}{block[end:]}"
    label, start, size = _KEYS[name]
    head = ""
    if name == "rsa" and not layout and rng.random() < 0.2:  # RFC 1421: a key under a passphrase
        info = f"DEK-Info: AES-128-CBC,{draw(rng, HEX.upper(), 32)}"
        head, start = f"Proc-Type: 4,ENCRYPTED\n{info}\n", b""
    width = 70 if name == "openssh" else 64
    return _pem(label, start + rng.randbytes(size - len(start)), newline, indent, width, head)


_WORDS = "dragon summer falcon chocolate liverpool monkey sunshine buttercup juventus shadow orange"
_WORDS += (
    " Sommer Katze Hamburg Sternchen soleil doudou marseille amorcito tequiero barcelona calcio"
)
_WORDS += (
    " kotek haslo natasha zvezda istanbul sakura pokemon freedom purple winter Mustang Charlie"
)


def make_human_password(rng: random.Random, form: str = "") -> str:
    """Draw a password that a person chose; `url` keeps to signs that need no escape in a URL."""
    word, other = rng.choice(_WORDS.split()), rng.choice(_WORDS.split())
    sign = rng.choice("!*" if form == "url" else "!!!@#*?")  # no full stop: it could end a sentence
    swapped = word.replace("a", "4").replace("e", "3").replace("o", "0")
    return rng.choice(
        [
            f"{word}{rng.randint(10, 99)}",
            f"{word.title()}{rng.randint(1970, 2024)}{sign}",
            f"{word}{rng.randint(1, 9999)}{sign}",
            f"{swapped.title()}{sign}{rng.randint(1, 999)}",
            f"{word}{other}{rng.randint(1, 99)}",
            f"{word.title()}{rng.choice('-_.')}{other.title()}",
            f"{rng.choice(['qwerty', 'asdf', 'Passw0rd', 'Admin'])}{rng.randint(11, 9999)}{sign}",
        ]
    )


def make_machine_password(rng: random.Random, form: str = "") -> str:
    """Draw a password that a program chose; `url` and `bare` need no escape or no quotes there."""
    signs = {"url": "-_.~!*", "bare": "-_.!%^*+=?"}.get(form, "!@#%^&*()-_+=?.:[]{}|~")
    size = rng.choice([10, 12, 12, 16, 16, 20, 24, 32])
    if rng.random() < 0.4:
        return draw(rng, BASE62, size)
    body = draw(rng, BASE62 + signs, size - 2)
    return draw(rng, BASE62, 1) + body + draw(rng, BASE62, 1)


def make_password(rng: random.Random, form: str = "") -> str:
    """Draw a password of either kind; one of a URL may escape a sign (RFC 3986)."""
    value = (make_human_password if rng.random() < 0.45 else make_machine_password)(rng, form)
    if form == "url" and rng.random() < 0.15:
        at = rng.randint(1, len(value) - 1)
        return value[:at] + rng.choice(["%40", "%23", "%21", "%2F"]) + value[at:]
    return value


def make_app_secret(rng: random.Random, _: str = "") -> str:
    """Draw the secret of an application: hexadecimal, base 64 or Django's alphabet."""
    django = string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)"
    return rng.choice(
        [
            draw(rng, HEX, rng.choice([32, 40, 64])),
            base64.b64encode(rng.randbytes(32)).decode(),
            draw(rng, django, 50),
            draw(rng, BASE62, rng.choice([24, 32, 48])),
        ]
    )


def make_bearer(rng: random.Random, form: str = "") -> str:
    """Draw an opaque token as servers hand it out; one for a `url` needs no escape there."""
    plain = [
        draw(rng, HEX, rng.choice([32, 40, 64])),
        draw(rng, BASE62, rng.choice([32, 40, 43, 64])),
        draw(rng, BASE62, 1) + draw(rng, URL64, rng.choice([41, 84])) + draw(rng, BASE62, 1),
        str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    ]
    if form == "url":
        return rng.choice(plain)
    return rng.choice(
        [
            *plain,
            base64.b64encode(rng.randbytes(rng.choice([24, 32, 48]))).decode(),
            f"{rng.randint(1, 4000)}|{draw(rng, BASE62, 40)}",  # Laravel Sanctum
        ]
    )


def make_basic(rng: random.Random, _: str = "") -> str:
    """Draw the credentials of HTTP's Basic scheme (RFC 7617)."""
    user = rng.choice(["deploy", "svc-import", "harriet", "reporting", "torsten.w", "apiuser"])
    return base64.b64encode(f"{user}:{make_password(rng)}".encode()).decode()


BREAKS = {
    "plain": "\n",
    "indent": "\n    ",
    "quote": "\n> ",
    "qp": "=\n",
    "back": "\\\n",
    "crlf": "\r\n",
    "concat": '" +\n    "',
    "implicit": '"\n    "',
}
"""What stands where a token is cut: a line end, of a mail or a terminal, or of source code."""


def make_cut(rng: random.Random, form: str) -> str:
    """Draw a token with one line end in it: `VALUE/BREAK`, VALUE a provider, `any` or `jwt`."""
    name, _, style = form.partition("/")
    makers = {"jwt": make_jwt, "any": make_provider}
    token = makers[name](rng, "") if name in makers else PROVIDERS[name](rng, "")
    at = rng.randint(max(8, len(token) // 4), len(token) - max(6, len(token) // 5))
    return token[:at] + BREAKS[style or "plain"] + token[at:]


def make_wrapped(rng: random.Random, form: str) -> str:
    """Draw a long token in lines of a width: `VALUE/WIDTH`."""
    name, _, width = form.partition("/")
    token = make_jwt(rng, "") if name == "jwt" else PROVIDERS[name](rng, "")
    return "\n".join(token[at : at + int(width)] for at in range(0, len(token), int(width)))
