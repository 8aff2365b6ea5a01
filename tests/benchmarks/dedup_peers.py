"""One deduplication by a peer, whole, by the Python of an environment that has it.

    PYTHON tests/benchmarks/dedup_peers.py PEER DOCUMENTS OUT

PEER is a name of `PEERS`, DOCUMENTS a folder of JSON-lines files, OUT a folder that is made. Each
peer leaves the kept documents or the numbers of the removed ones there, in its own form, and
`clusters` turns either into arrays; that is no part of what is measured. This file imports nothing
of the project.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

BANDS, ROWS, NGRAM = 14, 8, 5


def datatrove(documents: Path, out: Path) -> None:
    """Four stages at FineWeb's setting (its examples/fineweb.py), JSON lines in and out."""
    import importlib.metadata  # noqa: F401  (datatrove relies on it without importing it)

    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.hashing import HashConfig

    config = MinhashConfig(
        n_grams=NGRAM,
        num_buckets=BANDS,
        hashes_per_bucket=ROWS,
        hash_config=HashConfig(hash_fc="sha1", precision=64),
    )
    signatures, buckets, removed, kept = (
        str(out / name) for name in ("signatures", "buckets", "removed", "kept")
    )
    reader = JsonlReader(str(documents))
    stages = (
        (1, [reader, MinhashDedupSignature(signatures, config=config)]),
        (BANDS, [MinhashDedupBuckets(signatures, buckets, config=config)]),
        (1, [MinhashDedupCluster(buckets, removed, config=config)]),
        (1, [reader, MinhashDedupFilter(removed), JsonlWriter(kept, compression=None)]),
    )
    for number, (tasks, pipeline) in enumerate(stages):
        log = str(out / "logs" / str(number))
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=log).run()


def datatrove_fixed(documents: Path, out: Path) -> None:
    """The same without the spaCy memory zone that word_tokenizers.py opens for every document.

    The line is `with self.tokenizer.memory_zone():` in `SpaCyTokenizer.word_tokenize`: leaving the
    zone empties the cache of lexemes, so every document's words are analysed anew.
    """
    import contextlib

    import spacy

    spacy.language.Language.memory_zone = lambda self: contextlib.nullcontext()
    datatrove(documents, out)


def token_sets(documents: Path) -> Iterator[list[str]]:
    """Word 5-grams of every document, by one regular expression."""
    word = re.compile(r"\w+")
    for path in sorted(documents.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                words = word.findall(json.loads(line)["text"].lower())
                columns = [words[place:] for place in range(NGRAM)]
                yield list(map(" ".join, zip(*columns)))  # noqa: B905  (they end one by one)


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` items."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch


def rensa(documents: Path, out: Path) -> None:
    """R-MinHash; clusters of all that share a bucket."""
    from rensa import RMinHash, RMinHashLSH

    signed: list[Any] = []
    for batch in batches(token_sets(documents), 1000):
        signed += RMinHash.from_token_sets(batch, num_perm=BANDS * ROWS, seed=1)
    index = RMinHashLSH(threshold=0.8, num_perm=BANDS * ROWS, num_bands=BANDS)
    index.insert_many(signed)
    write_components(index.query_all(signed), out)


def datasketch(documents: Path, out: Path) -> None:
    """datasketch's MinHash with xxHash, its LSH; clusters of all that share a bucket."""
    import xxhash
    from datasketch import MinHash, MinHashLSH

    def signatures() -> Iterator[Any]:
        for tokens in token_sets(documents):
            minhash = MinHash(num_perm=BANDS * ROWS, hashfunc=xxhash.xxh32_intdigest)
            minhash.update_batch([token.encode() for token in tokens])
            yield minhash

    signed = list(signatures())
    index = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
    for number, minhash in enumerate(signed):
        index.insert(number, minhash)
    write_components(map(index.query, signed), out)


def write_components(found: Iterable[Sequence[int]], out: Path) -> None:
    """Write the cluster of each document: the least number in it; all others are removed.

    `found` tells for each document which ones it shares a bucket with; these tell the same of it.
    """
    parent: list[int] = []
    for number, others in enumerate(found):
        parent.append(number)
        for other in others:
            if other < number:
                union(parent, number, other)
    with (out / "components.json").open("w") as file:
        json.dump([root(parent, number) for number in range(len(parent))], file)


def root(parent: list[int], number: int) -> int:
    """The least number of a cluster."""
    while parent[number] != number:
        parent[number] = parent[parent[number]]
        number = parent[number]
    return number


def union(parent: list[int], one: int, other: int) -> None:
    """Join two clusters."""
    one, other = root(parent, one), root(parent, other)
    parent[max(one, other)] = min(one, other)


PEERS: dict[str, Callable[[Path, Path], None]] = {
    "datatrove": datatrove,
    "datatrove, fixed": datatrove_fixed,
    "rensa": rensa,
    "datasketch": datasketch,
}


def clusters(out: Path, count: int) -> tuple[list[int], list[bool]]:
    """(cluster of each document, whether it was removed), from what a peer left."""
    if (out / "components.json").exists():
        found = json.loads((out / "components.json").read_text())
        return found, [number != cluster for number, cluster in enumerate(found)]
    parent = list(range(count))
    for path in sorted((out / "buckets").glob("*.dups")):
        for _, one, _, other in struct.iter_unpack("<4I", path.read_bytes()):
            union(parent, one, other)
    removed = [False] * count
    for (number,) in struct.iter_unpack("<I", (out / "removed" / "000000.remove").read_bytes()):
        removed[number] = True
    return [root(parent, number) for number in range(count)], removed


def main() -> None:
    """Run a peer."""
    name, documents, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    out.mkdir(parents=True)
    PEERS[name](documents, out)


if __name__ == "__main__":
    main()
