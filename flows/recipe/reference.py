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
| `crawl-A` | a snapshot of this recipe |
| `@quickstart/filter:documents` | a name in the store |
| `3fa4bc90d1e2` | a key in the store, 12 or more hex digits |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from artifacts_schema.errors import UsageError

_WRITTEN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[(?P<index>[^\[\]]+)\])?(:(?P<output>[A-Za-z0-9_-]+))?"
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

    @property
    def is_key(self) -> bool:
        """Whether the name could be an artifact's key."""
        return self.stored or bool(_KEY.fullmatch(self.name))


def parse_reference(text: str) -> Reference:
    """Take a reference apart; UsageError if it has no form of those above."""
    if text.startswith("@"):
        name, _, output = text[1:].partition(":")
        return Reference(text, name, None, output or None, stored=True)
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"'{text}' is no reference",
            hint="step, step:output, step[each], step[previous], a snapshot, @name or a key",
        )
    return Reference(text, match["name"], match["index"], match["output"])
