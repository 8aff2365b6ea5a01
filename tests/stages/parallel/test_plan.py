"""The plan of a rank (bytes held, bytes sent) against what a rank makes and calls, at true size.

Ranks are of torch's fake process group, tensors are fake: shapes and calls are those of a run.
"""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from fake_ranks import count_rank

from stages.model.config import Experts, ModelConfig, preset
from stages.model.memory import training_memory
from stages.parallel.layout import Layout
from stages.parallel.rank_parameters import rank_groups
from stages.parallel.traffic import training_traffic

VOCABULARY = {"smollm2-1.7b": 49152, "llama-3-8b": 128256, "llama-3-70b": 128256}
LAYOUTS = {
    "smollm2-1.7b": [
        Layout(data=8),
        Layout(shard=8),
        Layout(data=8, shard=8),
        Layout(data=64, shard=8),
        Layout(shard=8, zero=1, pipeline=4, data=2),
    ],
    "llama-3-8b": [
        Layout(shard=8),
        Layout(tensor=8, data=8),
        Layout(shard=8, context=8),
        Layout(data=8, shard=64),
        Layout(tensor=8, shard=16, data=4),
    ],
    "llama-3-70b": [
        Layout(tensor=8),
        Layout(tensor=8, shard=8),
        Layout(tensor=8, pipeline=4, shard=16),
        Layout(tensor=8, pipeline=8, interleave=2, context=2, shard=4),
    ],
}
"""On 8, 64 and 512 ranks."""


def model(name: str, layers: int | None = None) -> ModelConfig:
    config = preset(name).with_vocabulary(VOCABULARY[name])
    return config.model_copy(update={"layers": layers or config.layers})


def first_middle_last(layout: Layout) -> list[int]:
    return [0, layout.world * 5 // 8, layout.world - 1]


QUICK = {("smollm2-1.7b", 4)}


def each_layout() -> list:
    return [
        pytest.param(
            name,
            layout,
            id=f"{name}-{layout.world}-{number}",
            marks=[] if (name, number) in QUICK else [pytest.mark.full],
        )
        for name, layouts in LAYOUTS.items()
        for number, layout in enumerate(layouts)
    ]


@pytest.mark.parametrize(("name", "layout"), each_layout())
def test_parameters_and_optimizer_state_are_the_plan_to_the_byte(name, layout):
    config = model(name)
    for rank in first_middle_last(layout):
        counted = count_rank(config, layout, rank, micro_batches=0)
        planned = training_memory(config, rows=1, length=512, layout=layout, rank=rank)
        assert (counted.weights, counted.optimizer) == (planned.weights, planned.optimizer)


@pytest.mark.full
def test_parts_of_a_vocabulary_that_does_not_divide_are_filled_up_in_memory_alone():
    """97 rows over 8 ranks: 13 each, 6 on the last. In its memory 13, of the update's state 6."""
    config = ModelConfig(vocabulary_size=97, width=32, layers=2, heads=4, kv_heads=2, mlp_width=48)
    layout = Layout(shard=8)
    planned = [
        training_memory(config, rows=1, length=64, layout=layout, rank=rank) for rank in (0, 7)
    ]
    assert planned[0].weights == planned[1].weights
    assert planned[0].optimizer - planned[1].optimizer > 0
    for rank, one in zip((0, 7), planned, strict=True):
        counted = count_rank(config, layout, rank, length=64)
        assert (one.weights, one.optimizer) == (counted.weights, counted.optimizer)


@pytest.mark.full
def test_ranks_hold_the_experts_that_they_were_given():
    experts = Experts(experts=8, chosen=2, width=64, shared=1)
    config = ModelConfig(vocabulary_size=96, width=64, layers=2, heads=8, kv_heads=4)
    config = config.model_copy(update={"experts": experts})
    layout = Layout(data=2, shard=4, expert=4, tensor=2)
    for rank in first_middle_last(layout):
        counted = count_rank(config, layout, rank, micro_batches=0)
        planned = training_memory(config, rows=1, length=64, layout=layout, rank=rank)
        assert (counted.weights, counted.optimizer) == (planned.weights, planned.optimizer)


def sent(
    config: ModelConfig, layout: Layout, stage: int, length: int, micro_batches: int, again: bool
) -> dict[str, int]:
    """What a Llama sends in bfloat16, gradients in float32: the formulas, one term each.

    Ring: (N - 1) / N of what is gathered or scattered over N ranks, twice that of what is summed on
    all (Patarasuk & Yuan 2009, section 3).
    """
    bytes_sent: Counter[str] = Counter()

    def ring(kind: str, ranks: int, size: int, times: int) -> None:
        assert size % ranks == 0 or ranks == 1
        bytes_sent[kind] += times * (2 if kind == "all_reduce" else 1) * (ranks - 1) * size // ranks

    T, P, width = layout.tensor, layout.parts, config.width
    layers = config.layers // layout.pipeline
    first, last = stage == 0, stage == layout.pipeline - 1
    tokens = length // layout.context
    block = 4 * (
        (2 * width * (config.heads + config.kv_heads) * config.head_width) // T
        + 3 * width * config.mlp_width // T
        + 2 * width
    )
    matrix = 4 * config.vocabulary_size // T * width
    untied = not config.tied_embeddings
    root = matrix * (first + (last and (untied or not first))) + 4 * width * last
    sums = 1 if P == 1 or layout.zero == 1 else micro_batches
    # Rajbhandari et al. 2020, section 7: of parameters Ψ, Ψ gathered for the forward pass, Ψ for
    # the backward pass (zero 3 alone), Ψ of gradients scattered; blocks are gathered in bfloat16.
    # What is outside of blocks is gathered for each pass of one of several groups of layers.
    groups = layout.interleave
    assert groups == 1 or layout.zero == 3 or P == 1
    ring("all_gather", P, block // 2, layers * micro_batches * (2 if layout.zero == 3 else 1))
    ring("all_gather", P, root, groups * micro_batches)
    ring("reduce_scatter", P, layers * block + root, sums)
    # Copies of a part sum their gradients once (section 10.1 there, of model parallelism and ZeRO).
    ring("all_reduce", layout.data, (layers * block + root) // P, 1)
    # Korthikanti et al. 2022, section 4.2.2: two gathers and two scatters of the states in the
    # forward pass of a layer, as many backward; computed again, not what the last one scatters.
    states = 2 * tokens * width
    ring("all_gather", T, states, layers * (4 + 2 * again) * micro_batches)
    ring("reduce_scatter", T, states, layers * (4 + again) * micro_batches)
    ring("all_gather", T, states, last * micro_batches)
    ring("reduce_scatter", T, states, last * micro_batches)
    ring("all_gather", T, 2 * states, first * micro_batches)
    ring("reduce_scatter", T, 2 * states, first * micro_batches)
    # Norms are used on other tokens by each rank (section 4.3 there); three numbers a token for the
    # softmax (Shoeybi et al. 2019, section 3, "fuse with the cross entropy": B · L numbers).
    # Gradients of several micro-batches are added up in float32.
    added = 4 if sums < micro_batches else 2
    ring("all_reduce", T, added * width, 2 * layers * sums)
    ring("all_reduce", T, 4 * width, last * sums)
    ring("all_reduce", T, 3 * 4 * tokens, last * micro_batches)
    # Llama Team 2024, section 3.3.2: keys and values are gathered; here their gradients scattered.
    keys = 2 * 2 * length * config.kv_heads // T * config.head_width
    ring("all_gather", layout.context, keys, layers * (1 + again) * micro_batches)
    ring("reduce_scatter", layout.context, keys, layers * micro_batches)
    ring("all_gather", layout.context, 8 * length, groups * micro_batches)  # numbers of documents
    # Narayanan et al. 2021b, section 3.2: B · L · D between stages each way, of T ranks 1 / T each;
    # section 2.2: v times as much where each has v groups. Nothing goes out of the last or first.
    bytes_sent["send"] += (groups - last) * 4 * tokens * width // T * micro_batches
    bytes_sent["send"] += (groups - first) * 4 * tokens * width // T * micro_batches
    if layout.pipeline > 1 and not untied and (first or last):
        bytes_sent["send"] += matrix // P
    return {kind: size for kind, size in bytes_sent.items() if size}


def check_step(
    config: ModelConfig, layout: Layout, rank: int, length: int, micro_batches: int, again: bool
) -> None:
    """Activations within 10 %, bytes sent equal to the formulas, for a step of one rank."""
    how = {"length": length, "checkpointing": "full" if again else "none"}
    counted = count_rank(config, layout, rank, micro_batches=micro_batches, **how)
    stage = rank * layout.pipeline // layout.world
    expected = sent(config, layout, stage, length, micro_batches, again)
    assert dict(counted.sent) | expected == {k: v for k, v in counted.sent.items() if v}
    planned = training_traffic(config, layout, rank, rows=1, micro_batches=micro_batches, **how)
    assert {kind: size for kind, size in asdict(planned).items() if size} == expected
    memory = training_memory(
        config, rows=1, layout=layout, rank=rank, micro_batches=micro_batches, **how
    )
    assert (counted.weights, counted.optimizer) == (memory.weights, memory.optimizer)
    once = layout.parts == 1 or layout.zero == 1
    assert counted.gradients == (memory.gradients // (layout.parts if once else 1))
    kept = counted.kept
    if stage == layout.pipeline - 1:  # Gradients of states and matrix are made with the loss.
        tokens, vocabulary = length // layout.context, config.vocabulary_size // layout.tensor
        kept -= 4 * (tokens + vocabulary) * config.width
    assert kept == pytest.approx(memory.kept, rel=0.1)
    # Blocks that are gathered ahead, and gradients to be summed, are in the plan besides.
    assert counted.gathered <= memory.gathered


STEPS = {
    "fsdp": ("llama-3-8b", 3, Layout(shard=8), 3, 1, False),
    "zero-2": ("smollm2-1.7b", 3, Layout(shard=8, zero=2), 3, 2, False),
    "zero-1": ("smollm2-1.7b", 3, Layout(shard=8, zero=1), 3, 2, False),
    "hybrid": ("smollm2-1.7b", 3, Layout(data=8, shard=8), 63, 3, False),
    "tensor": ("llama-3-8b", 3, Layout(tensor=8, data=8), 9, 2, False),
    "context": ("llama-3-8b", 3, Layout(context=8, shard=8), 9, 1, True),
    "tied stages": ("smollm2-1.7b", 4, Layout(pipeline=2, shard=4), 0, 3, False),
    "interleaved": ("llama-3-8b", 8, Layout(pipeline=2, interleave=2, shard=8), 9, 4, False),
    "interleaved, four groups": (
        "llama-3-8b", 16, Layout(pipeline=2, interleave=4, tensor=2, context=2), 0, 4, True,
    ),
    "interleaved, copies": ("llama-3-8b", 8, Layout(pipeline=2, interleave=2, data=4), 7, 4, False),
    "70b on 512, first stage": (
        "llama-3-70b", 8, Layout(tensor=8, pipeline=4, shard=16), 0, 6, True,
    ),
    "70b on 512, last stage": (
        "llama-3-70b", 8, Layout(tensor=8, pipeline=4, shard=16), 511, 6, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, id=name, marks=[] if name in ("fsdp", "tensor") else [pytest.mark.full])
        for name, step in STEPS.items()
    ],
)
def test_a_step_of_few_layers_keeps_and_sends_what_is_planned(step):
    name, layers, layout, rank, micro_batches, again = step
    check_step(model(name, layers), layout, rank, 1024, micro_batches, again)


@pytest.mark.parametrize(("rank", "first", "second"), [(0, 6, 6), (2, 5, 4)])
def test_what_stays_gathered_is_gathered_along_the_schedule(rank, first, second):
    """Of zero 2: each backward pass drops all, and the next pass of a group gathers it again.

    By hand, with the passes that gather in brackets, of groups a and b; F0 to F3, B0 to B3:
    stage 0  [F0a] F1a [F0b] F1b F2a B0b [F3a] [B1b] [F2b] [B0a] [F3b] [B1a] [B2b] [B3b] [B2a] [B3a]
    stage 1  [F0a] F1a [F0b] B0b [F1b] B1b [F2a] B0a [F3a] B1a [F2b] B2b [F3b] B3b [B2a] [B3a]
    """
    config, layout = model("llama-3-8b", 8), Layout(pipeline=2, interleave=2, shard=2, zero=2)
    blocks, root = 2 * [first] + 2 * [second], 8  # Every pass needs what is outside of blocks.
    halves = [group.gathered_bytes(2) // 2 for group in rank_groups(config, layout, rank)]
    expected = sum(size * times for size, times in zip(halves, [*blocks, root], strict=True))
    counted = count_rank(config, layout, rank, micro_batches=4, length=64)
    planned = training_traffic(config, layout, rank, rows=1, length=64, micro_batches=4)
    assert counted.sent["all_gather"] == planned.all_gather == expected


@pytest.mark.full
@pytest.mark.parametrize(("name", "layout"), each_layout())
def test_a_step_of_the_whole_model_keeps_and_sends_what_is_planned(name, layout):
    config = model(name)
    for rank in first_middle_last(layout):
        check_step(config, layout, rank, 8192, layout.pipeline, again=name == "llama-3-70b")


def test_the_table_of_the_how_to_is_the_plan():
    page = Path(__file__).parents[3] / "docs" / "how-to" / "many-processes.md"
    section = page.read_text().split("## What a rank holds and sends")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:4] == "| `{"]
    assert len(rows) == 4
    for written, *numbers in rows:
        layout = Layout.model_validate(yaml.safe_load(written.strip("`")))
        how = {"rows": 1, "length": 8192, "micro_batches": 8, "checkpointing": "full"}
        memory = training_memory(
            model("llama-3-70b"), **how, layout=layout, logits=2**27, attention="varlen"
        )
        bytes_sent = training_traffic(model("llama-3-70b"), layout, 0, **how)
        expected = [memory.state, memory.gathered, memory.activations, bytes_sent.all_gather]
        expected += [bytes_sent.reduce_scatter, bytes_sent.all_reduce, bytes_sent.send]
        assert numbers == [str(layout.world), *(f"{one / 1e9:.1f}" for one in expected)]
