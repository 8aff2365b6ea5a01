"""How a model computes: device, threads, attention, recomputation, compilation, same bits again.

Activation checkpointing (Chen et al. 2016, arXiv 1604.06174): blocks keep less for the backward
pass and compute it again. What is computed again gives the same bits, so losses and gradients do
not change; only memory and time do.

Each block is compiled separately by torch.compile: equal blocks share their compiled code, so a
deep model takes no longer to compile than a shallow one. Each shape of a batch has kernels of its
own, chosen by rule: which bits a step gives must not depend on what the process saw before it, or a
resumed run would differ. So compiling is for batches of few shapes; compiling that never ends is
reported (a step then takes seconds, allenai/OLMo-core#500).
"""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from artifacts_schema.errors import UsageError
from stages.engine import Context
from stages.model.attention import choose_attention
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.parallel.layout import ONE_PROCESS, Layout
from stages.parallel.ranks import ALONE, Ranks
from stages.training.callbacks import Callback, StepDone
from stages.training.config import TrainingExecution, TrainingPrecision
from stages.training.devices import (
    choose_device,
    current_device,
    determinism,
    device_name,
    missing_for_compiling,
)
from stages.training.losses import Arithmetic, TrainedRows, product_type
from stages.training.optimizer import Clip
from stages.training.rows import Rows
from stages.training.sample_clock import rank_rows
from stages.training.start import read_weights

if TYPE_CHECKING:
    from stages.parallel.pipeline_parallel import Pipeline


def random_state() -> dict[str, Any]:
    """The state of torch's generators, as text."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {"cpu": _text(torch.get_rng_state()), "cuda": [_text(state) for state in cuda]}


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Set torch's generators to what `random_state` gave."""
    torch.set_rng_state(_tensor(state["cpu"]))
    if state["cuda"] and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all([_tensor(one) for one in state["cuda"]])


def _text(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode("ascii")


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)


_RECOMPILE_LIMIT = 128
"""Ways to compile a block before torch gives up: kinds of layers × training or not × shapes."""


def compile_blocks(model: nn.Module, backend: str = "inductor") -> None:
    """Compile each of `model.blocks` at its first call; names stay as they are.

    To be called after `checkpoint_activations`. A block that does not compile as a whole is an
    error of torch, not a slow run; but blocks that route to experts may break in parts.
    """
    torch._dynamo.config.recompile_limit = max(
        torch._dynamo.config.recompile_limit, _RECOMPILE_LIMIT
    )
    for block in getattr(model, "blocks", ()):
        routes = hasattr(getattr(block, "mlp", None), "experts")
        block.forward = torch.compile(
            block.forward, backend=backend, dynamic=False, fullgraph=not routes
        )


def uncompiled() -> AbstractContextManager[None]:
    """Inside it, compiled blocks run eagerly: only then are the hooks of their modules called."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def compiled_graphs() -> int:
    """Graphs that torch has compiled in this process so far."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def graph_breaks() -> dict[str, int]:
    """Why torch could not compile something as a whole in this process so far: reason → times."""
    counted = torch._dynamo.utils.counters["graph_break"]
    return {reason.partition("\n")[0]: times for reason, times in counted.items()}


class CompileWatch(Callback):
    """Counts what is compiled during a run; warns where that does not end.

    A block that breaks into parts, or runs as it is written, is named in an alert and in the
    layout, because it is slower than a compiled one.
    """

    SETTLED = 20
    """Training steps of this process in which compiling is expected."""
    LATE = 3
    """Of later steps, the first that warns: a batch that grows compiles once each time."""

    def __init__(self, log: logging.Logger, context: Context) -> None:
        self.log, self.context = log, context
        self.before = self.last = compiled_graphs()
        self.steps = self.late = 0
        self.breaks_before, self.breaks = graph_breaks(), list[str]()

    def step_done(self, done: StepDone) -> None:
        """Check whether the step, or a measurement before it, compiled something."""
        self.steps += 1
        self._report_breaks(done.training_step)
        now = compiled_graphs()
        if now > self.last and self.steps > self.SETTLED:
            self.late += 1
            if self.late >= self.LATE:
                self.log.warning(
                    "training step %d compiled %d more graphs: shapes still change",
                    done.training_step,
                    now - self.last,
                )
        self.last = now

    def _report_breaks(self, training_step: int) -> None:
        new = [
            reason
            for reason, times in graph_breaks().items()
            if times > self.breaks_before.get(reason, 0) and reason not in self.breaks
        ]
        if not new:
            return
        self.breaks += new
        text = f"blocks are not compiled as a whole, parts of them run as written: {'; '.join(new)}"
        self.context.alert("compile", text, training_step=training_step)
        self.context.layout(graph_breaks=list(self.breaks))

    def ended(self, error: BaseException | None) -> None:
        """Say how many graphs the run compiled."""
        self.context.telemetry(compiled_graphs=compiled_graphs() - self.before)


def checkpoint_activations(model: nn.Module, execution: TrainingExecution) -> None:
    """Let every n-th of `model.blocks` keep less, as `execution` says; names stay as they are."""
    if execution.activation_checkpointing == "none":
        return
    how: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}  # None is drawn.
    if execution.activation_checkpointing == "cheap":
        how["context_fn"] = partial(create_selective_checkpoint_contexts, _policy)
    blocks = list(getattr(model, "blocks", ()))
    for block in blocks[:: execution.activation_checkpointing_every]:
        block.forward = partial(checkpoint, type(block).forward, block, **how)


def _policy(context: Any, operation: Any, *_: Any, **__: Any) -> CheckpointPolicy:
    saved = operation.name() in _SAVED_OPERATIONS
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


# Not bmm: the reference attention makes its scores by it, which are the dearest to keep.
_SAVED_OPERATIONS = {
    "aten::mm",
    "aten::addmm",
    "aten::_grouped_mm",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "torch_attn::_varlen_attn",
    "flex_attention",
}
"""Matrix products and attention, as ATen, `torch.nn.attention` and its operators name them."""


@dataclass(frozen=True)
class Runtime(Arithmetic):
    """How a run computes: its arithmetic, native threads, rows of a micro-batch, and ranks."""

    threads: int = 1
    micro_batch: int = 1
    ranks: Ranks = ALONE
    parallel: Layout = ONE_PROCESS
    deterministic: bool = True
    missing_for_compiling: str | None = None
    """What this machine lacks, where blocks would be compiled if it had it."""

    def rows_of_step(self, total: int) -> int:
        """How many rows a rank computes of a training step of `total`, the same on each.

        The last ones may be filler: every rank has as many as the one with most, and a pipeline
        whole micro-batches, interleaved whole rounds of them.
        """
        rows, layout = -(-total // self.parallel.rows), self.parallel
        if layout.pipeline == 1 or (rows <= self.micro_batch and layout.interleave == 1):
            return rows
        round_rows = self.micro_batch * (layout.pipeline if layout.interleave > 1 else 1)
        return -(-rows // round_rows) * round_rows

    def own_rows(self, rows: Rows) -> Rows:
        """Of the rows of a batch those that this rank computes, filled up to as many on each; and
        of each row the tokens that it has."""
        if self.ranks.world == 1:
            return rows
        own = rows.take(rank_rows(len(rows), self.ranks.row, self.parallel.rows))
        filled = self.rows_of_step(len(rows)) - len(own)
        return (own.padded(filled) if filled else own).of_context(self.ranks)

    def prepare_backward(
        self, model: nn.Module, *, last: bool, layers: range | None = None
    ) -> None:
        """Before a micro-batch's backward pass, of some `layers`; `last` of the training step."""
        if self.ranks.world > 1:
            from stages.parallel.data_parallel import set_last_micro_batch

            set_last_micro_batch(model, self.parallel, last=last, layers=layers)

    def passes(
        self, model: nn.Module, parts: Sequence[Rows], *, targets: float, z_loss: float = 0.0
    ) -> Iterator[tuple[int | None, TrainedRows]]:
        """What is to be differentiated for the micro-batches `parts` of a training step, in order.

        The caller does the backward pass of one before it asks for the next. The number is that of
        the micro-batch whose sums they hold: None for those of which a pipeline gives them with
        another pass.
        """
        if self.parallel.pipeline == 1:
            for number, rows in enumerate(parts):
                self.prepare_backward(model, last=number == len(parts) - 1)
                yield number, self.train(model, rows, targets=targets, z_loss=z_loss)
            return
        train = partial(self.train_layers, model, targets=targets, z_loss=z_loss)
        pipeline = self._pipeline(model)
        for unit, made in pipeline.run(
            lambda number, layers, states: train(parts[number], layers, states),
            len(parts),
            self._states_shape(model, parts[0]),
        ):
            last, layers = unit.number == len(parts) - 1, pipeline.groups[unit.group]
            self.prepare_backward(model, last=last, layers=layers)
            if not isinstance(made, TrainedRows):
                nothing = torch.zeros(parts[unit.number].targets_BL.shape, device=self.device)
                made = TrainedRows(made, nothing, nothing.sum(), nothing.sum())
            yield unit.number if unit.group == len(pipeline.groups) - 1 else None, made

    def losses(self, model: nn.Module, rows: Rows) -> Tensor:
        """[B, L] Token losses; see `Arithmetic.losses`. In a pipeline without gradients, and 0 on
        all stages but the last.

        A last micro-batch with fewer rows is filled up with padding if blocks are compiled: another
        shape would have kernels of its own.
        """
        lacking = max(0, self.micro_batch - len(rows)) if self.compiled else 0
        if lacking:
            return self.losses(model, rows.padded(lacking))[: len(rows)]
        if self.parallel.pipeline == 1:
            losses_BL: Tensor | None = super().losses(model, rows)
        else:
            with torch.no_grad():
                (losses_BL,) = self._pipeline(model).run_forward(
                    lambda _, layers, states: self.losses_of_layers(model, rows, layers, states),
                    1,
                    self._states_shape(model, rows),
                )
        if self.ranks.world > 1 and not (losses_BL is not None and losses_BL.requires_grad):
            from stages.parallel.data_parallel import drop_gathered

            drop_gathered(model)
        if losses_BL is None:
            return torch.zeros(rows.targets_BL.shape, device=self.device)
        return losses_BL

    def _pipeline(self, model: nn.Module) -> Pipeline:
        from stages.parallel.pipeline_parallel import Pipeline

        return Pipeline(self.parallel, self.ranks.stage, model.config.layers, self.device)  # type: ignore[union-attr, arg-type]

    def _states_shape(self, model: nn.Module, rows: Rows) -> tuple[int, int, int]:
        """Of the states of a micro-batch between layers."""
        batch, length = rows.tokens_BL.shape
        return batch, length // self.parallel.tensor, model.config.width  # type: ignore[union-attr, return-value]

    def layout(self) -> dict[str, Any]:
        """What bit-equality depends on besides config and inputs."""
        chosen = {
            "compiled": self.compiled or None,
            "logits_in_memory": self.logits,
            "deterministic": None if self.deterministic else False,
            "ranks": self.parallel.plain() if self.ranks.world > 1 else None,
        }
        return {
            "device": device_name(self.device),
            "precision": self.precision,
            "threads": self.threads,
            "micro_batch": self.micro_batch,
            "torch": str(torch.__version__),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            **{name: value for name, value in chosen.items() if value is not None},
        }


@contextmanager
def runtime(
    execution: TrainingExecution, precision: TrainingPrecision, seed: int, *, steady: bool = True
) -> Iterator[Runtime]:
    """The arithmetic that `execution` asks for; torch's settings are as before after the block.

    `steady` says that batches have few shapes, so that compiling for each pays. Raises UsageError
    when the device asked for is not there, or compiling is asked for where it does not pay or
    cannot be done.
    """
    device = choose_device(execution.device)
    compiled = should_compile(execution, device, steady)
    missing = None
    if steady and not compiled and execution.compile == "auto" and device.type == "cuda":
        missing = missing_for_compiling(device)
    threads = torch.get_num_threads()
    torch.set_num_threads(execution.threads)
    try:
        with (
            current_device(device),
            determinism(device, required=execution.deterministic, compiled=compiled),
        ):
            torch.manual_seed(seed)
            yield Runtime(
                device,
                precision,
                execution.logits_in_memory,
                compiled,
                threads=execution.threads,
                micro_batch=execution.micro_batch,
                ranks=Ranks.from_group(device, execution.layout),
                parallel=execution.layout,
                deterministic=execution.deterministic,
                missing_for_compiling=missing,
            )
    finally:
        torch.set_num_threads(threads)


def should_compile(execution: TrainingExecution, device: torch.device, steady: bool) -> bool:
    """Whether blocks are compiled; by default on a CUDA device that has what that needs.

    Raises UsageError where it is asked for, but each batch has another shape, or something is
    missing.
    """
    if execution.compile == "on" and not steady:
        raise UsageError(
            "compiling is for pretraining: here each batch has a shape of its own",
            where="execution.compile",
            hint="use auto",
        )
    if execution.compile == "auto":
        return steady and device.type == "cuda" and missing_for_compiling(device) is None
    if execution.compile == "on" and (missing := missing_for_compiling(device)):
        raise UsageError(
            f"compiling needs {missing}", where="execution.compile", hint="install it, or use off"
        )
    return execution.compile == "on"


def place(
    model: Decoder,
    execution: TrainingExecution,
    runtime: Runtime,
    *,
    prefixes: bool,
    weights: Mapping[str, Tensor] | None = None,
) -> str:
    """Make `model` ready to be trained; returns the attention backend that it has now.

    Once for a model: blocks that are compiled are not compiled again. `prefixes` says that some
    tokens see later ones. A model on the meta device gets its memory here, and `weights`, of which
    each rank reads what it holds; or new ones. UsageError for a backend that cannot do this model.
    """
    attention = resolve_attention(model.config, execution, runtime, prefixes=prefixes)
    model.set_attention(attention)
    if runtime.ranks.world == 1:
        model.to(runtime.device)
    else:
        from stages.parallel.spread import cut_model, materialise, spread_model

        cut_model(model, runtime.ranks)
    if runtime.precision == "fp8":
        from stages.training.float8 import use_float8

        use_float8(model, runtime.device, runtime.parallel)
    checkpoint_activations(model, execution)
    if runtime.compiled:
        compile_blocks(model)
    if runtime.ranks.world > 1:
        products = product_type(runtime.precision)
        spread_model(model, runtime.parallel, runtime.device, products=products)
        if weights is None:
            materialise(model, runtime.device)
        else:
            model.to_empty(device=runtime.device)
            read_weights(model, weights)
    return attention


def clip_function(model: nn.Module, runtime: Runtime) -> Clip:
    """What clips the gradients of a model that is placed, by their norm over all ranks."""
    if runtime.ranks.world == 1:
        return nn.utils.clip_grad_norm_
    from stages.parallel.spread import clip_on_ranks

    return clip_on_ranks(model, runtime.ranks)


def resolve_attention(
    config: ModelConfig, execution: TrainingExecution, runtime: Runtime, *, prefixes: bool
) -> str:
    """The backend that the execution names; for `auto`, the fastest that can do this model."""
    if execution.attention != "auto":
        return execution.attention
    return choose_attention(config, runtime.device, runtime.precision, prefixes=prefixes)
