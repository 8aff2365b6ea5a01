"""The documents that a request to forget means, and the steps that its list makes run anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.artifacts import Name
from flows.cli.document_find import WHOLE_ID, Found, look_up, rows_about
from flows.cli.exclusions import STAGE
from flows.cli.holdings import in_order
from flows.cli.output import clean
from stages.engine.inputs import Input
from stages.text.chat_rows import ID_COLUMN

_ORIGIN = ("url", "snapshot", "origin_file", "origin_offset")
_NAMED_IN_ERRORS = 5


def documents_named(store: Store, manifests: Sequence[Manifest], wanted: Sequence[str]) -> Found:
    """The places of every document that `wanted` names, by doc_id.

    A whole id that nothing holds is a document without places: it may come yet. UsageError if the
    beginning of an id, or an address, names none, or a beginning names several.
    """
    if not wanted:
        raise UsageError("no document is named", hint="give ids or addresses, or --from FILE")
    found: Found = {}
    unknown: list[str] = []
    for text, match in look_up(store, manifests, wanted).items():
        if len(match.by_id) > 1:
            some = ", ".join(sorted(match.by_id)[:_NAMED_IN_ERRORS])
            raise UsageError(
                f"'{text}' begins the ids of {len(match.by_id)} documents: {some}",
                hint="give more digits",
            )
        named = match.by_id or match.by_url or ({text: []} if WHOLE_ID.fullmatch(text) else {})
        if not named:
            unknown.append(clean(text))
        found |= named
    if unknown:
        some = ", ".join(f"'{text}'" for text in unknown[:_NAMED_IN_ERRORS])
        more = f" and {len(unknown) - _NAMED_IN_ERRORS} more" if unknown[_NAMED_IN_ERRORS:] else ""
        raise UsageError(
            f"no document {some}{more}; nothing was written",
            where=store.url,
            hint="give an id, 6 or more digits of it, or the whole address: `ingot why` finds them",
        )
    return dict(sorted(found.items()))


def places_of(store: Store, manifests: Sequence[Manifest], doc_ids: Sequence[str]) -> Found:
    """The places of documents by their whole ids."""
    return {d: match.by_id.get(d, []) for d, match in look_up(store, manifests, doc_ids).items()}


def origins(store: Store, found: Found) -> dict[str, dict[str, Any]]:
    """Address and record of each document, as the first table that knows it tells them."""
    by_table: dict[tuple[str, str, str, str], tuple[Input, list[str]]] = {}
    for doc_id, places in found.items():
        for manifest, output, path, _ in places[:1]:
            given = Input.of(store, manifest, output, full_check=False)
            name = (manifest.stage, manifest.key, output, path)
            by_table.setdefault(name, (given, []))[1].append(doc_id)
    rows: dict[str, dict[str, Any]] = {d: dict.fromkeys(_ORIGIN) for d in found}
    for (_, _, _, path), (given, doc_ids) in by_table.items():
        if given.kind in ID_COLUMN:
            # What names a conversation to a person is its data set.
            for _, row in rows_about(given, path, doc_ids, ["source"]):
                rows[row[ID_COLUMN[given.kind]]]["origin_file"] = row["source"]
            continue
        for _, row in rows_about(given, path, doc_ids, _ORIGIN):
            rows[row.pop("doc_id")] = row
    return rows


def reruns(
    manifests: Sequence[Manifest], names: Mapping[Name, Sequence[str]], held: set[Name]
) -> list[dict[str, Any]]:
    """The named filter artifacts among `held`: `ref`, `lists` given to it, what was made of it.

    `lists` are keys of lists of forgotten documents; `behind` are names, sources first.
    """
    ordered = in_order(manifests)
    found = []
    for at, manifest in enumerate(ordered):
        name = (manifest.stage, manifest.key)
        if manifest.stage != "filter" or name not in held or name not in names:
            continue
        behind = {name}
        for later in ordered[at + 1 :]:
            if any((r.stage, r.key) in behind for given in later.inputs.values() for r in given):
                behind.add((later.stage, later.key))
        shown = [names[n][0] for m in ordered if (n := (m.stage, m.key)) in names and n in behind]
        lists = [r.key for r in manifest.inputs.get("exclusions", ()) if r.stage == STAGE]
        found.append({"ref": names[name][0], "lists": lists, "behind": shown[1:]})
    return found
