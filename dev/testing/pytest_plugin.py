"""pytest plugin of `make test`: Redis database of each process, order of the tests, second tries, seed of samples."""

import gc
import os
import secrets
from pathlib import Path

import pytest

SECOND_TRIES_VARIABLE = "SWEETSPOT_SECOND_TRIES"
SECOND_TRY = "=== second try: "
SAMPLE_SEED_VARIABLE = "SAMPLE_SEED"  # for webapp/tests/sampling.py
WAITING = ("pipeline", "browser")
LONG = ("pipeline", "browser", "service", "slow", "root")  # markers, the longest tests first


def _select_redis_database() -> None:
    """Before Django reads its settings: processes of pytest-xdist would empty each other's queues."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if number:
        address, _, _ = os.environ["SWEETSPOT_REDIS_URL"].rpartition("/")
        os.environ["SWEETSPOT_REDIS_URL"] = f"{address}/{int(number) + 1}"


_select_redis_database()
os.environ.setdefault(SAMPLE_SEED_VARIABLE, str(secrets.randbelow(1000)))  # processes of pytest-xdist inherit it
gc.disable()  # until the tests are collected


def pytest_configure(config: pytest.Config) -> None:
    """Register a fixture that replaces one of pytest-django. pytest-django must be registered first."""
    config.pluginmanager.import_plugin("dev.testing.template_database")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start long tests first, so that short ones fill the end; give tests that wait a second try.

    Tests of whole systems and in a browser get the second try, and only from `make test` without arguments, see
    docs/understanding/decisions/0011.
    """
    items.sort(key=_order)
    for item in items:
        waits = any(item.get_closest_marker(name) for name in WAITING)
        if SECOND_TRIES_VARIABLE in os.environ and waits:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage less often, and without the objects of the code and the tests.

    Garbage collection took a tenth of the time.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def _rank(item: pytest.Item) -> int:
    return next((number for number, name in enumerate(LONG) if item.get_closest_marker(name)), len(LONG))


def _order(item: pytest.Item) -> tuple[int, bool, bool]:
    """By marker, then those of the worker, which wait for fio, those of all pages, and those of single apps."""
    return _rank(item), item.nodeid.startswith("webapp"), not item.nodeid.startswith("webapp/tests")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seed; append the first failure of every test that ran twice (pytest-rerunfailures) to a file."""
    seed = os.environ[SAMPLE_SEED_VARIABLE]
    terminalreporter.write_line(
        f"{SAMPLE_SEED_VARIABLE}={seed} chooses the same part of the cases again (webapp/tests/sampling.py)."
    )
    path = os.environ.get(SECOND_TRIES_VARIABLE)
    reports = terminalreporter.stats.get("rerun", [])
    if path and reports and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(path).open("a") as file:
            file.writelines(f"{SECOND_TRY}{report.nodeid}\n{report.longreprtext}\n\n" for report in reports)
