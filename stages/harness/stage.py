"""The stages that run tasks of lm-evaluation-harness, and import its result files."""

from __future__ import annotations

from typing import Any

from stages.engine import Context, Inputs, Maybe, One, Stage
from stages.harness.config import HarnessConfig, HarnessExecution, ImportScoresConfig


class Harness(Stage):
    """Run tasks of lm-eval on a checkpoint; store its samples and scores beside Ingot's own.

    Tasks are those of a snapshot's task files, or come with lm-eval and read rows of the snapshot;
    a group is measured task by task, and scored as the harness weighs them.
    Nothing is downloaded: a task that would is refused by name. Requests are answered by the
    decoder that `evaluate` uses. Task files are data: Python that one names is imported only where
    the config trusts it.
    """

    name, version, reproducible = "harness", 1, "numerics"
    inputs = {"checkpoint": One("checkpoint"), "snapshot": Maybe("snapshot")}
    outputs = {"evaluation": "evaluation", "samples": "harness_samples"}
    libraries = ("datasets", "lm_eval", "numpy", "pyarrow", "tokenizers", "torch")
    Config, Execution = HarnessConfig, HarnessExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """UsageError where the extra is absent."""
        from stages.harness.library import check_installed

        check_installed()

    def run(self, context: Context) -> None:
        """Check every task before the first is measured."""
        from stages.harness.groups import aggregate
        from stages.harness.library import open_library, select

        harness = open_library(context.work)
        import torch

        from stages.engine.sources import source_files
        from stages.harness.measure import TaskPart, build_task, measure_task, read_task
        from stages.harness.scores import write_evaluation
        from stages.training.devices import choose_device, device_name

        config: HarnessConfig = context.config
        device = choose_device(context.execution.device)
        context.devices_held = 1 if device.type == "cuda" else 0
        snapshot = context.maybe("snapshot")
        files = source_files(snapshot) if snapshot is not None else []
        names, groups = select(config.tasks, files)
        for name in names:
            build_task(name, files, config, context.work)
        parts = [TaskPart(f"{number:04d}", name) for number, name in enumerate(names)]
        results = context.map(
            measure_task,
            parts,
            workers=None if device.type == "cpu" else context.execution.workers or 1,
            checkpoint=context.one("checkpoint"),
            snapshot=snapshot,
            config=config,
            execution=context.execution,
            device=str(device),
            folder=str(context.work),
        )
        tasks = [read_task(part, result) for part, result in zip(parts, results, strict=True)]
        combined = [aggregate(one, tasks, harness=harness) for one in groups]
        write_evaluation(context, [*tasks, *(one for one in combined if one.scores)])
        context.layout(
            device=device_name(device),
            dtype=config.dtype,
            threads=context.execution.threads,
            batch_tokens=context.execution.batch_tokens,
            harness=harness,
            torch=str(torch.__version__),
            cpu_capability=torch.backends.cpu.get_cpu_capability(),
        )


class ImportScores(Stage):
    """Read result files of lm-eval, so that published models stand in one table with one's own.

    Files of results give scores with their errors; files of samples beside them give items, which
    `ingot compare` pairs by the hash of each row. Groups keep the aggregate that the files state.
    Files are data of unknown origin: their size,
    depth and shape are checked, and of a model's arguments its name alone is kept.
    """

    name, version, reproducible = "import_scores", 2, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"evaluation": "evaluation"}
    libraries = ("numpy", "pyarrow")
    Config = ImportScoresConfig

    def run(self, context: Context) -> None:
        """Read, choose, convert."""
        from stages.engine.sources import source_files
        from stages.harness.result_files import read_result_files
        from stages.harness.scores import write_evaluation

        files = source_files(context.one("snapshot"))
        write_evaluation(context, read_result_files(files, context.config))
