"""What holds for all three measures: order, workers, task sizes, generations, memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from stages.dedup import passage_occurrences, passages

Make = Callable[..., Any]
ALL = {"lines": True, "sentences": True, "substrings": 8}


def texts(number: int, seed: int = 1) -> list[str]:
    """Texts of sentences on lines, of which many share lines, sentences and runs of words."""
    rng = random.Random(seed)
    sentences = [
        " ".join(f"w{rng.randrange(400)}" for _ in range(rng.randint(2, 9))) + "."
        for _ in range(60)
    ]
    made = []
    for _ in range(number):
        start = rng.randrange(50)
        own = [f"Own words {rng.random()} here.", *sentences[start : start + rng.randint(1, 9)]]
        rng.shuffle(own) if rng.random() < 0.5 else None
        made.append("".join(s + rng.choice([" ", " ", "\n", "\n\n"]) for s in own))
    return made


def test_nothing_is_asked(find: Make, rows: Make) -> None:
    found = find([[rows(["a\na"])]])
    assert found.told == {}
    assert found.spans == {}


@pytest.mark.full
def test_the_same_for_any_order_shards_workers_and_task_sizes(find: Make, rows: Make) -> None:
    documents = rows(texts(60))
    whole = find([[documents[:40], documents[40:]]], **ALL)
    assert all(told["spans"] > 10 for told in whole.told.values())
    for options in ({"rows_per_task": 900}, {"workers": 2}):
        again = find([[documents[:40], documents[40:]]], **options, **ALL)
        assert again == whole
    shuffled = random.Random(2).sample(documents, 60)
    parts = [shuffled[:1], shuffled[1:30], shuffled[30:]]
    other = find([parts], rows_per_task=1500, **ALL)
    assert other.spans == whole.spans
    assert other.told == whole.told


@pytest.mark.full
def test_tasks_of_one_passage(find: Make, rows: Make) -> None:
    documents = rows(["One line.", "Two\nOne line.", "a b c d e f g h i j", "b c d e f g h i"])
    again = find([[documents[:3], documents[3:]]], rows_per_task=1, **ALL)
    assert again == find([[documents[:3], documents[3:]]], **ALL)
    assert [len(spans) for spans in again.spans.values()] == [0, 1, 0, 1]


def test_a_run_taken_up_with_another_memory_finds_the_same(
    find: Make, rows: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a first map left stays when a later one may hold more; its runs then end inside a batch.
    documents = rows(texts(30))
    expected = find([[documents]], substrings=8)

    original = passage_occurrences.write_window_occurrences

    def write_window_occurrences(*given: Any, limit: int, **shared: Any) -> dict[str, Any]:
        assert limit == 100
        return original(*given, limit=1 << 20, **shared)

    monkeypatch.setattr(passages, "write_window_occurrences", write_window_occurrences)
    assert find([[documents]], rows_per_task=100, substrings=8) == expected


@pytest.mark.full
def test_measures_do_not_bear_on_each_other(find: Make, rows: Make) -> None:
    documents = rows(texts(40))
    together = find([[documents]], **ALL)
    for measure, value in ALL.items():
        alone = find([[documents]], **{measure: value})
        ((view, told),) = alone.told.items()
        assert told == together.told[view]
        for ident, spans in alone.spans.items():
            assert spans == [span for span in together.spans[ident] if span[0] == view]


def test_spans_come_by_view_and_start_without_overlap(find: Make, rows: Make) -> None:
    found = find([[rows(texts(60))]], **ALL)
    for spans in found.spans.values():
        assert [span[:2] for span in spans] == sorted(span[:2] for span in spans)
        for one, two in pairwise(spans):
            assert one[0] != two[0] or one[2] <= two[1]
        assert all(start < end for _, start, end, _ in spans)


def test_earlier_documents_do_not_depend_on_later_ones(find: Make, rows: Make) -> None:
    # The later output has the lesser ids, so only its generation puts it behind.
    early, late = rows(texts(50), first=1000), rows(texts(50, seed=1)[25:] + texts(9, seed=4))
    alone = find([[early]], **ALL)
    both = find([[early], [late[:20], late[20:]]], **ALL)
    assert {ident: both.spans[ident] for ident in alone.spans} == alone.spans
    ids = {row["doc_id"] for row in early}
    labels = {label for row in late for *_, label in both.spans[row["doc_id"]]}
    assert labels & ids
    backwards = find([[late[:20], late[20:]], [early]], **ALL)
    told = {label for row in late for *_, label in backwards.spans[row["doc_id"]]}
    assert not told & ids


def test_the_least_id_holds_a_passage_where_only_its_last_half_tells(find: Make) -> None:
    documents = [{"doc_id": f"{5:016x}{low:016x}", "text": "the line"} for low in (9, 3, 2**63)]
    found = find([[documents[:1], documents[1:]]], lines=True)
    assert [len(spans) for spans in found.spans.values()] == [1, 0, 1]
    assert found.spans[documents[0]["doc_id"]][0][3] == documents[1]["doc_id"]


def test_a_shard_of_several_row_groups(find: Make, rows: Make) -> None:
    lines = [
        str(n) if 8190 <= n < 8195 else f"own {chr(97 + n % 26)} {'q' * (n // 26)}"
        for n in range(8200)
    ]
    found = find([[rows([line[:400] for line in lines])]], rows_per_task=3000, lines=True)
    told = [found.spans[row["doc_id"]] for row in rows(lines)]
    # Digits are all one digit to CCNet, so four of the five lines around row 8192 are repeats.
    assert [n for n in range(8180, 8200) if told[n]] == [8191, 8192, 8193, 8194]
    assert all(span == told[8191] for span in told[8191:8195])


def test_the_most_frequent_passages(find: Make, rows: Make) -> None:
    notice = " ".join(f"n{number}" for number in range(70)) + "."
    footer = " ".join(f"f{number}" for number in range(300)) + "."
    documents = rows(
        [f"u{n} {notice} v{n}" for n in range(9)] + [f"x{n} {footer}" for n in range(5)]
    )
    most = find([[documents]], substrings=50).told["duplicate_substrings"]["most_frequent"]
    # Windows of one passage are told as one; what is long is told from its beginning.
    assert most == [
        {"count": 9, "doc_id": documents[0]["doc_id"], "excerpt": notice[:198] + " …"},
        {"count": 5, "doc_id": documents[9]["doc_id"], "excerpt": footer[:198] + " …"},
    ]


def test_a_part_that_is_more_frequent_is_told_apart(find: Make, rows: Make) -> None:
    part, rest = [f"p{number}" for number in range(12)], [f"r{number}" for number in range(12)]
    whole = " ".join([*part, *rest])
    documents = rows([whole, f"a {whole}", f"b {' '.join(part)} c", f"d {' '.join(part)} e"])
    most = find([[documents]], substrings=8).told["duplicate_substrings"]["most_frequent"]
    assert [(one["count"], one["excerpt"]) for one in most] == [
        (4, " ".join(part)),
        (2, " ".join([*part[5:], *rest])),  # its first window holds seven tokens of the part
    ]


def test_most_frequent_is_cut_at_twenty(find: Make, rows: Make) -> None:
    documents = rows(
        [
            "\n".join(f"line {chr(97 + n) * 3}" for n in range(26) if k % (n + 1) == 0) or "."
            for k in range(60)
        ]
    )
    most = find([[documents[:30], documents[30:]]], rows_per_task=9, lines=True)
    told = most.told["duplicate_lines@ccnet"]["most_frequent"]
    counts = [60 // (n + 1) + (60 % (n + 1) > 0) for n in range(26)]
    assert [one["count"] for one in told] == sorted(counts, reverse=True)[:20]


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 2])
def test_a_shard_without_documents_has_a_table(workers: int, find: Make, rows: Make) -> None:
    found = find([[[], rows(["a\na b c"]), []]], workers=workers, **ALL)
    assert [len(spans) for spans in found.spans.values()] == [0]
    assert found.told["duplicate_lines@ccnet"]["passages"] == 2
