"""A GGUF file beside the certificate of its release, as llama.cpp reads and computes it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.export.certificate import read_certificate
from stages.export.verify import TIMEOUT_SECONDS

SCRIPT = Path(__file__).with_name("load_gguf.py")
TOLERANCE = 2e-4
"""Largest difference of a logit of an F32 file: llama.cpp adds in another order than torch."""
FILE_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 7: "Q8_0", 32: "BF16"}
"""`llama_ftype` of llama.cpp; of others the number is reported."""


@dataclass(frozen=True)
class GgufChecked:
    """What llama.cpp made of the file; token ids are those of the certificate."""

    type: str
    logit_difference: float
    """Among the certified logits; bounded for F32 alone, other types are rounded."""
    tokens: int
    texts: int


def check_gguf(folder: Path, file: Path, python: str | None = None) -> GgufChecked:
    """Compare with the certificate in `folder`; `python` has llama-cpp-python.

    CorruptArtifact where token ids differ, or logits of an F32 file by more than `TOLERANCE`.
    """
    certificate = read_certificate(folder)
    if "scores" in certificate:
        raise InputError("is a reward model, which has no GGUF file", where=str(folder))
    if "form" in certificate:
        raise InputError(
            f"certifies {certificate['form']} weights, which are in no GGUF file",
            where=str(folder),
            hint="compare with the release that is not quantised",
        )
    if not file.is_file():
        raise InputError("is no file", where=str(file))
    with tempfile.TemporaryDirectory(prefix="ingot-gguf-") as temporary:
        questions, answers = Path(temporary, "questions.json"), Path(temporary, "answers.npz")
        rows = [certificate["tokens"]]
        questions.write_text(
            json.dumps({"texts": certificate["texts"], "rows": rows}), encoding="utf-8"
        )
        paths = [str(path) for path in (SCRIPT, file.resolve(), questions, answers)]
        _run([python or sys.executable, "-I", *paths], temporary, str(file))
        with np.load(answers) as stored:
            logits_LV = stored["logits_0"]
            kind = int(stored["file_type"])
            ids = [stored[f"ids_{n}"].tolist() for n in range(len(certificate["texts"]))]
    texts = zip(certificate["texts"], ids, certificate["ids"], strict=True)
    wrong = [text for text, theirs, ours in texts if theirs != ours]
    if wrong:
        raise CorruptArtifact(
            f"llama.cpp cuts {len(wrong)} of {len(ids)} texts into other tokens, first "
            f"{wrong[0][:40]!r}",
            where=str(file),
        )
    theirs_LT = np.take_along_axis(logits_LV, np.array(certificate["top_ids"]), axis=1)
    difference = float(np.abs(theirs_LT - np.array(certificate["top_logits"])).max())
    name = FILE_TYPES.get(kind, str(kind))
    if name == "F32" and not difference <= TOLERANCE:
        raise CorruptArtifact(
            f"logits of llama.cpp differ by {difference:.2g}, allowed {TOLERANCE:.0e}",
            where=str(file),
        )
    return GgufChecked(name, difference, len(certificate["tokens"]), len(ids))


def _run(command: list[str], folder: str, where: str) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            cwd=folder,
            check=False,
        )
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror}", where=where) from None
    except subprocess.TimeoutExpired:
        raise InputError(f"took over {TIMEOUT_SECONDS} s", where=where) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"llama.cpp cannot run it: {last}",
            where=where,
            hint="--python names a Python that has llama-cpp-python",
        )
