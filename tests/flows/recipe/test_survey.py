"""What is seen in a folder: every format, by a few rows of a few files."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts_schema.errors import InputError
from flows.recipe.survey import survey_source
from flows.recipe.survey_source import DataSource, find_source


def survey_folder(folder):
    return survey_source(find_source(str(folder), None, None))


def rows(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.fixture
def write(tmp_path):
    """`write(name, content)` → the folder, with that file in it."""

    def one(name, content):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / "data"

    return one


def by_pattern(folder):
    return {group.pattern: group for group in survey_folder(folder)}


def test_texts_beside_conversations_are_told_apart_by_file(write):
    talk = {"messages": [{"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"}]}
    write("texts.jsonl", rows(*[{"body": "a text of some length, " * 4}] * 50))
    write("more[1].jsonl", rows(*[{"body": "another text of a length, " * 4}] * 50))
    folder = write("chats.jsonl", rows(*[talk] * 20))
    groups = by_pattern(folder)
    assert groups["chats.jsonl"].text_bytes == 20 * len("a?b")
    seen = {pattern: (one.use, one.text_field) for pattern, one in groups.items()}
    assert seen == {
        "texts.jsonl": ("text", "body"),
        "more[[]1].jsonl": ("text", "body"),
        "chats.jsonl": ("chat", None),
    }


def test_files_of_rows_that_are_alike_are_one_group(write):
    write("a.jsonl", rows(*[{"body": "a text of some length, " * 4}] * 50))
    folder = write("b.jsonl", rows(*[{"body": "another text of a length, " * 4}] * 50))
    assert [(one.pattern, one.files) for one in survey_folder(folder)] == [("*.jsonl", 2)]


def test_tables_of_commas_are_named_and_not_taken_as_text(write):
    write("a.csv", "id,text\n1,hello\n")
    write("b.tsv.gz", gzip.compress(b"id\ttext\n"))
    folder = write("c.txt", "a text " * 50)
    seen = by_pattern(folder)
    assert [(seen[p].use, seen[p].form) for p in ("*.csv", "*.tsv.gz")] == [
        ("unknown", "unsupported")
    ] * 2
    assert "Parquet or JSONL" in seen["*.csv"].problem
    assert seen["*.txt"].use == "text"


class HubFolder(DataSource):
    """Files of this machine as those of a data set."""

    def list_files(self):
        return find_source(self.where, None, None).list_files()


@pytest.mark.parametrize(
    ("train", "others", "pattern"),
    [
        (["d/train-00000-of-00001.jsonl"], ["d/test-0.jsonl", "d/validation-0.jsonl"],
         "d/**/train*.jsonl"),
        (["d/train-0.jsonl", "d/train-1.jsonl"], ["d/dev.jsonl"], "d/**/train*.jsonl"),
        (["train/0.jsonl"], ["test/0.jsonl"], "train/**/*.jsonl"),
        (["latest.jsonl", "contest.jsonl"], [], "*.jsonl"),
    ],
)  # fmt: skip
def test_splits_to_test_with_of_a_data_set_are_left_out(write, train, others, pattern):
    """By the keywords of the Hub; in a folder of this machine a name says nothing."""
    for name in (*train, *others):
        folder = write(name, rows(*[{"text": "a text of some length, " * 9}] * 3))
    here = find_source(str(folder), None, None)
    assert {group.use for group in survey_source(here)} == {"text"}
    hub = HubFolder(str(folder), {"dataset": "org/name"})
    seen = {group.pattern: group.use for group in survey_source(hub)}
    assert [one for one, use in seen.items() if use == "text"] == [pattern]
    assert sum(group.files for group in survey_source(hub)) == len(train) + len(others)
    matched = {str(path.relative_to(folder)) for path in folder.glob(pattern.replace("/**/", "/"))}
    assert matched == set(train)


def test_formats_are_told_by_name_and_content(write):
    write("pages/a.html", "<html><p>x</p></html>")
    write("b.py", "x = 1\n")
    write("c.md", "# Title\n")
    write("notes", "plain text without an ending\n")
    write("images/d.png", b"\x89PNG\r\n\x1a\n" + bytes(50))
    write("crawl.warc", "WARC/1.0\r\n")
    folder = write(".hidden/e.md", "x")
    seen = {pattern: (group.form, group.use) for pattern, group in by_pattern(folder).items()}
    assert seen == {
        "pages/**/*.html": ("html", "text"),
        "*.py": ("code", "code"),
        "*.md": ("text", "text"),
        "notes": ("text", "text"),
        "images/**/*.png": ("unsupported", "unknown"),
        "*.warc": ("warc", "text"),
    }


def test_the_text_is_the_field_of_that_name_else_the_longest(write):
    folder = write("a/x.jsonl", rows({"id": "i" * 40, "body": "word " * 60, "summary": "w " * 80}))
    write("b/x.jsonl", rows({"text": "short but named so", "html": "<p>" * 200}))
    seen = by_pattern(folder)
    assert (seen["a/**/*.jsonl"].text_field, seen["a/**/*.jsonl"].others) == ("body", ("summary",))
    assert (seen["b/**/*.jsonl"].text_field, seen["b/**/*.jsonl"].others) == ("text", ("html",))


def test_text_of_plain_rows_is_estimated_by_its_share_of_a_line(write):
    line = rows({"text": "a" * 900, "other": "b" * 70})
    folder = write("x.jsonl", line * 1000)
    (group,) = survey_folder(folder)
    assert group.text_bytes == pytest.approx(900_000, rel=0.01)


def test_parquet_and_compressed_rows_are_read(write, tmp_path):
    folder = write("x.jsonl.gz", gzip.compress(rows({"content": "text " * 40}).encode()))
    pq.write_table(pa.table({"content": ["слово " * 40]}), folder / "y.parquet")
    seen = by_pattern(folder)
    assert seen["*.jsonl.gz"].text_field == seen["*.parquet"].text_field == "content"
    assert (seen["*.jsonl.gz"].script, seen["*.parquet"].script) == ("Latin", "Cyrillic")


@pytest.mark.parametrize(
    ("row", "use"),
    [
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
         "chat"),
        ({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
         "chat"),
        ({"instruction": "a", "input": "", "output": "b"}, "chat"),
        ({"prompt": "a", "completion": "b"}, "chat"),
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, "pairs"),
        ({"prompt": "a", "completion": "b", "label": False}, "pairs"),
        ({"text": "a text", "prompt": "a", "completion": "b"}, "text"),
    ],
)  # fmt: skip
def test_examples_are_told_by_their_shape(write, row, use):
    (group,) = survey_folder(write("x.jsonl", rows(*[row] * 20)))
    assert group.use == use


def test_rows_without_text_are_named_with_their_fields(write):
    (group,) = survey_folder(write("x.jsonl", rows({"id": 1, "flag": "y"}, {"id": 2})))
    assert group.use == "unknown"
    assert "flag, id" in group.problem


def test_rows_that_are_none_are_named_by_the_fault(write):
    (group,) = survey_folder(write("x.jsonl", "not json\n" * 5))
    assert "malformed_json 5" in group.problem


def test_only_the_head_of_a_large_file_is_read(write, monkeypatch):
    from stages.engine.reading import rows as reader

    read, plain = [], reader.read_rows

    def counted(*arguments):
        for row in plain(*arguments):
            read.append(row)
            yield row

    monkeypatch.setattr(reader, "read_rows", counted)
    survey_folder(write("x.jsonl", rows({"text": "word"}) * 50_000))
    assert len(read) == 100


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_what_is_no_folder_is_refused(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError) as caught:
        survey_folder(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no file"):
        survey_folder(tmp_path)
