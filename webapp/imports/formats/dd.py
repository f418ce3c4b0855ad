"""dd: GNU in all languages, busybox and BSD.

Only bytes and seconds are used, because the printed rate has two or three digits (GNU: MB is 10^6 bytes, MiB is
2^20; coreutils' dd.c, print_stats). dd does not print what it did, so the command above the output is needed:
`if=` a device or file and `of=/dev/null` is a read, `if=/dev/zero` is a write, file to file counts as a write.
`status=progress` prints the same line each second, with whole seconds. The line after the numbers of records is a
result, and so is a line with fractions of seconds right below the command, as people shorten the output.
"""

import io
import re
from collections.abc import Iterator

import msgspec

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import ImportRefused, lines, number, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "dd"
_COMMAND = re.compile(r"(?:.{0,200}?[\s#$%>/]|)dd(\s+[a-z]+=.{1,2000})")
_OPERAND = re.compile(r"\s([a-z]{1,10})=(\S{1,1000})")
_INTO_FILE = re.compile(r"(?<![\d&>])>{1,2} ?([^\s&>]{1,1000})")  # of a pipe's last program: `dd if=a | pv > b`
# The words are those of the language of the user: `100+0 Datensätze ein`, `记录了100+0 的读入`.
_RECORDS = re.compile(r"[^\d\n]{0,40}(\d{1,19})\+(\d{1,19})\s*[^\W\d_].{0,60}")
_BYTES = re.compile(r"\d{1,19}")
_FRACTION = re.compile(r"\d[.,]\d")
_TIME = re.compile(
    r"[,，、] ?(\d{1,12}(?:[.,]\d{1,12})?(?:e[+-]?\d{1,3})?) ?(?:s|c|с|seconds?|秒)"
    r"[,，、] ?[^\s/]{1,30} ?[^\s/]{0,10}/ ?\S{1,3}\s*$"
)
_BSD = re.compile(r"\s*(\d{1,19}) bytes transferred in ([\d.]{1,30}) sec(?:ond)?s? \(.*")
_MOST_OF_LINE = 300
_SOURCES = ("/dev/zero", "/dev/urandom", "/dev/random")
_SINKS = ("/dev/null", "/dev/zero")


def sniff(head: str) -> bool:
    """Two lines of records, one after the other, or a command and its line of bytes and seconds."""
    counted_before = command_before = False
    for line in io.StringIO(head):
        counted = "+" in line and len(line) < _MOST_OF_LINE and _RECORDS.fullmatch(line.rstrip()) is not None
        if (counted and counted_before) or (command_before and _last_result(line)):
            return True
        counted_before = counted
        command_before = "dd" in line and _COMMAND.fullmatch(line.rstrip()) is not None
    return False


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = with_repeats(_results(text))
    if not measurements:
        raise ImportRefused(
            "The output of dd has no line with bytes and seconds, so it has no rate. Old versions print "
            "only the numbers of records; else the text is truncated."
        )
    unread = sum(_last_result(line) is not None for line in lines(text)) - len(measurements)
    if unread > 0:
        note = f"Lines with bytes and seconds that are not read, because no command is above them: {unread}."
        measurements[-1] = msgspec.structs.replace(measurements[-1], notes=(*measurements[-1].notes, note))
    return measurements


def _results(text: str) -> Iterator[Measurement]:
    operands: dict[str, str] = {}
    records: list[tuple[int, int]] = []  # in and out
    command_before = False
    for line in lines(text):
        if "dd" in line and (command := _COMMAND.fullmatch(line.rstrip())):
            operands, records, command_before = _operands(command[1]), [], True
            continue
        if command_before and (result := _last_result(line)):
            yield _measured(operands, None, *result)
        elif "+" in line and len(line) < _MOST_OF_LINE and (counted := _RECORDS.fullmatch(line.rstrip())):
            records = [*records[-1:], (int(counted[1]), int(counted[2]))]
        elif records and (result := _result(line)):
            yield _measured(operands, records[0] if len(records) == 2 else None, *result)
            records = []
        command_before = False


def _operands(command: str) -> dict[str, str]:
    """Of all calls of dd in a pipe, together."""
    stated = {name: value.strip("'\"`;") for name, value in _OPERAND.findall(command)}
    into = _INTO_FILE.search(command)
    return {"of": into[1]} | stated if into else stated


def _last_result(line: str) -> tuple[str, str] | None:
    """The bytes and seconds of a line that is not one of `status=progress`."""
    result = _result(line)
    return result if result and _FRACTION.search(result[1]) else None


def _result(line: str) -> tuple[str, str] | None:
    """The bytes and seconds of the line after the records: `104857600 Bytes (105 MB, 100 MiB) kopiert, 2,0 s, 52 MB/s`,
    or in Russian `скопировано 104857600 байт (105 MB), 2,0 c, 52 MB/c`."""
    if bsd := _BSD.fullmatch(line):
        return bsd[1], bsd[2]
    moved, took = _BYTES.search(line[:80]), _TIME.search(line[:_MOST_OF_LINE])
    return (moved[0], took[1]) if moved and took else None


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
