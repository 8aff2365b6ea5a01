"""Signed tokens, private keys, and the public things that are written the same way.

Keys are DER (ITU-T X.690) of random numbers in the right structure: RFC 8017, 5915, 8410, 5958.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import textwrap

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc24, der
from tests.benchmarks.ninth_blind.words import DOMAINS, FIRSTS, HEX, NOUNS, moment, pick, plain

_SIGNATURES = {"HS256": 32, "RS256": 256, "ES256": 64, "EdDSA": 64, "PS256": 256, "HS512": 64}
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def urlsafe(content: bytes) -> str:
    """Base64 of RFC 4648, section 5, without padding."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _json(value: object) -> str:
    return urlsafe(json.dumps(value, separators=(",", ":")).encode())


def _header(rng: random.Random, algorithm: str) -> dict[str, str]:
    header = {"alg": algorithm}
    if rng.random() < 0.7:
        header["typ"] = rng.choice(["JWT", "JWT", "at+jwt"])
    if algorithm[:2] != "HS":
        header["kid"] = pick(rng, HEX, 16)
    return header


def _claims(rng: random.Random) -> dict[str, object]:
    at = int(moment(rng).timestamp())
    account = f"{plain(rng.choice(FIRSTS)).lower()}-{rng.randint(10, 99)}"
    return {
        "iss": f"https://{rng.choice(['auth', 'id', 'login', 'sso'])}.{rng.choice(DOMAINS)}/",
        "sub": rng.choice([pick(rng, HEX, 24), account]),
        "aud": rng.choice(NOUNS),
        "iat": at,
        "exp": at + 3600,
    }  # fmt: skip


def make_jwt(rng: random.Random, short: bool = False) -> str:
    """A signed token (RFC 7519) with a random signature of the right length."""
    algorithm = rng.choice(["HS256", "ES256"] if short else list(_SIGNATURES))
    claims = _claims(rng)
    if short:
        claims = {"sub": claims["sub"], "exp": claims["exp"]}
    signature = urlsafe(rng.randbytes(_SIGNATURES[algorithm]))
    return f"{_json(_header(rng, algorithm))}.{_json(claims)}.{signature}"


def _sequence(*contents: bytes) -> bytes:
    return der(0x30, *contents)


def _integer(rng: random.Random, bits: int) -> bytes:
    number = rng.getrandbits(bits) | 1 << (bits - 1) | 1
    return der(2, number.to_bytes(bits // 8 + 1, "big"))


_VERSION0, _VERSION1 = b"\x02\x01\x00", b"\x02\x01\x01"
_EXPONENT = b"\x02\x03\x01\x00\x01"
_RSA = _sequence(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", b"\x05\x00")
_P256 = b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
_EC = _sequence(b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01", _P256)
_SIGNED_DATA = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"
_ED25519 = _sequence(b"\x06\x03\x2b\x65\x70")


def _rsa(rng: random.Random) -> bytes:
    bits = rng.choice([1024, 2048])
    halves = [_integer(rng, bits // 2) for _ in range(5)]
    return _sequence(_VERSION0, _integer(rng, bits), _EXPONENT, _integer(rng, bits), *halves)


def _ec(rng: random.Random) -> bytes:
    point = der(3, b"\x00\x04", rng.randbytes(64))
    return _sequence(_VERSION1, der(4, rng.randbytes(32)), der(0xA0, _P256), der(0xA1, point))


def _dsa(rng: random.Random) -> bytes:
    return _sequence(_VERSION0, *(_integer(rng, bits) for bits in (1024, 160, 1024, 1024, 160)))


def _pkcs8(rng: random.Random) -> bytes:
    form = rng.choice(["rsa", "ec", "ed25519", "ed25519"])
    if form == "ed25519":
        return _sequence(_VERSION0, _ED25519, der(4, der(4, rng.randbytes(32))))
    algorithm, inner = (_RSA, _rsa(rng)) if form == "rsa" else (_EC, _ec(rng))
    return _sequence(_VERSION0, algorithm, der(4, inner))


def _encrypted(rng: random.Random) -> bytes:
    # PBES2 with PBKDF2 and AES-256-CBC (RFC 8018)
    derive = _sequence(
        b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c",
        _sequence(der(4, rng.randbytes(8)), b"\x02\x02\x08\x00"),
    )
    cipher = _sequence(b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x01\x2a", der(4, rng.randbytes(16)))
    scheme = _sequence(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d", _sequence(derive, cipher))
    return _sequence(scheme, der(4, rng.randbytes(rng.choice([160, 1232]))))


def _spki(rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return _sequence(_EC, der(3, b"\x00\x04", rng.randbytes(64)))
    return _sequence(_RSA, der(3, b"\x00", _rsa_public(rng)))


def _rsa_public(rng: random.Random) -> bytes:
    return _sequence(_integer(rng, 2048), _EXPONENT)


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _ssh_public(rng: random.Random) -> bytes:
    return _string(b"ssh-ed25519") + _string(rng.randbytes(32))


def _openssh(rng: random.Random) -> bytes:
    public = rng.randbytes(32)
    check = rng.randbytes(4)
    comment = f"{plain(rng.choice(FIRSTS)).lower()}@{rng.choice(NOUNS)}".encode()
    inner = check * 2 + _string(b"ssh-ed25519") + _string(public)
    inner += _string(rng.randbytes(32) + public) + _string(comment)
    inner += bytes(range(1, 1 + -len(inner) % 8))
    head = b"openssh-key-v1\0" + _string(b"none") * 2 + _string(b"") + b"\0\0\0\1"
    return head + _string(_string(b"ssh-ed25519") + _string(public)) + _string(inner)


PRIVATE = {
    "RSA PRIVATE KEY": _rsa,
    "EC PRIVATE KEY": _ec,
    "DSA PRIVATE KEY": _dsa,
    "PRIVATE KEY": _pkcs8,
    "ENCRYPTED PRIVATE KEY": _encrypted,
    "OPENSSH PRIVATE KEY": _openssh,
}
PUBLIC = {
    "PUBLIC KEY": _spki,
    "RSA PUBLIC KEY": _rsa_public,
    "CERTIFICATE": lambda rng: _sequence(_sequence(rng.randbytes(560)), _RSA, rng.randbytes(258)),
    "CERTIFICATE REQUEST": lambda rng: _sequence(_sequence(rng.randbytes(330)), _RSA),
    "X509 CRL": lambda rng: _sequence(_sequence(rng.randbytes(210)), _RSA),
    "DH PARAMETERS": lambda rng: _sequence(_integer(rng, 2048), b"\x02\x01\x02"),
    "PKCS7": lambda rng: _sequence(_SIGNED_DATA, rng.randbytes(300)),
    "SSH SIGNATURE": lambda rng: b"SSHSIG\0\0\0\1" + _string(_ssh_public(rng)) + rng.randbytes(90),
}  # fmt: skip


def _body(content: bytes, width: int = 64, indent: str = "", ending: str = "\n") -> str:
    lines = textwrap.wrap(base64.b64encode(content).decode(), width)
    return (ending + indent).join(lines)


def _pem(scene: Scene, argument: str) -> str:
    """A private key in PEM; the argument is `FORM/STYLE` of both optional parts.

    Styles: `escaped` puts everything on one line with `\\n`, a number indents each line,
    `quote` and others put their mark before each.
    """
    form, _, style = argument.partition("/")
    form = form or scene.rng.choice(list(PRIVATE))
    content = PRIVATE[form](scene.rng)
    return _block(form, content, style, marked=True)


def _block(form: str, content: bytes, style: str, marked: bool) -> str:
    indent = " " * int(style) if style.isdigit() else {"quote": "> "}.get(style, style)
    if style == "escaped":
        indent = ""
    ending = "\\n" if style == "escaped" else "\n"
    width = 70 if form.startswith(("OPENSSH", "SSH")) else 64
    body = _body(content, width, indent, ending)
    if marked:
        body = f"\x02{body}\x03"
    return f"-----BEGIN {form}-----{ending}{indent}{body}{ending}{indent}-----END {form}-----"


def _pem_public(scene: Scene, argument: str) -> str:
    form, _, style = argument.partition("/")
    form = form or scene.rng.choice(list(PUBLIC))
    return _block(form, PUBLIC[form](scene.rng), style, marked=False)


def _traditional(scene: Scene, _: str) -> str:
    """An RSA key that OpenSSL encrypted in its traditional form (RFC 1421 headers)."""
    rng = scene.rng
    body = _body(rng.randbytes(608))
    iv = pick(rng, "0123456789ABCDEF", 32)
    return (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
        f"DEK-Info: AES-128-CBC,{iv}\n\n\x02{body}\x03\n-----END RSA PRIVATE KEY-----"
    )


def _armor(scene: Scene, argument: str) -> str:
    """An OpenPGP block of a kind; the body with its checksum is the value of a private one."""
    rng = scene.rng
    tag = 0x95 if "PRIVATE" in argument else 0x99
    size = rng.randint(380, 620)
    content = bytes([tag]) + size.to_bytes(2, "big") + b"\x04" + rng.randbytes(size - 1)
    check = base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
    body = f"{_body(content)}\n={check}"
    if "PRIVATE" in argument:
        body = f"\x02{body}\x03"
    return f"-----BEGIN PGP {argument}-----\n\n{body}\n-----END PGP {argument}-----"


def _putty(scene: Scene, _: str) -> str:
    """The lines of a PuTTY key (version 3) after its comment; the private line is the value."""
    rng = scene.rng
    public = _body(_ssh_public(rng))
    private = _body(_string(rng.randbytes(32)))
    return (
        f"Public-Lines: {public.count(chr(10)) + 1}\n{public}\n"
        f"Private-Lines: 1\n\x02{private}\x03\nPrivate-MAC: {pick(rng, HEX, 64)}"
    )


def bech32_checksum(prefix: str, values: list[int]) -> list[int]:
    """The six values that BIP 173 adds."""
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    state = 1
    for value in [*expanded, *values, *[0] * 6]:
        top = state >> 25
        state = (state & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(
            (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
        ):
            state ^= generator if top >> bit & 1 else 0
    return [(state ^ 1) >> 5 * (5 - place) & 31 for place in range(6)]


def make_age(rng: random.Random, prefix: str) -> str:
    """An age identity (`age-secret-key-`) or recipient (`age`) of 32 random bytes, in Bech32."""
    number = rng.getrandbits(256) << 4
    values = [number >> 5 * (51 - place) & 31 for place in range(52)]
    text = "".join(_BECH32[value] for value in values + bech32_checksum(prefix, values))
    return f"{prefix}1{text}".upper() if "secret" in prefix else f"{prefix}1{text}"


def make_wif(rng: random.Random) -> str:
    """A private key of Bitcoin in wallet import format, compressed."""
    content = b"\x80" + rng.randbytes(32) + b"\x01"
    content += hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, text = int.from_bytes(content, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return text


def _jwk(scene: Scene, _: str) -> str:
    """A JWK of an Ed25519 key pair (RFC 8037) whose `d` is the value."""
    rng = scene.rng
    d, x = urlsafe(rng.randbytes(32)), urlsafe(rng.randbytes(32))
    return f'{{"kty":"OKP","crv":"Ed25519","d":"\x02{d}\x03","x":"{x}"}}'


def _jwk_public(scene: Scene, _: str) -> str:
    return f'{{"kty":"OKP","crv":"Ed25519","use":"sig","x":"{urlsafe(scene.rng.randbytes(32))}"}}'


def _wireguard(scene: Scene, _: str) -> str:
    return base64.b64encode(scene.rng.randbytes(32)).decode()


def _cursor(scene: Scene, _: str) -> str:
    rng = scene.rng
    value = {
        "id": rng.randint(1, 10**6),
        "after": f"{moment(rng):%Y-%m-%dT%H:%M:%S}",
        "dir": "next",
    }
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


def _source_map(scene: Scene, _: str) -> str:
    value = {
        "version": 3,
        "sources": [f"src/{scene.rng.choice(NOUNS)}.ts"],
        "mappings": "AAAA,SAAS",
    }
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


def _jwt_cut(scene: Scene, _: str) -> str:
    head, body, signature = make_jwt(scene.rng).split(".")
    return scene.rng.choice(
        [
            f"{head}...",
            f"{head[:14]}…",
            f"{head}.{body[:10]}...",
            f"{head[:8]}...{signature[-4:]}",
            "eyJhbGciOi...",
        ]
    )


KEY_MAKERS: dict[str, Maker] = {
    "jwt": lambda scene, argument: make_jwt(scene.rng, argument == "short"),
    "jwt_header": lambda scene, _: _json(_header(scene.rng, scene.rng.choice(list(_SIGNATURES)))),
    "jwt_cut": _jwt_cut,
    "cursor": _cursor,
    "source_map": _source_map,
    "pem": _pem,
    "pem_public": _pem_public,
    "pem_traditional": _traditional,
    "pgp": _armor,
    "putty": _putty,
    "age_secret": lambda scene, _: make_age(scene.rng, "age-secret-key-"),
    "age_public": lambda scene, _: make_age(scene.rng, "age"),
    "wif": lambda scene, _: make_wif(scene.rng),
    "jwk": _jwk,
    "jwk_public": _jwk_public,
    "wireguard": _wireguard,
    "der": lambda scene, argument: base64.b64encode(PRIVATE[argument](scene.rng)).decode(),
    "ssh_public": lambda scene, _: (
        "ssh-ed25519 " + base64.b64encode(_ssh_public(scene.rng)).decode()
    ),
    "ssh_fingerprint": lambda scene, _: (
        "SHA256:" + base64.b64encode(scene.rng.randbytes(32)).decode().rstrip("=")
    ),
}
