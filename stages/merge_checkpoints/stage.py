"""The merge_checkpoints stage: several checkpoints of one architecture to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import Execution
from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from stages.engine import Context, Input, Inputs, Many, Maybe, Stage
from stages.merge_checkpoints.config import MergeConfig

if TYPE_CHECKING:
    from torch import Tensor

    from stages.parallel.shard_files import ShardFiles


class MergeCheckpoints(Stage):
    """Merge the weights of checkpoints: a weighted mean, the arc between two, or TIES.

    All have one architecture and one tokenizer. Tensors are read, merged in float32 and written one
    at a time, in the type that the first checkpoint has, so memory holds the largest of them once
    for each checkpoint. A weighted mean of permanent checkpoints stands for a decay of the learning
    rate that was not run (`decay`).
    """

    name, version, reproducible = "merge_checkpoints", 1, "bytes"
    inputs = {"checkpoints": Many("checkpoint", at_least=2), "base": Maybe("checkpoint")}
    outputs = {"checkpoint": "checkpoint"}
    libraries = ("torch", "safetensors", "numpy")
    Config, Execution = MergeConfig, Execution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Inputs that the method cannot merge."""
        _check_inputs(config, len(inputs["checkpoints"]), bool(inputs.get("base")))

    def run(self, context: Context) -> None:
        """Check that the checkpoints fit together, then write tensor by tensor."""
        from stages.model.files import CONFIG_FILE, WEIGHTS_FILE, read_config
        from stages.model.tensor_files import open_tensors, specs_of, write_tensors
        from stages.tokens.chat_template import (
            TOKENIZER_CONFIG,
            read_template,
            read_template_record,
        )

        config: MergeConfig = context.config
        checkpoints, base = context.many("checkpoints"), context.maybe("base")
        _check_inputs(config, len(checkpoints), base is not None)
        everything = [*checkpoints, *([base] if base is not None else [])]
        _check_alike(everything)
        with ExitStack() as files:
            opened = [files.enter_context(open_tensors(one, WEIGHTS_FILE)) for one in everything]
            _check_tensors(everything, opened)
            specs = specs_of(opened[0])
            write_tensors(
                partial(context.open, "checkpoint"),
                WEIGHTS_FILE,
                specs,
                _merger(config, opened[: len(checkpoints)], opened[len(checkpoints) :], context),
            )
        last = checkpoints[-1]
        templates = [read_template(one) for one in checkpoints]
        if any(template != templates[-1] for template in templates):
            context.log.warning("the checkpoints have several chat templates: the last one's stays")
        context.write_json("checkpoint", CONFIG_FILE, read_config(last).plain())
        for name in ("tokenizer.json", TOKENIZER_CONFIG):
            if last.has(name):
                context.write_bytes("checkpoint", name, last.read_bytes(name))
        state = {
            "stage": context.attempt.stage,
            "training_step": 0,
            "tokens": 0,
            "chat_template": read_template_record(last),
            "merged": {
                "method": config.method,
                "checkpoints": [
                    {
                        "key": one.key,
                        "training_step": one.read_json("state.json").get("training_step"),
                        "share": share,
                    }
                    for one, share in zip(checkpoints, _shares(config, checkpoints), strict=True)
                ],
                "base": None if base is None else base.key,
            },
        }
        context.write_json("checkpoint", "state.json", state)
        context.count(checkpoints=len(checkpoints), tensors=len(specs))


def _shares(config: MergeConfig, checkpoints: Sequence[Input]) -> list[float]:
    if config.method == "slerp":
        return [1 - config.share, config.share]
    return config.shares(len(checkpoints))


def _check_inputs(config: MergeConfig, count: int, has_base: bool) -> None:
    if config.method == "slerp" and count != 2:
        raise UsageError(f"slerp is between two checkpoints, not {count}", where="method")
    if (config.method == "ties") != has_base:
        raise UsageError(
            "ties needs an input `base`, which the checkpoints began with"
            if not has_base
            else f"{config.method} reads no input `base`",
            where="method",
        )
    try:
        config.shares(count)
    except ValueError as error:
        raise UsageError(str(error), where="weights") from None


def _check_alike(checkpoints: Sequence[Input]) -> None:
    """InputError where architectures or tokenizers differ, with the fields."""
    first = checkpoints[0]
    shape: Mapping[str, Any] = first.read_json("model.json")
    vocabulary = first.read_bytes("tokenizer.json") if first.has("tokenizer.json") else None
    for other in checkpoints[1:]:
        theirs: Mapping[str, Any] = other.read_json("model.json")
        names = [n for n in sorted({*shape, *theirs}) if shape.get(n) != theirs.get(n)]
        if names:
            values = ", ".join(f"{n} {shape.get(n)} and {theirs.get(n)}" for n in names[:3])
            raise InputError(
                f"checkpoints {short(first.key)} and {short(other.key)} have other architectures: "
                f"{values}",
                where="checkpoints",
                hint="merge checkpoints that began with the same weights",
            )
        if (other.read_bytes("tokenizer.json") if other.has("tokenizer.json") else None) != (
            vocabulary
        ):
            raise InputError(
                f"checkpoints {short(first.key)} and {short(other.key)} have other tokenizers",
                where="checkpoints",
                hint="their embeddings mean different tokens",
            )


def _check_tensors(checkpoints: Sequence[Input], opened: Sequence[ShardFiles]) -> None:
    for checkpoint, tensors in zip(checkpoints[1:], opened[1:], strict=True):
        odd = sorted(set(tensors) ^ set(opened[0]))
        if odd:
            raise InputError(
                f"checkpoint {short(checkpoint.key)} has other tensors, first: '{odd[0]}'",
                where="checkpoints",
            )


def _merger(
    config: MergeConfig,
    opened: Sequence[ShardFiles],
    base: Sequence[ShardFiles],
    context: Context,
) -> Callable[[str], Tensor]:
    """What makes the merged tensor of a name."""
    import torch

    from stages.merge_checkpoints.merging import merge_linear, merge_slerp, merge_ties

    done, total = 0, len(opened[0])

    def merge(name: str) -> Tensor:
        nonlocal done
        context.check_stop()
        tensors = [one[name].float().numpy() for one in opened]
        if config.method == "slerp":
            merged = merge_slerp(tensors[0], tensors[1], config.share)
        elif config.method == "ties":
            start = base[0][name].float().numpy()
            shares = config.shares(len(tensors))
            merged = merge_ties(start, tensors, shares, config.density, config.scale)
        else:
            merged = merge_linear(tensors, config.shares(len(tensors)))
        done += 1
        context.progress(done, total, unit="tensors")
        kind = opened[0][name].dtype
        return torch.from_numpy(merged).to(kind)

    return merge
