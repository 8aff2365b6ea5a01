"""What other tools read of the tiny pipeline: its metrics add up."""

from __future__ import annotations

import math
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from artifacts_schema.store import Store
from flows.interchange.metrics import StoreMetrics

TOKENS, STEPS = 10_240 + 5_120, 30
"""Of pretrain in tiny.yaml: two phases, batches of 8 times 64 tokens."""


def test_metrics_of_training_add_up(tiny_store: Path):
    store = Store.open(str(tiny_store), create=False)
    values: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(StoreMetrics(store, ["tiny"]).text().decode()):
        for sample in family.samples:
            if sample.labels.get("step") == "pretrain":
                extra = sample.labels.get("cause") or sample.labels.get("unit") or ""
                values[sample.name, extra] = sample.value
    assert values["ingot_training_tokens_total", ""] == TOKENS
    assert values["ingot_training_steps_total", ""] == STEPS
    assert values["ingot_training_step", ""] == STEPS
    assert values["ingot_training_steps_lost_total", "restart"] == 0
    assert values["ingot_step_progress_done", "training steps"] == STEPS
    assert 0 < values["ingot_step_queue_seconds", ""] < 600
    assert 0 < values["ingot_training_loss", ""] < math.log(1_024)  # 512 tokens, trained a little.
