"""Checks of a run before its first step: device, memory, disk, data; each gives one line."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import IngotError, InputError, StoreError
from artifacts_schema.store import Store
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.store import ancestors
from stages.engine.inputs import Input
from stages.parallel.links import Links, measure_links
from stages.parallel.ranks import Ranks
from stages.pretrain.plan import TokenAccount
from stages.pretrain.task import HeldOutSet
from stages.training.checkpointing import MOST_KEPT, NEWEST
from stages.training.hardware import PARTS, TERA, Room, StepMemory, memory_room, savings
from stages.training.token_shards import TokenShards, spread

Level = Literal["ok", "warning", "refusal"]
LEVELS = {"ok": 0, "warning": 1, "refusal": 2}


@dataclass(frozen=True)
class Finding:
    """The result of one check; a `refusal` would fail the run. `numbers` are its measurements."""

    check: str
    level: Level
    message: str
    hint: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    error: IngotError | None = None
    """The error that the run would end with, if that is enough."""

    def line(self) -> str:
        """For a log that has the level itself."""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{self.check}: {self.message}{advice}"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "check": self.check,
            "level": self.level,
            "said": self.message,
            "hint": self.hint,
            **self.numbers,
        }


@dataclass(frozen=True)
class Report:
    """All findings, in the order of the checks, and how long they took."""

    findings: Sequence[Finding]
    seconds: float

    @property
    def rejections(self) -> list[Finding]:
        """Findings that would fail the run."""
        return [one for one in self.findings if one.level == "refusal"]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "findings": [one.to_json() for one in self.findings],
            "refused": bool(self.rejections),
            "seconds": round(self.seconds, 3),
        }

    def raise_rejections(self) -> None:
        """Raise IngotError with all rejections, if there are any; a single one's own error."""
        if len(self.rejections) == 1 and self.rejections[0].error is not None:
            raise self.rejections[0].error
        if self.rejections:
            raise IngotError(
                "; ".join(f"{one.check}: {one.message}" for one in self.rejections),
                where="pre-flight",
                hint="; ".join(one.hint for one in self.rejections if one.hint)
                or "execution.preflight: warn goes on all the same",
            )


def span(seconds: float) -> str:
    """Seconds for people: `42 s`, `3 min`, `5.2 h`, `12.4 days`."""
    for unit, size, least in (("days", 86400, 172800), ("h", 3600, 7200), ("min", 60, 120)):
        if seconds >= least:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


SIDE, TIMES = 8192, 8
"""Of the square matrices, in bfloat16: 8.8 · 10^12 operations in all, some 12 ms on an H100."""
LEAST = 0.5
"""Share of the peak below which a GPU is slower than any that is well: what is below is throttled,
shared, or not the part it says. Sound ones reach 70 to 85 % with zeros; random numbers draw more
power, which costs a GPU at its power limit some of that."""


def check_device(
    device: torch.device, name: str, peak: float | None, products: torch.dtype = torch.float32
) -> Finding:
    """The device's name, and of a GPU with a known peak the share of it that a product reaches.

    A GPU whose products are wrong is refused. Of a processor: whether it is made for `products`.
    """
    if device.type != "cuda":
        return judge_processor(name, products, relative_speed(products))
    if not is_product_exact(device):
        text = f"{name}: a matrix product gives wrong numbers"
        return Finding("device", "refusal", text, "the device is defective; use another one")
    if peak is None:
        text = f"{name}: no peak is known, so there is no MFU"
        return Finding("device", "ok", text, "execution.peak_tflops gives one")
    return judge_speed(name, measure_flops(device), peak)


def judge_processor(name: str, products: torch.dtype, speed: float) -> Finding:
    """What to say of products in a type whose speed is `speed` times that of float32."""
    text = f"{name}, {torch.get_num_threads()} threads"
    if speed >= LEAST:
        return Finding("device", "ok", text)
    kind = str(products).removeprefix("torch.")
    return Finding(
        "device",
        "warning",
        f"{text}: a product in {kind} takes {1 / speed:.0f} times as long as one in float32",
        "set precision: fp32; this processor has no instructions for it",
        {"relative_speed": round(speed, 4)},
    )


def relative_speed(
    products: torch.dtype, side: int = 256, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Speed of products of square matrices on this processor, over that of float32 ones."""
    if products == torch.float32:
        return 1.0
    seconds = {}
    for kind in (torch.float32, products):
        one = random_matrix(torch.device("cpu"), side).to(kind)
        rounds = []
        for _ in range(4):  # The first one warms up.
            began = clock()
            torch.mm(one, one)
            rounds.append(clock() - began)
        seconds[kind] = min(rounds)
    return seconds[torch.float32] / max(seconds[products], 1e-9)


def judge_speed(name: str, reached: float, peak: float) -> Finding:
    """What to say of `reached` operations a second where `peak` are possible."""
    share = reached / peak
    text = f"{name}: {reached / TERA:,.0f} of {peak / TERA:,.0f} TFLOP/s in a matrix product"
    numbers = {"tflops": round(reached / TERA, 1), "share_of_peak": round(share, 3)}
    if share >= LEAST:
        return Finding("device", "ok", f"{text} ({share:.0%})", numbers=numbers)
    return Finding(
        "device",
        "warning",
        f"{text}: {share:.0%}, sound ones reach {LEAST:.0%} and more",
        "look for other programs on it, for its clock and temperature (nvidia-smi)",
        numbers,
    )


def is_product_exact(device: torch.device, side: int = SIDE) -> bool:
    """Whether a product with a permutation matrix gives the same numbers in another order.

    That is exact in any precision, and every row and column takes part in it.
    """
    one = random_matrix(device, side)
    order = torch.roll(torch.arange(side, device=device), side // 3)
    permutation = torch.zeros_like(one)
    permutation[order, torch.arange(side, device=device)] = 1
    return torch.equal(torch.mm(one, permutation), one[:, order])


def random_matrix(device: torch.device, side: int) -> torch.Tensor:
    """Numbers that switch transistors as a model's do; zeros would let a throttled GPU pass.

    Drawn by a generator of its own: the run's random state stays as it is.
    """
    generator = torch.Generator(device).manual_seed(side)
    return torch.randn(side, side, generator=generator, device=device).to(torch.bfloat16)


def measure_flops(
    device: torch.device, side: int = SIDE, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Operations a second of bfloat16 products of square matrices, the best of three rounds."""
    one = random_matrix(device, side)
    best = 0.0
    for _ in range(4):  # The first round warms up.
        began = _now(device, clock)
        for _ in range(TIMES):
            torch.mm(one, one)
        best = max(best, 2 * TIMES * side**3 / (_now(device, clock) - began))
    return best


def _now(device: torch.device, clock: Callable[[], float]) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock()


ROLLING, MORE = NEWEST + 1, MOST_KEPT - NEWEST
"""Rolling checkpoints on disk: those that are kept and the one being written; those that a run
keeps in addition while it may roll back."""


@dataclass(frozen=True)
class Need:
    """Bytes that a folder's disk must still have room for."""

    folder: Path
    bytes: int
    what: str


def disk_needs(work: Path, payload: Path | None, size: int, permanent: int) -> list[Need]:
    """Room for rolling checkpoints in `work`, then for permanent ones and the output in `payload`.

    `size` is that of a checkpoint in bytes, `permanent` their number, with the output; without a
    `payload` (a bucket) they need no room. A resumed run needs no room for what it has written.
    """
    here = sum(path.stat().st_size for path in work.rglob("*.safetensors")) if work.exists() else 0
    least, more = ROLLING * size, MORE * size
    needs = [
        Need(work, max(0, least - here), f"{ROLLING} rolling checkpoints"),
        Need(work, max(0, more - max(0, here - least)), f"{MORE} more to roll back to"),
    ]
    if payload is not None:
        many = "s" if permanent > 2 else ""
        kept = f"{permanent - 1:,} permanent checkpoint{many} and " if permanent > 1 else ""
        needs.append(Need(payload, permanent * size, f"{kept}the output"))
    return needs


def check_disk(needs: Sequence[Need]) -> list[Finding]:
    """One finding for each disk: enough for all, for the rolling ones (a warning), or for none.

    `needs` come in the order in which they must be met.
    """
    disks: dict[int, list[Need]] = {}
    for need in needs:
        disks.setdefault(disk_of(need.folder), []).append(need)
    return [_check_one_disk(one) for one in disks.values()]


def _check_one_disk(needs: Sequence[Need]) -> Finding:
    free = shutil.disk_usage(nearest_existing(needs[0].folder)).free
    total = sum(need.bytes for need in needs)
    parts = ", ".join(f"{need.what} {format_bytes(need.bytes)}" for need in needs)
    text = f"{format_bytes(total)} needed ({parts}), {format_bytes(free)} free"
    numbers = {"needed_bytes": total, "free_bytes": free, "folder": str(needs[0].folder)}
    if total <= free:
        return Finding("disk", "ok", text, numbers=numbers)
    level: Level = "refusal" if needs[0].bytes > free else "warning"
    hint = "free space, or keep fewer permanent checkpoints"
    return Finding("disk", level, text, hint, numbers)


def check_writable(backend: Backend) -> Finding:
    """Whether the store takes a small file, gives it back, and lets go of it."""
    place, data = f"work/.preflight-{secrets.token_hex(6)}", secrets.token_bytes(64)
    try:
        backend.replace(place, data)
        same = backend.read(place) == data
        backend.remove(place)
    except (OSError, StoreError) as error:
        return Finding("store", "refusal", f"cannot be written: {error}", "check its permissions")
    if not same:
        return Finding("store", "refusal", "gives back other bytes than were written")
    return Finding("store", "ok", f"{backend.url} is writable")


def disk_of(folder: Path) -> int:
    """The number of the file system that a folder lies on, or will lie on."""
    return os.stat(nearest_existing(folder)).st_dev


def nearest_existing(folder: Path) -> Path:
    """The folder itself, or the nearest above it that is there."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def check_memory(step: StepMemory) -> list[Finding]:
    """The step that needs most, against the memory of its device; of a GPU the host's as well.

    What is surely needed (weights, gradients, optimizer) beyond all there is, is a refusal; an
    estimate beyond what is free is a warning.
    """
    room = memory_room(torch.device("cpu"))
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # Of torchrun; they share the host's.
    host = Room(room.total // processes, room.free // processes)
    if step.device.type == "cuda":
        return [judge_memory(step, memory_room(step.device)), judge_host_memory(step, host)]
    return [judge_memory(step, host)]


def copy_bytes(step: StepMemory) -> int:
    """Bytes of the copy in the host's memory that a rolling checkpoint is written from."""
    return step.need.weights + step.need.optimizer


def judge_memory(step: StepMemory, room: Room) -> Finding:
    """What to say of a step where there is so much room.

    On a CPU the copy that a checkpoint is written from is in the same memory.
    """
    need = step.need
    copy = copy_bytes(step) if step.device.type == "cpu" else 0
    total, sure = need.total + copy, need.weights + need.gradients + need.optimizer
    copied = f", checkpoint being written {format_bytes(copy)}" if copy else ""
    text = f"a training step takes {step.describe()}{copied}; {format_bytes(room.free)} free"
    numbers = {
        **{f"{name}_bytes": getattr(need, name) for name in PARTS},
        "checkpoint_copy_bytes": copy,
        "free_bytes": room.free,
        "total_bytes": room.total,
        "savings": {f"{one.setting}={one.value}": one.bytes for one in savings(step)},
    }
    if total <= room.free:
        return Finding("memory", "ok", text, numbers=numbers)
    level: Level = "refusal" if sure > room.total else "warning"
    helps = "; ".join(str(one) for one in savings(step))
    if level == "refusal":
        helps = f"the model is too large for {format_bytes(room.total)}" + (
            f"; {helps}" if helps else ""
        )
    return Finding("memory", level, text, helps, numbers)


def judge_host_memory(step: StepMemory, room: Room) -> Finding:
    """What to say of the host's memory where a GPU's checkpoints are copied to it.

    The copy is page-locked; torch rounds each tensor of it up to a power of two, so that it takes
    at most twice its size.
    """
    copy = copy_bytes(step)
    text = (
        f"a checkpoint being written takes {format_bytes(copy)} of page-locked memory of the host, "
        f"up to {format_bytes(2 * copy)} as torch rounds it; {format_bytes(room.free)} free"
    )
    numbers = {
        "checkpoint_copy_bytes": copy,
        "free_bytes": room.free,
        "total_bytes": room.total,
    }
    if 2 * copy <= room.free:
        return Finding("host memory", "ok", text, numbers=numbers)
    level: Level = "refusal" if copy > room.total else "warning"
    return Finding("host memory", level, text, "use a machine with more memory", numbers)


def check_links(ranks: Ranks) -> Finding:
    """How fast ranks exchange messages, and which is slow; to be called on all of them at once."""
    return judge_links(measure_links(ranks))


def judge_links(links: Links) -> Finding:
    """What to say of links between ranks; a slow link or rank is a warning that names it."""
    slowest = links.slowest
    text = (
        f"all-reduce of {len(links.work)} ranks: {format_bytes(links.all_reduce)} a second of bus "
        f"bandwidth; slowest link {format_bytes(slowest.rate)}, between "
        f"{links.named(slowest.one)} and {links.named(slowest.other)}"
    )
    numbers = {
        "ranks": len(links.work),
        "all_reduce_bytes_per_second": round(links.all_reduce),
        "slowest_link_bytes_per_second": round(slowest.rate),
        "work_seconds": [round(one, 6) for one in links.work],
    }
    slow = [f"{links.named(rank)} computes slowly" for rank in links.slow_ranks()]
    slow += [
        f"the link between {links.named(one.one)} and {links.named(one.other)} is slow"
        for one in links.slow_links()
    ]
    if not slow:
        return Finding("links", "ok", text, numbers=numbers)
    hint = "look for other programs there, at its network and its clock; all ranks wait for it"
    return Finding("links", "warning", f"{'; '.join(slow)}; {text}", hint, numbers)


def merge_findings(by_rank: Sequence[Sequence[Finding]]) -> list[Finding]:
    """One list from those of all ranks, in the order of rank 0's.

    Of a check that several ranks made, the worst result, with the rank's name where it is not 0.
    """
    results = {one.check: one for one in by_rank[0]}
    for rank, findings in enumerate(by_rank[1:], 1):
        for one in findings:
            if one.check not in results or LEVELS[one.level] > LEVELS[results[one.check].level]:
                results[one.check] = replace(one, message=f"rank {rank}: {one.message}")
    return list(results.values())


MANY_EPOCHS = 4.0
"""Up to so many, repeated tokens teach about as much as new ones (Muennighoff et al. 2023, arXiv
2305.16264)."""
SAMPLED = 4
"""Sequences of each source whose ids are checked; each may be in another file."""
MOST_SOURCES = 64


def check_epochs(account: TokenAccount) -> Finding:
    """How often each source is read; more than its cap is refused before there is a plan."""
    by_epochs = sorted(account.sources, key=lambda one: -one.epochs)
    labels = ", ".join(f"{one.name} {one.epochs:.2f}" for one in by_epochs[:5])
    more = f" and {len(by_epochs) - 5} more" if len(by_epochs) > 5 else ""
    tokens = sum(one.planned for one in account.sources)
    text = f"{tokens:,.0f} tokens planned; epochs: {labels}{more}"
    numbers = {"epochs": {one.name: round(one.epochs, 4) for one in account.sources}}
    if by_epochs[0].epochs <= MANY_EPOCHS:
        return Finding("data", "ok", text, numbers=numbers)
    hint = f"beyond {MANY_EPOCHS:g} epochs a repeated token teaches little; set max_epochs"
    return Finding("data", "warning", text, hint, numbers)


def check_ids(train: Sequence[Input]) -> Finding:
    """Read a few sequences of each source: every id is one of the vocabulary.

    Their files are not hashed for it; in a remote store none is fetched for it.
    """
    if not all(shards_input.backend.local for shards_input in train):
        text = "the token shards are in a remote store; ids are checked as they are read"
        return Finding("token ids", "ok", text)
    shards = TokenShards(
        [replace(one, full_check=False, copied=False, _checked=set()) for one in train]
    )
    sources = list(shards.sources)[:MOST_SOURCES]
    read = 0
    try:
        for number, name in enumerate(sources):
            size = shards.sequences[name]
            sequences_B = spread(size, min(size, SAMPLED))
            shards.batch(np.full(len(sequences_B), number), sequences_B)
            read += len(sequences_B)
    except InputError as error:
        text = f"{error.where}: {error.what}" if error.where else error.what
        return Finding("token ids", "refusal", text, error.hint or "pack again", error=error)
    text = f"{read:,} sequences of {len(sources):,} sources sampled, all within the vocabulary"
    return Finding("token ids", "ok", text, numbers={"sampled_sequences": read})


def check_held_out(held_out: HeldOutSet) -> Finding:
    """Whether there is something to measure on."""
    count = len(held_out.sources_B)
    if count:
        text = f"{count:,} sequences of {', '.join(held_out.sources)}"
        return Finding("held-out", "ok", text, numbers={"held_out_sequences": count})
    text = "no sequences: there will be no held-out loss"
    return Finding("held-out", "warning", text, "give pack's held_out output")


def check_contamination(store: Store, train: Sequence[Input]) -> Finding:
    """Whether the documents of the shards were compared with benchmarks, by their lineage."""
    manifests = [store.manifest(shards.stage, shards.key) for shards in train]
    above = [edge for one in manifests if one is not None for edge in ancestors(store, one)]
    if any(edge.role == "contamination" for edge in above):
        return Finding("contamination", "ok", "documents were compared with benchmarks")
    return Finding(
        "contamination",
        "warning",
        "no document was compared with benchmarks, so scores on them will prove little",
        "give filter the output of decontaminate",
    )
