"""Between the name of a secret and its value: how configs, code, markup, shells, prose join them.

A name may be joined to its value by a sign (`=`, `:`, `=>`), as two arguments or items of a list
(`define('KEY', '…')`), as a field of its own (`name: KEY`, then `value: …`), by the end of a tag, a
cell of a table, the default of a variable (`env.KEY || '…'`), by a verb (`is`, `lautet`, `est`), or
by nothing but blanks. Every part is bounded, so that a search takes linear time.
"""

from __future__ import annotations

_QUOTES = (
    r"\\?[\"'`]|&quot;|&#(?:x27|39|34);|[\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u300c\u300e]"
)
QUOTE = rf"(?:{_QUOTES})"
"""A quote of a program, of HTML or of prose."""

_CLOSE = (
    rf"(?:{_QUOTES}|[\])}}]|\[[0-9]{{0,4}}\]|\*\*|__"
    r"|</?(?:b|strong|i|em|code|kbd|tt|td|th|span)>){0,3}"
)
_TYPE = r"(?::\s?&?'?[A-Za-z][\w<>?.\[\]]{1,24}\s?(?==))?"
_SIGN = (
    r"(?:=>|:=|->|→|=(?!=)|(?<!:):(?!:)|\uff1a|\uff1d|(?<=[ \u00a0])[-\u2013\u2014](?=[ \u00a0]))"
)
_VERBS = (
    r"(?<!\w)(?:is|are|was|will be|set to|changed to|reset to|ist|war|lautet|lauten|wäre|est"
    r"|c['\u2019]est|sera"
    r"|es|será|era|é|eh|è|jest|to|je|är|er|on|var|este|это|этот|hai|hain|है|ni|adalah|là)(?!\w)"
    r"(?:[ \u00a0](?:now|currently|just|set to|jetzt|nun|still|the same)){0,2}"
)
_WORDS = r"(?:[ \u00a0][^\s:=,;|\"'<>{}]{1,20}){0,6}?"
VERB = (
    rf"(?:{_WORDS}(?:[ \u00a0]{{1,2}}{_VERBS}[ \u00a0]?:?|[ \u00a0]?:)[ \u00a0\n]{{1,2}}"
    r"|(?:是|为|為|は|が|を)「?|「)"
)
"""Up to six words and a verb or a colon, which join a name and its value in prose, in some twenty
languages: `password for the guest wifi is`."""

ASSIGNS = rf"{_CLOSE}\s{{0,4}}{_TYPE}{_SIGN}\s{{0,4}}"
ARGUMENT = rf"{QUOTE},\s{{0,4}}(?={_QUOTES})|\(\s{{0,3}}(?={_QUOTES})"
FIELD = (
    rf"(?:{QUOTE})?[\s,;>]{{0,8}}(?:</(?:name|key)>\s{{0,40}})?"
    r"(?:[\"'<]?(?:value|default|val|content|data|string)[\"'>]{0,2}\s{0,2}[:=]?\s{0,3})"
)
BLOCK = r"[\"'] ?\{[^{}]{0,120}?\bdefault\s{0,12}=\s{0,3}"
"""A variable of Terraform: `variable "password" { default = "…" }`."""

TAG_END = (
    r"[\"']?[^<>\n]{0,40}>\s{0,40}(?:<!\[CDATA\[|<(?:string|value|code|kbd|b|td|span|strong|data)"
    r"[^<>\n]{0,40}>){0,2}\s{0,2}"
)
CELL = r"(?:\*\*|`){0,2}[ \t]{0,20}(?:\||</t[dh]>\s{0,20}<t[dh]>)[ \t]{0,20}(?:\*\*)?"
FALLBACK = r"[\"'\])]{0,3},?\s{0,3}(?:\|\||\?\?|\bor\b|:-|:=|\?:)\s{0,3}"
OPEN = (
    r"(?:</?(?:b|strong|i|em|code|kbd|tt|td|span|p)>\s?|\*\*|__|<br ?/?>){0,2}\s{0,2}"
    r"(?:(?:\b[brufnl]{1,2}|[@$])(?=[\"']))?"
)
"""Markup and prefixes of strings between the sign and the value."""

_OPEN_QUOTED = rf"(?P<quote>{_QUOTES})(?P<quoted>(?:(?!(?P=quote))[^\s]){{6,200}})"
_CLOSED_BY = r"(?:(?P=quote)|[\u201d\u201c\u00bb\u00ab\u2019\u300d\u300f])"
QUOTED = rf"(?:{_OPEN_QUOTED}{_CLOSED_BY})"
