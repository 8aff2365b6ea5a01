"""Random disturbances, system calls that fail below Python among them; nothing may be lost.

`make test` runs one short round of each kind of failing call: one stage in a process of its own.
The full tier runs fifty random rounds of the whole recipe in a folder, and on a bucket behind a
proxy that fails too. INGOT_CAMPAIGN_SEED and INGOT_CAMPAIGN_ROUNDS repeat or shorten them.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from failing_io import FailingIO, Fault, compiled
from faulty_proxy import Fault as ProxyFault
from faulty_proxy import FaultyProxy
from pipeline import campaign, faults
from pipeline.conftest import FURTHER_STEPS

from artifacts_schema.store import Store
from stages.engine.runner import run_stage

pytestmark = pytest.mark.faults

SHORT = ("quality_models", "pack", "pretrain")
"""Native writers of models, a map over shards, checkpoints."""
QUICK = ("quality_models", "pack")
"""Those that take no longer than a few seconds."""
OF_AN_ENCODER = ("EIO on one read", "short reads", "EACCES on opens", "full disk at a write")
"""What strikes the stages that start torch for each round."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("failing-io"))


def run_in_process(store, step, io, folder):
    """The stage's entry, as a child or a job runs it, with calls below the store counted."""
    path = folder / "spec.json"
    path.write_bytes(step.spec.to_json())
    command = [sys.executable, "-P", "-m", "stages", step.stage]
    done = subprocess.run(
        [*command, "--store", store.url, "--spec", str(path), "--key", step.key],
        env={**os.environ, **io.environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def counted():
    """Calls of each class that a stage makes undisturbed, by instance: counted once."""
    return {}


def rounds():
    """Each kind strikes one stage in `make test` (a trainer: one kind); all in the full tier."""
    for number, kind in enumerate(campaign.IO_FAULTS):
        for instance in SHORT:
            short = instance == QUICK[number % len(QUICK)]
            short |= instance == "pretrain" and kind == "EIO on one write"
            marks = [] if short else [pytest.mark.full]
            yield pytest.param(instance, kind, marks=marks, id=f"{instance}-{kind}")
    yield "dedup", "short reads"  # Its kernels read by themselves.
    for step in FURTHER_STEPS:
        for kind in campaign.IO_FAULTS if step == "later_passages" else OF_AN_ENCODER:
            yield pytest.param(step, kind, marks=pytest.mark.full, id=f"{step}-{kind}")


@pytest.mark.parametrize(("instance", "kind"), rounds())
def test_a_failing_call_is_one_clear_error_and_costs_nothing(
    copy, without, library, counted, tmp_path, instance, kind
):
    seed = f"{instance}/{kind}"
    draw = random.Random(seed)
    call, error, times = campaign.IO_FAULTS[kind]
    step, before = without(instance)
    store = copy.store
    io = FailingIO(library, Path(store.url), tmp_path / "control")
    if instance not in counted:
        assert run_in_process(store, step, io, tmp_path)[0] == 0
        counted[instance] = io.calls
        without(instance)
    standing = {(m.stage, m.key) for m in store.manifests()}
    first = draw.randint(1, max(1, counted[instance][call]))
    fault = Fault(call, error, 1 if kind in campaign.HARMLESS else first, times)
    print(f"seed {seed!r}: {fault} of {counted[instance][call]}")
    io.strike(fault)
    code, output = run_in_process(store, step, io, tmp_path)
    assert io.struck > 0
    if kind in campaign.HARMLESS:
        assert code == 0, output
    if code:
        campaign.check_output(output)
        assert "error: " in output
    assert standing <= {(m.stage, m.key) for m in store.manifests()}
    run_stage(store, step.spec)
    faults.is_same_artifact(store, step, before)


class Unreliable(FaultyProxy):
    """About one request in twenty fails, by chance."""

    draw = random.Random()

    def take(self, method, path, range_):
        super().take(method, path, range_)
        if self.draw.random() > 0.05:
            return None
        kind = self.draw.choice(["cut", "lose", "refuse"])
        answers = [(500, "InternalError"), (503, "SlowDown")]
        if method not in ("GET", "HEAD"):  # S3 answers 409 to writes alone.
            answers.append((409, "OperationAborted"))
        status, code = self.draw.choice(answers)
        return ProxyFault(kind, method=method, status=status, code=code)


@pytest.mark.full
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_random_rounds_end_in_the_same_bytes(ran, library, tmp_path, request, place):
    seed = int(os.environ.get("INGOT_CAMPAIGN_SEED") or secrets.randbits(32))
    rounds = int(os.environ.get("INGOT_CAMPAIGN_ROUNDS") or 50)
    print(f"\nINGOT_CAMPAIGN_SEED={seed} INGOT_CAMPAIGN_ROUNDS={rounds}, {place}")
    draw = random.Random(seed)
    environment = {}
    with contextlib.ExitStack() as held:
        if place == "folder":
            url, below = str(tmp_path / "store"), tmp_path / "store"
            clear = lambda: shutil.rmtree(below)  # noqa: E731
        else:
            url = request.getfixturevalue("s3_url") + "/store"
            proxy = held.enter_context(Unreliable(os.environ["AWS_ENDPOINT_URL"]))
            proxy.draw = random.Random(seed)
            environment["AWS_ENDPOINT_URL"] = proxy.url
            below = Path(os.environ["INGOT_CACHE"])
            clear = lambda: Store.open(url).backend.remove("")  # noqa: E731
        below.parent.mkdir(exist_ok=True)
        io = FailingIO(library, below, tmp_path / "control")
        expected = campaign.digests(ran.store)
        disturbed = campaign.Campaign(url, expected, draw, environment, io, clear)
        try:
            disturbed.rounds(rounds)
        finally:
            campaign.kill(campaign.stages(url))
            print(campaign.table(disturbed.outcomes))
            print(f"{disturbed.whole_runs} whole runs with equal digests")
