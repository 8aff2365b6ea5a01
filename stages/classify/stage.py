"""The stage that scores documents by a published neural classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from artifacts_schema.identity import canonical_sha256, short
from stages.classify.config import ClassifyConfig
from stages.encoders.config import EncoderExecution
from stages.engine import Context, Input, Inputs, Many, One, Stage

_COUNTED = ("documents", "scored", "reused", "empty", "cut", "tokens")
_WRITTEN_ONLY = ("labels", "top_label")
"""Fields of the config that change which scores are written, and no score."""


class Classify(Stage):
    """Score every document by an `AutoModelForSequenceClassification`; drop nothing.

    FineWeb-Edu's quality regressor, toxicity, domains: one label or many, from a snapshot of
    config, safetensors and tokenizer. By default the first 512 tokens of a text are scored, as
    FineWeb-Edu does; of several windows the mean is taken. The scores are signals, so that `filter`
    has rules on them. Sequences of like length run together, in shapes that follow from each text
    alone: workers, kills and neighbours change no byte on one layout, and the `scores` of an
    earlier run are reused for texts that it scored in the same way.
    """

    name, version, reproducible = "classify", 2, "numerics"
    inputs: ClassVar = {
        "documents": One("documents"),
        "model": One("snapshot"),
        "scores": Many("signals"),
    }
    outputs: ClassVar = {"signals": "signals"}
    libraries = ("numpy", "pyarrow", "safetensors", "tokenizers", "torch", "transformers")
    worker_modules = ("stages.classify.scores",)
    handles_documents = True
    Config, Execution = ClassifyConfig, EncoderExecution

    @classmethod
    def columns(cls, config: ClassifyConfig, inputs: Inputs) -> Mapping[str, str] | None:
        """Names and types of the signals; None if the labels are the model's."""
        if not config.labels:
            return None
        scores = {f"{config.name}.{label.replace('/', '_')}": "float32?" for label in config.labels}
        return {**scores, **({config.name: "string?"} if config.top_label else {})}

    def run(self, context: Context) -> None:
        from stages.classify.scores import (
            SCRATCH,
            ScoreColumns,
            choose_activation,
            score_part,
        )
        from stages.encoders.encoder import load_encoder, read_encoder
        from stages.encoders.parts import cut_parts
        from stages.engine.sources import snapshot_name

        config, documents = context.config, context.one("documents")
        spec = read_encoder(context, "classifier")
        encoder = load_encoder(spec)
        columns = ScoreColumns.choose(config, encoder.labels, spec.where)
        activation = choose_activation(config.activation, encoder.problem, encoder.labels)
        known = _usable_scores(context, columns.schema().names)
        shards = [(shard, cut_parts(shard)) for shard in documents.shards()]
        results = context.map(
            score_part,
            [part for _, parts in shards for part in parts],
            # Parts of another layout hold other last digits.
            name=f"score_part-{canonical_sha256(context.layout_notes)[:12]}",
            workers=spec.workers(context.execution),
            spec=spec,
            columns=columns,
            activation=activation,
            known=known,
        )
        left = iter(results)
        for shard, parts in shards:
            with context.table_writer("signals", shard.path, columns.schema()) as writer:
                for _ in parts:
                    writer.write(next(left).read_scratch(SCRATCH))
        source = snapshot_name(context.one("model"))
        described = [
            {"name": one.name, "type": one.type, "unit": activation, "source": source,
             "description": one.description, "view": "text"}
            for one in columns.columns
        ]  # fmt: skip
        context.write_json(
            "signals", "signals.json", {"columns": described, "activation": activation}
        )
        totals = {name: sum(result.value[name] for result in results) for name in _COUNTED}
        context.count(**totals)
        context.conserve(records_in=documents.rows, out=totals["documents"])


def _usable_scores(context: Context, columns: list[str]) -> list[Input]:
    """The earlier scores that a run of this one would make to the byte; of others a warning."""
    from stages.classify.scores import explain_difference

    own = _scored_by(Classify.version, context.config.plain(), context.one("model").digest)
    own |= context.layout_notes
    usable = []
    for earlier in context.many("scores"):
        manifest = earlier.lineage()[0]
        models = manifest.inputs.get("model", ())
        scored_by = _scored_by(
            manifest.version, manifest.config, models[0].digest if models else ""
        )
        difference = explain_difference({**scored_by, **manifest.layout}, own)
        have = {column["name"] for column in earlier.read_json("signals.json")["columns"]}
        lacking = sorted({*columns} - have - {"doc_id"})
        if earlier.stage != Classify.name:
            difference = f"it was made by {earlier.stage}"
        elif difference is None and lacking:
            difference = f"it lacks {lacking[0]}"
        if difference is None:
            usable.append(earlier)
        else:
            name = f"{earlier.stage} {short(earlier.key)}"
            context.log.warning("scores of %s are not reused: %s", name, difference)
    return usable


def _scored_by(version: int, config: Mapping[str, Any], model: str) -> dict[str, Any]:
    """What a score depends on besides its text and the layout."""
    fields = {name: value for name, value in config.items() if name not in _WRITTEN_ONLY}
    return {**fields, "model": model, "version": version}
