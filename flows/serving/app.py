"""OpenAI's protocol over models of the store: models, completions, chat completions.

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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from artifacts_schema.errors import IngotError
from flows.serving.bodies import Body, ChatBody, ChoiceBody, CompletionBody
from flows.serving.comparison import SIDES, Comparison, Unknown
from flows.serving.loopback import Refused, make_guarded, read_body
from flows.serving.writer import End, Full, Job, Writer

if TYPE_CHECKING:
    from flows.analysis.chat import LanguageModel

_POLL_SECONDS = 0.5
"""Between looks at whether a client that waits for a whole answer is still there."""
_FOLDER = Path(__file__).parent


def read_page(name: str) -> str:
    """A page with the script and style that all pages share."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    for marker, shared in (("// client.js", "client.js"), ("/* style.css */", "style.css")):
        text = text.replace(marker, (_FOLDER / shared).read_text(encoding="utf-8"))
    return text


@dataclass
class ServedModel:
    """A model, its name, and the thread that writes with it."""

    name: str
    model: LanguageModel
    writer: Writer
    started: int
    encoding: asyncio.Lock = field(default_factory=asyncio.Lock)

    def described(self) -> dict[str, Any]:
        """As the protocol lists it."""
        return {"id": self.name, "object": "model", "created": self.started, "owned_by": "ingot"}


@dataclass
class Service:
    """One model, or two that are compared. A request that names none gets the first."""

    models: Sequence[ServedModel]
    comparison: Comparison | None = None

    async def completions(self, request: Request) -> Response:
        """`POST /v1/completions`."""
        body = await read_body(request, CompletionBody)
        served = self._find(body.model)
        ids = await self._encode(served, served.model.encode_plain, body.text)
        return await self._answer(request, body, served, ids, "text_completion", _text_choice)

    async def chat_completions(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        body = await read_body(request, ChatBody)
        served = self._find(body.model)
        tools = json.dumps(body.tools) if body.tools and body.tool_choice != "none" else None
        try:
            messages = [one.plain() for one in body.messages]
            if token := served.model.spelled_token(messages):
                raise Refused(
                    400,
                    f"a message spells the special token {token}, which this model's chat "
                    "template cannot tell from one of its own",
                    "special_token",
                )
            ids = await self._encode(served, served.model.encode_chat, messages, tools)
        except IngotError as error:
            raise Refused(400, error.what, "invalid_messages") from None
        return await self._answer(request, body, served, ids, "chat.completion", _chat_choice)

    async def list_models(self, request: Request) -> Response:
        """`GET /v1/models`."""
        return JSONResponse({"object": "list", "data": [one.described() for one in self.models]})

    async def model_by_name(self, request: Request) -> Response:
        """`GET /v1/models/NAME`."""
        return JSONResponse(self._find(request.path_params["name"]).described())

    async def draw_question(self, request: Request) -> Response:
        """`POST /compare/questions`: a number, whose sides are models `NUMBER:left`, `…:right`."""
        assert self.comparison is not None
        number, names = self.comparison.draw(), None
        if not self.comparison.blind:
            names = dict(zip(SIDES, self.comparison.names(number), strict=True))
        return JSONResponse({"question": number, "names": names})

    async def choose(self, request: Request) -> Response:
        """`POST /compare/choices`: which side was better; answers which model stood where."""
        assert self.comparison is not None
        body = await read_body(request, ChoiceBody)
        try:
            names = self.comparison.choose(body.question, body.choice, body.who.strip())
            first, second = (one.name for one in self.comparison.candidates)
            sentence = self.comparison.summary().sentence(first, second)
        except Unknown:
            raise Refused(404, "no such question waits for a choice", "no_question") from None
        except IngotError as error:
            raise Refused(500, error.what, "choice_not_written") from None
        return JSONResponse({**dict(zip(SIDES, names, strict=True)), "summary": sentence})

    def _find(self, name: str) -> ServedModel:
        if not name:
            return self.models[0]
        wanted = (self.comparison and self.comparison.resolve(name)) or name
        for one in self.models:
            if one.name == wanted:
                return one
        known = " and ".join(f"'{one.name}'" for one in self.models)
        raise Refused(404, f"no model '{name[:200]}'; this server has {known}", "model_not_found")

    async def _encode(
        self, served: ServedModel, encode: Callable[..., list[int]], *arguments: Any
    ) -> list[int]:
        """The prompt's ids, in another thread; one at a time, as a tokenizer has a state.

        Refused at once where its answer could not wait.
        """
        async with served.encoding:
            try:
                served.writer.check_room()
            except Full:
                raise _full() from None
            return await asyncio.to_thread(encode, *arguments)

    async def _answer(
        self,
        request: Request,
        body: Body,
        served: ServedModel,
        ids: list[int],
        kind: str,
        choice: Any,
    ) -> Response:
        room = served.model.context - len(ids)
        if room < 1:
            raise Refused(
                400,
                f"the prompt has {len(ids):,} tokens, the model's context {served.model.context:,}",
                "context_length_exceeded",
            )
        job, pieces = _submit(served.writer, body, ids, min(body.most, room))
        head = {
            "id": f"{'chatcmpl' if kind.startswith('chat') else 'cmpl'}-{secrets.token_hex(12)}",
            "object": kind,
            "created": int(time.time()),
            # The name that the client uses: a blind page learns no other.
            "model": body.model or served.name,
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


def _submit(
    writer: Writer, body: Body, ids: list[int], most: int
) -> tuple[Job, asyncio.Queue[Any]]:
    from stages.scoring.generation import Sampling

    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Any]()
    seed = body.seed if body.seed is not None else secrets.randbits(31)
    sampling = Sampling(body.temperature, body.top_p, seed, body.top_k, body.min_p)

    def send(item: Any) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, item)

    job = Job(ids, sampling, most, body.stops, send)
    try:
        writer.submit(job)
    except Full:
        raise _full() from None
    return job, pieces


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


def _full() -> Refused:
    headers = {"Retry-After": "5"}
    return Refused(429, "too many requests wait: try again", "queue_full", **headers)


def make_app(service: Service, *, hosts: frozenset[str], key: str) -> ASGIApp:
    """The application; `hosts` are the values of the Host header that name it."""
    compared = service.comparison is not None
    routes: list[BaseRoute] = [
        Route("/v1/models", service.list_models),
        Route("/v1/models/{name:path}", service.model_by_name),
        Route("/v1/completions", service.completions, methods=["POST"]),
        Route("/v1/chat/completions", service.chat_completions, methods=["POST"]),
    ]
    if compared:
        routes += [
            Route("/compare/questions", service.draw_question, methods=["POST"]),
            Route("/compare/choices", service.choose, methods=["POST"]),
        ]
    page = read_page("compare.html" if compared else "page.html")
    return make_guarded(page, routes, hosts=hosts, key=key)
