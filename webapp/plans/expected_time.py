"""The expected time of trials, prefills and layout builds, summed for each host. Pure."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from webapp.plans.expand import PlannedTrial
from webapp.plans.experience import NOTHING_LEARNED, SLOW_PREFILL, Experience, Span
from webapp.plans.file_sets import FileSet
from webapp.plans.fitness import TargetFacts
from webapp.plans.points import hosts_at_once
from webapp.plans.step_costs import pauses_s, written_by_steps
from worker.contract.layouts import Layout
from worker.contract.workload import Workload
from worker.recipes.layouts import write

COMMON_START_S = 4.0  # from the moment at which all hosts of a trial are ready to their common start

Times = tuple[float, float, float]  # seconds: smallest, median, largest
NO_TIME = (0.0, 0.0, 0.0)


class Clock:
    """Sums the time of each host: smallest, median, largest."""

    def __init__(
        self, targets: Mapping[str, TargetFacts], experience: Mapping[str, Experience], *, one_at_a_time: bool
    ) -> None:
        self._one_at_a_time = one_at_a_time
        self._targets = targets
        self._hosts = {target.id: target.host_id for target in targets.values()}
        self._known = {host: experience.get(host, NOTHING_LEARNED) for host in self._hosts.values()}
        self._spent = {host: [0.0, 0.0, 0.0] for host in self._known}
        self.unknown_trials = 0
        self.unknown_stops = 0
        self.unknown_builds = 0

    def add_trial(self, trial: PlannedTrial, count: int) -> None:
        known = self._known[self._hosts[trial.target_id]]
        turnover = known.turnover_s
        times = NO_TIME
        for work in trial.workloads:
            times = _longer(times, self._stream(trial, work, known, count))
        amounts = [work for work in trial.workloads if work.moved_bytes is not None]
        if any(_amount_rate(trial, work, known) is None for work in amounts):
            self.unknown_trials += count
        times = _plus(times, (turnover.low, turnover.typical, turnover.high))
        if hosts_at_once(trial.point) > 1:
            times = _plus(times, (COMMON_START_S, COMMON_START_S, COMMON_START_S))
        if trial.before.steps:
            times = _plus(times, self._steps(trial, known))
        self._add(trial.target_id, (times[0] * count, times[1] * count, times[2] * count))

    def _steps(self, trial: PlannedTrial, known: Experience) -> Times:
        """Steps write to one target of each host after another, at the speed of the prefill."""
        paused = float(pauses_s(trial.before.steps))
        by_host: Counter[str] = Counter()
        for target, moved in written_by_steps([trial], [self._targets[each] for each in trial.target_ids]).items():
            by_host[self._hosts[target]] += moved
        written = max(by_host.values(), default=0)
        return _plus((paused, paused, paused), _moved(written, known.prefill_bytes_per_s or SLOW_PREFILL))

    def _stream(self, trial: PlannedTrial, work: Workload, known: Experience, count: int) -> Times:
        """The time of one workload of a trial: its run time, and that of its amount if its rate is known."""
        own = self._own(trial, work, known, count)
        if work.load_bytes:
            own = _plus(own, self._load(trial, work, known))
        if work.moved_bytes is None:
            return own
        return _plus(own, _moved(work.moved_bytes, _amount_rate(trial, work, known)))

    def _load(self, trial: PlannedTrial, work: Workload, known: Experience) -> Times:
        """The load before the measured part: as earlier, else at the speed of the prefill."""
        if learned := known.loads_s.get((trial.target_ids, work.load_bytes)):
            return learned.low, learned.typical, learned.high
        start = (work.startup_s, work.startup_s, work.startup_s)
        return _plus(start, _moved(work.load_bytes, known.prefill_bytes_per_s or SLOW_PREFILL))

    def _own(self, trial: PlannedTrial, work: Workload, known: Experience, count: int) -> Times:
        """The run time of a trial."""
        most = float(work.time_s)
        if not work.may_end_early:
            return most, most, most
        stopped = known.stops_s.get((trial.target_ids, msgspec.structs.replace(work, seed=1)))
        self.unknown_stops += count if stopped is None else 0
        return (float(work.least_time_s), most, most) if stopped is None else (stopped.low, stopped.typical, most)

    def add_files(self, files: FileSet) -> None:
        if files.filled:
            known = self._known[self._hosts[files.target_id]]
            rate = known.prefill_bytes_per_s or known.sequential_writes.get(files.target_id, SLOW_PREFILL)
            self._add(files.target_id, _moved(files.size_bytes * files.files, rate))

    def add_build(self, target_id: str, layout: Layout | None) -> None:
        known = self._known[self._hosts[target_id]].builds_s.get(write(layout)) if layout else None
        if known is None:
            self.unknown_builds += 1
        else:
            self._add(target_id, (known.low, known.typical, known.high))

    def _add(self, target_id: str, times: Times) -> None:
        spent = self._spent[self._hosts[target_id]]
        spent[:] = _plus((spent[0], spent[1], spent[2]), times)

    def longest(self) -> Times:
        spent = list(self._spent.values()) or [[0.0, 0.0, 0.0]]
        low, typical, high = zip(*spent, strict=True)
        return (sum(low), sum(typical), sum(high)) if self._one_at_a_time else (max(low), max(typical), max(high))

    def learned_runs(self) -> int:
        return min((known.runs for known in self._known.values()), default=0)


def _amount_rate(trial: PlannedTrial, work: Workload, known: Experience) -> Span | None:
    """Unknown for several workloads at once: they share the target."""
    if len(trial.workloads) > 1:
        return None
    return known.amounts.get((trial.target_ids, work.rated())) or known.nearest.get((trial.target_id, trial.point_key))


def _moved(amount_bytes: int, rate: Span | None) -> Times:
    """The fastest rate gives the shortest time."""
    if rate is None:
        return NO_TIME
    return amount_bytes / rate.high, amount_bytes / rate.typical, amount_bytes / rate.low


def _longer(one: Times, other: Times) -> Times:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _plus(one: Times, other: Times) -> Times:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
