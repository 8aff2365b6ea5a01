"""Runs the search for passages as a stage of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from stages.dedup import config
from stages.dedup.passage_files import read_passage_indexes
from stages.dedup.passages import find_passages
from stages.dedup.signing import document_shards
from stages.engine import Context, Many, Stage


class PassagesConfig(config.PassagesConfig):
    """What is asked for; unlike the stage's own, any length of substrings, to try short ones."""

    substrings: int | None = None


@dataclass(frozen=True)
class Found:
    """Spans (view, start, end, label) of each document, by id; what was counted; the digest."""

    spans: dict[str, list[tuple[str, int, int, str]]]
    told: dict[str, Any]
    digest: str
    manifest: Manifest = field(compare=False)

    def cut(self, ident: str, text: str) -> str:
        """What the spans leave of a text."""
        for _, start, end, _ in reversed(self.spans[ident]):
            text = text[:start] + text[end:]
        return text


Row = dict[str, Any]
"""A document: its doc_id and text."""


@pytest.fixture
def find(
    run_stage: Callable[..., Any],
    make_documents: Callable[..., Any],
    read_table: Callable[..., Any],
) -> Callable[..., Found]:
    """`find([[[row, …], …], …], rows_per_task=…, workers=1, lines=True, …)` → what is found;
    `earlier` are searches with `index=True`.

    A list of shards for each documents input; a row is a mapping with `doc_id` and `text`.
    """

    def search(
        inputs: Sequence[Sequence[Sequence[Row]]],
        *,
        rows_per_task: int = 1 << 20,
        workers: int = 1,
        earlier: Sequence[Found] = (),
        **asked: Any,
    ) -> Found:
        told: list[dict[str, Any]] = []

        def run(self: Stage, context: Context) -> None:
            documents = context.many("documents")
            indexes = read_passage_indexes(
                context.many("passage_index"),
                context.config,
                [input_.digest for input_ in documents],
            )
            shards = document_shards(documents)
            told.append(
                find_passages(
                    context, shards, context.config, rows_per_task=rows_per_task, earlier=indexes
                )
            )

        members = {
            "name": "passages_alone",
            "version": 1,
            "reproducible": "bytes",
            "inputs": {
                "documents": Many("documents", at_least=1),
                "passage_index": Many("passage_index"),
            },
            "outputs": {"views": "views", "passage_index": "passage_index"},
            "Config": PassagesConfig,
            "run": run,
        }
        stage = type("PassagesAlone", (Stage,), members)
        given = [make_documents(shards, f"input{n}") for n, shards in enumerate(inputs)]
        indexes = [(found.manifest, "passage_index") for found in earlier]
        roles = {"documents": given, "passage_index": indexes}
        manifest = run_stage(stage, asked, roles, {"workers": workers}, force=True)
        spans: dict[str, list[tuple[str, int, int, str]]] = {}
        for (documents, output), shards in zip(given, inputs, strict=True):
            folder = sidecar_folder(documents.outputs[output].digest)
            for number, shard in enumerate(shards if told[0] else ()):
                table = read_table(manifest, "views", f"{folder}/{number:05d}.parquet")
                assert table["doc_id"].to_pylist() == [row["doc_id"] for row in shard]
                for row in table.to_pylist():
                    assert {span["replacement"] for span in row["spans"]} <= {""}
                    names = ("view", "start", "end", "label")
                    spans[row["doc_id"]] = [tuple(span[n] for n in names) for span in row["spans"]]
        return Found(spans, told[0], manifest.outputs["views"].digest, manifest)

    return search


@pytest.fixture
def rows() -> Callable[..., list[Row]]:
    """`rows([text, …], first=0)` → documents whose ids ascend as they do."""

    def make(texts: Sequence[str], first: int = 0) -> list[Row]:
        return [
            {"doc_id": f"{number:016x}{7 * number % 11:016x}", "text": text}
            for number, text in enumerate(texts, first)
        ]

    return make
