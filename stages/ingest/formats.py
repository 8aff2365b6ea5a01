"""What a source file is: by its name, and where that says nothing, by its first bytes."""

from __future__ import annotations

import re
from typing import Literal

from stages.engine.reading.rows import (
    Damage,
    Readable,
    decompressed,
    row_format,
    row_format_by_magic,
)
from stages.ingest.archives.arc import HEAD_LINE

Format = Literal["warc", "jsonl", "html", "text", "code", "unsupported"]
"""warc: every archive of a crawl (WARC, WET, WAT, ARC); jsonl: everything with rows, that is JSON
lines, JSON, Parquet and Arrow."""

_ARCHIVE = re.compile(r"\.(?:warc|wet|wat|arc)(?:\.gz|\.zst|\.zstd)?$")
_DICTIONARY = b"\x5d\x2a\x4d\x18"
"""How a .warc.zst begins whose frames share a dictionary."""
_PACKED = {
    ".tar": "a tar archive", ".tgz": "a tar archive", ".tbz2": "a tar archive",
    ".txz": "a tar archive", ".zip": "a zip archive", ".7z": "a 7z archive",
    ".rar": "a rar archive", ".bz2": "compressed by bzip2", ".xz": "compressed by xz",
    ".lz4": "compressed by lz4", ".br": "compressed by brotli",
}  # fmt: skip
_DESCRIPTIONS = frozenset(
    {"dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json",
     ".gitattributes", "license", "license.txt", "license.md"}
)  # fmt: skip
_CARD = re.compile(
    rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
_CARD_KEY = re.compile(
    rb"^(?:dataset_info|configs|task_categories|size_categories|source_datasets"
    rb"|annotations_creators)[ \t]*:",
    re.MULTILINE,
)
_CARD_HEAD = 1 << 20
_TEXT = (".txt", ".text", ".md", ".markdown", ".rst", ".adoc", ".org", ".tex")
_HTML = (".html", ".htm", ".xhtml")
_LANGUAGES = {
    ".py": "python", ".pyi": "python", ".pyx": "cython", ".ipynb": "jupyter", ".c": "c", ".h": "c",
    ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hh": "c++", ".hpp": "c++", ".cu": "cuda",
    ".cs": "c#", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".groovy": "groovy",
    ".js": "javascript", ".mjs": "javascript", ".jsx": "javascript", ".ts": "typescript",
    ".tsx": "typescript", ".vue": "vue", ".css": "css", ".scss": "scss", ".go": "go", ".rs": "rust",
    ".rb": "ruby", ".php": "php", ".pl": "perl", ".pm": "perl", ".lua": "lua", ".swift": "swift",
    ".m": "objective-c", ".mm": "objective-c", ".r": "r", ".jl": "julia", ".hs": "haskell",
    ".ml": "ocaml", ".ex": "elixir", ".exs": "elixir", ".erl": "erlang", ".clj": "clojure",
    ".lisp": "lisp", ".el": "lisp", ".scm": "scheme", ".f90": "fortran", ".f": "fortran",
    ".sh": "shell", ".bash": "shell", ".ps1": "powershell", ".bat": "batch", ".sql": "sql",
    ".zig": "zig", ".dart": "dart", ".v": "verilog", ".sv": "systemverilog", ".vhd": "vhdl",
    ".asm": "assembly", ".s": "assembly", ".cmake": "cmake", ".toml": "toml", ".yaml": "yaml",
    ".yml": "yaml", ".xml": "xml", ".proto": "protobuf", ".tf": "terraform", ".nix": "nix",
}  # fmt: skip
_BY_NAME = {
    "makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake", "rakefile": "ruby",
}  # fmt: skip


def format_by_name(name: str) -> Format | None:
    """The format that a file's name tells, or None."""
    base = name.rsplit("/", 1)[-1].lower()
    if _ARCHIVE.search(base):
        return "warc"
    if why_unsupported(base) is not None:
        return "unsupported"
    if row_format(base) is not None:
        return "jsonl"
    plain = re.sub(r"\.(?:gz|zst|zstd)$", "", base)
    if plain.endswith(_HTML):
        return "html"
    if programming_language(plain) is not None:
        return "code"
    return "text" if plain.endswith(_TEXT) else None


def format_by_content(source: Readable) -> Format:
    """The format that a file's first bytes tell; text if they may be text, else unsupported."""
    from stages.ingest.responses.sniff import binary_type, is_html

    with source.open() as stream:
        magic = stream.read(8)
        if row_format_by_magic(magic) is not None:
            return "jsonl"
        if magic.startswith(_DICTIONARY):
            return "warc"
        stream.seek(0)
        try:
            head = next(decompressed(stream), b"")[:4096]
        except Damage:
            return "unsupported"
    if head.startswith(b"WARC/") or HEAD_LINE.match(head):
        return "warc"
    if re.match(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"", head):
        return "jsonl"
    if is_html(head):
        return "html"
    return "unsupported" if binary_type(head) else "text"


def why_unsupported(name: str) -> str | None:
    """What a file is that is not unpacked, by its name, and what to do; None for other files."""
    base = name.rsplit("/", 1)[-1].lower()
    stem = re.sub(r"\.(?:gz|zst|zstd)$", "", base)
    for ending, kind in _PACKED.items():
        if stem.endswith(ending):
            return f"{kind} is not read: unpack it and take its files as the snapshot"
    return None


def describes_dataset(source: Readable) -> bool:
    """Whether a file beside tables only describes them, as in a dataset's folder on a model hub.

    A README does if its YAML head has the keys of a dataset card.
    """
    base = source.name.rsplit("/", 1)[-1].lower()
    if base in _DESCRIPTIONS:
        return True
    if base != "readme.md":
        return False
    with source.open() as stream:
        card = _CARD.match(stream.read(_CARD_HEAD))
    return card is not None and _CARD_KEY.search(card["head"]) is not None


def programming_language(name: str) -> str | None:
    """The programming language of a source file by its name, or None."""
    base = name.rsplit("/", 1)[-1].lower()
    if base in _BY_NAME:
        return _BY_NAME[base]
    _, dot, ending = base.rpartition(".")
    return _LANGUAGES.get(dot + ending) if dot else None
