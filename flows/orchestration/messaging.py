"""The message broker of our own server: Prefect's, in memory, but patient with its database.

Prefect names the module by `PREFECT_SERVER_EVENTS_MESSAGING_BROKER`. Its own broker tries a message
four times within milliseconds and then puts it aside. So while PostgreSQL is away, states of tasks
would be lost and triggers would see no heartbeats. Here a message waits until it is back.
"""

from __future__ import annotations

import asyncio
import logging
import time

from prefect.server.utilities.messaging import Message, MessageHandler
from prefect.server.utilities.messaging.memory import Consumer as MemoryConsumer
from prefect.server.utilities.messaging.memory import Publisher, break_topic, ephemeral_subscription

from flows.orchestration.database import is_away

__all__ = ["Consumer", "Publisher", "break_topic", "ephemeral_subscription"]

WAIT_SECONDS = 1.0
MOST_SECONDS = 3600.0
"""Then the message is put aside as Prefect does: a statement may time out for good."""

log = logging.getLogger(__name__)


class Consumer(MemoryConsumer):
    """Gives each message to its handler again while the database is away."""

    async def run(self, handler: MessageHandler) -> None:
        """Handle messages until the service ends."""
        await super().run(patient(handler))


def patient(
    handler: MessageHandler, wait: float = WAIT_SECONDS, most: float = MOST_SECONDS
) -> MessageHandler:
    """A handler that tries again every `wait` seconds, for `most`, while the database is away."""

    async def handle(message: Message) -> None:
        end = time.monotonic() + most
        while True:
            try:
                return await handler(message)
            except Exception as error:
                if not is_away(error) or time.monotonic() >= end:
                    raise
                log.debug("a message waits for the database: %s", error)
            await asyncio.sleep(wait)

    return handle
