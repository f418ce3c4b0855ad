"""sysbench fileio, 0.4, 0.5, 1.0 and 1.1.

Units: `Mb` and `Mb/sec` of 0.4 and `MB/s` of 0.5 are MiB (sb_fileio.c divides by 1024 * 1024), 1.0 prints MiB;
latencies are ms, in 0.4 ms or s as printed. 0.4 prints one rate for reads and writes together, so the rates of 0.4 are
computed from its exact numbers of operations, the block size and the time. Latencies of 1.0 include fsync. A mixed test
prints one latency for reads and writes together, so it is a measurement without a direction and without rates. 1.1
prints no time (file_report_cumulative).
"""

import re
from collections.abc import Mapping

from msgspec.structs import replace

from webapp.imports.measurement import Latency, Measurement, Point, with_repeats
from webapp.imports.values import MIB, MS, SECOND, ImportRefused, lines, number, size, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "sysbench"
_HEAD = re.compile(r"sysbench v? ?(\d[\w.-]{0,20})")
_BEGIN = "Running the test with following options:"
_MODES = {
    "sequential write (creation)": "write",
    "sequential rewrite": "write",
    "sequential read": "read",
    "random read": "randread",
    "random write": "randwrite",
    "random r/w": "randrw",
}
_LINES = {
    "threads": re.compile(r"Number of threads: (\d{1,9})"),
    "flags": re.compile(r"Extra file open flags: (.{0,60})"),
    "files": re.compile(r"(\d{1,9}) files, (\S{1,20}) each"),
    "block": re.compile(r"Block size (\S{1,20})"),
    "ratio": re.compile(r"Read/Write ratio for combined random IO test: ([\d.]{1,20})"),
    "io_mode": re.compile(r"Using (\w{1,30}) I/O mode"),
    "mode": re.compile(r"Doing (.{1,40}) test"),
    "operations": re.compile(r"Operations performed: +(\d{1,19}) reads?, (\d{1,19}) writes?, .*", re.IGNORECASE),
    "reads": re.compile(r"reads/s: +(\S{1,30})"),
    "writes": re.compile(r"writes/s: +(\S{1,30})"),
    "read": re.compile(r"read, MiB/s: +(\S{1,30})"),
    "written": re.compile(r"written, MiB/s: +(\S{1,30})"),
    "throughput of reads": re.compile(r"read: +IOPS=([\d.]{1,30}) ([\d.]{1,30}) MiB/s \(.{1,40}\)"),
    "throughput of writes": re.compile(r"write: +IOPS=([\d.]{1,30}) ([\d.]{1,30}) MiB/s \(.{1,40}\)"),
    "time": re.compile(r"total time: +([\d.]{1,30})s"),
    "min": re.compile(r"min: +([\d.]{1,30})(m?s)?"),
    "avg": re.compile(r"avg: +([\d.]{1,30})(m?s)?"),
    "max": re.compile(r"max: +([\d.]{1,30})(m?s)?"),
    "percentile": re.compile(r"(?:approx\. +)?([\d.]{1,10})(?:th)? percentile: +([\d.]{1,30})(m?s)?"),
}
_THROUGHPUTS = ("throughput of reads", "throughput of writes")
_INTERVAL = re.compile(r"\[ *(\d{1,9})s *\] reads: ([\d.]{1,20}) Mi?B/s,? writes: ([\d.]{1,20}) Mi?B/s.*")


def sniff(head: str) -> bool:
    return ("sysbench" in head or _BEGIN in head) and (
        "Extra file open flags" in head or ("files, " in head and "Block size" in head)
    )


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = [measured for version, run in _runs(lines(text)) for measured in _Run(version, run).measurements()]
    if not measurements:
        error = next((line for line in lines(text) if line.startswith("FATAL: ")), "")
        because = f"It ended with an error: {error[:200]}" if error else "Import the text of `sysbench fileio run`."
        raise ImportRefused(f"There is no result of sysbench fileio in this text. {because}")
    return with_repeats(measurements)


def _runs(text_lines: list[str]) -> list[tuple[str, list[str]]]:
    """The lines of each run; each begins with sysbench's name and version, which may be missing in a pasted text.
    Preparing files is not a run."""
    runs: list[tuple[str, list[str]]] = []
    for line in text_lines:
        if head := _HEAD.match(line.strip()):
            runs.append((head[1].rstrip("."), []))
        elif line.strip() == _BEGIN and (not runs or any(runs[-1][1])):
            runs.append(("", []))
        elif runs:
            runs[-1][1].append(line.strip())
    return [(version, run) for version, run in runs if any(_LINES["mode"].fullmatch(line) for line in run)]


class _Run:
    """One run of a test, by the names of _LINES."""

    def __init__(self, version: str, run: list[str]) -> None:
        self.version = version
        self.matches: dict[str, re.Match[str]] = {}
        self.intervals: list[re.Match[str]] = []
        for line in run:
            if interval := _INTERVAL.fullmatch(line):
                self.intervals.append(interval)
                continue
            for name, pattern in _LINES.items():
                if match := pattern.fullmatch(line):
                    self.matches.setdefault(name, match)
                    break

    def measurements(self) -> list[Measurement]:
        for needed in ("mode", "block", "time"):
            if needed not in self.matches and not (needed == "time" and self._has_throughputs()):
                raise ImportRefused(f"A run of sysbench has no line for its {needed}: the file is truncated.")
        results = [
            self._measured(direction, rates)
            for direction, rates in ((Direction.READ, self._rates(0)), (Direction.WRITE, self._rates(1)))
            if rates["iops"]
        ]
        if len(results) < 2:
            return results
        latency = results[0].latency
        of_both = replace(results[0], direction=None, iops=None, bytes_per_s=None, ios=None, bytes=None, series=())
        printed = latency.percentiles or latency.mean_ns is not None or latency.max_ns is not None
        return [*(replace(result, latency=Latency()) for result in results), *([of_both] if printed else [])]

    def _rates(self, place: int) -> dict[str, float | int | None]:
        """Of reads (0) or writes (1)."""
        if self._has_throughputs():
            throughput = self.matches[_THROUGHPUTS[place]]
            return {"iops": number(throughput[1], "IOPS"), "bytes_per_s": number(throughput[2], "MiB/s") * MIB}
        seconds = number(self.matches["time"][1], "time")
        if "operations" in self.matches:  # 0.4
            count, block = whole(self.matches["operations"][1 + place], "number of operations"), self._block()
            rate = count / seconds if seconds else 0.0
            return {"iops": rate, "bytes_per_s": rate * block, "ios": count, "bytes": count * block}
        ios, moved = ("reads", "writes")[place], ("read", "written")[place]
        if ios not in self.matches or moved not in self.matches:
            raise ImportRefused(f"A run of sysbench has no line `{ios}/s` or `{moved}, MiB/s`: the file is truncated.")
        rate, mib_per_s = number(self.matches[ios][1], ios), number(self.matches[moved][1], moved)
        return {"iops": rate, "bytes_per_s": mib_per_s * MIB}

    def _has_throughputs(self) -> bool:
        """As 1.1 prints them, without a time."""
        return all(name in self.matches for name in _THROUGHPUTS)

    def _block(self) -> int:
        return size(self.matches["block"][1], "block size")

    def _measured(self, direction: Direction, rates: Mapping[str, float | int | None]) -> Measurement:
        factors, other = sorted_factors(self._stated())
        return Measurement(
            tool=TOOL,
            tool_version=self.version,
            name=self.matches["mode"][1],
            direction=direction,
            factors=factors,
            other=other | self._other(),
            **rates,  # type: ignore[arg-type]
            runtime_ms=round(number(self.matches["time"][1]) * 1000) if "time" in self.matches else None,
            latency=self._latency(),
            series=self._series(2 if direction is Direction.READ else 3),
            notes=self._notes(),
        )

    def _stated(self) -> dict[str, Value]:
        stated: dict[str, Value] = {"block_size": self._block()}
        if (mode := self.matches["mode"][1]) in _MODES:
            stated["pattern"] = _MODES[mode]
        if "threads" in self.matches:
            stated["numjobs"] = whole(self.matches["threads"][1])
        if "files" in self.matches:
            stated |= {
                "files": whole(self.matches["files"][1]),
                "size": size(self.matches["files"][2], "file size"),
            }
        if "io_mode" in self.matches and self.matches["io_mode"][1] == "synchronous":
            stated["iodepth"] = 1
        if "flags" in self.matches:
            stated["direct"] = self.matches["flags"][1] in ("directio", "direct", "16384")  # O_DIRECT on x86
        percent = self._read_percent()
        if stated.get("pattern") == "randrw" and percent == round(percent):
            stated["read_percent"] = round(percent)
        return stated

    def _read_percent(self) -> float:
        """Of the ratio reads / writes, which sysbench prints with two decimals."""
        ratio = number(self.matches["ratio"][1]) if "ratio" in self.matches else 0
        return round(100 * ratio / (1 + ratio), 6)

    def _other(self) -> dict[str, str]:
        names = {"io_mode": "I/O mode", "flags": "file open flags", "ratio": "reads / writes"}
        if self.matches["mode"][1] != "random r/w" or self._read_percent() % 1 == 0:
            names.pop("ratio")
        return {label: self.matches[name][1] for name, label in names.items() if name in self.matches}

    def _latency(self) -> Latency:
        values = {name: self._ns(self.matches[name], 1) for name in ("min", "avg", "max") if name in self.matches}
        percentile = self.matches.get("percentile")
        return Latency(
            min_ns=values.get("min"),
            mean_ns=values.get("avg"),
            max_ns=values.get("max"),
            percentiles={number(percentile[1]): self._ns(percentile, 2)} if percentile else {},
            step_ns=max((_step_ns(self.matches[name], 1) for name in values), default=0),
            percentile_step_ns=_step_ns(percentile, 2) if percentile else 0,
        )

    def _ns(self, match: re.Match[str], place: int) -> float:
        """1.0 prints ms without a unit; 0.4 prints `0.38ms` or `0.0004s`."""
        return number(match[place], "latency") * _unit_ns(match, place)

    def _series(self, place: int) -> tuple[Point, ...]:
        points, before = [], 0
        for interval in self.intervals:
            end = int(interval[1]) * 1000
            if end > before:
                rate = number(interval[place], "rate of an interval") * MIB
                points.append(Point(offset_ms=end, length_ms=end - before, bytes_per_s=rate))
                before = end
        return tuple(points)

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if "operations" not in self.matches:
            notes.append("Latencies as printed, to a hundredth of a ms.")
        else:
            notes.append("Rates are the number of operations divided by the time.")
        if self.matches["mode"][1] == "random r/w":
            notes.append("The latency is of reads and writes together.")
        elif "write" in self.matches["mode"][1] and "operations" not in self.matches:
            notes.append("The latency is of writes and fsync together.")
        return tuple(notes)


def _unit_ns(match: re.Match[str], place: int) -> float:
    return SECOND if match[place + 1] == "s" else MS


def _step_ns(match: re.Match[str], place: int) -> float:
    """Of its last printed digit."""
    _, _, decimals = match[place].partition(".")
    return _unit_ns(match, place) * 10.0 ** -len(decimals)
