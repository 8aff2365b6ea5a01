"""A stand-in for Slack's incoming webhooks, reached as `https://hooks.slack.com` through a proxy.

It answers as Slack does: `ok`, or 400 `invalid_payload` or `no_text` for a payload that Slack would
refuse (https://api.slack.com/messaging/webhooks: JSON, with `text`, `blocks` or `attachments`).
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certificates import certificate_for

HOST = "hooks.slack.com"


class SlackServer(ThreadingHTTPServer):
    """What was sent: (path, payload) of each message that Slack would take, and the errors."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        signed = certificate_for(HOST, folder)
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[str] = []
        self.authority = signed.authority
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(signed.certificate, signed.key)
        super().__init__(("127.0.0.1", 0), _Proxy)

    @property
    def environment(self) -> dict[str, str]:
        """What a program's environment needs, so that its messages to Slack come here."""
        return {
            "HTTPS_PROXY": f"http://127.0.0.1:{self.server_port}",
            "NO_PROXY": "127.0.0.1,localhost",
            "REQUESTS_CA_BUNDLE": str(self.authority),
        }

    def answer(self, path: str, content_type: str, body: bytes) -> tuple[int, str]:
        """Status and text of Slack's answer; the message is kept if it is one."""
        try:
            payload = json.loads(body)
        except ValueError:
            payload = None
        if content_type != "application/json" or not isinstance(payload, dict):
            self.errors.append(f"invalid_payload: {body[:500]!r}")
            return 400, "invalid_payload"
        if not any(payload.get(name) for name in ("text", "blocks", "attachments")):
            self.errors.append(f"no_text: {payload}")
            return 400, "no_text"
        self.messages.append((path, payload))
        return 200, "ok"


class _Proxy(BaseHTTPRequestHandler):
    server: SlackServer

    def do_CONNECT(self) -> None:
        """Be the host that is asked for, if that is Slack's."""
        if self.path != f"{HOST}:443":
            self.server.errors.append(f"CONNECT {self.path}")
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        with self.server.tls.wrap_socket(self.connection, server_side=True) as connection:
            _Hook(connection, self.client_address, self.server)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Hook(BaseHTTPRequestHandler):
    server: SlackServer

    def do_POST(self) -> None:
        """Take a message."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status, text = self.server.answer(self.path, self.headers.get_content_type(), body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def slack_server(folder: Path) -> Iterator[SlackServer]:
    """The stand-in, while the block runs."""
    with SlackServer(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
