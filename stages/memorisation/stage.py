"""The stage that measures how much of its training text a model gives back."""

from __future__ import annotations

from typing import Any

from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, One, Stage
from stages.memorisation.config import MemorisationConfig
from stages.scoring.execution import WholeModelExecution, take_device


class Memorisation(Stage):
    """Measure which training sequences a model continues word for word, by number of copies.

    A sequence is extracted if the model, shown its first 50 tokens, gives back the next 50 by
    greedy decoding (Carlini et al. 2022, arXiv 2202.07646). Sequences are beginnings of documents
    in the packed shards that the model was trained on; copies are documents that begin alike.
    Held-out documents, treated alike, show what is predictable rather than remembered.
    """

    name, version, reproducible = "memorisation", 1, "numerics"
    inputs = {
        "checkpoint": One("checkpoint"),
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
    }
    outputs = {"evaluation": "evaluation"}
    libraries = ("numpy", "pyarrow", "tokenizers", "torch")
    worker_modules = ("stages.memorisation.extraction",)
    Config, Execution = MemorisationConfig, WholeModelExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Sequences and a context that hold prompt and continuation."""
        from stages.training.run_plan import model_shape, sequence_lengths

        tokens = config.prompt_tokens + config.continuation_tokens
        packed = (*inputs.get("train", ()), *inputs.get("held_out", ()))
        shape = model_shape(inputs["checkpoint"][0])
        _check_fit(tokens, "the packed sequences have", max(sequence_lengths(packed) or [tokens]))
        _check_fit(tokens, "the model's context has", shape.context if shape else tokens)

    def run(self, context: Context) -> None:

        from stages.memorisation.extraction import list_parts, measure_part, observe
        from stages.memorisation.sequences import (
            GROUP,
            HELD_OUT,
            check_vocabulary,
            choose_sequences,
            list_files,
            scan_file,
        )
        from stages.model.files import read_config, read_tokenizer
        from stages.scoring.observations import empty_table, items_table, results_table

        config, execution = context.config, context.execution
        checkpoint = context.one("checkpoint")
        train, held_out = context.many("train"), context.many("held_out")
        check_vocabulary([*train, *held_out], read_tokenizer(checkpoint).get_vocab_size())
        device = take_device(context)

        tokens = config.prompt_tokens + config.continuation_tokens
        _check_fit(tokens, "the model's context has", read_config(checkpoint).context)
        files = [list_files(role, context.many(role), tokens) for role in ("train", "held_out")]
        scanned = context.map(scan_file, [one for some in files for one in some])
        edge = len(files[0])
        groups, known = choose_sequences(scanned[:edge], scanned[edge:], config)
        parts = list_parts(groups)
        results = context.map(
            measure_part,
            parts,
            workers=None if device.type == "cpu" else execution.workers or 1,
            train=files[0],
            held_out=files[1],
            is_held_out=GROUP + HELD_OUT,
            checkpoint=checkpoint,
            continuation=config.continuation_tokens,
            batch_tokens=execution.batch_tokens,
            threads=execution.threads,
            device=str(device),
        )
        observed = observe(parts, results, config.continuation_tokens, GROUP + HELD_OUT)
        context.write_table("evaluation", "results.parquet", results_table(observed))
        context.write_table("evaluation", "items.parquet", items_table(observed))
        for path in ("choices.parquet", "answers.parquet", "generations.parquet"):
            context.write_table("evaluation", path, empty_table(path))
        context.write_json("evaluation", "tasks.json", [])
        context.count(
            documents=sum(one.value["documents"] for one in scanned[:edge]),
            held_out_in_training=known,
            **{f"sequences_{one.name.removeprefix(GROUP)}": one.sequences for one in groups},
        )


def _check_fit(tokens: int, what: str, most: int) -> None:
    if tokens > most:
        raise UsageError(
            f"prompt and continuation have {tokens:,} tokens, {what} {most:,}",
            where="memorisation",
            hint="lower prompt_tokens or continuation_tokens",
        )
