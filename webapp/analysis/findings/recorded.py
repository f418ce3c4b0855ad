"""What findings about time and counters look at: the seconds of the trials at one point, with sensors of the host.

A finder gets the points of one target. It states at most one finding of a kind: the clearest point is named, the others
are counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from webapp.analysis.answer import Finding, FindingKind, Sentence, TrialSeconds

Seconds = NDArray[np.float64]  # a value for each second since the measured part began; nan without one
Sensor = tuple[str, str]  # contract.items.SensorKind and name


@dataclass(frozen=True)
class RecordedTrial:
    """One trial of one stream, with the sensors of its host."""

    number: int  # in its run
    iops: Seconds  # over all directions
    utilisation: Seconds  # percent of the time in which the target's device had I/O in flight
    queue_depth: Seconds  # mean number of I/Os in flight there
    sensors: dict[Sensor, Seconds] = field(default_factory=dict)
    errors: tuple[
        int, ...
    ] = ()  # seconds in which the kernel logged an error of the trial's devices, one for each line

    def of_kind(self, kind: str) -> dict[str, Seconds]:
        """By name of the sensor; without sensors that never had a value."""
        return {
            name: values
            for (sensor, name), values in self.sensors.items()
            if sensor == kind and not np.isnan(values).all()
        }

    @property
    def is_complete(self) -> bool:
        """Every second has a rate."""
        return len(self.iops) > 0 and not np.isnan(self.iops).any()

    def seconds(self, first: int, last: int) -> TrialSeconds:
        """The seconds from index `first` to index `last`."""
        return TrialSeconds(trial=self.number, from_s=first, to_s=last + 1)

    @property
    def whole(self) -> TrialSeconds:
        return self.seconds(0, max(len(self.iops), len(self.utilisation), 1) - 1)


@dataclass(frozen=True)
class RecordedPoint:
    """All valid trials at one point of one target."""

    name: str  # `randwrite, 4 KiB`; "" if the run has one point
    trials: tuple[RecordedTrial, ...]
    depth: int | None = None  # I/Os that the workload keeps in flight; None if that is not known
    buffered: bool = False  # writes end in the page cache
    block_bytes: int | None = None

    @property
    def is_single(self) -> bool:
        return len(self.trials) == 1


@dataclass(frozen=True)
class TimedFinding:
    """A finding, and the seconds of trials that show it, the clearest trial first."""

    finding: Finding
    seconds: tuple[TrialSeconds, ...]


def timed(
    kind: FindingKind,
    sentence: str | Sentence,
    point: RecordedPoint,
    points: Sequence[RecordedPoint],
    *,
    size: float,
    value: float | None = None,
    seconds: Iterable[TrialSeconds] | None = None,
) -> list[TimedFinding]:
    """One finding about all `points`; `sentence` is about `point`, the clearest of them. The evidence are `seconds`, or
    all trials."""
    finding = Finding(
        kind=kind, **_at_point(point, sentence, len(points) - 1).texts, single=point.is_single, size=size, value=value
    )
    whole = (trial.whole for each in points for trial in each.trials)
    return [TimedFinding(finding, tuple(whole if seconds is None else seconds))]


def _at_point(point: RecordedPoint, sentence: str | Sentence, others: int) -> Sentence:
    """A sentence after the name of its point. `others`: points that show the same."""
    first, *others_of_parts = sentence.parts if isinstance(sentence, Sentence) else (sentence,)
    name = f"{point.name}: " if point.name else ""
    first = f"{name}{first}" if name else f"{first[:1].upper()}{first[1:]}"
    more = f" (also at {others} other point{'s' if others > 1 else ''})" if others else ""
    if not others_of_parts:
        return Sentence((f"{first}{more}",))
    return Sentence((first, *others_of_parts, more))


def span_text(values: Sequence[float], unit: str) -> str:
    """`3 s`, `3 to 5 s`: whole numbers."""
    texts = dict.fromkeys(f"{value:.0f}" for value in (min(values), max(values)))
    return f"{' to '.join(texts)} {unit}"
