"""datatrove's filters and our presets say the same of documents in which every rule fires.

The full test runs datatrove 0.10.1 itself, whose Python INGOT_PEERS names (`setup.sh` makes it);
the small one holds its frozen answers for some of the same documents (`datatrove_sample.json`,
written by `python -m tests.peers.test_datatrove ANSWERS`, the output of `datatrove_filters.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))

from peers.corpus import DATA, documents
from peers.presets import PRESET_OF, RULE_OF, VIEW_OF, answers, fails, near_a_bound

from stages.filter.presets import PRESETS

COUNT, SEED = 14_000, 1
EVERY = 45
"""The sample is every so-many-th document."""

DEFAULT_SPLITTER = {
    "gopher_repetition": 0.975,
    "gopher_quality": 0.96,
    "c4": 0.993,
    "c4_fineweb": 0.99,
    "fineweb": 0.9995,
    "chain": 0.98,
}
"""Least share of equal verdicts with other words; docs/rules.md says what differs."""

SAMPLE = Path(__file__).with_name("datatrove_sample.json")

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data")


@pytest.mark.full
@needs_data
def test_presets_give_the_frozen_reasons_of_datatrove() -> None:
    sample = json.loads(SAMPLE.read_text())
    texts = [row["text"] for row in documents(COUNT, SEED, EVERY)]
    assert [digest(text) for text in texts] == sample["documents"], "other documents were made"

    said, _ = answers(texts, "spacy_english")

    for name in PRESET_OF:
        rules = [reason and RULE_OF[name][reason] for reason in sample[name]]
        assert said[name] == rules, name
    for name in VIEW_OF:
        kept = [place for place, reason in enumerate(said[name]) if reason is None]
        assert {place: digest(said[f"{name} text"][place]) for place in kept} == {
            place: told for place, told in enumerate(sample[f"{name} text"]) if told
        }


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """The documents of the full tier."""
    return [row["text"] for row in documents(COUNT, SEED)]


@pytest.fixture(scope="module")
def datatrove(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """datatrove's answers about them."""
    python = os.environ.get("INGOT_PEERS")
    if not python:
        pytest.skip("INGOT_PEERS names no Python that has datatrove (tests/peers/setup.sh)")
    folder = tmp_path_factory.mktemp("datatrove")
    given, out = folder / "documents", folder / "answers"
    with given.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in documents(COUNT, SEED))
    script = str(Path(__file__).with_name("datatrove_filters.py"))
    subprocess.run([python, script, str(given), str(out)], check=True)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.fixture(scope="module")
def ours(texts: list[str]) -> tuple[dict[str, list[Any]], pa.Table]:
    """What the presets say on spaCy's words, and the signals."""
    return answers(texts, "spacy_english")


@pytest.mark.full
@pytest.mark.timeout(7200)
@needs_data
def test_on_the_same_words_all_verdicts_reasons_and_edits_are_datatroves(
    ours: tuple[dict[str, list[Any]], pa.Table], datatrove: list[dict[str, Any]]
) -> None:
    said, _ = ours
    for name in PRESET_OF:
        reasons = [row[name] and RULE_OF[name][row[name]] for row in datatrove]
        assert differences(said[name], reasons) == [], name
    for name in VIEW_OF:
        left = [row.get(f"{name} text") for row in datatrove]
        edited = [
            text if reason is None else None
            for text, reason in zip(said[f"{name} text"], said[name], strict=True)
        ]
        assert differences(edited, left) == [], name


@pytest.mark.full
@pytest.mark.timeout(7200)
@needs_data
def test_with_the_default_splitter_nearly_all_verdicts_are_datatroves(
    texts: list[str], datatrove: list[dict[str, Any]]
) -> None:
    said, _ = answers(texts, "unicode")
    equal = {
        name: sum(
            (own is None) == (row[name] is None)
            for own, row in zip(said[name], datatrove, strict=True)
        )
        / COUNT
        for name in PRESET_OF
    }
    below = {name: equal[name] for name, least in DEFAULT_SPLITTER.items() if equal[name] < least}
    assert not below, equal


@pytest.mark.full
@pytest.mark.timeout(600)
@needs_data
def test_every_rule_fires_often_and_many_documents_lie_near_a_bound(
    ours: tuple[dict[str, list[Any]], pa.Table],
) -> None:
    said, signals = ours
    filters = [name for name in PRESET_OF if name != "chain"]
    asked = [rule for name in filters for rule in PRESETS[PRESET_OF[name]]]
    reasons = Counter(reason for name in filters for reason in said[name])
    for rule in asked:
        assert fails(signals, rule).sum() >= 200, rule.name
        assert reasons[rule.name] >= 100, rule.name
    assert near_a_bound(signals, asked).mean() > 1 / 3


def differences(own: Sequence[Any], theirs: Sequence[Any]) -> list[tuple[int, Any, Any]]:
    """The first few places where two lists differ."""
    pairs = enumerate(zip(own, theirs, strict=True))
    return list(islice(((place, *pair) for place, pair in pairs if pair[0] != pair[1]), 5))


def digest(text: str) -> str:
    """A short name of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def freeze(path: Path) -> None:
    """Write the sample of datatrove's answers at `path`."""
    rows = [json.loads(line) for line in path.read_text().splitlines()][::EVERY]
    texts = [row["text"] for row in documents(COUNT, SEED, EVERY)]
    told: dict[str, list[Any]] = {"documents": [digest(text) for text in texts]}
    for name in PRESET_OF:
        told[name] = [row[name] for row in rows]
    for name in VIEW_OF:
        left = (row.get(f"{name} text") for row in rows)
        told[f"{name} text"] = [None if text is None else digest(text) for text in left]
    lines = (f'  "{name}": {json.dumps(values)}' for name, values in told.items())
    SAMPLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    freeze(Path(sys.argv[1]))
