"""Language and how sure the model is of it, by a fastText model that enters as a snapshot.

Joulin et al. 2017 (arXiv 1607.01759); the published model `lid.176` knows 176 languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.sources import source_files
from stages.signals.fasttext_file import is_model, is_whole

if TYPE_CHECKING:
    from stages.engine import Input

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
    with files[0].open() as file:
        content = file.read()
    if not is_model(content):
        raise InputError(
            "not a fastText model",
            where=f"signals.language_model: {files[0].name}",
            hint="give a model as `fasttext` saves it, such as lid.176.ftz",
        )
    if not is_whole(content):
        raise InputError(
            "the fastText model is cut short or damaged",
            where=f"signals.language_model: {files[0].name}",
            hint="get it again",
        )
    path = folder / "language-model.bin"
    path.write_bytes(content)
    return path


def languages(
    texts: Sequence[str], model: Path, characters: int
) -> tuple[list[str | None], list[float | None]]:
    """Label and probability of each text's first `characters` characters; None where all is white.

    One thread, so the same values each time.
    """
    predict: Any = _load(model)
    names: list[str | None] = []
    scores: list[float | None] = []
    for text in texts:
        line = " ".join(text[:characters].split())  # The model reads one line; white space is one.
        if not line:
            names.append(None)
            scores.append(None)
            continue
        (label,), (score,) = predict(line)
        names.append(label.removeprefix(LABEL))
        scores.append(min(float(score), 1.0))  # Softmax in float32 may end a little above.
    return names, scores


def _load(model: Path) -> Any:
    import fasttext

    try:
        return fasttext.load_model(str(model)).predict
    except (ValueError, RuntimeError, MemoryError) as error:
        raise InputError(
            f"fastText cannot read it: {error}", where="signals.language_model"
        ) from None
