"""An HTTP proxy on loopback that stands before a server and disturbs it as a network does."""

from __future__ import annotations

import http.client
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Fault:
    """What happens to the next `times` requests of `method` whose path holds `path`.

    `kind`: `cut` sends half of the answer's body; `lose` passes the request on and drops the
    answer; `refuse` answers `status` with the S3 error `code`; `strip` drops the header `code`.
    """

    kind: str
    times: int = 1
    method: str = "GET"
    path: str = ""
    status: int = 503
    code: str = "SlowDown"


@dataclass
class FaultyProxy:
    """`with FaultyProxy(url) as proxy:` serves at `proxy.url`; `proxy.faults` is a list to fill."""

    target: str
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """(method, path, Range header) of every request."""

    def __enter__(self) -> FaultyProxy:
        proxy = self

        class Handler(_Handler):
            faulty = proxy

        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, method: str, path: str, range_: str) -> Fault | None:
        """Note the request; the fault that strikes it."""
        with self._lock:
            self.requests.append((method, path, range_))
            for fault in self.faults:
                if fault.times > 0 and method == fault.method and fault.path in path:
                    fault.times -= 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    faulty: FaultyProxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        body = self._body()
        fault = self.faulty.take(self.command, self.path, self.headers.get("Range", ""))
        if fault is not None and fault.kind == "refuse":
            text = f"<Error><Code>{fault.code}</Code><Message>refused</Message></Error>".encode()
            self._answer(fault.status, [("Content-Type", "application/xml")], text, len(text))
            return
        if fault is not None and fault.kind == "strip":
            del self.headers[fault.code]
        status, headers, content = self._pass_on(body)
        if fault is not None and fault.kind == "lose":
            self._hang_up()
        elif fault is not None and fault.kind == "cut":
            self._answer(status, headers, content[: len(content) // 2], len(content))
            self._hang_up()
        else:
            self._answer(status, headers, content, len(content))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            del self.headers["Transfer-Encoding"]
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _pass_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.faulty.target).netloc, timeout=30)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        self._length = answer.getheader("Content-Length")
        connection.close()
        return answer.status, answer.getheaders(), content

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes, length: int
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        head = self.command == "HEAD"
        self.send_header("Content-Length", str(getattr(self, "_length", 0) if head else length))
        self.end_headers()
        if not head:
            self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


_HOP = ("connection", "content-length", "transfer-encoding", "keep-alive", "expect")
