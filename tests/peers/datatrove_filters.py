"""Runs under datatrove's own Python: verdict and reason of each of its filters for each document.

`python datatrove_filters.py IN OUT`: JSON lines with `id` and `text` in, with the verdicts out. A
verdict is null for kept. The C4 filters also give the text that they leave.
"""

import json
import logging
import sys

logging.disable(logging.CRITICAL)
import importlib.metadata  # noqa: E402, F401  (datatrove relies on it without importing it)

from datatrove.data import Document  # noqa: E402
from datatrove.pipeline.filters import (  # noqa: E402
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)

FILTERS = {
    "gopher_repetition": GopherRepetitionFilter(),
    "gopher_quality": GopherQualityFilter(),
    "c4": C4QualityFilter(),
    "c4_fineweb": C4QualityFilter(filter_no_terminal_punct=False),
    "fineweb": FineWebQualityFilter(),
}
CHAIN = ("gopher_repetition", "gopher_quality", "c4_fineweb", "fineweb")


def verdict(name, document):
    """None, or the reason for which the filter drops the document (an error counts as one)."""
    try:
        answer = FILTERS[name].filter(document)
    except (ZeroDivisionError, IndexError) as error:
        return f"raises {type(error).__name__}"
    return None if answer is True else answer[1]


def main():
    with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w") as out:
        for line in lines:
            given = json.loads(line)
            said = {"id": given["id"]}
            for name in FILTERS:
                document = Document(text=given["text"], id=given["id"])
                said[name] = verdict(name, document)
                if name.startswith("c4") and said[name] is None:
                    said[f"{name} text"] = document.text
            document = Document(text=given["text"], id=given["id"])
            said["chain"] = next(
                (f"{n}: {v}" for n in CHAIN if (v := verdict(n, document)) is not None), None
            )
            out.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
