"""Line rules as views of a batch of texts: what each cuts, what is left, and signals on that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stages.signals.line_rules import c4, refinedweb
from stages.signals.line_rules.c4_lines import Lines, c4_lines
from stages.signals.line_rules.edited_tokens import Split, SplitLines, edited_batch, split_lines
from stages.signals.line_rules.fineweb import FINEWEB_VIEW, fineweb_signals
from stages.signals.line_rules.marks import (
    KEPT,
    Cuts,
    Marks,
    cuts_of,
    edited_codes,
    texts_of,
)
from stages.text.batch import Batch

Columns = dict[str, NDArray]

LINE_VIEWS = (*(variant.view for variant in c4.VARIANTS), refinedweb.VIEW)
"""Views of line rules, in alphabetical order."""


@dataclass(frozen=True, eq=False)
class EditedView:
    """What a view cuts from each text of a batch, and signals of what is left, one value a text.

    marks [characters]: the label of each, as in `cuts`. left: the batch of the edited texts, where
    signals ask for its tokens.
    """

    batch: Batch
    marks: Marks
    cuts: Cuts
    signals: Columns
    left: Batch | None = None

    @cached_property
    def edited(self) -> Sequence[str]:
        """The edited texts; made when asked for."""
        if self.left is not None:
            return self.left.texts
        if not len(self.cuts.starts):
            return self.batch.texts
        return texts_of(*edited_codes(self.batch.codes, self.batch.offsets, self.marks))


def line_views(batch: Batch, views: Sequence[str], split: Split) -> list[EditedView]:
    """The views of a batch, in the order of `views`; each of them is one of `LINE_VIEWS`.

    `split` is the splitter that made the batch: lines that lose a citation are split again by it.
    """
    variants = [variant for variant in c4.VARIANTS if variant.view in views]
    made = _c4_views(batch, variants, split) if variants else {}
    if refinedweb.VIEW in views:
        made[refinedweb.VIEW] = _refinedweb_view(batch)
    return [made[view] for view in views]


def _refinedweb_view(batch: Batch) -> EditedView:
    marks = refinedweb.refinedweb_marks(batch)
    cuts = cuts_of(refinedweb.VIEW, marks, batch.offsets, refinedweb.NAMES)
    share = refinedweb.removed_word_share(batch, marks)
    return EditedView(batch, marks, cuts, {f"{refinedweb.VIEW}/removed_word_share": share})


def _c4_views(batch: Batch, variants: Sequence[c4.C4], split: Split) -> dict[str, EditedView]:
    lines = c4_lines(batch)
    verdicts = {variant.view: c4.verdicts_of(lines, variant) for variant in variants}
    kept = np.logical_or.reduce([verdict == KEPT for verdict in verdicts.values()])
    parts = split_lines(batch, lines, kept, split)
    return {view: _c4_view(batch, view, lines, verdicts[view], parts) for view in verdicts}


def _c4_view(
    batch: Batch, view: str, lines: Lines, verdicts: NDArray[np.uint8], parts: SplitLines
) -> EditedView:
    marks = c4.marks_of(batch.codes, lines, verdicts)
    cuts = cuts_of(view, marks, batch.offsets, c4.NAMES)
    kept, sentences, lorem_ipsum, curly_brace = c4.count_lines(
        lines.offsets, verdicts, parts.sentences
    )
    signals: Columns = {
        f"{view}/sentences": sentences,
        f"{view}/lorem_ipsum_lines": lorem_ipsum,
        f"{view}/curly_brace_lines": curly_brace,
        f"{view}/kept_line_share": kept / np.maximum(np.diff(lines.offsets), 1),
    }
    if view != FINEWEB_VIEW:
        return EditedView(batch, marks, cuts, signals)
    codes, offsets = edited_codes(batch.codes, batch.offsets, marks)
    texts = texts_of(codes, offsets)
    left = edited_batch(batch, lines, verdicts, parts, (texts, codes, offsets))
    signals |= {f"{view}/{name}": values for name, values in fineweb_signals(left).items()}
    return EditedView(batch, marks, cuts, signals, left)
