"""What a run committed before its end: an index in its work folder, then a list in its manifest.

An entry is written before the payload it announces, so that a collection knows whose payload that
is, and again, with digests, once the artifact is committed. A run that commits lists them in its
own manifest; until then, or until its work is removed, the index keeps them.

From payload to artifact: files under a fresh attempt, then one manifest, created if absent.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from artifacts_schema.blocks import block_bytes
from artifacts_schema.errors import CorruptArtifact, NotDeterministic, StoreError
from artifacts_schema.file_table import INLINE_FILES, File, encode_table
from artifacts_schema.identity import files_digest, short
from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import Interim, Manifest, Output
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, HashingWriter
from artifacts_schema.store.failpoints import hit_failpoint
from artifacts_schema.store.store import Ref, Store
from artifacts_schema.store.verify import (
    Committed,
    clear_damage,
    find_committed,
    readable_manifest,
    verify,
)

_FOLDER = "interim"
_ENTRY = re.compile(rf"work/[^/]+/{_FOLDER}/[^/]+\.json")


def announce_interim(backend: Backend, run: str, entry: Interim) -> None:
    """Write the entry of an artifact: first without outputs, then, once it is committed, with them.

    An entry of the same artifact that has outputs stays: a run that was succeeded while it wrote
    this must not take back what its successor announced.
    """
    place = _place(run, entry.at)
    raw = json.dumps(entry.model_dump(), sort_keys=True).encode()
    if not entry.outputs:
        if backend.put_if_absent(place, raw):
            return
        earlier = backend.read_many([place]).get(place)
        if earlier is not None and _parse_entry(place, earlier).key == entry.key:
            return
    backend.replace(place, raw)


def withdraw_interims(backend: Backend, run: str, *, after: int) -> None:
    """Remove the entries after `after` from the index: the run went back to there."""
    for place in _places(backend, run):
        if _at(place) > after:
            backend.remove(place)


def announced_keys(backend: Backend, files: Iterable[str]) -> dict[str, list[str]]:
    """Keys of artifacts that runs announced, by run, from the index entries among `files`."""
    places = [path for path in files if _ENTRY.fullmatch(path)]
    keys: dict[str, list[str]] = {}
    for path, raw in backend.read_many(places).items():
        keys.setdefault(path.split("/")[1], []).append(_parse_entry(path, raw).key)
    return keys


def list_interims(store: Store, stage: str, run: str) -> list[Interim]:
    """What the run of `stage` with key `run` has committed on its way, in order.

    From its manifest, if it is over and that can be read, else from its index.
    """
    manifest = readable_manifest(store, stage, run)
    if manifest is not None:
        return list(manifest.interims)
    return committed_interims(store.backend, run)


def committed_interims(backend: Backend, run: str) -> list[Interim]:
    """The entries of a run's index whose artifacts are committed, in order."""
    contents = backend.read_many(_places(backend, run))
    entries = [_parse_entry(path, raw) for path, raw in contents.items()]
    return sorted((one for one in entries if one.outputs), key=lambda one: one.at)


def name_interims(store: Store, name: str, stage: str, entries: Sequence[Interim]) -> None:
    """Let `NAME@LABEL` mean what a run called `name` committed on its way.

    Names of that form that an earlier run of the name left, and this one has not, are removed.
    """
    if not entries:
        return
    mine = {f"{name}@{one.label}": one.key for one in entries}
    refs = store.refs(f"{name}@")
    for ref, key in mine.items():
        if ref not in refs or refs[ref].key != key:
            store.set_ref(ref, stage, key)
    for ref, target in refs.items():
        if ref not in mine and _is_interim_name(store, ref, target):
            store.backend.remove(layout.ref(ref))


def _is_interim_name(store: Store, name: str, target: Ref) -> bool:
    """Whether a name is one that `name_interims` gave, and not a person's own.

    If the manifest cannot be read that is unknown, and the name stays.
    """
    manifest = readable_manifest(store, target.stage, target.key)
    origin = manifest.interim_of if manifest is not None else None
    return origin is not None and name.endswith(f"@{origin.label}")


def _place(run: str, at: int) -> str:
    return layout.work(run, _FOLDER, f"{at:012d}.json")


def _places(backend: Backend, run: str) -> list[str]:
    folder = layout.work(run, _FOLDER)
    return [f"{folder}/{name}" for name in backend.files(folder) if name.endswith(".json")]


def _at(place: str) -> int:
    return int(place.rsplit("/", 1)[1].removesuffix(".json"))


def _parse_entry(path: str, raw: bytes) -> Interim:
    try:
        return Interim.model_validate_json(raw)
    except ValueError:
        raise CorruptArtifact("not an index entry", where=path, hint="remove the file") from None


log = logging.getLogger(__name__)


def written_file(
    backend: Backend, place: str, output: str, path: str, writer: HashingWriter
) -> File:
    """A file that was written at `place`; its table of blocks is written now, if it has one."""
    table = writer.block_table
    if table is not None:
        with backend.create(layout.block_table(place, output, path)) as file:
            file.write(table)
    return File(path=path, bytes=writer.bytes, sha256=writer.sha256, blocks=writer.blocks)


@dataclass
class Attempt:
    """The payload of one try at a key. Nobody reads it before its manifest is committed."""

    backend: Backend
    stage: str
    key: str
    kinds: dict[str, str]
    name: str = field(default_factory=lambda: secrets.token_hex(6))
    files: dict[str, dict[str, File]] = field(default_factory=dict)

    @contextmanager
    def create(self, output: str, path: str) -> Iterator[HashingWriter]:
        """Write the file `path` of `output`; it belongs to the attempt when the block ends well."""
        self._check(output, path)
        place = self._place(output, path)
        with self.backend.create(place, block=block_bytes(path)) as writer:
            yield writer
        self.register(output, written_file(self.backend, place, output, path, writer))

    def adopt(self, files: Iterable[tuple[str, File, str]], *, replace: bool = False) -> None:
        """Take over files from elsewhere in the store (finished shards): output, file, place.

        Nothing is copied where links exist; in a bucket the server copies. With `replace` a file
        takes the place of one that was taken over before.
        """
        pairs = []
        for output, file, source in files:
            if replace:
                self.files.get(output, {}).pop(file.path, None)
            self._check(output, file.path)
            place = self._place(output, file.path)
            pairs.append((source, place))
            if file.blocks is not None:
                table = layout.block_table(source, output, file.path)
                pairs.append((table, layout.block_table(place, output, file.path)))
            self.register(output, file)
        self.backend.link(pairs)

    def register(self, output: str, file: File) -> None:
        """Note a file that has been written."""
        self.files.setdefault(output, {})[file.path] = file

    def set_rows(self, output: str, path: str, rows: int) -> None:
        """Note the rows of a table after it was written."""
        self.files[output][path] = self.files[output][path].model_copy(update={"rows": rows})

    def outputs(self) -> dict[str, Output]:
        """Every declared output with files and digest; one without files is empty, not absent."""
        outputs = {}
        for name, kind in self.kinds.items():
            files = tuple(file for _, file in sorted(self.files.get(name, {}).items()))
            digest = files_digest((f.path, f.bytes, f.sha256) for f in files)
            version = kind_named(kind).version
            outputs[name] = Output(kind=kind, kind_version=version, digest=digest, files=files)
        return outputs

    def discard(self) -> None:
        """Remove the payload of an attempt that will not be committed.

        It stays if the manifest names it: a commit may fail after the manifest was written.
        """
        with suppress(FileNotFoundError):
            if self.name.encode() in self.backend.read(layout.manifest(self.stage, self.key)):
                return
        self.backend.remove(layout.payload(self.stage, self.key, self.name))

    def _place(self, output: str, path: str) -> str:
        return layout.payload(self.stage, self.key, self.name, output) + "/" + path

    def _check(self, output: str, path: str) -> None:
        if output not in self.kinds:
            raise ValueError(f"{self.stage} declares no output '{output}'")
        if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"not a path inside an output: {path!r}")
        if not kind_named(self.kinds[output]).allows(path):
            raise ValueError(f"kind '{self.kinds[output]}' has no file like '{path}'")
        if path in self.files.get(output, {}):
            raise ValueError(f"'{path}' of output '{output}' is written twice")


def commit(store: Store, manifest: Manifest) -> Manifest:
    """Put the manifest; returns the committed one, which may be an earlier writer's.

    A damaged artifact under the key stays until here, and is replaced in one move. The caller holds
    the lease. Raises NotDeterministic if an earlier writer's bytes differ where the stage promises
    equal bytes at equal libraries; elsewhere the earlier artifact stays and a warning names what
    differs. StoreError if the payload is not all there.
    """
    path = layout.manifest(*manifest.name)
    manifest = _write_file_table(store, manifest.with_schema())
    raw = manifest.to_json()
    Manifest.load(raw, where=path)  # What could not be read again is not committed.
    _check_payload(store, manifest)
    before, after = ("before manifest", "manifest linked")
    if manifest.interim_of is not None:
        before, after = ("interim written", "interim committed")
    hit_failpoint(before)
    if store.backend.put_if_absent(path, raw):
        hit_failpoint(after)
        return manifest
    earlier = find_committed(store, *manifest.name, outputs=manifest.outputs)
    if earlier.damage is not None:
        store.backend.replace(path, raw)
        hit_failpoint(after)
        _clear_replaced(store, earlier, manifest)
        return manifest
    if earlier.manifest is None:
        raise CorruptArtifact(
            "the manifest vanished while it was read", where=path, hint="run the step again"
        )
    if _digests(earlier.manifest) != _digests(manifest):
        _compare_outputs(earlier.manifest, manifest)
    return earlier.manifest


def _write_file_table(store: Store, manifest: Manifest) -> Manifest:
    """Put the files of an artifact of many into a table that is durable before the manifest."""
    if manifest.count_files <= INLINE_FILES:
        return manifest
    raw, reference = encode_table({name: one.files for name, one in manifest.outputs.items()})
    place = layout.file_table(*manifest.name, manifest.attempt)
    with store.backend.create(place) as file:
        file.write(raw)
    hit_failpoint("file table written")
    manifest = manifest.refer_to(reference)
    store.open_table(manifest)
    return manifest


def _check_payload(store: Store, manifest: Manifest) -> None:
    """Whether every file is there with its size, and durable under its name."""
    problems = verify(store, manifest, full=False)
    if problems:
        raise StoreError(
            f"{problems[0].what} before it was committed",
            where=store.backend.full(problems[0].path),
            hint="something else removed or changed it; run again",
        )
    if manifest.count_files:
        store.backend.sync(layout.payload(*manifest.name, manifest.attempt))


def _clear_replaced(store: Store, damaged: Committed, manifest: Manifest) -> None:
    """Remove what is left of a damaged artifact, now that its replacement is committed.

    If its manifest could not be read the attempt is unknown; a collection removes it.
    """
    name, old = f"{manifest.stage} {short(manifest.key)}", damaged.manifest
    log.warning("%s was damaged (%s) and was made again", name, damaged.damage)
    if old is not None and _digests(old) != _digests(manifest):
        log.warning("%s: the new bytes differ from those that were committed first", name)
    try:
        clear_damage(store, *manifest.name)
        if old is not None and old.attempt != manifest.attempt:
            store.backend.remove(layout.payload(*old.name, old.attempt))
    except (OSError, StoreError) as error:
        log.warning("%s: left for `ingot gc`: %s", name, error)


def _digests(manifest: Manifest) -> dict[str, str]:
    return {name: output.digest for name, output in manifest.outputs.items()}


def _compare_outputs(earlier: Manifest, later: Manifest) -> None:
    differing = [n for n, d in _digests(later).items() if _digests(earlier).get(n) != d]
    what = f"{later.stage} {short(later.key)}: output {', '.join(differing)}"
    before = {**earlier.code.libraries, **earlier.layout}
    after = {**later.code.libraries, **later.layout}
    causes = [
        f"{name} {before.get(name)} → {after.get(name)}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    if later.reproducible == "bytes" and not causes:
        raise NotDeterministic(
            f"{what} differs from the committed bytes at equal config, inputs and libraries",
            where=layout.manifest(*later.name),
            hint="the stage is not deterministic, or its code changed without a new version",
        )
    log.warning(
        "%s differs from the committed artifact, which is kept (%s)",
        what,
        "; ".join(causes) or "numerics",
    )
