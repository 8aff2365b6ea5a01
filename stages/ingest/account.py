"""The account of a snapshot: every record is a document, turned away with a reason, or ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine import check_bad_share
from stages.engine.bad_records import REPAIR
from stages.ingest.records import BROKEN
from stages.ingest.tally import Tally, total_of

if TYPE_CHECKING:
    from stages.engine import Context

TEXT_FIELD = "say which field holds the text with `text_field`"


def account(context: Context, units: Sequence[dict[str, Any]], snapshot: str) -> None:
    """Counters, samples and conservation from the tallies of all units.

    InputError for too many broken records, or if no record became a document.
    """
    total = total_of(units)
    records_in = total.documents + sum(total.rejected.values())
    for reason, texts in total.samples.items():
        for text in texts:
            context.sample(reason, text)
    context.count(
        records_in=records_in,
        documents=total.documents,
        characters=total.characters,
        characters_repaired=total.repaired,
        **{f"rejected_{reason}": number for reason, number in sorted(total.rejected.items())},
        **{f"ignored_{kind}": number for kind, number in sorted(total.ignored.items())},
        **{f"extracted_by_{name}": number for name, number in sorted(total.extractors.items())},
    )
    _check(context, total, records_in, f"snapshot '{snapshot}'")
    context.conserve(records_in=records_in, out=total.documents, dropped=total.rejected)


def _check(context: Context, total: Tally, records_in: int, where: str) -> None:
    unnamed = total.rejected.get("missing_text", 0)
    broken = {reason: total.rejected[reason] for reason in sorted(BROKEN & total.rejected.keys())}
    check_bad_share(
        sum(broken.values()),
        records_in,
        context.config.max_bad_share,
        [f"{reason}: {text}" for reason in broken for text in total.samples[reason][:1]],
        where,
        TEXT_FIELD if 2 * unnamed > sum(broken.values()) else REPAIR,
    )
    if not total.documents:
        told = ", ".join(f"{reason} {n:,}" for reason, n in sorted(total.rejected.items()))
        raise InputError(
            f"none of {records_in:,} records became a document ({told or 'no records'})",
            where=where,
            hint=TEXT_FIELD if unnamed else "check the format and the reasons",
        )
