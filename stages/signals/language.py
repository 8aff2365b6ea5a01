"""Language and how sure the model is of it, by a fastText model that enters as a snapshot.

Joulin et al. 2017 (arXiv 1607.01759); the published model `lid.176` knows 176 languages.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.sources import source_files
from stages.language_model.fasttext_file import check_model

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
    path = folder / "language-model.bin"
    with files[0].open() as file, open(path, "wb") as copy:
        shutil.copyfileobj(file, copy)
    check_model(path, where=f"signals.language_model: {files[0].name}")
    return path


def languages(
    texts: Sequence[str], model: Path, characters: int
) -> tuple[list[str | None], list[float | None]]:
    """Label and probability of each text's first `characters` characters; None where all is white.

    One thread, so the same values each time.
    """
    predict: Any = load_model(model)
    names: list[str | None] = []
    scores: list[float | None] = []
    for text in texts:
        line = one_line(text[:characters])
        if not line:
            names.append(None)
            scores.append(None)
            continue
        (label,), (score,) = predict(line)
        names.append(label.removeprefix(LABEL))
        scores.append(min(float(score), 1.0))  # Softmax in float32 may end a little above.
    return names, scores


def one_line(text: str) -> str:
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
