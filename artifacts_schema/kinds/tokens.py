"""Kinds between documents and training: tokenizers, their comparison, and token shards."""

from __future__ import annotations

from artifacts_schema.kinds.schema import Column, Kind, Table

TOKENIZER = Kind(
    name="tokenizer",
    version=2,
    description="A tokenizer, trained here or brought along, in the files that `tokenizers` and "
    "`transformers` load.",
    files={
        "tokenizer.json": "The tokenizer of the `tokenizers` library.",
        "tokenizer_config.json": "Special tokens by role, and an imported one's chat template, as "
        "`transformers` reads them.",
        "training.json": "algorithm, pre_tokenizer (llama.cpp's name, or null), vocabulary_size, "
        "padded_vocabulary_size, special_tokens by role, and the sample it was trained on or where "
        "it came from.",
    },
)

TOKENIZER_COMPARISON = Kind(
    name="tokenizer_comparison",
    version=1,
    description="How tokenizers cut the same texts: sums by text, language and source.",
    tables={
        "measures.parquet": Table(
            (
                Column("tokenizer", "string", "Its name in the comparison."),
                Column("text", "string", "`documents` (held-out ones) or `parallel`."),
                Column("language", "string?", "Language, as declared."),
                Column("source", "string", "Source of the documents."),
                Column("documents", "int64", "Documents measured."),
                Column("bytes", "int64", "UTF-8 bytes."),
                Column("characters", "int64", "Code points."),
                Column("words", "int64", "Words, as Unicode segments text (UAX #29)."),
                Column("continued_words", "int64", "Words of more than one token."),
                Column("tokens", "int64", "Tokens."),
                Column("unknown_tokens", "int64", "Tokens for what the vocabulary lacks."),
                Column("not_restored", "int64", "Documents that decode to another text."),
            )
        ),
        "tokens.parquet": Table(
            (
                Column("tokenizer", "string", "Its name in the comparison."),
                Column("token_id", "int64", "Id."),
                Column("token", "string", "Its text; bytes of a split character as \\xe4."),
                Column("bytes", "int32", "Bytes that it stands for; 0 for special tokens."),
                Column("uses", "int64", "Uses in all texts of the comparison."),
            )
        ),
    },
    files={
        "tokenizers.json": "By name: digest, algorithm, vocabulary size, origin, what it was "
        "trained on, unused tokens, and ids of unreachable ones."
    },
)

TOKEN_SHARDS = Kind(
    name="token_shards",
    version=2,
    description="Packed sequences of one length, by source, with the document of every token.",
    tables={
        "*/*.index.parquet": Table(
            (
                Column("sequence", "int64", "Row of the sequence within its shard."),
                Column("start", "int32", "First token of the piece within the sequence."),
                Column("length", "int32", "Tokens of the piece."),
                Column("doc_id", "string", "The document."),
                Column("document_start", "int64", "First token of the piece within the document."),
                Column("language", "string?", "Language of the document, as declared."),
                Column(
                    "content_hash",
                    "string",
                    "16 hex digits: BLAKE2b (8 bytes) of the document's text, UTF-8.",
                ),
            )
        )
    },
    files={
        "shards.json": "dtype, sequence_length, strategy, vocabulary_size, padded_vocabulary_size, "
        "tokenizer (digest), begin_id (or null), end_id, padding_id, and by source: shards [{file, "
        "sequences, tokens}], sequences, tokens, documents, bytes, languages {code, or empty: "
        "tokens}, repetitive (sequences left out), cut (documents no longer than a sequence that "
        "were cut), dropped_tokens {cropped, repetitive}.",
        "token_bytes.bin": "uint16 little-endian [vocabulary_size]: UTF-8 bytes of each token, "
        "0 for special tokens.",
        "train_counts.bin": "int64 little-endian [vocabulary_size]: uses in the train split.",
        "*/*.tokens": "[sequences, sequence_length] token ids, uint16 or uint32 little-endian; "
        "pieces from the left, then padding.",
    },
)

MEGATRON_DATASET = Kind(
    name="megatron_dataset",
    version=1,
    description="Tokens in Megatron's indexed format, a pair of files for each source.",
    files={
        "dataset.json": "tokenizer (digest), vocabulary_size, begin_id, end_id, padding_id; by "
        "source: prefix, dtype, documents, tokens, bytes of both files, incomplete; data_path as "
        "Megatron's --data-path takes it: tokens as weight, then prefix.",
        "*.bin": "Token ids, end to end.",
        "*.idx": "Megatron's index: header MMIDIDX, version 1, lengths, offsets, documents.",
    },
)
