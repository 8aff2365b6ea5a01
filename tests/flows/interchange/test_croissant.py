"""Croissant metadata of an artifact, by the rules of its specification.

That mlcroissant reads it, and loads the rows by it, is asked in tests/peers/test_interchange.py.
"""

from __future__ import annotations

import hashlib
import json
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from flows.interchange.croissant import (
    CONFORMS_TO,
    _count_licences,
    describe_history,
)
from flows.recipe.execute import execute
from stages.export.croissant import data_type


@pytest.fixture
def croissant(store, tmp_path):
    """`croissant(*words)`: the metadata that the command writes."""

    def run(*words: str) -> dict:
        file = tmp_path / "croissant.json"
        result = CliRunner().invoke(
            main, ["croissant", *words, "--store", store.url, "--output", str(file)]
        )
        assert result.exit_code == 0, result.output
        return json.loads(file.read_text())

    return run


def of_type(value: dict, kind: str) -> list[dict]:
    return [part for part in value["distribution"] if part["@type"] == f"cr:{kind}"]


def everything(value) -> list[dict]:
    """All nodes of a tree."""
    if isinstance(value, dict):
        return [value, *(node for one in value.values() for node in everything(one))]
    return [node for one in value for node in everything(one)] if isinstance(value, list) else []


def test_every_file_is_there_with_its_checksum_and_in_one_set(croissant, make_documents, store):
    manifest, _ = make_documents([["one", "two"], ["three"]])
    value = croissant(manifest.key)
    assert value["conformsTo"] == CONFORMS_TO
    folder = Path(store.backend.full(store.payload(manifest, "documents")))
    files = of_type(value, "FileObject")
    assert [file["contentUrl"] for file in files] == [
        "documents/00000.parquet",
        "documents/00001.parquet",
    ]
    for file in files:
        content = (folder.parent / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
    (file_set,) = of_type(value, "FileSet")
    assert file_set["includes"] == ["documents/*.parquet"]


def test_fields_are_the_columns_with_their_types_and_sentences(croissant, make_documents):
    manifest, _ = make_documents([["one"]])
    (records,) = croissant(manifest.key)["recordSet"]
    fields = {field["name"]: field for field in records["field"]}
    assert fields["origin_offset"]["dataType"] == "sc:Integer"
    assert (fields["text"]["dataType"], "repeated" in fields["text"]) == ("sc:Text", False)
    assert fields["linked_classes"]["repeated"] is True
    assert fields["text"]["description"] == "The text; never empty."
    assert records["key"] == {"@id": "documents/doc_id"}
    assert fields["text"]["source"] == {
        "fileSet": {"@id": "documents-files"},
        "extract": {"column": "text"},
    }


def test_ids_are_unique_and_every_reference_is_to_one_of_them(croissant, make_documents):
    manifest, _ = make_documents([["one"]])
    value = croissant(manifest.key)
    nodes = everything([value["distribution"], value["recordSet"]])
    defined = [node["@id"] for node in nodes if "@type" in node]
    referenced = [node["@id"] for node in nodes if "@id" in node and "@type" not in node]
    assert len(defined) == len(set(defined))
    assert set(referenced) <= set(defined)
    assert {key for node in nodes for key in node if not key.startswith("@")} <= {
        *value["@context"],
        *("name", "description", "contentUrl", "contentSize", "encodingFormat", "sha256"),
    }


def test_members_of_messages_are_sub_fields(croissant, given):
    message = {"role": "user", "content": "hello", "tool_calls": []}
    rows = [{"conversation_id": "c" * 32, "source": "s", "messages": [message], "metadata": "{}"}]
    manifest, _ = given("conversations", {"00000.parquet": rows})
    (records,) = croissant(manifest.key)["recordSet"]
    (messages,) = [field for field in records["field"] if field["name"] == "messages"]
    assert messages["repeated"] is True
    assert "dataType" not in messages
    members = {one["name"]: one for one in messages["subField"]}
    assert members["content"]["source"]["transform"] == {"jsonPath": "content"}
    assert members["weight"]["dataType"] == "sc:Float"
    assert "tool_calls" not in members  # Of structs themselves: named in the description.
    assert "tool_calls" in messages["description"]


def test_the_funnel_is_told_stage_by_stage(croissant, open_pipeline, inline, store):
    plan = execute(open_pipeline(), dispatch=inline)
    value = croissant("demo/choose:documents")
    account = plan.step("choose").manifest.conservation
    line = f"demo/choose: 6 in, {account.out} out (dropped: short {6 - account.out})."
    assert line in value["description"].splitlines()
    lines = "demo/read[crawl-A]: 5 in, 4 out (dropped: empty 1)."  # Four lines and an empty one.
    assert lines in value["description"]
    assert [one["name"] for one in value["isBasedOn"]] == ["crawl-A", "crawl-B"]
    assert value["name"] == "demo-choose"
    assert store.url not in json.dumps(value)


def test_licences_that_pages_named_are_counted(given, store):
    names = ("CC-BY-4.0", "CC-BY-4.0", "MIT", None)
    rows = [
        {"doc_id": f"{number:032x}", "characters_repaired": 0, "licence": name}
        for number, name in enumerate(names)
    ]
    pages, _ = given("pages", {"00000.parquet": rows[:2], "00001.parquet": rows[2:]})
    assert _count_licences(store, [pages]) == {"CC-BY-4.0": 2, "MIT": 1, None: 1}
    line = describe_history(store, pages, {}).splitlines()[-1]
    assert "the 4 documents read named" in line
    assert line.endswith("CC-BY-4.0 2, MIT 1; 1 named none.")


def test_what_the_publisher_adds(croissant, make_documents, store):
    manifest, _ = make_documents([["one"]])
    plain = croissant(manifest.key)
    assert not {"license", "creator", "citeAs", "url"} & plain.keys()
    words = ("--license", "CC0-1.0", "--creator", "Team", "--cite-as", "@misc{x}")
    value = croissant(manifest.key, *words, "--url", "https://data.example/corpus/")
    assert value["license"] == ["CC0-1.0"]
    assert value["creator"] == [{"@type": "sc:Organization", "name": "Team"}]
    assert value["citeAs"] == "@misc{x}"
    first = of_type(value, "FileObject")[0]
    assert first["contentUrl"] == "https://data.example/corpus/documents/00000.parquet"
    for url in ("https://u:p@data.example", "https://data.example/?key=1"):
        words = ["croissant", manifest.key, "--url", url, "--store", store.url]
        assert CliRunner().invoke(main, words).exit_code == 2


def test_what_is_missing_is_named_beside_the_metadata(make_documents, store):
    manifest, _ = make_documents([["one"]])
    words = ["croissant", manifest.key, "--license", "MIT", "--store", store.url]
    result = CliRunner().invoke(main, words)
    assert json.loads(result.stdout)["license"] == ["MIT"]
    assert result.stderr == "to be filled in: creator, url, citeAs, datePublished\n"


def test_patterns_that_match_each_others_files_become_lists(croissant, given):
    """`*/*.parquet` of contamination also matches files under `chat/`."""
    hit = {"ngrams": 1, "ngrams_hit": 0, "hits": []}
    manifest, _ = given(
        "contamination",
        {
            "items.parquet": [],
            "chat/conversations.parquet": [{"doc_id": "a" * 32, **hit}],
            "0123456789ab/00000.parquet": [{"doc_id": "b" * 32, **hit}],
        },
    )
    value = croissant(f"{manifest.key}:contamination")
    sets = of_type(value, "FileSet")
    paths = [file["contentUrl"] for file in of_type(value, "FileObject")]
    matches = [p for one in sets for p in paths if any(fnmatchcase(p, i) for i in one["includes"])]
    assert sorted(matches) == ["contamination/0123456789ab/00000.parquet",
                               "contamination/chat/conversations.parquet"]  # fmt: skip


def test_an_artifact_without_data_says_what_to_do(given, store):
    manifest, _ = given("exclusions", {"a.parquet": [{"doc_id": "a" * 32, "reason": "x"}]})
    result = CliRunner().invoke(main, ["croissant", manifest.key, "--store", store.url])
    assert result.exit_code == 2
    assert "REF:OUTPUT" in result.stderr
    named = ["croissant", f"{manifest.key}:exclusions", "--store", store.url]
    assert CliRunner().invoke(main, named).exit_code == 0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.string(), "sc:Text"),
        (pa.uint64(), "sc:Integer"),
        (pa.float32(), "sc:Float"),
        (pa.bool_(), "sc:Boolean"),
        (pa.date32(), "sc:Date"),
        (pa.timestamp("ms"), "sc:DateTime"),
    ],
)
def test_types_of_arrow_have_their_type_in_croissant(kind, name):
    assert data_type(kind) == name
