"""Our own Prefect server: `python -P -m flows.orchestration.serve PORT`, on loopback.

Prefect's server as it is, behind two doors: `Loopback` lets no web page of another origin in, and
`Admission` refuses a run whose form cannot run before it is queued.
"""

from __future__ import annotations

import sys

from flows.orchestration.server import HOST

GRACE_SECONDS = 3


def main(port: int) -> None:
    """Serve until told to end."""
    import uvicorn
    from prefect.server.api.server import create_app

    from flows.orchestration.admission import Admission, Loopback

    uvicorn.run(
        Loopback(Admission(create_app(final=True))),
        host=HOST,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
