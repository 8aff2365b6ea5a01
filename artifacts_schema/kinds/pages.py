"""What an archive and a page say about themselves, beside the documents made of them."""

from artifacts_schema.kinds.documents import DOC_ID
from artifacts_schema.kinds.schema import Column, Kind, Table

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

PAGES = Kind(
    name="pages",
    version=1,
    description="What the archive and the page itself say, row for row beside the documents.",
    tables={"*.parquet": Table((DOC_ID, *PAGE_COLUMNS))},
)
