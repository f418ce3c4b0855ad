"""elbencho's result files: --csvfile (a head and a row for each phase) and --jsonfile (an object on each line).

Units: MiB/s is 2^20 in whole MiB, latencies are µs; the JSON has bytes/s. All JSON values are texts (elbencho's
Statistics.cpp, printPhaseResultsToStringVec and printPhaseResultsAsJSON; docs/csv_docs.md). The values are those when
the last thread finished. Phases without reads or writes of data (MKDIRS, STAT, RMFILES, …) are not imported.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import MIB, US, ImportRefused, fields, lines, number, rows, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "elbencho"
_NEEDED = {"operation", "iops [last]", "mib/s [last]"}
_MIX = "rwmix read "
_COMMAND = "command"


class _Done(msgspec.Struct, frozen=True):
    """Values of `last_done`; those of the reads of a mixed phase are inside."""

    elapsed_time_ms: str = ""
    iops: str = ""
    bytes_per_s: str = msgspec.field(name="bytes/s", default="")
    bytes: str = ""
    cpu: str = msgspec.field(name="cpu%", default="")
    rwmix_read: "_Done | None" = None
    latency: dict[str, dict[str, object]] = {}


class _Phase(msgspec.Struct, frozen=True):
    phase_type: str
    last_done: _Done
    config: dict[str, str] = {}
    label: str = ""
    iso_start_date: str = ""


def sniff(head: str) -> bool:
    first = head.lstrip().split("\n", 1)[0]
    return _is_head(first) or (first.startswith("{") and '"phase_type"' in first and '"last_done"' in head)


def _is_head(line: str) -> bool:
    return set(line.lower().strip().split(",")) >= _NEEDED


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    text_lines = [line for line in lines(text) if line.strip()]
    measurements = _json(text_lines) if text_lines and text_lines[0].lstrip().startswith("{") else _csv(text_lines)
    if not measurements:
        raise ImportRefused("No phase of this result of elbencho has read or written data.")
    return with_repeats(measurements)


def _csv(text_lines: list[str]) -> list[Measurement]:
    measurements: list[Measurement] = []
    names: list[str] = []
    for line in text_lines:
        if _is_head(line):
            names = [name.lower() for name in fields(line)]
        elif not names:
            raise ImportRefused("The head with elbencho's columns is missing.")
        else:
            row = _row(names, line)
            measurements += _of_row(row, "") + _of_row(row, _MIX)
    return measurements


def _row(names: list[str], line: str) -> Mapping[str, str]:
    """elbencho puts its arguments in quotes and separates them by spaces, `"elbencho" "--write" `, in the last column.
    That is not valid CSV, but no field contains a comma, so a row is valid without that column (Statistics.cpp,
    printPhaseResultsToStringVec)."""
    if names[-1:] == [_COMMAND]:
        before, _, command = line.rpartition(",")
        if command.lstrip().startswith('"'):
            return {**next(rows(names[:-1], [before])), _COMMAND: command}
    return next(rows(names, [line]))


def _of_row(row: Mapping[str, str], mix: str) -> list[Measurement]:
    config = {name: row.get(name.replace("_", " "), "") for name in ("threads", "block_size", "file_size", "hosts")}
    config |= {"direct_io": row.get("direct io", ""), "random_offsets": row.get("random", "")}
    config |= {"io_depth": row.get("io depth", ""), "version": row.get("version", "")}
    done = _Done(
        elapsed_time_ms=row.get("time ms [last]", ""),
        iops=row.get(f"{mix}iops [last]", ""),
        cpu=row.get("cpu% [last]", ""),
        latency={"IO": {f"{name}_us": row.get(f"{mix}io lat us [{name}]", "") for name in ("min", "avg", "max")}},
    )
    rate = row.get(f"{mix}mib/s [last]", "")
    bytes_per_s = number(rate, "MiB/s") * MIB if rate else None
    return _measured(row["operation"], config, done, bytes_per_s, row.get("iso date", ""), reads=bool(mix))


def _json(text_lines: list[str]) -> list[Measurement]:
    measurements: list[Measurement] = []
    for number_of_line, line in enumerate(text_lines, start=1):
        try:
            phase = msgspec.json.decode(line, type=_Phase)
        except RecursionError as error:
            raise ImportRefused("The JSON is nested too deeply.") from error
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ImportRefused(f"Object {number_of_line} of elbencho is damaged: {str(error)[:200]}.") from error
        measurements += _of_phase(phase, phase.last_done, reads=False)
        if inner := phase.last_done.rwmix_read:
            whole_phase = phase.last_done
            reads = msgspec.structs.replace(
                inner, latency=whole_phase.latency, elapsed_time_ms=whole_phase.elapsed_time_ms, cpu=whole_phase.cpu
            )
            measurements += _of_phase(phase, reads, reads=True)
    return measurements


def _of_phase(phase: _Phase, done: _Done, *, reads: bool) -> list[Measurement]:
    rate = number(done.bytes_per_s, "bytes/s") if done.bytes_per_s else None
    return _measured(phase.phase_type, phase.config, done, rate, phase.iso_start_date, reads=reads)


def _measured(
    operation: str, config: Mapping[str, str], done: _Done, bytes_per_s: float | None, when: str, *, reads: bool
) -> list[Measurement]:
    mixed = operation.startswith("RWMIX")
    iops = number(done.iops, "IOPS") if done.iops else None
    if not (iops or bytes_per_s) or not (mixed or operation in ("READ", "WRITE")):
        return []
    direction = Direction.READ if reads or operation == "READ" else Direction.WRITE
    factors, other = sorted_factors(_stated(operation, config))
    return [
        Measurement(
            tool=TOOL,
            tool_version=config.get("version", ""),
            name=operation[:200],
            direction=direction,
            factors=factors,
            other=other | ({"hosts": config["hosts"]} if config.get("hosts", "1") not in ("", "1") else {}),
            iops=iops or None,
            bytes_per_s=bytes_per_s,
            bytes=whole(done.bytes, "bytes") if done.bytes else None,
            runtime_ms=whole(done.elapsed_time_ms, "time") if done.elapsed_time_ms else None,
            latency=_latency(done.latency.get("IO", {}), reads=reads),
            metrics={"cpu_percent": number(done.cpu, "CPU%")} if done.cpu else {},
            measured_at=_time(when),
        )
    ]


def _stated(operation: str, config: Mapping[str, str]) -> dict[str, Value]:
    stated: dict[str, Value] = {}
    names = {"block_size": "block_size", "numjobs": "threads", "iodepth": "io_depth", "size": "file_size"}
    for name, key in names.items():
        if config.get(key):
            stated[name] = whole(config[key], key)
    random = config.get("random_offsets") in ("1", "true")
    if config.get("direct_io"):
        stated["direct"] = config["direct_io"] in ("1", "true")
    prefix = "rand" if random else ""
    mixed = "randrw" if random else "readwrite"
    stated["pattern"] = {"READ": f"{prefix}read", "WRITE": f"{prefix}write"}.get(operation, mixed)
    share = operation.removeprefix("RWMIX")
    if operation != share and share.isascii() and share.isdecimal() and len(share) <= 3:
        stated["read_percent"] = int(share)
    return stated


def _latency(stated: Mapping[str, object], *, reads: bool) -> Latency:
    """The JSON has the latencies of a mixed phase's reads inside those of its writes."""
    inside = stated.get("rwmix_read")
    values = inside if reads and isinstance(inside, dict) else stated
    times_us = {name: values.get(f"{name}_us") for name in ("min", "avg", "max")}
    ns = {name: number(str(text), "latency") * US for name, text in times_us.items() if text}
    return Latency(min_ns=ns.get("min"), mean_ns=ns.get("avg"), max_ns=ns.get("max"))


def _time(text: str) -> datetime | None:
    """None without a time zone: the host's is not known."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else None
