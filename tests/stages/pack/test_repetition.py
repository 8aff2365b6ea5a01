"""Documents that repeat themselves: against counting by hand, and what the stage does with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pack.config import Repetition
from stages.pack.repetition import find_stretches, repetitive_segments, runs_without


def repeats(row: list[int], period: int) -> int:
    """How often an n-gram of `period` tokens comes in a row at most."""
    most = 0
    for start in range(len(row) - period + 1):
        gram, times = row[start : start + period], 1
        while row[start + times * period : start + (times + 1) * period] == gram:
            times += 1
        most = max(most, times)
    return most


def is_too_much(rows: list[list[int]], max_period: int, least: int) -> list[bool]:
    """Whether each of some documents, end to end, has a stretch that is too long."""
    ids = np.array([token for row in rows for token in row], dtype=np.uint16)
    lengths = np.array([len(row) for row in rows])
    found = {stretch.document for stretch in find_stretches(ids, lengths, max_period, least)}
    return [place in found for place in range(len(rows))]


grams = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(1, 9)), max_size=6
)


@settings(max_examples=300, deadline=None)
@given(
    documents=st.lists(grams, min_size=1, max_size=4),
    max_period=st.integers(1, 6),
    least=st.integers(3, 7),
)
def test_documents_repeat_themselves_as_counted_by_hand(documents, max_period, least):
    """Documents end to end: a repetition over the end of one and the begin of the next is none."""
    rows = [[token for gram, times in parts for token in gram * times] for parts in documents]
    expected = [
        any(repeats(row, period) >= least for period in range(1, max_period + 1)) for row in rows
    ]
    assert is_too_much(rows, max_period, least) == expected


@settings(max_examples=300, deadline=None)
@given(parts=grams, length=st.integers(4, 12), least=st.integers(3, 6))
def test_what_stays_of_a_document_repeats_nothing_so_often(parts, length, least):
    row = [token for gram, times in parts for token in gram * times]
    limits = Repetition(max_period=3, min_repeats=least)
    lengths = np.array([len(row)])
    segments = repetitive_segments(np.array(row, np.uint16), lengths, length, limits)
    runs, tokens = runs_without(lengths, segments, length)
    assert tokens.sum() + runs.length.sum() == len(row)
    for _, start, count in zip(*runs, strict=True):
        assert start % length == 0
        kept = row[start : start + count]
        assert max((repeats(kept, period) for period in (1, 2, 3)), default=0) < least
    stays = [
        place
        for start, count in zip(*runs[1:], strict=True)
        for place in range(start, start + count)
    ]
    gone = sorted(set(range(len(row))) - set(stays))
    assert sorted({place // length for place in gone}) == segments.get(0, [])


@pytest.mark.parametrize(
    ("row", "period", "times"),
    [
        ("5000007", 1, 5),
        ("501010127", 2, 3),
        ("5301040104010401", 4, 3),
    ],
)
def test_cases_of_the_dolma_toolkit(row, period, times):
    """`test_find_periodic_sequences` of allenai/dolma (tests/python/test_repetitions.py)."""
    tokens = [int(digit) for digit in row]
    assert is_too_much([tokens], period, times) == [True]
    assert is_too_much([tokens], period, times + 1) == [False]


@pytest.mark.parametrize("period", range(1, 15))
def test_the_published_limits_hold_to_the_token(period):
    """An n-gram of up to 13 tokens 32 times is too much; with one token less it is not."""
    draw = np.random.default_rng(period)
    for start in (0, 1, 100, 1500):
        row = 1000 + np.arange(2048)
        row[start : start + 32 * period] = np.tile(np.arange(period), 32)
        one_short = row.copy()
        one_short[start + draw.choice([0, 32 * period - 1])] = 900
        rows = [row.tolist(), one_short.tolist()]
        assert is_too_much(rows, 13, 32) == [period <= 13, False]


def test_of_a_stretch_the_segments_go_that_hold_too_much_or_the_most_of_it():
    """By hand: segments of 10 tokens, 4 repeats of one token are too many."""
    limits = Repetition(max_period=1, min_repeats=4)

    def segments(begin, end):
        row = 1000 + np.arange(40)
        row[begin:end] = 7
        return repetitive_segments(row.astype(np.uint16), np.array([40]), 10, limits).get(0, [])

    assert segments(12, 15) == []
    assert segments(12, 16) == [1]
    assert segments(8, 14) == [1]  # Two tokens of the first segment stay.
    assert segments(8, 11) == []
    assert segments(7, 12) == [0]  # Three and two: neither has four.
    assert segments(6, 34) == [0, 1, 2, 3]
    assert segments(7, 33) == [1, 2]


SHORT = {"max_period": 13, "min_repeats": 15}


def many(text, documents=40):
    """A German document among English ones."""
    others = [f"the cat sat on {n} dogs and ran {n}" for n in range(documents)]
    return [{"text": one, "language": "en"} for one in others] + [{"text": text, "language": "de"}]


@pytest.mark.parametrize("strategy", ["best_fit", "best_fit_crop", "concatenate"])
def test_a_repetitive_document_is_excluded_and_those_beside_it_stay(
    pack, read_shards, read_pieces, read_excluded, strategy
):
    """Sequences of 64 tokens hold several of the other documents."""
    rows = [*many("dog cat " * 20), *({"text": "ran " * 40} for _ in range(3))]
    for number, row in enumerate(rows):
        row["doc_id"] = f"{number:032x}"
    manifest = pack([rows], held_out_share=0.0, strategy=strategy, repetition=SHORT)
    source = read_shards(manifest, "train")["sources"]["web"]
    left = read_pieces(manifest, "train")
    assert sorted(left) == [row["doc_id"] for row in rows[:40]]
    assert source["documents"] == manifest.conservation.out == 40
    assert manifest.conservation.dropped == {"repetitive": 4}
    assert (source["cut"] > 0) == (strategy != "best_fit")
    listed = [row for row in read_excluded(manifest) if row["reason"] == "repetitive"]
    assert [row["doc_id"] for row in listed] == [row["doc_id"] for row in rows[40:]]
    assert all(row["whole"] and row["split"] == "train" for row in listed)
    assert sum(row["tokens"] for row in listed) == source["dropped_tokens"]["repetitive"]
    assert source["repetitive"] == manifest.counts["train_repetitive"] == 4
    cropped = [row for row in read_excluded(manifest) if row["reason"] == "cropped"]
    assert sum(row["tokens"] for row in cropped) == source["dropped_tokens"]["cropped"]
    assert not any(row["whole"] for row in cropped)


def test_of_a_long_document_the_repetitive_segments_are_excluded(
    pack, read_shards, read_pieces, read_excluded
):
    """Two segments before the repetition and one after it stay, wherever they are laid."""
    words = " ".join(str(number) for number in range(100, 160))
    rows = many(f"{words} {'dog cat ' * 200} {words}")
    rows[-1]["doc_id"] = "f" * 32
    for strategy in ("best_fit", "concatenate"):
        manifest = pack([rows], held_out_share=0.0, strategy=strategy)
        source = read_shards(manifest, "train")["sources"]["web"]
        whole = pack([rows], held_out_share=0.0, strategy=strategy, repetition=None)
        everything = read_shards(whole, "train")["sources"]["web"]
        (listed,) = read_excluded(manifest)
        assert (listed["doc_id"], listed["whole"]) == ("f" * 32, False)
        assert listed["tokens"] == source["dropped_tokens"]["repetitive"] == 5 * 64
        assert everything["tokens"] == source["tokens"] + listed["tokens"]
        pieces = read_pieces(manifest, "train")["f" * 32]
        tokens = read_pieces(whole, "train")["f" * 32]
        assert min(pieces) == 0
        text = [one for start in sorted(tokens) for one in tokens[start]]
        for start, piece in pieces.items():
            assert piece == text[start : start + len(piece)]
        assert manifest.conservation.out == source["documents"] == 41
        assert read_excluded(whole) == []


def test_documents_of_neither_split_and_without_text_are_listed(pack, read_excluded):
    rows = [
        {"doc_id": f"{number:032x}", "text": text, "duplicate_class": None}
        for number, text in enumerate(["", "  \n", "the cat sat"])
    ]
    manifest = pack([rows], held_out_share=0.0)
    assert [
        (r["doc_id"], r["reason"], r["tokens"], r["whole"], r["split"])
        for r in read_excluded(manifest)
    ] == [(f"{number:032x}", "empty", 0, True, None) for number in (0, 1)]


def test_a_source_that_only_repeats_itself_is_in_no_shard(pack, read_shards):
    rows = [*many("the end"), {"text": "dog " * 4000, "source": "noise"}]
    manifest = pack([rows], held_out_share=0.0)
    assert set(read_shards(manifest, "train")["sources"]) == {"web"}
    assert manifest.conservation.dropped == {"repetitive": 1}
    assert manifest.counts["train_repetitive"] > 60


def test_other_limits_leave_more_or_less(pack):
    rows = [{"text": f"{n} " + "dog cat ran " * 8, "source": "web"} for n in range(30)]
    settings = ({"max_period": 3, "min_repeats": 6}, {"max_period": 2, "min_repeats": 6})
    strict, loose = (pack([rows], repetition=one, held_out_share=0.0) for one in settings)
    assert strict.conservation.dropped["repetitive"] > 0
    assert loose.conservation.dropped == {}
