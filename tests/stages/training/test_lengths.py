"""Token shards of several sequence lengths in one run: each phase reads those of its length."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from written_shards import every, write_shards

from artifacts_schema.errors import InputError, UsageError
from stages.pretrain.plan import Stock, TokenAccount, clock_of_run
from stages.training.sample_clock import clock_batch
from stages.training.token_shards import TokenShards


@pytest.fixture
def written(tmp_path):
    """Short sequences of two sources, long ones of one."""
    return [
        write_shards(tmp_path / "short", {"web": [30, 11], "code": [9]}, length=8),
        write_shards(tmp_path / "long", {"web": [12]}, length=32, seed=1),
    ]


@pytest.fixture
def shards(written):
    return TokenShards(written)


def phase(**changed):
    given = {"tokens": 640, "sequence_length": 8, "mixture": {}, "mixture_end": {}}
    return SimpleNamespace(**{**given, "batch_sizes": 4, **changed})


def run(*phases):
    return SimpleNamespace(phases=phases, skip=(), seed=3)


def clock_of(shards, *phases):
    return clock_of_run(run(*phases), shards.sequences, shards.lengths)


def test_a_source_of_each_length_is_one_of_its_own(shards):
    assert shards.sources == ("code@8", "web@32", "web@8")
    assert shards.lengths == {"code@8": 8, "web@32": 32, "web@8": 8}
    assert shards.sequences == {"code@8": 23, "web@32": 8, "web@8": 99}
    with pytest.raises(InputError, match="sequences of 8, 32 tokens"):
        _ = shards.sequence_length


def test_they_hold_what_they_hold_alone(shards, written):
    for number, length in enumerate((8, 32)):
        alone = TokenShards(written[number : number + 1])
        assert alone.sequence_length == length
        for source in alone.sources:
            ours = shards.batch(*every(shards, f"{source}@{length}"))
            theirs = alone.batch(*every(alone, source))
            assert np.array_equal(ours.tokens_BL, theirs.tokens_BL)
            assert np.array_equal(ours.documents_BL, theirs.documents_BL)
            named = shards.documents_of(*every(shards, f"{source}@{length}"))
            assert named == alone.documents_of(*every(alone, source))


def test_a_batch_of_two_lengths_is_the_callers_fault(shards):
    with pytest.raises(ValueError, match="one length"):
        shards.batch(np.array([0, 1]), np.array([0, 0]))


def test_phases_read_sequences_of_their_length_and_each_once_an_epoch(shards):
    """61 batches of two are the 99 + 23 short ones, two of four the 8 long ones, by size."""
    clock = clock_of(
        shards, phase(tokens=976, batch_sizes=2), phase(tokens=256, sequence_length=32)
    )
    assert clock.steps == 61 + 2
    assert clock.tokens == 976 + 256
    read = []
    for step in range(1, clock.steps + 1):
        batch = clock_batch(shards, clock, step)
        assert batch.tokens_BL.shape == ((2, 8) if step <= 61 else (4, 32))
        draw = clock.batch(step)
        read += zip(draw.sources.tolist(), draw.sequences.tolist(), strict=True)
    assert sorted(one for one in read if one[0] == 1) == [(1, number) for number in range(8)]
    assert abs(sum(one[0] == 2 for one in read) - 99) <= 1


def test_mixtures_name_sources_plainly_and_the_account_tells_both(shards):
    clock = clock_of(
        shards,
        phase(mixture={"web": 0.5, "code": 0.5}),
        phase(sequence_length=32, mixture={"web": 1.0}),
    )
    account = TokenAccount.from_clock(clock, Stock.from_shards(shards), {})
    assert [one.name for one in account.sources] == ["code@8", "web@32", "web@8"]
    short, long, other = (one.sequences.by_phase for one in account.sources)
    assert long == (0, 20)
    assert abs(short[0] - 40) <= 1
    assert (short[0] + other[0], short[1], other[1]) == (80, 0, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sequence_length": None}, "sequences of 8, 32 tokens"),
        ({"sequence_length": 16}, "no token shards have sequences of 16 tokens"),
        ({"sequence_length": 32, "mixture": {"code": 1.0}}, "no source 'code@32'"),
    ],
)
def test_a_phase_that_names_no_length_of_the_shards_is_refused(shards, changed, message):
    with pytest.raises(UsageError, match=message):
        clock_of(shards, phase(**changed))


def test_one_length_keeps_the_plain_names_and_the_order(written):
    alone = TokenShards(written[:1])
    given = clock_of(alone, phase()), clock_of(alone, phase(sequence_length=None))
    for step in range(1, given[0].steps + 1):
        one, two = (clock.batch(step) for clock in given)
        assert np.array_equal(one.sources, two.sources)
        assert np.array_equal(one.sequences, two.sequences)
