"""Nothing is a release before a fresh process with `transformers` alone has read it alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from tokenizers import Tokenizer

from artifacts_schema.errors import IngotError
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
    probe_tokens: int
    transformers: str
    torch: str
    written: list[int]
    """The likeliest tokens after the first of the probe's, in float32."""
    margin: float
    """The smallest lead of one of these over the second likeliest."""


def verify_release(
    release: Path, probes: Path, config: ModelConfig, probe_tokens: int
) -> Verification:
    """Load the folder `release` in a new process and compare; IngotError names what differs.

    Where no native class expresses the model, the process imports Ingot's own first.
    """
    family = family_of(config)
    result = run_script(release, probes, family.register)
    wanted = {
        "model_class": family.architecture,
        "parameters": count_parameters(config).total,
        "dtype": json.loads((release / "config.json").read_bytes())["dtype"],
        "ids_equal": True,
        "chat_equal": True,
        "generates": True,
        "ingot_absent": family.register is None,
    }
    wrong = [f"{name} is {result[name]}" for name in wanted if result[name] != wanted[name]]
    if not result["logit_difference"] <= TOLERANCE:  # NaN is a difference too
        wrong.append(f"logits differ by {result['logit_difference']:.2g}, allowed {TOLERANCE:.0e}")
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
    )


def write_probes(
    model: ReleasedModel, tokenizer: Tokenizer, tokenizer_config: Mapping[str, Any], folder: Path
) -> int:
    """What Ingot itself makes of the probes; returns how many tokens the logits are of.

    Ingot renders ChatML itself. Of another
    template the text alone is compared: it is not run.
    """
    special = SpecialTokens.from_config(tokenizer, tokenizer_config)
    template = tokenizer_config.get(KEY)
    segments: list[chat.Segment] = []
    messages: tuple[dict[str, str], ...] = ()
    if template == chat.CHAT_TEMPLATE:
        messages = PROBE_MESSAGES
        begin = chat.find_chat_start(tokenizer, special)
        segments = chat.render_segments(messages, add_generation_prompt=True, begin=begin)
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in PROBE_TEXTS]
    rendered_ids, _ = chat.encode_segments(tokenizer, segments)
    row = [*rendered_ids, *(token for text in ids for token in text)][: model.config.context]
    tokens_BL = torch.tensor([row])
    with torch.no_grad():
        logits_BLV = model(tokens_BL)
    probe = {
        "texts": PROBE_TEXTS,
        "ids": ids,
        "chat_template": template,
        "messages": messages,
        "rendered": "".join(segment.text for segment in segments),
        "rendered_ids": rendered_ids,
        "new_tokens": NEW_TOKENS,
    }
    (folder / "probe.json").write_text(json.dumps(probe), encoding="utf-8")
    (folder / "expected.safetensors").write_bytes(
        save({"tokens": tokens_BL, "logits": logits_BLV.contiguous()})
    )
    return len(row)


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
