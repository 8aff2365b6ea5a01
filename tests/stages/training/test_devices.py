"""Which device computes, and how: its number, determinism, compilers, by stand-ins for CUDA."""

import os

import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.training import devices
from stages.training.config import TrainingExecution
from stages.training.devices import (
    choose_device,
    determinism,
    explain_compile_error,
    missing_for_compiling,
)
from stages.training.runtime import runtime

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def gpus(monkeypatch):
    """`gpus(n)`: as if there were n, the first of them current."""

    def pretend(count):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)

    return pretend


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("auto", 0, "cpu"),
        ("cpu", 2, "cpu"),
        ("auto", 2, "cuda:0"),
        ("cuda", 2, "cuda:0"),
        ("cuda:1", 2, "cuda:1"),
    ],
)
def test_the_device_is_the_one_that_was_named(name, count, expected, gpus):
    gpus(count)
    assert choose_device(name) == torch.device(expected)


@pytest.mark.parametrize(("name", "count"), [("cuda", 0), ("cuda:0", 0), ("cuda:2", 2)])
def test_a_device_that_is_not_there_is_refused(name, count, gpus):
    gpus(count)
    with pytest.raises(UsageError) as refused:
        choose_device(name)
    assert refused.value.where == "execution.device"


def test_of_several_ranks_each_has_the_gpu_of_its_number(gpus, monkeypatch):
    gpus(4)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert choose_device("auto") == torch.device("cuda", 3)
    assert choose_device("cuda") == torch.device("cuda", 3)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "CPU", "mps"])
def test_a_word_that_is_no_device_is_refused(name):
    with pytest.raises(UsageError, match=r"device: .*cuda:N"):
        TrainingExecution.parse({"device": name}, where="execution")


def test_a_number_is_refused_for_several_ranks():
    TrainingExecution.parse({"device": "cuda", "layout": {"data": 2}}, where="execution")
    with pytest.raises(UsageError, match="each has the GPU of its number"):
        TrainingExecution.parse({"device": "cuda:1", "layout": {"data": 2}}, where="execution")


def test_arithmetic_is_deterministic_unless_it_is_told_not_to_be():
    before = torch.get_deterministic_debug_mode()
    for wanted, mode in ((True, 2), (False, 0)):  # 2 raises, 0 allows anything
        execution = TrainingExecution(device="cpu", threads=1, deterministic=wanted)
        with runtime(execution, "fp32", 0) as how:
            assert torch.get_deterministic_debug_mode() == mode
            assert how.layout().get("deterministic") is (None if wanted else False)
        assert torch.get_deterministic_debug_mode() == before


@pytest.mark.parametrize("required", [True, False])
def test_cublas_and_inductor_are_told_only_if_it_is_required(required, monkeypatch):
    monkeypatch.delenv(devices.WORKSPACE, raising=False)
    with determinism(GPU, required=required, compiled=True):
        assert (os.environ.get(devices.WORKSPACE) == ":4096:8") is required
        assert torch._inductor.config.deterministic is required
    assert not torch._inductor.config.deterministic
    monkeypatch.setenv(devices.WORKSPACE, ":16:8")
    with determinism(GPU, required=True, compiled=False):
        assert os.environ[devices.WORKSPACE] == ":16:8", "the user's own setting stays"


def test_what_compiling_lacks_is_named(monkeypatch, tmp_path):
    there = {"gcc", "g++"}
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices.shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(devices, "find_spec", lambda name: object())
    monkeypatch.setattr(devices.sysconfig, "get_path", lambda name: str(tmp_path))
    assert "Python.h" in missing_for_compiling(GPU)
    (tmp_path / "Python.h").touch()
    assert missing_for_compiling(GPU) is None
    assert missing_for_compiling(CPU) is None
    monkeypatch.setenv("CC", "icc")
    assert "(icc, named by CC)" in missing_for_compiling(GPU)
    monkeypatch.setenv("CXX", "icpc")
    assert "(icpc, named by CXX)" in missing_for_compiling(CPU)
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    assert "triton" in missing_for_compiling(GPU)


def test_kernels_that_cannot_be_built_are_no_bug_of_ingot():
    def broken(graph, inputs):
        raise OSError("cc: not found\nand much more")

    torch._dynamo.reset()
    with pytest.raises(UsageError) as explained, explain_compile_error():
        torch.compile(lambda x: x + 1, backend=broken)(torch.zeros(2))
    torch._dynamo.reset()
    assert explained.value.where == "execution.compile"
    assert "OSError: cc: not found" in explained.value.what
    assert "much more" not in explained.value.what


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="mine"), explain_compile_error():
        raise RuntimeError("mine")
