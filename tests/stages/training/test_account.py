"""The token account adds up: with a walk over all steps, over phases, sources and languages."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from artifacts_schema.errors import UsageError
from stages.pretrain.plan import Stock, TokenAccount, cap_errors, check_caps, clock_of_run
from stages.pretrain.plan_check import epoch_caps
from stages.training.sample_clock import SampleClock
from stages.training.schedule import Phase

SOURCES = {"web": 40, "code": 10}
LENGTHS = dict.fromkeys(SOURCES, 8)
STOCK = Stock(
    tokens={"web": 300, "code": 80},
    documents={"web": 70, "code": 9},
    languages={"web": {"en": 200, "de": 100}, "code": {"": 60, "en": 20}},
)
"""Sequences of 8 tokens: those of web are 7.5 tokens full, those of code wholly."""


def made(*phases, skip=()):
    return SampleClock(SOURCES, phases, 0, skip)


def read(clock):
    """Sequences of each source by phase, walking over all steps."""
    seen: Counter[tuple[str, int]] = Counter()
    for step in range(1, clock.steps + 1):
        if not clock.skipped(step):
            draw = clock.batch(step)
            seen.update((clock.sources[source], draw.phase) for source in draw.sources.tolist())
    return seen


PHASES = [
    Phase(6, 4, 8, {"web": 0.5, "code": 0.5}),
    Phase(5, ((0, 3), (72, 6)), 8, {"web": 1.0}, {"code": 1.0}),
]


@pytest.mark.parametrize("skip", [(), [(3, 8)]])
def test_it_adds_up_with_a_walk_over_all_steps(skip):
    clock = made(*PHASES, skip=skip)
    seen, account = read(clock), TokenAccount.from_clock(clock, STOCK, {"code": 9})
    for one, mean in zip(account.sources, (8.0, 7.5), strict=True):
        by_phase = [seen[one.name, phase] for phase in (0, 1)]
        total, available = sum(by_phase), SOURCES[one.name]
        plain = one.plain()
        assert plain["planned_sequences_by_phase"] == by_phase
        assert plain["planned_positions"] == 8 * total
        assert one.planned == mean * total
        assert one.tokens_by_phase == tuple(mean * count for count in by_phase)
        assert one.repeated == mean * max(0, total - available)
        assert one.left == mean * max(0, available - total)
        assert one.available + one.repeated - one.left == one.planned
        assert one.epochs == total / available
    assert [one.cap for one in account.sources] == [9, None]
    assert account.sources[0].repeated > 0
    assert account.sources[1].left > 0


def test_languages_have_their_share_of_each_source():
    account = TokenAccount.from_clock(made(Phase(25, 4, 8, {"web": 0.8, "code": 0.2})), STOCK, {})
    code, web = (one.planned for one in account.sources)
    by_name = {one.name: one for one in account.languages}
    assert list(by_name) == ["", "de", "en"]
    assert by_name["en"].available == 220
    assert by_name["en"].planned == pytest.approx(web * 2 / 3 + code / 4)
    assert by_name[""].planned == pytest.approx(code * 3 / 4)
    for what in ("available", "planned", "repeated", "left"):
        sums = [
            sum(getattr(o, what) for o in part) for part in (account.sources, account.languages)
        ]
        assert sums[0] == pytest.approx(sums[1])


def test_what_was_read_stands_beside_the_plan_and_changes_it_not():
    before = TokenAccount.from_clock(made(*PHASES), STOCK, {})
    after = before.realised({"web": 150, "code": 40}, {"": 30, "de": 45, "en": 115})
    assert all(one["realised_tokens"] is None for one in before.plain()["sources"].values())
    plain = after.plain()
    assert plain["sources"]["web"]["realised_tokens"] == 150
    assert {n: one["realised_tokens"] for n, one in plain["languages"].items()} == {
        "": 30,
        "de": 45,
        "en": 115,
    }
    for one in (*plain["sources"].values(), *plain["languages"].values()):
        one["realised_tokens"] = None
    assert plain == before.plain()
    assert json.loads(json.dumps(plain)) == plain


def test_a_log_has_a_line_for_each_source():
    lines = TokenAccount.from_clock(made(Phase(5, 4, 8, {"web": 1.0})), STOCK, {}).lines()
    assert lines[1] == "web: 150 of 300 tokens planned (0.50 epochs, 0 repeated, 150 never read)"
    assert lines[0].startswith("code: 0 of 80 tokens planned")


def test_a_source_without_tokens_has_an_account_of_nothing():
    clock = SampleClock({"web": 4, "none": 0}, [Phase(2, 2, 8)], 0)
    account = TokenAccount.from_clock(clock, Stock({"web": 30}, {"web": 3}, {}), {"none": 1})
    assert account.plain()["sources"]["none"]["epochs"] == 0
    assert account.plain()["languages"] == {}
    check_caps(clock, {"none": 1})


def test_a_cap_is_for_all_or_by_source():
    assert epoch_caps(["code", "web"], None, {}) == {}
    assert epoch_caps(["code", "web"], 2.5, {"code": 4}) == {"code": 4, "web": 2.5}
    assert epoch_caps(["code", "web"], None, {"web": 1}) == {"web": 1}
    with pytest.raises(UsageError, match=r"'wbe'.*'web'"):
        epoch_caps(["code", "web"], None, {"wbe": 1})


def test_a_plan_within_its_caps_is_not_refused():
    clock = made(Phase(10, 4, 8, {"web": 1.0}))
    check_caps(clock, {"web": 1.0, "code": 0.5})
    with pytest.raises(UsageError, match="'web'"):
        check_caps(clock, {"web": 0.99})


def test_a_cap_is_the_decimal_that_it_is_written_as():
    """0.29 of 100 sequences are 29; 0.29 * 100 in binary is less."""
    clock = SampleClock({"web": 100}, [Phase(29, 1, 8)], 0)
    check_caps(clock, {"web": 0.29})
    with pytest.raises(UsageError, match=r"29 .*28"):
        check_caps(clock, {"web": 0.289})


def test_a_refusal_gives_needed_and_available_and_what_would_fit():
    """20 of 40 are code: 10 are there, so a quarter may be; they last until some step."""
    clock = made(Phase(10, 4, 8, {"web": 0.5, "code": 0.5}))
    planned = clock.planned()[0].planned
    (error,) = cap_errors(clock, {"code": 1, "web": 1})
    assert error.what == (
        f"source 'code' would be read {planned / 10:.2f} times, max_epochs is 1: {planned} "
        f"sequences planned, 10 allowed (10 available), {planned - 10} too many"
    )
    assert error.hint is not None
    assert error.hint.startswith(f"plan it as 0.25 of all sequences (now {planned / 40:.4g}), or")
    step = max(s for s in range(11) if clock.read_until(s)[0] <= 10)
    assert f"stop after {step * 32} of 320 tokens (training step {step} of 10)" in error.hint
    check_caps(made(Phase(step, 4, 8, {"web": 0.5, "code": 0.5})), {"code": 1})
    with pytest.raises(UsageError, match="too many"):
        check_caps(made(Phase(step + 1, 4, 8, {"web": 0.5, "code": 0.5})), {"code": 1})


def test_all_sources_that_are_read_too_often_are_named_at_once():
    with pytest.raises(UsageError, match=r"'code'.*; source 'web'"):
        check_caps(made(Phase(40, 4, 8, {"web": 0.5, "code": 0.5})), {"code": 1, "web": 1})


def test_what_is_skipped_does_not_count_against_a_cap():
    phase = Phase(10, 4, 8, {"web": 1.0})
    check_caps(made(phase, skip=[(2, 10)]), {"web": 0.1})
    with pytest.raises(UsageError, match=r"\b8 .*\b4 "):
        check_caps(made(phase, skip=[(3, 10)]), {"web": 0.1})


def run(*skip, tokens=320):
    phase = SimpleNamespace(
        tokens=tokens,
        sequence_length=None,
        mixture={"web": 1.0},
        mixture_end={"code": 1.0},
        batch_sizes=4,
    )
    ranges = [SimpleNamespace(first=a, last=b, unit=unit) for a, b, unit in skip]
    return SimpleNamespace(phases=[phase, phase], skip=ranges, seed=3)


def test_a_range_of_tokens_leaves_out_every_step_that_reads_one_of_them():
    """Steps of 32 tokens: tokens 64…96 are of steps 3 and 4; 639 is the last of 20 steps."""
    clock = clock_of_run(run((64, 96, "tokens"), (639, 10**9, "tokens")), SOURCES, LENGTHS)
    assert clock.skip == ((3, 4), (20, 20))
    clock = clock_of_run(run((64, 95, "tokens"), (7, 9, "training_steps")), SOURCES, LENGTHS)
    assert clock.skip == ((3, 3), (7, 9))


@pytest.mark.parametrize(
    ("skip", "message"),
    [
        ((640, 700, "tokens"), r"skip\.0: begins at 640, .* last of tokens is 639"),
        ((21, 30, "training_steps"), r"skip\.0: begins at 21, .* training steps is 20"),
    ],
)
def test_a_range_behind_the_end_of_the_run_is_refused(skip, message):
    with pytest.raises(UsageError, match=message):
        clock_of_run(run(skip), SOURCES, LENGTHS)


def test_a_run_that_is_interpolated_goes_from_one_mixture_to_the_other():
    """Two equal phases of 40 sequences, web -> code in each: half of all are code."""
    planned = clock_of_run(run(), SOURCES, LENGTHS).planned()
    assert planned[0].by_phase[0] + planned[1].by_phase[0] == 40
    assert all(abs(count - 20) <= 1 for one in planned for count in one.by_phase)
