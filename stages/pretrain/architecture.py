"""What the model of a run must be, whether it exists already or is only planned. No torch."""

from __future__ import annotations

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig, ModelShape


def check_architecture(
    own: ModelConfig, wanted: ModelShape, but: frozenset[str] = frozenset()
) -> None:
    """Raise UsageError if the config asks for another architecture than the checkpoint's `own`.

    `but` are fields that are not compared.
    """
    different = [name for name in own.unlike(wanted) if name not in but]
    if different:
        name = different[0]
        raise UsageError(
            f"{name} is {getattr(wanted, name)}, that of the input checkpoint {getattr(own, name)}",
            where=f"model.{name}",
            hint="leave model out: the checkpoint decides it",
        )


def check_length(longest: int, context: int) -> None:
    """Raise UsageError if sequences of `longest` tokens are beyond the model's context."""
    if longest > context:
        raise UsageError(
            f"sequences of {longest} tokens, model context {context}",
            where="model.context",
            hint="raise model.context, or pack shorter sequences",
        )
