"""The Prefect server, asked by commands that can do nothing without its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client

from artifacts_schema.errors import IngotError


@contextmanager
def asking() -> Iterator[SyncPrefectClient]:
    """A client of the server in use; IngotError where it is away, or too busy to answer."""
    with get_client(sync_client=True) as client:
        where = str(client.api_url)
        try:
            yield client
        except httpx.TimeoutException:
            raise IngotError(
                "the Prefect server did not answer in time",
                where=where,
                hint="it may be busy: run the same command again, what was done stands",
            ) from None
        except httpx.TransportError as error:
            raise IngotError(
                f"the Prefect server cannot be reached: {error}",
                where=where,
                hint="see `ingot up`",
            ) from None
