"""DiskSpd's text: the totals of its tables "Read IO" and "Write IO".

Units: bytes and numbers of I/Os in full, MiB/s, latencies and percentiles in ms. The rates are computed from the counts
and the test time, as DiskSpd does (ResultParser.cpp, _PrintSection). The parameters of a run with several targets are
not those of each I/O, so they are left out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypedDict

import msgspec

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import MS, ImportRefused, lines, number, size, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "DiskSpd"
_COLUMNS = "thread |       bytes     |     I/Os     |"
_TITLE = re.compile(r"\s{0,40}(Total|Read|Write) IO\s*")
_TIME = re.compile(r"actual test time:\s{0,20}([\d.]{1,20})s")
_PARAMETERS = {
    "block_size": re.compile(r"block size: (\d{1,15} ?(?:[KMG]i?B)?)"),
    "iodepth": re.compile(r"number of outstanding I/O operations(?: per thread)?: (\d{1,9})"),
    "threads": re.compile(r"threads per file: (\d{1,9})"),
    "order": re.compile(r"using (random|sequential|interlocked sequential) I/O"),
    "share": re.compile(r"performing mix test \((?:read/write|write/read) ratio: (\d{1,3})/(\d{1,3})\)"),
    "cache": re.compile(r"(software cache disabled|using hardware and software caches)"),
}
_PERCENTILE = re.compile(
    r"\s{0,20}(?:(\d{1,2})(?:st|nd|rd|th)|(\d)-nines) \| {0,12}([\d.]{1,15}|N/A) \| {0,12}([\d.]{1,15}|N/A) \|"
)


class Counts(TypedDict):
    iops: float
    bytes_per_s: float
    ios: int
    bytes: int
    runtime_ms: int


class _Run(msgspec.Struct):
    seconds: str = ""
    paths: int = 0
    parameters: dict[str, re.Match[str]] = {}
    totals: dict[str, dict[str, str]] = {}  # of Read and Write: column -> value
    percentiles: dict[str, dict[float, float]] = {}


def sniff(head: str) -> bool:
    return _COLUMNS in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = [measured for run in _runs(lines(text)) for measured in _of_run(run)]
    if not measurements:
        raise ImportRefused("DiskSpd's tables “Read IO” and “Write IO” with their totals are missing or have no I/O.")
    return with_repeats(measurements)


def _runs(text_lines: list[str]) -> list[_Run]:
    runs = [_Run()]
    section, columns = "", [""]
    for line in text_lines:
        run = runs[-1]
        if title := _TITLE.fullmatch(line):
            section = title[1]
        elif time := _TIME.search(line):
            if run.totals:
                runs.append(run := _Run())
            run.seconds = time[1]
        elif _COLUMNS in line:
            columns = [name.strip() for name in line.split("|")]
        elif line.lstrip().startswith("total:") and "|" in line and section in ("Read", "Write"):
            values = line.partition("total:")[2].split("|")
            run.totals[section] = dict(zip(columns[1:], (value.strip() for value in values), strict=False))
        elif row := _PERCENTILE.match(line):
            percent = float(row[1]) if row[1] else 100 - 100 * 10.0 ** -int(row[2])
            for name, value in (("Read", row[3]), ("Write", row[4])):
                if value != "N/A":
                    run.percentiles.setdefault(name, {})[round(percent, 9)] = number(value, "percentile") * MS
        else:
            runs[-1] = _with_parameter(run, line)
    return runs


def _with_parameter(run: _Run, line: str) -> _Run:
    is_path = line.lstrip().startswith("path: ")
    if is_path and run.totals:  # the parameters of the next run
        run = _Run()
    run.paths += is_path
    for name, pattern in _PARAMETERS.items():
        if match := pattern.search(line):
            run.parameters.setdefault(name, match)
    return run


def _of_run(run: _Run) -> Iterator[Measurement]:
    for name, direction in (("Read", Direction.READ), ("Write", Direction.WRITE)):
        values = run.totals.get(name, {})
        ios = whole(values.get("I/Os", "0"), "number of I/Os")
        rates = counts(ios, whole(values.get("bytes", "0"), "number of bytes"), run.seconds)
        if not rates:
            continue
        factors, other = sorted_factors(_stated(run)) if run.paths <= 1 else ({}, {})
        mean = number(values["AvgLat"], "latency") * MS if values.get("AvgLat") else None
        yield Measurement(
            tool=TOOL,
            name=f"{name} IO",
            direction=direction,
            factors=factors,
            other=other,
            latency=Latency(
                mean_ns=mean, percentiles=run.percentiles.get(name, {}), step_ns=mean.step if mean is not None else 0,
                percentile_step_ns=MS / 1000,
            ),
            **rates,
        )  # fmt: skip


def counts(ios: int, moved: int, test_time: str) -> Counts | None:
    """The rates of a direction from its counts and the seconds of the test; None without I/Os. Raises ImportRefused."""
    if not ios:
        return None
    seconds = float(number(test_time, "test time"))
    if not seconds:
        raise ImportRefused("DiskSpd took 0 seconds, so there is no rate.")
    return {
        "iops": ios / seconds,
        "bytes_per_s": moved / seconds,
        "ios": ios,
        "bytes": moved,
        "runtime_ms": round(seconds * 1000),
    }


def _stated(run: _Run) -> dict[str, Value]:
    parameters: Mapping[str, re.Match[str]] = run.parameters
    both = len([name for name in ("Read", "Write") if run.totals.get(name, {}).get("I/Os", "0") != "0"]) > 1
    stated: dict[str, Value] = {}
    if "order" in parameters:
        random = parameters["order"][1] == "random"
        direction = "read" if run.totals.get("Read", {}).get("I/Os", "0") != "0" else "write"
        stated["pattern"] = ("rand" if random else "") + (("rw" if random else "readwrite") if both else direction)
    if "block_size" in parameters:
        stated["block_size"] = size(parameters["block_size"][1], "block size")
    if "iodepth" in parameters:
        stated["iodepth"] = whole(parameters["iodepth"][1])
    if "threads" in parameters:
        stated["numjobs"] = whole(parameters["threads"][1])
    if both and "share" in parameters and "read/write" in parameters["share"][0]:
        stated["read_percent"] = whole(parameters["share"][1])
    if "cache" in parameters:
        stated["direct"] = parameters["cache"][1] == "software cache disabled"
    return stated
