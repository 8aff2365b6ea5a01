"""What models are taught and asked, made of docstrings."""

from __future__ import annotations

from collections import Counter

from stages.sample.crawl import page_text
from stages.sample.lessons import (
    conversations,
    cut_pieces,
    docstring_items,
    drop_shared,
    preferences,
    summary,
    text_items,
)
from stages.sample.modules import DocPage, Entry, Module


def module(name: str, count: int, html: str = "") -> Module:
    entries = tuple(
        Entry(
            name,
            "function",
            f"make_{n}",
            f"(size={n})",
            f"Make a {name} of\nsize {n} and return it.\n\nMore about {name} {n}.",
        )
        for n in range(count)
    )
    return Module(name, (DocPage(name, name, html),), entries)


MODULES = [module("shelf", 40), module("crate", 40)]


def test_a_summary_is_the_first_paragraph_on_one_line() -> None:
    assert summary("Do this\n  and that.\n\nThen more.") == "Do this and that."


def test_the_right_choice_is_the_summary_of_the_name_asked_for() -> None:
    items = docstring_items(MODULES, seed=0)
    entries = {f"{e.module}.{e.name}{e.signature}:": e for m in MODULES for e in m.entries}
    assert len(items) == 80
    for item in items:
        assert item["choices"][item["answer"]] == " " + summary(entries[item["prompt"]].doc)
        assert len(set(item["choices"])) == 4
    assert len({item["item_id"] for item in items}) == 80


def test_the_place_of_the_right_choice_tells_nothing() -> None:
    places = Counter(item["answer"] for item in docstring_items(MODULES, seed=0))
    # 80 answers over 4 places: 20 each, standard deviation sqrt(80 * 3/16) = 3.9.
    assert all(abs(places[n] - 20) < 4 * 3.9 for n in range(4))


def test_entries_with_the_same_summary_are_asked_once() -> None:
    twin = Entry("crate", "function", "same", "()", MODULES[0].entries[0].doc)
    items = docstring_items([*MODULES, Module("crate", (), (twin,))], seed=0)
    assert len(items) == 80


def test_text_items_are_whole_paragraphs() -> None:
    line = "This line stands on a page and is told at some length.\n"
    made = list(cut_pieces((line * 8 + "\n") * 20))
    assert made
    assert all(len(piece) >= 2000 for piece in made)
    items = text_items([module("crate", 0, f"<p>{line * 8}</p>\n" * 20)])
    assert [item["item_id"] for item in items] == ["crate-0", "crate-1", "crate-2"]
    assert all(item["form"] == "text" and item["choices"] == [] for item in items)


def test_items_that_a_page_repeats_are_left_out() -> None:
    long = " ".join(f"word{n}" for n in range(20))
    items = [
        {"prompt": f"{name}:", "choices": ["x", f" {text}"], "answer": 1, "form": "multiple_choice"}
        for name, text in (("a", long), ("b", long.replace("word3", "other")), ("c", "short"))
    ]
    page = "Before. " + " ".join(f"Word{n}," for n in range(4, 17)) + " After."
    kept = drop_shared(items, [page])
    # words 4 to 16 are 13 in a row, which both long items hold.
    assert [item["prompt"] for item in kept] == ["c:"]
    assert len(drop_shared(items, [page.replace("Word16,", "")])) == 3


def test_conversations_alternate_and_end_with_the_assistant() -> None:
    made = conversations(MODULES, seed=0)
    assert len(made) == 80
    for row in made:
        roles = [m["role"] for m in row["messages"] if m["role"] != "system"]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert all(m["content"].strip() for m in row["messages"])
    lengths = Counter(len(row["messages"]) for row in made)
    assert lengths[2] > 10
    assert lengths[4] > 10


def test_the_first_answer_names_what_was_asked_about_before_its_summary() -> None:
    entries = {e.name: e for e in MODULES[0].entries}
    for row in conversations(MODULES[:1], seed=0):
        turns = [m["content"] for m in row["messages"] if m["role"] != "system"]
        name = next(name for name in sorted(entries, key=len, reverse=True) if name in turns[0])
        named = f"`{name}` is a function of the module `shelf`."
        assert turns[1] == f"{named} {summary(entries[name].doc)}"


def test_a_rejected_answer_is_never_the_chosen_one() -> None:
    pairs = preferences(MODULES, seed=0)
    assert len(pairs) == 80
    assert all(pair["chosen"] != pair["rejected"] for pair in pairs)
    wrong, cut, repeating = pairs[0], pairs[1], pairs[2]
    assert wrong["rejected"] in {p["chosen"] for p in pairs}
    assert cut["chosen"].startswith(cut["rejected"])
    assert repeating["rejected"] == " ".join([repeating["chosen"]] * 3)


def test_the_text_of_a_page_is_what_an_extractor_reads_from_it() -> None:
    from resiliparse.extract.html2text import extract_plain_text

    page = (
        "<h1>crate</h1>\n<p>Make a <b>crate</b> of\nany size,\n or none.</p>\n"
        "<dl><dt>make(size)</dt><dd>Make it &amp; return it.</dd></dl>\n"
        "<pre>make(1)\n    # one</pre>\n<p>The end.</p>"
    )
    assert page_text(page).split("\n\n")[:2] == ["crate", "Make a crate of any size, or none."]
    assert "make(1)\n    # one" in page_text(page)
    assert page_text(page).split() == extract_plain_text(page).split()
