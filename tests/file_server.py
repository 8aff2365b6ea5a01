"""A local web server for tests: ranges, ETags, and faults in the order that a test scripts them."""

from __future__ import annotations

import datetime
import hashlib
import re
import ssl
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Served:
    """A file and how it is served. `etag` and `modified` are header values, None to leave out."""

    data: bytes
    etag: str | None = ""
    modified: str | None = None
    ranges: bool = True
    head: bool = True
    told_length: int | None = None
    told_start: int | None = None

    def __post_init__(self) -> None:
        if self.etag == "":
            self.etag = f'"{hashlib.md5(self.data).hexdigest()}"'


@dataclass
class Fault:
    """What goes wrong with one request: an answer without a file, or a body that ends early."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    hold: threading.Event | None = None
    """After `cut` bytes wait for this instead of closing the connection."""


@dataclass(frozen=True)
class Asked:
    """One request: what was asked for and how many bytes of body went out."""

    method: str
    path: str
    range: str | None
    sent: int


class _Server(ThreadingHTTPServer):
    def handle_error(self, *request: Any) -> None:
        """Clients hang up as part of the tests; anything else is a fault of the server."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*request)


class FileServer:
    """Serves `files` by path. `faults[path]` are taken one a request, of `fault_method` alone."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.fault_method = "GET"
        self.asked: list[Asked] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def serve(self, path: str, data: bytes, **how: Any) -> str:
        """Serve `data` at `path`; its URL."""
        self.files[path] = Served(data, **how)
        return self.url + path

    def sent(self, path: str) -> int:
        """Bytes of body that went out for a path."""
        return sum(asked.sent for asked in self.asked if asked.path == path)

    def count(self, method: str) -> int:
        """Number of requests of a method."""
        return sum(asked.method == method for asked in self.asked)

    def speak_tls(self, folder: Path) -> str:
        """Serve over TLS from now on, with a certificate of its own making; the https URL."""
        pytest.importorskip("cryptography")
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / "server.pem").write_bytes(private + certificate.public_bytes(pem))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        return self.url.replace("http:", "https:")

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.answer()

            def do_GET(self) -> None:
                self.answer()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def answer(self) -> None:
                try:
                    self.body()
                except OSError:
                    self.close_connection = True

            def note(self, sent: int) -> None:
                """Before it is sent, so that who has read it finds it noted."""
                asked = Asked(self.command, self.path, self.headers.get("Range"), sent)
                owner.asked.append(asked)

            def body(self) -> None:
                faults = owner.faults.get(self.path, [])
                fault = faults.pop(0) if faults and self.command == owner.fault_method else Fault()
                served = owner.files.get(self.path)
                if fault.status is not None or served is None:
                    self.empty(fault.status or 404, fault.headers)
                    return
                if self.command == "HEAD" and not served.head:
                    self.empty(405, {})
                    return
                start = self.start_of(served)
                length = len(served.data) if served.told_length is None else served.told_length
                self.send_response(206 if start is not None else 200)
                if start is not None:
                    told = start if served.told_start is None else served.told_start
                    self.send_header("Content-Range", f"bytes {told}-{length - 1}/{length}")
                for name, value in (("ETag", served.etag), ("Last-Modified", served.modified)):
                    if value is not None:
                        self.send_header(name, value)
                data = served.data[start or 0 :]
                if length >= 0:
                    self.send_header("Content-Length", str(length - (start or 0)))
                else:
                    self.send_header("Connection", "close")
                part = data if fault.cut is None else data[: fault.cut]
                if self.command == "HEAD":
                    part = b""
                self.note(len(part))
                self.end_headers()
                self.wfile.write(part)
                self.wfile.flush()
                if fault.cut is not None:
                    self.close_connection = True
                    if fault.hold is not None:
                        fault.hold.wait(60)

            def empty(self, status: int, headers: Mapping[str, str]) -> None:
                self.note(0)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

            def start_of(self, served: Served) -> int | None:
                """First byte of the range to send, or None for the whole file."""
                found = re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range", ""))
                condition = self.headers.get("If-Range")
                state = served.etag or served.modified
                if found is None or not served.ranges or (condition and condition != state):
                    return None
                return int(found[1])

        return Handler
