"""elbencho's table on the console. Its result files are read by `elbencho`.

Units: `Throughput MiB/s` is 2^20 in whole MiB, `MB/s` (--base10) 10^6, each time has its unit; 1.x has `Elapsed ms`.
The values are those when the last thread finished. Phases of small files have no IOPS. Options come from the command,
in elbencho's own line or behind a prompt; without it, the place of a phase tells it from others. The console's form of
mixed phases was not available, so they are not read.
"""

import re
import shlex
from collections.abc import Iterator, Mapping

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import (
    MEGABYTE,
    MIB,
    MS,
    SECOND,
    US,
    ImportRefused,
    lines,
    number,
    size,
    sorted_factors,
    whole,
)
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "elbencho"
_HEAD = re.compile(r"OPERATION {1,20}RESULT TYPE {1,30}FIRST DONE {1,20}LAST DONE")
_COMMAND = re.compile(r'(?:^|[ "/])elbencho"? (.{0,2000})')
_ROW = re.compile(r"(?:([A-Z][A-Z0-9%]{1,20}) {1,20})?([A-Z][A-Za-z0-9/%() ]{1,30}?) {0,30}: {1,20}(\S.{0,300})")
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:([\d.]{1,12})s|(\d{1,9})ms|(\d{1,9})us)?")
_LATENCY = re.compile(r"\b(min|avg|max)=([\d.]{1,12})(us|ms|s)\b")
_TIMES = {"us": US, "ms": MS, "s": SECOND}
_NOT_READ = "Mixed phases on elbencho's console are not read. Import its --csvfile or --jsonfile."
_RATES = {"Throughput MiB/s": MIB, "Throughput MB/s": MEGABYTE}
_OPTIONS = {"-b": "block", "--block": "block", "-t": "threads", "--threads": "threads", "--iodepth": "iodepth",
            "-s": "size", "--size": "size", "--hosts": "hosts"}  # fmt: skip


def sniff(head: str) -> bool:
    return bool(_HEAD.search(head))


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    phases = list(_phases(lines(text)))
    mixed = any(operation.startswith("RWMIX") for operation, _, _ in phases)
    results = [
        _measured(operation, command, figures, place, (_NOT_READ,) if mixed else ())
        for place, (operation, command, figures) in enumerate(phases, start=1)
        if operation in ("READ", "WRITE") and ("IOPS" in figures or not figures.keys().isdisjoint(_RATES))
    ]
    if results:
        return with_repeats(results)
    raise ImportRefused(_NOT_READ if mixed else "No phase of this table of elbencho has read or written data.")


def _phases(text_lines: list[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Operation, options of the command, and the figures by their names."""
    operation, command, next_command, in_table = "", "", "", False
    figures: dict[str, str] = {}
    for line in (each.strip(" \t>#|") for each in text_lines):
        row = _ROW.fullmatch(line) if in_table else None
        if row is None or row[1]:
            if _moves_data(operation):
                yield operation, command, figures
            operation, figures = (row[1], {}) if row and row[1] else ("", {})
        if row and operation:
            figures[row[2].strip()] = row[3]
        elif _HEAD.match(line):
            command, next_command, in_table = next_command, "", True  # a command has one table
        elif match := _COMMAND.search(line):
            next_command, in_table = "" if match[1].endswith(("\\", "...")) else match[1], False  # cut off
        elif not line.startswith(("=", "---")):
            in_table = in_table and not line
    if _moves_data(operation):
        yield operation, command, figures


def _moves_data(operation: str) -> bool:
    return operation in ("READ", "WRITE") or operation.startswith("RWMIX")


def _measured(
    operation: str, command: str, figures: Mapping[str, str], place: int, notes: tuple[str, ...]
) -> Measurement:
    direction = Direction.READ if operation == "READ" else Direction.WRITE
    options = _arguments(command)
    factors, other = sorted_factors(_stated(direction, options))
    hosts = options.get("hosts")
    rate = next((number(_last(figures[name]), name) * unit for name, unit in _RATES.items() if name in figures), None)
    elapsed = figures.get("Elapsed time") or f"{_last(figures.get('Elapsed ms', '0'))}ms"
    return Measurement(
        tool=TOOL,
        name=operation,
        direction=direction,
        factors=factors,
        other=other
        | ({"hosts": hosts[:300]} if hosts else {})
        | ({} if options else {"place in the text": str(place)}),
        iops=number(_last(figures["IOPS"]), "IOPS") if "IOPS" in figures else None,
        bytes_per_s=rate,
        runtime_ms=_milliseconds(_last(elapsed)),
        latency=_latency(figures.get("IO latency", "")),
        metrics={"files_per_s": number(_last(figures["Files/s"]), "Files/s")} if "Files/s" in figures else {},
        notes=notes,
    )


def _last(figures: str) -> str:
    return figures.split()[-1]


def _arguments(command: str) -> dict[str, str]:
    """Options by name; those without a value have "". Empty for a command that a shell could not read."""
    try:
        words = shlex.split(command.replace('" "', " ").replace('"', " "))
    except ValueError:
        return {}
    options: dict[str, str] = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _OPTIONS:
            options[_OPTIONS[name]] = value if equals else words[place + 1] if place + 1 < len(words) else ""
        elif name in ("--direct", "--rand"):
            options[name] = ""
    return options


def _stated(direction: Direction, options: Mapping[str, str]) -> dict[str, Value]:
    if not options:
        return {}
    stated: dict[str, Value] = {
        "pattern": f"{'rand' if '--rand' in options else ''}{direction}", "direct": "--direct" in options,
    }  # fmt: skip
    sizes = {
        name: size(options[option], option)
        for name, option in (("block_size", "block"), ("size", "size"))
        if options.get(option)
    }
    if len(sizes) == 2:
        sizes["block_size"] = min(sizes.values())  # as elbencho does (ProgArgs.cpp)
    stated |= sizes
    for name, option in (("numjobs", "threads"), ("iodepth", "iodepth")):
        if options.get(option):
            stated[name] = whole(options[option], option)
    return stated


def _milliseconds(text: str) -> int | None:
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ImportRefused(f"The time `{text[:40]}` of elbencho is not understood.")
    hours, minutes, seconds, milliseconds, microseconds = match.groups()
    total = (int(hours or 0) * 60 + int(minutes or 0)) * 60_000 + float(seconds or 0) * 1000
    return round(total + int(milliseconds or 0) + int(microseconds or 0) / 1000) or None


def _latency(text: str) -> Latency:
    times = {name: number(value, "latency") * _TIMES[unit] for name, value, unit in _LATENCY.findall(text)}
    return Latency(min_ns=times.get("min"), mean_ns=times.get("avg"), max_ns=times.get("max"))
