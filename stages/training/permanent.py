"""Permanent checkpoints: committed as artifacts of their own while the run goes on.

They are written by a thread while training goes on. Free of any layout, so that everything that
reads a run's last checkpoint reads these as well: evaluation, fine-tuning, a longer run, a branch.
Where they lie is decided by the plan (`milestones`); rolling checkpoints, which a killed run goes
on from, are another matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetensors.torch import save
from torch import Tensor

from stages.model.files import CONFIG_FILE, WEIGHTS_FILE
from stages.training.checkpointing import AVERAGES, OPTIMIZER, STATE

if TYPE_CHECKING:
    from stages.engine import Context, Milestone
    from stages.model.config import ModelConfig
    from stages.model.decoder import Decoder
    from stages.tokens.chat_template import TokenizerFiles
    from stages.training.checkpointing import Saved

TRAINED = "trained.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
OUTPUT = "checkpoint"


@dataclass(frozen=True)
class CheckpointParts:
    """All that a checkpoint holds beside its tokenizer.

    `weights` are what training goes on from; `averages` the state of the averages that are kept;
    `output` names the one that readers of the checkpoint get (`ema`, `mean`), or `weights`.
    """

    config: ModelConfig
    weights: Mapping[str, Tensor]
    state: Mapping[str, Any]
    optimizer: Mapping[str, Tensor] | None = None
    averages: Mapping[str, Tensor] | None = None
    output: str = "weights"

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Name and content of each file, one at a time. Equal parts give equal bytes."""
        yield CONFIG_FILE, _json(self.config.plain())
        average = self._average()
        yield WEIGHTS_FILE, _tensors({**self.weights, **average})
        if average:
            yield TRAINED, _tensors(self.weights)
        if self.averages:
            yield AVERAGES, _tensors(self.averages)
        if self.optimizer is not None:
            yield OPTIMIZER, _tensors(self.optimizer)
        yield STATE, _json(self.state)

    def _average(self) -> dict[str, Tensor]:
        """The average that readers get, by parameter; empty where they get the weights."""
        prefix = f"{self.output}."
        results = self.averages or {}
        return {
            name.removeprefix(prefix): tensor
            for name, tensor in results.items()
            if name.startswith(prefix) and self.output != "weights"
        }


class PermanentCheckpoints:
    """Commits the checkpoints of a plan as the training loop comes by them.

    `state_at(training_step)` is what `state.json` says beside what the loop knows (phase, where the
    sample clock stands); with `guarded`, it says what the guard remembers.
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
    ) -> None:
        self._context, self._model, self._tokenizer = context, model, tokenizer
        self._state_at, self._optimizer, self._output = state_at, optimizer, output
        self._guarded = guarded
        # The last one is the run's own output.
        self._due = {one.at: one for one in milestones[:-1]}

    def is_due(self, training_step: int) -> bool:
        """Whether the plan has a checkpoint after this training step."""
        return training_step in self._due

    def commit(self, training_step: int, tokens: int, saved: Saved) -> None:
        """Commit the checkpoint of a training step that is due.

        Raises StoreError where it cannot be written, LeaseLost if another run took the key over.
        """
        milestone = self._due[training_step]
        left_out = [part for part in saved.state.get("left_out", ()) if part[0] <= training_step]
        parts = CheckpointParts(
            config=self._model.config,
            weights=saved.weights,
            optimizer=saved.optimizer if self._optimizer else None,
            averages=saved.averages,
            state={
                "stage": self._context.attempt.stage,
                "training_step": training_step,
                "tokens": tokens,
                "skipped_updates": saved.state.get("skipped", 0),
                **({"left_out": left_out} if left_out else {}),
                **({"guard": saved.state["guard"]} if self._guarded else {}),
                **self._state_at(training_step),
            },
            output=self._output,
        )
        with self._context.interim(
            milestone, [OUTPUT], history=left_out, training_steps=training_step, tokens=tokens
        ) as writers:
            for name, content in parts.files():
                writers.write_bytes(OUTPUT, name, content)
            for name in TOKENIZER_FILES:
                writers.write_bytes(OUTPUT, name, self._tokenizer.read_bytes(name))

    def rolled_back(self, first: int) -> None:
        """The run goes back before training step `first`: later checkpoints are no part of it.

        Who reads one of them keeps it; from here on the run commits others, with other keys.
        """
        self._context.withdraw_interims(first - 1)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode("utf-8")


def _tensors(tensors: Mapping[str, Tensor]) -> bytes:
    return save({name: one.detach().cpu().contiguous() for name, one in tensors.items()})
