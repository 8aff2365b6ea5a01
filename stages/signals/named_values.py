"""Between the name of a secret and its value: how configs, code, markup, shells, prose join them.

A name may be joined to its value by a sign (`=`, `:`, `=>`), as two arguments or items of a list
(`define('KEY', '…')`), as a field of its own (`name: KEY`, then `value: …`), by the end of a tag, a
cell of a table, the default of a variable (`env.KEY || '…'`), by a verb (`is`, `lautet`, `est`), or
by nothing but blanks. Every part is bounded and takes whole words, so a search takes linear time.
The head of a column names the cells below it: of a table, or of an SQL `INSERT`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUOTES = (
    r"\\?[\"'`]|&quot;|&#(?:x27|39|34);|[\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u300c\u300e]"
)
QUOTE = rf"(?:{_QUOTES})"
"""A quote of a program, of HTML or of prose."""

_CLOSE = (
    rf"(?:{_QUOTES}|[\])}}]|\[[0-9]{{0,4}}\]|\*\*|__"
    r"|</?(?:b|strong|i|em|code|kbd|tt|td|th|span)>){0,3}"
)
_TYPE = (
    r"(?: As [A-Z]\w{2,12} (?==)"
    r"|:\s?(?:&?'?[A-Za-z]|&(?:'static )?\[|\[)[\w<>?.;\[\] ]{1,24}(?= ?= ?b?[\"'`\\]| = )\s?"
    r"|\s?\{ ?get;[^{}\n]{0,24}\}\s?)?"
)
"""Between a name and `=`: a type (`: str`), or the accessors of C#."""

_SIGN = (
    r"(?:=>|:=|->|<-(?=[ \"'])|[→⟶➜⇒]"
    r"|=(?!=)|%3[Dd]|(?<!:):(?!:)|\uff1a|\uff1d|(?<=[ \u00a0])[-\u2013\u2014](?=[ \u00a0]))"
)
_VERBS = (
    r"(?<!\w)(?:is|are|was|will be|set to|changed to|reset to|ist|war|lautet|lauten|wäre|est"
    r"|c['\u2019]est|sera"
    r"|es|será|era|é|eh|è|jest|to(?! [^\W\d]{2,12}:)|je|är|er|on|var|este|és|е|είναι|yra|është"
    r"|ir|هي|هو|היא|הוא|это|этот|hai|hain|है|ni"
    r"|adalah|là)(?!\w)"
    r"(?:[ \u00a0](?:now|currently|just|set to|jetzt|nun|still|the same"
    r"|actually|always|also|apparently|übrigens|auch|noch|immer|aktuell|momentan|ahora|siempre"
    r"|maintenant|toujours|ora|sempre|agora|nu|теперь|сейчас|пока)){0,2}"
)
_WORDS = r"(?:[ \u00a0](?:[^\W\d_]{1,5}['\u2019])?[^\s:=,;|\"'<>{}\u00ab\u201c\u201e]{1,20}+){0,8}?"
_JOINING_SIGN = re.compile(r"[^\w. \u00a0\t/+-]|[^\x00-\x7f\u00a0]| - ")
_JOINING_WORDS = re.compile(
    r"(?:is|are|was|be|to|now|currently|still|same|ist|war|lautet|lauten|est"
    r"|sera|es|era|eh|jest|je|er|on|var|este|hai|hain|ni|or)\Z"
)
_MOST_WORDS = 4


def may_join(between: str) -> bool:
    """Whether a sign, a verb, or few words are all that a name and its value have between them.

    A quick look before the patterns of this module, which want at least one of these.
    """
    if _JOINING_SIGN.search(between):
        return True
    words = between.lower().split()
    return len(words) <= _MOST_WORDS or any(map(_JOINING_WORDS.match, words))


VERB = (
    rf"(?:`?{_WORDS}(?:[ \u00a0]{{1,2}}{_VERBS}[ \u00a0]?:?|[ \u00a0]?:)"
    r"(?:[ \u00a0\n]{1,2}|(?<=:)\n[ \t]{1,8})"
    r"|(?:[ \u00a0][^\W\d_]{1,16}+){1,4} [=\u2013\u2014-] "
    r"|(?:是|为|為|は|が|を|改成了?|改为|设置?为|設定為|默认为?|คือ) ?「?|「)"
)
"""Up to eight words and a verb or a colon, which join a name and its value in prose, in some twenty
languages: `password for the guest wifi is`."""

_NEXT_LINE = r"(?: ?[(\\])? ?\r?\n[ \t]{0,40}(?=[\"'`])"
"""The end of a line that a program continues: `KEY = (`, `KEY = \\`, with a literal below."""

ASSIGNS = (
    rf"{_CLOSE}(?:\.value)?(?:\s{{0,4}}|[ \t]{{5,40}}){_TYPE}{_SIGN}(?:\s{{0,4}}|{_NEXT_LINE})"
)
_METHODS = r"(?:send_?keys|type|fill|val|value|set\w{0,20}|put|input|write|insert|append|add)"
ARGUMENT = (
    rf"(?:{QUOTE}\])?{QUOTE},\s{{0,12}}(?:(?:{_QUOTES})(?=\\[\"'])|(?={_QUOTES}))"
    rf"|\(\s{{0,3}}(?=[bLu]?(?:{_QUOTES}))"
    r"|(?-i:(?<=[A-Z])),\s{0,12}(?=[\"'])"
    rf"|[\])]{{0,2}}{QUOTE}?[\])]{{0,2}}\.{_METHODS}\(\s{{0,3}}(?={_QUOTES})"
)
FIELD = (
    rf"(?:{QUOTE})?(?:[\s,;>]{{0,8}}|\n[ ]{{8,40}})(?:</(?:name|key)>\s{{0,40}})?"
    r"(?:[\"'<]?(?<![^\W_])(?:parameter_?value|value|default|val|content|data|string|with)(?!\w)"
    r"[\"'>]{0,2}\s{0,2}[:=]?\s{0,3})"
)
BLOCK = r"[\"'] ?\{[^{}]{0,120}?\bdefault\s{0,12}=\s{0,3}"
"""A variable of Terraform: `variable "password" { default = "…" }`."""

TAG_END = (
    r"[\"']?[^<>\n]{0,40}>\s{0,40}(?:<!\[CDATA\[|<(?:string|value|code|kbd|b|td|span|strong|data)"
    r"[^<>\n]{0,40}>){0,2}\s{0,2}"
)
CELL = r"(?:\*\*|`){0,2}[ \t]{0,20}(?:\||</(?:t[dh]|dt)>\s{0,20}<(?:t[dh]|dd)>)[ \t]{0,20}(?:\*\*)?"
FALLBACK = r"[\"'\])]{0,3},?\s{0,3}(?:\|\|=?|\?\?=?|\bor\b|:-|:=|\?:)\s{0,3}"
OPEN = (
    r"(?:</?(?:b|strong|i|em|code|kbd|tt|td|span|p)>\s?|\*\*|__|<br ?/?>){0,2}\s{0,2}"
    r"(?:(?:\b[brufnl]{1,2}|[@$]|\[\s?|!unsafe |[\"']\{\{ "
    r"|\b(?:md5|sha1|b?crypt|encrypt|Hash::make|String::from)\()(?=[\"'])"
    r"|[«\u201c\u2039][ \u00a0\u202f]|\"(?=\"[^\"\s]{6,64}\"\")"
    r"|\{(?=[^{}\s\"']{6,64}\};)|\[(?=[^\[\]\s\"']{6,64}\][,}]))?"
)
"""Markup and prefixes of strings between the sign and the value."""

GROUPS = r"(?-i:[a-z]{4}(?:[ \u00a0][a-z]{4}){3})(?![\w-])"
"""Four times four letters, as Google and Yahoo write the passwords that they make for programs."""

WORDS_APART = r"\w{2,14}(?: \w{2,14}){2,7}"
"""A passphrase of words with blanks, or a sentence."""

_OPEN_QUOTED = (
    rf"(?P<quote>{_QUOTES})(?P<quoted>(?:{GROUPS}|{WORDS_APART})(?=(?P=quote))"
    r"|(?:\\(?P=quote)(?=[A-Za-z0-9])|(?!(?P=quote))[^\s]){6,200})"
)
_CLOSED_BY = r"(?:(?P=quote)|[\u201d\u201c\u00bb\u00ab\u2019\u300d\u300f])"
QUOTED = rf"(?:{_OPEN_QUOTED}{_CLOSED_BY})"


_MOST_ROWS, _LONGEST_ROW = 50, 1000
"""Rows of a table, and characters of a row, over which the head of a column is searched."""

_SEPARATORS = "|\t;,"
_WIDE_SEPARATORS = (("!!", "||"), ("||", "|"), (" & ", "&"))
"""Between the cells of a head and of the rows below it, in wikis and LaTeX."""

_BORDER = re.compile(r"\s*(?:[+|-][-+=|:]{2,200}|\\[a-z]+rule|\\hline|\|-)\s*\Z")
_CELL_APART = re.compile(r"[^\s|]+(?: [^\s|]+)*")
_PLAIN_HEAD = re.compile(r"[\w .()/#-]+\Z")
_TAGGED_CELL = re.compile(r"<t[hd]\b[^<>\n]{0,60}>\s{0,20}(?P<cell>[^<>\n]{0,80}?)\s{0,20}</t[hd]>")
_HEAD_LINE = re.compile(
    r"(?:\|[\w \t\"'`*./#()-]{0,60})+\|?\s*\Z"
    r"|[ \t]{0,8}[\w\"'`*#][\w \"'`*./#-]{0,40}(?:[|\t;,][\w \"'`*./#()-]{1,40})+\s*\Z"
)
_NO_HEAD = re.compile(r"\s*(?:import|from|return|global|nonlocal|del|print|def|var|let|const)\b")
_RULE = re.compile(r"[|\s:+-]{3,}\Z")
_LONGEST_HEAD = 24
_BARE_CELL = re.compile(r"(?:[\s\"'`]|\*\*)*(.*?)(?:[\s\"'`]|\*\*)*\Z", re.DOTALL)
_INSERT = re.compile(
    r"insert\s+(?:\w{1,10}\s+)?into\s+[\w.\"`\[\]]{1,80}\s{0,4}\((?P<columns>[^()]{1,500})\)\s{0,9}"
    r"values\s{0,9}\(",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"\s{0,9}(?:N?'(?P<single>(?:[^'\\\n]|''|\\.){0,300})'|\"(?P<double>[^\"\n]{0,300})\""
    r"|(?P<bare>[^,()'\"\s][^,()'\"]{0,80}(?:\([^()]{0,80}\))?))?\s{0,9}(?P<sign>[,)])"
)
_COPIED = re.compile(
    r"\bcopy [\w.\"]{1,60} \((?P<columns>[^()\n]{1,500})\) from stdin[^\n]{0,60}\n\Z", re.IGNORECASE
)
"""What PostgreSQL writes above the rows of a dump."""

_CELL_IN_QUOTES = re.compile(r"(?<![^|\t;,])\"[^\"\n]*\"(?=[|\t;,])")
_NEXT_ROW = re.compile(r"\s{0,9},\s{0,9}\(")


def find_head(text: str, start: int) -> str:
    """The cell of the first row in the column of `start`; nothing outside a table.

    Cells are parted by `|`, tabs, semicolons or commas; the rows lie one below the other.
    """
    begin = text.rfind("\n", max(0, start - _LONGEST_ROW), start) + 1
    row = text[begin:start]
    separator = next((sign for sign in _SEPARATORS if sign in row), "")
    if not begin or len(row) > _LONGEST_ROW:
        return ""
    if not separator:
        return _find_head_apart(text, begin, row) if "  " in row else ""
    head = ""
    for _ in range(_MOST_ROWS):
        above = text.rfind("\n", max(0, begin - 1 - _LONGEST_ROW), max(0, begin - 1)) + 1
        line = text[above : max(0, begin - 1)]
        if separator not in line:
            break
        head, begin = line, above
        if not begin:
            break
    columns = _COPIED.search(text, max(0, begin - _LONGEST_ROW), begin)
    if columns is not None and separator == "\t":
        head = columns["columns"].replace(",", separator)
    cells, column = head.split(separator), _CELL_IN_QUOTES.sub("", row).count(separator)
    return cells[column] if column < len(cells) else ""


def _find_head_apart(text: str, begin: int, row: str) -> str:
    """The cell of the first row that begins where a cell behind `row` does; blanks part cells."""
    head = ""
    for _ in range(_MOST_ROWS):
        above = text.rfind("\n", max(0, begin - 1 - _LONGEST_ROW), max(0, begin - 1)) + 1
        line = text[above : max(0, begin - 1)]
        if "  " not in line.strip():
            break
        head, begin = line, above
        if not begin:
            break
    cells = (cell[0] for cell in _CELL_APART.finditer(head) if cell.start() == len(row))
    return next(filter(_PLAIN_HEAD.match, cells), "")


def find_cells(text: str, place: int) -> Iterator[tuple[int, int]]:
    """Places of the cells below the head of a column at `place`, without quotes and markup.

    The row of the head holds names alone, and no row of the table is above it.
    """
    begin = text.rfind("\n", max(0, place - _LONGEST_ROW), place) + 1
    end = text.find("\n", place, place + _LONGEST_ROW)
    head = text[begin : max(end, begin)]
    if "<t" in head:
        yield from _find_tagged(text, place)
        return
    separator = next((sign for sign in _SEPARATORS if sign in head), "")
    wide = next((one for one in _WIDE_SEPARATORS if one[0] in head), None)
    if wide is not None or (not separator and "  " in head):
        yield from _find_apart(text, place, begin, end, *(wide or ("", "")))
        return
    if not separator or not _HEAD_LINE.match(head) or _NO_HEAD.match(head):
        return
    above = text[text.rfind("\n", max(0, begin - _LONGEST_ROW), max(0, begin - 1)) + 1 : begin]
    if separator in above and not _BORDER.match(above):
        return
    column, count = text.count(separator, begin, place), head.count(separator)
    for _ in range(_MOST_ROWS):
        begin, end = end + 1, text.find("\n", end + 1, end + 1 + _LONGEST_ROW)
        line = text[begin : end if end >= 0 else begin + _LONGEST_ROW]
        if _BORDER.match(line):
            if end < 0:
                return
            continue
        if line.count(separator) != count:
            return
        cells = line.split(separator)
        cell = _BARE_CELL.match(cells[column])
        if cell is not None and cell[1] and not _RULE.match(line):
            first = begin + sum(map(len, cells[:column])) + column + cell.start(1)
            yield first, first + len(cell[1])
        if end < 0:
            return


def _find_apart(
    text: str, place: int, begin: int, end: int, head_sign: str, row_sign: str
) -> Iterator[tuple[int, int]]:
    """Cells below the head at `place` where two blanks or more, or doubled signs, part cells."""

    def split(line: str, sign: str) -> list[tuple[int, int]]:
        if not sign:
            return [cell.span() for cell in _CELL_APART.finditer(line)]
        body = line.strip().strip("|!\\").strip()
        offset, cells = line.find(body), []
        for part in body.split(sign):
            cell = part.strip(" \t*`'")
            first = offset + (part.find(cell) if cell else 0)
            cells.append((first, first + len(cell)))
            offset += len(part) + len(sign)
        return cells

    heads = split(text[begin:end], head_sign)
    if len(heads) < 2 or any(last - first > _LONGEST_HEAD for first, last in heads):
        return
    column = sum(last <= place - begin for first, last in heads)
    if column == len(heads):
        return
    for _ in range(_MOST_ROWS):
        begin, end = end + 1, text.find("\n", end + 1, end + 1 + _LONGEST_ROW)
        line = text[begin : end if end >= 0 else begin + _LONGEST_ROW]
        if not _BORDER.match(line) and not _RULE.match(line):
            cells = split(line, row_sign)
            if len(cells) != len(heads):
                return
            yield begin + cells[column][0], begin + cells[column][1]
        if end < 0:
            return


def _find_tagged(text: str, place: int) -> Iterator[tuple[int, int]]:
    """Cells of an HTML table below the head at `place`."""
    begin = text.rfind("<tr", max(0, place - _LONGEST_ROW), place)
    end = text.find("</tr>", place, place + _LONGEST_ROW)
    if begin < 0 or end < 0 or "<td" in text[begin:end] or "<th" not in text[begin:end]:
        return
    column = len(_TAGGED_CELL.findall(text, begin, place))
    for _ in range(_MOST_ROWS):
        begin, end = end, text.find("</tr>", end + 1, end + _LONGEST_ROW)
        if end < 0:
            return
        cells = list(_TAGGED_CELL.finditer(text, begin, end))
        if column < len(cells):
            yield cells[column].span("cell")


def find_inserted(text: str) -> Iterator[tuple[str, int, int]]:
    """Column and place of each literal of `INSERT INTO t (column, …) VALUES ('literal', …)`."""
    lowered = text.replace("INSERT", "insert").replace("Insert", "insert")
    begin = lowered.find("insert")
    while begin >= 0:
        statement = _INSERT.match(text, begin)
        begin = lowered.find("insert", begin + 1)
        if statement is None:
            continue
        columns = [name.strip(" \t\r\n\"`[]'") for name in statement["columns"].split(",")]
        place = statement.end()
        for _ in range(_MOST_ROWS):
            for column in columns:
                item = _ITEM.match(text, place)
                if item is None:
                    break
                for quoted in ("single", "double"):
                    if item[quoted]:
                        yield column, *item.span(quoted)
                place = item.end()
                if item["sign"] == ")":
                    break
            following = _NEXT_ROW.match(text, place)
            if following is None:
                break
            place = following.end()
