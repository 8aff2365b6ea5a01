"""Passwords that prose tells: near a word for passwords, and with the shape of a password.

`passwords.py` reads what a sign or a verb joins to a name. People write more freely (`Root pw
changed last week, now: …`, `der Anschluss, admin und dann … als Passwort`, an answer in the next
message of a chat), in every language. Here the value's shape decides, not the words between: the
tokens behind a name are rated, and the better one stands out of prose, the looser the joint may be.
A window has a bounded length, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.outputs import Span
from stages.signals.secret_values import (
    is_mixed,
    is_password,
    is_phrase,
    is_placeholder,
    is_strong_password,
)
from stages.signals.told_words import find_told_words

_REACH, _REACH_BACK = 110, 60
NONE, WEAK, WORDY, SURE = range(4)
"""How far a token stands out of prose: letters with digits inside (`zt9znela7`), a word and a
number (`tulip1975`), signs inside or a generator's mixture (`Tr4mv4j&17`)."""

_TOKEN = re.compile(
    r"(?<![!-~])[!-~\u00c0-\u024f\u0370-\u052f\u05d0-\u05ea]{6,80}+(?![!-~])"
    r"|(?<![\u3041-\u9fff])[\u3041-\u9fff]{2,10}[0-9]{2,8}+[!?#*@+&%]?(?![\u3041-\u9fff])|[\uac00-\ud7a3]{2,10}[0-9]{2,8}[!?#*@+&%]?[0-9]{0,6}"
)
"""Letters of alphabets and signs; other scripts have no blanks between words and value."""

_OPENING = "([{<\"'`«»“”„‚‘’‹›"
_CLOSING = ".,;:)]}>\"'`«»“”’‹›"
_PROSE_QUOTES = "\"'`«»“”„‚‘’‹›「『【"

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


_BARRIER = re.compile(
    r"[{}\\$|;]|<(?!\w{1,20}>[ \t])|\(\)|[\w)]\(\w|==|::|=>|&&|\.\w+\("
    r"|[.!?][ \t]{1,3}(?=[A-ZÀ-ÞА-Я])"
    r"|\b(?:must|should|shall|least|minimum|min|length|long|characters?|chars?|hash|hash(?:es|ed)"
    r"|sha-?[0-9]{1,3}|md5|digest|encrypted|encryption|e\.g|example|examples|policy|policies"
    r"|manager|generator|strength|rules?|format|version|upgrade|function|method|class|parameter"
    r"|argument|例如|比如|variable|option|mindestens|zeichen|caract[eèé]r\w{0,3}|recovery|algorithm|cipher"
    r"|import|return|def|const|var|let|module|package|plugin|api|passwd|successfully|success|failed|accepted|expired|logged|commit|bug|issue)\b"
    r"|\n[^\S\n]*\n",
    re.IGNORECASE,
)
"""What ends the reach of a name: code, rules about passwords, a new sentence."""

_NO_NAME_BEFORE = re.compile(r"[\w.$/\\@<-]\Z")
_ALTERNATIVE = re.compile(r"\b(?:pin|key|ssid|user|login|name|code)/\Z", re.IGNORECASE)
_SUFFIX = re.compile(r"(?:nya|mu|ku|-nya)\b|(?<![!-~])\([^()\n]{1,12}\)")
_COMPOUND = re.compile(r"[^\W\d_]{2}-?\Z|[\u05d0-\u06ff]\Z")
_WITHOUT = re.compile(
    r"\b(?:no|without|ohne|sans|sin|senza|sem|bez|kein\w{0,2}|zonder|utan|uten|uden|без|any|every)"
    r"\s\Z",
    re.IGNORECASE,
)
_NO_NAME_AFTER = re.compile(
    r"[A-Za-z0-9_à-ÿ$(\[/\\@#*]|\.\w|-[a-z]|=[^=]|[\"'](?:[\]):,]|\s?[=:])|\s?[:=]=", re.IGNORECASE
)
_JOINED = re.compile(
    r"(?:[:=→➜➡⇒>՝：]|[-–—]>?|\.{2,}"
    r"|\b(?:is|are|was|be|now|still|it['’]?s|ist|lautet|war|jetzt|nun|est"
    r"|sera|c['’]est|c['’]était|était|es|era|ahora|é|è|ora|adesso|agora|jest|to|teraz|je|er|är|nu"
    r"|nå|on|van|este|acum|also|namely|nämlich|cioè|czyli|alltså|то есть|es decir|yw|waa"
    r"|lithi|hija|е|є|це|это|теперь|сейчас|είναι|adalah|là|ay|ni|hai|är|yra|ir|və|olan"
    r"|هي|هو|היא|use|try|used|become|says|reads|dice|dit"
    r"|staat op|steht auf|gezet op|utilise|usa|nya|como|with|và|és)|(?:是|は|が|為|为|คือ)"
    r")[\"'`*«“„‚‘‹「『【:\s(]{0,4}\Z",
    re.IGNORECASE,
)
"""What may stand right before a value: a sign or a verb."""

_CHANGED = re.compile(
    r"(?:chang|reset|set|updat|rotat|switch|ge[äa]nder|setzt|umgestellt|wechs|modifi|remplac|cambi"
    r"|s[ae]tt|fastsat|fijad|ajustad|establec|definid|defini|impostat|ustaw|nastaven|установ|встанов|mud(?:ou|ei|ad)|troqu|alter|zmien|změn|zmen|promij|bytt|ändr|skift|wijzig|verander|vaihd"
    r"|megvált|schimb|değiş|измен|смен|помен|змін|зміни|αλλ|ganti|diubah|đổi)\w{0,10}"
    r"[^\n]{0,40}\s(?:to|auf|zu|in|à|a|en|por|para|pra|con|per|na|til|till|naar|på|на|σε|jadi"
    r"|menjadi|thành|la|op|från|from|von|de|da|z|с)[\"'`*«“„\s]{0,3}\Z",
    re.IGNORECASE,
)
_OF_OTHER = re.compile(
    r"(?:\b(?:for|user(?:name)?|account|on|at|with|in|by|of|from|host|server|ssid|network|netzwerk"
    r"|réseau|red|rede|rete|сеть|named?|called|login|model|via|für|bei|von|vom|pour|sur|de|del|du"
    r"|do|da|en|em|to|zum|til|for|на|в|для|от|la|le|el|il|the|der|die|das|den|een|het|my|your|our"
    r"|benutzer|usuario|usuário|utilisateur|utente|пользовател\w|id|and|or|und|et|y)"
    r"[\"'`*«“„:\s]{1,4}|[/@])\Z",
    re.IGNORECASE,
)
"""What a token with a word and a number is named by, if not by the word for passwords."""

_USER_FIELD = re.compile(
    r"(?:user(?:name)?|login|e-?mail|name|ssid|host|account|usuario|utilisateur|benutzer(?:name)?"
    r"|utente|логин|пользователь|아이디|用户名?|[账帳][号號户戶]|ユーザー?名?)"
    r"[\"'`]?\s?[:= ]\s{0,3}[\"'`]?\Z",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？:：。…]\s*\n")
_ANSWERED = re.compile(
    r"\n(?:[^\n]{0,44}[:>]|[ \t>*-]*"
    r"|[^\n]{0,30}\b(?:it(?:['’]?s| is| was)|its|try|use|is|was|es|est"
    r"|ist|é|è|is|this|:)\b:?)[\s\"'`*«“„]{0,3}\Z",
    re.IGNORECASE,
)
_WORDS_BETWEEN, _LETTERS_BETWEEN = 4, 32


def find_told_passwords(text: str, start: int, end: int) -> Iterator[Span]:
    """Values near the word for passwords in [start, end), behind it and before it."""
    before = text[max(0, start - 3) : start]
    is_verb = text[start:end].lower() == "pass"
    is_result = text.startswith("PASS:", start)  # Of a test, unless a user is named before.
    if is_result and not _USER_ABOVE.search(text, max(0, start - 60), start):
        return
    if (
        _NO_NAME_BEFORE.search(before)
        and not _COMPOUND.search(before)
        and not _ALTERNATIVE.search(text, max(0, start - 8), start)
    ):
        return
    suffix = _SUFFIX.match(text, end)
    end = suffix.end() if suffix is not None else end
    if _WITHOUT.search(text, max(0, start - 10), start):
        return
    if before.endswith("1") or _NO_NAME_AFTER.match(text, end):
        return
    if _COMMAND.search(text, max(0, start - 5), end):
        user = _ARGUMENT.match(text, end)
        end = user.end() if user is not None else end
    place = _find_behind(text, end, is_verb)
    if place is not None:
        yield Span(*place, "password", "<secret:password>")
        second = _SECOND.match(text, place[1])
        if second is not None:
            another = trim(text, *second.span("token"))
            if rate(text[slice(*another)]) > WEAK:
                yield Span(*another, "password", "<secret:password>")
        return
    yes = _SAID_YES.match(text, end)
    place = None if yes is None else _find_behind(text, yes.end(), is_verb=False)
    place = place or _find_before(text, start) or find_told_words(text, start, end)
    if place is not None:
        yield Span(*place, "password", "<secret:password>")


_SAID_YES = re.compile(
    r"\?\s(?:yes|yep|yeah|sure|of course|ja|jo|oui|sí|si|sì|sim|claro|да|так|tak|ano|evet|igen|da)"
    r"[,.!:]{0,2} (?:it['’]?s|it is|try|use|es ist|das ist|c['’]est|es|è|é|это|це|to|je|er|är)? ?",
    re.IGNORECASE,
)
"""The answer to who asks for a password: `the wifi password? Yes, it's …`."""

_USER_ABOVE = re.compile(r"(?:user|login|e?mail)\w{0,4}\s?:", re.IGNORECASE)
_COMMAND = re.compile(r"(?:[`$#\n] ?|sudo )passwd\Z")
_ARGUMENT = re.compile(r" \S{1,40}")
"""The command, and the user whose password it changes."""

_SECOND = re.compile(
    r"[\"'`»”*]{0,2}(?: (?:to|->|→|zu|auf|in|a|à|na|til|till|на|or|oder|ou|o)"
    r"|,? (?:y|and|und|et|e|och|og|i|en|és|и|а|та|ja) (?:[^\W\d_]{1,12} ){0,2}?"
    r"(?:del|de|du|des|vom|für|for|of|do|da|till|til|от|для|за)(?: [^\W\d_]{1,12}){1,3})"
    r" (?P<token>[\"'`«“„*]{0,2}[!-~]{6,80})"
)
"""A second password in the same sentence: `… to …`, `… und das vom Router …`."""


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The place of a token without quotes, brackets and the sign of the sentence around it."""
    while start < end and text[start] in _OPENING:
        start += 1
    while text.startswith("**", start):
        start += 2
    for quote in "\"'`»”’":
        close = text.find(quote, start, end)
        if close > start + 5 and text[start - 1 : start] in _PROSE_QUOTES:
            end = min(end, close)
    while end > start and text[end - 1] in _CLOSING:
        end -= 1
    while text.endswith("**", start, end):
        end -= 2
    return start, end


def _find_behind(text: str, end: int, is_verb: bool) -> tuple[int, int] | None:
    """The first token behind a name that is a password by its shape and what joins it."""
    limit = min(len(text), end + _REACH)
    line_end = text.find("\n", end, limit)
    if line_end >= 0:
        second = text.find("\n", line_end + 1, limit)
        limit = second if second >= 0 else limit
    stop = _BARRIER.search(text, end, limit)
    last = stop.start() if stop else limit
    for token in _TOKEN.finditer(text, end, min(len(text), limit + 64)):
        if token.start() > last or token.start() >= limit:
            return None
        place = trim(text, *token.span())
        rating = rate(text[slice(*place)])
        if rating and _is_joined(text, end, place, rating, is_verb):
            return place
    return None


def _is_joined(text: str, end: int, place: tuple[int, int], rating: int, is_verb: bool) -> bool:
    """Whether what is between a name and a token lets it be the name's value."""
    between = text[end : place[0]]
    if "\n" in between:
        if _USER_FIELD.search(text, max(0, place[0] - 20), place[0]):
            return False
        is_whole = _ANSWERED.search(between) and _WHOLE.match(text, place[1])
        asks = is_whole is not None or _QUESTION.search(between) is not None
        if rating == SURE:
            return asks
        if is_whole is None:
            return False
        return rating == WORDY or _QUESTION.search(between) is not None
    if rating == SURE and (not is_verb or _SIGN_INSIDE.search(text, *place)):
        return True
    if _JOINED.search(between) or _CHANGED.search(between):
        return True
    if between == " " and text[end - 1] in "는은" and _KOREAN_VERB.match(text, place[1]):
        return True
    if is_verb:
        return False
    if rating > WEAK and _IN_BRACKETS.fullmatch(between) and text.startswith(")", place[1]):
        return True
    if between == " (" and text.startswith(")", place[1]):
        return _CAPITALS_JOINED.match(text, place[0]) is not None
    if rating == WEAK and not between.strip():
        return _WHOLE.match(text, place[1]) is not None
    is_quoted = text[place[0] - 1] in _PROSE_QUOTES
    if is_quoted and _OF_OTHER.search(between) is None:
        return True
    return (
        rating == WORDY
        and len(between) <= _LETTERS_BETWEEN
        and len(between.split()) <= _WORDS_BETWEEN
        and between[-1:] != "("
        and "," not in between
        and _OF_OTHER.search(between) is None
    )


_IN_BRACKETS = re.compile(r" (?:everywhere|ever|again|for \w{2,12}|there|since|too) \(")
_CAPITALS_JOINED = re.compile(r"[A-Z][a-z]{2,16}[._!-][A-Z]?[a-z]{2,16}[._!-]?[0-9]{1,4}\W{0,2}\)")
_KOREAN_VERB = re.compile(r"\s?(?:입니다|이에요|예요|이고|이며|임|이야|로)")
_WHOLE = re.compile(r"[\"'`*»”.!]{0,3}[ \t]*(?:\r?\n|\Z)|[\"'`*»”]? (?:for|für|pour|para|per)\b")
_NAMED_AFTER = re.compile(
    r"\s?[\"'`*»”)]{0,3},? (?:for|when|as|als|como|comme|come|som|jako|как"
    r"|як|is|was|ist|war|c['’]est|est|es|era|é"
    r"|è|jest|je|er|är|--?(?=\s)|[–—←(])\s?[^\n.;]{0,30}\Z",
    re.IGNORECASE,
)
_REFERS = re.compile(r"\n[ \t]*(?:\(|\^|←|<-|↑)[^\n]{0,40}\Z")


def _find_before(text: str, start: int) -> tuple[int, int] | None:
    """The token before a name: `… als Passwort`, and one alone in the line that a note is about."""
    begin = max(0, start - _REACH_BACK)
    begin = text.rfind("\n", begin, start) + 1 or begin
    note = _REFERS.search(text, max(0, start - _REACH_BACK), start)
    if note is not None:
        first = text.rfind("\n", 0, note.start()) + 1
        line = text[first : note.start()]
        place = first, first + len(line)
        return place if rate(line) else None
    for token in reversed(list(_TOKEN.finditer(text, begin, start))):
        if token.start() == begin and begin and not text[begin - 1].isspace():
            return None
        place = trim(text, *token.span())
        after = text[place[1] : start]
        if _BARRIER.search(after):
            return None
        value = text[slice(*place)]
        if (rate(value) > WEAK or is_phrase(value)) and _NAMED_AFTER.match(after):
            is_user = _USER_FIELD.search(text, max(0, place[0] - 20), place[0])
            return None if is_user else place
    return None
