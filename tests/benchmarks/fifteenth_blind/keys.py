"""Makers of the group `keys`: account numbers, web tokens, private keys and providers' tokens.

Nothing here is a credential: every value is drawn from the scene's random generator.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import textwrap
import uuid

from tests.benchmarks.blind_set import Maker, Scene
from tests.benchmarks.blind_standards import crc_base62, luhn_digit, segment
from tests.benchmarks.fifteenth_blind.keys_material import age, key, key64, pgp, putty, ssh_public
from tests.benchmarks.fifteenth_blind.keys_words import (
    ACCOUNTS,
    BANKS,
    GERMAN_BANKS,
    HOSTS,
    PEOPLE,
    TOKENS,
    WORDS,
)

ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "A": string.ascii_letters,
    "h": "0123456789abcdef",
    "U": "0123456789ABCDEF",
    "b": string.ascii_letters + string.digits + "-_",
    "s": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + string.digits,
    "k": string.ascii_uppercase + "234567",
    "l": string.ascii_lowercase + string.digits,
    "L": string.ascii_uppercase,
    "d": string.digits,
}


def draw(rng: random.Random, alphabet: str, size: int) -> str:
    """So many characters of an alphabet; a run of digits does not start with 0.

    The last character of a longer run is a letter or a digit: no word ends with a dash.
    """
    letters = ALPHABETS[alphabet]
    text = "".join(rng.choice(letters) for _ in range(size))
    if alphabet == "d":
        return rng.choice("123456789") + text[1:]
    ends = [one for one in letters if one.isalnum()]
    return text[:-1] + rng.choice(ends)


# Account numbers ----------------------------------------------------------------------------


def _mod97(text: str) -> int:
    return int("".join(str(int(one, 36)) for one in text)) % 97


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(one) * weight for one, weight in zip(digits, weights, strict=True))


def _until(rng: random.Random, size: int, weights: tuple[int, ...], modulus: int) -> str:
    """Digits whose weighted sum is a multiple of the modulus."""
    while True:
        digits = draw(rng, "d", size)
        if _weighted(digits, weights) % modulus == 0:
            return digits


def _spanish(rng: random.Random) -> str:
    bank = rng.choice(("2100", "0049", "0182", "1465", "2085")) + draw(rng, "d", 4)
    account = draw(rng, "d", 10)
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)
    checks = [11 - _weighted(part, weights) % 11 for part in ("00" + bank, account)]
    return bank + "".join({10: "1", 11: "0"}.get(one, str(one)) for one in checks) + account


def _french(rng: random.Random) -> str:
    body = rng.choice(("30003", "30004", "10278", "16705", "20041")) + draw(rng, "d", 5)
    account = draw(rng, "d", 11)
    key = 97 - (89 * int(body[:5]) + 15 * int(body[5:]) + 3 * int(account)) % 97
    return f"{body}{account}{key:02}"


_CIN_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)


def _italian(rng: random.Random) -> str:
    body = rng.choice(("02008", "03069", "05034", "07601", "08327")) + draw(rng, "d", 5)
    body += "00" + draw(rng, "d", 10)
    total = sum(_CIN_ODD[int(one)] if at % 2 == 0 else int(one) for at, one in enumerate(body))
    return string.ascii_uppercase[total % 26] + body


def _ends_with_97(rng: random.Random, head: str, size: int) -> str:
    body = head + draw(rng, "d", size)
    return f"{body}{98 - int(body + '00') % 97:02}"


def _croatian(rng: random.Random) -> str:
    def part(size: int, start: str = "") -> str:
        digits = start + draw(rng, "d", size - len(start))
        total = 10
        for one in digits:
            total = ((total + int(one)) % 10 or 10) * 2 % 11
        return digits + str((11 - total) % 10)

    return part(6, rng.choice(("2", "23"))) + part(9)


def _national(rng: random.Random, country: str) -> str:
    """The account part of a country with check digits of its own."""
    digits = draw(rng, "d", 16)
    match country:
        case "BE":
            body = rng.choice(("001", "063", "310", "363", "068")) + digits[:7]
            return f"{body}{int(body) % 97 or 97:02}"
        case "CZ" | "SK":
            bank = rng.choice(("0100", "0300", "0800") if country == "CZ" else ("0200", "1100"))
            account = _until(rng, 10, (6, 3, 7, 9, 10, 5, 8, 4, 2, 1), 11)
            return f"{bank}000000{account}"
        case "DE":
            return rng.choice(GERMAN_BANKS) + digits[:10]
        case "EE":
            bank = rng.choice(("22", "10", "77"))
            weights = (7, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7)
            body = bank + digits[:11]
            return f"{bank}{body}{-_weighted(body, weights) % 10}"
        case "ES":
            return _spanish(rng)
        case "FI":
            body = "5" + digits[:12]
            return body + luhn_digit(body)
        case "FR" | "MC":
            return _french(rng)
        case "HR":
            return _croatian(rng)
        case "HU":
            first = _until(rng, 8, (9, 7, 3, 1, 9, 7, 3, 1), 10)
            weights = (9, 7, 3, 1) * 4
            return first + _until(rng, 16, weights, 10)
        case "IS":
            person = f"{rng.randrange(1, 29):02}{rng.randrange(1, 13):02}{rng.randrange(60, 99)}"
            return f"0{digits[:3]}26{digits[3:9]}{_kennitala(rng, person)}"
        case "IT" | "SM":
            return _italian(rng)
        case "NL":
            return rng.choice(BANKS["NL"]) + _until(rng, 10, tuple(range(10, 0, -1)), 11)
        case "NO":
            return _until(rng, 11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), 11)
        case "PL":
            bank = rng.choice(("1020", "1140", "1050", "2490")) + digits[:3]
            check = -_weighted(bank, (3, 9, 7, 1, 3, 9, 7)) % 10
            return f"{bank}{check}{draw(rng, 'd', 16)}"
        case "PT":
            return _ends_with_97(rng, rng.choice(("0035", "0033", "0007", "0010")), 15)
        case "SI":
            return _ends_with_97(rng, rng.choice(("02", "03", "61")), 11)
        case _:  # RS, ME, MK, BA: a bank of three digits, an account, ISO 7064's two
            size = {"RS": 13, "ME": 13, "MK": 10, "BA": 11}[country]
            return _ends_with_97(rng, rng.choice(("160", "265", "325", "510")), size)


def _kennitala(rng: random.Random, birth: str) -> str:
    while True:
        body = birth + str(rng.randrange(20, 99))
        check = -_weighted(body, (3, 2, 7, 6, 5, 4, 3, 2)) % 11
        if check < 10:
            return f"{body}{check}9"


def account_of(rng: random.Random, country: str) -> str:
    """The account part (BBAN) of a country, with its national check digits where it has them."""
    if country not in ACCOUNTS:
        return _national(rng, country)
    text = ""
    for size, kind in re.findall(r"(\d+)(\w)", ACCOUNTS[country]):
        if kind == "a":
            text += rng.choice(BANKS[country])
        elif kind == "z":
            text += "0"
        else:
            text += draw(rng, {"n": "d", "C": "L"}[kind], int(size))
    return text


def with_check(country: str, account: str) -> str:
    """The account number with the two check digits of ISO 13616."""
    return f"{country}{98 - _mod97(f'{account}{country}00'):02}{account}"


def grouped(text: str, style: str) -> str:
    """In groups of four: `4` by blanks, `-` by dashes, `.` by dots, `n` by no-break blanks.

    `l` is small letters without groups, `l4` small letters in groups, `` leaves it compact.
    """
    if style.startswith("l"):
        text, style = text.lower(), style[1:]
    joint = {"4": " ", "-": "-", ".": ".", "n": "\xa0"}.get(style)
    return text if joint is None else joint.join(textwrap.wrap(text, 4))


def iban(scene: Scene, argument: str) -> str:
    """`COUNTRY,STYLE`; without a country one of Europe's."""
    country, _, style = argument.partition(",")
    country = country or scene.rng.choice(("DE", "FR", "NL", "ES", "IT", "AT", "BE", "PL"))
    return grouped(with_check(country, account_of(scene.rng, country)), style)


def wrong_iban(scene: Scene, argument: str) -> str:
    """Like `iban`, with check digits that are another value: no account number."""
    country, _, style = argument.partition(",")
    right = with_check(country, account_of(scene.rng, country))
    check = (int(right[2:4]) - 2 + scene.rng.randrange(1, 96)) % 97 + 2
    return grouped(f"{country}{check:02}{right[4:]}", style)


def account(scene: Scene, argument: str) -> str:
    """The national number alone, without a country and its check digits."""
    return account_of(scene.rng, argument)


def bic(scene: Scene, argument: str) -> str:
    """A bank's code (ISO 9362) of a country."""
    bank = draw(scene.rng, "L", 4)
    return f"{bank}{argument or 'DE'}{draw(scene.rng, 'u', 2)}" + scene.rng.choice(("", "XXX"))


def creditor(scene: Scene, argument: str) -> str:
    """A creditor's identifier of SEPA: its own digits are checked, the business code is not."""
    body = draw(scene.rng, "d", 11)
    return f"{with_check(argument, body)[:4]}ZZZ{body}"


def reference(scene: Scene, argument: str) -> str:
    """A creditor's reference (ISO 11649), `4` in groups."""
    body = draw(scene.rng, "d", 16)
    return grouped(with_check("RF", body), argument)


def lei(scene: Scene, _: str) -> str:
    """A legal entity's identifier (ISO 17442)."""
    body = draw(scene.rng, "d", 4) + "00" + draw(scene.rng, "u", 12)
    return f"{body}{98 - _mod97(body + '00'):02}"


# Web tokens ---------------------------------------------------------------------------------

SIGNATURE_BYTES = {
    "HS256": 32, "HS384": 48, "HS512": 64, "RS256": 256, "RS512": 256, "PS256": 256,
    "ES256": 64, "ES384": 96, "EdDSA": 64,
}  # fmt: skip


def _claims(rng: random.Random, flavour: str) -> dict[str, object]:
    start = rng.randrange(1_560_000_000, 1_790_000_000)
    user, host = str(uuid.UUID(bytes=rng.randbytes(16), version=4)), rng.choice(HOSTS)
    times: dict[str, object] = {"iat": start, "exp": start + rng.choice((900, 3600, 86400))}
    ten_years: dict[str, object] = {"iat": start, "exp": start + 315_360_000}
    code = draw(rng, "a", 20)
    choices: dict[str, dict[str, object]] = {
        "plain": {"sub": user, **times},
        "user": {"user_id": rng.randrange(10, 99999), "role": "editor", **times},
        "auth0": {"iss": f"https://{host}/", "sub": f"auth0|{draw(rng, 'h', 24)}", **times},
        "supabase": {"iss": "supabase", "ref": code.lower(), "role": "service_role", **ten_years},
        "firebase": {"iss": f"https://securetoken.google.com/{code[:8].lower()}", "sub": code}
        | times,
        "keycloak": {
            **times,
            "jti": user,
            "iss": f"https://sso.{host}/realms/main",
            "typ": "Bearer",
        },
        "k8s": {"iss": "kubernetes/serviceaccount", "sub": f"system:{rng.choice(WORDS)}", **times},
        "azure": {"aud": "https://graph.microsoft.com", "tid": user, "ver": "1.0", **times},
        "hass": {"iss": draw(rng, "h", 32), **ten_years},
        "django": {"token_type": "access", "jti": draw(rng, "h", 32), "user_id": 7, **times},
        "forever": {"id": draw(rng, "h", 24), "iat": start},
    }
    return choices[flavour or "plain"]


def _head(rng: random.Random, algorithm: str, flavour: str) -> dict[str, object]:
    """The header as the libraries of the services order it."""
    kid = draw(rng, "b", 22)
    if flavour == "k8s":
        return {"alg": algorithm, "kid": kid}
    if flavour == "azure":
        return {"typ": "JWT", "alg": algorithm, "x5t": kid, "kid": kid}
    if flavour == "firebase":
        return {"alg": algorithm, "kid": draw(rng, "h", 40), "typ": "JWT"}
    if algorithm[:2] != "HS":
        return {"alg": algorithm, "typ": "JWT", "kid": kid}
    orders: list[dict[str, object]] = [
        {"alg": algorithm, "typ": "JWT"},
        {"alg": algorithm, "typ": "JWT"},
        {"typ": "JWT", "alg": algorithm},
        {"alg": algorithm},
    ]
    return orders[0] if flavour in ("supabase", "hass") else rng.choice(orders)


def jwt(scene: Scene, argument: str) -> str:
    """A signed web token: `ALGORITHM,CLAIMS`."""
    rng = scene.rng
    algorithm, _, flavour = argument.partition(",")
    algorithm = algorithm or "HS256"
    head = _head(rng, algorithm, flavour)
    parts = (json.dumps(one, separators=(",", ":")) for one in (head, _claims(rng, flavour)))
    body = ".".join(segment(one.encode()) for one in parts)
    return f"{body}.{segment(rng.randbytes(SIGNATURE_BYTES[algorithm]))}"


def jwt_part(scene: Scene, argument: str) -> str:
    """A part of a web token that is none: `head`, `claims`, `unsigned` (head and claims)."""
    head, claims, _ = jwt(scene, "HS256,user").split(".")
    if argument == "none":
        return f"{segment(json.dumps({'alg': 'none', 'typ': 'JWT'}).encode())}.{claims}."
    return {"head": head, "claims": claims, "unsigned": f"{head}.{claims}"}[argument]


def json64(scene: Scene, argument: str) -> str:
    """Base64 of a small JSON object that is no token; `url` without padding."""
    rng = scene.rng
    content: dict[str, object] = {
        "page": rng.randrange(2, 90),
        "after": rng.randrange(10**6, 10**8),
        "sort": rng.choice(("created_at", "name", "score")),
    }
    data = json.dumps(content, separators=(",", ":")).encode()
    return segment(data) if argument == "url" else base64.b64encode(data).decode()


# Providers' tokens --------------------------------------------------------------------------


def token(scene: Scene, argument: str) -> str:
    """A token of a service by its name."""
    rng = scene.rng
    match argument:
        case "github" | "github_oauth" | "github_app" | "github_user" | "npm":
            start = {"github_oauth": "gho_", "github_app": "ghs_", "github_user": "ghu_"}
            body = draw(rng, "a", 30)
            prefix = start.get(argument, "npm_" if argument == "npm" else "ghp_")
            return prefix + body + crc_base62(body)
        case "discord":
            user = segment(draw(rng, "d", 18).encode())
            return f"{user}.G{draw(rng, 'a', 5)}.{draw(rng, 'b', 38)}"
        case "mapbox":
            claims = {"u": rng.choice(WORDS), "a": f"cl{draw(rng, 'l', 23)}"}
            body = segment(json.dumps(claims, separators=(",", ":")).encode())
            return f"sk.{body}.{draw(rng, 'b', 22)}"

    def part(match: re.Match[str]) -> str:
        if match[1] == "g":
            return str(uuid.UUID(bytes=rng.randbytes(16), version=4))
        return draw(rng, match[1], int(match[2]))

    return re.sub(r"\{(\w)(\d*)\}", part, TOKENS[argument])


# Fillers ------------------------------------------------------------------------------------


def characters(alphabet: str) -> Maker:
    """A maker of so many characters (the argument) of an alphabet."""
    return lambda scene, argument: draw(scene.rng, alphabet, int(argument or 8))


def base64_of(scene: Scene, argument: str) -> str:
    """Base64 of so many random bytes."""
    return base64.b64encode(scene.rng.randbytes(int(argument))).decode()


MAKERS: dict[str, Maker] = {
    "keys_iban": iban,
    "keys_wrong_iban": wrong_iban,
    "keys_account": account,
    "keys_bic": bic,
    "keys_creditor": creditor,
    "keys_reference": reference,
    "keys_lei": lei,
    "keys_jwt": jwt,
    "keys_jwt_part": jwt_part,
    "keys_json64": json64,
    "keys_key": key,
    "keys_key64": key64,
    "keys_pgp": pgp,
    "keys_putty": putty,
    "keys_ssh_public": ssh_public,
    "keys_age": age,
    "keys_token": token,
    "keys_alnum": characters("a"),
    "keys_hex": characters("h"),
    "keys_capital_hex": characters("U"),
    "keys_urlsafe": characters("b"),
    "keys_upper": characters("u"),
    "keys_letters": characters("L"),
    "keys_lower": characters("l"),
    "keys_digits": characters("d"),
    "keys_base64": base64_of,
    "keys_uuid": lambda scene, _: str(uuid.UUID(bytes=scene.rng.randbytes(16), version=4)),
    "keys_person": lambda scene, argument: scene.rng.choice(PEOPLE[argument or "en"]),
    "keys_host": lambda scene, _: scene.rng.choice(HOSTS),
    "keys_word": lambda scene, _: scene.rng.choice(WORDS),
    "keys_number": lambda scene, argument: str(scene.rng.randrange(2, int(argument or 100))),
}
