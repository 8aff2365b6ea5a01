"""Random-looking values that a name such as `api_key` tells.

A value stands in a long run of letters and digits; its name ends right before it, joined in one of
the ways of `named_values.py`. The value must look random, so `token = get_token(name)` is none, and
names of what is public (`public_key`, `csrf_token`, `cache_key`) are none. Time is linear in the
text: what is matched has a bounded length.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Iterator, Sequence

from stages.signals.broken_tokens import join_lines
from stages.signals.named_values import (
    ARGUMENT,
    ASSIGNS,
    BLOCK,
    CELL,
    FALLBACK,
    FIELD,
    OPEN,
    QUOTE,
    TAG_END,
    VERB,
    find_head,
    may_join,
)
from stages.signals.outputs import Span
from stages.signals.secret_kinds import PUBLISHED
from stages.signals.secret_names import (
    BEFORE_KEY,
    HINTS,
    LONGEST_BEFORE_KEY,
    MOST_HINTS,
    NAME,
    OTHER_TAIL,
    SURE_NAME,
    VALUE,
    WEAK_NAME,
)
from stages.signals.secret_values import (
    NO_SECRET,
    is_opaque,
    is_placeholder,
    is_random,
    looks_secret,
)

_LOOK_BACK, _LONGEST = 160, 300
"""Characters before a value that must hold its name, and of a value at most."""

_SERVICE = (
    r"(?: (?:d[’']|de |da |do |of |for |von |für |pour |di |del |для )?[^\W\d_][\w.-]{0,20}+){0,2}?"
)
"""Whole words: a value before is none, so a search does not try each part of it as one."""

_SCHEME = (
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Key|JWT|OAuth2?|SSWS|GenieKey|Splunk|Negotiate|NTLM"
    r"|Client-ID|Bot|KakaoAK|DPoP|Session|EndpointKey|DeepL-Auth-Key|Klaviyo-API-Key"
    r"|GoogleLogin auth=|Discogs token="
    r"|Zoho-oauthtoken|PVEAPIToken=[\w.@!-]{1,60}=)(?:(?:\\?\s|&nbsp;|%20|\+){1,2}|(?<==))(?:"
    r"[\"'] ?[+.&] ?[\"'])?"
)
"""Schemes of HTTP's `Authorization`, and the plus of `"Bearer " + "…"`."""

_NAMED = re.compile(
    rf"(?P<name>{NAME})(?P<tail>[\w-]{{0,24}}?){_SERVICE}"
    rf"(?:(?P<firm>{FALLBACK}|{ASSIGNS}|{ARGUMENT}|{BLOCK}|{FIELD}|{TAG_END}|{CELL}"
    rf"|[)）]?{VERB}|[\"'] (?=[\"']))(?P<scheme>{_SCHEME})?"
    r"|(?<=bearer)(?:, (?=[\"'])| ?[\"'] ?[+.&] ?(?=[\"'])|\\ |%20"
    r"| (?:\{\w?\}|%[sv])[\"'](?:,|\.format\(| %)\s?\(?(?=[\"']))|[ \u00a0\t]{1,2})"
    rf"{OPEN}(?P<quote>{QUOTE}{{1,2}})?(?:base64:|hex:|!!binary\s)?\Z",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"(?:jwt\.(?:sign|verify|encode|decode)|create_?hmac|hmac\.new|fernet|aes\.new|secretkeyspec"
    r"|(?:client|bot|discord)\.(?:login|run|start)|set_?(?:api_?)?(?:key|token|secret)"
    r"|(?:vault|sonar)[. ]login|oauth2(?=\()|app_?id|sonar\.token|login\((?:api_?)?(?:key|token))"
    rf"(?:\([^()\n]{{0,60}}?|{QUOTE}?\s?[=: ]\s?)b?(?P<quote>{QUOTE})?\Z",
    re.IGNORECASE,
)
_CALL_REACH, _CALL_SIGNS = 100, ("(", "login", "app", "sonar")
"""Calls and commands whose argument is a secret, and the name of OpenWeather's keys."""

_UUID = re.compile(
    r"(?:[0-9]{4,8}-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::fx)?\Z", re.IGNORECASE
)
_ID_BETWEEN = re.compile(
    r"\bids?\b|\bjti\b|(?-i:Id\b)|trace|request|correlation|provided", re.IGNORECASE
)
_ASSIGNED = re.compile(
    rf"(?:[\w-]{{0,24}}?(?:{ASSIGNS}|{ARGUMENT}|{BLOCK}|{FIELD}|{TAG_END})"
    rf"|{_SERVICE}{VERB}|\w{{0,24}}(?<=_authtoken) | (?=[\"'])){OPEN}{QUOTE}?\Z",
    re.IGNORECASE,
)
_SHORT_HEX = re.compile(r"(?=.*[0-9])(?=.*[a-fA-F])[0-9a-fA-F]{20,31}\Z")
_SECRET_NEAR = re.compile(
    r"(?<![a-z])(?:jwt|api|secret|auth|encrypt\w*|sign(?:ing)?|client|credential|cookiesession)s?(?![a-z])",
    re.IGNORECASE,
)
_PUBLIC_NEAR = re.compile(
    r"etag|cache|hash|digest|commit|sha|md5|checksum|integrity", re.IGNORECASE
)

_BEARER = re.compile(r"bearer|authorization", re.IGNORECASE)
_NUMBER_BEFORE = re.compile(r"(?<![A-Za-z0-9_|])([0-9]{1,10})\|\Z")
_NUMBERED = re.compile(r"[A-Za-z0-9]{40}(?:[0-9a-f]{8})?")
_LONGEST_NUMBER = 12
"""Tokens of Laravel's Sanctum have the number of their row before them: `1234|…`."""

_HTTPIE_BEFORE = re.compile(
    r"(?:-A ?|--auth-type[ =])bearer (?:[^\n|;]{0,60}? )?(?:-a ?|--auth[ =])[\"']?\Z"
)
"""The flags of HTTPie: `http -A bearer -a …`."""

_BASIC_BEFORE = re.compile(
    r"(?:authorization\W{1,12}basic\s{1,2}|\bbasic\s(?:[\"'] ?[+.] ?[\"'])?"
    r"|(?<![a-z])auth[\"']?\s?[:=]\s?[\"']?)\Z",
    re.IGNORECASE,
)
_BEARER_BEFORE = re.compile(r"authorization\W{1,12}bearer\s{1,2}\Z", re.IGNORECASE)
_LONGEST_BASIC = 34
_PRINTED_LOGINS = (
    *("s6BhdRkqt3:gX1fBat3bV", "s6BhdRkqt3:7Fjfp0ZBr1KtDRbnfVdmIw", "username:password"),
    *("user:password", "user:pass", "Aladdin:open sesame", "Aladdin:OpenSesame", "test:123£"),
)
"""Examples of RFC 7617, of RFC 2617 and of pages about it."""


_ENCODED_SCHEME = re.compile(r"(?:Bearer|Token)%20", re.IGNORECASE)
_LEAD_CHARACTERS = string.ascii_letters + string.digits + "!#$%&*+./?@^_~-"
_LONGEST_LEAD = 40
"""What a value may have before the run of letters and digits in it."""

_AZURE_NAME = re.compile(
    r"azure|account_?-?\s?(?:key|name)|storage_?-?\s?(?:account_?-?\s?)?key|shared_?-?access"
    r"|windows\.net",
    re.IGNORECASE,
)
_AZURE_REACH = 80
_FEWEST_OF_AZURE = 32
"""Characters of the shortest key that an Azure service assigns: what is shorter was cut."""


_FEWEST_QUOTED, _FEWEST_BARE = 16, 20
_LONGEST_PART = 32
"""Characters of the first part of a secret that may be none without the others."""

_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_WORD_PART = re.compile(r"(?<![A-Za-z0-9])[a-z]{3,}(?![A-Za-z0-9])")
PUBLIC_VALUE = re.compile(
    r"6L[A-Za-z0-9_-]{38,39}\Z|pk\.eyJ|pk_(?:live|test)_|pubkey-|phc_|(?:pub|sub)-c-|sb_publishable_"
    r"|(?:appl|goog|amzn|strp)_[A-Za-z]{20,40}\Z|LS0tLS1CRUdJTiB(?:DRVJU|QVUJM)"
    r"|M(?:II[A-Za-z0-9+/]{3}ANBgkqh|IGfMA0GCSq|(?:Fkw|HYw)E[wA]YHKoZI|CowBQYDK2V"
    r"|II[A-Za-z0-9+/]CgKCA|IGJAoGB)"
    r"|AAAA[BCE][23][NV]"
)
"""Keys that pages show to everybody: of Google's reCAPTCHA, Mapbox, Stripe, Mailgun; certificates
and public keys in base64, with PEM's marks and without; public keys of SSH."""

_DIGEST_BETWEEN = re.compile(r"hash|digest|md5|\bsha-?[0-9]|checksum|fingerprint", re.IGNORECASE)
"""Words between a name and hexadecimal digits: `the password hash is: …`."""

_DIGEST_OF = re.compile(
    r"(?:hash|digest|md5|\bsha-?[0-9]{1,3}|checksum|fingerprint) (?:of|for|von|de|des|der|du|del)\b"
    r"[^\n:=]{0,60}\Z",
    re.IGNORECASE,
)
"""What says that a digest of the secret follows: `SHA-1 of the leaked password: …`."""

_NO_SECRET_BEFORE = re.compile(
    r"\b(?:not|no|invalid|kein\w?) (?:an? |the |valid )?(?:\w{1,12} )?\Z"
)

_HASHED_BEFORE = re.compile(
    r"(?:(?:hash(?:ed)?|encrypt(?:ed)?|crypt(?:ed)?|digest)[_-]?"
    r"|(?:md5|sha-?[0-9]{1,3}) ?\([\"']?)\Z",
    re.IGNORECASE,
)
_CUT_TOKEN = re.compile(
    r"pypi-|gh[pousr]_|github_pat_|glpat-|npm_|hf_|dckr_|do[opr]_v1_|[sr]k_live_|xox[a-z]-"
    r"|shp[a-z]{2}_|SG\."
    r"|AKIA|ASIA|eyJ"
)
"""How tokens of services begin: a value that has not the shape of the service was cut short."""

_ENCODING = "base64:"
"""What the keys of Laravel have before them, as a part of the value."""

_PUBLIC_KEY = re.compile(
    r"öffentlich|publi(?:que|czn)|públic[ao]|pubblic[ao]|открыт|публичн|veřejn|公開鍵|公钥|公鑰|dnskey",
    re.IGNORECASE,
)
"""A key that everybody may know, in other languages, and that of a zone of DNS."""

_FLAG_BEFORE = re.compile(r"(?<![\w-])--(?:[a-z0-9]{1,10}-){0,3}\Z|#define \w{0,16}\Z")
_COMPOSED = re.compile(r"[ _.-]|\Abearer\Z", re.IGNORECASE)
_IN_CELL = re.compile(r"[|\t;,][ \"'`]{0,3}\Z")
_COMMENT_AFTER = re.compile(r"={0,2}[\"'`][),;\]} ]{1,6}[#/-]")
_NAMED_COLUMN = re.compile(rf"{NAME}\W{{0,3}}\Z", re.IGNORECASE)
_NAMED_AFTER = re.compile(
    rf"[\"'`][),;\]}} ]{{0,6}}(?:#|//|--|/\*)[^\n]{{0,30}}?{NAME}", re.IGNORECASE
)
"""A comment at the end of the line that names the value."""

_PUBLIC_CALL = re.compile(
    r"(?:analytics\.load|(?:posthog|mixpanel|amplitude|heap|LogRocket|clarity)\.(?:init|load))"
    r"\(\s?[\"']\Z"
)
"""What the pages of a site give to its analytics: everybody reads it there."""

_PUBLIC_NAME = re.compile(r"pub(?:lic)?[ _-]?key\W{1,6}\Z", re.IGNORECASE)
_AWS_KEY_BEFORE = re.compile(r"(?:AKIA|ASIA)[A-Z2-7]{16}[^A-Za-z0-9+/].{0,50}?\Z", re.DOTALL)
_AWS_SECRET = re.compile(r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_TWILIO_BEFORE = re.compile(r"(?<![A-Za-z0-9])(?:AC|SK)[0-9a-f]{32}[\"']?[\s,:;=|]{1,4}[\"']?\Z")
_TWILIO_SECRET = re.compile(r"[0-9a-f]{32}")
"""The secret right after the public part of a login: of AWS and of Twilio."""


def find_assigned_secrets(text: str, start: int, end: int) -> Iterator[Span]:
    """The random-looking value around [start, end) that is assigned to a name such as `api_key`."""
    before = text[max(0, start - _LOOK_BACK) : start]
    hints = _find_hints(before, start - len(before))
    is_hinted = bool(hints)
    is_basic = before[-7:].rstrip()[-5:].lower() == "basic"
    if not (is_hinted or is_basic or _IN_CELL.search(before) or _COMMENT_AFTER.match(text, end)):
        return
    first = start - min(_LONGEST_LEAD, len(before) - len(before.rstrip(_LEAD_CHARACTERS)))
    if text.startswith("=3D", first - 1):  # Quoted-printable writes `=` so.
        first += 2
    scheme = _ENCODED_SCHEME.match(text, first)
    first = scheme.end() if scheme else first
    value = _read_value(text, first)
    if (
        value is None
        or _CUT_TOKEN.match(value)
        or value.startswith((*PUBLISHED, "//"))
        or NO_SECRET.match(value)
    ):
        return
    numbered = _NUMBER_BEFORE.search(text, max(0, start - _LONGEST_NUMBER), start)
    if numbered is not None and _NUMBERED.fullmatch(value) and is_random(value, 400):
        first, value = numbered.start(1), text[numbered.start(1) : start] + value
        if _is_named(text, first, value, hints):
            yield Span(first, first + len(value), "assigned", "<secret:assigned>")
        return
    if _BASIC_BEFORE.search(before[-_LONGEST_BASIC:]) and _is_login(value):
        yield Span(first, first + len(value), "assigned", "<secret:assigned>")
        return
    if is_hinted and _HTTPIE_BEFORE.search(before) and is_opaque(value):
        yield Span(first, first + len(value), "assigned", "<secret:assigned>")
        return
    if is_hinted and len(value) < _LONGEST_PART:
        rest, end = join_lines(text, first + len(value))
        if rest and looks_secret(value + rest) and _is_named(text, first, value + rest, hints):
            yield Span(first, end, "assigned", "<secret:assigned>")
            return
    if not looks_secret(value):
        if (_BEARER_BEFORE.search(before[-_LONGEST_BASIC:]) and is_opaque(value)) or (
            is_hinted and _is_short_or_uuid(text, first, value, hints)
        ):
            yield Span(first, first + len(value), "assigned", "<secret:assigned>")
        return
    if (
        (is_hinted and _is_named(text, first, value, hints))
        or _is_second_part(text, first, value)
        or _is_named_elsewhere(text, first, value)
    ):
        end = first + len(value)
        first -= len(_ENCODING) if text.startswith(_ENCODING, first - len(_ENCODING)) else 0
        yield Span(first, end, "assigned", "<secret:assigned>")


def _find_hints(before: str, offset: int) -> list[int]:
    """Places of the hints in the text before a value, which begins at `offset`, in their order."""
    lowered = before.lower()
    places = []
    for hint in HINTS:
        place = lowered.find(hint)
        while place >= 0:
            places.append(offset + place)
            place = lowered.find(hint, place + 1)
    return sorted(places)


def _match_names(text: str, start: int, hints: Sequence[int]) -> Iterator[re.Match[str]]:
    """The names that are joined to the value at `start`, from right to left.

    A name is matched where a hint is, or at what may stand before it in the name, and only where
    the characters up to the value may join them: a value costs a few matches, not one for each
    character before it.
    """
    for hint in hints[: -MOST_HINTS - 1 : -1]:
        if not may_join(text[hint:start]):
            continue
        before = BEFORE_KEY.search(text, max(0, hint - LONGEST_BEFORE_KEY), hint)
        begins = [before.start()] if before else []
        begins += [hint - 1, hint] if text[hint - 1 : hint] in ("_", "-") else [hint]
        for begin in begins:
            name = _NAMED.match(text, begin, start) if 0 <= begin < start else None
            if name is not None:
                yield name
                break


def _is_short_or_uuid(text: str, start: int, value: str, hints: Sequence[int]) -> bool:
    """Whether 20 to 31 hexadecimal digits, or a UUID, are assigned to `api_key` or `secret`."""
    is_short = _SHORT_HEX.match(value) is not None and is_random(value, 260)
    if is_placeholder(value) or not (is_short or (_UUID.match(value) and is_random(value, 300))):
        return False
    for name in _match_names(text, start, hints):
        if _BEARER.fullmatch(name["name"]) and not is_short:
            if _ID_BETWEEN.search(text, name.end("name"), start):
                continue
            # What HTTP's scheme, or the header itself, has right behind it.
            return name["tail"].lower() in ("", "_auth", "auth") and (
                name["name"][0] in "bB"
                or name["scheme"] is not None
                or _ASSIGNED.match(text, name.end("name"), start) is not None
            )
        if _ASSIGNED.match(text, name.end("name"), start):
            around = text[max(0, name.start() - 12) : name.end()]
            between = text[name.end("name") : start]
            if OTHER_TAIL.search(name["tail"]) or _ID_BETWEEN.search(between):
                continue
            if SURE_NAME.search(around + between) and not _PUBLIC_NEAR.search(around):
                return True
    return False


def _is_named_elsewhere(text: str, start: int, value: str) -> bool:
    """Whether the head of its column or a comment after it says that a value is a secret."""
    if _HEX.match(value):
        head = find_head(text, start)
        if SURE_NAME.search(head) is not None and not OTHER_TAIL.search(head):
            return True
        comment = _NAMED_AFTER.match(text, start + len(value))
        return comment is not None and SURE_NAME.search(comment[0]) is not None
    if _PUBLIC_CALL.search(text, max(0, start - 40), start) or _PUBLIC_NAME.search(
        text, max(0, start - 24), start
    ):
        return False
    return _NAMED_AFTER.match(text, start + len(value)) is not None or (
        _NAMED_COLUMN.search(find_head(text, start)) is not None
    )


def _read_value(text: str, start: int) -> str | None:
    """The value that begins at `start`; None if a call or an index follows."""
    match = VALUE.match(text, start)
    if match is None or text[match.end() : match.end() + 1] in ("(", "["):
        return None
    if match[0].startswith("@"):  # The host of an address whose login is a placeholder.
        return None
    value = match[0].rstrip(".")
    at = value.find("@")  # In an address what follows is the host.
    return value[:at] if at >= 16 and "://" in text[max(0, start - 60) : start] else value


def _is_named(text: str, start: int, value: str, hints: Sequence[int]) -> bool:
    """Whether the name of a secret is joined to the value at `start`."""
    near = text[max(0, start - _CALL_REACH) : start]
    called = _CALLED.search(near) if any(sign in near for sign in _CALL_SIGNS) else None
    if called is not None and (called["quote"] or "(" not in called[0]):
        return True
    return any(_names(text, start, value, name) for name in _match_names(text, start, hints))


def _names(text: str, start: int, value: str, name: re.Match[str]) -> bool:
    """Whether a match is the name of a secret, and the value one that may have it."""
    if OTHER_TAIL.search(name["tail"]):
        return False
    if (name["scheme"] or "").lower().startswith("basic") and not _is_login(value):
        return False
    is_quoted = name["quote"] is not None
    if len(value) < (_FEWEST_QUOTED if is_quoted else _FEWEST_BARE):
        return False
    if _HEX.match(value) and (
        _DIGEST_BETWEEN.search(text, name.end("name"), start)
        or _DIGEST_OF.search(text, max(0, name.start() - 80), name.start())
        or _NO_SECRET_BEFORE.search(text, max(0, name.start() - 32), name.start())
    ):
        return False
    is_named_weakly = WEAK_NAME.fullmatch(name["name"]) is not None
    if PUBLIC_VALUE.match(value):
        return False
    is_digest = _HASHED_BEFORE.search(text, max(0, name.start() - 12), name.start()) is not None
    if is_digest and name["name"].lower() != "salt":
        return False
    if is_named_weakly and _HEX.match(value) and not _is_pair(text, name.start(), start, value):
        return False
    if is_named_weakly and _WORD_PART.search(value):
        return False
    if _PUBLIC_KEY.search(text, max(0, name.start() - 16), start):
        return False
    is_flag = _FLAG_BEFORE.search(text, max(0, name.start() - 24), name.start()) is not None
    if name["firm"] is None and (name["tail"] or is_named_weakly) and not is_flag:
        return False
    if name["firm"] is None and not is_quoted and _HEX.match(value):
        return is_flag or _tells_hex(name["name"])
    return len(value) >= _FEWEST_OF_AZURE or not _AZURE_NAME.search(
        text, max(0, start - _AZURE_REACH), start
    )


def _is_pair(text: str, name: int, start: int, value: str) -> bool:
    """Whether fields near a `key` speak of secrets, and none of digests and caches."""
    end = start + len(value)
    near = text[max(0, name - 100) : name] + " " + text[end : end + 60]
    return _SECRET_NEAR.search(near) is not None and not _PUBLIC_NEAR.search(near)


def _is_login(value: str) -> bool:
    """Whether base64 holds the name and password of HTTP's basic scheme (RFC 7617)."""
    try:
        login = base64.b64decode(value + "=" * (-len(value) % 4)).decode()
    except ValueError:
        return False
    if login in _PRINTED_LOGINS:
        return False
    user, sign, password = login.partition(":")
    return bool(sign) and login.isprintable() and password != user and not is_placeholder(password)


def _tells_hex(name: str) -> bool:
    """Whether a name tells that the digits of a digest after it are a secret."""
    return name.isupper() or name[0].isupper() or _COMPOSED.search(name) is not None


def _is_second_part(text: str, start: int, value: str) -> bool:
    """Whether a value is the secret part of the key of AWS or Twilio that stands before it."""
    if _TWILIO_SECRET.fullmatch(value):
        return _TWILIO_BEFORE.search(text, max(0, start - 50), start) is not None
    if not _AWS_SECRET.fullmatch(value):
        return False
    return _AWS_KEY_BEFORE.search(text, max(0, start - 80), start) is not None
