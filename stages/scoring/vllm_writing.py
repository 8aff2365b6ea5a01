"""Writing by vLLM (extra `vllm`), on the folder of a release: for a GPU, and untried on one.

It is written against vLLM's documentation (`LLM.generate`, `SamplingParams`, `CompletionOutput`,
0.11 and later); the tests hold this side of it to a stand-in. vLLM draws by its own generator, so
sampled texts are not those of `Generator`; log-probabilities and greedy texts are, within rounding.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError, UsageError
from stages.scoring.generation import Ending, Sampling, Written
from stages.scoring.sampling import TIE


class VllmWriting:
    """The model in `folder`, as `export` writes it, behind the protocol `Writing`.

    UsageError where vLLM is not installed, and for texts that the `context` cannot hold: vLLM sees
    them to its end, and no further.
    """

    def __init__(self, folder: Path, *, context: int, dtype: str = "auto") -> None:
        try:
            import vllm
        except ImportError:
            raise UsageError(
                "vLLM is not installed", where="vllm", hint="pip install 'ingot[vllm]', on a GPU"
            ) from None
        self._library: Any = vllm
        self._context = context
        self._model = vllm.LLM(
            model=str(folder),
            dtype=dtype,
            max_model_len=context,
            trust_remote_code=False,
            enable_prefix_caching=True,
            generation_config="vllm",  # Not what the release's own file recommends.
            logprobs_mode="raw_logprobs",  # Before temperature and cuts.
        )
        self._tokenizer = self._model.get_tokenizer()

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
        self._check(prompts, max_new_tokens)
        places = [(place, sample) for place in range(len(prompts)) for sample in range(samples)]
        outputs = self._model.generate(
            [{"prompt_token_ids": list(prompts[place])} for place, _ in places],
            [
                self._library.SamplingParams(
                    temperature=sampling.temperature,
                    top_p=max(sampling.top_p, 1e-9),  # vLLM has no 0.
                    top_k=sampling.top_k or 0,
                    min_p=sampling.min_p,
                    seed=_seed(sampling.seed, first_number + place, sample),
                    max_tokens=max_new_tokens,
                    ignore_eos=True,  # `stop_ids` are all that end a text.
                    stop_token_ids=sorted(stop_ids),
                    stop=list(stop_texts),
                    logprobs=2 if sampling.temperature == 0 else 0,
                )
                for place, sample in places
            ],
            use_tqdm=False,
        )
        return [
            self._read(output.outputs[0], first_number + place, sample, sampling)
            for output, (place, sample) in zip(outputs, places, strict=True)
        ]

    def _check(self, prompts: Sequence[Sequence[int]], max_new_tokens: int) -> None:
        for number, prompt in enumerate(prompts):
            if not prompt:
                raise ValueError(f"prompt {number} is empty; begin it with <|begin_of_text|>")
            if len(prompt) + max_new_tokens > self._context:
                raise UsageError(
                    f"{len(prompt)} tokens and {max_new_tokens} new ones do not fit the model's "
                    f"context of {self._context}",
                    where=f"prompt {number}",
                    hint="fewer new tokens, or write without vLLM, which lets the beginning go",
                )

    def _read(self, completion: Any, number: int, sample: int, sampling: Sampling) -> Written:
        """What vLLM wrote, in our words."""
        ids = tuple(completion.token_ids)
        scores = [
            place[token].logprob for token, place in zip(ids, completion.logprobs, strict=True)
        ]
        if not all(map(math.isfinite, scores)):
            raise InputError(
                "the model gives a log-probability that is not finite", where=f"prompt {number}"
            )
        ending = _ending(completion, number)
        text = completion.text
        if ending == "end":  # vLLM leaves a stop token in the text if it is not a special one.
            text = self._tokenizer.decode(list(ids[:-1]), skip_special_tokens=True)
        ties: tuple[int, ...] = ()
        if sampling.temperature == 0:
            best = (
                sorted((one.logprob for one in place.values()), reverse=True)
                for place in completion.logprobs
            )
            ties = tuple(_close(best))
        return Written(ids, tuple(scores), ending, text, number, sample, ties)


def _ending(completion: Any, number: int) -> Ending:
    """InputError for a text that vLLM did not finish."""
    match completion.finish_reason, completion.stop_reason:
        case "length", _:
            return "length"
        case "stop", str():
            return "stop"
        case "stop", _:
            return "end"
    raise InputError(
        f"vLLM ended a text with '{completion.finish_reason}'", where=f"prompt {number}"
    )


def _close(best: Iterable[Sequence[float]]) -> Iterable[int]:
    """Places whose two best tokens lie within `TIE`."""
    return (
        place
        for place, scores in enumerate(best)
        if len(scores) > 1 and scores[0] - scores[1] <= TIE
    )


def _seed(seed: int, number: int, sample: int) -> int:
    """One for each text, in 63 bits."""
    digest = hashlib.blake2b(f"{seed}/{number}/{sample}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little") >> 1
