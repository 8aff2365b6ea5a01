"""What a preset and the fields beside it come to: how texts are cut into shingles and signed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["word", "character"]
Normalise = Literal["fold", "datatrove", "redpajama", "marin", "none"]
Hash = Literal["ingot", "sha1", "xxh64"]


@dataclass(frozen=True)
class Settings:
    """Two indexes can be compared where these are equal."""

    unit: Unit
    """What a shingle is made of."""
    ngram: int
    """Units in a shingle."""
    normalise: Normalise
    """What is done to a text before: `fold` is Ingot's own, the others are as published."""
    hash: Hash
    """Hash of a shingle: `ingot` also means Ingot's 32-bit signatures, `sha1` and `xxh64`
    datatrove's 64-bit ones."""
    bands: int
    rows: int
    """Hashes in a band."""
    seed: int
    most: int
    """Shingles kept of a document, the least ones; of longer ones similarity is an estimate."""
