"""Groups of source and language, and the language of every token of packed sequences."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written_shards import every, write_shards

from artifacts_schema.errors import CorruptArtifact
from stages.training.rows import Groups
from stages.training.token_shards import PADDED, TokenShards

TOKENS = {"a": {"de": 3, "en": 5}, "b": {"": 2, "fr": 0}, "c": {"en": 1, "": 4}, "d": {}}


def test_a_group_is_a_language_of_a_source():
    groups = Groups.from_tokens(tuple(TOKENS), TOKENS)
    assert groups.pairs == ((0, "de"), (0, "en"), (1, ""), (2, ""), (2, "en"), (3, None))
    assert [list(groups.of_source(number)) for number in range(4)] == [[0, 1], [2], [3, 4], [5]]
    assert groups.by_language == {"": [2, 3], "de": [0], "en": [1, 4]}
    plain = Groups.by_source(("a", "b"))
    assert (plain.pairs, plain.by_language) == (((0, None), (1, None)), {})


@pytest.fixture(params=["best_fit", "concatenate"])
def mixed(tmp_path, request):
    """Sequences of several languages and none, in several shards, and one source of one."""
    made = write_shards(
        tmp_path / "a", {"code": [30], "web": [40, 25, 1]}, strategy=request.param, seed=3
    )
    write_index(made, "code/00000", lambda table: spoken_everywhere(table, "en"))
    entry = made.table["sources"]["code"]
    sources = {**made.table["sources"], "code": {**entry, "languages": {"en": entry["tokens"]}}}
    return made.describe(sources=sources).listed()


def write_index(made, name, change):
    path = made.folder / f"{name}.index.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def spoken_everywhere(table, language):
    field = table.schema.get_field_index("language")
    return table.set_column(field, "language", pa.array([language] * len(table), pa.string()))


def whole(shards, source):
    """Every sequence of a source: what `languages_within` takes."""
    sources_B, sequences_B = every(shards, source)
    return sources_B, sequences_B, shards.batch(sources_B, sequences_B).documents_BL.copy()


def test_each_token_is_in_the_language_of_its_document(mixed):
    shards = TokenShards([mixed])
    groups = Groups.from_tokens(shards.sources, shards.languages)
    assert groups.pairs == ((0, "en"), (1, ""), (1, "de"), (1, "en"))
    for number, source in enumerate(shards.sources):
        asked = whole(shards, source)
        found_BL = np.broadcast_to(groups.numbers(shards, *asked), asked[2].shape)
        for row, runs in enumerate(mixed.rows[source]):
            for run in runs:
                span = slice(run.start, run.start + len(run.ids))
                expected = (number, "en" if source == "code" else run.document.language or "")
                assert {groups.pairs[group] for group in found_BL[row, span]} == {expected}
        told = np.bincount(found_BL[asked[2] != PADDED], minlength=len(groups))
        for group in groups.of_source(number):
            assert told[group] == shards.languages[source][groups.pairs[group][1]]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chosen=st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_a_batch_in_any_order_is_told_as_its_sequences_are(mixed, chosen):
    shards = TokenShards([mixed])
    alone = [(number, *every(shards, name)) for number, name in enumerate(shards.sources)]
    pairs = [(number, line) for number, _, lines in alone for line in lines.tolist()]
    sources_B, sequences_B = np.array([pairs[one % len(pairs)] for one in chosen]).T
    documents_BL = shards.batch(sources_B, sequences_B).documents_BL.copy()
    found_BL = shards.languages_within(sources_B, sequences_B, documents_BL)
    for row in range(len(chosen)):
        one = slice(row, row + 1)
        alone_L = TokenShards([mixed]).languages_within(
            sources_B[one], sequences_B[one], documents_BL[one]
        )
        assert np.array_equal(found_BL[one], alone_L)


def test_an_index_is_read_once_and_only_where_there_are_several_languages(mixed, monkeypatch):
    opened, read = [], type(mixed).read_table

    def counting(self, path, columns=None):
        opened.append(path)
        return read(self, path, columns)

    monkeypatch.setattr(type(mixed), "read_table", counting)
    shards = TokenShards([mixed])
    for _ in range(2):
        for source in shards.sources:
            shards.languages_within(*whole(shards, source))
    assert sorted(opened) == [f"web/0000{number}.index.parquet" for number in range(3)]


def without_last_pieces(table):
    return table.filter(pc.equal(table["start"], 0))


def backwards(table):
    return table.take(list(range(len(table)))[::-1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_last_pieces, "has more documents than it names"),
        (lambda table: spoken_everywhere(table, "xx"), "language 'xx' is none of shards.json"),
        (backwards, "its sequences are not in order"),
    ],
)
def test_an_index_that_does_not_fit_its_file_is_told(mixed, change, said):
    shards = TokenShards([mixed])
    asked = whole(shards, "web")
    write_index(mixed, "web/00000", change)
    with pytest.raises(CorruptArtifact, match=said) as caught:
        shards.languages_within(*asked)
    assert "web/00000.index.parquet" in str(caught.value)
