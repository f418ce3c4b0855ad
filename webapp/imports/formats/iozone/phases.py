"""iozone's tests: what each does, by every name that iozone gives it."""

from collections.abc import Mapping

import msgspec

from webapp.imports.formats.iozone.settings import Settings
from webapp.imports.measurement import Measurement
from webapp.imports.values import KIB
from webapp.plans.values import Value
from worker.contract.items import Direction


class Phase(msgspec.Struct, frozen=True):
    name: str
    direction: Direction | None  # None: readers and writers side by side
    pattern: str  # "" if no factor has it
    children: str  # throughput mode
    label: str  # list of phases
    column: str  # automatic mode
    report: str  # Excel report of automatic mode


_R, _W = Direction.READ, Direction.WRITE
PHASES = (
    Phase("Initial write", _W, "write", "initial writers", "initial write", "write", "writer"),
    Phase("Rewrite", _W, "write", "rewriters", "rewrite", "rewrite", "re-writer"),
    Phase("Read", _R, "read", "readers", "read", "read", "reader"),
    Phase("Re-read", _R, "read", "re-readers", "re-read", "reread", "re-reader"),
    Phase("Random read", _R, "randread", "random readers", "random read", "random read", "random read"),
    Phase("Random write", _W, "randwrite", "random writers", "random write", "random write", "random write"),
    Phase("Reverse read", _R, "", "reverse readers", "reverse read", "bkwd read", "backward read"),
    Phase("Record rewrite", _W, "", "record rewriters", "record rewrite", "record rewrite", "record rewrite"),
    Phase("Stride read", _R, "", "stride readers", "stride read", "stride read", "stride read"),
    Phase("Fwrite", _W, "write", "fwriters", "fwrite", "fwrite", "fwrite"),
    Phase("Re-fwrite", _W, "write", "refwriters", "re-fwrite", "frewrite", "re-fwrite"),
    Phase("Fread", _R, "read", "freaders", "fread", "fread", "fread"),
    Phase("Re-fread", _R, "read", "refreaders", "re-fread", "freread", "re-fread"),
    Phase("Mixed workload", None, "", "mixed workload", "mixed workload", "", ""),
    Phase("Pwrite", _W, "write", "pwrite writers", "pwrite", "", ""),
    Phase("Pread", _R, "read", "pread readers", "pread", "", ""),
)
# The columns of the automatic mode's table in their order, and those that each number of `-i` fills.
COLUMNS = tuple(phase for phase in PHASES if phase.column)
_COLUMNS_OF_TEST = ((0, 1), (2, 3), (4, 5), (6,), (7,), (8,), (9, 10), (11, 12))


def columns(tests: tuple[int, ...]) -> tuple[Phase, ...]:
    """The filled columns of the automatic mode's table; without `-i` all of them."""
    filled = {place for test in tests if test < len(_COLUMNS_OF_TEST) for place in _COLUMNS_OF_TEST[test]}
    return tuple(phase for place, phase in enumerate(COLUMNS) if not tests or place in filled)


def measured(phase: Phase, value: float, stated: Settings, more: Mapping[str, Value]) -> Measurement:
    """`value` is in KiB/s, with -O in operations per second."""
    pattern: dict[str, Value] = {"pattern": phase.pattern} if phase.pattern else {}
    factors, other = stated.described(pattern | dict(more))
    return Measurement(
        tool="iozone",
        tool_version=stated.version,
        name=phase.name,
        direction=phase.direction,
        factors=factors,
        other=other,
        iops=value if stated.operations else None,
        bytes_per_s=None if stated.operations else value * KIB,
    )
