"""Rows under a task: items, requests in every formulation, solved examples, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.manifest import Manifest
from stages.decontaminate.stage import Decontaminate
from stages.engine.spec import StageSpec
from stages.examples.config import BenchmarksConfig
from stages.examples.conversion import BadExample, Origin
from stages.examples.stage import Benchmarks
from stages.examples.task_files import parse_tasks, shipped_files, shipped_task, shipped_tasks
from stages.examples.task_items import TaskRows, gather_examples
from tests.stages.benchmarks.published_rows import FACTS, made_rows

Snapshot = Callable[..., list[tuple[Manifest, str]]]
Run = Callable[..., Manifest]
ORIGIN = Origin("f" * 32, "rows.jsonl", "rows")

# Typed from the templates of lm-evaluation-harness 0.4.13 (lm_eval/tasks), for fact 3 ("A kettle
# whistles when") in `published_rows`; tests/peers compares all tasks with the harness itself.
GOLDEN = {
    ("arc_easy", "cloze"): ("Question: A kettle whistles when\nAnswer:", " the water boils"),
    ("openbookqa", "cloze"): ("A kettle whistles when", " the water boils"),
    ("piqa", "cloze"): ("Question: A kettle whistles when\nAnswer:", " the water boils"),
    ("siqa", "cloze"): ("Q: Context 3. A kettle whistles when\nA:", " the water boils"),
    ("boolq", "cloze"): (
        "A passage. the water boils.\nQuestion: A kettle whistles when?\nAnswer:",
        " yes",
    ),
    ("copa", "cloze"): ("A kettle whistles whe therefore", "  it was the water boils."),
    ("mmlu", "multiple_choice"): (
        "The following are multiple choice questions (with answers) about us foreign policy.\n\n"
        "A kettle whistles when\nA. it is cold\nB. it is empty\nC. the lid is off\n"
        "D. the water boils\nAnswer:",
        " D",
    ),
    ("mmlu", "cloze"): (
        "The following are questions (with answers) about us foreign policy.\n\n"
        "Question: A kettle whistles when\nAnswer:",
        " the water boils",
    ),
    ("commonsense_qa", "multiple_choice"): (
        "Question: A kettle whistles when\nA. it is cold\nB. it is empty\nC. the lid is off\n"
        "D. the water boils\nE. none of them\nAnswer:",
        " D",
    ),
    ("hellaswag", "cloze"): (
        "Doing things: A kettle whistles when Then she says",
        " the water boils  and so on.. More",
    ),
    ("winogrande", "cloze"): ("The sentence number 3 says that the water boils", " was glad."),
    ("lambada_openai", "cloze"): (
        "A kettle whistles when He thought  of it, and said",
        " boils",
    ),
    ("xcopa_it", "cloze"): ("A kettle whistles whe quindi", " it was the water boils."),
    ("xnli_de", "cloze"): (
        "",
        " A kettle whistles when, richtig? Ja, the water boils it is",
    ),
    ("belebele_deu_Latn", "multiple_choice"): (
        "P: A passage about the water boils.\nQ: A kettle whistles when\nA: it is cold\n"
        "B: it is empty\nC: the lid is off\nD: the water boils\nAnswer:",
        " D",
    ),
    ("xstorycloze_en", "cloze"): (
        "1: A kettle whistles when 2: A kettle whistles when 3: A kettle whistles when "
        "4: A kettle whistles when",
        " the water boils",
    ),
    ("gsm8k", "free"): ("Question: A kettle whistles when\nAnswer:", "9"),
    ("humaneval", "free"): (
        'def f3(x: int) -> int:\n    """ Add 3. {x} """\n',
        "\n\ndef check(candidate):\n    assert candidate(1) == 4\n\ncheck(f3)",
    ),
    ("flores_en-es", "free"): (
        "English sentence: eng: A kettle whistles when\nSpanish sentence:",
        "spa: A kettle whistles when",
    ),
}  # fmt: skip


def convert(name: str, formulation: str, number: int = 3, **how: Any) -> dict[str, Any]:
    """The item that a fact makes under a shipped task."""
    task = shipped_task(name)
    (stem,) = [stem for stem in shipped_files() if name in shipped_tasks(stem)]
    row = {key: value for key, value in made_rows(stem)[number].items() if value is not None}
    settings = {"shots": (0,), "examples": {}, **how}
    return TaskRows(task, (formulation,), **settings)(row, ORIGIN)


@pytest.mark.parametrize(("name", "formulation"), list(GOLDEN))
def test_prompts_are_as_the_harness_writes_them(name: str, formulation: str) -> None:
    made = convert(name, formulation)
    (request,) = made["requests"]
    prompt, ending = GOLDEN[name, formulation]
    answer = made["answer"]
    if answer is None:
        assert (request["prompt"], request["references"][0]) == (prompt, ending)
        assert (made["form"], made["choices"]) == ("free", [])
    else:
        context = request["contexts"][answer] if request["contexts"] else ""
        assert (request["prompt"] + context, request["choices"][answer]) == (prompt, ending)


def test_every_task_renders_its_example_in_every_formulation() -> None:
    for stem in shipped_files():
        for task in shipped_tasks(stem).values():
            assert task.example is not None
            made = TaskRows(task, tuple(task.ways), (0,), {})(dict(task.example), ORIGIN)
            assert [one["formulation"] for one in made["requests"]] == list(task.ways)
            for one in made["requests"]:
                ranked = one["formulation"] != "free"
                assert len(one["choices"]) == (len(made["choices"]) if ranked else 0)
                assert bool(one["references"]) == (not ranked)
                assert one["prompt"] or ranked


def test_the_four_formulations_differ_in_what_is_listed_and_what_is_ranked() -> None:
    _, right, *_ = FACTS[3]
    cloze, listed, hybrid = (
        convert("arc_easy", name)["requests"][0] for name in ("cloze", "multiple_choice", "hybrid")
    )
    assert right not in cloze["prompt"]
    assert right in listed["prompt"]
    assert listed["prompt"] == hybrid["prompt"]
    assert listed["choices"] == [" A", " B", " C", " D"]
    assert cloze["choices"] == hybrid["choices"]


def test_the_content_of_an_item_does_not_depend_on_how_it_is_asked() -> None:
    items = [convert("mmlu", name) for name in ("cloze", "multiple_choice", "hybrid")]
    bare = [{key: one[key] for key in one if key != "requests"} for one in items]
    assert bare[0] == bare[1] == bare[2]
    assert (bare[0]["prompt"], bare[0]["choices"][bare[0]["answer"]]) == FACTS[3][:2]
    assert json.loads(bare[0]["metadata"]) == {"subject": "us_foreign_policy"}


def snapshot_of(snapshot: Snapshot, name: str, **files: list[dict[str, Any]]) -> Any:
    """A snapshot of files of rows."""
    lines = {
        f"{stem}.jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        for stem, rows in files.items()
    }
    return snapshot(lines, name)


@pytest.fixture
def dev_and_test(snapshot: Snapshot) -> list[tuple[Manifest, str]]:
    """Rows of MMLU of two subjects in turn: the first are also among the examples."""
    rows = made_rows("mmlu")
    return snapshot_of(snapshot, "mmlu", dev=rows[:8], test=rows)


def test_examples_are_the_first_of_the_items_group_and_never_the_item_itself(
    dev_and_test: Any, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    config = {
        "task": "mmlu", "shots": [0, 2], "files": "test*", "fewshot_files": "dev*",
        "formulations": ["cloze", "multiple_choice"],
    }  # fmt: skip
    made = run_stage(Benchmarks, config, {"snapshot": dev_and_test})
    rows = read_table(made, "benchmarks").to_pylist()
    assert made.counts["rows_out"] == len(rows) == 20
    assert made.counts["fewshot_examples"] == 6  # One more than asked for, of each subject.
    for number, row in enumerate(rows):
        own = [one for one in range(number % 2, 8, 2) if one != number][:2]
        shown = [row["requests"][place] for place in (1, 3)]
        assert [(one["formulation"], one["shots"]) for one in row["requests"]] == [
            ("cloze", 0), ("cloze", 2), ("multiple_choice", 0), ("multiple_choice", 2),
        ]  # fmt: skip
        for request in shown:
            asked = request["prompt"].partition(".\n\n")[2]
            places = [asked.find(FACTS[one][0].strip()) for one in own]
            assert 0 <= places[0] < places[1] < asked.rfind(FACTS[number][0].strip())
            assert asked.count(FACTS[number][0].strip()) == 1
        cloze = shown[0]["prompt"]
        assert f"Answer: {FACTS[own[0]][1]}\n\nQuestion: " in cloze


def test_workers_change_no_byte(dev_and_test: Any, run_stage: Run, store: Any) -> None:
    config = {"task": "mmlu", "shots": [0, 2], "fewshot_files": "dev*", "fewshot_seed": 3}
    alone = run_stage(Benchmarks, config, {"snapshot": dev_and_test})
    spec = (config, {"snapshot": dev_and_test}, {"workers": 2})
    again = run_stage(Benchmarks, *spec, force=True)  # NotDeterministic for any other byte.
    assert again.output("benchmarks").digest == alone.output("benchmarks").digest


def test_what_is_measured_under_a_task_is_kept_out(
    snapshot: Snapshot, run_stage: Run, make_documents: Callable[..., Any]
) -> None:
    rows = snapshot_of(snapshot, "siqa", test=made_rows("siqa"))
    made = run_stage(Benchmarks, {"task": "siqa", "formulations": ["hybrid"]}, {"snapshot": rows})
    leak = f"Seen today. {FACTS[16][0]} {FACTS[16][1]} is what it costs."
    others = [f"Document {n} has nothing of it, only words about the weather." for n in range(30)]
    inputs = {
        "documents": [make_documents([[leak, *others]])],
        "benchmarks": [(made, "benchmarks")],
    }
    counted = run_stage(Decontaminate, {"ngram": 8, "min_words": 4}, inputs).counts
    assert counted["items"] == 20
    assert counted["documents_hit"] == 1


def test_a_seed_draws_examples_for_each_item(
    dev_and_test: Any, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    config = {"task": "mmlu", "shots": [2], "files": "test*", "fewshot_files": "dev*"}

    def prompts(**more: Any) -> list[str]:
        made = run_stage(Benchmarks, {**config, **more}, {"snapshot": dev_and_test})
        rows = read_table(made, "benchmarks").to_pylist()
        return [row["requests"][0]["prompt"] for row in rows]

    first, drawn, other = prompts(), prompts(fewshot_seed=1), prompts(fewshot_seed=2)
    assert len({tuple(first), tuple(drawn), tuple(other)}) == 3
    for number, prompt in enumerate(drawn):
        assert prompt.count("Answer:") == 3
        assert prompt.count(FACTS[number][0].strip()) == 1


def test_examples_come_from_a_snapshot_of_their_own(
    snapshot: Snapshot, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    rows = made_rows("gsm8k")
    inputs = {
        "snapshot": snapshot_of(snapshot, "items", test=rows[:10]),
        "fewshot": snapshot_of(snapshot, "train", train=rows[10:]),
    }
    made = run_stage(Benchmarks, {"task": "gsm8k"}, inputs)
    (request,) = read_table(made, "benchmarks").to_pylist()[0]["requests"]
    assert request["shots"] == 5  # The task's own number.
    assert request["prompt"].startswith(
        "Question: What does this print?\n\n    print('a' + 'b')\n"
        "Answer: It is 10*3=<<10*3=30>>30.\n#### 30\n\nQuestion: "
    )
    assert request["prompt"].endswith(f"\n\nQuestion: {rows[0]['question']}\nAnswer:")
    assert request["references"] == ["0"]


def test_a_task_may_hold_its_examples(
    snapshot: Snapshot, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    made = run_stage(
        Benchmarks, {"task": "mbpp"}, {"snapshot": snapshot_of(snapshot, "m", x=made_rows("mbpp"))}
    )
    (request,) = read_table(made, "benchmarks").to_pylist()[0]["requests"]
    assert request["prompt"].count("[DONE]") == 3
    assert request["prompt"].endswith("\n[BEGIN]\n")
    with pytest.raises(UsageError, match="3 solved examples, 4 shots"):
        run_stage(
            Benchmarks,
            {"task": "mbpp", "shots": [4]},
            {"snapshot": snapshot_of(snapshot, "m", x=made_rows("mbpp"))},
        )


def test_the_table_says_by_which_task_it_was_made(
    snapshot: Snapshot, run_stage: Run, read_input: Callable[..., Any]
) -> None:
    rows = snapshot_of(snapshot, "arc", test=made_rows("arc_easy"))
    made = run_stage(Benchmarks, {"task": "arc_easy"}, {"snapshot": rows})
    (said,) = read_input(made, "benchmarks").read_json("tasks.json")
    assert (said["name"], said["version"], said["licence"]) == ("arc_easy", 1, "CC-BY-SA-4.0")
    assert said["digest"] == shipped_task("arc_easy").digest
    assert set(said["formulations"]) == {"cloze", "multiple_choice", "hybrid"}
    other = run_stage(
        Benchmarks, {"task": "arc_easy", "formulations": ["hybrid"]}, {"snapshot": rows}
    )
    assert read_input(other, "benchmarks").read_json("tasks.json") == [said]
    plain = run_stage(Benchmarks, {}, {"snapshot": snapshot_of(snapshot, "t", a=[{"prompt": "x"}])})
    assert read_input(plain, "benchmarks").read_json("tasks.json") == []


OWN = """
version: 1
description: Opposites of words.
licence: CC0-1.0
source: made by hand
fields: [word, opposites, right]
question: "{{word}}"
choices: "{{opposites}}"
answer: "{{right}}"
default: cloze
formulations:
  cloze:
    prompt: "The opposite of {{word}} is"
  multiple_choice:
"""
WORDS = [{"word": "hot", "opposites": ["cold", "warm"], "right": 0}]


def test_a_file_of_ones_own_enters_by_a_snapshot_and_bears_identity(
    snapshot: Snapshot, run_stage: Run, read_table: Callable[..., Any]
) -> None:
    rows = snapshot_of(snapshot, "words", words=WORDS)

    def run(text: str) -> Manifest:
        tasks = snapshot({"opposites.yaml": text.encode()}, "tasks")
        return run_stage(Benchmarks, {"task": "opposites"}, {"snapshot": rows, "tasks": tasks})

    made = run(OWN)
    (row,) = read_table(made, "benchmarks").to_pylist()
    assert row["benchmark"] == "opposites"
    assert row["requests"][0]["prompt"] == "The opposite of hot is"
    assert row["requests"][0]["choices"] == [" cold", " warm"]
    changed = run(OWN.replace("The opposite of", "Opposite:"))
    assert changed.key != made.key
    with pytest.raises(UsageError, match=r"no task 'opposite'.*'opposites'"):
        run_stage(
            Benchmarks,
            {"task": "opposite"},
            {"snapshot": rows, "tasks": snapshot({"opposites.yaml": OWN.encode()}, "tasks")},
        )
    with pytest.raises(UsageError, match="comes with Ingot"):
        run_stage(
            Benchmarks,
            {"task": "piqa"},
            {"snapshot": rows, "tasks": snapshot({"piqa.yaml": OWN.encode()}, "tasks")},
        )


def test_what_a_shipped_task_says_is_part_of_the_key(
    snapshot: Snapshot, store: Any, run_stage: Run
) -> None:
    config = Benchmarks.complete(BenchmarksConfig.parse({"task": "piqa"}, where="x"))
    assert isinstance(config, BenchmarksConfig)
    assert config.task_digest == shipped_task("piqa").digest
    assert config.identity() == {"task": "piqa", "task_digest": config.task_digest}
    other = StageSpec.make(Benchmarks, {"task": "piqa", "task_digest": "0" * 16}, {
        "snapshot": [store.reference(*snapshot_of(snapshot, "p", x=made_rows("piqa"))[0])]
    }, {})  # fmt: skip
    mine = StageSpec.make(Benchmarks, {"task": "piqa"}, {
        "snapshot": [store.reference(*snapshot_of(snapshot, "p", x=made_rows("piqa"))[0])]
    }, {})  # fmt: skip
    assert other.key != mine.key
    with pytest.raises(UsageError, match="plan again"):
        run_stage(
            Benchmarks,
            {"task": "piqa", "task_digest": "0" * 16},
            {"snapshot": snapshot_of(snapshot, "p", x=made_rows("piqa"))},
        )


@pytest.mark.parametrize(
    ("name", "changes", "reason", "named"),
    [
        ("arc_easy", {"answerKey": None}, "missing_field", "'answerKey'"),
        ("arc_easy", {"answerKey": "Z"}, "no_answer", ""),
        ("arc_easy", {"answerKey": None, "answer_key": "A"}, "missing_field", "'answer_key'"),
        ("arc_easy", {"choices": {"text": ["a", "a"], "label": ["A", "D"]}}, "bad_choices", ""),
        ("arc_easy", {"choices": {"text": ["a", " "], "label": ["A", "D"]}}, "bad_choices", ""),
        ("arc_easy", {"choices": ["a", "b"]}, "template_failed", "choices"),
        ("arc_easy", {"question": " "}, "empty_prompt", ""),
        ("piqa", {"label": -1}, "answer_out_of_range", "-1"),
        ("piqa", {"label": 2}, "answer_out_of_range", "2"),
        ("hellaswag", {"label": ""}, "no_answer", ""),
        ("hellaswag", {"endings": ["a", "b", "c"]}, "template_failed", "choices"),
        ("winogrande", {"sentence": "no gap"}, "template_failed", "cloze"),
        ("winogrande", {"answer": ""}, "no_answer", ""),
        ("boolq", {"label": "yes"}, "no_answer", "yes"),
    ],
)
def test_bad_rows_are_named(name: str, changes: Any, reason: str, named: str) -> None:
    task = shipped_task(name)
    row = {**made_rows(name)[3], **changes}
    row = {key: value for key, value in row.items() if value is not None}
    with pytest.raises(BadExample) as raised:
        TaskRows(task, (task.default,), (0,), {})(row, ORIGIN)
    assert raised.value.reason == reason
    assert named in raised.value.detail


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"task": "arc_esy"}, "'arc_easy'"),
        ({"task": "xnli_dee"}, "'xnli_de'"),
        ({"task": "gsm8k", "formulations": ["cloze"]}, "free"),
        ({"task": "gsm8k"}, "solved examples"),
        ({"task": "mmlu", "shots": [1, 1]}, "twice"),
        ({"task": "mmlu", "shots": [101]}, "100"),
        ({"task": "mmlu", "source": "x"}, "source"),
        ({"shots": [1]}, "task"),
        ({"task": "mmlu", "formulations": ["clozed"]}, "cloze"),
    ],
)
def test_a_plan_refuses_what_cannot_be_asked(config: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Benchmarks.check_plan(BenchmarksConfig.parse(config, where="benchmarks"), {"snapshot": []})


def test_too_few_examples_are_an_error_and_a_group_without_them_bad_rows(
    snapshot: Snapshot, run_stage: Run
) -> None:
    rows = made_rows("mmlu")
    config = {"task": "mmlu", "shots": [5], "files": "test*", "fewshot_files": "dev*"}
    with pytest.raises(InputError, match="2 examples in the largest group, 5 shots"):
        run_stage(
            Benchmarks, config, {"snapshot": snapshot_of(snapshot, "m", dev=rows[:4], test=rows)}
        )
    one_subject = [row for row in rows if row["subject"] == "abstract_algebra"]
    data = snapshot_of(snapshot, "m", dev=one_subject, test=rows)
    made = run_stage(Benchmarks, {**config, "max_bad_share": 0.6}, {"snapshot": data})
    assert (made.counts["bad_too_few_examples"], made.counts["rows_out"]) == (10, 10)
    with pytest.raises(InputError, match="no row became one of benchmarks"):
        run_stage(Benchmarks, {"task": "mmlu"}, {"snapshot": snapshot_of(snapshot, "m", test=[])})
    with pytest.raises(InputError, match="no file matches"):
        run_stage(Benchmarks, {"task": "mmlu", "files": "val*"}, {"snapshot": data})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OWN.replace("{{right}}", "{{rigth}}"), "answer: no field 'rigth', did you mean 'right'"),
        (OWN.replace("licence", "license"), "unknown key 'license', did you mean 'licence'"),
        (OWN.replace("{{word}} is", "{{word.format()}} is"), "nothing can be called"),
        (OWN.replace("default: cloze", "default: free"), "no formulation 'free'"),
        (OWN.replace('answer: "{{right}}"\n', ""), "answer"),
        (OWN.replace("word, opposites", "word, no"), "opposites"),
        (OWN + "  free:\n", "free.prompt"),
        (OWN + "version: 2\n", "twice"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("!!python/object/apply:os.system [true]", "no YAML"),
        ("a: !function utils.f", "no YAML"),
        ("- a list", "mapping"),
        (OWN + "name: other\n", "'name'"),
        (OWN + "variants: {de: {q: 'a\"b'}}\n", "variants.de"),
        (OWN.replace("hot", "x") + "variants: []\n", "variants"),
        (OWN.replace("Opposites of", "<<what>>") + "variants: [de]\n", "no word 'what'"),
        ("[" * 5000, "no YAML"),
        ("\x00", "no YAML"),
    ],
)
def test_a_bad_task_file_is_named_with_the_place(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        parse_tasks(text.encode(), "own", where="own.yaml")
    assert raised.value.where is not None
    assert "own.yaml" in raised.value.where


def test_words_that_are_truth_values_elsewhere_are_text() -> None:
    text = OWN.replace('choices: "{{opposites}}"', "choices: [no, yes]")
    (task,) = parse_tasks(text.encode(), "own", where="own.yaml").values()
    assert task.choices == ("no", "yes")


def test_an_equal_example_is_there_once() -> None:
    task = shipped_task("piqa")
    rows = made_rows("piqa")
    groups = gather_examples(task, [rows[0], rows[0], rows[1], rows[2]], 2, "rows", drawn=False)
    assert [one.row["goal"] for one in groups[""]] == [rows[n]["goal"] for n in (0, 1, 2)]


def test_real_rows_become_items_under_their_tasks(shared_data: Path) -> None:
    import io

    import zstandard

    from tests.stages.benchmarks.published_rows import REBUILT

    for stem, (file, published) in REBUILT.items():
        task = next(iter(shipped_tasks(stem).values()))
        with (shared_data / "bench" / f"{file}.jsonl.zst").open("rb") as raw:
            lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(raw), "utf-8")
            rows = [published(json.loads(line)) for line in lines]
        make = TaskRows(task, tuple(task.ways), (0,), {})
        items = [make(row, ORIGIN) for row in rows if row]
        assert len(items) >= 0.99 * len(rows)
