"""dd: GNU, busybox and BSD.

Only bytes and seconds are used, because the printed rate has two or three digits (GNU: MB is 10^6 bytes, MiB is
2^20; coreutils' dd.c, print_stats). dd does not print what it did, so the command above the output is needed:
`if=` a device or file and `of=/dev/null` is a read, `if=/dev/zero` is a write, file to file counts as a write.
`status=progress` prints the same line each second. Only the one after the numbers of records is a result.
"""

import re
from collections.abc import Iterator

from webapp.imports.errors import ImportRefused
from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "dd"
_COMMAND = re.compile(r"(?:.{0,200}[\s#$%>/]|)dd(\s+[a-z]+=.{1,2000})")
_OPERAND = re.compile(r"\s([a-z]{1,10})=(\S{1,1000})")
_RECORDS = re.compile(r"\s*(\d{1,19})\+(\d{1,19}) records (in|out)\s*")
_GNU = re.compile(
    r"\s*(\d{1,19}) bytes?(?: \([^()]{1,60}\))? (?:copied|transferred), ([\d.,e+-]{1,30}) s(?:econds)?,.*"
)
_BSD = re.compile(r"\s*(\d{1,19}) bytes transferred in ([\d.]{1,30}) secs? \(.*")
_SOURCES = ("/dev/zero", "/dev/urandom", "/dev/random")
_SINKS = ("/dev/null", "/dev/zero")


def sniff(head: str) -> bool:
    return bool(re.search(r"^[ \t]*\d+\+\d+ records (in|out)[ \t\r]*$", head, re.MULTILINE)) and " bytes" in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    found = with_repeats(_results(text))
    if not found:
        raise ImportRefused("dd printed no line with bytes and seconds. It may be truncated.")
    return found


def _results(text: str) -> Iterator[Measurement]:
    operands: dict[str, str] = {}
    records: tuple[int, int] | None = None
    ended = False
    for line in lines(text):
        if command := _COMMAND.fullmatch(line.rstrip()):
            operands = dict(_OPERAND.findall(command[1]))
        elif counted := _RECORDS.fullmatch(line):
            records = (int(counted[1]), int(counted[2])) if counted[3] == "in" else records
            ended = True
        elif ended and (result := _GNU.fullmatch(line) or _BSD.fullmatch(line)):
            yield _measured(operands, records, result[1], result[2])
            records, ended = None, False


def _measured(operands: dict[str, str], records: tuple[int, int] | None, moved: str, took: str) -> Measurement:
    name, direction = _test(operands)
    count, seconds = whole(moved, "number of bytes"), number(took.replace(",", "."), "time")
    if not seconds:
        raise ImportRefused("dd took 0 seconds, so there is no rate.")
    ios = sum(records) if records else None
    stated: dict[str, Value] = {"pattern": direction.value, "iodepth": 1, "numjobs": 1}
    if records and records[0] and not records[1] and count % records[0] == 0:
        stated["block_size"] = count // records[0]
    if "direct" in operands.get("oflag" if direction is Direction.WRITE else "iflag", "").split(","):
        stated["direct"] = True
    if "fsync" in operands.get("conv", "").split(",") or "fdatasync" in operands.get("conv", "").split(","):
        stated["end_fsync"] = True
    factors, other = sorted_factors(stated)
    return Measurement(
        tool=TOOL,
        name=name,
        direction=direction,
        factors=factors,
        other=other | {key: operands[key][:500] for key in ("if", "of") if key in operands},
        iops=ios / seconds if ios else None,
        bytes_per_s=count / seconds,
        ios=ios,
        bytes=count,
        runtime_ms=round(seconds * 1000),
        notes=("The rate is the number of bytes divided by the time, because the printed rate has few digits.",),
    )


def _test(operands: dict[str, str]) -> tuple[str, Direction]:
    source, sink = operands.get("if", ""), operands.get("of", "")
    if not source and not sink:
        raise ImportRefused("dd does not print whether it read or wrote. Put the dd command above its output.")
    if source in _SOURCES:
        return "write", Direction.WRITE
    if sink in _SINKS or not sink:
        return "read", Direction.READ
    return "copy", Direction.WRITE
