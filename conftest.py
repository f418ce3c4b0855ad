"""For all tests: Hypothesis without deadlines, logging as before, and tests of services only where they can run.

`pytest worker` needs no service and no Django. `make test` sets the addresses of its PostgreSQL and Redis.
"""

import logging
import os
from collections.abc import Iterator

import hypothesis
import pytest

# A deadline for an example is meaningless on a shared machine.
usual = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("usual", usual)
hypothesis.settings.register_profile("fuzz", usual, max_examples=2000)  # 20 times Hypothesis' own number
hypothesis.settings.load_profile("usual")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A test that calls a command makes it log to the test's own stderr, which is closed when the test ends."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "SWEETSPOT_REDIS_URL" in os.environ:
        return
    for item in items:
        if item.get_closest_marker("service"):
            item.add_marker(pytest.mark.skip(reason="needs Redis: run it with make test"))
