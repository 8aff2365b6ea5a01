"""The stages that bring models along: a published model, an adapter beside a checkpoint."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import Config, Execution
from stages.engine import Context, Maybe, One, Stage
from stages.import_model.config import ImportModelConfig

if TYPE_CHECKING:
    from torch import Tensor

    from stages.import_model.files import CarriedTokenizer, ModelFiles
    from stages.model.config import ModelConfig


class ImportModel(Stage):
    """Read a published model from a snapshot of its files, and write it as a checkpoint.

    Safetensors and JSON alone are read: no pickle, no code of the model. The config must be one
    that the decoder expresses exactly; each tensor must be there, of its shape, finite, and of use.
    Weights go from file to file one at a time, in the type that they were published in, so memory
    holds the largest of them and the checkpoint is no larger than the model.
    With a `tokenizer` (of `import_tokenizer`) the checkpoint carries that one, else the one that
    is beside the model. Its chat template is copied as data.
    """

    name, version, reproducible = "import_model", 2, "bytes"
    inputs = {"snapshot": One("snapshot"), "tokenizer": Maybe("tokenizer")}
    outputs = {"checkpoint": "checkpoint"}
    libraries = ("torch",)
    Config, Execution = ImportModelConfig, Execution

    def run(self, context: Context) -> None:
        """Find, check, write."""
        from stages.engine.sources import snapshot_name, source_files
        from stages.import_model.files import find_files, find_tokenizer
        from stages.import_model.weights import DecoderWeights, open_tensors, vocabulary_rows
        from stages.model.files import CONFIG_FILE, WEIGHTS_FILE
        from stages.model.huggingface.families import from_config
        from stages.model.tensor_files import write_tensors

        files = find_files(source_files(context.one("snapshot")))
        published = from_config(files.config, where=files.config_where)
        snapshot = snapshot_name(context.one("snapshot"))
        tokenizer = find_tokenizer(context.maybe("tokenizer"), files, snapshot)
        rows = vocabulary_rows(published, tokenizer, new_tokens=context.config.new_tokens)
        with open_tensors(files) as tensors:
            weights = DecoderWeights(files, tensors, rows=rows)
            weights.check_tied()
            context.log.info("%s: %d tensors are as the config says", files.name, len(tensors))
            opened = partial(context.open, "checkpoint")
            write_tensors(opened, WEIGHTS_FILE, weights.specs, weights.reporting(context))
        config = published.model_copy(update={"vocabulary_size": rows})
        context.write_json("checkpoint", CONFIG_FILE, config.plain())
        for name, content in (tokenizer.files if tokenizer else {}).items():
            context.write_bytes("checkpoint", name, content)
        context.write_json("checkpoint", "state.json", _state(context, files, published, tokenizer))
        _log_warnings(context, files, published, tokenizer)


class ImportAdapter(Stage):
    """Merge an adapter that `peft` saved into the checkpoint that it was trained beside.

    LoRA and DoRA of the layers' matrices, from `adapter_config.json` and
    `adapter_model.safetensors`. Weights are read, merged in float32 and written one at a time, in
    the type of the checkpoint. Tokenizer and chat template stay the checkpoint's.
    """

    name, version, reproducible = "import_adapter", 1, "bytes"
    inputs = {"snapshot": One("snapshot"), "checkpoint": One("checkpoint")}
    outputs = {"checkpoint": "checkpoint"}
    libraries = ("torch", "safetensors")
    Config, Execution = Config, Execution

    def run(self, context: Context) -> None:
        """Check the adapter against its base, then write tensor by tensor."""
        from stages.engine.sources import snapshot_name, source_files
        from stages.import_model.adapter import find_adapter, open_adapter
        from stages.import_model.weights import SafetensorsFile
        from stages.model.files import CONFIG_FILE, WEIGHTS_FILE, read_config
        from stages.model.tensor_files import open_tensors, specs_of, write_tensors
        from stages.tokens.chat_template import read_template_record

        base, snapshot = context.one("checkpoint"), context.one("snapshot")
        settings, weights = find_adapter(source_files(snapshot))
        with weights.open() as file, open_tensors(base, WEIGHTS_FILE) as tensors:
            shape = read_config(base)
            adapter = open_adapter(settings, SafetensorsFile(file, where=weights.name), shape)
            if not adapter.check_base(tensors.__getitem__):
                context.log.warning(
                    "%s does not say which weights it belongs to: shapes alone were checked",
                    weights.name,
                )

            def tensor(name: str) -> Tensor:
                context.check_stop()
                module = name.removesuffix(".weight")
                whole = tensors[name]
                return adapter.merge(module, whole) if module in adapter.places else whole

            opened = partial(context.open, "checkpoint")
            write_tensors(opened, WEIGHTS_FILE, specs_of(tensors), tensor)
        context.write_json("checkpoint", CONFIG_FILE, shape.plain())
        for name in ("tokenizer.json", "tokenizer_config.json"):
            if base.has(name):
                context.write_bytes("checkpoint", name, base.read_bytes(name))
        state = {
            "stage": context.attempt.stage,
            "training_step": 0,
            "tokens": 0,
            "chat_template": read_template_record(base),
            "adapter": {
                "snapshot": snapshot_name(snapshot),
                "base": base.key,
                "matrices": len(adapter.places),
                "scale": adapter.scale,
            },
        }
        context.write_json("checkpoint", "state.json", state)
        context.count(matrices=len(adapter.places))


def _state(
    context: Context,
    files: ModelFiles,
    published: ModelConfig,
    tokenizer: CarriedTokenizer | None,
) -> dict[str, Any]:
    """Nothing was trained here; what it was made of."""
    from stages.engine.sources import snapshot_name
    from stages.tokens.chat_template import make_imported_record

    template = None if tokenizer is None else tokenizer.template
    return {
        "stage": context.attempt.stage,
        "training_step": 0,
        "tokens": 0,
        "chat_template": None
        if tokenizer is None or template is None
        else make_imported_record(template, tokenizer.template_snapshot),
        "origin": {
            "snapshot": snapshot_name(context.one("snapshot")),
            "model_type": files.config["model_type"],
            "files": files.digests,
            "published_rows": published.vocabulary_size,
            "tokenizer": None if tokenizer is None else tokenizer.origin,
        },
    }


def _log_warnings(
    context: Context,
    files: ModelFiles,
    published: ModelConfig,
    tokenizer: CarriedTokenizer | None,
) -> None:
    """Warn of what a person should know before the model is trained on."""
    from stages.model.huggingface.families import unread
    from stages.model.size import count_parameters

    left = unread(files.config, where=files.config_where)
    if left:
        context.log.warning("%s says what is not read: %s", files.config_where, ", ".join(left))
    if "auto_map" in files.config:
        context.log.warning("%s names code of its own (auto_map): not run", files.config_where)
    if tokenizer is None:
        context.log.warning("there is no tokenizer: nothing can be packed for this checkpoint")
    elif tokenizer.origin == "snapshot":
        context.log.info("the tokenizer is the model's own; import_tokenizer adds what it lacks")
    context.count(
        parameters=count_parameters(published).total,
        vocabulary_size=0 if tokenizer is None else tokenizer.vocabulary_size,
        chat_templates=0 if tokenizer is None or tokenizer.template is None else 1,
    )
