"""Tokens, private keys, passwords, headers and tokens that are broken over lines.

Private keys have the DER or OpenSSH structure of real ones with random numbers (the numbers of RSA keys
are not prime: no text tells). The label of a key is its body, without the lines BEGIN and END.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import textwrap
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import der
from tests.benchmarks.sixth_blind.personal import DIGITS
from tests.benchmarks.sixth_blind.services import SERVICES, UNBROKEN, pick_service
from tests.benchmarks.sixth_blind.words import ALNUM, HEX, URLSAFE, b64, chars, mixed

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_CHOSEN = [
    "Sunset",
    "Falcon",
    "Bamboo",
    "Winter",
    "Krokodil",
    "Matrix",
    "Panther",
    "Soleil",
    "Dragonfly",
    "Kaffee",
    "Rocket",
    "Pepper",
    "Thunder",
    "Mango",
    "Wolfgang",
    "Orion",
    "Biscuit",
    "Tulipan",
    "Phoenix",
    "Marmalade",
]


def base64url(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def make_jwt(rng: random.Random, parts: int = 3) -> str:
    """A signed token; with fewer parts, the header alone or header and payload."""
    algorithm, size = rng.choice(
        (("HS256", 32), ("HS256", 32), ("RS256", 256), ("ES256", 64), ("HS512", 64))
    )
    header: dict[str, str] = {"alg": algorithm, "typ": "JWT"}
    if rng.random() < 0.3:
        header = {"typ": "JWT", "alg": algorithm}
    if size >= 64 and rng.random() < 0.6:
        header["kid"] = chars(rng, HEX, 16)
    issued = rng.randrange(1_500_000_000, 1_760_000_000)
    claims: dict[str, object] = {
        "sub": str(rng.randrange(10, 10**7)),
        "iat": issued,
        "exp": issued + 3600,
    }
    more = (
        {"iss": f"https://auth.{chars(rng, string.ascii_lowercase, 7)}.io/", "aud": "api"},
        {"role": rng.choice(("admin", "service_role", "user")), "jti": chars(rng, HEX, 24)},
        {
            "email": f"{chars(rng, string.ascii_lowercase, 6)}@{chars(rng, string.ascii_lowercase, 7)}.com"
        },
        {"scope": "read write", "tenant": chars(rng, ALNUM, 8)},
    )
    for part in rng.sample(more, rng.randrange(0, 3)):
        claims.update(part)
    token = (
        base64url(json.dumps(header, separators=(",", ":")).encode()),
        base64url(json.dumps(claims, separators=(",", ":")).encode()),
        base64url(rng.randbytes(size)),
    )
    return ".".join(token[:parts])


def _odd(rng: random.Random, size: int) -> int:
    return int.from_bytes(rng.randbytes(size), "big") | 1 | 3 << (8 * size - 2)


def _integer(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _rsa(rng: random.Random) -> bytes:
    half = rng.choice((64, 128, 128, 128, 256))
    p, q = _odd(rng, half), _odd(rng, half)
    numbers = (
        0,
        p * q,
        65537,
        _odd(rng, 2 * half - 1),
        p,
        q,
        _odd(rng, half),
        _odd(rng, half),
        _odd(rng, half),
    )
    return der(0x30, b"".join(_integer(number) for number in numbers))


def _sec1(rng: random.Random) -> bytes:
    curve = bytes.fromhex("06082a8648ce3d030107")
    point = b"\x00\x04" + rng.randbytes(64)
    parts = _integer(1) + der(4, rng.randbytes(32)) + der(0xA0, curve) + der(0xA1, der(3, point))
    return der(0x30, parts)


def _pkcs8(rng: random.Random) -> bytes:
    if rng.random() < 0.25:
        return bytes.fromhex("302e020100300506032b657004220420") + rng.randbytes(32)
    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")
    return der(0x30, _integer(0) + algorithm + der(4, _rsa(rng)))


def _encrypted(rng: random.Random) -> bytes:
    head = bytes.fromhex("305706092a864886f70d01050d304a302906092a864886f70d01050c301c0408")
    return der(0x30, head + rng.randbytes(60) + der(4, rng.randbytes(640)))


def _ssh_string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _openssh(rng: random.Random) -> bytes:
    public = _ssh_string(b"ssh-ed25519") + _ssh_string(rng.randbytes(32))
    check = rng.randbytes(4) * 2
    private = (
        check
        + public
        + _ssh_string(rng.randbytes(64))
        + _ssh_string(b"deploy@build")
        + b"\x01\x02\x03"
    )
    head = (
        b"openssh-key-v1\x00" + _ssh_string(b"none") * 2 + _ssh_string(b"") + (1).to_bytes(4, "big")
    )
    return head + _ssh_string(public) + _ssh_string(private)


_PEM: dict[str, tuple[Callable[[random.Random], bytes], int]] = {
    "RSA PRIVATE KEY": (_rsa, 64),
    "PRIVATE KEY": (_pkcs8, 64),
    "EC PRIVATE KEY": (_sec1, 64),
    "OPENSSH PRIVATE KEY": (_openssh, 70),
    "ENCRYPTED PRIVATE KEY": (_encrypted, 64),
}


def make_pem(rng: random.Random, label: str = "", joiner: str = "\n") -> str:
    """A private key in PEM with its body marked for the label."""
    label = label or rng.choices(tuple(_PEM), (10, 8, 3, 7, 1))[0]
    make, width = _PEM[label]
    body = joiner.join(textwrap.wrap(base64.b64encode(make(rng)).decode(), width))
    return f"-----BEGIN {label}-----{joiner}\x02{body}\x03{joiner}-----END {label}-----"


def _pem(scene: Scene, argument: str) -> str:
    """`KIND` or `KIND:STYLE`; styles: `n` (escaped line ends), `indentN` (all lines but the first)."""
    label, _, style = argument.partition(":")
    joiner = "\\n" if style == "n" else "\n"
    if style.startswith("indent"):
        joiner = "\n" + " " * int(style[6:])
    elif style.startswith("quote"):
        joiner = "\n> "
    elif style == "crlf":
        joiner = "\r\n"
    return make_pem(scene.rng, label, joiner)


def _public(scene: Scene, argument: str) -> str:
    """A block of base64 under another label than a private key's: `LABEL:BYTES` or with `:n` escaped."""
    label, size, *style = argument.split(":")
    joiner = "\\n" if style else "\n"
    body = joiner.join(textwrap.wrap("MII" + b64(scene.rng, int(size)), 64))
    return f"-----BEGIN {label}-----{joiner}{body}{joiner}-----END {label}-----"


def _wrapped(scene: Scene, argument: str) -> str:
    """Base64 of so many bytes in lines of so many characters: `BYTES:WIDTH`."""
    size, width = (int(part) for part in argument.split(":"))
    return "\n".join(textwrap.wrap(b64(scene.rng, size), width))


def _wif(scene: Scene, _: str) -> str:
    payload = b"\x80" + scene.rng.randbytes(32) + b"\x01"
    data = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


def make_password(rng: random.Random, style: str = "") -> str:
    """A password: `strong` (generated), `chosen` (words and numbers), `words` or
    `plain` (both without a sign that URLs escape)."""
    style = style or rng.choice(("strong", "strong", "chosen", "plain"))
    if style == "chosen":
        sign = rng.choice("!#@$_.-")
        word, other = rng.sample(_CHOSEN, 2)
        return rng.choice(
            (f"{word}{rng.randrange(1950, 2026)}{sign}", f"{word}{sign}{rng.randrange(10, 9999)}",
             f"{word}{other}{rng.randrange(10, 999)}",
             f"{rng.randrange(10, 99)}{word.lower()}{other}{sign}")
        )  # fmt: skip
    if style == "words":
        word, other = rng.sample(_CHOSEN, 2)
        return f"{word}{other}{rng.randrange(10, 9999)}"
    size = rng.randrange(10, 25)
    if style == "plain":
        return mixed(rng, ALNUM, size)
    body = mixed(rng, ALNUM + "!#%^*-_+=?", size - 1)
    return rng.choice(ALNUM) + body[:-1] + rng.choice(ALNUM)


_APP_SECRETS: dict[str, Callable[[random.Random], str]] = {
    "hex32": lambda rng: mixed(rng, HEX, 32),
    "hex64": lambda rng: mixed(rng, HEX, 64),
    "hex128": lambda rng: mixed(rng, HEX, 128),
    "b64": lambda rng: b64(rng, 32),
    "django": lambda rng: mixed(rng, string.ascii_lowercase + DIGITS + "!@#$%^&*(-_=+)", 50),
    "url": lambda rng: mixed(rng, URLSAFE, 43),
    "salt": lambda rng: mixed(rng, ALNUM + "!@#$%^&*()-_[]{}~`+=,.;:/?|", 64),
    "base32": lambda rng: mixed(rng, string.ascii_uppercase + "234567", 32),
}


def make_opaque(rng: random.Random, style: str = "") -> str:
    """A token without a mark of its own, as servers issue to their clients."""
    style = style or rng.choice(("hex", "hex", "url", "alnum", "long", "jwt"))
    if style == "jwt":
        return make_jwt(rng)
    size = {"hex": 40, "url": 43, "alnum": 32, "long": 64}[style]
    return mixed(rng, {"hex": HEX, "url": URLSAFE, "alnum": ALNUM, "long": ALNUM}[style], size)


def _basic(scene: Scene, _: str) -> str:
    user = scene.rng.choice(("deploy", "svc-backup", "admin", "api", "jenkins"))
    return base64.b64encode(f"{user}:{make_password(scene.rng, 'strong')}".encode()).decode()


def _service(scene: Scene, name: str) -> str:
    """A key of a service; `any` is one that is known by its form."""
    name = pick_service(scene.rng, marked=True) if name in ("", "any") else name
    return SERVICES[name][1](scene.rng)


def make_breakable(rng: random.Random, minimum: int = 0) -> str:
    """A key or token that is known by its form and long enough to be broken over lines."""
    while True:
        if rng.random() < 0.45:
            token = make_jwt(rng)
        else:
            name = pick_service(rng, marked=True)
            token = "" if name in UNBROKEN else SERVICES[name][1](rng)
        if len(token) >= max(34, minimum):
            return token


def split_token(rng: random.Random, joiner: str, width: int = 0) -> str:
    """A token in lines of `width` characters or in two or three parts, each part marked as a label."""
    token = make_breakable(rng, 2 * width)
    if not width:
        parts = 3 if len(token) > 90 and rng.random() < 0.4 else 2
        width = -(-len(token) // parts) + rng.randrange(0, 4)
    pieces = [token[at : at + width] for at in range(0, len(token), width)]
    if len(pieces[-1]) < 6:
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    return joiner.join(f"\x02{piece}\x03" for piece in pieces)


_JOINERS = {
    "line": "\n", "slash": "\\\n", "quoted": "\n> ", "qp": "=\n", "br": "<br>\n", "wbr": "<wbr>",
    "plus": '" +\n    "', "plus1": "' +\n    '", "dot": "' .\n    '", "adjacent": '"\n    "',
    "adjacent1": "'\n    '", "amp": '" & _\n    "', "lua": '" ..\n    "', "star": "\n * ",
    "hash": "\n# ", "backslash_in": "\\\n    ", "two": "\n  ", "four": "\n    ", "eight": "\n        ",
    "tab": "\n\t", "crlf": "\r\n", "slashes": "\n// ", "pipe": " |\n| ", "ps": "' +\n  '", "erl": '" <>\n      "',
    "bar": '" ||\n    "', "caret": "^\n", "go": '" +\n\t\t"', "hs": "\\\n    \\",
    "dot2": '" .\n    "', "bar1": "' ||\n  '", "cmacro": '" \\\n    "', "rbslash": "' \\\n  '",
}  # fmt: skip


def _split(scene: Scene, argument: str) -> str:
    joiner, _, width = argument.partition(":")
    return split_token(scene.rng, _JOINERS[joiner], int(width or 0))


def _pieces(scene: Scene, argument: str) -> str:
    """Harmless text in the same breaks: `JOINER:ALPHABET:LENGTH:WIDTH`."""
    joiner, alphabet, length, width = argument.split(":")
    text = chars(
        scene.rng,
        {"hex": HEX, "dna": "ACGT", "b64": ALNUM + "+/", "dec": DIGITS}[alphabet],
        int(length),
    )
    return _JOINERS[joiner].join(textwrap.wrap(text, int(width)))


CREDENTIAL_MAKERS: dict[str, Maker] = {
    "jwt": lambda scene, _: make_jwt(scene.rng),
    "jwt_part": lambda scene, parts: make_jwt(scene.rng, int(parts or 1)),
    "b64json": lambda scene, key: base64url(
        json.dumps({key or "cursor": scene.rng.randrange(1, 10**9), "dir": "next"}).encode()
    ),
    "pem": _pem,
    "public": _public,
    "wrapped": _wrapped,
    "wif": _wif,
    "bech32": lambda scene, size: chars(scene.rng, _BECH32, int(size)),
    "BECH32": lambda scene, size: chars(scene.rng, _BECH32, int(size)).upper(),
    "password": lambda scene, style: make_password(scene.rng, style),
    "app_secret": lambda scene, style: _APP_SECRETS[style or "hex64"](scene.rng),
    "opaque": lambda scene, style: make_opaque(scene.rng, style),
    "basic": _basic,
    "key": _service,
    "split": _split,
    "pieces": _pieces,
}
