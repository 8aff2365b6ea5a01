"""The files of a published model in a snapshot: its config, its weights, its tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.strict_json import parse_object
from stages.text.chat_template import JINJA_FILE, JINJA_FOLDER, JINJA_LIMIT, is_template_file

if TYPE_CHECKING:
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
_SAVE = (
    "load it once where you trust its code, `AutoModelForCausalLM.from_pretrained(DIR)`, and pin "
    "what `save_pretrained(OTHER)` writes"
)


@dataclass(frozen=True)
class ModelFiles:
    """What the snapshot has of a model."""

    name: str
    """What the model calls itself, else the folder it lies in."""
    config: dict[str, Any]
    config_where: str
    weights: dict[str, SourceFile]
    """Safetensors files by name."""
    placed: dict[str, str] | None
    """File of each tensor, where an index says it."""
    tokenizer: dict[str, bytes]
    """Content of `tokenizer.json` and `tokenizer_config.json`, where they are there."""
    templates: dict[str, bytes]
    """Content of the Jinja files of its chat template, by path."""
    digests: dict[str, str]
    """sha256 of what was read as a whole."""


def find_files(sources: Sequence[SourceFile]) -> ModelFiles:
    """The model whose config.json lies nearest to the snapshot's root, and what lies beside it.

    InputError if there is none or more than one, if its weights are not safetensors, or if a JSON
    file is not what it should be. Nothing else of the snapshot is opened.
    """
    folder = _folder(sources)
    beside = {
        PurePosixPath(source.name).name: source
        for source in sources
        if PurePosixPath(source.name).parent == folder
    }
    raw = {name: _read(beside[name], LIMITS[name]) for name in sorted(LIMITS) if name in beside}
    jinja = {
        path.name: _read(source, JINJA_LIMIT)
        for source in sources
        if is_template_file(source.name)
        and (path := PurePosixPath(source.name)).parent
        == (folder if path.name == JINJA_FILE else folder / JINJA_FOLDER)
    }
    parsed = {name: parse_object(data, where=beside[name].name) for name, data in raw.items()}
    placed = _placed(parsed[INDEX], beside) if INDEX in parsed else None
    names = sorted(set(placed.values())) if placed is not None else [_single(beside)]
    return ModelFiles(
        name=str(parsed[CONFIG].get("_name_or_path") or folder.name or "the model")[:80],
        config=parsed[CONFIG],
        config_where=beside[CONFIG].name,
        weights={name: beside[name] for name in names},
        placed=placed,
        tokenizer={name: raw[name] for name in (TOKENIZER, TOKENIZER_CONFIG) if name in raw},
        templates=jinja,
        digests={name: hashlib.sha256(data).hexdigest() for name, data in (raw | jinja).items()},
    )


def _folder(sources: Sequence[SourceFile]) -> PurePosixPath:
    """Where the model lies: models are published with copies of themselves in folders below."""
    found = [path for source in sources if (path := PurePosixPath(source.name)).name == CONFIG]
    if not found:
        raise InputError(
            f"has no {CONFIG}",
            where="snapshot",
            hint="`ingot snapshot add NAME config.json '*.safetensors*' --model ORG/NAME`",
        )
    depth = min(len(path.parts) for path in found)
    nearest = sorted(path for path in found if len(path.parts) == depth)
    if len(nearest) > 1:
        raise InputError(
            f"{CONFIG} comes twice: {nearest[0]} and {nearest[1]}",
            where="snapshot",
            hint="pin the files of one model",
        )
    return nearest[0].parent


def _placed(index: dict[str, Any], beside: Mapping[str, SourceFile]) -> dict[str, str]:
    """File of each tensor by the index; a name that leads out of the folder is no file of it."""
    listed = index.get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise InputError("has no weight_map", where=INDEX)
    for name, file in listed.items():
        if not isinstance(file, str) or not file.endswith(".safetensors"):
            raise InputError(
                f"places '{name[:80]}' in {str(file)[:80]!r}, which is no safetensors file",
                where=INDEX,
                hint=_SAVE,
            )
        if file not in beside:
            raise InputError(
                f"places '{name[:80]}' in {file[:80]!r}, which the snapshot lacks",
                where=INDEX,
                hint="pin all of the model's `*.safetensors`",
            )
    return listed


def _single(beside: Mapping[str, SourceFile]) -> str:
    if SINGLE in beside:
        return SINGLE
    found = sorted(name for name in beside if name.endswith(".safetensors"))
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"has {len(found)} safetensors files and no {INDEX}", where="snapshot", hint=_SAVE
        )
    raise _another_form(sorted(beside))


def _another_form(names: Sequence[str]) -> InputError:
    """What to do about weights that are no safetensors."""
    for name in names:
        if name.endswith(_PICKLES):
            return InputError(
                f"{name} is a pickle, which runs code when it is read: not read",
                where="snapshot",
                hint=_SAVE,
            )
        if name.endswith(".gguf"):
            return InputError(
                f"{name} is GGUF, not read",
                where="snapshot",
                hint="take the model that it was made of",
            )
    return InputError(
        "has no safetensors file",
        where="snapshot",
        hint="`ingot snapshot add NAME config.json '*.safetensors*' --model ORG/NAME`",
    )


def _read(source: SourceFile, limit: int) -> bytes:
    if source.bytes > limit:
        raise InputError(f"has {source.bytes:,} bytes, more than {limit:,}", where=source.name)
    with source.open() as file:
        return file.read()
