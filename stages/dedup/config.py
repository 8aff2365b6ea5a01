"""What deduplication looks for, and how much memory it may take."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, MapExecution
from stages.dedup.presets import PRESETS, PresetName
from stages.dedup.settings import Hash, Normalise, Settings, Unit
from stages.engine.sizes import MemorySize

_MOST_HASHES = 1 << 15
"""Of a signature; the largest published one has 9,000."""


class PassagesConfig(Config):
    """Which repeated passages are found, besides whole documents."""

    lines: bool = Field(
        default=False,
        description="Lines that stood before, in any document, normalised as by CCNet.",
    )
    sentences: bool = Field(
        default=False, description="Spans of three sentences that occurred before, as in C4."
    )
    substrings: int | None = Field(
        default=None,
        ge=50,
        le=1 << 20,
        description="Least tokens of a repeated substring that is found; null for none.",
    )


class DedupConfig(Config):
    """How candidates are found and which pairs are written down.

    What is left out is the preset's. `bands` and `rows` go together; `threshold` solves them
    instead, of `hashes` hashes or of as many as the preset has.
    """

    preset: PresetName = Field(
        default="ingot", description="Published setting from which the fields below depart."
    )
    unit: Unit | None = Field(default=None, description="What a shingle is made of.")
    ngram: int | None = Field(default=None, ge=1, le=256, description="Units in a shingle.")
    normalise: Normalise | None = Field(
        default=None, description="What is done to a text before it is cut into shingles."
    )
    hash: Hash | None = Field(
        default=None, description="Hash of a shingle; `sha1` and `xxh64` are datatrove's."
    )
    bands: int | None = Field(
        default=None, ge=1, le=_MOST_HASHES, description="Bands of the signature."
    )
    rows: int | None = Field(default=None, ge=1, le=_MOST_HASHES, description="Hashes in a band.")
    threshold: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Jaccard similarity at which bands and rows shall part pairs best.",
    )
    hashes: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_HASHES,
        description="Hashes at most that `threshold` divides into bands and rows.",
    )
    seed: int | None = Field(
        default=None, ge=0, lt=2**64, description="Seed of the hash functions."
    )
    floor: float = Field(
        default=0.5, gt=0, le=1, description="Least measure of a pair that is written down."
    )
    measure: Literal["jaccard", "containment"] = Field(
        default="jaccard",
        description="What the floor is about: shared shingles by all, or by the smaller set's.",
    )
    verify: bool = Field(
        default=True, description="Measure each candidate on the shingles; else keep them all."
    )
    closure: bool = Field(
        default=True,
        description="Measure partners of partners too; it needs `verify` and is idle without.",
    )
    max_bucket: int = Field(
        default=128,
        ge=1,
        le=1 << 16,
        description="In a larger bucket each document is compared with this many first ones only.",
    )
    max_partners: int = Field(
        default=64,
        ge=1,
        le=1 << 16,
        description="Partners listed for one document, the nearest first.",
    )
    bytes_per_document: int = Field(
        default=1 << 16,
        ge=512,
        le=1 << 30,
        description="Room for the shingles of a document, 8 bytes each; of one that has more the "
        "least are kept, and its similarities are estimates.",
    )
    recall_sample: int = Field(
        default=512,
        ge=0,
        le=1 << 20,
        description="Documents compared with all new ones to measure recall; 0 for none.",
    )
    index: bool = Field(
        default=True, description="Write the index that a later run compares new documents with."
    )
    passages: PassagesConfig = Field(
        default=PassagesConfig(), description="Repeated passages to find inside documents."
    )

    @model_validator(mode="after")
    def _bands_are_said_one_way(self) -> Self:
        if (self.bands is None) != (self.rows is None):
            given, missing = ("rows", "bands") if self.bands is None else ("bands", "rows")
            raise ValueError(f"`{given}` without `{missing}`: give both, or neither")
        if self.threshold is not None and self.bands is not None:
            raise ValueError("`threshold` solves `bands` and `rows`: give it or them, not both")
        if self.hashes is not None and self.threshold is None:
            raise ValueError("`hashes` are divided by `threshold`: give it too, or bands and rows")
        if (self.bands or 1) * (self.rows or 1) > _MOST_HASHES:
            raise ValueError(f"`bands` × `rows` may be {_MOST_HASHES:,} at most")
        return self

    @model_validator(mode="after")
    def _hash_suits_the_words(self) -> Self:
        preset = PRESETS[self.preset]
        unit, normalise = self.unit or preset.unit, self.normalise or preset.normalise
        hash, seed = self.hash or preset.hash, preset.seed if self.seed is None else self.seed
        if hash == "ingot" and normalise == "datatrove":
            raise ValueError("`normalise: datatrove` goes with `hash: sha1` or `xxh64`, not ingot")
        if hash != "ingot" and (normalise, unit) != ("datatrove", "word"):
            raise ValueError(
                f"`hash: {hash}` is of datatrove's words: it goes with `normalise: datatrove` and "
                f"`unit: word`, not with {normalise} and {unit}"
            )
        if hash != "ingot" and seed >= 2**32:
            raise ValueError(f"`seed` with `hash: {hash}` is less than 2^32")
        return self

    def settings(self) -> Settings:
        """The preset with all that departs from it, bands and rows solved where asked."""
        preset = PRESETS[self.preset]
        bands, rows = self.bands or preset.bands, self.rows or preset.rows
        if self.threshold is not None:
            from stages.dedup.solver import solved

            bands, rows = solved(self.threshold, self.hashes or preset.hashes)
        return Settings(
            unit=self.unit or preset.unit,
            ngram=self.ngram or preset.ngram,
            normalise=self.normalise or preset.normalise,
            hash=self.hash or preset.hash,
            bands=bands,
            rows=rows,
            seed=preset.seed if self.seed is None else self.seed,
            most=self.bytes_per_document // 8,
        )


class DedupExecution(MapExecution):
    """Who does the work, and how much memory all processes together may take."""

    memory: MemorySize = Field(
        default="2GiB",
        description="What the processes of a run may hold together; what does not fit is sorted on "
        "disk.",
    )
