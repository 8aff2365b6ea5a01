"""Signals over the lines and paragraphs of one text: Gopher's, and FineWeb's.

Gopher's repetition signals (Rae et al. 2021, table A1) and FineWeb's rules (Penedo et al. 2024,
section 3.5) in datatrove's definitions. They split lines in three ways: Gopher's quality rules at
every line boundary that Unicode knows, its repetition rules at runs of line feeds, FineWeb's at
line feeds, blank lines left out.
"""

from __future__ import annotations

from stages.signals.quality import BULLETS, ELLIPSES, bullet_lines, ellipsis_lines
from stages.text.lines import extra_copies, filled_lines, lines, paragraphs
from stages.text.punctuation import TERMINAL_PUNCTUATION

SHORT_LINE = 30
"""Characters of the longest line that FineWeb calls short."""


def line_signals(text: str) -> dict[str, int | float]:
    """All line and paragraph signals of `text`; shares of nothing are 0."""
    characters = len(text)
    boundaries = text.splitlines()
    by_feeds = lines(text)
    by_blank_lines = paragraphs(text)
    filled = filled_lines(text)

    line_copies, line_copy_characters = extra_copies(by_feeds)
    paragraph_copies, paragraph_copy_characters = extra_copies(by_blank_lines)
    filled_copy_characters = extra_copies(filled)[1] if line_copies else 0
    bullets = bullet_lines(boundaries) if any(mark in text for mark in BULLETS) else 0
    ellipses = ellipsis_lines(boundaries) if any(mark in text for mark in ELLIPSES) else 0
    ended = sum(line[-1] in TERMINAL_PUNCTUATION for line in filled)
    short = sum(len(line) <= SHORT_LINE for line in filled)
    return {
        "lines": len(boundaries),
        "bullet_line_share": _share(bullets, len(boundaries)),
        "ellipsis_line_share": _share(ellipses, len(boundaries)),
        "duplicate_line_share": _share(line_copies, len(by_feeds)),
        "duplicate_line_character_share": _share(line_copy_characters, characters),
        "duplicate_paragraph_share": _share(paragraph_copies, len(by_blank_lines)),
        "duplicate_paragraph_character_share": _share(paragraph_copy_characters, characters),
        "terminal_punctuation_line_share": _share(ended, len(filled)),
        "short_line_share": _share(short, len(filled)),
        "duplicate_filled_line_character_share": _share(
            filled_copy_characters, characters - text.count("\n")
        ),
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
