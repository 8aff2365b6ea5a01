"""Documents by seed in which every rule of datatrove's filters fires, a third of them near a bound.

Each is a piece of public prose bent towards one rule: words dropped, lines repeated, marks put in,
by an amount that is drawn on both sides of the rule's threshold. `python -m tests.peers.corpus OUT`
writes them as JSON lines.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "text"
SOURCES = ("en-web-c4-demo", "en-docs", "en-fiction", "en-textbooks", "en-classics")
STOP_WORDS = frozenset(("the", "be", "to", "of", "and", "that", "have", "with"))

Bend = Callable[[str, random.Random], str]


def documents(count: int, seed: int, every: int = 1) -> Iterator[dict[str, str]]:
    """Every `every`-th of `count` documents {id, bend, text}; the same for a seed."""
    prose = [line["text"] for name in SOURCES for line in read(DATA / f"{name}.jsonl.zst")]
    names = sorted(BENDS)
    weights = [BENDS[name][0] for name in names]
    for number in range(0, count, every):
        rng = random.Random(f"{seed}/{number}")
        (name,) = rng.choices(names, weights)
        text = BENDS[name][1](piece(rng.choice(prose), rng), rng)
        yield {"id": f"{number:06d}", "bend": name, "text": text}


def read(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a compressed JSON-lines file."""
    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def piece(text: str, rng: random.Random) -> str:
    """Lines of `text` from a random one on, about 80 to 600 words."""
    lines = text.split("\n")
    start = rng.randrange(len(lines))
    wanted, taken, words = int(rng.lognormvariate(5.3, 0.6)), [], 0
    for line in (lines[start:] + lines[:start])[:400]:
        taken.append(line)
        words += line.count(" ") + 1
        if words > wanted:
            break
    return "\n".join(taken)


def near(bound: float, rng: random.Random, spread: float = 0.25) -> float:
    """A number around `bound`, half of the time within a twentieth of it."""
    return bound * (1 + rng.uniform(-1, 1) * (spread if rng.random() < 0.5 else 0.05))


def plain(text: str, rng: random.Random) -> str:
    """As it is."""
    return text


def letters(text: str) -> str:
    """Its words of letters alone, line by line: nearly every token holds a letter then."""
    lines = (" ".join(w for w in line.split() if w.isalpha()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def cut_to_words(text: str, rng: random.Random) -> str:
    """Around Gopher's 50 words."""
    return " ".join(text.split()[: round(near(50, rng, 0.8))])


def cut_to_sentences(text: str, rng: random.Random) -> str:
    """Three to seven sentences, around C4's five, on lines of their own or not."""
    sentences = text.replace("\n", " ").split(". ")
    mark = rng.choice((". ", ".\n", "!\n", "?\n"))
    return mark.join(sentences[: rng.randint(2, 7)]) + "."


def many_words(text: str, rng: random.Random) -> str:
    """Around Gopher's 100,000 words, of few letters."""
    words = sorted({word for word in text.split() if word.isalpha()} | {"to", "and", "of"})
    count = round(near(100_000, rng, 0.02))
    return " ".join(rng.choices(words, k=count))


def word_lengths(text: str, rng: random.Random) -> str:
    """Mean word length around 3 or around 10."""
    words = text.split()
    if rng.random() < 0.35:
        return " ".join([word for word in words if len(word) <= rng.choice((2, 3, 3, 4))] * 2)
    least = rng.choice((10, 11))
    return " ".join([word.strip(".,;") for word in words if len(word) >= least] * 6) + " and the of"


def put_in(mark: str, bound: float) -> Bend:
    """Marks between the words, about `bound` for each token."""

    def bend(text: str, rng: random.Random) -> str:
        kept = letters(text).split()
        for _ in range(round(near(bound, rng) * len(kept) / (1 - bound))):
            kept.insert(rng.randrange(len(kept) + 1), mark)
        return " ".join(kept)

    return bend


def mark_lines(before: str, after: str, bound: float) -> Bend:
    """Lines that begin with `before` and end with `after`, about a share of `bound`."""

    def bend(text: str, rng: random.Random) -> str:
        share = near(bound, rng, 0.4)
        lines = reflowed(text, rng, rng.randint(20, 60))
        return "\n".join(
            f"{before}{line}{after}" if rng.random() < share else line for line in lines
        )

    return bend


def reflowed(text: str, rng: random.Random, width: int) -> list[str]:
    """The words of `text` in lines of about `width` characters."""
    lines, line = [], ""
    for word in text.split():
        line = f"{line} {word}" if line else word
        if len(line) >= width:
            lines.append(line)
            line = ""
    return [*lines, line] if line else lines


def numbers_for_words(text: str, rng: random.Random) -> str:
    """Tokens without a letter, around a fifth."""
    share = near(0.1, rng, 0.9)
    return " ".join(
        str(rng.randint(0, 10**4)) if rng.random() < share else word for word in text.split(" ")
    )


def few_stop_words(text: str, rng: random.Random) -> str:
    """None to three of the stop words."""
    kept = set(rng.sample(sorted(STOP_WORDS), rng.choice((0, 1, 1, 2, 3))))
    return " ".join(w for w in letters(text).split() if w not in STOP_WORDS or w in kept)


def repeat_lines(separator: str, by_characters: bool) -> Bend:
    """Repeated lines or paragraphs, around the bounds on their number or on their characters."""

    def bend(text: str, rng: random.Random) -> str:
        lines = reflowed(text, rng, rng.choice((20, 40, 80)))
        short = sorted(sorted(set(lines)), key=len)[: max(1, len(lines) // 4)]
        copied = [max(lines, key=len)] if by_characters else short
        share = near(0.2 if by_characters else 0.3, rng, 0.4)
        total, size = sum(map(len, lines)), len(copied[0]) if by_characters else 0
        copies = share * total / (1 - share) / size if size else share * len(lines) / (1 - share)
        for _ in range(round(copies)):
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(copied))
        return separator.join(lines)

    return bend


def repeat_filled_lines(text: str, rng: random.Random) -> str:
    """A line that comes again, around FineWeb's hundredth or tenth of the characters."""
    lines = reflowed(text, rng, rng.choice((120, 240)))
    bound = rng.choice((0.01, 0.01, 0.1))
    size = max(1, round(near(bound, rng, 0.6) * len(text)))
    line = (lines[0] + ".")[:size]
    return "\n".join([line, *lines, line])


def top_ngram(n: int, bound: float) -> Bend:
    """One n-gram again and again, around a share of the characters."""

    def bend(text: str, rng: random.Random) -> str:
        words = text.split()
        gram = words[:n]
        size, share = len(" ".join(gram)), near(bound, rng)
        copies = share * len(text) / size / (1 - share)
        for _ in range(round(copies)):
            words.insert(rng.randrange(len(words) + 1), " ".join(gram))
        return " ".join(words)

    return bend


def duplicate_ngrams(n: int, bound: float) -> Bend:
    """Runs of a little more than n words that come twice, around a share of the characters."""

    def bend(text: str, rng: random.Random) -> str:
        words = text.split()
        target, copied, pieces = near(bound, rng, 0.15) * len(text), 0.0, []
        place = 0
        while copied < target / (1 - bound) and place + n < len(words):
            length = n + rng.randint(0, 1)
            run = words[place : place + length]
            pieces.append(" ".join(run))
            copied += len("".join(run))
            place += length + rng.randint(3, 8)
        for repeated in pieces:
            words.insert(rng.randrange(place, len(words) + 1), repeated)
        return " ".join(words)

    return bend


def unended_lines(text: str, rng: random.Random) -> str:
    """Lines without a mark at their end, all but around FineWeb's eighth of them."""
    share = near(0.12, rng, 0.6)
    lines = [line.rstrip(".!?\"'") for line in reflowed(text, rng, rng.randint(35, 90))]
    return "\n".join(line + (". " * (rng.random() < share)).strip() for line in lines)


def short_lines(text: str, rng: random.Random) -> str:
    """Lines of at most thirty characters, around two thirds, each ended by a full stop."""
    words, lines, share = letters(text).split(), [], near(0.67, rng)
    while words:
        width = rng.randint(3, 5) if rng.random() < share else rng.randint(9, 16)
        lines.append(" ".join(words[:width]) + ".")
        words = words[width:]
    return "\n".join(lines)


def many_newlines(text: str, rng: random.Random) -> str:
    """Line feeds, around three for ten tokens; each line is long enough for C4 or is blank."""
    share, pieces = near(0.3, rng), []
    for line in reflowed(letters(text), rng, rng.randint(33, 60)):
        feeds = share * (len(line.split()) + 2) / (1 - share / 3)
        pieces.append(line + "." + "\n" * int(feeds + rng.random()))
    return "".join(pieces)


def c4_lines(text: str, rng: random.Random) -> str:
    """Lines that C4 cuts or that drop a document, among others."""
    lines = [line + rng.choice((".", ".", "!", "")) for line in reflowed(text, rng, 70)]
    odd = (
        "Please enable JavaScript to see this page.",
        "We use cookies as our cookie policy says.",
        "See the Terms of Use for more of this.",
        "Lorem ipsum dolor sit amet and so on.",
        "function main() { return 0; } is code.",
        "It was found in 1969[12] and again later[citation needed].",
        "Too short.",
        f"A word of {'x' * rng.choice((999, 1000, 1001))} letters stands here.",
        "And then the line ends with an ellipsis...",
        "  white space around it is not kept.  ",
    )
    for _ in range(rng.randint(1, 4)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(odd))
    return rng.choice(("\n", "\n", "\n\n", "\r\n")).join(lines)


BENDS: dict[str, tuple[float, Bend]] = {
    "plain": (2, plain),
    "words": (1, cut_to_words),
    "sentences": (1.5, cut_to_sentences),
    "many words": (1.5, many_words),
    "word lengths": (2.8, word_lengths),
    "hashes": (1.6, put_in("#", 0.1)),
    "ellipses": (2, put_in("...", 0.1)),
    "bullets": (1.2, mark_lines("- ", "", 0.9)),
    "line ellipses": (1.4, mark_lines("", "...", 0.3)),
    "numbers": (1, numbers_for_words),
    "stop words": (1.5, few_stop_words),
    "lines": (1.7, repeat_lines("\n", False)),
    "line characters": (1, repeat_lines("\n", True)),
    "paragraphs": (1.9, repeat_lines("\n\n", False)),
    "paragraph characters": (1, repeat_lines("\n\n", True)),
    "filled lines": (1.5, repeat_filled_lines),
    **{
        f"top {n}-gram": (1.2, top_ngram(n, bound)) for n, bound in ((2, 0.2), (3, 0.18), (4, 0.16))
    },
    **{
        f"duplicate {n}-grams": (1.8, duplicate_ngrams(n, bound))
        for n, bound in ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
    },
    "unended lines": (1, unended_lines),
    "short lines": (1.6, short_lines),
    "newlines": (1.5, many_newlines),
    "C4 lines": (3.6, c4_lines),
}
"""Weight and function of each way to bend a text."""


if __name__ == "__main__":
    count, seed = int(sys.argv[2]), int(sys.argv[3])
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for document in documents(count, seed):
            out.write(json.dumps(document) + "\n")
