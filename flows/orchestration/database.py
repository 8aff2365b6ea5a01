"""The PostgreSQL database of our own Prefect server: its URL, its password, and whether it will do.

A URL that holds a password is refused: every user of the machine can read it in the process list.
The password lies in a file of mode 0600 of its own (`--password-file`), or in one that libpq reads
too (`PGPASSFILE`, `~/.pgpass`). The server reads it there; it stands in no command line, log,
setting, environment or file of the server.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration.local_state import read_private

if TYPE_CHECKING:
    import asyncpg

PORT = 5432
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
OLDEST = 14
"""Oldest version of PostgreSQL; the tests ran with 15."""
CONNECT_SECONDS = 10.0
PASSWORD_VARIABLE = "PGPASSWORD"
SQLITE = "sqlite"
"""In place of a URL: the server's own file."""
FORM = "as in postgresql://USER@HOST/NAME"


@dataclass(frozen=True)
class Database:
    """Where the database lies, and in which file its password does."""

    host: str
    port: int
    name: str
    user: str
    ssl_mode: str | None = None
    password_file: str | None = None
    """A file that holds the password alone."""
    passfile: str | None = None
    """A file of lines `host:port:database:user:password`."""

    @classmethod
    def parse(cls, url: str, password_file: Path | None) -> Database:
        """The database of `postgresql://[USER@]HOST[:PORT]/NAME[?sslmode=MODE]`.

        UsageError for another form, for a URL that holds a password, and where PGPASSWORD is set.
        """
        try:
            parts = urlsplit(url)
            host, port, name = parts.hostname, parts.port, unquote(parts.path.removeprefix("/"))
            query = parse_qs(parts.query, strict_parsing=bool(parts.query))
        except ValueError:
            raise UsageError("not the URL of a database", where="--database", hint=FORM) from None
        user = unquote(parts.username) if parts.username else os.environ.get("PGUSER")
        if parts.password is not None or {"password", "passfile"} & query.keys():
            raise UsageError(
                "the URL holds a password, which all users can read in the process list",
                where="--database",
                hint="write it to a file of mode 0600 and name that by --password-file or "
                "PGPASSFILE; choose another password, for this one was shown",
            )
        if parts.scheme not in ("postgresql", "postgres") or not host or not name or "/" in name:
            raise UsageError("not the URL of a database", where="--database", hint=FORM)
        modes = query.pop("sslmode", [None])
        if query or parts.fragment or modes[0] not in (None, *SSL_MODES):
            raise UsageError(
                "the URL of a database takes sslmode alone",
                where="--database",
                hint=f"one of {', '.join(SSL_MODES)}",
            )
        if PASSWORD_VARIABLE in os.environ:
            raise UsageError(
                "PGPASSWORD would stand in the environment of the server",
                hint="unset it; write the password to a file of mode 0600 and name that by "
                "--password-file or PGPASSFILE",
            )
        passfile = os.environ.get("PGPASSFILE")
        return cls(
            host,
            port or PORT,
            name,
            user or getpass.getuser(),
            modes[0],
            os.path.abspath(password_file) if password_file else None,
            os.path.abspath(passfile) if passfile and not password_file else None,
        )

    @property
    def url(self) -> str:
        """Where it lies, without a password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        mode = f"?sslmode={self.ssl_mode}" if self.ssl_mode else ""
        return f"postgresql://{quote(self.user)}@{host}:{self.port}/{quote(self.name)}{mode}"

    def environment(self) -> dict[str, str]:
        """What the server's process needs to connect; no secret."""
        url = self.url.partition("?")[0].replace("postgresql://", "postgresql+asyncpg://", 1)
        values = {
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": url,
            "PGPASSFILE": self.passfile,
            "PGSSLMODE": self.ssl_mode,
        }
        return {name: value for name, value in values.items() if value is not None}

    def read_password(self) -> str | None:
        """The password; None if asyncpg looks it up in the passfile itself.

        IngotError where others can read or write the file. asyncpg would only ignore it.
        """
        if self.password_file is not None:
            hint = "chmod 600 it, and choose another password if others may have read it"
            text = read_private(Path(self.password_file), "the database's password", hint)
            if not text or not text.isprintable():
                raise UsageError(
                    "expected the password alone, on one line", where=self.password_file
                )
            return text
        passfile = Path(self.passfile) if self.passfile else Path.home() / ".pgpass"
        if self.passfile or passfile.exists():
            read_private(passfile, "the database's password", "chmod 600 it")
        return None

    def check(self) -> None:
        """Connect once; UsageError or IngotError says why the server could not work with it."""
        asyncio.run(self._check())

    async def _check(self) -> None:
        import asyncpg

        try:
            connection = await asyncio.wait_for(
                asyncpg.connect(
                    host=self.host,
                    port=self.port,
                    user=self.user,
                    database=self.name,
                    password=self.read_password(),
                    passfile=self.passfile,
                    ssl=self.ssl_mode,
                    timeout=CONNECT_SECONDS,
                ),
                CONNECT_SECONDS + 1,
            )
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise self._explain(error) from None
        try:
            await self._check_server(connection)
        finally:
            with suppress(TimeoutError):
                await connection.close(timeout=CONNECT_SECONDS)

    async def _check_server(self, connection: asyncpg.Connection) -> None:
        version = connection.get_server_version()
        if version.major < OLDEST:
            release = f"{version.major}.{version.micro}"
            raise UsageError(
                f"PostgreSQL {release} is too old: {OLDEST} or newer is needed", where=self.url
            )
        may_create = await connection.fetchval(
            "select has_database_privilege(current_database(), 'create') "
            "and has_schema_privilege(current_schema(), 'create')"
        )
        if not may_create:
            raise UsageError(
                f"the role '{self.user}' may not make tables in the database '{self.name}'",
                where=self.url,
                hint=f"make it the owner: alter database {self.name} owner to {self.user}",
            )

    def _explain(self, error: BaseException) -> IngotError:
        """The message for an error of asyncpg while it connects."""
        import asyncpg

        if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
            if "pg_hba.conf" in str(error):  # Whatever the password is.
                return UsageError(
                    f"PostgreSQL lets this connection in by none of its rules: {error}",
                    where=self.url,
                    hint="add a rule to its pg_hba.conf; where that has `hostssl`, add "
                    "?sslmode=verify-full to the URL",
                )
            source = self.password_file or self.passfile or "~/.pgpass"
            return UsageError(
                f"PostgreSQL refuses the role '{self.user}': wrong password, or none for it",
                where=self.url,
                hint=f"the password was looked up in {source}; see --password-file",
            )
        if isinstance(error, asyncpg.InvalidCatalogNameError):
            return UsageError(
                f"there is no database '{self.name}'",
                where=self.url,
                hint=f"create database {self.name} owner {self.user}",
            )
        if isinstance(error, socket.gaierror):
            return UsageError(f"there is no host '{self.host}'", where=self.url)
        if isinstance(error, ssl.SSLCertVerificationError):
            return UsageError(
                f"the database's certificate does not prove its name: {error.verify_message}",
                where=self.url,
                hint="name the file of the certificate that signed it in PGSSLROOTCERT, and the "
                "host as its certificate does",
            )
        why = str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            why = f"no answer within {CONNECT_SECONDS:.0f} seconds"
        return IngotError(
            f"the database does not answer: {why}",
            where=self.url,
            hint="start PostgreSQL, or add --no-prefect",
        )


def is_away(error: BaseException | None) -> bool:
    """Whether an error says that PostgreSQL could not be reached, or ended the connection.

    The request or message that met it can be tried again: SQLAlchemy wraps errors of statements in
    `DBAPIError`; those of a connection that could not be made come as they are.
    """
    import asyncpg
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as PoolTimeout

    signs = (
        ConnectionError,
        socket.gaierror,
        TimeoutError,
        PoolTimeout,
        asyncpg.PostgresConnectionError,
        asyncpg.AdminShutdownError,
        asyncpg.CrashShutdownError,
        asyncpg.CannotConnectNowError,  # It is starting up.
        asyncpg.TooManyConnectionsError,
        asyncpg.InterfaceError,
    )
    if isinstance(error, BaseExceptionGroup):
        return all(is_away(one) for one in error.exceptions)
    while error is not None:
        if isinstance(error, signs) or (isinstance(error, DBAPIError) and _is_cut(error)):
            return True
        error = error.__cause__
    return False


def _is_cut(error: object) -> bool:
    return bool(getattr(error, "connection_invalidated", False))
