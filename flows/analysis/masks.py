"""What of packed conversations and of preference pairs a model learns, of an artifact in the store.

Of a training step the clock of its run says which sequences or pairs it read; of packed
conversations by themselves, and of a run on pairs, the first ones are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_inputs
from flows.analysis.training_batches import open_run_data
from stages.engine.protocol import stage_named

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.training.masks import Masks


PAIR_STAGES = ("preference", "dpo", "reward")


def read_masks(store: Store, manifest: Manifest, training_step: int | None, most: int) -> Masks:
    """Those of a training step of a run, of packed conversations or pairs, or of a run on pairs.

    At most `most` conversations or pairs come with their text. UsageError for an artifact that is
    none of them, for a pretraining run without a training step, and for a step that the run does
    not have.
    """
    from stages.engine.inputs import Input
    from stages.training.masks import first_masks, masks_of
    from stages.training.token_shards import TokenShards

    if manifest.stage in PAIR_STAGES:
        return _pair_masks(store, manifest, training_step, most)
    if manifest.stage in ("pack_chat", "pack_preferences"):
        if training_step is not None:
            raise UsageError(
                "packed conversations have no training steps",
                where="--training-step",
                hint="name the run that reads them, or leave it out",
            )
        packed = TokenShards([Input.from_manifest(store, manifest, "train")])
        return first_masks(packed, _tokenizer(store, manifest), most)
    if training_step is None:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} is no artifact of pack_chat or "
            "pack_preferences and no run of preference, dpo or reward, so a training step must be "
            "named",
            where="--training-step",
        )
    data = open_run_data(store, manifest, where="REF")
    where = f"--training-step {training_step}"
    if training_step > data.clock.steps:
        raise UsageError(f"the run has {data.clock.steps} training steps", where=where)
    if data.clock.skipped(training_step):
        raise UsageError("the run skips this training step: it read nothing", where=where)
    draw = data.clock.batch(training_step)
    tokenizer = _tokenizer(store, manifest)
    return masks_of(data.shards, draw.sources, draw.sequences, tokenizer, most)


def _pair_masks(store: Store, manifest: Manifest, training_step: int | None, most: int) -> Masks:
    from stages.preference.masks import first_pairs, pairs_of_step
    from stages.preference.pairs import PairReader

    config: Any = stage_named(manifest.stage).Config.parse(manifest.config, where="its config")
    roles = {role: manifest.inputs[role] for role in ("checkpoint", "preferences")}
    inputs = load_inputs(store, roles)
    reader = PairReader.from_config(config, inputs["checkpoint"][0])
    if training_step is None:
        return first_pairs(inputs["preferences"], reader, most)
    return pairs_of_step(inputs["preferences"], reader, config, training_step, most)


def _tokenizer(store: Store, manifest: Manifest) -> Tokenizer:
    from stages.tokens.vocabulary import load_plain_tokenizer

    inputs = load_inputs(store, {"tokenizer": manifest.inputs["tokenizer"]})
    return load_plain_tokenizer(inputs["tokenizer"][0].read_bytes("tokenizer.json").decode())
