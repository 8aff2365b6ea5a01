"""A Hub that takes what is published, for tests: repositories, LFS storage, commits with parents.

The routes, and what they answer, are those that `huggingface_hub` 2 asks without Xet: create, info
with blobs, pre-upload, LFS batch, storage, commit as lines of JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

LFS_FROM = 1000
"""Bytes from which a file is kept in LFS."""


@dataclass
class Repository:
    """One repository: its files now, and all commits, oldest first."""

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)

    def commit(self, message: str) -> str:
        """Note a commit of the files as they are."""
        told = json.dumps([len(self.commits), message, sorted(self.files)])
        self.commits.append(hashlib.sha1(told.encode()).hexdigest())
        return self.commits[-1]


class PublishingHub:
    """Listens on loopback until it is closed; only the bearer of `token` is heard."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.repositories: dict[str, Repository] = {}
        """By `models/ORG/NAME` or `datasets/ORG/NAME`."""
        self.storage: dict[str, bytes] = {}
        """What was sent, by sha256."""
        self.sent: list[str] = []
        """The sha256 of each file that came whole, in order."""
        self.cut_after: int | None = None
        """Bytes of the next files after which the connection is cut."""
        self.answers: dict[str, int] = {}
        """Status that a request whose path holds this word is answered with."""
        self.changes = 0
        """Requests that changed something."""
        self.before_commit = lambda: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                hub._get(self)

            def do_POST(self) -> None:
                hub._post(self)

            def do_PUT(self) -> None:
                hub._put(self)

        return Handler

    def _refuses(self, request: Any) -> bool:
        for word, status in self.answers.items():
            if word in request.path:
                _send(request, status, {})
                return True
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            _send(request, 401, {}, {"X-Error-Message": "Invalid username or password."})
            return True
        return False

    def _get(self, request: Any) -> None:
        name, _ = _repository(request.path)
        if self._refuses(request):
            return
        if name not in self.repositories:
            _send(request, 404, {}, {"X-Error-Code": "RepoNotFound"})
            return
        repository = self.repositories[name]
        siblings = [_sibling(path, data) for path, data in repository.files.items()]
        _send(
            request,
            200,
            {
                "id": name.partition("/")[2],
                "sha": repository.commits[-1],
                "private": repository.private,
                "siblings": siblings,
            },
        )

    def _post(self, request: Any) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if self._refuses(request):
            return
        path = urlsplit(request.path).path
        if path == "/api/validate-yaml":
            _send(request, 200, {"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(request, json.loads(body))
        elif path.endswith("/info/lfs/objects/batch"):
            self._batch(request, json.loads(body))
        else:
            name, rest = _repository(path)
            if rest[0] == "preupload":
                files = self.repositories[name].files
                _send(
                    request,
                    200,
                    {"files": [_mode(one, files) for one in json.loads(body)["files"]]},
                )
            else:
                self._commit(request, name, [json.loads(line) for line in body.splitlines()])

    def _create(self, request: Any, wanted: dict[str, Any]) -> None:
        self.changes += 1
        full = f"{wanted['organization']}/{wanted['name']}"
        name = f"{wanted.get('type', 'model')}s/{full}"
        if name in self.repositories:
            _send(request, 409, {})
            return
        made = Repository(bool(wanted.get("private") or wanted.get("visibility") == "private"))
        made.files[".gitattributes"] = b"*.safetensors lfs\n"
        made.commit("initial commit")
        self.repositories[name] = made
        _send(request, 200, {"url": f"{self.url}/{full}", "name": full})

    def _batch(self, request: Any, wanted: dict[str, Any]) -> None:
        def answer(one: dict[str, Any]) -> dict[str, Any]:
            if one["oid"] in self.storage:
                return dict(one)
            return {**one, "actions": {"upload": {"href": f"{self.url}/storage/{one['oid']}"}}}

        objects = [answer(one) for one in wanted["objects"]]
        _send(request, 200, {"transfer": "basic", "objects": objects})

    def _put(self, request: Any) -> None:
        length = int(request.headers["Content-Length"])
        if self.cut_after is not None and length > self.cut_after:
            request.rfile.read(self.cut_after)
            request.close_connection = True
            request.connection.close()
            return
        data = request.rfile.read(length)
        oid = request.path.rpartition("/")[2]
        assert hashlib.sha256(data).hexdigest() == oid
        self.changes += 1
        self.storage[oid] = data
        self.sent.append(oid)
        _send(request, 200, {})

    def _commit(self, request: Any, name: str, lines: list[dict[str, Any]]) -> None:
        self.before_commit()
        repository = self.repositories[name]
        head = lines[0]["value"]
        if head.get("parentCommit") not in (None, repository.commits[-1]):
            _send(request, 412, {}, {"X-Error-Message": "the branch has moved"})
            return
        self.changes += 1
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                repository.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                repository.files[value["path"]] = self.storage[value["oid"]]
            else:
                del repository.files[value["path"]]
        oid = repository.commit(head["summary"])
        _send(request, 200, {"commitUrl": f"{self.url}/x/y/commit/{oid}", "commitOid": oid})


def _repository(path: str) -> tuple[str, list[str]]:
    """`models/ORG/NAME` of an API path, and what follows."""
    parts = urlsplit(path).path.strip("/").split("/")
    return "/".join(parts[1:4]), parts[4:]


def _sibling(path: str, data: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    value: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": blob}
    if len(data) >= LFS_FROM and path != "README.md":
        sha256 = hashlib.sha256(data).hexdigest()
        value["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 130}
    return value


def _mode(wanted: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    there = files.get(wanted["path"])
    large = wanted["size"] >= LFS_FROM and wanted["path"] != "README.md"
    oid = None if there is None else _sibling(wanted["path"], there)["blobId"]
    return {
        "path": wanted["path"],
        "uploadMode": "lfs" if large else "regular",
        "shouldIgnore": wanted["path"] in files.get(".gitignore", b"").decode().split(),
        "oid": oid,
    }


def _send(request: Any, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
    body = json.dumps(value).encode()
    request.send_response(status)
    more = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    for name, text in {**more, **(headers or {})}.items():
        request.send_header(name, text)
    request.end_headers()
    request.wfile.write(body)
