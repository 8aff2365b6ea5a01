"""The line of a Markdown paragraph, heading or cell: escapes, emphasis, links, code, formulas.

An inline run is gathered as pieces while the tree is walked and rendered when its block ends, for
what must be escaped and which emphasis Markdown can express depends on what stands beside it
(https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

LONGEST_TARGET = 2_048
MOST_ECHOES = 16
"""Alternative texts of a run that are compared with its text."""
_SPACES = re.compile(r"(?:[\t\n\r\f]| [ \t\n\r\f])[ \t\n\r\f]*")  # All but a single space.
_MARKS = re.compile(r"[\\*`\[\]_<~&$]")
_TICKS = re.compile(r"`+")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)
_DROPPED_IN_TARGETS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_TARGET = {ord(mark): f"%{ord(mark):02X}" for mark in " ()<>\\`\"'|"}
_ENTITY = r"&(?=#?[0-9A-Za-z]{1,31};)"
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~\n]|$)|[*`\[\]]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?]|$)|(?<=\S)~|"
    + _ENTITY
    + r"|(?<=\S)\$(?!\d)|\$(?=\$)"
)
_DOLLAR = re.compile(r"(?<!\\)\$")
_BLOCK_START = re.compile(
    r"(?:\#{1,6}(?=\s|$)|>|[-+](?=\s|$)|={1,}\s*$|~{3}|[-:|\s]+$)|(\d{1,9})([.)])(?=\s|$)", re.ASCII
)

Kind = Literal["text", "code", "raw", "weak", "break", "open", "close"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an inline run.

    `text` is to be escaped, `code` to stand in backticks, `raw` is Markdown already (formulas);
    `weak` is text that stands only beside kept text (alternative texts of images). `open` and
    `close` hold a delimiter, or a link's target in `target`.
    """

    kind: Kind
    text: str = ""
    target: str | None = None


@dataclass(slots=True)
class Run:
    """An inline run under construction."""

    pieces: list[Piece] = field(default_factory=list)
    kept: bool = False
    """Whether text of the main text stands in it."""
    formula: bool = False


def render(run: Run, *, breaks: bool = True) -> list[list[str]]:
    """Lines of each paragraph of the run: two line breaks in a row part paragraphs.

    Without `breaks` (headings and cells) all stands in one line.
    """
    if all(piece.kind == "text" for piece in run.pieces):
        plain = _SPACES.sub(" ", "".join([piece.text for piece in run.pieces])).strip(" ")
        return [[_escaped(plain, False)]] if plain.strip() else []
    pieces_of = _without_echoes(run.pieces)
    paragraphs: list[list[str]] = []
    for pieces in _paragraphs(pieces_of) if breaks else [pieces_of]:
        text = _joined(_settled(pieces), run.formula)
        lines = [line.strip(" ") for line in text.split("\n")]
        if lines := [line for line in lines if line.strip()]:
            paragraphs.append(lines if breaks else [" ".join(lines)])
    return paragraphs


def guarded(line: str) -> str:
    """A line of a paragraph, with an escape where its start would begin another block."""
    found = _BLOCK_START.match(line)
    if found is None:
        return line
    if found[1]:
        return f"{found[1]}\\{line[len(found[1]) :]}"
    return f"\\{line}"


def fence(text: str) -> str:
    """Backticks for a block of code: three, or one more than any run inside."""
    return "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))


def link_target(href: str | None) -> str | None:
    """A target as Markdown writes it: http, https, mailto or relative; None for any other.

    Control characters go first, as browsers take `java\\nscript:` for what it means.
    """
    target = _DROPPED_IN_TARGETS.sub("", (href or "")[: 2 * LONGEST_TARGET]).strip()
    if not target or target.startswith("#") or len(target) > LONGEST_TARGET:
        return None
    scheme = _SCHEME.match(target)
    if scheme and scheme[1].lower() not in ("http", "https", "mailto"):
        return None
    return re.sub(_ENTITY, "&amp;", target.translate(_TARGET))


def _without_echoes(pieces: list[Piece]) -> list[Piece]:
    """The pieces without alternative texts that only say what the text beside them says."""
    weak = [at for at, piece in enumerate(pieces) if piece.kind == "weak"][:MOST_ECHOES]
    if not weak:
        return pieces
    said = " ".join("".join([piece.text for piece in pieces if piece.kind == "text"]).split())
    echoes = set()
    for at in weak:
        text = " ".join(pieces[at].text.split())
        if text in said:
            echoes.add(at)
        said += f"\n{text}"
    return [piece for at, piece in enumerate(pieces) if at not in echoes]


def _paragraphs(pieces: list[Piece]) -> list[list[Piece]]:
    """Pieces parted at two or more breaks; what is open at a part is closed and opened again."""
    parts: list[list[Piece]] = [[]]
    open_now: list[Piece] = []
    breaks = 0
    for piece in pieces:
        if piece.kind == "break":
            breaks += 1
            continue
        blank = piece.kind == "text" and not piece.text.strip(" \t\n\r\f")
        if breaks and piece.kind != "close" and not blank:
            if breaks > 1:
                parts[-1] += [
                    Piece("close", opener.text, opener.target) for opener in open_now[::-1]
                ]
                parts.append(list(open_now))
            else:
                parts[-1].append(Piece("break"))
            breaks = 0
        if piece.kind == "open":
            open_now.append(piece)
        elif piece.kind == "close" and open_now:
            open_now.pop()
        parts[-1].append(piece)
    return parts


def _settled(pieces: list[Piece]) -> list[Piece]:
    """Pieces with single spaces, none inside delimiters, and only delimiters that will be read so.

    Delimiters that enclose nothing, follow at once on a closing one, or would not be read as
    emphasis beside the characters around them go; the text stays.
    """
    out: list[Piece] = []
    pairs: list[tuple[int, int]] = []
    waiting: list[Piece] = []  # Delimiters that opened since the last visible character.
    opened: list[int | None] = []
    space = linked = False
    for piece in pieces:
        if piece.target is not None:
            linked = piece.kind == "open"
        if piece.kind == "open":
            waiting.append(piece)
        elif piece.kind == "close":
            if waiting:
                waiting.pop()
            elif opened and (at := opened.pop()) is not None:
                pairs.append((at, len(out)))
                out.append(piece)
        elif piece.kind == "break":
            out.append(piece)
            space = False
        else:
            text = piece.text if piece.kind == "raw" else _SPACES.sub(" ", piece.text)
            if not (content := text.strip(" ")):
                space = space or bool(text)
                continue
            if (space or text[0] == " ") and out and out[-1].kind != "break":
                out.append(Piece("text", " "))
            for opener in waiting:
                touching = bool(out) and out[-1].kind == "close" and opener.target is None
                opened.append(None if touching else len(out))
                if not touching:
                    out.append(opener)
            waiting = []
            # In a link that begins a paragraph, `]:` in code would make it a definition.
            plain = piece.kind == "weak" or (linked and "]" in content)
            out.append(Piece("text" if plain else piece.kind, content))
            space = text[-1] == " "
    dropped = _unreadable(out, pairs)
    return [piece for at, piece in enumerate(out) if at not in dropped]


def _unreadable(out: list[Piece], pairs: list[tuple[int, int]]) -> set[int]:
    """Places of emphasis delimiters that Markdown would not take for such, by the flanking rule."""
    before, after = [" "] * len(out), [" "] * len(out)
    last = " "
    for at, piece in enumerate(out):
        before[at] = last
        last = _edge(piece, last, -1)
    last = " "
    for at in range(len(out) - 1, -1, -1):
        after[at] = last
        last = _edge(out[at], last, 0)
    emphasis = sorted((start, end) for start, end in pairs if out[start].target is None)
    dropped: set[int] = set()
    around: list[tuple[int, int]] = []
    for start, end in emphasis:
        while around and around[-1][1] < start:
            around.pop()
        opening, closing = (after[start], before[start]), (before[end], after[end])
        readable = _flanks(*opening) and _flanks(*closing)
        if around and around[-1] != (start - 1, end + 1):
            # Inside other emphasis a delimiter that could be read both ways would be.
            readable = readable and _one_sided(*opening) and _one_sided(*closing)
        if not readable:
            dropped |= {start, end}
        around.append((start, end))
    return dropped


def _edge(piece: Piece, last: str, end: int) -> str:
    """The character that a piece shows beside it; emphasis delimiters show what is beyond them."""
    if piece.kind == "break":
        return " "
    if piece.kind in ("open", "close"):
        return last if piece.target is None else "["
    return "`" if piece.kind == "code" else piece.text[end]


def _flanks(inner: str, outer: str) -> bool:
    if inner.isspace():
        return False
    return unicodedata.category(inner)[0] not in "PS" or (
        outer.isspace() or unicodedata.category(outer)[0] == "P"
    )


def _one_sided(inner: str, outer: str) -> bool:
    """Whether a delimiter between these cannot be read the other way around."""
    return outer.isspace() or (
        unicodedata.category(outer)[0] == "P" and unicodedata.category(inner)[0] not in "PS"
    )


def _joined(pieces: list[Piece], formula: bool) -> str:
    """Markdown of settled pieces. Spans of code side by side are one, as backticks would clash."""
    out: list[str] = []
    for kind, group in groupby(pieces, key=lambda piece: piece.kind):
        if kind in ("text", "code"):
            text = "".join([piece.text for piece in group])
            out.append(_escaped(text, formula) if kind == "text" else _code_span(text))
            continue
        for piece in group:
            if piece.kind == "break":
                out.append("\n")
            elif piece.target is None:
                out.append(piece.text)
            elif piece.kind == "close":
                out.append(f"]({piece.target})")
            else:
                if out and out[-1].endswith("!"):  # It would make the link an image.
                    out[-1] = f"{out[-1][:-1]}\\!"
                out.append("[")
    return "".join(out)


def _code_span(text: str) -> str:
    """Inline code, in backticks longer than any run of them inside."""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    if text[0] == "`" or text[-1] == "`":
        text = f" {text} "
    return f"{ticks}{text}{ticks}"


def _escaped(text: str, formula: bool) -> str:
    """Text in which nothing is markup. Beside a formula every dollar sign is escaped.

    Without one, a dollar sign is left alone where it could not close a formula: `$5 and $10`.
    """
    escaped = _MARKUP.sub(r"\\\g<0>", text) if _MARKS.search(text) else text
    return _DOLLAR.sub(r"\\$", escaped) if formula else escaped
