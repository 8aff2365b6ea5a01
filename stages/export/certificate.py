"""The certificate of a release: what its files hold and compute, and the check that repeats it.

`certificate.json` lies in the release. It has the checksum of every other file; texts with their
token ids; of a row of tokens the largest logits of each place, and the tokens that the model goes
on with; the chat template, and a chat as it renders it. All of it is Ingot's own result in float32.

The check runs no code of the folder. It loads copies of the named files alone, from a folder of its
own, in a process that reads safetensors and JSON only; a template is rendered only if it is the one
that Ingot writes. Of a reward model it has scores of sequences in place of logits. What the
certificate says is not signed: it proves that a copy is whole and that another environment computes
alike, not who made it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.export.config import LIBRARIES, Form
from stages.export.verify import Verification, largest_tolerance, run_script
from stages.tokens.chat import CHAT_TEMPLATE

CERTIFICATE, FORMAT = "certificate.json", 1
LARGEST_BYTES = 64 * 2**20
TOP = 8
"""Logits of each place that are kept."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(safetensors|json|jinja|md)")
"""Files of a release; none of them is code."""
OWN_MODULE = "stages.model.huggingface.auto_classes"


def make_certificate(
    release: Path,
    names: list[str],
    probes: Path,
    verified: Verification,
    *,
    form: Form | None = None,
) -> dict[str, Any]:
    """Of the files `names` in `release`, and what was written into `probes` and compared.

    `form` is that of quantised weights.
    """
    from safetensors.torch import load_file

    probe = json.loads((probes / "probe.json").read_bytes())
    expected = load_file(probes / "expected.safetensors")
    results = {
        "tokens": expected["tokens"].flatten().tolist(),
        "written": verified.written,
        "margin": verified.margin,
    }
    if "scores" in expected:
        results |= {name: expected[name].tolist() for name in ("lengths", "scores")}
    else:
        best = expected["logits"][0].topk(min(TOP, expected["logits"].shape[-1]))
        results |= {"top_ids": best.indices.tolist(), "top_logits": best.values.tolist()}
    return {
        "certificate_format": FORMAT,
        "files": {name: file_facts(release / name) for name in sorted(names)},
        "tolerance": verified.tolerance,
        "texts": list(probe["texts"]),
        "ids": probe["ids"],
        "chat": {key: probe[key] for key in ("messages", "rendered", "rendered_ids")},
        "chat_template": probe["chat_template"],
        **results,
        "tried": [{"transformers": verified.transformers, "torch": verified.torch}],
        **({"form": form} if form is not None else {}),
    }


def file_facts(path: Path) -> dict[str, Any]:
    """Bytes and sha256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


@dataclass(frozen=True)
class Repeated:
    """What a check found where everything was as the certificate says."""

    files: int
    bytes: int
    uncertified: list[str]
    """Files of the folder that the certificate does not name; none of them was loaded."""
    logit_difference: float
    """Of a reward model, of a score."""
    tokens: int
    generation: str
    """`equal`, `too close to compare`, or `none` of a reward model."""
    transformers: str
    torch: str
    form: Form | None
    """int8 or int4, where the weights are quantised."""


def read_certificate(folder: Path) -> dict[str, Any]:
    """The content of `certificate.json`; InputError where there is none, or none of a release."""
    path = folder / CERTIFICATE
    if not path.is_file():
        raise InputError(
            "has no certificate.json", where=str(folder), hint="`export` writes it with a release"
        )
    if path.stat().st_size > LARGEST_BYTES:
        raise InputError(f"over {LARGEST_BYTES:,} bytes", where=str(path))
    try:
        content = json.loads(path.read_bytes())
        if content["certificate_format"] != FORMAT:
            raise ValueError(f"certificate_format is {content['certificate_format']!r}")
        _check_types(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"is no certificate: {error}"[:200], where=str(path)) from None
    return dict(content)


def _check_types(content: Mapping[str, Any]) -> None:
    """ValueError, KeyError or TypeError for what the check could not work with."""
    for name, facts in content["files"].items():
        if not NAME.fullmatch(name) or name == CERTIFICATE:
            raise ValueError(f"a release has no file {name[:80]!r}")
        if type(facts["bytes"]) is not int or not isinstance(facts["sha256"], str):
            raise ValueError(f"no size or checksum of {name!r}")
    for needed in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if needed not in content["files"]:
            raise ValueError(f"does not name {needed}")
    if content["chat"]["messages"] and content["chat_template"] != CHAT_TEMPLATE:
        raise ValueError("a chat of a template that Ingot does not write is not rendered")
    if content.get("form") not in (None, *LIBRARIES):
        raise ValueError(f"form is {str(content['form'])[:80]!r}")
    _check_tolerance(content)
    if "scores" in content:
        lengths = content["lengths"]
        if not lengths or len(lengths) != len(content["scores"]):
            raise ValueError("sequences and scores differ in number")
        if min(lengths) < 1 or sum(lengths) != len(content["tokens"]):
            raise ValueError("tokens are not those of the sequences")
        return
    rows, ids, values = content["tokens"], content["top_ids"], content["top_logits"]
    if not rows or not len(rows) == len(ids) == len(values):
        raise ValueError("tokens and logits differ in number")


def _check_tolerance(content: Mapping[str, Any]) -> None:
    """ValueError for a margin or a tolerance that no release has."""
    largest = max((abs(one) for row in content.get("top_logits", ()) for one in row), default=0.0)
    most = largest_tolerance(content.get("form"), largest)
    if content["margin"] < 0 or not 0 < content["tolerance"] <= most:
        raise ValueError(f"tolerance is not in 0 … {most:.2g}")


def differing_files(folder: Path, files: Mapping[str, Any]) -> list[str]:
    """A line for each file that is not what the certificate says."""
    lines = []
    for name, facts in sorted(files.items()):
        path = folder / name
        if not path.is_file():
            lines.append(f"{name}: missing")
        elif path.stat().st_size != facts["bytes"]:
            lines.append(f"{name}: {path.stat().st_size:,} bytes, certified {facts['bytes']:,}")
        elif (found_digest := file_facts(path)["sha256"]) != facts["sha256"]:
            lines.append(f"{name}: sha256 {found_digest[:12]}, certified {facts['sha256'][:12]}")
    return lines


def repeat_check(folder: Path, python: str | None = None) -> Repeated:
    """Compare files, then load them in a fresh process of `python`, by default of this one.

    CorruptArtifact names each file that differs, and then nothing is loaded; or each result.
    """
    certificate = read_certificate(folder)
    lines = differing_files(folder, certificate["files"])
    if lines:
        raise CorruptArtifact(
            f"{len(lines)} of {len(certificate['files'])} files are not what is certified: "
            + "; ".join(lines),
            where=str(folder),
            hint="fetch the release again; nothing was loaded",
        )
    with tempfile.TemporaryDirectory(prefix="ingot-release-") as temporary:
        release, probes = Path(temporary, "release"), Path(temporary, "probes")
        release.mkdir()
        probes.mkdir()
        for name in certificate["files"]:
            _place(folder / name, release / name)
        _write_probes(certificate, probes)
        register = _own_class(release)
        result = run_script(release, probes, register, python or sys.executable)
    problems = [] if result["ids_equal"] else ["token ids differ"]
    if not result["chat_equal"]:
        problems.append("the chat differs")
    if not result["logit_difference"] <= certificate["tolerance"]:  # NaN is a difference too
        problems.append(
            f"{'scores' if 'scores' in certificate else 'logits'} differ by "
            f"{result['logit_difference']:.2g}, "
            f"allowed {certificate['tolerance']:.0e}"
        )
    generation = "equal"
    if certificate["margin"] <= 2 * certificate["tolerance"]:
        generation = "none" if "scores" in certificate else "too close to compare"
    elif result["written"] != certificate["written"]:
        problems.append(f"wrote tokens {result['written']}, certified {certificate['written']}")
    if problems:
        raise CorruptArtifact(
            f"by transformers {result['transformers']} and torch {result['torch']}: "
            f"{'; '.join(problems)}",
            where=str(folder),
        )
    named = {*certificate["files"], CERTIFICATE}
    return Repeated(
        files=len(certificate["files"]),
        bytes=sum(facts["bytes"] for facts in certificate["files"].values()),
        uncertified=sorted(path.name for path in folder.iterdir() if path.name not in named),
        logit_difference=result["logit_difference"],
        tokens=len(certificate["tokens"]),
        generation=generation,
        transformers=result["transformers"],
        torch=result["torch"],
        form=certificate.get("form"),
    )


def _place(source: Path, target: Path) -> None:
    """A link to the file, or a copy where the temporary folder cannot have one."""
    try:
        target.symlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, target)


def _write_probes(certificate: Mapping[str, Any], folder: Path) -> None:
    """What the script compares with."""
    import torch
    from safetensors.torch import save_file

    probe = {
        **certificate["chat"],
        "texts": certificate["texts"],
        "ids": certificate["ids"],
        "chat_template": certificate["chat_template"],
        "new_tokens": len(certificate["written"]),
    }
    (folder / "probe.json").write_text(json.dumps(probe), encoding="utf-8")
    try:
        if "scores" in certificate:
            tensors = {
                "tokens": torch.tensor(certificate["tokens"], dtype=torch.long),
                "lengths": torch.tensor(certificate["lengths"], dtype=torch.long),
                "scores": torch.tensor(certificate["scores"], dtype=torch.float32),
            }
        else:
            tensors = {
                "tokens": torch.tensor([certificate["tokens"]], dtype=torch.long),
                "top_ids": torch.tensor([certificate["top_ids"]], dtype=torch.long),
                "top_logits": torch.tensor([certificate["top_logits"]], dtype=torch.float32),
            }
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"is no certificate: {error}"[:200], where=CERTIFICATE) from None
    save_file(tensors, folder / "expected.safetensors")


def _own_class(release: Path) -> str | None:
    """Ingot's module that a model of no native class needs; no file says which module."""
    config = json.loads((release / "config.json").read_bytes())
    return OWN_MODULE if config.get("model_type") == "ingot" else None
