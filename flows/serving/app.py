"""OpenAI's protocol over a model of the store: models, completions, chat completions.

These routes alone, and a page to talk in. `transformers serve` 5.23 speaks the protocol too, and
can be pinned to a model (`--force-model`), but its route `/load_model` loads others all the same,
it asks for no key, and nothing bounds what waits. So the routes are ours, and what writes is the
generation service that `ingot chat` and `evaluate` have.

A request must name this server as its host, so that no page of another site can reach it by a name
that leads here, and it must carry the key.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from artifacts_schema.errors import IngotError
from flows.serving.bodies import Body, ChatBody, CompletionBody
from flows.serving.writer import End, Full, Job, Writer

if TYPE_CHECKING:
    from flows.analysis.chat import LanguageModel

MOST_BODY_BYTES = 4 * 2**20
_POLL_SECONDS = 0.5
"""Between looks at whether a client that waits for a whole answer is still there."""
AnyBody = TypeVar("AnyBody", bound=Body)
_PAGE = Path(__file__).with_name("page.html")


def page_policy(page: str) -> str:
    """The policy of a page whose one script and one style it holds itself: by their hashes.

    What a model writes into the page can be neither (CSP, level 2: hash sources).
    """

    def hashed(tag: str) -> str:
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; script-src 'sha256-{hashed('script')}'; "
        f"style-src 'sha256-{hashed('style')}'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class Refused(Exception):
    """An answer in the protocol's form for errors."""

    def __init__(self, status: int, message: str, code: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers

    def response(self) -> Response:
        """As clients read it."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": None, "code": self.code}
        return JSONResponse({"error": error}, self.status, self.headers)


@dataclass
class Service:
    """A model, its name, and the thread that writes with it."""

    name: str
    model: LanguageModel
    writer: Writer
    started: int
    _encoding: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def completions(self, request: Request) -> Response:
        """`POST /v1/completions`."""
        body = await _read(request, CompletionBody, self.name)
        ids = await self._encode(self.model.encode_plain, body.text)
        return await self._answer(request, body, ids, "text_completion", _text_choice)

    async def chat_completions(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        body = await _read(request, ChatBody, self.name)
        tools = json.dumps(body.tools) if body.tools and body.tool_choice != "none" else None
        try:
            messages = [one.plain() for one in body.messages]
            if token := self.model.spelled_token(messages):
                raise Refused(
                    400,
                    f"a message spells the special token {token}, which this model's chat "
                    "template cannot tell from one of its own",
                    "special_token",
                )
            ids = await self._encode(self.model.encode_chat, messages, tools)
        except IngotError as error:
            raise Refused(400, error.what, "invalid_messages") from None
        return await self._answer(request, body, ids, "chat.completion", _chat_choice)

    async def models(self, request: Request) -> Response:
        """`GET /v1/models`."""
        one = {"id": self.name, "object": "model", "created": self.started, "owned_by": "ingot"}
        return JSONResponse({"object": "list", "data": [one]})

    async def model_by_name(self, request: Request) -> Response:
        """`GET /v1/models/NAME`."""
        if request.path_params["name"] != self.name:
            raise _no_model(request.path_params["name"], self.name)
        one = {"id": self.name, "object": "model", "created": self.started, "owned_by": "ingot"}
        return JSONResponse(one)

    async def _encode(self, encode: Callable[..., list[int]], *arguments: Any) -> list[int]:
        """The prompt's ids, in another thread; one at a time, as a tokenizer has a state.

        Refused at once where its answer could not wait.
        """
        async with self._encoding:
            try:
                self.writer.check_room()
            except Full:
                raise _full() from None
            return await asyncio.to_thread(encode, *arguments)

    async def _answer(
        self, request: Request, body: Body, ids: list[int], kind: str, choice: Any
    ) -> Response:
        room = self.model.context - len(ids)
        if room < 1:
            raise Refused(
                400,
                f"the prompt has {len(ids):,} tokens, the model's context {self.model.context:,}",
                "context_length_exceeded",
            )
        job, pieces = self._submit(body, ids, min(body.most, room))
        head = {
            "id": f"{'chatcmpl' if kind.startswith('chat') else 'cmpl'}-{secrets.token_hex(12)}",
            "object": kind,
            "created": int(time.time()),
            "model": self.name,
        }
        if body.stream:
            if kind.startswith("chat"):
                head["object"] = "chat.completion.chunk"
            usage = len(ids) if body.stream_options.include_usage else None
            events = _events(job, pieces, head, choice, usage)
            return StreamingResponse(
                events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
            )
        text, end = await self._whole(request, job, pieces)
        return JSONResponse(
            {**head, "choices": [choice(text, end, whole=True)], "usage": _usage(len(ids), end)}
        )

    def _submit(self, body: Body, ids: list[int], most: int) -> tuple[Job, asyncio.Queue[Any]]:
        from stages.scoring.generation import Sampling

        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Any]()
        seed = body.seed if body.seed is not None else secrets.randbits(31)
        sampling = Sampling(body.temperature, body.top_p, seed, body.top_k, body.min_p)

        def send(item: Any) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, item)

        job = Job(ids, sampling, most, body.stops, send)
        try:
            self.writer.submit(job)
        except Full:
            raise _full() from None
        return job, pieces

    async def _whole(
        self, request: Request, job: Job, pieces: asyncio.Queue[Any]
    ) -> tuple[str, End]:
        written: list[str] = []
        try:
            while True:
                try:
                    item = await asyncio.wait_for(pieces.get(), _POLL_SECONDS)
                except TimeoutError:
                    if await request.is_disconnected():
                        raise ClientDisconnect from None
                    continue
                if isinstance(item, End):
                    return "".join(written), item
                if isinstance(item, Exception):
                    raise Refused(500, str(item), "generation_failed")
                written.append(item)
        finally:
            job.cancelled.set()


async def _events(
    job: Job, pieces: asyncio.Queue[Any], head: Mapping[str, Any], choice: Any, usage: int | None
) -> AsyncIterator[str]:
    """Server-sent events: a chunk for each piece, the end, usage where asked for, `[DONE]`."""
    first = True
    try:
        while True:
            item = await pieces.get()
            if isinstance(item, Exception):
                error = {"message": str(item), "type": "server_error", "code": "generation_failed"}
                yield _event({"error": error})
                return
            end = item if isinstance(item, End) else None
            text = "" if end else item
            yield _event({**head, "choices": [choice(text, end, first=first)]})
            first = False
            if end:
                if usage is not None:
                    yield _event({**head, "choices": [], "usage": _usage(usage, end)})
                yield "data: [DONE]\n\n"
                return
    finally:  # Also where the client has gone.
        job.cancelled.set()


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _usage(prompt: int, end: End) -> dict[str, int]:
    total = prompt + end.tokens
    return {"prompt_tokens": prompt, "completion_tokens": end.tokens, "total_tokens": total}


def _text_choice(
    text: str, end: End | None, *, whole: bool = False, first: bool = False
) -> dict[str, Any]:
    reason = end.reason if end else None
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}


def _chat_choice(
    text: str, end: End | None, *, whole: bool = False, first: bool = False
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"} if whole or first else {}
    if text or whole:
        message["content"] = text
    name = "message" if whole else "delta"
    reason = end.reason if end else None
    return {"index": 0, name: message, "logprobs": None, "finish_reason": reason}


async def _read(request: Request, kind: type[AnyBody], name: str) -> AnyBody:
    """The body of a request, checked; Refused says what is wrong with it."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MOST_BODY_BYTES:
            raise Refused(413, f"the body has over {MOST_BODY_BYTES:,} bytes", "body_too_large")
    try:
        body = kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        text = first["msg"].removeprefix("Value error, ")
        raise Refused(400, f"{place}: {text}" if place else text, "invalid_body") from None
    if body.model not in ("", name):
        raise _no_model(body.model, name)
    return body


def _full() -> Refused:
    headers = {"Retry-After": "5"}
    return Refused(429, "too many requests wait: try again", "queue_full", **headers)


def _no_model(wanted: str, name: str) -> Refused:
    return Refused(404, f"no model '{wanted[:200]}'; this server has '{name}'", "model_not_found")


class Guard:
    """Lets requests through that name this server as host, come from no other site, and have the
    key; the page alone needs none."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], key: str) -> None:
        self.app, self.hosts, self.key = app, hosts, key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["type"] == "http":
            refused = self._refuse(Request(scope))
            if refused is not None:
                await refused.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refuse(self, request: Request) -> Refused | None:
        if request.headers.get("host", "").lower() not in self.hosts:
            return Refused(421, "this server has another name", "wrong_host")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{one}" for one in self.hosts}:
            return Refused(403, "no other site may ask this server", "wrong_origin")
        if request.url.path == "/":
            return None
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(key.strip().encode(), self.key):
            return None
        headers = {"WWW-Authenticate": "Bearer"}
        return Refused(401, "the key is missing or wrong", "invalid_api_key", **headers)


def make_app(service: Service, *, hosts: frozenset[str], key: str) -> ASGIApp:
    """The application; `hosts` are the values of the Host header that name it."""

    text = _PAGE.read_text(encoding="utf-8")
    policy = page_policy(text)

    async def page(request: Request) -> Response:
        return HTMLResponse(
            text,
            headers={
                "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
            },
        )

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return error.response()

    async def no_route(request: Request, error: Exception) -> Response:
        return Refused(404, "no such route", "not_found").response()

    routes = [
        Route("/", page),
        Route("/v1/models", service.models),
        Route("/v1/models/{name:path}", service.model_by_name),
        Route("/v1/completions", service.completions, methods=["POST"]),
        Route("/v1/chat/completions", service.chat_completions, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {Refused: refused, 404: no_route}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), hosts, key)
