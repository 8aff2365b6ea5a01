"""The word splitters by name, in a module of its own so that a config imports no NumPy."""

from __future__ import annotations

from typing import Literal

Splitter = Literal["unicode", "spacy_english"]
