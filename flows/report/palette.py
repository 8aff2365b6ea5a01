"""Colours of reports by name, in light and dark.

The series colours follow Okabe and Ito (2008), who chose theirs to be told apart by colour-blind
readers; they are darkened (lightened) until each has a contrast of at least 3 to the page.
"""

from __future__ import annotations

SERIES = 8

LIGHT = {
    "text": "#1b1f24",
    "muted": "#59616b",
    "grid": "#e2e6eb",
    "axis": "#b4bcc6",
    "surface": "#ffffff",
    "on-series": "#fdfdfe",
    "series-1": "#0b69b5",
    "series-2": "#c24e00",
    "series-3": "#007a5a",
    "series-4": "#a3458c",
    "series-5": "#8a6a00",
    "series-6": "#2a86ad",
    "series-7": "#b3261e",
    "series-8": "#5c5f66",
}
"""Drawings are made in these; each is its own value, so that it can be told what it stood for."""

DARK = {
    "text": "#e7eaee",
    "muted": "#a3acb8",
    "grid": "#2b323b",
    "axis": "#56606c",
    "surface": "#14181d",
    "on-series": "#0f1216",
    "series-1": "#63b0f4",
    "series-2": "#ff9d5c",
    "series-3": "#3ecb9d",
    "series-4": "#e698d5",
    "series-5": "#dcb63c",
    "series-6": "#84d2ee",
    "series-7": "#ff8a80",
    "series-8": "#b5b9c1",
}

VARIABLES = {name: f"var(--{name})" for name in LIGHT}
"""The same names as a style sheet has them."""


def series_colour(index: int) -> str:
    """The colour of the series at `index`, beginning anew after the last."""
    return LIGHT[f"series-{index % SERIES + 1}"]
