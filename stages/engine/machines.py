"""The machines of a run, and the network addresses at which their processes meet.

One machine keeps to its loopback. Of several, the one that holds the lease is machine 0: its
address is in the job that all read, and every machine binds Gloo and NCCL to the interface that
leads there.
"""

from __future__ import annotations

import re
import socket
import sys

from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError

LOOPBACK = "127.0.0.1"
_ADDRESS = r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?"


class Machines(Config):
    """How many machines train together, and how they find each other.

    They share the store's folder (or, of a remote store, the cache folder) under one path.
    """

    count: int = Field(
        default=1, ge=1, description="Machines; the ranks of the layout are divided evenly."
    )
    address: str | None = Field(
        default=None,
        pattern=f"^{_ADDRESS}$",
        description="HOST or HOST:PORT by which the others reach machine 0; by default the address "
        "of its name, and a free port.",
    )
    wait_seconds: float = Field(
        default=600.0, gt=0, description="Seconds to wait for machines that have not joined."
    )

    def meeting_point(self) -> tuple[str, int]:
        """Address and port of this machine, as machine 0. UsageError if they cannot be found."""
        if self.count == 1:
            return LOOPBACK, 0
        host, port = None, 0
        if self.address is not None:
            match = re.fullmatch(_ADDRESS, self.address)
            assert match is not None, "the pattern of the field"
            host, port = match[1].strip("[]"), int(match[2] or 0)
        address = _resolve(host) if host is not None else _own_address()
        return address, port or _free_port(address)


ONE_MACHINE = Machines()


def socket_interfaces(address: str, port: int) -> dict[str, str]:
    """Environment that binds Gloo and NCCL to the interface of this machine that leads there.

    UsageError if there is no route.
    """
    if address == LOOPBACK:
        name = "lo" if sys.platform == "linux" else "lo0"
    else:
        name = _interface_of(_route_to(address, port or 1))
    return dict.fromkeys(("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"), name)


def _resolve(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise UsageError(
            f"'{host}' is no address: {error.strerror or error}",
            where="execution.machines.address",
            hint="give an address of machine 0 that the others reach",
        ) from None


def _own_address() -> str:
    """The address of this machine's name, or of its default route where that is the loopback."""
    try:
        address = _resolve(socket.gethostname())
    except UsageError:
        address = LOOPBACK
    if not address.startswith("127.") and address != "::1":
        return address
    return _route_to("192.0.2.1", 1)  # RFC 5737: no such machine; connecting sends no packet.


def _route_to(address: str, port: int) -> str:
    """The address of this machine from which packets to `address` are sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise UsageError(
            f"no route to {address}: {error.strerror or error}",
            where="execution.machines.address",
            hint="give an address of machine 0 that the others reach",
        ) from None


def _interface_of(address: str) -> str:
    """The name of the network interface that has this address."""
    import psutil

    for name, addresses in psutil.net_if_addrs().items():
        if any(one.address.partition("%")[0] == address for one in addresses):
            return str(name)
    raise UsageError(f"no network interface has {address}", where="execution.machines.address")


def _free_port(address: str) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((address, 0))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise UsageError(
            f"{address} is no address of this machine: {error.strerror or error}",
            where="execution.machines.address",
            hint="start the run on the machine that has it",
        ) from None
