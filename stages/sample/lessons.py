"""Conversations, preferences, questions and benchmark items from docstrings of held-out modules.

Modules of benchmark items are neither in the crawl nor in the code.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from stages.sample.crawl import page_text
from stages.sample.modules import Entry, Module

CHOICES = 4
PIECE, PIECES = 2000, 3
"""Characters of a text item (at least, up to the end of a paragraph), and items a module."""
NGRAM = 13
"""Words that an item and a text must share in a row to count as one having seen the other."""
LEAST_WORDS = 4
"""Words of a minimal pair: fewer stand in too many texts."""


def summary(doc: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(re.split(r"\n\s*\n", doc.strip())[0].split())


def teachable_entries(modules: Sequence[Module], most_words: int | None = None) -> list[Entry]:
    """Entries with something to tell, each summary once, in the order of the modules."""
    entries: dict[str, Entry] = {}
    for entry in (entry for module in modules for entry in module.entries):
        words = summary(entry.doc).split()
        if len(words) >= 4 and (most_words is None or len(words) <= most_words):
            entries.setdefault(" ".join(words), entry)
    return list(entries.values())


def docstring_items(modules: Sequence[Module], seed: int) -> list[dict[str, Any]]:
    """Multiple choice: which summary belongs to a name and signature, among four of like length."""
    entries = teachable_entries(modules, most_words=60)
    if len(entries) < CHOICES:
        return []
    return [_item(n, entry, entries, seed) for n, entry in enumerate(entries)]


def _item(n: int, entry: Entry, entries: Sequence[Entry], seed: int) -> dict[str, Any]:
    rng = random.Random(f"{seed}/item/{entry.module}.{entry.name}")
    right = summary(entry.doc)
    others = [summary(e.doc) for e in entries if e is not entry]
    pool = rng.sample(others, min(12, len(others)))
    pool.sort(key=lambda text: (abs(len(text) - len(right)), text))
    choices = [right, *pool[: CHOICES - 1]]
    rng.shuffle(choices)
    return {
        "benchmark": "docstrings",
        "item_id": f"docstrings-{n:04d}",
        "form": "multiple_choice",
        "prompt": f"{entry.module}.{entry.name}{entry.signature}:",
        "choices": [f" {text}" for text in choices],
        "answer": choices.index(right),
    }


def text_items(modules: Sequence[Module]) -> list[dict[str, Any]]:
    """Text for bits per byte: the first pieces of each module's pages, as the crawl's are read."""
    return [
        {
            "benchmark": "held_out_modules",
            "item_id": f"{module.name}-{n}",
            "form": "text",
            "prompt": piece,
            "choices": [],
            "answer": None,
        }
        for module in modules
        for n, piece in enumerate(
            islice(cut_pieces("\n\n".join(page_text(page.html) for page in module.pages)), PIECES)
        )
    ]


def cut_pieces(text: str) -> Iterator[str]:
    """A module's text cut at paragraphs into pieces of at least `PIECE` characters; no rest."""
    piece = ""
    for paragraph in re.split(r"\n\s*\n", text):
        piece += paragraph.rstrip() + "\n\n"
        if len(piece) >= PIECE:
            yield piece.strip("\n") + "\n"
            piece = ""


def drop_shared(items: Sequence[dict[str, Any]], texts: Iterable[str]) -> list[dict[str, Any]]:
    """Items that share no 13-gram of words with any of `texts`; so only planted leaks leak.

    A minimal pair (its prompt is empty) that has fewer words than that goes where a text has all of
    them in a row, or where they are fewer than `LEAST_WORDS`.
    """
    words = [" ".join(_words(" ".join([item["prompt"], *_right(item)]))) for item in items]
    grams = [_grams(text) for text in words]
    wanted = set[str]().union(*grams)
    pairs = {text for text, item in zip(words, items, strict=True) if not item["prompt"]}
    starts = {text: " ".join(text.split()[:LEAST_WORDS]) for text in pairs}
    seen = {text for text in pairs if text.count(" ") < LEAST_WORDS - 1}
    for text in texts:
        joined, own = f" {' '.join(_words(text))} ", _grams(text, LEAST_WORDS)
        seen |= wanted & _grams(text)
        seen |= {pair for pair, start in starts.items() if start in own and f" {pair} " in joined}
    return [
        item
        for item, text, own in zip(items, words, grams, strict=True)
        if text not in seen and not own & seen
    ]


def _right(item: dict[str, Any]) -> list[str]:
    return [] if item["answer"] is None else [item["choices"][item["answer"]]]


def _grams(text: str, size: int = NGRAM) -> set[str]:
    tokens = _words(text)
    return {" ".join(tokens[i : i + size]) for i in range(len(tokens) - size + 1)}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


QUESTIONS = (
    "What does `{name}` do?", "Explain `{name}` from Python's `{module}` module.",
    "I am reading code that uses `{name}`. What is it for?", "In a few words, what is `{name}`?",
    "Describe the {kind} `{short}` of the module `{module}`.", "How would you document `{name}`?",
    "Can you tell me what the {kind} `{name}` is good for?",
)  # fmt: skip
FOLLOW_UPS = ("How is it called?", "What is its signature?", "Which arguments does it take?")
MORE = ("Is there more to know?", "Please go on.", "Tell me more.")
SYSTEM = "You explain Python's standard library briefly and correctly."

Message = dict[str, str]


def conversations(modules: Sequence[Module], seed: int) -> list[dict[str, Any]]:
    """One conversation an entry: a question and its answer, often with a second turn."""
    return [{"messages": _conversation(entry, seed)} for entry in teachable_entries(modules)]


def _conversation(entry: Entry, seed: int) -> list[Message]:
    rng = random.Random(f"{seed}/conversation/{entry.module}.{entry.name}")
    messages = [_message("system", SYSTEM)] if rng.random() < 0.1 else []
    messages += [_message("user", question(entry, rng)), _message("assistant", answer(entry))]
    rest = re.split(r"\n\s*\n", entry.doc.strip())[1:]
    if rest and rng.random() < 0.4:
        messages += [_message("user", rng.choice(MORE)), _message("assistant", rest[0].rstrip())]
    if entry.signature != "(...)" and rng.random() < 0.3:
        call = f"`{entry.module}.{entry.name}{entry.signature}`"
        messages += [_message("user", rng.choice(FOLLOW_UPS)), _message("assistant", call)]
    return messages


def preferences(modules: Sequence[Module], seed: int) -> list[dict[str, Any]]:
    """One pair an entry: the right answer, and a wrong, cut or repeating one."""
    entries = teachable_entries(modules)
    pairs = []
    for n, entry in enumerate(entries):
        rng = random.Random(f"{seed}/preference/{entry.module}.{entry.name}")
        chosen = answer(entry)
        wrong = answer(entries[(n + rng.randrange(1, len(entries))) % len(entries)])
        prompt = [_message("user", question(entry, rng))]
        rejected = _worse(chosen, wrong, ("wrong", "cut", "repeating")[n % 3])
        pairs.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    return pairs


def _worse(chosen: str, wrong: str, manner: str) -> str:
    words = chosen.split()
    if manner == "cut":
        return " ".join(words[: max(1, len(words) // 3)])
    if manner == "repeating":
        return " ".join([chosen] * 3)
    return wrong


def question(entry: Entry, rng: random.Random) -> str:
    """A question about an entry, in one of several forms."""
    return rng.choice(QUESTIONS).format(
        name=f"{entry.module}.{entry.name}",
        short=entry.name,
        module=entry.module,
        kind=entry.kind,
    )


def answer(entry: Entry) -> str:
    """What an assistant says about an entry: a sentence that names it, then its summary."""
    named = f"`{entry.name}` is a {entry.kind} of the module `{entry.module}`."
    return f"{named} {summary(entry.doc)}"


def question_items(
    taught: Sequence[Module], held_out: Sequence[Module], seed: int
) -> list[dict[str, Any]]:
    """A question an entry, of modules that conversations are about and of those held out.

    `choices` holds what an answer should name: the object that the question is about.
    """
    return [
        {
            "benchmark": benchmark,
            "item_id": f"{entry.module}.{entry.name}",
            "form": "question",
            "prompt": question(
                entry, random.Random(f"{seed}/question/{entry.module}.{entry.name}")
            ),
            "choices": [entry.name],
            "answer": 0,
        }
        for benchmark, modules in (("questions_seen", taught), ("questions_held_out", held_out))
        for entry in teachable_entries(modules)
    ]


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
