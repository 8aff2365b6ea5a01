"""The weights of `stages/signals/password_model.py`, from labelled and from real texts.

    python -m tests.benchmarks.password_training --data ../shared/data --more DOCS   # writes them
    python -m tests.benchmarks.password_training --data ../shared/data --folds       # figures

Labelled are `password_texts/` (its README says how they were made), the blind sets up to the
twenty-second and two seeds of `redaction_cases.py`: a labelled password is a positive, every other
token that the model rates is a negative, but for secrets of other kinds. Real texts are those of
`../shared/data`, and of folders that `--more` names (documentation, an environment's
`site-packages`) the packages of the development side: what no rule marks there is taken as a
negative. The fit is a logistic regression with an L2 penalty, solved by L-BFGS from zero, so the
same texts give the same weights on a kind of machine, whatever the order of sets.

`--folds` leaves one file of `password_texts/` out at a time, trains without it and prints for each:
values, recall of the rules, recall and precision of rules and model.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

from stages.signals import password_model
from stages.signals.credentials import find_secrets
from stages.signals.password_features import (
    SIZE,
    describe_place,
    describe_value,
    hash_features,
)
from stages.signals.password_model import (
    CONSTANT,
    SCALE,
    find_candidates,
    may_be_chosen,
)
from stages.signals.password_names import find_names
from tests.benchmarks.redaction import BLIND_SETS, cases_of
from tests.benchmarks.redaction_cases import KINDS, Case, Place
from tests.benchmarks.splits import side

TEXTS = Path(__file__).with_name("password_texts")
WEIGHTS = Path(password_model.__file__).with_name("password_weights.json")
_HEAD = re.compile(r"^=== ([+-]) password\n", re.MULTILINE)
_MARK = re.compile("[⟦⟧]")
_COUNT_OF_PAGES = 3.0
"""How often a text counts whose form is that of a page: those are what is to be found."""

_LAST_SEED, _FIRST_OF_PAGES = 63_001, 63_001
"""Of the last blind set that is trained on, and of the first whose forms are those of pages."""

_SUFFIXES = (
    ".py",
    ".pyi",
    ".md",
    ".rst",
    ".txt",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".js",
    ".html",
)
_MOST_OF_PACKAGE, _MOST_ROWS = 1_000_000, 600

_PENALTY, _MOST_STEPS = 1.0, 200


def read_marked(path: Path) -> list[Case]:
    """The texts of a file of `password_texts/`; ValueError where marks or heads are wrong."""
    parts = _HEAD.split(path.read_text("utf-8"))
    if parts[0].strip():
        raise ValueError(f"{path.name} does not start with a head: {parts[0][:40]!r}")
    cases = []
    for sign, marked in zip(parts[1::2], parts[2::2], strict=True):
        pieces = _MARK.split(marked.rstrip("\n"))
        places, at = list[Place](), 0
        for number, piece in enumerate(pieces):
            if number % 2:
                places.append((at, at + len(piece)))
            at += len(piece)
        if (sign == "+") != bool(places) or len(pieces) % 2 == 0:
            raise ValueError(f"{path.name}: a text is marked wrongly: {marked[:80]!r}")
        cases.append(Case("password", "".join(pieces), tuple(places)))
    return cases


@dataclass(frozen=True)
class Rows:
    """Rated tokens: their features, whether each is a password, and what each counts."""

    features: csr_matrix
    labels: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]


def make_rows(texts: Iterable[tuple[str, Sequence[Place], Sequence[Place]]], count: float) -> Rows:
    """The tokens of (text, values, places left out)."""
    columns, ends, labels = list[int](), [0], list[bool]()
    for text, values, left_out in texts:
        names = find_names(text)
        for place in find_candidates(text, names) if names else ():
            if place not in values and _overlaps(place, left_out):
                continue
            if not may_be_chosen(text, place):
                continue
            columns += hash_features(describe_value(text[slice(*place)]))
            columns += hash_features(describe_place(text, place, names))
            ends.append(len(columns))
            labels.append(place in values)
    features = csr_matrix(
        (np.ones(len(columns)), np.array(columns, np.int32), np.array(ends)),
        shape=(len(labels), SIZE),
    )
    features.sum_duplicates()  # In the order of columns: that of a set differs from run to run.
    return Rows(features, np.array(labels, np.float64), np.full(len(labels), count))


def _overlaps(place: Place, others: Sequence[Place]) -> bool:
    return any(place[0] < end and start < place[1] for start, end in others)


def real_texts(data: Path | None, more: Sequence[Path]) -> Iterator[str]:
    """Texts of the shared data, and of the packages of the development side in folders."""
    if data is not None:
        for path in sorted(data.rglob("*.jsonl.zst")):
            rows = rows_of(path)
            for row in rows[:: max(1, len(rows) // _MOST_ROWS)]:
                yield from (one for one in row.values() if isinstance(one, str) and len(one) > 60)
    for folder in more:
        for package in sorted(folder.iterdir()):
            if side(package.name) == "development":
                yield from package_texts(package)


def package_texts(package: Path) -> Iterator[str]:
    """The first `_MOST_OF_PACKAGE` characters of the texts of a folder, or a file."""
    left = _MOST_OF_PACKAGE
    for path in [package] if package.is_file() else sorted(package.rglob("*")):
        if left > 0 and path.suffix in _SUFFIXES and path.is_file():
            text = path.read_text("utf-8", errors="replace")[:200_000]
            left -= len(text)
            yield text


def rows_of(path: Path) -> list[dict[str, object]]:
    """The rows of a compressed file of JSON lines."""
    import zstandard

    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def make_real_rows(data: Path | None, more: Sequence[Path]) -> Rows:
    """The negatives of real texts: what no rule marks."""
    return make_rows(
        (
            (text, (), [(one.start, one.end) for one in find_secrets(text, with_model=False)])
            for text in real_texts(data, more)
        ),
        1.0,
    )


def fit(parts: Sequence[Rows]) -> npt.NDArray[np.int8]:
    """Weights in steps of 1 / `SCALE`: the last column of features is the constant."""
    features = vstack([part.features for part in parts]).tocsr()
    signs = 2 * np.concatenate([part.labels for part in parts]) - 1
    counts = np.concatenate([part.counts for part in parts])
    transposed = features.T.tocsr()

    def loss(weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        margins = signs * (features @ weights - CONSTANT / SCALE)
        slopes = -counts * signs / (1 + np.exp(margins))
        value = (counts * np.logaddexp(0, -margins)).sum()
        return value + _PENALTY / 2 * (weights @ weights), transposed @ slopes + _PENALTY * weights

    answer = minimize(
        loss, np.zeros(SIZE), jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS}
    )
    return np.clip(np.rint(answer.x * SCALE), -127, 127).astype(np.int8)


def write(weights: npt.NDArray[np.int8], path: Path = WEIGHTS) -> None:
    """Writes the weights of the model."""
    stored = {"weights": base64.b64encode(weights.tobytes()).decode()}
    path.write_text(json.dumps(stored) + "\n")


@contextmanager
def using(weights: npt.NDArray[np.int8]) -> Iterator[None]:
    """Lets the model of this process use other weights for a while."""
    kept = password_model.read_weights
    password_model.read_weights = lambda: weights.tolist()  # type: ignore[assignment]
    password_model.weigh_value.cache_clear()
    try:
        yield
    finally:
        password_model.read_weights = kept
        password_model.weigh_value.cache_clear()


def measure(cases: Sequence[Case]) -> str:
    """A row of a table: values, recall of the rules, recall and precision of both."""
    counts = np.zeros(5, np.int64)
    for case in cases:
        rules = [(one.start, one.end) for one in find_secrets(case.text, with_model=False)]
        both = [(one.start, one.end) for one in find_secrets(case.text)]
        counts += (
            len(case.values),
            sum(_overlaps(value, rules) for value in case.values),
            sum(_overlaps(value, both) for value in case.values),
            len(both),
            sum(_overlaps(span, case.values) for span in both),
        )
    values, by_rules, by_both, spans, right = counts.tolist()
    shares = (by_rules / max(1, values), by_both / max(1, values), right / max(1, spans))
    return " | ".join([str(values), *(f"{share:.3f}" for share in shares)])


def make_labelled_rows(left_out: Path | None = None) -> list[Rows]:
    """Tokens of the files of `password_texts/` but one, and of the blind sets."""
    files = [path for path in sorted(TEXTS.glob("*.txt")) if path != left_out]
    marked = [case for path in files for case in read_marked(path)]
    parts = [make_rows(((case.text, case.values, ()) for case in marked), _COUNT_OF_PAGES)]
    made = [case for kind in KINDS for seed in (1, 2) for case in cases_of(kind, seed)]
    parts.append(make_case_rows(made, 1.0))
    for one in BLIND_SETS:
        if one.first_seed <= _LAST_SEED:
            drawn = [
                case
                for kind in one.kinds
                for each_form in (False, True)
                for case in cases_of(kind, one.first_seed, each_form)
            ]
            is_of_pages = one.first_seed >= _FIRST_OF_PAGES
            parts.append(make_case_rows(drawn, _COUNT_OF_PAGES if is_of_pages else 1.0))
    return parts


def make_case_rows(cases: Sequence[Case], count: float) -> Rows:
    """The tokens of texts of any kind: secrets of other kinds are left out."""
    return make_rows(
        (
            (case.text, case.values, ())
            if "password" in case.kind
            else (case.text, (), case.values)
            for case in cases
        ),
        count,
    )


def main() -> None:
    """Trains, and prints figures or writes the weights."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the shared data")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="folders of real texts")
    parser.add_argument("--folds", action="store_true", help="leave one file out at a time")
    asked = parser.parse_args()
    real = make_real_rows(asked.data, asked.more)
    print(f"{len(real.labels):,} tokens of real texts", flush=True)
    if asked.folds:
        for path in sorted(TEXTS.glob("*.txt")):
            with using(fit([real, *make_labelled_rows(left_out=path)])):
                print(path.stem, "|", measure(read_marked(path)), flush=True)
        return
    parts = make_labelled_rows()
    print(f"{sum(int(part.labels.sum()) for part in parts):,} passwords", flush=True)
    write(fit([real, *parts]))


if __name__ == "__main__":
    main()
