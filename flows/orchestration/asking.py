"""The Prefect server, asked by commands that can do nothing without its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client

from artifacts_schema.errors import IngotError

BUSY = (429, 502, 503, 504)
AGAIN = "it may be busy: run the same command again, what was done stands"


@contextmanager
def asking() -> Iterator[SyncPrefectClient]:
    """A client of the server in use; IngotError where it is away, refuses, or is too busy."""
    with get_client(sync_client=True) as client:
        where = str(client.api_url)
        try:
            yield client
        except httpx.TimeoutException:
            raise IngotError(
                "the Prefect server did not answer in time", where=where, hint=AGAIN
            ) from None
        except httpx.TransportError as error:
            raise IngotError(
                f"the Prefect server cannot be reached: {error}",
                where=where,
                hint="see `ingot up`",
            ) from None
        except httpx.HTTPStatusError as error:
            raise IngotError(refusal(error), where=where, hint=_advice(error)) from None


def refusal(error: httpx.HTTPStatusError) -> str:
    """What a server answered instead of doing what it was asked."""
    reply = error.response
    return f"the Prefect server answers {reply.status_code} {reply.reason_phrase}"


def _advice(error: httpx.HTTPStatusError) -> str:
    code = error.response.status_code
    if code in BUSY:
        return AGAIN
    if code in (401, 403):
        return "check PREFECT_API_KEY or PREFECT_API_AUTH_STRING"
    return "its log says more"
