"""The word splitters by name; apart from `split.py`, so that a config can name one lightly."""

from __future__ import annotations

from typing import Literal

Splitter = Literal["unicode", "spacy_english"]
