"""Models that judge text, laid where every worker can open them: our own, and published ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from stages.engine.sources import source_files
from stages.language_model.classifier import Classifier
from stages.language_model.fasttext_file import check_model

if TYPE_CHECKING:
    from stages.engine import Context, Input
    from stages.signals.config import SignalsConfig


@dataclass(frozen=True)
class NgramScorer:
    """An n-gram model on this machine: the folder or file, and whom it scores. Picklable.

    `language` None scores the documents that no other model does. `pieces` is the SentencePiece
    model of its tokens, None for words. `cutoffs` are the perplexities where the middle and the
    tail begin.
    """

    path: Path
    language: str | None
    pieces: Path | None = None
    cutoffs: tuple[float, float] | None = None


@dataclass(frozen=True)
class Models:
    """The models of a run: classifiers by the name of their signal's beginning."""

    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    ngram_models: Sequence[NgramScorer] = ()

    @classmethod
    def of(cls, context: Context) -> Models:
        """Those of the inputs and of the config, laid in the run's work folder.

        InputError for an artifact that holds no model, two models for one signal or language, and
        a published file that is not there.
        """
        config: SignalsConfig = context.config
        outside = _published(context.many("published_models"))
        classifiers = dict(map(_own_classifier, context.many("classifier")))
        if len(classifiers) < len(context.many("classifier")):
            raise InputError("two classifiers bear one name", where="signals.classifier")
        for model in config.published_classifiers:
            if model.name in classifiers:
                raise InputError(
                    f"two classifiers bear the name '{model.name}'", where="signals.classifier"
                )
            path = _laid(outside, model.file, context.work)
            check_model(path, where=f"signals.published_models: {model.file}")
            classifiers[model.name] = Classifier(path, model.label, model.lower_case)
        cutoffs = _cutoffs(context.many("cutoffs"))
        scorers = [
            _own_scorer(given, context.work, cutoffs) for given in context.many("ngram_model")
        ]
        for published in config.published_ngram_models:
            pieces = published.pieces and _laid(outside, published.pieces, context.work)
            scorers.append(
                NgramScorer(
                    _laid(outside, published.file, context.work),
                    published.language,
                    pieces or None,
                    published.cutoffs,
                )
            )
        _refuse_two_of_a_language(scorers)
        return cls(classifiers, tuple(scorers))


def _own_classifier(given: Input) -> tuple[str, Classifier]:
    card = _card(given, "card.json")
    return card["name"], Classifier.of(card, given.local_path(card["file"]))


def _own_scorer(
    given: Input, work: Path, cutoffs: Mapping[str, tuple[float, float]]
) -> NgramScorer:
    """The model's files side by side, as the folder that `quality_models` estimated."""
    language = _card(given, "card.json")["language"]
    folder = work / f"ngram-model-{short(given.digest)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in given.paths():
        if path != "model.arpa":  # Its tables say the same.
            os.symlink(given.local_path(path), folder / path)
    return NgramScorer(folder, language, cutoffs=cutoffs.get(language))


def _cutoffs(inputs: Sequence[Input]) -> dict[str, tuple[float, float]]:
    """Where the middle and the tail begin, by language."""
    found: dict[str, tuple[float, float]] = {}
    for given in inputs:
        for language, told in _card(given, "cutoffs.json")["languages"].items():
            if language in found:
                raise InputError(f"two cutoffs for '{language}'", where="signals.cutoffs")
            found[language] = (told["head"], told["tail"])
    return found


def _card(given: Input, path: str) -> Any:
    """What an output of `quality_models` says of itself; InputError if nothing was made."""
    card = given.read_json(path)
    if not card["made"]:
        raise InputError(
            f"{given.stage} {short(given.key)} holds no {given.kind}: {card['why']}",
            where=f"signals.{given.kind}",
            hint="run quality_models with this part, or take the input away",
        )
    return card


def _published(snapshots: Sequence[Input]) -> dict[str, Any]:
    """The files of all snapshots by name."""
    return {file.name: file for snapshot in snapshots for file in source_files(snapshot)}


def _laid(outside: Mapping[str, Any], name: str, work: Path) -> Path:
    """The published file called `name`, copied into `work` under its own ending."""
    if name not in outside:
        there = ", ".join(sorted(outside)[:5]) or "none is given"
        raise InputError(
            f"no file '{name}' among the published models ({there})",
            where="signals.published_models",
            hint="give a snapshot that holds it",
        )
    folder = work / "published-models"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name.replace("/", "_")
    with outside[name].open() as file, open(path, "wb") as copy:
        shutil.copyfileobj(file, copy)
    return path


def _refuse_two_of_a_language(scorers: Sequence[NgramScorer]) -> None:
    languages = [scorer.language for scorer in scorers]
    for language in set(languages):
        if languages.count(language) > 1:
            named = f"'{language}'" if language else "no language"
            raise InputError(f"two n-gram models for {named}", where="signals.ngram_model")
