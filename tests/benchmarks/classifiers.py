"""Classifiers that Ingot trains, against labels by people, beside public tools.

    python -m tests.benchmarks.classifiers [--data ../shared/data] [--scikit PYTHON]
        [--datatrove PYTHON]

Quality: `labels/dclm-human-quality`, web documents that most judges of DCLM called good or bad. No
label is learnt from: the reference is textbooks and documentation, or instructions with answers
(as DCLM's OpenHermes and ELI5, in small); the contrast is C4 and the pages of the shared crawl.
Toxicity: seven tenths of each labelled set (by a hash of the text) are learnt from, the rest is
told. The settings were chosen on seven and three tenths of the part that is learnt from.

ROC AUC with DeLong's interval at 95 %; a difference is ours less the baseline's, its interval the
middle 95 % of 1,000 seeded draws of as many texts of each class. `--scikit` and `--datatrove` are
the Pythons of environments with those tools; without them their rows are missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.main_text import resiliparse_text
from stages.language_model.classifier import CONTRAST, REFERENCE, Classifier, score_texts
from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
from stages.language_model.perplexity import NgramModel, WordTokens, line_scores
from stages.quality_models.config import ClassifierConfig
from stages.quality_models.metrics import roc_auc
from stages.quality_models.models import train, write_lines
from stages.text.draw import draw
from tests.benchmarks.extraction import load_pages, table

Floats = NDArray[np.float64]
Labelled = tuple[str, int]
DATA = Path("../shared/data")
PEERS = Path(__file__).with_name("classifier_peers.py")

BOOKS = ("text/en-textbooks", "text/en-textbooks-nc", "text/en-docs")
INSTRUCTIONS = (
    "sft/dolly-hhrlhf",
    "sft/gpteacher",
    "sft/alpaca-en-demo",
    "sft/self-instruct-seed",
)
C4 = "text/en-web-c4-demo"
TOXIC = {
    "davidson-hate": ("hate", "offensive"),
    "surge-toxicity": ("toxic",),
    "multilingual-hatecheck": ("hateful",),
}
QUALITY = ClassifierConfig(buckets=200_000)
TOXICITY = ClassifierConfig(
    name="toxicity",
    learning_rate=0.5,
    epochs=25,
    dim=32,
    subword_min=3,
    subword_max=6,
    lower_case=True,
    buckets=200_000,
)
TEST_SHARE, ROUNDS = 0.3, 1_000


class Sides(NamedTuple):
    """Labelled texts to learn from and to be judged by; no text is on both sides."""

    train: list[Labelled]
    test: list[Labelled]


def rows(data: Path, name: str) -> list[dict[str, Any]]:
    """The rows of `name`.jsonl.zst."""
    import zstandard

    packed = (data / f"{name}.jsonl.zst").read_bytes()
    plain = zstandard.ZstdDecompressor().stream_reader(packed).read()
    return [json.loads(line) for line in plain.splitlines()]


def toxicity_sides(data: Path, name: str) -> Sides:
    """A labelled set in two, each text once with its first label; 1 is toxic."""
    labels: dict[str, int] = {}
    for row in rows(data, f"labels/{name}"):
        labels.setdefault(row["text"], int(row["label"] in TOXIC[name]))
    held = {text for text in labels if draw(text, "labelled split") < TEST_SHARE}
    return Sides(
        [one for one in labels.items() if one[0] not in held],
        [one for one in labels.items() if one[0] in held],
    )


def quality_labels(data: Path) -> list[Labelled]:
    """DCLM's judged documents; 1 is good."""
    return [
        (row["text"], int(row["label"] == "good"))
        for row in rows(data, "labels/dclm-human-quality")
    ]


def texts_of(data: Path, names: Iterable[str]) -> list[str]:
    """Texts, or the turns of conversations joined by line feeds."""
    found = [row for name in names for row in rows(data, name)]
    return [row.get("text") or "\n".join(m["content"] for m in row["messages"]) for row in found]


def web_texts(data: Path, crawl: bool = True) -> list[str]:
    """C4's documents, and the English pages of the crawl by Resiliparse, DCLM's extractor."""
    pages = load_pages(data) if crawl else []
    texts = (resiliparse_text(page.html) for page in pages if page.language == "en")
    return texts_of(data, [C4]) + [text for text in texts if len(text.split()) > 30]


def trained(
    reference: Sequence[str], contrast: Sequence[str], config: ClassifierConfig, folder: Path
) -> Classifier:
    """A classifier of two lists of texts, in the order of the stage: by a hash of the text."""
    both = [(REFERENCE, text) for text in reference] + [(CONTRAST, text) for text in contrast]
    both.sort(key=lambda one: draw(one[1], f"order of quality models {config.seed}"))
    lines, model = folder / "lines.txt", folder / f"{draw(both[0][1], str(len(both)))}.bin"
    write_lines(both, lines, lower_case=config.lower_case)
    train(lines, model, config, lambda: None)
    return Classifier(model, REFERENCE, config.lower_case)


def toxicity_scores(sides: Sides, folder: Path) -> Floats:
    """Scores of the test texts by a classifier of the others."""
    toxic, other = ([text for text, label in sides.train if label == one] for one in (1, 0))
    model = trained(toxic, other, TOXICITY, folder)
    return np.array(score_texts(model, [text for text, _ in sides.test]))


def likelihoods(reference: Sequence[str], texts: Sequence[str], folder: Path) -> Floats:
    """Minus the perplexity of each text under an n-gram model of the reference."""
    tokens = WordTokens.from_config(NgramConfig())
    lines, _ = tokens.lines(reference)
    data, ends = lines.data.tobytes(), lines.offsets.tolist()
    split = [data[a:b].decode().split() for a, b in pairwise(ends)]
    estimate([split], folder / "n-grams", NgramConfig())
    model = NgramModel.load(folder / "n-grams")
    return -line_scores(model, tokens, texts).perplexities()


def bad_word_scores(data: Path, texts: Sequence[str]) -> Floats:
    """Words of LDNOOBW's lists, of all languages, as a share of the words of each text."""
    import regex

    terms = sorted({row["term"].casefold() for row in rows(data, "blocklists/ldnoobw")})
    spaced = [t for t in terms if not regex.search(r"[\p{Han}\p{Kana}\p{Hangul}\p{Thai}]", t)]
    joined = "|".join(map(regex.escape, sorted(spaced, key=len, reverse=True)))
    pattern = regex.compile(rf"(?<!\w)(?:{joined})(?!\w)")
    dense = [term for term in terms if term not in set(spaced)]
    return np.array(
        [
            (len(pattern.findall(text)) + sum(text.count(t) for t in dense)) / (len(words) or 1)
            for text in (text.casefold() for text in texts)
            if (words := text.split()) is not None
        ]
    )


def area(found: Floats, labelled: Sequence[Labelled]) -> dict[str, float]:
    """ROC AUC with its interval."""
    labels = np.array([label for _, label in labelled])
    return roc_auc(found[labels == 1], found[labels == 0])


def difference(ours: Floats, theirs: Floats, labelled: Sequence[Labelled]) -> tuple[float, ...]:
    """Our area less theirs on the same texts: value, low, high."""
    labels = np.array([label for _, label in labelled])
    classes = [np.flatnonzero(labels == label) for label in (1, 0)]
    random = np.random.default_rng(1)

    def gap(positive: NDArray[Any], negative: NDArray[Any]) -> float:
        areas = [roc_auc(of[positive], of[negative])["value"] for of in (ours, theirs)]
        return areas[0] - areas[1]

    drawn = [gap(*(random.choice(c, len(c)) for c in classes)) for _ in range(ROUNDS)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return gap(*classes), float(low), float(high)


def peer(python: str | None, name: str, request: dict[str, Any]) -> Floats | None:
    """Scores by a public tool in an environment of its own; None without one."""
    if python is None:
        return None
    done = subprocess.run(
        [python, str(PEERS), name],
        input=json.dumps(request), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return np.array(json.loads(done.stdout.splitlines()[-1]))


def report(
    title: str, ours: dict[str, Floats], theirs: dict[str, Floats | None], on: list[Labelled]
) -> str:
    """A table: ours, then each baseline beside the first of ours."""
    first = next(iter(ours.values()))
    lines: list[list[object]] = []
    for name, found in {**ours, **theirs}.items():
        if found is None:
            continue
        one = area(found, on)
        told = "" if name in ours else "{:+.3f} [{:+.3f}, {:+.3f}]".format(
            *difference(first, found, on)
        )  # fmt: skip
        interval = f"[{one['low']:.3f}, {one['high']:.3f}]"
        lines.append([name, f"{one['value']:.3f}", interval, told])
    positive = sum(label for _, label in on)
    head = f"{title}: {len(on):,} texts, {positive:,} of them of the class that is sought\n"
    return head + table(["", "ROC AUC", "95 %", "first less this"], lines)


def quality_report(data: Path, folder: Path, scikit: str | None, datatrove: str | None) -> str:
    """Good and bad web documents."""
    labelled = quality_labels(data)
    texts = [text for text, _ in labelled]
    contrast = web_texts(data)
    references = {"textbooks and docs": BOOKS, "instructions": INSTRUCTIONS}
    ours: dict[str, Floats] = {}
    theirs: dict[str, Floats | None] = {}
    for name, files in references.items():
        reference = texts_of(data, files)
        ours[f"Ingot, {name}"] = np.array(
            score_texts(trained(reference, contrast, QUALITY, folder), texts)
        )
        pairs = [(t, 1) for t in reference] + [(t, 0) for t in contrast]
        theirs[f"tf-idf + logistic regression, {name}"] = peer(
            scikit, "tf-idf", {"train": pairs, "texts": texts}
        )
    theirs["Gopher rules of datatrove"] = peer(datatrove, "gopher", {"texts": texts})
    theirs["perplexity under textbooks"] = likelihoods(texts_of(data, BOOKS[:2]), texts, folder)
    theirs["length in characters"] = np.array([float(len(text)) for text in texts])
    return report("Quality, DCLM's judges", ours, theirs, labelled)


def toxicity_report(data: Path, name: str, sides: Sides, folder: Path, scikit: str | None) -> str:
    """Toxic and other comments."""
    texts = [text for text, _ in sides.test]
    theirs = {
        "tf-idf + logistic regression": peer(
            scikit, "tf-idf", {"train": sides.train, "texts": texts}
        ),
        "share of LDNOOBW words": bad_word_scores(data, texts),
    }
    return report(
        f"Toxicity, {name}", {"Ingot": toxicity_scores(sides, folder)}, theirs, sides.test
    )


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--scikit")
    parser.add_argument("--datatrove")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides = {name: toxicity_sides(given.data, name) for name in TOXIC}
        for name, one in sides.items():
            print(toxicity_report(given.data, name, one, folder, given.scikit), end="\n\n")
        english = sides["davidson-hate"].train + sides["surge-toxicity"].train
        for name in ("davidson-hate", "surge-toxicity"):
            both = Sides(english, sides[name].test)
            title = f"{name}, learnt from both English sets"
            print(toxicity_report(given.data, title, both, folder, given.scikit), end="\n\n")
        print(quality_report(given.data, folder, given.scikit, given.datatrove))


if __name__ == "__main__":
    main()
