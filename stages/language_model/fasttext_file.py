"""Whether a fastText model file is whole, told before fastText sees it.

fastText believes the sizes that a file names: of one that was cut it allocates what the next bytes
happen to say, gigabytes often. The layout is that of fastText 0.9 (`FastText::saveModel`,
`Dictionary::save`, `DenseMatrix::save`, `QuantMatrix::save`, `ProductQuantizer::save`),
little-endian.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from artifacts_schema.errors import InputError

MAGIC, VERSION = 793_712_314, 12
"""First two int32 of a model file: fastText's FILEFORMAT_MAGIC_INT32 and VERSION."""
_BEGIN = struct.pack("<ii", MAGIC, VERSION)
_ARGUMENTS = 12 * 4 + 8
_DICTIONARY = struct.Struct("<iiiqq")  # entries, words, labels, tokens, pruned (-1: none)
_ENTRY = 8 + 1  # Count and type, behind a word that a NUL ends.
_MATRIX = struct.Struct("<qq")
_QUANTIZED = struct.Struct("<?qqi")  # Norms too, rows, columns, bytes of codes.
_QUANTIZER = struct.Struct("<iiii")  # Columns, and how they are cut.
_CENTROIDS = 256  # Of each column.

Content = bytes | mmap.mmap


def check_model(path: Path, *, where: str) -> None:
    """InputError unless the file is a whole fastText model; `where` is how its owner knows it."""
    with open(path, "rb") as file:
        empty = not file.seek(0, 2)
        content: Content = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        found, whole = is_model(content), is_whole(content)
        if isinstance(content, mmap.mmap):
            content.close()
    if not found:
        raise InputError(
            "not a fastText model",
            where=where,
            hint="give a model as `fasttext` saves it, such as lid.176.ftz",
        )
    if not whole:
        raise InputError(
            "the fastText model is cut short or damaged", where=where, hint="get it again"
        )


def is_model(content: Content) -> bool:
    """Whether a file begins as a fastText model does."""
    return content[: len(_BEGIN)] == _BEGIN


def is_whole(content: Content) -> bool:
    """Whether dictionary and matrices of a model end where its bytes end."""
    place = len(_BEGIN) + _ARGUMENTS
    try:
        place = _behind_dictionary(content, place)
        place = _behind_matrix(content, place + 1, quantized=content[place] != 0)
        place = _behind_matrix(content, place + 1, quantized=content[place] != 0)
    except (struct.error, ValueError, IndexError):
        return False
    return place == len(content)


def _behind_dictionary(content: Content, place: int) -> int:
    entries, words, labels, _, pruned = _DICTIONARY.unpack_from(content, place)
    place += _DICTIONARY.size
    if entries != words + labels or min(words, labels) < 0 or entries > len(content) // _ENTRY:
        raise ValueError("sizes that the file cannot hold")
    for _ in range(entries):
        end = content.find(b"\0", place)
        if end < 0:
            raise ValueError("a word without an end")
        place = end + 1 + _ENTRY
    return place + 8 * max(pruned, 0)


def _behind_matrix(content: Content, place: int, *, quantized: bool) -> int:
    if not quantized:
        rows, columns = _MATRIX.unpack_from(content, place)
        return place + _MATRIX.size + 4 * _count(rows) * _count(columns)
    with_norms, rows, _, codes = _QUANTIZED.unpack_from(content, place)
    place = _behind_quantizer(content, place + _QUANTIZED.size + _count(codes))
    return _behind_quantizer(content, place + _count(rows)) if with_norms else place


def _behind_quantizer(content: Content, place: int) -> int:
    columns, *_ = _QUANTIZER.unpack_from(content, place)
    return place + _QUANTIZER.size + 4 * _count(columns) * _CENTROIDS


def _count(number: int) -> int:
    if number < 0:
        raise ValueError("a negative size")
    return number
