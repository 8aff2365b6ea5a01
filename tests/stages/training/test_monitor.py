import math

from artifacts_schema.kinds import KINDS, Column
from stages.training.monitor import (
    HeldOut,
    RunLog,
    held_out_table,
    log_held_out,
    metrics_table,
)


def row(step, loss):
    return {
        "training_step": step,
        "tokens": step * 10,
        "phase": 0,
        "loss": loss,
        "grad_norm": 1.0,
        "learning_rate": 0.1,
        "skipped": False,
        "loss/web": None,
    }


def test_a_restored_log_forgets_what_came_after_and_goes_on(tmp_path):
    log = RunLog(tmp_path / "log")
    log.append("metrics", row(1, 0.1))
    position = log.position()
    log.append("metrics", row(2, 0.2))
    log.close()

    again = RunLog(tmp_path / "log")
    assert again.holds(position)
    again.restore(position)
    again.append("metrics", row(2, 0.25))
    assert [r["loss"] for r in again.rows("metrics")] == [0.1, 0.25]

    straight = RunLog(tmp_path / "straight")
    straight.append("metrics", row(1, 0.1))
    straight.append("metrics", row(2, 0.25))
    assert straight.position() == again.position()


def test_a_log_that_lost_lines_does_not_hold_the_position(tmp_path):
    log = RunLog(tmp_path / "log")
    log.append("metrics", row(1, 0.1))
    position = log.position()
    log.restore(None)
    assert not log.holds(position)
    log.append("metrics", row(1, 0.3))
    log.position()
    assert not log.holds(position)


def test_tables_have_the_columns_of_their_kind_and_keep_every_bit(tmp_path):
    log = RunLog(tmp_path / "log")
    log.append("metrics", row(1, 1 / 3))
    log.append("metrics", row(2, math.nan))
    log_held_out(log, 0, 0, [HeldOut("all", 2.5, None), HeldOut("web", 2.5, 1.1)])
    metrics = metrics_table(log, [Column("loss/web", "float64?", "Loss on web.")])
    KINDS["training_run"].tables["metrics.parquet"].check(metrics.schema, where="here")
    assert metrics["loss"][0].as_py() == 1 / 3
    assert math.isnan(metrics["loss"][1].as_py())
    assert metrics["loss/web"].null_count == 2
    held_out = held_out_table(log)
    KINDS["training_run"].tables["held_out.parquet"].check(held_out.schema, where="here")
    assert held_out["source"].to_pylist() == ["all", "web"]
