"""Published MinHash settings, and what of each is as published here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stages.dedup.settings import Hash, Normalise, Unit

PresetName = Literal["ingot", "fineweb", "redpajama-v2", "curator", "marin", "refinedweb"]


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
    """Of so many a given threshold makes bands and rows, where the config does not say."""
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
