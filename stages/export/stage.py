"""The stage that makes a release of a checkpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import Execution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, Maybe, Stage, check_all
from stages.export.config import ExportConfig, check_library

QUANTISATION = "quantization_config"
"""Entry of `config.json`."""

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stages.engine import Input
    from stages.export.card_scores import Evaluation
    from stages.export.folder import ReleasedWeights
    from stages.export.provenance import Origin, TrainingData
    from stages.model.config import ModelConfig


class Export(Stage):
    """Write a checkpoint as a folder of `transformers` with card and lineage, and prove it loads.

    The class is the native one of the model's family (Llama, Qwen3, OLMo 2, SmolLM3, DeepSeek-V3);
    `IngotForCausalLM` where none of them expresses the model. Weights go from the checkpoint's file
    to shards one tensor at a time, in the type that they are stored in or a stated one. A fresh
    Python process, isolated, with `torch` and `transformers` alone, loads the folder by the Auto
    classes; its logits, token ids and rendered chat must be Ingot's own, or nothing is committed.
    A certificate in the folder lets anybody repeat that check (`ingot verify-release`).
    A reward model is released for `AutoModelForSequenceClassification` with one label; its scores
    must be Ingot's own, each sequence alone and in a padded batch.
    The matrices of the layers may be stored in int8 (torchao) or int4 (auto-round, which reads
    calibration tokens); the check is then of the numbers that these forms hold.
    Only evaluations of the very checkpoint that is released are its scores. No file names a date or
    a machine.
    """

    name, version, reproducible = "export", 5, "numerics"
    inputs = {
        "checkpoint": Maybe("checkpoint"),
        "reward_model": Maybe("reward_model"),
        "evaluation": Many("evaluation"),
        "calibration": Many("token_shards"),
    }
    outputs = {"release": "release"}
    libraries = (
        "auto-round", "huggingface_hub", "safetensors", "tokenizers", "torch", "torchao",
        "transformers",
    )  # fmt: skip
    Config, Execution = ExportConfig, Execution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """One model, and what a quantised form needs."""
        check_all(
            lambda: _check_one(bool(inputs.get("checkpoint")), bool(inputs.get("reward_model"))),
            lambda: _check_form(
                config, bool(inputs.get("calibration")), bool(inputs.get("reward_model"))
            ),
        )

    def run(self, context: Context) -> None:
        from stages.export.card import model_card
        from stages.export.card_scores import Evaluation
        from stages.export.certificate import CERTIFICATE, make_certificate
        from stages.export.folder import (
            ReleasedModel,
            ReleasedWeights,
            StoredWeights,
            model_folder,
            to_json,
        )
        from stages.export.provenance import Provenance
        from stages.export.verify import verify_release, write_probes, write_reward_probes
        from stages.model.decoder import Decoder
        from stages.model.files import read_config, read_tokenizer
        from stages.model.reward import RewardModel

        config: ExportConfig = context.config
        language_model, scorer = context.maybe("checkpoint"), context.maybe("reward_model")
        _check_one(language_model is not None, scorer is not None)
        checkpoint, evaluations = language_model or scorer, context.many("evaluation")
        assert checkpoint is not None
        reward = scorer is not None
        _check_form(config, bool(context.many("calibration")), reward)
        model_class: type[Decoder] = RewardModel if reward else Decoder
        tokenizer = read_tokenizer(checkpoint)
        described = checkpoint.read_json("tokenizer_config.json")
        release, probes = (_empty(context.work / name) for name in ("release", "probes"))
        shape = read_config(checkpoint)
        with StoredWeights.opened(checkpoint, shape, model_class) as stored, ExitStack() as stack:
            weights = ReleasedWeights.plan(shape, stored, config.dtype, reward=reward)
            files = model_folder(shape, tokenizer, described, weights.dtype, reward=reward)
            if config.quantise is not None:
                vocabulary = tokenizer.get_vocab_size()
                quantised = _quantise(context, weights, files, shape, vocabulary)
                weights = stack.enter_context(quantised)
                fields = json.loads(files["config.json"])
                files["config.json"] = to_json({**fields, QUANTISATION: weights.description})
            model = ReleasedModel(
                shape, stored, config.dtype, model_class=model_class, quantised=weights.numbers()
            )
            write = write_reward_probes if reward else write_probes
            tokens = write(model, tokenizer, described, probes)

            def check(done: int) -> None:
                context.check_stop()
                context.progress(done, len(weights.specs) + 1, "tensors")

            names = weights.write(release, config.max_shard_bytes, check)
        for name, content in files.items():
            (release / name).write_bytes(content)
        verified = verify_release(
            release,
            probes,
            shape,
            tokens,
            reward=reward,
            form=config.quantise,
            outside_parameters=weights.outside_parameters,
        )

        provenance = Provenance.read(checkpoint)
        measured = [Evaluation.read(evaluation, provenance) for evaluation in evaluations]
        data, origins = provenance.training_data(), provenance.origins()
        lineage = _lineage(checkpoint, evaluations, measured, data, origins)
        if context.many("calibration"):
            lineage["calibration"] = [_full_name(one) for one in context.many("calibration")]
        card = model_card(
            config,
            shape,
            weights.dtypes,
            lineage,
            data,
            origins,
            measured,
            verified,
            rounded=model.rounded,
            reward=reward,
        )
        files["ingot.json"] = to_json({"lineage_format": 2, **lineage})
        files["README.md"] = card.encode()
        for name in ("ingot.json", "README.md"):
            (release / name).write_bytes(files[name])
        certificate = make_certificate(
            release, [*names, *files], probes, verified, form=config.quantise
        )
        files[CERTIFICATE] = to_json(certificate)
        for name in names:
            with context.open("release", name) as writer, (release / name).open("rb") as file:
                shutil.copyfileobj(file, writer, 4 * 2**20)
        for name, content in sorted(files.items()):
            context.write_bytes("release", name, content)
        context.count(
            logit_difference=verified.logit_difference,
            probe_tokens=verified.probe_tokens,
            weight_files=sum(name.endswith(".safetensors") for name in names),
            weight_bytes=sum(spec.bytes for spec in weights.specs.values()),
        )
        context.layout(device="cpu", dtype="float32", torch=verified.torch)
        context.progress(len(weights.specs) + 1, len(weights.specs) + 1, "tensors")


def _check_one(language_model: bool, reward_model: bool) -> None:
    if language_model == reward_model:
        raise UsageError(
            "releases one model: a checkpoint or a reward model",
            where="inputs",
            hint="name one of them",
        )


def _check_form(config: ExportConfig, calibration: bool, reward: bool) -> None:
    """UsageError for a form without what it needs, or calibration tokens that nothing reads."""
    if calibration != (config.quantise == "int4"):
        raise UsageError(
            "int4 needs calibration tokens" if not calibration else "calibrates int4 alone",
            where="export.quantise",
            hint="give packed training text to role `calibration`, with quantise: int4",
        )
    if config.quantise is None:
        return
    check_library(config.quantise)
    if reward:
        raise UsageError("reward models are not quantised", where="export.quantise")
    if config.quantise == "int4" and config.dtype != "float16":
        raise UsageError(
            f"the rest of an int4 release is float16, not {config.dtype}",
            where="export.dtype",
            hint="set dtype: float16",
        )


@contextmanager
def _quantise(
    context: Context,
    plain: ReleasedWeights,
    files: dict[str, bytes],
    shape: ModelConfig,
    vocabulary: int,
) -> Iterator[ReleasedWeights]:
    """The weights in the form that the config names, until the block ends."""
    from stages.export.int4 import calibration_tokens, check_groups, tune_int4
    from stages.export.quantised import layer_matrices, read_int4, to_int8

    config: ExportConfig = context.config
    if config.quantise == "int8":
        yield to_int8(plain, shape)
        return
    check_groups(plain, list(layer_matrices(shape).values()), config.int4_group)
    tokens = calibration_tokens(context.many("calibration"), shape.context, vocabulary)
    model = _empty(context.work / "unquantised")
    plain.write(model, config.max_shard_bytes, lambda _: context.check_stop())
    for name, content in files.items():
        (model / name).write_bytes(content)
    tuned = tune_int4(
        model,
        tokens,
        _empty(context.work / "int4"),
        group=config.int4_group,
        steps=config.int4_steps,
        check=context.check_stop,
    )
    shutil.rmtree(model)
    with read_int4(plain, shape, tuned) as weights:
        yield weights


def _lineage(
    checkpoint: Input,
    evaluations: Sequence[Input],
    measured: Sequence[Evaluation],
    data: Sequence[TrainingData],
    origins: Sequence[Origin],
) -> dict[str, Any]:
    """The content of `ingot.json`: full names of what the release was made of."""
    from stages.export.provenance import full_name

    return {
        "checkpoint": _full_name(checkpoint),
        "evaluations": [
            {
                **_full_name(source),
                "measured": [full_name(one) for one in evaluation.checkpoints],
                "of_this_release": evaluation.relation == "release",
            }
            for source, evaluation in zip(evaluations, measured, strict=True)
        ],
        "training_data": [one.plain() for one in data],
        "began_with": [one.plain() for one in origins],
        "state": checkpoint.read_json("state.json"),
    }


def _empty(folder: Path) -> Path:
    """A folder with nothing in it: a run that was killed may have left files of another layout."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _full_name(artifact: Input) -> dict[str, Any]:
    """How an input is found again in the store that made the release."""
    return {
        "stage": artifact.stage,
        "key": artifact.key,
        "output": artifact.output,
        "digest": artifact.digest,
    }
