"""pytest plugin of `make test`: one Redis database for each pytest process, and a record of second tries."""

import os
from pathlib import Path

import hypothesis
import pytest

SECOND_TRIES_VARIABLE = "SWEETSPOT_SECOND_TRIES"
SECOND_TRY = "=== second try: "


def _select_redis_database() -> None:
    """Before Django reads its settings: processes of pytest-xdist would empty each other's queues."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if number:
        address, _, _ = os.environ["SWEETSPOT_REDIS_URL"].rpartition("/")
        os.environ["SWEETSPOT_REDIS_URL"] = f"{address}/{int(number) + 1}"


_select_redis_database()
# A deadline for an example is meaningless on a shared machine.
hypothesis.settings.register_profile(
    "shared machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared machine")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Append the first failure of every test that ran twice (pytest-rerunfailures) to a file."""
    path = os.environ.get(SECOND_TRIES_VARIABLE)
    reports = terminalreporter.stats.get("rerun", [])
    if path and reports and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(path).open("a") as file:
            file.writelines(f"{SECOND_TRY}{report.nodeid}\n{report.longreprtext}\n\n" for report in reports)
