"""Schedules of a pipeline beside torch's own, and how long its stages wait."""

from types import SimpleNamespace

import pytest
from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

from stages.parallel.layout import Layout
from stages.parallel.pipeline_parallel import Unit, schedule, stage_layers


def test_one_forward_one_backward():
    """The picture in Narayanan et al. 2021a, section 2.2: two stages, four micro-batches."""
    order = "".join(f"{'F' if u.forward else 'B'}{u.number}" for u in schedule(0, 2, 4))
    assert order == "F0F1B0F2B1F3B2B3"
    order = "".join(f"{'F' if u.forward else 'B'}{u.number}" for u in schedule(1, 2, 4))
    assert order == "F0B0F1B1F2B2F3B3"


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 4), (4, 8), (3, 9)])
def test_interleaved_is_the_order_of_torch(stages, micro_batches, groups):
    """`ScheduleInterleaved1F1B` gives global stages: group · stages + rank."""
    for rank in range(stages):
        oracle = SimpleNamespace(
            n_local_stages=groups, pp_group_size=stages, _n_microbatches=micro_batches,
            number_of_rounds=micro_batches // stages, microbatches_per_round=stages,
        )  # fmt: skip
        actions = ScheduleInterleaved1F1B._calculate_single_rank_operations(oracle, rank)
        expected = [
            Unit(str(one.computation_type) == "F", one.microbatch_index, one.stage_index // stages)
            for one in actions
            if one is not None
        ]
        assert schedule(rank, stages, micro_batches, groups) == expected


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 2), (2, 6), (4, 8), (4, 12)])
def test_a_schedule_ends_and_waits_as_long_as_its_formula_says(stages, micro_batches, groups):
    """Forward and backward passes of one unit of time: (stages - 1) / groups of each are waited
    for (Narayanan et al. 2021b, section 2.2), whatever comes at most of 1F1B's first waits."""
    queues = [schedule(stage, stages, micro_batches, groups) for stage in range(stages)]
    last, done, time = groups * stages - 1, {}, [0] * stages
    while any(queues):
        moved = False
        for stage, queue in enumerate(queues):
            if not queue:
                continue
            unit = queue[0]
            place = unit.group * stages + stage
            if unit.forward:
                needs = (True, unit.number, place - 1) if place else None
            else:
                needs = (
                    (False, unit.number, place + 1) if place < last else (True, unit.number, last)
                )
            if needs is not None and needs not in done:
                continue
            start = max(time[stage], done.get(needs, 0))
            time[stage] = done[unit.forward, unit.number, place] = start + 1
            queue.pop(0)
            moved = True
        assert moved, "stages wait for each other"
    work = 2 * micro_batches * groups
    assert max(time) == work + 2 * (stages - 1)  # In units of one group: 1 / groups of a stage's.


def test_stages_keep_no_more_than_their_number_of_micro_batches():
    for stage in range(4):
        kept = most = 0
        for unit in schedule(stage, 4, 32):
            kept += 1 if unit.forward else -1
            most = max(most, kept)
        assert most == 4 - stage


def test_an_interleaved_schedule_wants_whole_rounds():
    with pytest.raises(ValueError, match="6 micro-batches are no multiple of 4 stages"):
        schedule(0, 4, 6, 2)


def test_groups_of_layers_go_round_the_stages():
    layout = Layout(pipeline=2, interleave=2)
    assert stage_layers(8, layout, 0) == [range(2), range(4, 6)]
    assert stage_layers(8, layout, 1) == [range(2, 4), range(6, 8)]
