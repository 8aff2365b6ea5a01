"""The corpus of a run: the filter artifacts that decide last, what was packed, records read.

A run may decide on all documents in one step, or on each snapshot in a step of its own; both are
one corpus. Everything follows from manifests; no document is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Conservation, Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_ancestry
from stages.engine.inputs import Input
from stages.engine.page import Artifact
from stages.engine.sources import snapshot_name
from stages.engine.tally import inputs_in_order
from stages.filter.sidecars import describes_chat, signal_sets

COLLECTED = "(collected)"
"""The snapshot of documents whose table was collected since."""


@dataclass(frozen=True)
class RunCorpus:
    """What a run keeps: filters and packs by the name of their step, in the order of the run."""

    store: Store
    name: str
    made: Mapping[str, Manifest]
    """All steps that are made."""
    filters: Mapping[str, Manifest]
    """Filters whose documents no other filter of the run decides on again."""
    packs: Mapping[str, Manifest]
    """The first steps that cut these documents into tokens, at most one for each filter."""

    @classmethod
    def find(cls, store: Store, name: str, made: Mapping[str, Manifest]) -> RunCorpus:
        """The corpus of the steps `made`.

        UsageError if no step decides on documents, or if two decide on the same.
        """
        deciding = {step: one for step, one in made.items() if _decides(one)}
        again = {ref.digest for one in deciding.values() for ref in one.inputs["documents"]}
        filters = {
            step: one
            for step, one in deciding.items()
            if one.output("documents").digest not in again
        }
        if not filters:
            raise UsageError(
                "no step of it decides which documents stay, so it has no corpus",
                where=name,
                hint="name a run that got as far as a filter step",
            )
        _refuse_overlap(name, filters)
        return cls(store, name, made, filters, _find_packs(made, filters))

    def records(self) -> dict[str, Conservation]:
        """By snapshot what the steps account for that read its files."""
        accounts: dict[str, Conservation] = {}
        for manifest in self._readers():
            account = manifest.conservation
            if account is None:
                continue
            known = accounts.get(self._snapshot_of(manifest), Conservation(records_in=0, out=0))
            reasons = dict.fromkeys([*known.dropped, *account.dropped])
            accounts[self._snapshot_of(manifest)] = Conservation(
                records_in=known.records_in + account.records_in,
                out=known.out + account.out,
                dropped={
                    one: known.dropped.get(one, 0) + account.dropped.get(one, 0) for one in reasons
                },
            )
        return accounts

    def exclusions(self) -> dict[str, int]:
        """Documents on each list of forgotten documents that a filter reads, by key."""
        lists = {}
        for manifest in self.filters.values():
            for reference in manifest.inputs.get("exclusions", ()):
                known = self.store.manifest(*reference.name)
                if known is not None:
                    lists[known.key] = known.output(reference.output).rows
        return lists

    def _readers(self) -> Iterator[Manifest]:
        """The artifacts from which documents come that no earlier table of documents gave."""
        waiting = [ref for one in self.filters.values() for ref in one.inputs["documents"]]
        seen: set[tuple[str, str]] = set()
        while waiting:
            reference = waiting.pop(0)
            if reference.name in seen:
                continue
            seen.add(reference.name)
            manifest = self.store.manifest(*reference.name)
            if manifest is None:
                continue
            earlier = [ref for ref in manifest.references if ref.kind == "documents"]
            if not earlier:
                yield manifest
            waiting += earlier

    def snapshot_in(self, manifest: Manifest) -> str | None:
        """The name of the snapshot that an artifact holds; None if it holds none."""
        for name, output in manifest.outputs.items():
            if output.kind == "snapshot":
                source = Input.from_manifest(self.store, manifest, name, full_check=False)
                return snapshot_name(source)
        return None

    def _snapshot_of(self, manifest: Manifest) -> str:
        """The name of the snapshot that an artifact read; that of its stage if it read none."""
        for reference in manifest.references:
            if reference.kind == "snapshot":
                try:
                    return snapshot_name(Input.load(self.store, reference, full_check=False))
                except InputError:
                    return COLLECTED
        return manifest.stage


def _decides(manifest: Manifest) -> bool:
    kinds = {output.kind for output in manifest.outputs.values()}
    return {"documents", "ledger"} <= kinds and bool(manifest.inputs.get("documents"))


def _refuse_overlap(name: str, filters: Mapping[str, Manifest]) -> None:
    decided: dict[str, str] = {}
    for step, manifest in filters.items():
        for reference in manifest.inputs["documents"]:
            other = decided.setdefault(reference.digest, step)
            if other != step:
                raise UsageError(
                    f"{other} and {step} decide on the same documents: it holds two corpora",
                    where=name,
                    hint=f"name one of the two: {filters[other].stage} "
                    f"{short(filters[other].key)} or {short(manifest.key)}",
                )


def _find_packs(
    made: Mapping[str, Manifest], filters: Mapping[str, Manifest]
) -> dict[str, Manifest]:
    """Later packs of the same documents, of another length perhaps, would count tokens twice."""
    left = {one.output("documents").digest for one in filters.values()}
    packs = {}
    for step, manifest in made.items():
        read = {ref.digest for ref in manifest.inputs.get("documents", ())}
        is_pack = any(output.kind == "token_shards" for output in manifest.outputs.values())
        if is_pack and read & left and not read - left:
            packs[step] = manifest
            left -= read
    return packs


def made_since(
    before: RunCorpus | None, after: RunCorpus, new: Collection[str]
) -> dict[str, Manifest]:
    """The steps between two corpora, up to filters and packs, by name: what the change cost.

    Those that the run before lacks; within one run, those that a new snapshot led to.
    """
    ancestry = load_ancestry(after.store, *after.filters.values(), *after.packs.values())
    steps = {one.name: step for step, one in after.made.items()}
    if before is not None:
        known = {one.name for one in before.made.values()}
        return {steps[name]: one for name, one in ancestry.items() if name in steps.keys() - known}
    touched = {name for name, one in ancestry.items() if after.snapshot_in(one) in new}
    since = {}
    for name, manifest in ancestry.items():
        if touched & {reference.name for reference in manifest.references}:
            touched.add(name)
            if name in steps:
                since[steps[name]] = manifest
    return since


# What the tables of a filter are read from --------------------------------------------------------


@dataclass(frozen=True)
class DescribedDocuments:
    """A documents input of a filter, None if it was collected, and the signals about it."""

    digest: str
    documents: Input | None
    signals: tuple[Input, ...]
    """Those of several stages, without what was collected."""


def described_documents(artifact: Artifact) -> list[DescribedDocuments]:
    """The documents inputs of a filter in order, each with its signals."""
    references = artifact.manifest.inputs["documents"]
    documents = inputs_in_order(artifact, "documents")
    signals = [s for s in inputs_in_order(artifact, "signals") if not s or not describes_chat(s)]
    sets = signal_sets(signals, len(documents))
    described = []
    for place, (reference, source) in enumerate(zip(references, documents, strict=True)):
        measured = tuple(one for each in sets if (one := each[place]) is not None)
        described.append(DescribedDocuments(reference.digest, source, measured))
    return described


def signal_fields(source: Input) -> dict[str, pa.Field]:
    """The signals that the tables of an output hold, by name; none if it has no rows."""
    shards = [shard for shard in source.shards() if shard.rows]
    if not shards:
        return {}
    with source.open_part(shards[0].path) as file:
        schema = pq.read_schema(file)
    return {field.name: field for field in schema if field.name != "doc_id"}
