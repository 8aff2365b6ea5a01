"""Recall of `semantic_dedup` on planted rewordings, under an encoder with random weights.

    python -m tests.benchmarks.semantic_dedup [--texts 150] [--seed 1]

Each of the first web documents of C4 (`text/en-web-c4-demo`, its first 300 words) comes again with
a share of its words replaced by words drawn from all documents. The encoder is that of
`tests.benchmarks.classify`: no trained one is at hand, so this shows how embeddings of random
weights follow words in common, and nothing of paraphrases in other words. The search itself lists
every pair that the embeddings put above a floor (tests/stages/semantic_dedup).
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages.encoders.encoder import EncoderSpec, load_encoder
from stages.semantic_dedup.pairs import _mean
from tests.benchmarks.classifiers import rows as read_rows
from tests.benchmarks.classify import DATA, LENGTH, TEXTS, save_model
from tests.benchmarks.extraction import table

SHARES, FLOORS = (0.02, 0.05, 0.1, 0.2, 0.4), (0.999, 0.995, 0.99, 0.98)


def reword(words: Sequence[str], share: float, pool: Sequence[str], draw: random.Random) -> str:
    """The words with a share of them replaced."""
    changed = list(words)
    for place in draw.sample(range(len(words)), round(share * len(words))):
        changed[place] = draw.choice(pool)
    return " ".join(changed)


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    lines = [row["text"].split()[:300] for row in read_rows(options.data, TEXTS)]
    lines = [words for words in lines if len(words) >= 50][: options.texts]
    every = [word for words in lines for word in words]
    texts = [" ".join(words) for words in lines]
    for share in SHARES:
        texts += [reword(words, share, every, draw) for words in lines]
    with tempfile.TemporaryDirectory() as folder:
        save_model(texts[: len(lines)], Path(folder))
        spec = EncoderSpec(Path(folder), "none", "cpu", "float32", LENGTH, 1, LENGTH, 1, "here")
        encoder = load_encoder(spec)
        ids = [windows[0] for windows, _ in encoder.tokenize(texts)]
        states = encoder.run(ids, lambda: None)
    vectors = np.stack([_mean(state[None], [1]) for state in states])
    originals = vectors[: len(lines)]
    apart = originals @ originals.T
    np.fill_diagonal(apart, 0)
    rows = [
        (
            f"{share:.0%} of the words replaced",
            *(f"{(np.sum(originals * part, axis=1) >= floor).mean():.2f}" for floor in FLOORS),
        )
        for share, part in zip(SHARES, np.split(vectors, len(SHARES) + 1)[1:], strict=True)
    ]
    others = tuple(f"{(apart >= floor).any(axis=1).mean():.2f}" for floor in FLOORS)
    rows.append(("documents with another original there", *others))
    print(f"{len(lines)} documents, seed {options.seed}")
    print(table(["recall at cosine", *map(str, FLOORS)], rows))


if __name__ == "__main__":
    main()
