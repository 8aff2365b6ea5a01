"""Items and documents at both ends of a score, with their texts, for people to read.

Three orders: how far the right choice is behind the likeliest one, in nats; bits per byte of the
right answer; bits per byte of a text, whether it is a benchmark's or a held-out document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stages.engine.page import Artifact, Figure, Sample, SamplesFigure
from stages.evaluate.figures import HELD_OUT, finite_bits
from stages.scoring.metrics import row_label

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.engine.inputs import Input

Row = Mapping[str, Any]

ENDS, END_CHARACTERS = 4, 600
"""Items shown of either end, and characters of each."""


def item_ends(artifact: Artifact, items: pa.Table) -> list[Figure]:
    """The benchmark items that the model ranks worst, and predicts worst and best."""
    import pyarrow.compute as pc

    from stages.engine.tally import available_inputs, benchmark_items

    bits = finite_bits(items)
    bits = bits.filter(pc.invert(pc.starts_with(bits["benchmark"], HELD_OUT)))
    output = artifact.output("evaluation")
    choices = output.read_table("choices.parquet") if output.has("choices.parquet") else None
    rows: list[tuple[str, Row, tuple[str, Any]]] = []
    if choices is not None:
        known = _contaminated(items)
        rows = [
            (
                "worst, by choices",
                {**row, "contaminated": known.get((row["benchmark"], row["item_id"]))},
                ("nats behind the likeliest choice", round(row["behind"], 3)),
            )
            for row in worst_ranked(choices)
        ]
    rows += [
        (f"{end}, {metric.replace('_', ' ')}", row, ("bits per byte", round(row["value"], 3)))
        for metric in sorted(bits["metric"].unique().to_pylist())
        for end, row in _ends(bits.filter(pc.equal(bits["metric"], metric)))
    ]
    if not rows:
        return []
    wanted = {(row["benchmark"], row["item_id"]) for _, row, _ in rows}
    texts = benchmark_items(available_inputs(measuring(artifact), "benchmarks"), wanted)
    samples = []
    for group, row, fact in rows:
        item = texts.get((row["benchmark"], row["item_id"]))
        heading, text = f"{row_label(row)} / {row['item_id']}", item_text(item) if item else ""
        samples.append(Sample(group, heading, text, (fact, ("contaminated", _known(row)))))
    note = (
        "By choices: how much likelier the likeliest choice is than the right one (marked ●). By "
        "bits per byte: of the text, or of the right answer."
    )
    if len(texts) < len(wanted):
        note += " Where a text is missing, its benchmark was removed from the store."
    return [SamplesFigure("Items predicted worst and best", tuple(samples), note)]


def worst_ranked(choices: pa.Table) -> list[dict[str, Any]]:
    """Items whose right choice is farthest `behind` the likeliest one, in nats; wrong ones only.

    `choices` are the rows of an evaluation, those of an item one after another.
    """

    def request(row: Row) -> tuple[Any, ...]:
        return row["benchmark"], row["item_id"], row.get("formulation"), row.get("shots")

    wanted = ("benchmark", "item_id", "formulation", "shots", "is_right", "log_likelihoods")
    columns = [name for name in wanted if name in choices.column_names]
    behind = []
    for name, group in groupby(choices.select(columns).to_pylist(), key=request):
        values = [(row["is_right"], sum(row["log_likelihoods"])) for row in group]
        right = max((value for is_right, value in values if is_right), default=None)
        if right is None or len(values) < 2:
            continue
        least = max(value for _, value in values) - right
        if least > 0:
            fields = ("benchmark", "item_id", "formulation", "shots")
            behind.append({**dict(zip(fields, name, strict=True)), "behind": least})
    behind.sort(key=lambda row: (-row["behind"], row["benchmark"], row["item_id"]))
    return behind[:ENDS]


def document_ends(artifact: Artifact, items: pa.Table) -> list[Figure]:
    """The held-out documents that the model predicts worst and best, with how they begin."""
    import pyarrow.compute as pc

    bits = finite_bits(items)
    rows = _ends(bits.filter(pc.starts_with(bits["benchmark"], HELD_OUT)))
    if not rows:
        return []
    texts = _held_out_texts(artifact, [row["item_id"] for _, row in rows])
    samples = tuple(
        Sample(
            end,
            f"{row['benchmark'].removeprefix(HELD_OUT)} / {row['item_id']}",
            texts.get(row["item_id"], ""),
            (("bits per byte", round(row["value"], 3)), ("bytes", f"{row['weight']:,.0f}")),
        )
        for end, row in rows
    )
    note = "By rolling log-likelihood. `ingot why DOCUMENT` tells where one comes from."
    if len(texts) < len({row["item_id"] for _, row in rows}):
        note += " Where a text is missing, its shards were removed from the store."
    return [SamplesFigure("Held-out documents predicted worst and best", samples, note)]


def _held_out_texts(artifact: Artifact, doc_ids: Sequence[str]) -> dict[str, str]:
    """How each document begins in the held-out shards; empty once they, or the model, are gone."""
    from stages.engine.tally import available_inputs

    artifact = measuring(artifact)
    shards = available_inputs(artifact, "held_out")
    checkpoints = available_inputs(artifact, "checkpoint")
    return _decode_beginnings(shards, checkpoints[0], doc_ids) if shards and checkpoints else {}


def _decode_beginnings(
    held_out: Sequence[Input], checkpoint: Input, doc_ids: Iterable[str]
) -> dict[str, str]:
    import numpy as np

    from stages.tokens.vocabulary import load_plain_tokenizer
    from stages.training.token_shards import TokenShards

    tokenizer = load_plain_tokenizer(checkpoint.read_bytes("tokenizer.json").decode("utf-8"))
    shards, wanted = TokenShards(held_out), set(doc_ids)
    first: dict[str, tuple[int, str]] = {}
    for source, sequences in shards.sequences_of(wanted).items():
        sources_B = np.full(len(sequences), shards.sources.index(source))
        tokens_BL = shards.batch(sources_B, sequences).tokens_BL
        documents = shards.documents_of(sources_B, sequences)
        for row_L, pieces in zip(tokens_BL, documents, strict=True):
            for piece in pieces:
                place = first.get(piece.doc_id)
                if piece.doc_id in wanted and (place is None or piece.document_start < place[0]):
                    ids = row_L[piece.start : piece.start + piece.length][:END_CHARACTERS]
                    text = tokenizer.decode(ids.tolist(), skip_special_tokens=True)
                    first[piece.doc_id] = piece.document_start, _cut(text)
    return {doc_id: text for doc_id, (_, text) in first.items()}


def measuring(artifact: Artifact) -> Artifact:
    """The evaluation that read the items: of a `score` the one that it was made from."""
    manifest = artifact.manifest
    while references := manifest.inputs.get("evaluation"):
        before = artifact.store.manifest(*references[0].name)
        if before is None:
            break
        manifest = before
    return Artifact(artifact.store, manifest)


def item_text(row: Row) -> str:
    """An item as it reads: the prompt, then its choices, the right one marked."""
    text = str(row["prompt"])
    if len(text) > END_CHARACTERS and row["choices"]:  # A prompt ends with its question.
        text = f"… {text[-END_CHARACTERS:]}"
    return "\n".join([_cut(text) if not row["choices"] else text, *_choices(row)])


def _cut(text: str) -> str:
    return f"{text[:END_CHARACTERS]} …" if len(text) > END_CHARACTERS else text


def _choices(row: Row) -> Iterator[str]:
    for index, choice in enumerate(row["choices"]):
        mark = "●" if index == row["answer"] else "○"
        yield f"{mark} {choice[: END_CHARACTERS // 4]}"


def _ends(rows: pa.Table) -> list[tuple[str, Row]]:
    """("worst", row) and ("best", row) of either end by value; no row is in both."""
    order = [("value", "descending"), ("benchmark", "ascending"), ("item_id", "ascending")]
    ranked = rows.sort_by(order)
    count = min(ENDS, ranked.num_rows // 2)
    worst, best = ranked.slice(0, count), ranked.slice(ranked.num_rows - count)
    return [("worst", row) for row in worst.to_pylist()] + [
        ("best", row) for row in reversed(best.to_pylist())
    ]


def _contaminated(items: pa.Table) -> dict[tuple[str, str], bool | None]:
    rows = items.select(["benchmark", "item_id", "contaminated"]).to_pylist()
    return {(row["benchmark"], row["item_id"]): row["contaminated"] for row in rows}


def _known(row: Row) -> str:
    return {True: "yes", False: "no"}.get(row["contaminated"], "not known")
