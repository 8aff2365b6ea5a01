"""The planted corpus: what the benchmark of dedup counts on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.benchmarks import planted_edits
from tests.benchmarks.exact_jaccard import texts, words
from tests.benchmarks.planted_duplicates import (
    GREATEST_GROUP,
    Corpus,
    Prose,
    plainly_written,
    plan,
    sizes,
    write,
)
from tests.benchmarks.planted_edits import CONTENT, FORM, Page, Supply, edited
from tests.peers.corpus import DATA

SENTENCES = [
    f'Here stands a sentence of number{n}, which isn\'t "long"; it ends with word{n}.'
    for n in range(60)
]
SUPPLY = Supply(lambda rng: "A foreign sentence comes in here.", lambda rng: ("New top", "New end"))


def page() -> Page:
    return Page(
        "Top of page", [SENTENCES[:20], SENTENCES[20:35], SENTENCES[35:]], "End 1999", "\n\n"
    )


@pytest.fixture(scope="module")
def prose() -> Prose:
    if not DATA.exists():
        pytest.skip("../shared is not here")
    return Prose(("en-textbooks",))


def test_the_first_documents_of_a_corpus_are_those_of_a_smaller_one(prose: Prose) -> None:
    corpus = Corpus(seed=3, prose=prose)
    small = list(corpus.documents(1_200))
    assert small == list(islice(Corpus(seed=3, prose=prose).documents(20_000), 1_200))
    assert small[0].text != next(Corpus(seed=4, prose=prose).documents(1)).text


def test_shares_and_lengths_are_the_stated_ones(prose: Prose) -> None:
    draw = np.random.default_rng(0)
    block = plan(20_000, prose, 359, draw)
    assert np.bincount(block.kind).tolist() == [13_200, 6_000, 800]
    assert (block.licence >= 0).sum() == 600
    lengths = np.diff(np.append(0, np.cumsum(prose.words[block.sentence])[block.start[1:] - 1]))
    assert np.median(lengths) == pytest.approx(359, rel=0.03)
    assert np.quantile(lengths, 0.9) == pytest.approx(1104, rel=0.04)
    assert lengths.min() >= 1


def test_an_exact_copy_repeats_a_document_and_a_near_duplicate_its_group(prose: Prose) -> None:
    found = list(Corpus(seed=1, prose=prose).documents(1_000))
    copies = [one for one in found if one.kind.startswith("exact")]
    assert len(copies) == 40
    for copy in copies:
        assert any(
            one.text == copy.text and one.group == copy.group for one in found if one != copy
        )
    originals = [one.group for one in found if one.kind.startswith("original")]
    assert len(originals) == len(set(originals)) == 660
    assert all(one.group in set(originals) for one in found)
    assert {bool(one.edits) for one in found if one.kind.startswith("original")} == {False}
    assert {bool(one.edits) for one in found if one.kind.startswith("near")} == {True}


def test_groups_lie_in_one_block(prose: Prose) -> None:
    groups = [one.group for one in Corpus(seed=1, prose=prose).documents(2_000)]
    assert set(groups[:1_000]).isdisjoint(groups[1_000:])


def test_groups_with_accents_or_full_width_letters_are_not_plain(
    prose: Prose, tmp_path: Path
) -> None:
    corpus = Corpus(seed=1, prose=prose)
    paths = write(tmp_path / "made", corpus, 1_000)
    found = list(corpus.documents(1_000))
    assert list(texts(paths)) == [one.text for one in found]
    marked = {one.group for one in found if {"marks", "full width"} & set(one.edits)}
    plain = plainly_written(tmp_path / "made" / "planted.jsonl")
    assert plain.tolist() == [one.group not in marked for one in found]
    full_width = [any("\uff10" <= letter <= "\uff5a" for letter in one.text) for one in found]
    assert 0 < sum(full_width) < 100
    assert not (plain & full_width).any()


def test_group_sizes_have_the_stated_tail_and_sum() -> None:
    found = sizes(100_000, np.random.default_rng(0))
    assert found.sum() == 100_000
    assert found.min() == 1
    assert found.max() == GREATEST_GROUP - 1
    # P(size >= 10) = 10^-1.2 of a Pareto tail.
    assert (found >= 10).mean() == pytest.approx(10**-1.2, rel=0.1)


@pytest.mark.parametrize("name", sorted(FORM))
def test_an_edit_of_form_leaves_the_folded_words(name: str) -> None:
    for seed in range(20):
        copy = page()
        FORM[name](copy, 0.2, Random(seed), SUPPLY)
        assert copy.text() != page().text()
        assert words(copy.text()) == words(page().text())


@pytest.mark.parametrize("name", sorted(CONTENT))
def test_an_edit_of_content_changes_words_in_proportion_to_its_rate(name: str) -> None:
    original = words(page().text())
    for seed in range(20):
        copy = page()
        CONTENT[name](copy, 0.1, Random(seed), SUPPLY)
        assert words(copy.text()) != original
        if name in ("drop", "insert"):
            count = sum(len(part) for part in copy.paragraphs)
            assert count == (54 if name == "drop" else 66)


def test_a_near_duplicate_leaves_its_original_alone_and_is_never_equal() -> None:
    original = page()
    for seed in range(200):
        copy, names = edited(original, Random(seed), SUPPLY)
        assert copy.text() != page().text()
        assert names
    assert original == page()


def test_rates_are_drawn_between_the_stated_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    spy = {"spy": lambda page, rate, rng, supply: rates.append(rate)}
    monkeypatch.setattr(planted_edits, "FORM", spy | {"other": spy["spy"]})
    monkeypatch.setattr(planted_edits, "CONTENT", spy | {"other": spy["spy"]})
    for seed in range(2_000):
        edited(page(), Random(seed), SUPPLY)
    assert 0.005 <= min(rates) < 0.0052
    assert 0.19 < max(rates) <= 0.2
    # Log-uniform: half lie below the geometric mean.
    assert np.mean(np.array(rates) < np.sqrt(0.005 * 0.2)) == pytest.approx(0.5, abs=0.04)
