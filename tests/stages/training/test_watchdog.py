"""A run that gives no sign of life is ended, its stacks in the log; one that does is not."""

import subprocess
import sys
import threading

import pytest

from stages.engine.hangs import FACTOR, SilenceTimer
from stages.training.callbacks import StepDone, Watchdog, thread_stacks


def step(seconds):
    return StepDone(1, 10, 10, 1.0, 1.0, 0.1, 0, False, seconds)


def test_silence_longer_than_the_floor_is_a_hang():
    patience = SilenceTimer(60)
    assert patience.tick == 6
    assert [patience.passed(6) for _ in range(11)] == [False] * 10 + [True]


def test_a_sign_of_life_starts_anew():
    patience = SilenceTimer(60)
    for _ in range(50):
        patience.alive()
        assert not any(patience.passed(6) for _ in range(9))


def test_slow_training_steps_may_take_many_times_their_median():
    patience = SilenceTimer(60)
    for seconds in (10, 11, 900, 10, 12):
        patience.alive(seconds)
    assert patience.limit == FACTOR * 11
    patience.alive(0.1)
    assert SilenceTimer(60).limit == 60


def test_a_process_that_stood_still_as_a_whole_does_not_hang():
    """An hour between two looks of six seconds: a stopped job counts two looks."""
    patience = SilenceTimer(60)
    assert not patience.passed(3600)
    assert patience.silent == 12


def test_it_exit_on_hang_once_and_not_a_run_that_is_over():
    hung = threading.Event()
    watchdog = Watchdog(0.05, lambda silent: hung.set())
    watchdog.started(0, 10)
    assert hung.wait(20)
    watchdog.ended(None)

    calm = Watchdog(1000, lambda silent: pytest.fail("no hang"))
    calm.started(0, 10)
    calm.step_done(step(0.1))
    calm.ended(None)
    assert "watchdog" not in {one.name for one in threading.enumerate()}


def test_stacks_name_the_function_that_waits():
    entered, leave = threading.Event(), threading.Event()

    def waits_for_ever():
        entered.set()
        leave.wait()

    thread = threading.Thread(target=waits_for_ever)
    thread.start()
    entered.wait()
    try:
        assert "waits_for_ever" in thread_stacks()
    finally:
        leave.set()
        thread.join()


@pytest.mark.full
def test_a_hung_process_ends_with_the_code_for_resume_me():
    program = """
import logging, sys, threading
from stages.training.callbacks import Watchdog, exit_on_hang

class Context:
    log = logging.getLogger()
    def alert(self, kind, text):
        print(kind, text, flush=True)

def collective_that_never_returns():
    threading.Event().wait()

logging.basicConfig(stream=sys.stdout)
Watchdog(0.1, exit_on_hang(Context())).started(0, 10)
collective_that_never_returns()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 75, done.stderr
    assert "collective_that_never_returns" in done.stdout
    assert "hang ended after" in done.stdout
