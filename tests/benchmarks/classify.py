"""Scoring texts by a neural classifier, beside transformers' own pipeline.

    python -m tests.benchmarks.classify [--tokens 20000] [--batch 32] [--rounds 5] [--only NAME]

The model is a BERT of 6 layers and width 384 with random weights (a trained one is as fast), its
WordPiece tokenizer of 8,000 tokens is trained on the texts. The texts are web documents of C4
(`text/en-web-c4-demo`), in the order of the file: as they are, pieces of 40 words and of 200,
and those alone that fill 512 tokens. Both read 512 tokens of each, in float32, with one thread. The
pipeline runs in that order, and sorted by length; ours in bfloat16 too. CPU seconds of this process
from texts to scores, loading not counted; the ways alternate, and each one's best round counts, for
in its first rounds ours tries its shapes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")

import numpy as np
import torch
from numpy.typing import NDArray

from stages.encoders.encoder import CPU_PASSES, EncoderSpec, load_encoder
from tests.benchmarks.classifiers import rows as read_rows
from tests.benchmarks.extraction import table

DATA, TEXTS = Path("../shared/data"), "text/en-web-c4-demo"
LENGTH = 512


def save_model(texts: Sequence[str], folder: Path) -> None:
    """The model and its tokenizer, as `save_pretrained` writes them."""
    from tokenizers import BertWordPieceTokenizer, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    words = BertWordPieceTokenizer(lowercase=True)
    words.train_from_iterator(texts, vocab_size=8000, show_progress=False)
    ends = [(token, words.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    words._tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    special = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep")}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words._tokenizer, model_max_length=LENGTH, **special
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=1,
        problem_type="regression",
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measured(score: Callable[[], Any]) -> tuple[float, NDArray[np.float64]]:
    """CPU seconds, and the scores."""
    began = time.process_time()
    scores = score()
    return time.process_time() - began, np.array(scores, dtype=np.float64).ravel()


def compare(texts: Sequence[str], folder: Path, batch: int, rounds: int) -> None:
    """Print a row for each way, and the differences of their scores."""
    from transformers import pipeline

    pipe = pipeline("text-classification", model=str(folder), device="cpu")
    usual = open_spec(folder)
    lower = replace(usual, precision="bfloat16")
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    options: dict[str, Any] = {"truncation": True, "max_length": LENGTH, "batch_size": batch}

    def peer(rows: Sequence[int]) -> list[float]:
        scores = pipe([texts[row] for row in rows], **options)
        return [scores[place]["score"] for place in np.argsort(rows)]

    def ours(spec: EncoderSpec) -> Callable[[], Any]:
        encoder = load_encoder(spec)

        def score() -> Any:
            tokenized = encoder.tokenize(texts)
            return encoder.run([one for (one,), _ in tokenized], lambda: None)

        return score

    ways: dict[str, Callable[[], Any]] = {
        f"pipeline, batch {batch}": lambda: peer(range(len(texts))),
        "pipeline, sorted": lambda: peer(order),
        "ingot": ours(usual),
        "ingot, bfloat16": ours(lower),
    }
    runs: dict[str, list[tuple[float, NDArray[np.float64]]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            runs[name].append(measured(way))
    best = {name: min(seconds for seconds, _ in of_way) for name, of_way in runs.items()}
    first, scores = next(iter(best)), {name: of_way[0][1] for name, of_way in runs.items()}
    rows = [
        (
            name,
            f"{len(texts) / runs[name][0][0]:.2f}",
            f"{len(texts) / best[name]:.2f}",
            f"{best[first] / best[name]:.2f}",
            f"{np.abs(scores[name] - scores[first]).max():.1e}",
        )
        for name in ways
    ]
    heads = ["", "first round", "documents a CPU second", "ratio", "greatest difference"]
    print(table(heads, rows))
    print(f"scores lie {float(np.ptp(scores[first])):.3f} apart\n", flush=True)


def open_spec(folder: Path) -> EncoderSpec:
    """The encoder at the defaults of `classify`."""
    tokens = CPU_PASSES * LENGTH
    return EncoderSpec(folder, "classifier", "cpu", "float32", LENGTH, 1, tokens, 1, "benchmark")


def cut_texts(texts: Sequence[str], lengths: Sequence[int]) -> dict[str, list[str]]:
    """The sets of texts by name; `lengths` are the tokens of each text."""
    split = [text.split() for text in texts]
    cut = {
        size: [" ".join(words[n : n + size]) for words in split for n in range(0, len(words), size)]
        for size in (40, 200)
    }
    full = [text for text, length in zip(texts, lengths, strict=True) if length == LENGTH]
    return {"whole": list(texts), "40 words": cut[40], "200 words": cut[200], "512 tokens": full}


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000, help="of each set of texts")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="name of one set")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    torch.set_num_threads(1)
    texts = [row["text"] for row in read_rows(options.data, TEXTS)][:300]
    with tempfile.TemporaryDirectory() as folder:
        save_model(texts, Path(folder))
        encoder = load_encoder(open_spec(Path(folder)))

        def count(of: Sequence[str]) -> NDArray[np.int64]:
            return np.array([len(one[0]) for one, _ in encoder.tokenize(of)])

        for name, some in cut_texts(texts, count(texts).tolist()).items():
            if options.only in (None, name):
                kept = int(np.searchsorted(np.cumsum(count(some)), options.tokens)) + 1
                some = some[:kept]
                print(f"{name}: {len(some)} texts of {np.mean(count(some)):.0f} tokens")
                compare(some, Path(folder), options.batch, options.rounds)


if __name__ == "__main__":
    main()
