"""What a corpus is made of, in a few megabytes whatever its size: counted and compared by sketches.

Documents, lines and shingles are 64-bit hashes here (`stages.dedup.shingling`, normalised as by
`dedup`'s defaults). One pass keeps two things of each:

- The least value in each of `BINS` bins. The leading zeros of these are the registers of
  HyperLogLog++ (Flajolet et al. 2007, Heule et al. 2013), which counts distinct values; the values
  are the positions of a MinHash signature by one permutation (Li, Owen and Zhang 2012). datasketch
  computes both estimates. Bins of several parts are merged by their minimum.
- The `SAMPLE` least hashes (bottom-k, Beyer et al. 2007): a sample that two corpora draw alike, and
  all of a corpus that has no more. So small corpora are counted exactly, and the share of one
  corpus that another holds has a sample of its own, where Jaccard says little: a corpus that lies
  whole in one a thousand times as large has 0.001.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.dedup.config import DedupConfig
from stages.dedup.shingling import Shingler, shingler
from stages.scoring.uncertainty import NORMAL_95, wilson

Hashes = NDArray[np.uint64]

UNITS = {
    "texts": "documents, to the byte",
    "documents": "documents, normalised",
    "lines": "lines",
    "shingles": "shingles of 5 words",
}
"""What is counted, and what people call it."""
PRECISION = 16
"""Bits of a hash that name its bin; datasketch's HyperLogLog++ knows 16 at most."""
BINS = 1 << PRECISION
STANDARD_ERROR = 1.04 / BINS**0.5
"""Of a count, relative: 0.41 % (Flajolet et al. 2007, theorem 1)."""
SAMPLE = 1 << 18
"""Hashes that a corpus keeps at most; up to this number of distinct values all counts are exact."""
GROUP_SAMPLE = 1 << 14
"""The same for each source or language that is reported by itself."""
_EMPTY = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval at 95 %; of no width where it was counted exactly."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether it was counted."""
        return self.low == self.value == self.high

    @classmethod
    def counted(cls, value: float) -> Estimate:
        """An exact number."""
        return cls(value, value, value)

    @classmethod
    def share(cls, matches: int, count: int) -> Estimate:
        """`matches` of a random sample of `count` (at least one), with Wilson's interval."""
        return cls(matches / count, *wilson(matches, count))

    def to_json(self) -> dict[str, float | bool]:
        """As plain values."""
        return {"value": self.value, "low": self.low, "high": self.high, "exact": self.exact}


class Sample:
    """The `most` least of all hashes that were added: ascending, each once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept = np.empty(0, np.uint64)
        self._waiting: list[Hashes] = []
        self._cut = False

    @property
    def hashes(self) -> Hashes:
        """The hashes that are kept."""
        self._settle()
        return self._kept

    @property
    def complete(self) -> bool:
        """Whether every hash that was added is kept."""
        self._settle()
        return not self._cut

    def add(self, hashes: Hashes) -> None:
        """Add hashes, in any order, repeats included."""
        self._waiting.append(hashes[hashes <= self._kept[-1]] if self._cut else hashes)
        if sum(map(len, self._waiting)) >= self.most:
            self._settle()

    def merge(self, other: Sample) -> None:
        """Add all that another sample of the same size was made of."""
        self.add(other.hashes)
        self._settle()
        self._cut |= not other.complete

    def __getstate__(self) -> dict[str, object]:
        self._settle()
        return vars(self)

    def _settle(self) -> None:
        if not self._waiting:
            return
        merged = np.concatenate([self._kept, *self._waiting])
        merged.sort()  # np.unique costs twenty times as much here.
        new = np.ones(len(merged), dtype=np.bool_)
        new[1:] = merged[1:] != merged[:-1]
        distinct = merged[new]
        self._cut |= len(distinct) > self.most
        self._kept, self._waiting = distinct[: self.most].copy(), []


@dataclass
class Sketch:
    """Distinct 64-bit hashes: least values by bin, and the least of all."""

    bins: Hashes = field(default_factory=lambda: np.full(BINS, _EMPTY))
    sample: Sample = field(default_factory=lambda: Sample(SAMPLE))

    def add(self, hashes: Hashes) -> None:
        """Add hashes, in any order, repeats included."""
        bins = (hashes & np.uint64(BINS - 1)).astype(np.intp)
        np.minimum.at(self.bins, bins, hashes >> np.uint64(PRECISION))
        self.sample.add(hashes)

    def merge(self, other: Sketch) -> None:
        """Add all that another sketch was made of."""
        np.minimum(self.bins, other.bins, out=self.bins)
        self.sample.merge(other.sample)

    @property
    def distinct(self) -> Estimate:
        """How many distinct hashes there are."""
        if self.sample.complete:
            return Estimate.counted(len(self.sample.hashes))
        return _with_error(*_count(self.bins))


def registers(bins: Hashes) -> NDArray[np.int8]:
    """HyperLogLog++'s registers: 1 + leading zeros of the least value in each bin, 0 of none."""
    lengths = np.frexp(bins.astype(np.float64))[1]  # Below 2^53 exact: bits of each value.
    return np.where(bins == _EMPTY, 0, 64 - PRECISION - lengths + 1).astype(np.int8)


def _count(bins: Hashes) -> tuple[float, float]:
    """Distinct hashes by HyperLogLog++, and the standard error."""
    from datasketch import HyperLogLogPlusPlus

    count = float(HyperLogLogPlusPlus(reg=registers(bins)).count())
    return count, STANDARD_ERROR * count


def _with_error(value: float, error: float, most: float = np.inf) -> Estimate:
    """`value` with 1.96 standard errors, all of it from 0 to `most`."""
    ends = (value, value - NORMAL_95 * error, value + NORMAL_95 * error)
    return Estimate(*(min(max(end, 0.0), most) for end in ends))


@dataclass(frozen=True)
class Comparison:
    """How two sets of hashes overlap. A share is None of an empty set, or if none was sampled."""

    distinct_a: Estimate
    distinct_b: Estimate
    union: Estimate
    shared: Estimate
    jaccard: Estimate | None
    a_in_b: Estimate | None
    b_in_a: Estimate | None

    def to_json(self) -> dict[str, dict[str, float | bool] | None]:
        """As plain values."""
        return {name: one and one.to_json() for name, one in vars(self).items()}


def compare(a: Sketch, b: Sketch) -> Comparison:
    """Compare two sketches: exactly if both kept every hash, else by estimates.

    What both have is |A| + |B| - |A ∪ B|. Its error adds those of the three counts as if they were
    independent. They are not, and the true one is smaller: the counts read the same registers.
    """
    shares = share_held(a.sample, b.sample), share_held(b.sample, a.sample)
    if a.sample.complete and b.sample.complete:
        return Comparison(*_count_exactly(a.sample.hashes, b.sample.hashes), *shares)
    one, two = a.distinct, b.distinct
    union, error = _count(np.minimum(a.bins, b.bins))
    errors = [error, *(STANDARD_ERROR * count.value for count in (one, two) if not count.exact)]
    shared = _with_error(
        one.value + two.value - union,
        sum(each**2 for each in errors) ** 0.5,
        most=min(one.high, two.high),
    )
    jaccard = _jaccard(a.bins, b.bins)
    return Comparison(one, two, _with_error(union, error), shared, jaccard, *shares)


def _count_exactly(
    one: Hashes, two: Hashes
) -> tuple[Estimate, Estimate, Estimate, Estimate, Estimate | None]:
    """The counts of each, of either and of both, and Jaccard."""
    shared = len(np.intersect1d(one, two, assume_unique=True))
    union = len(one) + len(two) - shared
    return (
        Estimate.counted(len(one)),
        Estimate.counted(len(two)),
        Estimate.counted(union),
        Estimate.counted(shared),
        Estimate.counted(shared / union) if union else None,
    )


def share_held(sample: Sample, other: Sample) -> Estimate | None:
    """The share of one set that another one holds, from the hashes that both would have kept.

    None if there is no such hash: the set is empty, or the other one far larger.
    """
    ends = [one.hashes[-1] for one in (sample, other) if not one.complete]
    known = sample.hashes[sample.hashes <= min(ends, default=_EMPTY)]
    if not len(known):
        return None
    matches = len(np.intersect1d(known, other.hashes, assume_unique=True))
    return Estimate.share(matches, len(known)) if ends else Estimate.counted(matches / len(known))


def _jaccard(one: Hashes, two: Hashes) -> Estimate | None:
    """By MinHash: the share of bins with the same least value, of those that either set reached."""
    from datasketch import LeanMinHash

    used = (one != _EMPTY) | (two != _EMPTY)
    if not used.any():
        return None
    # "affine64": datasketch's name for signatures of 64-bit values.
    signatures = [LeanMinHash(seed=1, hashvalues=s[used], scheme="affine64") for s in (one, two)]
    count = int(np.count_nonzero(used))
    return Estimate.share(round(signatures[0].jaccard(signatures[1]) * count), count)


@dataclass
class Group:
    """Documents of one source or language."""

    documents: int = 0
    samples: dict[str, Sample] = field(
        default_factory=lambda: {unit: Sample(GROUP_SAMPLE) for unit in UNITS}
    )


@dataclass
class CorpusSketch:
    """The sketches of a corpus by unit, and samples of its groups."""

    documents: int = 0
    """Repeats included."""
    units: dict[str, Sketch] = field(default_factory=lambda: {unit: Sketch() for unit in UNITS})
    groups: dict[str, Group] = field(default_factory=dict)

    def add(self, units: Units, groups: pa.Array | None = None) -> None:
        """Add documents; `groups` is the name of each one's source or language, perhaps null."""
        count = len(units["texts"][1])
        self.documents += count
        for unit, (hashes, _) in units.items():
            self.units[unit].add(hashes)
        for name in [] if groups is None else groups.unique().to_pylist():
            is_in = pc.is_null(groups) if name is None else pc.equal(groups, name)
            member = np.asarray(pc.fill_null(is_in, False))
            group = self.groups.setdefault(NO_GROUP if name is None else name, Group())
            group.documents += int(np.count_nonzero(member))
            for unit, (hashes, rows) in units.items():
                group.samples[unit].add(hashes[np.repeat(member, rows)])

    def merge(self, other: CorpusSketch) -> None:
        """Add the documents of another part of the corpus."""
        self.documents += other.documents
        for unit, sketch in other.units.items():
            self.units[unit].merge(sketch)
        for name, group in other.groups.items():
            own = self.groups.setdefault(name, Group())
            own.documents += group.documents
            for unit, sample in group.samples.items():
                own.samples[unit].merge(sample)


Units = dict[str, tuple[Hashes, NDArray[np.int64]]]
"""Hashes of a batch by unit, document by document, and how many each document has."""
NO_GROUP = "(none)"


class TextUnits:
    """Makes hashes of texts; called with them as `pa.string()`, without nulls.

    A line counts if it has a word. A text of fewer than five words has one shingle, of all of them.
    """

    def __init__(self) -> None:
        self._shingle: Shingler = shingler(DedupConfig().settings())

    def __call__(self, texts: pa.Array) -> Units:
        shingled = self._shingle(texts)
        lists = pc.split_pattern(texts, "\n")
        lines = self._shingle(lists.flatten())
        has_words = lines.offsets[1:] > lines.offsets[:-1]
        ends = np.append(0, np.cumsum(np.asarray(pc.list_value_length(lists))))
        counted = np.append(0, np.cumsum(has_words))
        one = np.ones(len(texts), dtype=np.int64)
        return {
            "texts": (shingled.texts[:, 0], one),
            "documents": (shingled.words[:, 0], one),
            "lines": (lines.words[has_words, 0], np.diff(counted[ends])),
            "shingles": (shingled.hashes, np.diff(shingled.offsets)),
        }
