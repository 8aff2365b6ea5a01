"""Who looks on at a training run, as its execution says: telemetry, TensorBoard, W&B, alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from artifacts_schema.identity import short
from artifacts_schema.store import Store
from stages.model.count import mfu_flops_per_token
from stages.training.listener import Listener
from stages.training.telemetry.alerts import Alert, Alerts
from stages.training.telemetry.earlier import EarlierRun
from stages.training.telemetry.forgiving import Forgiving
from stages.training.telemetry.listener import Telemetry
from stages.training.telemetry.peaks import peak_flops
from stages.training.telemetry.sensors import read_sensors
from stages.training.telemetry.table import TelemetryFile
from stages.training.telemetry.tensorboard import FOLDER, TensorBoard
from stages.training.telemetry.wandb_run import WandbRun

if TYPE_CHECKING:
    import torch

    from stages.engine import Context
    from stages.model.config import ModelConfig
    from stages.training.config import TrainingExecution


def observers(
    context: Context,
    model: ModelConfig,
    device: torch.device,
    device_name: str,
    lengths: Sequence[int] = (),
) -> list[Listener]:
    """The listeners that the execution asks for; `lengths` are the tokens of a sequence by phase.

    Raises UsageError for a run to compare with that is none, and for W&B without its package.
    """
    execution: TrainingExecution = context.execution
    folder = context.telemetry_folder
    every = execution.telemetry_every
    board = None
    if execution.tensorboard:
        board = Forgiving(TensorBoard(folder / FOLDER, every=every), context.log)
    wandb = None
    earlier = None
    if execution.compare_with is not None:
        store = Store(context.attempt.backend.url)
        earlier = EarlierRun.read(store, execution.compare_with)
    if execution.wandb != "off":
        wandb = WandbRun(
            mode=execution.wandb,
            project=execution.wandb_project,
            run_id=f"{context.attempt.stage}-{short(context.attempt.key)}",
            folder=folder,
            every=every,
            config=context.config.plain(),
            log=context.log,
        )
    dashboards: list[Forgiving | WandbRun] = [one for one in (board, wandb) if one is not None]
    telemetry = Telemetry(
        TelemetryFile(folder),
        every=every,
        sensors=lambda: read_sensors(device),
        flops_per_token=[mfu_flops_per_token(model, n) for n in lengths or (model.context,)],
        peak=peak_flops(device_name, execution.peak_tflops),
        readers=[one.telemetry for one in dashboards],
    )

    def tell(training_step: int, alert: Alert) -> None:
        said = f"{'no more of: ' if alert.over else ''}{alert.kind}: {alert.said}"
        context.alert(alert.kind, said, over=alert.over, training_step=training_step)
        if wandb is not None:
            wandb.alert(alert.kind, said)

    return [*dashboards, Forgiving(telemetry, context.log), Alerts(tell, earlier=earlier)]
