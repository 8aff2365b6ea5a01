"""Recall of decontamination by benchmark, length and edit, and false positives on clean texts.

    python -m tests.benchmarks.decontamination [--side development|test] [--data ../shared/data]
    python -m tests.benchmarks.decontamination --side test --clean      # every hit, to be read

Items are those of the 18 benchmarks of web.yaml, as the stage `benchmarks` reads them; a side holds
half of the items and half of the works (splits.py). Each item is planted alone in a page of prose,
edited in one way, as prompt and answer and as its prompt alone. It counts as found if the page's
hits name it. Classes go by the words of what is planted; texts of numbers by half, which are never
looked for, are a class of their own. Intervals are Wilson's at 95 %.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stages.decontaminate.config import DecontaminateConfig
from stages.decontaminate.passages import item_texts
from stages.decontaminate.search import (
    Index,
    Passage,
    find_matches,
    find_overlaps,
)
from stages.decontaminate.shingles import plain_words
from stages.examples.conversion import BadExample, Origin
from stages.examples.shapes import benchmark_row
from stages.scoring.uncertainty import wilson
from tests.benchmarks.labelled import rows_of
from tests.benchmarks.splits import FIRST_TEST_SEED, Side, select, side
from tests.benchmarks.text_edits import add_markup, change_numbers

BENCHMARKS = (
    *("arc_challenge", "arc_easy", "bbh", "boolq", "commonsenseqa", "copa", "gsm8k-test"),
    *("hellaswag", "humaneval", "lambada", "math", "mmlu-dev", "mmlu-test", "openbookqa"),
    *("piqa", "siqa", "triviaqa", "winogrande"),
)
CLEAN = (
    *("text/en-fiction", "text/en-classics", "text/en-docs", "text/en-textbooks"),
    *("text/en-textbooks-nc", "code/python-stdlib"),
)
CARRIER = "text/en-web-c4-demo"
SHARE: float = DecontaminateConfig().min_prompt_share
CLASSES = ((1, 4), (5, 7), (8, 12), (13, 10**9))
Edit = Callable[[str, random.Random], str]


class Item(NamedTuple):
    """An item of a benchmark: its row in the index, its prompt, its answer (or nothing)."""

    number: int
    benchmark: str
    prompt: str
    answer: str
    row: dict[str, Any]


def _verbatim(text: str, rng: random.Random) -> str:
    return text


def _other_punctuation(text: str, rng: random.Random) -> str:
    """Typographic quotes and dashes, other ends of sentences, commas that come and go."""
    text = text.replace("'", rng.choice(["\u2019", ""])).replace(" - ", " \u2014 ")
    text = re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text)
    text = re.sub(r"[?.!](?=\s|\Z)", rng.choice([" ?", ".", "!", ""]), text)
    return text.replace(",", rng.choice([";", "", " ,"]))


def _over_lines(text: str, rng: random.Random) -> str:
    """Broken after every few words, indented or quoted."""
    words, lines = text.split(), list[str]()
    while words:
        size = rng.randrange(2, 9)
        lines.append(" ".join(words[:size]))
        words = words[size:]
    return rng.choice(["\n", "\n    ", "\n> ", " \r\n"]).join(lines)


EDITS: dict[str, Edit] = {
    "verbatim": _verbatim,
    "other punctuation": _other_punctuation,
    "numbers changed": lambda text, rng: change_numbers(text, rng, 1),
    "markup": lambda text, rng: add_markup(text, rng, 0),  # One word is set off.
    "over lines": _over_lines,
}


def read_items(data: Path, names: Iterable[str] = BENCHMARKS) -> list[Item]:
    """All items, as `benchmarks` converts them; a text of two lines is a prompt and its answer."""
    items = list[Item]()
    for name in names:
        for number, fields in enumerate(rows_of(data, f"bench/{name}")):
            try:
                row = benchmark_row(dict(fields), Origin(str(number), name, name))
            except BadExample:
                continue
            prompt = re.sub(r"\A(?:Question|Passage|Context):\s*", "", row["prompt"])
            answer = row["choices"][row["answer"]] if row["choices"] else ""
            if not row["choices"] and len(prompt.strip().splitlines()) == 2:
                prompt, answer = prompt.strip().splitlines()
            items.append(Item(len(items), name, prompt, answer, row))
    return items


def build_index(items: Iterable[Item], config: DecontaminateConfig) -> Index:
    """The index of all items, as the stage builds it."""
    passages = [
        Passage(item.number, plain_words(text), least)
        for item in items
        for text, least in item_texts(
            item.row["prompt"], item.row["choices"], item.row["answer"], config
        )
    ]
    return Index.build(passages, config.ngram)


def length_class(text: str) -> str:
    """The class of a text by its words; texts of numbers by half are never looked for."""
    plain = plain_words(text)
    if 2 * sum(any(map(str.isalpha, word)) for word in plain) < len(plain):
        return "numbers"
    words = max(len(plain), 1)
    low, high = next(span for span in CLASSES if span[0] <= words <= span[1])
    return f"{low}+" if high == 10**9 else f"{low}-{high}"


def plant(
    items: Iterable[Item], carriers: list[str], seed: int
) -> Iterator[tuple[Item, str, str, str, str]]:
    """Item, form, edit, class, and the page that holds it."""
    rng = random.Random(seed)
    for item in items:
        forms = {"prompt and answer": f"{item.prompt} {item.answer}".strip(), "prompt": item.prompt}
        if not item.answer:
            del forms["prompt"]
        for form, text in forms.items():
            for edit, change in EDITS.items():
                page = rng.choice(carriers)
                cut = page.find("\n", len(page) // 2)
                cut = cut if cut >= 0 else len(page)
                planted = f"{page[:cut]}\n\n{change(text, rng)}\n\n{page[cut:]}"
                yield item, form, edit, length_class(text), planted


def held_items(texts: list[str], index: Index, share: float = SHARE) -> list[set[int]]:
    """The items that each text holds."""
    _, matches = find_matches(texts, index)
    overlaps = find_overlaps(matches.texts, matches.ngrams, index, share)
    held: list[set[int]] = [set() for _ in texts]
    for text, item in zip(overlaps.texts.tolist(), overlaps.items.tolist(), strict=True):
        held[text].add(item)
    return held


def measure_recall(
    items: list[Item], index: Index, carriers: list[str], seed: int, share: float = SHARE
) -> dict[tuple[str, str, str, str], Counter[str]]:
    """By benchmark, form, edit and class: pages, and those whose item was found."""
    counts: dict[tuple[str, str, str, str], Counter[str]] = defaultdict(Counter)
    batch = list[tuple[Item, str, str, str, str]]()

    def flush() -> None:
        found = held_items([planted for *_, planted in batch], index, share)
        for (item, form, edit, words, _), numbers in zip(batch, found, strict=True):
            one = counts[item.benchmark, form, edit, words]
            one["planted"] += 1
            one["found"] += item.number in numbers
        batch.clear()

    for planted in plant(items, carriers, seed):
        batch.append(planted)
        if len(batch) == 256:
            flush()
    if batch:
        flush()
    return counts


def print_recall(counts: dict[tuple[str, str, str, str], Counter[str]]) -> None:
    """Tables by class and edit, and by benchmark and class."""
    keys: tuple[tuple[str, Callable[[tuple[str, str, str, str]], tuple[str, ...]]], ...] = (
        ("form, words, edit", lambda k: (k[1], k[3], k[2])),
        ("form, words, benchmark", lambda k: (k[1], k[3], k[0])),
    )
    for name, key in keys:
        total: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for place, one in counts.items():
            total[key(place)].update(one)
        print(f"\n| {name} | planted | found | 95 % |\n| --- | --- | --- | --- |")
        for names, one in sorted(total.items()):
            low, high = wilson(one["found"], one["planted"])
            share = one["found"] / one["planted"]
            print(f"| {', '.join(names)} | {one['planted']} | {share:.4f} | {low:.4f}-{high:.4f} |")


def print_clean(
    data: Path, wanted: Side, items: list[Item], index: Index, share: float, read: bool
) -> None:
    """Documents of each source that hold an item, and with `read` each hit and its first match."""
    for name in CLEAN:
        texts = [row["text"] for row in select(rows_of(data, name), wanted)]
        held = held_items(texts, index, share)
        print(f"{name}: {sum(map(bool, held))} of {len(texts)} documents hold an item")
        for number, text in enumerate(texts) if read else ():
            _, matches = find_matches([text], index)
            for item in sorted(held[number]):
                place = next(
                    n for n, g in enumerate(matches.ngrams.tolist()) if item in index.items_with(g)
                )
                start, length = int(matches.starts[place]), int(matches.lengths[place])
                words = " ".join(plain_words(text)[start : start + length])
                print(f"  {number} {items[item].benchmark} {items[item].row['item_id']}: {words!r}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--side", choices=("development", "test"), default="development")
    parser.add_argument("--clean", action="store_true", help="print each hit in clean texts")
    parser.add_argument("--passages", default="all")
    parser.add_argument("--share", type=float, default=SHARE, help="min_prompt_share")
    arguments = parser.parse_args()
    wanted: Side = arguments.side
    items = read_items(arguments.data)
    config = DecontaminateConfig.parse({"passages": arguments.passages}, where="benchmark")
    index = build_index(items, config)
    print(f"{len(items)} items, {len(index.hashes)} n-grams; {wanted} side")
    print_clean(arguments.data, wanted, items, index, arguments.share, arguments.clean)
    if arguments.clean:
        return
    chosen = [item for item in items if side(f"{item.benchmark}:{item.row['item_id']}") == wanted]
    carriers = [row["text"] for row in rows_of(arguments.data, CARRIER)]
    half = carriers[::2] if wanted == "development" else carriers[1::2]
    seed = FIRST_TEST_SEED if wanted == "test" else 1
    print_recall(measure_recall(chosen, index, half, seed, arguments.share))


if __name__ == "__main__":
    main()
