"""What to run, in full: a stage, its config, its inputs and how to execute it. JSON both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import artifact_key, short
from artifacts_schema.manifest import InputRef
from stages.engine.protocol import Role, Stage
from stages.engine.registry import stage_named
from stages.engine.strict_json import parse_json

_KEY = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True)
class StageSpec:
    """One run of one stage. `execution` is carried along but bears no identity."""

    stage: str
    version: int
    config: dict[str, Any]
    identity: dict[str, Any]
    inputs: dict[str, tuple[InputRef, ...]]
    execution: dict[str, Any] = field(default_factory=dict)

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
            inputs={name: tuple(given) for name, given in sorted(inputs.items()) if given},
            execution=how.plain(),
        )

    @property
    def key(self) -> str:
        """The artifact's key, 64 hex digits."""
        digests = {role: [r.digest for r in given] for role, given in self.inputs.items()}
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
        shown = max(len(short(key)), same + 4)
        raise UsageError(
            f"the key here is {key[:shown]}, expected {wanted[:shown]}",
            where=self.stage,
            hint="this machine has another version of the stage; install the same Ingot everywhere",
        )

    def to_json(self) -> bytes:
        """For `python -P -m stages NAME --spec`."""
        return json.dumps(
            {
                "stage": self.stage,
                "config": self.config,
                "inputs": {r: [i.model_dump() for i in given] for r, given in self.inputs.items()},
                "execution": self.execution,
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
            inputs = {
                role: [InputRef.model_validate(reference) for reference in given]
                for role, given in value.get("inputs", {}).items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"not a stage spec: {error}", where=where) from None
        return cls.make(stage_named(stage), config, inputs, execution, where=where)


def check_role(name: str, role: Role, given: Sequence[InputRef], *, where: str) -> None:
    """Raise UsageError unless `given` fits the role in number and kind."""
    if len(given) < role.least:
        need = "is missing" if role.least == 1 else f"needs at least {role.least}"
        raise UsageError(f"input '{name}' ({role.kind}) {need}", where=where)
    if role.most is not None and len(given) > role.most:
        raise UsageError(f"input '{name}' takes one {role.kind}, {len(given)} given", where=where)
    for reference in given:
        if reference.kind != role.kind:
            raise UsageError(
                f"input '{name}' takes {role.kind}, output '{reference.output}' of "
                f"{reference.stage} is {reference.kind}",
                where=where,
            )
