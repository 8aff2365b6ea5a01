"""Runs under datatrove's own Python: the MinHash signature of each document.

`python datatrove_minhash.py IN OUT HASH`: JSON lines with `text` in; out a JSON line a document:
its signature, buckets end to end, or null where it has no shingle. HASH is `sha1` or `xxhash`.
Prints the CPU seconds that shingles and signatures took.
"""

import json
import logging
import sys
import tempfile
import time

logging.disable(logging.CRITICAL)
import importlib.metadata  # noqa: E402, F401  (datatrove relies on it without importing it)

from datatrove.pipeline.dedup import MinhashDedupSignature  # noqa: E402
from datatrove.pipeline.dedup.minhash import MinhashConfig  # noqa: E402
from datatrove.utils.hashing import HashConfig  # noqa: E402


def main():
    given, out, name = sys.argv[1:]
    config = MinhashConfig(hash_config=HashConfig(precision=64, hash_fc=name))
    with tempfile.TemporaryDirectory() as folder:
        signer = MinhashDedupSignature(folder, config=config)
    signer.get_shingles("Loads the tokenizer.")
    with open(given, encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    begin = time.process_time()
    signatures = []
    for text in texts:
        shingles = signer.get_shingles(text)
        buckets = signer.get_signature(shingles) if shingles.size else []
        signatures.append([value for bucket in buckets for value in bucket] or None)
    print(time.process_time() - begin)
    with open(out, "w") as file:
        file.writelines(json.dumps(signature) + "\n" for signature in signatures)


if __name__ == "__main__":
    main()
