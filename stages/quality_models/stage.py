"""The quality_models stage: models that judge text, from a reference and a contrast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine import Context, Many, Stage
from stages.quality_models.config import (
    QualityModelsConfig,
    QualityModelsExecution,
)

if TYPE_CHECKING:
    from stages.quality_models.sample import Sample


class QualityModels(Stage):
    """Make an n-gram model, perplexity cut-offs and a fastText classifier, each with its measures.

    `reference` is text of the wanted kind, `contrast` text to distinguish it from: a web crawl for
    a quality classifier, ordinary comments where the reference is toxic ones. The n-gram model
    learns from the reference (modified Kneser-Ney); its perplexity on the contrast gives CCNet's
    cut-offs. The classifier learns from both, DCLM's way, and says on held documents how far it
    can be trusted. `signals` applies what is made here; every threshold is `filter`'s.
    """

    name, version, reproducible = "quality_models", 1, "bytes"
    inputs = {"reference": Many("documents", at_least=1), "contrast": Many("documents")}
    outputs = {"ngram_model": "ngram_model", "classifier": "classifier", "cutoffs": "cutoffs"}
    libraries = ("duckdb", "fasttext-numpy2", "numpy", "pyarrow")
    handles_documents = True
    Config, Execution = QualityModelsConfig, QualityModelsExecution

    def run(self, context: Context) -> None:
        """Draw the sample once, make each model of it."""
        from stages.quality_models.models import make_classifier

        config: QualityModelsConfig = context.config
        check_inputs(context, config)
        sample = draw_sample(context, config)
        counts: dict[str, Any] = {}
        if config.classifier is not None:
            card = make_classifier(context, sample, config.classifier)
            counts["roc_auc"] = card["held"]["roc_auc"]["value"]
        else:
            write_not_made(context, "classifier", "card.json")
        if config.ngram is not None:
            from stages.quality_models.models import make_cutoffs, make_ngram_model

            model, ngram_card = make_ngram_model(context, sample, config.ngram, config.language)
            counts["ngrams"] = sum(ngram_card["ngrams"])
        else:
            write_not_made(context, "ngram_model", "card.json")
        if config.ngram is not None and config.cutoffs is not None:
            make_cutoffs(context, sample, model, config.cutoffs, config.language)
        else:
            write_not_made(context, "cutoffs", "cutoffs.json")
        used = sample.counts.total()
        context.count(**{f"{role}_documents": n for role, n in sample.by_role().items()}, **counts)
        context.conserve(records_in=used + sample.lost.total(), out=used, dropped=dict(sample.lost))


def check_inputs(context: Context, config: QualityModelsConfig) -> None:
    """InputError for a config that the inputs cannot serve."""
    reference, contrast = context.many("reference"), context.many("contrast")
    if config.ngram is None and config.classifier is None:
        raise InputError(
            "neither `ngram` nor `classifier` is asked for", where="quality_models config"
        )
    if config.classifier is not None and not contrast:
        raise InputError(
            "a classifier needs text to tell the reference from",
            where="quality_models.contrast",
            hint="give `contrast`, or set `classifier: null`",
        )
    same = {one.digest for one in reference} & {one.digest for one in contrast}
    if same:
        raise InputError(
            "the same documents are given as reference and as contrast",
            where="quality_models.contrast",
            hint="nothing can be learnt from text that belongs to both",
        )


def draw_sample(context: Context, config: QualityModelsConfig) -> Sample:
    """The sample of both roles."""
    from stages.language_model.classifier import CONTRAST, REFERENCE
    from stages.quality_models.sample import Sample, draw_shard, role_shards

    items = role_shards(
        {role: context.many(role) for role in (REFERENCE, CONTRAST)}, config.documents
    )
    results = context.map(
        draw_shard,
        items,
        held_share=config.held_share,
        seed=config.seed,
        language=config.language,
    )
    return Sample(items, results)


def write_not_made(context: Context, output: str, path: str) -> None:
    """An output that the config switched off says so."""
    context.write_json(output, path, {"made": False, "why": "switched off in the config"})
