"""The stage that measures a checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema import config as settings
from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Inputs, Many, Maybe, One, Stage, check_all, check_bad_share
from stages.evaluate.config import EvaluateConfig, EvaluateExecution

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.evaluate.benchmarks import BadItem, Item
    from stages.evaluate.parts import Part, PartResult
    from stages.parallel.ranks import Ranks
    from stages.scoring.answers import Answer
    from stages.scoring.observations import ItemName, Observation


class Evaluate(Stage):
    """Score a checkpoint on benchmarks and held-out text, and the pipeline on planted defects.

    Every score has a 95 % interval over the items that were drawn and a baseline: chance, or the
    token-unigram model. Items that the kept corpus holds an n-gram of are flagged, and scores
    without them are given too. With a truth list and the ledger, it counts the planted defects that
    were caught and the sound documents that were lost. A few generations show what numbers cannot.
    With an n-gram model, its accuracy on the same choices stands beside. Questions are answered in
    the chat format, and counted where the answer names what it was asked about.
    """

    name, version, reproducible, launch = "evaluate", 6, "numerics", "spmd"
    inputs = {
        "checkpoint": One("checkpoint"),
        "benchmarks": Many("benchmarks"),
        "held_out": Many("token_shards"),
        "contamination": Maybe("contamination"),
        "ledger": Maybe("ledger"),
        "rejected": Many("rejected"),
        "ngram_model": Maybe("ngram_model"),
        "truth": Maybe("truth"),
    }
    outputs = {"evaluation": "evaluation"}
    libraries = ("numpy", "pyarrow", "scipy", "tokenizers", "torch")
    Config, Execution = EvaluateConfig, EvaluateExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Something to measure, within the context of the checkpoint."""
        check_all(
            lambda: _check_truth(bool(inputs.get("truth")), bool(inputs.get("ledger"))),
            lambda: _check_anything_to_measure(config, inputs),
            lambda: _check_context(inputs),
        )

    @classmethod
    def ranks(cls, execution: settings.Execution) -> int:
        """See `Stage.ranks`. UsageError for ranks that share more than rows and parameters."""
        for name in ("tensor", "pipeline", "interleave", "context", "expert"):
            if getattr(getattr(execution, "layout", None), name, 1) > 1:
                raise UsageError(
                    "ranks of an evaluation share rows and parameters alone",
                    where=f"execution.layout.{name}",
                    hint="divide by data and shard",
                )
        return super().ranks(execution)

    @classmethod
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """See `ranks`. UsageError for float64 on several of them."""
        if cls.ranks(execution) > 1 and config.dtype == "float64":
            raise UsageError(
                "several ranks do not compute in float64",
                where="evaluate.dtype",
                hint="float32, or one process",
            )

    def run(self, context: Context) -> None:
        from stages.evaluate.pipeline_outcomes import (
            RecordOutcomes,
            contaminated_items,
            planted_observations,
            read_ledger,
            rejected_ids,
        )
        from stages.parallel.ranks import Ranks
        from stages.scoring.answers import to_table as answers_table
        from stages.scoring.choices import TABLE, to_table
        from stages.scoring.observations import ANSWERS, TASKS, merge_tasks
        from stages.training.devices import choose_device

        ranks = Ranks.from_group(choose_device(context.execution.device), context.execution.layout)
        context.devices_held = ranks.world if ranks.device.type == "cuda" else 0
        ledger, truth = context.maybe("ledger"), context.maybe("truth")
        _check_truth(truth is not None, ledger is not None)
        tasks = merge_tasks(context.many("benchmarks"))
        parts, items, clusters, read, bad = _parts(context, tasks)
        observed, generations, choices, notes = [], [], [], Counter[str]()
        answers: list[Answer] = []
        for result in _measure(context, parts, ranks):
            observed += result.observed
            bad += result.bad
            generations += result.generations
            choices += result.choices
            answers += result.answers
            notes.update(result.notes)
        _account(context, bad, read)
        _warn(context, notes)
        if not ranks.first:
            return

        if (ngram_model := context.maybe("ngram_model")) is not None:
            observed += _baselines(context, ngram_model, items, observed)
        verdicts = None if ledger is None else read_ledger(ledger)
        if truth is not None:
            rows = [row for shard in truth.shards() for row in shard.read().to_pylist()]
            fate = RecordOutcomes(verdicts or {}, rejected_ids(context.many("rejected")))
            observed += planted_observations(rows, fate)
        contamination, flags = context.maybe("contamination"), None
        if contamination is not None:
            hit = contaminated_items(contamination, verdicts)
            names = [(item.benchmark, item.item_id) for item in items]
            flags = {name: name in hit for name in names}
        context.write_table("evaluation", TABLE, to_table(choices))
        context.write_table("evaluation", ANSWERS, answers_table(answers))
        context.write_json("evaluation", TASKS, tasks)
        _write(context, observed, flags, clusters, generations, ranks)


def _check_truth(truth: bool, ledger: bool) -> None:
    """UsageError for a truth list without a ledger."""
    if truth and not ledger:
        raise UsageError(
            "planted defects cannot be looked up without a ledger",
            where="evaluate",
            hint="give the filter step's ledger to role `ledger`",
        )


def _check_anything_to_measure(config: EvaluateConfig, inputs: Inputs) -> None:
    """UsageError where neither inputs nor prompts ask for anything."""
    has_inputs = any(inputs.get(role) for role in ("benchmarks", "held_out", "truth"))
    if not has_inputs and not config.text_prompts and not config.chat_prompts:
        raise _nothing_to_measure()


def _nothing_to_measure() -> UsageError:
    return UsageError("nothing to evaluate", hint="give benchmarks, held_out or truth, or a prompt")


def _check_context(inputs: Inputs) -> None:
    """UsageError for held-out sequences that are longer than the model's context."""
    from stages.training.run_plan import model_shape, sequence_lengths

    shape = model_shape(inputs["checkpoint"][0])
    longest = max(sequence_lengths(inputs.get("held_out", ())) or [0])
    if shape is not None and longest > shape.context:
        raise UsageError(
            f"held-out sequences have {longest} tokens, the model's context has {shape.context}",
            where="held_out",
            hint="pack held-out text at the model's context",
        )


def _parts(
    context: Context, tasks: Sequence[Mapping[str, Any]]
) -> tuple[list[Part], list[Item], dict[ItemName, str | None], int, list[BadItem]]:
    """Parts to measure, the items in them, the clusters of all items, how many rows were read, and
    the unusable ones."""
    from stages.evaluate.benchmarks import FREE, QUESTION, draw, read_items
    from stages.evaluate.parts import GenerationPart, HeldOutPart, benchmark_parts, read_prompts
    from stages.evaluate.writing import free_requests
    from stages.scoring.choices import several_right
    from stages.training.token_shards import TokenShards

    config: EvaluateConfig = context.config
    tables = (shard.read() for one in context.many("benchmarks") for shard in one.shards())
    rows = (row for table in tables for row in table.to_pylist())
    items, bad = read_items(rows, config.cluster_by, several_right(tasks))
    if context.many("benchmarks") and not items and not bad:
        raise InputError("the benchmarks have no items", where="benchmarks")
    parts: list[Part] = []
    measured: list[Item] = []
    for number, name in enumerate(sorted({item.benchmark for item in items})):
        group = [item for item in items if item.benchmark == name]
        questions = [item for item in group if item.form == QUESTION]
        if questions:
            parts += _questions(context, f"questions-{number:04d}", questions)
        ranked = [item for item in group if item.form not in (QUESTION, FREE)]
        drawn = draw(ranked, config.max_items, config.seed)
        measured += drawn
        if drawn:
            parts += benchmark_parts(f"benchmark-{number:04d}", drawn)
        if written := draw([i for i in group if free_requests([i])], config.max_items, config.seed):
            parts += _answers(context, f"answers-{number:04d}", written, tasks)
            measured += [item for item in written if item not in drawn]
    if held_out := context.many("held_out"):
        sources = TokenShards(held_out).sources
        parts += [HeldOutPart(f"held-out-{n:04d}", name) for n, name in enumerate(sources)]
    if prompts := read_prompts(context.one("checkpoint"), config, context.log):
        parts.append(GenerationPart(tuple(prompts)))
    if skipped := len(config.text_prompts) + len(config.chat_prompts) - len(prompts):
        context.count(chat_prompts_skipped=skipped)
    if not parts and context.maybe("truth") is None:
        raise _nothing_to_measure()
    clusters = {(item.benchmark, item.item_id): item.cluster for item in items}
    return parts, measured, clusters, len(items) + len(bad), bad


def _questions(context: Context, name: str, items: Sequence[Item]) -> list[Part]:
    """Those that are asked, with their prompts; none without a chat template, with a warning."""
    from stages.evaluate.benchmarks import rank
    from stages.evaluate.parts import QuestionPart, render_questions

    chosen = rank(items, context.config.seed)[: context.config.max_questions]
    prompts = render_questions(context.one("checkpoint"), [item.prompt for item in chosen])
    if prompts is None:
        context.log.warning("the checkpoint has no chat template: no question is asked")
        context.count(questions_skipped=len(chosen))
        return []
    return [QuestionPart(name, tuple(chosen), tuple(prompts))]


def _answers(
    context: Context, name: str, items: Sequence[Item], tasks: Sequence[Mapping[str, Any]]
) -> Sequence[Part]:
    """Free requests of a benchmark as its task says; none in the chat format without a template."""
    from stages.evaluate.parts import render_questions, render_texts
    from stages.evaluate.writing import AnswerSettings, answer_parts

    checkpoint = context.one("checkpoint")
    task = next((one for one in tasks if one["name"] == items[0].benchmark), None)
    settings = AnswerSettings.from_task(task, context.config.max_new_tokens)
    if not settings.chat:
        return answer_parts(name, items, settings, lambda texts: render_texts(checkpoint, texts))
    if render_questions(checkpoint, []) is None:
        context.log.warning("the checkpoint has no chat template: %s is not asked", name)
        context.count(answers_skipped=len(items))
        return []
    return answer_parts(
        name, items, settings, lambda texts: render_questions(checkpoint, texts) or []
    )


def _baselines(
    context: Context, ngram_model: Input, items: Sequence[Item], measured: Sequence[Observation]
) -> list[Observation]:
    """What simpler judges make of the choices that were measured."""
    from stages.evaluate.baselines import baseline_observations, open_ngram_model
    from stages.model.files import read_tokenizer
    from stages.scoring.likelihood import unigram_nll
    from stages.training.token_shards import TokenShards

    held_out = context.many("held_out")
    return baseline_observations(
        items,
        measured,
        open_ngram_model(ngram_model, context.work),
        context.config.delimiter,
        read_tokenizer(context.one("checkpoint")),
        unigram_nll(TokenShards(held_out).train_counts()) if held_out else None,
    )


def _measure(context: Context, parts: Sequence[Part], ranks: Ranks) -> Sequence[PartResult]:
    """What was measured of each part: by workers, or by all ranks together."""
    from stages.evaluate.parts import measure_part, read_part
    from stages.evaluate.ranks import measure_on_ranks

    if ranks.world > 1:
        return measure_on_ranks(context, parts, ranks)
    results = context.map(
        measure_part,
        parts,
        workers=None if ranks.device.type == "cpu" else context.execution.workers or 1,
        checkpoint=context.one("checkpoint"),
        held_out=context.many("held_out"),
        config=context.config,
        execution=context.execution,
        device=str(ranks.device),
    )
    return [read_part(result) for result in results]


NOTES = {
    "prompts_cut": "prompts are longer than the model's context and lose their left end",
    "equal_choices": "items have two equal choices: the first of equal ones is taken",
    "prefix_choices": "items have a choice that another begins with: it is never less likely",
}
"""What is counted and warned of, and changes nothing."""


def _warn(context: Context, notes: Mapping[str, int]) -> None:
    for name, count in sorted(notes.items()):
        context.count(**{name: count})
        context.log.warning("%d %s", count, NOTES[name])


def _account(context: Context, bad: Sequence[BadItem], read: int) -> None:
    """Count items and report bad ones; InputError if there are too many."""
    for item in bad:
        context.count(**{f"bad_items_{item.reason}": 1})
        context.sample(item.reason, f"{item.benchmark}/{item.item_id}")
    context.count(items=read, bad_items=len(bad))
    samples = [f"{item.benchmark}/{item.item_id} {item.reason}" for item in bad]
    check_bad_share(len(bad), read, context.config.max_bad_share, samples, where="benchmarks")


def _write(
    context: Context,
    observed: Sequence[Observation],
    flags: Mapping[ItemName, bool] | None,
    clusters: Mapping[ItemName, str | None],
    generations: Sequence[Mapping[str, str | None]],
    ranks: Ranks,
) -> None:
    import pyarrow as pa
    import torch

    from artifacts_schema.kinds import KINDS
    from stages.scoring.observations import items_table, results_table, with_saved_bits
    from stages.training.devices import device_name

    observed = with_saved_bits(observed)
    context.write_table("evaluation", "results.parquet", results_table(observed, flags, clusters))
    context.write_table("evaluation", "items.parquet", items_table(observed, flags, clusters))
    schema = KINDS["evaluation"].tables["generations.parquet"].arrow()
    written = pa.Table.from_pylist(generations, schema=schema)
    context.write_table("evaluation", "generations.parquet", written)
    context.count(observations=len(observed), generations=len(generations))
    if ranks.world > 1:
        context.layout(ranks=ranks.layout.plain())
    context.layout(
        device=device_name(ranks.device),
        dtype=context.config.dtype,
        threads=context.execution.threads,
        batch_tokens=context.execution.batch_tokens,
        torch=str(torch.__version__),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
    )
