"""Sketches of an index in datasketch, against exact Jaccard and Ingot's own signatures."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from near_copies import families, rows

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store
from stages.dedup.minhash import MinHash, shingle_sets
from stages.dedup.presets import Settings
from stages.dedup.shingling import shingler
from stages.dedup.sketches import read_sketches
from stages.dedup.stage import Dedup
from stages.engine.inputs import Input

ROWS = rows("sketched", families(12, 9))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sketches")


@pytest.fixture
def store(folder: Path) -> Store:
    return Store.open(str(folder / "store"))


def index_of(
    store: Store, run_stage: Any, make_documents: Any, **config: Any
) -> tuple[Input, Input]:
    """The index, and the documents that it describes."""
    documents = make_documents([ROWS[:50], [], ROWS[50:]])
    manifest = run_stage(Dedup, {"index": True, **config}, {"documents": [documents]})
    return Input.from_manifest(store, manifest, "dedup_index"), Input.from_manifest(
        store, *documents
    )


def test_jaccard_of_datasketch_is_the_agreement_of_our_signatures(
    store: Store, run_stage: Callable[..., Any], make_documents: Callable[..., Any]
) -> None:
    """And both stray from the exact Jaccard by no more than the binomial error allows."""
    index, documents = index_of(store, run_stage, make_documents)
    settings = Settings(**index.read_json("index.json")["settings"])
    texts = {row["doc_id"]: row["text"] for row in ROWS}
    sketches = dict(read_sketches(index, [documents]))
    assert set(sketches) <= set(texts)
    assert len(sketches) > 50
    ids = sorted(sketches)
    shingled = shingler(settings)(pa.array([texts[name] for name in ids]))
    signatures = MinHash(settings).signatures(shingled.hashes, shingled.offsets)
    hashes, offsets, _ = shingle_sets(shingled.hashes, shingled.offsets, settings.most)
    sets = [set(hashes[a:b].tolist()) for a, b in pairwise(offsets)]
    error, expected = 0.0, 0.0
    for one, two in combinations(range(len(ids)), 2):
        jaccard = sketches[ids[one]].jaccard(sketches[ids[two]])
        assert jaccard == float((signatures[one] == signatures[two]).mean())
        exact = len(sets[one] & sets[two]) / len(sets[one] | sets[two])
        error += (jaccard - exact) ** 2
        expected += exact * (1 - exact) / signatures.shape[1]
    assert 0.5 < np.sqrt(error / expected) < 2


def test_an_index_that_was_not_kept_or_without_its_documents_is_refused(
    store: Store, run_stage: Callable[..., Any], make_documents: Callable[..., Any]
) -> None:
    index, documents = index_of(store, run_stage, make_documents, verify=False)
    assert len(dict(read_sketches(index, [documents]))) > 50
    with pytest.raises(InputError, match="missing"):
        next(read_sketches(index, []))
    with pytest.raises(InputError, match="no index was kept"):
        next(read_sketches(index_of(store, run_stage, make_documents, index=False)[0], [documents]))
