"""A teacher's likeliest tokens, over parts of the files of token shards.

Shapes: B rows, L tokens of a row, N = B · L, M of them with a target, D width, K tokens on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.model.decoder import Decoder
from stages.model.files import read_model
from stages.training.devices import current_device
from stages.training.distillation import log_probs_of_classes, record_type
from stages.training.rows import on_device
from stages.training.token_shards import IGNORED, Batch, TokenShards

if TYPE_CHECKING:
    from stages.engine import Input, ShardOutput

SCRATCH = "records"
_TOKENS_OF_PART = 2**16
"""What a run that is killed does again."""
_LOGITS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Part:
    """Some sequences of a token file: `first` is counted within its source."""

    id: str
    path: str
    source: int
    first: int
    sequences: int


def list_parts(shards: TokenShards, described: Any) -> list[Part]:
    """All sequences in parts, file by file; `described` is the content of `shards.json`."""
    parts = []
    for number, source in enumerate(shards.sources):
        size = max(1, _TOKENS_OF_PART // shards.lengths[source])
        begin = 0
        for file, shard in enumerate(described["sources"][source]["shards"]):
            for first in range(0, shard["sequences"], size):
                count = min(size, shard["sequences"] - first)
                name = f"source-{number:03d}-{file:05d}-{first // size:06d}"
                parts.append(Part(name, shard["file"], number, begin + first, count))
            begin += shard["sequences"]
    return parts


@torch.no_grad()
def records_of(model: Decoder, batch: Batch, vocabulary: int, top: int) -> NDArray[Any]:
    """[B, L] Records (see `record_type`) of a batch under `model`; zeros without a target.

    Ids are below `vocabulary`; rows of the output layer beyond it belong to the rest.
    """
    device = next(model.parameters()).device
    places_M = np.flatnonzero(batch.targets_BL.ravel() != IGNORED)
    chosen_M = on_device(places_M, device)

    def likeliest(x_BLD: Tensor, matrix_VD: Tensor) -> tuple[Tensor, Tensor]:
        x_MD = x_BLD.flatten(0, 1).index_select(0, chosen_M)
        ids, log_probs = [], []
        for part in x_MD.split(max(1, _LOGITS_AT_ONCE // len(matrix_VD))):
            logits = model.logits(part, matrix_VD).float()
            ids.append(logits[:, :vocabulary].topk(top, dim=-1).indices)
            log_probs.append(log_probs_of_classes(logits, ids[-1]))
        return torch.cat(ids), torch.cat(log_probs)

    records_N = np.zeros(batch.tokens_BL.size, dtype=record_type(top))
    if len(places_M):
        tokens_BL = on_device(batch.tokens_BL.astype(np.int64), device)
        documents_BL = on_device(batch.documents_BL, device)
        ids_MK, log_probs_MC = model(tokens_BL, documents_BL=documents_BL, output=likeliest)
        records_N["ids"][places_M] = ids_MK.cpu().numpy()
        records_N["log_probs"][places_M] = log_probs_MC.cpu().numpy()
    return records_N.reshape(batch.tokens_BL.shape)


def write_part(
    part: Part,
    out: ShardOutput,
    *,
    train: Input,
    checkpoint: Input,
    top: int,
    batch_tokens: int,
    threads: int,
    device: str,
) -> dict[str, Any]:
    """Write the records of a part to scratch; returns sums over its targets."""
    shards = TokenShards([train])
    rows = max(1, batch_tokens // shards.lengths[shards.sources[part.source]])
    place = torch.device(device)
    torch.set_num_threads(threads)
    targets, entropy, others = 0, 0.0, 0.0
    with current_device(place), out.open_scratch(SCRATCH) as file:
        model = _hold_model(checkpoint, place)
        for first in range(part.first, part.first + part.sequences, rows):
            out.check_stop()
            numbers = np.arange(first, min(first + rows, part.first + part.sequences))
            batch = shards.batch(np.full(len(numbers), part.source), numbers)
            records_BL = records_of(model, batch, shards.vocabulary_size, top)
            file.write(records_BL.tobytes())
            log_probs = records_BL["log_probs"][batch.targets_BL != IGNORED].astype(np.float64)
            targets += len(log_probs)
            entropy -= float((np.exp(log_probs) * log_probs).sum())
            others += float(np.exp(log_probs[:, -1]).sum())
    return {"targets": targets, "entropy": entropy, "others": others}


_held: dict[tuple[str, str], Decoder] = {}


def _hold_model(checkpoint: Input, device: torch.device) -> Decoder:
    """The teacher, read once for all parts that a process does."""
    name = checkpoint.digest, str(device)
    if name not in _held:
        _held.clear()
        _held[name] = read_model(checkpoint).to(device).eval()
    return _held[name]


def summarize(parts: Sequence[Part], values: Sequence[Any], shards: TokenShards) -> dict[str, Any]:
    """By source: targets, and over them the mean entropy on record and probability of the rest."""
    by_source: dict[str, Any] = {}
    for number, source in enumerate(shards.sources):
        own = [value for part, value in zip(parts, values, strict=True) if part.source == number]
        targets = sum(value["targets"] for value in own)
        by_source[source] = {
            "targets": targets,
            **{
                name: sum(value[name] for value in own) / max(targets, 1)
                for name in ("entropy", "others")
            },
        }
    return by_source
