"""`ingot overlap`: planted corpora against counts by definition, and what it refuses."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import time
from pathlib import Path

import chat_data
import pytest
from forks import in_fork
from near_copies import prose
from peak_memory import peak_growth

from artifacts_schema.errors import IngotError
from flows.analysis import corpus_sketch, overlap
from flows.analysis.overlap import ComparedCorpus, sketch_corpora
from stages.filter.stage import Filter
from stages.ingest.stage import Ingest

SHARED = [" ".join(prose(seed, 40)) for seed in range(30)]
ONLY_A = [" ".join(prose(seed, 40)) for seed in range(100, 160)]
ONLY_B = [" ".join(prose(seed, 40)) for seed in range(200, 230)]
SHINGLES = 36
"""Of 40 random words, five at a time."""
GREEK = "\u0394\u03b5\u03bd \u03bc\u03b9\u03bb\u03ac\u03c9 \u03b5\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u03ba\u03b1\u03b8\u03cc\u03bb\u03bf\u03c5 \u03c3\u03ae\u03bc\u03b5\u03c1\u03b1"  # noqa: E501


@pytest.fixture
def corpora(store, make_documents):
    """A of 90 documents, a third of which lie in B of 60; in shards, B's copies in capitals."""
    web = [{"text": text, "source": "web", "language": "en"} for text in ONLY_A]
    books = [{"text": text, "source": "books"} for text in SHARED]
    rows = [*web, *books]
    random.Random(1).shuffle(rows)
    name(store, "a", make_documents([rows[:40], rows[40:], []], "one"))
    copies = [text.upper() for text in SHARED]
    name(store, "b", make_documents([copies, [], ONLY_B], "two"))
    return store


def name(store, ref, reference):
    manifest, _ = reference
    store.set_ref(ref, manifest.stage, manifest.key)


def asked(ingot, *arguments):
    result = ingot("overlap", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def values(unit):
    return {name: one and one["value"] for name, one in unit.items()}


def test_planted_overlap_is_counted_exactly(ingot, corpora):
    report = asked(ingot, "a", "b", "--workers", 1)
    assert report["documents"] == {"a": 90, "b": 60}
    assert values(report["units"]["texts"])["shared"] == 0
    for unit, each in (("documents", 1), ("lines", 1), ("shingles", SHINGLES)):
        assert values(report["units"][unit]) == {
            "distinct_a": 90 * each,
            "distinct_b": 60 * each,
            "union": 120 * each,
            "shared": 30 * each,
            "jaccard": 0.25,
            "a_in_b": pytest.approx(1 / 3),
            "b_in_a": 0.5,
        }
        assert all(one["exact"] for one in report["units"][unit].values())
    shown = ingot("overlap", "a", "b", "--workers", 1).stdout
    assert "90 documents" in shown
    assert "33.33%" in shown
    assert "all exact" in shown


def test_workers_change_nothing(ingot, corpora):
    one, two = (asked(ingot, "b", "a", "--by", "source", "--workers", n) for n in (1, 2))
    assert one == two


def test_sources_and_languages_are_reported_apart(ingot, corpora):
    groups = asked(ingot, "a", "b", "--by", "source", "--workers", 1)["groups"]
    shares = [(g["name"], g["documents"], values(g["a_in_b"])["shingles"]) for g in groups]
    assert shares == [("web", 60, 0.0), ("books", 30, 1.0)]
    groups = asked(ingot, "a", "b", "--by", "language", "--workers", 1)["groups"]
    assert [(g["name"], g["documents"]) for g in groups] == [("en", 60), ("(none)", 30)]
    assert "books" in ingot("overlap", "a", "b", "--by", "source", "--workers", 1).stdout


def test_estimates_stay_within_their_intervals(ingot, corpora, monkeypatch):
    """As large corpora are: a sample holds 32 of 90 documents, and 512 of 3,240 shingles."""
    monkeypatch.setattr(corpus_sketch, "SAMPLE", 512)
    shingles = asked(ingot, "a", "b", "--workers", 1)["units"]["shingles"]
    expected = {"distinct_a": 3_240, "union": 4_320, "shared": 1_080, "a_in_b": 1 / 3}
    for unit, value in expected.items():
        estimate = shingles[unit]
        assert not estimate["exact"]
        assert estimate["low"] <= value <= estimate["high"]
        assert estimate["low"] < estimate["high"]
    assert "\u2248 3,2" in ingot("overlap", "a", "b", "--workers", 1).stdout


def test_a_corpus_lies_in_itself_and_an_empty_one_in_none(ingot, store, make_documents):
    name(store, "one", make_documents([[GREEK]], "one"))
    name(store, "none", make_documents([[]], "none"))
    for unit in asked(ingot, "one", "one", "--workers", 1)["units"].values():
        assert set(values(unit).values()) == {1}
    empty = asked(ingot, "none", "one", "--workers", 1)["units"]["documents"]
    assert (empty["a_in_b"], values(empty)["b_in_a"], values(empty)["jaccard"]) == (None, 0.0, 0.0)
    nothing = asked(ingot, "none", "none", "--workers", 1)["units"]["lines"]
    assert (values(nothing)["union"], nothing["jaccard"]) == (0, None)


@pytest.fixture
def read(snapshot, run_stage, store):
    """`read(name, texts)`: a snapshot of that name as a ref, read by `ingest`."""

    def make(label, *texts, **config):
        files = {f"{n}.txt": text.encode() for n, text in enumerate(texts)}
        (reference,) = snapshot(files, label)
        name(store, label, reference)
        run_stage(Ingest, config, {"snapshot": [reference]})
        return reference

    return make


def test_a_snapshot_is_what_ingest_read_of_it(ingot, read):
    read("crawl-A", *SHARED[:3], *ONLY_A[:1])
    read("crawl-B", *SHARED[:3])
    report = asked(ingot, "crawl-A", "crawl-B", "--workers", 1)
    assert (report["a"]["stage"], report["a"]["snapshot"]) == ("ingest", "crawl-A")
    assert values(report["units"]["documents"])["a_in_b"] == 0.75
    assert (
        "snapshot crawl-B: 3 documents"
        in ingot("overlap", "crawl-A", "crawl-B", "--workers", 1).stdout
    )


def test_a_snapshot_that_nobody_read_or_two_have_is_refused(ingot, read, snapshot, store):
    name(store, "unread", snapshot({"a.txt": b"text"}, "unread")[0])
    read("twice", SHARED[0])
    read("twice", SHARED[0], source="other")
    assert ingot("overlap", "unread", "unread").exit_code == 2
    told = ingot("overlap", "twice", "unread")
    assert told.exit_code == 2
    assert "read more than once: ingest" in told.stderr


def test_conversations_are_compared_by_their_texts(ingot, store, given, make_documents):
    """A corpus of one conversation, of which the last line is that of a document."""
    talk = chat_data.conversation(
        "0" * 32, chat_data.message("user", SHARED[0]), chat_data.message("assistant", SHARED[1])
    )
    name(store, "talks", given("conversations", {"0.parquet": [talk]}))
    name(store, "b", make_documents([[SHARED[1]]]))
    report = asked(ingot, "talks", "b", "--by", "language", "--workers", 1)
    assert values(report["units"]["lines"])["a_in_b"] == 0.5
    assert values(report["units"]["documents"])["shared"] == 0
    assert values(report["units"]["shingles"])["shared"] == SHINGLES
    assert [group["name"] for group in report["groups"]] == ["(none)"]


def test_what_holds_no_texts_or_several_is_refused(ingot, store, run_stage, given, make_documents):
    name(store, "list", given("exclusions", {"0.parquet": [{"doc_id": "0" * 32, "reason": "x"}]}))
    told = ingot("overlap", "list", "list")
    assert (told.exit_code, "holds no texts" in told.stderr) == (2, True)
    roles = {
        "documents": [make_documents([[SHARED[0]]])],
        "conversations": [given("conversations", {"0.parquet": chat_data.TALKS})],
    }
    kinds = ("email", "ip_address", "phone", "iban", "card", "secret")
    kept = {"personal_data": dict.fromkeys(kinds, "keep")}
    both = run_stage(Filter, {"rules": [], "views": [], **kept}, roles)
    name(store, "both", (both, "documents"))
    told = ingot("overlap", "both", "both")
    assert told.exit_code == 2
    assert "both:documents, both:conversations" in told.stderr
    named = asked(ingot, "both:documents", "both:conversations", "--workers", 1)
    assert named["documents"]["a"] == 1


def test_killed_in_the_middle_leaves_nothing_behind(store, corpora, tmp_path):
    """Killed by `kill -9` once a shard is read; its workers end too, and the store is as before."""
    store.set_ref("again", *next(iter(store.manifests())).name)
    before = {name: store.backend.read(name) for name in store.backend.files("")}
    pids = tmp_path / "pids"

    def run():
        opened = [ComparedCorpus.open(store, text) for text in ("a", "b")]

        def strike(done, total):
            if done:
                tree = [int(pid) for pid in descendants(os.getpid())]
                pids.write_text(" ".join(map(str, tree)))
                os.kill(os.getpid(), signal.SIGKILL)

        sketch_corpora(opened, workers=2, group_by=None, progress=strike)

    assert in_fork(run) == -signal.SIGKILL
    workers = pids.read_text().split()
    assert len(workers) >= 3  # What forks them, and two.
    end = time.monotonic() + 60
    while alive := [pid for pid in workers if Path(f"/proc/{pid}").exists() and not zombie(pid)]:
        assert time.monotonic() < end, alive
        time.sleep(0.05)
    assert {name: store.backend.read(name) for name in store.backend.files("")} == before


@pytest.mark.full
def test_memory_does_not_grow_with_the_shard(store, make_documents, monkeypatch):
    """A shard six times as long, in one row group: 60 MB of text that compression halves."""
    monkeypatch.setattr(corpus_sketch, "SAMPLE", 1 << 14)
    words, draw = prose(1, 40_000), random.Random(2)
    texts = [" ".join(draw.choices(words, k=10_000)) for _ in range(1_000)]

    def peak(count, label):
        name(store, label, make_documents([texts[:count]], label))
        opened = [ComparedCorpus.open(store, label)]
        read = functools.partial(
            sketch_corpora, opened, workers=1, group_by=None, progress=lambda done, total: None
        )
        read()  # Once here: what it imports and compiles is no growth.
        return peak_growth(read)

    small, large = peak(160, "small"), peak(1_000, "large")
    text = sum(map(len, texts[160:]))  # What the larger one has more.
    assert large - small < text / 3, (small, large, text)


def descendants(pid):
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield child
        yield from descendants(child)


def zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_a_worker_that_dies_is_one_clear_error(store, corpora, monkeypatch):
    monkeypatch.setattr(overlap, "sketch_shard", die)
    opened = [ComparedCorpus.open(store, text) for text in ("a", "b")]
    with pytest.raises(IngotError, match="worker process died") as caught:
        sketch_corpora(opened, workers=2, group_by=None, progress=lambda done, total: None)
    assert caught.value.hint


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)
