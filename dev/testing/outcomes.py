"""How tests ended, as each pytest process writes it down, and which of them get a second try.

pytest (dev.testing.pytest_plugin) ──► a line of JSON a process ──► Outcomes ──► the closing lines of `make test`
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MOST_TRIED_AGAIN = 3


@dataclass(frozen=True)
class Outcomes:
    """Tests by how they ended. A test that passed and whose clearing up failed has failed."""

    passed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)  # test -> what it said
    # Words for what is no test's failure: files that cannot be read, a process that ended before its tests.
    broken: tuple[str, ...] = ()

    def __add__(self, other: "Outcomes") -> "Outcomes":
        return Outcomes(
            self.passed | other.passed,
            self.skipped | other.skipped,
            {**self.failed, **other.failed},
            self.broken + other.broken,
        )

    def mended(self, passed_again: Iterable[str]) -> "Outcomes":
        """The same where these tests have passed after all."""
        now = frozenset(passed_again)
        failed = {name: text for name, text in self.failed.items() if name not in now}
        return Outcomes(self.passed | now, self.skipped, failed, self.broken)

    @property
    def good(self) -> bool:
        return not self.failed and not self.broken

    @property
    def closing_line(self) -> str:
        return f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def worth_another_try(outcomes: Outcomes) -> list[str]:
    """The tests to run once more: a few failures may be chance, many are not, and what is broken is red at once."""
    few = 0 < len(outcomes.failed) <= MOST_TRIED_AGAIN
    return sorted(outcomes.failed) if few and not outcomes.broken else []


def read(path: Path) -> Outcomes:
    """What pytest processes have written there; broken where none has come to its end."""
    if not path.exists():
        return Outcomes(broken=("pytest ended without saying how its tests went",))
    total = Outcomes()
    for line in path.read_text().splitlines():
        part = json.loads(line)
        failed = part["failed"]
        passed, skipped = (frozenset(part[name]) - failed.keys() for name in ("passed", "skipped"))
        total += Outcomes(passed, skipped, failed, tuple(part["broken"]))
    return total
