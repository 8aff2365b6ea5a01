"""Signals of source code: line lengths, near-binary content, minified, generated, vendored.

Line lengths and the share of letters and digits are those of BigCode's filters (Kocetkov et al.
2022, arXiv 2211.15533; Li et al. 2023, StarCoder, arXiv 2305.06161), computed as in its
`preprocessing/filtering.py`; the thresholds are in `filter`'s preset `starcoder`. They have no
value for other documents, so no rule on them drops prose.

The path decides which documents are source code, vendored, minified or generated. The lists are our
own; the idea is that of GitHub Linguist (https://github.com/github-linguist/linguist, `vendor.yml`,
`generated.rb`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_letters, digits, hexdigits
from typing import Any

from stages.signals.outputs import Signal, count, share

_EXTENSIONS = frozenset(
    re.split(
        r"\s+",
        "ada adb ads agda asm astro awk bash bat bicep c cc cjs clj cljs cljc cmake coffee comp "
        "cpp cr cs css csx cu cuh cxx d dart ejs el elm erl ex exs f f03 f08 f77 f90 f95 fish for "
        "frag fs fsi fsx gleam glsl go gradle graphql groovy h haml hbs hcl hh hlsl hpp hs hxx "
        "idr inc ino ipynb java jl js jsx kt kts lean less lhs lisp lua m mak metal mjs mk ml mli "
        "mm mts nim nix pas php phtml pl pm pp proto ps1 psm1 pug purs py pyi pyx r rake rb rego "
        "rkt rs s sass scala scm scss sh sol sql ss styl sv svelte svh swift tcl tf thrift ts tsx "
        "v vala vb vert vhd vhdl vim vue wat wgsl xsl zig zsh",
    )
)
_FILES = frozenset(
    (
        "makefile",
        "dockerfile",
        "cmakelists.txt",
        "rakefile",
        "gemfile",
        "jenkinsfile",
        "vagrantfile",
    )
)
_FOLDERS = (
    "node_modules|bower_components|jspm_packages|vendor|vendors|vendored|third[-_]?party|thirdparty"
    r"|3rd[-_]?party|external|externals|extern|deps|site-packages|dist-packages|\.venv"
    r"|godeps|pods|carthage|\.yarn|\.gradle|\.mvn|dist|_vendor|jquery[^/]*|bundled"
)
_VENDORED = re.compile(
    rf"(?:^|/)(?:{_FOLDERS})/"
    r"|(?:^|/)(?:jquery|bootstrap|angular|react|vue|d3|lodash|underscore|moment|modernizr|prototype)"
    r"(?:[.-][0-9][0-9.]*)?(?:[.-](?:min|slim|bundle|prod|core))*\.(?:js|css)$"
    r"|(?:^|/)(?:gradlew|mvnw)(?:\.bat|\.cmd)?$|(?:^|/)(?:config\.guess|config\.sub|ltmain\.sh)$",
    re.IGNORECASE,
)
_MINIFIED = re.compile(r"[.-](?:min|bundle|packed)\.(?:js|mjs|cjs|css)$", re.IGNORECASE)
_GENERATED_PATH = re.compile(
    r"(?:_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h|swift|dart)|_pb\.(?:js|d\.ts|rb)|\.pbobjc\.[hm]"
    r"|\.(?:g|freezed|gr|mocks)\.dart|\.designer\.(?:cs|vb)|\.g\.(?:cs|i\.cs)|\.generated\.\w+"
    r"|_generated\.\w+|zz_generated\.[\w.]+|\.tab\.[ch]|lex\.yy\.c"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock"
    r"|pipfile\.lock|composer\.lock|cargo\.lock|gemfile\.lock|go\.sum|flake\.lock|configure)"
    r"|(?:^|/)parsetab\.py)$",
    re.IGNORECASE,
)


def is_code_path(url: str | None) -> bool:
    """Whether a document's `url` is the path of a source file; an address of the web is none."""
    if not url or "://" in url:
        return False
    name = url.rsplit("/", 1)[-1].lower()
    return name in _FILES or ("." in name and name.rpartition(".")[2] in _EXTENSIONS)


def is_vendored(path: str) -> bool:
    """Whether a path is in a folder for code of others, or has the name of a well-known library."""
    return _VENDORED.search(path) is not None


def is_minified_path(path: str) -> bool:
    """Whether a file's name says that it was made small for browsers."""
    return _MINIFIED.search(path) is not None


def is_generated_path(path: str) -> bool:
    """Whether a file's name is one that a program gives to what it writes."""
    return _GENERATED_PATH.search(path) is not None


HEAD_LINES, HEAD_CHARACTERS = 20, 4_000
"""Part of a file in which a generator says that it wrote it."""

MINIFIED_LINE, MINIFIED_SPACE, LEAST_MINIFIED = 110, 15, 500
"""Minified: lines of more than this mean length with less than this percentage of white space, in a
text of at least so many characters. The length is Linguist's."""

_ASCII_ALPHANUMERIC = (ascii_letters + digits).encode()
_NOT_CODE = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffd]")


def _make_table(characters: str) -> bytes:
    """A table for `bytes.translate` that makes `a` of these characters, and a space of others."""
    return bytes(ord("a" if chr(byte) in characters else " ") for byte in range(256))


_RUNS = (
    (
        _make_table(ascii_letters + digits + "+/"),
        80,
        re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{80,}={0,2}"),
    ),
    (
        _make_table(hexdigits),
        64,
        re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{64,}(?![0-9A-Za-z])"),
    ),
    (
        _make_table(hexdigits + "xXuU\\, \t\r\n"),
        64,
        re.compile(r"(?:(?:0[xX]|\\x)?[0-9A-Fa-f]{1,3}[uU]?(?:,\s{0,40}|[ \t])){32,}"),
    ),
    (
        _make_table(hexdigits + "xu\\"),
        64,
        re.compile(r"(?:\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[0-7]{3}){16,}"),
    ),
)
"""Data that was written as text: base64, hexadecimal, lists of bytes, escapes. Before each shape
the characters it is made of and their least number, a fast check that there is none."""

_MARK = r"(?://|/\*|\*|#|;|--|<!--|%|\(\*|\"\"\"|'|rem\b|@)"
_COMMENT = re.compile(rf"\s*{_MARK}", re.IGNORECASE)
_GENERATED = re.compile(
    r"@generated\b|\bauto-?\s?generated\b|\bautomatically\sgenerated\b"
    r"|\bdo\snot\sedit\b|\bdon't\sedit\b|\bdo\snot\s(?:modify|change)\sthis\s(?:file|code)\b"
    r"|\b(?:file|code|source|module)\s(?:(?:is|was|has\sbeen)\s)?(?:machine[- ])?generated\b"
    rf"|^\s*{_MARK}+\s*generated\s(?:by|from|using|on)\s",
    re.IGNORECASE,
)


_BIGCODE = "Kocetkov et al. 2022 (arXiv 2211.15533), as bigcode-dataset computes it"
_OWN = "Ingot"
CODE_SIGNALS: tuple[Signal, ...] = (
    Signal(
        "code_mean_line_length",
        "float64?",
        "characters",
        _BIGCODE,
        "Mean length of the lines; like all that follows null but for source code.",
    ),
    count("code_max_line_length", "characters", _BIGCODE, "Longest line.", null=True),
    share("code_alphanumeric_share", _BIGCODE, "Characters: letters and digits.", null=True),
    share(
        "near_binary_share",
        _OWN,
        "Characters that are control codes, or in long runs of base64, hexadecimal or escapes.",
        null=True,
    ),
    count("minified", "0 or 1", _OWN, "Made small: long lines, little white space.", null=True),
    count("generated", "0 or 1", _OWN, "Written by a program, as name or head say.", null=True),
    count("vendored", "0 or 1", _OWN, "Code of others, as the path says.", null=True),
)


def measure_code(
    texts: Sequence[str], urls: Sequence[str | None], languages: Sequence[str | None] | None
) -> dict[str, list[Any]]:
    """The columns of `CODE_SIGNALS`; None in all for a document that is no source code.

    `languages` are the programming languages that `pages` name; without, the path decides.
    """
    if languages is None:
        is_code = [is_code_path(url) for url in urls]
    else:
        is_code = [language is not None for language in languages]
    names = [signal.name for signal in CODE_SIGNALS]
    rows = [
        measure_code_file(text, url or "") if code else dict.fromkeys(names)
        for text, url, code in zip(texts, urls, is_code, strict=True)
    ]
    return {name: [row[name] for row in rows] for name in names}


def measure_code_file(text: str, path: str) -> dict[str, Any]:
    """All of them for one source file; shares of nothing are 0."""
    lengths = [len(line) for line in text.splitlines()]
    size = len(text)
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return {
        "code_mean_line_length": mean,
        "code_max_line_length": max(lengths, default=0),
        "code_alphanumeric_share": _count_alphanumeric(text) / size if size else 0.0,
        "near_binary_share": count_near_binary(text) / size if size else 0.0,
        "minified": int(is_minified_path(path) or (mean > MINIFIED_LINE and _is_dense(text))),
        "generated": int(is_generated_path(path) or says_generated(text)),
        "vendored": int(is_vendored(path)),
    }


def count_near_binary(text: str) -> int:
    """Characters that are control codes, or in long runs of data written as text."""
    characters = len(_NOT_CODE.findall(text))
    encoded = text.encode("utf-8", "surrogatepass")
    spans = sorted(
        match.span()
        for among, least, shape in _RUNS
        if b"a" * least in encoded.translate(among)
        for match in shape.finditer(text)
    )
    free = 0
    for start, end in spans:
        start = max(start, free)
        if start < end:
            characters += end - start - len(_NOT_CODE.findall(text, start, end))
            free = end
    return characters


def says_generated(text: str) -> bool:
    """Whether a comment among the first lines says that a program wrote the file."""
    lines = text[:HEAD_CHARACTERS].splitlines()[:HEAD_LINES]
    return any(_COMMENT.match(line) and _GENERATED.search(line) for line in lines)


def _count_alphanumeric(text: str) -> int:
    if text.isascii():
        return len(text) - len(text.encode().translate(None, _ASCII_ALPHANUMERIC))
    return sum(map(str.isalnum, text))


def _is_dense(text: str) -> bool:
    spaces = sum(map(text.count, " \t\n\r"))
    return len(text) >= LEAST_MINIFIED and spaces * 100 < MINIFIED_SPACE * len(text)
