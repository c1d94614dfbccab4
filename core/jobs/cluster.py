"""What computes runs: one thread of this process, or the Dask cluster whose scheduler NORMLAB_SCHEDULER names."""

import logging
from typing import Any

from core import host

CONNECT_SECONDS = 5

DASK_SETTINGS = {
    "distributed.admin.low-level-log-length": 100,  # events are kept that long, and an app may run for months
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.http.routes": [],  # Dask always serves HTTP; this leaves nothing to see there
    "distributed.worker.http.routes": [],
}
LOCAL = {
    "processes": False,
    "n_workers": 1,
    "threads_per_worker": 1,
    "memory_limit": 0,  # else Dask judges by the memory of the whole app, and pauses
    "silence_logs": logging.ERROR,
    "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},  # by default Dask listens to the network
    "worker_dashboard_address": "127.0.0.1:0",
}


class ClusterError(RuntimeError):
    """There is nothing to compute runs; the text is one sentence for the user."""


def connect() -> Any:
    """A Dask client; closing it closes what it started. Raises ClusterError."""
    import dask
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port, normalize_address

    address = host.text("SCHEDULER")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with dask.config.set(DASK_SETTINGS):
        try:
            if not address:
                return Client(set_as_default=False, **LOCAL)
            get_address_host_port(normalize_address(address), strict=True)  # a Client that cannot read its address is never quite closed
            return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            where = f"NORMLAB_SCHEDULER is {address!r}; no Dask scheduler answers there" if address else f"Dask cannot start here: {error}"
            raise ClusterError(f"{where}.") from error
