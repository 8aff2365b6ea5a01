"""Which documents are source code, and what their paths say: vendored, minified, generated.

The lists are our own; the idea, that a path tells most of it, is that of GitHub Linguist
(https://github.com/github-linguist/linguist, `vendor.yml`, `generated.rb`).
"""

from __future__ import annotations

import re

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
_GENERATED = re.compile(
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
    """Whether a path lies where code of others is kept, or has the name of a well-known library."""
    return _VENDORED.search(path) is not None


def is_minified_path(path: str) -> bool:
    """Whether a file's name says that it was made small for browsers."""
    return _MINIFIED.search(path) is not None


def is_generated_path(path: str) -> bool:
    """Whether a file's name is one that a program gives to what it writes."""
    return _GENERATED.search(path) is not None
