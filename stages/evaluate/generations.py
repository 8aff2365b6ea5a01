"""Texts that the model writes, for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.scoring.generate import generate
from stages.scoring.requests import encode_text
from stages.text import chat

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.evaluate.config import EvaluateConfig
    from stages.model.decoder import Decoder
    from stages.text.special_tokens import SpecialTokens


def write_generations(
    model: Decoder, tokenizer: Tokenizer, special: SpecialTokens, config: EvaluateConfig
) -> list[dict[str, str]]:
    """Rows of `generations.parquet`: continued texts first, then answers.

    Both end at the token that ends a document or a turn. The prompt with number i is drawn with
    seed + i. InputError for chat prompts where the tokenizer has no tokens for turns.
    """
    prompts: list[tuple[str, str, list[int]]] = []
    for text in config.text_prompts:
        ids = [special.context, *encode_text(tokenizer, text)]
        prompts.append(("text", text, ids))
    for question in config.chat_prompts:
        messages = [{"role": "user", "content": question}]
        begin = chat.begin_of_chat(tokenizer, special)
        asked = chat.segments(messages, add_generation_prompt=True, begin=begin)
        ids, _ = chat.encode(tokenizer, asked)
        prompts.append(("chat", "".join(part.text for part in asked), ids))
    stop = {token for token in (special.end, special.turn_end) if token is not None}
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
