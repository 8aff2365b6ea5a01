"""What a tokenizer is trained on: shares of bytes by source and language, met and told."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError, UsageError
from stages.engine.outputs import ROW_GROUP
from stages.tokenizer.sample import BINS, RequestedShares, bin_depth, depth_bins
from stages.tokenizer.stage import TokenizerStage

BODY = "the cat sat on the mat and the dog ran far away "


def rows(source: str, language: str | None, documents: int, seed: int) -> list[dict[str, object]]:
    draw = random.Random(seed)
    return [
        {"text": BODY * draw.randint(1, 20), "source": source, "language": language}
        for _ in range(documents)
    ]


def size(documents: Iterable[dict[str, object]]) -> int:
    return sum(len(str(row["text"])) for row in documents)


@pytest.fixture
def corpus() -> list[list[dict[str, object]]]:
    return [
        rows("web", "en", 3000, 1),
        rows("web", "de", 1000, 2),
        rows("code", None, 1000, 3),
        rows("books", "de", 2000, 4),
    ]


@pytest.fixture
def record(run_stage, make_documents, read_input, corpus):
    """`record(**config)` → training.json of the stage on the corpus."""

    def run(**config):
        settings = {"vocabulary_size": 300, **config}
        manifest = run_stage(TokenizerStage, settings, {"documents": [make_documents(corpus)]})
        return read_input(manifest, "tokenizer").read_json("training.json")

    return run


def shares(record, by: str) -> dict[str, float]:
    return {name: one["share"] for name, one in record[by].items()}


def test_shares_of_sources_and_languages_are_met_within_one_percent(record, corpus):
    asked = {"weights": {"code": 0.3, "books": 0.1}, "language_weights": {"en": 0.25}}
    found = record(**asked, max_bytes=size(chain(*corpus)) // 5)
    # web keeps what is left; de and unknown divide what en leaves, as far as sources allow.
    assert shares(found, "sources") == pytest.approx(
        {"books": 0.1, "code": 0.3, "web": 0.6}, rel=0.01
    )
    assert shares(found, "languages")["en"] == pytest.approx(0.25, rel=0.01)
    assert found["short"] == []
    for by in ("sources", "languages"):
        for one in found[by].values():
            assert one["share"] == pytest.approx(one["asked_share"], rel=0.01)
    assert sum(one["bytes"] for one in found["sources"].values()) == found["bytes"]
    assert found["bytes"] == pytest.approx(0.99 * (size(chain(*corpus)) // 5), rel=0.01)


def test_without_weights_shares_are_natural(record, corpus):
    found = record(max_bytes=size(chain(*corpus)) // 4)
    total = size(chain(*corpus))
    assert shares(found, "sources") == pytest.approx(
        {
            "web": size(corpus[0] + corpus[1]) / total,
            "code": size(corpus[2]) / total,
            "books": size(corpus[3]) / total,
        },
        rel=0.02,
    )


def test_alpha_smooths_languages_as_in_xlm_r(record, corpus):
    """q = p ** alpha / sum p ** alpha; Conneau & Lample 2019, section 3.1."""
    found = record(language_alpha=0.3, max_bytes=size(chain(*corpus)) // 8, held_share=0)
    sizes = {"en": size(corpus[0]), "de": size(corpus[1] + corpus[3]), "unknown": size(corpus[2])}
    powers = {name: (one / sum(sizes.values())) ** 0.3 for name, one in sizes.items()}
    wanted = {name: power / sum(powers.values()) for name, power in powers.items()}
    assert shares(found, "languages") == pytest.approx(wanted, rel=0.01)


def test_a_share_that_lacks_text_is_told_with_numbers_and_how_to_meet_it(record, corpus, caplog):
    code, rest = size(corpus[2]), size(corpus[0] + corpus[1] + corpus[3])
    found = record(weights={"code": 0.5}, held_share=0)
    (short,) = found["short"]
    assert (short["by"], short["name"], short["available"]) == ("source", "code", code)
    assert short["asked"] == pytest.approx((code + rest) / 2, abs=1)
    assert found["sources"]["code"]["bytes"] == code
    (message,) = [one.getMessage() for one in caplog.records if "max_bytes: " in one.getMessage()]
    limit = int(message.rsplit("max_bytes: ", 1)[1].split()[0])
    assert limit == pytest.approx(2 * code, abs=1)
    again = record(weights={"code": 0.5}, held_share=0, max_bytes=limit)
    assert again["short"] == []
    assert shares(again, "sources")["code"] == pytest.approx(0.5, rel=0.01)


NATURAL = RequestedShares({}, {})


@pytest.fixture
def drawn(make_documents, store, tmp_path):
    """`drawn(shards, max_bytes, held_share, asked)` → (sample, texts trained on, texts held)."""
    from stages.engine import Input, ShardOutput, ShardResult
    from stages.tokenizer.drawing import (
        DrawnShard,
        TextShard,
        bytes_by_depth,
        draw_texts,
        drawn_texts,
        scan_depths,
    )
    from stages.tokenizer.sample import Sample

    def map_over(function, items, **shared):
        results = []
        for item in items:
            out = ShardOutput(store.backend, f"work/{function.__name__}/{item.id}", {})
            value = function(item, out, **shared)
            files = {(one.output, one.file.path): one for one in out.written}
            results.append(ShardResult(item.id, value, store.backend, files))
        return results

    def draw(documents, max_bytes, held_share=0.0, asked=NATURAL):
        manifest, output = make_documents(documents)
        shards = Input.from_manifest(store, manifest, output).shards()
        items = [TextShard(f"00-{shard.id}", shard) for shard in shards]
        scans = map_over(scan_depths, items)
        sample = Sample(bytes_by_depth(scans), max_bytes, held_share, asked)
        again = [
            DrawnShard(one.id, one.shard, scan) for one, scan in zip(items, scans, strict=True)
        ]
        results = map_over(draw_texts, again, held=sample.held, limits=sample.limits)
        trained = list(sample.count(drawn_texts(results, held=False)))
        return sample, trained, [text for _, text in drawn_texts(results, held=True)]

    if not store.backend.local:
        pytest.skip("maps over a bucket are shown by the stage itself")
    return draw


def test_copies_are_never_both_held_and_trained_on(drawn):
    """The same duplicate class in two sources of very different shares falls on one side."""
    documents = [
        {"text": f"{source} {n} {BODY}", "source": source, "duplicate_class": f"{n:032x}"}
        for source in ("web", "code")
        for n in range(3000)
    ]
    asked = RequestedShares({"code": 0.05}, {})
    sample, trained, held = drawn([documents], size(documents) // 3, 0.3, asked)
    trained, held = ({text.split()[1] for text in texts} for texts in (trained, held))
    assert len(trained) > 500
    assert len(held) > 200
    assert not trained & held
    assert sample.bytes["code", "unknown"] / sample.bytes.total() == pytest.approx(0.05, rel=0.01)


def test_a_larger_sample_holds_a_smaller_one(drawn):
    documents = [[f"{number} {BODY}" for number in range(10_000)]]
    small, large = (set(drawn(documents, limit)[1]) for limit in (50_000, 200_000))
    assert small < large


def test_row_groups_without_a_drawn_document_are_not_read(drawn, monkeypatch):
    import pyarrow.parquet as pq

    documents = [[f"{number} {BODY}" for number in range(40_000)]]
    read = []
    group = pq.ParquetFile.read_row_group

    def noted(self, number, columns=None, **more):
        read.extend([number] if columns == ["text"] else [])
        return group(self, number, columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    _, trained, _ = drawn(documents, 3 * len(documents[0][0]))
    places = {int(text.split()[0]) // ROW_GROUP for text in trained}
    assert 0 < len(trained) < 10
    assert set(read) == places
    assert len(places) < 40_000 // ROW_GROUP


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"weights": {"cod": 0.5}}, "weights.*'cod'"),
        ({"language_weights": {"fr": 0.5}}, "language_weights.*'fr'"),
        (
            {"weights": {"web": 0.5, "code": 0.2, "books": 0.2}},
            "weights.* 0.9",
        ),
        (
            {"weights": {"code": 0.9}, "language_weights": {"en": 0.5}},
            "`weights`.*`language_weights`",
        ),
    ],
)
def test_shares_of_what_is_not_there_are_refused(record, config, value):
    with pytest.raises(InputError, match=value):
        record(**config)


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"weights": {"web": 0.7, "code": 0.7}}, "weights: .*1.4"),
        ({"weights": {"web": -0.1}}, "weights.web"),
        (
            {"language_weights": {"en": 0.5}, "language_alpha": 0.3},
            "language_alpha.*language_weights",
        ),
        ({"language_alpha": 1.5}, "language_alpha"),
        ({"max_bytes": 2**31}, "max_bytes"),
    ],
)
def test_shares_that_cannot_be_are_refused(record, config, value):
    with pytest.raises(UsageError, match=value):
        record(**config)


@given(depth=st.floats(2.0**-53, 1.0))
def test_a_depth_lies_in_its_bin(depth):
    number = int(depth_bins(np.array([depth]))[0])
    assert 0 <= number < BINS
    assert bin_depth(number + 1) < depth <= bin_depth(number)
    assert (
        bin_depth(number) - bin_depth(number + 1) <= bin_depth(number) / 256 or number == BINS - 1
    )


CELLS = st.dictionaries(
    st.tuples(st.sampled_from("wcb"), st.sampled_from("xyz")), st.integers(1, 10**9), min_size=1
)


@settings(max_examples=200)
@given(available=CELLS, data=st.data())
def test_asked_shares_sum_to_one_and_keep_what_they_name(available, data):
    sources = sorted({source for source, _ in available})
    named = data.draw(st.sets(st.sampled_from(sources), max_size=len(sources) - 1))
    asked = {name: data.draw(st.floats(0.01, 0.9 / len(named))) for name in sorted(named)}
    found = RequestedShares(asked, {}).shares(available)
    assert sum(found.values()) == pytest.approx(1)
    assert set(found) == set(available)
    by_source = {s: sum(v for (name, _), v in found.items() if name == s) for s in sources}
    for name, share in asked.items():
        assert by_source[name] == pytest.approx(share)
    for source in sources:  # Languages keep their proportions inside a source.
        inside = [cell for cell in available if cell[0] == source]
        total = sum(available[cell] for cell in inside)
        for cell in inside:
            part = available[cell] / total
            assert found[cell] == pytest.approx(by_source[source] * part)
