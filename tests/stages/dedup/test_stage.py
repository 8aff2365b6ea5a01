from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.identity import document_id
from artifacts_schema.kinds import beside
from artifacts_schema.manifest import Manifest
from stages.dedup.minhash import candidate_probability
from stages.dedup.stage import Dedup
from stages.text.normalise import normalise
from stages.text.words import words

Make = Callable[..., Any]


def ident(number: int, snapshot: str = "given") -> str:
    return document_id(snapshot, "file", number)


def prose(seed: int, length: int = 200) -> list[str]:
    """Random words of five letters, so that two seeds share no shingle."""
    rng = random.Random(seed)
    return [letters(rng.randrange(26**5)) for _ in range(length)]


def letters(number: int) -> str:
    """A number as a word (digits would all be one number to normalisation)."""
    return "".join(chr(97 + number // 26**place % 26) for place in range(5))


def edited(text: list[str], edits: int, seed: int) -> list[str]:
    """`text` with some words replaced."""
    rng, copy = random.Random(seed), list(text)
    for place in rng.sample(range(len(copy)), edits):
        copy[place] = letters(rng.randrange(26**5))
    return copy


def shingles(text: str) -> set[tuple[str, ...]]:
    """The reference: word 5-grams of the normalised text, or all its words."""
    split = words(normalise(text))
    if len(split) < 5:
        return {tuple(split)} if split else set()
    return {tuple(split[i : i + 5]) for i in range(len(split) - 4)}


def similarity(one: str, two: str) -> float:
    a, b = shingles(one), shingles(two)
    return len(a & b) / len(a | b) if a and b else 0.0


def corpus() -> list[str]:
    """25 originals, each with copies from equal to barely alike, in a shuffled order."""
    texts = []
    for seed in range(25):
        text = prose(seed)
        texts.append(" ".join(text))
        for edits in (0, 1, 3, 6, 12, 25, 40):
            texts.append(" ".join(edited(text, edits, seed)).upper())
    random.Random(0).shuffle(texts)
    return texts


def found_pairs(table: pa.Table) -> dict[tuple[str, str], float]:
    """Pairs in order of id, with their similarity; each must be told by both sides alike."""
    told: dict[tuple[str, str], float] = {}
    for row in table.to_pylist():
        for partner in row["partners"]:
            told[row["doc_id"], partner["doc_id"]] = partner["similarity"]
    assert all(told[b, a] == s for (a, b), s in told.items())
    return {pair: s for pair, s in told.items() if pair[0] < pair[1]}


def test_pairs_are_exact_and_nearly_all_found(
    run_stage: Make, make_documents: Make, read_table: Callable[..., pa.Table]
) -> None:
    texts = corpus()
    documents = make_documents([texts[:100], texts[100:110], texts[110:]])
    manifest = run_stage(Dedup, {}, {"documents": [documents]})
    folder = beside(documents[0].outputs["documents"].digest)
    paths = [f"{folder}/{shard:05d}.parquet" for shard in range(3)]
    table = pa.concat_tables([read_table(manifest, "duplicates", path) for path in paths])
    assert table.column("doc_id").to_pylist() == [ident(i) for i in range(len(texts))]

    classes: dict[str, int] = {}
    first = [classes.setdefault(normalise(text), i) for i, text in enumerate(texts)]
    assert table.column("exact_class").to_pylist() == [ident(i) for i in first]

    exact = {
        tuple(sorted((ident(i), ident(j)))): similarity(texts[i], texts[j])
        for i, j in combinations(sorted(set(first)), 2)
    }
    found = found_pairs(table)
    for pair, value in found.items():
        assert value == pytest.approx(exact[pair], abs=1e-7)
        assert value >= 0.5
    expected = sum(candidate_probability(s, 14, 8) for s in exact.values() if s >= 0.5)
    assert len(found) > expected * 0.93
    assert not [pair for pair, s in exact.items() if s >= 0.9 and pair not in found]


def test_the_same_bytes_for_any_workers_and_the_same_pairs_for_any_order(
    run_stage: Make, make_documents: Make, read_table: Callable[..., pa.Table]
) -> None:
    texts = corpus()[:120]
    one = make_documents([texts[:50], texts[50:]])
    roles = {"documents": [one]}
    alone = run_stage(Dedup, {}, roles)
    two = run_stage(Dedup, {}, roles, {"workers": 2}, force=True)
    assert two.outputs == alone.outputs

    other = make_documents([texts[::-1]])
    backwards = run_stage(Dedup, {}, {"documents": [other]})

    def by_text(manifest: Manifest, order: list[str]) -> set[tuple[str, str]]:
        names = {ident(i): normalise(text) for i, text in enumerate(order)}
        table = read_table(manifest, "duplicates")
        return {
            tuple(sorted((names[a], names[b])))  # type: ignore[misc]
            for a, b in found_pairs(table)
        }

    assert by_text(backwards, texts[::-1]) == by_text(alone, texts)


def test_documents_of_two_inputs_meet_and_each_has_its_folder(
    run_stage: Make, make_documents: Make, read_table: Callable[..., pa.Table]
) -> None:
    text = prose(1)
    one = make_documents([[" ".join(text)]], "A")
    two = make_documents([[" ".join(edited(text, 2, 1)), " ".join(text)]], "B")
    roles = {"documents": [one, two]}
    manifest = run_stage(Dedup, {}, roles)
    folder = beside(two[0].outputs["documents"].digest)
    near, copy = read_table(manifest, "duplicates", f"{folder}/00000.parquet").to_pylist()
    assert [p["doc_id"] for p in near["partners"]] == [ident(0, "A")]
    assert copy == {"doc_id": ident(1, "B"), "exact_class": ident(0, "A"), "partners": []}


def test_empty_tiny_and_equal_documents(
    run_stage: Make, make_documents: Make, read_table: Callable[..., pa.Table], store: Any
) -> None:
    texts = ["", "  ", "***", "hello", "Hello!", "hello world", "42", "43 "] + [
        "same old text"
    ] * 500
    documents = make_documents([texts, []])
    manifest = run_stage(Dedup, {}, {"documents": [documents]})
    table = read_table(manifest, "duplicates", f"{next(iter(folders(manifest)))}/00000.parquet")
    classes = table.column("exact_class").to_pylist()
    # A number is a number to normalisation; blank texts are equal only where their bytes are.
    assert classes[:8] == [ident(i) for i in (0, 1, 2, 3, 3, 5, 6, 6)]
    assert classes[8:] == [ident(8)] * 500
    assert found_pairs(table) == {}
    counts = manifest.counts
    assert counts["documents"] == 508
    assert counts["documents_without_words"] == 3
    assert counts["exact_copies"] == 1 + 1 + 499
    assert counts["candidate_pairs"] == 0
    assert manifest.conservation is not None
    assert manifest.conservation.out == 508


def folders(manifest: Manifest) -> set[str]:
    paths = [file.path for file in manifest.outputs["duplicates"].files]
    return {path.split("/")[0] for path in paths if "/" in path}


def test_a_crowd_of_near_copies_stays_linear(run_stage: Make, make_documents: Make) -> None:
    text = prose(5, 120)
    texts = [" ".join([*text, letters(number)]) for number in range(300)]
    documents = make_documents([texts])
    config = {"max_bucket": 4, "max_partners": 6}
    manifest = run_stage(Dedup, config, {"documents": [documents]})
    # Every band holds nearly all: each document meets the first four, not the other 299.
    assert 4 * 290 < manifest.counts["verified_pairs"] < 10 * 300
    assert manifest.counts["capped_documents"] >= 4


def test_the_same_documents_twice_are_refused_by_id(run_stage: Make, make_documents: Make) -> None:
    one = make_documents([["a text"]])
    two = make_documents([["another text"]])
    with pytest.raises(InputError, match=ident(0)):
        run_stage(Dedup, {}, {"documents": [one, two]})
