"""What dolma's Gopher and C4 taggers say of documents follows from our signals and views.

Runs dolma 1.2.1 itself, whose Python INGOT_PEERS_DOLMA names (`setup.sh` makes it). Its C4 taggers
speak of the same lines as our views. Of its Gopher values, those with a definition of their own
(median word length, duplicates that include blank lines, sums over all n-grams) have no signal;
docs/rules.md names them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peers.corpus import DATA, documents, letters

from stages.signals.config import SignalsConfig
from stages.signals.measure import Measured, measure

COUNT, SEED, MOST_CHARACTERS = 1_000, 1, 100_000
CONFIG = SignalsConfig(groups=("dclm",), line_rules=("c4@datatrove", "c4@fineweb"))

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data"),
]

Answers = list[dict[str, Any]]


def taggers(texts: list[str], folder: Path) -> Answers:
    """dolma's answers."""
    python = os.environ.get("INGOT_PEERS_DOLMA")
    if not python:
        pytest.skip("INGOT_PEERS_DOLMA names no Python that has dolma (tests/peers/setup.sh)")
    given, out = folder / "documents", folder / "answers"
    rows = (json.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts))
    given.write_text("\n".join(rows), encoding="utf-8")
    script = str(Path(__file__).with_name("dolma_taggers.py"))
    subprocess.run([python, script, str(given), str(out)], check=True)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Documents in which rules fire."""
    rows = (row["text"] for row in documents(COUNT * 2, SEED))
    return list(islice((text for text in rows if len(text) <= MOST_CHARACTERS), COUNT))


@pytest.fixture(scope="module")
def dolma(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """dolma's answers about them."""
    return taggers(texts, tmp_path_factory.mktemp("dolma"))


@pytest.fixture(scope="module")
def ours(texts: list[str]) -> Measured:
    """Signals and cuts of the same documents."""
    return measure(texts, CONFIG)


def values(dolma: Answers, tagger: str, name: str) -> np.ndarray[Any, Any]:
    """A value of each document, 0 where the tagger gives none."""
    found = ({kind: score for _, _, kind, score in row[tagger]}.get(name, 0.0) for row in dolma)
    return np.array(list(found))


def spans(dolma: Answers, tagger: str, name: str) -> list[set[tuple[int, int]]]:
    """The spans of one type."""
    return [{(s, e) for s, e, kind, _ in row[tagger] if kind == name} for row in dolma]


@pytest.mark.parametrize("tagger", ["c4_v1", "c4_v2"])
def test_flags_of_the_page_are_counts_above_zero(
    dolma: Answers, ours: Measured, tagger: str
) -> None:
    for flag, signal in (
        ("has_lorem_ipsum", "lorem_ipsum_count"),
        ("has_curly_brace", "curly_brace_count"),
        ("has_javascript", "javascript_count"),
    ):
        flagged = [bool(found) for found in spans(dolma, tagger, flag)]
        counted = [count > 0 for count in ours.columns[signal]]
        if (tagger, flag) == ("c4_v1", "has_javascript"):  # Only as a word by itself.
            assert all(c for f, c in zip(flagged, counted, strict=True) if f)
        else:
            assert flagged == counted, flag
            assert 0 < sum(flagged) < COUNT, flag


@pytest.mark.parametrize("tagger", ["c4_v1", "c4_v2"])
def test_lines_that_c4_taggers_mark_are_lines_that_c4_views_cut(
    texts: list[str], dolma: Answers, ours: Measured, tagger: str
) -> None:
    short, unended = (
        spans(dolma, tagger, f"lines_with_{name}")
        for name in ("too_few_words", "no_ending_punctuation")
    )
    few = lines_cut(texts, ours, "c4@fineweb", "few_words")
    ends = lines_cut(texts, ours, "c4@datatrove", "no_terminal_punctuation")
    long = lines_cut(texts, ours, "c4@fineweb", "long_word")
    compared = 0
    for place, text in enumerate(texts):
        if len(text.splitlines()) != text.count("\n") + (not text.endswith("\n")):
            continue  # C4's lines also end at other boundaries, dolma's at line feeds alone.
        lines = {start: text[start:end] for start, end in lines_of(text)}
        by_dolma = {start for start, _ in short[place] if lines[start].strip()}
        assert by_dolma - long[place] == few[place], place
        unfinished = {start for start, _ in unended[place] if lines[start].strip()}
        own = ends[place] | {s for s in long[place] if s in unfinished}
        differing = {lines[start].strip() for start in unfinished ^ own}
        # datatrove takes an apostrophe for an end and three full stops for none, and looks when
        # citations are gone.
        assert all(line.endswith(("'", "...", "]", "]...")) for line in differing), differing
        compared += len(by_dolma) + len(unfinished)
    assert compared > 1_000


def lines_of(text: str) -> list[tuple[int, int]]:
    """[start, end) of each line, its line feed left out."""
    found, start = [], 0
    for line in text.split("\n"):
        found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def lines_cut(texts: list[str], ours: Measured, view: str, label: str) -> list[set[int]]:
    """Where the lines begin that a view cuts for one reason; cuts next to each other are one."""
    found: list[set[int]] = [set() for _ in texts]
    for cut in ours.cuts:
        if cut.view != view:
            continue
        code = cut.label_names.index(label)
        spans = zip(cut.text_of.tolist(), cut.starts.tolist(), cut.ends.tolist(), strict=True)
        for (text, start, end), own in zip(spans, (cut.labels == code).tolist(), strict=True):
            if own:
                found[text] |= {s for s, e in lines_of(texts[text]) if s < end and e > start}
    return found


@pytest.mark.parametrize(
    ("value", "signal"),
    [
        ("character_count", "characters"),
        ("fraction_of_words_with_alpha_character", "alphabetic_word_share@dclm"),
    ],
)
def test_gopher_values_of_one_definition(
    dolma: Answers, ours: Measured, value: str, signal: str
) -> None:
    np.testing.assert_allclose(values(dolma, "gopher_v1", value), ours.columns[signal], rtol=1e-12)


def test_line_count_is_line_feeds_and_one(texts: list[str], dolma: Answers, ours: Measured) -> None:
    feeds = ours.columns["newline_to_word_ratio"] * ours.columns["word_tokens"]
    np.testing.assert_array_equal(values(dolma, "c4_v1", "line_count"), np.rint(feeds) + 1)


def test_dolma_counts_every_copy_of_a_line_as_dclm_does(
    texts: list[str], dolma: Answers, ours: Measured
) -> None:
    plain = [
        all(line and line == line.strip() for line in text.split("\n")) for text in texts
    ]  # Where there are no blank lines and no white space around lines, the two define the same.
    shares = values(dolma, "gopher_v1", "fraction_of_duplicate_lines")[plain]
    np.testing.assert_allclose(shares, ours.columns["duplicate_line_share@dclm"][plain], rtol=1e-12)
    assert sum(plain) > COUNT / 2
    assert (shares > 0.3).sum() > 10


def test_n_grams_and_stop_words_of_bare_words_are_those_of_dclm(
    texts: list[str], tmp_path: Path
) -> None:
    bare = [letters(text).lower() for text in texts]
    dolma, ours = taggers(bare, tmp_path), measure(bare, CONFIG).columns
    np.testing.assert_array_equal(values(dolma, "gopher_v1", "word_count"), ours["words"])
    np.testing.assert_array_equal(
        values(dolma, "gopher_v1", "required_word_count"), ours["stop_words@dclm"]
    )
    for n in (2, 3, 4):
        theirs = values(dolma, "gopher_v1", f"fraction_of_characters_in_most_common_{n}grams")
        own = ours[f"top_{n}_gram_character_share@dclm"]
        clear = np.array([one_is_most_common(text.split(), n) for text in bare])
        assert clear.sum() > 100
        np.testing.assert_allclose(own[clear], theirs[clear], rtol=1e-12)
        # Of n-grams that are equally common dolma takes the first, DCLM the longest; of those that
        # come once, DCLM none.
        assert (own[own > 0] >= theirs[own > 0] - 1e-12).all()


def one_is_most_common(words: list[str], n: int) -> bool:
    """Whether one n-gram comes more often than all others."""
    counts = Counter(zip(*(words[place:] for place in range(n)), strict=False))
    best = [count for _, count in counts.most_common(2)]
    return len(best) == 2 and best[0] > best[1]
