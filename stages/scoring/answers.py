"""What a written answer is worth: what is taken out of it, what that is compared with, the scores.

A task says how (`tasks.json`): `extraction` has rules by name, each with a score of its own (those
of GSM8K are `strict` and `flexible`), `normalise` what is ignored where answer and reference are
compared. The rules are those of lm-evaluation-harness's filters and `exact_match`, so that equal
answers get equal scores. Patterns run under a time limit: one that needs too long ends the stage
with an error, so that the clock never decides a score.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

import pyarrow as pa
import regex

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS
from stages.scoring.latex import last_boxed, same_latex
from stages.scoring.observations import ANSWERS, ItemName

PATTERN_SECONDS = 5.0
"""Of one pattern on one answer; usual ones need microseconds."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What a model wrote of an item: a row of `answers.parquet`.

    `formulation` and `shots` are None where it was put as its row came, which are items of the
    form `question`.
    """

    benchmark: str
    item_id: str
    formulation: str | None
    shots: int | None
    sample: int
    prompt_digest: str
    text: str
    token_log_probabilities: tuple[float, ...]
    ending: str
    references: tuple[str, ...]
    chat: bool

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Answer:
        """The inverse of `asdict`, whose sequences may have come in lists."""
        lists = {name: tuple(values[name]) for name in ("token_log_probabilities", "references")}
        return cls(**{**values, **lists})

    @property
    def name(self) -> ItemName:
        """(benchmark, item_id)."""
        return self.benchmark, self.item_id

    @property
    def request(self) -> tuple[str, str, str | None, int | None]:
        """What it shares with the other samples of its item, asked in the same way."""
        return self.benchmark, self.item_id, self.formulation, self.shots


def to_table(answers: Iterable[Answer]) -> pa.Table:
    """Rows of `answers.parquet`."""
    schema = KINDS["evaluation"].tables[ANSWERS].arrow()
    return pa.Table.from_pylist([asdict(one) for one in answers], schema=schema)


def from_table(table: pa.Table) -> list[Answer]:
    """The inverse of `to_table`."""
    return [Answer.from_plain(row) for row in table.to_pylist()]


@dataclass(frozen=True)
class Extraction:
    """A rule that takes an answer out of a text.

    What the `take` match of `pattern` holds, without space around it: its first group that is not
    empty, or all of it without groups. With `boxed` what the last `\\boxed{}` holds, in that what
    the pattern matches. No pattern: all of the text.
    """

    name: str
    pattern: str = ""
    take: Literal["first", "last"] = "first"
    boxed: bool = False

    def extract(self, text: str) -> str | None:
        """The answer; None if there is none."""
        if self.boxed:
            text = last_boxed(text) or ""
            if not text:
                return None
        if not self.pattern:
            return text.strip()
        matches = run_pattern(self.pattern, lambda one, seconds: one.findall(text, timeout=seconds))
        if not matches:
            return None
        match = matches[0 if self.take == "first" else -1]
        if isinstance(match, tuple):
            match = next((group for group in match if group), None)
        return None if match is None else str(match).strip()


@dataclass(frozen=True)
class Normalise:
    """What does not count where an answer is compared: matches of `patterns`, then case, then ASCII
    punctuation. With `math` two ways to write the same LaTeX are equal."""

    case: bool = False
    punctuation: bool = False
    patterns: tuple[str, ...] = ()
    math: bool = False

    def apply(self, text: str) -> str:
        """What is left of a text."""
        for pattern in self.patterns:
            text = _without(pattern, text)
        if self.case:
            text = text.lower()
        return text.translate(_PUNCTUATION) if self.punctuation else text

    def equal(self, answer: str, reference: str) -> bool:
        """Whether an answer is a reference."""
        answer, reference = self.apply(answer), self.apply(reference)
        return answer == reference or (self.math and same_latex(answer, reference))


def run_pattern(pattern: str, use: Callable[[Any, float], T]) -> T:
    """Use a compiled pattern of a task. InputError if it is none, or takes too long."""
    try:
        return use(_compiled(pattern), PATTERN_SECONDS)
    except regex.error as error:
        raise InputError(f"{error}", where=f"pattern {pattern!r}") from error
    except TimeoutError:
        raise InputError(
            f"it needs more than {PATTERN_SECONDS:g} s on one answer",
            where=f"pattern {pattern!r}",
            hint="write it without repetitions inside of repetitions",
        ) from None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    return regex.compile(pattern)


def _without(pattern: str, text: str) -> str:
    return run_pattern(pattern, lambda one, seconds: str(one.sub("", text, timeout=seconds)))


def is_right(answer: str | None, references: Sequence[str], normalise: Normalise) -> bool:
    """Whether an answer is one of the references; none at all is wrong."""
    return answer is not None and any(normalise.equal(answer, one.strip()) for one in references)


NAMED = "named_in_a_sentence"
"""Metric of answers to items of the form `question`."""
LEAST_WORDS = 4


def names_in_sentence(answer: str, name: str) -> bool:
    """Whether a whole sentence of `answer` holds `name`, which no letter or digit goes on from.

    A sentence has `LEAST_WORDS` words or more, up to a full stop or a question or exclamation mark.
    So the model keeps to the question and ends what it begins; whether the answer is true is
    another matter.
    """
    named = regex.compile(rf"(?<!\w){regex.escape(name)}(?!\w)")
    return any(
        sentence[-1] in ".!?" and len(sentence.split()) >= LEAST_WORDS and named.search(sentence)
        for sentence in regex.split(r"(?<=[.!?])\s+", answer.strip())
        if sentence
    )


CHRF_ORDER, CHRF_BETA = 6, 2
"""Longest character n-gram, and how much more recall counts than precision."""


def chrf(answer: str, references: Sequence[str]) -> float:
    """Overlap of character n-grams with the nearest reference, in [0, 1] (Popović 2015, chrF2).

    As sacrebleu's `sentence_chrf`: without space, precision and recall averaged over the orders
    that both texts have. A score of a corpus from its sums of n-grams is another number.
    """
    return max((_chrf(answer, one) for one in references), default=0.0)


def string_match_all(answer: str, references: Sequence[str]) -> float:
    """The share of references that an answer holds, upper and lower case alike.

    RULER's metric of needles, variables and words (scripts/eval/synthetic/constants.py). ValueError
    without a reference.
    """
    if not references:
        raise ValueError("no reference to match")
    held = sum(one.lower() in answer.lower() for one in references)
    return held / len(references)


def string_match_part(answer: str, references: Sequence[str]) -> float:
    """1 where an answer holds any of the references, else 0: RULER's metric of questions.

    ValueError without a reference.
    """
    if not references:
        raise ValueError("no reference to match")
    return float(any(one.lower() in answer.lower() for one in references))


def _chrf(answer: str, reference: str) -> float:
    texts = ["".join(text.split()) for text in (answer, reference)]
    precisions, recalls = [], []
    for n in range(1, CHRF_ORDER + 1):
        ours, theirs = (
            Counter(text[i : i + n] for i in range(len(text) - n + 1)) for text in texts
        )
        if ours and theirs:
            common = (ours & theirs).total()
            precisions.append(common / ours.total())
            recalls.append(common / theirs.total())
    if not sum(precisions):
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    weight = CHRF_BETA**2
    return (1 + weight) * precision * recall / (weight * precision + recall)


# Scores of several samples


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Chance that at least one of `k` samples is right, estimated without bias from more of them.

    1 - C(n - c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1), as a product.
    ValueError for fewer samples than `k`.
    """
    if not 0 <= right <= samples or not 1 <= k <= samples:
        raise ValueError(f"pass@{k} of {right} among {samples}")
    none = 1.0
    for number in range(samples - right + 1, samples + 1):
        none *= max(0.0, 1.0 - k / number)
    return 1.0 - none


@dataclass(frozen=True)
class Vote:
    """The most frequent answer of several, and whether others are as frequent."""

    answer: str | None
    is_tied: bool


def majority(answers: Sequence[str | None], normalise: Normalise) -> Vote:
    """Vote on answers that are equal once normalised; texts without an answer have no vote.

    Of a tie the answer that came first wins, as in lm-evaluation-harness's `majority_vote`.
    """
    votes = Counter(normalise.apply(one) for one in answers if one is not None)
    if not votes:
        return Vote(None, is_tied=False)
    (first, most), *others = votes.most_common()
    return Vote(first, is_tied=bool(others) and others[0][1] == most)


# What a task says


@dataclass(frozen=True)
class Judge:
    """How the free answers of a task are judged."""

    benchmark: str
    metric: str
    extraction: tuple[Extraction, ...] = ()
    normalise: Normalise = Normalise()

    @classmethod
    def from_task(cls, task: Mapping[str, Any]) -> Judge:
        """From an entry of `tasks.json`. InputError for a task without free answers."""
        name, free = task["name"], task["formulations"].get("free")
        if free is None:
            raise InputError("the task has no free answers", where=f"task {name}")
        normalise = free.get("normalise") or {}
        return cls(
            name,
            free.get("metric", "exact_match"),
            tuple(Extraction(**one) for one in free.get("extraction") or ()),
            Normalise(**{**normalise, "patterns": tuple(normalise.get("patterns") or ())}),
        )

    @property
    def rules(self) -> tuple[Extraction, ...]:
        """Its rules; without any one that takes all of the text."""
        return self.extraction or (Extraction(""),)

    def name_of(self, rule: Extraction) -> str:
        """The metric under a rule: `exact_match`, `exact_match_strict`."""
        return f"{self.metric}_{rule.name}" if rule.name else self.metric
