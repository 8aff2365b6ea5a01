"""Nothing is a release before a fresh process with `transformers` alone has read it alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from tokenizers import Tokenizer

from artifacts_schema.errors import IngotError
from stages.export.config import Form
from stages.export.folder import ReleasedModel
from stages.model.config import ModelConfig
from stages.model.huggingface.families import family_of
from stages.model.size import count_parameters
from stages.tokens import chat
from stages.tokens.chat_template import KEY
from stages.tokens.vocabulary import SpecialTokens

TOLERANCE = 1e-4
"""Largest difference of a logit between Ingot's decoder and the class that loads it, float32."""

TIMEOUT_SECONDS = 1800
NEW_TOKENS = 8
"""Tokens that the model writes after the probe's."""

PROBE_TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "def f(x):\n\treturn  x ** 2   # spaces,\ttabs\r\n\n\n",
    "0 12 345 6789 3.14159 1,000,000 0x1F",
    "naïve café, Übergröße, Привет, 你好，世界, नमस्ते, مرحبا, 👩‍👩‍👧 é",
    " leading, trailing ",
    "",
)
PROBE_MESSAGES = (
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "  What is the capital of France? "},
    {"role": "assistant", "content": "Paris."},
    {"role": "user", "content": "And of Italy?"},
)


@dataclass(frozen=True)
class Verification:
    """What the fresh process found; every check passed."""

    logit_difference: float
    """Of a reward model, of a score, computed alone and in a padded batch."""
    probe_tokens: int
    transformers: str
    torch: str
    written: list[int]
    """The likeliest tokens after the first of the probe's, in float32."""
    margin: float
    """The smallest lead of one of these over the second likeliest."""
    tolerance: float
    """How far logits may be off."""


def verify_release(
    release: Path,
    probes: Path,
    config: ModelConfig,
    probe_tokens: int,
    *,
    reward: bool = False,
    form: Form | None = None,
    outside_parameters: int = 0,
) -> Verification:
    """Load the folder `release` in a new process and compare; IngotError names what differs.

    Where no native class expresses the model, the process imports Ingot's own first. With `reward`
    it is that of a reward model, and the probes are `write_reward_probes`'s. `form` is that of
    quantised weights; `outside_parameters` of them are in no parameter of the loaded model.
    """
    tolerance = TOLERANCE
    if form is not None:
        logits = load_file(probes / "expected.safetensors")["logits"]
        tolerance = largest_tolerance(form, float(logits.abs().max()))
    family = family_of(config)
    result = run_script(release, probes, family.register)
    wanted = {
        "model_class": family.classifier if reward else family.architecture,
        "parameters": count_parameters(config).total
        + (config.width if reward else 0)
        - outside_parameters,
        "dtype": json.loads((release / "config.json").read_bytes())["dtype"],
        "ids_equal": True,
        "chat_equal": True,
        "generates": True,
        "ingot_absent": family.register is None,
    }
    wrong = [f"{name} is {result[name]}" for name in wanted if result[name] != wanted[name]]
    if not result["logit_difference"] <= tolerance:  # NaN is a difference too
        wrong.append(f"logits differ by {result['logit_difference']:.2g}, allowed {tolerance:.0e}")
    if wrong:
        raise IngotError(
            f"transformers reads the release otherwise than Ingot: {'; '.join(wrong)}",
            where="export",
            hint="nothing was released; report it with the versions of torch and transformers",
        )
    return Verification(
        result["logit_difference"],
        probe_tokens,
        result["transformers"],
        result["torch"],
        result["written"],
        result["margin"],
        tolerance,
    )


def largest_tolerance(form: Form | None, largest_logit: float) -> float:
    """How far a logit may be off.

    torchao multiplies by whole numbers and scales the sums, which rounds in another place than the
    decoder does: in proportion to the sums.
    """
    return TOLERANCE * (max(1.0, largest_logit) if form is not None else 1.0)


def write_probes(
    model: ReleasedModel, tokenizer: Tokenizer, tokenizer_config: Mapping[str, Any], folder: Path
) -> int:
    """What Ingot itself makes of the probes; returns how many tokens the logits are of.

    Ingot renders ChatML itself. Of another
    template the text alone is compared: it is not run.
    """
    probe = _probe(tokenizer, tokenizer_config, PROBE_MESSAGES, prompt=True)
    texts = (token for ids in probe["ids"] for token in ids)
    row = [*probe["rendered_ids"], *texts][: model.config.context]
    tokens_BL = torch.tensor([row])
    with torch.no_grad():
        logits_BLV = model(tokens_BL)
    _write(folder, probe, {"tokens": tokens_BL, "logits": logits_BLV.contiguous()})
    return len(row)


def write_reward_probes(
    model: ReleasedModel, tokenizer: Tokenizer, tokenizer_config: Mapping[str, Any], folder: Path
) -> int:
    """The same of a reward model: the score of a conversation, where Ingot renders it, and of each
    text, at its last token. Texts differ in length, so that a batch of them is padded.
    """
    probe = _probe(tokenizer, tokenizer_config, PROBE_MESSAGES[:3], prompt=False)
    rows = [ids[: model.config.context] for ids in (probe["rendered_ids"], *probe["ids"]) if ids]
    with torch.no_grad():
        scores = [model(torch.tensor([row]))[0, -1] for row in rows]
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.tensor([token for row in rows for token in row])
    _write(folder, probe, {"tokens": tokens, "lengths": lengths, "scores": torch.stack(scores)})
    return len(tokens)


def _probe(
    tokenizer: Tokenizer,
    tokenizer_config: Mapping[str, Any],
    messages: Sequence[Mapping[str, str]],
    *,
    prompt: bool,
) -> dict[str, Any]:
    """Texts and `messages` with their ids; with `prompt`, the assistant is to go on."""
    special = SpecialTokens.from_config(tokenizer, tokenizer_config)
    template = tokenizer_config.get(KEY)
    segments: list[chat.Segment] = []
    if template == chat.CHAT_TEMPLATE:
        begin = chat.find_chat_start(tokenizer, special)
        segments = chat.render_segments(messages, add_generation_prompt=prompt, begin=begin)
    return {
        "texts": PROBE_TEXTS,
        "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in PROBE_TEXTS],
        "chat_template": template,
        "messages": messages if segments else (),
        "rendered": "".join(segment.text for segment in segments),
        "rendered_ids": chat.encode_segments(tokenizer, segments)[0],
        "new_tokens": NEW_TOKENS,
    }


def _write(folder: Path, probe: Mapping[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    (folder / "probe.json").write_text(json.dumps(probe), encoding="utf-8")
    (folder / "expected.safetensors").write_bytes(save(tensors))


def run_script(
    release: Path, probes: Path, register: str | None, python: str = sys.executable
) -> dict[str, Any]:
    """The script's findings. -I: no environment, user site or working directory on its path."""
    script = Path(__file__).with_name("load_release.py")
    command = [python, "-I", str(script), str(release), str(probes)]
    command += [register] if register else []
    try:
        process = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            cwd=probes,
            check=False,
        )
    except OSError as error:
        raise IngotError(f"cannot run {python}: {error.strerror}", where="export") from None
    except subprocess.TimeoutExpired:
        raise IngotError(f"loading took over {TIMEOUT_SECONDS} s", where="export") from None
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise IngotError(f"the process that loads the release died: {last}", where="export")
    result: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    if "failed" in result:
        first = result["failed"].splitlines()[0]
        raise IngotError(f"transformers cannot load the release: {first}", where="export")
    return result
