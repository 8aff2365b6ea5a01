"""A checkpoint as judge: which letter it finds likelier after the question, A or B."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch

from stages.engine import Input
from stages.judge.config import JudgeExecution
from stages.judge.journal import Answer
from stages.model.files import read_model, read_tokenizer
from stages.scoring.dtypes import Dtype, arithmetic, weights_type
from stages.scoring.likelihood import (
    Request,
    continuation_request,
    encode_text,
    score_requests,
)
from stages.tokens.chat_template import encode_prompt, read_template
from stages.tokens.vocabulary import SpecialTokens

CHUNK = 32
"""Requests of one batch of answers: fixed, so that a run that continues has the same batches."""
LETTERS = ("A", "B")


class LocalJudge:
    """A model and its tokenizer; it is asked in its chat format where it has one."""

    def __init__(
        self, checkpoint: Input, execution: JudgeExecution, device: torch.device, dtype: Dtype
    ) -> None:
        self.model = read_model(checkpoint).to(device, weights_type(dtype)).eval()
        self.tokenizer = read_tokenizer(checkpoint)
        self.described = checkpoint.read_json("tokenizer_config.json")
        self.special = SpecialTokens.from_config(self.tokenizer, self.described)
        self.template = read_template(checkpoint)
        self.execution, self.device, self.dtype = execution, device, dtype

    def answer(self, requests: Mapping[str, str]) -> list[Answer]:
        """One letter for each prompt; none where the prompt does not fit into the context."""
        pairs = {name: self._requests(prompt) for name, prompt in requests.items()}
        context = self.model.config.context
        fitting = [
            name
            for name, two in pairs.items()
            if max(len(one.context) + len(one.continuation) for one in two) <= context + 1
        ]
        with (
            torch.no_grad(),
            arithmetic(self.device, self.dtype, self.execution.threads),
        ):
            scored = score_requests(
                self.model,
                [one for name in fitting for one in pairs[name]],
                batch_tokens=self.execution.batch_tokens,
            )
        scores = [math.fsum(one.log_likelihoods) for one in scored]
        letters = {
            name: "tie" if a == b else LETTERS[int(b > a)]
            for name, a, b in zip(fitting, scores[::2], scores[1::2], strict=True)
        }
        return [
            Answer(name, letters.get(name, ""), "answered" if name in letters else "refused")
            for name in pairs
        ]

    def _requests(self, prompt: str) -> list[Request]:
        if self.template is None:
            text = f"{prompt}\nAnswer:"
            return [
                continuation_request(
                    self.tokenizer, text, f" {letter}", prefix=self.special.context
                )
                for letter in LETTERS
            ]
        message = [{"role": "user", "content": prompt}]
        _, ids = encode_prompt(self.tokenizer, self.template, message, self.described)
        return [
            Request(tuple(ids), tuple(encode_text(self.tokenizer, letter))) for letter in LETTERS
        ]


def answer_all(
    judge: LocalJudge,
    prompts: Mapping[str, str],
    known: Mapping[str, Answer],
    keep: Callable[[Answer], None],
    check_stop: Callable[[], None],
) -> None:
    """Answer every prompt that is not known, in chunks whose members never change."""
    names: Sequence[str] = sorted(prompts)
    for start, stop in pairwise([*range(0, len(names), CHUNK), len(names)]):
        chunk = names[start:stop]
        if all(name in known for name in chunk):
            continue
        check_stop()
        for answer in judge.answer({name: prompts[name] for name in chunk}):
            if answer.request not in known:
                keep(answer)
