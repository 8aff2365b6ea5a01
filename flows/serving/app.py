"""OpenAI's protocol over a model of the store: models, completions, chat completions.

These routes alone, and a page to talk in. `transformers serve` 5.23 speaks the protocol too, and
can be pinned to a model (`--force-model`), but its route `/load_model` loads others all the same,
it asks for no key, and nothing bounds what waits. So the routes are ours, and what writes is the
generation service that `ingot chat` and `evaluate` have.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from artifacts_schema.errors import IngotError
from flows.serving.bodies import Body, ChatBody, CompletionBody
from flows.serving.loopback import Refused, make_guarded, read_body
from flows.serving.writer import End, Full, Job, Writer

if TYPE_CHECKING:
    from flows.analysis.chat import LanguageModel

_POLL_SECONDS = 0.5
"""Between looks at whether a client that waits for a whole answer is still there."""
AnyBody = TypeVar("AnyBody", bound=Body)
_PAGE = Path(__file__).with_name("page.html")


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
    """The checked body of a request to the model `name`."""
    body = await read_body(request, kind)
    if body.model not in ("", name):
        raise _no_model(body.model, name)
    return body


def _full() -> Refused:
    headers = {"Retry-After": "5"}
    return Refused(429, "too many requests wait: try again", "queue_full", **headers)


def _no_model(wanted: str, name: str) -> Refused:
    return Refused(404, f"no model '{wanted[:200]}'; this server has '{name}'", "model_not_found")


def make_app(service: Service, *, hosts: frozenset[str], key: str) -> ASGIApp:
    """The application; `hosts` are the values of the Host header that name it."""
    routes: list[BaseRoute] = [
        Route("/v1/models", service.models),
        Route("/v1/models/{name:path}", service.model_by_name),
        Route("/v1/completions", service.completions, methods=["POST"]),
        Route("/v1/chat/completions", service.chat_completions, methods=["POST"]),
    ]
    return make_guarded(_PAGE, routes, hosts=hosts, key=key)
