"""Texts that the model writes, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.model.files import read_tokenizer
from stages.scoring.generate import generate
from stages.scoring.requests import encode_text
from stages.text import chat
from stages.text.chat_template import carried_template, render
from stages.text.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from logging import Logger

    from tokenizers import Tokenizer

    from stages.engine import Input
    from stages.evaluate.config import EvaluateConfig
    from stages.model.decoder import Decoder


@dataclass(frozen=True)
class Prompt:
    """What the model is to continue: `form` is `text` or `chat`."""

    form: str
    text: str
    ids: tuple[int, ...]


def read_prompts(checkpoint: Input, config: EvaluateConfig, log: Logger) -> list[Prompt]:
    """The prompts of the config, those of a chat rendered by the template of the checkpoint.

    A checkpoint without a template was not trained on conversations: its chat prompts are left out
    with a warning. InputError where a template does not render, or ChatML lacks its tokens.
    """
    if not config.text_prompts and not config.chat_prompts:
        return []
    tokenizer = read_tokenizer(checkpoint)
    described = checkpoint.read_json("tokenizer_config.json")
    special = SpecialTokens.of(tokenizer, described)
    prompts = [
        Prompt("text", text, (special.context, *encode_text(tokenizer, text)))
        for text in config.text_prompts
    ]
    template = carried_template(checkpoint)
    if template is None:
        if config.chat_prompts:
            log.warning("the checkpoint has no chat template: no chat prompt is asked")
        return prompts
    for question in config.chat_prompts:
        messages = [{"role": "user", "content": question}]
        if template == chat.CHAT_TEMPLATE:
            begin = chat.begin_of_chat(tokenizer, special)
            asked = chat.segments(messages, add_generation_prompt=True, begin=begin)
            ids, _ = chat.encode(tokenizer, asked)
            text = "".join(part.text for part in asked)
        else:
            text = render(template, messages, described)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
        prompts.append(Prompt("chat", text, tuple(ids)))
    return prompts


def write_generations(
    model: Decoder,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    prompts: Sequence[Prompt],
    config: EvaluateConfig,
) -> list[dict[str, str]]:
    """Rows of `generations.parquet`: continued texts first, then answers.

    Both end at the token that ends a document or a turn. The prompt with number i is drawn with
    seed + i.
    """
    stop = {token for token in (special.end, special.turn_end) if token is not None}
    rows = []
    for number, prompt in enumerate(prompts):
        written = generate(
            model,
            list(prompt.ids),
            max_new_tokens=config.max_new_tokens,
            stop=stop,
            temperature=config.temperature,
            seed=config.seed + number,
        )
        completion = tokenizer.decode(written, skip_special_tokens=True)
        rows.append({"prompt": prompt.text, "completion": completion, "form": prompt.form})
    return rows
