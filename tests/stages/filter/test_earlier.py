"""Decisions by ledgers of earlier runs: the same as one run over everything makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from copies_by_hand import copies, copy_row, folder
from gopher_rows import NO_RULES, document
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs_in_memory import Held, decide_in_memory, documents_of

from artifacts_schema.errors import InputError, UsageError
from stages.engine.inputs import Input
from stages.filter import duplicates as duplicate_tables
from stages.filter.config import DuplicatesPolicy

Make = Callable[..., Any]


@dataclass
class Document:
    """A document of a random corpus."""

    id: str
    generation: int
    passes: bool
    says: int
    """Documents that say the same are of one exact class; …"""
    bytes: int
    """… of these, equal ones of one text class."""


@dataclass
class World:
    """Generations of documents, and the pairs between the first of two classes."""

    documents: list[Document]
    pairs: dict[tuple[int, int], float]
    listed_once: set[tuple[int, int]] = field(default_factory=set)
    """Pairs of one generation that only one of the two rows lists, as where lists are cut."""

    def of(self, generation: int) -> list[Document]:
        return [d for d in self.documents if d.generation == generation]

    def first(self, *, says: int, equal: int | None = None) -> Document:
        """What stands for a class: of the earliest generation, in it the least id."""
        members = [d for d in self.documents if d.says == says]
        members = [d for d in members if equal is None or d.bytes == equal]
        return min(members, key=lambda d: (d.generation, d.id))

    def rows(self, generation: int) -> list[dict[str, Any]]:
        """What dedup writes of a generation: only what it and earlier ones say."""
        found = []
        for d in self.of(generation):
            exact = self.first(says=d.says)
            text = self.first(says=d.says, equal=d.bytes)
            partners = [] if exact is not d else self._partners(d)
            found.append(copy_row(d.id, exact.id, partners, text.id))
        return found

    def _partners(self, one: Document) -> list[tuple[str, float]]:
        found = []
        for (a, b), similarity in self.pairs.items():
            if one.says not in (a, b):
                continue
            two = self.first(says=b if one.says == a else a)
            cut = (a, b) in self.listed_once and one.says == a
            if two.generation < one.generation or (two.generation == one.generation and not cut):
                found.append((two.id, similarity))
        return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    generations = draw(st.integers(2, 4))
    documents = []
    for number in range(draw(st.integers(2, 16))):
        says = draw(st.integers(0, 6))
        name = f"{draw(st.integers(0, 255)):02x}{number:02x}"
        of, passes = draw(st.integers(0, generations - 1)), draw(st.integers(0, 3)) > 0
        documents.append(Document(name, of, passes, says, draw(st.integers(0, 1))))
    classes = sorted({d.says for d in documents})
    grades = st.sampled_from([0.5, 0.6, 0.75, 0.8, 0.9])
    pairs = {
        (a, b): draw(grades)
        for a in classes
        for b in classes
        if a < b and draw(st.integers(0, 2)) == 0
    }
    return World(documents, pairs, {pair for pair in pairs if draw(st.booleans())})


@dataclass
class Run:
    """One decision about some generations, on top of earlier ones."""

    documents: list[Document]
    kept: list[str]
    partners: dict[str, str]
    similar: dict[str, float]
    classes: dict[str, str]
    linked: dict[str, set[str]]
    """Other names of the class, of documents that have any."""
    ledger: Input


def run(
    world: World,
    now: Sequence[int],
    before: Sequence[Run],
    told: Sequence[int],
    policy: DuplicatesPolicy,
    memory: int = 1 << 30,
) -> Run:
    """Filter the generations `now` by the tables of `told` and the ledgers of `before`."""
    inputs, documents = [], []
    for generation in now:
        ids = [d.id for d in world.of(generation)]
        inputs.append(documents_of({"0.parquet": ids}, _digest(generation)))
        documents += world.of(generation)
    duplicates = [
        Held.make("duplicates", {f"{_digest(g)[:12]}/0.parquet": world.rows(g)}, f"{g:064d}")
        for g in told
    ]
    passes = {d.id: d.passes for d in documents}
    ledgers = [one.ledger for one in before]
    known = decide_in_memory(inputs, duplicates, ledgers, passes, policy, memory=memory)
    copies, partners = known.copies(), known.partners().to_pylist()
    kept = [
        d.id for d, partner in zip(documents, partners, strict=True) if d.passes and not partner
    ]
    tables = {
        f"{_digest(g)[:12]}/0.parquet": [
            {**_VERDICT, "doc_id": d.id, "verdict": "kept" if d.id in kept else "dropped"}
            for d in world.of(g)
        ]
        for g in now
    }
    names = [d.id for d in documents]
    return Run(
        documents,
        kept,
        {d: partner for d, partner in zip(names, partners, strict=True) if partner},
        dict(zip(names, copies.similarity.tolist(), strict=True)),
        {d: d for d in names} | _by_name(names, *known.column("duplicate_class")),
        {d: set(others) for d, others in _by_name(names, *known.column("linked_classes")).items()},
        Held.make("ledger", tables, "1" * 64),
    )


def _by_name(names: list[str], rows: Any, values: pa.Array) -> dict[str, Any]:
    return {names[row]: value for row, value in zip(rows, values.to_pylist(), strict=True)}


_VERDICT: dict[str, Any] = {"failing": [], "edits": 0, "characters": 1}


def _digest(generation: int) -> str:
    return f"{generation:012d}" + "0" * 52


POLICIES = st.builds(
    DuplicatesPolicy,
    threshold=st.sampled_from([None, 0.6, 0.8]),
    exact=st.sampled_from([None, "raw", "normalised"]),
)


def one_by_one(
    world: World, groups: Sequence[Sequence[int]], policy: DuplicatesPolicy
) -> list[Run]:
    """Runs over groups of generations, each with the ledgers of all before."""
    runs: list[Run] = []
    for place, group in enumerate(groups):
        told = [g for earlier in groups[: place + 1] for g in earlier]
        runs.append(run(world, group, runs, told, policy))
        groups_of = _connected(world, runs)
        assert runs[-1].classes == _classes(groups_of, runs)
        for d in runs[-1].documents:
            named = {one.classes[x] for one in runs for x in groups_of[d.id] & set(one.classes)}
            found = {runs[-1].classes[d.id]} | runs[-1].linked.get(d.id, set())
            # A class that another one was part of may have been named by a document not kept.
            assert named <= found <= groups_of[d.id]
    return runs


@settings(max_examples=40, deadline=None)
@given(world=worlds(), policy=POLICIES, retired=st.integers(0, 1), data=st.data())
def test_run_by_run_the_same_stay_as_of_all_at_once(
    world: World, policy: DuplicatesPolicy, retired: int, data: st.DataObject
) -> None:
    """Where the earliest generation is retired, it is named still, but no table tells of it."""
    generations = sorted({d.generation for d in world.documents})[retired:]
    if not generations:
        return
    cuts = data.draw(st.sets(st.sampled_from(generations[1:]))) if generations[1:] else set()
    groups: list[list[int]] = []
    for generation in generations:
        if generation in cuts or not groups:
            groups.append([])
        groups[-1].append(generation)
    whole = run(world, generations, [], generations, policy)
    runs = one_by_one(world, groups, policy)
    assert [d for one in runs for d in one.kept] == whole.kept
    partners = {d: partner for one in runs for d, partner in one.partners.items()}
    assert {d: s for one in runs for d, s in one.similar.items()} == whole.similar
    assert partners.keys() == whole.partners.keys()
    if all(len(group) == 1 for group in groups[:-1]):
        # Tables of one ledger are in no known order, which tells equally similar ones apart.
        assert partners == whole.partners


@settings(max_examples=20, deadline=None)
@given(world=worlds(), policy=POLICIES, cut=st.integers(0, 3))
def test_little_memory_changes_nothing(world: World, policy: DuplicatesPolicy, cut: int) -> None:
    """Several ranges of names, a group for each component, and the larger ones from disk."""
    generations = sorted({d.generation for d in world.documents})
    old, new = generations[:cut], generations[cut:]
    if not new:
        return
    before = [run(world, old, [], old, policy)] if old else []
    one, two = (run(world, new, before, generations, policy, memory) for memory in (1 << 30, 700))
    assert [one.kept, one.partners, one.classes] == [two.kept, two.partners, two.classes]
    assert [one.similar, one.linked] == [two.similar, two.linked]


def test_a_class_keeps_the_name_that_the_run_of_its_first_document_gave_it() -> None:
    """Of 5, which stands for it, and 1 of a later generation of the same run, 1 is the less."""
    documents = [Document("9", 0, True, 9, 0), Document("5", 1, False, 0, 0)]
    documents += [Document("1", 2, True, 0, 0), Document("0", 3, True, 0, 0)]
    runs = one_by_one(World(documents, {}), [[0], [1, 2], [3]], DuplicatesPolicy())
    assert [one.classes for one in runs] == [{"9": "9"}, {"5": "1", "1": "1"}, {"0": "1"}]
    # Where 5 was retired, its name stays that of the class, as 1 was named when it came.
    runs = one_by_one(World(documents[1:], {}), [[2], [3]], DuplicatesPolicy())
    assert [one.classes for one in runs] == [{"1": "1"}, {"0": "1"}]
    documents[2].id = "7"
    runs = one_by_one(World(documents[1:], {}), [[2], [3]], DuplicatesPolicy())
    assert [one.classes for one in runs] == [{"7": "5"}, {"0": "5"}]


def test_a_kept_document_is_known_by_the_raw_text_that_another_one_stands_for() -> None:
    """a, which failed a rule, stands for the text of b, which was kept, and of c; d says the same
    in other bytes."""
    documents = [Document("a", 0, False, 0, 0), Document("b", 0, True, 0, 0)]
    documents += [Document("c", 1, True, 0, 0), Document("d", 1, True, 0, 1)]
    policy = DuplicatesPolicy(threshold=None, exact="raw")
    runs = one_by_one(World(documents, {}), [[0], [1]], policy)
    assert [one.partners for one in runs] == [{}, {"c": "b"}]
    assert [one.kept for one in runs] == [["b"], ["d"]]


def test_a_document_that_links_two_classes_tells_the_names_of_both() -> None:
    """a and b were two classes; c is near both, d near b alone, and e near c; f is near none."""
    documents = [Document(name, 0, True, says, 0) for says, name in enumerate("ab")]
    documents += [Document(name, 1, True, says, 0) for says, name in enumerate("cdf", start=2)]
    documents += [Document("e", 2, True, 5, 0)]
    pairs = {(0, 2): 0.6, (1, 2): 0.6, (1, 3): 0.6, (2, 5): 0.6}
    runs = one_by_one(World(documents, pairs), [[0], [1], [2]], DuplicatesPolicy())
    assert [one.classes for one in runs] == [
        {"a": "a", "b": "b"},
        {"c": "a", "d": "a", "f": "f"},
        {"e": "a"},
    ]
    assert [one.linked for one in runs] == [{}, {"c": {"b"}, "d": {"b"}}, {"e": {"b"}}]
    whole = run(World(documents, pairs), [0, 1, 2], [], [0, 1, 2], DuplicatesPolicy())
    assert whole.linked == {}


def _connected(world: World, runs: list[Run]) -> dict[str, set[str]]:
    """All documents that each one is connected with by what the runs knew."""
    seen = [d for one in runs for d in one.documents]
    group = {d.id: {d.id} for d in world.documents}

    def join(one: str, two: str) -> None:
        both = group[one] | group[two]
        for name in both:
            group[name] = both

    for d in seen:
        join(d.id, world.first(says=d.says).id)
    last = max(d.generation for d in seen)
    for a, b in world.pairs:
        one, two = world.first(says=a), world.first(says=b)
        newer = max(one.generation, two.generation)
        if newer in {d.generation for d in seen} and newer <= last:
            join(one.id, two.id)
    return group


def _classes(group: dict[str, set[str]], runs: list[Run]) -> dict[str, str]:
    """Duplicate class of the last run's documents: of those connected the earliest, then least.

    What an earlier run did not know does not change what it named.
    """
    age = {d.id: place for place, one in enumerate(runs) for d in one.documents}
    return {
        d.id: min(group[d.id], key=lambda name: (age.get(name, 0), name))
        for d in runs[-1].documents
    }


@pytest.mark.parametrize("rows", [1, 3])
def test_few_rows_at_once_change_nothing(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Batches of any size find the same."""
    documents = [Document(f"{n:04x}", n % 3, n % 4 > 0, n % 7, n % 2) for n in range(40)]
    pairs = {(a, b): 0.8 for a in range(7) for b in range(a + 1, 7) if (a + b) % 3 == 0}
    world, policy = World(documents, pairs), DuplicatesPolicy()
    outcomes = []
    for _ in range(2):
        before = run(world, [0, 1], [], [0, 1], policy)
        found = run(world, [2], [before], [0, 1, 2], policy)
        outcomes.append((found.kept, found.partners, found.classes))
        monkeypatch.setattr(duplicate_tables, "_LEAST_ROWS", rows)
        monkeypatch.setattr(duplicate_tables, "_NAMES_A_ROW", 1000)
    assert outcomes[0] == outcomes[1]


# The stage ---------------------------------------------------------------------------------------


@pytest.fixture
def snapshots(given: Make, make_documents: Make) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two snapshots with duplicates of their own, dedup of the second having known the first."""
    old = make_documents([[document("a"), document("b")]])
    new = make_documents([[document("c"), document("d"), document("e")]])
    old_rows = [("a", "a", [("b", 0.9)]), ("b", "b", [("a", 0.9)])]
    new_rows = [("c", "c", [("b", 0.95)]), ("d", "a", []), ("e", "e", [("z", 0.9), ("d", 0.6)])]
    return (
        {
            "documents": old,
            "duplicates": copies(given, {f"{folder(old)}/00000.parquet": old_rows}),
        },
        {
            "documents": new,
            "duplicates": copies(given, {f"{folder(new)}/00000.parquet": new_rows}),
        },
    )


def test_a_ledger_tells_what_was_kept_and_the_ledger_of_the_new_names_it(
    snapshots: Any, decide: Any
) -> None:
    """b went for a, so c, near b alone, stays; d is a's text; z is known by name alone."""
    old, new = snapshots
    first, kept, _ = decide(NO_RULES, **old)
    assert [row["doc_id"] for row in kept] == ["a"]
    both = [old["duplicates"], new["duplicates"]]
    roles = {"documents": new["documents"], "duplicates": both, "ledger": (first, "ledger")}
    manifest, kept, told = decide(NO_RULES, **roles)
    assert [row["doc_id"] for row in kept] == ["c", "e"]
    assert (told["d"]["reason"], told["d"]["partner"]) == ("exact_duplicate", "a")
    # e is named by d, which d's row does not tell: by e alone d is no document at hand, but is.
    assert [row["duplicate_class"] for row in kept] == ["a", "a"]
    documents = [old["documents"], new["documents"]]
    whole, kept, _ = decide(NO_RULES, documents=documents, duplicates=both)
    assert [row["doc_id"] for row in kept] == ["a", "c", "e"]
    assert whole.conservation.out == first.conservation.out + manifest.conservation.out


def test_what_a_ledger_can_not_tell_is_refused(snapshots: Any, decide: Any) -> None:
    old, new = snapshots
    first, _, _ = decide(NO_RULES, **old)
    ledger = (first, "ledger")
    both = [old["duplicates"], new["duplicates"]]
    roles = {"documents": new["documents"], "duplicates": both, "ledger": ledger}
    config = {**NO_RULES, "duplicates": {"priority": [{"by": "length"}]}}
    with pytest.raises(UsageError, match=r"duplicates\.priority") as error:
        decide(config, **roles)
    assert "ledger" in (error.value.hint or "")
    with pytest.raises(InputError, match="ledger"):
        decide(NO_RULES, **{**roles, "duplicates": new["duplicates"]})
    with pytest.raises(UsageError, match="ledger"):
        decide(NO_RULES, documents=new["documents"], ledger=ledger)
    with pytest.raises(InputError, match="given_documents"):
        decide(NO_RULES, **{**roles, "documents": [old["documents"], new["documents"]]})
    again, _, _ = decide({**NO_RULES, "views": []}, **old)
    with pytest.raises(InputError, match="ledger"):
        decide(NO_RULES, **{**roles, "ledger": [ledger, (again, "ledger")]})
