"""The comparison: sums, tax and uses on texts and tokenizers whose numbers are known."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from artifacts_schema.errors import InputError, UsageError
from stages.compare_tokenizers.figures import Comparison
from stages.compare_tokenizers.stage import CompareTokenizers
from stages.engine.page import Artifact


def by_letters() -> Tokenizer:
    """A tokenizer of single bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end_of_text|>", "<|pad|>"])
    return tokenizer


def passage(number: int | None, language: str | None, text: str, source: str = "web"):
    metadata = {} if number is None else {"id": number}
    row = {"text": text, "source": source, "metadata": json.dumps(metadata)}
    return row if language is None else {**row, "language": language}


@pytest.fixture
def compare(run_stage, as_artifact):
    """`compare({name: tokenizer}, documents=[…], parallel=[…], **config)` → the manifest."""

    def run(tokenizers, documents=(), parallel=(), execution=None, force=False, **config):
        inputs = {
            "tokenizers": [as_artifact(one) for one in tokenizers.values()],
            "documents": list(documents),
            "parallel": list(parallel),
        }
        config = {"names": list(tokenizers), **config}
        return run_stage(CompareTokenizers, config, inputs, execution or {}, force=force)

    return run


@pytest.fixture
def measures(read_table):
    """`measures(manifest)` → rows by (tokenizer, text, language, source)."""

    def read(manifest):
        rows = read_table(manifest, "comparison", "measures.parquet").to_pylist()
        keys = ("tokenizer", "text", "language", "source")
        return {tuple(row.pop(key) for key in keys): row for row in rows}

    return read


def test_sums_are_those_by_hand_for_each_language_and_source(compare, make_documents, measures):
    given = make_documents(
        [
            [
                {"text": "ab c", "language": "en"},
                {"text": "é!", "language": "fr", "source": "books"},
            ],
            [{"text": "d", "language": "en"}, {"text": "e"}],
        ]
    )
    found = measures(compare({"bytes": by_letters()}, documents=[given]))
    assert found == {
        ("bytes", "documents", "en", "web"): {
            "documents": 2, "bytes": 5, "characters": 5, "words": 3, "continued_words": 1,
            "tokens": 5, "not_restored": 0, "unknown_tokens": 0,
        },
        ("bytes", "documents", "fr", "books"): {
            "documents": 1, "bytes": 3, "characters": 2, "words": 1, "continued_words": 1,
            "tokens": 3, "not_restored": 0, "unknown_tokens": 0,
        },
        ("bytes", "documents", None, "web"): {
            "documents": 1, "bytes": 1, "characters": 1, "words": 1, "continued_words": 0,
            "tokens": 1, "not_restored": 0, "unknown_tokens": 0,
        },
    }  # fmt: skip


def test_uses_are_counted_for_every_token_and_special_ones_stand_for_nothing(
    compare, make_documents, read_table
):
    manifest = compare({"bytes": by_letters()}, documents=[make_documents([["aab", "<|pad|>"]])])
    tokens = read_table(manifest, "comparison", "tokens.parquet").to_pylist()
    assert [token["token_id"] for token in tokens] == list(range(258))
    used = {token["token"]: token["uses"] for token in tokens if token["uses"]}
    assert used == {"a": 3, "b": 1, **dict.fromkeys("<>", 1), "|": 2, "p": 1, "d": 1}
    assert [(t["token"], t["bytes"], t["uses"]) for t in tokens[256:]] == [
        ("<|end_of_text|>", 0, 0),
        ("<|pad|>", 0, 0),
    ]
    assert {token["token"] for token in tokens if token["bytes"] == 1} >= {"a", " ", "\\xe4"}


def test_the_tax_is_tokens_over_those_of_the_reference(compare, make_documents, store):
    # Bytes are tokens: 3 + 1 in English, 6 + 2 in Russian, in German 4 + 2.
    rows = [
        *(passage(1, language, text) for language, text in (("en", "abc"), ("ru", "где"))),
        *(passage(2, language, text) for language, text in (("en", "a"), ("ru", "д"))),
        passage(1, "de", "abcd"),
        passage(2, "de", "é"),
    ]
    manifest = compare({"bytes": by_letters()}, parallel=[make_documents([rows[:3], rows[3:]])])
    found = Comparison.read(Artifact(store, manifest))
    assert found.tax() == {"bytes": {"en": 1.0, "de": 6 / 4, "ru": 8 / 4}}
    other = compare({"bytes": by_letters()}, parallel=[make_documents([rows])], reference="de")
    assert Comparison.read(Artifact(store, other)).tax()["bytes"]["ru"] == 8 / 6


def test_a_source_without_the_reference_bears_on_no_tax(compare, make_documents, store):
    rows = [passage(1, "en", "abc"), passage(1, "ru", "где")]
    others = [passage(1, "ru", "д", "books"), passage(1, "de", "abcd", "books")]
    manifest = compare({"bytes": by_letters()}, parallel=[make_documents([rows, others])])
    assert Comparison.read(Artifact(store, manifest)).tax() == {"bytes": {"en": 1.0, "ru": 2.0}}


def test_only_passages_in_all_languages_of_their_source_are_measured(
    compare, make_documents, measures
):
    rows = [
        *(passage(1, language, "one") for language in ("en", "de", "th")),
        *(passage(2, language, "two two") for language in ("en", "de")),  # lacks th
        *(passage(3, language, "three") for language in ("en", "de", "th", "th")),  # th twice
        passage(4, None, "which language?"),
        passage(None, "en", "which passage?"),
        *(passage(2, language, "other source", "books") for language in ("en", "de")),
    ]
    manifest = compare({"bytes": by_letters()}, parallel=[make_documents([rows[:4], rows[4:]])])
    found = measures(manifest)
    counts = {key[1:]: row["documents"] for key, row in found.items()}
    assert counts == {
        **{("parallel", language, "web"): 1 for language in ("en", "de", "th")},
        **{("parallel", language, "books"): 1 for language in ("en", "de")},
    }
    assert found["bytes", "parallel", "th", "web"]["tokens"] == 3
    assert manifest.conservation.dropped == {
        "incomplete_passage": 2, "repeated_passage": 4, "no_language": 1, "no_passage": 1,
    }  # fmt: skip
    assert manifest.counts["passages"] == 2


def test_passages_are_known_by_a_column_if_asked(compare, make_documents, measures):
    rows = [
        {**passage(None, language, "x"), "title": title}
        for language in ("en", "de")
        for title in ("A", "B")
    ]
    manifest = compare({"bytes": by_letters()}, parallel=[make_documents([rows])], passage="title")
    assert sum(row["documents"] for row in measures(manifest).values()) == 4


def test_parallel_documents_that_do_not_match_are_refused(compare, make_documents):
    tokenizers = {"bytes": by_letters()}
    unnamed = [{"text": "a", "language": "en", "metadata": '{"key": 1}'}]
    with pytest.raises(InputError, match=r"'id'.*key, url or title"):
        compare(tokenizers, parallel=[make_documents([unnamed])])
    apart = [passage(1, "en", "a"), passage(2, "de", "a"), passage(3, "en", "b")]
    with pytest.raises(InputError, match=r" 2 .*de \(1\), en \(2\)"):
        compare(tokenizers, parallel=[make_documents([apart])])
    other = [passage(1, "fr", "a"), passage(1, "de", "a")]
    with pytest.raises(InputError, match=r"'en'.*de, fr"):
        compare(tokenizers, parallel=[make_documents([other])])


def test_nothing_to_measure_and_wrong_names_are_refused(compare, run_stage, make_documents):
    with pytest.raises(InputError, match="`documents`, or `parallel`"):
        compare({"bytes": by_letters()})
    with pytest.raises(InputError, match="`max_bytes`"):
        compare({"bytes": by_letters()}, documents=[make_documents([[]])])
    documents = [make_documents([["a"]])]
    with pytest.raises(UsageError, match=r"2 names.* 1 "):
        compare({"bytes": by_letters()}, documents=documents, names=["a", "b"])
    with pytest.raises(UsageError, match="'a'"):
        compare({"bytes": by_letters()}, documents=documents, names=["a", "a"])


def test_without_names_they_are_algorithm_and_size_and_never_equal(
    run_stage, as_artifact, make_documents, bpe, read_input
):
    one, two = bpe(["ab ab abc"], 260), bpe(["xy xy xyz"], 260)
    given = [as_artifact(one), as_artifact(two), as_artifact(one), as_artifact(by_letters())]
    manifest = run_stage(
        CompareTokenizers, {}, {"tokenizers": given, "documents": [make_documents([["ab"]])]}
    )
    names = [*read_input(manifest, "comparison").read_json("tokenizers.json")]
    first, second = (manifest.outputs["tokenizer"].digest[:6] for manifest, _ in given[:2])
    assert sorted(names) == sorted(
        [f"bpe 260 ({first}) (1)", f"bpe 260 ({second})", f"bpe 260 ({first}) (3)", "bpe 258"]
    )


def test_a_sample_takes_whole_duplicate_classes_evenly(compare, make_documents, measures):
    rows = [
        {"text": f"{n:06d}" * 50, "duplicate_class": f"{n // 2:032x}", "source": source}
        for n, source in enumerate(["even", "odd"] * 1000)
    ]
    manifest = compare(
        {"bytes": by_letters()}, documents=[make_documents([rows[:900], rows[900:]])],
        max_bytes=150_000,
    )  # fmt: skip
    found = measures(manifest)
    odd, even = (found["bytes", "documents", None, source] for source in ("odd", "even"))
    assert odd["documents"] == even["documents"]  # the two of a class are both drawn, or none
    assert 150 < odd["documents"] < 350  # 1000 classes at a quarter: mean 250, deviation 14
    assert manifest.conservation.dropped == {"not_drawn": 2000 - 2 * odd["documents"]}


def test_a_sample_of_passages_has_every_language_of_them(compare, make_documents, measures):
    # More rows than a row group holds; English ones have one byte, German ones three.
    rows = [
        passage(n, language, "x" * size)
        for n in range(4500)
        for language, size in (("en", 1), ("de", 3))
    ]
    documents = [make_documents([rows])]
    manifest = compare({"bytes": by_letters()}, parallel=documents, max_bytes=4500)
    found = {key[2]: row for key, row in measures(manifest).items()}
    count = found["en"]["documents"]
    assert count == found["de"]["documents"] == manifest.counts["passages"]
    assert 1000 < count < 1250  # 4500 at a quarter: mean 1125, deviation 29
    assert (found["en"]["bytes"], found["de"]["bytes"]) == (count, 3 * count)


def test_an_english_tokenizer_taxes_other_scripts_more_than_one_of_all_languages(
    compare, make_documents, bpe, xquad, store
):
    english = bpe([row["text"] for row in xquad if row["lang"] == "en"], 2000)
    every = bpe([row["text"] for row in xquad], 2000)
    documents = make_documents(
        [
            [
                {"text": r["text"], "language": r["lang"], "metadata": json.dumps({"id": r["id"]})}
                for r in xquad
                if r["id"] < "xquad-040"
            ]
        ]
    )
    manifest = compare({"english": english, "every": every}, parallel=[documents])
    assert manifest.counts["passages"] == 40
    tax = Comparison.read(Artifact(store, manifest)).tax()
    for language in ("ru", "zh", "th", "hi"):
        assert tax["english"][language] > 1.5 * tax["every"][language] > 0
    assert max(tax["english"], key=tax["english"].get) in ("th", "hi")


@pytest.mark.full
def test_bytes_are_the_same_for_any_number_of_workers(compare, make_documents, bpe, xquad):
    rows = [
        {"text": r["text"], "language": r["lang"], "metadata": json.dumps({"id": r["id"]})}
        for r in xquad
        if r["id"] < "xquad-010"
    ]
    documents = make_documents([rows[start : start + 30] for start in range(0, len(rows), 30)])
    given = {"a": bpe(["the cat sat on the mat"] * 3, 280), "b": by_letters()}
    one, two = (
        compare(
            given,
            documents=[documents],
            parallel=[documents],
            max_bytes=50_000,
            execution={"workers": workers},
            force=True,  # Other bytes would raise.
        )
        for workers in (1, 2)
    )
    assert one.outputs["comparison"].digest == two.outputs["comparison"].digest
    assert one.counts == two.counts
