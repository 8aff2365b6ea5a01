"""The import_tokenizer stage: a published tokenizer becomes an artifact."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import Execution
from stages.engine import Context, One, Stage
from stages.import_tokenizer.config import ImportTokenizerConfig

if TYPE_CHECKING:
    from stages.import_tokenizer.published import Files


class ImportTokenizer(Stage):
    """Read the tokenizer of a published model from a snapshot of its files, as data alone.

    No code of the model is run, nothing is unpickled: tokenizer.json is checked, then tried in a
    process of its own, which it may bring down. Which token has which role is read from the files;
    what lacks is added at the end. Whether texts survive, and whether llama.cpp cuts text in the
    same way, is measured and recorded.
    """

    name, version, reproducible = "import_tokenizer", 2, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"tokenizer": "tokenizer"}
    libraries = ("tokenizers",)
    Config, Execution = ImportTokenizerConfig, Execution

    def run(self, context: Context) -> None:
        """Read, check, try, complete, write."""
        from stages.engine.sources import snapshot_name, source_files
        from stages.import_tokenizer.published import (
            check_ids,
            complete_roles,
            find_roles,
            read_files,
            try_tokenizer,
        )
        from stages.tokens.vocabulary import describe_tokenizer

        config: ImportTokenizerConfig = context.config
        snapshot = context.one("snapshot")
        files = read_files(source_files(snapshot))
        check_ids(files)
        try_tokenizer(files.tokenizer)
        configured = {
            "bos_token": config.begin_token,
            "eos_token": config.end_token,
            "pad_token": config.padding_token,
        }
        roles = find_roles(files, configured)
        tokenizer, described = complete_roles(files, roles, add=config.add_missing)
        trial = try_tokenizer(tokenizer.to_str())
        record = {
            **describe_tokenizer(
                tokenizer,
                described,
                algorithm=json.loads(tokenizer.to_str())["model"]["type"].lower(),
                multiple=config.pad_to_multiple_of,
            ),
            "origin": {"snapshot": snapshot_name(snapshot), "files": files.digests},
            "added_tokens": roles.added,
            "changes": roles.changes,
            "restores_text": not trial["lost"],
            "lost_texts": trial["lost"],
            "special_ids_in_text": trial["special"],
            "has_chat_template": "chat_template" in described,
        }
        _log_warnings(context, files, record)
        context.write_bytes("tokenizer", "tokenizer.json", tokenizer.to_str(pretty=True).encode())
        context.write_json("tokenizer", "tokenizer_config.json", described)
        context.write_json("tokenizer", "training.json", record)
        context.count(vocabulary_size=record["vocabulary_size"], tokens_added=len(roles.added))


def _log_warnings(context: Context, files: Files, record: dict[str, Any]) -> None:
    """Warn of what a person should know before a model is trained on it."""
    if record["lost_texts"]:
        context.log.warning(
            "%d of the texts tried are decoded to other texts, %r for one",
            len(record["lost_texts"]),
            record["lost_texts"][0],
        )
    if record["special_ids_in_text"]:
        context.log.warning(
            "a text that spells %s becomes that token: pack would see the end of a document there",
            ", ".join(record["special_ids_in_text"]),
        )
    if record["pre_tokenizer"] is None:
        context.log.warning("llama.cpp has no such pre-tokenizer: no GGUF can be made with it")
    if "auto_map" in files.config:
        context.log.warning("tokenizer_config.json names code of its own (auto_map): not run")
    if record["added_tokens"]:
        context.log.info("added at the end: %s", ", ".join(record["added_tokens"]))
