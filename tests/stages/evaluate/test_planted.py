import pytest

from stages.evaluate.pipeline_outcomes import (
    LedgerEntry,
    RecordOutcomes,
    is_caught,
    planted_observations,
)

KEPT, DROPPED = LedgerEntry(True, None, 0), LedgerEntry(False, None, 0)


def planted(defect, doc_id="x", partner=None, count=1):
    return {"defect": defect, "doc_id": doc_id, "partner": partner, "count": count}


def fate(rejected=(), **verdicts):
    return RecordOutcomes(verdicts, frozenset(rejected))


@pytest.mark.parametrize(
    ("row", "what_happened", "expected"),
    [
        (planted("boilerplate"), fate(x=DROPPED), True),
        (planted("boilerplate"), fate(x=KEPT), False),
        (planted("garbled"), fate(rejected=["x"]), True),
        (planted("repetition"), fate(), False),
        (planted("benchmark_leak", partner="item-3"), fate(x=DROPPED), True),
        (planted("benchmark_leak", partner="item-3"), fate(x=KEPT), False),
        (planted("broken_record"), fate(rejected=["x"]), True),
        (planted("broken_record"), fate(x=DROPPED), False),
        (planted("personal_data", count=2), fate(x=LedgerEntry(True, None, 2)), True),
        (planted("personal_data", count=2), fate(x=LedgerEntry(True, None, 1)), False),
        (planted("personal_data", count=2), fate(x=DROPPED), True),
        (planted("personal_data", count=2), fate(), False),
        (planted("near_duplicate", partner="o"), fate(x=LedgerEntry(False, "o", 0), o=KEPT), True),
        (planted("near_duplicate", partner="o"), fate(x=KEPT, o=LedgerEntry(False, "x", 0)), True),
        (planted("exact_duplicate", partner="o"), fate(x=KEPT, o=KEPT), False),
        # the original fell to a rule, its copy slipped through: nothing found the copy
        (planted("exact_duplicate", partner="o"), fate(x=KEPT, o=DROPPED), False),
    ],
)
def test_a_defect_is_caught_where_the_corpus_no_longer_holds_it(row, what_happened, expected):
    assert is_caught(row, what_happened) is expected


def test_recall_by_defect_and_the_share_of_sound_documents_that_stay():
    truth = [
        planted("boilerplate", "b"),
        planted("near_duplicate", "copy", partner="original"),
        planted("broken_record", "broken"),
    ]
    what_happened = fate(
        rejected=["broken", "lost"],
        b=KEPT,
        copy=LedgerEntry(False, "original", 0),
        original=KEPT,
        sound=KEPT,
        hurt=DROPPED,
    )
    found = [
        (one.benchmark, one.item_id, one.metric, one.numerator)
        for one in planted_observations(truth, what_happened)
    ]
    assert found == [
        ("planted/boilerplate", "b", "recall", 0.0),
        ("planted/broken_record", "broken", "recall", 1.0),
        ("planted/near_duplicate", "copy", "recall", 1.0),
        ("planted/none", "hurt", "kept", 0.0),
        ("planted/none", "lost", "kept", 0.0),
        ("planted/none", "sound", "kept", 1.0),
    ]
