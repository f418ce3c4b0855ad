"""Loaded by `make test`: a Redis database for each pytest process, and the counts for the closing line."""

import json
import os
from pathlib import Path

import hypothesis
import pytest

COUNTS_VARIABLE = "SWEETSPOT_TEST_COUNTS"
COUNTED = ("passed", "failed", "error", "skipped")


def _own_redis_database() -> None:
    """Before Django's settings are read: pytest-xdist's processes would empty each other's queues."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if number:
        address, _, _ = os.environ["SWEETSPOT_REDIS_URL"].rpartition("/")
        os.environ["SWEETSPOT_REDIS_URL"] = f"{address}/{int(number) + 1}"


_own_redis_database()
# How long an example takes says nothing on a machine that others use too.
hypothesis.settings.register_profile(
    "shared machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared machine")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    path = os.environ.get(COUNTS_VARIABLE)
    if path and "PYTEST_XDIST_WORKER" not in os.environ:  # its processes end with a summary of their own part
        counts = {name: len(terminalreporter.stats.get(name, [])) for name in COUNTED}
        with Path(path).open("a") as file:
            file.write(json.dumps(counts) + "\n")
