"""What a defect is: spoiled records between two sound ones, and what should become of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from archives.records import SENTENCES, SUFFIX, Packing, good, packed

Records = bytes | list[bytes]


@dataclass(frozen=True)
class Outcome:
    """What the records give: documents, rows of `rejected` by reason, ignored ones by type.

    `text` stands in one of the documents; `columns` are values of its row in `pages`.
    """

    documents: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)


def document(text: str = SENTENCES[0], /, **columns: Any) -> Outcome:
    """One document that holds a text."""
    return Outcome(documents=1, text=text, columns=columns)


def rejected(reason: str, times: int = 1) -> Outcome:
    """A row of `rejected`."""
    return Outcome(rejected={reason: times})


def ignored(kind: str) -> Outcome:
    """A record that never could be a document."""
    return Outcome(ignored={kind: 1})


@dataclass(frozen=True)
class Defect:
    """A named file. `make` gives the spoiled records, or with `alone` the whole file."""

    name: str
    about: str
    make: Callable[[], Records]
    outcome: Outcome
    packing: Packing | None = None
    """How the records lie in the file; None: any way does, and `table` takes them in turn."""
    alone: bool = False
    suffix: str = ".warc"

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.name}{self.suffix}{SUFFIX[self.packing or 'plain']}"

    def archive(self) -> bytes:
        """The bytes of the file: a sound record before and one behind, which must survive."""
        made = self.make()
        if self.alone:
            assert isinstance(made, bytes)
            return made
        records = made if isinstance(made, list) else [made]
        return packed([good("before"), *records, good("after")], self.packing or "plain")

    @property
    def documents(self) -> int:
        """Documents of the file, the sound records among them."""
        return self.outcome.documents + (0 if self.alone else 2)
