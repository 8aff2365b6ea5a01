"""Whether the lines of a document are in its language: menus, ads and quotes often are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stages.signals.language import LABEL, load_model, one_line
from stages.signals.signal import Signal

SHORTEST_LINE = 20
"""Characters below which a line is left out: the model is unsure of shorter ones."""

LINE_LANGUAGE = Signal(
    "line_language_share",
    "float64?",
    "share",
    "Joulin et al. 2017 (arXiv 1607.01759)",
    "Characters of judged lines that the model finds in the document's language.",
)


def line_language_shares(
    texts: Sequence[str], languages: Sequence[str | None], model: Path, characters: int
) -> list[float | None]:
    """For each text, the share of its lines' characters that are in its language.

    Lines of at least `SHORTEST_LINE` characters among the first `characters` of a text are judged,
    each by itself; null where there are none.
    """
    lines: list[str] = []
    owners: list[int] = []
    for number, text in enumerate(texts):
        for line in text[:characters].splitlines():
            plain = one_line(line)
            if len(plain) >= SHORTEST_LINE:
                lines.append(plain)
                owners.append(number)
    total, same = [0] * len(texts), [0] * len(texts)
    labels = load_model(model)(lines)[0] if lines else []
    for owner, line, (label,) in zip(owners, lines, labels, strict=True):
        total[owner] += len(line)
        same[owner] += len(line) * (label.removeprefix(LABEL) == languages[owner])
    return [part / whole if whole else None for part, whole in zip(same, total, strict=True)]
