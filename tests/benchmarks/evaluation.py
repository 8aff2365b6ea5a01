"""`evaluate` beside lm-evaluation-harness: CPU seconds for the same items, and what differs.

    python -m tests.benchmarks.evaluation SHARED PEER [--data arc_easy] [--items 400] [--shots 0]
        [--shape quickstart|20m] [--rounds 5]

SHARED is the folder of real data, PEER a Python that has lm_eval[hf] (tests/peers/setup.sh). The
items of a data set are put as cloze and as multiple choice: two tasks for the harness, one pass
here, and each alone. Both have the same float32 weights, drawn at random, and one thread; the
harness has its class for transformers, batches of 16. Loading of the model is left out. Of rounds
that take turns the least CPU seconds count. The harness has its calls of the model counted alone
(tokenizing and forward passes), not its reading of tasks and its metrics; ours are whole: requests,
tokenizing, passes, metrics.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from tokenizers import Tokenizer

from stages.evaluate.config import EvaluateConfig
from stages.evaluate.measure import Scorer, measure_choices
from stages.evaluate.parts import USUAL, benchmark_parts
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.scoring.choices import Choice, choice_observations
from stages.tokenizer.training import train
from tests.peers.harness_tasks import (
    ask_harness,
    put,
    read_choices,
    read_rows,
    write_model,
    write_task,
)

FORMULATIONS = ("cloze", "multiple_choice")
SHAPES = {
    "quickstart": {"width": 128, "layers": 6, "heads": 4, "kv_heads": 2, "vocabulary": 4096},
    "20m": {"width": 384, "layers": 8, "heads": 6, "kv_heads": 2, "vocabulary": 16384},
}


def make_model(shared: Path, shape: str) -> tuple[Decoder, Tokenizer]:
    """A model of random weights, and a tokenizer of the questions of several data sets."""
    values = dict(SHAPES[shape])
    texts = [
        row.get("question") or row["context"]
        for name in ("arc_easy", "mmlu-test", "hellaswag", "lambada", "piqa", "boolq")
        for row in read_rows(shared, name, 1000)
    ]
    size = values.pop("vocabulary")
    tokenizer = train(iter(texts), vocabulary_size=size, pre_tokenizer="llama-bpe", min_frequency=1)
    config = ModelConfig(vocabulary_size=tokenizer.get_vocab_size(), context=2048, **values)
    return Decoder(config, seed=3).eval(), tokenizer


def measure(scorer: Scorer, items: list) -> tuple[list[Choice], float]:
    """Choices of the items in parts as the stage has them, and CPU seconds."""
    begin, choices = time.process_time(), []
    for part in benchmark_parts("items", items):
        made = measure_choices(scorer, part.items, EvaluateConfig().delimiter)
        choice_observations(made.choices, USUAL)
        choices += made.choices
    return choices, time.process_time() - begin


def differences(choices: list[Choice], scores: dict, formulation: str) -> list[float]:
    ours = [one.log_likelihood for one in choices if one.formulation == formulation]
    theirs = [float(answer[0]) for document in scores for (answer,) in document]
    return [abs(a - b) for a, b in zip(ours, theirs, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("shared", type=Path)
    parser.add_argument("peer")
    parser.add_argument("--data", default="arc_easy")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--shots", type=int, default=0)
    parser.add_argument("--shape", choices=SHAPES, default="quickstart")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = make_model(given.shared, given.shape)
    scorer = Scorer(model, tokenizer, 0, None, 4096)
    read = read_choices(given.shared, given.data, given.items + given.shots)
    both = put(read, FORMULATIONS, given.shots)
    alone = {name: put(read, [name], given.shots) for name in FORMULATIONS}
    cases = {"both": both, **alone}
    ours, theirs = dict.fromkeys(cases, math.inf), dict.fromkeys(cases, math.inf)
    whole = dict(theirs)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_model(folder, model, tokenizer)
        names = {name: write_task(folder, name, both, name) for name in FORMULATIONS}
        runs = [list(names) if case == "both" else [case] for case in cases]
        far: list[float] = []
        for _ in range(given.rounds):
            answers = ask_harness(given.peer, folder, *runs)
            for (case, items), answer in zip(cases.items(), answers, strict=True):
                choices, seconds = measure(scorer, items)
                ours[case] = min(ours[case], seconds)
                theirs[case] = min(theirs[case], answer["model_cpu"])
                whole[case] = min(whole[case], answer["cpu"])
                for name, scores in answer["scores"].items():
                    far += differences(choices, scores, name)
    print(f"{given.data}, {len(both)} items, {given.shots} shots, {given.shape}; "
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
    for case in cases:
        print(
            f"{case:16} ours {ours[case]:8.2f} s  lm_eval {theirs[case]:8.2f} s "
            f"({whole[case]:.2f} s with tasks and metrics)  {theirs[case] / ours[case]:.2f} x"
        )
    print(f"greatest difference of {len(far):,} choices: {max(far):.2e} nats")


if __name__ == "__main__":
    main()
