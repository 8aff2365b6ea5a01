"""Models that judge text: languages, classifiers, and n-gram models; our own, and published ones.

Models are copied to where every worker can open them. Language and its probability come from a
fastText model that enters as a snapshot (Joulin et al. 2017, arXiv 1607.01759; the published model
`lid.176` knows 176 languages); single lines are judged too, since menus, ads and quotes are often
in another language.

Perplexity: Wenzek et al. 2020 (arXiv 1911.00359) score a text line by line; datatrove and DCLM
score the whole text as one line, and get other values. Both are here under their own names, and the
buckets are CCNet's, of the perplexity by line.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from artifacts_schema.errors import IngotError, InputError
from artifacts_schema.identity import short
from stages.engine.sources import source_files
from stages.language_model.classifier import MAGIC, Classifier, check_model
from stages.language_model.perplexity import (
    LanguageModel,
    PieceTokens,
    Tokens,
    WordTokens,
    bucket,
    line_and_text_scores,
    load,
)
from stages.signals.outputs import Signal
from stages.text.batch import batches

if TYPE_CHECKING:
    from stages.engine import Context, Input
    from stages.engine.sources import SourceFile
    from stages.signals.config import PublishedClassifier, PublishedNgramModel, SignalsConfig


LABEL = "__label__"


def copy_model(snapshot: Input, folder: Path) -> Path:
    """The snapshot's one file under `folder`, where fastText can open it.

    InputError unless it is one file that is a whole fastText model.
    """
    files = source_files(snapshot)
    if len(files) != 1:
        raise InputError(
            f"the snapshot of a language model is one file, this one has {len(files)}",
            where="signals.language_model",
        )
    path = folder / "language-model.bin"
    with files[0].open() as file, open(path, "wb") as copy:
        shutil.copyfileobj(file, copy)
    check_model(path, where=f"signals.language_model: {files[0].name}")
    return path


def identify_languages(
    texts: Sequence[str], model: Path, characters: int
) -> tuple[list[str | None], list[float | None]]:
    """Label and probability of each text's first `characters` characters; None where all is white.

    One thread, so the same values each time.
    """
    predict: Any = load_model(model)
    names: list[str | None] = []
    scores: list[float | None] = []
    for text in texts:
        line = join_lines(text[:characters])
        if not line:
            names.append(None)
            scores.append(None)
            continue
        (label,), (score,) = predict(line)
        names.append(label.removeprefix(LABEL))
        scores.append(min(float(score), 1.0))  # Softmax in float32 may end a little above.
    return names, scores


def join_lines(text: str) -> str:
    """The line that the model reads: white space is one space, a lone surrogate a question mark."""
    return " ".join(text.split()).encode("utf-8", "replace").decode()


@lru_cache(maxsize=2)
def load_model(model: Path) -> Any:
    """The model's `predict`, of one line or of a list of them."""
    import fasttext

    try:
        return fasttext.load_model(str(model)).predict
    except (ValueError, RuntimeError, MemoryError) as error:
        raise InputError(
            f"fastText cannot read it: {error}", where="signals.language_model"
        ) from None


SHORTEST_LINE = 20
"""Characters below which a line is skipped: the model is unsure of shorter ones."""

LINE_LANGUAGE = Signal(
    "line_language_share",
    "float64?",
    "share",
    "Joulin et al. 2017 (arXiv 1607.01759)",
    "Characters of judged lines that the model finds in the document's language.",
)


def measure_line_languages(
    texts: Sequence[str], languages: Sequence[str | None], model: Path, characters: int
) -> list[float | None]:
    """For each text, the share of its lines' characters that are in its language.

    Lines of at least `SHORTEST_LINE` characters among the first `characters` of a text are judged,
    each by itself; null where there are none.
    """
    lines: list[str] = []
    owners: list[int] = []
    for number, text in enumerate(texts):
        for line in text[:characters].splitlines():
            plain = join_lines(line)
            if len(plain) >= SHORTEST_LINE:
                lines.append(plain)
                owners.append(number)
    total, same = [0] * len(texts), [0] * len(texts)
    labels = load_model(model)(lines)[0] if lines else []
    for owner, line, (label,) in zip(owners, lines, labels, strict=True):
        total[owner] += len(line)
        same[owner] += len(line) * (label.removeprefix(LABEL) == languages[owner])
    return [part / whole if whole else None for part, whole in zip(same, total, strict=True)]


RESERVED_NAMES = ("language", "url")
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
    def from_context(cls, context: Context) -> Models:
        """Those of the inputs and of the config, laid in the run's work folder.

        InputError for an artifact that holds no model, two models for one signal or language,
        cut-offs of a model that is no input, and a published file that is missing or is a model of
        another kind.
        """
        config: SignalsConfig = context.config
        published = _PublishedFiles.from_context(context)
        classifiers = [
            _find_classifier(artifact, context.work) for artifact in context.many("classifier")
        ]
        classifiers += [published.classifier(model) for model in config.published_classifiers]
        _check_names([name for name, _ in classifiers])
        scorers = _find_scorers(context)
        scorers += [published.scorer(model) for model in config.published_ngram_models]
        _check_languages([scorer.language for scorer in scorers])
        return cls(dict(classifiers), tuple(scorers))


def _find_classifier(artifact: Input, work: Path) -> tuple[str, Classifier]:
    card = _read_card(artifact, "card.json")
    folder = work / f"classifier-{short(artifact.digest)}"
    return card["name"], Classifier.from_card(
        card, _link_files(artifact, [card["file"]], folder) / card["file"]
    )


def _find_scorers(context: Context) -> list[NgramScorer]:
    """Models of `quality_models`, each with the cut-offs that the same run measured with it."""
    cutoffs = {
        (artifact.key, language): (bounds["head"], bounds["tail"])
        for artifact in context.many("cutoffs")
        for language, bounds in _read_card(artifact, "cutoffs.json")["languages"].items()
    }
    scorers = []
    for artifact in context.many("ngram_model"):
        language = _read_card(artifact, "card.json")["language"]
        # The model's tables say the same as its ARPA file.
        files = [path for path in artifact.paths() if path != "model.arpa"]
        folder = context.work / f"ngram-model-{short(artifact.digest)}"
        _link_files(artifact, files, folder)
        own_cutoffs = cutoffs.pop((artifact.key, language), None)
        scorers.append(NgramScorer(folder, language, cutoffs=own_cutoffs))
    for key, language in cutoffs:
        raise InputError(
            f"the cut-offs for '{language}' of {short(key)} belong to no n-gram model given here",
            where="signals.cutoffs",
            hint="give `ngram_model` and `cutoffs` of one run of quality_models",
        )
    return scorers


def _read_card(artifact: Input, path: str) -> Any:
    """What an output of `quality_models` says of itself; InputError if nothing was made."""
    card = artifact.read_json(path)
    if not card["made"]:
        raise InputError(
            f"{artifact.stage} {short(artifact.key)} holds no {artifact.kind}: {card['why']}",
            where=f"signals.{artifact.kind}",
            hint="run quality_models with this part, or take the input away",
        )
    return card


def _link_files(artifact: Input, paths: Sequence[str], folder: Path) -> Path:
    """Files of an artifact side by side in `folder`.

    They are linked, or copied where that cannot be: the node's cache may drop its own copy of a
    remote file while workers still start.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in paths:
        source = artifact.local_path(path)
        try:
            os.link(source, folder / path)
        except OSError:
            shutil.copyfile(source, folder / path)
    return folder


@dataclass(frozen=True)
class _PublishedFiles:
    """Models from outside: the files of all snapshots by name, copied into `folder` when asked."""

    files: Mapping[str, SourceFile]
    folder: Path

    @classmethod
    def from_context(cls, context: Context) -> _PublishedFiles:
        files: dict[str, SourceFile] = {}
        for snapshot in context.many("published_models"):
            for file in source_files(snapshot):
                if file.name in files:
                    raise InputError(
                        f"two files are called '{file.name}'", where=published_where(file.name)
                    )
                files[file.name] = file
        return cls(files, context.work / "published-models")

    def classifier(self, model: PublishedClassifier) -> tuple[str, Classifier]:
        path = self._copied(model.file)
        check_model(path, where=published_where(model.file))
        return model.name, Classifier(path, model.label, model.lower_case)

    def scorer(self, model: PublishedNgramModel) -> NgramScorer:
        path = self._copied(model.file)
        _check_ngram_file(path, published_where(model.file))
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


def published_where(file: str) -> str:
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


def _check_names(names: Sequence[str]) -> None:
    """InputError unless each classifier has a signal of its own."""
    for name in sorted(names):
        if names.count(name) > 1:
            problem = f"two classifiers bear the name '{name}'"
        elif name in RESERVED_NAMES:
            problem = f"a classifier cannot bear the name '{name}': there is a {name}_score already"
        else:
            continue
        raise InputError(problem, where="signals.classifier", hint="give it another name")


def _check_languages(languages: Sequence[str | None]) -> None:
    for language in languages:
        if languages.count(language) > 1:
            named = f"'{language}'" if language else "documents of any language"
            raise InputError(f"two n-gram models for {named}", where="signals.ngram_model")


CCNET = "Wenzek et al. 2020 (CCNet, arXiv 1911.00359)"
PERPLEXITY_SIGNALS: tuple[Signal, ...] = (
    Signal(
        "line_perplexity",
        "float64?",
        "perplexity",
        CCNET,
        "Of its lines, each with its end; null without a model of its language, or without text.",
    ),
    Signal("perplexity", "float64?", "perplexity", CCNET, "Of the text as one line."),
    Signal(
        "perplexity_bucket",
        "string?",
        "name",
        CCNET,
        "`head`, `middle` or `tail` of its language by line_perplexity; null without cut-offs.",
    ),
)
"""Signals of runs with n-gram models."""

BATCH_CHARACTERS = 1 << 19
"""Texts scored together; it bounds memory and changes no value."""


def measure_perplexity(
    texts: Sequence[str], languages: Sequence[str | None], scorers: Sequence[NgramScorer]
) -> dict[str, list[Any]]:
    """The columns of `PERPLEXITY_SIGNALS`; `languages` are those of the texts, where known.

    A text is scored by the model of its language, else by that of the part before `-` or `_`
    in it, else by the one without a language. InputError for a model that cannot be read.
    """
    columns: dict[str, list[Any]] = {
        signal.name: [None] * len(texts) for signal in PERPLEXITY_SIGNALS
    }
    by_language = {scorer.language: scorer for scorer in scorers}
    rows: dict[NgramScorer, list[int]] = {scorer: [] for scorer in scorers}
    for row, language in enumerate(languages):
        scorer = by_language.get(language) or by_language.get(_primary_language(language))
        scorer = scorer or by_language.get(None)
        if scorer is not None:
            rows[scorer].append(row)
    for scorer in scorers:
        own = rows[scorer]
        for batch in batches([len(texts[row]) for row in own], BATCH_CHARACTERS):
            _score(scorer, own[batch], texts, columns)
    return columns


def _score(
    scorer: NgramScorer, rows: Sequence[int], texts: Sequence[str], columns: dict[str, list[Any]]
) -> None:
    """Fill in the scores of the texts of `rows`."""
    model, tokens = _load_scorer(scorer)
    chosen = [texts[row] for row in rows]
    line_and_text = line_and_text_scores(model, tokens, chosen)
    by_line, as_one = (scores.perplexities().tolist() for scores in line_and_text)
    for row, lines, whole in zip(rows, by_line, as_one, strict=True):
        if np.isnan(lines):  # The empty text.
            continue
        columns["line_perplexity"][row], columns["perplexity"][row] = lines, whole
        if scorer.cutoffs is not None:
            columns["perplexity_bucket"][row] = bucket(lines, scorer.cutoffs)


def _primary_language(language: str | None) -> str | None:
    """`en` of `en-GB` or `en_US`."""
    return re.split("[-_]", language, maxsplit=1)[0].lower() if language else None


@lru_cache(maxsize=8)
def _load_scorer(scorer: NgramScorer) -> tuple[LanguageModel, Tokens]:
    """The model and how it splits text, once in each process."""
    try:
        model = load(scorer.path)
        if scorer.pieces is not None:
            return model, PieceTokens(scorer.pieces)
    except IngotError as error:
        # The name of the input file, not the path of the run's copy.
        where = (error.where or "").replace(f"{scorer.path.parent}/", published_where(""))
        raise type(error)(error.what, where=where, hint=error.hint) from None
    if model.config is not None:
        return model, WordTokens.from_config(model.config)
    return model, WordTokens("ccnet", "unicode")
