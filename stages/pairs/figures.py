"""What learning from pairs contributes to a report: rewards during training, held-out pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.engine.page import Axis, Figure, make_table
from stages.pairs.config import WITHOUT_REFERENCE

if TYPE_CHECKING:
    from stages.training.figures import TrainingRun


def reference_level(run: TrainingRun) -> tuple[dict[str, float], str]:
    """The loss of the reference itself as a level of a curve, and a note; empty without one."""
    level = run.account["loss"]["of_reference"]
    levels = {} if level is None else {"reference": level}
    loss_note = (
        f"Where policy and reference agree, the loss is {level:.4g}; lower means they part rightly."
        if level is not None
        else ""
    )
    return levels, loss_note


def reward_curves(run: TrainingRun) -> list[Figure]:
    """Reward margin and accuracy of the pairs of each step."""
    compares = run.account["loss"]["name"] not in WITHOUT_REFERENCE
    return [
        *run.curve(
            "Reward margin of chosen over rejected answers",
            Axis("reward margin", format=".4g"),
            run.raw_and_smoothed("margin", "reward_margin"),
            levels={"reference": 0.0} if compares else {},
            note="Reward: beta times the log-probability of an answer, less the reference's where "
            "the loss has one; of losses of means, a mean over the answer's tokens.",
        ),
        *run.curve(
            "Reward accuracy, share of pairs",
            Axis("share of pairs", format=".3f"),
            run.raw_and_smoothed("accuracy", "reward_accuracy"),
            levels={"chance": 0.5},
            note="Pairs whose chosen answer is rewarded more, of the pairs of a step; of single "
            "answers the share whose reward is on the right side of beta times the KL. The first "
            "step has none: there the policy is the reference.",
        ),
    ]


def held_out_pairs(run: TrainingRun) -> list[Figure]:
    """Pairs that nothing was learnt from, after the last step: how many are in the right order.

    Empty where no pair was held out.
    """
    from stages.scoring.uncertainty import wilson

    names = ["training_step", "loss", "pairs", "right"]
    rows = run.output.read_table("held_out.parquet", ["source", *names]).to_pylist()
    rows = [row for row in rows if row["source"] == "all"]
    if not rows:
        return []
    last = rows[-1]
    accuracy = last["right"] / last["pairs"]
    low, high = wilson(last["right"], last["pairs"])
    headings = "after step:, | pairs:, | accuracy:.3f | low:.3f | high:.3f | loss:.4f"
    cells = [(last["training_step"], last["pairs"], accuracy, low, high, last["loss"])]
    note = "Accuracy: the share whose chosen answer is rewarded more, with Wilson's 95 % interval."
    return [make_table("Held-out pairs", headings, cells, note)]
