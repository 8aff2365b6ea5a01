"""What a GGUF file contributes to a report."""

from __future__ import annotations

from typing import Any

from artifacts_schema.identity import short
from stages.engine.page import Artifact, Cell, Figure, TableFigure, TextFigure, make_facts
from stages.export_gguf.ollama import quantize_command


def summary(artifact: Artifact) -> list[Figure]:
    """Where the file lies, and how Ollama takes it."""
    return [TextFigure("gguf", artifact.place("gguf")), _running(artifact, "run it")]


def page(artifact: Artifact) -> list[Figure]:
    """The file, what is in it, how to run it, how to make a K-quant of it."""
    name, kind = file_name(artifact).removesuffix(".gguf").rsplit("-", 1)
    return [
        TextFigure("Folder of the GGUF file", artifact.place("gguf")),
        facts(artifact),
        _running(artifact, "How to run it"),
        TextFigure("K-quants", quantize_command(name, kind)),
    ]


def file_name(artifact: Artifact) -> str:
    """Name of the GGUF file."""
    files = artifact.manifest.output("gguf").files
    return next(file.path for file in files if file.path.endswith(".gguf"))


def facts(artifact: Artifact) -> TableFigure:
    """What llama.cpp reads in it."""
    lineage: dict[str, Any] = artifact.output("gguf").read_json("ingot.json")
    kind = "release" if "release" in lineage else "checkpoint"
    made_of = f"{lineage[kind]['stage']} {short(lineage[kind]['key'])}"
    types = ", ".join(f"{count} {name}" for name, count in lineage["types"].items())
    counts = artifact.manifest.counts
    rows: list[tuple[str, Cell]] = [
        ("file", file_name(artifact)),
        ("made of", made_of),
        ("architecture", lineage["architecture"]),
        ("pre-tokenizer", lineage["pre_tokenizer"]),
        ("tensors by type", types),
        ("bytes of tensors", counts.get("tensor_bytes")),
        ("rows without a token", counts.get("unused_tokens")),
    ]
    return make_facts("In the GGUF file", rows)


def _running(artifact: Artifact, title: str) -> TextFigure:
    file = file_name(artifact)
    return TextFigure(
        title,
        f"llama-cli -m {file}\nollama create {file.removesuffix('.gguf').lower()} -f Modelfile",
    )
