"""Tokens and sentences as datatrove gets them from spaCy; run by a Python that has both.

Reads JSON texts, one a line; writes for each a line [tokens, number of sentences].
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Answers until the input ends."""
    from datatrove.utils.word_tokenizers import load_word_tokenizer

    tokenizer = load_word_tokenizer("en")
    for line in sys.stdin:
        text = json.loads(line)
        sentences = len(tokenizer.sent_tokenize(text))
        print(json.dumps([tokenizer.word_tokenize(text), sentences]))


if __name__ == "__main__":
    main()
