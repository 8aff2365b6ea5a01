"""Words around phone numbers, by language: what names a number, who is called, what it is not.

Written from the contact pages, forms and signatures of each language, not from a corpus. A word
that ends in `*` stands for all words that begin so; case does not count. Chinese, Japanese and Thai
have no blanks between words, so theirs count wherever they end right before a number. Single words
are in `phone_words.json`, phrases here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("phone_words.json").read_text("utf-8"))

_NAME_PHRASES = (
    r"(?:my|our|board|tel|mob|ph|office|shop|resi?|owner|driver|guard|agent|dealer|parent)"
    r" (?:no|num|nos?|#)|(?:to|from|dest|src"
    r"|contact|alt)_?"
    r"(?:number|num|no|phone|msisdn)|contact (?:no|nos|nr|number|numbers)|port\."
    r"|num[eé]ro (?:verde|vert|gratuit|azul)|ligação|(?:me )?lig[au]e?r? (?:no|pra|para)"
    r"|cep (?:tel\w*|no)|điện thoại|no\.? ?(?:hp|wa|telp)|free ?(?:call|phone)|toll[ -]?free"
    r"|(?:(?:my|our) (?:new )?|new )(?:digits|number)(?: btw| now| here)?"
    r"|num[ée]ro (?:inconnu|masqué|suspect|appelant|surtaxé|d.appel\w*)|unbekannte (?:ruf)?nummer"
    r"|unknown (?:number|caller)|spam (?:call|number)|número desconocido|numero sconosciuto"
    r"|неизвестный номер|nieznany numer|onbekend nummer|okänt nummer|bilinmeyen numara"
    r"|missed calls?(?: from)?|appel manqué|appels? du|llamada (?:perdida )?del?|anruf von"
    r"|n[°º] (?:vert|azur|indigo|cristal)"
    r"|pod (?:nr|numer(?:em)?)|unter (?:der )?(?:nr|nummer|rufnummer)|au num[ée]ro|al n[úu]mero"
    r"|(?:pelo|no) número|(?:по|на) номер\w?|na čísl[eo]"
    r"|(?:neue|alte|aktuelle) (?:handy)?(?:nr|nummer)\.?|nouveau num[ée]ro|nuovo numero"
    r"|nuevo número|novo número|новый номер|nowy numer|nieuwe? nummer|nytt? nummer|yeni numara"
    r"|(?:meine?|unsere?|seine|ihre|deine) (?:\w+ )?nummer"
    r"|mi (?:nuevo )?número|mon (?:nouveau )?numéro|mio (?:nuovo )?numero|meu (?:zap|número)"
    r"|мой (?:новый )?номер|мій номер|mój (?:nowy )?numer|mijn (?:nieuwe )?nummer"
    r"|mi(?:n|tt) (?:nya? )?nummer|numaram|numaramız|nomor (?:saya|kami)|رقمي|رقمنا"
    r"|wa\.me|direct (?:dial|line|number)|land ?line|what'?s ?app"
    r"|caller[ _-]?id(?:[_ ]?\(?num(?:ber)?\)?)?|set[A-Z]?(?:phone|mobile|telephone|cell)\w{0,8}"
    r"|l[ií]nea gratuita|lada sin costo|mon num|t\.č|at(?:dt?|\+cmgs)"
    r"|الاتصال على|للاتصال|للاستعلام|اتصل (?:على|بـ?)|(?:mr|mrs|ms|miss|mdm|dr)\.? \w{2,12}(?= @)"
    r"|nmbr|tel_(?!id|at|ver)[a-z]{2,12}"
    r"|(?-i:LH(?=[ .:])|CP(?=:))|đường dây nóng|الرقم المجاني|gọi ngay"
)

_PHRASES = (
    r"(?:my|our|his|her|their|your) (?:\w+ ){0,2}(?:numbers?|one|mobile|cell)\b"
    r"|(?:customer|client|guest|technical|tech|room|after[- ]sales|order|booking|help|info|hot)[ -]"
    r"(?:services?|support|care|lines?|desk)\b|front desk|box office|get (?:in touch|hold of)"
    r"|atención al cliente|service (?:client|clients|clientèle)|servi[çz]i?o (?:ao )?cliente"
    r"|servizio clienti|dział obsługi|(?<!\.)txt\b"
)


_PART = r"(?:[^\W_]|[\u0300-\u036f\u0900-\u0dff])"
"""A letter or digit of a word, with the vowel signs of Indian scripts."""


def _pattern(words: Iterable[str]) -> str:
    """Words as alternatives, by their first letter; a star stands for the rest of the word."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted(set(words), key=lambda word: (-len(word), word)):
        rest = re.escape(word[1:].removesuffix("*"))
        by_letter.setdefault(word[0], []).append(rest + rf"{_PART}*+" * word.endswith("*"))
    return "|".join(
        f"{re.escape(letter)}(?:{'|'.join(rests)})" for letter, rests in sorted(by_letter.items())
    )


def _words(name: str) -> list[str]:
    """A list of `phone_words.json`, of all languages; its lines hold words with blanks between."""
    lists = _WORDS[name]
    groups = lists.values() if isinstance(lists, dict) else [lists]
    return [word for group in groups for line in group for word in line.split()]


def _within(name: str) -> str:
    return "|".join(map(re.escape, sorted(_words(name), key=len, reverse=True)))


_SEPARATORS = r"[\s.,:;?!=()\[\]#*|•·/\"'’\u2013\u2014\u00a0\uff08\uff09\uff0f\uff1a\u3000\ufe0f_-]"
_SET_OFF = r"`|[=-]>|</?(?:b|strong|i|em|code|td|th|dt|dd|span|li|p|br)(?: ?/)?>|&nbsp;|\\t"
"""Markup between a name and its number."""

_EDGE_BEFORE = rf"(?<!{_PART})(?<!@)(?<!<(?=(?-i:PHONE>)))"
_NUMBER_WORDS = (
    r"number|num|no|nos|nr|nº|n°|№|č|is|of|nummer|numéro|numero|número|numer|номер|broj|id|code"
    r"|est(?: le)?|ist|lautet|es|è|är|numaras[ıi]|kodu?|nro|number|1[03]"
)
_WORD_NAMES = f"{_NAME_PHRASES}|{_pattern(_words('names'))}"
_WITHIN = _within("names_within")
_SMALL_WORDS = (
    rf"(?:{_SEPARATORS}{{0,3}}(?<!{_PART})(?:{_pattern(_words('small_words'))})(?!{_PART}))"
)

NAMED_BEFORE = re.compile(
    rf"(?:{_EDGE_BEFORE}(?:{_WORD_NAMES})(?:\(s\)|[ _]?[1-4](?=[=:.)\"'\]]))?|{_WITHIN})"
    r"(?:号码|號碼|番号|同号|同步|号|번호)?[はへにを為为是은는]?(?:;[\w=,;\"-]{1,40}:)?"
    rf"{_SMALL_WORDS}{{0,4}}"
    rf"(?:{_SEPARATORS}|{_SET_OFF}){{0,6}}(?:(?<= )@ ?|(?<==)%2B)?\Z",
    re.IGNORECASE,
)
"""A word right before a number that names it: `Tel.:`, `call me at`, `電話番号`, `phone=`.

Also the parameters of a vCard (`TEL;TYPE=home:`), and the plus of a link (`phone=%2B`).
"""

TAGGED_BEFORE = re.compile(
    r"(?<!<(?=(?-i:PHONE>)))(?:phones?|tele?phone|tel|telefono?|mobile?|cell|fax|whatsapp|handy|gsm"
    r"|m[oó]vil|t[eé]l[eé]fono?|celular|(?<![^\W_])cel|contact[_-]?(?=n)|msisdn)"
    r"(?:[_-]?(?:no|number|nr|num|nummer))?"
    r"(?:[\"'][^<>\n]{0,60})?>\s{0,4}(?:<[^<>\n]{0,40}>\s{0,4}){0,2}\Z",
    re.IGNORECASE,
)
"""The end of a tag that is named so: `<span itemprop="telephone">`, `<phone>`."""

NAMED_AFTER = re.compile(
    rf"[ \u00a0,]{{0,2}}(?:[-\u2013\u2014] ?)?"
    rf"(?:\((?:{_WORD_NAMES}|home|work|office|privat|dienstlich|private|hp|day|eve"
    r"|evenings?|[hmwcof])\.?[ )/,]"
    rf"|(?:office|fax|mobile|mobil|cell|cel|phone|tel|handy|whatsapp|gsm|telefon|móvil|portable)\b"
    r"(?![ \t]{0,3}[.:]?[ \t]{0,3}[+(0-9]))",
    re.IGNORECASE,
)
"""A word right after a number that names it, and not the next one."""

NAMED_COLUMN = re.compile(rf"{_EDGE_BEFORE}(?:{_WORD_NAMES})(?!{_PART})|{_WITHIN}", re.IGNORECASE)
"""A word in the head of a column that says that numbers are below it."""

LETTERED_BEFORE = re.compile(
    r"(?:^|[\n|•·,;/(\t\u2013\u2014]|[ \u00a0]{2}|[0-9] ?)[ \t\u00a0]{0,4}(?:(?:[TFPMCHODWE]|Ph|Tf"
    r"|Mb|MB)"
    r"[.:)]{0,2}|[tfpmchowd][.:])\s{0,2}\Z"
)
"""A letter that names it: `T 030 …` at the beginning of a line or of a part of it."""

FIELD_BEFORE = re.compile(
    r"(?:\b|_)(?:to|from|from_?user|dst|dest|src|source|recipient|sender|cli|ani|did|call(?:er|ed|ing|ee)"
    r"|orig(?:in|inator)?|destination|[ab]_?n(?:um|umber|o))[\"']?\s?[=:]\s?[\"']?\Z"
    r"|\b(?:caller[ _-]?id(?:name)?|clid|from)[\"']?\s?[=:]\s?[^\n0-9<>]{1,40}<\Z"
    r"|[\"'\w]\\?\"{0,2} ?<\Z"
    r"|\b(?:otp|pin|codes?|sms|text|message) (?:was |has been |is )?sent to (?:the number )?\Z",
    re.IGNORECASE,
)
"""A field of a log or a call that says where a message goes: `sms queued to=`."""

PERSON_BEFORE = re.compile(
    r"(?:^|[^\w.])(?:(?:[A-ZÀ-ÖØ-Þ][\w'\u2019.-]{0,20} ){1,2}"
    r"|(?:p|hr|fr|sig|pan[ií]?|pán|herr|frau|fam|sr|sra|dhr|mevr?|mw|inż|ing|mgr|dr)\.? )"
    r"(?!(?:N[or]|Nu[m]|Code|I[dD]|Date|Ver|Ed|Page|Tab|Fig|Total|Price|Str|Road|Ave|Ref|Ser|Mod"
    r"|Part|Item"
    r"|Order|Inv|Acc|Case|Key|Time|Size|Width|Count|Sum|Year|Vol|Ch|Sec|Line|Port|Build"
    r"|Release))[A-ZÀ-ÖØ-Þ]"
    r"[a-zß-ÿ'\u2019-]{1,20}(?:[\"')]{0,2}[,:;|\t][ \t]?"
    r"|[ \t]?\n?[ \t]?[\u2013\u2014|(-]? ?)[\"'(]?\Z"
)
"""Two or three names of a person right before."""

PERSON_IN_ROW = re.compile(
    r"[|\t;] ?(?:[A-ZÀ-ÖØ-Þ][\w'\u2019.-]{0,20} ){1,2}[A-ZÀ-ÖØ-Þ][a-zß-ÿ'\u2019-]{1,20}"
    r"[ \t]{0,12}[|\t;] ?[^\W\d_][^|\t;\n0-9]{0,28}[|\t;][ \t]{0,12}\Z"
)
"""The cells of a person's name and of what the person does, right before in a row."""

EXTENSION_AFTER = re.compile(
    r"[ ,;(]{1,3}(?:ext\w{0,6}|x(?=[0-9])|durchwahl|dw|poste|ramal|anexo|interno|int|доб|wew|linka"
    r"|klapka|toestel|anknytning|內線|内線)[.:]{0,2} ?-?[0-9]{1,5}(?![0-9])",
    re.IGNORECASE,
)
"""The extension of a telephone right after its number."""

_TALKING = _pattern(_words("calling"))
_OFFICES = _pattern(_words("offices"))
_TALKING_WITHIN = _within("calling_within")
TALK_BEFORE = re.compile(
    rf"(?:{_EDGE_BEFORE}(?:(?:{_TALKING}|{_WORD_NAMES})(?!{_PART})|{_PHRASES})"
    rf"|{_TALKING_WITHIN})(?:[^0-9<>@]|\b(?:24h?/(?:24|7)|7j?/7)"
    r"|(?<![0-9.,/])[0-9]{1,2}(?![0-9./])|(?<![0-9.,/])[0-9]{3,4} ?[€$£₺]){0,45}(?:(?<= )@ ?)?\Z",
    re.IGNORECASE,
)
"""A word of calling or writing to somebody, and nothing between that may be redacted: so that a
redacted text says as much of a number as the text did. Tags such as `<PHONE>` are no words."""

TALK_RIGHT_BEFORE = re.compile(
    rf"(?:{_EDGE_BEFORE}(?:(?:{_TALKING})(?!{_PART})|{_PHRASES})|{_TALKING_WITHIN})"
    rf"{_SMALL_WORDS}{{0,4}}"
    rf"{_SEPARATORS}{{0,4}}\Z",
    re.IGNORECASE,
)
"""The same with nothing but small words between."""

_NAME = r"[A-ZÀ-ÖØ-ÞĀ-Ž\u0391-\u03a9\u0410-\u042f][\w'\u2019.-]{1,20}"
TALK_TO_BEFORE = re.compile(
    rf"(?:(?i:{_EDGE_BEFORE}(?:(?:{_TALKING}|{_WORD_NAMES})(?!{_PART})|{_PHRASES}))[.:,]?"
    rf"(?: [^\W\d_][\w'\u2019.-]{{0,20}},?){{0,4}} (?:på|on|at|auf|unter|op|no|al|au|fuq|на|pod|í"
    rf"|til|numer|nr\.?|@|{_NAME})|(?i:{_EDGE_BEFORE}(?:(?:{_TALKING}|{_WORD_NAMES}|{_OFFICES})(?!{_PART})|{_PHRASES}))"
    rf"(?: (?:[^\W\d_][\w'\u2019.-]{{0,20}},?|[0-9]{{1,2}}(?=:))){{0,5}} ?[:,])[ \u00a0]\Z"
)
"""A word of calling and then whom, or of a place or a trade with a colon, right before."""

OFFICE_BEFORE = re.compile(
    rf"{_EDGE_BEFORE}(?:{_OFFICES})(?!{_PART})[^0-9<>@\n]{{0,40}}"
    r"(?:(?<![0-9])[0-9]{1,2}[^0-9<>@\n/.,]{1,12})?(?<! at )\Z",
    re.IGNORECASE,
)
"""A place or a trade that people call, in the same line: `Pension Sonne, …`."""

TALK_AFTER = re.compile(
    rf"[^0-9<>@\n]{{0,40}}?(?:{_EDGE_BEFORE}(?:{_TALKING}|{_WORD_NAMES})(?!{_PART})"
    rf"|{_TALKING_WITHIN})(?![ \t]{{0,3}}[.:]?[ \t]{{0,3}}[+(0-9])",
    re.IGNORECASE,
)
"""Such a word after a number: `… anrufen`, `…までお電話ください`."""

OTHER_BEFORE = re.compile(
    rf"(?:(?<![^\W_])(?<![.@-])(?:{_pattern(_words('other'))}"
    r"|(?!tele|ruf|handy|mobil|fax|not|festnetz|service|hotline)\w{2,20}(?:nummer|nr|numer)"
    r"|(?!tele|ruf|handy|mobil|fax|not|kontakt|phone)[^\W\d_]{2,20}\.?-(?:nr|nummer|no|number|code))"
    rf"(?:[ .-]{{0,2}}(?:{_NUMBER_WORDS})){{0,2}}(?:[. ]{{1,2}}(?-i:[A-Z]{{2}}))?"
    r"|(?:booking|reserv\w{0,8}|réservation|prenotazione|rezerv\w{1,5}|buchung\w{0,8}|confirmation)"
    r"[ _.-]{0,2}(?:number|no|nr|n°|nº|č|ref|reference|code|#)"
    r"|(?:numero|codice) (?:prenotazione|cliente)|numer klienta|rendelési szám|mã (?:số|khách hàng)"
    r"|(?:каталожный|складской) номер|n\. ordine|kode booking|đơn hàng"
    r"|(?:support|contact|kontakt|call|service|message|msg|sms)"
    r"[ _.-](?:id|ref|reference|code|tag|case)"
    rf"|{_within('other_within')})"
    r"[\s.:;=()#\"'|\uff1a-]{0,4}\Z",
    re.IGNORECASE,
)
"""A word right before a number that names something else."""

_CONNECTIVES = (
    r"\b(?:or|and|o|y|e|ou|et|und|oder|of|en|og|och|eller|i|lub|a"
    r"|nebo|alebo|ali|ili|vagy|és|sau|și|tai|ja|või|vai|un|ir|arba|albo|oraz|bzw\.?|и|или|та|або"
    r"|ve|veya|və|yaxud|yoki|dan|atau|hoặc|và|και|ή|또는|및|أو|او|و|یا|או|ו|या|और|বা|অথবা|eða|jew"
    r"|au|edo|neu|nó|или|және|ან|կամ|ወይም)(?!\w)"
    r"|或|和|または|と|、|，|หรือ|และ"
)
CHAINED = re.compile(
    rf"(?:[ \u00a0]?\([^()0-9<>\n]{{1,24}}\))?"
    rf"(?:[\s,;/&|•·*+،\u2013\u2014-]|{_CONNECTIVES}){{1,6}}"
)
"""What stands between two numbers that one word names."""

CHAINED_OFFICE = re.compile(
    rf"[ ,;)]{{1,3}}(?:(?:{_CONNECTIVES})(?:[ \u00a0.]{{1,2}}[^\W\d_]{{1,20}}){{0,3}}"
    rf"|(?:(?:{_OFFICES}|{_WORD_NAMES})(?!{_PART})[.: ]{{0,2}}){{1,2}})[.: \u00a0]{{1,2}}",
    re.IGNORECASE,
)
"""The same with the place of the second: `… or the office 02 …`, `…, office 02 …`."""
