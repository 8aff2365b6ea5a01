"""A corpus that a filter made: its config, and what it was given, at hand to decide again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.kinds import beside
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.filter.config import FilterConfig
from stages.filter.stage import Filter
from stages.filter.verdicts import Given, Verdicts, verdicts_of
from stages.text.chat_rows import chat_shards

if TYPE_CHECKING:
    from stages.engine.excerpts import Row


@dataclass(frozen=True)
class Corpus:
    """A filter artifact with its config and its inputs."""

    store: Store
    manifest: Manifest
    config: FilterConfig
    given: Given

    @classmethod
    def open(cls, store: Store, text: str) -> Corpus:
        """The corpus that a ref or key names, or one of its outputs.

        UsageError if that is no filter's artifact, InputError if an input was collected.
        """
        manifest, _ = store.resolve(text)
        if manifest.stage != Filter.name:
            made = [name for name, ref in store.refs().items() if ref.stage == Filter.name]
            raise UsageError(
                f"{manifest.stage} {short(manifest.key)} is no corpus",
                where=text,
                hint=f"give what a filter step made: {', '.join(made[:5])}"
                if made
                else "give what a filter step made",
            )
        if manifest.version != Filter.version:
            raise UsageError(
                f"made by filter version {manifest.version}, this Ingot decides by version "
                f"{Filter.version}",
                where=text,
                hint="run its recipe again, through the filter step",
            )
        config = FilterConfig.parse(manifest.config, where=text)
        return cls(store, manifest, config, _given(store, manifest))

    def decide(self, config: FilterConfig) -> Verdicts:
        """What the stage would decide under another config."""
        return verdicts_of(self.given, config)

    @cached_property
    def ledger(self) -> pa.Table:
        """Characters and verdict of every document, in the order of `Verdicts`."""
        ledger = Input.of(self.store, self.manifest, "ledger", full_check=False)
        tables = [
            ledger.read_table(f"{beside(documents.digest)}/{shard.path}", ["verdict", "characters"])
            for documents in self.given.documents
            for shard in documents.shards()
        ]
        given = {"conversations": self.given.conversations, "preferences": self.given.preferences}
        tables += [
            ledger.read_table(shard.path, ["verdict", "characters"])
            for shard in chat_shards(given, where="filter")
        ]
        return pa.concat_tables(tables)

    @property
    def characters(self) -> NDArray[np.int64]:
        """[documents] Characters of each text before any edit."""
        return self.ledger["characters"].to_numpy()

    @property
    def was_kept(self) -> NDArray[np.bool_]:
        """[documents] What the ledger says."""
        return pc.equal(self.ledger["verdict"], "kept").to_numpy()

    def texts(self, doc_ids: Sequence[str]) -> dict[str, Row]:
        """Text, address and source by doc_id, personal data and secrets replaced where found.

        Of conversations and preference pairs no text is shown.
        """
        from stages.engine.excerpts import rows_of
        from stages.filter.policies import PERSONAL_DATA, SECRETS
        from stages.filter.shown import shown, spans_by_id

        rows = rows_of(self.given.documents, doc_ids, ["text", "url", "source"])
        spans = spans_by_id(self.given.views, doc_ids)
        hidden = tuple(dict.fromkeys((PERSONAL_DATA, SECRETS, *self.config.views)))
        for doc_id, row in rows.items():
            row["text"] = shown(row["text"], spans.get(doc_id, ()), hidden)
        chat = {"text": "", "url": None, "source": ""}
        return {doc_id: rows.get(doc_id, chat) for doc_id in doc_ids}


def _given(store: Store, manifest: Manifest) -> Given:
    """The inputs of a filter; InputError that names what was collected."""
    given: dict[str, list[Input]] = {}
    for role in Filter.inputs:
        references = manifest.inputs.get(role, ())
        gone = [r for r in references if store.manifest(r.stage, r.key) is None]
        if gone:
            listed = ", ".join(f"{r.stage} {short(r.key)}" for r in gone)
            raise InputError(
                f"{role} that it was decided by were collected: {listed}",
                where=f"{manifest.stage} {short(manifest.key)}",
                hint="run its recipe again",
            )
        given[role] = [Input.load(store, r, full_check=False) for r in references]
    return Given(
        documents=given["documents"],
        signals=given["signals"],
        views=given["views"],
        duplicates=given["duplicates"],
        ledger=given["ledger"],
        contamination=next(iter(given["contamination"]), None),
        exclusions=given["exclusions"],
        conversations=given["conversations"],
        preferences=given["preferences"],
    )
