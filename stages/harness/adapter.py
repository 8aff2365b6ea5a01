"""A checkpoint as a model of lm-eval: its tokenizer encodes requests, its decoder answers them.

Requests are lm-eval's own (`TemplateLM`): a prompt and its continuation are encoded as one text,
and what follows as many tokens as the prompt alone has is scored, even where a token spans the
border.
Every request begins with the token that begins a text, as Hugging Face's adapter does where the
tokenizer adds one. Two differences are meant: a text of `loglikelihood_rolling` has that token once
(there lm-eval puts its prefix before the tokenizer's own, and scores the second), and what a prompt
in the chat format quotes never becomes a special token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError
from stages.model.decoder import Decoder
from stages.scoring.generation import Generator, Sampling
from stages.scoring.likelihood import Request, encode_text, rolling_requests, score_requests
from stages.tokens.chat import CHAT_TEMPLATE, encode_segments, find_chat_start, render_segments
from stages.tokens.chat_template import Template, encode_prompt
from stages.tokens.vocabulary import SpecialTokens

GENERATION_SETTINGS = frozenset({"until", "max_gen_toks", "do_sample", "temperature", "top_p"})
LENGTH_ALIASES = ("max_new_tokens", "max_tokens", "max_completion_tokens")
DEFAULT_LENGTH = 256
"""Tokens of an answer where a task says none, as lm-eval has it."""

EncodedRequest = tuple[tuple[str, str], list[int], list[int]]
"""(prompt, continuation) as text, and each as ids."""


@dataclass(frozen=True)
class _Settings:
    """How an answer is written: its most tokens, how they are drawn, texts before which it ends."""

    length: int
    sampling: Sampling
    stops: tuple[str, ...]


class CheckpointModel(TemplateLM):
    """Answers lm-eval's three kinds of requests by a decoder and its tokenizer.

    `described` is the checkpoint's tokenizer_config.json; `check_stop` is called before each batch,
    and may raise. `max_new_tokens` is put in the place of what tasks say.
    """

    def __init__(
        self,
        model: Decoder,
        vocabulary: Tokenizer,
        described: dict[str, Any],
        *,
        batch_tokens: int,
        seed: int = 0,
        max_new_tokens: int | None = None,
        template: Template | None = None,
        check_stop: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.model, self.vocabulary, self.described = model, vocabulary, described
        self.special = SpecialTokens.from_config(vocabulary, described)
        self.batch_tokens, self.seed, self.max_new_tokens = batch_tokens, seed, max_new_tokens
        self.template, self.check_stop = template, check_stop
        self._chats: dict[str, list[int]] = {}

    # Text to tokens ------------------------------------------------------------------------------

    @property
    def eot_token_id(self) -> int:
        """The token that ends a document."""
        return self.special.end

    @property
    def prefix_token_id(self) -> int:
        """What a continuation without a prompt is scored after."""
        return self.special.context

    @property
    def tokenizer_name(self) -> str:
        """Part of a name under which lm-eval could cache requests; it does not here."""
        return "ingot"

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **_: Any
    ) -> list[int]:
        """Ids of a text, after the token that begins one unless `add_special_tokens` is False."""
        ids = encode_text(self.vocabulary, string)
        return ids if add_special_tokens is False else [self.special.context, *ids]

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """The prompt as text, whose ids are kept for its requests. InputError without a template,
        or where another template than ChatML is to go on in the midst of an answer."""
        if self.template is None:
            raise InputError(
                "the checkpoint has no chat template",
                where="chat",
                hint="leave out `chat`, or measure a checkpoint of `sft`",
            )
        if add_generation_prompt:
            text, ids = encode_prompt(self.vocabulary, self.template, chat_history, self.described)
        elif self.template == CHAT_TEMPLATE:
            begin = find_chat_start(self.vocabulary, self.special)
            segments = list(render_segments(chat_history, add_generation_prompt=False, begin=begin))
            ids, _ = encode_segments(self.vocabulary, segments)
            text = "".join(segment.text for segment in segments)
        else:
            raise InputError(
                "the chat template cannot go on in the midst of an answer (gen_prefix)",
                where="chat",
                hint="leave out `chat`",
            )
        self._chats[text] = ids
        return text

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """A prompt of a chat and its continuation apart; all others as lm-eval does."""
        if context in self._chats:
            return self._chats[context], encode_text(self.vocabulary, continuation)
        before, after = super()._encode_pair(context, continuation)
        return before, after

    # Requests ------------------------------------------------------------------------------------

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = True
    ) -> list[tuple[float, bool]]:
        """Log-likelihood of each continuation, and whether greedy decoding would write it."""
        for request in requests:
            if not request.args[1].strip():
                raise InputError("nothing to score: an empty choice", where=_name(request))
        scores: list[tuple[float, bool]] = super().loglikelihood(requests, disable_tqdm=True)
        for request, (score, _) in zip(requests, scores, strict=True):
            if not math.isfinite(score):
                raise InputError(f"its log-likelihood is {score}", where=_name(request))
        return scores

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = True
    ) -> list[float]:
        """Log-likelihood of each text, whose tokens are each predicted once."""
        context = self.model.config.context
        windows, edges = [], [0]
        for request in requests:
            ids = [self.special.context, *encode_text(self.vocabulary, request.args[0])]
            windows += rolling_requests(ids, context)
            edges.append(len(windows))
        parts = [(("", ""), list(one.context), list(one.continuation)) for one in windows]
        scores = [score for score, _ in self._loglikelihood_tokens(parts)]
        return [sum(scores[a:b]) for a, b in pairwise(edges)]

    def _loglikelihood_tokens(
        self, requests: list[EncodedRequest], **_: Any
    ) -> list[tuple[float, bool]]:
        """What requests begin with alike is computed once; a prompt that does not fit is cut at its
        left."""
        limit = self.model.config.context
        for text, _context, continuation in requests:
            if not 1 <= len(continuation) <= limit:
                raise InputError(
                    f"{text[1][:60]!r} has {len(continuation)} tokens to score, "
                    f"the model's context has {limit}",
                    where="harness",
                )
        scored = score_requests(
            self.model,
            [Request(tuple(before), tuple(after)) for _, before, after in requests],
            batch_tokens=self.batch_tokens,
            check_stop=self.check_stop,
        )
        return [(math.fsum(one.log_likelihoods), one.is_greedy) for one in scored]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = True) -> list[str]:
        """What the model writes after each prompt, up to a stop text, its own end or a length.

        Requests of equal settings are written together; each draws by its place among all.
        """
        ends = [one for one in (self.special.end, self.special.turn_end) if one is not None]
        groups: dict[_Settings, list[int]] = {}
        for number, request in enumerate(requests):
            settings = self._settings(dict(request.args[1]), _name(request))
            groups.setdefault(settings, []).append(number)
        texts = [""] * len(requests)
        context = self.model.config.context
        for settings, numbers in groups.items():
            batch = max(1, self.batch_tokens // context)
            with Generator(
                self.model, self.vocabulary, batch=batch, check_stop=self.check_stop
            ) as generator:
                written = generator.write(
                    [self._prompt(requests[n].args[0])[-(context - settings.length) :]
                     for n in numbers],
                    settings.sampling,
                    max_new_tokens=settings.length,
                    stop_ids=ends,
                    stop_texts=settings.stops,
                    first_number=numbers[0],
                )  # fmt: skip
            for number, one in zip(numbers, written, strict=True):
                texts[number] = one.text
        return texts

    def _prompt(self, text: str) -> list[int]:
        return self._chats.get(text) or self.tok_encode(text)

    def _settings(self, settings: dict[str, Any], where: str) -> _Settings:
        """What a request asks for. InputError for what is not followed."""
        for alias in LENGTH_ALIASES:
            if alias in settings:
                settings.setdefault("max_gen_toks", settings.pop(alias))
        if unknown := sorted(set(settings) - GENERATION_SETTINGS):
            raise InputError(
                f"generation_kwargs has {unknown[0]}",
                where=where,
                hint=f"known: {', '.join(sorted(GENERATION_SETTINGS))}",
            )
        length = self.max_new_tokens or int(settings.get("max_gen_toks") or DEFAULT_LENGTH)
        context = self.model.config.context
        if not 1 <= length < context:
            raise InputError(
                f"an answer of {length} tokens leaves no room in a context of {context}",
                where=where,
                hint="set `max_new_tokens`",
            )
        temperature = float(settings.get("temperature") or 0.0)
        if not settings.get("do_sample", temperature > 0):
            temperature = 0.0
        top_p = float(settings.get("top_p") or 1.0)
        until = settings.get("until") or []
        stops = tuple(one for one in ([until] if isinstance(until, str) else until) if one)
        return _Settings(length, Sampling(temperature, top_p, self.seed), stops)


def _name(request: Instance) -> str:
    return f"task {request.task_name}, row {request.doc_id}"
