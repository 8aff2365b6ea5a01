"""Writing conversations as token ids with what is learnt, beside `transformers`.

    python -m tests.benchmarks.chat_packing [--rounds 5] [--conversations 3000]

Conversations are the first of `sft/gpteacher`; the tokenizer has 8,000
tokens, trained on them. Ours writes ids and marks: ChatML by its own renderer, and TRL's copy of
Llama 3's template by `transformers` in isolation, whose process counts. The peer is
`apply_chat_template` with `return_assistant_tokens_mask` on the same template with generation marks
(ours for ChatML, TRL's `llama3_training`), a conversation at a time as TRL maps a data set. CPU
seconds of this process and of its children, from rows to ids; the ways alternate, and each one's
best round counts. Ids and what is learnt are compared first.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", HF_HUB_OFFLINE="1")

import zstandard
from tokenizers import AddedToken, Tokenizer

from stages.examples.messages import message
from stages.tokenizer.training import train, transformers_config
from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.vocabulary import SpecialTokens
from stages.training.chat_format import ChatML, JinjaFormat, Learning
from stages.training.token_marks import LEARNT
from tests.benchmarks.extraction import table

DATA = Path("../shared/data/sft/gpteacher.jsonl.zst")
LLAMA = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")


def read_rows(most: int) -> list[dict[str, Any]]:
    """The first conversations of the file."""
    rows = []
    with zstandard.open(DATA, "rb") as stream:
        for line in io.TextIOWrapper(stream, encoding="utf-8"):
            one = json.loads(line)
            talk = [message(said["role"], said["content"]) for said in one["messages"]]
            rows.append({"messages": talk, "tools": None})
            if len(rows) == most:
                break
    return rows


def template_of(name: str) -> str:
    spec = importlib.util.find_spec("trl")
    if spec is None or spec.origin is None:
        raise SystemExit("trl, a development package, has the templates")
    return (Path(spec.origin).parent / "chat_templates" / f"{name}.jinja").read_text()


def peer(tokenizer: Tokenizer, template: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Ids and masks by `transformers`."""
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=LLAMA[0])
    made = []
    for row in rows:
        said = [{"role": one["role"], "content": one["content"]} for one in row["messages"]]
        one = wrapped.apply_chat_template(
            said, chat_template=template, return_dict=True, return_assistant_tokens_mask=True
        )
        made.append((one["input_ids"], [bool(value) for value in one["assistant_masks"]]))
    return made


def seconds(run: Callable[[], Any]) -> float:
    before = os.times()
    run()
    after = os.times()
    return sum(after[:4]) - sum(before[:4])


def main() -> None:
    """Compare, then time; prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--conversations", type=int, default=3000)
    options = parser.parse_args()
    rows = read_rows(options.conversations)
    texts = [one["content"] for row in rows for one in row["messages"]]
    tokenizer = train(iter(texts), vocabulary_size=8000, pre_tokenizer="llama-bpe", min_frequency=2)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in LLAMA])
    special = SpecialTokens.from_config(tokenizer, transformers_config("llama-bpe"))
    chatml = ChatML(tokenizer, special, Learning())
    config = {"bos_token": LLAMA[0]}
    llama = JinjaFormat(template_of("llama3"), tokenizer, config, "2024-07-26", Learning())
    plain = Tokenizer.from_str(tokenizer.to_str())
    ways: dict[str, Callable[[], list[Any]]] = {
        "ChatML: ours": lambda: list(chatml.encode(rows)),
        "ChatML: transformers": lambda: peer(plain, CHAT_TEMPLATE, rows),
        "Llama 3: ours": lambda: list(llama.encode(rows)),
        "Llama 3: transformers": lambda: peer(plain, template_of("llama3_training"), rows),
    }
    for name in ("ChatML", "Llama 3"):
        ours, theirs = f"{name}: ours", f"{name}: transformers"
        made, expected = ways[ours](), ways[theirs]()
        equal = sum(
            one[0].ids.tolist() == ids and ((one[0].marks & LEARNT) > 0).tolist() == mask
            for one, (ids, mask) in zip(made, expected, strict=True)
        )
        print(f"{ours}: {equal:,} of {len(rows):,} conversations equal to those of transformers")
    tokens = sum(len(one[0].ids) for one in chatml.encode(rows))
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(options.rounds):
        for name, way in ways.items():
            best[name] = min(best[name], seconds(way))
    print(f"{len(rows):,} conversations, {tokens:,} tokens in ChatML")
    cells = [(name, f"{best[name]:.2f}", f"{tokens / best[name]:,.0f}") for name in ways]
    print(table(["way", "CPU s", "tokens/s"], cells))
    for name in ("ChatML", "Llama 3"):
        print(f"{name}: {best[f'{name}: transformers'] / best[f'{name}: ours']:.2f} ×")


if __name__ == "__main__":
    main()
