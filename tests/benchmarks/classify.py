"""Scoring texts by a neural classifier, beside transformers' own pipeline.

    python -m tests.benchmarks.classify [--texts 300] [--batch 32] [--rounds 2] [--pieces]

The model is a BERT of 6 layers and width 384 with random weights (a trained one is as fast), its
WordPiece tokenizer of 8,000 tokens is trained on the texts. The texts are web documents of C4
(`text/en-web-c4-demo`), in the order of the file. Both read 512 tokens of each, in float32, with
one thread. CPU seconds of this process from texts to scores, loading not counted; each way runs
`--rounds` times and its best run counts, for in the first ours tries its shapes. The pipeline also
runs at batch 1, at which it pads nothing, and ours in bfloat16. With `--pieces` the texts are
pieces of 40 words.
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

from stages.classify.scores import score_texts
from stages.encoders.encoder import EncoderSpec, load_encoder
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
    spec = EncoderSpec(folder, "classifier", "cpu", "float32", LENGTH, 1, LENGTH, 1, "benchmark")

    def peer(size: int) -> list[float]:
        options: dict[str, Any] = {"truncation": True, "max_length": LENGTH, "batch_size": size}
        return [one["score"] for one in pipe(list(texts), **options)]

    def ours(**changes: Any) -> list[NDArray[np.float32] | None]:
        return score_texts(texts, replace(spec, **changes), "auto").scores

    ways: dict[str, Callable[[], Any]] = {
        f"pipeline, batch {batch}": lambda: peer(batch),
        "ingot": ours,
        "pipeline, batch 1": lambda: peer(1),
        "ingot, bfloat16": lambda: ours(precision="bfloat16"),
    }
    score_texts(texts[:2], spec, "auto")
    runs: dict[str, list[tuple[float, NDArray[np.float64]]]] = {name: [] for name in ways}
    for name, way in ways.items():
        if "bfloat16" in name:
            load_encoder(replace(spec, precision="bfloat16"))
        elif "ingot" in name:
            load_encoder(spec)
        runs[name] += [measured(way) for _ in range(rounds)]
    best = {name: min(seconds for seconds, _ in of_way) for name, of_way in runs.items()}
    first, scores = next(iter(best)), {name: of_way[0][1] for name, of_way in runs.items()}
    spread = float(np.ptp(scores[first]))
    rows = [
        (
            name,
            f"{len(texts) / best[name]:.2f}",
            f"{best[first] / best[name]:.2f}",
            f"{np.abs(scores[name] - scores[first]).max():.1e}",
        )
        for name in ways
    ]
    print(table(["", "documents a CPU second", "ratio", "greatest difference"], rows))
    print(f"scores lie {spread:.3f} apart\n")


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pieces", action="store_true")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    torch.set_num_threads(1)
    texts = [row["text"] for row in read_rows(options.data, TEXTS)][: options.texts]
    with tempfile.TemporaryDirectory() as folder:
        save_model(texts, Path(folder))
        spec = EncoderSpec(
            Path(folder), "classifier", "cpu", "float32", LENGTH, 1, LENGTH, 1, "benchmark"
        )
        lengths = [len(one[0]) for one, _ in load_encoder(spec).tokenize(texts)]
        share = np.mean(np.array(lengths) == LENGTH)
        print(f"{len(texts)} texts of {np.mean(lengths):.0f} tokens, {share:.0%} cut at {LENGTH}")
        if options.pieces:
            split = [text.split() for text in texts]
            pieces = [" ".join(words[n : n + 40]) for words in split for n in range(0, 400, 40)]
            texts = [piece for piece in pieces if piece]
            print(f"as {len(texts)} pieces of at most 40 words")
        compare(texts, Path(folder), options.batch, options.rounds)


if __name__ == "__main__":
    main()
