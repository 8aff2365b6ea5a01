"""What is measured of a training step by source, against sums over single tokens."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.rows import Groups, HeldOutSums, Rows, SourceMetrics
from stages.training.token_shards import IGNORED, PADDED

SOURCES = ("code", "news", "web")
GROUPS = Groups(SOURCES, ((0, "de"), (0, "en"), (1, ""), (2, "en")))
"""Code is in two languages, news declare none."""
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
    return rows, losses, draw.integers(0, 4, targets.shape)


def by_hand(rows, losses, groups_BL, chosen):
    """Mean loss, bits per byte, targets and tokens of the chosen groups, token by token."""
    nats = text_nats = size = targets = tokens = 0.0
    for place in np.ndindex(rows.targets_BL.shape):
        if groups_BL[place] not in chosen:
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
    rows, losses, groups = step(seed=seed)
    found = SourceMetrics(GROUPS, BYTES)
    sums = None
    for start in range(0, 5, cut):
        part = slice(start, start + cut)
        own = Rows(rows.tokens_BL[part], rows.targets_BL[part], rows.documents_BL[part])
        new = found.sums(losses[part], own, groups[part])
        sums = new if sums is None else added(sums, new)
    values = found.measures({name: one.tolist() for name, one in sums.items()})
    assert values.keys() == {column.name for column in found.columns()}

    _, bits, targets, _ = by_hand(rows, losses, groups, {0, 1, 2, 3})
    assert values["targets"] == targets
    assert values["bits_per_byte"] == pytest.approx(bits)
    parts = {"/code": {0, 1}, "/news": {2}, "/web": {3}}
    parts |= {"language/": {2}, "language/de": {0}, "language/en": {1, 3}}
    for suffix, chosen in parts.items():
        prefix, _, name = suffix.rpartition("/")
        prefix += "_" if prefix else ""
        expected = by_hand(rows, losses, groups, chosen)
        names = ("loss", "bits_per_byte", "targets", "tokens")
        for what, value in zip(names, expected, strict=True):
            wanted = None if value is None else pytest.approx(value)
            assert values[f"{prefix}{what}/{name}"] == wanted


def test_a_step_and_a_held_out_batch_are_measured_alike():
    rows, losses, groups = step(seed=4)
    found = SourceMetrics(GROUPS, BYTES)
    sums = found.sums(losses, rows, groups)
    values = found.measures({name: one.tolist() for name, one in sums.items()})
    total = HeldOutSums(GROUPS, BYTES)
    total.add(losses, rows, groups)
    measured = total.measured()
    names = ["all", "code", "news", "web", "(none)", "de", "en"]
    assert [one.name for one in measured] == names
    for one in measured[1:]:
        assert one.loss == pytest.approx(values[one.column("loss")])
        assert one.bits_per_byte == pytest.approx(values[one.column("bits_per_byte")])
    assert measured[0].bits_per_byte == pytest.approx(values["bits_per_byte"])


def test_without_bytes_there_are_no_bits_per_byte():
    rows, losses, groups = step()
    found = SourceMetrics(GROUPS)
    sums = found.sums(losses, rows, groups)
    values = found.measures({name: one.tolist() for name, one in sums.items()})
    assert not any("bits" in name for name in values)
    assert values.keys() == {column.name for column in found.columns()}


def test_of_one_language_sources_alone_are_told():
    found = SourceMetrics(Groups.from_tokens(("a", "b"), {"a": {"en": 5}, "b": {"en": 1, "fr": 0}}))
    assert not [column.name for column in found.columns() if column.name.startswith("language")]
    total = HeldOutSums(found.groups)
    rows, losses, _ = step()
    total.add(losses, rows, np.ones((5, 1), dtype=np.int64))
    assert [one.name for one in total.measured()] == ["all", "b"]
