"""Assigns a part of a plan to targets: each chosen target, or groups of targets at once. Pure.

A group has several targets of one host (`at_once`), or one target of each of several hosts (`hosts_at_once`): the
first targets of the hosts together, then the second ones, and so on.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

from webapp.plans.factors import AT_ONCE, HOSTS_AT_ONCE
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import PartGrid
from worker.contract.workload import TargetKind

_KIND_WORDS = {
    TargetKind.BLOCK: ("block devices", "a block device"),
    TargetKind.DIRECTORY: ("directories", "a directory"),
    TargetKind.FILE: ("files", "a file"),
    TargetKind.POOL: ("pools of drives", "a pool of drives"),
    TargetKind.SLOT: ("slots of controllers", "a slot of a controller, which only a pool can use"),
}

Group = tuple[TargetFacts, ...]  # targets used at once, in the order in which they were chosen


@dataclass(frozen=True)
class Places:
    """The groups of one part. A group has targets of one kind, so the workload is the same in each of its streams."""

    grid: PartGrid
    targets: Sequence[TargetFacts]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups for every level of `at_once` or `hosts_at_once`, single targets first."""
        return tuple(group for size in self._sizes for group in self._groups(size))

    @property
    def cells(self) -> int:
        """The number of points on all groups."""
        groups = Counter(map(len, self.groups))
        return sum(count * groups[at_once.all_targets] for at_once, count in self.grid.by_targets.items())

    @property
    def left_out(self) -> list[str]:
        """Targets that the part does not run on, as sentences."""
        unfit = [self._unfit(target) for target in self.targets if not self._runs(target)]
        return unfit + [text for size in self._sizes for text in self._over(size)]

    @property
    def problems(self) -> list[str]:
        """Levels above the number of targets or hosts, and groups that cannot be opened together."""
        return [*self._too_many, *dict.fromkeys(text for group in self.groups for text in self._clashes(group))]

    @property
    def _too_many(self) -> list[str]:
        return [
            f"Part {self.grid.part.name}: {size} {self._each} at once are more than {self._chosen(targets)}. "
            f"Choose more {self._each}, or remove the level."
            for size in self._sizes
            for targets in self._first_candidates
            if len(targets) < size
        ]

    @cached_property
    def _sizes(self) -> list[int]:
        if self.grid.part.streams:
            return sorted({at_once.targets for at_once in self.grid.by_targets}) or [1]
        levels = self.grid.levels.get(HOSTS_AT_ONCE if self._over_hosts else AT_ONCE, (1,))
        return sorted(level for level in levels if isinstance(level, int)) or [1]

    @property
    def _over_hosts(self) -> bool:
        return HOSTS_AT_ONCE in self.grid.levels

    @property
    def _each(self) -> str:
        return "hosts" if self._over_hosts else "targets"

    @cached_property
    def _of_hosts(self) -> list[list[TargetFacts]]:
        """Targets of one host and kind, in the chosen order."""
        found: dict[tuple[str, TargetKind], list[TargetFacts]] = {}
        for target in filter(self._runs, self.targets):
            found.setdefault((target.host_id, target.kind), []).append(target)
        return list(found.values())

    @cached_property
    def _candidates(self) -> list[list[TargetFacts]]:
        """Targets that groups are made of, in the chosen order: those of one host and kind, or of several hosts, the
        first of each host, the second of each host, and so on."""
        if not self._over_hosts:
            return self._of_hosts
        found: dict[tuple[TargetKind, int], list[TargetFacts]] = {}
        for of_host in self._of_hosts:
            for place, target in enumerate(of_host):
                found.setdefault((target.kind, place), []).append(target)
        return list(found.values())

    @property
    def _first_candidates(self) -> list[list[TargetFacts]]:
        """Those with the most hosts of each kind: further targets of a host need not have one on every other host."""
        if not self._over_hosts:
            return self._candidates
        return list({targets[0].kind: targets for targets in reversed(self._candidates)}.values())[::-1]

    def _chosen(self, targets: Sequence[TargetFacts]) -> str:
        count, one = len(targets), len(targets) == 1
        if self._over_hosts:
            return f"the {count} {'host' if one else 'hosts'} of which {_named(targets)} are chosen"
        return f"the {count} {_named(targets)} that {'is' if one else 'are'} chosen on {_host(targets)}"

    def _runs(self, target: TargetFacts) -> bool:
        return target.kind in self.grid.kinds

    def _groups(self, size: int) -> Iterator[Group]:
        if size == 1:
            yield from ((target,) for target in self.targets if self._runs(target))
        else:
            for targets in self._candidates:
                whole = len(targets) - len(targets) % size
                yield from (tuple(targets[start : start + size]) for start in range(0, whole, size))

    def _clashes(self, group: Group) -> Iterator[str]:
        """Pools with a common drive, or a disk and its partition: while one is open, the other cannot be opened
        exclusively."""
        for pool, other in combinations(group, 2):
            paths = {drive.path for drive in other.drives}  # a policy may give one drive two names
            if shared := [drive.name for drive in pool.drives if drive.path in paths]:
                yield (
                    f"Part {self.grid.part.name}: {pool.shown} and {other.shown} both contain {', '.join(shared)}, so "
                    "the two cannot be used at once. Remove one, or choose them in an order that puts them into "
                    "different groups."
                )
        for disk, other in permutations(group, 2):
            between = "p" if disk.opens[-1:].isdigit() else ""
            if disk.opens and re.fullmatch(rf"{re.escape(disk.opens)}{between}\d+", other.opens):
                yield (
                    f"Part {self.grid.part.name}: {other.shown} is a partition of {disk.shown}, so the two cannot be "
                    "used at once. Remove one, or choose them in an order that puts them into different groups."
                )

    def _over(self, size: int) -> Iterator[str]:
        for targets in self._candidates:
            over = len(targets) % size
            if over and (len(targets) > size or self._over_hosts):
                names = ", ".join(target.shown for target in targets[-over:])
                of = "several hosts" if self._over_hosts else _host(targets)
                are = "is" if len(targets) == 1 else "are"
                yield (
                    f"Part {self.grid.part.name} with {size} {self._each} at once does not use {names}: {len(targets)} "
                    f"{_named(targets)} of {of} {are} chosen, and {len(targets)} is not a multiple of {size}."
                )

    def _unfit(self, target: TargetFacts) -> str:
        grid = self.grid
        names = [words[0] for kind, words in _KIND_WORDS.items() if kind in grid.kinds]
        only = " and ".join(names) or "nothing"
        hint = (
            ""
            if TargetKind.POOL in grid.kinds or target.kind is not TargetKind.POOL
            else "; a part with a `layout` does"
        )
        return f"Part {grid.part.name} runs on {only} only; {target.shown} is {_KIND_WORDS[target.kind][1]}{hint}."


def _named(targets: Sequence[TargetFacts]) -> str:
    many, one = _KIND_WORDS[targets[0].kind]
    return many if len(targets) > 1 else one.removeprefix("a ")


def _host(targets: Sequence[TargetFacts]) -> str:
    return targets[0].shown.partition("/")[0]
