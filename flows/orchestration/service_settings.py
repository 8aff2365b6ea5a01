"""What our own Prefect server is started with: its database, how long it keeps runs, its address.

`ingot up` sets them. They are kept beside the password (`~/.ingot/server-settings.json`), so that
any command that has to start the server again starts the same one. They hold no secret.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration.database import SQLITE, Database
from flows.orchestration.local_state import home

KEEP_DAYS = 90
DATABASE_SECONDS = "60"
"""Prefect's own are 10 and 5 seconds: too short while training keeps every core busy."""
HEARTBEAT_SECONDS = "30"
"""Prefect's least. `ingot: mark dead runs` waits for three of them."""
EVENTS = {
    # One transaction for many events: SQLite has one writer at a time.
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "200",
    # An event is kept until the database is back, not dropped after five attempts.
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_MAX_FLUSH_RETRIES": "100000",
    "PREFECT_SERVER_EVENTS_MESSAGING_BROKER": "flows.orchestration.messaging",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_EVENT_RETENTION_OVERRIDES": json.dumps(
        {"prefect.flow-run.heartbeat": 24 * 3600}
    ),
}
_FILE = "server-settings.json"


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of our own server."""

    database: Database | None = None
    """None: an SQLite file in `~/.ingot/prefect`."""
    keep_days: int = KEEP_DAYS
    """Days for which ended flow runs are kept in the UI; 0 keeps all."""
    address: str | None = None
    """`https://HOST[:PORT]` of a reverse proxy in front of the server."""

    @property
    def place(self) -> str:
        """The database in words."""
        return self.database.url if self.database else f"{home() / 'prefect' / 'prefect.db'}"

    def environment(self) -> dict[str, str]:
        """Variables of the server's process; no secret is among them."""
        values = {
            "PREFECT_HOME": str(home() / "prefect"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_LOGGING_TO_API_ENABLED": "true",
            "PREFECT_UI_API_URL": "/api",
            # Prefect copies the UI into its own package, which only the first user could read.
            "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home() / "prefect" / "ui"),
            "PREFECT_SERVER_DATABASE_TIMEOUT": DATABASE_SECONDS,
            "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": DATABASE_SECONDS,
            "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
            **EVENTS,
            "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events",
        }
        if self.keep_days:
            values["PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED"] = "events,flow_runs"
            values["PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD"] = str(
                self.keep_days * 24 * 3600
            )
        if self.database is not None:
            values |= self.database.environment()
        return values

    def changed(
        self,
        database: str | None,
        password_file: Path | None,
        keep_days: int | None,
        address: str | None,
    ) -> ServiceSettings:
        """These settings with what the options of `ingot up` say; None leaves one as it is."""
        settings = self
        if password_file is not None and database in (None, SQLITE):
            raise UsageError("--password-file needs the URL of a database", hint="--database URL")
        if database == SQLITE:
            settings = replace(settings, database=None)
        elif database is not None:
            settings = replace(settings, database=Database.parse(database, password_file))
        if keep_days is not None:
            settings = replace(settings, keep_days=keep_days)
        if address is not None:
            settings = replace(settings, address=check_address(address))
        return settings


def check_address(address: str) -> str | None:
    """The origin of a proxy's URL; None for `none`. UsageError if it is not `https://HOST`."""
    if address == "none":
        return None
    try:
        parts = urlsplit(address)
        is_origin = parts.path in ("", "/") and not parts.query and parts.username is None
        if parts.scheme == "https" and parts.hostname and is_origin:
            return f"https://{parts.netloc}"
    except ValueError:
        pass
    raise UsageError(
        f"'{address}' is not the address of a proxy",
        where="--address",
        hint="https://HOST: the password passes through it, so http is refused",
    )


def load_settings() -> ServiceSettings:
    """The settings of the last `ingot up`; the defaults if there was none."""
    path = home() / _FILE
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        database = values.pop("database")
        return ServiceSettings(database=Database(**database) if database else None, **values)
    except FileNotFoundError:
        return ServiceSettings()
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise IngotError(
            f"the settings of the server cannot be read: {error}",
            where=str(path),
            hint="delete the file, and give them to `ingot up` again",
        ) from None


def save_settings(settings: ServiceSettings) -> None:
    """Keep the settings for the next start."""
    path = home() / _FILE
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(settings), indent=1), encoding="utf-8")
    draft.replace(path)
