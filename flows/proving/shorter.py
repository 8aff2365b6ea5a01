"""A pretraining run cut short: the same phases in their proportions, in few training steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stages.pretrain.batch_sizes import read_sizes, written

if TYPE_CHECKING:
    from stages.training.clock import SampleClock


def shorter(config: Mapping[str, Any], clock: SampleClock, steps: int) -> dict[str, Any]:
    """The plain config of a run of about `steps` training steps; `clock` is that of the whole.

    Whatever is measured in tokens or training steps shrinks alike; shares stay.
    """
    share = min(1.0, steps / clock.steps)

    def few(number: int | None) -> int | None:
        return None if number is None else max(1, round(number * share))

    phases = [
        _phase(plain, phase.steps, phase.tokens, share, few)
        for plain, phase in zip(config["phases"], clock.phases, strict=True)
    ]
    short = {**config, "phases": phases, "skip": []}
    short["held_out_every"] = few(config["held_out_every"])
    short["max_held_out_sequences"] = min(16, config["max_held_out_sequences"])
    short["checkpoints"] = {
        **config["checkpoints"],
        "every": few(config["checkpoints"]["every"]),
    }
    short["averages"] = {
        **config["averages"],
        "every": few(config["averages"]["every"]),
        "last": min(2, config["averages"]["last"]),
    }
    return short


def _phase(
    plain: Mapping[str, Any], steps: int, tokens: int, share: float, few: Any
) -> dict[str, Any]:
    """A phase of at least two training steps, its schedule of batch sizes within it."""
    per_step = tokens / steps
    wanted = max(round(steps * share), min(2, steps))
    rate = dict(plain["learning_rate"])
    for name in ("warmup_steps", "warmup_tokens"):
        rate[name] = few(rate[name]) if rate.get(name) else rate.get(name)
    sizes = read_sizes(plain["sequences_per_batch"])
    if not isinstance(sizes, int):
        scaled = {few(token) if token else 0: size for token, size in sizes}
        sizes = tuple((token, size) for token, size in scaled.items() if token < wanted * per_step)
    found = {**plain, "learning_rate": rate, "sequences_per_batch": written(sizes)}
    return {**found, "tokens": max(1, round(wanted * per_step))}
