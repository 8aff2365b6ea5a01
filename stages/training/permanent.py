"""Permanent checkpoints: committed as artifacts of their own while the run goes on.

A thread writes them while training goes on. They do not depend on the layout, so everything that
reads a run's last checkpoint reads these as well: evaluation, fine-tuning, a longer run, a branch.
The plan decides their steps (`milestones`). A killed run resumes from rolling checkpoints, not from
these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from stages.engine import Context, Milestone
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import CONFIG_FILE, WEIGHTS_FILE
from stages.model.tensor_files import OpenFile, TensorSpec, write_tensors
from stages.parallel.ranks import ALONE, Ranks
from stages.parallel.shard_files import GatheredTensors, gather_on_first
from stages.tokens.chat_template import TokenizerFiles
from stages.training.adapters import adapter_files, merged
from stages.training.checkpointing import AVERAGES, OPTIMIZER, STATE, Saved
from stages.training.config import AdapterConfig
from stages.training.quantised import dequantise

TRAINED = "trained.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
OUTPUT = "checkpoint"


def write_checkpoint_files(
    open_file: OpenFile,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Any],
    tokenizer: TokenizerFiles,
    *,
    optimizer: Mapping[str, Tensor] | None = None,
    averages: Mapping[str, Tensor] | None = None,
    output: str = "weights",
    adapter: AdapterConfig | None = None,
    ranks: Ranks = ALONE,
) -> None:
    """Write the files of a checkpoint. Equal parts give equal bytes, on any layout.

    Training goes on from `weights`; `averages` is the state of the averages. `output` names the one
    that readers of the checkpoint get (`ema`, `mean`), or `weights`. With an `adapter` they get it
    merged, and its files; its optimizer and averages have no use without it, and are left out.

    Tensors that are spread over `ranks` are gathered one at a time: then this is called on all of
    them, and rank 0 writes.
    """
    prefix = f"{output}."
    average = {
        name.removeprefix(prefix): tensor
        for name, tensor in (averages or {}).items()
        if name.startswith(prefix) and output != "weights"
    }
    files: dict[str, bytes] = {}
    groups = {WEIGHTS_FILE: {**weights, **average}}
    if adapter is not None:
        whole = groups[WEIGHTS_FILE]
        if ranks.world > 1:
            whole = gather_on_first(whole, ranks)
            if not ranks.first:
                return
            ranks = ALONE
        if adapter.quantised is not None:
            whole = dequantise(whole)
        files = adapter_files(config, whole, adapter)
        groups = {WEIGHTS_FILE: merged(whole, adapter)}
    else:
        if average:
            groups[TRAINED] = dict(weights)
        if averages:
            groups[AVERAGES] = dict(averages)
        if optimizer is not None:
            groups[OPTIMIZER] = dict(optimizer)
    for name, tensors in groups.items():
        _write_tensors(open_file, name, tensors, ranks)
    if not ranks.first:
        return
    files |= {CONFIG_FILE: _json(config.plain()), STATE: _json(state)}
    files |= {name: tokenizer.read_bytes(name) for name in TOKENIZER_FILES}
    for name, content in files.items():
        with open_file(name) as file:
            file.write(content)


class PermanentCheckpoints:
    """Commits the checkpoints of a plan as the training loop comes by them.

    `state_at(training_step)` is added to `state.json`: phase, position of the sample clock. With
    `guarded`, the state of the guard is added too.
    """

    def __init__(
        self,
        context: Context,
        milestones: Sequence[Milestone],
        *,
        model: Decoder,
        tokenizer: TokenizerFiles,
        state_at: Callable[[int], Mapping[str, Any]],
        optimizer: bool = True,
        output: str = "weights",
        guarded: bool = False,
        adapter: AdapterConfig | None = None,
    ) -> None:
        self._context, self._model, self._tokenizer = context, model, tokenizer
        self._state_at, self._optimizer, self._output = state_at, optimizer, output
        self._guarded, self._adapter = guarded, adapter
        # The last one is the run's own output.
        self._due = {one.at: one for one in milestones[:-1]}

    def is_due(self, training_step: int) -> bool:
        """Whether the plan has a checkpoint after this training step, done or excluded."""
        return training_step in self._due

    def commit(self, training_step: int, tokens: int, saved: Saved) -> None:
        """Commit the checkpoint of a training step that is due, while training goes on.

        The tensors of `saved` do not change meanwhile. Raises StoreError where it cannot be
        written, LeaseLost if another run took the key over.
        """
        milestone = self._due[training_step]
        excluded = [part for part in saved.state.get("left_out", ()) if part[0] <= training_step]
        state = {
            "stage": self._context.attempt.stage,
            "training_step": training_step,
            "tokens": tokens,
            "skipped_updates": saved.state.get("skipped", 0),
            **({"left_out": excluded} if excluded else {}),
            **({"guard": saved.state["guard"]} if self._guarded else {}),
            **self._state_at(training_step),
        }
        with self._context.interim(
            milestone, [OUTPUT], history=excluded, training_steps=training_step, tokens=tokens
        ) as writers:
            write_checkpoint_files(
                partial(writers.open, OUTPUT),
                self._model.config,
                saved.weights,
                state,
                self._tokenizer,
                optimizer=saved.optimizer if self._optimizer else None,
                averages=saved.averages,
                output=self._output,
                adapter=self._adapter,
            )

    def rolled_back(self, first: int) -> None:
        """The run goes back before training step `first`: withdraw later checkpoints.

        Readers of one keep it; from here on the run commits others, with other keys.
        """
        self._context.withdraw_interims(first - 1)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode("utf-8")


def _write_tensors(
    open_file: OpenFile, name: str, tensors: Mapping[str, Tensor], ranks: Ranks
) -> None:
    """A file of tensors, or several; each is whole on the CPU while it is written."""
    gathered = GatheredTensors.of_ranks(tensors, ranks)
    specs = {
        one: TensorSpec(dtype, shape)
        for one, (_, shape, dtype) in sorted(gathered.kinds.items(), key=_by_layer)
    }
    write_tensors(open_file if ranks.first else None, name, specs, gathered.one)


def _by_layer(named: tuple[str, Any]) -> list[tuple[int, str]]:
    """Sorts tensors of one layer together, layers by number: files do not depend on the layout."""
    return [(int(part) if part.isdigit() else -1, part) for part in named[0].split(".")]
