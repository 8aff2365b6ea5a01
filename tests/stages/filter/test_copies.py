"""Copies decided by ranges, components and groups: the same as of all documents in one place."""

from __future__ import annotations

import errno
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from copies_by_hand import copies, copy_row, folder
from gopher_rows import NO_RULES, document
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs_in_memory import Held, decide_in_memory, documents_of
from test_decide import POLICIES, Corpus, corpora

from artifacts_schema.errors import StoreError
from stages.filter import groups
from stages.filter.config import Criterion, DuplicatesPolicy
from stages.filter.decide import decide_copies, least_linked
from stages.filter.stage import Filter

DIGEST = "5" * 64


def inputs_of(corpus: Corpus, names: list[str], rows: int) -> tuple[Held, Held]:
    """A corpus as inputs, in shards of so many documents."""
    made = []
    for d, name in enumerate(names):
        links = corpus.links
        partners = [
            (names[two], None if np.isnan(similarity) else float(similarity))
            for one, two, similarity in zip(links.one, links.two, links.similarity, strict=True)
            if one == d
        ]
        made.append(copy_row(name, names[links.classes[d]], partners, names[links.texts[d]]))
    parts = {f"{n:03d}.parquet": made[n : n + rows] for n in range(0, len(made), rows)}
    ids = {path: [row["doc_id"] for row in part] for path, part in parts.items()}
    tables = {f"{DIGEST[:12]}/{path}": part for path, part in parts.items()}
    return documents_of(ids, DIGEST), Held.make("duplicates", tables, "6" * 64)


@settings(max_examples=50, deadline=None)
@given(
    corpora(),
    POLICIES,
    st.sampled_from([1 << 30, 2000, 700]),
    st.integers(1, 5),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_groups_decide_what_one_place_would(
    corpus: Corpus, policy: DuplicatesPolicy, memory: int, rows: int, ordered: bool, random: Any
) -> None:
    """With 700 bytes each component of more than two documents is decided from disk."""
    policy = policy.model_copy(update={"unverified": "accept"})
    names = [f"{n:032x}" if n % 2 else f"d{n:02d}" for n in range(len(corpus.passes))]
    random.shuffle(names)
    order, keys = np.arange(len(names)), None
    if ordered:
        policy = policy.model_copy(update={"priority": (Criterion(by="length"),)})
        order = corpus.order
        keys = {names[d]: float(place) for place, d in enumerate(order.tolist())}
    documents, duplicates = inputs_of(corpus, names, rows)
    passes = dict(zip(names, corpus.passes.tolist(), strict=True))
    known = decide_in_memory(
        [documents], [duplicates], [], passes, policy, keys=keys, memory=memory
    )
    expected = decide_copies(corpus.passes, corpus.links, policy, order)
    partners = [None if partner < 0 else names[partner] for partner in expected.partner.tolist()]
    assert known.partners().to_pylist() == partners
    np.testing.assert_array_equal(known.copies().similarity, expected.similarity)
    np.testing.assert_array_equal(known.copies().exact, expected.exact)
    rank = np.argsort(np.argsort(names))
    classes = [names[node] for node in least_linked(corpus.links, rank, verified=False)]
    found = list(names)
    for row, name in zip(*map(list, known.column("duplicate_class")), strict=True):
        found[row] = name.as_py()
    assert found == classes
    assert not len(known.column("linked_classes")[0])


def test_a_component_larger_than_memory_is_decided_from_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain of 300: every second one goes, as a copy of the one before or after it."""
    made: list[int] = []
    mapped = groups._Mapped.empty

    def note(self: Any, length: int, type_: Any) -> Any:
        made.append(length)
        return mapped(self, length, type_)

    monkeypatch.setattr(groups._Mapped, "empty", note)
    names = [f"{n:032x}" for n in range(300)]
    links = [copy_row(d, d, [(e, 0.9)]) for d, e in pairwise(names)]
    rows = {f"{DIGEST[:12]}/0.parquet": [*links, copy_row(names[-1], names[-1], [])]}
    documents = documents_of({"0.parquet": names}, DIGEST)
    duplicates = Held.make("duplicates", rows, "6" * 64)
    passes, policy = dict.fromkeys(names, True), DuplicatesPolicy()
    outcomes = []
    for memory in (1 << 30, 1 << 12):
        known = decide_in_memory([documents], [duplicates], [], passes, policy, memory=memory)
        outcomes.append(known.decided)
        assert bool(made) == (memory == 1 << 12)
    assert outcomes[0].equals(outcomes[1])
    partners = known.partners().to_pylist()
    assert partners == [names[n - 1] if n % 2 else None for n in range(300)]


def test_a_full_disk_is_an_error_before_a_page_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(groups.os, "posix_fallocate", refuse)
    names = [f"{n:032x}" for n in range(30)]
    rows = {f"{DIGEST[:12]}/0.parquet": [copy_row(d, names[0], []) for d in names]}
    documents = documents_of({"0.parquet": names}, DIGEST)
    duplicates = Held.make("duplicates", rows, "6" * 64)
    passes = dict.fromkeys(names, True)
    with pytest.raises(StoreError, match="no space left"):
        decide_in_memory([documents], [duplicates], [], passes, DuplicatesPolicy(), memory=700)


def test_memory_of_the_stage_changes_no_byte(
    given: Any, make_documents: Any, run_stage: Any
) -> None:
    documents = make_documents([[document(d) for d in "abcd"], [document(d) for d in "efgh"]])
    tables: Any = {
        f"{folder(documents)}/00000.parquet": [
            ("a", "a", [("f", 0.9)]),
            ("b", "b", [("a", 0.6)]),
            ("c", "a", []),
            ("d", "d", [("h", 0.85)]),
        ],
        f"{folder(documents)}/00001.parquet": [
            ("e", "e", []),
            ("f", "f", [("a", 0.9), ("g", 0.95)]),
            ("g", "g", [("f", 0.95)]),
            ("h", "h", []),
        ],
    }
    roles = {"documents": [documents], "duplicates": [copies(given, tables)]}
    config = {**NO_RULES, "personal_data": "keep"}
    wide, narrow = (
        run_stage(Filter, {**config, "rules_by_source": rules}, roles, {"memory": memory})
        for memory, rules in (("1GiB", {}), ("1KiB", {"elsewhere": []}))
    )
    assert wide.conservation == narrow.conservation
    # c and f copy a, h copies d; b is too far from a, and g is near f alone.
    assert wide.conservation.out == 5
    for output in ("documents", "ledger"):
        assert wide.output(output).digest == narrow.output(output).digest
