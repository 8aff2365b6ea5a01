"""Whether a model continues a prompt word for word, from one forward pass.

Greedy decoding gives back a continuation exactly if, and only if, each of its tokens is the
likeliest one after the true tokens before it: up to the first token that is not, both see the same
text. So nothing has to be generated. The share of such tokens says more where nothing is extracted
whole.

Shapes: B rows, L tokens of a row, C tokens of the continuation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.memorisation.sequences import Chosen, TokenFile
from stages.model.decoder import Decoder
from stages.model.files import read_model
from stages.scoring.observations import Observation
from stages.training.devices import current_device

if TYPE_CHECKING:
    from stages.engine import Input, ShardOutput, ShardResult

EXTRACTED, PREDICTED = "extracted", "tokens_predicted"
"""Metrics: the share of sequences given back whole, and of tokens predicted."""
SEQUENCES_OF_PART = 256
"""What a run that is killed does again."""
_PLACES_OF_LOGITS = 1024


@dataclass(frozen=True)
class Part:
    """Some sequences of a group."""

    id: str
    group: str
    places: tuple[tuple[int, str, int, int], ...]


def list_parts(groups: Sequence[Chosen]) -> list[Part]:
    """The drawn sequences of all groups in parts."""
    return [
        Part(
            f"group-{number:02d}-{start // SEQUENCES_OF_PART:05d}",
            group.name,
            tuple(group.places[start : start + SEQUENCES_OF_PART]),
        )
        for number, group in enumerate(groups)
        for start in range(0, len(group.places), SEQUENCES_OF_PART)
    ]


@torch.no_grad()
def predicted_tokens(
    model: Decoder,
    tokens_BL: NDArray[np.int64],
    continuation: int,
    *,
    batch_tokens: int = 4096,
    check_stop: Callable[[], None] = lambda: None,
) -> NDArray[np.bool_]:
    """[B, C] whether each of the last C tokens of a row is the likeliest after those before it."""
    device = next(model.parameters()).device
    rows = max(1, batch_tokens // tokens_BL.shape[1])
    hits = np.zeros((len(tokens_BL), continuation), np.bool_)

    def likeliest(x_BLD: Tensor, matrix_VD: Tensor) -> Tensor:
        x_ND = x_BLD[:, -continuation:].flatten(0, 1)
        parts = [model.logits(x, matrix_VD).argmax(-1) for x in x_ND.split(_PLACES_OF_LOGITS)]
        return torch.cat(parts).view(len(x_BLD), continuation)

    for start in range(0, len(tokens_BL), rows):
        check_stop()
        batch_BL = torch.from_numpy(tokens_BL[start : start + rows])
        likeliest_BC: Tensor = model(batch_BL[:, :-1].to(device), output=likeliest)
        matches_BC = likeliest_BC.cpu() == batch_BL[:, -continuation:]
        hits[start : start + rows] = matches_BC.numpy()
    return hits


def measure_part(
    part: Part,
    out: ShardOutput,
    *,
    train: Sequence[TokenFile],
    held_out: Sequence[TokenFile],
    is_held_out: str,
    checkpoint: Input,
    continuation: int,
    batch_tokens: int,
    threads: int,
    device: str,
) -> dict[str, Any]:
    """How many tokens of each continuation of a part are predicted."""
    files = held_out if part.group == is_held_out else train
    blocks = []
    for number, places in groupby(part.places, key=lambda place: place[0]):
        chosen = list(places)
        blocks.append(files[number].windows([one[2] for one in chosen], [one[3] for one in chosen]))
    place = torch.device(device)
    torch.set_num_threads(threads)
    with current_device(place):
        hits = predicted_tokens(
            _hold_model(checkpoint, place),
            np.concatenate(blocks),
            continuation,
            batch_tokens=batch_tokens,
            check_stop=out.check_stop,
        )
    return {"predicted": hits.sum(axis=1).tolist()}


_held: dict[tuple[str, str], Decoder] = {}


def _hold_model(checkpoint: Input, device: torch.device) -> Decoder:
    """The model, read once for all parts that a process measures."""
    name = checkpoint.digest, str(device)
    if name not in _held:
        _held.clear()
        _held[name] = read_model(checkpoint).to(device).eval()
    return _held[name]


def observe(
    parts: Sequence[Part], results: Sequence[ShardResult], continuation: int, held_out: str
) -> list[Observation]:
    """Both metrics of every sequence; held-out sequences are the baseline of the others.

    InputError if no sequence was tried.
    """
    if not parts:
        raise InputError(
            "no document is as long as prompt and continuation",
            where="memorisation: train",
            hint="lower prompt_tokens or continuation_tokens",
        )
    rows = [
        (part.group, place[1], int(count))
        for part, result in zip(parts, results, strict=True)
        for place, count in zip(part.places, result.value["predicted"], strict=True)
    ]
    unseen = [count for group, _, count in rows if group == held_out]
    whole = float(np.mean([count == continuation for count in unseen])) if unseen else None
    tokens = float(np.mean(unseen)) if unseen else None
    observed = []
    for metric, values, size, baseline in (
        (EXTRACTED, [float(count == continuation) for _, _, count in rows], 1.0, whole),
        (PREDICTED, [float(count) for _, _, count in rows], float(continuation), tokens),
    ):
        for (group, doc_id, _), value in zip(rows, values, strict=True):
            own = None if group == held_out else baseline
            observed.append(Observation(group, doc_id, metric, value, size, own))
    return observed
