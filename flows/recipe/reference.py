"""What an input of a step may name.

| written | means |
|---|---|
| `ingest` | that step; all its instances, or the one beside this instance if both repeat alike |
| `ingest:documents` | the same, and which output, where the kind alone does not say |
| `each` | what this instance stands for: its item of `for_each` |
| `dedup[each]` | the instance of `dedup` with this instance's label |
| `dedup[previous]` | the instance before this one (none for the first) |
| `dedup[earlier]` | all instances before this one |
| `ingest[crawl-A]` | one instance by its label |
| `pretrain@1.6M` | a checkpoint that a step commits on its way, by its tokens |
| `crawl-A` | a snapshot of this recipe |
| `quickstart/filter:documents` | a name in the store |
| `@mine`, `@mine:documents` | the same, where a step or snapshot is called `mine` too |
| `3fa4bc90d1e2` | a key in the store, 12 or more hex digits |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import InputRef
from artifacts_schema.store import Store
from stages.engine.protocol import Stage

_WRITTEN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[(?P<index>[^\[\]]+)\])?(@(?P<at>[A-Za-z0-9.]+))?"
    r"(:(?P<output>[A-Za-z0-9_-]+))?"
)
_KEY = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True)
class Reference:
    """A reference taken apart. `stored` holds a store's own name instead of a step's."""

    text: str
    name: str
    index: str | None = None
    output: str | None = None
    stored: bool = False
    at: str | None = None

    @property
    def is_key(self) -> bool:
        """Whether the name could be an artifact's key."""
        return self.stored or bool(_KEY.fullmatch(self.name))


def parse_reference(text: str) -> Reference:
    """Take a reference apart; UsageError if it has no form of those above."""
    text = text.strip()
    if text.startswith("@") or "/" in text:  # No step, snapshot or key has a slash.
        name, _, output = text.removeprefix("@").partition(":")
        return Reference(text, name, None, output or None, stored=True)
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise UsageError(
            f"'{text}' is no reference",
            hint="step, step:output, step[each], step[previous], step@1.6M, a snapshot, @name or "
            "a key",
        )
    return Reference(text, match["name"], match["index"], match["output"], at=match["at"])


def output_for(
    kind: str, role: str, outputs: dict[str, str], reference: Reference, owner: str
) -> str:
    """The output that a role of `kind` takes; UsageError if none or several would fit."""
    if reference.output is not None:
        if reference.output not in outputs:
            near = did_you_mean(reference.output, outputs)
            raise UsageError(f"'{owner}' has no output '{reference.output}'{near}")
        found = outputs[reference.output]
        if found != kind:
            raise UsageError(f"role '{role}' takes {kind}, '{reference.text}' is {found}")
        return reference.output
    fitting = [name for name, found in outputs.items() if found == kind]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        made = ", ".join(sorted(set(outputs.values())))
        raise UsageError(f"role '{role}' takes {kind}, '{reference.text}' makes {made}")
    raise UsageError(
        f"'{reference.text}' makes several outputs of kind {kind}: {', '.join(fitting)}",
        hint=f"write {reference.text}:{fitting[0]}",
    )


def stored_input(store: Store, stage: type[Stage], role: str, text: str, *, where: str) -> InputRef:
    """What `REF` or `REF:output` in the store gives to a role; UsageError at `where` if nothing."""
    try:
        manifest, output = store.resolve(text)
        outputs = {name: found.kind for name, found in manifest.outputs.items()}
        named = Reference(text, text, output=output)
        output = output_for(stage.inputs[role].kind, role, outputs, named, manifest.stage)
    except UsageError as error:
        raise UsageError(error.what, where=where, hint=error.hint) from None
    return store.reference(manifest, output)
