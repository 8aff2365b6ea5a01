"""Our own Prefect server: `python -P -m flows.orchestration.serve FILE`, on loopback.

Prefect's server with its own authentication, behind four doors: `Loopback` lets no web page of
another origin in, `SignIn` nobody without the password, `Admission` refuses a run whose form cannot
run before it is queued, and `Retry` asks again where the database was locked.
"""

from __future__ import annotations

import os
import socket
import sys

from flows.orchestration.password import read_password

GRACE_SECONDS = 3


def main(file: int) -> None:
    """Serve on the listening socket with this file number, until told to end."""
    os.umask(0o077)
    # Uvicorn closes its copy before its last requests end; ours holds the port until we have ended.
    listener = socket.socket(fileno=file)
    listener.set_inheritable(False)
    # Prefect reads its settings when it is imported; the password is in no command line.
    password = os.environ["PREFECT_SERVER_API_AUTH_STRING"] = read_password()
    import uvicorn
    from prefect.server.api.server import create_app

    from flows.orchestration.admission import Admission, Loopback, Retry, SignIn

    config = uvicorn.Config(
        Loopback(SignIn(Admission(Retry(create_app(final=True))), password)),
        log_level="warning",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener.dup()])


if __name__ == "__main__":
    main(int(sys.argv[1]))
