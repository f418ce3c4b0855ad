"""pytest plugin: how long each test waits, which is its wall time without CPU time.

`make test ARGS="worker -n 2 --waiting=FILE"` writes one line per test (wall seconds, CPU seconds, test) to FILE and
prints the modules that wait longest. CPU time includes child processes that have ended, not a server that still runs.
"""

import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

MODULES_SHOWN = 25
_phase_start = [0.0, 0.0]  # wall and CPU clock, in seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--waiting", metavar="FILE", help="write wall and CPU seconds of each test to FILE")


def _clocks() -> list[float]:
    """The CPU time of this process in nanoseconds' steps: a test of 0.3 s must not count as 0.29 s."""
    return [time.monotonic(), time.process_time() + sum(os.times()[2:4])]


def pytest_runtest_logstart() -> None:
    _phase_start[:] = _clocks()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the wall and CPU seconds of the phase (setup, call or teardown), for pytest-xdist's first process."""
    report = yield
    now = _clocks()
    vars(report)["seconds"] = [end - start for end, start in zip(now, _phase_start, strict=True)]
    _phase_start[:] = now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    path = terminalreporter.config.getoption("--waiting")
    if not path:
        return
    tests: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    modules: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            for sums in (tests[report.nodeid], modules[report.nodeid.partition("::")[0]]):
                sums[:] = [total + more for total, more in zip(sums, vars(report)["seconds"], strict=True)]
    Path(path).write_text("".join(f"{wall:.3f}\t{cpu:.3f}\t{test}\n" for test, (wall, cpu) in tests.items()))
    ranked = sorted(modules.items(), key=lambda module: module[1][1] - module[1][0])
    for module, (wall, cpu) in ranked[:MODULES_SHOWN]:
        terminalreporter.write_line(f"{wall - cpu:7.1f} s waiting {cpu:7.1f} s CPU  {module}")
    wall, cpu = (sum(sums[index] for sums in modules.values()) for index in (0, 1))
    terminalreporter.write_line(f"{wall - cpu:7.1f} s waiting {cpu:7.1f} s CPU  all modules")
