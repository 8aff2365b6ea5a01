"""FineWeb's rules (Penedo et al. 2024, section 3.5) on what C4 without its rule on ends left.

So datatrove's `examples/fineweb.py` runs them: its C4 filter rewrites the text first.
"""

from __future__ import annotations

from numpy.typing import NDArray

from stages.signals.line_signals import FILLED_LINE_SIGNALS, line_signals
from stages.text.batch import Batch

FINEWEB_VIEW = "c4@fineweb"


def fineweb_signals(batch: Batch) -> dict[str, NDArray]:
    """What FineWeb's rules ask about each text; shares of nothing are 0."""
    found = line_signals(batch)
    return {
        **{signal.name: found[signal.name] for signal in FILLED_LINE_SIGNALS},
        "filled_lines": found["filled_lines"],
    }
