"""What a value must look like to be a secret: not filler, not code, and mixed as chance mixes.

Only the place of an assigned secret or a password tells that it is one, so the value must not be
anything else that stands in such a place: a placeholder, a reference to somewhere else, a name of a
program, a path, a hash of a password. All checks are linear in the value.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from itertools import pairwise

_FILLER = re.compile(
    r"example|sample|placeholder|dummy|changeme|change[_-](?:me|this)|redacted|masked|censored"
    r"|your[_-]|(?:\A|[=_-])(?:tu|tus|su|sua|seu|votre|ta|dein|deine|ihr|ihre|mein|meine|il_tuo|twoj|twoje)"
    r"_(?:cla?ve|chave|cl[ée]|schl(?:ü|ue)ssel|chiave|klucz|token|key|api|contrase|senha|mot|passwort|haslo)"
    r"|[_-]here\b|replace[_-]?(?:me|this|with)|insert[_-]|not[_-]?(?:a[_-])?(?:real"
    r"|secret)"
    r"|(?-i:x{4}|X{4})|\*{3}|\.{3}|…|•{3}|\A(?:[a-z]{0,5}|\w{0,2}test|pass\w{0,4}"
    r"|qwerty)[_@-]?123456"
    r"|1234567|abcdefg|0{6}|<[^<>]*>|\$\{|\{\{|\$\(|%\("
    r"|\A(?:\[[^\]]*\]|\([a-z -]*\)|%\w+%|\$[A-Z_][A-Z0-9_]*|@?\{[^{}]*\})\Z",
    re.IGNORECASE,
)
_COMMON = re.compile(
    r"(?:A3ddj3w|tr0ub4dor&3|admin|changeit|changeme|default|guest|letmein|my_?pass(?:word)?|none|null|nil|pass"
    r"|passw0rd|passwd|password|pw|pwd|qwerty|root|s3cr3t|secret|test|testing|tester|token|toor"
    r"|user|username|xxx|your_?password|demo|foo|bar|foobar|abc|hello|example|temp|login|welcome"
    r"|string|value|todo|tbd|undefined|false|true|required|optional|postgres|mysql|oracle|mongo"
    r"|redis|rabbitmq|minio|minioadmin|elastic|vagrant|raspberry|ubuntu|tomcat|grafana|wordpress)"
    r"(?:[_-]?[0-9]{1,4}[!.?]?)?",
    re.IGNORECASE,
)
"""Passwords of tutorials, also with a short number: `admin123`."""

_NUMBERED = re.compile(
    r"[A-Za-z]\w{2,14}[A-Za-z](?!123|([0-9])\1\1|20[0-9]{2})[0-9]{3,4}[!?*#@$%&]{1,2}"
)
"""What people make of such a word where a number and a sign are wanted: `qwerty1663!`."""

_REFERENCE = re.compile(
    r"(?:vault|secret|env|ref|ssm|op|arn|sops|file|keyring|kms|urn|data|static)(?:\+\w+)?:|https?(?::|%3a)"
    r"|enc[\[(]|(?-i:Ag[A-Za-z0-9][A-Za-z0-9+/]{100}|AQICAH[A-Za-z0-9+/]{30})|\{[A-Za-z0-9+/]{20,}=*\}?\Z"
    r"|(?:server|host|driver)=|![a-z]+(?:/[\w/-]*)?\Z|@microsoft|(?:process|os)\.env|env\.|var\.|secrets?\.|config\."
    r"|settings\.",
    re.IGNORECASE,
)
"""How a value begins that says where the secret is, or that it is encrypted."""

_ONE_CHARACTER = re.compile(r"(.)\1{5}")

_SCALE = 1000
_LOGS = [0, *(int(c * math.log2(c) * _SCALE) for c in range(1, 256))]
"""c * log2(c) in whole thousandths of a bit, so that no rounding of a logarithm decides."""

_SAYS_PASSWORD = re.compile(
    r"pass(?=w|phrase|code|key|ed\b|es\b|ing\b)|(?<![a-z])pass(?![a-z])"
    r"|(?-i:(?<=[a-z])Pass(?![a-z]))"
    r"|(?:my|user|db|root|admin|test|your|new|old)_?pass|(?-i:pwd|Pwd|PWD)|(?-i:\A[A-Za-z]{2,12}Pw[0-9]?\Z)|secret|\A(?:pw|clave"
    r"|sandi)[0-9_-]{0,4}\Z|kennwort|passord|l[öo]senord|salas[õo]na|slapta[žz]od|wachtwoord|contrase|senha|has[łl]o(?![a-z]{4})"
    r"|heslo|jelsz|senord|salasana|adgangskod|[şs]ifre|parol[aeă]|парол|密[码碼]|口令|パスワード|비밀번호"
    r"|mot[ _-]?de[ _-]?passe|lozink|лозинк|κωδικ|סיסמ|كلمة",
    re.IGNORECASE,
)
_LEET = str.maketrans("013457@$!", "oleastasi")

_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_CASES = re.compile(r"[a-z].*[A-Z]|[A-Z].*[a-z]", re.DOTALL)
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_PREFIXED = re.compile(r"(?:[a-z]{2,10}[_-]){1,2}[0-9a-f]{32,64}(?:-[a-z]{2}[0-9]{1,2})?\Z")
"""The keys of some services: `key-…` of Mailgun, `whsec_…`, `…-us7` of Mailchimp."""
_OF_TWO_PARTS = re.compile(
    r"[0-9a-f]{32}\.[A-Za-z0-9]{16}\Z|[0-9]{8,12}\.[0-9a-f]{7}\.[0-9a-f]{32}\Z"
)
"""An id and a secret, as Zhipu and Instagram write them."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,6}/|(?:[a-z]+\.)*[a-z-]+\.[a-z]{2,4}\Z")
_PARTS = re.compile(r"[^A-Za-z0-9+/]+")
_HYPHENS, _LONG_WORD = re.compile(r"[-_]"), re.compile(r"[a-z]{5}|[A-Z]{6}")
_LONGER_WORD = re.compile(r"[a-z]{7}|[A-Z]{7}")
_WORDLIKE = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4})\Z")
_PATH, _PATH_PARTS = re.compile(r"[~.]{0,2}/"), re.compile(r"[A-Za-z]+|[0-9]+")
_VALUE = re.compile(r"[A-Za-z0-9+/_=.~!@#$%^&*:-]+\Z")

_CODE = re.compile(
    r"[(){}\[\]|]|\w:\w|!important|\A(?!@(?=\D*\d\D*\d)[\w!#$%&*+-]{5,24}\Z)[$%@~./\\-]|://|/.*/|\\|\A(?![A-Z][a-z]{2,12}[0-9]{3,4}\.[a-z]{3,12}\Z)(?![A-Za-z][a-z]{3,11}[0-9]{2,4}\.(?!value|text|data|content|string|field|input|form|name)[A-Za-z][a-z]{3,11}\Z)(?![a-z]{3,}\.[a-z]{3,}[0-9]{3,6}\Z)(?![A-Za-z][a-z]{3,}(?:[._][A-Za-z][a-z]{3,}){1,5}[._][0-9]{2,4}\Z)(?:[A-Za-z_]\w*\.)+(?![A-Z][a-z]{2,12}[0-9]{2,4}\Z)[A-Za-z_]\w*\Z"
    r"|\A(?![0-9]{2,4}-(?!(?:char|bit|byte|digit|letter|symbol|word|day|hour|min|sec|week|month|year|time"
    r"|zeichen|stell|page|step|point|inch|core|factor|level|round|part|fold|column"
    r"|pixel|position|item|number|alpha|ascii|hex|case|percent|dollar|caract|dígit"
    r"|chiffre|lettre)\w*)[A-Za-z]{5,}\Z)"
    r"(?:u?int[0-9]+|float[0-9]+|sha-?[0-9]+|md5|utf-?(?:8|16)\w*|base(?:32|64)|argon2\w*"
    r"|bcrypt\w*"
    r"|pbkdf2\w*|scrypt\w*|n?varchar2?|oauth2?|(?-i:v)[0-9]{1,2}(?:\.\w+)*(?:(?:alpha|beta|rc)[0-9]{0,2})?|[0-9]+-?(?:char\w*|bits?|bytes?"
    r"|digits?|letters?|symbols?|words?|px|r?em|pt|days?"
    r"|hours?|min\w*|sec\w*|weeks?|months?|years?|times?|x|[kmg]i?b|st|nd|rd|th|zeichen"
    r"|stellig\w*)?)"
    r"(?:-\w+)?\Z",
    re.IGNORECASE,
)
_HASH = re.compile(
    r"(?:[\w.@-]{1,40}:)?\$(?:apr1|2[aby]|[156])\$|\*[0-9A-F]{40}\Z|\$[0-9a-z]{1,12}\$|\{?SS?HA|(?:pbkdf2\w*|sha[0-9]*|md5|bcrypt|scrypt|argon2\w*)[$:]"
)
_NO_VALUE = re.compile(
    r"0x[0-9a-fA-F]{1,16}\Z|HTTP/[0-9]|[a-z-]{1,30}@[0-9]+\.[0-9]|[0-9]{3,4}-[A-Z]{4,}(?:-[A-Z]+)*\Z"
    r"|[0-9a-f]{7,40}\.\.[0-9a-f]{7}|[\w.-]+@[\w.-]+:[~/]"
)
"""A number, a version of HTTP, a paragraph of COBOL, a range of commits, and the prompt of a shell:
`ann@host:~$`."""

NO_SECRET = re.compile(r"B[A-P][\w-]{85}=?\Z|/wE[MPWXY]|grub\.pbkdf2\.|projects/[\w-]+/secrets/")
"""A point of P-256 (Web Push's public key), a state of ASP.NET, a hash of GRUB, a vault's name."""

_ALGORITHM = re.compile(
    r"(?<![A-Za-z0-9])(?:pbkdf2|hmac|sha-?[0-9]{1,3}[a-z]*|aes-?[0-9]{3}|r(?:sa|s)-?[0-9]{3,4}|md5"
    r"|bcrypt|argon2\w{0,2}"
    r"|scrypt|ed25519|oauth2?|saml2?|tls-?v?1|mfa|2fa|totp|rfc-?[0-9]{3,5})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""Names of algorithms and standards, which stand beside the word as values do."""

_CALL = re.compile(
    r"[A-Za-z_]\w*\([\w\"', .$]*\)|\A(?!\w{0,16}[0-9]\w{0,16}\([^()\s]*[^\w()\s.,$\"'][^()\s]*\Z)[A-Za-z_]\w*\(|\)\Z|\]\Z|\{[^{}]*\}|\A[$%]\w|\A@(?!\D*\d\D*\d)\w|\\[nrt]|://|\|\||&&|->"
    r"|=>|\w\w::|</|/>|\w==\w"
)
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_WORDS_AND_NUMBER = re.compile(
    r"[A-Za-z]{4,}[-_.@]?[0-9]{2,6}|[0-9]{2,6}[A-Za-z]{4,}"
    r"|[A-Za-z]{3,}(?:[-_.][A-Za-z]{3,}){1,4}[-_.]?[0-9]{1,4}"
    r"|[A-Za-z]{3,}[0-9]{2,4}[A-Za-z]{3,}|[A-Za-z]{4,}[._][0-9]{2,4}[._][A-Za-z]{4,}"
)
_NUMBER_INSIDE = re.compile(r"[A-Za-z]{2,}[0-9]{3,}[A-Za-z]{1,3}")
"""Letters around a number: `kvtm4821qe`."""

_SIGN = re.compile(r"[!@#$%^&*?+=~;,]")
_LEET_WORD = re.compile(
    r"(?=.*[a-z].*[a-z])[0-9]{0,2}(?:[A-Za-z]{1,3}[0-9]{1,2}){2,}[a-z]{0,3}[0-9]{0,4}"
    r"(?:[._-][A-Za-z]{4,}[0-9]{0,4})?"
)
"""Digits for letters, as in `kr0k0d1l72`."""


_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LONGEST_RUN, _LONGEST_RUN_OF_ONE_CASE, _LONGEST_RUN_OF_LETTERS = 3.6, 6.0, 3.2
"""Mean characters of a hump of a random value at most: of 20 letters and digits 99.5 % have fewer,
names of programs (`getSecretFromVault2`) mostly more."""


def is_placeholder(value: str) -> bool:
    """Whether a value is filler for a secret, or a common password."""
    if _COMMON.fullmatch(value) is not None and not _NUMBERED.fullmatch(value):
        return True
    return _FILLER.search(value) is not None


def says_password(value: str) -> bool:
    """Whether a password calls itself one, as examples do; also in digits: `P4ssw0rd`."""
    if _NUMBERED.fullmatch(value):
        return False
    return _SAYS_PASSWORD.search(value) is not None or "password" in value.lower().translate(_LEET)


def is_random(value: str, bits: int) -> bool:
    """Whether the entropy of the value's characters is at least `bits` hundredths a character.

    Shannon's, over the first 255 characters: n log2 n - sum of c log2 c, over n. 40 characters of
    random base64 have about 4.6 bits, hexadecimal at most 4, an English word of ten letters about
    3.
    """
    value = value[:255]
    size = len(value)
    if not size:
        return False
    spread = _LOGS[size] - sum(_LOGS[count] for count in Counter(value).values())
    return spread * 100 >= bits * _SCALE * size


def looks_secret(value: str) -> bool:
    """Letters and digits mixed as chance mixes them, and none of the signs of a name or a path."""
    if is_placeholder(value) or not _VALUE.match(value) or _REFERENCE.match(value):
        return False
    if _HASH.match(value):
        return False
    if _ONE_CHARACTER.search(value):
        return False
    if not _LETTER.search(value) or _ADDRESS.match(value):
        return False
    if not _DIGIT.search(value) and not _is_mixed_long(value):
        return False
    if (
        "://" in value
        or _HOST.match(value)
        or all(_WORDLIKE.match(part) for part in _PARTS.split(value) if part)
        or (_PATH.match(value) and all(map(_WORDLIKE.match, _PATH_PARTS.findall(value))))
    ):
        return False
    longest = max(_PARTS.split(value), key=len)
    if _HEX.match(value):
        return len(value) >= 32 and is_random(value, 300)
    if _HEX.match(longest) and (_PREFIXED.match(value) or _OF_TWO_PARTS.match(value)):
        return is_random(longest, 300)
    if len(longest) < 24:
        longest = _join_parts(value) or longest
    if len(longest) < 16 or not is_random(longest, 370 if len(longest) > 27 else 345):
        return False
    run = len(longest) / max(1, len(_HUMPS.findall(longest)))
    return run <= (_LONGEST_RUN if _CASES.search(longest) else _LONGEST_RUN_OF_ONE_CASE)


def is_opaque(value: str) -> bool:
    """Whether a value where only a token stands is one: long, mixed, and not made of words."""
    if len(value) < 24 or is_placeholder(value) or not _VALUE.match(value):
        return False
    if not _DIGIT.search(value) and not _is_mixed_long(value):
        return False
    parts = [part for part in _PARTS.split(value) if part]
    return is_random(value, 350) and not all(map(_WORDLIKE.match, parts))


def _is_mixed_long(value: str) -> bool:
    """Whether letters alone change their case as chance makes them do: of 24 and more."""
    if len(value) < 24 or not _CASES.search(value) or not is_random(value, 400):
        return False
    return len(value) <= _LONGEST_RUN_OF_LETTERS * len(_HUMPS.findall(value))


def _join_parts(value: str) -> str:
    """The letters and digits of base64 for addresses; nothing of a value made of words."""
    plain = _HYPHENS.sub("", value)
    if len(plain) < 20 or not is_mixed(plain):
        return ""
    is_long = len(plain) >= 36 and is_random(plain, 440)
    return "" if (_LONGER_WORD if is_long else _LONG_WORD).search(value) else plain


def is_password(value: str) -> bool:
    """Whether a value in the place of a password is one: six characters, with letter and digit.

    A value whose classes of characters change as often as chance makes them may have any signs.
    """
    if len(value) < 6 or is_placeholder(value) or _REFERENCE.match(value) or _HASH.match(value):
        return False
    if (
        _ALGORITHM.search(value)
        or _NO_VALUE.match(value)
        or not _LETTER.search(value)
        or says_password(value)
        or _ONE_CHARACTER.search(value)
    ):
        return False
    if is_mixed(value):
        return not _CALL.search(value)
    return _DIGIT.search(value) is not None and not _CODE.search(value)


def names_other(value: str) -> bool:
    """Whether a value says where a secret is, or is a hash, a version, a date, an algorithm."""
    return (
        _REFERENCE.match(value) is not None
        or _HASH.match(value) is not None
        or _NO_VALUE.match(value) is not None
        or _ALGORITHM.search(value) is not None
        or _DATE.fullmatch(value) is not None
    )


_ANY_SIGNS = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])(?!\$|[A-Za-z_.]+[0-9]{0,3}\()[!-~]{8,40}")


def has_odd_brackets(value: str) -> bool:
    """Whether a literal has a bracket without its other half, which no call and no slot has."""
    if _ANY_SIGNS.fullmatch(value) is None or is_placeholder(value):
        return False
    return any(value.count(pair[0]) != value.count(pair[1]) for pair in ("()", "[]", "{}"))


def is_mixed(value: str) -> bool:
    """Whether lower case, capitals, digits and signs follow each other as a generator draws them.

    Eight characters or more, both cases and a digit or two signs (or twelve characters), and on
    average no run of one class longer than two: `kX9q4Zt7w`, not `request1.form`.
    """
    if len(value) < 8 or not _CASES.search(value):
        return False
    if not _DIGIT.search(value) and len(_SIGN.findall(value)) < 2:
        return len(value) > 9 and (_has_few_words(value) or _are_many(value))
    return _are_many(value)


def _are_many(value: str) -> bool:
    """Whether runs of one class of characters have two characters at most on average."""
    return 2 * len(_CLASSES.findall(value)) >= len(value)


_PRONOUNCED = re.compile(r"(?=.*[aeiouyAEIOUY])[A-Z]?[a-z]{2,}")


def _has_few_words(value: str) -> bool:
    """Whether letters of both cases have hardly a part that may be a word of a name."""
    words = sum(len(part) for part in _HUMPS.findall(value) if _PRONOUNCED.fullmatch(part))
    return 5 * words < 2 * len(value) and 3 * len(_CLASSES.findall(value)) >= len(value)


def is_strong_password(value: str) -> bool:
    """A password that stands out of prose by itself: eight characters, and cases or signs mixed."""
    if len(value) < 8 or not _DIGIT.search(value) or not is_password(value):
        return False
    return (
        is_mixed(value)
        or _SIGN.search(value) is not None
        or (_CASES.search(value[1:]) is not None and len(_CLASSES.findall(value)) > 2)
        or _WORDS_AND_NUMBER.fullmatch(value) is not None
        or _LEET_WORD.fullmatch(value) is not None
        or _NUMBER_INSIDE.fullmatch(value) is not None
    )


def has_two_digits(value: str) -> bool:
    """Whether a password of eight characters has two digits, and none of the signs of a path."""
    return (
        len(value) > 7
        and sum(map(str.isdecimal, value)) > 1
        and is_password(value)
        and not set("./") & set(value)
    )


_WORDS = re.compile(r"[!?*#$%&+]?[^\W\d_]{2,24}(?:[-+*#!][^\W\d_]{2,24}){0,7}[!?*#$%&]{0,3}")
_CAPITALS = re.compile(r"[A-Z][a-zß-ÿ]{3,23}(?:[_.][A-Z][a-zß-ÿ]{3,23}){1,3}[!?*#$%&]{0,3}")
"""Words joined as names of programs are, but each with a capital: `Monkey_Sakura`."""

_POINTED = re.compile(
    r"[a-z]{4,12}(?:\.[a-z]{4,12}){2,6}|[A-Z][a-z]{3,11}(?:\.[A-Z][a-z]{3,11}){2,6}"
)
"""Three words or more that points join, all long: fields of programs mostly have a short one."""

_UNDERSCORED = re.compile(r"[a-z]{4,12}(?:_[a-z]{4,12}){3,7}")
"""Four words or more in snake case: names of programs mostly have a short one."""

_WORD = re.compile(r"[^\W\d_][a-zß-ÿ\u0100-\u017f]*")
_FEWEST_OF_A_WORD = 10
_NO_PASSWORD = re.compile(
    r"required|optional|mandatory|string|text|number|integer|boolean|object|any|"
    r"none|null|undefined|default|example|sample|demo|test|testing|field|label|"
    r"input|value|values|name|names|user|users|username|login|logon|email|mail|"
    r"admin|root|hidden|visible|show|hide|secret|token|key|keys|auth|"
    r"authentication|authorization|credential|credentials|invalid|incorrect|wrong|"
    r"missing|empty|blank|valid|confirmed|confirm|confirmation|strong|weak|minimum|"
    r"maximum|min|max|length|encrypted|encoded|hashed|hash|plain|plaintext|"
    r"cleartext|protected|restricted|confidential|disabled|enabled|unchanged|changed|"
    r"change|reset|forgot|forgotten|expired|generated|random|automatic|auto|manual|"
    r"prompt|ask|interactive|keyboard|unset|not|set|use|see|env|environment|var|"
    r"variable|vault|file|path|from|the|your|my|our|this|that|for|and|with|data|"
    r"form|query|request|response|body|params|param|args|arg|config|configuration|"
    r"settings|setting|options|props|state|event|error|message|current|new|old|"
    r"repeat|again|get|is|has|case|sensitive|insensitive|development|production|"
    r"staging|database|server|client|host|type|placeholder|description|available|"
    r"unknown|unspecified|unsupported|identifier|parameter|controller|provider|service|"
    r"account|update|delete|create|insert|select|one|time|code|self|based|less|"
    r"store|stored|manager|dialog|button|screen|page|view|model|schema|validator|"
    r"element|control|component|handler|callback|function|ref|base|basic|digest|"
    r"bearer|copy|paste|here|there|above|below|siehe|unten|oben|voir|ver|vea|"
    r"vedi|abajo|onder|patrz|zie|\w*schlüssel\w*|vorhanden|present|présent",
    re.IGNORECASE,
)
"""Words of forms, code and documentation: a value with one of them names something else."""

_NO_CHOICE = re.compile(
    r"(?:tion|ment|able|ible|ity|ive|ory|ance|ence|ically|ness|ation|ized|ised|ated|tted|pted"
    r"|cted)s?\Z"
    r"|(?:lich|isch|keit|heit|ung|[ai]d[oaă]|ect[oaă]|ori[oa]|oire|[ai]tă)e?[nrs]?\Z|mente\Z",
    re.IGNORECASE,
)


def is_chosen_words(value: str) -> bool:
    """Whether words without a digit may be a password: joined (`krokodil-velvet`), or one long one.

    Only where a name is assigned the value: labels, types and options stand there as well.
    """
    if len(value) < 8 or is_placeholder(value):
        return False
    if not any(shape.fullmatch(value) for shape in (_WORDS, _CAPITALS, _POINTED, _UNDERSCORED)):
        return False
    if says_password(value) or _REFERENCE.match(value) or _ONE_CHARACTER.search(value):
        return False
    words = _WORD.findall(value)
    if any(map(_NO_PASSWORD.fullmatch, words)):
        return False
    longest = max(words, key=len)
    if len(words) > 1:
        return len(longest) > 3 and not value.isupper()
    return len(longest) >= _FEWEST_OF_A_WORD and not _NO_CHOICE.search(value)


_DATE = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")


def is_chosen_number(value: str) -> bool:
    """Six digits or more of at least four kinds that do not count up or down and are no date."""
    if not 6 <= len(value) <= 20 or not value.isdecimal() or _DATE.fullmatch(value):
        return False
    if is_placeholder(value):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(value)}
    return len(set(value)) > 3 and len(steps) > 1


_FREQUENT = re.compile(
    r"(?:that|this|with|have|from|your|must|will|when|what|only|need|then|they|been|were|also|into"
    r"|just|like|make|some|them|than|each|here|more|such|very|user|name|code|text|word|pass|last"
    r"|over|same|page|site|mail|long|else|does|used|data|file)\Z"
)


def is_grouped(value: str) -> bool:
    """Whether a value is four times four letters (`hudc krtb ytmn lbaw`), not of a sentence."""
    groups = value.split()
    return [len(group) for group in groups] == [4] * 4 and not any(map(_FREQUENT.match, groups))


_FILLING = re.compile(r"of|the|to|in|on|out|up|and|or|by|at|well|non|all|end|off|per|pre|sub|x")


def is_phrase(value: str) -> bool:
    """Whether a value is a passphrase of three words or more: `otter-cobalt-ember`."""
    words = value.split("-")
    return (
        len(words) > 2
        and is_chosen_words(value)
        and not any(len(word) < 3 or _FILLING.fullmatch(word.lower()) for word in words)
    )


_WORDS_APART = re.compile(
    r"(?:(?:[a-zß-ÿ]{3,14}|[0-9]{2,4})(?: (?:[a-zß-ÿ]{3,14}|[0-9]{2,4})){2,7}"
    r"|(?:[A-ZÀ-Þ][a-zß-ÿ]{2,13}|[0-9]{2,4})(?: (?:[A-ZÀ-Þ][a-zß-ÿ]{2,13}|[0-9]{2,4})){2,7})"
    r"(?:(?<![0-9 ])[0-9]{1,4})?"
)
_OF_SENTENCES = re.compile(
    r"(?:lorem|are|was|can|may|should|which|please|without|contain|least|than|does|did|dont|match|try"
    r"|allowed|required|provided|between|characters?|letters?|digits?|words?|phrases?|long|short"
    r"|choose|choice|pick|click|press|save|open|close|send|read|write|find|look|check|known|common"
    r"|used|using|keep|know|correct|encryption|archive|backup|access|bad|good|real|own|safe"
    r"|debe|tener|una?|ihr|sie|das|die|der|ein|eine|nicht|muss|zeichen|mindestens|bitte"
    r"|les?|des|une|vous|votre|doit|pas|pour|del|los|las|con|por|para|che|non|het|een|niet"
    r"|caract\w*|voer|nya|harus|moet|deve|doit|essere)\Z",
    re.IGNORECASE,
)
_KNOWN_PHRASE = "correct horse battery staple"


def is_words_apart(value: str, fewest: int) -> bool:
    """Whether a literal is a passphrase with blanks: `otter cobalt 45 ember`, not a sentence.

    All its words are small or all have a capital, none is of forms, code or every sentence. At
    least `fewest`, or three with a number.
    """
    if _WORDS_APART.fullmatch(value) is None or value.lower() == _KNOWN_PHRASE:
        return False
    words = value.split(" ")
    words[-1] = words[-1].rstrip(string.digits) or words[-1]
    numbers = sum(map(str.isdecimal, words))
    if numbers > 2 or len(words) < (3 if numbers else fewest) or says_password(value):
        return False
    return not any(
        _NO_PASSWORD.fullmatch(word) or _FREQUENT.match(word.lower()) or _OF_SENTENCES.match(word)
        for word in words
    )
