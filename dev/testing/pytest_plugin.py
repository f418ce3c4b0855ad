"""Loaded by `make test`: a Redis database for each pytest process, and how each test ended for the closing lines."""

import json
import os
from pathlib import Path

import hypothesis
import pytest

OUTCOMES_VARIABLE = "SWEETSPOT_TEST_OUTCOMES"


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
    path = os.environ.get(OUTCOMES_VARIABLE)
    if path and "PYTEST_XDIST_WORKER" not in os.environ:  # its processes end with a summary of their own part
        with Path(path).open("a") as file:
            file.write(json.dumps(_outcomes(terminalreporter.stats)) + "\n")


def _outcomes(stats: dict[str, list[pytest.TestReport | pytest.CollectReport]]) -> dict[str, object]:
    bad = [report for name in ("failed", "error") for report in stats.get(name, [])]
    return {
        "passed": [report.nodeid for report in stats.get("passed", [])],
        "skipped": [report.nodeid for report in stats.get("skipped", [])],
        "failed": {report.nodeid: report.longreprtext for report in bad if isinstance(report, pytest.TestReport)},
        "broken": [report.nodeid for report in bad if not isinstance(report, pytest.TestReport)],
    }
