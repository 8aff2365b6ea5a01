"""What to run, in full: a stage, its config, its inputs and how to execute it. JSON both ways.

A stage as a child process: the same entry that a node of a cluster runs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import artifact_key, short
from artifacts_schema.manifest import InputRef
from artifacts_schema.store import Store
from artifacts_schema.store.lease import local_work
from artifacts_schema.store.storage_errors import translate_errors
from stages.engine.events import EVENTS_FILE, EventTail, HeldFile
from stages.engine.protocol import Role, Stage, stage_named
from stages.engine.strict_json import parse_json

_KEY = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True)
class StageSpec:
    """One run of one stage. `execution` and `by` are carried along but bear no identity."""

    stage: str
    version: int
    config: dict[str, Any]
    identity: dict[str, Any]
    inputs: dict[str, tuple[InputRef, ...]]
    execution: dict[str, Any] = field(default_factory=dict)
    by: str = ""
    """Who asked for it; a label for accounts of cost, which proves nothing."""

    @classmethod
    def make(
        cls,
        stage: type[Stage],
        config: Mapping[str, Any] | None,
        inputs: Mapping[str, Sequence[InputRef]],
        execution: Mapping[str, Any] | None = None,
        *,
        where: str | None = None,
    ) -> Self:
        """Validate everything; a UsageError says what is wrong at `where`."""
        where = where or stage.name
        complete = stage.complete(stage.Config.parse(config, where=f"{where}.config"))
        how = stage.Execution.parse(execution, where=f"{where}.execution")
        stage.ranks(how)
        for name in inputs:
            if name not in stage.inputs:
                known = did_you_mean(name, stage.inputs)
                raise UsageError(f"no input '{name}'{known}", where=where)
        for name, role in stage.inputs.items():
            check_role(name, role, inputs.get(name, ()), where=where)
        return cls(
            stage=stage.name,
            version=stage.version,
            config=complete.plain(),
            identity=complete.identity(),
            inputs={
                name: tuple(references) for name, references in sorted(inputs.items()) if references
            },
            execution=how.plain(),
        )

    @property
    def key(self) -> str:
        """The artifact's key, 64 hex digits."""
        digests = {role: [r.digest for r in references] for role, references in self.inputs.items()}
        return artifact_key(self.stage, self.version, self.identity, digests)

    def check_key(self, expected: str) -> None:
        """Raise UsageError unless the key begins with `expected`: 8 hex digits or all 64."""
        key, wanted = self.key, expected.strip().lower()
        if not _KEY.fullmatch(wanted):
            raise UsageError(
                f"'{expected}' is not a key: 8 to 64 hex digits", where=f"stage {self.stage}"
            )
        if key.startswith(wanted):
            return
        same = next(i for i, digit in enumerate(wanted) if digit != key[i])
        digits = max(len(short(key)), same + 4)
        raise UsageError(
            f"the key here is {key[:digits]}, expected {wanted[:digits]}",
            where=self.stage,
            hint="this machine has another version of the stage; install the same Ingot everywhere",
        )

    def to_json(self) -> bytes:
        """For `python -P -m stages NAME --spec`."""
        return json.dumps(
            {
                "stage": self.stage,
                "config": self.config,
                "inputs": {
                    r: [i.model_dump() for i in references] for r, references in self.inputs.items()
                },
                "execution": self.execution,
                "by": self.by,
            },
            indent=1,
        ).encode()

    @classmethod
    def from_json(cls, raw: bytes, *, where: str) -> Self:
        """Parse and validate again: a spec is an input like any other."""
        try:
            value = parse_json(raw)
            stage, config, execution = value["stage"], value["config"], value.get("execution")
            if not (isinstance(stage, str) and isinstance(config, dict | None)):
                raise TypeError("stage is a name and config a mapping")
            if not isinstance(execution, dict | None):
                raise TypeError("execution is a mapping")
            if not isinstance(by := value.get("by", ""), str):
                raise TypeError("by is text")
            inputs = {
                role: [InputRef.model_validate(reference) for reference in references]
                for role, references in value.get("inputs", {}).items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"not a stage spec: {error}", where=where) from None
        spec = cls.make(stage_named(stage), config, inputs, execution, where=where)
        return replace(spec, by=by)


def check_role(name: str, role: Role, references: Sequence[InputRef], *, where: str) -> None:
    """Raise UsageError unless the references fit the role in number and kind."""
    if len(references) < role.least:
        need = "is missing" if role.least == 1 else f"needs at least {role.least}"
        raise UsageError(f"input '{name}' ({role.kind}) {need}", where=where)
    if role.most is not None and len(references) > role.most:
        raise UsageError(
            f"input '{name}' takes one {role.kind}, {len(references)} given", where=where
        )
    for reference in references:
        if reference.kind != role.kind:
            raise UsageError(
                f"input '{name}' takes {role.kind}, output '{reference.output}' of "
                f"{reference.stage} is {reference.kind}",
                where=where,
            )


THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip

WAIT_POLICY = {"OMP_WAIT_POLICY": "PASSIVE"}
"""How OpenMP's threads wait for each other: asleep. Those of GNU's runtime, which torch brings,
spin by default; where other processes want the cores, a step of training then took 30 times as long
and 12 times the CPU seconds (`python -m tests.benchmarks.spinning`). It is read when the library is
loaded, and no result depends on it."""


NOT_FOR_STAGES = ("PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_KEY")
"""Credentials of the Prefect API, which no stage calls; a plugin or its log must not hold them."""


class Child:
    """A running stage. It outlives its parent; the next run of the key waits for it."""

    in_pool = False

    def __init__(
        self, store: Store, spec: StageSpec, process: subprocess.Popen[bytes], output: Path
    ) -> None:
        self.spec, self.process, self.output = spec, process, output
        self._events = str(local_work(store.backend, spec.key, EVENTS_FILE))
        self._tail = EventTail(HeldFile().read)
        self._tail.skip(self._events)

    def events(self) -> list[dict[str, Any]]:
        """Its events since the last call."""
        return self._tail.read(self._events)

    def poll(self) -> int | None:
        """Its exit code, or None while it runs. What it printed is kept only if it failed."""
        code = self.process.poll()
        if code == 0:
            self.output.unlink(missing_ok=True)
            self.output.with_suffix(".json").unlink(missing_ok=True)
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""
        return self.process.wait(timeout)

    def stop(self, grace: float = 60.0) -> int:
        """Ask it to save and end (exit 75); end it by force after `grace` seconds."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def last_words(self) -> str:
        """Its last error, all its lines, if it failed; else the last line that it printed."""
        try:
            return last_error(self.output.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ""


_NOTICE = re.compile(r"[DIW][0-9]{4} [0-9:.]{8,} ")
"""How torch begins what is no error."""


def last_error(printed: str) -> str:
    """The last `error:` line of `printed` with the indented lines that belong to it.

    Libraries print after it what they find at the end of the process. Without such a line: the
    last one that is no notice of theirs (`W1124 17:03:10.514000 …`).
    """
    lines = printed.strip().split("\n")
    begins = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not begins:
        return next((line for line in reversed(lines) if not _NOTICE.match(line)), "")
    rest = takewhile(lambda line: line.startswith("  "), lines[begins[-1] + 1 :])
    return "\n".join([lines[begins[-1]], *rest])


def start_child(
    store: Store, spec: StageSpec, *, force: bool = False, accept_code: bool = False
) -> Child:
    """Start `python -P -m stages` for `spec` in a session of its own."""
    name = f"{short(spec.key)}-{os.getpid()}-{time.monotonic_ns()}"
    spec_path = local_work(store.backend, "launch", f"{name}.json")
    output = spec_path.with_suffix(".txt")
    with translate_errors(str(spec_path)):
        spec_path.parent.mkdir(parents=True, exist_ok=True)
        spec_path.write_bytes(spec.to_json())
    command = [
        sys.executable, "-P", "-m", "stages", spec.stage,
        "--store", store.url, "--spec", str(spec_path), "--key", spec.key,
    ]  # fmt: skip
    flags = [name for name, on in (("--force", force), ("--accept-code", accept_code)) if on]
    with open(output, "wb") as sink:
        process = subprocess.Popen(
            command + flags,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=child_environment(spec),
        )
    return Child(store, spec, process, output)


def child_environment(spec: StageSpec) -> dict[str, str]:
    """This process's environment with the thread counts that the stage's Execution states."""
    threads = str(spec.execution.get("threads", 1))
    return {
        **WAIT_POLICY,  # A value of the user's own wins.
        **{name: value for name, value in os.environ.items() if name not in NOT_FOR_STAGES},
        **dict.fromkeys(THREAD_VARIABLES, threads),
        "TOKENIZERS_PARALLELISM": "true" if threads != "1" else "false",
        "PYTHONHASHSEED": "0",
    }
