"""Words beside a number that say it is a phone number, or that it is something else."""

from __future__ import annotations

import re

LOOK_BACK = 48
"""Characters before a number in which a word may name it."""

_NAMES = (
    r"(?:t[eé]l[eé])?phone|t[eé]l[eé]?f(?:on|ono|one|oon|ax)?\w{0,6}|tel|tél|puh|fon|fax|telefax"
    r"|facsimile|mobile?|mobil\w{0,8}|cell(?:ular|phone)?|celular|handy\w{0,8}|whats ?app|hotline"
    r"|helpline|sms|gsm|call|dial|ring|desk|pager|toll[ -]free|durchwahl|rufnummer|portable|móvil"
    r"|telemóvel|тел\w{0,6}|факс|моб\w{0,6}|τηλ\w{0,6}|هاتف|جوال|فاكس|تلفون|फ़ोन|फोन|दूरभाष|मोबाइल"
)
_NAMES_WITHIN = (
    r"電話(?:番号)?|电话|手机|手機|传真|傳真|携帯|行動|熱線|热线|전화|핸드폰"  # No spaces there.
)
_SIGNS = r"[\s.:;=()\[\]#*|•/\u2013\uff08\uff09\uff0f\uff1a-]"
NAMED_BEFORE = re.compile(
    rf"(?:(?<![^\W_])(?:{_NAMES})|{_NAMES_WITHIN})"
    r"(?:[ .]{0,2}(?:number|num|no|nr|n°|nº|№|us|me|him|her|them|now|on|at|is|to|free|today|office"
    rf"|home|work|line)\b\.?){{0,3}}{_SIGNS}{{0,6}}\Z",
    re.IGNORECASE,
)
"""A word right before a number that names it: `Tel.:`, `call me at`, `電話番号`."""

NAMED_BEHIND = re.compile(r"[ ,]{0,2}[ -]?\(?(?:office|fax|mobile|cell|phone|tel)\b", re.IGNORECASE)
LETTERED_BEFORE = re.compile(r"(?:^|[\n|•·])\s{0,4}(?:[TFPM]|Ph)[.:]?\s{1,2}\Z")
"""A letter that names it: `T 030 …` at the beginning of a line."""

TALK_BEFORE = re.compile(
    r"(?<![<\w])(?:(?:call|phon|dial|ring|text)(?:s|e|ed|ing)?\b|contact|reach|answer|messag|appel"
    r"|joindre|anruf|erreich|llam)[^0-9<>@]{0,40}\Z",
    re.IGNORECASE,
)
"""A word of calling or writing to somebody, and nothing between that may be redacted: so that a
redacted text says as much of a number as the text did. Tags such as `<PHONE>` are no words."""

OTHER_BEFORE = re.compile(
    r"(?<![^\W_])(?<![.@-])(?:isbn|issn|ean|upc|gtin|doi|iban|asin|sku|pmid|oclc|isrc|order|invoice|item"
    r"|product|part|model|serial|patent|no|nr|id|art|article|ref|code|case|account|bug|issue"
    r"|version|zip|lat|lon|coordinates?|license|licence|ssn|security|vat|ust-idnr|siret|siren|инн"
    r"|огрн)(?:[ .-]{0,2}(?:number|num|no|nr|is|1[03])){0,2}[\s.:;=()#-]{0,4}\Z",
    re.IGNORECASE,
)
"""A word right before a number that names something else."""
