"""Bad records never stop a stage and never vanish, up to a share that its Config states."""

from __future__ import annotations

from collections.abc import Sequence

from artifacts_schema.errors import InputError

REPAIR = "repair the source, or raise max_bad_share if this is expected"


def check_bad_share(
    bad: int, total: int, limit: float, samples: Sequence[str], where: str, hint: str = REPAIR
) -> None:
    """Raise InputError if more than `limit` of `total` records are bad; a few samples are shown."""
    if total and bad / total > limit:
        shown = "; ".join(sample[:200] for sample in samples[:3])
        raise InputError(
            f"{bad:,} of {total:,} records are bad "
            f"({bad / total:.1%}, allowed {limit:.1%}): {shown}",
            where=where,
            hint=hint,
        )
