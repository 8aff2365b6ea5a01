"""The stage that writes what a teacher predicts over packed shards."""

from __future__ import annotations

from typing import Any

from artifacts_schema.errors import InputError
from stages.engine import Context, Inputs, One, Stage
from stages.scoring.execution import WholeModelExecution, take_device
from stages.teacher.config import TeacherConfig


class Teacher(Stage):
    """Write a teacher's likeliest tokens, with log-probabilities, for each token of packed shards.

    `pretrain` and `sft` take them as the input `teacher` and learn the distributions (offline
    distillation); the teacher itself is not loaded there. It sees documents apart, as training
    does. A teacher of another vocabulary is refused, for its ids would name other tokens.
    """

    name, version, reproducible = "teacher", 1, "numerics"
    inputs = {
        "checkpoint": One("checkpoint"),
        "train": One("token_shards"),
        "tokenizer": One("tokenizer"),
    }
    outputs = {"teacher": "teacher_log_probabilities"}
    libraries = ("numpy", "pyarrow", "tokenizers", "torch", "safetensors")
    worker_modules = ("stages.teacher.records",)
    Config, Execution = TeacherConfig, WholeModelExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Tokenizers that are known to differ, and sequences beyond the teacher's context."""
        from stages.engine.protocol import check_all
        from stages.training.run_plan import check_tokenizers, model_shape, sequence_lengths

        shape = model_shape(inputs["checkpoint"][0])
        lengths = sequence_lengths(inputs["train"]) or [0]
        check_all(
            lambda: check_tokenizers([one for role in inputs.values() for one in role]),
            lambda: _check_context(max(lengths), shape.context if shape else max(lengths)),
        )

    def run(self, context: Context) -> None:

        from stages.model.files import read_config
        from stages.teacher.records import SCRATCH, list_parts, summarize, write_part
        from stages.training.distillation import ENDING, FACTS
        from stages.training.token_shards import TOKENS, TokenShards

        config, execution = context.config, context.execution
        checkpoint, train = context.one("checkpoint"), context.one("train")
        tokenizer, shards = context.one("tokenizer"), TokenShards([train])
        if shards.tokenizer != tokenizer.digest:
            raise InputError("did not pack the token shards", where="tokenizer")
        if not checkpoint.has("tokenizer.json") or (
            checkpoint.read_bytes("tokenizer.json") != tokenizer.read_bytes("tokenizer.json")
        ):
            raise InputError(
                f"teacher {checkpoint.key[:12]} has another vocabulary than token shards "
                f"{train.key[:12]}",
                where="checkpoint",
                hint="pack with the tokenizer that the teacher carries",
            )
        shape = read_config(checkpoint)
        _check_context(max(shards.lengths.values()), shape.context)
        if config.top >= shards.vocabulary_size:
            raise InputError(
                f"is {config.top}, the vocabulary has {shards.vocabulary_size} tokens", where="top"
            )
        device = take_device(context)
        parts = list_parts(shards, train.read_json("shards.json"))
        results = context.map(
            write_part,
            parts,
            workers=None if device.type == "cpu" else execution.workers or 1,
            train=train,
            checkpoint=checkpoint,
            top=config.top,
            batch_tokens=execution.batch_tokens,
            threads=execution.threads,
            device=str(device),
        )
        waiting = list(zip(parts, results, strict=True))
        for path in dict.fromkeys(part.path for part in parts):
            with context.open("teacher", path.removesuffix(TOKENS) + ENDING) as writer:
                while waiting and waiting[0][0].path == path:
                    writer.write(waiting.pop(0)[1].scratch_path(SCRATCH).read_bytes())
            context.check_stop()
        by_source = summarize(parts, [result.value for result in results], shards)
        facts = {
            "checkpoint": checkpoint.digest,
            "token_shards": train.digest,
            "top": config.top,
            "vocabulary_size": shards.vocabulary_size,
            "sequence_length": shards.sequence_length,
            "sources": by_source,
        }
        context.write_json("teacher", FACTS, facts)
        context.count(targets=sum(one["targets"] for one in by_source.values()))


def _check_context(length: int, context: int) -> None:
    if length > context:
        raise InputError(
            f"sequences have {length:,} tokens, the teacher's context has {context:,}",
            where="checkpoint",
            hint="pack shorter sequences, or take a teacher of a longer context",
        )
