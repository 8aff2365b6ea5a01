"""Reports of runs that the UI links to: `python -P -m flows.orchestration.reports FILE`.

A report holds texts from the web, so it is served from an address of its own: a page there is of
another origin than the UI, may load nothing, and can call neither the UI's API nor anything else.
The password is asked for by HTTP's basic authentication and not kept in a cookie: a browser sends
a cookie of 127.0.0.1 to every port, also to a server that another user of the machine has started.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store
from flows.orchestration import local_state
from flows.orchestration.local_state import is_password, make_password, read_password
from flows.orchestration.server import HOST, open_listener

REPORT_SERVER = "reports"
_FILE = re.compile(r"/([A-Za-z0-9][A-Za-z0-9._@-]*\.html)")
SIGN_IN = b"Sign in with the line of the file that `ingot up` names."
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def reports_folder() -> Path:
    """The folder of the reports."""
    return local_state.private_folder(local_state.home() / "reports")


def publish_report(store: Store, ref: str) -> tuple[Path, str | None]:
    """Write the report of a run or artifact; its file, and its URL if reports are served."""
    from flows.report.report import write_report

    file = reports_folder() / f"{re.sub(r'[^A-Za-z0-9._-]', '-', ref)}.html"
    write_report(store, ref, file)
    server = local_state.find_process(REPORT_SERVER)
    return file, f"{server.facts['address']}/{file.name}" if server else None


def ensure_reports(near: int) -> str:
    """Serve reports on loopback, near the UI's port, unless they are served; returns the URL."""
    server = local_state.find_process(REPORT_SERVER)
    if server is not None:
        return server.facts["address"]
    make_password()
    with open_listener(near + 1, or_any=True) as listener:
        command = [sys.executable, "-P", "-m", "flows.orchestration.reports"]
        address = f"http://{HOST}:{listener.getsockname()[1]}"
        facts = {"address": address}
        local_state.start_process(
            REPORT_SERVER, [*command, str(listener.fileno())], {}, facts, listener
        )
    return address


class Handler(BaseHTTPRequestHandler):
    """Serves reports by name, and nothing else."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    """Seconds after which a silent client loses its connection and thread."""
    server_version, sys_version = "ingot", ""

    def do_GET(self) -> None:
        """Send a report, with headers under which it can load and call nothing."""
        if not self._is_own():
            self.send_error(404, "no such report")
            return
        try:
            password = read_password()  # At each request, so that a new one is used immediately.
        except IngotError as error:
            self.send_error(503, "no password", str(error))
            return
        if not is_password(self.headers.get("Authorization"), password):
            # A browser keeps this password for this address and port, unlike a cookie.
            realm = 'Basic realm="Ingot reports", charset="UTF-8"'
            headers = {"WWW-Authenticate": realm, "Content-Type": "text/plain; charset=utf-8"}
            self._send(401, SIGN_IN, headers)
            return
        match = _FILE.fullmatch(self.path.partition("?")[0])
        file = reports_folder() / match[1] if match else None
        if file is None or not file.is_file():
            self.send_error(404, "no such report")
            return
        self._send(200, file.read_bytes(), {"Content-Type": "text/html; charset=utf-8"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """Add the headers of every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def _is_own(self) -> bool:
        """Whether the Host header is an address of this machine, not a name that resolves to it."""
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:
            return False
        return host in (HOST, "localhost")

    def log_message(self, *words: object) -> None:
        """Log nothing: clients without the password could fill the log."""


def main(file: int) -> None:
    """Serve on the listening socket with this file number, until the process is ended."""
    os.umask(0o077)
    listener = socket.socket(fileno=file)
    server = ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
