"""The tokenizers of a comparison: what each is called, and how a worker loads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.text.fertility import Cutter

_loaded: dict[str, Cutter] = {}
"""By digest: a worker measures many shards with the same few tokenizers."""


@dataclass(frozen=True)
class Contestant:
    """A tokenizer of the comparison."""

    place: int
    """Its number among the inputs."""
    name: str
    given: Input

    @property
    def id(self) -> str:
        """Its place, for the shard map."""
        return f"{self.place:03d}"

    def load(self) -> Cutter:
        """The tokenizer, ready to measure with."""
        from stages.text.fertility import Cutter

        if self.given.digest not in _loaded:
            description = self.given.read_bytes("tokenizer.json").decode()
            _loaded[self.given.digest] = Cutter.of(description)
        return _loaded[self.given.digest]

    def described(self) -> dict[str, Any]:
        """What tokenizers.json says of it: digest, and some of its training.json."""
        training = self.given.read_json("training.json")
        told = {name: training[name] for name in _TOLD if name in training}
        return {"digest": self.given.digest, **told}


_TOLD = (
    *("algorithm", "pre_tokenizer", "vocabulary_size", "padded_vocabulary_size"),
    *("documents", "bytes", "origin"),
)


def contestants_of(given: Sequence[Input], names: Sequence[str]) -> list[Contestant]:
    """The tokenizers under their names; UsageError unless there are as many names, or none."""
    check_names(names, len(given))
    names = names or unique_names(given)
    return [
        Contestant(place, name, one)
        for place, (name, one) in enumerate(zip(names, given, strict=True))
    ]


def check_names(names: Sequence[str], tokenizers: int) -> None:
    """Raise UsageError unless there are as many names as tokenizers, or none."""
    if names and len(names) != tokenizers:
        raise UsageError(
            f"{len(names)} names for {tokenizers} tokenizers",
            where="names",
            hint="give a name for each tokenizer in the order of the inputs, or none",
        )


def unique_names(given: Sequence[Input]) -> list[str]:
    """Where each came from, or its algorithm and size; equal ones with digits of their digest, then
    a number.

    Made of the tokenizers' contents alone, as all that decides the output's bytes must be.
    """
    names = [_name(one.read_json("training.json")) for one in given]
    for told in (lambda at: short(given[at].digest)[:6], lambda at: str(at + 1)):
        counts = Counter(names)
        names = [
            name if counts[name] == 1 else f"{name} ({told(at)})" for at, name in enumerate(names)
        ]
    return names


def _name(training: dict[str, Any]) -> str:
    snapshot = (training.get("origin") or {}).get("snapshot")
    if snapshot:
        return str(snapshot)
    return f"{training.get('algorithm') or 'tokenizer'} {training['vocabulary_size']:,}"
