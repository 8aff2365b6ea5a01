"""How far a token stands out of prose as a password, by its shape alone."""

from __future__ import annotations

import re

from stages.signals.secret_values import (
    is_mixed,
    is_password,
    is_placeholder,
    is_strong_password,
)

NONE, WEAK, WORDY, SURE = range(4)
"""How far a token stands out of prose: letters with digits inside (`zt9znela7`), a word and a
number (`tulip1975`), signs inside or a generator's mixture (`Tr4mv4j&17`)."""

_SIGN_INSIDE = re.compile(r"[^\W_]{2}[!@#$%^&*+=~?]+[^\W_]|[^\W_]{4}[#$%^&*+=~]+\Z")
_POINTED = re.compile(
    r"(?=[^.]*[A-ZÀ-Þ]|[^.]*\.[A-ZÀ-Þ])[A-Za-zÀ-ž]{4,16}\.[A-Za-zÀ-ž]{4,16}[0-9]{1,4}[!?]?"
)
_FOREIGN_SURE = re.compile(
    r"[^\W\d_]{3,20}[!@#$%^&*+=~?_.-][^\W_]{2,20}[!@#$%^&*+=~?]?"
    r"|[^\W\d_]{4,20}[0-9]{2,6}[!@#$%^&*+=?]"
)
_FOREIGN_WORDY = re.compile(
    r"[^\W\d_]{3,16}[-_.][0-9]{1,4}[-_.][^\W\d_]{2,16}|[^\W\d_]{4,20}[_.-]?[0-9]{2,6}|[0-9]{2,6}[_.-]?[^\W\d_]{4,20}"
)
_EASTERN = re.compile(r"[\u3041-\u9fff\uac00-\ud7a3]{2,10}[0-9]{2,8}[!?#*@+&%]?[0-9]{0,6}")
_OF_CHARACTERS = re.compile(
    r"半角|全角|英数|数字|文字|字母|字符|位|密[码碼]|パスワード|비밀번호|자리"
)
_NUMBER_FIRST = re.compile(
    r"(?!(?:19|20)[0-9]{2}-[a-z])[0-9]{2,4}[-_.]?[A-Za-z]{5,16}[0-9]{0,2}"
    r"|[0-9]{4}-[A-Za-z]{5,16}"
)
_LETTERS_AND_DIGITS = re.compile(r"(?=[a-z]{0,12}[0-9]{1,4}[a-z])[a-z0-9]{8,20}")
_DIGITS_INSIDE = re.compile(r"[a-z][0-9]+[a-z]|[0-9][a-z]+[0-9]")

_OTHER = re.compile(
    r"://|www\.|\A[./~\\$%&-]|\w/\w|\\|[<>{}|\"`();,]|\A[\d.]+%|%[0-9A-F]{2}|\w=\w{1,40}&|\A[A-Za-z][\w.-]*=[^=]|==|\A(?:[a-z]{2}_[A-Z]{2}|xox[a-z]-|sk-|gh[opsu]_)"
    r"|\A(?!(?-i:(?=[^@]*[A-Z])(?=[^@]*[0-9])[^@.]+@[A-Za-z]*[0-9]+\Z))[^@]*@[A-Za-z][\w-]*(?:\.|\Z)|&[a-z]{2,6}\b;?|\A[a-z_]\w*(?:\.[a-z_]\w*)+\Z|\A#"
    r"|\A(?:ctrl|alt|shift|cmd|win|strg|fn)\+|\+\+|\A[\d.,:+-]+\Z|\A0x"
    r"|\A[0-9a-f]{8}-[0-9a-f-]{13,}\Z|\A[0-9a-fA-F]{16,}\Z"
    r"|(?:\A|[-_.@])v?[0-9]+\.[0-9]+(?:\.[0-9]+|[a-z]|\Z)"
    r"|(?:[a-z0-9-]+\.)+(?:com|net|org|io|edu|gov|dev|app|info|[a-z]{2})\Z"
    r"|\.(?:py|js|ts|txt|zip|rar|html?|php|json|ya?ml|xml|csv|pdf|docx?|xlsx?|png|jpe?g|exe|sh|cfg"
    r"|conf|ini|log|md|sql|java|go|rb|c|h|cpp|cs|key|pem|crt|kdbx?|7z|gz|tar|iso|img)\Z",
    re.IGNORECASE,
)
"""Addresses, paths, options, fields, entities, calls, key strokes, numbers, versions, files."""

_PRODUCT = re.compile(
    r"(?:windows|win|server|office|ubuntu|debian|fedora|centos|android|iphone|ipad|python|galaxy"
    r"|nokia|playstation|exchange|outlook|excel|access|word|visual|studio|sqlserver|oracle|firefox"
    r"|chrome|macos|opensuse|user|admin|guest|test|host|node|client|version|build|release|ticket"
    r"|issue|room|page|step|chapter|section|figure|table|level|line|port|case|error|code|bug|item"
    r"|question|answer|part|file|image|photo|video|livebox|freebox|fritz|box|speedport|netgear"
    r"|linksys|vodafone|movistar|orange|wlan|wifi|telekom|telefonica|dlink|tplink|asus|base|sha|md"
    r"|utf|keepassxc?|password|lastpass|bitwarden|january|february|march|april|june|july|august"
    r"|september|october|november|december|request|param|value|field|var|arg|func"
    r"|number|digits|char|characters)[a-z]{0,2}[-_. ]?[0-9.]{1,6}[!?]?",
    re.IGNORECASE,
)
"""What a word and a number name more often than a password."""


def rate(value: str) -> int:
    """How far a token stands out of prose as a password: from `NONE` to `SURE`."""
    if not 6 <= len(value) <= 64 or _PRODUCT.fullmatch(value):
        return NONE
    if _POINTED.fullmatch(value):
        return WORDY
    if not value.isascii():
        return _rate_foreign(value)
    if _OTHER.search(value):
        return NONE
    if is_strong_password(value):
        if is_mixed(value) or _SIGN_INSIDE.search(value):
            return SURE
        return WORDY
    if not is_password(value):
        return NONE
    if _NUMBER_FIRST.fullmatch(value):
        return WORDY
    is_drawn = _LETTERS_AND_DIGITS.fullmatch(value) and _DIGITS_INSIDE.search(value)
    return WEAK if is_drawn else NONE


def _rate_foreign(value: str) -> int:
    """The same of a word with letters outside ASCII."""
    if is_placeholder(value) or not any(map(str.isdecimal, value)):
        return NONE
    if _EASTERN.fullmatch(value) and not _OF_CHARACTERS.search(value):
        return WORDY
    if value.isalnum():
        return WORDY if _FOREIGN_WORDY.fullmatch(value) else NONE
    if _FOREIGN_SURE.fullmatch(value):
        return SURE
    return WORDY if _FOREIGN_WORDY.fullmatch(value) else NONE
