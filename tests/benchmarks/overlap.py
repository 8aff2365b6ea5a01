"""Sketches of a corpus beside datasketch's own update loop: CPU seconds, and how far both err.

`python -m tests.benchmarks.overlap [--documents 10000] [--rounds 3]` makes two corpora of random
words that share a third of A's documents. Ingot counts texts, documents, lines and shingles; the
peer gets the shingles alone, as strings of five words that were split and joined beforehand, in its
favour: HyperLogLogPlusPlus.update and MinHash.update_batch, each with XXH3. Least of the rounds.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable, Sequence
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa
from datasketch import HyperLogLogPlusPlus, MinHash
from xxhash import xxh3_64_intdigest

from flows.analysis.corpus_sketch import PRECISION, CorpusSketch, TextUnits, compare

WORDS, LINES, LINE = 20_000, 30, 12
PERMUTATIONS = 128
SEED = 1031


def texts(seed: str, count: int) -> list[str]:
    """Random documents; what two seeds have in common is chance."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = random.Random(SEED)
    words = ["".join(vocabulary.choices(letters, k=vocabulary.randint(2, 9))) for _ in range(WORDS)]
    return [
        "\n".join(" ".join(rng.choices(words, k=LINE)) for _ in range(LINES)) for _ in range(count)
    ]


def spent(work: Callable[[], object], rounds: int) -> float:
    """The least CPU seconds of the rounds."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def sketch(batches: Sequence[pa.Array]) -> CorpusSketch:
    """As `ingot overlap` reads a shard."""
    made, units = CorpusSketch(), TextUnits()
    for batch in batches:
        made.add(units(batch))
    return made


def update_one_by_one(shingles: Sequence[Sequence[bytes]]) -> HyperLogLogPlusPlus:
    """datasketch's count of distinct shingles."""
    counter = HyperLogLogPlusPlus(p=PRECISION, hashfunc=xxh3_64_intdigest)
    for document in shingles:
        for shingle in document:
            counter.update(shingle)
    return counter


def update_by_document(shingles: Sequence[Sequence[bytes]]) -> MinHash:
    """datasketch's signature of all shingles."""
    signature = MinHash(PERMUTATIONS, scheme="affine64", hashfunc=xxh3_64_intdigest)
    for document in shingles:
        signature.update_batch(document)
    return signature


def shingles(text: str) -> list[bytes]:
    """Strings of five words."""
    words = text.split()
    return [" ".join(words[start : start + 5]).encode() for start in range(len(words) - 4)]


def main() -> None:
    """Print both costs, the ratios, and the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    count, shared = options.documents, options.documents // 3
    one = texts(f"{SEED}-a", count)
    two = [*one[:shared], *texts(f"{SEED}-b", count - shared)]
    sets = [[shingles(text) for text in corpus] for corpus in (one, two)]
    exact = [{shingle for document in corpus for shingle in document} for corpus in sets]
    batches = [[pa.array(islice(c, a, b)) for a, b in pairwise(range(0, count + 500, 500))]
               for c in (one, two)]  # fmt: skip
    sketch(batches[0][:1])  # Compiles.
    ours = spent(lambda: sketch(batches[0]), options.rounds)
    loop = spent(lambda: update_one_by_one(sets[0]), options.rounds)
    batch = spent(lambda: update_by_document(sets[0]), options.rounds)
    total = sum(map(len, sets[0]))
    size = sum(len(text) for text in one)
    speed = size / ours / 1e6
    print(f"{count:,} documents, {size / 1e6:.0f} MB, {total:,} shingles, {speed:.0f} MB/s")
    print("CPU s, and how many times Ingot's:")
    for name, seconds in (
        ("Ingot, four units from text", ours),
        ("HyperLogLogPlusPlus.update", loop),
        (f"MinHash.update_batch, {PERMUTATIONS} functions", batch),
        ("both of datasketch's", loop + batch),
    ):
        print(f"  {name:<36} {seconds:7.2f} {seconds / ours:6.1f}")
    compared = compare(*(sketch(corpus).units["shingles"] for corpus in batches))
    peers = [update_by_document(corpus) for corpus in sets]
    jaccard = len(exact[0] & exact[1]) / len(exact[0] | exact[1])
    share = len(exact[0] & exact[1]) / len(exact[0])
    assert compared.jaccard is not None
    assert compared.a_in_b is not None
    counted = update_one_by_one(sets[0]).count()
    print(
        f"distinct {len(exact[0]):,}: Ingot {compared.distinct_a.value:,.0f}, peer {counted:,.0f}"
    )
    print(f"Jaccard {jaccard:.4f}: Ingot {compared.jaccard.value:.4f}, "
          f"peer {peers[0].jaccard(peers[1]):.4f}")  # fmt: skip
    print(f"of A in B {share:.4f}: Ingot {compared.a_in_b.value:.4f}, peer none")
    print(f"numpy {np.__version__}, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
