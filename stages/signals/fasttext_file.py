"""Whether a fastText model file is whole, told before fastText sees it.

fastText believes the sizes that a file names: of one that was cut it allocates what the next bytes
happen to say, gigabytes often. The layout is that of fastText 0.9 (`FastText::saveModel`,
`Dictionary::save`, `DenseMatrix::save`, `QuantMatrix::save`), little-endian.
"""

from __future__ import annotations

import struct

MAGIC, VERSION = 793_712_314, 12
"""First two int32 of a model file: fastText's FILEFORMAT_MAGIC_INT32 and VERSION."""
_BEGIN = struct.pack("<ii", MAGIC, VERSION)
_ARGUMENTS = 12 * 4 + 8
_DICTIONARY = struct.Struct("<iiiqq")  # entries, words, labels, tokens, pruned (-1: none)
_ENTRY = 8 + 1  # Count and type, behind a word that a NUL ends.
_MATRIX = struct.Struct("<qq")
_QUANTIZED = struct.Struct("<?qqi")  # Norms too, rows, columns, bytes of codes.


def is_model(content: bytes) -> bool:
    """Whether a file begins as a fastText model does."""
    return content.startswith(_BEGIN)


def is_whole(content: bytes) -> bool:
    """Whether the dictionary and the first matrix of a model lie within its bytes."""
    place = len(_BEGIN) + _ARGUMENTS
    try:
        entries, words, labels, _, pruned = _DICTIONARY.unpack_from(content, place)
        place += _DICTIONARY.size
        if entries != words + labels or min(words, labels) < 0 or entries > len(content) // _ENTRY:
            return False
        for _ in range(entries):
            place = content.index(b"\0", place) + 1 + _ENTRY
        place += 8 * max(pruned, 0)
        is_quantized = content[place] != 0
        place += 1
        if is_quantized:
            _, rows, columns, codes = _QUANTIZED.unpack_from(content, place)
            held, place = codes, place + _QUANTIZED.size
        else:
            rows, columns = _MATRIX.unpack_from(content, place)
            held, place = 4 * rows * columns, place + _MATRIX.size
    except (struct.error, ValueError, IndexError):
        return False
    return min(rows, columns, held) >= 0 and place + held < len(content)
