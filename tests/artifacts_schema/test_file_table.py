"""An artifact of many files has them in a table beside its manifest; nothing else changes."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import threading
from contextlib import suppress
from urllib.request import urlopen

import pytest
from made import key_of, make_many, manifest_of, write_many

from artifacts_schema.errors import CorruptArtifact, NotDeterministic
from artifacts_schema.file_table import INLINE_FILES, File, digest_sizes, encode_table
from artifacts_schema.identity import canonical_sha256, files_digest
from artifacts_schema.manifest import count_files
from artifacts_schema.store import Store, failpoints, layout
from artifacts_schema.store import commit as committing
from artifacts_schema.store.commit import commit
from artifacts_schema.store.gc import collect, plan_gc
from artifacts_schema.store.listed import ListedBackend
from artifacts_schema.store.verify import find_committed, verify


@pytest.fixture
def small(monkeypatch):
    """Three files are many here."""
    monkeypatch.setattr(committing, "INLINE_FILES", 2)


@pytest.fixture
def reads(monkeypatch):
    """What the store's files are read for: a list of (path, bytes)."""
    from artifacts_schema.store.backend import LocalBackend

    known, read = [], LocalBackend.read

    def noting(self, path, start=0):
        raw = read(self, path, start)
        known.append((path, len(raw)))
        return raw

    monkeypatch.setattr(LocalBackend, "read", noting)
    return known


def table_of(manifest):
    return layout.file_table(*manifest.name, manifest.attempt)


def stored(store, manifest):
    """A manifest as it is stored."""
    return json.loads(store.backend.read(layout.manifest(*manifest.name)))


def seal(store, manifest, value):
    """Store an edited manifest with a new checksum, as docs/design.md says it is computed."""
    left_out = ("telemetry", "attempt", "checksum")
    value["checksum"] = canonical_sha256({k: v for k, v in value.items() if k not in left_out})
    store.backend.replace(layout.manifest(*manifest.name), json.dumps(value).encode())


def replace_table(store, manifest, lines):
    """Another table, and a manifest that names it, its checksum included."""
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    store.backend.replace(table_of(manifest), raw)
    value = stored(store, manifest)
    value["file_table"].update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    seal(store, manifest, value)


def rows_of(store, manifest):
    return [json.loads(line) for line in store.backend.read(table_of(manifest)).splitlines()]


def test_few_files_stand_in_the_manifest_and_many_in_a_table(tmp_path):
    store = Store.open(str(tmp_path / "store"))
    few, many = make_many(store, "few", INLINE_FILES), make_many(store, "many", INLINE_FILES + 1)
    plain = stored(store, few)
    assert (plain["schema_version"], "file_table" in plain) == (2, False)
    assert set(plain["outputs"]["one"]) == {"kind", "kind_version", "digest", "files"}
    plain = stored(store, many)
    assert plain["schema_version"] == 3  # An older Ingot names that, and reads no further.
    # 51 files of 1, 3, … 101 bytes, 50 of 2, 4, … 100 bytes.
    assert plain["outputs"]["one"]["totals"] == {"count": 51, "bytes": 51**2, "rows": 0}
    assert plain["outputs"]["two"]["totals"] == {"count": 50, "bytes": 50 * 51, "rows": 0}
    raw = store.backend.read(table_of(many))
    assert plain["file_table"]["sha256"] == hashlib.sha256(raw).hexdigest()
    assert count_files(store.backend.read(layout.manifest(*many.name))) >= INLINE_FILES + 1


def test_digest_key_and_files_are_those_of_a_list(store, monkeypatch):
    lists = make_many(store, "a", 5)
    monkeypatch.setattr(committing, "INLINE_FILES", 2)
    attempt = write_many(store, "a", 5)
    outputs = attempt.outputs()
    committed = commit(store, manifest_of(attempt, "a"))
    assert committed.attempt == lists.attempt  # Equal bytes: the second writer's are dropped.
    store.backend.remove(layout.manifest(*lists.name))
    tabled = commit(store, manifest_of(attempt, "a"))
    for manifest in (tabled, store.manifest(*tabled.name), pickle.loads(pickle.dumps(tabled))):
        assert manifest.file_table is not None
        for name, output in manifest.outputs.items():
            assert output.files == outputs[name].files
            assert (output.digest, output.count) == (outputs[name].digest, outputs[name].count)
            assert (output.bytes, output.rows) == (outputs[name].bytes, outputs[name].rows)
        assert manifest.size == lists.size == 1 + 2 + 3 + 4 + 5
        assert manifest.describe()["outputs"] == lists.describe()["outputs"]
    assert store.manifest(*tabled.name) == tabled


def test_the_digest_of_files_is_that_of_their_canonical_json():
    files = [("b/é", 2, "0" * 64), ("a\n", 1, "f" * 64)]
    assert files_digest(files) == canonical_sha256(sorted(map(list, files)))


def test_equal_files_give_equal_tables_in_any_order():
    files = {name: [File(path=f"{n}", bytes=n, sha256="0" * 64) for n in range(3)] for name in "ab"}
    turned = {name: files[name][::-1] for name in "ba"}
    assert encode_table(files) == encode_table(turned)


@pytest.mark.parametrize("files", [5, 50])
def test_a_plan_reads_the_manifest_alone(tmp_path, small, reads, files):
    """The same bytes for 50 files as for 5, but for the digits of numbers."""
    store = Store.open(str(tmp_path / "store"))
    made = make_many(store, "a", files)
    reads.clear()
    assert find_committed(store, *made.name).whole is not None
    assert [m.size for m in store.manifests()] == [files * (files + 1) // 2]
    plan_gc(store)
    assert {path for path, _ in reads} == {layout.manifest(*made.name)}
    assert max(size for _, size in reads) < 1_500
    assert store.manifest(*made.name).outputs["one"].files[1].path == "files/00002.json"
    assert reads[-1][0] == table_of(made)


DAMAGE = {
    "the file is gone": lambda raw: None,
    "the file changed from": lambda raw: raw[:-10],
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_table_that_is_gone_or_cut_is_damage_that_a_plan_sees(store, small, what):
    made = make_many(store, "a", 3)
    raw = DAMAGE[what](store.backend.read(table_of(made)))
    store.backend.remove(table_of(made))
    if raw is not None:
        store.backend.replace(table_of(made), raw)
    damage = find_committed(store, *made.name).damage
    assert damage.startswith(f"files.jsonl: {what}")
    assert [one.path for one in verify(store, made)] == [table_of(made)]
    with pytest.raises(CorruptArtifact) as caught:
        _ = store.manifest(*made.name).outputs["one"].files
    assert caught.value.where == store.backend.full(table_of(made))
    again = make_many(store, "a", 3)
    assert again.attempt != made.attempt
    assert find_committed(store, *made.name).whole == again
    assert store.backend.folders(layout.payload(*made.name)) == [again.attempt]


def test_a_flipped_bit_of_a_table_is_found_when_it_is_read(store, small):
    made = make_many(store, "a", 3)
    raw = store.backend.read(table_of(made))
    store.backend.replace(table_of(made), raw.replace(b"00001.json", b"00007.json"))
    assert find_committed(store, *made.name).whole is not None  # Sizes are what they were.
    (problem,) = verify(store, made)
    assert (problem.path, problem.what) == (table_of(made), "the file's bytes changed")
    with pytest.raises(CorruptArtifact, match="bytes changed"):
        _ = store.manifest(*made.name).outputs["two"].files


def test_a_lost_or_cut_payload_file_is_named(store, small):
    made = make_many(store, "a", 4)
    one, two = (store.payload(made, *p) for p in (("one", "files/00002.json"),
                                                  ("two", "files/00001.json")))  # fmt: skip
    store.backend.remove(one)
    store.backend.replace(two, b"")
    problems = {problem.path: problem.what for problem in verify(store, made, full=False)}
    assert problems == {one: "the file is gone", two: "the file changed from 2 to 0 bytes"}
    assert "files/0000" in find_committed(store, *made.name).damage


def test_a_stray_file_among_the_payload_is_no_damage(store, small):
    made = make_many(store, "a", 3)
    store.backend.replace(store.payload(made, "one", "files/stray"), b"1")
    assert find_committed(store, *made.name).whole is not None
    assert verify(store, made) == []


def test_names_that_are_no_text_have_a_digest_too(tmp_path):
    """Python reads the byte 0xff in a file's name as a surrogate, which UTF-8 does not have."""
    name = os.fsdecode(b"\xff")
    assert digest_sizes([(name, 1)]) != digest_sizes([("x", 1)])


EDITS = {
    "digest of the table": lambda v: v["file_table"].update(sha256="0" * 64),
    "size of the table": lambda v: v["file_table"].update(bytes=1),
    "digest of the sizes": lambda v: v["file_table"].update(sizes="0" * 64),
    "number of files": lambda v: v["outputs"]["one"]["totals"].update(count=1),
    "bytes": lambda v: v["outputs"]["one"]["totals"].update(bytes=1),
    "rows": lambda v: v["outputs"]["one"]["totals"].update(rows=1),
    "digest of an output": lambda v: v["outputs"]["one"].update(digest="0" * 64),
    "schema": lambda v: v.update(schema_version=2),
    "an output left out": lambda v: v["outputs"].pop("one"),
    "an output renamed": lambda v: v["outputs"].update(three=v["outputs"].pop("one")),
    "no table": lambda v: v.update(file_table=None),
    "a list and a table": lambda v: v["outputs"]["one"].update(
        totals=None, files=[], digest=files_digest([])
    ),
    "a list and totals": lambda v: v["outputs"]["one"].update(files=[]),
    "attempt": lambda v: v.update(attempt="0" * 12),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("sealed", [True, False])
def test_an_edit_of_what_the_manifest_says_of_its_table_is_found(tmp_path, small, name, sealed):
    store = Store.open(str(tmp_path / "store"))
    made = make_many(store, "a", 3)
    value = stored(store, made)
    EDITS[name](value)
    if sealed:
        seal(store, made, value)
    else:
        store.backend.replace(layout.manifest(*made.name), json.dumps(value).encode())
    with suppress(CorruptArtifact):  # Most are refused when the manifest is read.
        assert verify(store, store.manifest(*made.name)) != []


TABLES = {
    "no rows": lambda rows: [],
    "a row too few": lambda rows: rows[1:],
    "a row twice": lambda rows: [*rows, rows[0]],
    "another size": lambda rows: [[*rows[0][:2], 7, *rows[0][3:]], *rows[1:]],
    "rows of a table": lambda rows: [[*rows[0][:4], 7], *rows[1:]],
    "an unknown output": lambda rows: [["../two", *rows[0][1:]], *rows[1:]],
    "a path to elsewhere": lambda rows: [[rows[0][0], "../../x", *rows[0][2:]], *rows[1:]],
    "no table": lambda rows: [{"a": 1}],
    "text for a number": lambda rows: [[*rows[0][:2], "1", *rows[0][3:]], *rows[1:]],
    "a column more": lambda rows: [[*row, 1] for row in rows],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_made_up_table_is_refused_though_its_checksums_are_right(tmp_path, small, name):
    store = Store.open(str(tmp_path / "store"))
    made = make_many(store, "a", 3)
    replace_table(store, made, TABLES[name](rows_of(store, made)))
    manifest = store.manifest(*made.name)
    with pytest.raises(CorruptArtifact) as caught:
        _ = manifest.outputs["one"].files
    assert caught.value.hint
    assert len(verify(store, manifest)) == 1


class Killed(BaseException):
    pass


def test_the_table_is_on_the_disk_before_the_manifest_is_there(tmp_path, small, monkeypatch):
    store = Store.open(str(tmp_path / "store"))
    flushed, fsync = [], os.fsync

    def flushing(descriptor):
        flushed.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def look(point):
        if point == "file table written":
            assert flushed[-1] == "files.jsonl"

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(failpoints, "on_failpoint", look)
    make_many(store, "a", 3)
    table, folder = flushed.index("files.jsonl"), store.manifest("s", key_of("a")).attempt
    manifest = next(n for n, name in enumerate(flushed) if name.startswith(f".{key_of('a')}.json"))
    assert table < flushed.index(folder) < manifest


@pytest.mark.parametrize("point", ["file table written", "before manifest", "manifest linked"])
def test_a_kill_around_the_table_leaves_an_artifact_or_none(store, small, point, monkeypatch):
    def kill(reached):
        if reached == point:
            raise Killed

    monkeypatch.setattr(failpoints, "on_failpoint", kill)
    with pytest.raises(Killed):
        make_many(store, "a", 3)
    monkeypatch.setattr(failpoints, "on_failpoint", None)
    there = point == "manifest linked"
    assert bool(store.manifest("s", key_of("a"))) == there
    made = make_many(store, "a", 3)
    assert verify(store, made) == []
    store.set_ref("a", *made.name)
    collect(store, plan_gc(store, min_age_seconds=-60))
    assert store.backend.folders(layout.payload(*made.name)) == [made.attempt]
    assert verify(store, store.manifest(*made.name)) == []


def test_a_collection_takes_the_table_with_the_artifact(store, small):
    made = make_many(store, "a", 3)
    removed = collect(store, plan_gc(store, min_age_seconds=-60))
    assert [one.key for one in removed.artifacts] == [made.key]
    assert store.backend.files("data") == store.backend.files("artifacts") == []


def test_of_many_writers_one_commits_and_other_bytes_are_refused(store, small):
    attempts = [write_many(store, "a", 3) for _ in range(4)]
    committed = []
    threads = [
        threading.Thread(
            target=lambda one=one: committed.append(commit(store, manifest_of(one, "a")).attempt)
        )
        for one in attempts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(committed) == {store.manifest("s", key_of("a")).attempt}
    with pytest.raises(NotDeterministic):
        make_many(store, "a", 3, data=b"y")


# Listings ---------------------------------------------------------------------------------------


def test_a_bucket_with_more_files_than_a_listing_has_is_listed_whole(s3_url, s3_server, small):
    """S3 lists at most 1,000 objects a request; the second page has a lost one."""
    store = Store.open(s3_url)
    count = 1_003
    attempt = write_attempt_of_empty_files(store, count)
    made = commit(store, manifest_of(attempt, "a"))
    folder = layout.payload(*made.name, made.attempt)
    urlopen(f"{s3_server}/-/requests").read()
    assert len(store.backend.listing(folder)) == count + 1  # And the table.
    assert json.loads(urlopen(f"{s3_server}/-/requests").read()) == {"GET": 2}
    assert find_committed(store, *made.name).whole is not None
    view = Store(s3_url)
    view.backend = ListedBackend(s3_url, {"s": 1})
    assert find_committed(view, *made.name).whole is not None
    lost = store.payload(made, "one", f"files/{count - 1:05d}.json")
    store.backend.remove(lost)
    damage = find_committed(store, *made.name).damage
    assert damage == f"one/files/{count - 1:05d}.json: the file is gone"


def write_attempt_of_empty_files(store, count):
    """An attempt whose empty files are put many at a time."""
    attempt = write_many(store, "a", 0)
    folder = layout.payload(*("s", attempt.key, attempt.name, "one"))
    paths = [f"files/{number:05d}.json" for number in range(count)]
    backend = store.backend
    backend._at_once(lambda path: backend.replace(f"{folder}/{path}", b""), paths)
    for path in paths:
        attempt.register("one", File(path=path, bytes=0, sha256=hashlib.sha256(b"").hexdigest()))
    return attempt
