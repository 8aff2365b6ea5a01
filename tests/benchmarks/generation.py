"""Writing beside `transformers.generate`: CPU seconds a token, the same weights and prompts.

    python -m tests.benchmarks.generation --work FOLDER [--models quickstart 20m]
        [--batches 16 1] [--rounds 5] [--new 128] [--longest 100]

Models of random weights lie in FOLDER as a release has them, and `transformers` reads them there.
Prompts have 8 to `longest` tokens, padded on the left for `transformers`; both sides write greedily
over a cache, on one thread, in float32, and no token ends a text. CPU seconds are user and system
of this process, the sides in turn, the least of all rounds of each. On a machine that others use
they grow with the load, which is printed. Answers that differ are counted, those with a tie apart.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml
from safetensors.torch import save_file

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.families import to_config, to_weights
from stages.scoring.generation import Generator, Sampling, Written

RECIPE = Path(__file__).parents[2] / "flows/recipes/quickstart.yaml"
ROUNDS = 5


def shapes() -> dict[str, ModelConfig]:
    """The quickstart's model as its recipe has it, and one of about 20 million parameters."""
    step = yaml.safe_load(RECIPE.read_text())["steps"]
    quickstart = {
        "vocabulary_size": step["tokenizer"]["config"]["vocabulary_size"],
        **step["pretrain"]["config"]["model"],
    }
    larger = {"vocabulary_size": 16_384, "width": 384, "layers": 6, "heads": 6, "kv_heads": 2}
    return {
        "quickstart": ModelConfig(**quickstart),
        "20m": ModelConfig(**larger, context=512, init_std=0.05),
    }


def publish(model: Decoder, folder: Path) -> Any:
    """The model as `transformers` reads its release."""
    from transformers import AutoModelForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    config = to_config(model.config, bos=0, eos=1, pad=2)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(to_weights(model), folder / "model.safetensors", metadata={"format": "pt"})
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def write(model: Decoder, prompts: Sequence[list[int]], new: int) -> list[Written]:
    """Ours."""
    with Generator(model, batch=len(prompts)) as generator:
        return generator.write(prompts, Sampling(temperature=0), max_new_tokens=new)


def generate(model: Any, prompts: Sequence[list[int]], new: int) -> list[list[int]]:
    """Theirs."""
    longest = max(map(len, prompts))
    ids_BL = torch.full((len(prompts), longest), 2)
    mask_BL = torch.zeros_like(ids_BL)
    for row, prompt in enumerate(prompts):
        ids_BL[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask_BL[row, longest - len(prompt) :] = 1
    written = model.generate(
        ids_BL,
        attention_mask=mask_BL,
        max_new_tokens=new,
        do_sample=False,
        pad_token_id=2,
        eos_token_id=None,
    )
    assert written.shape == (len(prompts), longest + new)
    return [row[longest:] for row in written.tolist()]


def timed(side: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what came of them."""
    start = time.process_time()
    result = side()
    return time.process_time() - start, result


def compare(
    name: str, model: Decoder, peer: Any, prompts: list[list[int]], new: int, rounds: int
) -> None:
    """Print both sides' least CPU time a token, their quotient, and answers that differ."""
    write(model, prompts, 2), generate(peer, prompts, 2)
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, written = timed(lambda: write(model, prompts, new))
        ours.append(seconds)
        seconds, expected = timed(lambda: generate(peer, prompts, new))
        theirs.append(seconds)
    pairs = list(zip(written, expected, strict=True))
    differing = [one for one, other in pairs if list(one.ids) != other]
    tied = sum(bool(one.ties) for one in differing)
    microseconds = [min(side) / len(prompts) / new * 1e6 for side in (ours, theirs)]
    quotients = [their / our for our, their in zip(ours, theirs, strict=True)]
    print(
        f"{name} batch {len(prompts)}: {microseconds[0]:.0f} µs a token, transformers "
        f"{microseconds[1]:.0f}: {microseconds[1] / microseconds[0]:.2f} ×, by round "
        f"{min(quotients):.2f}-{max(quotients):.2f}; {len(differing)} of {len(pairs)} answers "
        f"differ, {tied} with a tie; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """See the module."""
    import transformers

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--models", nargs="+", default=list(shapes()), choices=list(shapes()))
    parser.add_argument("--batches", nargs="+", type=int, default=[16, 1])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--longest", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, one thread")
    for name in options.models:
        model = Decoder(shapes()[name], seed=1).eval()
        peer = publish(model, options.work / name)
        count = sum(weight.numel() for weight in model.parameters())
        print(f"{name}: {count:,} parameters, {type(peer).__name__}", flush=True)
        draw = random.Random(0)
        for batch in options.batches:
            lengths = [draw.randint(8, options.longest) for _ in range(batch)]
            size = model.config.vocabulary_size
            prompts = [[draw.randrange(5, size) for _ in range(length)] for length in lengths]
            compare(name, model, peer, prompts, options.new, options.rounds)


if __name__ == "__main__":
    main()
