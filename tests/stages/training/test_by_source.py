"""What is measured of a training step by source, against sums over single tokens."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.by_source import BySource, HeldOutSums, languages_of
from stages.training.pieces import IGNORED, PADDED
from stages.training.rows import Rows

SOURCES = ("code", "news", "web")
BYTES = np.array([0, 0, 1, 3, 5, 2])
"""UTF-8 bytes of six tokens; the first two are special."""


def step(batch=5, length=7, seed=0):
    draw = np.random.default_rng(seed)
    targets = draw.integers(0, 6, (batch, length))
    targets[draw.random(targets.shape) < 0.3] = IGNORED
    documents = np.where(draw.random(targets.shape) < 0.1, PADDED, 0)
    targets[documents == PADDED] = IGNORED
    rows = Rows(np.zeros_like(targets), targets, documents)
    losses = torch.from_numpy(draw.random((batch, length)) * (targets != IGNORED)).float()
    return rows, losses, draw.integers(0, 3, (batch, 1))


def by_hand(rows, losses, sources_BL, chosen):
    """Mean loss, bits per byte, targets and tokens of the chosen sources, token by token."""
    nats = text_nats = size = targets = tokens = 0.0
    for place in np.ndindex(rows.targets_BL.shape):
        if sources_BL[place] not in chosen:
            continue
        tokens += rows.documents_BL[place] != PADDED
        target = rows.targets_BL[place]
        if target == IGNORED:
            continue
        loss = float(losses[place])
        nats, targets = nats + loss, targets + 1
        if BYTES[target]:
            text_nats, size = text_nats + loss, size + BYTES[target]
    bits = text_nats / math.log(2) / size if size else None
    return (nats / targets if targets else None), bits, targets, tokens


def added(one, other):
    return {name: one[name] + other[name] for name in one}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), cut=st.integers(1, 5))
def test_values_are_those_of_single_tokens_however_the_step_is_cut(seed, cut):
    rows, losses, sources = step(seed=seed)
    found = BySource(SOURCES, BYTES, {"de": [1], "en": [0, 2]})
    sums = None
    for start in range(0, 5, cut):
        part = slice(start, start + cut)
        own = Rows(rows.tokens_BL[part], rows.targets_BL[part], rows.documents_BL[part])
        new = found.sums(losses[part], own, sources[part])
        sums = new if sums is None else added(sums, new)
    values = found.measures({name: one.tolist() for name, one in sums.items()})
    assert values.keys() == {column.name for column in found.columns()}

    spread = np.broadcast_to(sources, rows.targets_BL.shape)
    _, bits, targets, _ = by_hand(rows, losses, spread, {0, 1, 2})
    assert values["targets"] == targets
    assert values["bits_per_byte"] == pytest.approx(bits)
    for number, name in enumerate(SOURCES):
        expected = by_hand(rows, losses, spread, {number})
        names = (f"loss/{name}", f"bits_per_byte/{name}", f"targets/{name}", f"tokens/{name}")
        for column, value in zip(names, expected, strict=True):
            assert values[column] == (None if value is None else pytest.approx(value))
    loss, bits, *_ = by_hand(rows, losses, spread, {0, 2})
    assert values["language_loss/en"] == (None if loss is None else pytest.approx(loss))
    assert values["language_bits_per_byte/en"] == (None if bits is None else pytest.approx(bits))


def test_a_step_and_a_held_out_batch_are_measured_alike():
    rows, losses, sources = step(seed=4)
    found = BySource(SOURCES, BYTES)
    sums = found.sums(losses, rows, sources)
    values = found.measures({name: one.tolist() for name, one in sums.items()})
    total = HeldOutSums(SOURCES, BYTES)
    total.add(losses, rows, sources)
    for one in total.measured():
        suffix = "" if one.source == "all" else f"/{one.source}"
        assert one.bits_per_byte == pytest.approx(values[f"bits_per_byte{suffix}"])


def test_without_bytes_there_are_no_bits_per_byte():
    rows, losses, sources = step()
    found = BySource(SOURCES)
    sums = found.sums(losses, rows, sources)
    values = found.measures({name: one.tolist() for name, one in sums.items()})
    assert not any("bits" in name for name in values)
    assert values.keys() == {column.name for column in found.columns()}


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ({"a": {"en": 5}, "b": {"de": 3}, "c": {"en": 1, "fr": 0}}, {"de": [1], "en": [0, 2]}),
        ({"a": {"en": 5}, "b": {"de": 3, "en": 1}, "c": {"en": 1}}, {}),
        ({"a": {"en": 5}, "b": {"": 3}, "c": {"de": 1}}, {}),
        ({"a": {"en": 5}, "b": {"en": 3}, "c": {}}, {}),
    ],
)
def test_languages_are_told_where_each_source_is_in_one(tokens, expected):
    """Not of a mixed source, not where documents declare none, not where all are in the same."""
    assert languages_of(tuple(tokens), tokens) == expected
