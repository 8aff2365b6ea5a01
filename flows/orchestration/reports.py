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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store
from flows.orchestration import background
from flows.orchestration.password import is_password, make_password, read_password
from flows.orchestration.server import HOST, listen

NAME = "reports"
_FILE = re.compile(r"/([A-Za-z0-9][A-Za-z0-9._@-]*\.html)")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def folder() -> Path:
    """Where reports lie."""
    return background.private_folder(background.home() / "reports")


def publish_report(store: Store, ref: str) -> tuple[Path, str | None]:
    """Write the report of a run or artifact; its file, and its address if reports are served."""
    from flows.report.report import write_report

    file = folder() / f"{re.sub(r'[^A-Za-z0-9._-]', '-', ref)}.html"
    write_report(store, ref, file)
    serving = background.find(NAME)
    return file, f"{serving.facts['address']}/{file.name}" if serving else None


def ensure_reports(near: int) -> str:
    """Serve reports on loopback, near the UI's port, unless that is done already; the address."""
    standing = background.find(NAME)
    if standing is not None:
        return standing.facts["address"]
    make_password()
    with listen(near + 1, or_any=True) as listener:
        command = [sys.executable, "-P", "-m", "flows.orchestration.reports"]
        address = f"http://{HOST}:{listener.getsockname()[1]}"
        facts = {"address": address}
        background.start(NAME, [*command, str(listener.fileno())], {}, facts, listener)
    return address


class Handler(BaseHTTPRequestHandler):
    """Gives a report by name, and nothing else."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    """Seconds: a caller that says nothing, signed in or not, does not keep a thread."""
    server_version, sys_version = "ingot", ""

    def do_GET(self) -> None:
        """A report, with headers under which it can load and call nothing."""
        if not self._is_own():
            self.send_error(404, "no such report")
            return
        try:
            password = read_password()  # At each request, so that a new one counts at once.
        except IngotError as error:
            self.send_error(503, "no password", str(error))
            return
        if not is_password(self.headers.get("Authorization"), password):
            self._ask()
            return
        asked = _FILE.fullmatch(self.path.partition("?")[0])
        file = folder() / asked[1] if asked else None
        if file is None or not file.is_file():
            self.send_error(404, "no such report")
            return
        data = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _ask(self) -> None:
        """Ask for the password; the browser keeps it for this address and port, unlike a cookie."""
        text = b"Sign in with the line of the file that `ingot up` names."
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="Ingot reports", charset="UTF-8"')
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def end_headers(self) -> None:
        """Add the headers of every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def _is_own(self) -> bool:
        """Whether it is asked for by an address of this machine, not by a name that points here."""
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:
            return False
        return host in (HOST, "localhost")

    def log_message(self, *words: object) -> None:
        """Log nothing: whoever has not signed in could fill the log."""


def main(file: int) -> None:
    """Serve on the listening socket with this file number, until told to end."""
    os.umask(0o077)
    listener = socket.socket(fileno=file)
    server = ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
