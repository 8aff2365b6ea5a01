"""From payload to artifact: files under a fresh attempt, then one manifest, created if absent."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from artifacts_schema.errors import CorruptArtifact, NotDeterministic, StoreError
from artifacts_schema.identity import files_digest, short
from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import File, Manifest, Output
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, HashingWriter
from artifacts_schema.store.damage import Committed, clear_damage, find_committed
from artifacts_schema.store.points import reached
from artifacts_schema.store.store import Store
from artifacts_schema.store.verify import verify

log = logging.getLogger(__name__)


@dataclass
class Attempt:
    """The payload of one try at a key. Nobody reads it before its manifest stands."""

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
        with self.backend.create(self._place(output, path)) as writer:
            yield writer
        self.register(output, File(path=path, bytes=writer.bytes, sha256=writer.sha256))

    def adopt(self, files: Iterable[tuple[str, File, str]], *, replace: bool = False) -> None:
        """Take over files that lie elsewhere in the store (finished shards): output, file, place.

        Nothing is copied where links exist; in a bucket the server copies. With `replace` a file
        takes the place of one that was taken over before.
        """
        pairs = []
        for output, file, source in files:
            if replace:
                self.files.get(output, {}).pop(file.path, None)
            self._check(output, file.path)
            pairs.append((source, self._place(output, file.path)))
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
        found = {}
        for name, kind in self.kinds.items():
            files = tuple(self.files.get(name, {})[p] for p in sorted(self.files.get(name, {})))
            digest = files_digest((f.path, f.bytes, f.sha256) for f in files)
            version = kind_named(kind).version
            found[name] = Output(kind=kind, kind_version=version, digest=digest, files=files)
        return found

    def discard(self) -> None:
        """Remove the payload of an attempt that will not be committed.

        It stays if the manifest names it all the same: a commit may fail behind its last moment.
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
    """Put the manifest; returns the one that stands, which may be an earlier writer's.

    A damaged artifact under the key stays until here, and is replaced in one move. The caller holds
    the lease. Raises NotDeterministic if an earlier writer's bytes differ where the stage promises
    equal bytes at equal libraries; elsewhere the earlier artifact stays and a warning names what
    differs. StoreError if the payload is not all there.
    """
    path = layout.manifest(manifest.stage, manifest.key)
    raw = manifest.to_json()
    Manifest.load(raw, where=path)  # What could not be read again is not committed.
    _check_payload(store, manifest)
    on_the_way = manifest.interim_of is not None
    reached("interim written" if on_the_way else "before manifest")
    if store.backend.put_if_absent(path, raw):
        reached("interim committed" if on_the_way else "manifest linked")
        return manifest
    earlier = find_committed(store, manifest.stage, manifest.key, outputs=manifest.outputs)
    if earlier.damage is not None:
        store.backend.replace(path, raw)
        reached("interim committed" if on_the_way else "manifest linked")
        _replaced(store, earlier, manifest)
        return manifest
    if earlier.manifest is None:
        raise CorruptArtifact(
            "the manifest vanished while it was read", where=path, hint="run the step again"
        )
    if _digests(earlier.manifest) != _digests(manifest):
        _judge(earlier.manifest, manifest)
    return earlier.manifest


def _check_payload(store: Store, manifest: Manifest) -> None:
    """Whether every file is there with its size, and durable under its name."""
    problems = verify(store, manifest, full=False)
    if problems:
        raise StoreError(
            f"{problems[0].what} before it was committed",
            where=store.backend.full(problems[0].path),
            hint="something else removed or changed it; run again",
        )
    if any(output.files for output in manifest.outputs.values()):
        store.backend.sync(layout.payload(manifest.stage, manifest.key, manifest.attempt))


def _replaced(store: Store, damaged: Committed, manifest: Manifest) -> None:
    """Remove what is left of a damaged artifact, now that its replacement stands.

    Of one whose manifest could not be read nobody knows the attempt; a collection takes it.
    """
    name, old = f"{manifest.stage} {short(manifest.key)}", damaged.manifest
    log.warning("%s was damaged (%s) and was made again", name, damaged.damage)
    if old is not None and _digests(old) != _digests(manifest):
        log.warning("%s: the new bytes differ from those that were committed first", name)
    try:
        clear_damage(store, manifest.stage, manifest.key)
        if old is not None and old.attempt != manifest.attempt:
            store.backend.remove(layout.payload(old.stage, old.key, old.attempt))
    except (OSError, StoreError) as error:
        log.warning("%s: left for `ingot gc`: %s", name, error)


def _digests(manifest: Manifest) -> dict[str, str]:
    return {name: output.digest for name, output in manifest.outputs.items()}


def _judge(earlier: Manifest, later: Manifest) -> None:
    differing = [n for n, d in _digests(later).items() if _digests(earlier).get(n) != d]
    what = f"{later.stage} {short(later.key)}: output {', '.join(differing)}"
    causes = [
        f"{name} {before} → {after}"
        for name, before, after in _differences(
            {**earlier.code.libraries, **earlier.layout}, {**later.code.libraries, **later.layout}
        )
    ]
    if later.reproducible == "bytes" and not causes:
        raise NotDeterministic(
            f"{what} differs from the committed bytes at equal config, inputs and libraries",
            where=layout.manifest(later.stage, later.key),
            hint="the stage is not deterministic, or its code changed without a new version",
        )
    log.warning(
        "%s differs from the artifact that stands, which stays (%s)",
        what,
        "; ".join(causes) or "numerics",
    )


def _differences(
    before: dict[str, object], after: dict[str, object]
) -> list[tuple[str, object, object]]:
    names = sorted(before.keys() | after.keys())
    return [(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)]
