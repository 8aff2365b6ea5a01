"""What led to an anomaly: the module where values went not finite, and the documents of the step.

The step is repeated with hooks on every module. Its update was not made, so weights, batch and
random numbers are the same, and the same value appears again. Suspect documents are named, and
listed in the form that `filter` reads.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import torch
from torch import Tensor, nn

from artifacts_schema.errors import IngotError
from artifacts_schema.kinds import KINDS
from stages.parallel.boxes import local
from stages.parallel.ranks import ALONE, Ranks
from stages.training.config import StabilityConfig
from stages.training.guard import ADVICE, Rollbacks, robust_z
from stages.training.runtime import random_state, restore_random_state, uncompiled
from stages.training.sample_clock import SampleClock
from stages.training.task import Suspect, Task
from stages.training.token_shards import TokenShards


@contextmanager
def preserve_state(model: nn.Module) -> Iterator[None]:
    """Afterwards random state, buffers and mode are as before, and there are no gradients.

    There are none inside either, to begin with. Weights are the caller's to leave alone.
    """
    random, training = random_state(), model.training
    buffers = [(one, one.clone()) for one in model.buffers()]
    model.zero_grad(set_to_none=True)
    try:
        yield
    finally:
        restore_random_state(random)
        model.train(training)
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


Where = Literal["weights", "forward", "loss", "backward"]


@dataclass(frozen=True)
class Fault:
    """The first value that was not finite.

    `module` is the name of the module whose weights, output or gradient it is (of the innermost, if
    one lies in another), `micro_batch` counts from 0 within the training step; None where the
    weights were not finite before it.
    """

    where: Where
    module: str
    micro_batch: int | None = None
    rank: int | None = None
    """The rank that saw it, of several."""

    def __str__(self) -> str:
        rank = f" on rank {self.rank}" if self.rank is not None else ""
        part = f" of micro-batch {self.micro_batch}" if self.micro_batch is not None else ""
        what = {"weights": "the weights of", "loss": "the loss behind"}.get(
            self.where, f"the {self.where} pass of"
        )
        return f"{what} {self.module or 'the model'}{part}{rank}"


def find_fault(model: nn.Module, task: Task, batch: Any, ranks: Ranks = ALONE) -> Fault | None:
    """Do a training step again, without its update, up to the first value that is not finite.

    Several ranks do all of it, since they wait for each other; that of the first micro-batch with
    one is returned, on each of them.

    None where all are: then the sum over micro-batches overflowed, or the fault does not come
    again (a defective device). Blocks run as they are written, compiled or not. Gradients are gone
    afterwards; buffers, the random state and all else are as before.
    """
    fault = next(
        (Fault("weights", name) for name, p in model.named_parameters() if not _finite(local(p))),
        None,
    )
    if (first := _first_fault(fault, ranks)) is not None:
        return first
    with preserve_state(model), uncompiled():
        for number, (loss, record) in enumerate(_passes(model, task, batch)):
            if fault is None and record.forward:
                fault = Fault("forward", record.forward[0], number)
            if fault is None and not _finite(loss):
                fault = Fault("loss", "", number)
            if fault is not None and ranks.world == 1:
                return fault
            loss.backward()  # type: ignore[no-untyped-call]
            if fault is None and (module := record.first()) is not None:
                fault = Fault("backward", module, number)
            if fault is not None and ranks.world == 1:
                return fault
    return _first_fault(fault, ranks)


def _first_fault(own: Fault | None, ranks: Ranks) -> Fault | None:
    """That of the lowest micro-batch, and rank."""
    if ranks.world == 1:
        return own
    faults = [
        replace(fault, rank=rank)
        for rank, fault in enumerate(ranks.gather(own))
        if fault is not None
    ]
    return min(faults, key=lambda fault: fault.micro_batch or 0, default=None)


@dataclass
class _PassRecord:
    """What the hooks saw in one micro-batch; modules in the order in which their forward ended."""

    forward: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)

    def first(self) -> str | None:
        """The innermost module whose gradients came in finite and went out not finite."""
        for name in reversed(self.order):
            bad = name in self.inputs or name in self.parameters
            if bad and name not in self.outputs and not self._within(name):
                return name
        return min(self.parameters | self.inputs | self.outputs, default=None)

    def _within(self, name: str) -> bool:
        """Whether a module inside `name` is one as well."""
        return any(
            one.startswith(f"{name}." if name else "")
            and one != name
            and (one in self.inputs or one in self.parameters)
            and one not in self.outputs
            for one in self.order
        )


def _passes(model: nn.Module, task: Task, batch: Any) -> Iterator[tuple[Tensor, _PassRecord]]:
    """The loss of each micro-batch, and a record of its forward and backward pass."""
    handles: list[Any] = []
    record = _PassRecord()

    def entered(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            _on_gradient((*arguments, *named.values()), name, record.inputs, handles)

        return hook

    def left(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: Any, result: Any) -> None:
            record.order.append(name)
            if not all(_finite(one) for one in _tensors(result)):
                record.forward.append(name)
            _on_gradient(result, name, record.outputs, handles)

        return hook

    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(entered(name), with_kwargs=True))
        handles.append(module.register_forward_hook(left(name)))
        for own in module.parameters(recurse=False):
            _on_gradient(own, name, record.parameters, handles)
    try:
        for share in task.micro_batches(model, batch):
            yield share.loss, record
            for part in (record.forward, record.order):
                part.clear()
    finally:
        for handle in handles:
            handle.remove()


def _on_gradient(value: Any, name: str, results: set[str], handles: list[Any]) -> None:
    """Add `name` to `results` if the gradient of a tensor in `value` is not finite."""

    def look(gradient: Tensor) -> None:
        if not _finite(gradient):
            results.add(name)

    for tensor in _tensors(value):
        if tensor.requires_grad:
            handles.append(tensor.register_hook(look))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all()) if tensor.is_floating_point() else True


ANOMALIES = ("spike", "not_finite")
"""Kinds of events that cast suspicion on the documents of their training step."""

NAMED = 3


def outlier_rows(sequence_losses: Sequence[float]) -> list[int]:
    """The rows of a training step whose loss is not finite, or else a spike among the others'.

    Returns an empty list if no row is an outlier; every row is then suspect.
    """
    odd = [row for row, loss in enumerate(sequence_losses) if not math.isfinite(loss)]
    if odd or not sequence_losses:
        return odd
    middle, far = statistics.median(sequence_losses), StabilityConfig().threshold
    # The rows of a step are of all sorts: half of its median is what they differ by in any case.
    return [
        row
        for row, loss in enumerate(sequence_losses)
        if robust_z(loss, sequence_losses, least=0.5 * middle / far) > far
    ]


def documents_of_step(
    shards: TokenShards, clock: SampleClock, training_step: int, rows: Sequence[int] = ()
) -> list[Suspect]:
    """The documents of a training step of a run over token shards, each once, in order.

    Of these `rows` of its batch alone, if any are given.
    """
    draw = clock.batch(training_step)
    chosen = list(rows) or slice(None)
    sources = draw.sources[chosen]
    results = shards.documents_of(sources, draw.sequences[chosen])
    return sorted(
        {
            Suspect(shards.sources[source], piece.doc_id)
            for source, row in zip(sources.tolist(), results, strict=True)
            for piece in row
        }
    )


def format_suspects(suspects: Iterable[Suspect]) -> str:
    """How many documents of which source, the first of them by name."""
    results = sorted(set(suspects))
    counts = Counter(one.source for one in results)
    sources = ", ".join(f"{number:,} of {source}" for source, number in counts.most_common())
    named = ", ".join(one.doc_id for one in results[:NAMED])
    return f"documents: {sources} ({named}{', …' if len(results) > NAMED else ''})"


def excluded_table(
    events: Sequence[Mapping[str, Any]],
    documents: Callable[[int, Sequence[int]], Sequence[Suspect]],
) -> pa.Table:
    """`excluded.parquet` of a training run: the documents of each training step with an anomaly.

    Of the outlier rows, or of all. `documents(training_step, rows)` names them. Each document once,
    with the first such step and why. The columns of kind `exclusions` come first, so its rows can
    go on a list for `filter`.
    """
    rows: dict[str, dict[str, Any]] = {}
    for event in sorted(events, key=lambda one: one["training_step"]):
        step = event["training_step"]
        if event["kind"] in ANOMALIES:
            for source, doc_id in documents(step, json.loads(event["details"])["rows"]):
                reason = f"training step {step}: {event['kind'].replace('_', ' ')}"
                row = {"doc_id": doc_id, "reason": reason, "source": source, "training_step": step}
                rows.setdefault(doc_id, row)
    schema = KINDS["training_run"].tables["excluded.parquet"].arrow()
    return pa.Table.from_pylist([rows[doc_id] for doc_id in sorted(rows)], schema=schema)


STEPS_NAMED = 10
"""Training steps that are named, the last ones."""


def abort_error(
    rollbacks: Rollbacks,
    skips: Sequence[int],
    events: Sequence[Mapping[str, Any]],
    documents: Callable[[int, Sequence[int]], Sequence[Suspect]],
) -> IngotError:
    """The steps with an anomaly, `skips` the last of them, with the documents of these.

    `events` are rows of the run's table; `documents(training_step, rows)` knows what a step read.
    """
    every = [step for one in rollbacks.made for step in one.skips] + list(skips)
    suspects = {
        suspect
        for row in events
        if row["kind"] in ANOMALIES and row["training_step"] in skips
        for suspect in documents(row["training_step"], json.loads(row["details"])["rows"])
    }
    return IngotError(
        f"{len(rollbacks.made)} rollbacks have not helped: trouble at training steps "
        f"{format_steps(every)}" + (f"; {format_suspects(suspects)}" if suspects else ""),
        where=f"training step {skips[-1]}",
        hint=f"{ADVICE}; the log names a list of all documents",
    )


def format_steps(steps: Sequence[int]) -> str:
    """The last of these steps, in a line."""
    labels = ", ".join(f"{step:,}" for step in steps[-STEPS_NAMED:])
    return f"{'…, ' if len(steps) > STEPS_NAMED else ''}{labels}"
