"""Tasks of lm-eval by the adapter of the stage `harness`, and by lm-eval's own for `transformers`.

Both have one model of random weights, the same rows, float32 and one thread; loading is left out.

    python -m tests.benchmarks.harness_adapter [--rows 100] [--width 384] [--layers 6]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

TASK = """
task: made
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}, train: {path}}}}}
test_split: test
fewshot_split: train
fewshot_config: {{sampler: first_n}}
num_fewshot: {shots}
output_type: {kind}
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
{more}
metadata: {{version: 1}}
"""
CHOICES = """doc_to_choice: choices
doc_to_target: gold
metric_list: [{metric: acc}, {metric: acc_norm}]"""
WRITTEN = """doc_to_target: "{{choices[gold]}}"
generation_kwargs: {until: ["\\n\\n"], max_gen_toks: 64, do_sample: false}
metric_list: [{metric: exact_match}]"""
WORDS = [
    "the", "key", "value", "list", "item", "of", "a", "dictionary", "is", "sky", "blue", "France",
    "Rome", "man", "answer", "colour",
]  # fmt: skip


def make_rows(count: int) -> list[dict[str, Any]]:
    """Questions of ten to forty words with four choices."""
    draw = random.Random(7)

    def text(least: int, most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))

    return [
        {"question": text(10, 40), "choices": [f"{n} {text(1, 8)}" for n in range(4)], "gold": 0}
        for _ in range(count)
    ]


def main() -> None:
    """Print CPU seconds of both for each task."""
    import torch
    from lm_eval.evaluator import evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from stages.harness.adapter import CheckpointModel
    from stages.model.config import ModelConfig
    from stages.model.decoder import Decoder
    from stages.tokenizer.training import train, transformers_config

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = train(
        iter([" ".join(WORDS)] * 50), vocabulary_size=400, pre_tokenizer="llama-bpe",
        min_frequency=2,
    )  # fmt: skip
    described = transformers_config("llama-bpe")
    heads = options.width // 64
    ours = Decoder(
        ModelConfig(vocabulary_size=vocabulary.get_vocab_size(), width=options.width,
                    layers=options.layers, heads=heads, kv_heads=heads, mlp_width=3 * options.width,
                    context=1024),
        seed=1,
    ).eval()  # fmt: skip
    theirs = LlamaForCausalLM(
        LlamaConfig(vocab_size=vocabulary.get_vocab_size(), hidden_size=options.width,
                    num_hidden_layers=options.layers, num_attention_heads=heads,
                    intermediate_size=3 * options.width, max_position_embeddings=1024)
    ).eval()  # fmt: skip
    sizes = [sum(p.numel() for p in model.parameters()) for model in (ours, theirs)]
    print(f"parameters: {sizes[0]:,} and {sizes[1]:,}")
    names = {key: value for key, value in described.items() if key.endswith("_token")}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=vocabulary, **names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(options.rows)))
        for kind, more, shots in (
            ("multiple_choice", CHOICES, 0),
            ("multiple_choice", CHOICES, 5),
            ("generate_until", WRITTEN, 0),
        ):
            text = TASK.format(path=path, kind=kind, more=more, shots=shots)
            (Path(folder) / "made.yaml").write_text(text)
            seconds = []
            for model in (
                CheckpointModel(ours, vocabulary, described, batch_tokens=4096),
                HFLM(pretrained=theirs, tokenizer=wrapped, batch_size=16, device="cpu"),
            ):
                manager = TaskManager(include_path=folder, include_defaults=False)
                loaded = manager.load(["made"])
                for task in loaded["tasks"].values():
                    task.set_fewshot_seed(1234)
                start = time.process_time()
                evaluate(model, loaded, bootstrap_iters=0)
                seconds.append(time.process_time() - start)
            print(f"{kind}, {shots} shots, {options.rows} rows: {seconds[0]:.1f} and "
                  f"{seconds[1]:.1f} CPU seconds, {seconds[1] / seconds[0]:.2f} times")  # fmt: skip


if __name__ == "__main__":
    main()
