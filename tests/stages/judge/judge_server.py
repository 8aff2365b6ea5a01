"""An OpenAI-compatible endpoint on loopback that answers as a test wants it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes | None]
"""Status, headers and body; no body: the connection is cut after the headers."""


def completion(text: str | None) -> Reply:
    """A chat completion."""
    body = {
        "choices": [{"message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    return 200, {}, json.dumps(body).encode()


class JudgeServer:
    """`reply(number, body)` answers request `number`, from 0; all requests are kept."""

    def __init__(self, reply: Callable[[int, dict[str, Any]], Reply]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    number = len(server.bodies)
                    server.bodies.append(json.loads(raw))
                    server.headers.append(dict(self.headers))
                status, headers, body = reply(number, json.loads(raw))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) if body is not None else 1000))
                self.end_headers()
                if body is None:
                    self.wfile.write(b'{"choices": [')
                    self.close_connection = True
                else:
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def prompts(self) -> list[str]:
        """What was asked, in order."""
        return [body["messages"][0]["content"] for body in self.bodies]

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
