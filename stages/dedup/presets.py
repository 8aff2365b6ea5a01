"""Published MinHash settings, what of each is as published here, and the curve of its bands.

Recipes import this module when they are read: NumPy and SciPy are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


PresetName = Literal[
    "ingot", "thorough", "fineweb", "redpajama-v2", "curator", "marin", "refinedweb"
]


@dataclass(frozen=True)
class Preset:
    """Shingles, hashes and bands under a published name."""

    unit: Unit
    ngram: int
    normalise: Normalise
    hash: Hash
    bands: int
    rows: int
    seed: int
    hashes: int
    """Hashes that `threshold` divides into bands and rows, if the config does not set `hashes`."""
    source: str
    fidelity: str
    """What is as published and what is not."""


PRESETS: Mapping[PresetName, Preset] = {
    "ingot": Preset(
        unit="word",
        ngram=5,
        normalise="fold",
        hash="ingot",
        bands=14,
        rows=8,
        seed=1,
        hashes=112,
        source="FineWeb's shingle length and bands: Penedo et al. 2024, arXiv 2406.17557",
        fidelity="Ingot's own folding, words and 32-bit hashes; nothing but 5, 14 and 8 is "
        "FineWeb's.",
    ),
    "thorough": Preset(
        unit="word",
        ngram=5,
        normalise="fold",
        hash="ingot",
        bands=20,
        rows=6,
        seed=1,
        hashes=120,
        source="the curve 1 - (1 - s^rows)^bands: Leskovec, Rajaraman and Ullman, *Mining of "
        "Massive Datasets*, section 3.4.2",
        fidelity="Not published: `ingot` with the bands that find 99.77 % of the pairs at "
        "similarity 0.8, where 14 x 8 find 92.36 %.",
    ),
    "fineweb": Preset(
        unit="word",
        ngram=5,
        normalise="datatrove",
        hash="sha1",
        bands=14,
        rows=8,
        seed=1,
        hashes=112,
        source="huggingface/datatrove 0.10.1, examples/fineweb.py; Penedo et al. 2024, arXiv "
        "2406.17557",
        fidelity="Signatures are datatrove's bit for bit on English text; the pairs that they "
        "propose are verified, and what is dropped is decided afterwards, not by components.",
    ),
    "redpajama-v2": Preset(
        unit="word",
        ngram=13,
        normalise="redpajama",
        hash="ingot",
        bands=9,
        rows=13,
        seed=42,
        hashes=128,
        source="togethercomputer/RedPajama-Data, app/src/dedupe/minhash.py; Weber et al. 2024, "
        "arXiv 2411.12372",
        fidelity="Normalisation, word 13-grams and bands are as published for similarity 0.8; "
        "`threshold` 0.7, 0.9 or 1.0 gives the other three; the hash is Ingot's, not 32 bits of "
        "SHA-1, and a text of fewer than 13 words is compared too.",
    ),
    "curator": Preset(
        unit="character",
        ngram=24,
        normalise="none",
        hash="ingot",
        bands=20,
        rows=13,
        seed=42,
        hashes=260,
        source="NVIDIA-NeMo/Curator, nemo_curator/stages/deduplication/fuzzy/workflow.py",
        fidelity="Characters as they are and bands are as published; MurmurHash3 on a GPU is "
        "replaced by Ingot's hash on the CPU, and pairs are verified.",
    ),
    "marin": Preset(
        unit="character",
        ngram=5,
        normalise="marin",
        hash="ingot",
        bands=26,
        rows=11,
        seed=42,
        hashes=286,
        source="marin-community/marin, lib/marin/src/marin/processing/classification/"
        "deduplication/fuzzy_minhash.py and rust/dupekit",
        fidelity="Cleaning, characters and bands are as published; the hash is Ingot's, and "
        "verification is by Jaccard or containment of shingles, not by Marin's own rules.",
    ),
    "refinedweb": Preset(
        unit="word",
        ngram=5,
        normalise="fold",
        hash="ingot",
        bands=450,
        rows=20,
        seed=1,
        hashes=9000,
        source="Penedo et al. 2023, arXiv 2306.01116, appendix G.3.1, after Lee et al. 2022, arXiv "
        "2107.06499",
        fidelity="9,000 hashes of 5-grams in 450 bands of 20 are as in the appendix (section 3.3 "
        "of the paper swaps the two numbers); the 5-grams are of folded words, not of GPT-2's "
        "tokens.",
    ),
}


_DIGITS = 9
"""To which areas are compared, so that rounding decides between no equal ones."""


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """Chance that a pair of this Jaccard similarity agrees on a band: 1 - (1 - s^rows)^bands."""
    return float(1.0 - (1.0 - similarity**rows) ** bands)


def solve_bands(threshold: float, hashes: int) -> tuple[int, int]:
    """(bands, rows) of at most `hashes` hashes that separate pairs at `threshold` best.

    The least sum of two areas, weighted alike: under the candidate probability below the threshold
    (false positives) and over it above (false negatives), as datasketch's MinHashLSH has it (after
    Zhu et al. 2016, LSH Ensemble). Of equals the one of fewer bands, then fewer rows. Raises
    ValueError unless 0 < threshold <= 1 and hashes >= 1.
    """
    import numpy as np

    if not 0 < threshold <= 1 or hashes < 1:
        raise ValueError(f"no bands for a threshold of {threshold} and {hashes} hashes")
    row_limits = [hashes // bands for bands in range(1, hashes + 1)]
    bands = np.repeat(np.arange(1, hashes + 1), row_limits)
    rows = np.concatenate([np.arange(1, most + 1) for most in row_limits])
    below = _missed_area(threshold, bands, rows)
    error = (threshold - below) + (_missed_area(1.0, bands, rows) - below)
    best = int(np.argmin(error.round(_DIGITS)))
    return int(bands[best]), int(rows[best])


def _missed_area(
    similarity: float, bands: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The integral of (1 - s^rows)^bands for s from 0 to `similarity`.

    With u = s^rows it is an incomplete beta function: B(u; 1/rows, bands + 1) / rows.
    """
    import numpy as np
    from scipy.special import beta, betainc

    upper = similarity ** rows.astype(np.float64)
    inverse = 1.0 / rows
    integral = betainc(inverse, bands + 1.0, upper) * beta(inverse, bands + 1.0) * inverse
    # Where the power underflows the integrand is 1 all the way.
    return np.where(upper > 0, integral, similarity)
