"""Documents by seed to tokenize and pack: public text of many languages, with words of their own.

    python -m tests.benchmarks.tokens_corpus FOLDER DOCUMENTS

A document is a stretch of a text of `../shared/data/text`, from a random place on and over to the
texts that follow it, of a log-normal number of characters (median 2,000, one in ten 7,200). A file
is chosen by its size, so about two thirds are English. There are 60 MB of text, so stretches come
again: one word in fifty of five letters and more is therefore halved and joined with the half of
another word of its document. An encoder's memory of words is so about as useful as on fresh text,
whose vocabulary grows with its size, and no two documents are the same.

Document n is the same in every corpus of a seed, so the first ones of a corpus are a smaller one.
"""

from __future__ import annotations

import json
import random
import re
import sys
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from tests.benchmarks.planted_duplicates import FILE_DOCUMENTS
from tests.peers.corpus import DATA, read

FILES = (
    *("ar", "de", "es", "fr", "hi", "ja", "ru", "zh"),
    *("en-classics", "en-docs", "en-fiction", "en-textbooks", "en-textbooks-nc", "en-web-c4-demo"),
)
MEDIAN_CHARACTERS, SPREAD = 2_000, 1.0
CHANGED = 0.02
_WORD = re.compile(r"[^\W\d_]{5,}")


class Texts:
    """Corpora below a folder, each made once."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.folder, self.seed = folder, seed

    def files(self, documents: int) -> list[Path]:
        """The JSON lines of so many documents, FILE_DOCUMENTS in each file."""
        folder = self.folder / f"texts-{documents}"
        if not folder.exists():
            made = folder.with_name(f"{folder.name}.unfinished")
            made.mkdir(parents=True, exist_ok=True)
            for first in range(0, documents, FILE_DOCUMENTS):
                numbers = range(first, min(first + FILE_DOCUMENTS, documents))
                with (made / f"{first:09d}.jsonl").open("w", encoding="utf-8") as out:
                    found = map(self.document, numbers)
                    out.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in found)
            made.rename(folder)
        return sorted(folder.glob("*.jsonl"))

    def document(self, number: int) -> dict[str, str]:
        """One document {id, text, language}."""
        rng = random.Random(f"{self.seed}/{number}")
        name = FILES[bisect_right(self._weights, rng.random() * self._weights[-1])]
        text = self._texts[name]
        wanted = int(rng.lognormvariate(0, SPREAD) * MEDIAN_CHARACTERS) + 1
        start = rng.randrange(len(text))
        piece = (text[start : start + wanted] + text[: max(0, start + wanted - len(text))]).strip()
        text = with_words_of_its_own(piece, rng)
        return {"id": f"{number:09d}", "text": text, "language": name[:2]}

    @cached_property
    def _texts(self) -> dict[str, str]:
        rows = {name: read(DATA / f"{name}.jsonl.zst") for name in FILES}
        return {name: "\n\n".join(row["text"] for row in found) for name, found in rows.items()}

    @cached_property
    def _weights(self) -> list[int]:
        return list(accumulate(len(self._texts[name].encode()) for name in FILES))


def with_words_of_its_own(text: str, rng: random.Random) -> str:
    """`text` with a share of CHANGED of its longer words joined from halves of two."""
    words = list(_WORD.finditer(text))
    chosen = sorted(rng.sample(range(len(words)), round(CHANGED * len(words))))
    parts, done = [], 0
    for number in chosen:
        found, other = words[number], rng.choice(words).group()
        half = len(found.group()) // 2
        parts += [text[done : found.start() + half], other[len(other) // 2 :]]
        done = found.end()
    return "".join((*parts, text[done:]))


if __name__ == "__main__":
    for path in Texts(Path(sys.argv[1])).files(int(sys.argv[2])):
        print(path)
