"""What every test stands on: a cache of its own, two devices, properties that a busy machine cannot fail, and a run that is small."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from core.runs.config import RunConfig

os.environ["JAX_NUM_CPU_DEVICES"] = "2"  # several, whatever the machine has; also for processes that a test starts
settings.register_profile("lab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lab")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the runs of this machine's user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NORMLAB_CACHE", str(tmp_path_factory.mktemp("runs")))
        yield


@pytest.fixture
def tiny() -> RunConfig:
    return RunConfig(layers=2, width=16, heads=2, length=8, batch=4, steps=5)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the engine compile its programs as tests/quick.py says."""
    from quick import compile_quickly  # which imports JAX

    compile_quickly(monkeypatch)


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """An entry for each compilation by XLA from here on."""
    import jax  # which most tests do without

    seen: list[str] = []

    def listen(event: str, duration: float, **details: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)
