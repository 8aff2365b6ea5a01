"""OpenAI's protocol over models of the store: models, completions, chat completions.

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
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from artifacts_schema.errors import IngotError
from flows.serving.bodies import Body, ChatBody, ChoiceBody, CompletionBody
from flows.serving.comparison import SIDES, Comparison, Unknown
from flows.serving.writer import End, Full, Job, Writer

if TYPE_CHECKING:
    from flows.analysis.chat import LanguageModel

MOST_BODY_BYTES = 4 * 2**20
_POLL_SECONDS = 0.5
"""Between looks at whether a client that waits for a whole answer is still there."""
AnyBody = TypeVar("AnyBody", bound=BaseModel)
_FOLDER = Path(__file__).parent


def read_page(name: str) -> str:
    """A page with the script and style that all pages share."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    for marker, shared in (("// client.js", "client.js"), ("/* style.css */", "style.css")):
        text = text.replace(marker, (_FOLDER / shared).read_text(encoding="utf-8"))
    return text


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
        body = await _read(request, CompletionBody)
        served = self._find(body.model)
        ids = await self._encode(served, served.model.encode_plain, body.text)
        return await self._answer(request, body, served, ids, "text_completion", _text_choice)

    async def chat_completions(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        body = await _read(request, ChatBody)
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
        body = await _read(request, ChoiceBody)
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


async def _read(request: Request, kind: type[AnyBody]) -> AnyBody:
    """The body of a request, checked; Refused says what is wrong with it."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MOST_BODY_BYTES:
            raise Refused(413, f"the body has over {MOST_BODY_BYTES:,} bytes", "body_too_large")
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        text = first["msg"].removeprefix("Value error, ")
        raise Refused(400, f"{place}: {text}" if place else text, "invalid_body") from None


def _full() -> Refused:
    headers = {"Retry-After": "5"}
    return Refused(429, "too many requests wait: try again", "queue_full", **headers)


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

    compared = service.comparison is not None
    text = read_page("compare.html" if compared else "page.html")
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
    handlers: dict[Any, Any] = {Refused: refused, 404: no_route}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), hosts, key)
