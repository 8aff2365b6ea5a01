"""What draws the slots of the group's texts: accounts, web tokens, private keys, service keys."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import random
import re
import uuid

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import bech32, crc24, crc_base62, der, segment
from tests.benchmarks.eighteenth_blind.keys_words import (
    BANKS,
    BBAN,
    CLAIMS,
    CLASSES,
    DOMAINS,
    FIRMS,
    HOSTS,
    NAMES,
    TOKENS,
    WORDS,
)

BASE58 = CLASSES["5"]
_PLACEHOLDER = re.compile(r"(?i)example|placeholder|x{6}|\*\*\*|\.\.\.|0{12}|changeme|[{}]")


def pattern(rng: random.Random, form: str) -> str:
    """A form with its `{CN}` drawn; no placeholder, no mark at its end."""
    while True:
        text = form.replace("{uuid}", str(uuid.UUID(bytes=rng.randbytes(16), version=4)))
        text = re.sub(r"\{(\w)(\d+)(?:,(\d+))?\}", lambda part: _run(rng, part), text)
        if text[-1:] not in "-_+/" and not _PLACEHOLDER.search(text):
            return text


def _run(rng: random.Random, part: re.Match[str]) -> str:
    count = rng.randint(int(part[2]), int(part[3] or part[2]))
    return "".join(rng.choices(CLASSES[part[1]], k=count))


def pick(rng: random.Random, listed: str) -> str:
    """One entry of a list with commas."""
    return rng.choice(listed.split(","))


def _mod97(text: str) -> int:
    return int("".join(str(int(one, 36)) for one in text)) % 97


def bban(rng: random.Random, country: str) -> str:
    """The national part of an account number."""
    if country == "BE":
        head = pick(rng, "001,310,363,068,734,979") + pattern(rng, "{d7}")
        return head + f"{int(head) % 97 or 97:02}"
    if country in ("FR", "MC"):
        head = pick(rng, "30004,30003,20041,10278,12739") + pattern(rng, "{d5}{d11}")
        return head + f"{97 - int(head + '00') % 97:02}"
    if country == "ES":
        bank, account = (
            pick(rng, "2100,0049,0182,1465,2085") + pattern(rng, "{d4}"),
            pattern(rng, "{d10}"),
        )
        return bank + _ccc("00" + bank) + _ccc(account) + account
    if country == "PT":
        head = pick(rng, "0035,0033,0010,0007") + pattern(rng, "{d4}{d11}")
        return head + f"{98 - int(head + '00') % 97:02}"
    if country == "NO":
        while True:
            digits = pick(rng, BANKS["NO"]) + pattern(rng, "{d7}")
            if (
                sum(int(one) * int(two) for one, two in zip(digits, "54327654321", strict=True))
                % 11
                == 0
            ):
                return digits
    form = BBAN[country].replace("{bank}", pick(rng, BANKS.get(country, "00")))
    return pattern(rng, form)


def _ccc(digits: str) -> str:
    check = 11 - sum(int(one) * 2**at for at, one in enumerate(digits)) % 11
    return str({10: 1, 11: 0}.get(check, check))


def iban(scene: Scene, argument: str, wrong: bool = False) -> str:
    """An account `COUNTRY;STYLE`: blanks (default), `c` none, `nb` …; see `marks`."""
    rng = scene.rng
    country, _, style = argument.partition(";")
    if country in ("", "any"):
        country = rng.choice([*BBAN, "BE", "FR", "ES", "PT", "NO", "FR"])
    while True:
        rest = bban(rng, country)
        check = 98 - _mod97(rest + country + "00")
        check = (check + rng.randint(3, 60)) % 96 + 2 if wrong else check
        text = f"{country}{check:02}{rest}"
        if (_mod97(text[4:] + text[:4]) != 1) == wrong and "0" * 12 not in text:
            break
    marks = {"": " ", "nb": "\u00a0", "nn": "\u202f", "th": "\u2009", "-": "-", ".": ".", "2": "  "}
    if style in ("c", "l"):
        return text.lower() if style == "l" else text
    if style == "ll":
        return " ".join(text[at : at + 4] for at in range(0, len(text), 4)).lower()
    if style == "cc":
        return f"{text[:4]} {text[4:]}"
    return marks[style].join(text[at : at + 4] for at in range(0, len(text), 4))


def jwt(scene: Scene, argument: str) -> str:
    """A signed web token `ALGORITHM;CLAIMS`."""
    head, claims = jwt_parts(scene, argument)
    size = {"HS256": 32, "HS512": 64, "ES256": 64, "EdDSA": 64}.get(json.loads(head)["alg"], 256)
    return f"{segment(head)}.{segment(claims)}.{segment(scene.rng.randbytes(size))}"


def jwt_parts(scene: Scene, argument: str) -> tuple[bytes, bytes]:
    """Header and claims of a token."""
    rng = scene.rng
    algorithm, _, profile = argument.partition(";")
    algorithm = algorithm or rng.choice(["HS256", "HS256", "RS256", "HS512", "ES256"])
    heads = ['{"alg":"%s","typ":"JWT"}', '{"typ":"JWT","alg":"%s"}']
    if algorithm not in ("HS256", "HS512", "none"):
        heads += ['{"alg":"%s","kid":"' + pattern(rng, "{a27}") + '","typ":"JWT"}']
    if algorithm == "HS512":
        heads += ['{"alg":"%s"}']
    body = CLAIMS[profile or rng.choice([*CLAIMS])]
    issued = rng.randint(1_460_000_000, 1_768_000_000)
    expires = issued + rng.choice([300, 600, 3600, 86400, 604800, 31536000])
    body = body.replace("<iat>", str(issued)).replace("<exp>", str(expires))
    body = re.sub("<(name|word|host)>", lambda part: MAKERS[f"keys_{part[1]}"](scene, ""), body)
    body = body.replace("{uuid}", str(uuid.UUID(bytes=rng.randbytes(16), version=4)))
    body = re.sub(r"\{(\w)(\d+)()\}", lambda part: _run(rng, part), body)
    body = re.sub(r":0+(\d)", r":\1", body)
    return (rng.choice(heads) % algorithm).encode(), ("{" + body + "}").encode()


def jwt_piece(scene: Scene, argument: str) -> str:
    """What is no whole token: `head`, `claims`, `two`, `none`, `cut`, `dots`, `mask`."""
    algorithm = "none" if argument == "none" else "HS256"
    head, claims = map(segment, jwt_parts(scene, f"{algorithm};short"))
    signature = segment(scene.rng.randbytes(32))
    return {
        "head": head,
        "claims": claims,
        "two": f"{head}.{claims}",
        "none": f"{head}.{claims}.",
        "cut": f"{head}.{claims[:14]}...",
        "dots": f"{head}.{claims}...",
        "mask": f"{head[:10]}***{signature[-4:]}",
        "short": f"{head}.{claims}.{signature[:5]}...",
        "eyj": head[:12] + "...",
        "star": f"{head}.{claims}.****",
    }[argument]


def _integer(number: int) -> bytes:
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _odd(rng: random.Random, bits: int) -> int:
    return rng.getrandbits(bits) | 3 << (bits - 2) | 1


def rsa_numbers(rng: random.Random, bits: int) -> list[int]:
    """n, e, d, p, q, dp, dq, qi in their sizes."""
    p, q = _odd(rng, bits // 2), _odd(rng, bits // 2)
    halves = [_odd(rng, bits // 2 - 1) for _ in range(3)]
    return [p * q, 65537, _odd(rng, bits - 1), p, q, *halves]


_RSA = der(0x30, bytes.fromhex("06092a864886f70d0101010500"))
_P256 = bytes.fromhex("06082a8648ce3d030107")
_EC = der(0x30, bytes.fromhex("06072a8648ce3d0201"), _P256)
_PBES2 = bytes.fromhex("06092a864886f70d01050d")
_PBKDF2 = bytes.fromhex("06092a864886f70d01050c")
_HMAC = bytes.fromhex("300c06082a864886f70d02090500")
_XPRV = bytes.fromhex("0488ade4")
_AES = bytes.fromhex("060960864801650304012a")


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _openssh(rng: random.Random, secret: bool, rsa: bool) -> bytes:
    number = b"\0" + _odd(rng, 2048).to_bytes(256, "big")
    if rsa:
        public = _string(b"ssh-rsa") + _string(b"\1\0\1") + _string(number)
        rest = [rng.randbytes(size) for size in (256, 128, 128, 128)]
        private = _string(b"ssh-rsa") + _string(number) + _string(b"\1\0\1")
        private += b"".join(_string(b"\0" + part) for part in rest)
    else:
        point = rng.randbytes(32)
        public = _string(b"ssh-ed25519") + _string(point)
        private = public + _string(rng.randbytes(32) + point)
    check = rng.randbytes(4)
    private = check + check + private + _string(pick(rng, WORDS).encode() + b"@laptop")
    private += bytes(range(1, 1 + -len(private) % (16 if secret else 8)))
    names = [b"aes256-ctr", b"bcrypt"] if secret else [b"none", b"none"]
    options = _string(rng.randbytes(16)) + b"\0\0\0\x10" if secret else b""
    private = rng.randbytes(len(private)) if secret else private
    parts = [*map(_string, [*names, options]), b"\0\0\0\1", _string(public), _string(private)]
    return b"openssh-key-v1\0" + b"".join(parts)


def key_content(rng: random.Random, kind: str) -> tuple[str, bytes]:
    """The name of an armor and its content."""
    zero, one = _integer(0), _integer(1)
    if kind in ("rsa", "rsa1", "rsa4", "p8", "p81"):
        bits = {"rsa1": 1024, "rsa4": 4096, "p81": 1024}.get(kind, 2048)
        plain = der(0x30, zero, *map(_integer, rsa_numbers(rng, bits)))
        if kind.startswith("rsa"):
            return "RSA PRIVATE KEY", plain
        return "PRIVATE KEY", der(0x30, zero, _RSA, der(4, plain))
    if kind in ("ec", "p8ec"):
        point = der(0xA1, der(3, b"\0\4" + rng.randbytes(64)))
        secret = der(4, rng.randbytes(32))
        if kind == "ec":
            return "EC PRIVATE KEY", der(0x30, one, secret, der(0xA0, _P256), point)
        return "PRIVATE KEY", der(0x30, zero, _EC, der(4, der(0x30, one, secret, point)))
    if kind == "ed":
        inner = der(4, der(4, rng.randbytes(32)))
        return "PRIVATE KEY", der(0x30, zero, bytes.fromhex("300506032b6570"), inner)
    if kind == "enc":
        derive = der(0x30, der(4, rng.randbytes(8)), _integer(2048), _HMAC)
        cipher = der(0x30, _AES, der(4, rng.randbytes(16)))
        scheme = der(0x30, _PBES2, der(0x30, der(0x30, _PBKDF2, derive), cipher))
        return "ENCRYPTED PRIVATE KEY", der(0x30, scheme, der(4, rng.randbytes(1232)))
    if kind == "dsa":
        sizes = (1024, 160, 1023, 1022, 159)
        return "DSA PRIVATE KEY", der(0x30, zero, *(_integer(_odd(rng, size)) for size in sizes))
    if kind.startswith("pgp"):
        head = b"\4" + rng.randbytes(4) + bytes.fromhex("16092b06010401da470f01010740")
        body = head + rng.randbytes(32) + b"\xfe\7\3\2" + rng.randbytes(78)
        packet = b"\x94" + bytes([len(body)]) + body
        owner = (
            pick(rng, WORDS) + " <" + pick(rng, WORDS) + "@" + pick(rng, DOMAINS) + ">"
        ).encode()
        return "PGP PRIVATE KEY BLOCK", packet + b"\xb4" + bytes([len(owner)]) + owner
    if kind == "old":
        return "RSA PRIVATE KEY", rng.randbytes(1200)
    return "OPENSSH PRIVATE KEY", _openssh(rng, kind == "sshenc", kind == "sshrsa")


def lines_of(content: bytes, width: int = 64) -> list[str]:
    """Base64 in lines."""
    text = base64.b64encode(content).decode()
    return [text[at : at + width] for at in range(0, len(text), width)]


def pem(scene: Scene, argument: str) -> str:
    """A key `KIND;MODE;…` with its body marked.

    Modes: none, `nl;JOINT` (lines joined by it), `one;JOINT` (body in one line, between joints),
    `pre;PREFIX` (before each further line), `wrap;LEFT;RIGHT;LAST` (around each line), `b64;WIDTH`.
    """
    kind, mode, *rest = [*argument.split(";"), "", "", "", "", ""][:6]
    rest = [
        part.replace("GT", ">").replace("SC", ";").replace("LT", "<").replace("NL", "\n")
        for part in rest
    ]
    while True:
        name, content = key_content(scene.rng, kind)
        if mode != "url" or not len(content) % 3:
            break
    lines = lines_of(content, 70 if kind.startswith("ssh") else 64)
    if kind.startswith("pgp"):
        lines.append("=" + base64.b64encode(crc24(content).to_bytes(3, "big")).decode())
    start, end = f"-----BEGIN {name}-----", f"-----END {name}-----"
    heads = {"pgp": [""], "pgpv": ["Version: GnuPG v2", ""]}.get(kind, [])
    if kind == "old":
        heads = [
            "Proc-Type: 4,ENCRYPTED",
            "DEK-Info: AES-128-CBC," + pattern(scene.rng, "{H32}"),
            "",
        ]
    if mode == "b64":
        whole = "\n".join([start, *heads, *lines, end]) + "\n"
        return _folded(base64.b64encode(whole.encode()).decode(), int(rest[0] or 0), rest[1])
    if mode == "url":
        body = "%0A".join(lines).replace("+", "%2B").replace("/", "%2F")
        return f"{start.replace(' ', '+')}%0A\x02{body}\x03%0A{end.replace(' ', '+')}"
    if mode == "one":
        return f"{start}{rest[0]}\x02{''.join(lines)}\x03{rest[0]}{end}"
    lines[0] = "\x02" + lines[0]
    lines[-1] += "\x03"
    every = [start, *heads, *lines, end]
    if mode == "nl":
        return rest[0].join(every)
    if mode == "wrap":
        body = "\n".join(f"{rest[0]}{line}{rest[1]}" for line in every[:-1])
        return f"{body}\n{rest[0]}{end}{rest[2]}"
    return ("\n" + rest[0]).join(every)


def _folded(text: str, width: int, prefix: str) -> str:
    width = width or len(text)
    return f"\n{prefix}".join(text[at : at + width] for at in range(0, len(text), width))


def armor(scene: Scene, argument: str) -> str:
    """An armor that holds no private key: `NAME;BYTES;JOINT`."""
    name, size, joint = [*argument.split(";"), ""][:3]
    content = der(0x30, b"\x30\x82" + scene.rng.randbytes(int(size or 400)))
    lines = [f"-----BEGIN {name}-----", *lines_of(content), f"-----END {name}-----"]
    joint = "\n" + joint[4:] if joint.startswith("pre ") else joint or "\n"
    return joint.join(lines)


def base58(content: bytes, check: bool = True) -> str:
    """Base58, with the double SHA-256 of Bitcoin."""
    if check:
        content += hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, text = int.from_bytes(content, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return text


def raw_key(scene: Scene, argument: str) -> str:
    """A key that is no PEM, by its form."""
    rng = scene.rng
    if argument == "wg":
        content = bytearray(rng.randbytes(32))
        content[0], content[31] = content[0] & 248, content[31] & 127 | 64
        return base64.b64encode(content).decode()
    if argument == "solana":
        return rng.choice([",", ", "]).join(map(str, rng.randbytes(64)))
    forms = {
        "age": lambda: bech32("age-secret-key-", rng.randbytes(32)).upper(),
        "nsec": lambda: bech32("nsec", rng.randbytes(32)),
        "eth": lambda: "0x" + rng.randbytes(32).hex(),
        "hex": lambda: rng.randbytes(32).hex(),
        "hexup": lambda: rng.randbytes(32).hex().upper(),
        "wif": lambda: base58(b"\x80" + rng.randbytes(32) + b"\1"),
        "wif5": lambda: base58(b"\x80" + rng.randbytes(32)),
        "wiftest": lambda: base58(b"\xef" + rng.randbytes(32) + b"\1"),
        "xprv": lambda: base58(_XPRV + rng.randbytes(41) + b"\0" + rng.randbytes(32)),
        "solana58": lambda: base58(rng.randbytes(64), check=False),
        "minisign": lambda: base64.b64encode(
            b"EdScB2" + rng.randbytes(32) + (b"\2" + bytes(7)) * 2 + rng.randbytes(104)
        ).decode(),
        "signify": lambda: base64.b64encode(b"EdBK\0\0\0\x2a" + rng.randbytes(96)).decode(),
        "tor": lambda: pattern(rng, "{B52}"),
        "b64": lambda: base64.b64encode(rng.randbytes(32)).decode(),
        "url": lambda: segment(rng.randbytes(32)),
        "ppk": lambda: "\n".join(lines_of(rng.randbytes(36))),
        "ppkrsa": lambda: "\n".join(lines_of(rng.randbytes(592))),
    }  # fmt: skip
    return forms[argument]()


def jwk(scene: Scene, argument: str) -> str:
    """A key in JSON `TYPE;JOINT`, its private parts marked."""
    rng, joint = scene.rng, argument.partition(";")[2].replace("NL", "\n") or ","
    parts: list[tuple[str, str, bool]]
    if argument.startswith("RSA"):
        numbers = rsa_numbers(rng, 2048)
        names = ["n", "e", "d", "p", "q", "dp", "dq", "qi"]
        made = [segment(one.to_bytes((one.bit_length() + 7) // 8, "big")) for one in numbers]
        parts = [(name, one, name not in "ne") for name, one in zip(names, made, strict=True)]
        parts = [("kty", "RSA", False), *parts]
    else:
        curve = "Ed25519" if argument.startswith("OKP") else "P-256"
        points = [segment(rng.randbytes(32)) for _ in range(3)]
        parts = [
            ("kty", argument[:3].strip(";"), False),
            ("crv", curve, False),
            ("x", points[0], False),
        ]
        parts += [] if curve == "Ed25519" else [("y", points[1], False)]
        parts += [("d", points[2], True)]
    colon = ": " if " " in joint or "\n" in joint else ":"
    return joint.join(
        f'"{name}"{colon}"' + (f"\x02{one}\x03" if secret else one) + '"'
        for name, one, secret in parts
    )


def rsa_xml(scene: Scene, argument: str) -> str:
    """The key of .NET, its private parts marked."""
    sizes = {"P": 64, "Q": 64, "DP": 64, "DQ": 64, "InverseQ": 64, "D": 128}
    draw = lambda size: base64.b64encode(scene.rng.randbytes(size)).decode()  # noqa: E731
    secret = argument.join(f"<{name}>\x02{draw(size)}\x03</{name}>" for name, size in sizes.items())
    return f"<Modulus>{draw(128)}</Modulus>{argument}<Exponent>AQAB</Exponent>{argument}{secret}"


def token(scene: Scene, argument: str) -> str:
    """A key of a service, by its form in `TOKENS`."""
    rng = scene.rng
    prefixes = {"github": "ghp_", "github_app": "ghs_", "github_oauth": "gho_", "npm": "npm_"}
    if argument in prefixes:
        body = pattern(rng, "{a30}")
        return prefixes[argument] + body + crc_base62(body)
    if argument == "discord":
        owner = base64.b64encode(str(rng.randint(10**17, 10**18)).encode()).decode()
        return pattern(rng, owner + ".G{w5}.{w37}a")
    if argument == "mapbox":
        claims = '{"u":"' + pick(rng, WORDS) + '","a":"' + pattern(rng, "c{L24}") + '"}'
        return pattern(rng, f"sk.{segment(claims.encode())}." + "{w22}")
    return pattern(rng, TOKENS[argument])


def part_of(scene: Scene, argument: str) -> str:
    """A token that is cut or masked: `SERVICE;HOW`."""
    service, _, how = argument.partition(";")
    whole = token(scene, service)
    head = re.match(r".{3,12}?[_.-](?=\w{10})|.{4}", whole)[0]  # type: ignore[index]
    return {
        "": whole[: len(head) + 4] + "...",
        "star": head + "*" * 16 + whole[-4:],
        "x": head + "x" * (len(whole) - len(head)),
        "dot": head + "…" + whole[-4:],
        "X": head + "X" * 16,
        "head": head,
        "bullet": head + "•" * 12,
    }[how]


def when(scene: Scene, argument: str) -> str:
    """A date in a form of strftime (`%d.%m.%Y`)."""
    day = datetime.datetime(2014, 1, 1) + datetime.timedelta(
        seconds=scene.rng.randint(0, 380_000_000)
    )
    return day.strftime(argument or "%Y-%m-%d")


def _draw(form: str) -> Maker:
    return lambda scene, argument: pattern(scene.rng, form.replace("N", argument))


def _of(listed: str) -> Maker:
    return lambda scene, _: pick(scene.rng, listed)


MAKERS: dict[str, Maker] = {
    "keys_iban": iban,
    "keys_badiban": lambda scene, argument: iban(scene, argument, wrong=True),
    "keys_jwt": jwt,
    "keys_jwtpart": jwt_piece,
    "keys_pem": pem,
    "keys_armor": armor,
    "keys_raw": raw_key,
    "keys_jwk": jwk,
    "keys_rsaxml": rsa_xml,
    "keys_tok": token,
    "keys_cut": part_of,
    "keys_date": when,
    "keys_name": lambda scene, tongue: pick(scene.rng, NAMES[tongue or scene.rng.choice([*NAMES])]),
    "keys_firm": _of(FIRMS),
    "keys_word": _of(WORDS),
    "keys_domain": _of(DOMAINS),
    "keys_host": lambda scene, _: pick(scene.rng, HOSTS) + pick(scene.rng, DOMAINS),
    **{
        f"keys_{form[:-2]}": _draw(f"{{{form[-1]}N}}")
        for form in ["num_d", "hex_h", "up_U", "b64_b", "b64u_w", "base58_5", "low_j"]
    },
    "keys_uuid": lambda scene, _: pattern(scene.rng, "{uuid}"),
    "keys_amount": lambda scene, mark: f"{scene.rng.randint(900, 480_000) / 100:.2f}".replace(
        ".", mark or "."
    ),
}
