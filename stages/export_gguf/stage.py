"""The stage that writes a model as one GGUF file."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import Execution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Maybe, Stage
from stages.engine.protocol import check_all
from stages.export_gguf.config import GgufConfig

if TYPE_CHECKING:
    from stages.engine.protocol import Upstream


class ExportGguf(Stage):
    """Write a checkpoint or a release as one GGUF file, which llama.cpp and Ollama run.

    Architectures are those of llama.cpp that Ingot's families have: Llama, Qwen 3, OLMo 2 and
    SmolLM3. The name of the pre-tokenizer is written from the tokenizer's own structure, so a
    tokenizer that was trained here needs no entry in a table of llama.cpp's. A model or a
    vocabulary that llama.cpp does not express is refused by name before anything is written.
    """

    name, version, reproducible = "export_gguf", 1, "bytes"
    inputs = {"checkpoint": Maybe("checkpoint"), "release": Maybe("release")}
    outputs = {"gguf": "gguf"}
    libraries = ("gguf", "numpy", "safetensors", "tokenizers", "torch")
    Config, Execution = GgufConfig, Execution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """One input; the extra is there; what is known of the model and its tokenizer fits."""
        check_all(
            _check_installed,
            lambda: _check_one(bool(inputs.get("checkpoint")), bool(inputs.get("release"))),
            lambda: _check_shape(inputs),
        )

    def run(self, context: Context) -> None:
        """Refuse first, then write tensor by tensor."""
        from stages.export_gguf.architecture import require
        from stages.export_gguf.ollama import modelfile
        from stages.export_gguf.source import Source
        from stages.export_gguf.tensors import write_file
        from stages.export_gguf.vocabulary import Vocabulary

        config: GgufConfig = context.config
        checkpoint, release = context.maybe("checkpoint"), context.maybe("release")
        _check_installed()
        _check_one(checkpoint is not None, release is not None)
        made_of = checkpoint or release
        assert made_of is not None
        where = f"{made_of.kind} {made_of.key[:12]}"
        source = Source.read(made_of)
        architecture = require(source.config, where=where)
        vocabulary = Vocabulary.read(
            source.tokenizer, source.tokenizer_config, source.config.vocabulary_size, where=where
        )

        def check(done: int, total: int) -> None:
            context.check_stop()
            context.progress(done, total, "tensors")

        file = f"{config.name}-{config.type}.gguf"
        path = context.work / file
        with source.weights() as weight:
            planned = write_file(
                path, config.name, source.config, vocabulary, weight, config.type, check
            )
        with context.open("gguf", file) as writer, path.open("rb") as written:
            shutil.copyfileobj(written, writer, 4 * 2**20)
        path.unlink()
        text = modelfile(file, source.config.context, vocabulary.template)
        context.write_bytes("gguf", "Modelfile", text.encode())
        lineage = {
            "lineage_format": 1,
            "architecture": architecture,
            "pre_tokenizer": vocabulary.pre_tokenizer,
            "types": _counts([one.type.name for one in planned]),
            made_of.kind: {
                "stage": made_of.stage,
                "key": made_of.key,
                "output": made_of.output,
                "digest": made_of.digest,
            },
        }
        context.write_json("gguf", "ingot.json", lineage)
        context.count(
            tensors=len(planned),
            tensor_bytes=sum(one.bytes for one in planned),
            unused_tokens=vocabulary.unused,
        )
        context.progress(len(planned), len(planned), "tensors")


def _counts(names: list[str]) -> dict[str, int]:
    return {name: names.count(name) for name in sorted(set(names))}


def _check_installed() -> None:
    if find_spec("gguf") is None:
        raise UsageError(
            "gguf is not installed", where="export_gguf", hint="pip install 'ingot[gguf]'"
        )


def _check_one(checkpoint: bool, release: bool) -> None:
    if checkpoint == release:
        raise UsageError(
            f"reads a checkpoint or a release, {'not both' if checkpoint else 'and got neither'}",
            where="inputs",
        )


def _check_shape(inputs: Inputs) -> None:
    """UsageError for an architecture or a tokenizer that is known from configs and does not fit."""
    from stages.export_gguf.architecture import require
    from stages.export_gguf.vocabulary import refusal
    from stages.training.run_plan import changes_rope, model_shape

    made_of = [*inputs.get("checkpoint", ()), *inputs.get("release", ())]
    for one in made_of:
        checkpoint = one if one.kind == "checkpoint" else next(iter(one.inputs["checkpoint"]), None)
        if checkpoint is None:
            continue
        shape = model_shape(checkpoint)
        if shape is not None and not changes_rope(checkpoint):
            require(shape.with_vocabulary(1), where=one.name)
        algorithm = _planned_algorithm(checkpoint)
        if algorithm not in (None, "bpe"):
            raise refusal(f"its model is {algorithm}, not a byte-level BPE", where=one.name)


def _planned_algorithm(upstream: Upstream) -> str | None:
    """`algorithm` of the tokenizer stage above, where there is one."""
    if upstream.kind == "tokenizer":
        return getattr(upstream.config, "algorithm", None)
    for role in ("tokenizer", "checkpoint"):
        for one in upstream.inputs.get(role, ()):
            return _planned_algorithm(one)
    return None
