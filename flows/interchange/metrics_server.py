"""Metrics over HTTP on loopback, for a Prometheus on this machine.

Nothing is asked of who reads them: as of any exporter, they are open to the users of the machine.
So it listens on no other address, and answers no page of a browser that a name has led here.
"""

from __future__ import annotations

import ipaddress
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from urllib.parse import urlsplit

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from artifacts_schema.errors import IngotError, UsageError
from flows.interchange.metrics import StoreMetrics

PORT = 9464
"""The one that OpenTelemetry's exporters for Prometheus take."""
SILENT_SECONDS = 30
"""After which a silent client loses its connection and thread."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:9464`, `[::1]:9464`, `localhost` or `:9464`.

    UsageError for what is no address of loopback.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "127.0.0.1", PORT if parts.port is None else parts.port
        if parts.path or parts.query or parts.fragment or parts.username is not None:
            raise ValueError("more than a host and a port")
    except ValueError as error:
        raise UsageError(f"no address: {error}", where=f"--listen {text}") from None
    host = "127.0.0.1" if host == "localhost" else host
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise UsageError(
            "metrics are served on loopback only, for anybody could read them elsewhere",
            where=f"--listen {text}",
            hint="let a Prometheus agent on this machine send them on, write --output for the "
            "textfile collector of node_exporter, or put a proxy with TLS and a password before it",
        )
    return host, port


class MetricsServer(ThreadingHTTPServer):
    """Serves `/metrics`; `serve_forever` until `shutdown`. OSError if the port is taken."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], metrics: StoreMetrics) -> None:
        self.metrics, self._lock = metrics, threading.Lock()
        if ":" in address[0]:
            self.address_family = AF_INET6
        super().__init__(address, _Handler)

    def text(self) -> bytes:
        """The metrics now: one look at the store at a time."""
        with self._lock:
            return self.metrics.text()

    @property
    def url(self) -> str:
        """Where the metrics are."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENT_SECONDS
    server_version, sys_version = "ingot", ""
    server: MetricsServer

    def do_GET(self) -> None:
        """Send the metrics; 503 if the store cannot be read, so that Prometheus says `up` is 0."""
        if not self._is_own() or self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404, "no such page")
            return
        try:
            body = self.server.text()
        except (IngotError, OSError):
            self.send_error(503, "the store cannot be read")  # Why, may name paths.
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _is_own(self) -> bool:
        """Whether the Host header is an address of loopback, not a name that resolves to it."""
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def log_message(self, *words: object) -> None:
        """Log nothing: a scrape every few seconds is no news."""
