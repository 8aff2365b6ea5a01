"""The tokenizer that the checkpoint carries: an imported one, or the files beside the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.strict_json import parse_object
from stages.import_model.files import TOKENIZER, TOKENIZER_CONFIG, ModelFiles
from stages.text.chat_template import (
    KEY,
    Template,
    TokenizerFiles,
    TokenizerWithTemplate,
    published_template,
)

if TYPE_CHECKING:
    from stages.engine import Input

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


def carried(tokenizer: Input | None, files: ModelFiles, snapshot: str) -> CarriedTokenizer | None:
    """What the checkpoint is to carry; None if nobody has a tokenizer.

    The files beside the model are taken as they are, read as JSON alone: `import_tokenizer` tries
    them in a process of their own, and adds what they lack.
    """
    config = json.loads(files.tokenizer.get(TOKENIZER_CONFIG, b"{}"))
    template = published_template(config, files.templates, where=TOKENIZER_CONFIG)
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
    found = _with_template(_Held({TOKENIZER_CONFIG: b"{}\n", **files.tokenizer}), template)
    return CarriedTokenizer(found, size, size, "snapshot", template, snapshot)


@dataclass(frozen=True)
class _Held:
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
