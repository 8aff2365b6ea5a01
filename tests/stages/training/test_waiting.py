"""Threads that sleep while they wait give the same bits as threads that spin."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stages.engine.spec import WAIT_POLICY, StageSpec, child_environment
from stages.pretrain.stage import Pretrain

STEP = """
import hashlib, torch
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
torch.set_num_threads(2)
model = Decoder(ModelShape(width=64, layers=1, heads=2, kv_heads=1).with_vocabulary(512), seed=0)
tokens = torch.arange(4 * 256).view(4, 256) * 7 % 512
model(tokens).logsumexp(-1).mean().backward()
found = hashlib.sha256()
for parameter in model.parameters():
    found.update(parameter.grad.numpy().tobytes())
print(torch.get_num_threads(), found.hexdigest())
"""


def gradients(environment):
    plain = {name: value for name, value in os.environ.items() if name not in WAIT_POLICY}
    done = subprocess.run(
        [sys.executable, "-c", STEP],
        env={**plain, "OMP_NUM_THREADS": "2", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.full
def test_gradients_have_the_same_bits_however_threads_wait():
    asleep, spinning = gradients(WAIT_POLICY), gradients({})
    assert asleep[0] == "2"
    assert asleep == spinning


@pytest.fixture
def spec():
    # Inputs do not matter for the environment.
    config = Pretrain.Config()
    return StageSpec("pretrain", Pretrain.version, config.plain(), {}, {}, {"threads": 2})


def test_a_child_waits_asleep_unless_a_person_says_otherwise(spec, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert child_environment(spec)["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert child_environment(spec)["OMP_WAIT_POLICY"] == "ACTIVE"


def test_a_stage_that_a_node_starts_waits_asleep_too():
    code = (
        "import os, sys; from stages.__main__ import main; "
        "main(['toy', '--store', '/nowhere', '--spec', '/nowhere/spec.json']); "
        "print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    )
    plain = {name: value for name, value in os.environ.items() if name not in WAIT_POLICY}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True)
    assert done.stdout.split()[-2:] == ["PASSIVE", "False"]
