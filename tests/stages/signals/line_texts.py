"""Texts after the cuts of a line view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stages.filter.edits import apply_edits
from stages.signals.line_views import LineView
from stages.signals.outputs import Span


def edited_texts(view: LineView, texts: Sequence[str]) -> list[str]:
    """The texts with the cuts of a view made; they must not overlap, nor be empty."""
    cuts, edited = view.cuts, []
    for row, text in enumerate(texts):
        spans = [
            Span(
                int(cuts.starts[i]),
                int(cuts.ends[i]),
                cuts.label_names[cuts.labels[i]],
                cuts.replacement_names[cuts.replacements[i]],
            )
            for i in np.flatnonzero(cuts.text_of == row)
        ]
        bounds = [bound for span in spans for bound in span[:2]]
        assert all(span.start < span.end for span in spans)
        assert bounds == sorted(bounds)
        assert not bounds or bounds[-1] <= len(text)
        edited.append(apply_edits(text, spans))
    return edited
