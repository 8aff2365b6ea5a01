"""Config of `dedup`: how candidates are found, and how much memory the work may take.

A memory budget decides how the work is divided, never an output byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, MapExecution, MemorySize, parse_size
from artifacts_schema.errors import UsageError
from stages.dedup.presets import (
    PRESETS,
    Hash,
    Normalise,
    PresetName,
    Settings,
    Unit,
    solve_bands,
)

if TYPE_CHECKING:
    from stages.engine import Context


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
    index: bool = Field(
        default=False,
        description="Write the index with which later runs find passages of these documents.",
    )

    @model_validator(mode="after")
    def _index_has_something_to_hold(self) -> Self:
        if self.index and not self.measures():
            raise ValueError("`index` of passages without `lines`, `sentences` or `substrings`")
        return self

    def measures(self) -> list[str]:
        """What is counted of passages; runs of tokens are looked up by their anchors."""
        measures = {"lines": self.lines, "sentences": self.sentences, "anchors": self.substrings}
        return [name for name, wanted in measures.items() if wanted]


class DedupConfig(Config):
    """How candidates are found and which pairs are written down.

    The preset sets what the config does not. `bands` and `rows` go together; `threshold` solves
    them instead, of `hashes` hashes or of as many as the preset has.
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
        description="Similarity at which LSH should separate pairs best.",
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
            present, missing = ("rows", "bands") if self.bands is None else ("bands", "rows")
            raise ValueError(f"`{present}` without `{missing}`: give both, or neither")
        if self.threshold is not None and self.bands is not None:
            raise ValueError("`threshold` solves `bands` and `rows`: give it or them, not both")
        if self.hashes is not None and self.threshold is None:
            raise ValueError("`hashes` are divided by `threshold`: give it too, or bands and rows")
        if (self.bands or 1) * (self.rows or 1) > _MOST_HASHES:
            raise ValueError(f"`bands` × `rows` may be {_MOST_HASHES:,} at most")
        return self

    @model_validator(mode="after")
    def _hash_suits_the_words(self) -> Self:
        chosen = self._merged()
        unit, normalise, hash = chosen["unit"], chosen["normalise"], chosen["hash"]
        if hash == "ingot" and normalise == "datatrove":
            raise ValueError("`normalise: datatrove` goes with `hash: sha1` or `xxh64`, not ingot")
        if hash != "ingot" and (normalise, unit) != ("datatrove", "word"):
            raise ValueError(
                f"`hash: {hash}` is of datatrove's words: it goes with `normalise: datatrove` and "
                f"`unit: word`, not with {normalise} and {unit}"
            )
        if hash != "ingot" and chosen["seed"] >= 2**32:
            raise ValueError(f"`seed` with `hash: {hash}` is less than 2^32")
        return self

    def settings(self) -> Settings:
        """The preset with the overrides of the config; bands and rows solved for `threshold`."""
        chosen = self._merged()
        if self.threshold is not None:
            hashes = self.hashes or PRESETS[self.preset].hashes
            chosen["bands"], chosen["rows"] = solve_bands(self.threshold, hashes)
        return Settings(**chosen, most=self.bytes_per_document // 8)

    def _merged(self) -> dict[str, Any]:
        """The fields of the preset, with the overrides of the config."""
        preset = PRESETS[self.preset]
        names = ("unit", "ngram", "normalise", "hash", "bands", "rows", "seed")
        own = {name: getattr(self, name) for name in names}
        return {name: getattr(preset, name) if own[name] is None else own[name] for name in names}


class DedupExecution(MapExecution):
    """Who does the work, and how much memory all processes together may take."""

    memory: MemorySize = Field(
        default="2GiB",
        description="What the processes of a run may hold together; what does not fit is sorted on "
        "disk.",
    )


MIB = 1 << 20
FIXED = 320 * MIB
"""A worker before it holds a document: interpreter, Arrow and NumPy (110 MiB), compiled functions
and what loads them (100), a run of documents with its keys and a batch of text being signed (100);
measured as peak resident size on Linux x86-64, Python 3.11, pyarrow 26, numba 0.68."""
PARENT = 224 * MIB
"""The stage's own process, where workers do the rest."""
LEAST = 32 * MIB
"""Less than this would cut the work into too many pieces."""
SHINGLES = 8 * MIB
"""More shingles than a core's caches hold are not compared faster."""
ROW, PAIR = 80, 80
"""Bytes of a document while a range of digests or keys is sorted, and of a candidate pair until it
is written; with the copies that sorting makes."""


@dataclass(frozen=True)
class Budget:
    """What one process may hold in addition to what it always takes."""

    bytes: int
    """All of it."""

    @property
    def rows(self) -> int:
        """Documents whose digests or keys are sorted at once (`rows` of `find_exact_classes`,
        `bucket_tasks` and `propose`)."""
        return self.bytes // (ROW + PAIR)

    @property
    def pairs(self) -> int:
        """Candidate pairs held in addition to those documents (`pairs_at_once` of `propose`)."""
        return self.rows

    @property
    def pair_bytes(self) -> int:
        """Verified pairs held while they are gathered by document."""
        return self.bytes // 2

    @property
    def shingle_bytes(self) -> int:
        """Shingles held while pairs are verified; the rest is for the pairs and for working."""
        return min(self.bytes // 2, SHINGLES)


def budget(memory: int, workers: int) -> Budget:
    """What each of `workers` processes may hold, where all together are to take `memory` bytes.

    Raises UsageError if that is too little to work with.
    """
    parent = PARENT if workers > 1 else 0
    each = (memory - parent) // workers - FIXED
    if each < LEAST:
        least = parent + workers * (FIXED + LEAST)
        fewer = " or fewer workers" if workers > 1 else ""
        raise UsageError(
            f"{_format_size(memory)} of memory do not do for "
            f"{workers} worker{'s' * (workers > 1)}: "
            f"at least {_format_size(least)} are needed",
            where="memory",
            hint=f"set memory: {-(-least // MIB)}MiB{fewer}",
        )
    return Budget(each)


def workers_within(memory: int) -> int:
    """How many workers `memory` bytes do for; 1 where they do for none."""
    return max((memory - PARENT) // (FIXED + LEAST), 1)


def _format_size(size: int) -> str:
    return f"{size / MIB:,.0f} MiB" if size < 10 * 1024 * MIB else f"{size / MIB / 1024:,.1f} GiB"


def memory_budget(context: Context) -> Budget:
    """The budget of the run's processes.

    Without `workers` in the config, fewer are used if memory is short. A worker of a cluster takes
    all of `memory`."""
    execution: DedupExecution = context.execution
    memory = parse_size(execution.memory)
    if execution.engine == "dask":
        return budget(memory, 1)
    if execution.workers is None:
        workers = min(context.workers, workers_within(memory))
        context.execution = execution.model_copy(update={"workers": workers})
    return budget(memory, context.workers)
