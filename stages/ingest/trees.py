"""Licences of code trees: what the licence files among a snapshot's files say of those below."""

from __future__ import annotations

from collections.abc import Sequence

from stages.engine.sources import SourceFile
from stages.ingest.declared.licences import is_licence_file, licence_of_text
from stages.ingest.formats import format_by_name
from stages.ingest.responses.charset import decode

MOST_FILES = 10_000
"""Licence files that are read."""
_READ = 64 << 10


def licences_of_trees(files: Sequence[SourceFile], form: str) -> dict[str, str]:
    """Folder ("" is the root) → licence, where a file in it names one.

    Read only where the snapshot may hold code: archives and tables bring no trees.
    """
    holds_code = form == "code" or (
        form == "auto" and any(format_by_name(file.name) == "code" for file in files)
    )
    found: dict[str, str] = {}
    if not holds_code:
        return found
    named = [file for file in files if is_licence_file(file.name)]
    for file in named[:MOST_FILES]:
        with file.open() as stream:
            text = decode(stream.read(_READ), markup=False).text
        folder = file.name.rpartition("/")[0]
        if (licence := licence_of_text(text)) is not None:
            found.setdefault(folder, licence)
    return found
