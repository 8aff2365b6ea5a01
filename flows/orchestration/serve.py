"""Our own Prefect server: `python -P -m flows.orchestration.serve PORT`, on loopback.

Prefect's server with its own authentication, behind four doors: `Loopback` lets no web page of
another origin in, `SignIn` nobody without the password, `Admission` refuses a run whose form cannot
run before it is queued, and `Retry` asks again where the database was locked.
"""

from __future__ import annotations

import os
import sys

from flows.orchestration.password import read_password
from flows.orchestration.server import HOST

GRACE_SECONDS = 3


def main(port: int) -> None:
    """Serve until told to end."""
    # Prefect reads its settings when it is imported; the password is in no command line.
    password = os.environ["PREFECT_SERVER_API_AUTH_STRING"] = read_password()
    import uvicorn
    from prefect.server.api.server import create_app

    from flows.orchestration.admission import Admission, Loopback, Retry, SignIn

    uvicorn.run(
        Loopback(SignIn(Admission(Retry(create_app(final=True))), password)),
        host=HOST,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
