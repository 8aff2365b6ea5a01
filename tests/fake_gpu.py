"""A device `gpu:0` of fake tensors, to be asked for what the host would wait for.

`python tests/fake_gpu.py` runs each of `CASES` on it, from the start of a micro-batch to the clip,
backward passes included, and prints what was waited for as JSON: case → operations. Torch knows one
device of this kind a process, so tests run it in one of its own.
"""

from __future__ import annotations

import json
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from stages.model.attention import Varlen, find_pieces
from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.pairs.losses import LossSettings, Objective
from stages.parallel.ranks import ALONE
from stages.preference.task import AnswerLogProbabilities, PreferenceTask
from stages.training.config import OptimizerConfig
from stages.training.examples import Example
from stages.training.loop import StepSums
from stages.training.losses import (
    Arithmetic,
    OutputLayer,
    linear_cross_entropy,
    mean_cross_entropy,
)
from stages.training.optimizer import Optimizer
from stages.training.rows import Groups, Rows, SourceMetrics
from stages.training.runtime import Runtime
from stages.training.task import MicroBatch
from stages.training.token_shards import IGNORED, PADDED

VOCABULARY, LENGTH = 61, 24
SHAPES = {
    "plain": {},
    "windows": {"window": 7, "window_pattern": "SL", "nope_every": 2, "logit_softcap": 9.0},
    "experts": {"experts": Experts(experts=4, chosen=2, width=16, first=1)},
}


class Waits(TorchDispatchMode):
    """Notes copies between host and device that wait: all but those that are `non_blocking` and
    start in pinned memory, which `pin` stands for: fake tensors have none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.copies = 0
        self.pinned: dict[int, torch.Tensor] = {}

    def pin(self, tensor):
        self.pinned[tensor.untyped_storage()._cdata] = tensor
        return tensor

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default:
            self._copy(args[0], kwargs.get("device"), kwargs.get("non_blocking", False))
        elif func is torch.ops.aten.copy_.default:
            self._copy(args[1], args[0].device, len(args) > 2 and args[2])
        elif func is torch.ops.aten._local_scalar_dense.default and args[0].device.type == "cpu":
            return 0.0  # The host reads what it has; a fake tensor holds nothing.
        return func(*args, **kwargs)

    def _copy(self, source, target, non_blocking):
        if target is None or source.device.type == torch.device(target).type:
            return
        self.copies += 1
        if not non_blocking or source.untyped_storage()._cdata not in self.pinned:
            self.found.append(f"copy from {source.device.type} to {torch.device(target).type}")


class NewTensors(TorchDispatchMode):
    """Counts the float32 tensors of one size that operations make; `most` were alive together."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.made, self.most = size, 0, 0
        self.alive: list[weakref.ref[torch.Tensor]] = []
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = {id(one) for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)}
        result = func(*args, **kwargs)
        views = func.is_view or func in (torch.ops.aten.detach.default, torch.ops.aten.t.default)
        for one in result if isinstance(result, tuple | list) else (result,):
            if not isinstance(one, torch.Tensor) or id(one) in given or views:
                continue
            if (one.numel(), one.dtype) == (self.size, torch.float32):
                self.made += 1
                self.alive = [ref for ref in self.alive if ref() is not None]
                self.alive.append(weakref.ref(one))
                self.most = max(self.most, len(self.alive))
        return result


class VarlenHere(Varlen):
    """The backend on this device, whose kernel is only asked for the shape of its result."""

    def prepare(self, visible):
        return find_pieces(visible)


def rows_of(batch=3, seed=0):
    draw = np.random.default_rng(seed)
    documents = np.sort(draw.integers(0, 4, (batch, LENGTH)), axis=1).astype(np.int32)
    documents[:, -3:] = PADDED
    targets = draw.integers(0, VOCABULARY, (batch, LENGTH))
    targets[(draw.random(targets.shape) < 0.2) | (documents == PADDED)] = IGNORED
    tokens = draw.integers(0, VOCABULARY, (batch, LENGTH)).astype(np.int32)
    return Rows(tokens, targets, documents)


def decoder(**shape):
    base = {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "context": LENGTH}
    return Decoder(ModelShape(**base, **shape).with_vocabulary(VOCABULARY), seed=1)


def train(model, arithmetic, backward, rows, micro_batch=2):
    """Gradients of a step, and what is measured of it."""
    metrics = SourceMetrics(Groups.by_source(("a", "b")), np.arange(VOCABULARY) % 5)
    sums = StepSums()
    for number, part in enumerate(rows.split(micro_batch)):
        trained = arithmetic.train(model, part, targets=rows.targets, z_loss=1e-4)
        backward(trained.loss)
        groups_BL = np.full((len(part), 1), number % 2)
        measured = metrics.sums(trained.losses_BL, part, groups_BL)
        measured |= {"loss": trained.cross_entropy, "z_loss": trained.z_loss}
        sums.add(MicroBatch(trained.loss, part.tokens, measured))
    return sums


def _on_gpu(device, **shape):
    """A decoder with weights of bfloat16, which autocast would make of float32."""
    with torch.device("meta"):
        model = decoder(**shape)
    for module in model.modules():
        for name, one in list(module.named_parameters(recurse=False)):
            weight = torch.empty(one.shape, device=device, dtype=torch.bfloat16)
            setattr(module, name, torch.nn.Parameter(weight))
        for name, one in list(module.named_buffers(recurse=False)):
            setattr(module, name, torch.empty(one.shape, device=device, dtype=one.dtype))
    return model


def _pretrain(device, shape, attention):
    model = _on_gpu(device, **SHAPES[shape])
    model.attend_by(VarlenHere()) if attention == "varlen" else model.set_attention(attention)
    optimizer = Optimizer(model, OptimizerConfig())
    train(model, Arithmetic(device, "fp32"), optimizer.backward, rows_of())
    optimizer.clip()


def _dpo(device):
    model = _on_gpu(device)
    model.attend_by(VarlenHere())
    answer = Example(np.arange(9), np.arange(9) > 4)
    with torch.device("cpu"):
        reference = AnswerLogProbabilities(torch.zeros(4), torch.zeros(4))
    runtime = Runtime(device, "fp32", micro_batch=2)
    data, sums = SimpleNamespace(rows=[(answer, answer)] * 4), StepSums()
    objective = Objective("sigmoid", LossSettings(0.1))
    task = PreferenceTask(data, reference, None, runtime, LENGTH, objective)
    for part in task.micro_batches(model, np.arange(4)):
        part.loss.backward()
        sums.add(part)


def _reads_a_number(device):
    torch.zeros(3, device=device).sum().item()


def _counts_on_the_device(device):
    torch.zeros(3, device=device).nonzero()


def _copies_unpinned(device):
    torch.zeros(3).to(device, non_blocking=True)


def _ends_a_step(device):
    """What comes after the clip reads all sums in one transfer."""
    sums = StepSums()
    sums.add(MicroBatch(torch.zeros((), device=device), 3, {"counted": torch.zeros(2)}))
    sums.floats(torch.zeros((), device=device), ALONE)


def _output_layer(device, way):
    """Of 8 chunks; V · D numbers are in the matrix, the sum of its gradient, and nowhere else."""
    tokens, width, vocabulary = 256, 96, 512
    x_MD = torch.empty(tokens, width, device=device, dtype=torch.bfloat16, requires_grad=True)
    weight_VD = torch.empty(vocabulary, width, device=device, requires_grad=True)
    targets_M = torch.zeros(tokens, device=device, dtype=torch.int64)
    layer = OutputLayer(weight_VD, torch.bfloat16, logits=vocabulary * tokens // 8)
    with NewTensors(vocabulary * width) as new:
        if way == "mean":
            mean_cross_entropy(x_MD, layer, targets_M, divisor=3.0).loss.backward()
        else:
            linear_cross_entropy(x_MD, layer, targets_M).sum().backward()
    return {"made": new.made, "most": new.most}


CASES = {
    **{
        f"pretrain {shape} {attention}": (_pretrain, shape, attention)
        for shape in SHAPES
        for attention in ("varlen", "sdpa")
    },
    "dpo": (_dpo,),
    "output layer mean": (_output_layer, "mean"),
    "output layer each": (_output_layer, "each"),
    "reads a number": (_reads_a_number,),
    "counts on the device": (_counts_on_the_device,),
    "copies unpinned": (_copies_unpinned,),
    "ends a step": (_ends_a_step,),
}


class Module(_DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16]


def main() -> None:
    _setup_privateuseone_for_python_backend("gpu", Module())
    device, found = torch.device("gpu", 0), {}
    for name, (run, *arguments) in CASES.items():
        waits = Waits()
        torch.Tensor.pin_memory = lambda tensor, waits=waits: waits.pin(tensor)
        with FakeTensorMode(), waits:
            more = None
            try:
                more = run(device, *arguments)
            except (DataDependentOutputException, DynamicOutputShapeException) as error:
                waits.found.append(str(error.func))
        found[name] = {"waits": waits.found, "copies": waits.copies, **(more or {})}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
