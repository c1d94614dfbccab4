"""The cluster inside the process, and the addresses of others."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import dask
import psutil
import pytest

from core.jobs.cluster import DASK_SETTINGS, SCHEDULER_TOPIC, ClusterError, check_address, connect, lost_tasks, submit_in_turn

HUB = {  # what is usual where many share a cluster, and two mistakes
    "scheduler-address": "tls://scheduler.hub:8786",
    "distributed.comm.require-encryption": True,
    "distributed.comm.tls.ca-file": "/etc/dask/no-such.pem",
    "distributed.client.security-loader": "no_such_module.loader",
    "distributed.scheduler.preload": ["no_such_module"],
    "distributed.worker.preload": ["no_such_module"],
    "distributed.scheduler.idle-timeout": "1s",
    "temporary-directory": "/proc/no-such-folder",
    "distributed.comm.timeouts.connect": "soon",
    "distributed.admin.event-loop": "none",
}
gate, begun = threading.Event(), SimpleQueue[int]()  # of tasks, which Dask takes as functions of modules only


def wait(number: int) -> None:
    begun.put(number)
    assert gate.wait(60)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("NORMLAB_SCHEDULER", raising=False)
    gate.clear()
    client = connect()
    yield client
    gate.set()
    client.close()


def test_it_is_one_thread_that_the_network_cannot_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NORMLAB_SCHEDULER", raising=False)
    process = psutil.Process(os.getpid())
    before = {connection.laddr for connection in process.net_connections()}
    client = connect()
    try:
        assert list(client.nthreads().values()) == [1]
        assert client.submit(sum, [1, 2]).result() == 3
        opened = {connection.laddr for connection in process.net_connections() if connection.status == psutil.CONN_LISTEN} - before
        assert {address.ip for address in opened} <= {"127.0.0.1"}
    finally:
        client.close()


def test_what_dask_is_told_of_other_clusters_does_not_reach_the_own_one_and_is_as_before_when_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NORMLAB_SCHEDULER", raising=False)
    with dask.config.set(HUB):
        client = connect()
        assert client.submit(sum, [1, 2]).result() == 3
        assert client.cluster.scheduler.idle_timeout is None
        client.close()
        del client
        gc.collect()
        assert {name: dask.config.get(name) for name in HUB} == HUB


def test_a_named_scheduler_is_reached_as_dask_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMLAB_SCHEDULER", "tcp://127.0.0.1:1")
    with dask.config.set({"distributed.comm.require-encryption": True}), pytest.raises(ClusterError) as error:
        connect()
    assert str(error.value).startswith("NORMLAB_SCHEDULER is 'tcp://127.0.0.1:1'; Dask does not connect: encryption required")
    assert str(error.value).endswith(".")


def test_a_file_that_keeps_dask_from_being_imported_is_told_each_time(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("distributed: [")
    program = """
from core.jobs.queue import Jobs, JobsError
from core.runs.config import RunConfig
for _ in range(2):
    try:
        Jobs().submit(RunConfig(seed=123), "ann")
    except JobsError as error:
        print(error)
"""
    environment = os.environ | {"DASK_CONFIG": str(tmp_path), "NORMLAB_SCHEDULER": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    sentence = f"Dask cannot start here: A dask config file at '{tmp_path / 'broken.yaml'}' is malformed, original error message."
    assert (done.stdout.splitlines(), done.stderr) == ([sentence] * 2, "")


@pytest.mark.parametrize("address", ["nowhere", "http://127.0.0.1:80", "127.0.0.1:0", " "])
def test_an_address_without_a_scheduler_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NORMLAB_SCHEDULER", address)
    monkeypatch.setattr("core.jobs.cluster.CONNECT_SECONDS", 0.2)
    with pytest.raises(ClusterError) as error:
        connect()
    assert str(error.value) == f"NORMLAB_SCHEDULER is {address!r}; no Dask scheduler answers there."


def test_dask_knows_every_setting() -> None:
    import distributed  # noqa: F401 (which brings its settings)

    for name in DASK_SETTINGS:
        assert type(dask.config.get(name)) is type(DASK_SETTINGS[name])


def test_what_dask_serves_has_nothing_to_see(client: Any) -> None:
    ports = [client.cluster.scheduler.http_server.port, *(worker.http_server.port for worker in client.cluster.workers.values())]
    for port in ports:
        for path in ("", "status", "health", "info/main/workers.html", "metrics"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://127.0.0.1:{port}/{path}")


@pytest.mark.parametrize("address", ["http://127.0.0.1:80", "127.0.0.1", " ", "tcp://"])
def test_check_address_refuses_what_dask_cannot_read(address: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_address(address)


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "tcp://scheduler:8786", "tls://[::1]:8786"])
def test_check_address_lets_others_pass(address: str) -> None:
    check_address(address)


def test_submit_in_turn_begins_tasks_in_the_order_in_which_they_come(client: Any) -> None:
    futures = [submit_in_turn(client, wait, number, key=f"task-{9 - number}") for number in range(9)]
    gate.set()
    client.gather(futures)
    assert [begun.get() for _ in futures] == list(range(9))


def test_lost_tasks_are_those_of_a_worker_that_is_gone(client: Any) -> None:
    lost: list[str] = []
    told = threading.Event()

    def hear(event: tuple[float, dict[str, Any]]) -> None:
        if found := lost_tasks(event[1]):
            lost.extend(found)
            told.set()

    client.subscribe_topic(SCHEDULER_TOPIC, hear)
    future = submit_in_turn(client, wait, 1, key="computing")
    assert begun.get(timeout=60) == 1
    assert lost == []
    scheduler = client.cluster.scheduler
    client.cluster.sync(scheduler.remove_worker, address=next(iter(scheduler.workers)), stimulus_id="test")
    assert told.wait(60)
    assert lost == ["computing"]
    assert future.status == "pending"  # it is held until here: another worker would compute it
