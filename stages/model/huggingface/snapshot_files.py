"""The files of a published model in a snapshot: their names, their sizes, and which are not read.

Folders below that of the model may hold copies of it, as models are published. A pickle runs
whatever it holds, so weights are safetensors or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from artifacts_schema.errors import InputError
from stages.engine.sources import SourceFile

CONFIG = "config.json"
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
LIMITS = {
    CONFIG: 1_000_000,
    INDEX: 100_000_000,
    TOKENIZER: 256_000_000,
    TOKENIZER_CONFIG: 16_000_000,
}
"""Bytes of the largest that is read; DeepSeek-V3's index has 9 million."""

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_PIN = "`ingot snapshot add NAME config.json '*.safetensors*' 'tokenizer*.json' --model ORG/NAME`"


def save_hint(loader: str) -> str:
    """What to do about a model in a form that is not read; `loader` is a class of transformers."""
    return (
        f"load it once where you trust its code, `{loader}.from_pretrained(DIR)`, and pin what "
        "`save_pretrained(OTHER)` writes, of its tokenizer too"
    )


def find_model_folder(sources: Sequence[SourceFile], where: str) -> PurePosixPath:
    """The folder of the config.json nearest to the root; InputError if there is none, or two."""
    paths = [path for source in sources if (path := PurePosixPath(source.name)).name == CONFIG]
    if not paths:
        raise InputError(f"has no {CONFIG}", where=where, hint=_PIN)
    depth = min(len(path.parts) for path in paths)
    nearest = sorted(path for path in paths if len(path.parts) == depth)
    if len(nearest) > 1:
        raise InputError(
            f"{CONFIG} comes twice: {nearest[0]} and {nearest[1]}",
            where=where,
            hint="pin the files of one model",
        )
    return nearest[0].parent


def files_beside(sources: Sequence[SourceFile], folder: PurePosixPath) -> dict[str, SourceFile]:
    """The files of a folder by name; nothing of the folders below it."""
    paths = {PurePosixPath(source.name): source for source in sources}
    return {path.name: source for path, source in paths.items() if path.parent == folder}


def no_safetensors(names: Iterable[str], where: str, loader: str) -> InputError:
    """What to say of a folder without safetensors, by the names of its files."""
    for name in sorted(names):
        if name.endswith(_PICKLES):
            return InputError(
                f"{name} is a pickle, which runs code when it is read: not read",
                where=where,
                hint=save_hint(loader),
            )
        if name.endswith(".gguf"):
            return InputError(
                f"{name} is GGUF, not read", where=where, hint="take the model that it was made of"
            )
    return InputError("has no safetensors file", where=where, hint=_PIN)
