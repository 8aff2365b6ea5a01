"""Document modules of the running Python, in an interpreter of its own.

This file is run as a program by `modules.py`, not imported: in a fresh interpreter without site
packages, with a fixed hash seed and an empty environment, nothing of the parent (imported modules,
patches, locale, paths) can reach the pages. It needs the standard library only.

Standard input: a JSON object {"modules": [...], "class_page": characters}. Standard output: one
JSON object a line for each module, in order: `module`, and either `missing` (why it cannot be
documented) or `text`, `pages` and `entries`, as described by `modules.Module`.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import pydoc
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOPICS = "pydoc_data.topics"
"""The language reference, as `help("topics")` shows it: a page for each topic."""
REPEATS = ("compound", "else", "execmodel", "specialnames")
"""Topics that repeat other topics whole."""
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,}")
CLASS_RULE = "<hr>\n"
"""`pydoc` puts this between the parts of a class: defined here, inherited from, …"""
BOOKKEEPING = ("__dict__", "__weakref__", "__hash__", "__annotations__", "__abstractmethods__")


def stdlib() -> Path:
    """The folder of the standard library's source files."""
    return Path(inspect.getfile(json)).parents[1]


def scrub(text: str) -> str:
    """Take out what names this machine: addresses of objects and the library's folder.

    Not the installation's prefix: where that is `/usr`, honest texts name it too.
    """
    return ADDRESS.sub("", text).replace(str(stdlib()), "")


class Pages(pydoc.HTMLDoc):
    """`pydoc`'s HTML in today's markup: headings and paragraphs instead of tables and `&nbsp;`.

    A class documents what it defines itself; what it inherits is on the page of its own class. A
    class of more than `class_page` characters gets a page of its own (`own_pages`: name → HTML).
    """

    def __init__(self, module: str, class_page: int) -> None:
        super().__init__()
        self.module, self.class_page = module, class_page
        self.own_pages: dict[str, str] = {}

    def heading(self, title: str, extras: str = "") -> str:
        """The page's title and where its source is."""
        return f'<h1>{title}</h1>\n<p class="source">Source code: {extras.split("<br>")[1]}</p>\n'

    def filelink(self, url: str, path: str) -> str:
        """A link into the site's source tree, never to this machine's files."""
        name = Path(path).relative_to(stdlib()).as_posix()
        return f'<a href="../source/{name}">Lib/{name}</a><br>'

    def getdocloc(self, object: Any, basedir: str = "") -> None:
        """No link to other documentation."""

    def section(
        self,
        title: str,
        cls: str,
        contents: str,
        width: int = 6,
        prelude: str = "",
        marginalia: str | None = None,
        gap: str = "",
    ) -> str:
        """A section with its heading; of a class, only the parts that it defines."""
        if cls != "title":
            return f'<section class="{cls}">\n<h2>{title}</h2>\n{contents}\n</section>\n'
        parts = [part for part in contents.split(CLASS_RULE) if _own_part(part)]
        first, _, rest = prelude.partition("</p>")
        for name in ("lt", "gt", "amp"):  # pydoc escapes the signature of a class twice
            first = first.replace(f"&amp;{name};", f"&{name};")
        prelude = f"{first}</p>{rest}" if rest or first != prelude else first
        return (
            f'<section class="class">\n<h3>{title}</h3>\n{prelude}\n' + "\n".join(parts)
        ) + "</section>\n"

    def multicolumn(self, list: Any, format: Any) -> str:
        """A plain list of links."""
        items = "".join(f"<li>{format(item)}</li>" for item in list)
        return f'<ul class="modules">{items}</ul>'

    def markup(
        self,
        text: str,
        escape: Any = None,
        funcs: Any = types.MappingProxyType({}),
        classes: Any = types.MappingProxyType({}),
        methods: Any = types.MappingProxyType({}),
    ) -> str:
        """Paragraphs as `<p>`, examples and tables as `<pre>`."""
        if escape != self.preformat:
            return super().markup(text, escape, funcs, classes, methods)
        blocks = []
        for block in re.split(r"\n\s*\n", text.expandtabs().strip("\n")):
            if not block.strip():
                continue
            tag = "pre" if _verbatim(block) else "p"
            inner = super().markup(block.rstrip(), self.escape, funcs, classes, methods)
            blocks.append(f"<{tag}>{inner}</{tag}>")
        return "\n".join(blocks)

    def docclass(self, object: Any, name: Any = None, mod: Any = None, *rest: Any) -> str:
        """A class here, or a link to it: in its own module or on its own page."""
        name = name or object.__name__
        if not self._is_local(object):
            return self._pointer(name, f"{object.__module__}.html#{name}")
        if name != object.__name__:
            return f"<h3>{name} = class {self.escape(object.__name__)}</h3>\n"
        content = super().docclass(object, name, mod, *rest)
        if len(content) <= self.class_page:
            return content
        self.own_pages[name] = content
        synopsis = self.escape(pydoc.getdoc(object).partition("\n")[0])
        return f"<h3>class {name}</h3>\n<p>{synopsis}</p>\n" + self._pointer(
            name, f"{self.module}.{name}.html"
        )

    def docroutine(self, object: Any, name: Any = None, mod: Any = None, *rest: Any) -> str:
        """A function or method; a function of another module is only linked."""
        if len(rest) < 4 and not self._is_local(object):
            return self._pointer(name or object.__name__, f"{object.__module__}.html#-{name}")
        if _is_same_everywhere(object, name, rest[3] if len(rest) > 3 else None):
            return ""
        content = super().docroutine(object, name, mod, *rest)
        comments = (inspect.getcomments(object) or "").strip()
        if not getattr(object, "__doc__", None) and pydoc.getdoc(object).strip() != comments:
            content = re.sub(
                r"<dd>.*</dd>", "", content, flags=re.DOTALL
            )  # documented in the base class
        return content

    def docdata(self, object: Any, name: Any = None, mod: Any = None, *rest: Any) -> str:
        """A descriptor, unless every class has it."""
        return "" if name in BOOKKEEPING else super().docdata(object, name, mod, *rest)

    def docother(self, object: Any, name: Any = None, mod: Any = None, *rest: Any) -> str:
        """A value, unless it is the class's own bookkeeping."""
        if mod is not None and str(name).startswith("__"):
            return ""
        return super().docother(object, name, mod, *rest)

    def _is_local(self, object: Any) -> bool:
        home = getattr(object, "__module__", None) or self.module
        return home == self.module or any(part.startswith("_") for part in home.split("."))

    def _pointer(self, name: str, url: str) -> str:
        return f'<p>{name} is documented on <a href="{url}">a page of its own</a>.</p>\n'


def _is_same_everywhere(object: Any, name: Any, cl: Any) -> bool:
    """Whether a method is of those that read the same in every class that has them."""
    real = getattr(object, "__name__", "")
    return (
        isinstance(object, types.WrapperDescriptorType | types.MethodWrapperType)
        or real in ("__class_getitem__", "__subclasshook__")
        or (real == "__new__" and inspect.isbuiltin(object))
        or (hasattr(cl, "_fields") and str(name).startswith("_"))
    )


def _own_part(part: str) -> bool:
    """Whether a part of a class tells something that this class defines."""
    first, _, rest = part.partition(":<br>\n")
    if " inherited from " in first and not first.startswith("<dl>"):
        return False
    return not first.endswith(" defined here") or bool(re.sub(r"</?d[ltd]>|\s", "", rest))


def _verbatim(block: str) -> bool:
    lines = block.splitlines()
    return any(line.startswith((" ", ">>>", "+", "|")) for line in lines) or (
        len(lines) > 2 and max(map(len, lines)) < 45
    )


def page(content: str) -> str:
    """The finished content of one page: block elements instead of `pydoc`'s spans."""
    content = re.sub(
        r'<span class="code">(.*?)(?:<br>&nbsp;)?</span>',
        r'<div class="doc">\1</div>',
        content,
        flags=re.DOTALL,
    )
    content = content.replace('<p><div class="doc">', '<div class="doc">')
    content = content.replace("</div></p>", "</div>").replace("<p></p>\n", "")
    return scrub(re.sub(r"<dl><dt></dl>\n*", "", content))


def entries(module: types.ModuleType) -> Iterator[dict[str, str]]:
    """Public functions, classes and methods that `module` defines and describes itself."""
    exported = getattr(module, "__all__", None)
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or (exported is not None and name not in exported):
            continue
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield from _entry("function", name, value)
        elif inspect.isclass(value) and value.__name__ == name:
            yield from _entry("class", name, value)
            for key, member in sorted(vars(value).items()):
                if inspect.isfunction(member) and not key.startswith("_"):
                    yield from _entry("method", f"{name}.{key}", member)


def _entry(kind: str, name: str, value: Any) -> Iterator[dict[str, str]]:
    doc = inspect.cleandoc(value.__doc__ or "").strip()
    if not doc:
        return
    try:
        signature = str(inspect.signature(value))
    except (ValueError, TypeError):
        signature = "(...)"
    yield {"kind": kind, "name": name, "signature": scrub(signature), "doc": scrub(doc)}


def topic_page(name: str, text: str) -> dict[str, str]:
    """A topic of the language reference as a page; headings are underlined by one character."""
    writer, title = Pages(TOPICS, 0), name
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        first, _, rest = block.partition("\n")
        if re.fullmatch(r"([*=\-~^\"])\1{2,}", rest.strip()):
            title, level = (first, "h1") if not parts else (title, "h2")
            parts.append(f"<{level}>{writer.escape(first.strip())}</{level}>")
        elif _prose(block):
            parts.append(f"<p>{writer.markup(block.strip(), writer.escape)}</p>")
        else:
            parts.append(f"<pre>{writer.escape(block)}</pre>")
    return {"path": f"reference/{name}", "title": title, "html": "\n".join(parts)}


def _prose(block: str) -> bool:
    """Whether a block of a topic, which may be indented, is a paragraph."""
    return block.rstrip()[-1:] in ".:)" and bool(re.match(r'\s*[A-Z*"“(]?[a-zA-Z]+ \w', block))


def document_topics() -> dict[str, Any]:
    """The language reference that ships with `pydoc`."""
    from pydoc_data.topics import topics

    pages = [topic_page(name, topics[name]) for name in sorted(topics) if name not in REPEATS]
    return {"module": TOPICS, "pages": pages, "entries": []}


def document(name: str, class_page: int) -> dict[str, Any]:
    """Everything the sample needs of one module; `missing` says why there is nothing."""
    try:
        if name == TOPICS:
            return document_topics()
        module = importlib.import_module(name)
        writer = Pages(name, class_page)
        content = writer.docmodule(module)
    except Exception as error:  # whatever importing or describing it raises is its reason
        return {"module": name, "missing": scrub(f"{type(error).__name__}: {error}")}
    pages = [{"path": f"library/{name}", "title": name, "html": page(content)}]
    for own, part in writer.own_pages.items():
        heading = f"<h1>{html.escape(name)}.{own}</h1>\n"
        title = f"{name}.{own}"
        pages.append({"path": f"library/{title}", "title": title, "html": page(heading + part)})
    return {
        "module": name,
        "pages": pages,
        "entries": list(entries(module)),
    }


def main() -> None:
    """Read the request, answer one line a module."""
    request = json.load(sys.stdin)
    for name in request["modules"]:
        print(json.dumps(document(name, request["class_page"]), ensure_ascii=True), flush=True)


if __name__ == "__main__":
    main()
