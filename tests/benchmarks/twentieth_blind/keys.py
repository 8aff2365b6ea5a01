"""Makers of the group `keys`: accounts, web tokens, private keys, keys of services."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from math import gcd

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import (
    SIGNATURES,
    bech32,
    crc24,
    crc_base62,
    der,
    luhn_digit,
    segment,
)
from tests.benchmarks.twentieth_blind import keys_words as words

_PART = re.compile(r"\{(\w):(\d+)\}")
_STANDARD_OIDS = {
    "rsa": bytes.fromhex("300d06092a864886f70d0101010500"),
    "p256": bytes.fromhex("06082a8648ce3d030107"),
    "ec": bytes.fromhex("06072a8648ce3d0201"),
    "ed25519": bytes.fromhex("300506032b6570"),
}


def _draw_form(rng: random.Random, form: str) -> str:
    return _PART.sub(lambda part: _draw_run(rng, words.ALPHABETS[part[1]], int(part[2])), form)


def _draw_run(rng: random.Random, alphabet: str, count: int) -> str:
    """Characters of an alphabet; a run ends with a letter or digit."""
    run = "".join(rng.choices(alphabet, k=count))
    return run if run[-1:].isalnum() else run[:-1] + rng.choice("acdghkmnruwz")


def _make_draw(scene: Scene, argument: str) -> str:
    return _draw_form(scene.rng, argument)


def _make_key(scene: Scene, argument: str) -> str:
    """A token of a service; never one that reads as a placeholder."""
    name, _, change = argument.partition("|")
    token = _draw_form(scene.rng, words.SERVICES[name])
    if token.endswith("!"):
        body = token[:-1].partition("_")[2]
        token = token[:-1] + crc_base62(body)
    if change == "short":
        token = token[: len(token) // 2]
    return token


def _make_choice(scene: Scene, argument: str) -> str:
    return scene.rng.choice(argument.split("|"))


def _pick(of: list[str]) -> Maker:
    return lambda scene, _: scene.rng.choice(of)


def _make_host(scene: Scene, argument: str) -> str:
    name = "-".join(scene.rng.sample(words.WORDS, scene.rng.choice((1, 1, 2))))
    return f"{argument}{name}.{scene.rng.choice(words.ENDS)}"


def _make_date(scene: Scene, argument: str) -> str:
    rng = scene.rng
    year, month, day = rng.randint(2015, 2025), rng.randint(1, 12), rng.randint(1, 28)
    if argument == "dmy":
        return f"{day:02}.{month:02}.{year}"
    if argument == "slash":
        return f"{day:02}/{month:02}/{year}"
    if argument == "ymd":
        return f"{year % 100:02}{month:02}{day:02}"
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return f"{year}-{month:02}-{day:02}" + (f"T{time}Z" if argument == "time" else "")


def _make_amount(scene: Scene, argument: str) -> str:
    whole, cents = scene.rng.randint(9, 9800), scene.rng.randint(0, 99)
    return f"{whole}{argument or '.'}{cents:02}"


def _make_uuid(scene: Scene, _: str) -> str:
    return _draw_form(scene.rng, "{h:8}-{h:4}-4{h:3}-a{h:3}-{h:12}")


def _make_mail(scene: Scene, _: str) -> str:
    return f"{scene.rng.choice(words.USERS)}@{_make_host(scene, '')}"


def _make_bic(scene: Scene, _: str) -> str:
    return _draw_form(scene.rng, "{A:4}" + scene.rng.choice(("DEFF", "NL2A", "FRPP", "ESMM")))


# Accounts


def _to_number(text: str) -> int:
    return int("".join(str(int(one, 36)) for one in text))


def _with_national_check(country: str, account: str) -> str:
    """The account with its country's own check digits, where these are simple."""
    if country == "BE":
        return account[:10] + f"{int(account[:10]) % 97 or 97:02}"
    if country in ("FR", "MC"):
        table = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "12345678912345678923456789")
        return account[:21] + f"{97 - int(account[:21].translate(table) + '00') % 97:02}"
    if country == "ES":
        weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)
        for_bank, for_number = "00" + account[:8], account[10:]
        digits = ""
        for part in (for_bank, for_number):
            left = 11 - sum(int(a) * b for a, b in zip(part, weights, strict=True)) % 11
            digits += {10: "1", 11: "0"}.get(left, str(left))
        return account[:8] + digits + for_number
    if country in ("PT", "SI", "RS", "BA", "MK"):
        body = account[:-2]
        return body + f"{98 - _to_number(body) * 100 % 97:02}"
    if country in ("IT", "SM"):
        odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22)
        odd += (25, 24, 23)
        numbers = [int(one, 36) - 10 * one.isalpha() for one in account[1:]]
        total = sum(n if at % 2 else odd[n] for at, n in enumerate(numbers))
        return chr(65 + total % 26) + account[1:]
    if country == "NO":
        digits = account[:10]
        while True:
            weights = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
            left = -sum(int(a) * b for a, b in zip(digits, weights, strict=True)) % 11
            if left < 10:
                return f"{digits}{left}"
            digits = digits[:9] + str((int(digits[9]) + 1) % 10)
    if country == "FI":
        return account[:13] + luhn_digit(account[:13])
    return account


def _draw_iban(rng: random.Random, country: str) -> str:
    form = words.BANKS[country]
    start = rng.choice(words.CODES.get(country, [""]))
    body = ""
    for letter, count in re.findall(r"([anc])(\d+)", form):
        alphabet = words.ALPHABETS["A" if letter == "a" else "d"]
        if letter == "c" and rng.random() < 0.25:
            alphabet = words.ALPHABETS["U"]
        body += "".join(rng.choices(alphabet, k=int(count)))
    body = _with_national_check(country, start + body[len(start) :])
    return f"{country}{98 - _to_number(body + country + '00') % 97:02}{body}"


def _make_iban(scene: Scene, argument: str) -> str:
    """`COUNTRIES|CHANGES`; no country is an everyday one, `*` any of all."""
    rng = scene.rng
    names, _, change = argument.partition("|")
    among = words.EVERYDAY if not names else list(words.BANKS) if names == "*" else names.split()
    value = _draw_iban(rng, rng.choice(among))
    changes = change.split()
    if "wrong" in changes:
        value = value[:2] + f"{(int(value[2:4]) + rng.randint(3, 50)) % 97 + 2:02}" + value[4:]
        if _to_number(value[4:] + value[:4]) % 97 == 1:
            value = value[:2] + f"{(int(value[2:4]) + 11) % 97:02}" + value[4:]
    if "wrongend" in changes:
        value = value[:-1] + str((int(value[-1], 36) + rng.randint(1, 8)) % 10)
    if "short" in changes:
        value = value[:-2]
    if "low" in changes:
        value = value.lower()
    for name, mark in (("group", " "), ("dash", "-"), ("dot", "."), ("nbsp", "\u00a0")):
        if name in changes:
            value = mark.join(value[at : at + 4] for at in range(0, len(value), 4))
    return value


def _make_masked(scene: Scene, argument: str) -> str:
    value = _draw_iban(scene.rng, scene.rng.choice(words.EVERYDAY))
    mark = argument or "*"
    return value[:4] + mark * (len(value) - 8) + value[-4:]


# Web tokens


def _draw_claims(rng: random.Random, kind: str) -> dict[str, object]:
    issued = rng.randint(1_480_000_000, 1_750_000_000)
    user = rng.choice(words.USERS)
    host = f"{rng.choice(words.WORDS)}.{rng.choice(words.ENDS)}"
    claims: dict[str, object] = rng.choice(
        (
            {"sub": str(rng.randint(1, 90_000)), "name": rng.choice(words.PEOPLE)},
            {"userId": rng.randint(1, 90_000), "role": rng.choice(("admin", "user", "editor"))},
            {"iss": f"https://auth.{host}/", "sub": f"auth0|{_draw_form(rng, '{h:24}')}"},
            {"id": _draw_form(rng, "{h:24}"), "email": f"{user}@{host}"},
            {"user": {"id": rng.randint(1, 9000), "username": user}},
            {"iss": f"https://{host}", "aud": rng.choice(words.WORDS), "scope": "read write"},
            {"username": user, "is_staff": False},
            {"token_type": "access", "jti": _draw_form(rng, "{h:32}"), "user_id": 17},
            {"_id": _draw_form(rng, "{h:24}")},
        )
    )
    if kind == "supabase":
        claims = {"iss": "supabase", "ref": _draw_form(rng, "{c:20}"), "role": "service_role"}
    if kind == "tiny":
        claims = {"sub": user}
    claims["iat"] = issued
    if rng.random() < 0.8:
        claims["exp"] = issued + rng.choice((900, 3600, 86_400, 604_800, 31_536_000))
    return claims


def _draw_jwt(rng: random.Random, argument: str) -> str:
    sizes = {**SIGNATURES, "EdDSA": 64, "PS256": 256}
    name = next((one for one in argument.split() if one in sizes), "")
    name = name or rng.choice(
        ["HS256", "HS256", "HS256", "RS256", "RS256", "ES256", "HS512", "EdDSA", "PS256"]
    )
    head: dict[str, object] = {"alg": name, "typ": "JWT"}
    if rng.random() < 0.3:
        head = {"typ": "JWT", "alg": name}
    if name in ("RS256", "PS256", "ES256") and rng.random() < 0.7:
        head["kid"] = _draw_form(rng, rng.choice(("{h:40}", "{u:21}", "{d:2}")))
    last = next((one for one in argument.split() if one in ("supabase", "tiny")), "")
    parts = [head, _draw_claims(rng, last)]
    texts = [json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts]
    return ".".join(segment(text.encode()) for text in texts) + "." + _draw_signature(rng, name)


def _draw_signature(rng: random.Random, name: str) -> str:
    size = {**SIGNATURES, "EdDSA": 64, "PS256": 256}[name]
    while True:
        text = segment(rng.randbytes(size))
        if text[-1].isalnum() and "xxxxxx" not in text.lower():
            return text


def _make_jwt(scene: Scene, argument: str) -> str:
    """A signed token; or, for negatives, `head`, `claims`, `two`, `none`, `cut`."""
    token = _draw_jwt(scene.rng, argument)
    head, claims, signature = token.split(".")
    if "head" in argument:
        return head
    if "claims" in argument:
        return claims
    if "none" in argument:
        unsigned = b'{"alg":"none","typ":"JWT"}'
        return f"{segment(unsigned)}.{claims}."
    if "two" in argument:
        return f"{head}.{claims}"
    if "cut" in argument:
        return f"{head}.{claims[: len(claims) // 2]}"
    if "start" in argument:
        return token[: scene.rng.randint(18, 30)]
    if "last" in argument:
        return signature[:6]
    return token


# Private keys


def _integer(number: int) -> bytes:
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _odd(rng: random.Random, bits: int) -> int:
    return rng.getrandbits(bits) | 3 << bits - 2 | 1


def _rsa_numbers(rng: random.Random, bits: int) -> tuple[int, ...]:
    while True:
        p, q = _odd(rng, bits // 2), _odd(rng, bits // 2)
        if gcd(p, q) == 1 and gcd(65_537, (p - 1) * (q - 1)) == 1:
            d = pow(65_537, -1, (p - 1) * (q - 1))
            return p * q, 65_537, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p)


def _rsa(rng: random.Random, bits: int = 2048) -> bytes:
    return der(0x30, _integer(0), *map(_integer, _rsa_numbers(rng, bits)))


def _point(rng: random.Random) -> bytes:
    return b"\x04" + rng.randbytes(64)


def _ec(rng: random.Random, curve: bool = True) -> bytes:
    named = der(0xA0, _STANDARD_OIDS["p256"]) if curve else b""
    public = der(0xA1, der(3, b"\0" + _point(rng)))
    return der(0x30, _integer(1), der(4, rng.randbytes(32)), named, public)


def _encrypted(rng: random.Random) -> bytes:
    """PKCS#8 under PBES2: PBKDF2 with HMAC of SHA-256, AES-256 in CBC mode."""
    oid = bytes.fromhex
    salt = der(4, rng.randbytes(8))
    prf = der(0x30, oid("06082a864886f70d0209"), der(5))
    kdf = der(0x30, oid("06092a864886f70d01050c"), der(0x30, salt, _integer(2048), prf))
    cipher = der(0x30, oid("060960864801650304012a"), der(4, rng.randbytes(16)))
    scheme = der(0x30, oid("06092a864886f70d01050d"), der(0x30, kdf, cipher))
    return der(0x30, scheme, der(4, rng.randbytes(1232)))


def _dsa(rng: random.Random) -> bytes:
    sizes = (1024, 160, 1023, 1023, 159)
    return der(0x30, _integer(0), *(_integer(_odd(rng, size)) for size in sizes))


def _string(*parts: bytes) -> bytes:
    content = b"".join(parts)
    return len(content).to_bytes(4, "big") + content


def _openssh(rng: random.Random, kind: str) -> bytes:
    user = f"{rng.choice(words.USERS)}@{rng.choice(words.WORDS)}".encode()
    if "rsa" in kind:
        n, e, d, p, q, _, _, inverse = _rsa_numbers(rng, 2048)
        name = _string(b"ssh-rsa")
        numbers = [_string(_integer(one)[_head_size(_integer(one)) :]) for one in (n, e)]
        public = name + numbers[1] + numbers[0]
        more = [_string(_integer(one)[_head_size(_integer(one)) :]) for one in (d, inverse, p, q)]
        secret = name + numbers[0] + numbers[1] + b"".join(more)
    else:
        key, seed = rng.randbytes(32), rng.randbytes(32)
        public = _string(b"ssh-ed25519") + _string(key)
        secret = public + _string(seed, key)
    check = rng.randbytes(4)
    inner = check + check + secret + _string(user)
    inner += bytes(range(1, 1 + -len(inner) % 8))
    start = b"openssh-key-v1\0"
    if "locked" in kind:
        options = _string(_string(rng.randbytes(16)), (16).to_bytes(4, "big"))
        start += _string(b"aes256-ctr") + _string(b"bcrypt") + options
        inner = rng.randbytes(len(inner) + -len(inner) % 16)
    else:
        start += _string(b"none") + _string(b"none") + _string(b"")
    return start + (1).to_bytes(4, "big") + _string(public) + _string(inner)


def _head_size(element: bytes) -> int:
    return 2 if element[1] < 128 else 2 + (element[1] & 127)


def _pgp(rng: random.Random, private: bool) -> bytes:
    """Packets of an Ed25519 key, its user and a signature."""
    made = rng.randint(1_480_000_000, 1_750_000_000).to_bytes(4, "big")
    curve = bytes.fromhex("092b06010401da470f01010740") + rng.randbytes(32)
    mpi = b"\x01\x00" + bytes([rng.randint(128, 255)]) + rng.randbytes(31)
    key = b"\x04" + made + b"\x16" + curve
    if private:
        key += b"\0" + mpi + (sum(mpi) & 0xFFFF).to_bytes(2, "big")
    person = rng.choice(words.PEOPLE)
    user = f"{person} <{rng.choice(words.USERS)}@{rng.choice(words.WORDS)}.org>".encode()
    packets = bytes([0x94 if private else 0x98, len(key)]) + key + bytes([0xB4, len(user)]) + user
    return packets + b"\x88\x90\x04\x13\x16\x08\x00\x38\x16\x21\x04" + rng.randbytes(135)


def _public(rng: random.Random) -> bytes:
    n = _odd(rng, 2048)
    return der(
        0x30, _STANDARD_OIDS["rsa"], der(3, b"\0" + der(0x30, _integer(n), _integer(65_537)))
    )


def _certificate(rng: random.Random) -> bytes:
    names = der(0x30, der(0x31, der(0x30, b"\x06\x03\x55\x04\x03", der(12, b"ca.local"))))
    inner = der(0x30, _integer(rng.getrandbits(120)), names, names, _public(rng))
    return der(0x30, inner, _STANDARD_OIDS["rsa"], der(3, b"\0" + rng.randbytes(256)))


_CONTENTS: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    "rsa": ("RSA PRIVATE KEY", _rsa),
    "rsa1024": ("RSA PRIVATE KEY", lambda rng: _rsa(rng, 1024)),
    "rsa4096": ("RSA PRIVATE KEY", lambda rng: _rsa(rng, 4096)),
    "pkcs8": (
        "PRIVATE KEY",
        lambda rng: der(0x30, _integer(0), _STANDARD_OIDS["rsa"], der(4, _rsa(rng))),
    ),
    "ec": ("EC PRIVATE KEY", _ec),
    "ec8": (
        "PRIVATE KEY",
        lambda rng: der(
            0x30,
            _integer(0),
            der(0x30, _STANDARD_OIDS["ec"], _STANDARD_OIDS["p256"]),
            der(4, _ec(rng, False)),
        ),
    ),
    "ed25519": (
        "PRIVATE KEY",
        lambda rng: der(
            0x30, _integer(0), _STANDARD_OIDS["ed25519"], der(4, der(4, rng.randbytes(32)))
        ),
    ),
    "dsa": ("DSA PRIVATE KEY", _dsa),
    "locked": ("ENCRYPTED PRIVATE KEY", _encrypted),
    "legacy": ("RSA PRIVATE KEY", lambda rng: rng.randbytes(1200)),
    "openssh": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "")),
    "openssh_rsa": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "rsa")),
    "openssh_locked": ("OPENSSH PRIVATE KEY", lambda rng: _openssh(rng, "locked")),
    "pgp": ("PGP PRIVATE KEY BLOCK", lambda rng: _pgp(rng, True)),
    "pub": ("PUBLIC KEY", _public),
    "rsapub": (
        "RSA PUBLIC KEY",
        lambda rng: der(0x30, _integer(_odd(rng, 2048)), _integer(65_537)),
    ),
    "cert": ("CERTIFICATE", _certificate),
    "csr": ("CERTIFICATE REQUEST", _certificate),
    "pgppub": ("PGP PUBLIC KEY BLOCK", lambda rng: _pgp(rng, False)),
    "dh": ("DH PARAMETERS", lambda rng: der(0x30, _integer(_odd(rng, 2048)), _integer(2))),
}


def _draw_pem(rng: random.Random, name: str) -> tuple[list[str], list[str], list[str]]:
    """Lines before the body, of the body and behind it."""
    title, make = _CONTENTS[name]
    content = make(rng)
    text = base64.b64encode(content).decode()
    width = 70 if name.startswith("openssh") else 64
    body = [text[at : at + width] for at in range(0, len(text), width)]
    before = [f"-----BEGIN {title}-----"]
    if name.startswith("pgp"):
        check = base64.b64encode(crc24(content).to_bytes(3, "big")).decode()
        body.append("=" + check)
        before += [*rng.choice(([], ["Version: GnuPG v2"], ["Comment: GPGTools"])), ""]
    if name == "legacy":
        kind = rng.choice(("AES-128-CBC,{H:32}", "DES-EDE3-CBC,{H:16}", "AES-256-CBC,{H:32}"))
        before += ["Proc-Type: 4,ENCRYPTED", f"DEK-Info: {_draw_form(rng, kind)}", ""]
    return before, body, [f"-----END {title}-----"]


_JOINTS = {
    "esc": ("", r"\n"),
    "esc2": ("", r"\\n"),
    "crlfesc": ("", r"\r\n"),
    "pct": ("", "%0A"),
    "br": ("", "<br>\n"),
    "xml": ("", "&#10;"),
    "space": ("", " "),
    "hash": ("# ", "\n# "),
    "slash": ("// ", "\n// "),
    "star": (" * ", "\n * "),
    "gt": ("> ", "\n> "),
    "gt2": (">> ", "\n>> "),
    "plus": ("+", "\n+"),
    "minus": ("-", "\n-"),
    "semi": ("; ", "\n; "),
    "dashes": ("-- ", "\n-- "),
    "i2": ("  ", "\n  "),
    "i4": ("    ", "\n    "),
    "i6": ("      ", "\n      "),
    "i8": ("        ", "\n        "),
    "i10": (" " * 10, "\n" + " " * 10),
    "tab": ("\t", "\n\t"),
    "java": ('    "', '\\n" +\n    "'),
    "c": ('"', '\\n"\n"'),
    "go": ('\t"', '\\n" +\n\t"'),
    "py": ("    '", "\\n'\n    '"),
    "php": ("    '", "' . \"\\n\" .\n    '"),
    "list": ('  "', '",\n  "'),
    "vb": ('    "', '\\n" & _\n    "'),
    "wrapc": ("    b'", "\\n'\n    b'"),
}
"""What stands before the first line of a key, and between two lines."""


def _make_pem(scene: Scene, argument: str) -> str:
    """`NAME|JOINT`: a key between its BEGIN and END lines; marks label its body.

    `one` leaves out the breaks of the body alone, `flat` all, `body` the BEGIN and END lines.
    """
    name, _, joint = argument.partition("|")
    rng = scene.rng
    before, body, behind = _draw_pem(rng, rng.choice(name.split()))
    start, between = _JOINTS.get(joint, ("", "\n"))
    if joint in ("one", "flat", "oneesc"):
        body = ["".join(body)]
        between = {"one": "\n", "flat": "", "oneesc": r"\n"}[joint]
    if joint == "body":
        return "\n".join(body)
    if joint in ("pct",):
        body = [line.replace("+", "%2B").replace("/", "%2F") for line in body]
        before, behind = ([_quoted(one) for one in lines] for lines in (before, behind))
    text = "\x02" + between.join(body) + "\x03"
    return start + between.join([*before, text, *behind])


def _quoted(line: str) -> str:
    return line.replace(" ", "%20")


def _make_wrapped(scene: Scene, argument: str) -> str:
    """Base64 of a whole PEM text, in one line; `NAME|WIDTH` breaks it."""
    name, _, width = argument.partition("|")
    before, body, behind = _draw_pem(scene.rng, scene.rng.choice((name or "rsa").split()))
    text = base64.b64encode(("\n".join([*before, *body, *behind]) + "\n").encode()).decode()
    step = int(width or 0)
    if not step:
        return text
    return "\n    ".join(text[at : at + step] for at in range(0, len(text), step))


def _make_age(scene: Scene, argument: str) -> str:
    content = scene.rng.randbytes(32)
    return bech32("age", content) if argument else bech32("age-secret-key-", content).upper()


def _make_wif(scene: Scene, _: str) -> str:
    return _draw_form(scene.rng, scene.rng.choice(("5{z:50}", "K{z:51}", "L{z:51}")))


def _make_base64(scene: Scene, argument: str) -> str:
    return base64.b64encode(scene.rng.randbytes(int(argument or 32))).decode()


def _make_public_ssh(scene: Scene, argument: str) -> str:
    rng = scene.rng
    if argument == "rsa":
        number = _odd(rng, 2048).to_bytes(257, "big")
        content = _string(b"ssh-rsa") + _string(b"\1\0\1") + _string(number)
        return f"ssh-rsa {base64.b64encode(content).decode()}"
    content = _string(b"ssh-ed25519") + _string(rng.randbytes(32))
    return f"ssh-ed25519 {base64.b64encode(content).decode()}"


MAKERS: dict[str, Maker] = {
    "keys_draw": _make_draw,
    "keys_make": _make_key,
    "keys_pick": _make_choice,
    "keys_name": _pick(words.PEOPLE),
    "keys_user": _pick(words.USERS),
    "keys_firm": _pick(words.FIRMS),
    "keys_word": _pick(words.WORDS),
    "keys_city": _pick(words.CITIES),
    "keys_host": _make_host,
    "keys_date": _make_date,
    "keys_amount": _make_amount,
    "keys_uuid": _make_uuid,
    "keys_mail": _make_mail,
    "keys_bic": _make_bic,
    "keys_iban": _make_iban,
    "keys_masked": _make_masked,
    "keys_jwt": _make_jwt,
    "keys_pem": _make_pem,
    "keys_wrapped": _make_wrapped,
    "keys_age": _make_age,
    "keys_wif": _make_wif,
    "keys_base64": _make_base64,
    "keys_ssh": _make_public_ssh,
}
