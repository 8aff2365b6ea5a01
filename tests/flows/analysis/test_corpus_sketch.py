"""Sketches of corpora: exact where they are small, within their stated error where they are not."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pyarrow as pa
import pytest
from datasketch import HyperLogLogPlusPlus, MinHash
from reference_shingles import folded_words

from flows.analysis import corpus_sketch
from flows.analysis.corpus_sketch import (
    BINS,
    PRECISION,
    UNITS,
    CorpusSketch,
    Sample,
    Sketch,
    TextUnits,
    compare,
    registers,
    share_held,
)

SMALL = 1 << 14
"""Hashes that a sample of these tests keeps, so that sets need not be large to be estimated."""
TRIALS = 40
MISSES = 6
"""More than 6 of 40 intervals at 95 % miss with a chance of 0.3 % (binomial)."""


def sketched(hashes, parts=1):
    sketch = Sketch(sample=Sample(SMALL))
    for part in np.array_split(hashes, parts):
        sketch.add(part)
    return sketch


def drawn(seed, count):
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


@pytest.mark.parametrize(
    ("in_a", "in_b", "in_both"),
    [(60_000, 40_000, 12_000), (20_000, 150_000, 15_000), (90_000, 20_000, 20_000)],
)
def test_planted_overlaps_lie_within_the_stated_intervals(in_a, in_b, in_both):
    """Sizes are known: 64-bit numbers drawn at random are distinct but for a chance of 10^-9."""
    union = in_a + in_b - in_both
    expected = {
        "distinct_a": in_a,
        "distinct_b": in_b,
        "union": union,
        "shared": in_both,
        "jaccard": in_both / union,
        "a_in_b": in_both / in_a,
        "b_in_a": in_both / in_b,
    }
    misses = dict.fromkeys(expected, 0)
    for seed in range(TRIALS):
        hashes = drawn([seed, union], union)
        compared = compare(sketched(hashes[:in_a]), sketched(hashes[in_a - in_both :]))
        for name, value in expected.items():
            estimate = getattr(compared, name)
            assert estimate.low <= estimate.value <= estimate.high
            assert not estimate.exact or estimate.value == value
            misses[name] += not estimate.low <= value <= estimate.high
    assert max(misses.values()) <= MISSES, misses


def test_a_small_set_in_a_large_one_has_an_interval_that_jaccard_cannot_give():
    """500 of 1,000 lie in 400,000: of A's hashes 41 are below B's greatest one (16,384 of it)."""
    hashes = drawn(3, 400_500)
    small, large = sketched(hashes[:1_000]), sketched(hashes[500:])
    share = compare(small, large).a_in_b
    assert share.low < 0.5 < share.high
    assert 0.2 < share.high - share.low < 0.4
    assert share_held(Sample(SMALL), large.sample) is None


def test_bins_are_the_registers_that_datasketch_fills_one_by_one():
    hashes = np.append(drawn(11, 3_000), np.array([0, BINS, 2**64 - 1], np.uint64))
    peer = HyperLogLogPlusPlus(p=PRECISION, hashfunc=int)
    for one in hashes.tolist():
        peer.update(one)
    sketch = sketched(hashes, 7)
    np.testing.assert_array_equal(registers(sketch.bins), peer.reg)
    assert corpus_sketch._count(sketch.bins)[0] == peer.count()


def test_minhash_by_one_permutation_errs_as_its_positions_allow_and_less_than_128_of_datasketch():
    """60,000 values fill 1 - e^(-60,000/65,536) of the bins; the error is √(J(1 - J)/filled)."""
    filled, jaccard = BINS * -np.expm1(-60_000 / BINS), 1 / 3
    errors, peers = [], []
    for seed in range(8):
        hashes = drawn([13, seed], 60_000)
        parts = hashes[:40_000], hashes[20_000:]
        errors.append(compare(*map(sketch_without_sample, parts)).jaccard.value - jaccard)
        signed = [MinHash(num_perm=128, scheme="affine64", hashfunc=int) for _ in parts]
        for peer, part in zip(signed, parts, strict=True):
            peer.update_batch(part.tolist())
        peers.append(signed[0].jaccard(signed[1]) - jaccard)
    expected = (jaccard * (1 - jaccard) / filled) ** 0.5
    # Of 8 errors the root mean square is above 1.6 standard errors with a chance of 1 % (χ²).
    assert np.sqrt(np.mean(np.square(errors))) < 1.6 * expected
    assert np.sqrt(np.mean(np.square(peers))) > 4 * expected


def sketch_without_sample(hashes):
    sketch = Sketch(sample=Sample(1))
    sketch.add(hashes)
    return sketch


@pytest.mark.parametrize("count", [0, 1, 2, SMALL - 1, SMALL, SMALL + 1, 3 * SMALL])
def test_a_set_and_itself(count):
    """Shares and Jaccard are 1, exactly; one above what a sample keeps is an estimate."""
    hashes = drawn(count, count)
    compared = compare(sketched(hashes), sketched(np.repeat(hashes, 2), 3))
    assert compared.distinct_a.exact == (count <= SMALL)
    assert compared.distinct_a == compared.distinct_b == compared.union
    if count <= SMALL:
        assert compared.distinct_a.value == compared.shared.value == count
    shares = (compared.jaccard, compared.a_in_b, compared.b_in_a)
    assert [share and share.value for share in shares] == [1.0 if count else None] * 3


def test_union_and_shares_do_not_depend_on_the_order_of_the_two():
    hashes = drawn(8, 80_000)
    for end in (10_000, 50_000):
        one, two = sketched(hashes[:end]), sketched(hashes[end // 2 :])
        first, second = compare(one, two), compare(two, one)
        assert (first.union, first.shared) == (second.union, second.shared)
        assert first.jaccard == second.jaccard
        assert (first.a_in_b, first.b_in_a) == (second.b_in_a, second.a_in_b)


def test_sketches_of_parts_merge_into_that_of_the_whole_in_any_order():
    draw = random.Random(21)
    hashes = drawn(21, 3 * SMALL)
    hashes = np.concatenate([hashes, hashes[:SMALL]])
    whole = sketched(hashes)
    for _ in range(5):
        cuts = sorted(draw.sample(range(len(hashes)), 4))
        parts = [pickle.loads(pickle.dumps(sketched(part, 3))) for part in np.split(hashes, cuts)]
        draw.shuffle(parts)
        merged = Sketch(sample=Sample(SMALL))
        for part in parts:
            merged.merge(part)
        np.testing.assert_array_equal(merged.bins, whole.bins)
        np.testing.assert_array_equal(merged.sample.hashes, whole.sample.hashes)
        assert merged.sample.complete == whole.sample.complete


def test_a_sample_is_complete_up_to_its_size_whatever_it_was_merged_from():
    hashes = np.arange(12, dtype=np.uint64)
    some, others = Sample(8), Sample(8)
    some.add(hashes[:8])
    others.add(hashes[4:8])
    some.merge(others)
    assert some.complete
    others.add(hashes)
    assert not others.complete
    some.merge(others)
    assert not some.complete
    assert some.hashes.tolist() == list(range(8))


TEXTS = [
    "The cat sat on the mat.\nAnd slept all day there!\n\n---\nThe END",
    "Caf\u00e9, caf\u00e9 and 12 more caf\u00e9s",
    "\u6211\u4eec\u4eca\u5929\u53bb\u516c\u56ed\n\u5f88\u9ad8\u5174",  # Han: each letter is a word.
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
    "one",
    "...",
    "",
]


def distinct_counts(texts):
    """By definition, from words in plain Python (`tests/reference_shingles.py`)."""
    words = [tuple(folded_words(text)) for text in texts]
    lines = {tuple(folded_words(line)) for text in texts for line in text.split("\n")}
    width = 5
    shingles = {
        one[start : start + width]
        for one in words
        if one
        for start in range(max(len(one) - width, 0) + 1)
    }
    wordless = {text for text, own in zip(texts, words, strict=True) if not own}
    return {
        "texts": len(set(texts)),
        "documents": len(set(words) - {()}) + len(wordless),
        "lines": len(lines - {()}),
        "shingles": len(shingles),
    }


def test_units_of_texts_are_as_defined_in_every_script():
    upper = [text.upper() for text in TEXTS]
    texts = [*TEXTS, *upper, *TEXTS[:2]]
    sketch, make = CorpusSketch(), TextUnits()
    for start in range(0, len(texts), 3):
        sketch.add(make(pa.array(texts[start : start + 3], pa.string())))
    counts = {unit: sketch.units[unit].distinct for unit in UNITS}
    assert all(count.exact for count in counts.values())
    assert {unit: count.value for unit, count in counts.items()} == distinct_counts(texts)
    assert sketch.documents == len(texts)


def test_a_copy_in_capitals_is_the_same_document_but_for_its_bytes():
    make, one, two = TextUnits(), CorpusSketch(), CorpusSketch()
    one.add(make(pa.array(TEXTS[:4])))
    two.add(make(pa.array([text.upper() for text in TEXTS[:2]])))
    shares = {unit: compare(one.units[unit], two.units[unit]) for unit in UNITS}
    assert shares["texts"].shared.value == 0
    assert shares["documents"].a_in_b.value == 0.5
    assert shares["lines"].b_in_a.value == shares["shingles"].b_in_a.value == 1.0


def test_groups_hold_the_hashes_of_their_own_documents():
    make, sketch = TextUnits(), CorpusSketch()
    sketch.add(make(pa.array(TEXTS[:5])), pa.array(["a", "b", None, "b", "a"]))
    expected = {"a": [TEXTS[0], TEXTS[4]], "b": [TEXTS[1], TEXTS[3]], "(none)": [TEXTS[2]]}
    for name, texts in expected.items():
        own = CorpusSketch()
        own.add(make(pa.array(texts)))
        group = sketch.groups[name]
        assert group.documents == len(texts)
        for unit in UNITS:
            hashes = own.units[unit].sample.hashes
            assert group.samples[unit].hashes.tolist() == hashes.tolist(), (name, unit)
