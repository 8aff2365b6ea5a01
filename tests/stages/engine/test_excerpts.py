from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from artifacts_schema.identity import document_id
from stages.engine import Input
from stages.engine.page import Part
from stages.engine.tally import SIDE, LeastIds, diff_from, diff_texts, excerpt, rows_by_id

HOSTILE = "<script>alert('x')</script> \x1b[31mred\x1b[0m \u202egnp.exe & done"


def marked(parts: tuple[Part, ...]) -> list[str]:
    return [part.text.strip() for part in parts if part.differs]


def joined(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts)


def test_the_same_rows_are_chosen_in_whatever_order_they_come() -> None:
    ids = [f"{n:02x}" for n in range(40)]
    chosen = []
    for seed in range(3):
        order = random.Random(seed).sample(ids, len(ids))
        least = LeastIds(3)
        for start in range(0, 40, 7):
            least.offer("kept", pa.table({"doc_id": order[start : start + 7]}))
        chosen.append([row["doc_id"] for row in least.groups["kept"]])
    assert chosen == [["00", "01", "02"]] * 3


def test_no_rows_make_no_group() -> None:
    least = LeastIds(3)
    least.offer("kept", pa.table({"doc_id": pa.array([], pa.string())}))
    assert least.groups == {}


def test_rows_are_found_over_shards_and_inputs(
    make_documents: Callable[..., Any], read_input: Callable[..., Input]
) -> None:
    inputs = [
        read_input(*make_documents([["one", "two"], ["three"]], snapshot="a")),
        read_input(*make_documents([["four"]], snapshot="b")),
    ]
    wanted = [document_id("a", "file", 2), document_id("b", "file", 0), "0" * 32]
    found = rows_by_id(inputs, wanted, ["text"])
    assert {row["text"] for row in found.values()} == {"three", "four"}


def test_an_excerpt_keeps_to_its_limit() -> None:
    assert excerpt("abcde", 5) == "abcde"
    assert excerpt("abcdef", 5) == "abc …"


def test_only_what_differs_is_marked() -> None:
    left, right = diff_texts("one two three\nfour five", "one two 3\nfour five six")
    assert marked(left) == ["three"]
    assert marked(right) == ["3", "six"]
    assert joined(left) == "one two three\nfour five"


def test_white_space_alone_is_no_difference() -> None:
    left, right = diff_texts("one  two\nthree", "one two three")
    assert marked(left) == marked(right) == []


def test_equal_texts_are_shown_from_the_beginning() -> None:
    text = "same words " * 400
    left, right = diff_texts(text, text)
    assert left == right
    assert joined(left) == text[:SIDE] + " …"
    assert marked(left) == []


def test_a_late_difference_is_shown_with_what_stands_before_it() -> None:
    start = "words that agree " * 300
    left, right = diff_texts(f"{start}LEFT end", f"{start}RIGHT end")
    assert marked(left) == ["LEFT"]
    assert marked(right) == ["RIGHT"]
    assert joined(left).startswith("… ")
    assert joined(left).endswith("agree LEFT end")


def test_a_side_is_never_longer_than_its_bound() -> None:
    one = " ".join(f"a{n}" for n in range(5000))
    two = "頁" * 20_000
    for side in diff_texts(one, two):
        assert len(joined(side)) <= SIDE + len("… ") + len(" …")


def test_hostile_text_stays_as_it_is() -> None:
    left, right = diff_texts(HOSTILE, HOSTILE + " more")
    assert joined(left) == HOSTILE
    assert joined(right) == HOSTILE + " more"
    assert marked(right) == ["more"]


def test_short_runs_that_agree_by_chance_are_marked_where_asked() -> None:
    left, right = "the cat sat on a mat of one two three four", "of the dog one two three four"
    assert marked(diff_from(left, right, 0, 0, run=4)[1]) == ["of the dog"]
    assert "".join(marked(diff_from(left, right, 0, 0, run=1)[1])) != "of the dog"
