"""Prompts of a snapshot and their answers, by a model that answers with what it drew."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.store import Store
from flows.collecting.collection import ANSWERS, Collection
from flows.collecting.prompts import read_prompts
from flows.collecting.sampling import PART, sample_answers
from flows.recipe.recipe import snapshot_entry
from flows.recipe.snapshots import take_snapshot
from stages.engine.inputs import Input
from tests.flows.collecting.conftest import make_settings


@pytest.fixture
def snapshot(tmp_path):
    """`snapshot(rows)`: a snapshot of one file."""

    def take(rows, name="questions"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        store = Store.open(str(tmp_path / "store"))
        entry = snapshot_entry(name, {"files": [str(path)]}, "test")
        return Input.from_manifest(store, take_snapshot(store, entry), "snapshot")

    return take


@dataclass(frozen=True)
class Written:
    text: str
    ids: tuple[int, ...]
    ending: str
    prompt: int


class DrawingModel:
    """A token a character; an answer names all that its draws may depend on."""

    context = 40

    def __init__(self):
        self.calls = 0

    def encode_chat(self, messages, tools=None):
        if "broken" in messages[-1]["content"]:
            raise InputError("the template does not render", where="template")
        assert all(None not in one.values() for one in messages)
        return [ord(letter) for one in messages for letter in one["content"]]

    def spelled_token(self, messages):
        return "<|x|>" if "<|x|>" in messages[-1]["content"] else None

    def write_many(self, prompts, sampling, most, *, samples, first_number):
        self.calls += 1
        return [
            Written(f"{len(prompts)} {number} {sample} {sampling.seed}", (1,), "end", number)
            for number, ids in enumerate(prompts, start=first_number)
            for sample in range(samples)
        ]


def texts(prompts):
    return [[one["content"] for one in prompt.messages] for prompt in prompts]


def test_prompts_in_every_shape_without_what_the_assistant_says_last(snapshot):
    user, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}
    prompts, reasons = read_prompts(
        snapshot(
            [
                {"prompt": "a"},
                {"question": "b", "system": "Be brief."},
                {"instruction": "c", "input": "d", "output": "left out"},
                {"messages": [user, answer]},
                {"conversations": [{"from": "human", "value": "e"}]},
                {"prompt": [user, answer, {"role": "user", "content": "f"}], "tools": "[]"},
                {"chosen": [{"role": "user", "content": "g"}, answer], "rejected": "x"},
                {"prompt": "a", "completion": "another answer"},
                {"text": "no prompt"},
                {"messages": "a text"},
                {"prompt": "  "},
                {"messages": [answer]},
            ]
        )
    )
    assert texts(prompts) == [
        ["a"], ["Be brief.", "b"], ["c\n\nd"], ["Hi"], ["e"], ["Hi", "Ho", "f"], ["g"],
    ]  # fmt: skip
    assert reasons == {
        "duplicate_prompt": 1, "missing_field": 1, "not_messages": 1, "empty_message": 1,
        "wrong_last_role": 1,
    }  # fmt: skip


def test_the_first_prompts_and_none(snapshot):
    source = snapshot([{"prompt": str(number)} for number in range(9)])
    assert texts(read_prompts(source, 3)[0]) == [["0"], ["1"], ["2"]]
    with pytest.raises(InputError, match=r"no row has a prompt: texts\.jsonl: missing_field"):
        read_prompts(snapshot([{"text": "x"}], "texts"))


@pytest.fixture
def prompts(snapshot):
    rows = [{"prompt": f"number {number}"} for number in range(2 * PART + 3)]
    rows[1] = {"prompt": "<|x|>"}
    rows[PART] = {"prompt": "broken"}
    rows[PART + 2] = {"prompt": "x" * 30}
    return read_prompts(snapshot(rows))[0]


def test_killed_after_any_line_it_goes_on_to_the_same_bytes(prompts, tmp_path):
    collection = Collection.begin(tmp_path / "helpful", make_settings())
    path, seen = collection.folder / ANSWERS, []
    sample_answers(collection, DrawingModel(), prompts, lambda *done: seen.append(done))
    whole = path.read_bytes()
    assert seen == [(PART, 19), (2 * PART, 19), (19, 19)]
    lines = whole.splitlines(keepends=True)
    for number in range(len(lines)):
        path.write_bytes(b"".join(lines[:number]) + lines[number][:40])
        sample_answers(collection, DrawingModel(), prompts, lambda *done: None)
        assert path.read_bytes() == whole, number
    model = DrawingModel()
    sample_answers(collection, model, prompts, lambda *done: None)
    assert model.calls <= 1, "whole parts are not answered again"
    assert path.read_bytes() == whole


def test_prompts_that_get_no_answer_say_why_and_each_answer_is_its_prompts(prompts, tmp_path):
    collection = Collection.begin(tmp_path / "helpful", make_settings())
    sample_answers(collection, DrawingModel(), prompts, lambda *done: None)
    collection = Collection.open(collection.folder)
    assert collection.excluded == {"special_token": 1, "not_rendered": 1, "too_long": 1}
    assert collection.sampled == len(prompts)
    assert len(collection.questions) == len(prompts) - 3
    first = collection.questions[prompts[2].id]
    # In the first part 7 have answers, of which this is the second.
    assert first.texts == ("7 1 0 7", "7 1 1 7", "7 1 2 7")


def test_a_folder_is_begun_once_and_with_other_settings_refused(tmp_path):
    settings = make_settings()
    assert Collection.begin(tmp_path / "a", settings).settings == settings
    assert Collection.begin(tmp_path / "a", make_settings(model="renamed")).settings == settings
    with pytest.raises(UsageError, match=r"temperature 1\.0, now 0\.5; twice 0\.0, now 0\.2"):
        Collection.begin(tmp_path / "a", make_settings(temperature=0.5, twice=0.2))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds other files"):
        Collection.begin(tmp_path / "b", settings)
    with pytest.raises(UsageError, match="is no collection"):
        Collection.open(tmp_path / "c")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "collection.json.unfinished").write_text("{")  # As a kill leaves it.
    assert Collection.begin(tmp_path / "d", settings).settings == settings
    for text in ("{", "[]", '{"version": 1}', '{"version": 2, "model": "x"}'):
        (tmp_path / "a" / "collection.json").write_text(text)
        with pytest.raises(InputError):
            Collection.open(tmp_path / "a")
