"""A local S3 server for tests: moto behind one lock. Prints its port, serves until stdin closes.

`GET /-/requests` returns how many requests there were since it was last asked, by method.
`GET /-/traffic` returns what they were (GET, HEAD, LIST, PUT, …), the bytes of objects that were
`sent` and `received`, and the bytes sent by the ending of the object's name, as `sent.parquet`.

Moto checks `If-None-Match` and stores in two moves; S3 does both in one. The lock gives back what
S3 promises, so that racing writers can be tested.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server


class OneAtATime:
    """A WSGI application that answers one request at a time."""

    def __init__(self, application: Any) -> None:
        self._application, self._lock = application, threading.Lock()
        self._requests: Counter[str] = Counter()
        self._traffic: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        with self._lock:
            if environ["PATH_INFO"] == "/-/requests":
                counted, self._requests = self._requests, Counter()
                return _answer(counted, start_response)
            if environ["PATH_INFO"] == "/-/traffic":
                counted, self._traffic = self._traffic, Counter()
                return _answer(counted, start_response)
            self._requests[environ["REQUEST_METHOD"]] += 1
            body = list(self._application(environ, start_response))
            self._count_traffic(environ, sum(map(len, body)))
            return body

    def _count_traffic(self, environ: dict[str, Any], sent: int) -> None:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        is_object = path.strip("/").count("/") > 0
        self._traffic[method if is_object or method != "GET" else "LIST"] += 1
        if method == "GET" and is_object:
            name = path.rpartition("/")[2]
            self._traffic["sent"] += sent
            self._traffic[f"sent.{name.rpartition('.')[2]}"] += sent
        self._traffic["received"] += int(environ.get("CONTENT_LENGTH") or 0)


def _answer(counted: Counter[str], start_response: Any) -> Iterable[bytes]:
    body = json.dumps(counted).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def main() -> None:
    """Serve on a free loopback port."""
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
