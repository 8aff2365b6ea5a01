"""Tokens, private keys, passwords and other credentials, built as real ones are."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
from collections.abc import Callable

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc24, der
from tests.benchmarks.seventh_blind.services import SERVICES, make_key, make_webhook
from tests.benchmarks.seventh_blind.words import (
    ALNUM,
    BASE64,
    BASE64URL,
    FIRST_NAMES,
    HEX,
    WORDS,
    draw,
)

_SIGNATURES = {"HS256": 32, "RS256": 256, "ES256": 64, "HS512": 64, "RS512": 256}


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def encode_json(value: object) -> str:
    """Compact JSON in base64url without padding, as a part of a JWT is."""
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def make_jwt(rng: random.Random, short: bool = False) -> str:
    """A signed token of three parts; `short` keeps it in one line of a page."""
    algorithm = "HS256" if short else rng.choice(sorted(_SIGNATURES))
    header = {"alg": algorithm, "typ": "JWT"}
    if not short and rng.random() < 0.4:
        header["kid"] = draw(rng, HEX, 16)
    issued = rng.randint(1_560_000_000, 1_760_000_000)
    payload: dict[str, object] = {
        "sub": draw(rng, string.digits, rng.randint(4, 10)),
        "iat": issued,
    }
    if not short:
        payload["exp"] = issued + rng.choice((900, 3600, 86400))
        payload["iss"] = f"https://login.{rng.choice(WORDS)}.io/"
        if rng.random() < 0.5:
            payload["roles"] = rng.sample(("reader", "editor", "owner", "billing"), 2)
        if rng.random() < 0.3:
            payload["name"] = rng.choice(FIRST_NAMES)
    signature = rng.randbytes(_SIGNATURES[algorithm])
    return f"{encode_json(header)}.{encode_json(payload)}.{_base64url(signature)}"


def _integer(rng: random.Random, size: int) -> bytes:
    return der(2, b"\x00" + bytes([rng.randint(128, 255)]) + rng.randbytes(size - 1))


def _rsa_der(rng: random.Random) -> bytes:
    size = rng.choice((128, 256, 256))
    half = size // 2
    numbers = [_integer(rng, size), der(2, b"\x01\x00\x01"), _integer(rng, size)]
    numbers += [_integer(rng, half) for _ in range(5)]
    return der(0x30, der(2, b"\x00") + b"".join(numbers))


def _ec_der(rng: random.Random) -> bytes:
    curve = der(0xA0, bytes.fromhex("06082a8648ce3d030107"))
    point = der(0xA1, der(3, b"\x00\x04" + rng.randbytes(64)))
    return der(0x30, der(2, b"\x01") + der(4, rng.randbytes(32)) + curve + point)


def _pkcs8_der(rng: random.Random) -> bytes:
    algorithm = der(0x30, bytes.fromhex("06092a864886f70d0101010500"))
    return der(0x30, der(2, b"\x00") + algorithm + der(4, _rsa_der(rng)))


def _ed25519_der(rng: random.Random) -> bytes:
    return bytes.fromhex("302e020100300506032b657004220420") + rng.randbytes(32)


def _encrypted_der(rng: random.Random) -> bytes:
    scheme = der(0x30, bytes.fromhex("06092a864886f70d01050d") + der(0x30, rng.randbytes(60)))
    return der(0x30, scheme + der(4, rng.randbytes(320)))


def _public_der(rng: random.Random) -> bytes:
    algorithm = bytes.fromhex("301306072a8648ce3d020106082a8648ce3d030107")
    return der(0x30, algorithm + der(3, b"\x00\x04" + rng.randbytes(64)))


def _rsa_public_der(rng: random.Random) -> bytes:
    return der(0x30, _integer(rng, 256) + der(2, b"\x01\x00\x01"))


def _certificate_der(rng: random.Random) -> bytes:
    body = der(0x30, _integer(rng, 16) + der(0x30, rng.randbytes(rng.randint(150, 400))))
    algorithm = bytes.fromhex("300d06092a864886f70d01010b0500")
    return der(0x30, body + algorithm + der(3, b"\x00" + rng.randbytes(256)))


def _openssh(rng: random.Random) -> bytes:
    def field(content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + content

    public = field(b"ssh-ed25519") + field(rng.randbytes(32))
    check = rng.randbytes(4) * 2
    private = check + public + field(rng.randbytes(64)) + field(b"deploy@ci") + b"\x01\x02\x03"
    head = b"openssh-key-v1\x00" + field(b"none") + field(b"none") + field(b"")
    return head + (1).to_bytes(4, "big") + field(public) + field(private)


KEY_BYTES: dict[str, Callable[[random.Random], bytes]] = {
    "rsa": _rsa_der,
    "ec": _ec_der,
    "pkcs8": _pkcs8_der,
    "ed25519": _ed25519_der,
    "encrypted": _encrypted_der,
    "openssh": _openssh,
    "dsa": lambda rng: der(0x30, der(2, b"\x00") + _integer(rng, 128) + _integer(rng, 20) * 2),
    "cipher": lambda rng: rng.randbytes(608),
    "public": _public_der,
    "rsa_public": _rsa_public_der,
    "certificate": _certificate_der,
    "sshsig": lambda rng: b"SSHSIG\x00\x00\x00\x01" + rng.randbytes(170),
}
"""Content of a private key by its form (`cipher` if encrypted), and of blocks that are no keys."""


def unescape(separator: str) -> str:
    """A separator of an argument: `~` is a line break, `^` a greater-than sign, `¤` `<br/>`."""
    return separator.replace("~", "\n").replace("^", ">").replace("¤", "<br/>")


def _lines(text: str, width: int, separator: str) -> str:
    return separator.join(text[at : at + width] for at in range(0, len(text), width))


def _body(scene: Scene, argument: str) -> str:
    """Base64 of a key, `form/separator`, in lines of 64 characters (70 for OpenSSH)."""
    form, _, separator = argument.partition("/")
    text = base64.b64encode(KEY_BYTES[form](scene.rng)).decode()
    return _lines(text, 70 if form == "openssh" else 64, unescape(separator or "~"))


def _pgp(scene: Scene, tag: str) -> str:
    """The armored body of a packet by its first byte in hexadecimal, with its checksum line."""
    rest = b"\x04" + scene.rng.randbytes(scene.rng.randint(220, 420))
    content = bytes.fromhex(tag) + len(rest).to_bytes(2, "big") + rest
    checksum = base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
    return _lines(base64.b64encode(content).decode(), 64, "\n") + f"\n={checksum}"


_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def bech32_checksum(prefix: str, data: list[int]) -> list[int]:
    """The six checksum values of Bech32 (BIP 173)."""
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    check = 1
    for value in [*expanded, *data, 0, 0, 0, 0, 0, 0]:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(
            (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
        ):
            check ^= generator if top >> bit & 1 else 0
    return [(check ^ 1) >> 5 * (5 - place) & 31 for place in range(6)]


def make_age(rng: random.Random, prefix: str) -> str:
    """A key of age by its prefix: `age-secret-key-`, or `age` for the public recipient."""
    number = int.from_bytes(rng.randbytes(32), "big") << 4
    data = [number >> 5 * (51 - place) & 31 for place in range(52)]
    text = f"{prefix}1" + "".join(_BECH32[v] for v in data + bech32_checksum(prefix, data))
    return text if prefix == "age" else text.upper()


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def make_wif(rng: random.Random) -> str:
    """A private key of Bitcoin in wallet import format, for a compressed public key."""
    content = b"\x80" + rng.randbytes(32) + b"\x01"
    content += hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, text = int.from_bytes(content, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


def make_password(rng: random.Random) -> str:
    """A password as people choose (most) or managers make; no character that a config quotes."""
    word, other = rng.sample(WORDS, 2)
    leet = word.replace("a", "4").replace("e", "3")
    return rng.choice(
        (
            f"{word.title()}{other.title()}{rng.randint(10, 99)}!",
            f"{word}-{other.title()}_{rng.randint(100, 999)}",
            f"{word.title()}{rng.choice('!*+%')}{rng.randint(1950, 2024)}{other}",
            "".join((draw(rng, ALNUM, 7), rng.choice("!*+_"), draw(rng, ALNUM, 8))),
            draw(rng, ALNUM, rng.randint(14, 24)) + str(rng.randint(0, 9)),
            f"{leet.title()}{rng.choice('!*_')}{rng.randint(10, 99)}",
        )
    )


def make_phrase(rng: random.Random) -> str:
    """Four words in a row, as generators of passphrases write them."""
    return rng.choice("-.").join((*rng.sample(WORDS, 4), str(rng.randint(2, 99))))


def make_secret(rng: random.Random) -> str:
    """A secret of an application from a generator: hexadecimal, base64 or letters and digits."""
    return rng.choice(
        (
            draw(rng, HEX, rng.choice((32, 48, 64))),
            base64.b64encode(rng.randbytes(rng.choice((32, 33, 48)))).decode(),
            draw(rng, ALNUM, rng.randint(32, 50)),
            _base64url(rng.randbytes(32)),
        )
    )


def make_url_password(rng: random.Random) -> str:
    """A password inside a URL: no reserved character, sometimes one that is percent-encoded."""
    text = draw(rng, ALNUM, rng.randint(9, 20)) + str(rng.randint(0, 9))
    if rng.random() < 0.5:
        word, other = rng.sample(WORDS, 2)
        text = f"{word}{rng.choice('_-.')}{other.title()}{rng.randint(10, 999)}"
    return text + rng.choice(("%21", "%23", "%40")) if rng.random() < 0.15 else text


def make_opaque(rng: random.Random) -> str:
    """An access token without parts, as OAuth servers issue them."""
    if rng.random() < 0.35:
        return draw(rng, HEX, rng.choice((32, 40, 64)))
    return draw(rng, ALNUM, 2) + draw(rng, BASE64URL, rng.randint(26, 60)) + draw(rng, ALNUM, 2)


def make_basic(rng: random.Random) -> str:
    """Base64 of a login and its password."""
    login = f"{rng.choice(FIRST_NAMES).lower()}:{make_password(rng)}"
    return base64.b64encode(login.encode()).decode()


def make_host_key(rng: random.Random) -> str:
    """The base64 of a public key of SSH."""
    head = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"
    return base64.b64encode(head + rng.randbytes(32)).decode()


def break_up(rng: random.Random, text: str, separator: str) -> str:
    """A text in two or three parts of 8 characters and more, each between the marks of `fill`."""
    count = 3 if len(text) >= 48 and rng.random() < 0.5 else 2
    size = len(text) // count
    ends = [size * number + rng.randint(-2, 2) for number in range(1, count)]
    parts = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
    return separator.join(f"\x02{part}\x03" for part in parts)


def _service(scene: Scene, names: dict[str, object] | None = None) -> str:
    return scene.once("service", lambda: scene.rng.choice(sorted(names or SERVICES)))


def _key(scene: Scene, service: str) -> str:
    return make_key(scene.rng, service or _service(scene))


def _variable(scene: Scene, _: str) -> str:
    return SERVICES[_service(scene)][0].upper().replace(" ", "_")


def _broken(scene: Scene, separator: str) -> str:
    rng = scene.rng
    services = [name for name in sorted(SERVICES) if name not in ("resend", "telegram", "discord")]
    value = make_jwt(rng, short=True) if rng.random() < 0.3 else make_key(rng, rng.choice(services))
    return break_up(rng, value, unescape(separator))


def _broken_other(form: str) -> Maker:
    """Something harmless in parts: `hash`, `image`, `public`, `cert`, `words`."""

    def make(scene: Scene, separator: str) -> str:
        rng = scene.rng
        text = {
            "hash": lambda: draw(rng, HEX, 64),
            "integrity": lambda: base64.b64encode(rng.randbytes(64)).decode(),
            "image": lambda: "iVBORw0KGgoAAAANSUhEUgAA" + draw(rng, BASE64, 72),
            "public": lambda: make_host_key(rng),
            "words": lambda: "_".join(rng.choices(WORDS, k=7)),
        }[form]()
        marked = break_up(rng, text, unescape(separator))
        return marked.replace("\x02", "").replace("\x03", "")

    return make


def _plain(make: Callable[[random.Random], str]) -> Maker:
    return lambda scene, _: make(scene.rng)


CREDENTIAL_MAKERS: dict[str, Maker] = {
    "jwt": lambda scene, _: make_jwt(scene.rng),
    "jwt_short": lambda scene, _: make_jwt(scene.rng, short=True),
    "jwt_part": lambda scene, word: encode_json(
        {word or "id": scene.rng.randint(1000, 10**7), "dir": "next"}
    ),
    "jwt_header": lambda scene, _: encode_json({"alg": "RS256", "kid": draw(scene.rng, HEX, 12)}),
    "key": _key,
    "service": lambda scene, _: _service(scene).split("_")[0],
    "VARIABLE": _variable,
    "webhook": lambda scene, service: make_webhook(scene.rng, service),
    "body": _body,
    "pgp": _pgp,
    "age": lambda scene, prefix: make_age(scene.rng, prefix or "age-secret-key-"),
    "wif": _plain(make_wif),
    "wireguard": lambda scene, _: base64.b64encode(scene.rng.randbytes(32)).decode(),
    "sshpub": _plain(make_host_key),
    "password": _plain(make_password),
    "phrase": _plain(make_phrase),
    "secret": _plain(make_secret),
    "urlpw": _plain(make_url_password),
    "akey": lambda scene, _: base64.b64encode(scene.rng.randbytes(64)).decode(),
    "opaque": _plain(make_opaque),
    "basic": _plain(make_basic),
    "broken": _broken,
    "broken_hash": _broken_other("hash"),
    "broken_integrity": _broken_other("integrity"),
    "broken_image": _broken_other("image"),
    "broken_public": _broken_other("public"),
    "broken_words": _broken_other("words"),
}
