"""A recipe of one step that goes on from a checkpoint of a pretraining run: longer, or elsewhere.

The step's phases are those of the whole run, from its first token on (`clock: continue`), so what
stands before the checkpoint is written as the run had it. Inputs are named by their keys: the
recipe means these artifacts, wherever the run's names lead later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.interim import interims
from stages.engine.inputs import Input
from stages.engine.registry import stage_named

if TYPE_CHECKING:
    from stages.pretrain.config import PretrainConfig
    from stages.pretrain.plan import Plan

STAGE = "pretrain"
ROLE = "checkpoint"


@dataclass(frozen=True)
class Onward:
    """A checkpoint of a run, the run's config and inputs, and where it lies in the run's plan."""

    store: Store
    ref: str
    checkpoint: Manifest
    config: PretrainConfig
    plan: Plan
    step: int
    inputs: Mapping[str, tuple[InputRef, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, ref: str) -> Onward:
        """What `RUN`, `RUN@1.6M` or a key means; the end of a run where nothing else is said.

        UsageError for what is no pretraining run, or no checkpoint of it.
        """
        checkpoint = _checkpoint(store, ref)
        if checkpoint.stage != STAGE:
            raise UsageError(
                f"{checkpoint.stage} {short(checkpoint.key)} is not a pretraining run", where=ref
            )
        config: Any = stage_named(STAGE).Config.parse(checkpoint.config, where="the run's config")
        inputs = {role: given for role, given in checkpoint.inputs.items() if role != ROLE}
        start = next(iter(checkpoint.inputs.get(ROLE, ())), None)
        plan = _plan(store, config, inputs, start)
        state = Input.of(store, checkpoint, ROLE, full_check=False).read_json("state.json")
        return cls(store, ref, checkpoint, config, plan, int(state["training_step"]), inputs)

    @property
    def at_the_end(self) -> bool:
        """Whether it is the run's last one."""
        return self.step == self.plan.clock.steps

    @property
    def phase(self) -> int:
        """The phase that the checkpoint's training step belongs to."""
        return self.plan.clock.phase_of(self.step)

    @property
    def done(self) -> int:
        """Training steps of that phase up to it."""
        return self.step - self.plan.clock.first_steps[self.phase] + 1

    def before(self, step: int) -> Onward:
        """The same run at the permanent checkpoint of an earlier training step.

        UsageError where none stands.
        """
        run = self.checkpoint.interim_of.run if self.checkpoint.interim_of else self.checkpoint.key
        for one in interims(self.store, STAGE, run):
            found = self.store.manifest(STAGE, one.key) if one.at == step else None
            if found is not None:
                return replace(self, checkpoint=found, step=step)
        raise UsageError(
            f"no permanent checkpoint of training step {step:,} stands, behind which the learning "
            "rate decays",
            where=self.ref,
            hint="name one that does, as RUN@1.6M (ingot ls shows them), or branch from the end",
        )

    def with_inputs(self, role: str, given: Sequence[InputRef]) -> Onward:
        """The same with more in a role."""
        more = (*self.inputs.get(role, ()), *given)
        inputs = {**self.inputs, role: more}
        return replace(self, inputs=inputs)

    # What is written -----------------------------------------------------------------------------

    def recipe(
        self,
        name: str,
        step: str,
        phases: Sequence[Any],
        execution: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """The recipe as YAML; UsageError where the run would refuse to start.

        `phases` are plain; `changes` are other values of the config.
        """
        first, *rest = phases
        if first["learning_rate"].get("peak") is None:  # It went on at another run's rate.
            peak = self.plan.schedule.segments[0].peak
            first = {**first, "learning_rate": {**first["learning_rate"], "peak": peak}}
        plain = {**self.config.plain(), **changes, "phases": [first, *rest], "clock": "continue"}
        has_moments = any(
            file.path == "optimizer.safetensors" for file in self.checkpoint.outputs[ROLE].files
        )
        if "optimizer_state" not in changes:
            plain["optimizer_state"] = "keep" if has_moments else "fresh"
        config: Any = stage_named(STAGE).Config.parse(plain, where="the new run's config")
        self._check(config)
        stage_named(STAGE).Execution.parse(execution, where="the new run's execution")
        roles = {role: [_named(one) for one in given] for role, given in self.inputs.items()}
        roles[ROLE] = [f"{self.checkpoint.key[:16]}:{ROLE}"]
        inputs = {role: one[0] if len(one) == 1 else one for role, one in roles.items()}
        body = _dumped({"config": config.identity()}, flow=None) + _dumped({"inputs": inputs})
        if execution:
            body += _dumped({"execution": dict(execution)}, flow=None)
        head = f"# Goes on behind training step {self.step:,} of {self.ref}.\n"
        return f"{head}name: {name}\nsteps:\n  {step}:\n    stage: {STAGE}\n{indent(body, '    ')}"

    def _check(self, config: PretrainConfig) -> None:
        """UsageError where the new run would refuse to start.

        It must fit its inputs, and read what the old one read, up to the checkpoint.
        """
        from flows.recipe.checks import check_stored
        from stages.training.continuation import begin_behind

        start = self.store.reference(self.checkpoint, ROLE)
        inputs = {**self.inputs, ROLE: (start,)}
        where = "the new run's config"
        check_stored(stage_named(STAGE), config.plain(), inputs, self.store, where=where)
        state = Input.of(self.store, self.checkpoint, ROLE).read_json("state.json")
        begin_behind(state, _plan(self.store, config, self.inputs).clock)


def names(ref: str, suffix: str) -> tuple[str, str]:
    """The recipe's and the step's name for what goes on from `ref`."""
    path = ref.removeprefix("@").partition("@")[0]
    recipe, _, step = path.rpartition("/")
    return (f"{recipe}-{suffix}", step) if recipe else (suffix, STAGE)


def plain_phases(config: PretrainConfig) -> list[dict[str, Any]]:
    """The phases of a config as plain values."""
    return [phase.plain() for phase in config.phases]


def deliver(text: str, path: Path | None, store: str, *, wanted: bool) -> None:
    """Print a recipe, or write it to a file that is not there yet; and run it, if `wanted`."""
    import tempfile

    from flows.cli.output import echo

    if path is None:
        echo(text, nl=False)
    elif path.exists():
        raise UsageError("is there already", where=str(path), hint="choose another --write")
    else:
        path.write_text(text, encoding="utf-8")
    if not wanted:
        return
    if path is not None:
        run(path, store)
        return
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        file = Path(folder, "recipe.yaml")
        file.write_text(text, encoding="utf-8")
        run(file, store)


def run(path: Path, store: str) -> None:
    """Run the recipe, as `ingot run --no-prefect` does."""
    from flows.cli.progress import shown, stop_on_signals
    from flows.cli.run import show_results
    from flows.recipe.execute import execute
    from flows.recipe.pipeline import Pipeline, Request

    pipeline = Pipeline.open(Request(str(path), store))
    with shown() as observer, stop_on_signals() as stopping:
        plan = execute(pipeline, observer=observer, stopping=stopping)
    show_results(pipeline.store, plan)


def _checkpoint(store: Store, ref: str) -> Manifest:
    """The artifact behind a name, a key, or either with `@LABEL` behind it."""
    with suppress(UsageError):
        return store.resolve(ref)[0]
    run, at, label = ref.removeprefix("@").rpartition("@")
    if not at:
        return store.resolve(ref)[0]
    manifest, _ = store.resolve(run)
    entries = {one.label: one.key for one in manifest.interims}
    found = store.manifest(manifest.stage, entries[label]) if label in entries else None
    if found is None:
        known = did_you_mean(label, entries)
        raise UsageError(f"{run} has no permanent checkpoint at {label}{known}", where=ref)
    return found


def _plan(
    store: Store,
    config: PretrainConfig,
    inputs: Mapping[str, Sequence[InputRef]],
    start: InputRef | None = None,
) -> Plan:
    """The plan of a run that began at `start`, if at any."""
    from stages.pretrain.plan import unchecked_plan
    from stages.training.data import TokenShards

    train = [Input.load(store, one, full_check=False) for one in inputs["train"]]
    begun = None if start is None else Input.load(store, start, full_check=False)
    return unchecked_plan(config, TokenShards(train), begun)


def _dumped(values: Mapping[str, Any], *, flow: bool | None = False) -> str:
    """As YAML; with `flow` None what holds no mappings is put on one line."""
    import yaml

    text = yaml.safe_dump(dict(values), sort_keys=False, default_flow_style=flow, width=100)
    return str(text)


def _named(reference: InputRef) -> str:
    return f"{reference.key[:16]}:{reference.output}"
