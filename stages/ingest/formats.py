"""What a source file is: by its name, and where that says nothing, by its first bytes."""

from __future__ import annotations

import re
from typing import Literal

from stages.engine.reading.rows import PARQUET, Damage, Readable, decompressed, row_format

Format = Literal["warc", "jsonl", "html", "text", "code", "unsupported"]
"""jsonl: everything with rows, that is JSON lines, JSON and Parquet."""

_ARCHIVE = re.compile(r"\.(?:warc|wet|wat)(?:\.gz|\.zst|\.zstd)?$")
_OLD_ARCHIVE = re.compile(r"\.arc(?:\.gz)?$")
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
    if _OLD_ARCHIVE.search(base):
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
    from stages.ingest.pages import binary_type, is_html

    with source.open() as stream:
        if stream.read(4) == PARQUET:
            return "jsonl"
        stream.seek(0)
        try:
            head = next(decompressed(stream), b"")[:4096]
        except Damage:
            return "unsupported"
    if head.startswith(b"WARC/"):
        return "warc"
    if re.match(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"", head):
        return "jsonl"
    if is_html(head):
        return "html"
    return "unsupported" if binary_type(head) or head.startswith(b"filedesc://") else "text"


def programming_language(name: str) -> str | None:
    """The programming language of a source file by its name, or None."""
    base = name.rsplit("/", 1)[-1].lower()
    if base in _BY_NAME:
        return _BY_NAME[base]
    _, dot, ending = base.rpartition(".")
    return _LANGUAGES.get(dot + ending) if dot else None
