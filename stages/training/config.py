"""Settings that pretraining and post-training share. Pydantic only, so that recipes load fast."""

from __future__ import annotations

import datetime
import re
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import UsageError
from stages.engine.allotment import available_cores
from stages.engine.machines import ONE_MACHINE, Machines
from stages.parallel.layout import ONE_PROCESS, Layout

Preflight = Literal["refuse", "warn", "off"]


class ObservedExecution(Execution):
    """How a training run is observed: pre-flight, telemetry, dashboards, alerts."""

    preflight: Preflight = Field(
        default="refuse",
        description="What the pre-flight does about a finding that would fail the run: refuse to "
        "start, or warn; `off`: no pre-flight.",
    )
    telemetry_every: int = Field(
        default=10, ge=1, description="Training steps between rows of telemetry and TensorBoard."
    )
    profile_ranks_every: int | None = Field(
        default=100,
        ge=2,
        description="Of several ranks: training steps between profiles of one step, which tell the "
        "work and memory of each rank, its time and bytes in collectives; null: none.",
    )
    peak_tflops: float | None = Field(
        default=None,
        gt=0,
        description="Peak of the device for MFU, in 10^12 operations a second; by default that of "
        "its data sheet, for a known GPU.",
    )
    tensorboard: bool = Field(
        default=True, description="Whether event files for TensorBoard are written."
    )
    wandb: Literal["off", "offline", "online"] = Field(
        default="off",
        description="Whether the run is logged to Weights & Biases; its key is never a setting: "
        "`wandb login`, or WANDB_API_KEY.",
    )
    wandb_project: str = Field(default="ingot", min_length=1, description="Its project.")
    mlflow: str | None = Field(
        default=None,
        description="Where the run is logged to MLflow: the address of a tracking server, or "
        "`sqlite:///FILE`; null: nowhere. User, password and token are never a setting: "
        "MLFLOW_TRACKING_USERNAME, _PASSWORD, _TOKEN.",
    )
    mlflow_experiment: str = Field(default="ingot", min_length=1, description="Its experiment.")
    compare_with: str | None = Field(
        default=None,
        description="A run in the store, by name or key: raise an alert when held-out loss is "
        "worse than in that run at equal tokens.",
    )

    @field_validator("mlflow")
    @classmethod
    def _address_without_credentials(cls, address: str | None) -> str | None:
        if address is not None and "@" in address.partition("://")[2].split("/")[0]:
            raise ValueError("the address holds credentials; set them in the environment")
        return address

    @model_validator(mode="after")
    def _named_run(self) -> Self:
        if self.compare_with is not None and not self.compare_with.strip():
            raise ValueError("compare_with: name a run, or leave it out")
        return self


class StabilityConfig(Config):
    """What counts as an anomaly of a training run, and when it skips, rolls back or stops.

    A training step with an anomaly updates nothing. Several of them near each other roll the run
    back to an earlier checkpoint, and the steps that led there are excluded (as Chowdhery et al.
    2022, PaLM, section 5.1, did by hand). If that does not help, the run stops with an error.
    """

    enabled: bool = Field(
        default=True,
        description="Whether anomalies are handled; otherwise updates are skipped only where loss "
        "or gradient is not finite, up to optimizer.skip_limit.",
    )
    window: int = Field(
        default=128,
        ge=8,
        le=2_000,
        description="Earlier training steps of the phase that loss and gradient norm are compared "
        "with; nothing is judged before half of them are done.",
    )
    threshold: float = Field(
        default=6.0,
        gt=0,
        description="Robust standard deviations above the window's median that make a spike.",
    )
    loss_floor: float = Field(
        default=0.02,
        ge=0,
        description="Smallest standard deviation of the loss, as a share of its median.",
    )
    grad_norm_floor: float = Field(
        default=0.25,
        ge=0,
        description="Smallest standard deviation of the gradient norm's natural logarithm.",
    )
    strikes: int = Field(
        default=3, ge=1, description="Anomalies within `window` that cause a rollback."
    )
    margin: int = Field(
        default=100,
        ge=0,
        description="Trained steps before the first anomaly that are excluded as well.",
    )
    rollbacks: int = Field(
        default=5, ge=0, le=100, description="Rollbacks of a run before it stops."
    )
    divergence: float | None = Field(
        default=0.4,
        gt=0,
        description="Share of the loss's gain since the first step that the window's median may "
        "lose again, at least a fifth of its lowest value; null: any.",
    )
    stall: int = Field(
        default=50,
        ge=2,
        description="Training steps with exactly the same loss, gradient norm or weights that stop "
        "the run.",
    )

    @model_validator(mode="after")
    def _strikes_fit(self) -> Self:
        if self.strikes > self.window:
            raise ValueError(f"{self.strikes} strikes do not fit a window of {self.window}")
        return self


Precision = Literal["bf16", "fp32", "fp16"]
TrainingPrecision = Literal[Precision, "fp8"]
TooLong = Literal["truncate", "drop"]
LearntTurns = Literal["assistant", "last", "everything"]


def _check_day(value: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise ValueError(f"'{value}' is no day like 2024-07-26")
    datetime.date.fromisoformat(value)
    return value


TemplateDate = Annotated[str, AfterValidator(_check_day)]


def template_date() -> Any:
    """The field of a config that writes conversations by a chat template."""
    return Field(
        default="2024-07-26",
        description="Day that a template which asks for it is told, as YYYY-MM-DD.",
    )


Decay = Literal["none", "linear", "1-sqrt", "cosine", "multi-step"]
BatchScaling = Literal["none", "sqrt", "linear"]
OptimizerName = Literal["adamw", "muon"]


class ParameterGroup(Config):
    """Parameters, selected by name, with their own optimizer, learning rate or decay."""

    match: str = Field(
        min_length=1,
        description="Pattern of their names, such as `blocks.*.mlp.*`; `*` stands for anything. "
        "The first group that matches decides.",
    )
    optimizer: OptimizerName | None = Field(
        default=None, description="Their optimizer; by default that of the run for such parameters."
    )
    rate: float = Field(default=1.0, gt=0, description="Their learning rate, as a multiple.")
    weight_decay: float | None = Field(
        default=None, ge=0, description="Their weight decay; by default that of such parameters."
    )


class MuonConfig(Config):
    """Muon (Jordan et al. 2024) for the matrices of the blocks; AdamW has the rest."""

    momentum: float = Field(default=0.95, ge=0, lt=1, description="Decay of the mean of gradients.")
    nesterov: bool = Field(
        default=True, description="Look ahead by mixing the gradient into that mean once more."
    )
    iterations: int = Field(
        default=5, ge=1, le=20, description="Newton-Schulz iterations that orthogonalise an update."
    )
    scale: Literal["match_rms", "spectral"] = Field(
        default="match_rms",
        description="Size of an update by the matrix's shape: as large as one of AdamW, whose "
        "learning rates then fit (Liu et al. 2025), or of spectral norm √max(1, rows/columns).",
    )


class OptimizerConfig(Config):
    """AdamW (Loshchilov & Hutter 2019) with the constants of today's pretraining recipes, or Muon
    for hidden matrices and AdamW for the rest.
    """

    name: OptimizerName = Field(
        default="adamw", description="AdamW for all, or Muon for the matrices of the blocks."
    )
    beta1: float = Field(default=0.9, ge=0, lt=1, description="Decay of the mean of gradients.")
    beta2: float = Field(default=0.95, ge=0, lt=1, description="Decay of the mean of squares.")
    epsilon: float = Field(
        default=1e-8, gt=0, description="Added to the root of the mean of squares."
    )
    weight_decay: float = Field(
        default=0.1, ge=0, description="Decay of matrices; embeddings, norms and biases have none."
    )
    clip: float = Field(default=1.0, gt=0, description="Largest global gradient norm of an update.")
    skip_limit: int = Field(
        default=10,
        ge=0,
        description="Updates that may be skipped because loss or gradient is not finite.",
    )
    muon: MuonConfig = Field(default=MuonConfig(), description="Settings of Muon.")
    groups: tuple[ParameterGroup, ...] = Field(
        default=(), description="Parameters with a learning rate or decay of their own."
    )

    @model_validator(mode="after")
    def _muon_is_asked_for(self) -> Self:
        if self.name != "muon":
            if self.muon != MuonConfig():
                raise ValueError("muon is set, but name is adamw, which does not read it")
            if any(group.optimizer == "muon" for group in self.groups):
                raise ValueError("a group asks for muon, but name is adamw")
        return self


class AdapterConfig(Config):
    """Low-rank matrices that are trained beside a model, which stays as it is."""

    method: Literal["lora", "dora"] = Field(
        default="lora",
        description="`lora`: W + alpha / rank · B A; `dora`: rows of that, of a trained length.",
    )
    rank: int = Field(default=16, ge=1, le=4096, description="Rows of A, columns of B.")
    alpha: int = Field(default=32, ge=1, description="Times B A, over the rank.")
    targets: tuple[str, ...] = Field(
        default=(),
        description="Matrices by the last part of their name in the released model, such as "
        "`q_proj`; by default all of the layers, of a model with experts those of attention.",
    )
    quantised: Literal["nf4", "fp4"] | None = Field(
        default=None, description="QLoRA: matrices of layers in four bits (extra `qlora`)."
    )

    @property
    def scale(self) -> float:
        """What B A is multiplied by."""
        return self.alpha / self.rank


class AveragesConfig(Config):
    """Averages of the weights over training steps, kept beside them; they change no update."""

    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Decay of an exponential moving average at each training step, such as 0.999; "
        "by default none is kept.",
    )
    last: int = Field(
        default=0, ge=0, description="Snapshots at the end of the run to take the mean of; 0: none."
    )
    every: int = Field(
        default=100,
        ge=1,
        description="Training steps between those snapshots; the last is the end.",
    )
    output: Literal["weights", "ema", "mean"] = Field(
        default="weights",
        description="What the checkpoint holds: the weights themselves, or an average.",
    )

    @model_validator(mode="after")
    def _output_is_kept(self) -> Self:
        if self.output == "ema" and self.ema is None:
            raise ValueError("output is ema, but no ema is kept; set ema, such as 0.999")
        if self.output == "mean" and self.last == 0:
            raise ValueError("output is mean, but last is 0; set how many snapshots it is of")
        return self

    @property
    def kept(self) -> int:
        """Averages that are kept: copies of the weights."""
        return (self.ema is not None) + (self.last > 0)

    def first_snapshot(self, steps: int) -> int:
        """Training step of the first snapshot in a run of so many.

        UsageError where the run has too few steps for all of them.
        """
        first = steps - (self.last - 1) * self.every
        if self.last and first < 1:
            raise UsageError(
                f"{self.last} snapshots, one every {self.every} training steps, do not fit in a "
                f"run of {steps}",
                where="averages",
                hint="lower averages.every or averages.last",
            )
        return first


DEEPSEEK_DROPS = ((0.8, 0.316), (0.9, 0.1))
"""The multi-step schedule of DeepSeek LLM (Bi et al. 2024, arXiv 2401.02954, section 2.3)."""


class LearningRate(Config):
    """The learning rate of one phase: warmup to a peak, the peak, a decay at the phase's end."""

    peak: float | None = Field(
        default=None, gt=0, description="Rate after warmup; by default that of the phase before."
    )
    warmup_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of the phase's training steps that warm up to the peak, from the last "
        "rate of the phase before (at first 0).",
    )
    warmup_steps: int | None = Field(
        default=None, ge=0, description="The same as a number of training steps."
    )
    warmup_tokens: int | None = Field(
        default=None, ge=0, description="The same in tokens, up to whole training steps."
    )
    decay: Decay = Field(default="none", description="Shape of the decay at the end of the phase.")
    decay_share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the phase's training steps that decay; by default all after warmup.",
    )
    final: float = Field(
        default=0.0, ge=0, le=1, description="Rate at the end of the decay, as a share of the peak."
    )
    drops: tuple[tuple[float, float], ...] = Field(
        default=DEEPSEEK_DROPS,
        min_length=1,
        description="For `multi-step`: pairs of a share of the phase, and the rate from there on "
        "as a share of the peak.",
    )
    batch_scaling: BatchScaling = Field(
        default="none",
        description="How the rate follows changes of the batch size: by the square root of the "
        "ratio in tokens, or linearly. `peak` is for the first size of its phase.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = [
            name
            for name in ("warmup_share", "warmup_steps", "warmup_tokens")
            if getattr(self, name) != type(self).model_fields[name].default
        ]
        if len(names) > 1:
            raise ValueError(f"{' and '.join(names)} say the same; set one")
        if self.warmup_share + (self.decay_share or 0) > 1:
            raise ValueError("warmup_share and decay_share together exceed the phase")
        if self.decay == "multi-step":
            if self.decay_share is not None or self.final:
                raise ValueError("multi-step has drops instead of decay_share and final")
            shares = [0.0, *(share for share, _ in self.drops), 1.0]
            if not all(a < b for a, b in pairwise(shares)):
                raise ValueError("drops rise from above 0 to below 1 of the phase")
            if not all(0 < factor <= 1 for _, factor in self.drops):
                raise ValueError("drops lead to shares of the peak, above 0 and up to 1")
        elif self.drops != DEEPSEEK_DROPS:
            raise ValueError(f"drops are set, but decay is {self.decay}, not multi-step")
        return self


def _check_device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,4})?", name):
        raise ValueError("a device is auto, cpu, cuda, or cuda:N for GPU number N")
    return name


Device = Annotated[str, AfterValidator(_check_device)]
"""`auto`, `cpu`, `cuda`, or `cuda:N`."""


def _cores() -> int:
    """Cores that this process may use, at most 8: more do not help models that train on a CPU."""
    return min(8, available_cores())


class RanksExecution(Execution):
    """Where a stage with `launch = "spmd"` runs: its processes, their devices and machines."""

    device: Device = Field(
        default="auto",
        description="Where to compute: `cpu`, `cuda`, or `cuda:1` for the second GPU; `auto` is a "
        "CUDA device if there is one. Of several ranks each has the GPU of its number.",
    )
    layout: Layout = Field(
        default=ONE_PROCESS,
        description="Processes of the run, by dimension of a device mesh; one by default. Results "
        "agree over layouts but for their last digits; the manifest records it.",
    )
    machines: Machines = Field(
        default=ONE_MACHINE,
        description="Machines of the run: how many, and where they meet; one by default.",
    )

    @model_validator(mode="after")
    def _ranks_fit_machines(self) -> Self:
        if self.layout.world % self.machines.count:
            raise ValueError(
                f"machines.count: {self.layout.world} ranks of the layout do not divide by "
                f"{self.machines.count} machines"
            )
        return self

    @model_validator(mode="after")
    def _ranks_have_their_own_devices(self) -> Self:
        if ":" in self.device and self.layout.world > 1:
            raise ValueError(
                f"device {self.device} is for one process; of {self.layout.world} ranks each has "
                "the GPU of its number (CUDA_VISIBLE_DEVICES says which there are)"
            )
        return self


class TrainingExecution(RanksExecution, ObservedExecution):
    """How a model is trained; the manifest's layout records threads, device and micro-batch."""

    threads: int = Field(
        default_factory=_cores, ge=1, description="Native threads; by default one a core, up to 8."
    )
    deterministic: bool = Field(
        default=True,
        description="Whether the arithmetic gives the same bits each time; otherwise a GPU is "
        "faster, and a resumed run differs in its last bits. The layout records `false`.",
    )
    micro_batch: int = Field(
        default=8,
        ge=1,
        description="Rows (dpo: pairs) of one forward and backward pass; bounds memory.",
    )
    checkpoint_every: int = Field(
        default=100, ge=1, description="Training steps between rolling checkpoints."
    )
    watchdog: float | None = Field(
        default=1800.0,
        gt=0,
        description="Seconds without a sign of life after which a run hangs, of one process at "
        "least 20 training steps: it logs stacks and ends with exit code 75; null: never. A sign "
        "of life of several ranks is a collective operation or a file that is read or written.",
    )
    attention: Literal["auto", "sdpa", "flex", "varlen"] = Field(
        default="auto",
        description="Attention kernels: torch's own with a dense mask, FlexAttention, or "
        "FlashAttention inside each document; `auto` is the fastest that supports the model, "
        "`sdpa` on a CPU. The layout records it.",
    )
    activation_checkpointing: Literal["none", "full", "cheap"] = Field(
        default="none",
        description="What the backward pass recomputes: nothing, whole blocks (least memory), or "
        "what is cheap: all but matrix products and attention. The results are the same bits.",
    )
    activation_checkpointing_every: int = Field(
        default=1, ge=1, description="Recompute in every n-th block only."
    )
    compile: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Compile blocks and loss by torch.compile, in pretraining; `auto`: on a CUDA "
        "device. The layout records it, because the last bits differ.",
    )
    logits_in_memory: int | None = Field(
        default=None,
        ge=1,
        description="Logits (tokens times vocabulary) in memory at once; by default 2 million on a "
        "CPU, 128 million on a GPU.",
    )
    prefetch: int = Field(
        default=2,
        ge=0,
        le=64,
        description="Batches that a thread prepares ahead of the training step; 0: none.",
    )
