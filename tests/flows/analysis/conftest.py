"""A tiny pretraining step in a recipe, and lives in forked copies of this process."""

from __future__ import annotations

import os
import random

import pytest
import torch

from flows.analysis import resume_proof, watched_child
from stages.engine.runner import run_stage as run_spec
from stages.pack.stage import Pack
from stages.tokenizer.stage import TokenizerStage

RECIPE = """\
name: tiny
steps:
  base:
    stage: pretrain
    config:
      model: {{width: 32, layers: 2, heads: 2, kv_heads: 1, context: 32}}
      phases:
        - tokens: 15_360
          sequences_per_batch: 4
          learning_rate: {{peak: 1.0e-2, warmup_share: 0.1}}
        - {{tokens: 7_680, sequences_per_batch: 4, learning_rate: {{decay: linear}}}}
      precision: fp32
      held_out_every: 60
    inputs: {{train: "{pack}:train", held_out: "{pack}:held_out", tokenizer: "{tokenizer}"}}
    execution: {{device: cpu, threads: 1, micro_batch: 3, workers: 1}}
"""
"""120 training steps, and 60 that decay."""


@pytest.fixture
def recipe(tmp_path, run_stage, make_documents):
    """The path of a recipe whose token shards stand in the test's store."""
    draw = random.Random(0)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far", "away"]
    texts = [" ".join(draw.choices(words, k=draw.randint(5, 40))) for _ in range(240)]
    documents = [make_documents([[{"source": "web", "text": text} for text in texts]])]
    settings = {"vocabulary_size": 300, "held_share": 0.0}
    tokenizer = run_stage(TokenizerStage, settings, {"documents": documents})
    pack = run_stage(
        Pack,
        {"sequence_length": 32, "held_out_share": 0.1},
        {"documents": documents, "tokenizer": [(tokenizer, "tokenizer")]},
    )
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE.format(pack=pack.key[:12], tokenizer=tokenizer.key[:12]))
    return path


@pytest.fixture
def in_forks(monkeypatch):
    """A life is a fork of this process, where everything is imported already."""
    torch.set_num_threads(1)

    def live(store, spec, record, strike):
        life = os.fork()
        if life == 0:
            code, said = 3, ""
            try:
                watched_child.record_batches(str(record), strike)
                run_spec(store, spec)
                code = 0
            except BaseException as error:
                said = f"error: {error}"
            finally:
                record.with_suffix(".txt").write_text(said)
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(life, 0)[1])

    monkeypatch.setattr(resume_proof, "run_life", live)
