import pytest

from stages.evaluate.benchmarks import draw, read_items


def row(item_id="1", **changes):
    values = {
        "benchmark": "quiz",
        "item_id": item_id,
        "form": "multiple_choice",
        "prompt": "Capital of France?",
        "choices": ["Paris", "Rome"],
        "answer": 0,
    }
    return {**values, **changes}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": None}, "answer_is_no_choice"),
        ({"answer": 2}, "answer_is_no_choice"),
        ({"answer": -1}, "answer_is_no_choice"),
        ({"choices": ["Paris"]}, "fewer_than_two_choices"),
        ({"choices": ["Paris", " "]}, "empty_choice"),
        ({"form": "essay"}, "unknown_form"),
        ({"form": "text", "prompt": "\n"}, "empty_text"),
    ],
)
def test_items_that_cannot_be_scored_are_told_apart_by_reason(change, reason):
    items, bad = read_items([row("good"), row("bad", **change)])
    assert [item.item_id for item in items] == ["good"]
    assert [(item.item_id, item.reason) for item in bad] == [("bad", reason)]


def test_texts_need_no_choices():
    items, bad = read_items([row(form="text", choices=[], answer=None)])
    assert (items[0].prompt, bad) == ("Capital of France?", [])


def test_a_larger_cap_keeps_what_a_smaller_one_drew_in_the_order_of_the_file():
    items, _ = read_items(row(str(number)) for number in range(50))
    few, more = draw(items, 5, seed=1), draw(items, 20, seed=1)
    assert [item for item in items if item in few] == few
    assert len(few) == 5
    assert set(few) < set(more)
    assert few != items[:5]
    assert set(draw(items, 5, seed=2)) != set(few)


def test_the_draw_does_not_depend_on_the_order_of_the_items():
    items, _ = read_items(row(str(number)) for number in range(50))
    assert set(draw(items[::-1], 7, seed=3)) == set(draw(items, 7, seed=3))


def test_items_on_one_passage_share_a_cluster_by_their_metadata():
    rows = [row(str(i), metadata=f'{{"passage": {i // 2}}}') for i in range(4)]
    items, _ = read_items([*rows, row("alone", metadata="{}")], cluster_by="passage")
    assert [item.cluster for item in items] == ["0", "0", "1", "1", None]
    assert {item.cluster for item in read_items(rows)[0]} == {None}
