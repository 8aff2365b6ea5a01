"""Kinds that leave the store: releases of models, data sets, tokens for other trainers."""

from __future__ import annotations

from artifacts_schema.kinds.documents import METADATA
from artifacts_schema.kinds.schema import Column, Kind, make_table

RELEASE_KINDS = (
    Kind(
        name="token_dataset",
        description="Documents as tokens in the files of another trainer, by source.",
        files={
            "dataset.json": "format; tokenizer (digest), vocabulary_size, begin_id, end_id, "
            "padding_id; sample_length (mosaicml); by source: prefix, dtype, documents, tokens, "
            "bytes of its files, incomplete, samples (mosaicml); data_path (megatron) as "
            "--data-path takes it: tokens as weight, then prefix.",
            "*.bin": "megatron: token ids, end to end.",
            "*.idx": "megatron: header MMIDIDX, version 1, lengths, offsets, documents.",
            "*/tokens.ds": "nanotron: token ids, end to end, uint16 or uint32 little-endian.",
            "*/tokens.ds.index": "nanotron: end of each document in tokens, uint64.",
            "*/tokens.ds.metadata": "nanotron: tokenizer and bytes of a token, tokens.",
            "*/shard.*.mds": "mosaicml: samples of so many tokens, int32.",
            "*/index.json": "mosaicml: the shards, their columns and sizes.",
        },
    ),
    Kind(
        name="dataset",
        description="Documents as a data set of the Hugging Face Hub: Parquet by source, a card.",
        tables={
            "data/*/*.parquet": make_table(
                Column("id", "string", "doc_id of the document."),
                Column("text", "string", "The text; never empty."),
                Column("source", "string", "Where documents come from: web, code, …"),
                Column("url", "string?", "Address, or path within a code tree."),
                Column("date", "string?", "ISO 8601 date of capture or publication, as declared."),
                Column("title", "string?", "Title, as declared."),
                Column("language", "string?", "Language, as declared by the source."),
                Column("licence", "string?", "Licence that the page names."),
                Column("snapshot", "string", "Name of the snapshot that held the record."),
                METADATA,
            )
        },
        files={
            "README.md": "Data card, whose front matter names the files of each source.",
            "dataset.json": "Name, licence, sources with their files, documents and bytes of text; "
            "what was left out; the artifacts that it was made of.",
            "croissant.json": "Files with their sha256 and columns by source, in MLCommons' form.",
        },
    ),
    Kind(
        name="release",
        description="A model folder that `transformers` loads by its Auto classes, card and "
        "lineage.",
        files={
            "model.safetensors": "Weights under Hugging Face's names, where they fit into one "
            "file.",
            "*.safetensors": "Else weights in files of `max_shard_bytes`, numbered from 00001.",
            "model.safetensors.index.json": "Which of several files holds each tensor.",
            "*.json": "config, generation_config, tokenizer, tokenizer_config, ingot (lineage), "
            "certificate (what `ingot verify-release` repeats).",
            "chat_template.jinja": "The chat template, where the checkpoint has one.",
            "README.md": "Model card.",
        },
    ),
    Kind(
        name="gguf",
        description="A model as one file that llama.cpp and what is built on it run.",
        files={
            "*.gguf": "Weights, tokenizer, chat template and architecture.",
            "Modelfile": "By which Ollama takes the file.",
            "ingot.json": "Architecture, pre-tokenizer, types of tensors, and what it was made of.",
        },
    ),
)
