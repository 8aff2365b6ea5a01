"""Recall of passages copied from earlier snapshots, found by passage indexes, and what these take.

    python -m tests.benchmarks.passage_recall --work FOLDER [--seed 101] [--documents 700]

Three snapshots of English documents of fresh sentences: no sentence comes twice, so nothing repeats
but what is planted. Each document of the second and third snapshot has one passage of an earlier
one at its beginning or end: a line, five sentences, or a run of so many tokens, 49 among them, one
fewer than are looked for. `dedup` runs over one snapshot after another with the indexes of those
before, and once over all three. Seeds below 1000 are for trying.

found    planted passages that are marked in their whole length with the id of their document, with
         Wilson's interval
bytes    of each part of the index, a document
equal    tables of views that are those of the one run, byte for byte
CPU s    of the last snapshot with the indexes of the others, and of the one run over all
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from stages.text.words import find_words
from tests.benchmarks.dedup_runs import Corpora, Ingot
from tests.benchmarks.extraction import table
from tests.benchmarks.labelled import wilson
from tests.benchmarks.planted_duplicates import Prose
from tests.peers.corpus import DATA

SOURCES = ("en-fiction", "en-classics", "en-textbooks", "en-textbooks-nc")
LINE, SENTENCES = "a line", "5 sentences"
TOKENS = (49, 50, 55, 60, 100, 200)
KINDS: tuple[str, ...] = (LINE, SENTENCES, *(f"{length} tokens" for length in TOKENS))
VIEWS = {LINE: "duplicate_lines@ccnet", SENTENCES: "duplicate_sentences@c4"}
SETTINGS = ("lines=true", "sentences=true", "substrings=50", "index=true")
SNAPSHOTS = (1, 2, 3)
PARAGRAPH, PARAGRAPHS = 6, 4
"""Sentences of a paragraph, paragraphs of a document."""


@dataclass(frozen=True)
class Planted:
    """Characters [start, end) of `text` stand in the text `holder` as well."""

    kind: str
    text: str
    start: int
    end: int
    holder: str


def passage(kind: str, paragraphs: list[list[str]], rng: Random) -> str:
    """A passage of a document: a line, sentences of one line, or a run of its tokens."""
    if kind == LINE:
        return " ".join(rng.choice(paragraphs))
    if kind == SENTENCES:
        first = rng.randrange(PARAGRAPH - 4)
        return " ".join(rng.choice(paragraphs)[first : first + 5])
    text = joined(paragraphs)
    tokens, length = list(find_words(text)), int(kind.split()[0])
    first = rng.randrange(len(tokens) - length + 1)
    return text[tokens[first][0] : tokens[first + length - 1][1]]


def joined(paragraphs: list[list[str]]) -> str:
    """The text of a document."""
    return "\n".join(" ".join(sentences) for sentences in paragraphs)


def snapshots(sentences: list[str], seed: int, documents: int) -> Iterator[list[str | Planted]]:
    """Three snapshots: texts, and from the second on texts with a planted passage."""
    rng = Random(f"passages/{seed}")
    order = rng.sample(range(len(sentences)), len(sentences))
    if len(order) < len(SNAPSHOTS) * documents * PARAGRAPH * PARAGRAPHS:
        raise SystemExit("too few sentences for so many documents")
    earlier: list[tuple[str, list[list[str]]]] = []
    for number in SNAPSHOTS:
        made: list[str | Planted] = []
        own: list[tuple[str, list[list[str]]]] = []
        for place in range(documents):
            paragraphs = [
                [sentences[order.pop()] for _ in range(PARAGRAPH)] for _ in range(PARAGRAPHS)
            ]
            text = joined(paragraphs)
            if number > 1:
                kind = KINDS[place % len(KINDS)]
                holder, source = rng.choice(earlier)
                while kind.endswith("tokens") and len(list(find_words(joined(source)))) < 200:
                    holder, source = rng.choice(earlier)
                copied = passage(kind, source, rng)
                gap = "\n" if kind in VIEWS else " "
                start = rng.choice([0, len(text) + 1])
                text = f"{text}{gap}{copied}" if start else f"{copied}{gap}{text}"
                made.append(Planted(kind, text, start, start + len(copied), holder))
            else:
                made.append(text)
            own.append((text, paragraphs))
        earlier += own
        yield made


class Snapshots(Corpora):
    """The three snapshots in a folder; `files` takes the number of one."""

    def __init__(self, folder: Path, made: list[list[str | Planted]]) -> None:
        super().__init__(folder)
        self._made = made

    def files(self, documents: int) -> list[Path]:
        """The JSON lines of one snapshot."""
        path = self.folder / f"snapshot-{documents}.jsonl"
        texts = (getattr(one, "text", one) for one in self._made[documents - 1])
        rows = (json.dumps({"text": text}) for text in texts)
        path.write_text("\n".join(rows) + "\n")
        return [path]


def measure(work: Path, seed: int, documents: int) -> None:
    """Print what is found and what it takes."""
    made = list(snapshots(Prose(SOURCES).sentences, seed, documents))
    folder = work / f"passages-{seed}-{documents}"
    ingot = Ingot(folder, Snapshots(folder, made))
    names = [ingot.documents(number) for number in SNAPSHOTS]
    settings = [f"passages.{one}" for one in SETTINGS] + ["recall_sample=0"]
    costs = []
    for place, name in enumerate(names):
        earlier = [f"only-{one}" for one in names[:place]]
        inputs = {
            "documents": [name],
            "earlier_documents": names[:place],
            "dedup_index": [f"{one}:dedup_index" for one in earlier],
            "passage_index": [f"{one}:passage_index" for one in earlier],
        }
        costs.append(ingot.stage("dedup", inputs, f"only-{name}", settings))
    costs.append(ingot.stage("dedup", {"documents": names}, "all", settings))
    print_found(ingot, names, made)
    print_bytes(ingot, names[0], documents)
    whole = ingot.outputs("all")["views"].named()
    alone = {
        k: v for name in names for k, v in ingot.outputs(f"only-{name}")["views"].named().items()
    }
    equal = sum(path.read_bytes() == whole[name].read_bytes() for name, path in alone.items())
    print(f"\nequal: {equal} of {len(whole)} tables of views")
    print(f"CPU s: {costs[2].cpu:.1f} for the last snapshot, {costs[3].cpu:.1f} for all at once")


def print_found(ingot: Ingot, names: list[str], made: list[list[str | Planted]]) -> None:
    """Planted passages by kind; spans elsewhere."""
    ids, spans = {}, {}
    for name in names:
        for path in ingot.outputs(name)["documents"].files():
            for row in pq.read_table(path, columns=["doc_id", "text"]).to_pylist():
                ids[row["text"]] = row["doc_id"]
        for path in ingot.outputs(f"only-{name}")["views"].files():
            spans |= {row["doc_id"]: row["spans"] for row in pq.read_table(path).to_pylist()}
    planted = [one for listed in made for one in listed if isinstance(one, Planted)]
    total, found, elsewhere = Counter[str](), Counter[str](), 0
    for one in planted:
        view = VIEWS.get(one.kind, "duplicate_substrings")
        total[one.kind] += 1
        found[one.kind] += any(
            span["view"] == view
            and span["start"] <= one.start
            and one.end <= span["end"]
            and span["label"] == ids[one.holder]
            for span in spans[ids[one.text]]
        )
        elsewhere += sum(
            span["end"] <= one.start or one.end <= span["start"] for span in spans[ids[one.text]]
        )
    rows = []
    for kind in KINDS:
        low, high = wilson(found[kind], total[kind])
        rows.append([kind, f"{found[kind]} of {total[kind]}", f"{low:.4f} to {high:.4f}"])
    print(table(("planted", "found", "interval"), rows))
    print(f"\nspans elsewhere: {elsewhere}\n")


def print_bytes(ingot: Ingot, name: str, documents: int) -> None:
    """Bytes a document by part of the index of a snapshot, and what its documents hold."""
    index = ingot.outputs(f"only-{name}")["passage_index"]
    sizes, rows = Counter[str](), Counter[str]()
    for path in index.files():
        part = path.relative_to(index.folder).parts[0]
        sizes[part] += path.stat().st_size
        rows[part] += pq.read_metadata(path).num_rows
    for path in index.files("tokens/**/*.parquet"):
        lists = pq.read_table(path)["tokens"].to_pylist()
        rows["tokens"] += sum(map(len, lists)) - len(lists)
    text = sum(
        len(text.encode())
        for path in ingot.outputs(name)["documents"].files()
        for text in pq.read_table(path)["text"].to_pylist()
    )
    cells = [
        [part, f"{sizes[part] / documents:,.0f}", f"{rows[part] / documents:,.1f}",
         f"{sizes[part] / rows[part]:.1f}"]
        for part in sorted(sizes)
    ]  # fmt: skip
    print(table(("part", "bytes a document", "entries a document", "bytes an entry"), cells))
    print(f"text: {text / documents:,.0f} bytes a document")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for corpora and stores")
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--documents", type=int, default=700, help="of each snapshot")
    chosen = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: the documents are made of {DATA}, which is not here")
        return
    measure(chosen.work, chosen.seed, chosen.documents)


if __name__ == "__main__":
    main()
