"""Which standard modules the sample is made of: stored lists, reviewed, and disjoint.

A module enters the corpus, or it is held out for what models are taught or for what they are
asked; so no benchmark item was in training. The source files of the crawl's modules are code too: a
page and a source file share docstrings but neither signatures nor bodies, far from any threshold of
near-duplicates. Whoever wants text that training has not seen asks the held-out modules.

Criteria for `CRAWL`, `CONVERSATIONS` and `BENCHMARKS`, whose modules are imported: written in
Python; importable without a display, network or side effect; what they define does not depend on
the platform or on optional libraries (OpenSSL, bz2, lzma, sqlite, curses, tk), so that Linux and
macOS document the same; present in Python 3.11 to 3.14. `CODE` and `PAIRS` are only read, so these
do not bind them, but no module that distributors are known to patch (site, sysconfig, locale, …) is
in them.

Modules are documented group by group, each group in a fresh interpreter (documenter.py); source
files are read as text.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from artifacts_schema.errors import IngotError
from stages.engine import ShardOutput


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CRAWL = _names(
    """
    __future__ abc argparse ast bdb bisect cmd code codecs codeop collections colorsys
    compileall contextlib contextvars copy csv dis doctest enum filecmp fileinput fnmatch getopt
    graphlib heapq keyword linecache logging.config logging.handlers numbers operator pdb pickle
    pkgutil posixpath profile pstats py_compile pyclbr queue re reprlib sched shelve timeit
    token tokenize tomllib traceback tracemalloc types typing warnings wave weakref
    xmlrpc.client

    asyncio.base_subprocess asyncio.constants asyncio.coroutines asyncio.events
    asyncio.exceptions asyncio.futures asyncio.locks asyncio.protocols asyncio.queues
    asyncio.runners asyncio.staggered asyncio.streams asyncio.taskgroups asyncio.tasks
    asyncio.threads asyncio.timeouts asyncio.transports asyncio.trsock concurrent.futures._base
    concurrent.futures.thread

    email.base64mime email.charset email.encoders email.errors email.generator email.header
    email.headerregistry email.iterators email.message email.mime.application email.mime.audio
    email.mime.base email.mime.image email.mime.message email.mime.multipart email.mime.text
    email.parser email.policy email.quoprimime email.utils email._encoded_words
    email._header_value_parser encodings.idna encodings.punycode

    html html.parser http http.cookies http.server importlib.abc importlib.machinery
    importlib.metadata importlib.resources importlib.util json json.decoder json.encoder
    json.scanner json.tool multiprocessing.process urllib.error urllib.parse urllib.response
    urllib.robotparser

    unittest.async_case unittest.loader unittest.main unittest.result unittest.runner
    unittest.signals unittest.util wsgiref.headers wsgiref.simple_server wsgiref.util
    wsgiref.validate

    xml.dom.domreg xml.dom.expatbuilder xml.dom.minicompat xml.dom.minidom xml.dom.pulldom
    xml.etree.ElementInclude xml.etree.ElementPath xml.sax.expatreader xml.sax.handler
    xml.sax.saxutils xml.sax.xmlreader

    _markupbase _strptime copyreg dataclasses email._parseaddr email._policybase
    email.contentmanager email.feedparser functools gettext glob http.cookiejar modulefinder
    netrc pickletools plistlib pprint quopri re._compiler re._parser rlcompleter runpy shlex
    stringprep tabnanny tomllib._parser trace unittest.mock unittest.suite wsgiref.handlers
    xml.dom.xmlbuilder xml.etree.ElementTree zipapp zoneinfo._zoneinfo

    pydoc_data.topics
    """
)
"""On the pages of the crawl; the last is the language reference, a page for each topic."""

CODE = _names(
    """
    _collections_abc _compat_pickle _pydecimal _pyio asyncio.base_events asyncio.proactor_events
    asyncio.selector_events asyncio.sslproto asyncio.subprocess asyncio.unix_events
    concurrent.futures.process ftplib getpass gzip hmac http.client imaplib importlib._bootstrap
    importlib._bootstrap_external multiprocessing.connection multiprocessing.context
    multiprocessing.forkserver multiprocessing.heap multiprocessing.managers
    multiprocessing.pool multiprocessing.queues multiprocessing.reduction
    multiprocessing.resource_sharer multiprocessing.resource_tracker
    multiprocessing.shared_memory multiprocessing.sharedctypes multiprocessing.spawn
    multiprocessing.synchronize multiprocessing.util ntpath opcode os pathlib poplib pydoc
    secrets selectors shutil smtplib socket socketserver ssl stat subprocess tarfile tempfile
    urllib.request uuid xmlrpc.server zipfile zipimport
    """
)
"""Whose source files are in the code snapshot, beside those of the crawl's modules."""

TOPICS = "pydoc_data.topics"
"""The language reference: pages of the crawl, but no code."""

CONVERSATIONS = (
    "optparse", "threading", "inspect", "logging", "mailbox", "unittest.case",
)  # fmt: skip
"""Held out: their docstrings become conversations and preferences."""

BENCHMARKS = (
    "base64", "calendar", "configparser", "difflib", "fractions", "ipaddress", "random",
    "statistics", "string", "symtable", "textwrap",
)  # fmt: skip
"""Held out: their docstrings become benchmark items, and their source files minimal pairs."""

PAIRS = (
    "bz2", "ctypes.util", "dbm.dumb", "hashlib", "lzma", "mimetypes", "turtle", "webbrowser",
)  # fmt: skip
"""Held out: their source files are only read, for more minimal pairs."""


GROUP = 24
"""Modules documented by one interpreter: starting one takes as long as documenting a few."""
CLASS_PAGE = 2500
"""Characters of HTML above which a class gets a page of its own."""
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"}
"""All that the interpreter sees of its surroundings, so that every machine documents the same."""
FLAGS = ("-P", "-s", "-S", "-B", "-X", "utf8")
"""No script folder, user site, site packages or bytecode files; UTF-8 whatever the locale."""
SCRATCH = "modules.parquet"


@dataclass(frozen=True)
class Group:
    """Modules that one interpreter documents, in this order."""

    id: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class DocPage:
    """Content of a page: its place on the site (no suffix), title, HTML without the frame."""

    path: str
    title: str
    html: str


@dataclass(frozen=True)
class Entry:
    """A public function, class or method: name within its module, signature, whole docstring."""

    module: str
    kind: str
    name: str
    signature: str
    doc: str


@dataclass(frozen=True)
class Module:
    """What `pydoc` says about a module: pages and entries."""

    name: str
    pages: tuple[DocPage, ...]
    entries: tuple[Entry, ...]


def groups(modules: Sequence[str]) -> list[Group]:
    """Modules in groups of `GROUP`."""
    starts = range(0, len(modules), GROUP)
    return [Group(f"{n:05d}", tuple(modules[s : s + GROUP])) for n, s in enumerate(starts)]


def document_group(group: Group, out: ShardOutput) -> dict[str, Any]:
    """Document a group into a scratch table (module, record: JSON); counts what is missing."""
    rows = run_documenter(group.modules)
    missing = {row["module"]: row["missing"] for row in rows if "missing" in row}
    records = [json.dumps(row) for row in rows if "missing" not in row]
    out.write_scratch(SCRATCH, pa.table({"record": pa.array(records, pa.string())}))
    return {"missing": missing}


def run_documenter(modules: Sequence[str]) -> list[dict[str, Any]]:
    """One row a module, as `documenter.py` answers. IngotError if the interpreter fails."""
    program = Path(__file__).with_name("documenter.py")
    done = subprocess.run(
        [sys.executable, *FLAGS, str(program)],
        input=json.dumps({"modules": list(modules), "class_page": CLASS_PAGE}).encode(),
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise IngotError(
            f"{sys.executable} could not document the standard library: {' '.join(last)}",
            where="sample",
            hint="check that this Python starts with an empty environment (env -i python3 -S)",
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def module_from_row(row: dict[str, Any]) -> Module:
    """A documented module from its row."""
    name = row["module"]
    return Module(
        name=name,
        pages=tuple(DocPage(**page) for page in row["pages"]),
        entries=tuple(Entry(module=name, **entry) for entry in row["entries"]),
    )


def source_file(module: str) -> tuple[str, str] | None:
    """Name within the standard library and text of a module's source file; None if it has none."""
    library = Path(json.__file__).parents[1]
    stem = module.replace(".", "/")
    for name in (f"{stem}.py", f"{stem}/__init__.py"):
        if (library / name).is_file():
            with tokenize.open(str(library / name)) as stream:
                return name, stream.read()
    return None
