"""Memory of arrays that nobody holds is used again, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from stages.training.reused_memory import ReusedMemory


def test_memory_is_used_again_only_when_no_array_view_or_tensor_of_it_is_left(monkeypatch):
    torch = pytest.importorskip("torch")
    memory = ReusedMemory()
    shapes = (((4, 100), np.dtype(np.int64)), ((7,), np.dtype(np.int32)))

    def place(array):
        return array.__array_interface__["data"][0]

    for keep in (
        lambda arrays: arrays[1],
        lambda arrays: arrays[0][2:3, 5],
        lambda arrays: torch.from_numpy(arrays[0])[1:].view(-1),
    ):
        held = memory.arrays(*shapes)
        first = place(held[0])
        kept = keep(held)
        del held
        assert place(memory.arrays(*shapes)[0]) != first
        del kept
        with monkeypatch.context() as patched:
            patched.setattr(np, "empty", None)  # There is a block that is free: none is asked for.
            again = [memory.arrays(*shapes) for _ in range(2)]
        assert first in [place(arrays[0]) for arrays in again]


def test_arrays_of_one_call_do_not_overlap_and_can_be_written():
    wanted = [((3, 5), np.dtype(np.int64)), ((0, 4), np.dtype(np.int32)), ((9,), np.dtype("<u2"))]
    memory = ReusedMemory()
    for _ in range(3):
        arrays = memory.arrays(*wanted)
        for number, array in enumerate(arrays):
            array[...] = number
        assert [(a.shape, a.dtype) for a in arrays] == wanted
        assert all((array == number).all() for number, array in enumerate(arrays))
