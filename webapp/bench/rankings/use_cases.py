"""Use cases: what they ask of a drive, and how much each part counts.

The weights are our convention, not measurements of an application: the page shows them, and its address can change
them. A part names a range of workloads; a ranking takes the one of them that most of its drives have, so that all
drives are judged by the same workloads.

- Database: small random reads and writes. Commits and index look-ups wait for single requests, background work keeps
  many in flight.
- Log writes: small writes one after another, each of which somebody waits for; few random writes beside them.
- Virtual machines: guests mix their requests, so reads and writes are random and many are in flight.
- Backup: large sequential transfers, mostly to the drive; reading is the restore.
- Streaming: large sequential reads, alone and with many readers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.bench.rankings.catalogue import Load
from worker.contract.workload import KIB, Pattern

_SMALL = (4 * KIB, 16 * KIB)
_LARGE = (128 * KIB, 4096 * KIB)


@dataclass(frozen=True)
class Part:
    """A workload of a use case. Ranges include both ends."""

    label: str
    pattern: Pattern
    blocks: tuple[int, int]  # bytes
    in_flight: tuple[int, int]
    usual: tuple[int, int]  # block size and requests in flight of the workload that is taken first

    def fits(self, load: Load) -> bool:
        return (
            load.pattern is self.pattern
            and self.blocks[0] <= load.block_size <= self.blocks[1]
            and self.in_flight[0] <= load.in_flight <= self.in_flight[1]
        )


@dataclass(frozen=True)
class UseCase:
    key: str
    label: str
    parts: tuple[Part, ...]
    weights: tuple[int, ...]  # of the parts


def _small(label: str, pattern: Pattern, *, many: bool = False) -> Part:
    flight = (16, 64) if many else (1, 1)
    return Part(label, pattern, _SMALL, flight, (4 * KIB, 32 if many else 1))


def _large(label: str, pattern: Pattern, flight: tuple[int, int] = (1, 64)) -> Part:
    return Part(label, pattern, _LARGE, flight, (1024 * KIB, flight[0]))


_READ, _WRITE = Pattern.RANDREAD, Pattern.RANDWRITE
_RANDOM = (
    _small("Random read, 1 in flight", _READ),
    _small("Random read, 32 in flight", _READ, many=True),
    _small("Random write, 1 in flight", _WRITE),
    _small("Random write, 32 in flight", _WRITE, many=True),
)
_ALL = (
    UseCase("database", "Database", _RANDOM, (30, 25, 30, 15)),
    UseCase(
        "log", "Log writes",
        (_small("Sequential small write, 1 in flight", Pattern.WRITE), _small("Random write, 1 in flight", _WRITE)),
        (80, 20),
    ),
    UseCase("machines", "Virtual machines", _RANDOM, (20, 30, 20, 30)),
    UseCase(
        "backup", "Backup",
        (_large("Sequential large write", Pattern.WRITE), _large("Sequential large read", Pattern.READ)),
        (70, 30),
    ),
    UseCase(
        "streaming", "Streaming",
        (
            _large("Sequential large read, 1 in flight", Pattern.READ, (1, 1)),
            _large("Sequential large read, many in flight", Pattern.READ, (8, 64)),
        ),
        (50, 50),
    ),
)  # fmt: skip
USE_CASES: Mapping[str, UseCase] = {use_case.key: use_case for use_case in _ALL}
