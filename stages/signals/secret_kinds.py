"""The kinds of secrets with a shape of their own: the literal, the shape and the check of each.

A literal tells the kind; then follow a shape and a check: the length and alphabet that the service
uses, its checksum where it has one (GitHub and npm end tokens with a CRC-32) or enough different
characters. Tokens of services that only a prefix tells are listed in `service_tokens.py`.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from stages.engine.strict_json import parse_json
from stages.signals.azure_keys import EMULATOR_KEYS
from stages.signals.secret_values import is_placeholder, is_random

PUBLISHED = (
    *EMULATOR_KEYS,
    *("sk_test_4eC39HqLyjWDarjtT1zdp7dc", "sk_test_4eC39HqLyjWDarjtT1zdP7dc"),
    "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
    *("wJalrXUtnFEMI", "key-3ax6xnjp29jd6fds4gc373sgvjxteol0"),
    "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b",
    *("2YotnFZFEjr1zCsicMWpAA", "tGzv3JOkF0XG5Qx2TlKWIA", "mF_9.B5f-4.1JqM"),
)
"""Keys in the documentation of Microsoft, Stripe, Amazon, Mailgun and Django REST framework, in RFC
6749 and 6750: everybody's."""

WORD_BEGIN = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=[=%]3D)|(?<=%2[027])|(?<=%3A)|(?<=\\[nrt])|(?<=\x1b\[[0-9]m))"
)
"""Also after what encodes a sign or blank: `=3D`, `%22`, `\\n`."""

WORD_END = r"(?![A-Za-z0-9_-])"
_HEX = re.compile(r"[0-9a-f]+")
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class SecretKind:
    """A kind of secret: its label, the literal that marks it, its shape, and a further check."""

    label: str
    literal: str
    shape: re.Pattern[str]
    check: Callable[[str], bool] = lambda token: True
    begins: str = ""
    """What the secret begins with, where that is not the literal."""
    lead: re.Pattern[str] | None = None
    """What stands before the literal in the secret, up to it, where that varies."""


def make_tag(label: str) -> str:
    """The text that replaces a secret."""
    return f"<secret:{label}>"


def is_in_run(byte: int) -> bool:
    """Whether long runs of letters, digits and `_+/-` hold a byte."""
    return chr(byte) in "_+/-" or (byte < 128 and chr(byte).isalnum())


_REACH = 200
"""Characters before a literal in which its secret must begin."""

_LONGEST_LEAD = 70
"""Characters before a literal in which a secret with a varying beginning begins."""


def match_kind(text: str, sort: SecretKind, place: int) -> re.Match[str] | None:
    """The shape that holds the literal at `place`."""
    if sort.lead is not None:
        before = sort.lead.search(text, max(0, place - _LONGEST_LEAD), place)
        return sort.shape.match(text, before.start()) if before else None
    if not sort.begins:
        return sort.shape.match(text, place)
    start = text.rfind(sort.begins, max(0, place - _REACH), place)
    match = sort.shape.match(text, start) if start >= 0 else None
    return match if match is not None and place < match.end() else None


def crc32_base62(body: str) -> str:
    """The last six characters of a GitHub or npm token whose random part is `body`."""
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0")


def _is_token(token: str) -> bool:
    """Whether the checksum is right; without it, whether the rest is as chance makes it.

    A copy with a wrong letter is still nearly the secret.
    """
    body = token.partition("_")[2]
    return crc32_base62(body[:-6]) == body[-6:] or (
        is_random(body, 380) and not is_placeholder(body)
    )


def _is_stripe_key(token: str) -> bool:
    """Whether the rest looks random, and no key of the documentation is it.

    Paystack's keys begin as Stripe's do, with hexadecimal digits behind.
    """
    body = token[8:]
    bits = 300 if len(body) == 40 and _HEX.fullmatch(body) else 350
    return is_random(body, bits) and not token.startswith(PUBLISHED)


_SAMPLE_PAYLOAD = ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lI"
"""What the samples of jwt.io say: `{"sub":"1234567890","name":"John Doe"`."""


_SAMPLE_OF_THE_STANDARD = ".eyJpc3MiOiJqb2UiLA0KICJleHAi"
"""The claims in RFC 7515, appendix A, and RFC 7519, 3.1."""


def _is_jwt(token: str) -> bool:
    """Whether the first part is a JSON object that names an algorithm; no sample of jwt.io."""
    if _SAMPLE_PAYLOAD in token or _SAMPLE_OF_THE_STANDARD in token:
        return False
    return "alg" in _decode_object(token.partition(".")[0])


def _decode_object(part: str) -> dict[str, object]:
    """The JSON object that a part of a JSON web token holds; empty where it holds none."""
    try:
        value = parse_json(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def is_json_object(part: str) -> bool:
    """Whether a part of a JSON web token holds a JSON object that is not empty."""
    return bool(_decode_object(part))


def _check_random_after(separators: str, bits: int = 350, most: int = 0) -> Callable[[str], bool]:
    """A check that what follows the last prefix (or that of number `most`) looks random."""

    def check(token: str) -> bool:
        return is_random(re.split(separators, token, maxsplit=most)[-1], bits)

    return check


def _kind(
    label: str,
    literal: str,
    shape: str,
    check: Callable[[str], bool] = lambda token: True,
    begins: str = "",
    lead: re.Pattern[str] | None = None,
) -> SecretKind:
    return SecretKind(
        label, literal, re.compile(f"{WORD_BEGIN}{shape}{WORD_END}"), check, begins, lead
    )


SECRET_KINDS: tuple[SecretKind, ...] = (
    *(
        _kind("aws_access_key", prefix, rf"{prefix}[A-Z2-7]{{16}}", lambda t: is_random(t[4:], 250))
        for prefix in ("AKIA", "ASIA")
    ),
    _kind("google_api_key", "AIza", r"AIza[A-Za-z0-9_-]{35}", _check_random_after("AIza")),
    _kind(
        "google_oauth_secret",
        "GOCSPX-",
        r"GOCSPX-[A-Za-z0-9_-]{28}",
        _check_random_after("GOCSPX-"),
    ),
    *(
        _kind("github_token", prefix, rf"{prefix}[A-Za-z0-9]{{36}}", _is_token)
        for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")
    ),
    _kind(
        "github_token",
        "github_pat_",
        r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        _check_random_after("_", 400),
    ),
    _kind("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}", _is_token),
    _kind(
        "gitlab_token",
        "glpat-",
        r"glpat-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
        _check_random_after("glpat-"),
    ),
    _kind(
        "slack_token",
        "xox",
        r"xox[abeoprs]-(?:[0-9A-Za-z]{1,24}-){1,5}[A-Za-z0-9]{16,72}",
        _check_random_after("-", 300),
    ),
    _kind("slack_token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,13}-[0-9]{10,14}-[0-9a-f]{64}"),
    *(
        SecretKind(
            "slack_webhook",
            literal,
            re.compile(
                r"(?:https?://)?hooks\.slack\.com/(?:services/T[A-Z0-9]{7,12}/B[A-Z0-9]{7,12}"
                r"|(?:workflows|triggers)/[TE][A-Z0-9]{7,12}(?:/A[A-Z0-9]{7,12})?/[0-9]{10,20})/[A-Za-z0-9]{24,36}"
            ),
            _check_random_after("/"),
            begins="hooks.",
            lead=re.compile(r"(?:https?://)?hooks\.slack\.\Z"),
        )
        for literal in ("com/services/T", "com/workflows/", "com/triggers/")
    ),
    *(
        _kind("stripe_key", prefix, rf"{prefix}[0-9A-Za-z]{{24,247}}", _is_stripe_key)
        for prefix in ("sk_live_", "rk_live_", "sk_test_", "rk_test_")
    ),
    _kind(
        "openai_key",
        "T3BlbkFJ",
        r"sk-(?:[a-z]{3,10}-)?[A-Za-z0-9_-]{16,160}T3BlbkFJ[A-Za-z0-9_-]{16,160}",
        begins="sk-",
    ),
    _kind("anthropic_key", "sk-ant-", r"sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,120}"),
    _kind("hugging_face_token", "hf_", r"hf_[A-Za-z0-9]{34}", _check_random_after("_", 400)),
    *(
        _kind("docker_token", f"dckr_{sort}_", rf"dckr_{sort}_[A-Za-z0-9_-]{{27,32}}")
        for sort in ("pat", "oat")
    ),
    _kind("shopify_token", "shp", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}"),
    *(
        _kind("digitalocean_token", f"do{sort}_v1_", rf"do{sort}_v1_[0-9a-f]{{64}}")
        for sort in "opr"
    ),
    _kind("twilio_key", "SK", r"SK[0-9a-f]{32}", _check_random_after("SK", 280)),
    SecretKind(
        "twitter_bearer",
        "A" * 20,
        re.compile(r"(?<![A-Za-z0-9+/_-])A{20,24}[A-Za-z0-9%]{60,150}(?![A-Za-z0-9+/=_%-])"),
        _check_random_after("A{20,24}", 400),
    ),
    *(
        _kind("aws_session_token", begin, rf"{begin}[A-Za-z0-9+/]{{150,2000}}={{0,2}}")
        for begin in ("IQoJb3JpZ2lu", "FwoGZXIvYXdz")
    ),
    _kind("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _kind("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,400}"),
    _kind(
        "json_web_token",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{20,2000}",
        _is_jwt,
    ),
)
"""The kinds with a shape of their own, in the order of the search."""


def _inner(
    literal: str,
    shape: str,
    lead: str,
    check: Callable[[str], bool] = lambda token: True,
    label: str = "service_token",
) -> SecretKind:
    """A kind whose literal stands inside of it: `lead` is what it has before, `shape` all of it."""
    return SecretKind(label, literal, re.compile(shape), check, lead=re.compile(lead + r"\Z"))


def _is_discord_token(token: str) -> bool:
    """Whether the first part holds the digits of a user's number."""
    head = token.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (binascii.Error, ValueError):
        return False


_DISCORD_USER = r"[MNO][A-Za-z0-9_-]{23,27}"
DISCORD_TOKEN = _inner(
    ".",
    rf"{_DISCORD_USER}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,38}}{WORD_END}",
    _DISCORD_USER,
    _is_discord_token,
    "discord_token",
)
"""It has no literal but its dots: searched where a run of the length of its first part ends."""

_HOOK = r"https://[a-z0-9-]{1,40}"
_MAXMIND = r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}"
INNER_KINDS: tuple[SecretKind, ...] = (
    _inner(
        ":AA",
        rf"(?:(?<=bot)|(?<![A-Za-z0-9]))[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{32,33}}{WORD_END}",
        r"[0-9]{8,10}",
        _check_random_after(":"),
        "telegram_token",
    ),
    _inner(
        "Q~",
        rf"{WORD_BEGIN}[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}{WORD_END}",
        r"[A-Za-z0-9_~.-]{3}[0-9]",
        _check_random_after("Q~", most=1),
        "azure_client_secret",
    ),
    _inner(
        "$production$",
        rf"access_token\$production\$[0-9a-z]{{16}}\$[0-9a-f]{{32}}{WORD_END}",
        r"access_token",
    ),
    _inner(
        ":APA91b",
        rf"{WORD_BEGIN}AAAA[A-Za-z0-9_-]{{7}}:APA91b[A-Za-z0-9_-]{{120,180}}{WORD_END}",
        r"AAAA[A-Za-z0-9_-]{7}",
        _check_random_after(":APA91b", 400),
    ),
    _inner(
        "_mmk",
        rf"{WORD_BEGIN}{_MAXMIND}_mmk{WORD_END}",
        _MAXMIND,
        lambda token: is_random(token[7:36], 350),
    ),
    _inner(
        "NRAL",
        rf"{WORD_BEGIN}[0-9a-z]{{36}}NRAL{WORD_END}",
        r"[0-9a-z]{36}",
        lambda token: is_random(token[:36], 280),
    ),
    _inner(
        ".atlasv1.",
        rf"{WORD_BEGIN}[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_-]{{60,72}}{WORD_END}",
        r"[A-Za-z0-9]{14}",
        _check_random_after("atlasv1.", 400),
    ),
    _inner(
        "sig=",
        r"sig=(?:[A-Za-z0-9%+/]{43,70}(?:%3[Dd]|=)|[A-Za-z0-9_-]{43}(?![A-Za-z0-9_%=-]))",
        r"(?<=[?&;])",
        lambda token: is_random(token[4:], 400),
    ),
    _inner(
        "::server:",
        rf"{WORD_BEGIN}K10[0-9a-f]{{64}}::server:[0-9a-f]{{32}}{WORD_END}",
        r"K10[0-9a-f]{64}",
    ),
    _inner(
        "-us",
        rf"{WORD_BEGIN}[0-9a-f]{{32}}-us[0-9]{{1,2}}{WORD_END}",
        r"[0-9a-f]{32}",
        lambda token: is_random(token[:32], 280),
    ),
    *(
        _inner(
            f"P{product}APIToken=",
            rf"P{product}APIToken=[\w.-]{{1,40}}@[\w-]{{1,40}}![\w-]{{1,40}}[=:]"
            rf"[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{WORD_END}",
            WORD_BEGIN,
        )
        for product in ("VE", "BS", "MG")
    ),
    *(
        _inner(
            f"perm{sign}",
            rf"perm{sign}(?:[A-Za-z0-9+/=]{{4,60}}\.){{2}}[A-Za-z0-9]{{30,60}}{WORD_END}",
            WORD_BEGIN,
        )
        for sign in ":-"
    ),
    _inner(
        ".webhook.office.com/",
        rf"{_HOOK}\.webhook\.office\.com/webhookb2/[0-9a-f-]{{36}}@[0-9a-f-]{{36}}/IncomingWebhook/"
        rf"[0-9a-f]{{32}}/[0-9a-f-]{{36}}(?:/[A-Za-z0-9_-]{{20,80}})?{WORD_END}",
        _HOOK,
    ),
)
"""Kinds whose literal no run of letters and digits begins with; searched in the whole text."""
