"""What of packed conversations a model learns to say, of an artifact in the store.

Of a training step the sample clock of its run says which sequences it read; of packed conversations
by themselves, the first sequences are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_inputs
from flows.analysis.training_batches import open_run_data

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.training.masks import Masks


def read_masks(store: Store, manifest: Manifest, training_step: int | None, most: int) -> Masks:
    """Those of a training step of a pretraining run, or of what `pack_chat` made.

    At most `most` conversations come with their text. UsageError for an artifact that is neither,
    for a run without a training step, and for a step that the run does not have.
    """
    from stages.engine.inputs import Input
    from stages.training.masks import first_masks, masks_of
    from stages.training.token_shards import TokenShards

    if manifest.stage == "pack_chat":
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
            f"{manifest.stage} {short(manifest.key)} is no artifact of pack_chat, so a training "
            "step must be named",
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


def _tokenizer(store: Store, manifest: Manifest) -> Tokenizer:
    from stages.tokens.vocabulary import load_plain_tokenizer

    inputs = load_inputs(store, {"tokenizer": manifest.inputs["tokenizer"]})
    return load_plain_tokenizer(inputs["tokenizer"][0].read_bytes("tokenizer.json").decode())
