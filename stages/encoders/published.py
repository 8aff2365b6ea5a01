"""The files of a published encoder in a snapshot, checked before any library opens them.

`transformers` runs code that a model brings along where it may, and a pickle runs whatever it
holds. So what could lead there is refused here, and the rest is laid in a folder of the run's own:
config, safetensors, tokenizer. Nothing else of a snapshot is opened.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from artifacts_schema.errors import InputError
from stages.engine import Input
from stages.engine.sources import SourceFile, source_files
from stages.engine.strict_json import parse_object
from stages.model.huggingface.snapshot_files import (
    CONFIG,
    INDEX,
    LIMITS,
    SINGLE,
    TOKENIZER,
    TOKENIZER_CONFIG,
    files_beside,
    find_model_folder,
    no_safetensors,
    save_hint,
)
from stages.tokens.isolated import try_isolated

_LIMITS = {**LIMITS, "special_tokens_map.json": 1_000_000}
_LOADER = "AutoModel"
_SAVE = save_hint(_LOADER)
_REFUSED = {
    "auto_map": "names code of its own, which is not run",
    "quantization_config": "has quantized weights, which are not read",
}
"""Keys of config.json (the first also of tokenizer_config.json) and what each means."""


def copy_encoder(snapshot: Input, folder: Path, *, where: str) -> Path:
    """Lay the files of the snapshot's model in `folder`, where `transformers` can open them.

    The model is that whose config.json is nearest to the root. InputError, which names `where`, for
    weights that are no safetensors, code of its own, a missing tokenizer, or a broken file.
    """
    chosen = _choose_files(source_files(snapshot), where)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, source in chosen.items():
        with source.open() as file, open(folder / name, "wb") as copy:
            shutil.copyfileobj(file, copy)
    for name in _LIMITS:
        if name in chosen:
            _check_json(folder / name, where)
    answer = try_isolated(
        "probe_tokenizer",
        (folder / TOKENIZER).read_text(encoding="utf-8"),
        seconds=300,
        processor_seconds=240,
        memory=16 * 2**30,
    )
    if "failed" in answer:
        raise InputError(
            f"{TOKENIZER} is refused by the library: {answer['failed']}",
            where=where,
            hint=_SAVE,
        )
    return folder


def _choose_files(sources: Sequence[SourceFile], where: str) -> dict[str, SourceFile]:
    """The files to read, by name without their folder."""
    near = files_beside(sources, find_model_folder(sources, where))
    weights = [name for name in near if name.endswith(".safetensors")]
    if not weights:
        raise no_safetensors(near, where, _LOADER)
    if SINGLE not in near and INDEX not in near:
        raise InputError(
            f"has safetensors, but neither {SINGLE} nor {INDEX}",
            where=where,
            hint=_SAVE,
        )
    if TOKENIZER not in near:
        raise InputError(f"has no {TOKENIZER}", where=where, hint=_SAVE)
    chosen = {name: near[name] for name in sorted({*_LIMITS, *weights}) if name in near}
    for name, limit in _LIMITS.items():
        if name in chosen and chosen[name].bytes > limit:
            raise InputError(f"{name} has more than {limit:,} bytes", where=where)
    return chosen


def _check_json(path: Path, where: str) -> None:
    """InputError unless it is an object that leads to no other file and no code."""
    content = parse_object(path.read_bytes(), where=f"{where}: {path.name}")
    for key, meaning in _REFUSED.items():
        if path.name in (CONFIG, TOKENIZER_CONFIG) and content.get(key):
            raise InputError(f"{path.name} has `{key}`: it {meaning}", where=where, hint=_SAVE)
    if path.name == INDEX:
        placed = content.get("weight_map")
        names = set(placed.values()) if isinstance(placed, dict) else {None}
        here = {file.name for file in path.parent.glob("*.safetensors")}
        if lacking := sorted(str(name)[:80] for name in names if name not in here):
            raise InputError(f"{INDEX} names {lacking[0]}, which is not there", where=where)
