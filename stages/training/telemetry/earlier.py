"""The held-out losses of an earlier run, to be compared at equal tokens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from stages.training.monitor import HeldOut

if TYPE_CHECKING:
    from artifacts_schema.store import Store

VALUES = ("bits_per_byte", "loss")
"""What is compared: the first that both runs have."""


@dataclass(frozen=True)
class EarlierRun:
    """`curves[name]` are (tokens, value) of a run's measurements, tokens rising.

    The name is that of the value (`HeldOut.column`): `bits_per_byte/web`, `language_loss/de`.
    """

    name: str
    curves: Mapping[str, Sequence[tuple[int, float]]]

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> EarlierRun:
        """From rows of `held_out.parquet`."""
        curves: dict[str, dict[int, float]] = {}
        for row in rows:
            one = HeldOut(row["source"], row["loss"], row["bits_per_byte"], row["language"])
            for value in VALUES:
                if row[value] is not None:
                    curves.setdefault(one.column(value), {})[row["tokens"]] = row[value]
        return cls(name, {key: sorted(points.items()) for key, points in curves.items()})

    @classmethod
    def read(cls, store: Store, ref: str) -> EarlierRun:
        """A committed run; UsageError where `ref` names none that measured held-out losses."""
        from stages.engine.inputs import Input

        manifest, _ = store.resolve(ref)
        output = manifest.outputs.get("training_run")
        if output is None:
            raise UsageError(
                f"{manifest.stage} {short(manifest.key)} is no training run",
                where="execution.compare_with",
                hint="name a pretrain, sft or dpo step",
            )
        given = Input.of(store, manifest, "training_run", full_check=False)
        return cls.of(ref, given.read_table("held_out.parquet").to_pylist())

    def at(self, one: HeldOut, tokens: int) -> tuple[float, float] | None:
        """This run's value and the earlier run's at equal tokens, in a straight line between two.

        None where the earlier run has no measurement of its like on both sides of `tokens`.
        """
        for value in VALUES:
            now, curve = getattr(one, value), self.curves.get(one.column(value))
            if now is not None and curve:
                then = _between(curve, tokens)
                return None if then is None else (now, then)
        return None


def _between(curve: Sequence[tuple[int, float]], tokens: int) -> float | None:
    place = bisect_left(curve, tokens, key=lambda point: point[0])
    if place == len(curve) or (place == 0 and curve[0][0] != tokens):
        return None
    right_x, right = curve[place]
    if right_x == tokens:
        return right
    left_x, left = curve[place - 1]
    return left + (right - left) * (tokens - left_x) / (right_x - left_x)
