"""A tokenizer tried in a process of its own, which a hostile one may bring down."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError

SECONDS = 300


@dataclass(frozen=True)
class Found:
    """Texts that are decoded to others, and special tokens that a text can spell into being."""

    lost: tuple[str, ...]
    special: tuple[str, ...]


def tried(description: str, work: Path) -> Found:
    """What becomes of the probe's texts; InputError if the library cannot do with it."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / "tokenizer.json"
    path.write_text(description, encoding="utf-8")
    script = Path(__file__).with_name("probe.py")
    # -I: no environment, user site or working directory on its path.
    command = [sys.executable, "-I", str(script), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, cwd=work, check=False)
    except subprocess.TimeoutExpired:
        raise _problem(f"is not done with a few lines of text within {SECONDS} s") from None
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if done.returncode or not lines:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()
        died = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
        raise _problem(f"brings the library down ({died}): {last[-1][:200] if last else ''}")
    found: dict[str, Any] = json.loads(lines[-1])
    if "failed" in found:
        raise _problem(f"is refused by the library: {found['failed'][:300]}")
    return Found(tuple(found["lost"]), tuple(found["special"]))


def _problem(what: str) -> InputError:
    return InputError(what, where="tokenizer.json", hint="is it whole, and of `tokenizers`' form?")
