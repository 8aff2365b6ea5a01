"""The stage that makes models which judge text: from good text, and text to tell it from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import InputError
from stages.engine import Context, Many, Stage
from stages.language_model.config import NgramConfig
from stages.quality_models.config import ClassifierConfig, CutoffsConfig, QualityModelsExecution

if TYPE_CHECKING:
    from stages.quality_models.sample import Sample


class QualityModelsConfig(Config):
    """Which models are made, and of how much text."""

    language: str = Field(
        default="en",
        pattern=r"^[a-z]{2,3}$",
        description="Language of the models; documents that declare another one are left out.",
    )
    documents: int = Field(
        default=200_000, ge=1, description="Documents of each role, about; drawn by a stable hash."
    )
    held_share: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Share of them that no model learns from, to judge the models by.",
    )
    seed: int = Field(default=1, ge=0, lt=2**31, description="Seed of the draw.")
    ngram: NgramConfig | None = Field(
        default=NgramConfig(), description="The n-gram model of the reference; null for none."
    )
    cutoffs: CutoffsConfig | None = Field(
        default=CutoffsConfig(), description="Cut-offs of its perplexity; null for none."
    )
    classifier: ClassifierConfig | None = Field(
        default=ClassifierConfig(), description="The classifier; null for none."
    )


class QualityModels(Stage):
    """Make an n-gram model, perplexity cut-offs and a fastText classifier, each with its measures.

    `reference` is text such as one wants, `contrast` text to tell it from: a web crawl for a
    quality classifier, ordinary comments where the reference is toxic ones. The n-gram model
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
        from stages.quality_models.classifier import make_classifier

        config: QualityModelsConfig = context.config
        refuse_what_cannot_be(context, config)
        sample = drawn_sample(context, config)
        counts: dict[str, Any] = {}
        if config.classifier is not None:
            card = make_classifier(context, sample, config.classifier)
            counts["roc_auc"] = card["held"]["roc_auc"]["value"]
        else:
            not_made(context, "classifier", "card.json")
        if config.ngram is not None:
            from stages.quality_models.ngram import make_cutoffs, make_ngram_model

            model, told = make_ngram_model(context, sample, config.ngram, config.language)
            counts["ngrams"] = sum(told["ngrams"])
        else:
            not_made(context, "ngram_model", "card.json")
        if config.ngram is not None and config.cutoffs is not None:
            make_cutoffs(context, sample, model, config.cutoffs, config.language)
        else:
            not_made(context, "cutoffs", "cutoffs.json")
        used = sample.counts.total()
        context.count(**{f"{role}_documents": n for role, n in sample.by_role().items()}, **counts)
        context.conserve(records_in=used + sample.lost.total(), out=used, dropped=dict(sample.lost))


def refuse_what_cannot_be(context: Context, config: QualityModelsConfig) -> None:
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


def drawn_sample(context: Context, config: QualityModelsConfig) -> Sample:
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


def not_made(context: Context, output: str, path: str) -> None:
    """An output that the config switched off says so."""
    context.write_json(output, path, {"made": False, "why": "switched off in the config"})
