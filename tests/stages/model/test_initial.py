"""Initial weights are a function of seed, name and place: any part is that of the whole."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.model.initial import _BLOCK, _fill_normal
from stages.parallel.boxes import Box, whole_box


def drawn(shape, box=None, *, seed=1, name="w", std=1.0):
    box = box or whole_box(shape)
    part = torch.full(box.shape, math.nan)
    _fill_normal(part, box, shape, std, seed, name)
    return part


@settings(max_examples=40)
@given(data=st.data(), shape=st.sampled_from([(700, 300), (5, 40_000), (3, 300, 200), (1, 7)]))
def test_a_part_is_drawn_as_it_is_in_the_whole(data, shape):
    """Rows as FSDP cuts them, columns as tensor parallelism does, experts as both."""
    bounds = [sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=2))) for n in shape]
    box = Box(tuple(low for low, _ in bounds), tuple(high - low for low, high in bounds))
    assert torch.equal(drawn(shape, box), drawn(shape)[box.slices])


def test_values_are_normal_and_differ_by_seed_name_and_block():
    shape = (4 * _BLOCK // 64, 64)
    values = drawn(shape, std=0.5)
    count = values.numel()
    assert abs(float(values.mean())) < 4 * 0.5 / math.sqrt(count)
    assert float(values.std()) == pytest.approx(0.5, rel=4 / math.sqrt(2 * count))
    # Kolmogorov-Smirnov at 1.95 / sqrt(n): one sample in a thousand is farther off.
    ranked = torch.special.ndtr(values.double().flatten() / 0.5).sort().values
    steps = torch.arange(1, count + 1) / count
    assert float((ranked - steps).abs().max()) < 1.95 / math.sqrt(count)
    blocks = values.view(4, -1)
    assert all(not torch.equal(blocks[0], other) for other in blocks[1:])
    assert not torch.equal(values, drawn(shape, std=0.5, seed=2))
    assert not torch.equal(values, drawn(shape, std=0.5, name="v"))
