"""The files of a published model in a snapshot: its config, its weights, its tokenizer.

The checkpoint carries a tokenizer: an imported one, or the files beside the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from artifacts_schema.errors import InputError
from stages.engine import Input
from stages.engine.sources import SourceFile
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
from stages.tokens.chat_template import (
    JINJA_FILE,
    JINJA_FOLDER,
    JINJA_LIMIT,
    KEY,
    Template,
    TokenizerFiles,
    TokenizerWithTemplate,
    is_template_file,
    read_published_template,
)

_SAVE = save_hint("AutoModelForCausalLM")


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model in a snapshot."""

    name: str
    """The name in its config, else that of its folder."""
    config: dict[str, Any]
    config_where: str
    weights: dict[str, SourceFile]
    """Safetensors files by name."""
    placed: dict[str, str] | None
    """File of each tensor, if there is an index."""
    tokenizer: dict[str, bytes]
    """Content of `tokenizer.json` and `tokenizer_config.json`, where they are there."""
    templates: dict[str, bytes]
    """Content of the Jinja files of its chat template, by path."""
    digests: dict[str, str]
    """sha256 of what was read as a whole."""


def find_files(sources: Sequence[SourceFile]) -> ModelFiles:
    """The model whose config.json is nearest to the snapshot's root, and the files in its folder.

    InputError if there is none or more than one, if its weights are not safetensors, or if a JSON
    file is not what it should be. Nothing else of the snapshot is opened.
    """
    folder = find_model_folder(sources, "snapshot")
    siblings = files_beside(sources, folder)
    raw = {name: _read(siblings[name], LIMITS[name]) for name in sorted(LIMITS) if name in siblings}
    jinja = {
        path.name: _read(source, JINJA_LIMIT)
        for source in sources
        if is_template_file(source.name)
        and (path := PurePosixPath(source.name)).parent
        == (folder if path.name == JINJA_FILE else folder / JINJA_FOLDER)
    }
    parsed = {name: parse_object(data, where=siblings[name].name) for name, data in raw.items()}
    placed = _read_index(parsed[INDEX], siblings) if INDEX in parsed else None
    names = sorted(set(placed.values())) if placed is not None else [_single_file(siblings)]
    return ModelFiles(
        name=str(parsed[CONFIG].get("_name_or_path") or folder.name or "the model")[:80],
        config=parsed[CONFIG],
        config_where=siblings[CONFIG].name,
        weights={name: siblings[name] for name in names},
        placed=placed,
        tokenizer={name: raw[name] for name in (TOKENIZER, TOKENIZER_CONFIG) if name in raw},
        templates=jinja,
        digests={name: hashlib.sha256(data).hexdigest() for name, data in (raw | jinja).items()},
    )


def _read_index(index: dict[str, Any], siblings: Mapping[str, SourceFile]) -> dict[str, str]:
    """File of each tensor by the index; a name that leads out of the folder is no file of it."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError("has no weight_map", where=INDEX)
    for name, file in weight_map.items():
        if not isinstance(file, str) or not file.endswith(".safetensors"):
            raise InputError(
                f"places '{name[:80]}' in {str(file)[:80]!r}, which is no safetensors file",
                where=INDEX,
                hint=_SAVE,
            )
        if file not in siblings:
            raise InputError(
                f"places '{name[:80]}' in {file[:80]!r}, which the snapshot lacks",
                where=INDEX,
                hint="pin all of the model's `*.safetensors`",
            )
    return weight_map


def _single_file(siblings: Mapping[str, SourceFile]) -> str:
    if SINGLE in siblings:
        return SINGLE
    names = sorted(name for name in siblings if name.endswith(".safetensors"))
    if len(names) == 1:
        return names[0]
    if names:
        raise InputError(
            f"has {len(names)} safetensors files and no {INDEX}", where="snapshot", hint=_SAVE
        )
    raise no_safetensors(siblings, "snapshot", "AutoModelForCausalLM")


def _read(source: SourceFile, limit: int) -> bytes:
    if source.bytes > limit:
        raise InputError(f"has {source.bytes:,} bytes, more than {limit:,}", where=source.name)
    with source.open() as file:
        return file.read()


RECORD = "training.json"


@dataclass(frozen=True)
class CarriedTokenizer:
    """Files by name; `vocabulary_size` is one more than the largest id."""

    files: dict[str, bytes]
    vocabulary_size: int
    padded_vocabulary_size: int
    origin: str
    """`tokenizer` for that of the role, `snapshot` for the files beside the model."""
    template: Template | None = None
    """The model's own chat template: that beside the model, else that of the role's tokenizer."""
    template_snapshot: str = ""
    """Name of the snapshot that the template is from."""


def find_tokenizer(
    tokenizer: Input | None, files: ModelFiles, snapshot: str
) -> CarriedTokenizer | None:
    """The tokenizer that the checkpoint is to carry; None if there is none.

    The files beside the model are copied unchanged and only parsed as JSON: `import_tokenizer`
    tests them in a process of its own, and adds what they lack.
    """
    config = json.loads(files.tokenizer.get(TOKENIZER_CONFIG, b"{}"))
    template = read_published_template(config, files.templates, where=TOKENIZER_CONFIG)
    if tokenizer is not None:
        record = tokenizer.read_json(RECORD)
        if template is None:
            template = tokenizer.read_json(TOKENIZER_CONFIG).get(KEY)
            snapshot = record.get("origin", {}).get("snapshot", snapshot)
        return CarriedTokenizer(
            _with_template(tokenizer, template),
            record["vocabulary_size"],
            record["padded_vocabulary_size"],
            "tokenizer",
            template,
            snapshot,
        )
    if TOKENIZER not in files.tokenizer:
        return None
    size = _vocabulary_size(parse_object(files.tokenizer[TOKENIZER], where=TOKENIZER))
    files_with_template = _with_template(
        _FilesInMemory({TOKENIZER_CONFIG: b"{}\n", **files.tokenizer}), template
    )
    return CarriedTokenizer(files_with_template, size, size, "snapshot", template, snapshot)


@dataclass(frozen=True)
class _FilesInMemory:
    """Files in memory."""

    files: dict[str, bytes]

    def read_bytes(self, path: str) -> bytes:
        return self.files[path]


def _with_template(source: TokenizerFiles, template: Template | None) -> dict[str, bytes]:
    both = TokenizerWithTemplate(source, template)
    return {name: both.read_bytes(name) for name in (TOKENIZER, TOKENIZER_CONFIG)}


def _vocabulary_size(content: dict[str, Any]) -> int:
    """One more than the largest id of a `tokenizer.json`, added tokens included."""
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        ids = list(vocabulary.values())
    elif isinstance(vocabulary, list):
        ids = list(range(len(vocabulary)))
    else:
        raise InputError("has no vocabulary", where=TOKENIZER)
    added = content.get("added_tokens")
    for token in added if isinstance(added, list) else []:
        ids.append(token.get("id") if isinstance(token, dict) else None)
    if not ids or not all(isinstance(one, int) and one >= 0 for one in ids):
        raise InputError("gives a token no id", where=TOKENIZER)
    return int(max(ids)) + 1
