"""Runs under datatrove's own Python: FineWeb-2's filters with datatrove's splitter of the language.

`python datatrove_fineweb_2.py IN OUT`: JSON lines of `label` (GlotLID's, as datatrove names
languages), `config` (the numbers of FineWeb-2's configs) and `texts` in; `reasons`, null for kept,
`tokens` (the words of each text) and `seconds` of CPU for the words out. The filters are those of
fineweb-2-pipeline.py, in its order and with its arguments.
"""

import json
import logging
import sys
import time

logging.disable(logging.CRITICAL)
import importlib.metadata  # noqa: E402, F401  (datatrove relies on it without importing it)

from datatrove.data import Document  # noqa: E402
from datatrove.pipeline.filters import (  # noqa: E402
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.word_tokenizers import load_word_tokenizer  # noqa: E402


def filters(label, config):
    """The filters of a language."""
    return (
        GopherRepetitionFilter(
            language=label,
            dup_para_frac=0,
            dup_line_char_frac=0,
            dup_para_char_frac=0,
            dup_line_frac=config["dup_line_frac"],
            top_n_grams=list(zip((2, 3, 4), config["top_n_grams"], strict=True)),
            dup_n_grams=list(zip(range(5, 11), config["dup_n_grams"], strict=True)),
        ),
        FineWebQualityFilter(
            language=label,
            short_line_thr=999,
            char_duplicates_ratio=0.1,
            line_punct_thr=config["line_punct_thr"],
            new_line_ratio=config["new_line_ratio"],
        ),
        GopherQualityFilter(
            language=label,
            max_avg_word_length=config["max_avg_word_length"],
            min_avg_word_length=config["min_avg_word_length"],
            stop_words=config["stop_words"],
            max_non_alpha_words_ratio=config["max_non_alpha_words_ratio"],
            min_stop_words=2,
        ),
    )


def verdict(chain, text):
    """None, or the reason of the first filter that drops the text (an error counts as one)."""
    for one in chain:
        try:
            answer = one.filter(Document(text=text, id="0"))
        except (ZeroDivisionError, IndexError) as error:
            return f"raises {type(error).__name__}"
        if answer is not True:
            return answer[1]
    return None


def main():
    with open(sys.argv[1], encoding="utf-8") as lines, open(sys.argv[2], "w") as out:
        for line in lines:
            given = json.loads(line)
            chain = filters(given["label"], given["config"])
            reasons = [verdict(chain, text) for text in given["texts"]]
            tokenizer = load_word_tokenizer(given["label"])
            begin = time.process_time()
            tokens = [tokenizer.word_tokenize(text) for text in given["texts"]]
            seconds = time.process_time() - begin
            answer = {"reasons": reasons, "tokens": tokens, "seconds": seconds}
            out.write(json.dumps({"language": given["language"], **answer}) + "\n")


if __name__ == "__main__":
    main()
