"""Texts that the model writes, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.scoring.generate import generate
from stages.scoring.requests import encode_text, token_id
from stages.text import chat

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.evaluate.config import EvaluateConfig
    from stages.model.decoder import Decoder


def write_generations(
    model: Decoder, tokenizer: Tokenizer, config: EvaluateConfig
) -> list[dict[str, str]]:
    """Rows of `generations.parquet`: continued texts first, then answers.

    Both end at `<|end_of_text|>` or `<|im_end|>`. The prompt with number i is drawn with seed + i.
    """
    prompts: list[tuple[str, str, list[int]]] = []
    for text in config.text_prompts:
        ids = [token_id(tokenizer, chat.BEGIN_OF_TEXT), *encode_text(tokenizer, text)]
        prompts.append(("text", text, ids))
    for question in config.chat_prompts:
        asked = chat.segments([{"role": "user", "content": question}], add_generation_prompt=True)
        ids, _ = chat.encode(tokenizer, asked)
        prompts.append(("chat", "".join(part.text for part in asked), ids))
    stop = {token_id(tokenizer, token) for token in (chat.END_OF_TEXT, chat.TURN_END)}
    rows = []
    for number, (form, prompt, ids) in enumerate(prompts):
        written = generate(
            model,
            ids,
            max_new_tokens=config.max_new_tokens,
            stop=stop,
            temperature=config.temperature,
            seed=config.seed + number,
        )
        completion = tokenizer.decode(written, skip_special_tokens=True)
        rows.append({"prompt": prompt, "completion": completion, "form": form})
    return rows
