"""Documents by seed, with planted near-duplicates, exact copies and boilerplate.

    python -m tests.benchmarks.planted_duplicates FOLDER [--documents 100000] [--seed 1]

Originals are fresh combinations of real sentences of the public English prose of `../shared/data`:
paragraphs are runs of a few sentences from one place, documents are cut on paragraph borders to
log-normal lengths (median 359 words, p90 1,104). Two of five stand between header and footer of one
of many sites. Of all documents 66 % are originals, 30 % near-duplicates of one (`planted_edits`),
in groups with a Pareto tail up to 200, and 4 % exact copies. Some originals share nothing but a
long licence text with each other.

Documents come in blocks that end at the numbers of `RUNGS`: a group lies in one block, anywhere in
it. So the first documents of a corpus are those of a smaller one, and the numbers of `RUNGS` hold
whole groups.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.planted_edits import Page, Supply, edited
from tests.peers.corpus import DATA, read

SOURCES = (
    "en-web-c4-demo",
    "en-docs",
    "en-fiction",
    "en-textbooks",
    "en-textbooks-nc",
    "en-classics",
)
RUNGS = (0, 1_000, 20_000, 100_000, 400_000, 1_000_000)
MEDIAN_WORDS, P90_WORDS = 359, 1104
LEAST_WORDS = 50
"""Of a document; no sentence is longer, so every document has one of its own."""
NEAR, EXACT, LICENSED = 0.30, 0.04, 0.03
"""Shares of the documents: near-duplicates, exact copies, and originals with a shared licence."""
GREATEST_GROUP = 200
TAIL = 1.2
"""Exponent of the group sizes: P(size >= n) falls as n^-TAIL."""
WITH_SITE = 0.4
DOCUMENTS_A_SITE = 100
FILE_DOCUMENTS = 10_000
_SENTENCE_END = re.compile(r"([.!?][\"'\u201d\u2019)]*)\s+(?=[\"'\u201c\u2018(]?[A-Z])")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Document:
    """A document, the group it belongs to, and how it came about."""

    number: int
    text: str
    group: int
    kind: str
    edits: tuple[str, ...] = ()


class Prose:
    """Different sentences of 5 to 50 words, in the order of their sources; `words` counts each."""

    def __init__(self, sources: tuple[str, ...] = SOURCES) -> None:
        found: dict[tuple[str, ...], tuple[str, int]] = {}
        for name in sources:
            for row in read(DATA / f"{name}.jsonl.zst"):
                for sentence in _sentences(row["text"]):
                    words = _WORD.findall(sentence.lower())
                    letters = sum(word.isalpha() for word in words)
                    if 5 <= len(words) <= LEAST_WORDS and letters > 0.8 * len(words):
                        found.setdefault(tuple(words), (sentence, len(words)))
        self.sentences = [sentence for sentence, _ in found.values()]
        self.words = np.array([count for _, count in found.values()], dtype=np.int64)


def _sentences(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n") if "\n\n" in text else text.split("\n"):
        yield from _SENTENCE_END.sub(r"\1\n", " ".join(paragraph.split())).split("\n")


@dataclass(frozen=True, eq=False)
class Block:
    """What the documents of a block are, before any text is made.

    `original`, `kind` are [documents]; the other arrays are by original: the sentences of original
    o are `sentence[start[o]:start[o + 1]]`, a paragraph begins where `paragraph` is true.
    """

    original: NDArray[np.int64]
    kind: NDArray[np.int64]
    copied: NDArray[np.int64]
    """Number within the block of the document that an exact copy repeats; else its own."""
    sentence: NDArray[np.int32]
    paragraph: NDArray[np.bool_]
    start: NDArray[np.int64]
    site: NDArray[np.int64]
    """-1: none."""
    licence: NDArray[np.int64]
    """Family of documents that share a licence text; -1: none."""


ORIGINAL, NEARLY, COPY = range(3)
KINDS = ("original", "near", "exact")


def sizes(total: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Numbers from 1 to GREATEST_GROUP - 1 with a Pareto tail, of the given sum."""
    found = np.floor(draw.random(total) ** (-1 / TAIL)).astype(np.int64)
    found = np.minimum(found, GREATEST_GROUP - 1)
    stop = int(np.searchsorted(np.cumsum(found), total))
    found = found[: stop + 1]
    found[-1] -= found.sum() - total
    return found[found > 0]


def plan(documents: int, prose: Prose, median: int, draw: np.random.Generator) -> Block:
    """Draw a block of `documents`."""
    near, copies = round(NEAR * documents), round(EXACT * documents)
    originals = documents - near - copies
    families = sizes(near, draw)
    parents = np.repeat(draw.choice(originals, len(families), replace=False), families)
    original = np.concatenate([np.arange(originals), parents, np.zeros(copies, np.int64)])
    kind = np.repeat([ORIGINAL, NEARLY, COPY], [originals, near, copies])
    copied = np.arange(documents)
    copied[originals + near :] = draw.integers(originals + near, size=copies)
    original = original[copied]
    order = draw.permutation(documents)
    place = np.empty_like(order)
    place[order] = np.arange(documents)
    sentence, paragraph, start = _stream(originals, prose, median, draw)
    licensed = sizes(round(LICENSED * documents), draw)
    licence = np.full(originals, -1)
    chosen = draw.choice(originals, licensed.sum(), replace=False)
    licence[chosen] = np.repeat(np.arange(len(licensed)), licensed)
    site = draw.integers(1 + documents // DOCUMENTS_A_SITE, size=originals)
    site[draw.random(originals) >= WITH_SITE] = -1
    return Block(
        original[order],
        kind[order],
        place[copied[order]],
        sentence,
        paragraph,
        start,
        site,
        licence,
    )


def _stream(
    originals: int, prose: Prose, median: int, draw: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int64]]:
    """Runs of sentences end to end, cut into `originals` pieces of log-normal lengths."""
    sigma = np.log(P90_WORDS / MEDIAN_WORDS) / 1.2816  # The normal's 90th percentile.
    wanted = np.maximum(draw.lognormal(np.log(median), sigma, originals), LEAST_WORDS)
    runs = int(wanted.sum() / prose.words.mean() / 3 * 1.05) + 50
    length = draw.integers(1, 6, size=runs)
    first = draw.integers(len(prose.sentences) - 5, size=runs)
    begin = np.cumsum(length) - length
    sentence = np.repeat(first - begin, length) + np.arange(length.sum())
    paragraph = np.zeros(len(sentence), dtype=bool)
    paragraph[begin] = True
    stop = np.searchsorted(np.cumsum(prose.words[sentence]), np.cumsum(wanted)) + 1
    assert stop[-1] <= len(sentence), "the stream of sentences is too short"
    start = np.concatenate([[0], stop])
    paragraph[start[:-1]] = True
    return sentence.astype(np.int32), paragraph, start


class Corpus:
    """The documents of a seed; `median` is the median length in words before edits."""

    def __init__(self, seed: int = 1, median: int = MEDIAN_WORDS, prose: Prose | None = None):
        self.seed, self.median, self._prose = seed, median, prose
        self._edges = lru_cache(maxsize=None)(self._edges_of)

    @cached_property
    def prose(self) -> Prose:
        """Read when it is first asked for."""
        return self._prose or Prose()

    def documents(self, count: int) -> Iterator[Document]:
        """The first `count` documents."""
        groups = 0
        for rung, (begin, end) in enumerate(pairwise((*RUNGS, 10 * RUNGS[-1]))):
            if begin >= count:
                return
            draw = np.random.default_rng([self.seed, rung])
            block = plan(end - begin, self.prose, self.median, draw)
            for index in range(min(end, count) - begin):
                yield self._document(block, rung, begin, index, groups)
            groups += len(block.site)

    def _document(self, block: Block, rung: int, begin: int, index: int, groups: int) -> Document:
        original, source = int(block.original[index]), int(block.copied[index])
        page, edits = self._page(block, rung, original), list[str]()
        if block.kind[source] == NEARLY:
            rng = Random(f"{self.seed}/{begin + source}")
            sites = 1 + len(block.kind) // DOCUMENTS_A_SITE
            supply = Supply(
                lambda rng: rng.choice(self.prose.sentences),
                lambda rng: self._edges(rung, rng.randrange(sites)),
            )
            page, edits = edited(page, rng, supply)
        kind = KINDS[block.kind[index]]
        if block.licence[original] >= 0:
            kind += ", licensed"
        return Document(begin + index, page.text(), groups + original, kind, tuple(edits))

    def _page(self, block: Block, rung: int, original: int) -> Page:
        begin, end = block.start[original], block.start[original + 1]
        paragraphs: list[list[str]] = []
        for number, is_first in zip(
            block.sentence[begin:end].tolist(), block.paragraph[begin:end].tolist(), strict=True
        ):
            if is_first:
                paragraphs.append([])
            paragraphs[-1].append(self.prose.sentences[number])
        site, family = int(block.site[original]), int(block.licence[original])
        header, footer = self._edges(rung, site) if site >= 0 else ("", "")
        if family >= 0:
            footer = self._licence(rung, family)
        return Page(header, paragraphs, footer, "\n" if original % 2 else "\n\n")

    def _edges_of(self, rung: int, site: int) -> tuple[str, str]:
        """Header and footer of a site: a bar of links; sentences of law and a name."""
        rng = Random(f"{self.seed}/{rung}/site/{site}")
        some = self.prose.sentences
        words = [word for _ in range(4) for word in _WORD.findall(rng.choice(some).title())]
        name, bar = " ".join(words[:2]), " | ".join(words[2 : rng.randint(6, 16)])
        law = " ".join(rng.choice(some) for _ in range(rng.randint(0, 3)))
        return f"{name} | {bar}", f"{law} \u00a9 {rng.randint(1999, 2024)} {name}. {words[3]}"

    def _licence(self, rung: int, family: int) -> str:
        rng = Random(f"{self.seed}/{rung}/licence/{family}")
        return " ".join(rng.choice(self.prose.sentences) for _ in range(rng.randint(4, 16)))


def write(folder: Path, corpus: Corpus, count: int) -> list[Path]:
    """Write the first `count` documents as JSON lines and what they are as `planted.jsonl`."""
    folder.mkdir(parents=True)
    paths: list[Path] = []
    with (folder / "planted.jsonl").open("w", encoding="utf-8") as planted:
        documents = corpus.documents(count)
        for start in range(0, count, FILE_DOCUMENTS):
            paths.append(folder / "documents" / f"{start // FILE_DOCUMENTS:05d}.jsonl")
            paths[-1].parent.mkdir(exist_ok=True)
            with paths[-1].open("w", encoding="utf-8") as out:
                for _ in range(min(FILE_DOCUMENTS, count - start)):
                    one = next(documents)
                    row = {"id": f"{one.number:08d}", "text": one.text}
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
                    fate = {"group": one.group, "kind": one.kind, "edits": one.edits}
                    planted.write(json.dumps(fate) + "\n")
    return paths


def plainly_written(planted: Path) -> NDArray[np.bool_]:
    """[documents] Whether no one of a document's group was given full-width letters or accents.

    Not every peer folds those, so what it misses of the others says more of its method.
    """
    rows = [json.loads(line) for line in planted.open()]
    group = np.array([row["group"] for row in rows])
    marked = np.array([not {"full width", "marks"}.isdisjoint(row["edits"]) for row in rows])
    return ~np.isin(group, group[marked])


def main() -> None:
    """Write a corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--median-words", type=int, default=MEDIAN_WORDS)
    chosen = parser.parse_args()
    write(chosen.folder, Corpus(chosen.seed, chosen.median_words), chosen.documents)


if __name__ == "__main__":
    main()
