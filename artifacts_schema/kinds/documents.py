"""Kinds of the data stages: snapshots, documents, sidecar tables that describe documents."""

from artifacts_schema.kinds.schema import Column, Kind, make_table

DOC_ID = Column(
    "doc_id", "string", "32 hex digits: hash of snapshot, file and record offset or id."
)

ROW_ID = Column("doc_id", "string", "The conversation_id or preference_id of the row.")

METADATA = Column("metadata", "string", "JSON object with what else the reader kept.")

SNAPSHOT = Column("snapshot", "string", "Name of the snapshot that held the record.")

PLACE = "place: string"
"""Of a text in a conversation or preference pair: `messages/3/content`, `tools`, …"""

ORIGIN = (
    Column("origin_file", "string", "Name of the source file within its snapshot."),
    Column(
        "origin_offset", "int64", "Byte offset of the record in that file (of its gzip member)."
    ),
    Column("origin_length", "int64", "Bytes of the record in that file."),
)

_PASSAGES = make_table(
    Column("hash", "uint64", "A passage, each once, ascending."),
    Column("high", "uint64", "First half of the id of the document that holds it first."),
    Column("low", "uint64", "The other half."),
)

PAGE_COLUMNS = (
    Column("record_type", "string?", "Type of the archive record: response, resource, …"),
    Column("http_status", "int32?", "Status of the HTTP response."),
    Column("declared_type", "string?", "Media type that the record or response declares."),
    Column("sniffed_type", "string?", "Media type that the first bytes look like."),
    Column("body_bytes", "int64?", "Bytes of the body, its encodings taken off."),
    Column("encodings", "string?", "Encodings taken off the body, e.g. `chunked gzip`."),
    Column("truncated", "string?", "WARC-Truncated, or `file` where the archive ends early."),
    Column("charset", "string?", "Character encoding that the text was read in."),
    Column("charset_told_by", "string?", "What told it: bom, http, meta or bytes (detection)."),
    Column("characters_repaired", "int64", "Characters dropped or replaced when it was read."),
    Column("url_repeats", "int64?", "Earlier records of this snapshot with the same URL."),
    Column("canonical_url", "string?", "Address that the page names as its own."),
    Column("author", "string?", "Author, as declared."),
    Column("published", "string?", "ISO 8601 date of publication, as declared."),
    Column("robots", "string?", "Directives of robots meta tags and X-Robots-Tag, sorted."),
    Column("ai_opt_out", "string?", "Marks against use for AI: noai, tdm-reservation, …, sorted."),
    Column("tdm_policy", "string?", "Address of a TDM policy that the page or response names."),
    Column("licence", "string?", "Licence that the page or file names, by SPDX identifier."),
    Column("licence_url", "string?", "Address by which it names it."),
    Column("programming_language", "string?", "Programming language, by file name."),
    Column("extractor", "string?", "What found the main text: blocks, resiliparse, trafilatura."),
    Column("doubt", "float32?", "The fast extractor's doubt in its own result, 0 to 1."),
    Column("nodes", "int32?", "Nodes of the page's tree."),
    Column("main_share", "float32?", "Share of the page's visible characters in the main text."),
    Column("link_share", "float32?", "Share of the main text's characters inside links."),
)

DATA_KINDS = (
    Kind(
        name="snapshot",
        description="Files from outside: name, size, checksum of each; where they lie is not "
        "hashed.",
        files={
            "snapshot.json": '{"name", "files": [{"name", "bytes", "sha256"}]}, sorted by file '
            'name; a file behind a URL has its server\'s "etag" instead of "sha256".',
            "files/*": "The files themselves, where the snapshot carries them (made by `sample`).",
        },
    ),
    Kind(
        name="documents",
        version=2,
        description="Documents with their text, in a stable order; shards are the unit of work.",
        tables={
            "*.parquet": make_table(
                DOC_ID,
                Column("source", "string", "Where documents come from: web, code, …"),
                SNAPSHOT,
                Column("url", "string?", "Address, or path within a code tree."),
                Column("date", "string?", "ISO 8601 date of capture or publication, as declared."),
                Column("title", "string?", "Title, as declared."),
                Column("language", "string?", "Language, as declared by the source."),
                Column("text", "string", "The text; never empty."),
                METADATA,
                *ORIGIN,
                Column(
                    "duplicate_class",
                    "string?",
                    "Set by `filter`: least doc_id among those linked to it by verified pairs.",
                ),
                Column(
                    "linked_classes",
                    "list<string>?",
                    "Set by `filter` where there are any: other names of that class, which earlier "
                    "runs gave to parts of it before a document linked them.",
                ),
            )
        },
    ),
    Kind(
        name="rejected",
        description="Records that did not become documents: one row each, with the reason.",
        tables={
            "*.parquet": make_table(
                DOC_ID,
                SNAPSHOT,
                Column("url", "string?", "Address, where the record still told it."),
                Column("reason", "string", "Why it was turned away, e.g. `http_status`."),
                Column("detail", "string?", "The value behind the reason, at most 200 characters."),
                *ORIGIN,
            )
        },
    ),
    Kind(
        name="signals",
        description="Numbers and labels about documents, row for row beside them; computed once. "
        "About conversations and preferences in `chat/`, in a folder for each output.",
        tables={"*.parquet": make_table(DOC_ID, open=True)},
        files={"signals.json": "Columns of this run: description, source, unit and view of each."},
    ),
    Kind(
        name="views",
        description="Named edits of a text as spans, row for row beside the documents; of several "
        "documents outputs in a folder for each; of conversations and preferences in `chat/`.",
        tables={
            "chat/*.parquet": make_table(
                ROW_ID,
                Column(
                    "spans",
                    f"list<struct<view: string, {PLACE}, start: int32, end: int32, label: string, "
                    "replacement: string>>",
                    "Characters [start, end) of the text at `place` (`messages/3/content`, "
                    "`chosen/0/tool_calls/1/arguments`, `tools`), by view, place, then start.",
                ),
            ),
            "*.parquet": make_table(
                DOC_ID,
                Column(
                    "spans",
                    "list<struct<view: string, start: int32, end: int32, label: string, "
                    "replacement: string>>",
                    "Characters [start, end) of the text to replace, by view, then start.",
                ),
            ),
        },
    ),
    Kind(
        name="duplicates",
        version=2,
        description="Exact classes and near-duplicate pairs above a low floor: a table set for "
        "each documents artifact, in a folder named by the first 12 digits of its digest.",
        tables={
            "*/*.parquet": make_table(
                DOC_ID,
                Column(
                    "exact_class",
                    "string",
                    "doc_id of the document that stands for all with this normalised text: of the "
                    "earliest documents output, in it the least id; its own if alone.",
                ),
                Column("text_class", "string", "The same for texts equal to the byte."),
                Column(
                    "partners",
                    "list<struct<doc_id: string, similarity: float32?, containment: float32?, "
                    "band: int32>>",
                    "Pairs of the one that stands for its exact class, with documents of its own "
                    "or earlier outputs, similarity (Jaccard) falling; containment is the share "
                    "of the smaller one's shingles; both null where not verified; band is the "
                    "first that proposed the pair, -1 where a third document led to it.",
                ),
            )
        },
        files={
            "statistics.json": "Parameters, counts, similarities, recall in theory and measured."
        },
    ),
    Kind(
        name="dedup_index",
        description="What a later run needs to compare its documents with these: little-endian "
        "arrays for each shard, in a folder for each documents artifact (first 12 digits of its "
        "digest).",
        files={
            "index.json": "Settings, generations of documents with their shards, sizes in bytes.",
            "*/*.ids": "16 bytes a document, in order.",
            "*/*.names": "First 64 bits of the ids, sorted, with their rows, in runs of documents.",
            "*/*.classes": "Hashes of normalised and raw texts, sorted, with ids and rows, in "
            "runs.",
            "*/*.keys": "Band keys, sorted within each band, with their rows, in runs.",
            "*/*.sizes": "Distinct shingles of each document, in blocks.",
            "pairs/*.pairs": "Verified pairs of the run: numbers, similarity, containment, band.",
        },
        version=2,
    ),
    Kind(
        name="passage_index",
        description="What a later run needs to find passages of these documents in its own; only "
        "the measures that its run found.",
        tables={
            "lines/*.parquet": _PASSAGES,
            "sentences/*.parquet": _PASSAGES,
            "anchors/*.parquet": make_table(
                Column("hash", "uint64", "An anchor of windows of tokens, ascending."),
                Column("shard", "int32", "A shard of documents, as `index.json` lists them."),
                Column("row", "int32", "Row of a document in it that has the anchor."),
            ),
            "tokens/*.parquet": make_table(
                DOC_ID,
                Column(
                    "tokens",
                    "list<uint64>",
                    "Hashes of its tokens in order; empty if they are too few for a window.",
                ),
            ),
        },
        files={"index.json": "Documents and shards, length of windows, parts of the tables."},
    ),
    Kind(
        name="contamination",
        description="Overlap with benchmarks, both ways: document rows in a folder for each "
        "documents artifact (first 12 digits of its digest), those of conversations and "
        "preferences in `chat/`, and one table of the benchmark items that were hit.",
        tables={
            "items.parquet": make_table(
                Column("benchmark", "string", "Name of the benchmark."),
                Column("item_id", "string", "The item."),
                Column("documents", "int64", "Documents that share an n-gram with it."),
                Column("ngrams", "int64", "N-grams of the item."),
                Column("ngrams_hit", "int64", "Those of them that occur in some document."),
            ),
            "chat/*.parquet": make_table(
                ROW_ID,
                Column("ngrams", "int64", "N-grams of the row."),
                Column("ngrams_hit", "int64", "Those of them that a benchmark item holds."),
                Column(
                    "hits",
                    "list<struct<benchmark: string, item_id: string, ngrams: int32, "
                    f"{PLACE}, role: string?, start: int32, end: int32>>",
                    "Items hit: shared n-grams; the first one's text in the row and its message's "
                    "role (null in `tools`), and characters [start, end) of that text.",
                ),
            ),
            "*/*.parquet": make_table(
                DOC_ID,
                Column("ngrams", "int64", "N-grams of the document."),
                Column("ngrams_hit", "int64", "Those of them that a benchmark item holds."),
                Column(
                    "hits",
                    "list<struct<benchmark: string, item_id: string, ngrams: int32, "
                    "start: int32, end: int32>>",
                    "Items hit: shared n-grams; characters [start, end) of the first in the text.",
                ),
            ),
        },
    ),
    Kind(
        name="ledger",
        description="One row a document: kept or dropped and why; a table set for each documents "
        "artifact, in a folder named by the first 12 digits of its digest; those of "
        "conversations and preferences in `chat/`.",
        tables={
            "*/*.parquet": make_table(
                DOC_ID,
                Column("verdict", "string", "`kept` or `dropped`."),
                Column("reason", "string?", "First failing rule in the order of decision."),
                Column("failing", "list<string>", "All failing rules, in the order of decision."),
                Column("value", "float64?", "Value of the first failing rule's signal."),
                Column("threshold", "float64?", "The threshold it failed."),
                Column("partner", "string?", "For a duplicate: doc_id of the kept partner."),
                Column("edits", "int32", "Spans cut or replaced in the kept text."),
                Column("characters", "int64", "Characters of the text before any edit."),
            )
        },
    ),
    Kind(
        name="exclusions",
        description="Documents that must not be used, with the reason.",
        tables={
            "*.parquet": make_table(
                DOC_ID, Column("reason", "string", "Why, e.g. `forget request`.")
            )
        },
    ),
    Kind(
        name="pages",
        description="What the archive and the page itself say, row for row beside the documents.",
        tables={"*.parquet": make_table(DOC_ID, *PAGE_COLUMNS)},
    ),
)
