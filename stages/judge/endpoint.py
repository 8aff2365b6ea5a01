"""An OpenAI-compatible endpoint: one request after another is answered, refused, or tried again.

A server that is busy or broken (408, 409, 425, 429, 5xx), a cut connection and an answer that is no
chat completion are tried again, after a pause that doubles, or that the server asks for. What it
refuses for good (400, 413, 422) is no verdict. A wrong key or name ends the run, and so does a
judge that stays away. The key goes to the one host in the one header; no redirect is followed, and
nothing that is kept or printed holds it.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from artifacts_schema.errors import InputError, Stopped, UsageError
from artifacts_schema.identity import canonical_sha256
from stages.engine.remote import check_url, without_secrets
from stages.engine.strict_json import parse_json
from stages.judge.config import JudgeExecution
from stages.judge.journal import Answer

if TYPE_CHECKING:
    from urllib3 import PoolManager

ANSWER_BYTES = 4_000_000
"""Of the longest body that is read."""
FIRST_WAIT = 1.0
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
KEPT = "answers so far are kept; run the same command to continue"


class JudgeAway(Stopped):
    """The judge does not answer; what it said so far is kept."""


def check_endpoint(execution: JudgeExecution) -> None:
    """UsageError for an address or a source of a key that cannot be used."""
    if execution.url is None:
        raise UsageError(
            "the judge has no address",
            where="execution.url",
            hint="https://HOST/v1 of an OpenAI-compatible API, or a checkpoint that judges",
        )
    check_url(execution.url)
    if urlsplit(execution.url).scheme not in ("http", "https"):
        raise UsageError("is no address of a web API", where=f"execution.url: {execution.url}")
    if execution.key_variable is not None and execution.key_file is not None:
        raise UsageError("the key has two sources", where="execution", hint="name one")


def read_key(execution: JudgeExecution) -> str | None:
    """The key, from where the execution says. UsageError for none, or one that others read."""
    if (variable := execution.key_variable) is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UsageError(f"the environment has no {variable}", where="execution.key_variable")
    elif (path := execution.key_file) is not None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=path) from None
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise UsageError("is no file", where=path)
            if about.st_mode & 0o077:
                raise UsageError("others may read the key", where=path, hint=f"chmod 600 {path}")
            key = os.read(descriptor, 10_000).decode("utf-8", "replace").strip()
        finally:
            os.close(descriptor)
    else:
        return None
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError("holds no key", where=execution.key_file or execution.key_variable)
    return key


class Endpoint:
    """The API at an address. `wait` pauses for so many seconds, or less once the run is to end."""

    def __init__(
        self,
        execution: JudgeExecution,
        key: str | None,
        wait: Callable[[float], Any] | None = None,
    ) -> None:
        from urllib3 import PoolManager, Timeout

        check_endpoint(execution)
        assert execution.url is not None
        self.execution, self._key = execution, key
        self.url = execution.url.rstrip("/") + "/chat/completions"
        self.host = urlsplit(execution.url).netloc
        self.ended = threading.Event()
        """Set once no further request is to be made."""
        self._wait = wait or self.ended.wait
        self._made, self._lock = 0, threading.Lock()
        self._pool: PoolManager = PoolManager(
            maxsize=execution.concurrency,
            timeout=Timeout(connect=min(15.0, execution.timeout), read=execution.timeout),
            retries=False,
        )

    @property
    def requests_made(self) -> int:
        """Attempts included."""
        return self._made

    def ask(self, body: Mapping[str, Any]) -> Answer:
        """The answer to one request, after as many attempts as it takes.

        JudgeAway where they do not suffice, UsageError for a wrong key, address or model.
        """
        request, problem = canonical_sha256(dict(body)), ""
        malformed = False
        for attempt in range(self.execution.attempts):
            if attempt:
                self._wait(self._pause(attempt, problem))
            if self.ended.is_set():
                raise JudgeAway("the run ends", where=self.host, hint=KEPT)
            self._count()
            status, headers, raw, problem = self._post(body)
            if status == 200:
                answer = _read_completion(request, raw)
                if answer is not None:
                    return answer
                malformed, problem = True, "it sent no chat completion"
                continue
            malformed = False
            if status is not None and status not in AGAIN:
                return self._settle(request, status, raw)
            if status is not None:
                problem = f"status {status}{_after(headers)}"
        if malformed:
            return Answer(request, "", "malformed")
        raise JudgeAway(f"the judge does not answer: {problem}", where=self.host, hint=KEPT)

    def _count(self) -> None:
        with self._lock:
            limit = self.execution.max_requests
            if limit is not None and self._made >= limit:
                raise JudgeAway(
                    f"{limit:,} requests were made (max_requests)", where=self.host, hint=KEPT
                )
            self._made += 1

    def _pause(self, attempt: int, problem: str) -> float:
        """Seconds before an attempt: the double of the last, or what the server asked for."""
        _, _, wanted = problem.partition(_RETRY)
        pause = float(wanted) if wanted else FIRST_WAIT * 2 ** (attempt - 1)
        return min(pause, self.execution.longest_wait)

    def _post(self, body: Mapping[str, Any]) -> tuple[int | None, Mapping[str, str], bytes, str]:
        """Status, headers and body; no status where the connection failed, with the reason."""
        from urllib3.exceptions import HTTPError

        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        response = None
        try:
            response = self._pool.request(
                "POST",
                self.url,
                body=json.dumps(body).encode(),
                headers=headers,
                redirect=False,
                preload_content=False,
            )
            raw = response.read(ANSWER_BYTES + 1)
            if response.headers.get("Content-Length", "").isdecimal():
                missing = int(response.headers["Content-Length"]) - len(raw)
                if missing > 0 and len(raw) <= ANSWER_BYTES:
                    return None, {}, b"", "the connection was cut"
            return response.status, response.headers, raw, ""
        except (HTTPError, OSError) as error:
            return None, {}, b"", f"the connection failed: {type(error).__name__}"
        finally:
            if response is not None:
                response.close()

    def _settle(self, request: str, status: int, raw: bytes) -> Answer:
        """What no further attempt would change."""
        if status in (400, 413, 422):
            return Answer(request, "", "refused")
        what = {
            401: "the key is not taken",
            403: "the key may not do this",
            404: "there is no such API or model",
        }.get(status, f"it answers with status {status}")
        raise UsageError(
            f"{what}: {self._message(raw)}",
            where=without_secrets(self.url),
            hint="check execution.url, its key, and `model`",
        )

    def _message(self, raw: bytes) -> str:
        text = raw[:300].decode("utf-8", "replace")
        return text if self._key is None else text.replace(self._key, "…")


_RETRY = "; retry after "


def _after(headers: Mapping[str, str]) -> str:
    """The seconds that a server asks for, as part of the problem."""
    text = headers.get("Retry-After", "").strip()
    return f"{_RETRY}{text}" if text.replace(".", "", 1).isdecimal() else ""


def _read_completion(request: str, raw: bytes) -> Answer | None:
    """The text of a chat completion; None for anything else."""
    if len(raw) > ANSWER_BYTES:
        return None
    try:
        value = parse_json(raw)
        content = value["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    if content is not None and not isinstance(content, str):
        return None
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    text = (content or "").replace("\0", "").encode("utf-8", "replace").decode()
    return Answer(
        request,
        text,
        "answered",
        _tokens(usage.get("prompt_tokens")),
        _tokens(usage.get("completion_tokens")),
    )


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


def ask_all(
    endpoint: Endpoint,
    bodies: Mapping[str, Mapping[str, Any]],
    keep: Callable[[Answer], None],
    check_stop: Callable[[], None],
) -> None:
    """Ask for every body, several at once; `keep` is called in this thread for each answer.

    After the first failure, or once `check_stop` raises, nothing further is asked, the requests
    under way are waited for, and their answers kept: they are paid.
    """
    failure: BaseException | None = None
    with ThreadPoolExecutor(endpoint.execution.concurrency) as pool:
        left: set[Future[Answer]] = {pool.submit(endpoint.ask, body) for body in bodies.values()}
        while left:
            done, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
            for one in done:
                try:
                    keep(one.result())
                except BaseException as error:  # Raised below, once all are in.
                    failure = _worse(failure, error)
            if failure is None:
                try:
                    check_stop()
                except BaseException as error:
                    failure = error
            if failure is not None and not endpoint.ended.is_set():
                endpoint.ended.set()
                left = {one for one in left if not one.cancel()}
    if failure is not None:
        raise failure


def _worse(before: BaseException | None, error: BaseException) -> BaseException:
    """The failure to report: the first, but what a person must mend before what may pass."""
    if before is None or (isinstance(before, Stopped) and not isinstance(error, Stopped)):
        return error
    return before


def check_answered(count: int, refused: int) -> None:
    """InputError where the judge refused every request: it is asked wrongly."""
    if count and refused == count:
        raise InputError(
            "the judge refused every request (status 400, 413 or 422)",
            where="judge",
            hint="it may not know a parameter, or the prompts may be too long for it",
        )
