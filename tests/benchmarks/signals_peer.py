"""datatrove's four-filter chain over a file of texts, by the Python of an environment that has it.

    PYTHON tests/benchmarks/signals_peer.py TEXTS OUT

TEXTS is a JSON list. OUT gets JSON: `ready` and `seconds` of CPU (to the first document, and all),
`peak` memory in bytes, and `reasons`, null for a document that stays. Each filter is built as
FineWeb's example builds it. This file imports nothing of the project.
"""

import json
import logging
import re
import sys
import time
from pathlib import Path

logging.disable(logging.CRITICAL)
import importlib.metadata  # noqa: E402, F401  (datatrove relies on it without importing it)

from datatrove.data import Document  # noqa: E402
from datatrove.pipeline.filters import (  # noqa: E402
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.text import split_into_words  # noqa: E402

CHAIN = {
    "gopher_repetition": GopherRepetitionFilter(),
    "gopher_quality": GopherQualityFilter(),
    "c4_fineweb": C4QualityFilter(filter_no_terminal_punct=False),
    "fineweb": FineWebQualityFilter(),
}


def reason(text):
    """Why the chain drops a text; None if it stays."""
    document = Document(text=text, id="0")
    for name, one in CHAIN.items():
        answer = one.filter(document)
        if answer is not True:
            return f"{name}: {answer[1]}"
    return None


def main():
    """Write the answers and what they cost."""
    with open(sys.argv[1], encoding="utf-8") as file:
        texts = json.load(file)
    split_into_words("Loads the tokenizer.", "eng")
    ready = time.process_time()
    reasons = [reason(text) for text in texts]
    status = Path("/proc/self/status").read_text()
    told = {
        "ready": ready,
        "seconds": time.process_time(),
        "peak": int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024,
        "reasons": reasons,
    }
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
