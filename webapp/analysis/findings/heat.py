"""Heat: the speed falls when a drive is hot.

A trial falls to a settled level (`settling`). A drive's sensor is then at least `HOT`, at least `RISE` above its first
value, and within `BESIDE` of its maximum: many drives limit themselves from 70 to 85 °C on, and each reads a few
degrees off (our convention; the limit of the drive itself is not recorded). Temperatures are read every 10 s, so the
nearest reading within `NEAR_S` of the fall counts. The sentence states that both happened together, not the cause: a
full write cache falls at a hot moment, too.
"""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from webapp.analysis.answer import FindingKind
from webapp.analysis.findings.recorded import RecordedPoint, RecordedTrial, TimedFinding, span_text, timed
from webapp.analysis.findings.settling import Settled, agreed, settled
from webapp.analysis.trial_metrics import is_of_drive
from worker.contract.items import SensorKind

HOT, RISE, BESIDE = 65.0, 5.0, 5.0  # °C
NEAR_S = 15


def find(points: Sequence[RecordedPoint]) -> Sequence[TimedFinding]:
    hot = [(point, each) for point in points if (each := _all_hot(point))]
    if not hot:
        return []
    point, falls = max(hot, key=lambda each: -fmean(fall.change for fall, _, _ in each[1]))
    change = fmean(fall.change for fall, _, _ in falls)
    degrees = span_text([degrees for _, _, degrees in falls], "°C")
    names = {name for _, name, _ in falls}
    sensor = f"{next(iter(names))} was" if len(names) == 1 else "a drive was"
    seconds = span_text([fall.at for fall, _, _ in falls], "s")
    sentence = f"IOPS fell by {-100 * np.expm1(change):.0f} % after {seconds}, when {sensor} at {degrees}"
    evidence = (
        trial.seconds(fall.at, len(trial.iops) - 1)
        for point, each in hot
        for trial, (fall, _, _) in zip(point.trials, each, strict=True)
    )
    return timed(
        FindingKind.HEAT, sentence, point, [point for point, _ in hot], size=-change,
        value=max(degrees for _, _, degrees in falls), seconds=evidence,
    )  # fmt: skip


Hot = tuple[Settled, str, float]  # the fall, the drive and its temperature then


def _all_hot(point: RecordedPoint) -> list[Hot]:
    """Of each trial; empty if one of them does not fall when a drive is hot."""
    known = [hot for trial in point.trials if (hot := _hot(trial))]
    return known if len(known) == len(point.trials) and agreed(point, settled) else []


def _hot(trial: RecordedTrial) -> Hot | None:
    fall = settled(trial)
    if fall is None or fall.change > 0:
        return None
    readings = [
        (name, degrees)
        for name, values in trial.of_kind(SensorKind.TEMPERATURE).items()
        if is_of_drive(name) and (degrees := _at(values, fall.at)) is not None
    ]
    name, degrees = max(readings, key=lambda each: each[1], default=("", 0.0))
    return (fall, name, degrees) if name else None


def _at(values: np.ndarray, second: int) -> float | None:
    """The temperature at the fall, if it is high, near its maximum, and above the first one."""
    places = np.flatnonzero(~np.isnan(values))
    near = min(places, key=lambda place: abs(int(place) - second))
    degrees, first, highest = float(values[near]), float(values[places[0]]), float(np.nanmax(values))
    is_near = abs(int(near) - second) <= NEAR_S
    return degrees if is_near and degrees >= max(HOT, first + RISE, highest - BESIDE) else None
