"""Recipes of one step that continue a pretraining run from a checkpoint: extended or branched.

The step's phases are those of the whole run, from its first token on (`clock: continue`), so the
part before the checkpoint is written as the run had it. Inputs are named by their keys: the recipe
means these artifacts, wherever the run's names point later. Phases are plain values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from textwrap import indent
from typing import TYPE_CHECKING, Any

import yaml

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import list_interims
from flows.recipe.notation import set_step_value, sort_presets_first
from flows.recipe.upstream import check_stored
from stages.engine.inputs import Input
from stages.engine.protocol import stage_named
from stages.pretrain.config import PretrainConfig, format_sizes
from stages.training.config import LearningRate

if TYPE_CHECKING:
    from stages.pretrain.plan import Plan

STAGE = "pretrain"
ROLE = "checkpoint"

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?)([KMBT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


@dataclass(frozen=True)
class ContinuedRun:
    """A checkpoint of a run, with the run's config, inputs and plan, and its training step."""

    store: Store
    ref: str
    checkpoint: Manifest
    config: PretrainConfig
    plan: Plan
    step: int
    inputs: Mapping[str, tuple[InputRef, ...]] = field(default_factory=dict)

    @classmethod
    def open(cls, store: Store, ref: str) -> ContinuedRun:
        """The checkpoint that `RUN@1.6M` or a key names; with `RUN` alone its last one.

        UsageError if that is not a pretraining run, or not a checkpoint of it.
        """
        checkpoint = _resolve_checkpoint(store, ref)
        if checkpoint.stage != STAGE:
            raise UsageError(
                f"{checkpoint.stage} {short(checkpoint.key)} is not a pretraining run", where=ref
            )
        config = PretrainConfig.parse(checkpoint.config, where="the run's config")
        inputs = {role: group for role, group in checkpoint.inputs.items() if role != ROLE}
        start = next(iter(checkpoint.inputs.get(ROLE, ())), None)
        plan = _make_plan(store, config, inputs, start)
        state = Input.from_manifest(store, checkpoint, ROLE, full_check=False).read_json(
            "state.json"
        )
        return cls(store, ref, checkpoint, config, plan, int(state["training_step"]), inputs)

    @property
    def plain_phases(self) -> list[dict[str, Any]]:
        """The phases of the run's config as plain values, each of so many tokens."""
        return [
            {**phase.plain(), "tokens": phase.tokens or planned.tokens, "epochs": None}
            for phase, planned in zip(self.config.phases, self.plan.clock.phases, strict=True)
        ]

    @property
    def phase(self) -> int:
        """The phase that the checkpoint's training step belongs to."""
        return self.plan.clock.phase_of(self.step)

    @property
    def phase_steps(self) -> int:
        """Training steps of that phase up to the checkpoint."""
        return self.step - self.plan.clock.first_steps[self.phase] + 1

    def at_step(self, step: int) -> ContinuedRun:
        """The same run at the permanent checkpoint of the training step before its decay.

        UsageError if there is none.
        """
        run = self.checkpoint.interim_of.run if self.checkpoint.interim_of else self.checkpoint.key
        for one in list_interims(self.store, STAGE, run):
            checkpoint = self.store.manifest(STAGE, one.key) if one.at == step else None
            if checkpoint is not None:
                return replace(self, checkpoint=checkpoint, step=step)
        raise UsageError(
            f"there is no permanent checkpoint of training step {step:,}, after which the learning "
            "rate decays",
            where=self.ref,
            hint="name one that does, as RUN@1.6M (ingot ls shows them), or branch from the end",
        )

    def with_input(self, role: str, reference: InputRef) -> ContinuedRun:
        """The same run with one more input in a role."""
        return replace(self, inputs={**self.inputs, role: (*self.inputs.get(role, ()), reference)})

    def recipe(
        self,
        name: str,
        step: str,
        phases: Sequence[Any],
        execution: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """The recipe as YAML; UsageError if the run would refuse to start.

        `changes` are other values of the config than its phases.
        """
        from stages.pretrain.checkpoints import continue_from

        first, *rest = phases
        if first["learning_rate"].get("peak") is None:  # It continued another run.
            peak = self.plan.schedule.segments[0].peak
            first = {**first, "learning_rate": {**first["learning_rate"], "peak": peak}}
        plain = {**self.config.plain(), **changes, "phases": [first, *rest], "clock": "continue"}
        has_moments = any(
            file.path == "optimizer.safetensors" for file in self.checkpoint.outputs[ROLE].files
        )
        if "optimizer_state" not in changes:
            plain["optimizer_state"] = "keep" if has_moments else "fresh"
        where, start = "the new run's config", self.store.reference(self.checkpoint, ROLE)
        config = PretrainConfig.parse(plain, where=where)
        everything = {**self.inputs, ROLE: (start,)}
        check_stored(stage_named(STAGE), config.plain(), everything, self.store, where=where)
        # It must read what the old run read up to the checkpoint.
        state = Input.load(self.store, start).read_json("state.json")
        continue_from(state, _make_plan(self.store, config, self.inputs).clock)
        stage_named(STAGE).Execution.parse(execution, where="the new run's execution")
        roles = {
            role: [f"{one.key[:16]}:{one.output}" for one in references]
            for role, references in self.inputs.items()
        }
        roles[ROLE] = [f"{self.checkpoint.key[:16]}:{ROLE}"]
        inputs = {role: one[0] if len(one) == 1 else one for role, one in roles.items()}
        body = _to_yaml({"config": config.identity()}) + _to_yaml({"inputs": inputs}, flow=False)
        if execution:
            body += _to_yaml({"execution": dict(execution)})
        head = f"# Continues after training step {self.step:,} of {self.ref}.\n"
        return f"{head}name: {name}\nsteps:\n  {step}:\n    stage: {STAGE}\n{indent(body, '    ')}"


def extend_recipe(
    run: ContinuedRun,
    tokens: int,
    *,
    decay: str = "keep",
    decay_tokens: int | None = None,
    name: str | None = None,
) -> str:
    """The recipe of a longer run, as YAML: `tokens` more at the rate before the run's last decay.

    Then the learning rate decays as the run's own (`keep`), not at all (`none`), or in a `decay`
    shape over `decay_tokens` more. From the last checkpoint it goes back to the permanent one
    before the decay. UsageError if no rate can be kept, or that checkpoint does not exist.
    """
    if (decay_tokens is None) != (decay in ("keep", "none")):
        raise UsageError(
            "a shape and its tokens belong together",
            where="--decay",
            hint="--decay linear --decay-tokens 200M",
        )
    start = find_decay_start(run)
    if start is not None and run.step == run.plan.clock.steps:  # It is the last checkpoint.
        run = run.at_step(start)
    phases = lengthen_phases(run, tokens)
    if decay != "keep":
        phases = drop_decay(phases)
    if decay_tokens is not None:
        phase = make_annealing_phase(run, decay_tokens, decay, None)
        phases.append({**phase, "learning_rate": {**phase["learning_rate"], "peak": None}})
    recipe, step = default_names(run.ref, "extended")
    return run.recipe(name or recipe, step, phases)


def branch_recipe(
    run: ContinuedRun,
    *,
    tokens: int | None = None,
    mixture: dict[str, float] | None = None,
    decay: str = "linear",
    overrides: Sequence[str] = (),
    name: str | None = None,
) -> str:
    """The recipe of a run that leaves another one at a checkpoint, as YAML.

    With `tokens` a phase of that length on `mixture` follows, else the run's own phases;
    `overrides` are PATH=VALUE of its config, or execution.PATH=VALUE.
    """
    if tokens is not None:
        phases = [*cut_phases(run), make_annealing_phase(run, tokens, decay, mixture)]
    elif mixture is not None:
        raise UsageError(
            "a mixture needs a phase", where="--mixture", hint="say how long: --tokens 50M"
        )
    else:
        phases = run.plain_phases
    changes: dict[str, Any] = {**run.config.plain(), "phases": phases}
    changes.pop("optimizer_state")
    execution: dict[str, Any] = {}
    for text in sort_presets_first(overrides):
        set_step_value(changes, execution, text)
    recipe, step = default_names(run.ref, "branch")
    return run.recipe(name or recipe, step, changes.pop("phases"), execution, **changes)


def default_names(ref: str, suffix: str) -> tuple[str, str]:
    """Default names of the recipe and the step that continue `ref`."""
    path = ref.removeprefix("@").partition("@")[0]
    recipe, _, step = path.rpartition("/")
    return (f"{recipe}-{suffix}", step) if recipe else (suffix, STAGE)


def _resolve_checkpoint(store: Store, ref: str) -> Manifest:
    """The artifact that a name or key refers to, or with `@LABEL` its permanent checkpoint."""
    run, at, label = ref.removeprefix("@").rpartition("@")
    try:
        return store.resolve(ref)[0]
    except UsageError:
        if not at:
            raise
    manifest, _ = store.resolve(run)
    entries = {one.label: one.key for one in manifest.interims}
    checkpoint = store.manifest(manifest.stage, entries[label]) if label in entries else None
    if checkpoint is None:
        known = did_you_mean(label, entries)
        raise UsageError(f"{run} has no permanent checkpoint at {label}{known}", where=ref)
    return checkpoint


def _make_plan(
    store: Store,
    config: PretrainConfig,
    inputs: Mapping[str, Sequence[InputRef]],
    start: InputRef | None = None,
) -> Plan:
    """The plan of a run, which began at the checkpoint `start` if it is not None."""
    from stages.pretrain.plan import unchecked_plan
    from stages.training.token_shards import TokenShards

    train = [Input.load(store, one, full_check=False) for one in inputs["train"]]
    checkpoint = None if start is None else Input.load(store, start, full_check=False)
    return unchecked_plan(config, TokenShards(train), checkpoint)


def _to_yaml(values: dict[str, Any], *, flow: bool | None = None) -> str:
    """As YAML; collections of plain values are written on one line unless `flow` is False."""
    return str(yaml.safe_dump(values, sort_keys=False, default_flow_style=flow, width=100))


def find_decay_start(run: ContinuedRun) -> int | None:
    """The training step after which the run's last decay begins; None if its rate is constant."""
    segments = run.plan.schedule.segments
    last, hint = segments[-1], "ingot branch RUN --tokens N continues at the rate that it had"
    if last.decay == "multi-step":
        what = "its learning rate drops by steps over the whole phase: no rate can be continued"
        raise UsageError(what, where=run.ref, hint=hint)
    if not last.decay_steps:
        return None
    start = run.plan.clock.steps - last.decay_steps
    if start < 1:
        what = "its learning rate decays from the first training step on"
        raise UsageError(what, where=run.ref, hint=hint)
    return start


def lengthen_phases(run: ContinuedRun, tokens: int) -> list[dict[str, Any]]:
    """The run's phases with `tokens` more at the rate that it has at the checkpoint.

    The decay after them keeps its length. A phase whose mixture is interpolated is not lengthened,
    since it would change more slowly and so have read something else: the tokens follow as a phase
    of their own, at its final weights. UsageError if the rate decays in such a phase.
    """
    index, config = run.phase, run.config.phases[run.phase]
    phase, segment = run.plan.clock.phases[index], run.plan.schedule.segments[index]
    if run.phase_steps > segment.steps - segment.decay_steps:
        raise UsageError(
            "its learning rate already decays there",
            where=run.ref,
            hint="ingot branch continues at the rate that it had",
        )
    rest = run.plain_phases
    plain = rest[index]
    if config.mixture_end:
        if segment.decay_steps:
            raise _interpolation_error(run)
        more = {
            **plain,
            "tokens": tokens,
            "mixture": config.mixture_end,
            "mixture_end": {},
            "sequences_per_batch": phase.rows(phase.steps - 1)[1],
            "learning_rate": LearningRate().plain(),  # Constant, at the end of the previous phase.
        }
        return [*rest[: index + 1], more, *rest[index + 1 :]]
    steps = segment.steps + tokens / (phase.tokens / phase.steps)
    rate = {**plain["learning_rate"], **_fix_warmup(segment.warmup)}
    if segment.decay_steps:
        rate["decay_share"] = segment.decay_steps / steps
    longer = {**plain, "tokens": plain["tokens"] + tokens, "learning_rate": rate}
    return [*rest[:index], longer, *rest[index + 1 :]]


def drop_decay(phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same phases up to the decay of the rate."""
    kept = list(phases)
    while len(kept) > 1 and kept[-1]["learning_rate"]["decay"] != "none":
        kept.pop()
    return [*kept[:-1], {**kept[-1], "learning_rate": _without_decay(kept[-1]["learning_rate"])}]


def cut_phases(run: ContinuedRun) -> list[dict[str, Any]]:
    """The run's phases up to the checkpoint, the last of them at a constant rate."""
    index = run.phase
    phase, segment = run.plan.clock.phases[index], run.plan.schedule.segments[index]
    config = run.config.phases[index]
    before = run.plain_phases[:index]
    if run.phase_steps == phase.steps:
        return [*before, run.plain_phases[index]]
    if config.mixture_end:
        raise _interpolation_error(run)
    tokens = phase.rows(run.phase_steps)[0] * phase.sequence_length
    sizes = config.batch_sizes
    if not isinstance(sizes, int):
        sizes = tuple(pair for pair in sizes if pair[0] < tokens)
    rate = _without_decay(config.learning_rate.plain())
    rate |= _fix_warmup(min(segment.warmup, run.phase_steps))
    here = {"tokens": tokens, "sequences_per_batch": format_sizes(sizes), "learning_rate": rate}
    return [*before, {**run.plain_phases[index], **here}]


def make_annealing_phase(
    run: ContinuedRun, tokens: int, shape: str, mixture: dict[str, float] | None
) -> dict[str, Any]:
    """A phase after the checkpoint, from the rate that the run has there."""
    config, phase = run.config.phases[run.phase], run.plan.clock.phases[run.phase]
    _, size = phase.rows(run.phase_steps - 1)
    rate: dict[str, Any] = {"peak": run.plan.schedule.rate(run.step)}
    if shape != "none":
        rate["decay"] = shape
    plain = {
        **run.plain_phases[run.phase],
        "mixture": config.mixture_end or config.mixture,
        "mixture_end": {},
    }
    if mixture is not None:
        plain["mixture"] = mixture
    return {**plain, "tokens": tokens, "sequences_per_batch": size, "learning_rate": rate}


def parse_tokens(text: str, flag: str) -> int:
    """`2B`, `1.5M`, `800_000` or `2e9` as a number; UsageError for anything else."""
    match = _NUMBER.fullmatch(text.strip().replace("_", "").replace(",", ""))
    tokens = int(Decimal(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if tokens < 1:
        raise UsageError(
            f"'{text}' is not a number of tokens", where=flag, hint="as 2B, 1.5M, 800_000"
        )
    return tokens


def _without_decay(rate: Mapping[str, Any]) -> dict[str, Any]:
    """A learning rate that does not decay."""
    decay_fields = ("decay", "decay_share", "final", "drops")
    return {name: value for name, value in rate.items() if name not in decay_fields}


def _fix_warmup(steps: int) -> dict[str, Any]:
    """A warmup of as many training steps as the run had, however long the phase is now."""
    return {"warmup_share": 0.0, "warmup_tokens": None, "warmup_steps": steps or None}


def _interpolation_error(run: ContinuedRun) -> UsageError:
    return UsageError(
        "its mixture is interpolated to the phase's end, which would move",
        where=f"{run.ref}: phases.{run.phase}.mixture_end",
        hint="ingot branch continues from the end of that phase",
    )
