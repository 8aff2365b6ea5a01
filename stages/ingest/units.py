"""What the files of a snapshot are, and the units of work they are read in.

A file's format is known by its name, and where that says nothing, by its first bytes. A unit is
the files, or the part of a file, that one worker reads into one shard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

from stages.engine.reading.row import Damage, Readable
from stages.engine.reading.rows import decompress_stream, row_format, row_format_by_magic
from stages.engine.sources import SourceFile
from stages.ingest.archive_heads import ARC_HEAD
from stages.ingest.config import IngestConfig
from stages.ingest.media_types import binary_type, is_html

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
    """The format by a file's name, or None."""
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
    """The format by a file's first bytes; text if they may be text, else unsupported."""
    with source.open() as stream:
        magic = stream.read(8)
        if row_format_by_magic(magic) is not None:
            return "jsonl"
        if magic.startswith(_DICTIONARY):
            return "warc"
        stream.seek(0)
        try:
            head = next(decompress_stream(stream), b"")[:4096]
        except Damage:
            return "unsupported"
    if head.startswith(b"WARC/") or ARC_HEAD.match(head):
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
    """Whether a file next to tables only describes them, as in a dataset's folder on a model hub.

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


_COMPRESSED = (".gz", ".zst", ".zstd")


class ReadBounds(Protocol):
    """Where the records of a part began and where the next part begins; see `ArchiveReader`."""

    @property
    def first(self) -> int | None:
        """Where the first record began; None if none begins in the part."""

    @property
    def next(self) -> int | None:
        """Where the following part has to begin."""


@dataclass(frozen=True)
class Part:
    """The records of a file that begin in its bytes [start, end); `end` None is the file's end.

    Where records can only be found by looking for them, the first begins at or after `start`; at
    `start` itself if that is `exact`.
    """

    file: SourceFile
    start: int = 0
    end: int | None = None
    exact: bool = False
    beside_tables: bool = False
    """Whether tables lie in its folder or below, so that it may describe them."""

    @property
    def is_whole(self) -> bool:
        """Whether this is the whole file."""
        return self.start == 0 and self.end is None


@dataclass(frozen=True)
class Unit:
    """Files, or a part of one, that one worker reads into one shard."""

    id: str
    parts: tuple[Part, ...]

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that the unit reads from."""
        return tuple(part.file for part in self.parts)


def make_units(
    files: Sequence[SourceFile], config: IngestConfig, split_bytes: int | None = None
) -> list[Unit]:
    """Files in their order as units: archives and tables alone, others up to `shard_bytes`.

    Archives and tables of more than `split_bytes` are cut into parts of about that size, unless
    only the first records of each file are wanted. Where they are cut depends on their names and
    sizes alone.
    """
    units: list[tuple[Part, ...]] = []
    group: list[Part] = []
    folders = folders_of_tables(file.name for file in files)
    for file in files:
        form = format_by_name(file.name) if config.format == "auto" else config.format
        alone = form in ("warc", "jsonl") or file.bytes >= config.shard_bytes
        held = sum(part.file.bytes for part in group)
        if group and (alone or held + file.bytes > config.shard_bytes):
            units.append(tuple(group))
            group = []
        if not alone:
            group.append(Part(file, beside_tables=_folder(file.name) in folders))
        elif config.max_records is None and is_divisible(file.name, form):
            units.extend((part,) for part in split_file(file, split_bytes))
        else:
            units.append((Part(file, beside_tables=_folder(file.name) in folders),))
    if group:
        units.append(tuple(group))
    return [Unit(f"{number:05d}", parts) for number, parts in enumerate(units)]


def folders_of_tables(names: Iterable[str]) -> set[str]:
    """The folders that hold JSON lines, Parquet or Arrow tables, and those above them."""
    folders: set[str] = set()
    for name in names:
        if row_format(name) in ("jsonl", "parquet", "arrow"):
            folder = _folder(name)
            while folder not in folders:
                folders.add(folder)
                folder = _folder(folder)
    return folders


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def is_divisible(name: str, form: str | None) -> bool:
    """Whether parts of such a file can be read by themselves.

    Archives of any compression, plain JSON lines and Parquet (by row groups) can.
    """
    if form == "warc":
        return True
    rows = row_format(name) or "jsonl"
    if form != "jsonl" or rows not in ("jsonl", "parquet"):
        return False
    return rows == "parquet" or not name.lower().endswith(_COMPRESSED)


def split_file(file: SourceFile, split_bytes: int | None) -> list[Part]:
    """The file in as many parts of equal size as keep each within `split_bytes`."""
    if split_bytes is None or file.bytes <= split_bytes:
        return [Part(file)]
    number = -(-file.bytes // split_bytes)
    cuts = [file.bytes * cut // number for cut in range(number + 1)]
    return [Part(file, start, end if end < file.bytes else None) for start, end in pairwise(cuts)]


def misaligned_parts(parts: Sequence[Part], reads: Iterable[ReadBounds]) -> list[tuple[int, Part]]:
    """Parts of one file that did not begin where the one before ended, and what to read instead.

    `parts` in their order, as they were read; `reads` their bounds. Read the returned
    parts, put them in the place that their number names, and ask again until none is returned:
    then the parts hold what the whole file does, record for record. Every round sets at least one
    more part right, and none is read more than three times, so hostile data cannot make this slow.
    """
    expected: int | None = None
    broken: list[tuple[int, Part]] = []
    for number, (part, read) in enumerate(zip(parts, reads, strict=True)):
        is_right = expected is None or _continues(part, read, expected)
        # A part that was read again waits until all before it are right.
        if not is_right and expected is not None and (not part.exact or not broken):
            broken.append((number, replace(part, start=expected, exact=True)))
        if read.first is not None or expected is None:
            expected = read.next
    return broken


def _continues(part: Part, read: ReadBounds, expected: int) -> bool:
    if expected >= (part.file.bytes if part.end is None else part.end):
        return read.first is None
    if read.first is None:
        return part.exact and part.start == expected
    return read.first == expected
