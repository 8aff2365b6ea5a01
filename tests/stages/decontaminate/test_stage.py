"""Decontamination through the engine, both ways, with counts by arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from stages.decontaminate.shingles import normalise_words
from stages.decontaminate.stage import Decontaminate

Given = tuple[Manifest, str]
Make = Callable[..., Any]
Read = Callable[..., Any]

LONG = "Which of these four rivers flows through the old capital before it meets the northern sea?"
SHORT = "Name the largest moon of the planet Saturn now"
TINY = "What is rust?"
ITEMS = [
    ("long", LONG, ["The Elbe", "The Rhine"], 0),  # 16 + 2 words: 6 13-grams
    ("short", SHORT, ["Titan", "Rhea"], 0),  # 9 + 1 words: one 9-gram, one 10-gram
    ("tiny", TINY, ["Iron oxide", "A fish"], 0),  # 3 + 2 words: one 5-gram
    ("word", "Rust?", ["Yes", "No"], 0),  # 1 + 1 words: too short
    ("clean", "a question that no document holds " * 3, [], None),
]
OTHER = "Nothing of the sort is found in this plain sentence about bread and butter and jam."
LEAK = f"{OTHER} {LONG.upper()} the elbe! {OTHER}"
WRONG = f"{OTHER} {LONG} The Rhine."
WHOLE = f"quiz: {SHORT}, titan"
SHARDS = [[OTHER, LEAK], [WRONG, WHOLE, TINY + " Iron oxide"]]


def run(
    run_stage: Make, documents: list[Given], benchmarks: Given, config: Any = None, **kw: Any
) -> Manifest:
    inputs = {"documents": documents, "benchmarks": [benchmarks]}
    return run_stage(Decontaminate, config or {}, inputs, **kw)


def folder(documents: Given) -> str:
    manifest, output = documents
    return sidecar_folder(manifest.output(output).digest)


@pytest.fixture
def documents(make_documents: Make) -> Given:
    return make_documents(SHARDS)


@pytest.fixture
def benchmarks(make_benchmarks: Make) -> Given:
    return make_benchmarks(ITEMS)


def rows(read_table: Read, made: Manifest, documents: Given) -> list[dict[str, Any]]:
    return [
        row
        for path in ("00000.parquet", "00001.parquet")
        for row in read_table(made, "contamination", f"{folder(documents)}/{path}").to_pylist()
    ]


def test_documents_name_the_items_they_hold(
    documents: Given, benchmarks: Given, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, [documents], benchmarks)
    found = rows(read_table, made, documents)
    ids = read_table(*documents)["doc_id"].to_pylist()
    assert [row["doc_id"] for row in found] == ids
    other, leak, wrong, whole, tiny = found

    assert other["hits"] == []
    assert [hit["item_id"] for hit in tiny["hits"]] == ["tiny"]
    assert other["ngrams"] == 16 - 13 + 1
    assert leak["ngrams"] == 16 + 18 + 16 - 13 + 1
    assert leak["ngrams_hit"] == 6
    (hit,) = leak["hits"]
    assert (hit["benchmark"], hit["item_id"], hit["ngrams"]) == ("exam", "long", 6)
    thirteen = " ".join(LONG.upper().split()[:13])
    assert LEAK[hit["start"] : hit["end"]] == thirteen

    # The prompt alone shares the n-grams that do not reach the answer: all but the last two, and
    # one more, for both answers begin with "the".
    assert wrong["ngrams_hit"] == wrong["hits"][0]["ngrams"] == 5
    # Prompt, and prompt and answer, begin at one place; the shorter is the first there.
    assert (whole["ngrams"], whole["ngrams_hit"], whole["hits"][0]["ngrams"]) == (1, 1, 2)
    assert WHOLE[whole["hits"][0]["start"] : whole["hits"][0]["end"]] == SHORT


def test_items_tell_how_much_of_them_is_held(
    documents: Given, benchmarks: Given, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, [documents], benchmarks)
    assert read_table(made, "contamination", "items.parquet").to_pylist() == [
        {"benchmark": "exam", "item_id": "long", "documents": 2, "ngrams": 6, "ngrams_hit": 6},
        {"benchmark": "exam", "item_id": "short", "documents": 1, "ngrams": 2, "ngrams_hit": 2},
        {"benchmark": "exam", "item_id": "tiny", "documents": 1, "ngrams": 1, "ngrams_hit": 1},
    ]
    assert made.counts == {
        "documents": 5,
        "documents_hit": 4,
        "items": 5,
        "items_hit": 3,
        "items_too_short": 1,
        "items_common": 0,
        "items_quoted": 0,
        "common_ngrams": 0,
    }
    assert made.conservation is not None
    assert (made.conservation.records_in, made.conservation.out) == (5, 5)


def test_items_without_choices_are_found_by_prompt_and_reference_answer(
    make_documents: Make, given: Make, run_stage: Make, read_table: Read
) -> None:
    """A question of 6 words counts with its answer alone; one of code never with its tests."""

    def free(benchmark: str, item_id: str, prompt: str, *references: str) -> dict[str, Any]:
        request = {"formulation": "free", "shots": 0, "prompt": f"Q: {prompt}\nA:",
                   "choices": [], "references": list(references), "contexts": []}  # fmt: skip
        return {"benchmark": benchmark, "item_id": item_id, "form": "free", "prompt": prompt,
                "choices": [], "answer": None, "requests": [request], "metadata": "{}"}  # fmt: skip

    def task(name: str, metric: str) -> dict[str, Any]:
        return {"name": name, "version": 1, "formulations": {"free": {"metric": metric}}}

    asked, coded = "Who wrote the novel about ferns", "Write add which adds two numbers"
    items = [
        free("quiz", "answered", asked, "Maud Ellis", "M. Ellis"),
        free("quiz", "absent", "Who painted the portrait of rain", "Otto Berg"),
        free("programs", "coded", coded, "assert add"),
    ]
    tasks = [task("programs", "code"), task("quiz", "exact_match")]
    benchmarks = given("benchmarks", {"00000.parquet": items, "tasks.json": tasks})
    texts = [f"{OTHER} {asked}? M. Ellis. {OTHER}", f"{OTHER} {asked}? {OTHER}"]
    more = [f"{OTHER} {coded}: assert add(1, 2). {OTHER}", f"{OTHER} Otto Berg {OTHER}"]
    documents = make_documents([texts, more])
    made = run(run_stage, [documents], benchmarks)
    held = [[hit["item_id"] for hit in row["hits"]] for row in rows(read_table, made, documents)]
    assert held == [["answered"], [], [], []]
    assert made.counts["items_too_short"] == 1


def test_the_least_length_of_a_whole_is_a_setting(
    documents: Given, benchmarks: Given, run_stage: Make, read_table: Read
) -> None:
    for least, expected in ((6, ["long", "short"]), (5, ["long", "short", "tiny"])):
        made = run(run_stage, [documents], benchmarks, {"min_answered_words": least})
        items = read_table(made, "contamination", "items.parquet")["item_id"].to_pylist()
        assert items == expected


def test_short_items_that_many_documents_hold_are_common_phrases(
    make_documents: Make, benchmarks: Given, run_stage: Make, read_table: Read
) -> None:
    texts = [f"{OTHER} {TINY} Iron oxide, of course. {n}" for n in range(11)]
    documents = make_documents([[*texts, LEAK]])
    made = run(run_stage, [documents], benchmarks)
    assert (made.counts["items_hit"], made.counts["items_common"]) == (1, 1)
    assert made.counts["documents_hit"] == 1
    made = run(run_stage, [documents], benchmarks, {"common_short_documents": 11})
    assert (made.counts["items_hit"], made.counts["items_common"]) == (2, 0)
    made = run(run_stage, [documents], benchmarks, {"common_short_documents": None})
    assert (made.counts["items_hit"], made.counts["items_common"]) == (2, 0)


def test_empty_items_and_items_of_one_word_hit_nothing(
    make_documents: Make, make_benchmarks: Make, run_stage: Make
) -> None:
    items = [("a", "", ["x", "y"], 0), ("b", "the", [], None), ("c", "?!", ["...", "!"], 1)]
    items += [("d", "12 + 7 = 1, 2, 3, 4, 5 6", ["19", "20"], 0)]
    documents = make_documents([["the x y 12 + 7 = 1, 2, 3, 4, 5 6 19 ?! ...", "", "a" * 9999]])
    made = run(run_stage, [documents], make_benchmarks(items))
    assert (made.counts["items_too_short"], made.counts["documents_hit"]) == (4, 0)


def test_items_of_any_script_are_found_in_other_forms_of_their_letters(
    make_documents: Make, make_benchmarks: Make, run_stage: Make, read_table: Read
) -> None:
    """Right to left with marks of direction, without spaces, full width, ligatures, soft hyphen."""
    items = [
        ("ar", "ما هي عاصمة هذه البلاد الجميلة القديمة منذ ١٢ قرنا", [], None),
        ("he", "מהי עיר הבירה של הארץ היפה והעתיקה הזאת", [], None),
        ("ja", "日本の首都はどこですか東京です", [], None),
        ("th", "นี่คือคำถามที่ไม่มีใครเคยถามมาก่อน", [], None),
        ("en", "Which office first defined the flow of 40 rivers", [], None),
    ]
    texts = [
        "قال: \u202bما هي عاصمة هذه البلاد الجميلة القديمة منذ 900 قرنا؟\u202c",
        "\u2067מהי עיר הבירה של הארץ היפה והעתיקה הזאת?\u2069",
        "問題：日本の首都はどこですか？東京です。",
        "ถาม: นี่คือคำถามที่ไม่มีใครเคยถามมาก่อน?",
        "Ｗｈｉｃｈ oﬃce ﬁrst de\u00adfined the \u200bﬂow of ４１ rivers",
    ]
    documents = make_documents([texts, [OTHER]])
    made = run(run_stage, [documents], make_benchmarks(items))
    held = [[hit["item_id"] for hit in row["hits"]] for row in rows(read_table, made, documents)]
    assert held == [["ar"], ["he"], ["ja"], ["th"], ["en"], []]


def test_one_character_again_and_again_is_searched_like_any_text(
    make_documents: Make, make_benchmarks: Make, run_stage: Make, read_table: Read
) -> None:
    """Twenty times one word are one 13-gram, which a thousand hold at 988 places."""
    items = [("ha", "ha " * 20, [], None), ("a", "a" * 500, [], None), ("dot", ". " * 50, [], None)]
    texts = [["ha " * 1000, "a" * 100_000, "ha ha"], [". " * 10_000, "h" * 9]]
    documents = make_documents(texts)
    made = run(run_stage, [documents], make_benchmarks(items))
    hits = [row["ngrams_hit"] for row in rows(read_table, made, documents)]
    assert hits == [988, 0, 0, 0, 0]
    (item,) = read_table(made, "contamination", "items.parquet").to_pylist()
    assert (item["item_id"], item["ngrams"], item["ngrams_hit"]) == ("ha", 1, 1)


def test_a_line_that_both_quote_is_no_leak_of_a_long_item(
    make_documents: Make, make_benchmarks: Make, run_stage: Make, read_table: Read
) -> None:
    """A prompt of 92 words has 80 13-grams, of which 4 are asked for: 16 words in a row."""
    prompt = " ".join(f"w{chr(97 + n // 26)}{chr(97 + n % 26)}x" for n in range(92))
    words = prompt.split()
    runs = [" ".join(words[30 : 30 + size]) for size in (12, 15, 16)]
    texts = [f"{OTHER} {words} {OTHER}" for words in runs]
    documents = make_documents([texts[:2], texts[2:]])
    benchmarks = make_benchmarks([("act", prompt, ["yes", "no"], 0)])
    made = run(run_stage, [documents], benchmarks)
    assert [row["ngrams_hit"] for row in rows(read_table, made, documents)] == [0, 0, 4]
    (item,) = read_table(made, "contamination", "items.parquet").to_pylist()
    assert (item["documents"], item["ngrams_hit"]) == (1, 4)
    made = run(run_stage, [documents], benchmarks, {"min_prompt_share": 0})
    assert [row["ngrams_hit"] for row in rows(read_table, made, documents)] == [0, 3, 4]
    made = run(run_stage, [documents], benchmarks, {"min_prompt_share": 0.1})
    assert (made.counts["items_hit"], made.counts["items_quoted"]) == (0, 1)


def test_common_ngrams_are_ignored_on_request(
    documents: Given, benchmarks: Given, run_stage: Make, read_table: Read
) -> None:
    # Two documents hold five of the long item's n-grams; only the leak holds the sixth.
    made = run(run_stage, [documents], benchmarks, {"common_documents": 1})
    assert made.counts["common_ngrams"] == 5
    assert [row["ngrams_hit"] for row in rows(read_table, made, documents)] == [0, 1, 0, 1, 1]
    items = read_table(made, "contamination", "items.parquet").to_pylist()
    assert [(i["item_id"], i["documents"], i["ngrams_hit"]) for i in items] == [
        ("long", 1, 1),
        ("short", 1, 2),
        ("tiny", 1, 1),
    ]


def test_each_documents_input_has_its_folder(
    documents: Given, benchmarks: Given, make_documents: Make, run_stage: Make, store: Any
) -> None:
    more = make_documents([[LEAK]], snapshot="more")
    made = run(run_stage, [documents, more], benchmarks)
    folders = {file.path.split("/")[0] for file in made.output("contamination").files}
    assert folders == {"items.parquet", folder(documents), folder(more)}
    assert made.counts["documents"] == 6


def test_two_workers_give_the_same_bytes(
    documents: Given, benchmarks: Given, run_stage: Make
) -> None:
    one = run(run_stage, [documents], benchmarks)
    two = run(run_stage, [documents], benchmarks, execution={"workers": 2}, force=True)
    assert one.output("contamination").digest == two.output("contamination").digest


def test_a_whole_longer_than_the_ngram_is_refused(
    documents: Given, benchmarks: Given, run_stage: Make
) -> None:
    with pytest.raises(UsageError, match="min_words"):
        run(run_stage, [documents], benchmarks, {"ngram": 5})
    with pytest.raises(UsageError, match="min_answered_words"):
        run(
            run_stage,
            [documents],
            benchmarks,
            {"ngram": 6, "min_words": 6, "min_answered_words": 7},
        )


def test_planted_real_items_are_found_and_nothing_else(
    make_documents: Make,
    make_benchmarks: Make,
    run_stage: Make,
    read_table: Read,
    shared_data: Path,
) -> None:
    import zstandard

    def read(path: str, count: int) -> list[dict[str, Any]]:
        with zstandard.open(shared_data / path, "rt") as lines:
            return [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]

    pages = [row["text"] for row in read("text/en-web-c4-demo.jsonl.zst", 100)]
    items = [row["question"] for row in read("bench/gsm8k-test.jsonl.zst", 200)]
    planted = {7: 3, 42: 11}  # page: item
    leaky = [
        f"{page}\n{items[planted[i]]}\nmore" if i in planted else page
        for i, page in enumerate(pages)
    ]
    made = run(
        run_stage,
        [make_documents([leaky])],
        make_benchmarks([(str(i), text, [], None) for i, text in enumerate(items)]),
    )
    table = read_table(made, "contamination", made.output("contamination").files[0].path)
    hits = {
        i: [h["item_id"] for h in row] for i, row in enumerate(table["hits"].to_pylist()) if row
    }
    assert hits == {page: [str(item)] for page, item in planted.items()}
    held = read_table(made, "contamination", "items.parquet").to_pylist()
    assert all(item["ngrams"] == item["ngrams_hit"] for item in held)


def test_short_real_questions_are_found_without_their_answers(
    make_documents: Make,
    make_benchmarks: Make,
    run_stage: Make,
    read_table: Read,
    shared_data: Path,
) -> None:
    """30 of 30 planted MMLU questions of 9 to 12 words; as prompt + answer alone only 2."""
    import zstandard

    with zstandard.open(shared_data / "bench/mmlu-test.jsonl.zst", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    short = [row for row in rows if 9 <= len(normalise_words(row["question"])) <= 12][:30]
    documents = make_documents([[f"{OTHER} {row['question']} {OTHER}" for row in short]])
    items = [(row["id"], row["question"], row["choices"], row["gold"]) for row in short]
    benchmarks = make_benchmarks(items)
    found = run(run_stage, [documents], benchmarks)
    held = read_table(found, "contamination", "items.parquet")["item_id"].to_pylist()
    assert held == [row["id"] for row in short]
    joined = run(run_stage, [documents], benchmarks, {"passages": "answer"})
    assert joined.counts["items_hit"] < 5
