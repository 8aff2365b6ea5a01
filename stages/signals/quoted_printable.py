"""Text of a mail in quoted-printable (RFC 2045, 6.7): what it says, and where that stands.

Mail programs break lines with `=` and write `=` itself as `=3D`, also within passwords and tokens.
"""

from __future__ import annotations

import re

_ENCODED = re.compile(r"=(?:\r?\n|3D|20)")


def is_quoted_printable(text: str) -> bool:
    """Whether a text has both marks of a mail in quoted-printable."""
    return "=3D" in text and "=\n" in text.replace("\r", "")


class Decoded:
    """A text without soft breaks of lines and with its signs of equality."""

    def __init__(self, encoded: str):
        pieces, self._places, end = list[str](), list[int](), 0
        for match in _ENCODED.finditer(encoded):
            sign = {"=3D": "=", "=20": " "}.get(match[0], "")
            pieces += (encoded[end : match.start()], sign)
            self._places += range(end, match.start())
            self._places += [match.start()] * len(sign)
            end = match.end()
        self.text = "".join((*pieces, encoded[end:]))
        self._places += range(end, len(encoded) + 1)

    def find_place(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters [start, end) of the decoded text are in the encoded one."""
        return self._places[start], self._places[end - 1] + 1
