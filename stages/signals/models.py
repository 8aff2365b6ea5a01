"""Models that judge text, laid where every worker can open them: our own, and published ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from stages.engine.sources import source_files
from stages.language_model.classifier import Classifier
from stages.language_model.fasttext_file import MAGIC, check_model

if TYPE_CHECKING:
    from stages.engine import Context, Input
    from stages.engine.sources import SourceFile
    from stages.signals.config import PublishedClassifier, PublishedNgramModel, SignalsConfig

TAKEN_NAMES = ("language", "url")
"""What no classifier may be called: `signals` has scores of these names."""

_FASTTEXT = MAGIC.to_bytes(4, "little")
_KENLM = b"mmap lm http://kheafield.com/code"  # Of every binary format of kenlm.


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

        InputError for an artifact that holds no model, two models for one signal or language,
        cut-offs of a model that is not given, and a published file that is not there or is a model
        of another kind.
        """
        config: SignalsConfig = context.config
        published = _Published.of(context)
        classifiers = [_own_classifier(given, context.work) for given in context.many("classifier")]
        classifiers += [published.classifier(model) for model in config.published_classifiers]
        _refuse_twice_or_taken([name for name, _ in classifiers])
        scorers = _own_scorers(context)
        scorers += [published.scorer(model) for model in config.published_ngram_models]
        _refuse_two_of_a_language([scorer.language for scorer in scorers])
        return cls(dict(classifiers), tuple(scorers))


def _own_classifier(given: Input, work: Path) -> tuple[str, Classifier]:
    card = _card(given, "card.json")
    folder = work / f"classifier-{short(given.digest)}"
    return card["name"], Classifier.of(card, _lay(given, [card["file"]], folder) / card["file"])


def _own_scorers(context: Context) -> list[NgramScorer]:
    """Models of `quality_models`, each with the cut-offs that the same run measured with it."""
    cutoffs = {
        (given.key, language): (told["head"], told["tail"])
        for given in context.many("cutoffs")
        for language, told in _card(given, "cutoffs.json")["languages"].items()
    }
    scorers = []
    for given in context.many("ngram_model"):
        language = _card(given, "card.json")["language"]
        files = [path for path in given.paths() if path != "model.arpa"]  # Its tables say the same.
        folder = _lay(given, files, context.work / f"ngram-model-{short(given.digest)}")
        at = cutoffs.pop((given.key, language), None)
        scorers.append(NgramScorer(folder, language, cutoffs=at))
    for key, language in cutoffs:
        raise InputError(
            f"the cut-offs for '{language}' of {short(key)} belong to no n-gram model given here",
            where="signals.cutoffs",
            hint="give `ngram_model` and `cutoffs` of one run of quality_models",
        )
    return scorers


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


def _lay(given: Input, paths: Sequence[str], folder: Path) -> Path:
    """Files of an artifact side by side in `folder`.

    They are linked, or copied where that cannot be: the node's cache may drop its own copy of a
    remote file while workers still start.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in paths:
        found = given.local_path(path)
        try:
            os.link(found, folder / path)
        except OSError:
            shutil.copyfile(found, folder / path)
    return folder


@dataclass(frozen=True)
class _Published:
    """Models from outside: the files of all snapshots by name, copied into `folder` when asked."""

    files: Mapping[str, SourceFile]
    folder: Path

    @classmethod
    def of(cls, context: Context) -> _Published:
        files: dict[str, SourceFile] = {}
        for snapshot in context.many("published_models"):
            for file in source_files(snapshot):
                if file.name in files:
                    raise InputError(
                        f"two files are called '{file.name}'", where=published_place(file.name)
                    )
                files[file.name] = file
        return cls(files, context.work / "published-models")

    def classifier(self, model: PublishedClassifier) -> tuple[str, Classifier]:
        path = self._copied(model.file)
        check_model(path, where=published_place(model.file))
        return model.name, Classifier(path, model.label, model.lower_case)

    def scorer(self, model: PublishedNgramModel) -> NgramScorer:
        path = self._copied(model.file)
        _check_ngram_file(path, published_place(model.file))
        pieces = self._copied(model.pieces) if model.pieces is not None else None
        return NgramScorer(path, model.language, pieces, model.cutoffs)

    def _copied(self, name: str) -> Path:
        if name not in self.files:
            there = ", ".join(sorted(self.files)[:5]) or "none is given"
            raise InputError(
                f"no file '{name}' among the published models ({there})",
                where="signals.published_models",
                hint="give a snapshot that holds it",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / quote(name, safe="")
        with self.files[name].open() as file, open(path, "wb") as copy:
            shutil.copyfileobj(file, copy)
        return path


def published_place(file: str) -> str:
    """How an error names a file from outside."""
    return f"signals.published_models: {file}"


def _check_ngram_file(path: Path, where: str) -> None:
    """InputError for a file that begins as no n-gram model of its ending does."""
    with open(path, "rb") as file:
        head = file.read(len(_KENLM))
    if head.startswith(_FASTTEXT):
        raise InputError(
            "a fastText model, not an n-gram model",
            where=where,
            hint="name it in `published_classifiers`",
        )
    if path.suffix == ".bin" and head != _KENLM:
        raise InputError(
            "not a binary model of kenlm",
            where=where,
            hint="an ARPA file has another ending than .bin",
        )


def _refuse_twice_or_taken(names: Sequence[str]) -> None:
    """InputError unless each classifier has a signal of its own."""
    for name in sorted(names):
        if names.count(name) > 1:
            problem = f"two classifiers bear the name '{name}'"
        elif name in TAKEN_NAMES:
            problem = f"a classifier cannot bear the name '{name}': there is a {name}_score already"
        else:
            continue
        raise InputError(problem, where="signals.classifier", hint="give it another name")


def _refuse_two_of_a_language(languages: Sequence[str | None]) -> None:
    for language in languages:
        if languages.count(language) > 1:
            named = f"'{language}'" if language else "documents of any language"
            raise InputError(f"two n-gram models for {named}", where="signals.ngram_model")
