"""Routes of the page on which people rank answers: the next prompt, a judgement, taking one back.

What a window sends is checked here and kept by `Desk`. The page never learns which sample an answer
is, nor which model wrote it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from artifacts_schema.errors import StoreError
from flows.collecting.desk import Conflict, Desk, View
from flows.collecting.judgements import Verdict, tidy_name
from flows.collecting.outcome import Agreement
from flows.serving.loopback import Refused, make_guarded, read_body

_PAGE = Path(__file__).with_name("page.html")
_MOST_ANSWERS = 16
T = TypeVar("T")
Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class WindowBody(BaseModel):
    """A window of the page, and the person before it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    who: Annotated[str, StringConstraints(max_length=64)]
    window: Id

    @field_validator("who")
    @classmethod
    def _is_a_name(cls, who: str) -> str:
        name = tidy_name(who)
        if not name or not name.isprintable():
            raise ValueError("write your name first")
        return name


class JudgementBody(WindowBody):
    """What the person says of a prompt's answers, in the order in which the page has them."""

    id: Id
    prompt: Id
    verdict: Verdict
    ranks: list[Annotated[int, Field(ge=1, le=_MOST_ANSWERS)]] = Field(
        default=[], max_length=_MOST_ANSWERS
    )


class UndoBody(WindowBody):
    """Which judgement is taken back; null: the person's last."""

    id: Id
    undoes: Id | None = None


class Pages:
    """The routes, over one desk."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.desk, self.name = desk, name
        self._agreement: tuple[int, Agreement | None] = (-1, None)

    async def next(self, request: Request) -> Response:
        """`POST /next`: the prompt for this window, or null."""
        body = await read_body(request, WindowBody)
        view = await _in_thread(lambda: self.desk.next(body.who, body.window))
        return await self._view(body, view)

    async def judge(self, request: Request) -> Response:
        """`POST /judgements`: keep one; the answer comes once it is on disk."""
        body = await read_body(request, JudgementBody)
        await _in_thread(
            lambda: self.desk.judge(
                body.who,
                body.window,
                id=body.id,
                prompt=body.prompt,
                verdict=body.verdict,
                ranks=body.ranks,
            )
        )
        return JSONResponse({"kept": body.id})

    async def undo(self, request: Request) -> Response:
        """`POST /undo`: take one back; its prompt is this window's again."""
        body = await read_body(request, UndoBody)
        view = await _in_thread(
            lambda: self.desk.undo(body.who, body.window, id=body.id, undoes=body.undoes)
        )
        if view is None:
            raise Refused(404, "there is nothing to take back", "nothing_to_undo")
        return await self._view(body, view)

    async def release(self, request: Request) -> Response:
        """`POST /release`: the window is closed."""
        body = await read_body(request, WindowBody)
        await _in_thread(lambda: self.desk.release(body.window))
        return JSONResponse({})

    async def _view(self, body: WindowBody, view: View | None) -> Response:
        progress = await _in_thread(lambda: self.desk.progress(body.who))
        agreement = await _in_thread(self._measure)
        return JSONResponse(
            {
                "collection": self.name,
                "question": None if view is None else _question(view),
                "progress": progress,
                "agreement": agreement.as_json(),
            }
        )

    def _measure(self) -> Agreement:
        """Measured again once there are new records."""
        size = self.desk.size
        known, agreement = self._agreement
        if agreement is None or known != size:
            agreement = self.desk.agreement()
            self._agreement = (size, agreement)
        return agreement


def _question(view: View) -> dict[str, Any]:
    question = view.question
    return {
        "prompt": question.id,
        "messages": [
            {
                "role": one["role"],
                "content": one["content"],
                "calls": json.dumps(one["tool_calls"], ensure_ascii=False)
                if one.get("tool_calls")
                else None,
            }
            for one in question.messages
        ],
        "answers": [
            {"text": question.texts[number], "cut": question.cut[number]} for number in view.order
        ],
        "ranks": list(view.ranks),
    }


async def _in_thread(call: Callable[[], T]) -> T:
    """`call` in a thread, as it may wait for the disk; its errors as answers to the page."""
    try:
        return await asyncio.to_thread(call)
    except Conflict as conflict:
        raise Refused(409, str(conflict), "conflict") from None
    except (StoreError, OSError) as error:
        what = error.what if isinstance(error, StoreError) else error.strerror
        raise Refused(507, f"not saved: {what}", "not_saved") from None


def make_app(desk: Desk, name: str, *, hosts: frozenset[str], key: str) -> ASGIApp:
    """The application; `hosts` are the values of the Host header that name it."""
    pages = Pages(desk, name)
    routes: list[BaseRoute] = [
        Route("/next", pages.next, methods=["POST"]),
        Route("/judgements", pages.judge, methods=["POST"]),
        Route("/undo", pages.undo, methods=["POST"]),
        Route("/release", pages.release, methods=["POST"]),
    ]
    return make_guarded(_PAGE.read_text(encoding="utf-8"), routes, hosts=hosts, key=key)
