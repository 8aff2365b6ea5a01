"""Parts of tensors: what two have in common, files that hold parts, and any layout reading them."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stages.parallel.boxes import Box, whole_box
from stages.parallel.shard_files import ShardFiles, save_parts


@st.composite
def boxes(draw, dimensions=2, most=6):
    sizes = [(draw(st.integers(0, most)), draw(st.integers(0, most))) for _ in range(dimensions)]
    return Box(tuple(low for low, _ in sizes), tuple(size for _, size in sizes))


@given(one=boxes(), other=boxes())
def test_an_overlap_is_the_elements_of_both(one, other):
    def elements(box):
        return set(itertools.product(*(range(part.start, part.stop) for part in box.slices)))

    common = one.overlap(other)
    assert (elements(common) if common else set()) == elements(one) & elements(other)


@given(outer=boxes(), other=boxes())
def test_a_part_within_another_is_the_same_elements(outer, other):
    common = outer.overlap(other)
    if common is not None:
        numbers = torch.arange(20 * 20).view(20, 20)
        assert torch.equal(numbers[outer.slices][common.within(outer)], numbers[common.slices])


@pytest.fixture
def cut(tmp_path):
    """`cut(tensor, 3)` → files of the parts that so many ranks hold, cut along the first dimension
    as torch cuts: equal ones, the last smaller or empty."""

    def write(tensor, ranks):
        size, paths = -(-len(tensor) // ranks), []
        for rank in range(ranks):
            first = min(rank * size, len(tensor))
            part = tensor[first : first + size]
            offset = [first, *[0] * (tensor.ndim - 1)]
            header = {"parts": f'{{"w": [{list(tensor.shape)}, {offset}]}}'}
            paths.append(tmp_path / f"model-{rank:05d}.safetensors")
            save_parts({"w": part}, header, paths[-1])
        return paths

    return write


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(7, 4), (6, 2, 3), (4,)])
def test_any_part_is_read_from_any_cut(cut, ranks, shape):
    tensor = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape)
    with ShardFiles(cut(tensor, ranks)) as files:
        assert dict(files).keys() == {"w"}
        assert files.shape("w") == shape
        assert torch.equal(files["w"], tensor)
        for first, end in itertools.combinations(range(shape[0] + 1), 2):
            box = Box((first, *[0] * (len(shape) - 1)), (end - first, *shape[1:]))
            assert torch.equal(files.part("w", box), tensor[first:end])


def test_a_missing_part_is_an_error_and_no_zeros(cut):
    paths = cut(torch.ones(6, 2), 3)
    with ShardFiles([paths[0], paths[2]]) as files:
        assert torch.equal(files.part("w", Box((4, 0), (2, 2))), torch.ones(2, 2))
        with pytest.raises(ValueError, match="w"):
            files.part("w", whole_box((6, 2)))


def test_numbers_and_nothing_are_written_and_read(tmp_path):
    path = tmp_path / "optimizer.safetensors"
    save_parts({}, {}, path)
    with ShardFiles([path]) as files:
        assert len(files) == 0
    save_parts({"step": torch.tensor(3.0)}, {}, path)
    with ShardFiles([path]) as files:
        assert float(files["step"]) == 3.0
