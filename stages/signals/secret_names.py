"""The names of keys, tokens and secrets, and of what everybody may know.

`api_key`, `clientSecret`, `auth-token`, `Schlüssel`, `令牌`; not `public_key`, `csrf_token`,
`cache_key`. All patterns are bounded, and what stands before a name is looked at only where one is.
"""

from __future__ import annotations

import re

HINTS = (
    *(
        "key",
        "secret",
        "token",
        "pass",
        "pwd",
        "cred",
        "salt",
        "bearer",
        "auth",
        "jwt",
        "akia",
        "asia",
        "appid",
        "app_id",
        "fernet",
        "hmac",
        "login",
        "comb-team",
    ),
    *("jeton", "schl", "clé", "cle", "clave", "chave", "chiave", "klucz", "klíč", "klic", "ключ"),
    *(
        "токен",
        "секрет",
        "sleutel",
        "密",
        "秘",
        "令牌",
        "キー",
        "トークン",
        "토큰",
        "키",
        "anahtar",
    ),
    *("kulcs", "nyckel", "nøkkel", "avain", "cheie"),
)
"""What the names have in them, in small letters."""

_PUBLIC_WORDS = (
    *("public", "pub", "cache", "primary", "partition", "sort", "foreign", "object"),
    *("routing", "host", "row", "idempotency", "registry", "group", "hash", "site", "index"),
    *("ssh", "lookup", "dedup", "map", "publishable", "captcha", "csrf", "csrfmiddleware"),
    *("xsrf", "authenticity", "pagination", "page", "next", "continuation", "state"),
    "websocket",
)
_PUBLIC = "".join(rf"(?<!{word}{end})" for word in _PUBLIC_WORDS for end in ("", "[_ -]"))
"""What a key or token may be that everybody may know."""

_SORTS_OF_KEYS = (
    r"(?:api|app(?:lication)?|access|private|account|encrypt(?:ion)?|sign(?:ing)?|storage|master|session"
    r"|cipher|crypto|hmac|client|consumer|licen[sc]e|webhook|cookie|service|shared|auth|admin|root"
    r"|user|server|deploy|bot|integration|subscription|write|read|ingest|push|dev|prod|live|secure"
    r"|logged_in)[_ .-]?"
)
BEFORE_KEY = re.compile(rf"{_SORTS_OF_KEYS}\Z", re.IGNORECASE)
LONGEST_BEFORE_KEY = 13
MOST_HINTS = 6
_KEYS = (
    rf"(?:{_SORTS_OF_KEYS}key"
    r"|[_-]key|(?-i:(?<=[a-z])Key)|(?<![^\W_])key|(?<![\"']_)tokens?)"
)
NAME = (
    # What stands before is looked at only where a key or token begins.
    rf"(?:(?={_KEYS}){_PUBLIC}{_KEYS}|secrets?"
    r"|passwo?r?d|pwd|passphrase|credentials?|(?<=[_.-])salt|(?<=[_-])auth|(?<![a-z])auth(?==)"
    r"|bearer|authorization|jwt"
    r"|x-auth|comb-team|(?<![^\W_])(?:jeton|cl[ée]s?|clave|chave|chiave|klucz|kl[íi]č|ключ|sleutel|kulcs"
    r"|nyckel|nøkkel|avain|cheie|anahtar\w{0,4})(?![^\W_])"
    r"|schl[üu]ssel|токен|секрет|密[钥鑰]|秘[钥鑰]|令牌|キー|トークン|토큰|키)"
)
WEAK_NAME = re.compile(r"[_-]?[kK]ey|KEY")
"""Names that as often tell a key of a map or of a cache: what they name must be no digest."""

OTHER_TAIL = re.compile(
    r"hash|digest|finger|thumb|sha|md5|checksum|_?id\b|uuid|name|path|file|url|uri|arn|version|type"
    r"|address"
    r"|length|size|count|expir|pub|ref\b|izer|limit|index|format|field|header|param|provider|class",
    re.IGNORECASE,
)
SURE_NAME = re.compile(
    r"api[_ .-]?key|secret"
    r"|(?:access|auth|api|bot|refresh|session|bearer|server|account|invalid|my)[ _-]?token"
    r"|[a-z]{2}[_-]tokens?\Z|(?-i:[a-z]Token\Z)|(?:cl[ée]|clave|chave|chiave|klucz|ключ"
    r"|schl[üu]ssel|sleutel)\W{1,2}(?:d\W|d[aei] |del )?API|jeton|令牌|トークン|токен"
    r"|withToken|x-[a-z]{2,16}-(?:token|key)[\"']?[: ]",
    re.IGNORECASE,
)
VALUE = re.compile(r"[A-Za-z0-9+/_.~!@#$%^*-]{16,300}={0,2}")
