"""Series of I/Os per second, read from files of several kinds.

*.txt                recorded series, as in worker/stop_rules/tests/data
*_iops.<job>.log     logs of fio with windows (log_avg_msec), summed over the jobs of a point
*.json               results of fio without logs: a series with their mean and spread; the order is simulated
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from worker.stop_rules.tests.recorded import read_series

SIMULATED_S = 60
CORRELATED = 0.5  # of neighbouring seconds in simulated series, about as in the recorded ones

Recorded = dict[str, list[float]]


def series_at(path: Path) -> dict[str, Recorded]:
    """All series below a path, by source: the file, or the folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found: dict[str, Recorded] = defaultdict(dict)
    for file in (each for each in files if each.suffix == ".txt"):
        found[file.stem] |= read_series(file)
    logged = {file.parent for file in files if file.suffix == ".log"}
    for file in (each for each in files if each.suffix == ".json" and each.parent not in logged):
        for name, rates in _simulated(file):
            found[f"{file.parent.name} (simulated)"][name] = rates
    logs: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for file in files:
        if match := re.fullmatch(r"(.+)_iops\.\d+\.log", file.name):
            logs[file.parent.name, match[1]].append(file)
    for (folder, name), parts in logs.items():
        found[folder][name] = _summed(parts)
    return dict(found)


def _summed(logs: list[Path]) -> list[float]:
    """The sum of all jobs and directions, for each second that all of its windows cover."""
    rows = [[line.split(",")[:3] for line in log.read_text().splitlines()] for log in logs]
    window_ms = round(int(rows[0][-1][0]) / len(rows[0]))
    total: dict[int, float] = defaultdict(float)
    for row in (row for job in rows for row in job):
        total[round(int(row[0]) / window_ms)] += float(row[1])
    each = round(1000 / window_ms)
    return [fmean(total[at] for at in range(n * each + 1, (n + 1) * each + 1)) for n in range(max(total) // each)]


def _simulated(file: Path) -> Iterator[tuple[str, list[float]]]:
    """A first-order autoregression around the mean."""
    for job in json.loads(file.read_text()).get("jobs", []):
        for direction in ("read", "write"):
            flow: dict[str, Any] = job.get(direction, {})
            if not flow.get("iops") or not flow.get("bw_mean"):
                continue
            chance, wave, rates = random.Random(f"{file.name}{direction}"), 0.0, []  # noqa: S311 - noise
            for _ in range(SIMULATED_S):
                wave = CORRELATED * wave + sqrt(1 - CORRELATED**2) * chance.gauss(0, flow["bw_dev"] / flow["bw_mean"])
                rates.append(max(0.0, flow["iops"] * (1 + wave)))
            yield f"{file.stem} {direction}", rates
