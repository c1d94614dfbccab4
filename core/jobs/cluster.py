"""What computes runs: one thread of this process, or the Dask cluster whose scheduler NORMLAB_SCHEDULER names."""

import contextlib
import logging
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

from core import host
from core.values import first_line

CONNECT_SECONDS = 5
SCHEDULER_TOPIC = "all"  # of the events in which a scheduler tells what becomes of its workers

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
    """A Dask client; closing it closes what it started. Raises ClusterError, whatever Dask makes of its files and the environment."""
    try:
        import distributed

        logging.getLogger(distributed.__name__).setLevel(logging.ERROR)
        return join(address) if (address := host.text("SCHEDULER")) else start()
    except ClusterError:
        raise
    except Exception as error:
        raise ClusterError(f"Dask cannot start here: {first_line(error)}.") from error


def start() -> Any:
    """The client of a cluster of its own, in this process: what Dask's files and the environment say is meant for other clusters."""
    import dask
    from distributed import Client

    with contextlib.ExitStack() as settings:
        settings.enter_context(dask.config.set(dask_defaults() | DASK_SETTINGS))
        client = Client(set_as_default=False, **LOCAL)
        weakref.finalize(client, settings.pop_all().close)  # a cluster at work reads settings, too
    return client


def join(address: str) -> Any:
    """The client of somebody's cluster, connected as Dask is told. Raises ClusterError."""
    import dask
    from distributed import Client

    try:
        check_address(address)
        with dask.config.set(DASK_SETTINGS):
            return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise ClusterError(f"NORMLAB_SCHEDULER is {address!r}; no Dask scheduler answers there.") from error
    except Exception as error:
        raise ClusterError(f"NORMLAB_SCHEDULER is {address!r}; Dask does not connect: {first_line(error)}.") from error


# What follows rests on how Dask works inside.


def dask_defaults() -> dict[str, Any]:
    """All settings as Dask ships them; what it knows besides is None."""
    from dask.config import config, defaults, merge

    return dict.fromkeys(config) | merge(*defaults)


def check_address(address: str) -> None:
    """Raises ValueError where Dask cannot read the address: a Client that finds this out itself is never quite closed."""
    from distributed.comm.addressing import get_address_host_port, normalize_address

    get_address_host_port(normalize_address(address), strict=True)


def submit_in_turn(client: Any, task: Callable[..., Any], *arguments: Any, key: str) -> Any:
    """The future of a task that begins after those submitted before: unless told so, Dask orders those of 100 ms by their keys."""
    return client.submit(task, *arguments, key=key, fifo_timeout=0)


def lost_tasks(message: Mapping[str, Any]) -> Collection[str]:
    """What a worker had to compute when it was lost, as keys, from an event of SCHEDULER_TOPIC; none if that tells something else."""
    return message["processing-tasks"] if message.get("action") == "remove-worker" else ()
