"""The models of one run: an n-gram model with perplexity cut-offs, and a fastText classifier.

Files that a library wrote are kept over kills in the work folder and copied into the artifact.
fastText trains in a process of its own, so that it can be stopped. It fills the first tenth of
its input matrix by its seed where it runs one thread, and reads the rest as memory was left
(`DenseMatrix::uniformThread`): models differ from run to run, and many trainings end in NaN. A
process whose memory is zeroed has neither problem: glibc zeroes it with `MALLOC_PERTURB_=255`,
since new bytes are the complement of that value. The rows of zeros learn like the others,
because the rows that are not zero break the symmetry.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from artifacts_schema.errors import IngotError, InputError
from artifacts_schema.files import remove_path, write_whole
from artifacts_schema.store.storage_errors import translate_errors
from stages.language_model.classifier import (
    CONTRAST,
    PREFIX,
    REFERENCE,
    Classifier,
    check_model,
    score_texts,
    to_single_line,
)
from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
from stages.language_model.perplexity import LineScores, NgramModel, WordTokens, line_scores
from stages.language_model.tables import read_description
from stages.quality_models.metrics import Curve, Floats, score_card

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.quality_models.config import ClassifierConfig, CutoffsConfig
    from stages.quality_models.sample import Sample


_BLOCK = 1 << 20


def make_once(
    context: Context,
    path: Path,
    make: Callable[[Path], object],
    check: Callable[[Path], object],
) -> None:
    """Keep what a killed run of this code left at `path` if it passes `check`; else make it.

    `check` raises InputError for what is not whole; it also checks what `make` wrote.
    """
    with translate_errors(str(path)):
        if path.exists():
            try:
                check(path)
                return
            except InputError as damage:
                context.log.warning("%s is made again: %s", path.name, damage)
                remove_path(path)
        write_whole(path, make, check)


def copy_file(context: Context, output: str, path: Path) -> None:
    """A file of the work folder into an output, under its name."""
    with open(path, "rb") as source, context.open(output, path.name) as file:
        while block := source.read(_BLOCK):
            file.write(block)


_POLL = 0.1
"""Seconds between two looks at the child and at the stop flag."""


def fasttext_arguments(config: ClassifierConfig) -> dict[str, Any]:
    """The arguments of fastText; it runs one thread."""
    return {
        "lr": config.learning_rate,
        "dim": config.dim,
        "epoch": config.epochs,
        "wordNgrams": config.word_ngrams,
        "bucket": config.buckets,
        "minCount": config.min_count,
        "minn": config.subword_min,
        "maxn": config.subword_max,
        "seed": config.seed,
        "loss": "softmax",
        "label": PREFIX,
    }


def write_lines(documents: Iterable[tuple[str, str]], path: Path, *, lower_case: bool) -> None:
    """Write (label, text) pairs as fastText reads them, one a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for label, text in documents:
            file.write(f"{PREFIX}{label} {to_single_line(text, lower_case=lower_case)}\n")


def train(
    lines: Path, model: Path, config: ClassifierConfig, check_stop: Callable[[], None]
) -> None:
    """Train on a file of lines. The same lines and config give the same bytes.

    IngotError if fastText fails; `check_stop` is called while it works, and may raise.
    """
    request = model.with_suffix(".json")
    content = {
        "lines": str(lines),
        "model": str(model),
        "arguments": fasttext_arguments(config),
        "quantize": config.quantize,
    }
    request.write_text(json.dumps(content), encoding="utf-8")
    program = "stages.quality_models.fasttext_program"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", program, str(request)],
        stdin=subprocess.PIPE,  # The program ends when this process closes it.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "MALLOC_PERTURB_": "255"},
    ) as child:
        try:
            while child.poll() is None:
                check_stop()
                _wait(child)
        except BaseException:
            child.kill()
            raise
        assert child.stdout is not None
        printed = child.stdout.read().decode("utf-8", "replace").strip()
    if child.returncode:
        raise _failure(child.returncode, printed)


def memory_comes_as_zeros() -> bool:
    """Whether the C library of this machine heeds MALLOC_PERTURB_, so that bytes are the same."""
    return platform.libc_ver()[0] == "glibc"


def _wait(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(_POLL)
    except subprocess.TimeoutExpired:
        return


def _failure(code: int, printed: str) -> IngotError:
    last = printed.splitlines()[-1] if printed else f"it ended with {code}"
    hint = "lower `classifier.learning_rate`" if "NaN" in last else None
    if code < 0:
        hint = "it needs 4 bytes × `classifier.buckets` × `classifier.dim` of memory and more"
    return IngotError(
        f"fastText could not train: {last}", where="quality_models.classifier", hint=hint
    )


CLASSIFIER_LEAST_HELD, CLASSIFIER_LEAST_LEARNT = 10, 10
"""Documents of each class without which no classifier is made."""
_BATCH = 1_000
LIBRARIES = ("fasttext-numpy2", "numpy")


def make_classifier(context: Context, sample: Sample, config: ClassifierConfig) -> dict[str, Any]:
    """Train, score the held documents, write model and card; returns the card."""
    for role in (REFERENCE, CONTRAST):
        sample.require(role, CLASSIFIER_LEAST_LEARNT, "learn from", held=False)
        sample.require(role, CLASSIFIER_LEAST_HELD, "judge by", held=True)
    ending = "ftz" if config.quantize else "bin"
    model = context.work / f"classifier.{ending}"
    check = partial(check_model, where=str(model))  # fastText reports no failed write.
    make_once(context, model, partial(_train, context, sample, config), check)
    classifier = Classifier(model, REFERENCE, config.lower_case)
    held = {role: held_scores(context, sample, classifier, role) for role in (REFERENCE, CONTRAST)}
    card = build_card(config, sample, held[REFERENCE], held[CONTRAST], model.name)
    copy_file(context, "classifier", model)
    context.write_json("classifier", "card.json", card)
    return card


def _train(context: Context, sample: Sample, config: ClassifierConfig, model: Path) -> None:
    if not memory_comes_as_zeros():
        context.log.warning("without glibc two trainings of one key may differ in their bytes")
    lines = context.work / "classifier.txt"
    learnt = ((one.role, one.text) for one in sample.documents() if not one.held)
    write_lines(learnt, lines, lower_case=config.lower_case)
    context.check_stop()
    train(lines, model, config, context.check_stop)
    lines.unlink()


def held_scores(context: Context, sample: Sample, classifier: Classifier, role: str) -> Floats:
    """Scores of the held documents of a role."""
    texts = sample.texts(role, held=True)
    values: list[float] = []
    while batch := list(islice(texts, _BATCH)):
        context.check_stop()
        values += score_texts(classifier, batch)
    return np.array(values)


def build_card(
    config: ClassifierConfig, sample: Sample, positive: Floats, negative: Floats, file: str
) -> dict[str, Any]:
    """card.json: what the model is, what it was made of, and how well it does."""
    curve = Curve.from_scores(positive, negative)
    share = config.kept_contrast
    threshold = curve.best_f1() if share is None else curve.keeping(share)
    return {
        "made": True,
        "name": config.name,
        "signal": f"{config.name}_score",
        "file": file,
        "label": REFERENCE,
        "preparation": {
            "lines": "joined by a space, without `</s>` and labels",
            "lower_case": config.lower_case,
        },
        "trained": {
            "documents": {r: sample.counts[r, False] for r in (REFERENCE, CONTRAST)},
            "arguments": {**fasttext_arguments(config), "thread": 1},
            "quantized": config.quantize,
            "libraries": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in LIBRARIES},
            },
        },
        "cutoff": {
            "threshold": threshold,
            "chosen": "best F1" if share is None else f"keeps {share:g} of the contrast at most",
        },
        "held": score_card(positive, negative, threshold, config.seed),
    }


NGRAM_LEAST_LEARNT, LEAST_MEASURED = 1, 10
"""Documents without which no model, and no cut-offs, are made."""
_TEXTS_AT_ONCE = 500


def make_ngram_model(
    context: Context, sample: Sample, config: NgramConfig, language: str
) -> tuple[NgramModel, dict[str, Any]]:
    """Estimate on the reference, measure on held documents of both roles; the model, its card."""
    sample.require(REFERENCE, NGRAM_LEAST_LEARNT, "learn from", held=False)
    folder = context.work / "ngram-model"
    make_once(context, folder, partial(_estimate, context, sample, config), NgramModel.load)
    model, (description, _) = NgramModel.load(folder), read_description(folder)
    card = {
        "made": True,
        "language": language,
        "order": config.order,
        "documents": sample.counts[REFERENCE, False],
        "lines": description.lines,
        "words": description.tokens,
        "ngrams": description.counts,
        "ngrams_before_pruning": description.counts_before_pruning,
        "held_perplexity": held_perplexity(context, sample, model, config),
    }
    for path in sorted(folder.iterdir()):
        copy_file(context, "ngram_model", path)
    context.write_json("ngram_model", "card.json", card)
    return model, card


def _estimate(context: Context, sample: Sample, config: NgramConfig, folder: Path) -> None:
    def report(phase: str, done: int) -> None:
        context.check_stop()
        if phase != "read":
            context.progress(done, config.order, f"orders: {phase}")

    texts = sample.texts(REFERENCE, held=False)
    tokens = WordTokens.from_config(config)
    lines = (_table(tokens, batch) for batch in _batches(texts))
    estimate(lines, folder, config, context.execution.memory, report)


def make_cutoffs(
    context: Context,
    sample: Sample,
    model: NgramModel,
    config: CutoffsConfig,
    language: str,
) -> dict[str, Any]:
    """cutoffs.json: percentiles of the documents' perplexity under the model.

    Of the contrast, which the model never saw; without one, of the reference's held part.
    """
    assert model.config is not None
    role, held = (CONTRAST, None) if context.many(CONTRAST) else (REFERENCE, True)
    sample.require(role, LEAST_MEASURED, "measure", held)
    sides = [True, False] if held is None else [True]
    texts = (text for side in sides for text in sample.texts(role, held=side))
    values = perplexities(context, texts, model, model.config)
    percentiles = np.percentile(values, range(1, 100))
    head, tail = np.percentile(values, [config.head, config.tail])
    cutoffs = {
        "made": True,
        "percentiles": {"head": config.head, "tail": config.tail},
        "languages": {
            language: {
                "head": round(float(head), 4),
                "tail": round(float(tail), 4),
                "percentiles": [round(float(value), 4) for value in percentiles],
                "documents": len(values),
                "measured_on": role,
            }
        },
    }
    context.write_json("cutoffs", "cutoffs.json", cutoffs)
    return cutoffs


def perplexities(
    context: Context, texts: Iterable[str], model: NgramModel, config: NgramConfig
) -> Floats:
    """Perplexity of each document by its lines, each with its end; of a text that has some."""
    by_batch = [one.perplexities() for one in _scores(context, texts, model, config)]
    joined: Floats = np.concatenate(by_batch)
    return joined[~np.isnan(joined)]


def held_perplexity(
    context: Context, sample: Sample, model: NgramModel, config: NgramConfig
) -> dict[str, float]:
    """Perplexity of the held documents of each role that has some, all tokens weighing alike."""
    by_role = {}
    for role in (REFERENCE, CONTRAST):
        total, tokens = 0.0, 0
        for one in _scores(context, sample.texts(role, held=True), model, config):
            total, tokens = total + float(one.log10.sum()), tokens + int(one.lengths.sum())
        if tokens:
            by_role[role] = round(10.0 ** (-total / tokens), 4)
    return by_role


def _scores(
    context: Context, texts: Iterable[str], model: NgramModel, config: NgramConfig
) -> Iterator[LineScores]:
    tokens = WordTokens.from_config(config)
    for batch in _batches(texts):
        context.check_stop()
        yield line_scores(model, tokens, batch)


def _table(tokens: WordTokens, texts: Sequence[str]) -> pa.Table:
    """The lines of the texts as `estimate` takes them: tokens between spaces."""
    lines, _ = tokens.lines(texts)
    offsets, data = (pa.py_buffer(array) for array in (lines.offsets, lines.data))
    column = pa.LargeStringArray.from_buffers(len(lines), offsets, data)
    return pa.table({"line": column.cast(pa.string())})


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    waiting = iter(texts)
    while batch := list(islice(waiting, _TEXTS_AT_ONCE)):
        yield batch
