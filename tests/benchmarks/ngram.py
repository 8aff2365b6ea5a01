"""The n-gram model beside kenlm: estimation against lmplz, scoring against its Python module.

    python -m tests.benchmarks.ngram --lmplz BIN [--kenlm-python PY] [--data ../shared/data]

The text is that of ../shared/data, words between spaces. lmplz gets the same memory. The scorer
reads the model that the estimation made, kenlm its ARPA file; every seventh line is scored, with
words that no model knows. CPU seconds of whole processes for the estimation, of scoring alone
otherwise; in turn. kenlm may be installed in another environment: its Python is named.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import zstandard

from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
from stages.language_model.perplexity import NgramModel
from stages.language_model.vocabulary import Lines
from stages.text.words import split_words

SOURCES = ("en-docs", "en-fiction", "en-classics", "de", "fr", "ru", "zh")
MOST_WORDS = 1_200_000
ROUNDS = 3

KENLM = """
import sys, time, kenlm
model = kenlm.Model(sys.argv[1])
lines = open(sys.argv[2], encoding="utf-8").read().split("\\n")[:-1]
for _ in range(int(sys.argv[3])):
    start = time.process_time()
    total = sum(model.score(line) for line in lines)
    print(time.process_time() - start, total)
"""


def main() -> None:
    """Print the two comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lmplz", type=Path)
    parser.add_argument("--kenlm-python", default=sys.executable)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--memory", default="1GB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = write_text(options.data, Path(folder) / "text")
        estimation(text, Path(folder), options.lmplz, options.memory)
        scoring(text, Path(folder), options.kenlm_python)


def write_text(data: Path, path: Path) -> Path:
    """Some million words, a line of text a line."""
    with path.open("w", encoding="utf-8") as out:
        for source in SOURCES:
            count = 0
            with (data / "text" / f"{source}.jsonl.zst").open("rb") as packed:
                reader = zstandard.ZstdDecompressor().stream_reader(packed)
                for row in io.TextIOWrapper(reader, encoding="utf-8"):
                    for line in json.loads(row)["text"].lower().split("\n"):
                        tokens = split_words(line.replace("\0", " "))
                        count += len(tokens)
                        out.write(" ".join(tokens) + "\n")
                    if count > MOST_WORDS:
                        break
    return path


def estimation(text: Path, folder: Path, lmplz: Path | None, memory: str) -> None:
    """CPU seconds of this process and of lmplz, peak memory of this one.

    A child's peak is never below that of the process that starts it: lmplz prints its own.
    """

    def batches() -> Iterator[pa.Table]:
        with text.open(encoding="utf-8") as file:
            while lines := file.readlines(1 << 20):
                yield pa.table({"line": lines})

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    summary = estimate(batches(), folder / "model", NgramConfig(), memory)
    ours = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{summary.tokens:,} tokens, {sum(summary.counts):,} n-grams, memory {memory}")
    print(f"ours   {ours:6.1f} s CPU, peak {peak >> 10} MB ({before >> 10} MB before)")
    if lmplz:
        options = ["-o", "5", "-S", memory.removesuffix("B"), "-T", str(folder)]
        with text.open("rb") as given, (folder / "theirs").open("wb") as out:
            subprocess.run(
                [lmplz, *options, "--discount_fallback"],
                stdin=given, stdout=out, stderr=subprocess.DEVNULL, check=True,
            )  # fmt: skip
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        theirs = used.ru_utime + used.ru_stime
        print(f"lmplz  {theirs:6.1f} s CPU; ours {ours / theirs:.2f} times that")


def scoring(text: Path, folder: Path, kenlm_python: str) -> None:
    """CPU seconds for the same lines, each with the sum of all scores."""
    lines = [line.replace("e ", "x ", 2) for line in text.read_text().split("\n")[:-1][::7]]
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines))
    model = NgramModel.load(folder / "model")
    for number in range(ROUNDS + 1):
        start = time.process_time()
        scores, lengths = model.line_scores(Lines.from_texts(lines))
        seconds = time.process_time() - start
        if number:
            rate = lengths.sum() / seconds / 1e6
            print(f"ours   {seconds:.3f} s CPU, {rate:.2f} M tokens/s, sum {scores.sum():.1f}")
    arguments = [str(folder / "model" / "model.arpa"), str(folder / "lines"), str(ROUNDS)]
    run = subprocess.run(
        [kenlm_python, "-c", KENLM, *arguments], capture_output=True, text=True, check=False
    )
    for row in run.stdout.splitlines():
        seconds, total = map(float, row.split())
        rate = lengths.sum() / seconds / 1e6
        print(f"kenlm  {seconds:.3f} s CPU, {rate:.2f} M tokens/s, sum {total:.1f}")
    if run.returncode:
        print(f"kenlm cannot be used: {run.stderr.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
