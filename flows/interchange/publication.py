"""What publishing an artifact to a Hugging Face repository would do: files, licence, card, risks.

A plan reads the artifact and the repository and changes neither. A file is `same` if the repository
holds its bytes: large files by their sha256, small ones by git's hash of them. What would be
replaced is only what the plan saw: the commit names its parent, and the Hub refuses it once that is
not the newest any more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.deletion import STAGE as FORGET
from stages.engine.inputs import Input

REPO_TYPES: dict[str, Literal["model", "dataset"]] = {
    "release": "model",
    "gguf": "model",
    "dataset": "dataset",
    "token_dataset": "dataset",
}
"""Kinds that can be published, and what they become on the Hub."""
CARD = "README.md"
REF = "published"
"""Published artifacts are named `published/ORGANISATION/NAME`, so that nothing collects them."""
FORBIDDING = re.compile(
    r"(^|[-_ ])(nd|no-?derivatives)([-_ ]|$)|proprietary|all[- ]rights[- ]reserved"
)
"""Licences that do not let others publish what was made of a work."""
TO_FILL = "to be filled in by the provider"
_TARGET = re.compile(r"hub:([A-Za-z0-9][\w.-]{0,95})/([A-Za-z0-9][\w.-]{0,95})")
_MOST_CARD = 4 << 20
State = Literal["new", "changed", "same"]
"""Of a file, beside the repository's."""


@dataclass(frozen=True)
class Target:
    """A repository of the Hub."""

    organisation: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Of `hub:ORGANISATION/NAME`; UsageError for anything else."""
        match = _TARGET.fullmatch(text)
        if match is None or any(part in text for part in ("--", "..")):
            raise UsageError(f"'{text}' is no repository", where="--to", hint="hub:ORG/NAME")
        return cls(*match.groups())

    @property
    def repo(self) -> str:
        """As the Hub names it."""
        return f"{self.organisation}/{self.name}"

    @property
    def ref(self) -> str:
        """The name in the store of what was published there last."""
        return f"{REF}/{self.repo}"


@dataclass(frozen=True)
class RemoteFile:
    """A file of the repository: its sha256 where it is a large one, else git's hash of it."""

    bytes: int
    sha256: str | None
    git: str | None


@dataclass(frozen=True)
class Remote:
    """The repository as it is; `head` is its newest commit."""

    head: str
    private: bool
    files: Mapping[str, RemoteFile]
    """Without `.gitattributes`, which the Hub writes itself."""


@dataclass(frozen=True)
class PublishedFile:
    """A file to publish, and how the repository's differs."""

    path: str
    bytes: int
    state: State
    local: Path


@dataclass(frozen=True)
class Wishes:
    """What the person who publishes says beside the artifact."""

    private: bool = True
    """Of a repository that is made."""
    onto: str | None = None
    """The commit that the repository is at, to replace what it holds."""
    licence: str | None = None
    """Of an artifact without a card."""
    card: bytes | None = None
    """The same."""
    more: tuple[Path, ...] = ()
    """Files of the provider that go beside it."""


@dataclass(frozen=True)
class PublicationPlan:
    """What would be published; `problems` stand in the way, `warnings` do not."""

    target: Target
    repo_type: Literal["model", "dataset"]
    manifest: Manifest
    output: str
    digest: str
    remote: Remote | None
    """None: the repository does not exist, and would be made."""
    private: bool
    files: tuple[PublishedFile, ...]
    removed: tuple[str, ...]
    """Files of the repository that the artifact does not have."""
    card: bytes
    licence: str | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def to_send(self) -> list[PublishedFile]:
        """Files that the repository lacks."""
        return [file for file in self.files if file.state != "same"]

    @property
    def is_done(self) -> bool:
        """Whether the repository holds exactly this."""
        return self.remote is not None and not self.to_send and not self.removed

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "repo": self.target.repo,
            "type": self.repo_type,
            "artifact": f"{self.manifest.stage} {self.manifest.key}",
            "digest": self.digest,
            "exists": self.remote is not None,
            "revision": None if self.remote is None else self.remote.head,
            "private": self.private,
            "licence": self.licence,
            "files": [[file.path, file.bytes, file.state] for file in self.files],
            "removed": list(self.removed),
            "problems": list(self.problems),
            "warnings": list(self.warnings),
        }


def find_publishable(store: Store, ref: str) -> tuple[Manifest, str]:
    """The artifact and its one output that can be published. UsageError if it has none."""
    manifest, only = store.resolve(ref)
    names = [only] if only else list(manifest.outputs)
    fits = [name for name in names if manifest.output(name).kind in REPO_TYPES]
    if len(fits) != 1:
        kinds = sorted({manifest.output(name).kind for name in names})
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} is no {' or '.join(REPO_TYPES)}",
            where=ref,
            hint=f"it holds {', '.join(kinds)}: make one by export, export_gguf, export_dataset or "
            "export_tokens",
        )
    return manifest, fits[0]


def plan_publication(
    store: Store,
    manifest: Manifest,
    output: str,
    target: Target,
    remote: Remote | None,
    published: Mapping[str, Any] | None = None,
    wishes: Wishes = Wishes(),
) -> PublicationPlan:
    """Compare an artifact with a repository, byte for byte; reads every file.

    `published` is the store's record of the last publication there; a repository that is at another
    commit than that is a problem, unless the wishes name the commit that it is at. InputError for a
    file that is not what the manifest says, UsageError for wishes that the artifact contradicts.
    """
    held = Input.from_manifest(store, manifest, output)
    places = {file.path: held.local_path(file.path) for file in held.files}
    card = _card(held, places, wishes)
    facts = front_matter(card)
    stated = str(facts["license"]) if facts.get("license") else None
    files = _compare(places, card, wishes.more, remote)
    names = {file.path for file in files}
    return PublicationPlan(
        target,
        REPO_TYPES[held.kind],
        manifest,
        output,
        held.digest,
        remote,
        wishes.private,
        files,
        tuple(sorted(set(remote.files) - names)) if remote is not None else (),
        card,
        stated,
        problems=(
            *_revision_problems(remote, published, wishes.onto),
            *_licence_problems(stated, wishes.licence),
            *_forgotten_problems(store, held),
        ),
        warnings=(
            *_card_warnings(card, facts),
            *_visibility_warnings(remote, wishes.private),
        ),
    )


def missing_files(plan: PublicationPlan, remote: Remote | None) -> list[str]:
    """The files of a plan that a repository holds otherwise, though it was carried out."""
    return [
        file.path
        for file in plan.files
        if (
            _card_state(plan.card, remote)
            if file.path == CARD
            else _state(file.path, file.local, remote)
        )
        != "same"
    ]


def _card_state(card: bytes, remote: Remote | None) -> State:
    there = None if remote is None else remote.files.get(CARD)
    if there is None:
        return "new"
    return "same" if there.git == git_hash(card) else "changed"


def _compare(
    places: Mapping[str, Path], card: bytes, more: Sequence[Path], remote: Remote | None
) -> tuple[PublishedFile, ...]:
    """The card, then the artifact's other files, then those of the provider."""
    others = [(path, place) for path, place in sorted(places.items()) if path != CARD]
    for path in more:
        if path.name in places or path.name == CARD:
            raise UsageError(f"the artifact has a {path.name} of its own", where="--add")
        others.append((path.name, path))
    return (
        PublishedFile(CARD, len(card), _card_state(card, remote), places.get(CARD, Path(CARD))),
        *(
            PublishedFile(path, place.stat().st_size, _state(path, place, remote), place)
            for path, place in others
        ),
    )


def git_hash(data: bytes) -> str:
    """What git calls a file of these bytes; the Hub names small files so."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _state(path: str, local: Path, remote: Remote | None) -> State:
    there = None if remote is None else remote.files.get(path)
    if there is None:
        return "new"
    if there.bytes != local.stat().st_size:
        return "changed"
    if there.sha256 is not None:
        with local.open("rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == there.sha256
    else:
        same = git_hash(local.read_bytes()) == there.git
    return "same" if same else "changed"


def front_matter(card: bytes) -> dict[str, Any]:
    """The values that the Hub reads at the head of a card; InputError if they are no YAML."""
    import yaml

    text = card.decode("utf-8", "replace")
    match = re.match(r"---\r?\n(.*?)\r?\n---\r?\n", text, re.DOTALL)
    if match is None:
        return {}
    try:
        value = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        raise InputError("the head of the card is no YAML", where=CARD) from error
    return value if isinstance(value, dict) else {}


def _card(held: Input, places: Mapping[str, Path], wishes: Wishes) -> bytes:
    """The artifact's own card, or the given one; a short one for kinds that have none."""
    if CARD in places:
        if wishes.card is not None:
            raise UsageError(
                "it has a card of its own, which its certificate covers", where="--card"
            )
        if places[CARD].stat().st_size > _MOST_CARD:
            raise InputError("the card is larger than 4 MiB", where=CARD)
        return places[CARD].read_bytes()
    if wishes.card is not None:
        return wishes.card
    licence = wishes.licence
    kind = KINDS[held.kind]
    head = f"license: {licence}\ntags:\n- ingot" if licence else "tags:\n- ingot"
    parents = "\n".join(
        f"- {manifest.stage} `{short(manifest.key)}`" for manifest in held.lineage()[1:]
    )
    body = f"# {held.kind}\n\n{kind.description}\n\nMade by Ingot from:\n\n{parents}\n"
    return f"---\n{head}\n---\n\n{body}".encode()


def _revision_problems(
    remote: Remote | None, published: Mapping[str, Any] | None, onto: str | None
) -> Iterator[str]:
    if remote is None:
        if onto is not None:
            yield f"--onto {onto[:12]}: there is no such repository yet"
        return
    if onto is not None:
        if not remote.head.startswith(onto) or len(onto) < 7:
            yield f"--onto {onto[:12]}: the repository is at {remote.head[:12]}"
        return
    known = None if published is None else published.get("revision")
    if known == remote.head or not remote.files:
        return
    since = f"this store published {str(known)[:12]} there" if known else "not by this store"
    yield (
        f"the repository is at {remote.head[:12]}, and {since}: look at what it holds, then "
        f"--onto {remote.head[:12]} replaces it"
    )


def _licence_problems(stated: str | None, licence: str | None) -> Iterator[str]:
    if stated is None:
        yield (
            "the card states no licence: set `license` of the export and make it again, or give "
            "--license where the artifact has no card"
        )
    elif FORBIDDING.search(stated.lower()):
        yield f"its licence '{stated}' does not let what was made of a work be published"
    if licence is not None and stated != licence:
        yield f"--license {licence}: the card says {stated or 'nothing'}"


def _forgotten_problems(store: Store, held: Input) -> Iterator[str]:
    """Documents of a data set that a list of the store says must not be used any more."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if held.kind != "dataset":
        return
    lists = [
        Input.from_manifest(store, manifest, output).read_table(path, ["doc_id"])["doc_id"]
        for manifest in store.manifests(FORGET)
        for output, entry in manifest.outputs.items()
        for path in (file.path for file in entry.files if file.path.endswith(".parquet"))
    ]
    if not lists:
        return
    forgotten = pa.chunked_array([chunk for ids in lists for chunk in ids.chunks], pa.string())
    count = sum(
        pc.sum(pc.is_in(group["id"], value_set=forgotten.combine_chunks())).as_py() or 0
        for path in held.paths("data/*/*.parquet")
        for group in held.row_groups(path, ["id"])
    )
    if count:
        yield (
            f"{count:,} of its documents were to be forgotten: run filter with the list as "
            "`exclusions`, and export_dataset again"
        )


def _card_warnings(card: bytes, facts: Mapping[str, Any]) -> Iterator[str]:
    """What readers of the card will miss."""
    text = card.decode("utf-8", "replace")
    if gaps := text.count(TO_FILL):
        yield f"{gaps} place{'s' * (gaps > 1)} of the card {'are' if gaps > 1 else 'is'} {TO_FILL}"
    if facts.get("license") == "other" and not facts.get("license_link"):
        yield "the licence is 'other', and the card has no license_link"
    if not facts.get("language") and not facts.get("tags"):
        yield "the card names neither languages nor tags"


def _visibility_warnings(remote: Remote | None, private: bool) -> Sequence[str]:
    if remote is not None and remote.private != private:
        is_now = "private" if remote.private else "public"
        return [f"the repository is {is_now} and stays so: change that on its page"]
    return ["everybody can read it"] if not private else []
