"""Runs under dolma's own Python: the spans of its Gopher and C4 taggers for each document.

`python dolma_taggers.py IN OUT`: JSON lines with `id` and `text` in; out, for each tagger, lists of
[start, end, type, score].
"""

import json
import logging
import sys

logging.disable(logging.CRITICAL)

# dolma asks NLTK for a sentence model when it is imported, and would download it; no tagger that
# runs here splits sentences.
import nltk  # noqa: E402

nltk.data.find = nltk.download = lambda *given, **named: True

from dolma.core.data_types import Document  # noqa: E402
from dolma.taggers.c4 import C4Tagger, FasterC4Tagger  # noqa: E402
from dolma.taggers.gopher import GopherTagger, GopherTaggerV2  # noqa: E402

TAGGERS = {
    "gopher_v1": GopherTagger(),
    "gopher_v2": GopherTaggerV2(),
    "c4_v1": C4Tagger(),
    "c4_v2": FasterC4Tagger(),
}


def main():
    with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w") as out:
        for line in lines:
            given = json.loads(line)
            document = Document(source="", version="", id=given["id"], text=given["text"])
            said = {"id": given["id"]}
            for name, tagger in TAGGERS.items():
                spans = tagger.predict(document).spans
                said[name] = [[s.start, s.end, s.type, s.score] for s in spans]
            out.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
