"""The stage that makes a release of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.engine import Context, Many, One, Stage

if TYPE_CHECKING:
    from stages.engine import Input


class ExportConfig(Config):
    """What the release calls itself."""

    name: str = Field(
        default="ingot-model",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$",
        description="Name of the model, as a repository may be called.",
    )
    description: str = Field(
        default="A language model trained from scratch with Ingot.",
        description="What the model is, in a sentence or two, for the card.",
    )
    license: str | None = Field(
        default=None, description="Identifier of the licence on the Hub, e.g. apache-2.0."
    )
    languages: tuple[str, ...] = Field(
        default=(), description="ISO 639-1 codes of the languages of the training text."
    )


class Export(Stage):
    """Write a checkpoint as a folder of `transformers` with card and lineage, and prove it loads.

    The class is the native one of the model's family (Llama, Qwen3, OLMo 2, SmolLM3, DeepSeek-V3);
    `IngotForCausalLM` where none of them expresses the model. A fresh Python process, isolated,
    with `torch` and `transformers` alone, loads the folder by the Auto classes; its logits, token
    ids and rendered chat must be Ingot's own, or nothing is committed. No file names a date or a
    machine.
    """

    name, version, reproducible = "export", 3, "numerics"
    inputs = {"checkpoint": One("checkpoint"), "evaluation": Many("evaluation")}
    outputs = {"release": "release"}
    libraries = ("safetensors", "tokenizers", "torch", "transformers", "huggingface_hub")
    Config, Execution = ExportConfig, Execution

    def run(self, context: Context) -> None:
        from stages.export.card import Evaluation, model_card
        from stages.export.folder import model_folder, to_json
        from stages.export.verify import verify_release
        from stages.model.files import read_model, read_tokenizer

        checkpoint, evaluations = context.one("checkpoint"), context.many("evaluation")
        model, tokenizer = read_model(checkpoint), read_tokenizer(checkpoint)
        files = model_folder(model, tokenizer, checkpoint.read_json("tokenizer_config.json"))
        context.progress(1, 3, "steps")
        verified = verify_release(files, model, tokenizer, context.work)
        context.progress(2, 3, "steps")
        lineage = {
            "checkpoint": _named(checkpoint),
            "evaluations": [_named(evaluation) for evaluation in evaluations],
            "state": checkpoint.read_json("state.json"),
        }
        files["ingot.json"] = to_json({"lineage_format": 1, **lineage})
        measured = [Evaluation.read(evaluation) for evaluation in evaluations]
        card = model_card(context.config, model.config, lineage, measured, verified)
        files["README.md"] = card.encode()
        for name, content in sorted(files.items()):
            context.write_bytes("release", name, content)
        context.count(
            logit_difference=verified.logit_difference, probe_tokens=verified.probe_tokens
        )
        context.layout(device="cpu", dtype="float32", torch=verified.torch)
        context.progress(3, 3, "steps")


def _named(given: Input) -> dict[str, Any]:
    """How an input is found again in the store that made the release."""
    return {
        "stage": given.stage,
        "key": given.key,
        "output": given.output,
        "digest": given.digest,
    }
