"""What a comparison of two runs says first."""

from __future__ import annotations

from flows.analysis.score_comparison import ScorePair, judge_pairs
from flows.report.paired_scores import paired_table
from stages.scoring.differences import paired_difference
from stages.scoring.observations import ScoreName


def difference(name, before, after):
    count = len(before)
    name = ScoreName(name, None, None, "accuracy")
    return ScorePair(name, paired_difference(before, after, [1.0] * count), 0)


def test_paired_scores_are_named_after_adjustment_and_the_others_say_what_was_unseen():
    """40 of 200 items gained, none lost; and 6 against 5 of 100, of which nothing is known."""
    clear = difference("clear", [0.0] * 200, [1.0] * 40 + [0.0] * 160)
    unclear = difference("unclear", [0.0] * 6 + [1.0] * 94, [1.0] * 6 + [0.0] * 5 + [1.0] * 89)
    judged = judge_pairs([unclear, clear])
    table = paired_table([("evaluate", one) for one in judged])
    assert [row[0] for row in table.rows] == ["clear (evaluate)"]
    assert table.rows[0][2:5] == ("0.000", "0.200", "+0.200")
    assert table.rows[0][-1] == "B is better"
    assert table.note.startswith("1 of 2 ")
    assert f"{judged[0].detectable:.3f}" in table.note
    assert "No evaluation" in paired_table([]).note
