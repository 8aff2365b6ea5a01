"""The few routes of the Hugging Face Hub that Ingot asks, for tests: one server of two hosts.

Files of a data set or a model lie at a commit. The large ones are kept in LFS: the Hub redirects to
a signed address on another host, which calls them by an ETag of its own.
"""

from __future__ import annotations

import hashlib
import json
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from file_server import FileServer

PAGE = 3
"""Entries of a tree that one answer holds."""


class Listening(FileServer):
    """A file server that notes who asked: (path, the Authorization header)."""

    def __init__(self) -> None:
        self.callers: list[tuple[str, str | None]] = []
        super().__init__()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(super()._handler()):  # type: ignore[misc]
            def answer(self) -> None:
                owner.callers.append((self.path, self.headers.get("Authorization")))
                if not owner.special(self):
                    super().answer()

        return Handler

    def special(self, request: Any) -> bool:
        """Answer what is no file; whether it did."""
        return False


class HubServer(Listening):
    """A Hub with data sets and models, each at one commit with branches.

    `storage` is where LFS files lie.
    """

    def __init__(self) -> None:
        self.storage = Listening()
        self.branches: dict[str, dict[str, str]] = {}
        self.trees: dict[tuple[str, str], dict[str, bytes]] = {}
        self.private: dict[str, str] = {}
        """Data sets that only the bearer of a token is shown."""
        self.gated: set[str] = set()
        self.lfs_from = 1000
        super().__init__()

    def close(self) -> None:
        """Stop both hosts."""
        super().close()
        self.storage.close()

    def push(
        self, dataset: str, files: dict[str, bytes], branch: str = "main", *, kind: str = "datasets"
    ) -> str:
        """Put `files` on a branch; the commit. `kind` is `datasets` or `models`."""
        told = json.dumps([dataset, branch, {n: d.hex() for n, d in sorted(files.items())}])
        commit = hashlib.sha1(told.encode()).hexdigest()
        self.branches.setdefault(dataset, {})[branch] = commit
        self.trees[dataset, commit] = files
        for name, data in files.items():
            start = "/datasets" if kind == "datasets" else ""
            path = f"{start}/{dataset}/resolve/{commit}/{quote(name)}"
            if len(data) < self.lfs_from:
                self.serve(path, data, etag=f'"{blob_id(data)}"')
            else:
                signed = f"/{hashlib.sha256(data).hexdigest()}?X-Amz-Signature=abc"
                self.storage.serve(signed, data, etag='"the-etag-of-the-storage"')
                self.files.pop(path, None)
        return commit

    def special(self, request: Any) -> bool:
        """The API, and redirects to the storage."""
        url = urlsplit(request.path)
        parts = url.path.strip("/").split("/")
        api = parts[0] == "api" and parts[1:2] in (["datasets"], ["models"])
        if not api and parts[0] != "datasets":
            parts = ["models", *parts]
        dataset = "/".join(parts[2:4] if api else parts[1:3])
        token = self.private.get(dataset)
        if token and request.headers.get("Authorization") != f"Bearer {token}":
            _error(request, 401, "RepoNotFound")
        elif dataset in self.gated:
            _error(request, 403, "GatedRepo")
        elif api:
            self._api(request, dataset, parts[4:], parse_qs(url.query))
        elif (lfs := self._lfs(dataset, parts)) is not None:
            _send(request, 302, b"", {"Location": f"{self.storage.url}/{lfs}?X-Amz-Signature=abc"})
        else:
            return False
        return True

    def _lfs(self, dataset: str, parts: list[str]) -> str | None:
        for name, data in self.trees.get((dataset, parts[4] if len(parts) > 4 else ""), {}).items():
            if quote(name) == "/".join(parts[5:]) and len(data) >= self.lfs_from:
                return hashlib.sha256(data).hexdigest()
        return None

    def _api(
        self, request: Any, dataset: str, rest: list[str], query: dict[str, list[str]]
    ) -> None:
        branches = self.branches.get(dataset)
        if branches is None:
            _error(request, 404, "RepoNotFound")
            return
        what, revision = rest[:2] or ["revision", "main"]
        revision = unquote(revision)
        commit = branches.get(revision, revision)
        if (dataset, commit) not in self.trees:
            _error(request, 404, "RevisionNotFound")
        elif what == "revision":
            _json(request, {"id": dataset, "sha": commit, "siblings": []})
        else:
            folder = "/".join(rest[2:]).replace("%2F", "/")
            self._tree(request, self.trees[dataset, commit], folder, query)

    def _tree(
        self, request: Any, files: dict[str, bytes], folder: str, query: dict[str, list[str]]
    ) -> None:
        start = f"{folder}/" if folder else ""
        inside = {name: data for name, data in files.items() if name.startswith(start)}
        if folder and not inside:
            _error(request, 404, "EntryNotFound")
            return
        deep = query.get("recursive", ["false"])[0].lower() == "true"
        entries = [_entry(name, data, self.lfs_from) for name, data in sorted(inside.items())]
        if not deep:
            entries = [each for each in entries if "/" not in each["path"].removeprefix(start)]
        else:
            entries = [{"type": "directory", "oid": "0" * 40, "path": "some"}, *entries]
        at = int(query.get("cursor", ["0"])[0])
        more = {}
        if at + PAGE < len(entries):
            path = request.path.partition("&cursor")[0]
            more = {"Link": f'<{self.url}{path}&cursor={at + PAGE}>; rel="next"'}
        _json(request, entries[at : at + PAGE], more)


def blob_id(data: bytes) -> str:
    """What git calls these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _entry(name: str, data: bytes, lfs_from: int) -> dict[str, Any]:
    entry = {"type": "file", "oid": blob_id(data), "size": len(data), "path": name}
    if len(data) >= lfs_from:
        sha256 = hashlib.sha256(data).hexdigest()
        return {**entry, "lfs": {"oid": sha256, "size": len(data), "pointerSize": 130}}
    return entry


def _json(request: Any, value: Any, headers: dict[str, str] | None = None) -> None:
    body = json.dumps(value).encode()
    _send(request, 200, body, {"Content-Type": "application/json", **(headers or {})})


def _error(request: Any, status: int, code: str) -> None:
    _send(request, status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})


def _send(request: Any, status: int, body: bytes, headers: dict[str, str]) -> None:
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
