"""Precision and recall of redaction by kind, on labelled texts of one side.

    python -m tests.benchmarks.redaction [--seed 1] [--errors 5] [--kinds email phone]
    python -m tests.benchmarks.redaction --seed 1001          # the test side: when all is done
    python -m tests.benchmarks.redaction --seed 57001   # a blind set: once; 51001 to 63001
    python -m tests.benchmarks.redaction --seed 57001 --peers         # Presidio on the same texts

Seeds below 1000 are development (splits.py). 200 positives and 200 hard negatives a kind. A value
counts as found if no character of it is left, a span as right if at least half of it lies on a
value; personal data must bear its own label, a secret any of `secrets`. With `--data` every span in
the real texts of the side is printed, to be read.

`--peers` takes the Python of an environment with presidio-analyzer, by default
`$INGOT_PEERS_PRESIDIO` (tests/peers/setup.sh sets it). Its
recognizers for the kinds of personal data are called each by itself, as it sets them up, without a
language model: no score is raised by words around a value, and every answer counts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stages.signals.credentials import find_secrets
from stages.signals.personal_data import find_personal_data
from tests.benchmarks import (
    eighteenth_blind,
    nineteenth_blind,
    twentieth_blind,
    twenty_first_blind,
    twenty_second_blind,
)
from tests.benchmarks.blind_set import BlindSet
from tests.benchmarks.labelled import TYPES, asked, rows_of
from tests.benchmarks.redaction_cases import KINDS, PERSONAL, Case, Place, make_cases, score
from tests.benchmarks.splits import FIRST_BLIND_SEED, Side, seed_side, select

PRESIDIO = "INGOT_PEERS_PRESIDIO"
"""The variable of the environment in which Presidio is."""

REAL = (
    "text/en-docs",
    "text/en-web-c4-demo",
    "text/de",
    "text/fr",
    "text/ja",
    "code/python-stdlib",
)


BLIND_SETS = (
    eighteenth_blind.SET,
    nineteenth_blind.SET,
    twentieth_blind.SET,
    twenty_first_blind.SET,
    twenty_second_blind.SET,
)
"""By their first seeds, ascending."""


def blind_set(seed: int) -> BlindSet:
    """The set that a seed draws from. SystemExit for one of the first fourteen sets."""
    for one in reversed(BLIND_SETS):
        if seed >= one.first_seed:
            return one
    raise SystemExit(
        f"seed {seed} draws from a blind set that is in the history alone: check out 943c76bd, or "
        f"take {', '.join(str(one.first_seed) for one in BLIND_SETS)}"
    )


def kinds_of(seed: int) -> Sequence[str]:
    """The kinds of the texts that a seed draws."""
    return KINDS if seed < FIRST_BLIND_SEED else blind_set(seed).kinds


def cases_of(kind: str, seed: int, each_form: bool = False) -> list[Case]:
    """The texts of a kind; a blind set's own name of a kind becomes that of the rules.

    With `each_form` a set with weights uses every template as often as every other.
    """
    if seed < FIRST_BLIND_SEED:
        return make_cases(kind, seed)
    one = blind_set(seed)
    cases = replace(one, in_turn=one.in_turn or each_form).make_cases(kind, seed)
    return [replace(case, kind="ip_address" if kind == "ip" else kind) for case in cases]


def find_spans(cases: Sequence[Case]) -> list[list[Place]]:
    """What the rules mark of the kind of each case."""
    return [
        [
            (span.start, span.end)
            for span in (
                find_personal_data(case.text) if case.kind in PERSONAL else find_secrets(case.text)
            )
            if case.kind not in PERSONAL or span.label == case.kind
        ]
        for case in cases
    ]


def find_spans_of_presidio(cases: Sequence[Case], python: str) -> list[list[Place]]:
    """What Presidio marks of the kind of each case; spans of one type that overlap are one."""
    answers = asked(python, "presidio", [case.text for case in cases])
    return [
        _merge(sorted((a, b) for a, b, name in answer if TYPES.get(name) == case.kind))
        for case, answer in zip(cases, answers, strict=True)
    ]


def _merge(places: Sequence[Place]) -> list[Place]:
    merged: list[Place] = []
    for start, end in places:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def print_errors(cases: Sequence[Case], spans: Sequence[Sequence[Place]], most: int) -> None:
    """Texts whose verdict differs from their label."""
    for case, found in zip(cases, spans, strict=True):
        one = score([case], [found])
        if most > 0 and (one.covered, one.right) != (one.values, one.spans):
            wanted = [case.text[a:b] for a, b in case.values]
            print(f"    {case.text!r} {wanted} {[case.text[a:b] for a, b in found]}")
            most -= 1


def print_real(data: Path, side: Side) -> None:
    """Every span in the real texts of a side, with what stands around it."""
    for name in REAL:
        rows = select(rows_of(data, name), side)
        print(f"{name}: {len(rows)} texts, {sum(len(row['text']) for row in rows):,} characters")
        for row in rows:
            text = row["text"]
            for span in [*find_personal_data(text), *find_secrets(text)]:
                around = text[max(0, span.start - 30) : span.end + 20]
                print(f"  {span.label:12s} {text[span.start : span.end]!r}  in {around!r}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--errors", type=int, default=0, help="wrong texts to print for each kind")
    parser.add_argument("--kinds", nargs="*", help="by default all of the set")
    parser.add_argument(
        "--peers",
        nargs="?",
        const=os.environ.get(PRESIDIO, ""),
        help=f"Python of an environment with presidio-analyzer; default: ${PRESIDIO}",
    )
    parser.add_argument(
        "--each-form", action="store_true", help="every template equally often, whatever its weight"
    )
    parser.add_argument("--data", type=Path, help="shared data: prints spans in real texts")
    arguments = parser.parse_args()
    if arguments.peers == "":
        parser.error(f"--peers needs a Python, or ${PRESIDIO}: run tests/peers/setup.sh")
    if arguments.data:
        print_real(arguments.data, seed_side(arguments.seed))
        return
    blind = ", blind set" if arguments.seed >= FIRST_BLIND_SEED else ""
    print(f"{seed_side(arguments.seed)} side{blind}, seed {arguments.seed}")
    for kind in arguments.kinds or kinds_of(arguments.seed):
        cases = cases_of(kind, arguments.seed, arguments.each_form)
        spans = find_spans(cases)
        print(f"| {kind} | {score(cases, spans).row()} |")
        if arguments.peers and cases[0].kind in PERSONAL:
            theirs = find_spans_of_presidio(cases, arguments.peers)
            print(f"| {kind}, Presidio | {score(cases, theirs).row()} |")
        print_errors(cases, spans, arguments.errors)


if __name__ == "__main__":
    main()
