"""The generation service: text that a model writes, with the log-probability of every token.

`Writing` is what callers know: `Generator` has the decoder of this process write many prompts at
once over a cache, and `stages.scoring.vllm` has vLLM do it. `Generator.stream` is for one person
who waits for each word (`ingot chat`, `ingot complete`), `stages.scoring.continuous` for many
(`ingot serve`).

What a prompt is continued with depends on the model, the prompt, its number, the sampling and the
limits. The rows of a batch share matrix products alone, whose rounding depends on their shapes: so
log-probabilities agree within 1e-4 nats in float32 whatever the batch, and a text changes only
where a draw falls that near to a border between tokens, or two best tokens lie that near
(`Written.ties`). Bytes are equal where the batch settings are.

Shapes: B batch, L length, D width, V vocabulary.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from artifacts_schema.errors import InputError
from stages.model.cache import Cache, CachedAttention, KeyValueCache, RowsCache
from stages.model.decode import DecodeStep
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.sampling import Sampling

__all__ = [
    "Generator", "Limits", "Row", "Sampling", "Writing", "Written", "drop_row", "first_seen",
]  # fmt: skip

T = TypeVar("T")
Ending = Literal["end", "stop", "length"]


@dataclass(frozen=True)
class Written:
    """A continuation of the prompt with this number.

    `ids` hold the token that ended it, where one did; `log_probabilities` are those of the model at
    temperature 1, in nats. `text` is without special tokens and cut before a stop text, whose
    tokens are among `ids`; a last character of which bytes are missing is left out. It is empty
    where the service has no tokenizer. `ties` are places in `ids` where a greedy choice was one
    between tokens less than `sampling.TIE` apart.
    """

    ids: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    ending: Ending
    """A stop id (`end`), a stop text (`stop`) or the limit of new tokens (`length`)."""
    text: str = ""
    prompt: int = 0
    sample: int = 0
    ties: tuple[int, ...] = ()


class Writing(Protocol):
    """A model that continues prompts."""

    def write(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
        stop_texts: Sequence[str] = (),
        samples: int = 1,
        first_number: int = 0,
    ) -> list[Written]:
        """`samples` continuations of each prompt, in the order of the prompts.

        Each ends with one of `stop_ids`, before one of `stop_texts` or after `max_new_tokens`. The
        prompt at place i has the number `first_number` + i, on which its draws depend. ValueError
        for an empty prompt, and for stop texts without a tokenizer.
        """


@dataclass
class Row:
    """A text that is being written."""

    prompt: int
    sample: int
    ids: list[int]
    """Those of the prompt, and what was written so far."""
    uniform: NDArray[np.float64]
    log_probabilities: list[float] = field(default_factory=list)
    ties: list[int] = field(default_factory=list)
    decoder: DecodeStream | None = None
    text: str = ""
    ending: Ending | None = None
    seen_from: int = 0
    """The first of `ids` that the cache holds."""

    @property
    def new_tokens(self) -> int:
        """Tokens that were written so far."""
        return len(self.log_probabilities)

    def finish(self) -> Written:
        """What was written, once it has ended."""
        assert self.ending is not None
        return Written(
            tuple(self.ids[len(self.ids) - self.new_tokens :]),
            tuple(self.log_probabilities),
            self.ending,
            self.text,
            self.prompt,
            self.sample,
            tuple(self.ties),
        )


@dataclass(frozen=True)
class Limits:
    """Where a text ends."""

    max_new_tokens: int
    stop_ids: Collection[int]
    stop_texts: Sequence[str]

    def append(
        self, row: Row, token: int, log_probability: float, tie: bool, tokenizer: Tokenizer | None
    ) -> None:
        """Add a token to a text, and note whether that ends it."""
        if not math.isfinite(log_probability):
            raise InputError(
                "the model gives a log-probability that is not finite",
                where=f"prompt {row.prompt}, token {row.new_tokens}",
                hint="its weights or its precision are broken: measure an earlier checkpoint",
            )
        if tie:
            row.ties.append(row.new_tokens)
        row.ids.append(token)
        row.log_probabilities.append(log_probability)
        if token in self.stop_ids:
            row.ending = "end"
            return
        if tokenizer is not None and row.decoder is not None:
            piece = row.decoder.step(tokenizer, token) or ""
            before = len(row.text)
            row.text += piece
            places = [
                place
                for stop in self.stop_texts
                if (place := row.text.find(stop, max(0, before - len(stop) + 1))) >= 0
            ]
            if piece and places:
                row.text, row.ending = row.text[: min(places)], "stop"
                return
        if row.new_tokens == self.max_new_tokens:
            row.ending = "length"


_SHARED_TOKENS = 16
"""A beginning that all prompts share is computed once if it has so many tokens."""
_READ_TOKENS = {"cpu": 512}
"""Tokens of prompts in one forward pass, padding included: it bounds memory, and on a CPU, where
few tokens keep it busy, padding."""
_READ_TOKENS_ELSEWHERE = 8192


class Generator:
    """Has `model` write, whose attention it replaces by one over a cache until it is closed.

    At most `batch` texts are written at once. Prompts of different length share a pass, a text that
    ends leaves its place to the next prompt, and what all prompts begin with is computed once.
    Texts longer than the model's context are seen from a later token on (`first_seen`).

    All of several `ranks` make the same passes, and take the tokens of rank 0. `check_stop` is
    called before each forward pass, and may raise.
    """

    def __init__(
        self,
        model: Decoder,
        tokenizer: Tokenizer | None = None,
        *,
        batch: int = 16,
        ranks: Ranks = ALONE,
        check_stop: Callable[[], None] = lambda: None,
    ) -> None:
        if batch < 1:
            raise ValueError(f"a batch of {batch} texts")
        self.model, self.tokenizer = model.eval(), tokenizer
        self.batch, self.ranks, self.check_stop = batch, ranks, check_stop
        self.read_tokens = _READ_TOKENS.get(
            model.embedding.weight.device.type, _READ_TOKENS_ELSEWHERE
        )
        self._before = model.backend
        self._attention = CachedAttention()
        model.attend_by(self._attention)
        self._decode = DecodeStep(model) if DecodeStep.supports(model) else None
        self._streamed = KeyValueCache()
        self._held: list[int] = []

    def close(self) -> None:
        """Give the model its attention back."""
        self.model.attend_by(self._before)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
        stop_texts: Sequence[str] = (),
        samples: int = 1,
        first_number: int = 0,
    ) -> list[Written]:
        """See `Writing`."""
        limits = Limits(max_new_tokens, frozenset(stop_ids), stop_texts)
        self.check(prompts, limits)
        rows = [
            self.begin(prompt, sampling, limits, first_number + place, sample)
            for place, prompt in enumerate(prompts)
            for sample in range(samples)
        ]
        prefix, shared = self._read_shared(prompts)
        # Long ones first, so that those of a pass are of like length and the last ones short.
        waiting = deque(sorted(rows, key=lambda row: -len(row.ids)))
        batch = min(self.batch, len(rows))
        cache, active = RowsCache(batch), list[Row]()
        while waiting or active:
            unseen = self.take_out(active, cache)
            places = batch - len(active) - len(unseen)
            # Some at once, for a pass over one prompt costs nearly as much as one over a few.
            if 4 * places >= batch:
                unseen += [waiting.popleft() for _ in range(min(places, len(waiting)))]
            if unseen:
                logits_BV = self.read(unseen, cache, prefix, shared)
                active += unseen
            else:
                logits_BV = self.step(active, cache)
            self.append(active[-len(logits_BV) :], logits_BV, sampling, limits)
            for place in reversed(range(len(active))):
                if active[place].ending is not None:
                    drop_row(place, active, cache)
        return [row.finish() for row in rows]

    def stream(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        *,
        max_new_tokens: int,
        stop_ids: Collection[int] = (),
    ) -> Iterator[int]:
        """Ids that follow `prompt`, each as soon as it is chosen, up to one of `stop_ids`.

        As `write` has them for a prompt with number 0. The cache stays between calls: a prompt that
        begins like the text before (the next turn of a conversation) costs its new tokens alone.
        """
        limits = Limits(max_new_tokens, frozenset(stop_ids), ())
        self.check([prompt], limits)
        row = self.begin(prompt, sampling, limits, 0, 0)
        while row.ending is None:
            self.append([row], self.next_logits(row.ids)[None], sampling, limits)
            if row.ending != "end":
                yield row.ids[-1]

    @torch.inference_mode()
    def next_logits(self, ids: Sequence[int]) -> Tensor:
        """Logits [vocabulary] of the token after `ids`; only what the cache lacks is computed."""
        seen = list(ids[first_seen(len(ids), self.model.config.context) :])
        known = 0
        while known < min(len(seen) - 1, len(self._held)) and seen[known] == self._held[known]:
            known += 1
        self._streamed.crop(known)
        self._held = seen[:known]
        if known and known + 1 == len(seen):
            logits_V = self._next([seen[-1]], [known], self._streamed)[0]
        else:
            logits_V = self._pass([seen[known:]], self._streamed)[0]
        self._held = seen
        return logits_V

    def check(self, prompts: Sequence[Sequence[int]], limits: Limits) -> None:
        """ValueError for prompts or limits that cannot be written."""
        for number, prompt in enumerate(prompts):
            if not prompt:
                raise ValueError(f"prompt {number} is empty; begin it with <|begin_of_text|>")
        if limits.max_new_tokens < 1:
            raise ValueError(f"{limits.max_new_tokens} new tokens")
        if limits.stop_texts and self.tokenizer is None:
            raise ValueError("stop texts need a tokenizer")
        if "" in limits.stop_texts:
            raise ValueError("a stop text is empty")

    def begin(
        self, prompt: Sequence[int], sampling: Sampling, limits: Limits, number: int, sample: int
    ) -> Row:
        """A text that begins with `prompt`, of which nothing is computed yet."""
        uniform = sampling.uniform(number, sample, limits.max_new_tokens)
        row = Row(number, sample, list(prompt), uniform)
        if self.tokenizer is not None:
            row.decoder = DecodeStream(ids=row.ids, skip_special_tokens=True)
        return row

    def take_out(self, active: list[Row], cache: RowsCache) -> list[Row]:
        """Rows that have outgrown the context: what is seen of them is to be read again."""
        context, outgrown = self.model.config.context, []
        for place in reversed(range(len(active))):
            row = active[place]
            if first_seen(len(row.ids), context) != row.seen_from:
                drop_row(place, active, cache)
                outgrown.append(row)
        return outgrown

    def _read_shared(self, prompts: Sequence[Sequence[int]]) -> tuple[list[int], KeyValueCache]:
        """What all of several prompts begin with, and a cache of that."""
        cache = KeyValueCache()
        if len(prompts) < 2 or max(map(len, prompts)) > self.model.config.context:
            return [], cache
        length = min(_shared_length(prompts), min(map(len, prompts)) - 1)
        if length < _SHARED_TOKENS:
            return [], cache
        prefix = list(prompts[0][:length])
        self._pass([prefix], cache)
        return prefix, cache

    def read(
        self, rows: Sequence[Row], cache: RowsCache, prefix: Sequence[int], shared: KeyValueCache
    ) -> Tensor:
        """Logits [B, V] after texts of which `cache` holds nothing; it holds them then.

        A text that several rows have is computed once.
        """
        for row in rows:
            row.seen_from = first_seen(len(row.ids), self.model.config.context)
        seen = [tuple(row.ids[row.seen_from :]) for row in rows]
        texts = sorted(set(seen), key=lambda text: -len(text))
        known = len(prefix) if all(row.seen_from == 0 for row in rows) else 0
        places: dict[tuple[int, ...], tuple[KeyValueCache, int, Tensor]] = {}
        while texts:
            size = max(1, self.read_tokens // (len(texts[0]) - known))
            part = shared.fork() if known else KeyValueCache()
            logits_BV = self._pass([text[known:] for text in texts[:size]], part)
            for place, text in enumerate(texts[:size]):
                places[text] = part, place, logits_BV[place]
            texts = texts[size:]
        for text in seen:
            part, place, _ = places[text]
            cache.add(part, place, len(text))
        return torch.stack([places[text][2] for text in seen])

    def step(self, rows: Sequence[Row], cache: RowsCache) -> Tensor:
        """Logits [B, V] after rows whose last token `cache` lacks; it holds that then."""
        tokens = [row.ids[-1] for row in rows]
        padding_BT = cache.padding(self.model.embedding.weight.device)
        logits_BV = self._next(tokens, cache.lengths, cache, padding_BT)
        cache.advance()
        return logits_BV

    def _next(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        cache: Cache,
        padding_BT: Tensor | None = None,
    ) -> Tensor:
        """Logits [B, V] after one more token of each row of `cache`."""
        self.check_stop()
        device = self.model.embedding.weight.device
        tokens_B = torch.tensor(tokens, device=device)
        positions_B = torch.tensor(positions, device=device)
        if self._decode is not None and not torch.is_autocast_enabled(device.type):
            return self._decode.logits(tokens_B, positions_B, cache, padding_BT)

        def last_logits(x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
            return self.model.logits(x_BLD[:, -1], matrix_VD)

        documents_BT = None if padding_BT is None else -padding_BT.long()
        with self._attention.over(cache, documents_BT):
            logits_BV: Tensor = self.model(
                tokens_B[:, None], positions_B[:, None], output=last_logits
            )
        return logits_BV

    def _pass(self, texts: Sequence[Sequence[int]], cache: KeyValueCache) -> Tensor:
        """Logits [B, V] after texts that go on from what `cache` holds of each.

        Padding is on the right, where no token of the text sees it.
        """
        self.check_stop()
        device, past = self.model.embedding.weight.device, cache.get_seq_length()
        tokens_BL = pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
        positions_L = torch.arange(past, past + tokens_BL.shape[1], device=device)
        last_B = torch.tensor([len(text) - 1 for text in texts], device=device)

        def last_logits(x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
            x_BD = x_BLD[torch.arange(len(x_BLD), device=device), last_B]
            return self.model.logits(x_BD, matrix_VD)

        with self._attention.over(cache):
            logits_BV: Tensor = self.model(
                tokens_BL.to(device), positions_L.expand_as(tokens_BL), output=last_logits
            )
        return logits_BV

    def append(
        self, rows: Sequence[Row], logits_BV: Tensor, sampling: Sampling, limits: Limits
    ) -> None:
        """Choose the next token of each row."""
        uniform_B = torch.tensor([row.uniform[row.new_tokens] for row in rows], dtype=torch.float64)
        chosen = sampling.choose(logits_BV, uniform_B)
        # One copy to the host.
        values_3B = self.ranks.copy_first(torch.stack([one.double() for one in chosen]).cpu())
        for row, token, log_probability, tie in zip(rows, *values_3B.tolist(), strict=True):
            limits.append(row, int(token), log_probability, bool(tie), self.tokenizer)


def _shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """How many tokens all prompts begin with: the first and the last in order differ soonest."""
    ordered = sorted(tuple(prompt) for prompt in prompts)
    pairs = zip(ordered[0], ordered[-1], strict=False)
    differing = (place for place, (one, other) in enumerate(pairs) if one != other)
    return next(differing, len(ordered[0]))


def drop_row(place: int, active: list[T], cache: RowsCache) -> None:
    """Take a row out, as `RowsCache.drop` does."""
    cache.drop(place)
    last = active.pop()
    if place < len(active):
        active[place] = last


def first_seen(length: int, context: int) -> int:
    """The first of `length` tokens that a model with this context still sees.

    0 while all fit, else the least multiple of half a context after which the rest fits.
    """
    if length <= context:
        return 0
    half = max(1, context // 2)
    return -((context - length) // half) * half
