"""The PostgreSQL of the server: URLs and passwords that are refused, and what a check says."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner
from ports import any_port
from postgres_server import HOST, old_server

from artifacts_schema.errors import IngotError, UsageError
from flows.cli.main import main
from flows.orchestration.database import Database, is_away
from flows.orchestration.service_settings import ServiceSettings, load_settings, save_settings


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))  # No ~/.pgpass.
    for name in ("PGPASSFILE", "PGPASSWORD", "PGUSER", "PREFECT_API_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def database(postgres):
    """The URL of an empty database, once for all tests of this file."""
    if not postgres.sql("select 1 from pg_database where datname = 'ours'"):
        postgres.make_database("ours")
    return postgres.url("ours")


def test_a_url_is_taken_apart_and_put_together_without_a_secret(monkeypatch, tmp_path):
    database = Database.parse("postgres://team@db.example:5433/a%20b?sslmode=verify-full", None)
    assert (database.user, database.host, database.port) == ("team", "db.example", 5433)
    assert database.url == "postgresql://team@db.example:5433/a%20b?sslmode=verify-full"
    assert database.environment() == {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql+asyncpg://team@db.example:5433/a%20b",
        "PGSSLMODE": "verify-full",
    }
    monkeypatch.setenv("PGUSER", "other")
    monkeypatch.setenv("PGPASSFILE", "passes")
    monkeypatch.chdir(tmp_path)
    database = Database.parse("postgresql://[::1]/x", None)
    assert (database.user, database.url) == ("other", "postgresql://other@[::1]:5432/x")
    assert database.passfile == str(tmp_path / "passes")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://team:hunter2@h/n",
        "postgresql://team:@h/n",
        "postgresql://h/n?password=hunter2",
        "postgresql://h/n?user=x&passfile=y",
    ],
)
def test_a_url_with_a_password_is_refused_and_not_repeated(url):
    done = CliRunner().invoke(main, ["up", "--database", url])
    assert done.exit_code == 2
    assert "the URL holds a password" in done.output
    assert "--password-file" in done.output
    assert "hunter2" not in done.output


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/n", "postgresql://h", "postgresql:///n", "postgresql://h/n/m", "h/n",
        "postgresql://h:x/n", "postgresql://h/n?connect_timeout=3", "postgresql://[h/n",
        "postgresql://h/n?sslmode=perhaps", "postgresql://h/n#x",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_database_is_refused(url):
    with pytest.raises(UsageError) as caught:
        Database.parse(url, None)
    assert caught.value.where == "--database"


def test_a_password_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    with pytest.raises(UsageError, match="PGPASSWORD"):
        Database.parse("postgresql://h/n", None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
@pytest.mark.parametrize("kind", ["password file", "passfile"])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path, monkeypatch, mode, kind):
    file = tmp_path / "secret"
    file.write_text("hunter2\n")
    file.chmod(mode)
    if kind == "passfile":
        monkeypatch.setenv("PGPASSFILE", str(file))
    database = Database.parse(f"postgresql://{HOST}:1/n", file if kind != "passfile" else None)
    with pytest.raises(IngotError, match="others can read or write the database's password") as e:
        database.check()
    assert e.value.where == str(file)


def test_both_kinds_of_file_sign_in(postgres, database, tmp_path, monkeypatch):
    Database.parse(database, postgres.password_file(tmp_path / "alone")).check()
    with pytest.raises(UsageError, match="wrong password, or none"):
        Database.parse(database, None).check()
    monkeypatch.setenv("PGPASSFILE", str(postgres.passfile(tmp_path / "lines")))
    Database.parse(database, None).check()


def test_each_obstacle_is_one_message(postgres, database, tmp_path):
    file = postgres.password_file(tmp_path / "alone")
    wrong = postgres.password_file(tmp_path / "wrong", "hunter2")
    closed = f"postgresql://team@{HOST}:{any_port()}/ours"
    for url, secret, message, kind in [
        (database, wrong, "PostgreSQL refuses the role 'team'", UsageError),
        (postgres.url("nix"), file, "there is no database 'nix'", UsageError),
        ("postgresql://team@h.invalid/ours", file, "there is no host 'h.invalid'", UsageError),
        (postgres.url("postgres"), file, "may not make tables", UsageError),
        (closed, file, "the database does not answer", IngotError),
        (f"{database}?sslmode=require", file, "rejected SSL", IngotError),
    ]:
        with pytest.raises(kind, match=message) as caught:
            Database.parse(url, secret).check()
        assert type(caught.value) is kind
        assert str(caught.value).count("\n") == 0
        assert caught.value.where == Database.parse(url, secret).url


def test_a_server_that_is_too_old_is_named_with_what_is_needed():
    with old_server("12.3") as port, pytest.raises(UsageError, match=r"PostgreSQL 12\.3 .* 14"):
        Database.parse(f"postgresql://team@{HOST}:{port}/n", None).check()


def test_the_command_says_it_in_one_line_and_starts_nothing(database, tmp_path):
    words = ["up", "--database", database, "--store", str(tmp_path / "store")]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.output.count("\n")) == (2, 1), done.output
    assert "PostgreSQL refuses the role 'team'" in done.output
    assert not (tmp_path / "home" / "prefect.json").exists()
    assert load_settings() == ServiceSettings(), "settings that do not work are not kept"


def test_settings_are_kept_and_changed_one_by_one(tmp_path):
    first = ServiceSettings().changed("postgresql://team@h/n", tmp_path / "p", 30, None)
    save_settings(first)
    assert load_settings() == first
    assert first.database.password_file == str(tmp_path / "p")
    second = load_settings().changed(None, None, 0, "https://ingot.example/")
    assert (second.database, second.keep_days) == (first.database, 0)
    assert second.address == "https://ingot.example"
    third = second.changed("sqlite", None, None, "none")
    assert (third.database, third.keep_days, third.address) == (None, 0, None)
    with pytest.raises(UsageError, match="--password-file needs"):
        third.changed(None, tmp_path / "p", None, None)
    for address in ("http://ingot.example", "https://u@h", "https://h/path", "https://[", "h"):
        with pytest.raises(UsageError, match="not the address of a proxy"):
            third.changed(None, None, None, address)
    (tmp_path / "home" / "server-settings.json").write_text("{")
    with pytest.raises(IngotError, match="cannot be read"):
        load_settings()


def test_analytics_are_off_and_old_runs_go_unless_all_are_kept():
    usual = ServiceSettings().environment()
    assert usual["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert usual["PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED"] == "events,flow_runs"
    assert usual["PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD"] == str(90 * 86400)
    forever = ServiceSettings(keep_days=0).environment()
    assert forever["PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED"] == "events"


def test_what_means_that_the_database_is_away():
    import asyncpg
    import sqlalchemy.exc as sa

    refused = ConnectionRefusedError(111, "refused")
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = refused
    for error in (
        refused,
        wrapped,
        TimeoutError(),
        asyncpg.CannotConnectNowError("starting up"),
        asyncpg.ConnectionDoesNotExistError("closed"),
        sa.DBAPIError("select", None, Exception(), connection_invalidated=True),
        ExceptionGroup("two", [refused, TimeoutError()]),
    ):
        assert is_away(error), repr(error)
    for error in (
        None,
        ValueError(),
        FileNotFoundError(),
        asyncpg.UniqueViolationError("twice"),
        sa.DBAPIError("select", None, Exception()),
        ExceptionGroup("two", [refused, ValueError()]),
    ):
        assert not is_away(error), repr(error)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as a second user of the machine")
def test_a_file_of_another_user_is_refused(tmp_path):
    file = tmp_path / "secret"
    file.write_text("hunter2\n")
    file.chmod(0o600)
    os.chown(file, 65534, 65534)
    with pytest.raises(IngotError, match="others can read or write"):
        Database.parse(f"postgresql://{HOST}:1/n", file).check()
