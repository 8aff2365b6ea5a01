"""The prompt_tuning stage: vectors before every conversation, trained for a model that stays."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Input, Inputs, Many, One, Stage, check_bad_share
from stages.prompt_tuning.config import PromptTuningConfig
from stages.training.config import TrainingExecution

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.prompt_tuning.conversations import Conversations
    from stages.training.fit import TrainedRun


class PromptTuning(Stage):
    """Train virtual tokens before every conversation; no weight of the model changes.

    It is Lester et al. 2021 (arXiv 2104.08691) with `peft`'s function and files: what comes out
    loads in `peft` beside the released model. It reads what `pack_chat` packed and learns what is
    marked there. A run that was killed goes on to the same bytes at the same layout.
    """

    name, version, reproducible = "prompt_tuning", 1, "numerics"
    inputs = {
        "checkpoint": One("checkpoint"),
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
    }
    outputs = {"prompt": "prompt", "training_run": "training_run"}
    libraries = ("torch", "peft", "safetensors", "numpy", "pyarrow", "tokenizers")
    Config, Execution = PromptTuningConfig, TrainingExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Tokenizers that differ, more virtual tokens than the model has room for, no `peft`."""
        from stages.engine.protocol import check_all
        from stages.training.run_plan import check_tokenizers, check_tuning, model_shape

        (start,) = inputs["checkpoint"]
        packed = [*inputs["train"], *inputs.get("held_out", ())]

        def check_room() -> None:
            shape = model_shape(start)
            if shape is not None:
                _check_room(config.virtual_tokens, shape.context)

        check_all(
            _check_peft,
            check_room,
            lambda: check_tuning(config, inputs),
            lambda: check_tokenizers([start, *packed]),
        )

    def run(self, context: Context) -> None:
        """Read the conversations, train, write the prompt as `peft` reads it."""
        from stages.model.files import read_tokenizer
        from stages.prompt_tuning.conversations import NOTHING
        from stages.prompt_tuning.prompt import attach_prompt, first_vectors
        from stages.prompt_tuning.task import PromptTask
        from stages.training.examples import ExampleClock
        from stages.training.fit import TrainingSettings, fit, write_run
        from stages.training.runtime import runtime
        from stages.training.schedule import schedule
        from stages.training.start import read_start

        config, start = context.config, context.one("checkpoint")
        _check_peft()
        with runtime(context.execution, config.precision, config.seed, steady=False) as how:
            model, _ = read_start(start, how.ranks)
            shape = model.config
            _check_room(config.virtual_tokens, shape.context)
            train = _read(context, "train", shape.vocabulary_size, shape.context)
            held_out = NOTHING
            if context.many("held_out"):
                held_out = _read(context, "held_out", shape.vocabulary_size, shape.context)
            vectors_VD = first_vectors(
                model, read_tokenizer(start), config.virtual_tokens, config.text, config.seed
            )
            attach_prompt(model, vectors_VD)
            clock = ExampleClock(
                len(train), config.conversations_per_batch, config.epochs, config.seed
            )
            task = PromptTask(train, held_out, clock, how, shape.context)
            phase = schedule([(clock.steps, config.learning_rate)], where=self.name)
            settings = TrainingSettings(phase, config.optimizer, config.held_out_every)
            run = fit(context, model, task, settings)
        _write_prompt(context, run, start)
        account = {
            "epochs": config.epochs,
            "virtual_tokens": config.virtual_tokens,
            "conversations": {
                "train": len(train),
                "held_out": len(held_out),
                "truncated": train.reasons["truncated"],
                "too_long": train.reasons["too_long"],
                "nothing_to_learn": train.reasons["nothing_to_learn"],
                "unused": {},
            },
        }
        write_run(context, run, account)


def _check_peft() -> None:
    if find_spec("peft") is None:
        raise UsageError(
            "prompt tuning writes its prompt by peft", hint="pip install 'ingot[peft]'"
        )


def _check_room(virtual: int, context: int) -> None:
    if virtual >= context:
        raise UsageError(
            f"{virtual} virtual tokens leave no room in a context of {context}",
            where="virtual_tokens",
        )


def _read(context: Context, role: str, vocabulary: int, longest: int) -> Conversations:
    """The conversations of a role; InputError if too many do not fit, or none is left."""
    from stages.prompt_tuning.conversations import read_conversations
    from stages.training.token_shards import TokenShards

    config = context.config
    shards = TokenShards(context.many(role))
    read = read_conversations(
        shards, _virtual_ids(vocabulary, config.virtual_tokens), longest, config.too_long
    )
    lost = read.total - len(read)
    reasons = [f"{reason}: {count}" for reason, count in sorted(read.reasons.items())]
    check_bad_share(lost, read.total, config.max_bad_share, reasons, where=role)
    context.count(**{f"{role}_conversations": read.total, f"{role}_left_out": lost})
    if not len(read):
        raise InputError("no conversation is left", where=role)
    return read


def _virtual_ids(vocabulary: int, count: int) -> NDArray[np.int64]:
    import numpy as np

    return np.arange(vocabulary, vocabulary + count, dtype=np.int64)


def _write_prompt(context: Context, run: TrainedRun, start: Input) -> None:
    from stages.prompt_tuning.prompt import PromptedEmbedding, prompt_files

    embedding: Any = run.model.embedding
    assert isinstance(embedding, PromptedEmbedding)
    virtual_VD = embedding.virtual.weight
    for name, content in prompt_files(run.model.config, virtual_VD, start.digest).items():
        context.write_bytes("prompt", name, content)
    state = {
        "stage": context.attempt.stage,
        "training_step": run.progress.training_step,
        "tokens": run.progress.tokens,
        "checkpoint": {"key": start.key, "digest": start.digest},
        "virtual_tokens": context.config.virtual_tokens,
    }
    context.write_json("prompt", "state.json", state)
