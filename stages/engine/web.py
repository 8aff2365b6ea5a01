"""Files at `https://` URLs, and `http://` on this machine: HEAD for identity, ranges for bytes.

RFC 9110: `If-Range` makes a server send the rest of the same file, or the whole of another one; the
`Content-Range` and ETag of the answer are checked either way. Requests to the Hugging Face Hub
carry the token of the person who is logged in; no other host is sent it.

The code is ours because a key must never cover bytes of two states of a file. Where the connection
broke after half of 30 MB and the file was replaced meanwhile, huggingface_hub 2.4 (`http_get`)
returned a mix of both files and urllib3's `Retry` the new one, neither with an error; fsspec's
HTTP file system and pooch 1.9 raised and kept nothing to resume from.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin, urlsplit

from artifacts_schema.errors import InputError
from stages.engine.remote import (
    BLOCK,
    WEB,
    AccessDenied,
    Identity,
    SourceChanged,
    TransientError,
    is_loopback,
    no_such_file,
    without_secrets,
)

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager


def endpoint() -> str:
    """The Hub's address: `$HF_ENDPOINT`, else the public one."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def is_network_error(error: BaseException) -> bool:
    """Whether `huggingface_hub` raised it because the Hub was not reached, or went away."""
    module = type(error).__module__.split(".")[0]
    return module in ("httpx", "httpx2", "httpcore", "httpcore2", "hf_xet")


def is_hub(url: str) -> bool:
    """Whether `url` is one of the Hub."""
    return url.startswith(f"{endpoint()}/")


def login_header(url: str) -> dict[str, str]:
    """The header that says who asks, for a URL of the Hub where somebody is logged in.

    The token is read from the environment or from where `hf auth login` keeps it, for each request:
    it is held nowhere, and no other host is sent it.
    """
    if not is_hub(url):
        return {}
    from huggingface_hub import constants, get_token

    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def page_url(kind: str, name: str) -> str:
    """The page of a `dataset` or a `model`."""
    return f"{endpoint()}/{'datasets/' if kind == 'dataset' else ''}{name}"


def file_url(kind: str, name: str, commit: str, path: str) -> str:
    """The URL of a file of a `dataset` or a `model` at a commit."""
    return f"{page_url(kind, name)}/resolve/{commit}/{quote(path)}"


CONNECT_SECONDS, READ_SECONDS = 15.0, 60.0
CONNECTIONS = 16
"""Connections kept open to one server."""
MAX_REDIRECTS = 5
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONNECTION = re.compile(r"^(<[^>]*>|\w+\([^)]*\)): ")
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


def web_identity(url: str) -> Identity:
    """Length and ETag (or Last-Modified) of a file; InputError if its server sends neither."""
    with _answer("HEAD", url, {}, also=(405, 501)) as response:
        complete = _length(response) is not None and response.status == 200
        length, etag = _length(response), _validator(response)
    if not complete:  # Not every server knows HEAD, or the length before it sends.
        with _answer("GET", url, {"Range": "bytes=0-0"}) as response:
            length, etag = _length(response), _validator(response)
    missing = [] if length is not None else ["Content-Length"]
    missing += [] if etag is not None else ["strong ETag", "Last-Modified"]
    if length is None or etag is None:
        raise InputError(
            f"the server sends no {' and no '.join(missing)}, so a change would not be noticed",
            where=without_secrets(url),
            hint="download the file and name the copy",
        )
    return Identity(length, etag)


def web_blocks(url: str, pinned: Identity, start: int) -> Iterator[bytes]:
    """The bytes from `start` on; see `remote.blocks`.

    A server that cannot send a part is read from the beginning, without what is already there.
    """
    headers = {"Range": f"bytes={start}-"} if start else {}
    if start and pinned.etag:
        headers["If-Range"] = pinned.etag
    with _answer("GET", url, headers) as response:
        passed = start - _check(response, url, pinned, start)
        while block := response.read1(BLOCK, decode_content=False):  # What is there, not a MiB.
            if passed < len(block):
                yield block[passed:]
            passed -= min(passed, len(block))


def _check(response: BaseHTTPResponse, url: str, pinned: Identity, start: int) -> int:
    """The position at which the answer begins; SourceChanged if it is of another file."""
    partial = response.status == 206
    if pinned.etag:  # Else the bytes have a checksum, and what holds them may call them anything.
        etag = _validator(response, like=pinned.etag)
        if etag != pinned.etag and not (partial and etag is None):
            raise SourceChanged(where=url)
    length = _length(response)
    if length is not None and length != pinned.bytes:
        raise SourceChanged(
            f"the file has {length:,} bytes, the snapshot pinned {pinned.bytes:,}", where=url
        )
    if not partial:
        return 0
    content_range = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if content_range is None or int(content_range[1]) != start:
        raise InputError(
            "the server sent another range than the requested one", where=without_secrets(url)
        )
    return start


def _length(response: BaseHTTPResponse) -> int | None:
    """Bytes of the whole file, if the response says so."""
    if response.status == 206:
        content_range = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        return int(content_range[2]) if content_range else None
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdecimal() else None


def _validator(response: BaseHTTPResponse, like: str | None = None) -> str | None:
    """The strong ETag, else Last-Modified; with `like`, the one that has its form.

    A proxy may send `like` as a weak ETag: the bytes were pinned by the strong one.
    """
    etag, modified = (response.headers.get(name, "").strip() for name in ("ETag", "Last-Modified"))
    if like is not None and etag == f"W/{like}":
        return like
    usable = [
        value
        for value in ("" if etag.startswith("W/") else etag, modified)
        if value and value.isascii() and value.isprintable() and len(value) <= 256
    ]
    if like is not None and like in usable:
        return like
    return usable[0] if usable else None


@contextmanager
def _answer(
    method: str, url: str, headers: dict[str, str], also: tuple[int, ...] = ()
) -> Iterator[BaseHTTPResponse]:
    """The response after redirects, its body unread. Faults are raised by their kind."""
    from urllib3.exceptions import HTTPError, SSLError

    response: BaseHTTPResponse | None = None
    try:
        response = _follow(method, url, headers)
        if response.status not in (200, 206, *also):
            raise _refusal(response, url)
        yield response
    except SSLError as error:
        raise InputError(
            f"no secure connection: {_cause(error)}",
            where=without_secrets(url),
            hint="the server's certificate must be valid for its name and known to this machine",
        ) from None
    except HTTPError as error:
        raise TransientError(f"the connection failed: {_cause(error)}") from None
    finally:
        if response is not None:
            response.close() if method == "GET" else response.drain_conn()


def _follow(method: str, url: str, headers: dict[str, str]) -> BaseHTTPResponse:
    from urllib3 import Timeout

    here = url
    for _ in range(MAX_REDIRECTS + 1):
        response = _pool(_proxy(here)).request(
            method,
            here,
            headers={**headers, **(login_header(here) if is_hub(url) else {})},
            redirect=False,
            retries=False,
            preload_content=False,
            timeout=Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
        )
        target = response.get_redirect_location()
        if not target:
            return response
        response.close()
        here = _next(url, here, target)
    raise InputError(
        f"more than {MAX_REDIRECTS} redirects", where=without_secrets(url), hint="name the last URL"
    )


def _next(url: str, here: str, target: str) -> str:
    """The target of a redirect; InputError if it is less safe than its origin."""
    there = urljoin(here, target)
    try:
        old, new = urlsplit(here), urlsplit(there)
        safe = new.scheme == "https" or (
            new.scheme == old.scheme == "http" and is_loopback(new.hostname)
        )
        safe = safe and new.scheme in WEB and "@" not in new.netloc
    except ValueError:
        safe = False
    if not safe:
        raise InputError(
            f"the server redirects to {without_secrets(there)[:200]!r}",
            where=without_secrets(url),
            hint="only https is followed",
        )
    return there


def _refusal(response: BaseHTTPResponse, url: str) -> Exception:
    """What an answer without a file means."""
    status = response.status
    if status in _PASSING:
        wait = _retry_after(response.headers.get("Retry-After", ""))
        return TransientError(f"the server answered {status}", wait)
    if status in (404, 410):
        return no_such_file(url)
    if status in (412, 416):
        return SourceChanged(where=url)
    kind, hint = InputError, "check the URL"
    if status in (401, 403):
        kind = AccessDenied
    if status in (401, 403) and is_hub(url):
        hint = (
            "`hf auth login` or set HF_TOKEN; a gated data set asks for consent on its page first"
        )
    elif status in (401, 403):
        hint = (
            "https is read without a login: use s3:// or gs:// with credentials, or download it; "
            "a site that shuts out who asks too much takes you back after a while"
        )
    return kind(f"the server answered {status}", where=without_secrets(url), hint=hint)


def _retry_after(text: str) -> float | None:
    """Seconds until the time that a server names, as seconds or as a date."""
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _cause(error: Exception) -> str:
    """urllib3's sentence, without the connection that it names first."""
    return without_secrets(_CONNECTION.sub("", str(error)))[:200]


def _proxy(url: str) -> str | None:
    """The proxy that HTTPS_PROXY names for `url`, unless NO_PROXY takes its host out."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if parts.scheme == "http" or proxy_bypass(parts.netloc):
        return None  # Plain http never leaves this machine.
    return getproxies().get("https")


@cache
def _pool(proxy: str | None) -> PoolManager:
    """Connections of this process, kept for the next request. Certificates are always verified."""
    import urllib3

    headers = {"User-Agent": f"ingot/{version('ingot')}", "Accept-Encoding": "identity"}
    if proxy is None:
        return urllib3.PoolManager(maxsize=CONNECTIONS, headers=headers)
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
    return urllib3.ProxyManager(
        f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        maxsize=CONNECTIONS,
        headers=headers,
        proxy_headers=urllib3.make_headers(proxy_basic_auth=login),
    )
