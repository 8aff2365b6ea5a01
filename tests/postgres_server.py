"""A real PostgreSQL on loopback with password authentication, for tests; and one that is too old.

Its programs never run as root: as root they run as the user `postgres`, or `nobody`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from ports import any_port

HOST = "127.0.0.1"


def programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs; None if there is none."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else []
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    return next((path for path in reversed(folders) if (path / "initdb").exists()), None)


class PostgresServer:
    """A cluster in a folder of its own, whose role `team` signs in with a password (SCRAM)."""

    user = "team"

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder, self.binaries, self.port = folder, binaries, any_port()
        self.password = secrets.token_urlsafe(24)
        self._login = self._unprivileged()
        self._run("initdb", "--pgdata", self._data, "--username=owner", "--auth=scram-sha-256",
                  "--encoding=UTF8", "--no-sync", "--pwfile", self._secret())  # fmt: skip
        self.start()
        self.sql(f"create role team login password '{self.password}'")

    def url(self, database: str, user: str = user) -> str:
        """Where a database lies, without the password."""
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def make_database(self, name: str) -> str:
        """Make a database of the role `team`; its URL."""
        self.sql(f"create database {name} owner team")
        return self.url(name)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = (
            f"-c listen_addresses={HOST} -c port={self.port} -c unix_socket_directories= "
            "-c fsync=off -c max_connections=60"
        )
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "--pgdata", self._data, "-w", "-l", log, "-o", options)

    def stop(self) -> None:
        """Stop the server at once: open connections are cut."""
        self._run("pg_ctl", "stop", "--pgdata", self._data, "-w", "-m", "immediate")

    def use_tls(self, certificate: Path, key: Path) -> None:
        """Let connections over TLS alone in; the server is started again."""
        self.stop()
        for path, name in ((certificate, "server.crt"), (key, "server.key")):
            copy = Path(self._data, name)
            shutil.copy(path, copy)
            copy.chmod(0o600)
            if self._login is not None:
                os.chown(copy, self._login.pw_uid, self._login.pw_gid)
        with open(Path(self._data, "postgresql.conf"), "a") as settings:
            settings.write("ssl = on\n")
        rules = "local all all scram-sha-256\nhostssl all all all scram-sha-256\n"
        Path(self._data, "pg_hba.conf").write_text(rules)
        self.start()

    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return (self.folder / "data" / "postmaster.pid").exists()

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What a statement of the cluster's owner answers, a line a row."""
        words = ("--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement)
        return self._run(
            "psql", *words, self.url(database, "owner"), PGPASSWORD=self.password
        ).strip()

    def password_file(self, path: Path, password: str | None = None) -> Path:
        """Write the password to a file of mode 0600."""
        path.touch(mode=0o600)
        path.write_text(f"{password or self.password}\n")
        return path

    def passfile(self, path: Path) -> Path:
        """Write a file for PGPASSFILE."""
        return self.password_file(path, f"{HOST}:{self.port}:*:{self.user}:{self.password}")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _secret(self) -> str:
        path = self.password_file(self.folder / "owner-password")
        if self._login is not None:
            os.chown(path, self._login.pw_uid, self._login.pw_gid)
        return str(path)

    def _unprivileged(self) -> pwd.struct_passwd | None:
        """The user that the server runs as if this process is root; the folder becomes theirs."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name: entry for entry in pwd.getpwall()}
        login = names.get("postgres") or names["nobody"]
        os.chown(self.folder, login.pw_uid, login.pw_gid)
        return login

    def _run(self, program: str, *words: str, **environment: str) -> str:
        login = self._login
        with tempfile.TemporaryFile("w+") as said:  # Not a pipe: the server would keep it open.
            done = subprocess.run(
                [str(self.binaries / program), *words],
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment},
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, timeout=120,
                cwd=self.folder,
                user=login.pw_uid if login else None,
                group=login.pw_gid if login else None,
                extra_groups=[] if login else None,
            )  # fmt: skip
            said.seek(0)
            text = said.read()
        assert done.returncode == 0, text
        return text


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; the test is skipped where PostgreSQL is not installed."""
    binaries = programs()
    if binaries is None:
        pytest.skip("needs PostgreSQL's initdb, pg_ctl and psql")
    # Not in pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="ingot-postgres-") as folder:
        server = PostgresServer(Path(folder), binaries)
        try:
            yield server
        finally:
            if server.is_running():
                server.stop()


@contextmanager
def old_server(version: str) -> Iterator[int]:
    """A port on which a program says that it is this version of PostgreSQL, and lets anybody in."""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    def answer(connection: socket.socket) -> None:
        with connection:
            if len(connection.recv(1000)) == 8:  # A request for TLS; the client begins again.
                connection.sendall(b"N")
                connection.recv(1000)
            connection.sendall(message(b"R", struct.pack("!i", 0)))
            for name, value in {"server_version": version, "client_encoding": "UTF8"}.items():
                connection.sendall(message(b"S", f"{name}\0{value}\0".encode()))
            connection.sendall(message(b"K", struct.pack("!ii", 1, 1)) + message(b"Z", b"I"))
            connection.recv(1000)  # What it asks, or its farewell.

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server((HOST, 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
