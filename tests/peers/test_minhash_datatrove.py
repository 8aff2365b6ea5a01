"""Our `fineweb` preset signs documents with datatrove's signatures, bit for bit.

The full test runs datatrove 0.10.1 itself, whose Python INGOT_PEERS names (`setup.sh` makes it);
the small ones hold its frozen signatures of awkward texts and of some of the same documents
(`datatrove_minhash_sample.json`, written by `python -m tests.peers.test_minhash_datatrove`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))

from peers.corpus import DATA, documents

from stages.dedup.config import DedupConfig
from stages.dedup.datatrove import datatrove_shingles
from stages.dedup.minhash import MinHash

COUNT, SEED, CHARACTERS = 1_200, 6, 4_000
EVERY = 15
"""The sample is every so-many-th document."""

SAMPLE = Path(__file__).with_name("datatrove_minhash_sample.json")

Hash = Literal["sha1", "xxh64"]
HASHES: tuple[Hash, ...] = ("sha1", "xxh64")

AWKWARD = [
    "",
    " \n\t\u3000",
    "word",
    "only four words here",
    "just about five words here",
    "!!! ... --- *** ???",
    "👍 🙂 🙃 😀 😃 👩‍👩‍👧‍👦 🇩🇪 ok 👋🏽",
    "１２３ is １２３．５ and １ ＋ １ ＝ ２ in full width ０１２",
    "في عام ١٩٩٨ كان ٣٫١٤ و ١٬٠٠٠ كتاب و ٢٬٥٠٠٫٧٥ قلم",
    "१२३ रुपये और ४५.६ किलो, ७८ लोग थे यहाँ पर आज",
    "I don't think she'd've said “cannot”, ‘gonna’ or ‹dunno› — it's 5'10\" o'clock.",
    "Crème brûlée, naïve façade, Ångström, ﬁne ﬀ, ½ x², Ⅷ, ß, ẞ, İstanbul, ΣΊΣΥΦΟΣ",
    "a\u0301 \u0301 \u0302x e\u0323\u0302 \u05d0\u05b8 \u0e01\u0e31 and then more words follow",
    "1,200.50 1.5.2 3,4,5 10.000,00 0x1F v2.0.1 1e-5 -7 +3 12:30 2020-01-02 $5.99 50%",
    "字 漢字 仮名 かな 한국어 문장 입니다 ไทย ภาษา မြန်မာ text among them",
    "nul\x00byte \x07bell \x1b[0m esc \x85next \x9fapc \xa0nbsp \xadsoft \ufeffbom \u200bzw",
    "https://www.example.com/a_b?c=d&e=f#g mail me@example.org a.b.c U.S.A. e.g. i.e. etc.",
    "pneumonoultramicroscopicsilicovolcanoconiosis " * 12,
    "x" * 3000 + " " + "é" * 300 + " then some shorter words after it",
    "the same five words again " * 40,
    "IS_ALPHA IS_ALPHA is what breaks spaCy when it is written so IS_ALPHA",
    "a  b\tc\nd\r\ne\x0bf\x0cg\u2028h\u2029i\u2003j",
    "gimme lemme wanna cannot gonna gotta dont wont im ill id ain't y'all w/o and/or",
    "`` quoted '' “quoted” „quoted“ «quoted» ‚quoted‘ 「quoted」 《quoted》 【quoted】 ｑ",
]
"""A text with lone surrogates is missing: datatrove fails on it."""

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data")


@pytest.mark.full
@pytest.mark.parametrize("hash", HASHES)
def test_awkward_texts_have_the_frozen_signatures_of_datatrove(hash: Hash) -> None:
    told = json.loads(SAMPLE.read_text())["awkward"]
    assert told["texts"] == [digest(text.encode()) for text in AWKWARD], "other texts were frozen"
    assert [signed(row) for row in signatures(AWKWARD, hash)] == told[hash]


@needs_data
@pytest.mark.parametrize("hash", HASHES)
def test_documents_have_the_frozen_signatures_of_datatrove(hash: Hash) -> None:
    told = json.loads(SAMPLE.read_text())["documents"]
    texts = prose(EVERY)
    assert told["texts"] == [digest(text.encode()) for text in texts], "other documents were made"
    assert [signed(row) for row in signatures(texts, hash)] == told[hash]


@pytest.mark.full
@pytest.mark.timeout(3600)
@needs_data
@pytest.mark.parametrize("hash", HASHES)
def test_signatures_are_datatroves_bit_for_bit(hash: Hash, tmp_path: Path) -> None:
    python = os.environ.get("INGOT_PEERS")
    if not python:
        pytest.skip("INGOT_PEERS names no Python that has datatrove (tests/peers/setup.sh)")
    texts = [*AWKWARD, *prose()]

    theirs = asked(python, texts, hash, tmp_path)

    own = signatures(texts, hash)
    assert [
        place for place, pair in enumerate(zip(own, theirs, strict=True)) if len(set(pair)) > 1
    ] == []
    assert sum(row is not None for row in own) > COUNT - 20


Signature = tuple[int, ...] | None
"""Buckets end to end; None where there is no shingle, and datatrove writes none."""


def signatures(texts: Sequence[str], hash: Hash) -> list[Signature]:
    """What we make of the texts."""
    settings = DedupConfig(preset="fineweb", hash=hash).settings()
    hashes, offsets, _ = datatrove_shingles(texts, settings.ngram, hash)
    rows = MinHash(settings).signatures(hashes, offsets).tolist()
    some = (offsets[1:] > offsets[:-1]).tolist()
    return [tuple(row) if any_ else None for row, any_ in zip(rows, some, strict=True)]


def asked(python: str, texts: Sequence[str], hash: Hash, folder: Path) -> list[Signature]:
    """What datatrove makes of them."""
    given, out = folder / "documents", folder / "signatures"
    given.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    script = str(Path(__file__).with_name("datatrove_minhash.py"))
    name = "xxhash" if hash == "xxh64" else hash
    subprocess.run([python, script, str(given), str(out), name], check=True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return [row and tuple(row) for row in rows]


def prose(every: int = 1) -> list[str]:
    """English of ../shared/data, cut to a length at which datatrove takes seconds."""
    return [row["text"][:CHARACTERS] for row in documents(COUNT, SEED, every)]


def digest(content: bytes) -> str:
    """A short name of some bytes."""
    return sha256(content).hexdigest()[:16]


def signed(signature: Signature) -> str | None:
    """A short name of a signature."""
    return signature and digest(np.array(signature, dtype="<u8").tobytes())


def freeze(python: str, folder: Path) -> None:
    """Write the sample of datatrove's signatures."""
    told: dict[str, dict[str, list[str | None]]] = {}
    for name, texts in (("awkward", AWKWARD), ("documents", prose(EVERY))):
        told[name] = {"texts": [digest(text.encode()) for text in texts]}
        for hash in HASHES:
            told[name][hash] = [signed(row) for row in asked(python, texts, hash, folder)]
    SAMPLE.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        freeze(os.environ["INGOT_PEERS"], Path(made))
