"""The cluster inside the process, and the addresses of others."""

import os

import psutil
import pytest

from core.jobs.cluster import ClusterError, connect


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


@pytest.mark.parametrize("address", ["nowhere", "http://127.0.0.1:80", "127.0.0.1:0", " "])
def test_an_address_without_a_scheduler_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NORMLAB_SCHEDULER", address)
    monkeypatch.setattr("core.jobs.cluster.CONNECT_SECONDS", 0.2)
    with pytest.raises(ClusterError) as error:
        connect()
    assert str(error.value) == f"NORMLAB_SCHEDULER is {address!r}; no Dask scheduler answers there."
