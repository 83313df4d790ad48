"""Real Reverb servers inside the test process; whatever a test starts is stopped after it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import reverb

from reverb_server import tables
from reverb_server.rate_limit import RateLimit
from tests.reverb_server.episodes import layout_of

NO_LIMIT = RateLimit(samples_per_insert=1.0, warmup_steps=1, error_buffer=1e9)


@pytest.fixture
def make_tables() -> Callable[..., list[reverb.Table]]:
    """The tables of a run, small and without a limit unless told otherwise."""

    def make(n_step: int = 1, transitions: int = 1, **overrides: Any) -> list[reverb.Table]:
        options: dict[str, Any] = {
            "layout": layout_of(n_step, transitions),
            "capacity_steps": 1000,
            "rate_limit": NO_LIMIT,
            "prioritization": None,
        }
        return tables.make_tables(**options | overrides)

    return make


@pytest.fixture
def make_server(
    make_tables: Callable[..., list[reverb.Table]],
) -> Iterator[Callable[..., reverb.Server]]:
    """Starts servers; options are those of `make_tables`, and `port`."""
    servers = []

    def make(port: int | None = None, **options: Any) -> reverb.Server:
        server = reverb.Server(make_tables(**options), port=port)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def connect() -> Callable[[reverb.Server], reverb.Client]:
    """A client of a server of this process."""
    return lambda server: reverb.Client(f"localhost:{server.port}")
