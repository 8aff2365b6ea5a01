"""Span corruption against T5's definition: its counts, its layout, and the text given back."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.pretrain.corruption import _segments, corrupt_spans, most_spans, token_draws
from stages.training.token_shards import IGNORED

END, PAD = 1, 0
SENTINELS = np.arange(10_000, 10_400)


def packed(lengths_of_rows, width, ended=True):
    """Rows of pieces with these lengths, ids from 10 on; each piece ends with `END` or not."""
    tokens = np.full((len(lengths_of_rows), width), PAD, dtype=np.int32)
    documents = np.full((len(lengths_of_rows), width), -1, dtype=np.int32)
    for row, lengths in enumerate(lengths_of_rows):
        start = 0
        for number, length in enumerate(lengths):
            tokens[row, start : start + length] = 10 + start + np.arange(length)
            if ended:
                tokens[row, start + length - 1] = END
            documents[row, start : start + length] = number
            start += length
    return tokens, documents


def corrupted(tokens, documents, seed=0, corrupted=0.15, mean_span=3.0):
    return corrupt_spans(
        tokens,
        documents,
        token_draws(tokens.shape, seed, 1, 0),
        corrupted=corrupted,
        mean_span=mean_span,
        sentinels=SENTINELS,
        end_id=END,
        padding_id=PAD,
    )


def numbers(rows, row):
    """The numbers of its pieces."""
    return [number for number in np.unique(rows.documents_BL[row]).tolist() if number >= 0]


def pieces(rows, row):
    """Of each piece of a row: what is given, what is learnt, and its targets."""
    for number in numbers(rows, row):
        inside = rows.documents_BL[row] == number
        prefix = rows.prefix_BL[row][inside]
        tokens = rows.tokens_BL[row][inside]
        assert prefix.tolist() == sorted(prefix.tolist(), reverse=True)
        yield tokens[prefix].tolist(), tokens[~prefix].tolist(), rows.targets_BL[row][inside]


def restored(left, learnt):
    """The text: each sentinel of `given` replaced by its span of `learnt`; and those spans."""
    assert learnt[-1] == END
    spans, text = {}, []
    for token in learnt[:-1]:
        if token >= 10_000:
            spans[token] = []
            current = spans[token]
        else:
            current.append(token)
    for token in left:
        text.extend(spans[token] if token >= 10_000 else [token])
    return text, list(spans.values())


def test_the_counts_are_those_of_t5():
    """T5's `random_spans_helper` for inputs of 512 at 15 % and 3: of 568 tokens, inputs of 512 and
    targets of 114, each with its end token. Ours ends the targets alone.
    """
    tokens, documents = packed([[569]], 640)
    (left, learnt, _), *more = pieces(corrupted(tokens, documents), 0)
    assert not more
    assert (len(left) + 1, len(learnt)) == (512, 114)
    _, spans = restored(left, learnt)
    assert (sum(map(len, spans)), len(spans)) == (85, 28)


ROWS = st.lists(st.lists(st.integers(1, 30), max_size=5), min_size=1, max_size=3)


@settings(max_examples=120, deadline=None)
@given(
    lengths=ROWS,
    seed=st.integers(0, 99),
    share=st.sampled_from([0.05, 0.15, 0.5, 0.9]),
    mean=st.sampled_from([1.0, 3.0, 12.0]),
    ended=st.booleans(),
)
def test_text_and_spans_give_the_piece_back(lengths, seed, share, mean, ended):
    tokens, documents = packed(lengths, 200, ended)
    rows = corrupted(tokens, documents, seed, share, mean)
    assert rows.tokens_BL.shape == tokens.shape
    for row, own in enumerate(lengths):
        texts = []
        for number in range(len(own)):
            text = tokens[row][documents[row] == number].tolist()
            texts.append(text[:-1] if ended else text)
        found = list(pieces(rows, row))
        kept = [text for text in texts if len(text) >= 2]
        # Two tokens of text need room for five: nothing is left out while there is any.
        assert len(found) == len(kept) or (rows.documents_BL[row] == -1).sum() < 5
        for number, (left, learnt, _) in zip(numbers(rows, row), found, strict=True):
            text, (back, spans) = texts[number], restored(left, learnt)
            n = len(back)
            assert back == text[:n]
            noise = min(max(round(n * share), 1), n - 1)
            assert sum(map(len, spans)) == noise
            assert len(spans) == min(max(round(noise / mean), 1), n - noise)
            assert all(spans)
            # Text first; sentinels in order, none side by side.
            marks = [token for token in left if token >= 10_000]
            assert marks == SENTINELS[: len(spans)].tolist()
            assert left[0] < 10_000
            assert not any(min(pair) >= 10_000 for pair in pairwise(left))


def test_only_the_target_is_learnt_and_the_rest_is_padding():
    tokens, documents = packed([[20, 9]], 64)
    rows = corrupted(tokens, documents)
    used = 0
    for left, learnt, targets in pieces(rows, 0):
        assert targets[: len(left) - 1].tolist() == [IGNORED] * (len(left) - 1)
        assert targets[len(left) - 1 : -1].tolist() == learnt
        assert targets[-1] == IGNORED
        used += len(left) + len(learnt)
    assert used == (19 + 2 * 1 + 1) + (8 + 2 * 1 + 1)
    assert (rows.tokens_BL[0, used:] == PAD).all()
    assert (rows.documents_BL[0, used:] == -1).all()
    assert (rows.targets_BL[0, used:] == IGNORED).all()
    assert not rows.prefix_BL[0, used:].any()


def test_the_last_piece_is_cut_to_what_has_room():
    """64 tokens of one document: n + 2 · round(round(0.15 n) / 3) + 1 ≤ 64 for n ≤ 57."""
    tokens, documents = packed([[64]], 64, ended=False)
    ((left, learnt, _),) = pieces(corrupted(tokens, documents), 0)
    text, spans = restored(left, learnt)
    assert (len(text), len(spans)) == (57, 3)
    assert text == tokens[0, :57].tolist()
    assert len(left) + len(learnt) == 64


def test_every_way_to_cut_is_as_likely():
    """5 items in 3 parts: six ways, each 1,000 of 6,000 times ± 5 σ = 144."""
    drawn = token_draws((6000, 5), 0, 1, 0)
    lengths, ways = np.empty(3, dtype=np.int64), Counter()
    for row in drawn:
        _segments(5, 3, row, lengths)
        ways[tuple(lengths.tolist())] += 1
    expected = {(a, b, 5 - a - b) for a in range(1, 4) for b in range(1, 5 - a)}
    assert ways.keys() == expected
    assert list(ways.values()) == pytest.approx([1000] * 6, abs=144)


def test_all_lengths_and_places_of_spans_are_as_likely():
    """Four of eight tokens in two spans: three ways to cut the noise, and six places for the spans,
    for the first token stays and they do not touch; each of 18 one time in 18 of 6,000 ± 5 σ.
    """
    tokens, documents = packed([[8, 8, 8]] * 2000, 40, ended=False)
    rows = corrupted(tokens, documents, corrupted=0.5, mean_span=2.0)
    found = Counter()
    for row in range(2000):
        for left, learnt, _ in pieces(rows, row):
            text, (first, second) = restored(left, learnt)
            found[len(first), text.index(first[0]), text.index(second[0])] += 1
    expected = {
        (size, start, then)
        for size in (1, 2, 3)
        for start in range(1, 4)
        for then in range(start + size + 1, 5 + size)
    }
    assert found.keys() == expected
    assert len(expected) == 18
    assert list(found.values()) == pytest.approx([6000 / 18] * 18, abs=90)


@pytest.mark.parametrize(("length", "spans"), [(128, 6), (256, 12), (512, 23), (2048, 93)])
def test_sentinels_are_counted_for_a_document_that_fills_the_row(length, spans):
    """At 15 % and 3, about a twentieth of the tokens, of which a row has a tenth less."""
    assert most_spans(length, 0.15, 3.0) == spans
    tokens, documents = packed([[length]], length, ended=False)
    ((left, _, _),) = pieces(corrupted(tokens, documents), 0)
    assert sum(token >= 10_000 for token in left) == spans


def test_too_few_sentinels_are_an_error():
    tokens, documents = packed([[100]], 128)
    with pytest.raises(ValueError, match="5 sentinels, 6 spans"):
        corrupt_spans(
            tokens,
            documents,
            token_draws(tokens.shape, 0, 1, 0),
            corrupted=0.15,
            mean_span=3.0,
            sentinels=SENTINELS[:5],
            end_id=END,
            padding_id=PAD,
        )
