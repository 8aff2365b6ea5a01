"""One rank of any layout in this process: fake tensors, and collectives that send nothing.

What a rank would hold and send is counted from the calls that it makes, at the true size of the
model; no tensor has memory.
"""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.fsdp import FSDPModule
from torch.multiprocessing.reductions import StorageWeakRef
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.parallel.boxes import local
from stages.parallel.layout import Layout
from stages.parallel.mesh import meshes
from stages.parallel.pipeline_parallel import sum_tied_embedding
from stages.parallel.ranks import Ranks
from stages.parallel.spread import cut_model, spread_model
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.losses import product_type
from stages.training.optimizer import Optimizer, treatments
from stages.training.rows import Rows
from stages.training.runtime import Runtime, checkpoint_activations

CPU = torch.device("cpu")
KINDS = {
    "c10d::_allgather_base_": "all_gather",
    "c10d::_reduce_scatter_base_": "reduce_scatter",
    "c10d::allreduce_": "all_reduce",
    "c10d::alltoall_base_": "all_to_all",
    "c10d::send": "send",
    "_c10d_functional::all_gather_into_tensor": "all_gather",
    "_c10d_functional::reduce_scatter_tensor": "reduce_scatter",
    "_c10d_functional::all_reduce": "all_reduce",
}
"""Operators that send something; others only receive or wait."""
SILENT = {"c10d::recv_", "_c10d_functional::wait_tensor"}


@dataclass
class Counted:
    """What one rank held in a training step, at the most, and sent, in bytes."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    kept: int = 0
    """Before a backward pass; on the last stage the gradients of states and output matrix too."""
    gathered: int = 0
    """Before a backward pass."""
    sent: Counter[str] = field(default_factory=Counter)


class Watch(TorchDispatchMode):
    """Bytes sent by kind of collective; storages that operations made, while something holds them.

    By a ring, a rank sends (N - 1) / N of what is gathered or scattered among N ranks, and twice
    that of what is summed on all: Patarasuk & Yuan 2009, doi 10.1016/j.jpdc.2008.09.002.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent: Counter[str] = Counter()
        self.storages: dict[int, StorageWeakRef] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.name()
        if name.partition("::")[0] in ("c10d", "_c10d_functional") and name not in SILENT:
            self._count(KINDS[name], args, result)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
                self.storages[storage._cdata] = StorageWeakRef(storage)
        return result

    def _count(self, kind: str, args: Any, result: Any) -> None:
        tensors = [one for one in tree_leaves(args) if isinstance(one, Tensor)]
        tensors += [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        ranks, size = _group(args).size(), max(tensor.nbytes for tensor in tensors)
        shares = {"all_reduce": 2 * (ranks - 1), "send": ranks}
        self.sent[kind] += shares.get(kind, ranks - 1) * size // ranks

    def held(self, without: set[int]) -> int:
        """Bytes of the storages that something holds, but for some."""
        return sum(_storage_bytes(ref) for key, ref in self.storages.items() if key not in without)


def _group(args: Any) -> dist.ProcessGroup:
    """The group among the arguments of a collective: an object, or at the end its name."""
    objects = [one for one in args if isinstance(one, torch.ScriptObject)]
    for one in objects:
        if one._type().name() == "ProcessGroup":
            return dist.ProcessGroup.unbox(one)
    names = [one for one in args if isinstance(one, str)]
    return dist.distributed_c10d._resolve_process_group(names[-1])


def _storage_bytes(ref: StorageWeakRef) -> int:
    if ref.expired():
        return 0
    storage = torch.UntypedStorage._new_with_weak_ptr(ref.cdata)
    return 0 if storage is None else storage.nbytes()


def count_rank(config: ModelConfig, layout: Layout, rank: int, **step: Any) -> Counted:
    """One training step of a rank with rows of one document, as the loop makes it.

    In a process of its own: torch keeps what it knows of a process group after its end. Raises
    AssertionError with the traceback where that fails.
    """
    context = get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_counted, args=(results, config, layout, rank, step))
    process.start()
    counted, failure = results.get()
    process.join()
    assert failure is None, failure
    return counted


def _counted(
    results: Any, config: ModelConfig, layout: Layout, rank: int, step: dict[str, Any]
) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)
    try:
        dist.init_process_group("fake", rank=rank, world_size=layout.world, store=FakeStore())
        send = dist.isend

        def send_at_once(*args: Any, **kwargs: Any) -> Any:
            """What the fake group sends is never completed, so the sender would keep all of it."""
            send(*args, **kwargs)
            return SimpleNamespace(is_completed=lambda: True, wait=lambda: True)

        dist.isend = send_at_once
        results.put((_count_step(config, Ranks.from_group(CPU, layout), **step), None))
    except BaseException:
        results.put((None, traceback.format_exc()))


def _count_step(
    config: ModelConfig,
    ranks: Ranks,
    *,
    micro_batches: int = 1,
    length: int = 512,
    precision: str = "bf16",
    optimizer: str = "adamw",
    checkpointing: str = "none",
) -> Counted:
    """Without micro-batches only the update is made, of gradients that come from nowhere."""
    counted, layout = Counted(), ranks.layout
    meshes(layout, "cpu")
    with torch.device("meta"):
        model = Decoder(config)
    settings = OptimizerConfig(name=optimizer)
    of_all = treatments(model, settings)
    runtime = Runtime(CPU, precision, logits=2**50, ranks=ranks, parallel=layout)
    cut_model(model, ranks)
    checkpoint_activations(model, TrainingExecution(activation_checkpointing=checkpointing))
    spread_model(model, layout, CPU, products=product_type(precision))
    tokens_BL = np.zeros((1, length), np.int64)
    own = Rows(tokens_BL, tokens_BL, tokens_BL).of_context(ranks)
    with FakeTensorMode(allow_non_fake_inputs=True):
        model.to_empty(device=CPU)
        updates = Optimizer(model, settings, of_all=of_all)
        with Watch() as watch:
            parts = [own] * micro_batches
            for _, made in runtime.passes(model, parts, targets=length) if parts else ():
                gathered = _gathered(model)
                of_parameters = {*gathered, *_weights_and_gradients(model)}
                counted.kept = max(counted.kept, watch.held(of_parameters))
                counted.gathered = max(counted.gathered, sum(gathered.values()))
                updates.backward(made.loss)
            if micro_batches:
                sum_tied_embedding(model, layout, ranks.stage)
        for parameter in () if micro_batches else model.parameters():
            parameter.grad = torch.empty_like(parameter)
        counted.sent = watch.sent
        updates.step()
    parameters = list(model.parameters())
    counted.weights = sum(local(one).untyped_storage().nbytes() for one in parameters)
    counted.gradients = sum(local(one.grad).nbytes for one in parameters)
    counted.optimizer = sum(local(one).nbytes for one in updates.tensors().values())
    return counted


def _gathered(model: Decoder) -> dict[int, int]:
    """Bytes of the storages in which parameters are whole, by storage."""
    found: list[Tensor] = []
    for module in model.modules():
        if isinstance(module, FSDPModule):
            for group in module._get_fsdp_state()._fsdp_param_groups:
                found += [one for p in group.fsdp_params for one in p.all_gather_outputs]
                ahead = getattr(group.comm_ctx, "all_gather_state", None)
                found += [ahead.all_gather_result.all_gather_output] if ahead else []
    return {one.untyped_storage()._cdata: one.untyped_storage().nbytes() for one in found}


def _weights_and_gradients(model: Decoder) -> set[int]:
    """The storages of parameters and gradients, of those that are not summed over ranks yet too."""
    found: list[Tensor | None] = []
    for module in model.modules():
        if isinstance(module, FSDPModule):
            for group in module._get_fsdp_state()._fsdp_param_groups:
                found.append(group._partial_reduce_output)
                sharded = [p.sharded_param for p in group.fsdp_params]
                found += [one for p in sharded for one in (p, p.grad)]
                wholes = [getattr(p, "_unsharded_param", None) for p in group.fsdp_params]
                found += [one.grad for one in wholes if one is not None]
                found += [p.unsharded_accumulated_grad for p in group.fsdp_params]
                found += [one.reduce_scatter_input for one in group.comm_ctx.reduce_scatter_states]
    return {local(one).untyped_storage()._cdata for one in found if one is not None}
